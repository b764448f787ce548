//! ACP session config options: mode, model and model parameters.

use agent_client_protocol_schema::v1::{
    SessionConfigOption, SessionConfigOptionCategory as Category, SessionConfigOptionValue, SessionConfigSelectOption,
    SetSessionConfigOptionRequest, SetSessionConfigOptionResponse,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use castor_base::{
    ids::SessionId,
    limits::Limits,
    log::{Fact, Mode, ThoughtLevel, Tuning},
    shown_text::show_line,
};

/// Options that a session offers to its client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferedOptions {
    pub modes: Vec<Mode>,
    /// Ids and names.
    pub models: Vec<(String, String)>,
    /// Whether the models on offer think; a scripted one does not.
    pub thinking: bool,
    /// Whether the client knows boolean options.
    pub booleans: bool,
    /// As configured.
    pub limits: Limits,
    /// Names, and names for people.
    pub agents: Vec<(String, String)>,
}

/// The current choices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenOptions {
    pub mode: Mode,
    pub model: String,
    pub tuning: Tuning,
    /// Where they were chosen in the session.
    pub limits: Option<Limits>,
    /// `None`: castor's own.
    pub agent: Option<String>,
}

impl ChosenOptions {
    /// Whether the fact is a choice, which holds then.
    pub fn apply_fact(&mut self, fact: &Fact) -> bool {
        match fact {
            Fact::Model { model, .. } => self.model.clone_from(model),
            Fact::Tuning { tuning } => self.tuning = *tuning,
            Fact::Limits { limits } => self.limits = *limits,
            // A session that begins as an agent's says so in its answer.
            Fact::Agent { agent, .. } if *agent != self.agent => self.agent.clone_from(agent),
            _ => return false,
        }
        true
    }
}

/// One choice of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionChoice {
    Mode(Mode),
    Model(String),
    Tuning(Tuning),
    Limits(Limits),
    Agent(Option<String>),
}

pub const MODE: &str = "mode";
pub const MODEL: &str = "model";
const THOUGHT_LEVEL: &str = "thought_level";
const SHOW_THOUGHTS: &str = "show_thoughts";
pub const LIMITS: &str = "limits";
const AGENT: &str = "agent";
/// The agent that is castor's own.
pub const DEFAULT_AGENT: &str = "default";

/// The complete list, as every answer and update carries it.
pub fn config_options(offer: &OfferedOptions, chosen: &ChosenOptions) -> Vec<SessionConfigOption> {
    let modes = offer.modes.iter().map(|it| {
        let (name, description) = mode_words(*it);
        SessionConfigSelectOption::new(it.as_str(), name).description(description.to_owned())
    });
    // What is chosen need not be listed, but a client shows no value that is not.
    let unlisted = (!offer.models.iter().any(|(id, _)| *id == chosen.model)).then_some((&chosen.model, &chosen.model));
    let models = unlisted.into_iter().chain(offer.models.iter().map(|(id, name)| (id, name)));
    let models = models.map(|(id, name)| SessionConfigSelectOption::new(id.clone(), show_line(name)));
    let mut res = vec![
        SessionConfigOption::select(MODE, "Mode", chosen.mode.as_str(), modes.collect::<Vec<_>>())
            .description("What castor does without asking".to_owned())
            .category(Category::Mode),
        SessionConfigOption::select(MODEL, "Model", chosen.model.clone(), models.collect::<Vec<_>>())
            .category(Category::Model),
    ];
    if offer.thinking {
        let levels = ThoughtLevel::ALL.iter().map(|it| SessionConfigSelectOption::new(it.as_str(), level_name(*it)));
        res.push(
            SessionConfigOption::select(
                THOUGHT_LEVEL,
                "Thinking",
                chosen.tuning.thinking.as_str(),
                levels.collect::<Vec<_>>(),
            )
            .description("How much the model thinks before it answers".to_owned())
            .category(Category::ThoughtLevel),
        );
    }
    if offer.thinking && offer.booleans {
        res.push(
            SessionConfigOption::boolean(SHOW_THOUGHTS, "Show thoughts", chosen.tuning.thoughts)
                .description("Whether castor shows the model's thoughts".to_owned())
                .category(Category::ModelConfig),
        );
    }
    let limits = chosen.limits.unwrap_or(offer.limits);
    // Who has none needs no picker for them; the option can be set nevertheless.
    if !limits.is_none() || !offer.limits.is_none() {
        let mut values = vec![offer.limits, limits, Limits::default()];
        values.sort_by_key(Limits::to_string);
        values.dedup();
        let values = values.iter().map(|it| SessionConfigSelectOption::new(it.to_string(), limits_name(it, offer)));
        res.push(
            SessionConfigOption::select(LIMITS, "Limits", limits.to_string(), values.collect::<Vec<_>>())
                .description("How far a turn and the session may go".to_owned()),
        );
    }
    res.extend(agent_option(offer, chosen.agent.as_deref()));
    res
}

fn agent_option(offer: &OfferedOptions, chosen: Option<&str>) -> Option<SessionConfigOption> {
    let unlisted = chosen.filter(|it| !offer.agents.iter().any(|(name, _)| name == it));
    if offer.agents.is_empty() && unlisted.is_none() {
        return None;
    }
    let unlisted = unlisted.map(|it| (it, it));
    let agents = offer.agents.iter().map(|(name, title)| (name.as_str(), title.as_str()));
    let values = [(DEFAULT_AGENT, "castor")].into_iter().chain(unlisted).chain(agents);
    let values = values.map(|(name, title)| SessionConfigSelectOption::new(name.to_owned(), show_line(title)));
    let current = chosen.unwrap_or(DEFAULT_AGENT).to_owned();
    let option = SessionConfigOption::select(AGENT, "Agent", current, values.collect::<Vec<_>>());
    Some(option.description("The agent that answers from the next prompt on".to_owned()))
}

fn limits_name(limits: &Limits, offer: &OfferedOptions) -> String {
    match limits {
        it if it.is_none() => "No limits".to_owned(),
        it if *it == offer.limits => format!("As configured: {it}"),
        it => it.to_string(),
    }
}

pub fn response(offer: &OfferedOptions, chosen: &ChosenOptions) -> SetSessionConfigOptionResponse {
    SetSessionConfigOptionResponse::new(config_options(offer, chosen))
}

/// A request of session/set_config_option, not yet held against what is on offer.
#[derive(Debug)]
pub struct SetOptionParams {
    pub session: SessionId,
    option: String,
    value: SessionConfigOptionValue,
}

/// Reads session/set_config_option.
///
/// # Errors
/// See [`super::params`].
pub fn read_set_option(params: Option<&RawValue>) -> Result<SetOptionParams, String> {
    let it: SetSessionConfigOptionRequest = super::params(params)?;
    Ok(SetOptionParams {
        session: SessionId::from(&*it.session_id.0),
        option: it.config_id.to_string(),
        value: it.value,
    })
}

/// Reads session/set_model, which older clients send.
///
/// # Errors
/// See [`super::params`].
pub fn read_set_model(params: Option<&RawValue>) -> Result<SetOptionParams, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct SetModel {
        session_id: String,
        model_id: String,
    }
    let it: SetModel = super::params(params)?;
    let value = SessionConfigOptionValue::ValueId { value: it.model_id.into() };
    Ok(SetOptionParams { session: it.session_id.into(), option: MODEL.to_owned(), value })
}

impl SetOptionParams {
    pub fn new(session: SessionId, option: &str, value: SessionConfigOptionValue) -> Self {
        Self { session, option: option.to_owned(), value }
    }

    /// What it asks for, if that is on offer.
    ///
    /// # Errors
    /// Names what there is instead.
    pub fn choice(&self, offer: &OfferedOptions, chosen: &ChosenOptions) -> Result<OptionChoice, String> {
        let id = match &self.value {
            SessionConfigOptionValue::ValueId { value } => Some(value.to_string()),
            _ => None,
        };
        match (self.option.as_str(), id, &self.value) {
            (MODE, Some(id), _) => match Mode::parse(&id).filter(|it| Mode::OFFERED.contains(it)) {
                Some(mode) => Ok(OptionChoice::Mode(mode)),
                None => Err(unknown_value(MODE, &id, Mode::OFFERED.iter().map(|it| it.as_str()))),
            },
            (MODEL, Some(id), _) => match offer.models.iter().any(|(it, _)| *it == id) {
                true => Ok(OptionChoice::Model(id)),
                false => Err(unknown_value(MODEL, &id, offer.models.iter().map(|(it, _)| it.as_str()))),
            },
            (THOUGHT_LEVEL, Some(id), _) if offer.thinking => match ThoughtLevel::parse(&id) {
                Some(thinking) => Ok(OptionChoice::Tuning(Tuning { thinking, ..chosen.tuning })),
                None => Err(unknown_value(THOUGHT_LEVEL, &id, ThoughtLevel::ALL.iter().map(|it| it.as_str()))),
            },
            (SHOW_THOUGHTS, _, SessionConfigOptionValue::Boolean { value }) if offer.thinking => {
                Ok(OptionChoice::Tuning(Tuning { thoughts: *value, ..chosen.tuning }))
            }
            (AGENT, Some(id), _) if id == DEFAULT_AGENT => Ok(OptionChoice::Agent(None)),
            (AGENT, Some(id), _) => match offer.agents.iter().any(|(it, _)| *it == id) {
                true => Ok(OptionChoice::Agent(Some(id))),
                false => {
                    let known = offer.agents.iter().map(|(it, _)| it.as_str());
                    Err(unknown_value(AGENT, &id, std::iter::once(DEFAULT_AGENT).chain(known)))
                }
            },
            (LIMITS, Some(text), _) => Limits::parse(&text).map(OptionChoice::Limits).map_err(|it| it.to_string()),
            (option @ (MODE | MODEL | THOUGHT_LEVEL | SHOW_THOUGHTS | LIMITS | AGENT), ..) => {
                Err(format!("the option {option:?} does not take this value; choose one that it was offered with"))
            }
            (option, ..) => {
                let known = [MODE, MODEL, THOUGHT_LEVEL, SHOW_THOUGHTS, LIMITS, AGENT];
                Err(unknown_value("option", option, known.into_iter()))
            }
        }
    }
}

fn unknown_value<'a>(what: &str, id: &str, known: impl Iterator<Item = &'a str>) -> String {
    format!("unknown {what} {id:?}; choose one of {}", known.collect::<Vec<_>>().join(", "))
}

/// A mode's name and what it does.
pub fn mode_words(mode: Mode) -> (&'static str, &'static str) {
    match mode {
        Mode::Plan => ("Plan", "Reads and plans; nothing changes before you accept the plan"),
        Mode::Default => ("Default", "Asks before it changes files or runs commands"),
        Mode::AutoEdit => ("Auto edit", "Edits files in the workspace without asking"),
        Mode::Auto => ("Auto", "Runs what is sandboxed and can be undone; asks about the rest"),
        Mode::Yolo => ("YOLO", "Asks only before irreversible or sensitive actions"),
    }
}

fn level_name(level: ThoughtLevel) -> &'static str {
    match level {
        ThoughtLevel::Auto => "Automatic",
        ThoughtLevel::Low => "Low",
        ThoughtLevel::Medium => "Medium",
        ThoughtLevel::High => "High",
    }
}
