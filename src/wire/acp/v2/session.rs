//! Params and results of the session methods of version 2, as far as they differ.

use std::collections::BTreeSet;

use agent_client_protocol_schema::{
    v1,
    v2::{
        AbsolutePath, AvailableCommand, ForkSessionRequest, ForkSessionResponse, McpServer, NewSessionRequest,
        NewSessionResponse, PromptResponse, ReplayFrom, ResumeSessionRequest, ResumeSessionResponse,
        SessionConfigOption, SystemPrompt,
    },
};
use serde_json::value::RawValue;

use super::{options, same_json};
use crate::acp::{
    meta::OwnSessionStartMeta,
    offered_commands::{CommandWords, wire_commands},
    options::{ChosenOptions, OfferedOptions},
    params,
    session::{self, ForkParams, NewParams, SessionFolders},
};
use castor_base::{
    ids::{MessageId, SessionId},
    mcp::{McpLink, McpServerConfig, McpTransport},
};

/// Reads session/new.
///
/// # Errors
/// See [`params`]; also for paths that are not absolute, and for servers that castor cannot connect to.
pub fn read_new(given: Option<&RawValue>) -> Result<NewParams, String> {
    let it: NewSessionRequest = params(given)?;
    let environment = Environment { cwd: it.cwd, more: it.additional_directories, servers: it.mcp_servers };
    let meta = session::start_meta(it.meta)?;
    let folders = environment.folders(&meta, it.system_prompt)?;
    session::new_params(folders, meta)
}

/// Reads session/resume; also whether the conversation is to be replayed.
///
/// # Errors
/// As [`read_new`]; also for a place to replay from that castor does not know.
pub fn read_resume(given: Option<&RawValue>) -> Result<(SessionId, SessionFolders, bool), String> {
    let it: ResumeSessionRequest = params(given)?;
    let replays = match it.replay_from {
        None => false,
        Some(ReplayFrom::Start(_)) => true,
        Some(_) => return Err("replayFrom: send {\"type\":\"start\"}, or leave it out".to_owned()),
    };
    let environment = Environment { cwd: it.cwd, more: it.additional_directories, servers: it.mcp_servers };
    let folders = environment.folders(&session::start_meta(it.meta)?, it.system_prompt)?;
    Ok((SessionId::from(&*it.session_id.0), folders, replays))
}

/// Reads session/fork.
///
/// # Errors
/// As [`read_new`]; also for a message that is none.
pub fn read_fork(given: Option<&RawValue>) -> Result<ForkParams, String> {
    let it: ForkSessionRequest = params(given)?;
    let environment = Environment { cwd: it.cwd, more: it.additional_directories, servers: it.mcp_servers };
    let meta = session::start_meta(it.meta)?;
    let place = environment.folders(&meta, it.system_prompt)?;
    let until = meta.fork.map(|it| (it.message_id, "_meta.castor.fork.messageId"));
    Ok(ForkParams { parent: SessionId::from(&*it.session_id.0), place, until })
}

/// What each request that opens a session says of its surroundings.
struct Environment {
    cwd: AbsolutePath,
    more: Vec<AbsolutePath>,
    servers: Vec<McpServer>,
}

impl Environment {
    fn folders(
        self,
        meta: &OwnSessionStartMeta,
        system_prompt: Option<SystemPrompt>,
    ) -> Result<SessionFolders, String> {
        let more: Vec<_> = self.more.into_iter().map(AbsolutePath::into_inner).collect();
        let system_prompt: Option<v1::SystemPrompt> = system_prompt.as_ref().and_then(same_json);
        session::session_folders(&self.cwd.0, &more, servers(self.servers)?, (meta, system_prompt))
    }
}

fn servers(all: Vec<McpServer>) -> Result<Vec<McpServerConfig>, String> {
    let mut names = BTreeSet::new();
    let res: Vec<McpServerConfig> = all.into_iter().map(server).collect::<Result<_, _>>()?;
    match res.iter().find(|it| !names.insert(&it.name)) {
        Some(it) => Err(format!("mcpServers: two have the name {:?}; give each its own", it.name)),
        None => Ok(res),
    }
}

fn server(it: McpServer) -> Result<McpServerConfig, String> {
    match it {
        McpServer::Stdio(it) => {
            let command = it.command.0.to_string_lossy().into_owned();
            let env = it.env.into_iter().map(|it| (it.name, it.value)).collect();
            Ok(McpServerConfig::new(it.name, McpLink::Stdio { command, args: it.args, env, cwd: None }))
        }
        McpServer::Http(it) => {
            let headers = it.headers.into_iter().map(|it| (it.name, it.value)).collect();
            let link = McpLink::Web { url: it.url, headers, speech: McpTransport::Http, oauth: None };
            Ok(McpServerConfig::new(it.name, link))
        }
        McpServer::Acp(it) => {
            Ok(McpServerConfig::new(it.name, McpLink::Client { server_id: it.server_id.0.to_string() }))
        }
        _ => Err("mcpServers: send servers of the type \"stdio\", \"http\" or \"acp\"".to_owned()),
    }
}

/// What a client learns of a session that opens.
#[derive(Default)]
pub struct OpenedSession {
    options: Vec<SessionConfigOption>,
    commands: Vec<AvailableCommand>,
}

impl OpenedSession {
    pub fn new<'a>(
        offer: &OfferedOptions,
        chosen: &ChosenOptions,
        commands: impl Iterator<Item = CommandWords<'a>>,
    ) -> Self {
        Self { options: options::offered(offer, chosen), commands: options::commands(wire_commands(commands)) }
    }

    pub fn new_response(self, session: &SessionId) -> NewSessionResponse {
        let res = NewSessionResponse::new(session.as_str());
        res.config_options(self.options).available_commands(self.commands)
    }

    pub fn resume_response(self) -> ResumeSessionResponse {
        ResumeSessionResponse::new().config_options(self.options).available_commands(self.commands)
    }

    pub fn fork_response(self, session: &SessionId) -> ForkSessionResponse {
        let res = ForkSessionResponse::new(session.as_str());
        res.config_options(self.options).available_commands(self.commands)
    }
}

/// The prompt is part of the conversation, as this message.
pub fn prompt_response(message: &MessageId) -> PromptResponse {
    PromptResponse::new(message.as_str())
}
