//! Choices of a session: its mode, model, limits and agent, those of one prompt, and what agents left for later.

use std::collections::BTreeMap;

use super::Record;
use castor_base::{
    agent::ClientAgent,
    client_settings::ClientPrompt,
    event::{AgentEvent, EventKind},
    host_tools::HostTools,
    limits::Limits,
    log::{Mode, Principal},
    prompt_options::{AnswerForm, PromptModel, PromptOptions},
};

/// Choices of the user or a client in a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionChoices {
    /// The mode that plan mode took the place of.
    pub(super) before_plan: Option<Mode>,
    /// The limits of turns and session.
    pub(super) limits: Option<Limits>,
    /// A client's title.
    pub(super) client_title: Option<String>,
    pub(super) client_prompt: Option<ClientPrompt>,
    /// The owner of the session from the next prompt on; `None`: none was chosen.
    pub(super) next_agent: Option<Principal>,
    /// A definition that a client brought.
    pub(super) client_agent: Option<ClientAgent>,
    /// Agents that were switched on or off.
    pub(super) switched_agents: BTreeMap<String, bool>,
    /// Skills that were switched on or off.
    pub(super) switched_skills: BTreeMap<String, bool>,
    /// Memory of runs of agents that are not castor's, for the next ones.
    pub(super) peer_memory: BTreeMap<String, String>,
    /// The lasting choices while a prompt has options of its own; `None`: no prompt has any.
    pub(super) for_prompt: Option<Box<LastingChoices>>,
}

/// The choices that hold again when a prompt is over; `None`: it has none of its own, or another was chosen since.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LastingChoices {
    pub mode: Option<Mode>,
    pub model: Option<PromptModel>,
    pub limits: Option<Option<Limits>>,
    /// The only tools of the prompt.
    pub tools: Option<Vec<String>>,
    /// The prompt's questions may have fields.
    pub forms: bool,
    /// The tools and results that the host brought for the prompt.
    pub host: HostTools,
    /// The form of the prompt's answer.
    pub answer: Option<AnswerForm>,
}

/// Tells whether a prompt is over, and no other agent continues it.
pub(super) fn ends_prompt(event: &AgentEvent) -> bool {
    match &event.kind {
        EventKind::AgentEnd { data, .. } => data.as_ref().is_none_or(|it| it.get(TRANSFER).is_none()),
        _ => false,
    }
}

/// The key, in the `data` of the end of a stream, of the agent that continues the prompt.
pub const TRANSFER: &str = "transferToAgent";

impl SessionChoices {
    pub fn choose_agent(&mut self, agent: Option<String>, definition: Option<ClientAgent>) {
        self.client_agent = definition.or_else(|| self.client_agent.take());
        self.next_agent = Some(agent.map_or(Principal::Root, Principal::Agent));
    }

    pub fn switch_agent(&mut self, agent: String, enabled: bool) {
        self.switched_agents.insert(agent, enabled);
    }

    pub fn switch_skill(&mut self, skill: String, enabled: bool) {
        self.switched_skills.insert(skill, enabled);
    }

    pub fn keep_peer_memory(&mut self, agent: String, memory: String) {
        self.peer_memory.insert(agent, memory);
    }
}

impl Record {
    pub fn choices(&self) -> &SessionChoices {
        &self.past.choices
    }

    /// The mode that plan mode took the place of.
    pub fn mode_before_plan(&self) -> Option<Mode> {
        self.past.choices.before_plan
    }

    /// The limits, if the session has chosen any.
    pub fn limits(&self) -> Option<Limits> {
        self.past.choices.limits
    }

    /// The agent whose session it is from the next prompt on; `None`: castor's own, or a run.
    pub fn chosen_agent(&self) -> Option<&str> {
        self.agent_choice().flatten()
    }

    /// The same where an agent, or castor's own again, was ever chosen.
    pub fn agent_choice(&self) -> Option<Option<&str>> {
        self.past.choices.next_agent.as_ref().map(Principal::agent)
    }

    /// The system prompt that a client gave.
    pub fn client_prompt(&self) -> Option<&ClientPrompt> {
        self.past.choices.client_prompt.as_ref()
    }

    /// The agent that a client defined for this session.
    pub fn client_agent(&self) -> Option<&ClientAgent> {
        self.past.choices.client_agent.as_ref()
    }

    /// The session's switch of an agent: on, off, or not touched.
    pub fn agent_switch(&self, agent: &str) -> Option<bool> {
        self.past.choices.switched_agents.get(agent).copied()
    }

    /// The session's switch of a skill: on, off, or not touched.
    pub fn skill_switch(&self, skill: &str) -> Option<bool> {
        self.past.choices.switched_skills.get(skill).copied()
    }

    /// The memory that the last run of an agent that is not castor's left to the next one.
    pub fn peer_memory(&self, agent: &str) -> Option<&str> {
        self.past.choices.peer_memory.get(agent).map(String::as_str)
    }

    /// The mode after the prompt at hand.
    pub fn lasting_mode(&self) -> Mode {
        self.lasting().and_then(|it| it.mode).unwrap_or(self.mode)
    }

    /// The model after the prompt at hand.
    pub fn lasting_model(&self) -> &str {
        self.lasting().and_then(|it| it.model.as_ref()).map_or(&self.model, |it| &it.name)
    }

    /// The limits after the prompt at hand.
    pub fn lasting_limits(&self) -> Option<Limits> {
        self.lasting().and_then(|it| it.limits).unwrap_or_else(|| self.limits())
    }

    /// The only tools of the prompt at hand; `None`: all.
    pub fn prompt_tools(&self) -> Option<&[String]> {
        self.lasting()?.tools.as_deref()
    }

    /// The tools and results that the host brought for the prompt at hand, if it did.
    pub fn prompt_host(&self) -> Option<&HostTools> {
        self.lasting().map(|it| &it.host).filter(|it| !it.is_empty())
    }

    /// The form of the answer to the prompt at hand.
    pub fn answer_form(&self) -> Option<&AnswerForm> {
        self.lasting()?.answer.as_ref()
    }

    /// Tells whether the prompt at hand has a mode, model or limits of its own.
    pub fn has_prompt_options(&self) -> bool {
        self.lasting().is_some()
    }

    /// Tells whether the model has not answered the last request.
    pub fn owes_answer(&self) -> bool {
        self.past.history.ends_open()
    }

    /// Tells whether questions of the prompt at hand may have fields, whatever the client declared.
    pub fn shows_forms(&self) -> bool {
        self.lasting().is_some_and(|it| it.forms)
    }

    fn lasting(&self) -> Option<&LastingChoices> {
        self.past.choices.for_prompt.as_deref()
    }

    pub(super) fn choose_mode(&mut self, mode: Mode) {
        self.past.choices.for_prompt.iter_mut().for_each(|it| it.mode = None);
        self.set_mode(mode);
    }

    fn set_mode(&mut self, mode: Mode) {
        if mode == Mode::Plan && self.mode != Mode::Plan {
            self.past.choices.before_plan = Some(self.mode);
        }
        self.mode = mode;
    }

    pub(super) fn choose_model(&mut self, model: &str, window: u64) {
        self.past.choices.for_prompt.iter_mut().for_each(|it| it.model = None);
        self.set_model(model, window);
    }

    fn set_model(&mut self, model: &str, window: u64) {
        model.clone_into(&mut self.model);
        // The same conversation is to fit into another window.
        if let (Some((_, size)), 1..) = (&mut self.spent.last, window) {
            *size = window;
        }
        self.past.scale.forget_windows();
        self.past.refused.forget();
    }

    pub(super) fn choose_limits(&mut self, limits: Option<Limits>) {
        self.past.choices.for_prompt.iter_mut().for_each(|it| it.limits = None);
        self.past.choices.limits = limits;
    }

    pub(super) fn begin_prompt_options(&mut self, options: &PromptOptions) {
        self.end_prompt_options();
        let PromptOptions { mode, model, limits, tools, forms, host, answer } = options;
        let window = self.spent.last.map_or(0, |(_, size)| size);
        let before = LastingChoices {
            mode: mode.map(|_| self.mode),
            model: model.as_ref().map(|_| PromptModel { name: self.model.clone(), window }),
            limits: limits.map(|_| self.past.choices.limits),
            tools: tools.clone(),
            forms: *forms,
            host: host.clone(),
            answer: answer.clone(),
        };
        mode.iter().for_each(|it| self.set_mode(*it));
        model.iter().for_each(|it| self.set_model(&it.name, it.window));
        self.past.choices.limits = limits.or(self.past.choices.limits);
        self.past.choices.for_prompt = Some(Box::new(before));
    }

    pub(super) fn end_prompt_options(&mut self) {
        let Some(before) = self.past.choices.for_prompt.take() else { return };
        self.mode = before.mode.unwrap_or(self.mode);
        before.model.iter().for_each(|it| self.set_model(&it.name, it.window));
        before.limits.iter().for_each(|it| self.past.choices.limits = *it);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::Record;
    use castor_base::{
        limits::Limits,
        log::{Entry, Mode},
    };

    fn entry(mut fact: Value) -> Entry {
        fact["at"] = json!(1);
        serde_json::from_value(fact).unwrap()
    }

    fn event(kind: Value) -> Entry {
        let mut event = json!({"id": "t-0", "streamId": "t", "timestamp": 1});
        event.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
        entry(json!({"fact": "event", "event": event}))
    }

    /// Mode, model, requests of a turn, and whether there are tools of the prompt, after each of these entries.
    fn check(entries: Vec<Entry>, expected: &[(Mode, &str, Option<u64>, bool)]) {
        let created = json!({"fact": "created", "version": 2, "castor": "1", "session": "a", "cwd": "/w", "roots": ["/w"],
            "mode": "default", "model": "own"});
        let mut record = Record::begin(&entry(created)).unwrap();
        for (it, expected) in entries.iter().zip(expected) {
            record.apply(it);
            let requests = record.limits().and_then(|it| it.turn.requests);
            let found = (record.mode, record.model.as_str(), requests, record.prompt_tools().is_some());
            assert_eq!(found, *expected, "after {it:?}");
        }
    }

    fn options() -> Entry {
        let limits = json!(Limits::parse("requests=5").unwrap());
        entry(
            json!({"fact": "prompt_options", "options": {"mode": "plan", "model": {"name": "other"}, "limits": limits,
            "tools": ["read_file"]}}),
        )
    }

    #[test]
    fn options_of_a_prompt_end_with_it() {
        let (start, end) = (json!({"type": "agent_start"}), json!({"type": "agent_end", "reason": "aborted"}));
        let transfer = json!({"type": "agent_end", "reason": "completed", "data": {super::TRANSFER: "helper"}});
        let (own, of_prompt) = ((Mode::Default, "own", None, false), (Mode::Plan, "other", Some(5), true));
        check(
            vec![
                options(),
                event(start.clone()),
                event(transfer),
                event(start.clone()),
                event(end.clone()),
                event(start),
            ],
            &[of_prompt, of_prompt, of_prompt, of_prompt, own, own],
        );
        // What is chosen meanwhile stays.
        let mode = entry(json!({"fact": "mode", "mode": "yolo"}));
        let limits = entry(json!({"fact": "limits", "limits": Limits::parse("requests=7").unwrap()}));
        check(
            vec![options(), mode, limits, event(end)],
            &[
                of_prompt,
                (Mode::Yolo, "other", Some(5), true),
                (Mode::Yolo, "other", Some(7), true),
                (Mode::Yolo, "own", Some(7), false),
            ],
        );
    }
}
