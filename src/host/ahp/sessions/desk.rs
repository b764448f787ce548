//! The desk at which a session is worked on: its trees change here, and its clients learn of it.

use ahp::ahp_types::{
    ROOT_RESOURCE_URI,
    actions::{PartialChatSummary, StateAction},
    notifications::{PartialSessionSummary, SessionAddedParams, SessionSummaryChangedParams},
    state::SessionStatus,
};
use serde_json::Value;

use super::{
    HostedSession, SessionStage, TreeAction, acts, catalog::SessionCatalog, config, hosted_session::SummaryFacts,
};
use crate::ahp::clients::hub_requests::ClientAct;
use crate::ahp::{Channel, Clients, HubOutcome};
use castor_wire::acp::client::SessionOption;

/// One session, with all that its changes reach.
pub struct SessionDesk<'h> {
    pub hosted: &'h mut HostedSession,
    pub catalog: &'h mut SessionCatalog,
    pub clients: &'h mut Clients,
}

impl SessionDesk<'_> {
    /// What a session did becomes the state of all that see it, in this order.
    pub fn emit(&mut self, acts: impl IntoIterator<Item = TreeAction>) {
        for act in acts {
            self.emit_one(act);
        }
        self.announce();
    }

    fn emit_one(&mut self, act: TreeAction) {
        if self.hosted.trees.reduce(&act) && !self.hosted.is_opening() {
            self.clients.send_action(act.tree.channel(&self.hosted.id), act.action, act.origin);
        }
    }

    pub fn reject(&mut self, from: u64, act: TreeAction, why: &str) {
        self.clients.reject(from, &self.hosted.id, act, why);
    }

    /// Takes the options of an answer, if there are some.
    pub fn take_options(&mut self, answer: Value) {
        let Some(options) = config::read_options(answer) else { return };
        let acts = self.hosted.take_options(options.clone());
        self.emit(acts);
        learn_models(self.clients, &options);
    }

    /// The agent did what a client wants to be so, or did not.
    pub fn follow_apply(&mut self, ClientAct { from, act }: ClientAct, outcome: HubOutcome) {
        match outcome {
            Ok(answer) => {
                self.note_archived(&act);
                self.emit([*act]);
                self.take_options(answer);
            }
            Err(it) => self.reject(from, *act, &it.message),
        }
    }

    /// The agent closed a session that it archived. The status of the session is that of its chat.
    fn note_archived(&mut self, act: &TreeAction) {
        let StateAction::SessionIsArchivedChanged(it) = &act.action else { return };
        self.catalog.set_archived(&self.hosted.id, it.is_archived);
        if it.is_archived {
            self.hosted.stage = SessionStage::Dormant;
        }
        self.emit([acts::chat_archived(it.is_archived)]);
    }

    /// After actions: the session's status follows its chat's, and the root's clients learn what is new.
    fn announce(&mut self) {
        if self.hosted.is_opening() {
            return;
        }
        let (status, modified_at) = (self.hosted.trees.chat.status, self.hosted.trees.chat.modified_at.clone());
        let session = &mut self.hosted.trees.session;
        let follows = session.chats.iter().all(|it| it.status == status && it.modified_at == modified_at);
        session.status = status;
        self.catalog.set_read(&self.hosted.id, SessionStatus(status).contains(SessionStatus::IsRead));
        if !follows {
            let changes = PartialChatSummary {
                status: Some(status),
                modified_at: Some(modified_at),
                ..PartialChatSummary::default()
            };
            self.emit_one(acts::chat_updated(self.hosted.chat_uri(), changes));
        }
        self.announce_summary();
    }

    fn announce_summary(&mut self) {
        let now = self.hosted.facts();
        let channel = ROOT_RESOURCE_URI.to_owned();
        match self.hosted.announced.replace(now.clone()) {
            Some(before) if before == now => (),
            Some(before) => {
                let session = Channel::Session(self.hosted.id.clone()).uri();
                let changes = changes_between(&before, now, self.hosted);
                let params = SessionSummaryChangedParams { channel, session, changes };
                self.clients.broadcast(&Channel::Root, "root/sessionSummaryChanged", &params);
            }
            None if self.hosted.trees.has_turns() => {
                let params = SessionAddedParams { channel, summary: self.hosted.summary() };
                self.clients.broadcast(&Channel::Root, "root/sessionAdded", &params);
            }
            None => self.hosted.announced = None,
        }
    }
}

/// The root lists the models that sessions offer.
pub fn learn_models(clients: &mut Clients, options: &[SessionOption]) {
    let agents = config::agents_with(options).filter(|it| *it != clients.root.agents);
    if let Some(agents) = agents {
        clients.emit_root(config::agents_changed(agents));
    }
}

fn changes_between(before: &SummaryFacts, now: SummaryFacts, hosted: &HostedSession) -> PartialSessionSummary {
    let is_other_chat = before.title != now.title || before.status != now.status;
    let is_other_count = before.n_annotations != now.n_annotations;
    PartialSessionSummary {
        annotations: is_other_count.then(|| hosted.trees.annotations_summary(&hosted.id)),
        chats: is_other_chat.then(|| vec![hosted.chat_summary()]),
        title: Some(now.title).filter(|it| *it != before.title),
        status: Some(now.status).filter(|it| *it != before.status),
        activity: (before.activity != now.activity).then(|| now.activity.unwrap_or_default()),
        modified_at: Some(now.modified_at).filter(|it| *it != before.modified_at),
        ..PartialSessionSummary::default()
    }
}
