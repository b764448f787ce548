//! The tool `read_past_sessions`: what was said in earlier sessions of the folder, for an agent that learns from them.
//!
//! Only agents have it whose definition says `memory_extraction`.

use serde::Serialize;
use serde_json::Value;

use crate::builtin::{
    Builtin, Task, ToolContext,
    params::CallArguments,
    paths,
    schema::{self, text as text_schema},
};
use castor_base::{
    agent_right::AgentRight,
    content::joined_text,
    event::{AgentEvent, EventKind, Speaker},
    ids::SessionId,
    iso_time,
    log::{Entry, Fact},
    path::AbsPath,
    rewind, text,
    tool::{BaseHash, Targets, ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};
use castor_store::sessions::{SessionStore, SessionSummary};

pub struct ReadPastSessions;

/// In place of the id of the newest one.
const LATEST: &str = "latest";
/// Sessions in a list, the newest first.
const MAX_LISTED: usize = 50;
/// Of a session, in bytes; what is over is left out of its middle.
const MAX_SESSION: usize = 40_000;
/// Of a message, in bytes.
const MAX_MESSAGE: usize = 4_000;

impl Builtin for ReadPastSessions {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "read_past_sessions".into(),
            title: "ReadPastSessions".into(),
            description:
                "Lists the earlier sessions of this folder; with an id, gives what user and agent said in one.".into(),
            kind: ToolKind::Read,
            traits: ToolTraits { right: Some(AgentRight::MemoryExtraction), ..ToolTraits::LOOKS },
            parameters: schema::object(&[], [("session_id", text_schema("Of a session in the list, or `latest`."))]),
        }
    }

    fn targets<'a>(&'a self, args: &'a Value, _ctx: &'a ToolContext) -> Task<'a, Targets> {
        Box::pin(async move {
            let session = CallArguments::of(args)?.opt_text("session_id")?;
            let title =
                session.map_or_else(|| "Past sessions".to_owned(), |it| format!("Past session {}", text::head(it, 60)));
            Ok(Targets { title, ..Targets::default() })
        })
    }

    fn run<'a>(&'a self, args: &'a Value, _base: Option<&'a BaseHash>, ctx: &'a ToolContext) -> Task<'a, ToolOutput> {
        Box::pin(async move {
            let session = CallArguments::of(args)?.opt_text("session_id")?.map(SessionId::from);
            let saved = ctx.settings.saved_memory.as_ref();
            let home = saved.ok_or_else(|| failure("castor has no folder of its own here."))?.home.clone();
            let cwd = ctx.cwd.clone();
            paths::run_blocking(move || read(&SessionStore::new(home), &cwd, session.as_ref())).await?
        })
    }
}

fn failure(why: impl Into<String>) -> ToolError {
    ToolError::new("past_sessions_failure", why)
}

fn read(store: &SessionStore, cwd: &AbsPath, session: Option<&SessionId>) -> Result<ToolOutput, ToolError> {
    // Who is at work in one, the session above as well, has not said all of it.
    let mut known = store.list(Some(cwd)).map_err(|it| failure(it.to_string()))?;
    known.retain(|it| it.has_prompts && !store.is_at_work(&it.id).unwrap_or(true));
    let Some(id) = session else {
        let rows: Vec<ListedSession> = known.into_iter().take(MAX_LISTED).map(ListedSession::from).collect();
        let list = serde_json::to_string(&rows).unwrap_or_default();
        return Ok(ToolOutput::told(marked(&list), format!("{} sessions", rows.len())));
    };
    let wanted = known.iter().find(|it| it.id == *id || id.as_str() == LATEST).map(|it| &it.id);
    let id =
        wanted.ok_or_else(|| failure(format!("There is no such session here: {}", text::head(id.as_str(), 60))))?;
    let entries = store.read(id).map_err(|it| failure(it.to_string()))?;
    let said: Vec<String> = rewind::remaining_entries(&entries).filter_map(message).collect();
    Ok(ToolOutput::told(marked(&both_ends(&said.concat())), format!("{} messages", said.len())))
}

/// As data: what was pasted there gives no orders.
fn marked(text: &str) -> String {
    text::wrap_untrusted(text).unwrap_or_default()
}

fn both_ends(said: &str) -> String {
    match said.len() <= MAX_SESSION {
        true => said.to_owned(),
        false => format!("{}\n[...]\n{}", text::head(said, MAX_SESSION / 2), text::tail(said, MAX_SESSION / 2)),
    }
}

#[derive(Serialize)]
struct ListedSession {
    id: SessionId,
    title: Option<String>,
    #[serde(with = "iso_time")]
    updated: u64,
}

impl From<SessionSummary> for ListedSession {
    fn from(it: SessionSummary) -> Self {
        Self { id: it.id, title: it.title, updated: it.updated_ms }
    }
}

fn message(entry: &Entry) -> Option<String> {
    let Fact::Event { event: AgentEvent { kind: EventKind::Message { role, content, .. }, .. } } = &entry.fact else {
        return None;
    };
    let who = match role {
        Speaker::User => "User",
        Speaker::Agent => "Agent",
        Speaker::Developer => return None,
    };
    let said = joined_text(content);
    let said = text::head(said.trim(), MAX_MESSAGE);
    (!said.is_empty()).then(|| format!("{who}: {said}\n\n"))
}
