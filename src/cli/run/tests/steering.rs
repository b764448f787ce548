//! Lines that the user types while the agent works.

use super::{ASKING, Case, check_whole};

const OPENING: &str = r#"
> initialize {}
< result {"protocolVersion":1,"agentCapabilities":{"_meta":{"steering":{"supported":true}}}}
> session/new {}
< result {"sessionId":"s1"}
> session/prompt {}
"#;
/// Answers the prompt, which is the third request.
const END: &str = r#"
< raw {"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}"#;

#[test]
fn typed_line_steers_the_agent_and_answers_no_question() {
    let script = format!(
        r#"{OPENING}
type use tabs
> _session/steering {{"sessionId":"s1","prompt":[{{"type":"text","text":"use tabs"}}]}}
< result {{"outcome":"injected"}}
shown the agent has read it
{ASKING}
shown y, n: 
type y
> answer {{"id":"7","result":{{"outcome":{{"outcome":"selected","optionId":"yes"}}}}}}
type  
type y
> _session/steering {{"prompt":[{{"type":"text","text":"y"}}]}}
< result {{"outcome":"injected"}}{END}"#
    );
    let seen = check_whole(Case::default(), &script);
    let question = "? touch a\n  y) Allow\n  n) Reject\n  y, n: ";
    let told = "castor: the agent reads this with its next step\ncastor: the agent has read it\n";
    assert_eq!((seen.err, seen.exit), (format!("{told}{question}{told}"), 0));
}

#[test]
fn late_steering_is_reported() {
    let script = format!(
        r#"{OPENING}
type use tabs
> _session/steering {{}}{END}
< raw {{"jsonrpc":"2.0","id":3,"result":{{"outcome":"promptRequired","message":"the turn\u001b[2J ended"}}}}"#
    );
    let seen = check_whole(Case::default(), &script);
    let told = "the agent did not get what you typed: the turn⟨U+001B⟩[2J ended. To ask it in this session: castor run -c 'use tabs'\n";
    assert!(seen.err.ends_with(told), "{}", seen.err);
    assert_eq!(seen.exit, 0);
}

#[test]
fn an_agent_that_takes_no_such_words_gets_none() {
    let script = r#"
> initialize {}
< result {"protocolVersion":1,"agentCapabilities":{}}
> session/new {}
< result {"sessionId":"s1"}
> session/prompt {}
type use tabs
< result {"stopReason":"end_turn"}"#;
    assert_eq!(check_whole(Case::default(), script).err, "");
}
