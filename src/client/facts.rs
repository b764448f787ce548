//! Facts of a session at the moment: mode, model, options and usage, from events of its agent.

use castor_wire::acp::client::{ClientEvent, ContextUsage, OpenedAnswer, SessionOption};

#[derive(Debug, Default)]
pub struct SessionFacts {
    /// The mode's id; empty where the agent did not say.
    pub mode: String,
    /// Ids in the agent's order.
    pub modes: Vec<String>,
    pub model: String,
    /// How far the session may go.
    pub limits: Option<String>,
    pub options: Vec<SessionOption>,
    pub usage: ContextUsage,
}

impl SessionFacts {
    /// Takes the answer that opened the session.
    pub fn open(&mut self, answer: &OpenedAnswer) {
        let modes = answer.modes.as_ref();
        self.modes = modes.into_iter().flat_map(|it| &it.available_modes).map(|it| it.id.clone()).collect();
        if let Some(it) = modes.and_then(|it| it.current_mode_id.as_ref()) {
            self.mode.clone_from(it);
        }
        if let Some(it) = &answer.config_options {
            self.take_options(it);
        }
    }

    /// Takes an event of the session.
    pub fn take(&mut self, event: &ClientEvent) {
        match event {
            ClientEvent::Usage(it) => {
                self.usage.used = it.used.or(self.usage.used);
                self.usage.size = it.size.or(self.usage.size);
                self.usage.cost = it.cost.clone().or(self.usage.cost.take());
            }
            ClientEvent::Mode(it) => self.mode.clone_from(it),
            ClientEvent::Options(it) => self.take_options(it),
            ClientEvent::Chunk(..)
            | ClientEvent::Message(..)
            | ClientEvent::Call(_)
            | ClientEvent::CallPart(_)
            | ClientEvent::Terminal(_)
            | ClientEvent::TerminalOutput(_)
            | ClientEvent::Plan(_)
            | ClientEvent::Commands(_)
            | ClientEvent::Info(_)
            | ClientEvent::Notice(_)
            | ClientEvent::Aside(_)
            | ClientEvent::Subagent(_)
            | ClientEvent::State(_)
            | ClientEvent::Unknown(_) => (),
        }
    }

    pub fn take_options(&mut self, options: &[SessionOption]) {
        for it in options {
            let Some(value) = it.chosen().map(str::to_owned) else { continue };
            match it.subject() {
                "mode" => self.mode = value,
                "model" => self.model = value,
                "limits" => self.limits = Some(value).filter(|it| it != "none"),
                _ => (),
            }
        }
        self.options = options.to_vec();
    }
}
