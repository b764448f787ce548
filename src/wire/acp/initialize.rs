//! ACP `initialize` and `authenticate`: the client's capabilities, castor's own, and the ways to log in.

use agent_client_protocol_schema::{
    ProtocolVersion,
    v1::{
        AgentAuthCapabilities, AgentCapabilities, AuthMethod, AuthMethodAgent, AuthMethodId, AuthMethodTerminal,
        AuthStatusCapabilities, AuthenticateRequest, Implementation, InitializeRequest, InitializeResponse,
        LogoutCapabilities, McpCapabilities, PromptCapabilities, ProvidersCapabilities,
        SessionAdditionalDirectoriesCapabilities, SessionArchiveCapabilities, SessionCapabilities,
        SessionCloseCapabilities, SessionDeleteCapabilities, SessionForkCapabilities, SessionListCapabilities,
        SessionResumeCapabilities, SessionStatusCapabilities, SessionSystemPromptCapabilities,
        SessionSystemPromptModeCapabilities, SessionSystemPromptOverrideCapabilities, SessionTitleCapabilities,
    },
};
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};

use crate::acp::{
    air::AirFeatures,
    meta::messages::TerminalLogin,
    own::{
        intercept::read_interceptors,
        policy::{POLICY_ROLES, read_client_policy},
    },
};
use castor_base::{
    check::ClientPolicy,
    event::EVENTS_VERSION,
    hook::{Hook, POINTS},
    host_tools::HostExecution,
};

/// The version of the protocol that a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AcpVersion {
    #[default]
    V1,
    /// A draft; its shapes are in [`super::v2`].
    V2,
}

impl AcpVersion {
    /// The second for who asks for just that, the first for everybody else.
    pub fn negotiate(params: Option<&RawValue>) -> Self {
        #[derive(Deserialize)]
        struct WantedVersion {
            #[serde(rename = "protocolVersion")]
            version: Value,
        }
        let asked = super::params::<WantedVersion>(params).ok();
        if asked.is_some_and(|it| it.version == json!(2)) { Self::V2 } else { Self::V1 }
    }

    pub fn number(self) -> u8 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }
}

/// The client's own description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    pub name: String,
    pub reads_files: bool,
    pub writes_files: bool,
    /// Runs commands in terminals of its own.
    pub has_terminals: bool,
    /// Draws terminals for what our own commands print, by Zed's convention of `_meta`.
    pub draws_terminals: bool,
    /// Shows questions with fields.
    pub shows_forms: bool,
    /// Sends its user to a page.
    pub opens_links: bool,
    /// castor's own companion says when no user is there; every other client is interactive.
    pub headless: bool,
    /// Knows boolean config options.
    pub bool_options: bool,
    pub features: ClientFeatures,
    pub login: LoginWays,
    pub host: HostRole,
}

/// What a client decides by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostRole {
    /// The points at which it has a say, as hooks.
    pub interceptors: Vec<Hook>,
    pub policy: Option<ClientPolicy>,
    /// Its user can change the arguments of a call before it runs.
    pub edits_calls: bool,
    /// It says something in `_meta.castor`, so it can read what castor says there.
    pub knows_castor: bool,
}

/// Features of a client beside messages and calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientFeatures {
    pub version: AcpVersion,
    pub notices: bool,
    pub compactions: bool,
    /// Takes a part of the conversation off the screen.
    pub rewinds: bool,
    /// Takes what a command prints piece by piece.
    pub output_deltas: bool,
    /// Wants to know what a prompt took.
    pub stats: bool,
    /// Shows sub-agents as sessions of their own.
    pub subagents: bool,
    /// Wants to know which stream a prompt begins.
    pub streams: bool,
    /// The most that it may run of the calls.
    pub host_tools: Option<HostExecution>,
    /// Wants each AgentEvent as `_castor/session/event`.
    pub events: bool,
    pub drafts: DraftFeatures,
    pub air: AirFeatures,
}

/// Features of drafts of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DraftFeatures {
    /// Shows by itself what is to be decided about a folder.
    pub workspace_trust: bool,
    /// Knows the draft of quotas.
    pub quota: bool,
    /// Knows plans by their ids.
    pub plans: bool,
}

/// Ways in which a client can let castor log its user in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoginWays {
    /// Can start castor again in a terminal.
    pub terminal: bool,
    /// The same, told in the way from before it was standard.
    pub old_terminal: bool,
}

/// Clients that give `command` and `args` of terminal/create to a shell, joined and unquoted, in place of a program.
const LINE_READERS: &[&str] = &["zed", "vscode"];

impl Client {
    /// Whether its user can be sent to where a credential is renewed.
    pub fn renews_credentials(&self) -> bool {
        !self.headless && (self.opens_links || self.login.terminal || self.login.old_terminal)
    }

    /// Whether its terminals take a whole command line as the command. By the protocol they would take a program.
    pub fn reads_command_lines(&self) -> bool {
        let name = self.name.to_lowercase();
        LINE_READERS.iter().any(|it| name.starts_with(it))
    }
}

/// The most that a client says it runs.
pub fn read_host_tools(value: &Value) -> Option<HostExecution> {
    match value {
        Value::Bool(true) => Some(HostExecution::All),
        Value::String(it) if it == "declared" => Some(HostExecution::Declared),
        _ => None,
    }
}

/// Reads the params of initialize.
///
/// # Errors
/// See [`super::params`]; also for a point or a policy that castor does not know.
pub fn read(params: Option<&RawValue>) -> Result<Client, String> {
    let request: InitializeRequest = super::params(params)?;
    let caps = request.client_capabilities;
    let session = caps.session.as_ref();
    let draws = caps.meta.as_ref().and_then(|it| it.get("terminal_output")).and_then(Value::as_bool);
    let elicitation = caps.elicitation.unwrap_or_default();
    let ours = caps.meta.as_ref().and_then(|it| it.get("castor"));
    let flag = |name: &str| ours.and_then(|it| it.get(name)).and_then(Value::as_bool);
    Ok(Client {
        name: request.client_info.map(|it| it.name).unwrap_or_default(),
        reads_files: caps.fs.read_text_file,
        writes_files: caps.fs.write_text_file,
        bool_options: session.and_then(|it| it.config_options.as_ref()).is_some_and(|it| it.boolean.is_some()),
        features: ClientFeatures {
            version: AcpVersion::V1,
            notices: session.is_some_and(|it| it.notices.is_some()),
            compactions: session.is_some_and(|it| it.compaction.is_some()),
            rewinds: flag("rewind") == Some(true),
            output_deltas: flag("outputDeltas") == Some(true),
            stats: flag("stats") == Some(true),
            subagents: caps.subagents.is_some(),
            streams: flag("streams") == Some(true),
            host_tools: ours.and_then(|it| it.get("hostTools")).and_then(read_host_tools),
            events: flag("events") == Some(true),
            drafts: DraftFeatures {
                workspace_trust: flag("workspaceTrust") == Some(true),
                quota: knows_quota(params),
                plans: caps.plan.is_some(),
            },
            air: AirFeatures::read(caps.meta.as_ref()),
        },
        has_terminals: caps.terminal,
        draws_terminals: draws == Some(true),
        shows_forms: elicitation.supports_form(),
        opens_links: elicitation.supports_url(),
        headless: flag("interactive") == Some(false),
        login: LoginWays {
            terminal: caps.auth.terminal,
            old_terminal: caps.meta.as_ref().and_then(|it| it.get(OLD_TERMINAL_AUTH)) == Some(&Value::Bool(true)),
        },
        host: read_host(ours)?,
    })
}

/// `own`: what stands in `_meta.castor` of the client's capabilities.
pub(super) fn read_host(own: Option<&Value>) -> Result<HostRole, String> {
    Ok(HostRole {
        knows_castor: own.is_some_and(Value::is_object),
        interceptors: own.and_then(|it| it.get("intercepts")).map_or(Ok(Vec::new()), read_interceptors)?,
        policy: own.and_then(|it| it.get("policy")).map(read_client_policy).transpose()?,
        edits_calls: own.and_then(|it| it.get("editsCalls")) == Some(&Value::Bool(true)),
    })
}

/// A capability of a draft, which the protocol's types do not know.
fn knows_quota(params: Option<&RawValue>) -> bool {
    let params = params.and_then(|it| serde_json::from_str::<Value>(it.get()).ok()).unwrap_or_default();
    params.pointer("/clientCapabilities/session/quota").is_some_and(Value::is_object)
}

/// A command with which a client logs its user in.
#[derive(Clone, Debug)]
pub struct LoginCommand {
    /// castor's own binary.
    pub command: String,
    /// `CASTOR_HOME`, where that is set.
    pub home: Option<String>,
}

/// The answer to initialize in version 1.
pub fn response(client: &Client, login: &LoginCommand) -> Value {
    let sessions =
        SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new())
            .delete(SessionDeleteCapabilities::new())
            .additional_directories(SessionAdditionalDirectoriesCapabilities::new())
            .archive(SessionArchiveCapabilities::new())
            .status(SessionStatusCapabilities::new())
            .title(SessionTitleCapabilities::new())
            .system_prompt(SessionSystemPromptCapabilities::new().mode(
                SessionSystemPromptModeCapabilities::new().override_(SessionSystemPromptOverrideCapabilities::new()),
            ))
            .fork(SessionForkCapabilities::new().meta(fork_points()));
    let capabilities = AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(PromptCapabilities::new().image(true).audio(true).embedded_context(true))
        .mcp_capabilities(McpCapabilities::new().http(true).sse(true).acp(true))
        .session_capabilities(sessions)
        .auth(AgentAuthCapabilities::new().logout(LogoutCapabilities::new()).status(AuthStatusCapabilities::new()))
        .providers(ProvidersCapabilities::new())
        .meta(agent_extensions());
    let response = InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .auth_methods(offered_methods(client, login))
        .agent_info(Implementation::new("castor", env!("CARGO_PKG_VERSION")).title("castor".to_owned()))
        .meta(extensions(client));
    with_drafts(json!(response))
}

/// Where it goes, its name and what it says.
type DraftCapability = (&'static str, &'static str, fn() -> Value);

/// Capabilities of drafts, which the protocol's types do not know yet.
const DRAFTS: &[DraftCapability] = &[
    ("/agentCapabilities", "rewindSession", || json!({ "supported": true, "supportsEditPrompt": true })),
    ("/agentCapabilities/sessionCapabilities/fork", "atMessageId", || json!(true)),
    ("/agentCapabilities/sessionCapabilities", "workspaceTrust", || json!({})),
    ("/agentCapabilities", "quota", || json!({})),
];

fn with_drafts(mut response: Value) -> Value {
    for (place, name, value) in DRAFTS {
        if let Some(place) = response.pointer_mut(place).and_then(Value::as_object_mut) {
            place.insert((*name).to_owned(), value());
        }
    }
    response
}

/// Where clients look for `_session/steering`.
fn extensions(client: &Client) -> Map<String, Value> {
    let mut res = Map::from_iter([("steering".to_owned(), json!({ "supported": true }))]);
    res.extend(client.features.air.advertisement().map(|it| ("jetbrains".to_owned(), it)));
    res
}

/// `_session/steering`, where castor's own clients looked for it before; castor's own methods about checkpoints are there, and its events.
pub(super) fn agent_extensions() -> Map<String, Value> {
    let points: Vec<&str> = POINTS.iter().map(|it| it.0).collect();
    let own = json!({
        "checkpoints": true,
        "rewind": true,
        "hostTools": true,
        "events": { "version": EVENTS_VERSION, "streams": true },
        "supportedHookPoints": points,
        "policy": POLICY_ROLES,
    });
    Map::from_iter([("steering".to_owned(), json!({ "supported": true })), ("castor".to_owned(), own)])
}

/// `session/fork` takes `_meta.castor.fork.messageId`.
pub(super) fn fork_points() -> Map<String, Value> {
    Map::from_iter([("castor".to_owned(), json!({ "atMessageId": true }))])
}

pub const API_KEY: &str = "gemini-api-key";
pub const GATEWAY: &str = "gateway";
pub const VERTEX: &str = "vertex-ai";
pub(super) const TERMINAL: &str = "terminal-login";
/// Where clients and agents spoke of terminal logins before there was `auth.terminal`.
const OLD_TERMINAL_AUTH: &str = "terminal-auth";
/// What is appended to castor's command line, or is the whole of it.
const LOGIN_ARGS: [&str; 2] = ["auth", "login"];

/// A way to authenticate that needs nothing but a request.
struct PlainLogin {
    id: &'static str,
    name: &'static str,
    description: &'static str,
    /// What `_meta` may bring, in the words of Gemini CLI: by these clients know that they may ask for it.
    meta: fn() -> Value,
}

/// In the order clients should offer them.
const PLAIN: &[PlainLogin] = &[
    PlainLogin {
        id: API_KEY,
        name: "Gemini API key",
        description: "Uses GEMINI_API_KEY from the environment castor is started with, or the key of `castor auth login`",
        meta: || json!({ "api-key": { "provider": "google" } }),
    },
    PlainLogin {
        id: GATEWAY,
        name: "AI API gateway",
        description: "Uses GOOGLE_GEMINI_BASE_URL and GEMINI_CLI_CUSTOM_HEADERS from the environment",
        meta: || json!({ "gateway": { "protocol": "google", "restartRequired": "false" } }),
    },
    PlainLogin {
        id: VERTEX,
        name: "Vertex AI",
        description: "Uses GOOGLE_API_KEY, or GOOGLE_CLOUD_PROJECT, GOOGLE_CLOUD_LOCATION and Google's own credentials",
        meta: || json!({}),
    },
];

/// The plain agent methods: always there, and the data of an auth_required error.
pub fn auth_methods() -> Vec<AuthMethod> {
    PLAIN.iter().map(|it| plain_method(it, None)).collect()
}

fn plain_method(it: &PlainLogin, login: Option<&LoginCommand>) -> AuthMethod {
    let mut meta = (it.meta)();
    if let (Some(fields), Some(login)) = (meta.as_object_mut(), login) {
        fields.insert(OLD_TERMINAL_AUTH.to_owned(), json!(legacy_login(login)));
    }
    let res = AuthMethodAgent::new(AuthMethodId::new(it.id), it.name.to_owned());
    AuthMethod::Agent(
        res.description(it.description.to_owned()).meta(meta.as_object().filter(|it| !it.is_empty()).cloned()),
    )
}

/// The whole command, for the client knows only this; not its environment either.
pub(super) fn legacy_login(login: &LoginCommand) -> TerminalLogin {
    let env = login.home.iter().map(|it| ("CASTOR_HOME".to_owned(), it.clone())).collect();
    let (label, args) = ("castor auth login".into(), LOGIN_ARGS.iter().map(|it| (*it).to_owned()).collect());
    TerminalLogin { label, command: login.command.clone(), args, env }
}

/// As advertised. A terminal login stands last: clients that take the first method can always do that one.
pub(super) fn offered_methods(client: &Client, login: &LoginCommand) -> Vec<AuthMethod> {
    let old = |it: &PlainLogin| Some(login).filter(|_| client.login.old_terminal && it.id == API_KEY);
    let mut res: Vec<AuthMethod> = PLAIN.iter().map(|it| plain_method(it, old(it))).collect();
    if client.login.terminal {
        let it = AuthMethodTerminal::new(AuthMethodId::new(TERMINAL), "Log in in a terminal".to_owned());
        let it = it.description("Asks for a Gemini API key and stores it".to_owned());
        res.push(AuthMethod::Terminal(it.args(LOGIN_ARGS.map(str::to_owned).to_vec())));
    }
    res
}

/// Parameters of `authenticate`.
pub struct Authenticate {
    /// [`API_KEY`], [`GATEWAY`] or [`VERTEX`].
    pub method: &'static str,
    /// May hold secrets.
    pub meta: Option<Map<String, Value>>,
}

/// Reads the params of authenticate.
///
/// # Errors
/// See [`super::params`]; also for a method that was not advertised.
pub fn read_authenticate(params: Option<&RawValue>) -> Result<Authenticate, String> {
    let request: AuthenticateRequest = super::params(params)?;
    let id = request.method_id.to_string();
    let method = match id.as_str() {
        // An older name of the same method, which some clients still send; and clients should not ask for a terminal
        // method, but what one stored is a key.
        API_KEY | "api-key" | TERMINAL => API_KEY,
        GATEWAY => GATEWAY,
        VERTEX => VERTEX,
        _ => {
            let known: Vec<&str> = PLAIN.iter().map(|it| it.id).collect();
            return Err(format!("unknown auth method {id:?}; choose one of {}", known.join(", ")));
        }
    };
    Ok(Authenticate { method, meta: request.meta })
}
