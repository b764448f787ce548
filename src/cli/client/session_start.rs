//! Session start of `castor run` and `castor chat`: from `initialize` to a new or resumed session.

use serde_json::{Map, Value, json};

use super::failure::{Exit, Failure};
use crate::cli::{
    sessions::ids::{MIN_ID, is_named},
    terminal_text::clean_line,
};
use castor_agent::settings::options::DEMO;
use castor_wire::acp::client::{Greeting, OpenedAnswer, PromptAbilities, SessionOption, read_value};

/// Pages of `session/list` that are looked through for the newest session.
const MAX_PAGES: usize = 50;
/// Characters of a whole id of castor's.
const UUID: usize = 36;
const PROTOCOL_VERSION: u16 = 1;

/// Instructions for the agent's model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instructions {
    pub text: String,
    /// They take the place of the agent's own.
    pub is_override: bool,
}

/// The session that a run asks for.
#[derive(Clone, Debug, Default)]
pub struct SessionRequest {
    /// Absolute.
    pub cwd: String,
    /// Further folders, absolute.
    pub additional: Vec<String>,
    /// A session's id, the beginning of one, or `latest`.
    pub resume: Option<String>,
    /// The id of a session that begins.
    pub id: Option<String>,
    pub interactive: bool,
    pub events: bool,
    /// Of a session that goes on the conversation is wanted, too.
    pub replays: bool,
    /// For an agent that did not get them as flags.
    pub model: Option<String>,
    pub mode: Option<&'static str>,
    pub instructions: Option<Instructions>,
}

/// What sends requests to the agent.
pub trait AskAgent {
    /// `Ok(None)`: it is gone.
    fn ask(&mut self, method: &'static str, params: Value) -> impl Future<Output = Result<Option<Value>, Failure>>;

    /// The id is known, whatever comes of the session.
    fn set_session(&mut self, id: &str);
}

/// A session that was opened, and what the agent said of itself.
#[derive(Debug, Default)]
pub struct OpenedSession {
    pub id: String,
    /// The answer to `initialize`.
    pub agent: Greeting,
    /// The answer to the request that opened it.
    pub session: OpenedAnswer,
    pub model: String,
    pub capabilities: PromptAbilities,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl OpenedSession {
    pub fn is_castor(&self) -> bool {
        self.agent.is_castor()
    }

    /// Whether words of the user's reach a turn that is under way.
    pub fn takes_steering(&self) -> bool {
        self.agent.takes_steering()
    }

    /// Whether the built-in demo model answers, for which nothing is paid.
    pub fn is_demo(&self) -> bool {
        self.is_castor() && has_demo(&self.session)
    }

    /// Whether the agent lists what a session changed in files.
    pub fn lists_checkpoints(&self) -> bool {
        self.agent.agent_capabilities.meta.castor.checkpoints
    }
}

/// Opens the session that `request` asks for. `Ok(None)`: the agent is gone.
pub async fn open_session(
    driver: &mut impl AskAgent,
    request: &SessionRequest,
) -> Result<Option<OpenedSession>, Failure> {
    let Some(agent) = driver.ask("initialize", initialize_params(request)).await? else { return Ok(None) };
    let agent: Greeting = read_value(agent).unwrap_or_default();
    let version = agent.protocol_version.unwrap_or_default();
    if version != u64::from(PROTOCOL_VERSION) {
        return Err(Failure::new(
            Exit::Failed,
            format!("the agent speaks another version of the protocol: {version}, not 1"),
        ));
    }
    let abilities = &agent.agent_capabilities.session_capabilities;
    if !request.additional.is_empty() && !abilities.additional_directories.is_there() {
        return Err(Failure::input("this agent works in one folder: leave --include-directories out"));
    }
    if request.instructions.is_some() && !abilities.system_prompt.is_there() {
        return Err(Failure::input("this agent takes no instructions: leave the system prompt out"));
    }
    let opened = match &request.resume {
        None => new_session(driver, request, &agent).await?,
        Some(which) => resume_session(driver, request, which, &agent).await?,
    };
    let Some((id, session)) = opened else { return Ok(None) };
    let current = model_option(&session).and_then(SessionOption::chosen);
    let model = request.model.as_deref().or(current).unwrap_or_default().to_owned();
    let capabilities = agent.agent_capabilities.prompt_capabilities;
    let mut opened = OpenedSession { id, agent, session, model, capabilities, notes: Vec::new() };
    Ok(set_up(driver, request, &mut opened).await?.map(|()| opened))
}

fn initialize_params(request: &SessionRequest) -> Value {
    // Without a terminal nobody could fill in a form.
    let elicitation = if request.interactive { json!({"form": {}, "url": {}}) } else { json!({}) };
    json!({
        "protocolVersion": PROTOCOL_VERSION,
        "clientInfo": {"name": "castor-run", "title": "castor run", "version": env!("CARGO_PKG_VERSION")},
        "clientCapabilities": {
            "fs": {"readTextFile": false, "writeTextFile": false},
            "terminal": false,
            "session": {"notices": {}},
            "elicitation": elicitation,
            // Each sub-agent is a session of its own then, so that the tree of them is true at every depth.
            "subagents": {},
            "_meta": {"castor": {"interactive": request.interactive, "events": request.events, "outputDeltas": true, "stats": true}},
        },
    })
}

async fn new_session(
    driver: &mut impl AskAgent,
    request: &SessionRequest,
    agent: &Greeting,
) -> Result<Option<(String, OpenedAnswer)>, Failure> {
    let mut params = folders(request);
    if let Some(id) = &request.id {
        params.insert("_meta".to_owned(), json!({"castor": {"sessionId": id}}));
    }
    let opened = driver.ask("session/new", Value::Object(params)).await;
    let Some(session) = opened.map_err(|it| with_sign_in(it, agent))? else { return Ok(None) };
    let session: OpenedAnswer = read_value(session).unwrap_or_default();
    let Some(id) = session.session_id.clone() else {
        return Err(Failure::new(Exit::Failed, "the agent opened a session without an id"));
    };
    driver.set_session(&id);
    Ok(Some((id, session)))
}

/// What a session is opened with, new or not.
fn folders(request: &SessionRequest) -> Map<String, Value> {
    let given = [("cwd", json!(request.cwd)), ("mcpServers", json!([]))];
    let mut params: Map<String, Value> = given.into_iter().map(|(key, it)| (key.to_owned(), it)).collect();
    if let Some(Instructions { text, is_override }) = &request.instructions {
        let mode = if *is_override { "override" } else { "append" };
        let prompt = json!({"mode": mode, "content": [{"type": "text", "text": text}]});
        params.insert("systemPrompt".to_owned(), prompt);
    }
    if !request.additional.is_empty() {
        params.insert("additionalDirectories".to_owned(), json!(request.additional));
    }
    params
}

async fn resume_session(
    driver: &mut impl AskAgent,
    request: &SessionRequest,
    which: &str,
    agent: &Greeting,
) -> Result<Option<(String, OpenedAnswer)>, Failure> {
    let abilities = &agent.agent_capabilities;
    let lists = abilities.session_capabilities.list.is_there();
    // Resuming replays nothing.
    let resumes = abilities.session_capabilities.resume.is_there();
    let method = match (resumes, abilities.load_session.is_there()) {
        (_, true) if request.replays => "session/load",
        (true, _) => "session/resume",
        (false, true) => "session/load",
        (false, false) => return Err(Failure::input("this agent cannot resume a session")),
    };
    let id = match which {
        "latest" if !lists => {
            return Err(Failure::input("this agent cannot list its sessions: give an id to --resume"));
        }
        "latest" => match find_latest(driver, &request.cwd).await? {
            Some(id) => id,
            None => return Ok(None),
        },
        start if lists && is_id_prefix(start) => match find_by_prefix(driver, start).await? {
            Some(id) => id,
            None => return Ok(None),
        },
        short if agent.is_castor() && short.len() < MIN_ID => {
            let why = "an id needs";
            return Err(Failure::input(format!(
                "{short} is too short: {why} {MIN_ID} characters at least; `castor sessions list --all` has all"
            )));
        }
        id => id.to_owned(),
    };
    driver.set_session(&id);
    let mut params = folders(request);
    params.insert("sessionId".to_owned(), json!(id));
    let opened = driver.ask(method, Value::Object(params)).await.map_err(|it| match it.exit {
        // In the protocol's words: it speaks of methods.
        Exit::Input if it.message.contains("not found") => Failure::input(not_found(which, agent.is_castor())),
        _ => with_sign_in(it, agent),
    })?;
    Ok(opened.map(|it| (id, read_value(it).unwrap_or_default())))
}

/// Long enough to mean one, and shorter than ids are.
fn is_id_prefix(text: &str) -> bool {
    (MIN_ID..UUID).contains(&text.len())
}

fn not_found(which: &str, is_castor: bool) -> String {
    let hint = if is_castor { "; `castor sessions list --all` has all" } else { "" };
    format!("session {which} was not found{hint}")
}

/// The one session whose id begins so; what is a whole id stays what it is.
async fn find_by_prefix(driver: &mut impl AskAgent, start: &str) -> Result<Option<String>, Failure> {
    let Some(all) = sessions(driver, &json!({})).await? else { return Ok(None) };
    let ids = || all.iter().filter_map(|it| it.get("sessionId")?.as_str());
    let mut like = ids().filter(|it| is_named(it, start));
    match (ids().find(|it| *it == start), like.next(), like.next()) {
        (Some(id), ..) | (None, Some(id), None) => Ok(Some(id.to_owned())),
        (None, Some(_), Some(_)) => {
            Err(Failure::input(format!("{start} names more than one session; give more of its id")))
        }
        // An agent need not list all that it has.
        (None, None, _) => Ok(Some(start.to_owned())),
    }
}

/// The session of `cwd` that changed last.
async fn find_latest(driver: &mut impl AskAgent, cwd: &str) -> Result<Option<String>, Failure> {
    let Some(all) = sessions(driver, &json!({"cwd": cwd})).await? else { return Ok(None) };
    let mut best: Option<(Option<jiff::Timestamp>, &str)> = None;
    // An agent that ignores the filter must not make us go on with another folder's work.
    for it in all.iter().filter(|it| it.get("cwd").and_then(Value::as_str) == Some(cwd)) {
        let Some(id) = it.get("sessionId").and_then(Value::as_str) else { continue };
        let at = it.get("updatedAt").and_then(Value::as_str).and_then(|it| it.parse().ok());
        if best.as_ref().is_none_or(|(newest, _)| at > *newest) {
            best = Some((at, id));
        }
    }
    let (_, id) = best.ok_or_else(|| Failure::input(format!("there is no session of {cwd} to resume")))?;
    Ok(Some(id.to_owned()))
}

/// What the agent lists, page by page.
async fn sessions(driver: &mut impl AskAgent, wanted: &Value) -> Result<Option<Vec<Value>>, Failure> {
    let (mut res, mut cursor) = (Vec::new(), Value::Null);
    for _ in 0..MAX_PAGES {
        let mut params = wanted.clone();
        if let (Some(members), false) = (params.as_object_mut(), cursor.is_null()) {
            members.insert("cursor".to_owned(), cursor.clone());
        }
        let Some(mut page) = driver.ask("session/list", params).await? else { return Ok(None) };
        match page.get_mut("sessions").map(Value::take) {
            Some(Value::Array(it)) => res.extend(it),
            _ => break,
        }
        match page.get("nextCursor").filter(|it| it.is_string()) {
            Some(next) => cursor = next.clone(),
            None => break,
        }
    }
    Ok(Some(res))
}

/// Sets mode and model over the protocol.
async fn set_up(
    driver: &mut impl AskAgent,
    request: &SessionRequest,
    opened: &mut OpenedSession,
) -> Result<Option<()>, Failure> {
    let OpenedSession { id, session, notes, .. } = opened;
    let modes = session.modes.clone().unwrap_or_default();
    if let (Some(_), None, Some(mode)) = (&request.resume, request.mode, &modes.current_mode_id)
        && mode != "default"
    {
        let mode = clean_line(mode, 100);
        notes.push(format!("the session resumes in the mode {mode}; --approval-mode chooses another"));
    }
    if request.resume.is_some() && request.model.is_none() && has_demo(session) {
        notes.push("the session resumes with the demo model; --model chooses another".to_owned());
    }
    if let Some(mode) = request.mode {
        let ids: Vec<String> = modes.available_modes.into_iter().map(|it| it.id).collect();
        if !ids.iter().any(|it| it == mode) {
            return Err(Failure::input(format!("this agent has no mode `{mode}`; it has: {}", listed(&ids))));
        }
        let params = json!({"sessionId": id, "modeId": mode});
        let Some(_) = driver.ask("session/set_mode", params).await? else { return Ok(None) };
    }
    if let Some(model) = &request.model {
        let option = model_option(session).map(|it| &it.id);
        let Some(option) = option else { return Err(Failure::input("this agent does not let its model be chosen")) };
        let params = json!({"sessionId": id, "configId": option, "value": model});
        let Some(_) = driver.ask("session/set_config_option", params).await? else { return Ok(None) };
    }
    Ok(Some(()))
}

/// The option by which an agent lets its model be chosen.
fn model_option(session: &OpenedAnswer) -> Option<&SessionOption> {
    let is_model = |it: &&SessionOption| it.category.as_deref() == Some("model") || it.id == "model";
    session.config_options.iter().flatten().find(is_model)
}

fn has_demo(session: &OpenedAnswer) -> bool {
    model_option(session).and_then(SessionOption::chosen) == Some(DEMO)
}

/// Says how to sign in, where that is what is missing.
fn with_sign_in(failure: Failure, agent: &Greeting) -> Failure {
    let names: Vec<String> = agent.sign_in_names().map(str::to_owned).collect();
    match failure.exit {
        // castor's own errors say what to do.
        Exit::Auth if !names.is_empty() && !agent.is_castor() => {
            Failure::new(Exit::Auth, format!("{} (the agent offers: {})", failure.message, listed(&names)))
        }
        _ => failure,
    }
}

fn listed(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        _ => clean_line(&names.join(", "), 300),
    }
}

/// The end of an id of castor's is random: so many characters name one session among millions.
pub fn short_id(session: &str) -> String {
    const SHORT: usize = 7;
    const WHOLE: usize = 36;
    let id = if session.len() == WHOLE { session.get(WHOLE - SHORT..).unwrap_or(session) } else { session };
    clean_line(id, WHOLE)
}

#[cfg(test)]
mod tests {
    use agent_client_protocol_schema::v1::InitializeRequest;

    use super::{SessionRequest, initialize_params};

    #[test]
    fn the_greeting_fits_the_schema() {
        let request = SessionRequest { interactive: true, ..SessionRequest::default() };
        let request: InitializeRequest = serde_json::from_value(initialize_params(&request)).unwrap();
        let capabilities = request.client_capabilities;
        assert!(!capabilities.terminal && !capabilities.fs.read_text_file);
        let elicitation = capabilities.elicitation.unwrap();
        assert!(elicitation.supports_form() && elicitation.supports_url());
        assert!(capabilities.subagents.is_some());
        assert_eq!(capabilities.meta.unwrap()["castor"]["interactive"], true);
        assert_eq!(request.client_info.unwrap().name, "castor-run");
    }
}
