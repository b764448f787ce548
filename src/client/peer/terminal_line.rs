//! Terminals of another agent: a command as the line that castor's own tool runs, and what came of it.

use serde_json::{Value, json};

use super::peer_call::Refusal;
use castor_base::text;

/// A command that has ended: castor answers for its terminal when all is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct EndedTerminal {
    output: String,
    truncated: bool,
    code: Option<u32>,
    signal: Option<String>,
}

/// The arguments of castor's tool.
pub(super) fn command_args(params: &Value) -> Result<Value, Refusal> {
    let said = |key: &str| params.get(key).and_then(Value::as_str);
    let command = said("command").filter(|it| !it.trim().is_empty()).ok_or_else(|| Refusal::invalid("command"))?;
    let args = params.get("args").and_then(Value::as_array).cloned().unwrap_or_default();
    let args: Vec<&str> = args.iter().filter_map(Value::as_str).collect();
    // Alone it is a line, as agents for editors send it.
    let line = match args.is_empty() {
        true => command.to_owned(),
        false => std::iter::once(command).chain(args).map(quote).collect::<Vec<_>>().join(" "),
    };
    let set: Vec<String> = params.get("env").and_then(Value::as_array).into_iter().flatten().filter_map(pair).collect();
    let line = match (set.is_empty(), args_given(params)) {
        (true, _) => line,
        (false, true) => format!("env {} {line}", set.join(" ")),
        (false, false) => format!("env {} sh -c {}", set.join(" "), quote(&line)),
    };
    let mut res = json!({ "command": line });
    if let (Some(cwd), Some(members)) = (said("cwd"), res.as_object_mut()) {
        members.insert("dir_path".to_owned(), cwd.into());
    }
    Ok(res)
}

fn args_given(params: &Value) -> bool {
    params.get("args").and_then(Value::as_array).is_some_and(|it| !it.is_empty())
}

fn pair(it: &Value) -> Option<String> {
    let name = it.get("name")?.as_str()?;
    let is_name = !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
    is_name.then(|| Some(format!("{name}={}", quote(it.get("value")?.as_str()?))))?
}

pub(super) fn quote(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| "''".to_owned(), std::borrow::Cow::into_owned)
}

impl EndedTerminal {
    /// Of what castor's tool says to a model.
    pub fn read(result: &str, limit: Option<usize>) -> Self {
        const OPEN: &str = "<untrusted_context>\n";
        const CLOSE: &str = "\n</untrusted_context>";
        let (output, rest) = match result.split_once(OPEN).and_then(|(_, it)| it.rsplit_once(CLOSE)) {
            Some(it) => it,
            None if result.contains("Output: (empty)") => ("", result),
            None => (result, ""),
        };
        let value = |key: &str| rest.lines().find_map(|it| it.strip_prefix(key)).map(str::trim);
        let (code, signal) = (value("Exit Code:").and_then(|it| it.parse().ok()), value("Signal:").map(str::to_owned));
        let kept = limit.map_or(output, |max| text::tail(output, max));
        let code = code.or_else(|| signal.is_none().then_some(0));
        Self { output: kept.to_owned(), truncated: kept.len() < output.len(), code, signal }
    }

    pub fn exit(&self) -> Value {
        json!({ "exitCode": self.code, "signal": self.signal })
    }

    pub fn output(&self) -> Value {
        json!({ "output": self.output, "truncated": self.truncated, "exitStatus": self.exit() })
    }
}
