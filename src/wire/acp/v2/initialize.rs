//! `initialize` of version 2: the client's capabilities, castor's own, and the ways to log in.

use agent_client_protocol_schema::{
    ProtocolVersion, v1,
    v2::{
        AgentAuthCapabilities, AgentCapabilities, AuthMethod, AuthMethodAgent, AuthMethodTerminal,
        AuthStatusCapabilities, Implementation, InitializeRequest, InitializeResponse, McpAcpCapabilities,
        McpCapabilities, McpHttpCapabilities, McpStdioCapabilities, PromptAudioCapabilities, PromptCapabilities,
        PromptEmbeddedContextCapabilities, PromptImageCapabilities, ProvidersCapabilities,
        SessionAdditionalDirectoriesCapabilities, SessionArchiveCapabilities, SessionCapabilities,
        SessionDeleteCapabilities, SessionForkCapabilities, SessionStatusCapabilities, SessionSystemPromptCapabilities,
        SessionSystemPromptModeCapabilities, SessionSystemPromptOverrideCapabilities, SessionTitleCapabilities,
    },
};
use serde_json::{Map, Value, json, value::RawValue};

use crate::acp::{
    initialize::{
        self, AcpVersion, Client, ClientFeatures, LoginCommand, LoginWays, agent_extensions, fork_points, read_host,
        read_host_tools,
    },
    params, params_error,
};

/// Reads the params of initialize. What a client shows of a session needs no capability here.
///
/// # Errors
/// See [`params`]; also for a point or a policy that castor does not know.
pub fn read(given: Option<&RawValue>) -> Result<Client, String> {
    let mut fields: Map<String, Value> = params(given)?;
    // Required, but nothing depends on it.
    fields.entry("info").or_insert_with(|| json!({ "name": "", "version": "" }));
    let request: InitializeRequest =
        serde_json::from_value(Value::Object(fields)).map_err(|it| params_error(&it.to_string()))?;
    let caps = request.capabilities;
    let own = caps.meta.as_ref().and_then(|it| it.get("castor"));
    let flag = |name: &str| own.and_then(|it| it.get(name)).and_then(Value::as_bool);
    let elicitation = caps.elicitation.unwrap_or_default();
    Ok(Client {
        name: request.info.name,
        // Terminals belong to castor: the client only draws them.
        draws_terminals: true,
        bool_options: true,
        shows_forms: elicitation.form.is_some(),
        opens_links: elicitation.url.is_some(),
        headless: flag("interactive") == Some(false),
        features: ClientFeatures {
            version: AcpVersion::V2,
            notices: true,
            compactions: true,
            subagents: true,
            rewinds: flag("rewind") == Some(true),
            stats: flag("stats") == Some(true),
            streams: flag("streams") == Some(true),
            host_tools: own.and_then(|it| it.get("hostTools")).and_then(read_host_tools),
            events: flag("events") == Some(true),
            ..ClientFeatures::default()
        },
        login: LoginWays { terminal: caps.auth.is_some_and(|it| it.terminal.is_some()), old_terminal: false },
        host: read_host(own).map_err(|it| it.replace("clientCapabilities", "capabilities"))?,
        ..Client::default()
    })
}

pub fn response(client: &Client, login: &LoginCommand) -> Value {
    let prompt = PromptCapabilities::new()
        .image(PromptImageCapabilities::new())
        .audio(PromptAudioCapabilities::new())
        .embedded_context(PromptEmbeddedContextCapabilities::new());
    let system_prompt = SessionSystemPromptCapabilities::new()
        .mode(SessionSystemPromptModeCapabilities::new().override_(SessionSystemPromptOverrideCapabilities::new()));
    let servers = McpCapabilities::new()
        .stdio(McpStdioCapabilities::new())
        .http(McpHttpCapabilities::new())
        .acp(McpAcpCapabilities::new());
    let session = SessionCapabilities::new()
        .prompt(prompt)
        .mcp(servers)
        .delete(SessionDeleteCapabilities::new())
        .additional_directories(SessionAdditionalDirectoriesCapabilities::new())
        .system_prompt(system_prompt)
        .fork(SessionForkCapabilities::new().meta(fork_points()))
        .archive(SessionArchiveCapabilities::new())
        .status(SessionStatusCapabilities::new())
        .title(SessionTitleCapabilities::new());
    let capabilities = AgentCapabilities::new()
        .session(session)
        .auth(AgentAuthCapabilities::new().status(AuthStatusCapabilities::new()))
        .providers(ProvidersCapabilities::new())
        .meta(agent_extensions());
    let info = Implementation::new("castor", env!("CARGO_PKG_VERSION")).title("castor".to_owned());
    let response = InitializeResponse::new(ProtocolVersion::V2, info)
        .capabilities(capabilities)
        .auth_methods(methods(initialize::offered_methods(client, login)));
    with_old_ids(json!(response))
}

/// Clients that ask for 2 to see what comes read the answer in the shapes of 1, where a method has an `id`.
fn with_old_ids(mut response: Value) -> Value {
    let methods = response.get_mut("authMethods").and_then(Value::as_array_mut);
    for method in methods.into_iter().flatten().filter_map(Value::as_object_mut) {
        if let Some(id) = method.get("methodId").cloned() {
            method.insert("id".to_owned(), id);
        }
    }
    response
}

/// The plain agent methods, for the data of an auth_required error.
pub fn plain_methods() -> Vec<AuthMethod> {
    methods(initialize::auth_methods())
}

fn methods(all: Vec<v1::AuthMethod>) -> Vec<AuthMethod> {
    all.into_iter().filter_map(method).collect()
}

fn method(it: v1::AuthMethod) -> Option<AuthMethod> {
    Some(match it {
        v1::AuthMethod::Agent(it) => {
            let res = AuthMethodAgent::new(it.id.to_string(), it.name);
            AuthMethod::Agent(res.description(it.description).meta(it.meta))
        }
        v1::AuthMethod::Terminal(it) => {
            let res = AuthMethodTerminal::new(it.id.to_string(), it.name).args(it.args);
            AuthMethod::Terminal(res.description(it.description))
        }
        _ => return None,
    })
}
