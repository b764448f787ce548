//! A live session: its engine, its log and its client's view.

use std::{collections::BTreeMap, sync::Arc};

use crate::session::{
    events::followers::Followers, session_basis::SessionBasis, session_resources::SessionResources, trust::PendingTrust,
};
use castor_base::{
    ids::{EffectId, PromptId, SessionId},
    money::Money,
    path::AbsPath,
};
use castor_engine::{commands::file_commands::OfferedCommand, session::Session, step::Effect};
use castor_hands::secrets::Env;
use castor_store::sessions::SessionLog;
use castor_tools::workspace::watched_files::{WatchedFiles, WatchedKind};
use castor_wire::acp::{
    drafts::quota::QuotaPool,
    options::ChosenOptions,
    updates::{ClientProfile, SessionView},
};

pub struct LiveSession {
    pub session: Session,
    pub log: SessionLog,
    pub view: SessionView,
    pub profile: ClientProfile,
    pub resources: Arc<SessionResources>,
    /// The commands that the client knows of; `None`: it does not know the session yet.
    pub commands: Option<Vec<OfferedCommand>>,
    pub definitions: DefinitionState,
    /// The parent of a sub-agent.
    pub parent: Option<ParentLink>,
    /// The user's pending decision about the session's folder, as it was when the session began.
    pub pending_trust: Option<Box<PendingTrust>>,
    /// Followers of its events and of those of its sub-agents.
    pub followers: Followers,
    /// The prompt at hand has a model of its own.
    pub has_prompt_model: bool,
    pub extras: ClientExtras,
}

/// The state of the last look at files that it goes by.
#[derive(Default)]
pub struct DefinitionState {
    /// `None`: nobody looked yet.
    pub watched: Option<WatchedFiles>,
    /// They stay what they were when the session began.
    pub is_fixed: bool,
    /// The basis that the session was built from; `None`: a sub-agent.
    pub basis: Option<Box<SessionBasis>>,
}

/// State that extensions of the protocol keep for their client.
#[derive(Default)]
pub struct ClientExtras {
    /// The quotas that the client read last, and the time.
    pub told_quota: Option<(u64, Vec<QuotaPool>)>,
    /// The prompts of whose files it wants a report, with the report's id.
    pub file_reports: BTreeMap<PromptId, String>,
    /// The hash of the credential that the user is asked about.
    pub refused_credential: Option<String>,
    /// The turn that runs, for a client of version 2.
    pub turn: Option<ForegroundTurn>,
}

/// A turn that a client of version 2 was told of.
#[derive(Debug)]
pub struct ForegroundTurn {
    /// The prompt that began it.
    pub prompt: PromptId,
    /// The prompt is part of the conversation, and its request is answered.
    pub is_inserted: bool,
    /// The user has a question of it.
    pub waits: bool,
}

/// The call that started a sub-agent.
pub struct ParentLink {
    /// The session above, which is a sub-agent's itself perhaps.
    pub session: SessionId,
    pub effect: EffectId,
    /// The run of the call.
    pub run: Effect,
    /// The call still waits for its end.
    pub is_wanted: bool,
    /// It was told that the sub-agent waits for the user.
    pub is_told_to_wait: bool,
}

impl LiveSession {
    /// A session that the user speaks to, and that its client knows nothing of yet.
    pub fn new(
        session: Session,
        log: SessionLog,
        (profile, view): (ClientProfile, SessionView),
        resources: Arc<SessionResources>,
    ) -> Self {
        Self {
            session,
            log,
            view,
            profile,
            resources,
            commands: None,
            definitions: DefinitionState::default(),
            parent: None,
            pending_trust: None,
            followers: Followers::default(),
            has_prompt_model: false,
            extras: ClientExtras::default(),
        }
    }

    /// It was built: what its files say from now on is news.
    pub fn begin_watching(&mut self, env: &Env, basis: SessionBasis) {
        self.definitions.basis = Some(Box::new(basis));
        let memory = &self.resources.model_input.memory;
        self.definitions.watched = Some(WatchedFiles::new(env, &self.resources.cwd, memory));
    }

    /// The files that changed since the last look.
    pub fn changed_files(&mut self, env: &Env) -> Vec<(WatchedKind, AbsPath)> {
        let memory = &self.resources.model_input.memory;
        self.definitions.watched.as_mut().map(|it| it.changes(env, memory)).unwrap_or_default()
    }

    /// A prompt is to end with a report on its files.
    pub fn keep_report_request(&mut self, prompt: PromptId, request: Option<String>) {
        if let Some(request) = request.filter(|_| self.profile.features.air.file_change_report) {
            self.extras.file_reports.insert(prompt, request);
        }
    }

    /// The options that are chosen now, for the client.
    pub fn chosen_options(&self) -> ChosenOptions {
        let record = self.session.record();
        ChosenOptions {
            mode: record.lasting_mode(),
            model: record.lasting_model().to_owned(),
            tuning: record.tuning,
            limits: record.lasting_limits(),
            agent: record.chosen_agent().map(str::to_owned),
        }
    }

    /// The usage of the context: tokens, of how many; and the cost of all calls.
    pub fn context_usage(&self) -> (Option<(u64, u64)>, Option<Money>) {
        let spent = &self.session.record().spent;
        (spent.last.map(|(usage, size)| (usage.total, size)), spent.cost_with(None))
    }
}
