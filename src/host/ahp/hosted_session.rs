//! One session of the host: its state trees, what runs in it, and what waits for an answer.

use std::collections::{BTreeMap, BTreeSet};

use ahp::{
    ahp_types::{
        actions::{ActionOrigin, StateAction},
        state::{
            AnnotationsState, Changeset, ChangesetCapabilities, ChangesetState, ChangesetStatus, ChatState,
            ChatSummary, SessionLifecycle, SessionState, SessionStatus,
        },
    },
    reducers::{self, ReduceOutcome},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    channel::{Channel, PROVIDER},
    config::SessionOffer,
    content::SessionContents,
    messages::file_uri,
    open_requests::OpenRequests,
    turn_progress::TurnProgress,
};

/// An action on one of a session's trees.
pub struct TreeAction {
    pub tree: Tree,
    pub action: StateAction,
    /// The client that dispatched it.
    pub origin: Option<ActionOrigin>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tree {
    Session,
    Chat,
    Changes,
    Annotations,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionStage {
    /// Its history comes; nobody sees it yet.
    Opening,
    Open,
    /// The agent ended, or closed it. The session is opened again before its next prompt.
    Dormant,
    /// It is closed, and opened again with other folders.
    Reopening,
}

pub struct Trees {
    pub session: SessionState,
    pub chat: ChatState,
    pub changes: ChangesetState,
    pub annotations: AnnotationsState,
    pub marks: ChangesetMarks,
}

/// What users did with changed files, by the files' URIs and what was changed. The session's own state keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChangesetMarks {
    pub reviewed: BTreeMap<String, String>,
    /// The checkpoints of these changes stay.
    pub undone: BTreeSet<(String, String)>,
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
    /// What clients of the root know of it; `None`: nothing, as it has no turn yet.
    pub announced: Option<SummaryFacts>,
    /// The number of the action before which its state began to be known.
    pub known_since: u64,
    /// Since when no client is subscribed to it.
    pub idle_since_ms: u64,
}

/// What of a session changes and is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummaryFacts {
    pub title: String,
    pub status: u32,
    pub activity: Option<String>,
    pub modified_at: String,
    pub n_annotations: usize,
}

impl TreeAction {
    pub fn new(tree: Tree, action: StateAction) -> Self {
        Self { tree, action, origin: None }
    }

    /// Of its JSON form, which has more members that are absent than present.
    pub fn chat(action: Value) -> Self {
        Self::of_json(Tree::Chat, action)
    }

    pub fn session(action: Value) -> Self {
        Self::of_json(Tree::Session, action)
    }

    pub fn of_json(tree: Tree, action: Value) -> Self {
        Self::new(tree, serde_json::from_value(action).unwrap_or(StateAction::Unknown(Value::Null)))
    }

    pub fn by(self, origin: ActionOrigin) -> Self {
        Self { origin: Some(origin), ..self }
    }
}

impl Tree {
    pub fn channel(self, session: &str) -> Channel {
        let session = session.to_owned();
        match self {
            Self::Session => Channel::Session(session),
            Self::Chat => Channel::Chat(session),
            Self::Changes => Channel::Changes(session),
            Self::Annotations => Channel::Annotations(session),
        }
    }
}

impl HostedSession {
    pub fn new(id: &str, cwd: &str, (time, known_since): (&str, u64)) -> Self {
        let trees = Trees::new(id, cwd, time);
        Self {
            id: id.to_owned(),
            cwd: cwd.to_owned(),
            created_at: time.to_owned(),
            stage: SessionStage::Opening,
            trees,
            turn: TurnProgress::default(),
            requests: OpenRequests::default(),
            offer: SessionOffer::default(),
            contents: SessionContents::default(),
            announced: None,
            known_since,
            idle_since_ms: 0,
        }
    }

    pub fn is_opening(&self) -> bool {
        self.stage == SessionStage::Opening
    }

    /// Whether it changed something.
    pub fn reduce(&mut self, act: &TreeAction) -> bool {
        let Trees { session, chat, changes, annotations, .. } = &mut self.trees;
        let outcome = match act.tree {
            Tree::Session => reducers::apply_action_to_session(session, &act.action),
            Tree::Chat => reducers::apply_action_to_chat(chat, &act.action),
            Tree::Changes => reducers::apply_action_to_changeset(changes, &act.action),
            Tree::Annotations => reducers::apply_action_to_annotations(annotations, &act.action),
        };
        outcome == ReduceOutcome::Applied
    }

    /// The turn that runs.
    pub fn active_turn(&self) -> Option<&str> {
        self.trees.chat.active_turn.as_ref().map(|it| it.id.as_str())
    }

    /// A turn runs, or one that was cancelled has not ended in the agent.
    pub fn is_busy(&self) -> bool {
        self.active_turn().is_some() || self.turn.n_cancelled > 0
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

    pub fn chat_uri(&self) -> String {
        Channel::Chat(self.id.clone()).uri()
    }
}

impl Trees {
    fn new(id: &str, cwd: &str, time: &str) -> Self {
        let chat = new_chat(id, time);
        let summary = ChatSummary {
            resource: chat.resource.clone(),
            title: String::new(),
            status: chat.status,
            activity: None,
            modified_at: time.to_owned(),
            changes: None,
            origin: None,
            movable: None,
            interactivity: None,
            working_directories: None,
        };
        Self {
            session: SessionState { chats: vec![summary], ..new_session(id, cwd) },
            chat,
            changes: ChangesetState {
                status: ChangesetStatus::Ready,
                error: None,
                files: Vec::new(),
                operations: None,
            },
            annotations: AnnotationsState { annotations: Vec::new() },
            marks: ChangesetMarks::default(),
        }
    }
}

fn first_status() -> u32 {
    (SessionStatus::Idle | SessionStatus::IsRead).bits()
}

fn new_session(id: &str, cwd: &str) -> SessionState {
    SessionState {
        provider: PROVIDER.to_owned(),
        title: String::new(),
        status: first_status(),
        activity: None,
        origin: None,
        project: None,
        working_directories: Some(vec![file_uri(cwd)]),
        annotations: None,
        lifecycle: SessionLifecycle::Ready,
        creation_error: None,
        server_tools: None,
        active_clients: Vec::new(),
        chats: Vec::new(),
        default_chat: Some(Channel::Chat(id.to_owned()).uri()),
        config: None,
        customizations: None,
        changesets: Some(catalogue(id)),
        input_needed: None,
        meta: None,
    }
}

/// What a session says of its changes before a client subscribes.
fn catalogue(session: &str) -> Vec<Changeset> {
    vec![Changeset {
        label: "Changes of this session".to_owned(),
        uri_template: Channel::Changes(session.to_owned()).uri(),
        description: None,
        change_kind: "session".to_owned(),
        capabilities: Some(ChangesetCapabilities { review: Some(serde_json::Map::new()) }),
    }]
}

pub fn new_chat(id: &str, time: &str) -> ChatState {
    ChatState {
        resource: Channel::Chat(id.to_owned()).uri(),
        title: String::new(),
        status: first_status(),
        activity: None,
        modified_at: time.to_owned(),
        changes: None,
        origin: None,
        movable: None,
        interactivity: None,
        working_directories: None,
        changesets: None,
        background_work: None,
        canvases: None,
        turns: Vec::new(),
        turns_next_cursor: None,
        active_turn: None,
        steering_message: None,
        queued_messages: None,
        draft: None,
        meta: None,
    }
}
