//! Failures of a client: exit codes as Gemini CLI's, and the errors that lead to them.

use schemars::JsonSchema;
use serde::Serialize;

use super::CallCounts;
use castor_base::{
    event::{AgentEvent, EventKind, Status},
    ids::StreamId,
};
use castor_wire::acp::{
    client::AgentError,
    meta::{PromptAnswerMeta, StopDetail},
};

/// Exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done,
    Failed,
    Auth,
    Input,
    Sandbox,
    Config,
    TurnLimit,
    Tool,
    Untrusted,
    /// Calls were denied because nobody could be asked.
    Unasked,
    /// The answer does not fit the schema that was asked for.
    Misfit,
    /// The turn was cancelled and ended.
    Cancelled,
    /// The user wants to leave at once.
    Quit,
    /// The output is no longer read, as in `castor run … | head`: no failure.
    Unread,
}

/// A run without an answer, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub exit: Exit,
    pub message: String,
}

/// A failure in Gemini CLI's form.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunError {
    /// Gemini CLI's name, such as `FatalTurnLimitedError`.
    #[serde(rename = "type")]
    pub kind: String,
    pub message: String,
    /// The exit code.
    pub code: u8,
}

/// (exit, code, Gemini CLI's name of it, `data.kind` in an agent's error, what it means where help has to say so)
const EXITS: [(Exit, u8, &str, &str, &str); 14] = [
    (Exit::Done, 0, "", "", "done"),
    (Exit::Failed, 1, "Error", "internal", "failed"),
    (Exit::Auth, 41, "FatalAuthenticationError", "auth", "not signed in"),
    (Exit::Input, 42, "FatalInputError", "input", "bad input"),
    (Exit::Sandbox, 44, "FatalSandboxError", "sandbox", "no sandbox"),
    (Exit::Config, 52, "FatalConfigError", "config", "bad configuration"),
    (Exit::TurnLimit, 53, "FatalTurnLimitedError", "turn_limit", "a limit"),
    (Exit::Tool, 54, "FatalToolExecutionError", "tool", "a tool failed fatally"),
    (Exit::Untrusted, 55, "FatalUntrustedWorkspaceError", "untrusted", "folder not trusted"),
    (Exit::Unasked, 56, "ApprovalRequiredError", "unasked", "an approval was needed, and castor could not ask"),
    (Exit::Misfit, 57, "InvalidAnswerError", "misfit", "the answer does not fit the schema"),
    (Exit::Cancelled, 130, "FatalCancellationError", "cancelled", "cancelled"),
    (Exit::Quit, 130, "FatalCancellationError", "quit", ""),
    (Exit::Unread, 0, "", "", ""),
];
/// ACP: sign in first.
const AUTH_REQUIRED: i32 = -32000;
/// ACP: no such session or file.
const NOT_FOUND: i32 = -32002;
/// ACP: the request was cancelled.
const REQUEST_CANCELLED: i32 = -32800;

const OUTPUT_LIMIT: &str =
    "the model reached its own output limit (maxOutputTokens), so its answer is cut off; ask for less at once";

/// Codes and what they mean.
pub fn meanings() -> impl Iterator<Item = (u8, &'static str)> {
    EXITS.iter().filter(|it| !it.4.is_empty()).map(|it| (it.1, it.4))
}

impl Exit {
    pub fn code(self) -> u8 {
        EXITS.iter().find(|it| it.0 == self).map_or(1, |it| it.1)
    }

    fn name(self) -> &'static str {
        EXITS.iter().find(|it| it.0 == self).map_or("Error", |it| it.2)
    }
}

impl Failure {
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    pub fn input(message: impl Into<String>) -> Self {
        Self::new(Exit::Input, message)
    }

    pub fn cancelled() -> Self {
        Self::new(Exit::Cancelled, "cancelled")
    }

    pub fn to_error(&self) -> RunError {
        RunError { kind: self.exit.name().to_owned(), message: self.message.clone(), code: self.exit.code() }
    }

    /// The failure as an event of the run's own: the last line of `-o events`.
    pub fn to_event_line(&self, now_ms: u64) -> String {
        let status = match self.exit {
            Exit::Auth => Status::Unauthenticated,
            Exit::Input | Exit::Config => Status::InvalidArgument,
            Exit::Untrusted | Exit::Unasked | Exit::Sandbox => Status::PermissionDenied,
            Exit::TurnLimit => Status::ResourceExhausted,
            Exit::Cancelled | Exit::Quit => Status::Cancelled,
            Exit::Done | Exit::Failed | Exit::Misfit | Exit::Tool | Exit::Unread => Status::Internal,
        };
        let kind = EventKind::Error { status, message: self.message.clone(), fatal: true };
        let mut event = AgentEvent::of_main("run-0".to_owned(), StreamId::from("run"), now_ms, kind);
        event.meta.insert("exitCode".to_owned(), self.exit.code().into());
        // Nothing in it can fail to be written.
        serde_json::to_string(&event).unwrap_or_default() + "\n"
    }

    fn of_agent(error: AgentError) -> Self {
        let kind = error.kind.as_deref().unwrap_or("?");
        let named = EXITS.iter().find(|it| it.3 == kind).map(|it| it.0);
        let exit = named.unwrap_or(match error.code {
            AUTH_REQUIRED => Exit::Auth,
            NOT_FOUND => Exit::Input,
            REQUEST_CANCELLED => Exit::Cancelled,
            _ => Exit::Failed,
        });
        let mut message = plain(&error.message).to_owned();
        if let Some(detail) = error.detail.filter(|it| !message.contains(it)) {
            message = format!("{message}: {detail}");
        }
        Self { exit, message }
    }
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestFailure {
    /// The agent's own error.
    Refused(Box<AgentError>),
    Gone,
    /// The connection failed in another way, in words.
    Broken(String),
}

impl RequestFailure {
    pub fn into_failure(self) -> Failure {
        match self {
            Self::Refused(error) => Failure::of_agent(*error),
            Self::Gone => Failure::new(Exit::Failed, "the agent is gone"),
            Self::Broken(why) => Failure::new(Exit::Failed, why),
        }
    }

    pub fn in_words(self) -> String {
        self.into_failure().message
    }

    /// The costs of a prompt that failed.
    pub fn meta(&self) -> Option<&PromptAnswerMeta> {
        match self {
            Self::Refused(error) => error.meta.as_ref(),
            Self::Gone | Self::Broken(_) => None,
        }
    }
}

/// A message without the protocol's prefix, which means nothing to the user.
pub fn plain(message: &str) -> &str {
    let behind = ["Invalid params: ", "Invalid request: "].iter().find_map(|it| message.strip_prefix(it));
    behind.unwrap_or(message)
}

/// The hint how to allow calls that no user could approve; `None`: there were none.
pub fn approval_hint(counts: CallCounts) -> Option<String> {
    let calls = match counts.unasked {
        0 => return None,
        1 => "1 call".to_owned(),
        n => format!("{n} calls"),
    };
    Some(format!(
        "{calls} needed an approval, and nobody could be asked. Run castor on a terminal, or allow more with \
         --approval-mode or a rule (`castor policy check --headless` shows what is missing)"
    ))
}

/// What a prompt's stop reason means for the exit code. `detail`: what castor says beside it.
pub fn from_stop_reason(reason: &str, detail: Option<StopDetail>) -> Result<(), Failure> {
    match reason {
        "max_tokens" if detail == Some(StopDetail::OutputLimit) => Err(Failure::new(Exit::TurnLimit, OUTPUT_LIMIT)),
        "max_turn_requests" => Err(Failure::new(Exit::TurnLimit, "a limit was reached before the work was done")),
        "max_tokens" => Err(Failure::new(Exit::TurnLimit, "a limit of tokens was reached before the work was done")),
        "refusal" => Err(Failure::new(Exit::Failed, "the model refused to answer")),
        "cancelled" => Err(Failure::cancelled()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json, value::to_raw_value};

    use super::{Exit, Failure, RequestFailure, approval_hint, from_stop_reason};
    use crate::CallCounts;
    use castor_wire::acp::{client::AgentError, meta::StopDetail};

    fn failure(code: i32, message: &str, data: &Value) -> Failure {
        let data = to_raw_value(data).unwrap();
        RequestFailure::Refused(Box::new(AgentError::read(code, message, Some(&data)))).into_failure()
    }

    #[test]
    fn calls_that_nobody_could_approve_have_a_hint() {
        let hint = |unasked| approval_hint(CallCounts { unasked, ..CallCounts::default() });
        assert_eq!(hint(0), None);
        let one = hint(1).unwrap();
        assert!(one.starts_with("1 call needed an approval") && one.contains("`castor policy check --headless`"));
        assert!(hint(2).unwrap().starts_with("2 calls needed"));
    }

    #[test]
    fn errors_of_agents_have_exit_codes() {
        for (code, data, exit) in [
            (-32000, json!(null), 41),
            (-32002, json!({"sessionId": "x"}), 42),
            (-32603, json!({"kind": "untrusted"}), 55),
            (-32603, json!({"kind": "config"}), 52),
            (-32603, json!({"kind": "tool"}), 54),
            (-32603, json!({"kind": "news"}), 1),
            (-32800, Value::Null, 130),
            (-32602, Value::Null, 1),
        ] {
            assert_eq!(failure(code, "no", &data).exit.code(), exit, "{code}");
        }
    }

    #[test]
    fn details_are_told() {
        let message = |code, message, data| failure(code, message, &data).message;
        let details = json!({"details": "disk full"});
        assert_eq!(message(-32603, "Internal error", details), "Internal error: disk full");
        let plain = message(-32602, "Invalid params: no model x. Name another.", json!({}));
        assert_eq!(plain, "no model x. Name another.");
    }

    #[test]
    fn stop_reasons_have_exit_codes() {
        let end = |reason, detail| from_stop_reason(reason, detail).map_err(|it| (it.exit, it.message));
        assert!(end("end_turn", None).is_ok());
        assert_eq!(end("max_turn_requests", None).unwrap_err().0, Exit::TurnLimit);
        assert_eq!(end("cancelled", None).unwrap_err().0.code(), 130);
        let (own, model) =
            (end("max_tokens", None).unwrap_err(), end("max_tokens", Some(StopDetail::OutputLimit)).unwrap_err());
        assert_eq!((own.0, model.0), (Exit::TurnLimit, Exit::TurnLimit));
        assert!(model.1.contains("maxOutputTokens") && !own.1.contains("maxOutputTokens"), "{} {}", own.1, model.1);
    }
}
