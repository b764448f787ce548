//! Summaries of sessions: in lists, and as the root's clients learn that they changed.

use ahp::ahp_types::{
    ROOT_RESOURCE_URI,
    notifications::{PartialSessionSummary, SessionAddedParams, SessionRemovedParams, SessionSummaryChangedParams},
    state::{SessionChatSummary, SessionStatus, SessionSummary},
};
use serde_json::Value;

use super::{
    AhpHost,
    channel::{Channel, PROVIDER},
    hosted_session::{HostedSession, SummaryFacts, TreeAction},
    messages::file_uri,
};

impl HostedSession {
    pub fn has_turns(&self) -> bool {
        self.active_turn().is_some() || !self.trees.chat.turns.is_empty()
    }

    fn summary(&self) -> SessionSummary {
        let session = &self.trees.session;
        SessionSummary {
            provider: PROVIDER.to_owned(),
            title: session.title.clone(),
            status: session.status,
            activity: session.activity.clone(),
            origin: None,
            project: None,
            working_directories: session.working_directories.clone(),
            annotations: Some(super::annotations::summary(self)),
            resource: Channel::Session(self.id.clone()).uri(),
            created_at: self.created_at.clone(),
            modified_at: self.trees.chat.modified_at.clone(),
            changes: None,
            meta: None,
            chats: Some(vec![self.chat_summary()]),
            default_chat: Some(self.chat_uri()),
        }
    }

    fn chat_summary(&self) -> SessionChatSummary {
        SessionChatSummary {
            resource: self.chat_uri(),
            title: self.trees.chat.title.clone(),
            origin: None,
            interactivity: None,
            status: Some(self.trees.chat.status),
            changes: None,
        }
    }
}

impl AhpHost {
    /// A row of the agent's list; of a session that is open here the host knows more.
    pub(super) fn summary_of_row(&self, row: &Value) -> SessionSummary {
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let id = text("sessionId");
        if let Some(it) = self.sessions.get(&id).filter(|it| !it.is_opening()) {
            return it.summary();
        }
        let chat = Channel::Chat(id.clone()).uri();
        let status = self.catalog.status(&id);
        let chats = vec![SessionChatSummary {
            resource: chat.clone(),
            title: text("title"),
            origin: None,
            interactivity: None,
            status: Some(status),
            changes: None,
        }];
        SessionSummary {
            provider: PROVIDER.to_owned(),
            title: text("title"),
            status,
            activity: None,
            origin: None,
            project: None,
            working_directories: Some(
                std::iter::once(text("cwd"))
                    .chain(self.catalog.more_folders(&id).to_vec())
                    .map(|it| file_uri(&it))
                    .collect(),
            ),
            annotations: None,
            resource: Channel::Session(id).uri(),
            // The list has no other time.
            created_at: text("updatedAt"),
            modified_at: text("updatedAt"),
            changes: None,
            meta: None,
            chats: Some(chats),
            default_chat: Some(chat),
        }
    }

    /// Clients begin sessions before their users type anything, and take many of them back.
    pub(super) fn is_listed(&self, session: &str) -> bool {
        self.sessions.get(session).is_none_or(|it| it.is_opening() || it.announced.is_some())
    }

    fn announce_added(&mut self, session: &str) {
        let Some(hosted) = self.sessions.get_mut(session).filter(|it| it.has_turns()) else { return };
        hosted.announced = Some(hosted.facts());
        let params = SessionAddedParams { channel: ROOT_RESOURCE_URI.to_owned(), summary: hosted.summary() };
        self.broadcast(&Channel::Root, "root/sessionAdded", &params);
    }

    pub(super) fn announce_removed(&mut self, session: &str) {
        let session = Channel::Session(session.to_owned()).uri();
        let params = SessionRemovedParams { channel: ROOT_RESOURCE_URI.to_owned(), session };
        self.broadcast(&Channel::Root, "root/sessionRemoved", &params);
    }

    /// After actions: the session's status follows its chat's, and the root's clients learn what is new.
    pub(super) fn announce_summary(&mut self, session: &str) {
        let Some(hosted) = self.sessions.get_mut(session).filter(|it| !it.is_opening()) else { return };
        let (status, modified_at) = (hosted.trees.chat.status, hosted.trees.chat.modified_at.clone());
        let follows = hosted.trees.session.chats.iter().all(|it| it.status == status && it.modified_at == modified_at);
        hosted.trees.session.status = status;
        self.catalog.set_read(session, SessionStatus(status).contains(SessionStatus::IsRead));
        if !follows {
            let changes = serde_json::json!({ "status": status, "modifiedAt": modified_at });
            let chat = hosted.chat_uri();
            let action = serde_json::json!({ "type": "session/chatUpdated", "chat": chat, "changes": changes });
            self.emit_one(session, TreeAction::session(action));
        }
        let Some(hosted) = self.sessions.get_mut(session) else { return };
        let now = hosted.facts();
        let Some(before) = hosted.announced.replace(now.clone()) else {
            hosted.announced = None;
            return self.announce_added(session);
        };
        if before == now {
            return;
        }
        let changes = changes_between(&before, &now, hosted);
        let params = SessionSummaryChangedParams {
            channel: ROOT_RESOURCE_URI.to_owned(),
            session: Channel::Session(session.to_owned()).uri(),
            changes,
        };
        self.broadcast(&Channel::Root, "root/sessionSummaryChanged", &params);
    }
}

fn changes_between(before: &SummaryFacts, now: &SummaryFacts, hosted: &HostedSession) -> PartialSessionSummary {
    let is_other_chat = before.title != now.title || before.status != now.status;
    let annotations = (before.n_annotations != now.n_annotations).then(|| super::annotations::summary(hosted));
    PartialSessionSummary {
        provider: None,
        title: (before.title != now.title).then(|| now.title.clone()),
        status: (before.status != now.status).then_some(now.status),
        activity: (before.activity != now.activity).then(|| now.activity.clone().unwrap_or_default()),
        origin: None,
        project: None,
        working_directories: None,
        annotations,
        resource: None,
        created_at: None,
        modified_at: (before.modified_at != now.modified_at).then(|| now.modified_at.clone()),
        changes: None,
        meta: None,
        chats: is_other_chat.then(|| vec![hosted.chat_summary()]),
        default_chat: None,
    }
}
