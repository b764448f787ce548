//! `--resume`: the session that a run continues.

use super::{Case, SessionRequest, check_whole};

#[test]
fn the_beginning_of_an_id_is_enough() {
    for (start, wants) in [
        (
            "abcdef-1",
            "> session/load {\"sessionId\":\"abcdef-1\"}\n< result {}\n> session/prompt {}\n< result {\"stopReason\":\"end_turn\"}",
        ),
        (
            "abcdef-2",
            "> session/load {\"sessionId\":\"abcdef-23\"}\n< result {}\n> session/prompt {}\n< result {\"stopReason\":\"end_turn\"}",
        ),
        ("abcdef", ""),
        (
            "nowhere",
            "> session/load {\"sessionId\":\"nowhere\"}\n< error {\"code\":-32002,\"message\":\"Session not found: call session/list.\"}",
        ),
    ] {
        let script = format!(
            r#"
> initialize {{}}
< result {{"protocolVersion":1,"agentCapabilities":{{"loadSession":true,"sessionCapabilities":{{"list":{{}}}}}}}}
> session/list {{}}
< result {{"sessions":[{{"sessionId":"abcdef-1","cwd":"/w"}},{{"sessionId":"abcdef-1x","cwd":"/w"}}],"nextCursor":"n"}}
> session/list {{"cursor":"n"}}
< result {{"sessions":[{{"sessionId":"abcdef-23","cwd":"/other"}}]}}
{wants}"#
        );
        let request = SessionRequest { resume: Some(start.into()), ..SessionRequest::default() };
        let seen = check_whole(Case { request, ..Case::default() }, &script);
        let said = match start {
            "abcdef" => "abcdef names more than one session; give more of its id",
            "nowhere" => "session nowhere was not found",
            _ => "",
        };
        assert!(seen.err.contains(said) && !seen.err.contains("session/"), "{start}: {}", seen.err);
        assert_eq!(seen.exit, if said.is_empty() { 0 } else { 42 }, "{start}: {}", seen.err);
    }
}

#[test]
fn latest_is_the_newest_session_of_the_folder() {
    let request = SessionRequest { resume: Some("latest".into()), ..SessionRequest::default() };
    let script = r#"
> initialize {}
< result {"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"list":{}}}}
> session/list {"cwd":"/w"}
< result {"sessions":[{"sessionId":"a","cwd":"/w","updatedAt":"2026-01-02T00:00:00Z"},{"sessionId":"x","cwd":"/other","updatedAt":"2027-01-01T00:00:00Z"}],"nextCursor":"n"}
> session/list {"cwd":"/w","cursor":"n"}
< result {"sessions":[{"sessionId":"b","cwd":"/w","updatedAt":"2026-01-02T01:30:00+01:00"},{"sessionId":"c","cwd":"/w"}]}
> session/load {"sessionId":"b","cwd":"/w","mcpServers":[]}
< update {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"old"}}
< result {}
> session/prompt {"sessionId":"b"}
< update {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"new"}}
< result {"stopReason":"end_turn"}"#;
    let seen = check_whole(Case { request: request.clone(), ..Case::default() }, script);
    assert_eq!(seen.out, "new\n");

    let empty = script.lines().take(4).collect::<Vec<_>>().join("\n") + "\n< result {\"sessions\":[]}";
    let seen = check_whole(Case { request, ..Case::default() }, &empty);
    assert_eq!((seen.exit, seen.err.as_str()), (42, "castor: there is no session of /w to resume\n"));
}
