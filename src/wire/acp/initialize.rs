//! initialize and authenticate: what the client can, what we offer.

use agent_client_protocol_schema::{
    ProtocolVersion,
    v1::{
        AgentCapabilities, AuthMethod, AuthMethodAgent, AuthMethodId, AuthenticateRequest, Implementation,
        InitializeRequest, InitializeResponse, PromptCapabilities, SessionAdditionalDirectoriesCapabilities,
        SessionCapabilities, SessionCloseCapabilities, SessionDeleteCapabilities, SessionListCapabilities,
        SessionResumeCapabilities,
    },
};
use serde_json::{Value, value::RawValue};

/// What the client told us of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    pub name: String,
    pub reads_files: bool,
    pub writes_files: bool,
    /// castor's own companion says when nobody can be asked; every other client is interactive.
    pub headless: bool,
    /// Knows boolean config options.
    pub booleans: bool,
    /// Shows notices.
    pub notices: bool,
    /// Wants each AgentEvent as `_castor/session/event`.
    pub wants_events: bool,
}

/// Reads the params of initialize.
///
/// # Errors
/// See [`super::params`].
pub fn read(params: Option<&RawValue>) -> Result<Client, String> {
    let request: InitializeRequest = super::params(params)?;
    let caps = request.client_capabilities;
    let session = caps.session.as_ref();
    let ours = caps.meta.as_ref().and_then(|it| it.get("castor"));
    let flag = |name: &str| ours.and_then(|it| it.get(name)).and_then(Value::as_bool);
    Ok(Client {
        name: request.client_info.map(|it| it.name).unwrap_or_default(),
        reads_files: caps.fs.read_text_file,
        writes_files: caps.fs.write_text_file,
        booleans: session.and_then(|it| it.config_options.as_ref()).is_some_and(|it| it.boolean.is_some()),
        notices: session.is_some_and(|it| it.notices.is_some()),
        headless: flag("interactive") == Some(false),
        wants_events: flag("events") == Some(true),
    })
}

/// The answer to initialize: version 1 whatever was asked, since it is the only one we speak.
pub fn response() -> InitializeResponse {
    let sessions = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new())
        .delete(SessionDeleteCapabilities::new())
        .additional_directories(SessionAdditionalDirectoriesCapabilities::new());
    let capabilities = AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(PromptCapabilities::new().image(true).audio(true).embedded_context(true))
        .session_capabilities(sessions);
    InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .auth_methods(auth_methods())
        .agent_info(Implementation::new("castor", env!("CARGO_PKG_VERSION")).title("castor".to_owned()))
}

/// The ways to authenticate, as plain agent methods, in the order clients should offer them.
pub const AUTH_METHODS: &[(&str, &str, &str)] = &[
    ("gemini-api-key", "Gemini API key", "Uses GEMINI_API_KEY from the environment castor is started with"),
    ("gateway", "AI API gateway", "Uses GOOGLE_GEMINI_BASE_URL and GEMINI_CLI_CUSTOM_HEADERS from the environment"),
];

/// As advertised; also the data of an auth_required error.
pub fn auth_methods() -> Vec<AuthMethod> {
    let method = |(id, name, description): &(&'static str, &'static str, &'static str)| {
        let it = AuthMethodAgent::new(AuthMethodId::new(*id), (*name).to_owned());
        AuthMethod::Agent(it.description((*description).to_owned()))
    };
    AUTH_METHODS.iter().map(method).collect()
}

/// Reads the method id of authenticate.
///
/// # Errors
/// See [`super::params`]; also for a method that was not advertised.
pub fn read_authenticate(params: Option<&RawValue>) -> Result<String, String> {
    let request: AuthenticateRequest = super::params(params)?;
    let id = request.method_id.to_string();
    // An older name of the same method, which some clients still send.
    let id = if id == "api-key" { "gemini-api-key".to_owned() } else { id };
    match AUTH_METHODS.iter().any(|(it, ..)| *it == id) {
        true => Ok(id),
        false => {
            let known: Vec<&str> = AUTH_METHODS.iter().map(|(it, ..)| *it).collect();
            Err(format!("unknown auth method {id:?}; known: {}", known.join(", ")))
        }
    }
}
