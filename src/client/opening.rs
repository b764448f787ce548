//! The opening of a session: from `initialize` to a new or resumed session with its mode and model, answer by answer.

use std::mem;

use serde_json::{Map, Value, json};

use super::{
    failure::{Exit, Failure},
    listing::SessionListing,
};
use castor_base::{
    ids::{MIN_NAMED, is_named},
    model::DEMO,
    shown_text::clean_line,
};
use castor_wire::acp::client::{
    AgentSession, Greeting, OpenedAnswer, PromptAbilities, SessionModes, SessionOption, read_value,
};

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

/// The session that a client asks for.
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
    /// Remarks for the user.
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

/// A session on its way.
#[derive(Debug)]
pub struct SessionOpening {
    request: SessionRequest,
    agent: Greeting,
    next: NextAnswer,
    /// The id is known, whatever comes of the session; empty before.
    pub id: String,
    session: OpenedAnswer,
}

/// The answer that comes next.
#[derive(Debug)]
enum NextAnswer {
    Greeting,
    SessionPage(SessionListing),
    Session,
    Mode,
    Model,
}

/// The next step of an opening.
#[derive(Debug)]
pub enum OpeningStep {
    Ask(&'static str, Value),
    Opened(Box<OpenedSession>),
}

impl SessionOpening {
    pub fn new(request: SessionRequest) -> Self {
        let (agent, session) = (Greeting::default(), OpenedAnswer::default());
        Self { request, agent, next: NextAnswer::Greeting, id: String::new(), session }
    }

    /// Whether the agent tells what was said in the session before.
    pub fn replays(&self) -> bool {
        self.request.resume.is_some()
    }

    pub fn begin(&self) -> OpeningStep {
        OpeningStep::Ask("initialize", initialize_params(&self.request))
    }

    /// Takes the answer to the last step's request.
    ///
    /// # Errors
    /// The session cannot be opened.
    pub fn take(&mut self, answer: Result<Value, Failure>) -> Result<OpeningStep, Failure> {
        match mem::replace(&mut self.next, NextAnswer::Greeting) {
            NextAnswer::Greeting => self.take_greeting(answer?),
            NextAnswer::SessionPage(mut listing) => match listing.take(read_value(answer?).unwrap_or_default()) {
                true => Ok(self.ask_page(listing)),
                false => {
                    let id = self.find_listed(&listing.found)?;
                    Ok(self.resume(id))
                }
            },
            NextAnswer::Session => self.take_session(answer),
            NextAnswer::Mode => {
                answer?;
                self.choose_model()
            }
            NextAnswer::Model => {
                answer?;
                Ok(self.finish())
            }
        }
    }

    fn ask(&mut self, next: NextAnswer, method: &'static str, params: Value) -> OpeningStep {
        self.next = next;
        OpeningStep::Ask(method, params)
    }

    fn take_greeting(&mut self, answer: Value) -> Result<OpeningStep, Failure> {
        self.agent = read_value(answer).unwrap_or_default();
        let version = self.agent.protocol_version.unwrap_or_default();
        if version != u64::from(PROTOCOL_VERSION) {
            let why = format!("the agent speaks another version of the protocol: {version}, not 1");
            return Err(Failure::new(Exit::Failed, why));
        }
        let abilities = &self.agent.agent_capabilities.session_capabilities;
        if !self.request.additional.is_empty() && !abilities.additional_directories.is_there() {
            return Err(Failure::input("this agent works in one folder: leave --include-directories out"));
        }
        if self.request.instructions.is_some() && !abilities.system_prompt.is_there() {
            return Err(Failure::input("this agent takes no instructions: leave the system prompt out"));
        }
        match self.request.resume.clone() {
            Some(which) => self.find(&which),
            None => {
                let mut params = self.folders();
                if let Some(id) = &self.request.id {
                    params.insert("_meta".to_owned(), json!({"castor": {"sessionId": id}}));
                }
                Ok(self.ask(NextAnswer::Session, "session/new", Value::Object(params)))
            }
        }
    }

    /// Finds the session that goes on.
    fn find(&mut self, which: &str) -> Result<OpeningStep, Failure> {
        self.resume_method()?;
        let lists = self.agent.agent_capabilities.session_capabilities.list.is_there();
        match which {
            "latest" if !lists => Err(Failure::input("this agent cannot list its sessions: give an id to --resume")),
            "latest" => {
                let listing = SessionListing::new(Some(&self.request.cwd), MAX_PAGES);
                Ok(self.ask_page(listing))
            }
            start if lists && is_id_prefix(start) => Ok(self.ask_page(SessionListing::new(None, MAX_PAGES))),
            short if self.agent.is_castor() && short.len() < MIN_NAMED => {
                let why = "an id needs";
                Err(Failure::input(format!(
                    "{short} is too short: {why} {MIN_NAMED} characters at least; `castor sessions list --all` has all"
                )))
            }
            id => Ok(self.resume(id.to_owned())),
        }
    }

    fn ask_page(&mut self, listing: SessionListing) -> OpeningStep {
        let params = listing.params();
        self.ask(NextAnswer::SessionPage(listing), "session/list", params)
    }

    fn find_listed(&self, all: &[AgentSession]) -> Result<String, Failure> {
        match self.request.resume.as_deref().unwrap_or_default() {
            "latest" => find_latest(all, &self.request.cwd),
            start => find_by_prefix(all, start),
        }
    }

    fn resume(&mut self, id: String) -> OpeningStep {
        let mut params = self.folders();
        params.insert("sessionId".to_owned(), json!(id));
        self.id = id;
        let method = self.resume_method().unwrap_or("session/load");
        self.ask(NextAnswer::Session, method, Value::Object(params))
    }

    fn resume_method(&self) -> Result<&'static str, Failure> {
        let abilities = &self.agent.agent_capabilities;
        // Resuming replays nothing.
        match (abilities.session_capabilities.resume.is_there(), abilities.load_session.is_there()) {
            (_, true) if self.request.replays => Ok("session/load"),
            (true, _) => Ok("session/resume"),
            (false, true) => Ok("session/load"),
            (false, false) => Err(Failure::input("this agent cannot resume a session")),
        }
    }

    /// The params that open a session, new or not.
    fn folders(&self) -> Map<String, Value> {
        let given = [("cwd", json!(self.request.cwd)), ("mcpServers", json!([]))];
        let mut params: Map<String, Value> = given.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        if let Some(Instructions { text, is_override }) = &self.request.instructions {
            let mode = if *is_override { "override" } else { "append" };
            let prompt = json!({"mode": mode, "content": [{"type": "text", "text": text}]});
            params.insert("systemPrompt".to_owned(), prompt);
        }
        if !self.request.additional.is_empty() {
            params.insert("additionalDirectories".to_owned(), json!(self.request.additional));
        }
        params
    }

    fn take_session(&mut self, answer: Result<Value, Failure>) -> Result<OpeningStep, Failure> {
        let which = self.request.resume.as_deref();
        let answer = answer.map_err(|failure| match which {
            // In the protocol's words: it speaks of methods.
            Some(which) if failure.exit == Exit::Input && failure.message.contains("not found") => {
                Failure::input(not_found(which, self.agent.is_castor()))
            }
            _ => with_sign_in(failure, &self.agent),
        })?;
        self.session = read_value(answer).unwrap_or_default();
        if which.is_none() {
            let without_id = || Failure::new(Exit::Failed, "the agent opened a session without an id");
            self.id = self.session.session_id.clone().ok_or_else(without_id)?;
        }
        self.choose_mode()
    }

    /// Sets the mode over the protocol.
    fn choose_mode(&mut self) -> Result<OpeningStep, Failure> {
        let Some(mode) = self.request.mode else { return self.choose_model() };
        let modes = self.session.modes.iter().flat_map(|modes| &modes.available_modes);
        let ids: Vec<&str> = modes.map(|mode| mode.id.as_str()).collect();
        if !ids.contains(&mode) {
            return Err(Failure::input(format!("this agent has no mode `{mode}`; it has: {}", listed(&ids))));
        }
        let params = json!({"sessionId": self.id, "modeId": mode});
        Ok(self.ask(NextAnswer::Mode, "session/set_mode", params))
    }

    /// Sets the model over the protocol.
    fn choose_model(&mut self) -> Result<OpeningStep, Failure> {
        let Some(model) = &self.request.model else { return Ok(self.finish()) };
        let Some(option) = model_option(&self.session) else {
            return Err(Failure::input("this agent does not let its model be chosen"));
        };
        let params = json!({"sessionId": self.id, "configId": option.id, "value": model});
        Ok(self.ask(NextAnswer::Model, "session/set_config_option", params))
    }

    fn finish(&mut self) -> OpeningStep {
        let notes = self.notes();
        let (agent, session) = (mem::take(&mut self.agent), mem::take(&mut self.session));
        let current = model_option(&session).and_then(SessionOption::chosen);
        let model = self.request.model.as_deref().or(current).unwrap_or_default().to_owned();
        let capabilities = agent.agent_capabilities.prompt_capabilities;
        OpeningStep::Opened(Box::new(OpenedSession { id: self.id.clone(), agent, session, model, capabilities, notes }))
    }

    /// Choices of the session that goes on, where the user made none.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.request.resume.is_none() {
            return notes;
        }
        let current = |modes: &SessionModes| modes.current_mode_id.clone();
        let mode = self.session.modes.as_ref().and_then(current).filter(|mode| mode != "default");
        if let (None, Some(mode)) = (self.request.mode, mode) {
            let mode = clean_line(&mode, 100);
            notes.push(format!("the session resumes in the mode {mode}; --approval-mode chooses another"));
        }
        if self.request.model.is_none() && has_demo(&self.session) {
            notes.push("the session resumes with the demo model; --model chooses another".to_owned());
        }
        notes
    }
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

/// The params of `initialize` for a client that asks nobody.
pub fn greeting(name: &str, shows_notices: bool) -> Value {
    let meta = json!({"castor": {"interactive": false}});
    let capabilities = match shows_notices {
        true => json!({"session": {"notices": {}}, "_meta": meta}),
        false => json!({"_meta": meta}),
    };
    let client = json!({"name": name, "version": env!("CARGO_PKG_VERSION")});
    json!({"protocolVersion": 1, "clientInfo": client, "clientCapabilities": capabilities})
}

/// A prompt's text that came by a pipe.
pub fn piped_block(text: &str) -> Value {
    json!({"type": "text", "text": text, "_meta": {"castor": {"piped": true}}})
}

/// Long enough to mean one, and shorter than ids are.
fn is_id_prefix(text: &str) -> bool {
    (MIN_NAMED..UUID).contains(&text.len())
}

fn not_found(which: &str, is_castor: bool) -> String {
    let hint = if is_castor { "; `castor sessions list --all` has all" } else { "" };
    format!("session {which} was not found{hint}")
}

/// The one session whose id begins so; what is a whole id stays what it is.
fn find_by_prefix(all: &[AgentSession], start: &str) -> Result<String, Failure> {
    if all.iter().any(|session| session.session_id == start) {
        return Ok(start.to_owned());
    }
    let mut like = all.iter().filter(|session| is_named(&session.session_id, start));
    match (like.next(), like.next()) {
        (Some(session), None) => Ok(session.session_id.clone()),
        (Some(_), Some(_)) => Err(Failure::input(format!("{start} names more than one session; give more of its id"))),
        // An agent need not list all that it has.
        (None, _) => Ok(start.to_owned()),
    }
}

/// The session of `cwd` that changed last.
fn find_latest(all: &[AgentSession], cwd: &str) -> Result<String, Failure> {
    let mut best: Option<(Option<jiff::Timestamp>, &str)> = None;
    // An agent that ignores the filter must not make us go on with another folder's work.
    for session in all.iter().filter(|session| session.cwd.as_deref() == Some(cwd)) {
        let at = session.updated_at.as_deref().and_then(|text| text.parse().ok());
        if best.as_ref().is_none_or(|(newest, _)| at > *newest) {
            best = Some((at, &session.session_id));
        }
    }
    let (_, id) = best.ok_or_else(|| Failure::input(format!("there is no session of {cwd} to resume")))?;
    Ok(id.to_owned())
}

/// The option by which an agent lets its model be chosen.
fn model_option(session: &OpenedAnswer) -> Option<&SessionOption> {
    let is_model = |option: &&SessionOption| option.category.as_deref() == Some("model") || option.id == "model";
    session.config_options.iter().flatten().find(is_model)
}

fn has_demo(session: &OpenedAnswer) -> bool {
    model_option(session).and_then(SessionOption::chosen) == Some(DEMO)
}

/// Says how to sign in, where that is what is missing.
fn with_sign_in(failure: Failure, agent: &Greeting) -> Failure {
    let names: Vec<&str> = agent.sign_in_names().collect();
    match failure.exit {
        // castor's own errors say what to do.
        Exit::Auth if !names.is_empty() && !agent.is_castor() => {
            Failure::new(Exit::Auth, format!("{} (the agent offers: {})", failure.message, listed(&names)))
        }
        _ => failure,
    }
}

fn listed(names: &[&str]) -> String {
    match names {
        [] => "none".to_owned(),
        _ => clean_line(&names.join(", "), 300),
    }
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
