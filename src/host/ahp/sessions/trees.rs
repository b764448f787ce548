//! State trees of a session, as the protocol's reducers make them.

use std::collections::{BTreeMap, BTreeSet};

use ahp::{
    ahp_types::state,
    reducers::{self, ReduceOutcome},
};
use serde::{Deserialize, Serialize};

use super::{Tree, TreeAction, acts::number, messages::uri_of};
use crate::ahp::Channel;
use crate::ahp::clients::channel::PROVIDER;

pub struct Trees {
    pub session: state::SessionState,
    pub chat: state::ChatState,
    pub changes: state::ChangesetState,
    pub annotations: state::AnnotationsState,
    pub marks: ChangesetMarks,
}

/// What users did with changed files, by the files' URIs and what was changed. The session's own state keeps all of that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChangesetMarks {
    pub reviewed: BTreeMap<String, String>,
    /// The checkpoints of these changes stay.
    pub undone: BTreeSet<(String, String)>,
}

impl Trees {
    pub fn new(id: &str, time: &str) -> Self {
        let chat = new_chat(id, time);
        let summary = with_none!(state::ChatSummary {
            resource: chat.resource.clone(),
            title: String::new(),
            status: chat.status,
            modified_at: time.to_owned(),
        } activity changes origin movable interactivity working_directories);
        Self {
            session: state::SessionState { chats: vec![summary], ..new_session(id) },
            chat,
            changes: state::ChangesetState {
                status: state::ChangesetStatus::Ready,
                error: None,
                files: Vec::new(),
                operations: None,
            },
            annotations: state::AnnotationsState { annotations: Vec::new() },
            marks: ChangesetMarks::default(),
        }
    }

    /// Takes an action; returns whether the trees changed.
    pub fn reduce(&mut self, act: &TreeAction) -> bool {
        let outcome = match act.tree {
            Tree::Session => reducers::apply_action_to_session(&mut self.session, &act.action),
            Tree::Chat => reducers::apply_action_to_chat(&mut self.chat, &act.action),
            Tree::Changes => reducers::apply_action_to_changeset(&mut self.changes, &act.action),
            Tree::Annotations => reducers::apply_action_to_annotations(&mut self.annotations, &act.action),
        };
        outcome == ReduceOutcome::Applied
    }

    /// The turn that runs.
    pub fn active_turn(&self) -> Option<&str> {
        self.chat.active_turn.as_ref().map(|it| it.id.as_str())
    }

    pub fn has_turns(&self) -> bool {
        self.active_turn().is_some() || !self.chat.turns.is_empty()
    }

    /// The answer of the running turn so far.
    fn parts(&self) -> impl DoubleEndedIterator<Item = &state::ResponsePart> {
        self.chat.active_turn.iter().flat_map(|it| &it.response_parts)
    }

    /// A call of the answer so far.
    pub fn call_state(&self, call: &str) -> Option<&state::ToolCallState> {
        self.parts().rev().find_map(|it| match it {
            state::ResponsePart::ToolCall(it) if call_id(&it.tool_call) == call => Some(&it.tool_call),
            _ => None,
        })
    }

    /// A request for input in the answer so far.
    pub fn input_request(&self, id: &str) -> Option<&state::ChatInputRequest> {
        self.parts().find_map(|it| match it {
            state::ResponsePart::InputRequest(it) if it.request.id == id => Some(&it.request),
            _ => None,
        })
    }

    /// Counts of the annotations of a session.
    pub fn annotations_summary(&self, session: &str) -> state::AnnotationsSummary {
        let all = &self.annotations.annotations;
        state::AnnotationsSummary {
            resource: Channel::Annotations(session.to_owned()).uri(),
            annotation_count: number(all.len()),
            entry_count: number(all.iter().map(|it| it.entries.len()).sum::<usize>()),
        }
    }
}

fn call_id(it: &state::ToolCallState) -> &str {
    match it {
        state::ToolCallState::Streaming(it) => &it.tool_call_id,
        state::ToolCallState::PendingConfirmation(it) => &it.tool_call_id,
        state::ToolCallState::Running(it) => &it.tool_call_id,
        state::ToolCallState::AuthRequired(it) => &it.tool_call_id,
        state::ToolCallState::PendingResultConfirmation(it) => &it.tool_call_id,
        state::ToolCallState::Completed(it) => &it.tool_call_id,
        state::ToolCallState::Cancelled(it) => &it.tool_call_id,
        state::ToolCallState::Unknown(_) => "",
    }
}

fn first_status() -> u32 {
    (state::SessionStatus::Idle | state::SessionStatus::IsRead).bits()
}

fn new_session(id: &str) -> state::SessionState {
    with_none!(state::SessionState {
        provider: PROVIDER.to_owned(),
        title: String::new(),
        status: first_status(),
        working_directories: Some(vec![uri_of("")]),
        lifecycle: state::SessionLifecycle::Ready,
        active_clients: Vec::new(),
        chats: Vec::new(),
        default_chat: Some(Channel::Chat(id.to_owned()).uri()),
        changesets: Some(catalogue(id)),
    } activity origin project annotations creation_error server_tools config customizations input_needed
        meta)
}

/// The changes of a session, by the name that stands before a client subscribes.
fn catalogue(session: &str) -> Vec<state::Changeset> {
    vec![state::Changeset {
        label: "Changes of this session".to_owned(),
        uri_template: Channel::Changes(session.to_owned()).uri(),
        description: None,
        change_kind: "session".to_owned(),
        capabilities: Some(state::ChangesetCapabilities { review: Some(serde_json::Map::new()) }),
    }]
}

fn new_chat(id: &str, time: &str) -> state::ChatState {
    with_none!(state::ChatState {
        resource: Channel::Chat(id.to_owned()).uri(),
        title: String::new(),
        status: first_status(),
        modified_at: time.to_owned(),
        turns: Vec::new(),
    } activity changes origin movable interactivity working_directories changesets background_work
        canvases turns_next_cursor active_turn steering_message queued_messages draft meta)
}
