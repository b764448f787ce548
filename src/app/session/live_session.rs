//! A live session: its engine, its log and its client's view.

use std::sync::Arc;

use crate::{
    app::session::{session_resources::SessionResources, trust::PendingTrust},
    base::money::Money,
    engine::session::Session,
    wire::acp::{
        options::ChosenOptions,
        updates::{ClientProfile, SessionView},
    },
    world::store::SessionLog,
};

pub struct LiveSession {
    pub session: Session,
    pub log: SessionLog,
    pub view: SessionView,
    pub profile: ClientProfile,
    pub resources: Arc<SessionResources>,
    /// The commands that the client knows of; `None`: it does not know the session yet.
    pub commands: Option<Vec<&'static str>>,
    /// What the user is to decide about the session's folder, as it was when the session began.
    pub pending_trust: Option<Box<PendingTrust>>,
}

impl LiveSession {
    /// What is chosen now, for the client.
    pub fn chosen_options(&self) -> ChosenOptions {
        let record = self.session.record();
        ChosenOptions { mode: record.mode, model: record.model.clone(), tuning: record.tuning, limits: record.limits() }
    }

    /// How full the context is, in tokens, of how many; and what all calls cost.
    pub fn context_usage(&self) -> (Option<(u64, u64)>, Option<Money>) {
        let spent = &self.session.record().spent;
        (spent.last.map(|(usage, size)| (usage.total, size)), spent.cost_with(None))
    }
}
