//! `castor run` against a scripted agent, over streams in memory.
//!
//! ```text
//! > method {…}       the next message of ours is this request; what is given of its params must be there
//! > notify m {…}     … this notification          > answer {…}   … the answer to the agent's request
//! < result {…}       answers our last request     < error {…}    the same, with an error
//! < update {…}       a session/update             < event {…}    an AgentEvent
//! < ask 7 m {…}      a request                    < raw …        a line as it stands
//! signal             the user presses Ctrl-C       close          the agent leaves
//! type …             the user types this line      shown …        waits until this is on stderr
//! ```

mod resume;
mod screens;
mod steering;

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex},
    sync::mpsc,
    time::timeout,
};

use super::{
    ask::{Keyboard, TerminalAsker},
    conclude, converse,
    screen::{Screen, ScreenStyle},
    turn::Driver,
};
use crate::cli::{
    args::OutputFormat,
    client::{
        link::AgentLink,
        prompt::{Attachment, Prompt},
        signals::UserSignal,
    },
};
use castor_base::event::{AgentEvent, EventKind};
use castor_client::{failure::Exit, opening::SessionRequest};
use castor_models::acp_agent::connection::Peer;

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// What a run showed, and its exit code.
pub(super) struct Seen {
    pub out: String,
    pub err: String,
    pub exit: u8,
}

#[derive(Default)]
pub(super) struct Case {
    request: SessionRequest,
    pub look: ScreenStyle,
    /// What the user types on the terminal.
    typed: Option<&'static str>,
    attachments: Vec<Attachment>,
}

const OPENING: &str = r#"
> initialize {"protocolVersion":1}
< result {"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"list":{}}}}
> session/new {"cwd":"/w","mcpServers":[]}
< result {"sessionId":"s1"}
> session/prompt {"sessionId":"s1","prompt":[{"type":"text","text":"hello"}]}
"#;
const ASKING: &str = r#"
< update {"sessionUpdate":"tool_call","toolCallId":"c","title":"touch a","kind":"execute"}
< ask 7 session/request_permission {"sessionId":"s1","toolCall":{"toolCallId":"c"},"options":[{"optionId":"yes","name":"Allow","kind":"allow_once"},{"optionId":"no","name":"Reject","kind":"reject_once"}]}
"#;

pub(super) fn plain(format: OutputFormat) -> Case {
    Case { look: ScreenStyle { format, ..ScreenStyle::default() }, ..Case::default() }
}

/// Plays `script` after the usual opening.
pub(super) fn check(case: Case, script: &str) -> Seen {
    check_whole(case, &format!("{OPENING}{script}"))
}

fn check_whole(case: Case, script: &str) -> Seen {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { timeout(Duration::from_secs(20), play(case, script)).await.expect("it hangs") })
}

async fn play(case: Case, script: &str) -> Seen {
    let (writer, to_agent) = duplex(1 << 16);
    let (from_agent, reader) = duplex(1 << 16);
    let (peer, incoming) = Peer::connect(reader, writer);
    let (user, signals) = mpsc::channel(4);
    let link = AgentLink::new(peer, incoming, mpsc::channel(1).1);
    let (out, err) = (Shared::default(), Shared::default());
    let screen = Screen::new(case.look, out.clone(), err.clone());
    let (keys, lines) = mpsc::channel(1);
    let typing = match case.typed {
        None if !script.contains("\ntype ") => Keyboard::Nobody,
        None => Keyboard::Lines(lines),
        Some(line) => {
            let keys = keys.clone();
            // Again and again: what is typed before the question is shown does not count.
            tokio::spawn(async move { while keys.send(line.to_owned()).await.is_ok() {} });
            Keyboard::Lines(lines)
        }
    };
    let user = User { signals: user, keys, sees: err.clone() };
    let mut driver = Driver::new(link, signals, screen, TerminalAsker::new(typing, "/w"));
    let request = SessionRequest { cwd: "/w".to_owned(), ..case.request };
    let prompt = Prompt { text: "hello".to_owned(), attachments: case.attachments, ..Prompt::default() };
    let run = async {
        let end = converse(&mut driver, request, prompt.into(), None).await;
        conclude(driver, end, Duration::ZERO).await
    };
    let (exit, ()) = tokio::join!(run, act(to_agent, from_agent, script, user));
    Seen { out: out.text(), err: err.text(), exit: exit.code() }
}

struct User {
    signals: mpsc::Sender<UserSignal>,
    keys: mpsc::Sender<String>,
    sees: Shared,
}

/// The agent's side, and the user's.
async fn act(reader: DuplexStream, mut writer: DuplexStream, script: &str, user: User) {
    let mut lines = BufReader::new(reader).lines();
    let mut last_id = Value::Null;
    for step in script.lines().filter(|it| !it.trim().is_empty()) {
        let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
        match verb {
            "signal" => user.signals.send(UserSignal::Interrupt).await.unwrap(),
            "type" => user.keys.send(rest.to_owned()).await.unwrap(),
            "shown" => {
                while !user.sees.text().contains(rest) {
                    tokio::task::yield_now().await;
                }
            }
            "close" => return,
            "<" => {
                let line = spoken(rest, &last_id) + "\n";
                writer.write_all(line.as_bytes()).await.unwrap();
            }
            _ => {
                let line = lines.next_line().await.unwrap().unwrap_or_else(|| panic!("nothing came for {step}"));
                let message: Value = serde_json::from_str(&line).unwrap();
                let expected = expected(rest);
                assert!(holds(&message, &expected), "wanted {expected}\ngot {line}");
                if message.get("method").is_some() && message.get("id").is_some() {
                    last_id = message["id"].clone();
                }
            }
        }
    }
    assert_eq!(lines.next_line().await.unwrap(), None, "the script does not know of this");
}

fn spoken(step: &str, last_id: &Value) -> String {
    let (kind, body) = step.split_once(' ').unwrap();
    let json = || serde_json::from_str::<Value>(body).unwrap();
    let message = match kind {
        "raw" => return body.to_owned(),
        "result" => json!({"jsonrpc": "2.0", "id": last_id, "result": json()}),
        "error" => json!({"jsonrpc": "2.0", "id": last_id, "error": json()}),
        "update" => {
            json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s1", "update": json()}})
        }
        "event" => {
            let params = json!({"sessionId": "s1", "event": json()});
            json!({"jsonrpc": "2.0", "method": "_castor/session/event", "params": params})
        }
        "ask" => {
            let mut words = body.splitn(3, ' ');
            let (id, method) = (words.next().unwrap(), words.next().unwrap());
            let params: Value = serde_json::from_str(words.next().unwrap()).unwrap();
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        }
        other => panic!("{other}"),
    };
    message.to_string()
}

fn expected(step: &str) -> Value {
    let (word, rest) = step.split_once(' ').unwrap();
    let json = |it: &str| serde_json::from_str::<Value>(it).unwrap();
    match word {
        "answer" => json(rest),
        "notify" => {
            let (method, params) = rest.split_once(' ').unwrap();
            json!({"method": method, "params": json(params)})
        }
        method => json!({"method": method, "params": json(rest)}),
    }
}

/// Whether all that `part` says is in `whole`.
fn holds(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, it)| whole.get(key).is_some_and(|found| holds(found, it)))
        }
        _ => whole == part,
    }
}

#[test]
fn text_is_streamed_and_tool_calls_go_to_stderr() {
    let seen = check(
        plain(OutputFormat::Text),
        r#"
< update {"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}
< update {"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"Let me "}}
< update {"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"look."}}
< update {"sessionUpdate":"tool_call","toolCallId":"c1","title":"ls"}
< update {"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed"}
< update {"sessionUpdate":"tool_call","toolCallId":"c2","title":"rm\u001b[2J x","status":"failed"}
< update {"sessionUpdate":"agent_message_chunk","messageId":"m2","content":{"type":"text","text":"Do\u001b[1mne"}}
< update {"sessionUpdate":"brand_new","x":1}
< result {"stopReason":"end_turn"}"#,
    );
    assert_eq!(seen.out, "Let me look.\nDone\n");
    assert_eq!(seen.err, "▸ thought  hm\n✓ ls\n✗ rm⟨U+001B⟩[2J x  failed\n");
    assert_eq!(seen.exit, 0);
}

#[test]
fn escape_sequences_do_not_reach_a_terminal() {
    let look = ScreenStyle { stdout_is_terminal: true, ..ScreenStyle::default() };
    let seen = check(
        Case { look, ..Case::default() },
        r#"
< update {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\u001b[3"}}
< update {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"1mb\n"}}
< result {"stopReason":"end_turn"}"#,
    );
    assert_eq!(seen.out, "ab\n");
}

/// On a live terminal everything is drawn on stderr, and nothing is left of what was only for the moment.
#[test]
fn live_terminal_shows_calls_and_the_answer() {
    let look =
        ScreenStyle { stdout_is_terminal: true, stderr_is_terminal: true, is_live: true, ..ScreenStyle::default() };
    let seen = check(
        Case { look, ..Case::default() },
        r#"
< update {"sessionUpdate":"tool_call","toolCallId":"c1","title":"make","kind":"execute","status":"in_progress"}
shown make
< update {"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed"}
< update {"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"**Do"}}
shown Do
< update {"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"ne** now."}}
< result {"stopReason":"end_turn","usage":{"inputTokens":1000,"outputTokens":20}}"#,
    );
    let mut terminal = vt100::Parser::new(24, 80, 0);
    terminal.process(seen.err.as_bytes());
    let screen = terminal.screen().contents();
    assert_eq!(screen.trim_end(), "✓ make\n\nDone now.\n\n1.0 k tokens in, 20 out · cost unknown");
    assert_eq!((seen.out.as_str(), seen.exit), ("", 0));
    assert!(seen.err.matches("\u{1b}[?2026h").count() >= 3, "{:?}", seen.err);
}

#[test]
fn headless_run_denies_questions_once() {
    let script = format!(
        r#"{ASKING}> answer {{"id":"7","result":{{"outcome":{{"outcome":"selected","optionId":"no"}}}}}}
< result {{"stopReason":"end_turn"}}"#
    );
    let seen = check(plain(OutputFormat::Text), &script);
    assert_eq!(seen.err, "castor: denied, because nobody can be asked: touch a\n");
    assert_eq!(seen.exit, 0);
}

#[test]
fn terminal_run_asks_the_user() {
    let script = format!(
        r#"{ASKING}> answer {{"id":"7","result":{{"outcome":{{"outcome":"selected","optionId":"yes"}}}}}}
< result {{"stopReason":"end_turn"}}"#
    );
    let seen = check(Case { typed: Some("1"), ..Case::default() }, &script);
    assert_eq!(seen.err, "? touch a\n  y) Allow\n  n) Reject\n  y, n: ");
}

#[test]
fn forms_and_pages_are_answered_on_a_terminal() {
    let script = r#"
< ask 7 elicitation/create {"sessionId":"s1","mode":"form","message":"Server `x` asks: Where\u001b[2J to?","requestedSchema":{"type":"object","properties":{"city":{"type":"string","title":"City"}},"required":["city"]}}
> answer {"id":"7","result":{"action":"accept","content":{"city":"y"}}}
< ask 8 elicitation/create {"sessionId":"s1","mode":"url","message":"Log in","url":"https://a.b/c","elicitationId":"e"}
> answer {"id":"8","result":{"action":"accept"}}
< ask 9 elicitation/create {"sessionId":"s1","mode":"form","message":"Log in","requestedSchema":{"type":"object","properties":{"password":{"type":"string"}}}}
> answer {"id":"9","error":{"code":-32602}}
< result {"stopReason":"end_turn"}"#;
    let seen = check(Case { typed: Some("y"), ..Case::default() }, script);
    let form = "? Server `x` asks: Where⟨U+001B⟩[2J to?\n  City, a line, - to decline: ";
    let page = "? Log in\n  https://a.b/c\n  open it, then answer y; n to decline: ";
    assert_eq!(seen.err, format!("{form}{page}"));
    let nobody = script.lines().take(2).collect::<Vec<_>>().join("\n");
    let script = format!(
        "{nobody}\n> answer {{\"id\":\"7\",\"result\":{{\"action\":\"decline\"}}}}\n< result {{\"stopReason\":\"end_turn\"}}"
    );
    let seen = check(plain(OutputFormat::Text), &script);
    assert_eq!(seen.err, "castor: not answered, because nobody can be asked\n");
}

#[test]
fn a_question_can_be_taken_back() {
    let script = format!(
        r#"{ASKING}< raw {{"jsonrpc":"2.0","method":"$/cancel_request","params":{{"requestId":"7"}}}}
> answer {{"id":"7","error":{{"code":-32800,"message":"withdrawn"}}}}
< result {{"stopReason":"end_turn"}}"#
    );
    let seen = check(Case { typed: Some("unclear"), ..Case::default() }, &script);
    assert_eq!(seen.exit, 0);
}

#[test]
fn interrupt_cancels_the_turn_and_its_questions() {
    let script = format!(
        r#"{ASKING}< update {{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"so"}}}}
signal
> notify session/cancel {{"sessionId":"s1"}}
> answer {{"id":"7","result":{{"outcome":{{"outcome":"cancelled"}}}}}}
< result {{"stopReason":"cancelled"}}"#
    );
    let seen = check(Case { typed: Some("unclear"), ..Case::default() }, &script);
    assert_eq!(seen.exit, Exit::Cancelled.code(), "{}", seen.err);
    assert!(seen.err.ends_with("castor: cancelled\n"), "{}", seen.err);
}

#[test]
fn the_second_interrupt_quits() {
    let seen = check(plain(OutputFormat::Text), "signal\n> notify session/cancel {\"sessionId\":\"s1\"}\nsignal");
    assert_eq!(seen.exit, 130);
    let seen = check_whole(plain(OutputFormat::Text), "> initialize {}\nsignal");
    assert_eq!(seen.exit, 130);
}

#[test]
fn events_are_lines() {
    let request = SessionRequest { events: true, ..SessionRequest::default() };
    let opening = r#"
> initialize {"clientCapabilities":{"_meta":{"castor":{"events":true,"interactive":false}}}}
< result {"protocolVersion":1}
> session/new {}
< event {"id":"0-0","type":"initialize"}
< result {"sessionId":"s1"}
> session/prompt {}
< update {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}
< event {"id":"1-0","type":"agent_start"}
< result {"stopReason":"end_turn"}"#;
    let seen = check_whole(Case { request, ..plain(OutputFormat::Events) }, opening);
    assert_eq!(seen.out, "{\"id\":\"0-0\",\"type\":\"initialize\"}\n{\"id\":\"1-0\",\"type\":\"agent_start\"}\n");
    assert_eq!(seen.err, "");

    let seen = check(plain(OutputFormat::Events), r#"< result {"stopReason":"end_turn"}"#);
    assert!(seen.err.contains("sends no events"), "{}", seen.err);
}

#[test]
fn the_last_event_of_a_failed_run_says_why() {
    let error = r#"{"code":-32603,"message":"no trust","data":{"kind":"untrusted"}}"#;
    let opening = "> initialize {}\n< result {\"protocolVersion\":1}\n> session/new {}";
    for (n, events) in ["", "\n< event {\"id\":\"0-0\",\"type\":\"initialize\"}"].iter().enumerate() {
        let seen = check_whole(plain(OutputFormat::Events), &format!("{opening}{events}\n< error {error}"));
        assert_eq!(seen.out.lines().count(), n + 1, "{}", seen.out);
        let event: AgentEvent = serde_json::from_str(seen.out.lines().last().unwrap()).unwrap();
        let EventKind::Error { message, fatal: true, .. } = &event.kind else { panic!("{event:?}") };
        assert_eq!((message.as_str(), &event.meta["exitCode"]), ("no trust", &json!(55)));
    }
}

#[test]
fn errors_have_exit_codes() {
    for (error, exit) in [
        (r#"{"code":-32000,"message":"Authentication required"}"#, 41),
        (r#"{"code":-32603,"message":"no","data":{"kind":"untrusted"}}"#, 55),
        (r#"{"code":-32603,"message":"no","data":{"kind":"config"}}"#, 52),
        (r#"{"code":-32603,"message":"no","extra":true}"#, 1),
        (r#"{"code":99999999999,"message":7}"#, 1),
    ] {
        let script = format!(
            "> initialize {{}}\n< result {{\"protocolVersion\":1,\"authMethods\":[{{\"id\":\"k\",\"name\":\"API \
             key\"}}]}}\n> session/new {{}}\n< error {error}"
        );
        let seen = check_whole(plain(OutputFormat::Text), &script);
        assert_eq!(seen.exit, exit, "{error}: {}", seen.err);
        assert_eq!(seen.err.contains("the agent offers: API key"), exit == 41, "{}", seen.err);
    }
}

#[test]
fn odd_responses_and_noise_are_survived() {
    let seen = check(
        plain(OutputFormat::Text),
        r#"
< raw {"jsonrpc":"2.0","id":999,"result":{}}
< raw {"jsonrpc":"2.0","id":"nonsense","error":{"code":-1,"message":"x","more":1}}
< raw Loading model… 40%
< raw [1,2]
< raw {"half":
< update {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"fine"}}
< raw {"jsonrpc":"2.0","id":"2","result":{"stopReason":"end_turn"}}"#,
    );
    assert_eq!((seen.out.as_str(), seen.exit), ("fine\n", 0));
    assert_eq!(seen.err.lines().count(), 3, "{}", seen.err);
    assert!(seen.err.contains("ignored: Loading model"), "{}", seen.err);
}

#[test]
fn an_agent_that_could_not_read_us_does_not_hang_us() {
    let seen = check_whole(
        plain(OutputFormat::Text),
        "> initialize {}\n< raw {\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"Parse error\"}}",
    );
    assert_eq!((seen.exit, seen.err.as_str()), (1, "castor: Parse error\n"));
}

#[test]
fn lost_agent_is_reported() {
    let seen = check(
        plain(OutputFormat::Text),
        "< update {\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"ha\"}}\nclose",
    );
    assert_eq!((seen.out.as_str(), seen.exit), ("ha\n", 1));
    assert_eq!(seen.err, "castor: the agent closed its output before it answered\n");
}

#[test]
fn other_agents_get_mode_and_model_over_the_protocol() {
    let request = SessionRequest { mode: Some("yolo"), model: Some("big".into()), ..SessionRequest::default() };
    let opening = r#"
> initialize {}
< result {"protocolVersion":1}
> session/new {}
< result {"sessionId":"s","modes":{"currentModeId":"a","availableModes":[{"id":"a"},{"id":"yolo"}]},"configOptions":[{"id":"llm","category":"model"}]}"#;
    let rest = r#"
> session/set_mode {"sessionId":"s","modeId":"yolo"}
< result {}
> session/set_config_option {"sessionId":"s","configId":"llm","value":"big"}
< result {"configOptions":[]}
> session/prompt {}
< result {"stopReason":"end_turn"}"#;
    assert_eq!(check_whole(Case { request, ..Case::default() }, &format!("{opening}{rest}")).exit, 0);
    let request = SessionRequest { mode: Some("autoEdit"), ..SessionRequest::default() };
    assert_eq!(check_whole(Case { request, ..Case::default() }, opening).exit, 42);
}
