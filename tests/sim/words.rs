//! What answers of the simulated world say, in a few words each.

use std::sync::Arc;

use castor_base::{
    check::CheckFinding,
    checkpoint::{ChangeKind, Changes, CheckpointResult, Conflict, FileChange, RestoreResult},
    content::Part,
    hook::{HookEnd, HookReport},
    log::Decision,
    memory::{MemoryFile, Tier},
    model::{Chunk, Details, Failure, FailureKind, Finish, Usage},
    path::AbsPath,
    tool::{Access, BaseHash, Display, Preview, TailCall, TargetPath, Targets, ToolError, ToolOutput},
};
use castor_tools::mcp::ServerTool;
use serde_json::{Value, json};

use super::{dice::Dice, world::LONG};

pub const HOOKS: &[&str] = &[
    "nothing", "nothing", "nothing", "nothing", "message", "block", "ask", "stop", "context", "input", "request",
    "answer", "tools", "clear", "tail", "hang", "crash", "garbage",
];

pub fn hooked(word: &str) -> Option<HookReport> {
    let specific = |it: Value| json!({ "hookSpecificOutput": it });
    let output = match word {
        "nothing" => json!({}),
        "message" => json!({"systemMessage": "message"}),
        "block" => json!({"decision": "block", "reason": "block"}),
        "ask" => json!({"decision": "ask", "reason": "ask"}),
        "stop" => json!({"continue": false, "stopReason": "stop"}),
        "context" => specific(json!({"additionalContext": "context"})),
        "input" => specific(json!({"tool_input": {"file_path": "/usr/c"}})),
        "request" => specific(json!({"llm_request": {"messages": [{"role": "user", "content": "other"}]}})),
        "answer" => {
            let mut it = specific(json!({"llm_response": {"candidates": [{"content": {"parts": ["other"]}}]}}));
            it["decision"] = json!("block");
            it
        }
        "tools" => specific(json!({"toolConfig": {"mode": "AUTO", "allowedFunctionNames": ["read_file"]}})),
        "clear" => specific(json!({"clearContext": true})),
        "tail" => specific(json!({"tailToolCallRequest": {"name": "read_file", "args": {"file_path": "/usr/d"}}})),
        "hang" => return Some(HookReport::from_end(HookEnd::TimedOut)),
        "crash" => return Some(HookReport::from_end(HookEnd::Signal("SIGSEGV".to_owned()))),
        "garbage" => return Some(HookReport { stdout: "{\0".to_owned(), ..HookReport::from_end(HookEnd::Exit(0)) }),
        _ => return None,
    };
    Some(HookReport { stdout: output.to_string(), ..HookReport::from_end(HookEnd::Exit(0)) })
}

pub fn remembered(word: &str) -> Option<Result<Arc<[MemoryFile]>, String>> {
    let file = |text: &str| MemoryFile { path: path("/usr/GEMINI.md"), tier: Tier::Project, text: text.to_owned() };
    Some(match word {
        "nothing" => Ok(Arc::default()),
        "panic" => Err("boom".to_owned()),
        text => Ok([file(text)].into()),
    })
}

pub const FAILURES: &[&str] = &[
    "busy",
    "busy",
    "later",
    "never",
    "spent",
    "no-room",
    "gone",
    "at-once",
    "refused",
    "too-long",
    "longer",
    "confirm",
    "reset",
    "unreachable",
    "garbage",
    "no-key",
    "panic",
];

/// In some lives castor's own code breaks at this word.
pub const BOOM: &str = "boom!";

pub fn chunk_word(dice: &mut Dice) -> &'static str {
    const USUAL: &[&str] = &[
        "text", "text", "thought", "usage", "usage", "usage", "stop", "read", "write", "shell", "tool", "tool", "ask",
        "agent", "agent", "planner", "planner", "worker", "worker", "row", "both", "rounds", "complete",
    ];
    const RARE: &[&str] = &[
        "long",
        "signed",
        "media",
        "max-tokens",
        "safety",
        "malformed",
        "unexpected",
        "other",
        "read-after",
        "read-again",
        "write-after",
        "shell-bad",
        "todos",
        "ask-many",
        "ask-badly",
        "nameless",
        "unknown",
        "odd",
        "agent-unknown",
        "reporter",
        "report",
        "escalate",
        "transfer",
        "complete-badly",
        BOOM,
    ];
    if dice.roll(3) > 0 { dice.word(USUAL) } else { dice.word(RARE) }
}

pub fn chunk(word: &str) -> Option<Chunk> {
    let text = |text: &str| Chunk::Text { text: text.to_owned(), signature: None };
    let call = |id: Option<&str>, name: &str, args: Value| Chunk::Call {
        id: id.map(str::to_owned),
        name: name.to_owned(),
        args,
        signature: None,
    };
    let agent = |name: &str| call(None, "invoke_agent", json!({"agent_name": name, "prompt": "go"}));
    let question = json!({"question": "Sure?", "type": "yesno"});
    let text_question = json!({"question": "Which?", "type": "text"});
    let file = json!({"file_path": "/usr/a", "content": "new"});
    Some(match word {
        "text" => text("text "),
        "long" => text(&"l".repeat(LONG)),
        BOOM => text(BOOM),
        "signed" => Chunk::Text { text: "signed".to_owned(), signature: Some("sig".into()) },
        "thought" => Chunk::Thought { text: "hm ".to_owned(), signature: None },
        "media" => Chunk::Media { mime: "image/png".to_owned(), data: "AAAA".into() },
        "usage" => Chunk::Usage(Usage { input: 5, output: 2, total: 7, ..Usage::default() }),
        "stop" => Chunk::Finish(Finish::Stop),
        "max-tokens" => Chunk::Finish(Finish::MaxTokens),
        "safety" => Chunk::Finish(Finish::Safety("SAFETY".to_owned())),
        "malformed" => Chunk::Finish(Finish::MalformedCall),
        "unexpected" => Chunk::Finish(Finish::UnexpectedCall),
        "other" => Chunk::Finish(Finish::Other("OTHER".to_owned())),
        "read" => call(None, "read_file", json!({"file_path": "/usr/a"})),
        "read-after" => call(None, "read_file", json!({"file_path": "/usr/a", "wait_for_previous": true})),
        "read-again" => call(Some("c1"), "read_file", json!({"file_path": "/usr/a"})),
        "write" => call(None, "write_file", file),
        "write-after" => {
            call(Some("c1"), "write_file", json!({"file_path": "/a", "content": "", "wait_for_previous": true}))
        }
        "shell" => call(None, "run_shell_command", json!({"command": "git push origin main"})),
        "shell-bad" => call(None, "run_shell_command", json!({"command": "rm -rf ~ && ("})),
        "tool" => call(None, "mcp_sim_look", json!({"at": 1})),
        "agent" => agent("generalist"),
        "planner" | "worker" | "reporter" | "row" | "both" | "rounds" => agent(word),
        "agent-unknown" => call(None, "invoke_agent", json!({"agent_name": "nobody", "prompt": "go"})),
        "complete" => call(None, "complete_task", json!({"result": "done"})),
        "report" => call(None, "complete_task", json!({"report": {"n": 1}})),
        "escalate" => call(None, "escalate", json!({"reason": "enough"})),
        "transfer" => call(None, "transfer_to_agent", json!({"agent_name": "planner"})),
        "complete-badly" => call(None, "complete_task", json!({})),
        "todos" => call(None, "write_todos", json!({"todos": [{"description": "a", "status": "in_progress"}]})),
        "ask" => call(None, "ask_user", json!({"questions": [question]})),
        "ask-many" => call(None, "ask_user", json!({"questions": [question, text_question]})),
        "ask-badly" => call(None, "ask_user", json!({"questions": []})),
        "nameless" => call(Some(""), "", json!({})),
        "unknown" => call(Some("c1"), "no_such_tool", json!({})),
        "odd" => call(None, "read_file", json!("not an object")),
        _ => return None,
    })
}

pub fn generated(word: &str) -> Option<Result<(), Failure>> {
    let status = |status, retry_after_ms| {
        let failure = Failure::new(FailureKind::Status, "busy");
        Err(Failure { status: Some(status), retry_after_ms, ..failure })
    };
    let refused = |message: &str, words: &[&str]| {
        let details = Details { words: words.iter().map(|it| (*it).to_owned()).collect(), ..Details::default() };
        let status = Some(if words.is_empty() { 400 } else { 403 });
        Err(Failure { status, details: details.into(), ..Failure::new(FailureKind::Status, message) })
    };
    let quota = |message| Err(Failure { status: Some(429), ..Failure::new(FailureKind::Status, message) });
    Some(match word {
        "ok" => Ok(()),
        "busy" => status(503, None),
        "later" => status(429, Some(40_000)),
        "never" => status(429, Some(4_000_000)),
        "spent" => quota("Quota exceeded, limit: 0"),
        "no-room" => quota("You have exhausted your capacity on this model."),
        "at-once" => status(429, Some(0)),
        "gone" => status(404, None),
        "refused" => status(400, None),
        "too-long" => refused("prompt is too long: 9000 tokens > 8000 maximum", &[]),
        "longer" => refused("Your input exceeds the context window of this model.", &[]),
        "confirm" => refused("Verify your account.", &["VALIDATION_REQUIRED"]),
        "reset" => Err(Failure::new(FailureKind::Stream, "reset")),
        "unreachable" => Err(Failure::new(FailureKind::Connect, "refused")),
        "garbage" => Err(Failure::new(FailureKind::Garbage, "This is no model: check its address")),
        "no-key" => Err(Failure::new(FailureKind::Auth, "No key: set one")),
        "panic" => Err(Failure::new(FailureKind::Panicked, "boom")),
        _ => return None,
    })
}

pub fn resolved(word: &str) -> Option<Result<Targets, ToolError>> {
    let target = |in_roots, access| {
        let at = if in_roots { path("/usr/a") } else { path("/a") };
        TargetPath { line: Some(3), in_roots, ..TargetPath::in_root(at, access) }
    };
    let targets = |paths| Targets { title: "title".to_owned(), paths, ..Targets::default() };
    Some(match word {
        "ok" => Ok(targets(vec![target(true, Access::Read)])),
        "outside" => Ok(targets(vec![target(false, Access::Write), target(true, Access::Read)])),
        "command" => Ok(Targets { command: Some("git push origin main".to_owned()), ..targets(Vec::new()) }),
        "bad" => Err(ToolError::new("invalid_tool_params", "bad")),
        "panic" => Err(ToolError::new("unhandled_exception", "boom")),
        _ => return None,
    })
}

pub fn checked(word: &str) -> Option<Result<CheckFinding, String>> {
    let said = |decision| Ok(CheckFinding { decision, reason: "it said so".to_owned() });
    Some(match word {
        "allow" => Ok(CheckFinding::allow()),
        "ask" => said(Decision::Ask),
        "deny" => said(Decision::Deny),
        "panic" => Err("boom".to_owned()),
        _ => return None,
    })
}

pub fn previewed(word: &str) -> Option<Result<Preview, ToolError>> {
    Some(match word {
        "ok" => Ok(Preview { display: None, base: Some(BaseHash(None)) }),
        "diff" => Ok(Preview { display: Some(diff()), base: Some(BaseHash(Some([7; 32]))) }),
        "gone" => Err(ToolError::new("file_not_found", "gone")),
        "panic" => Err(ToolError::new("unhandled_exception", "boom")),
        _ => return None,
    })
}

pub fn ran(word: &str) -> Option<ToolOutput> {
    Some(match word {
        "text" => ToolOutput::text("output"),
        "diff" => ToolOutput { display: Some(diff()), ..ToolOutput::text("written") },
        "full" => ToolOutput::failed(ToolError::new("no_space_left", "disk full")),
        "failed" => ToolOutput::failed(ToolError::new("execution_failed", "no")),
        "panic" => ToolOutput::failed(ToolError::new("unhandled_exception", "boom")),
        "tail" => {
            let tail = TailCall { name: "read_file".to_owned(), args: json!({"file_path": "/usr/b"}) };
            ToolOutput { content: vec![Part::text("then")], tail_call: Some(tail), ..ToolOutput::default() }
        }
        _ => return None,
    })
}

fn diff() -> Display {
    Display::Diff { path: path("/usr/a"), before: None, after: "new".into() }
}

pub fn server_tool(name: &str) -> ServerTool {
    ServerTool {
        name: name.to_owned(),
        description: "looks".to_owned(),
        parameters: json!({"type": "object"}).into(),
        annotations: json!({"readOnlyHint": true}),
    }
}

pub fn path(text: &str) -> AbsPath {
    AbsPath::new(text).unwrap()
}

pub fn held(word: &str) -> Option<Result<CheckpointResult, String>> {
    Some(match word {
        "ok" => Ok(CheckpointResult::default()),
        "full" => Err("the store is full".to_owned()),
        _ => return None,
    })
}

/// What changed, by the words for an output, too.
pub fn changes(word: &str) -> Result<Changes, String> {
    let file = FileChange { path: "/usr/a".into(), change: ChangeKind::Changed, added: 1, removed: 2 };
    match word {
        "panic" => Err("boom".to_owned()),
        "nothing" | "text" => Ok(Changes::default()),
        _ => Ok(Changes { files: vec![file], n_files: 1, added: 1, removed: 2, ..Changes::default() }),
    }
}

pub fn restored(word: &str) -> Option<Result<(RestoreResult, Vec<String>), String>> {
    let conflict = Conflict { path: "/usr/a".into(), reason: "you changed it".to_owned() };
    Some(match word {
        "a" => Ok((
            RestoreResult { restored: vec!["/usr/a".into()], ..RestoreResult::default() },
            vec!["noted".to_owned()],
        )),
        "conflict" => Ok((RestoreResult { conflicts: vec![conflict], ..RestoreResult::default() }, Vec::new())),
        "full" => Err("the disk is full".to_owned()),
        _ => return None,
    })
}
