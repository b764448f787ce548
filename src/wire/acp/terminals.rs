//! ACP `terminal/*`: commands in the client's terminals, and Zed's convention for display-only terminals.

use agent_client_protocol_schema::v1::{
    CreateTerminalRequest, CreateTerminalResponse, EnvVariable, Meta, Terminal, TerminalExitStatus,
    TerminalOutputResponse, ToolCallContent,
};
use serde_json::{Value, json};

use crate::acp::{
    meta::messages::{CallMeta, TerminalExit, TerminalInfo, TerminalOutput},
    session::wire_id,
};
use castor_base::{
    ids::{CallId, SessionId},
    path::AbsPath,
    terminal::{CommandLine, Exit},
};

pub const CREATE: &str = "terminal/create";
pub const OUTPUT: &str = "terminal/output";
pub const WAIT: &str = "terminal/wait_for_exit";
pub const KILL: &str = "terminal/kill";
pub const RELEASE: &str = "terminal/release";

/// Params of terminal/create. Some clients give command and arguments to a shell, joined and unquoted: for those that
/// read lines so, the line itself is the command.
pub fn create(session: &SessionId, line: &CommandLine<'_>, reads_lines: bool) -> CreateTerminalRequest {
    let (command, args) = match reads_lines {
        true => (line.text, Vec::new()),
        false => ("bash", ["-c", "--", line.text].map(str::to_owned).to_vec()),
    };
    let env = line.env.iter().map(|(name, value)| EnvVariable::new(*name, *value)).collect();
    CreateTerminalRequest::new(wire_id(session), command)
        .args(args)
        .env(env)
        .cwd(std::path::PathBuf::from(line.cwd.to_string()))
        .output_byte_limit(line.limit as u64)
}

/// The id of a terminal that was created.
pub fn read_created(result: &Value) -> Option<String> {
    let response: CreateTerminalResponse = serde_json::from_value(result.clone()).ok()?;
    Some(response.terminal_id.to_string())
}

/// Params of the other four methods.
pub fn terminal_params(session: &SessionId, terminal: &str) -> Value {
    json!({ "sessionId": session, "terminalId": terminal })
}

/// A terminal's screen, and the end of its command, if it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub text: String,
    pub exit: Option<Exit>,
}

pub fn read_output(result: &Value) -> Option<Snapshot> {
    let response: TerminalOutputResponse = serde_json::from_value(result.clone()).ok()?;
    Some(Snapshot { text: response.output, exit: response.exit_status.map(exit) })
}

pub fn read_exit(result: &Value) -> Option<Exit> {
    // An object without either field is an end of which nothing is known; anything else is no answer.
    result.is_object().then(|| serde_json::from_value::<TerminalExitStatus>(result.clone()).ok().map(exit)).flatten()
}

fn exit(status: TerminalExitStatus) -> Exit {
    let code = status.exit_code.and_then(|it| i32::try_from(it).ok());
    Exit { code, signal: status.signal, ..Exit::default() }
}

/// A terminal inside a tool call.
pub fn terminal_content(terminal: &str) -> ToolCallContent {
    ToolCallContent::Terminal(Terminal::new(terminal.to_owned()))
}

/// Begins a terminal that the client draws for a call.
pub fn info_meta(call: &CallId, cwd: &AbsPath) -> Meta {
    let terminal_info = Some(TerminalInfo { terminal_id: call.clone(), cwd: cwd.clone() });
    CallMeta { terminal_info, ..CallMeta::default() }.into_map()
}

/// What is new in it: appended, not a snapshot.
pub fn output_meta(call: &CallId, data: &str) -> Meta {
    let terminal_output = Some(TerminalOutput { terminal_id: call.clone(), data: data.to_owned() });
    CallMeta { terminal_output, ..CallMeta::default() }.into_map()
}

/// Ends it; `data` is the call's, for programs.
pub fn exit_meta(call: &CallId, data: &Value) -> Meta {
    let exit_code = data.get("exitCode").and_then(Value::as_i64);
    let signal = data.get("signal").and_then(Value::as_str).map(str::to_owned);
    let terminal_exit = Some(TerminalExit { terminal_id: call.clone(), exit_code, signal });
    CallMeta { terminal_exit, ..CallMeta::default() }.into_map()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Snapshot, create, read_created, read_exit, read_output};
    use castor_base::{
        ids::SessionId,
        path::AbsPath,
        terminal::{CommandLine, Exit},
    };

    #[test]
    fn a_program_or_a_line() {
        let cwd = AbsPath::new("/w").unwrap();
        let line = CommandLine { text: "ls | wc", cwd: &cwd, env: &[("A", "1")], limit: 9, silence: None };
        let params = |it| serde_json::to_value(create(&SessionId::from("s"), &line, it)).unwrap();
        let rest =
            json!({ "sessionId": "s", "env": [{ "name": "A", "value": "1" }], "cwd": "/w", "outputByteLimit": 9 });
        let mut program = json!({ "command": "bash", "args": ["-c", "--", "ls | wc"] });
        let mut plain = json!({ "command": "ls | wc" });
        for it in [&mut program, &mut plain] {
            it.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        }
        assert_eq!((params(false), params(true)), (program, plain));
    }

    #[test]
    fn answers_are_read_or_refused() {
        assert_eq!(read_created(&json!({ "terminalId": "t" })).as_deref(), Some("t"));
        assert_eq!(read_created(&json!({ "id": "t" })), None);
        let exit = |code, signal: Option<&str>| Exit { code, signal: signal.map(str::to_owned), ..Exit::default() };
        assert_eq!(read_exit(&json!({ "exitCode": 3 })), Some(exit(Some(3), None)));
        assert_eq!(read_exit(&json!({ "signal": "SIGTERM" })), Some(exit(None, Some("SIGTERM"))));
        assert_eq!(read_exit(&json!({})), Some(exit(None, None)));
        assert_eq!(read_exit(&json!(null)), None);
        let running = json!({ "output": "x", "truncated": false });
        assert_eq!(read_output(&running), Some(Snapshot { text: "x".to_owned(), exit: None }));
        let ended = json!({ "output": "", "truncated": true, "exitStatus": { "exitCode": 0 } });
        assert_eq!(read_output(&ended).unwrap().exit, Some(exit(Some(0), None)));
        assert_eq!(read_output(&json!({})), None);
    }
}
