//! Params and results of the ACP session methods: new, load, resume, fork, list, close and delete.

use std::{collections::BTreeSet, sync::Arc};

use agent_client_protocol_schema::v1::{
    self as acp, CancelNotification, CloseSessionRequest, DeleteSessionRequest, ForkSessionRequest,
    ForkSessionResponse, HttpHeader, ListSessionsRequest, ListSessionsResponse, LoadSessionRequest,
    LoadSessionResponse, McpServer, NewSessionRequest, NewSessionResponse, PromptRequest, PromptResponse,
    ResumeSessionRequest, ResumeSessionResponse, SessionInfo, SessionMode, SessionModeState, SetSessionModeRequest,
    StopReason, SystemPrompt,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json, value::RawValue};

use crate::acp::{
    air::{
        report_request,
        session_index::{IndexQuery, IndexRow},
    },
    drafts::{archive_filter::ArchiveFilter, system_prompt::read_system_prompt},
    meta::{OwnSessionStartMeta, PromptAnswerMeta, SessionListMeta, SessionStartMeta, StopDetail},
    options::{self, ChosenOptions, OfferedOptions},
    own::prompt_options::{PromptOptionsParams, read_prompt_options},
};
use castor_base::{
    agent::ClientAgent,
    client_settings::ClientPrompt,
    content::PromptContent,
    event::{SteerOutcome, StopKind},
    host_tools::HostTools,
    ids::{MessageId, SessionId},
    log::Mode,
    mcp::{McpLink, McpServerConfig, McpTransport},
    model::Usage,
    path::AbsPath,
    shown_text::show_line,
    state::{StateDelta, check_user},
};

/// The folders of a session, and what else a client opens it with.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionFolders {
    pub cwd: AbsPath,
    /// Further roots.
    pub additional: Vec<AbsPath>,
    /// MCP servers that the client passed.
    pub mcp_servers: Vec<McpServerConfig>,
    /// Tools that it runs itself.
    pub host: HostTools,
    /// `None`: the session's, if it has one.
    pub system_prompt: Option<ClientPrompt>,
}

/// A session that is to begin.
#[derive(Clone, Debug, PartialEq)]
pub struct NewParams {
    pub folders: SessionFolders,
    /// Whose session it is to be; `None`: castor's own.
    pub agent: Option<WantedAgent>,
    /// The first values of its state.
    pub state: StateDelta,
    /// Whose `user:` keys the state has; `None`: the default user's.
    pub user: Option<String>,
    /// Its id; `None`: a new one.
    pub id: Option<SessionId>,
}

/// The agent that a session is to be.
#[derive(Clone, Debug, PartialEq)]
pub enum WantedAgent {
    Named(String),
    Defined(ClientAgent),
}

impl WantedAgent {
    fn read(it: Value) -> Result<Self, String> {
        match it {
            Value::String(name) => Ok(Self::Named(name)),
            Value::Object(keys) => Ok(Self::Defined(Arc::new(keys))),
            _ => Err("_meta.castor.agent: send a name, or a definition as an object".to_owned()),
        }
    }

    pub fn definition(&self) -> Option<ClientAgent> {
        if let Self::Defined(it) = self { Some(it.clone()) } else { None }
    }
}

/// Reads session/new.
///
/// # Errors
/// See [`super::params`]; also for paths that are not absolute.
pub fn read_new(params: Option<&RawValue>) -> Result<NewParams, String> {
    let it: NewSessionRequest = with_servers(params)?;
    let meta = start_meta(it.meta)?;
    let servers = mcp_servers(it.mcp_servers);
    let folders = session_folders(&it.cwd, &it.additional_directories, servers, (&meta, it.system_prompt))?;
    new_params(folders, meta)
}

/// What else a client says of a session that begins.
///
/// # Errors
/// One line: which of it cannot be.
pub(super) fn new_params(folders: SessionFolders, meta: OwnSessionStartMeta) -> Result<NewParams, String> {
    let OwnSessionStartMeta { agent, state, user_id: user, session_id: id, .. } = meta;
    state.check().map_err(|it| format!("_meta.castor.state: {it}"))?;
    user.iter().try_for_each(|it| check_user(it)).map_err(|it| format!("_meta.castor.userId: {it}"))?;
    if id.as_ref().is_some_and(|it| !it.is_safe()) {
        return Err("_meta.castor.sessionId: only letters, digits, `-` and `_` can be in it".to_owned());
    }
    Ok(NewParams { folders, agent: agent.map(WantedAgent::read).transpose()?, state, user, id })
}

/// Reads session/load.
///
/// # Errors
/// As [`read_new`].
pub fn read_load(params: Option<&RawValue>) -> Result<(SessionId, SessionFolders), String> {
    let it: LoadSessionRequest = with_servers(params)?;
    let meta = start_meta(it.meta)?;
    let servers = mcp_servers(it.mcp_servers);
    let place = session_folders(&it.cwd, &it.additional_directories, servers, (&meta, it.system_prompt))?;
    Ok((session_id(&it.session_id), place))
}

fn air_fork_message(meta: &Map<String, Value>) -> Option<MessageId> {
    meta.get("jetbrains")?.pointer("/air/fork/messageId")?.as_str().map(MessageId::from)
}

pub(super) fn start_meta(meta: Option<Map<String, Value>>) -> Result<OwnSessionStartMeta, String> {
    Ok(read_meta::<SessionStartMeta>(meta)?.castor)
}

fn read_meta<T: DeserializeOwned>(meta: Option<Map<String, Value>>) -> Result<T, String> {
    let meta = Value::Object(meta.unwrap_or_default());
    serde_json::from_value(meta).map_err(|it| super::params_error(&format!("_meta.castor: {it}")))
}

/// Some clients leave `mcpServers` out where they have none, though it is required.
fn with_servers<T: DeserializeOwned>(given: Option<&RawValue>) -> Result<T, String> {
    let mut fields: Map<String, Value> = super::params(given)?;
    if fields.contains_key("mcpServers") {
        return super::params(given);
    }
    fields.insert("mcpServers".to_owned(), Value::Array(Vec::new()));
    serde_json::from_value(Value::Object(fields)).map_err(|it| super::params_error(&it.to_string()))
}

pub(super) fn session_folders(
    cwd: &std::path::Path,
    more: &[std::path::PathBuf],
    servers: Vec<McpServerConfig>,
    (meta, system_prompt): (&OwnSessionStartMeta, Option<SystemPrompt>),
) -> Result<SessionFolders, String> {
    let host = HostTools { tools: meta.tools.clone(), execution: meta.host_tool_execution };
    host.check().map_err(|it| format!("_meta.castor: {it}"))?;
    if host.runs_all() && !servers.is_empty() {
        let why = "mcpServers: with this hostToolExecution castor starts no server";
        return Err(format!("{why}; declare their tools in _meta.castor.tools"));
    }
    check_server_ids(&servers)?;
    let absolute = |path: &std::path::Path, what: &str| {
        AbsPath::from_text(&path.to_string_lossy())
            .ok_or_else(|| format!("{what} must be an absolute path, not {:?}.", path.display()))
    };
    Ok(SessionFolders {
        cwd: absolute(cwd, "cwd")?,
        additional: more.iter().map(|it| absolute(it, "additionalDirectories")).collect::<Result<_, _>>()?,
        mcp_servers: servers,
        host,
        system_prompt: read_system_prompt(system_prompt)?,
    })
}

/// Reads session/resume.
///
/// # Errors
/// As [`read_new`].
pub fn read_resume(params: Option<&RawValue>) -> Result<(SessionId, SessionFolders), String> {
    let it: ResumeSessionRequest = super::params(params)?;
    let meta = start_meta(it.meta)?;
    let servers = mcp_servers(it.mcp_servers);
    let place = session_folders(&it.cwd, &it.additional_directories, servers, (&meta, it.system_prompt))?;
    Ok((session_id(&it.session_id), place))
}

/// A session that is to be a copy of another.
#[derive(Clone, Debug, PartialEq)]
pub struct ForkParams {
    pub parent: SessionId,
    pub place: SessionFolders,
    /// The last message of the copy, and the param that names it; `None`: all of them.
    pub until: Option<(MessageId, &'static str)>,
}

/// What a draft of the protocol adds to the params of session/fork (RFD session-fork-at-message).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DraftForkParams {
    message_id: Option<MessageId>,
}

/// Reads session/fork.
///
/// # Errors
/// As [`read_new`]; also for a message that is none.
pub fn read_fork(params: Option<&RawValue>) -> Result<ForkParams, String> {
    let it: ForkSessionRequest = super::params(params)?;
    let DraftForkParams { message_id: drafted } = super::params(params)?;
    let of_air = it.meta.as_ref().and_then(air_fork_message);
    let meta = start_meta(it.meta)?;
    let servers = mcp_servers(it.mcp_servers);
    let place = session_folders(&it.cwd, &it.additional_directories, servers, (&meta, it.system_prompt))?;
    let own = meta.fork.map(|it| (it.message_id, "_meta.castor.fork.messageId"));
    let drafted = drafted.map(|it| (it, "messageId"));
    let until = own.or(drafted).or(of_air.map(|it| (it, "_meta.jetbrains.air.fork.messageId")));
    Ok(ForkParams { parent: session_id(&it.session_id), place, until })
}

/// Reads session/close.
///
/// # Errors
/// See [`super::params`].
pub fn read_close(params: Option<&RawValue>) -> Result<SessionId, String> {
    let it: CloseSessionRequest = super::params(params)?;
    Ok(session_id(&it.session_id))
}

/// Reads session/delete.
///
/// # Errors
/// See [`super::params`].
pub fn read_delete(params: Option<&RawValue>) -> Result<SessionId, String> {
    let it: DeleteSessionRequest = super::params(params)?;
    Ok(session_id(&it.session_id))
}

fn mcp_servers(all: Vec<McpServer>) -> Vec<McpServerConfig> {
    all.into_iter().filter_map(mcp_server).collect()
}

/// `None` for a kind of server that we did not advertise.
fn mcp_server(it: McpServer) -> Option<McpServerConfig> {
    let header = |it: HttpHeader| (it.name, it.value);
    let web = |name, url, headers: Vec<HttpHeader>, speech| {
        let headers = headers.into_iter().map(header).collect();
        McpServerConfig::new(name, McpLink::Web { url, headers, speech, oauth: None })
    };
    match it {
        McpServer::Stdio(it) => {
            let command = it.command.to_string_lossy().into_owned();
            let env = it.env.into_iter().map(|it| (it.name, it.value)).collect();
            Some(McpServerConfig::new(it.name, McpLink::Stdio { command, args: it.args, env, cwd: None }))
        }
        McpServer::Http(it) => Some(web(it.name, it.url, it.headers, McpTransport::Http)),
        McpServer::Sse(it) => Some(web(it.name, it.url, it.headers, McpTransport::Sse)),
        McpServer::Acp(it) => {
            Some(McpServerConfig::new(it.name, McpLink::Client { server_id: it.server_id.0.to_string() }))
        }
        _ => None,
    }
}

/// What comes for a server names it by its id alone.
fn check_server_ids(servers: &[McpServerConfig]) -> Result<(), String> {
    let mut known = BTreeSet::new();
    for it in servers {
        let McpLink::Client { server_id } = &it.link else { continue };
        if server_id.is_empty() {
            return Err(format!(
                "mcpServers: the serverId of {:?} is empty; send one that no other server has",
                it.name
            ));
        }
        if !known.insert(server_id) {
            return Err(format!("mcpServers: serverId {server_id:?} is there twice; give each server its own"));
        }
    }
    Ok(())
}

/// The sessions that a client wants to see.
#[derive(Clone, Debug)]
pub struct ListQuery {
    /// The folder that they must belong to.
    pub cwd: Option<AbsPath>,
    pub cursor: Option<String>,
    pub archived: ArchiveFilter,
    /// Whose sessions they must be; `default`: castor's own.
    pub agent: Option<String>,
    /// As AIR asks for it.
    pub index: Option<IndexQuery>,
}

/// Reads session/list. `is_index`: for AIR's index.
///
/// # Errors
/// As [`read_new`].
pub fn read_list(params: Option<&RawValue>, is_index: bool) -> Result<ListQuery, String> {
    let it: ListSessionsRequest = match params {
        None => ListSessionsRequest::new(),
        some => super::params(some)?,
    };
    let absolute = |path: &std::path::PathBuf| {
        AbsPath::from_text(&path.to_string_lossy())
            .ok_or_else(|| format!("cwd must be an absolute path, not {:?}.", path.display()))
    };
    let cwd = it.cwd.as_ref().map(absolute).transpose()?;
    let meta: SessionListMeta = read_meta(it.meta.clone())?;
    let index = is_index.then(|| IndexQuery::read(it.meta.as_ref())).transpose()?;
    let archived = match index {
        Some(index) if it.archived.is_none() => index.archived,
        _ => ArchiveFilter::read(it.archived)?,
    };
    Ok(ListQuery { cwd, cursor: it.cursor, archived, agent: meta.castor.agent, index })
}

/// A session in the answer to session/list. `updated_ms` is Unix time in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedSession {
    pub session: SessionId,
    pub cwd: AbsPath,
    pub title: Option<String>,
    pub updated_ms: u64,
    /// `None`: castor's own, or nobody asked.
    pub agent: Option<String>,
    /// `None`: nobody asked.
    pub archived: Option<bool>,
    /// For AIR's index.
    pub row: Option<IndexRow>,
}

pub fn list_response(sessions: &[ListedSession], next: Option<String>) -> ListSessionsResponse {
    let info = |it: &ListedSession| {
        SessionInfo::new(wire_id(&it.session), it.cwd.to_string())
            .title(it.title.as_deref().map(|it| show_line(it).into_owned()))
            .updated_at(iso_time(it.updated_ms))
            .archived(it.archived)
            .meta(list_meta(it))
    };
    ListSessionsResponse::new(sessions.iter().map(info).collect()).next_cursor(next)
}

fn list_meta(it: &ListedSession) -> Option<Map<String, Value>> {
    let own = it.agent.as_ref().map(|agent| ("castor".to_owned(), json!({ "agent": agent })));
    let row = it.row.as_ref().map(IndexRow::meta);
    let meta: Map<String, Value> = row.into_iter().flatten().chain(own).collect();
    (!meta.is_empty()).then_some(meta)
}

/// A prompt, and what belongs to it alone.
pub struct PromptParams {
    pub session: SessionId,
    pub content: PromptContent,
    pub options: PromptOptionsParams,
    /// The id of the report on changed files that AIR asks for.
    pub file_report: Option<String>,
}

/// Reads session/prompt.
///
/// # Errors
/// See [`super::params`].
pub fn read_prompt(params: Option<&RawValue>) -> Result<PromptParams, String> {
    let it: PromptRequest = super::params(params)?;
    let session = session_id(&it.session_id);
    let file_report = report_request::read_request(it.meta.as_ref());
    let mut options = read_prompt_options(it.meta)?;
    let content = PromptContent { results: options.take_results()?, ..super::content::prompt(it.prompt) };
    Ok(PromptParams { session, content, options, file_report })
}

/// Words for a running turn.
pub struct SteerParams {
    pub session: SessionId,
    pub content: PromptContent,
    /// Where no turn runs they begin one, as the contract of steering has it; else they come back.
    pub starts_turn: bool,
}

/// Reads `_session/steering`.
///
/// # Errors
/// See [`super::params`]; also for an idle behaviour that is none.
pub fn read_steer(params: Option<&RawValue>) -> Result<SteerParams, String> {
    let it: PromptRequest = super::params(params)?;
    let idle = it.meta.as_ref().and_then(|it| it.get("steering")?.get("idleBehavior"));
    let starts_turn = match idle.map(|it| it.as_str().unwrap_or_default()) {
        None => true,
        Some("promptRequired") => false,
        Some(_) => return Err("_meta.steering.idleBehavior: send \"promptRequired\", or leave it out".to_owned()),
    };
    Ok(SteerParams { session: session_id(&it.session_id), content: super::content::prompt(it.prompt), starts_turn })
}

/// Reads session/cancel.
///
/// # Errors
/// See [`super::params`].
pub fn read_cancel(params: Option<&RawValue>) -> Result<SessionId, String> {
    let it: CancelNotification = super::params(params)?;
    Ok(session_id(&it.session_id))
}

/// Reads session/set_mode.
///
/// # Errors
/// See [`super::params`]; also for a mode that is not on offer.
pub fn read_set_mode(params: Option<&RawValue>) -> Result<(SessionId, Mode), String> {
    let it: SetSessionModeRequest = super::params(params)?;
    let id = it.mode_id.to_string();
    let mode = Mode::parse(&id).filter(|it| Mode::OFFERED.contains(it));
    let known: Vec<&str> = Mode::OFFERED.iter().map(|it| it.as_str()).collect();
    let mode = mode.ok_or_else(|| format!("unknown mode {id:?}; choose one of {}", known.join(", ")))?;
    Ok((session_id(&it.session_id), mode))
}

pub fn new_response(session: &SessionId, offer: &OfferedOptions, chosen: &ChosenOptions) -> NewSessionResponse {
    NewSessionResponse::new(wire_id(session))
        .modes(modes(offer, chosen.mode))
        .config_options(options::config_options(offer, chosen))
}

pub fn load_response(offer: &OfferedOptions, chosen: &ChosenOptions) -> LoadSessionResponse {
    LoadSessionResponse::new().modes(modes(offer, chosen.mode)).config_options(options::config_options(offer, chosen))
}

pub fn resume_response(offer: &OfferedOptions, chosen: &ChosenOptions) -> ResumeSessionResponse {
    ResumeSessionResponse::new().modes(modes(offer, chosen.mode)).config_options(options::config_options(offer, chosen))
}

pub fn fork_response(session: &SessionId, offer: &OfferedOptions, chosen: &ChosenOptions) -> ForkSessionResponse {
    ForkSessionResponse::new(wire_id(session))
        .modes(modes(offer, chosen.mode))
        .config_options(options::config_options(offer, chosen))
}

/// What the protocol has no reason for.
pub fn stop_detail(stop: StopKind) -> Option<StopDetail> {
    match stop {
        StopKind::UnknownCommand => Some(StopDetail::UnknownCommand),
        StopKind::OutputLimit => Some(StopDetail::OutputLimit),
        _ => None,
    }
}

/// `usage`: what the models took for it; `meta`: the same by model.
pub fn prompt_response(stop: StopKind, usage: Option<Usage>, meta: Option<&PromptAnswerMeta>) -> PromptResponse {
    let stop = match stop {
        StopKind::EndTurn | StopKind::CallsReturned | StopKind::UnknownCommand => StopReason::EndTurn,
        StopKind::MaxTokens | StopKind::OutputLimit => StopReason::MaxTokens,
        StopKind::MaxTurnRequests => StopReason::MaxTurnRequests,
        StopKind::Refusal => StopReason::Refusal,
        StopKind::Cancelled => StopReason::Cancelled,
    };
    let meta = meta.and_then(|it| serde_json::to_value(it).ok()?.as_object().cloned());
    PromptResponse::new(stop).usage(usage.map(wire_usage)).meta(meta)
}

pub(super) fn wire_usage(it: Usage) -> acp::Usage {
    let some = |it: u64| Some(it).filter(|it| *it > 0);
    let res = acp::Usage::new(it.total, it.input, it.output).thought_tokens(some(it.thought));
    res.cached_read_tokens(some(it.cached)).cached_write_tokens(some(it.written))
}

/// What became of words for a running turn.
pub fn steering_response(steered: &SteerOutcome) -> Value {
    match steered {
        SteerOutcome::Injected => json!({ "outcome": "injected" }),
        SteerOutcome::StartedNewTurn => json!({ "outcome": "startedNewTurn" }),
        SteerOutcome::PromptRequired(why) => json!({ "outcome": "promptRequired", "message": why }),
        SteerOutcome::Failed(why) => json!({ "outcome": "failed", "message": why }),
    }
}

fn modes(offer: &OfferedOptions, current: Mode) -> SessionModeState {
    let mode = |it: &Mode| {
        let (name, description) = options::mode_words(*it);
        SessionMode::new(it.as_str(), name).description(description.to_owned())
    };
    SessionModeState::new(current.as_str(), offer.modes.iter().map(mode).collect())
}

pub fn wire_id(id: &SessionId) -> agent_client_protocol_schema::v1::SessionId {
    agent_client_protocol_schema::v1::SessionId::new(id.as_str())
}

pub(super) fn session_id(id: &agent_client_protocol_schema::v1::SessionId) -> SessionId {
    SessionId::from(&*id.0)
}

/// ISO 8601 of a Unix time in milliseconds; empty beyond the calendar.
pub fn iso_time(ms: u64) -> String {
    let stamp = i64::try_from(ms).ok().and_then(|it| jiff::Timestamp::from_millisecond(it).ok());
    stamp.map(|it| it.to_string()).unwrap_or_default()
}
