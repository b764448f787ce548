//! One session of the host: its state trees, what runs in it, and what waits for an answer.

use ahp::ahp_types::state::{SessionChatSummary, SessionSummary};

use super::{
    Trees, acts, config::SessionOffer, content::SessionContents, messages::uri_of, open_requests::OpenRequests,
    turn_progress::TurnProgress,
};
use crate::ahp::Channel;
use crate::ahp::clients::channel::PROVIDER;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionStage {
    /// Its history comes; nobody sees it yet.
    Opening,
    Open,
    /// The agent ended, or closed the session, which is opened again before its next prompt.
    Dormant,
    /// It is closed, and opened again with other folders.
    Reopening,
}

pub struct HostedSession {
    pub id: String,
    pub cwd: String,
    pub created_at: String,
    pub stage: SessionStage,
    pub trees: Trees,
    pub turn: TurnProgress,
    pub requests: OpenRequests,
    pub offer: SessionOffer,
    pub contents: SessionContents,
    /// The summary as clients of the root know it; `None`: there is no turn yet, and they know nothing.
    pub announced: Option<SummaryFacts>,
    /// The number of the action before which its state began to be known.
    pub known_since: u64,
    /// The time since which no client is subscribed.
    pub idle_since_ms: u64,
}

/// Members of a summary that change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummaryFacts {
    pub title: String,
    pub status: u32,
    pub activity: Option<String>,
    pub modified_at: String,
    pub n_annotations: usize,
}

impl HostedSession {
    pub fn new(id: &str, (now_ms, known_since): (u64, u64)) -> Self {
        let time = acts::time(now_ms);
        Self {
            id: id.to_owned(),
            cwd: String::new(),
            trees: Trees::new(id, &time),
            created_at: time,
            stage: SessionStage::Opening,
            turn: TurnProgress::default(),
            requests: OpenRequests::default(),
            offer: SessionOffer::default(),
            contents: SessionContents::default(),
            announced: None,
            known_since,
            idle_since_ms: now_ms,
        }
    }

    pub fn is_opening(&self) -> bool {
        self.stage == SessionStage::Opening
    }

    /// Whether nobody ever said anything here.
    pub fn is_empty(&self) -> bool {
        !self.trees.has_turns() && !self.is_opening()
    }

    /// A turn runs, or one that was cancelled has not ended in the agent.
    pub fn is_busy(&self) -> bool {
        self.trees.active_turn().is_some() || self.turn.n_cancelled > 0
    }

    /// The turn that what comes belongs to.
    pub fn listening_turn(&self) -> Option<String> {
        self.trees.active_turn().filter(|_| self.turn.n_cancelled == 0).map(str::to_owned)
    }

    pub fn chat_uri(&self) -> String {
        Channel::Chat(self.id.clone()).uri()
    }

    pub fn facts(&self) -> SummaryFacts {
        SummaryFacts {
            title: self.trees.session.title.clone(),
            status: self.trees.session.status,
            activity: self.trees.session.activity.clone(),
            modified_at: self.trees.chat.modified_at.clone(),
            n_annotations: self.trees.annotations.annotations.len(),
        }
    }

    pub fn summary(&self) -> SessionSummary {
        let session = &self.trees.session;
        SessionSummary {
            title: session.title.clone(),
            status: session.status,
            activity: session.activity.clone(),
            working_directories: session.working_directories.clone(),
            annotations: Some(self.trees.annotations_summary(&self.id)),
            created_at: self.created_at.clone(),
            modified_at: self.trees.chat.modified_at.clone(),
            ..new_summary(&self.id, vec![self.chat_summary()])
        }
    }

    pub fn chat_summary(&self) -> SessionChatSummary {
        chat_summary(&self.id, &self.trees.chat.title, self.trees.chat.status)
    }

    pub fn set_folders(&mut self, cwd: &str, more: &[String]) {
        cwd.clone_into(&mut self.cwd);
        let all = std::iter::once(cwd).chain(more.iter().map(String::as_str));
        self.trees.session.working_directories = Some(all.map(uri_of).collect());
    }

    /// Sets what the catalog knows, while no client sees the session yet.
    pub fn set_flags(&mut self, is_read: bool, is_archived: bool) {
        for it in [acts::chat_read(is_read), acts::chat_archived(is_archived)] {
            self.trees.reduce(&it);
        }
        let status = self.trees.chat.status;
        self.trees.session.status = status;
        self.trees.session.chats.iter_mut().for_each(|it| it.status = status);
    }
}

/// A summary without anything that changes.
pub fn new_summary(session: &str, chats: Vec<SessionChatSummary>) -> SessionSummary {
    with_none!(SessionSummary {
        provider: PROVIDER.to_owned(),
        title: String::new(),
        status: 0,
        resource: Channel::Session(session.to_owned()).uri(),
        created_at: String::new(),
        modified_at: String::new(),
        default_chat: chats.first().map(|it| it.resource.clone()),
        chats: Some(chats),
    } activity origin project working_directories annotations changes meta)
}

pub fn chat_summary(session: &str, title: &str, status: u32) -> SessionChatSummary {
    with_none!(SessionChatSummary {
        resource: Channel::Chat(session.to_owned()).uri(),
        title: title.to_owned(),
        status: Some(status),
    } origin interactivity changes)
}
