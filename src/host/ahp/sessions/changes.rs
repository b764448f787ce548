//! Files that a session changed: the changeset that clients review, and the operation that undoes one.

use std::collections::BTreeMap;

use ahp::ahp_types::{
    actions::{ActionOrigin, ChangesetContentChangedAction, ChangesetFilesReviewChangedAction, StateAction},
    commands::{ChangesetOperationTarget, InvokeChangesetOperationParams, InvokeChangesetOperationResult},
    errors::ahp_error_codes as codes,
    state,
};
use serde::{Deserialize, Serialize};

use super::{
    SessionDesk, Tree, TreeAction, Trees,
    acts::castor_meta,
    messages::{path_of, uri_of},
};
use crate::ahp::clients::hub_requests::FileVersion;
use crate::ahp::{ClientRefusal, HubOutcome, Next, RequestOutcome, WaitingClient};
use castor_base::path::AbsPath;
use castor_wire::acp::client::{AgentRequest, CheckpointList, ListedCheckpoint, RewindAnswer, read_value};

const REVERT: &str = "revert";
/// The key under which the session keeps what users did with changed files.
pub const STATE_KEY: &str = "ahp_changes";

/// All that a session did to one file.
struct FileChanges {
    /// The checkpoint before the first change.
    first: String,
    is_new: bool,
    is_gone: bool,
    added: i64,
    removed: i64,
    n: usize,
}

/// castor's own facts about a changed file.
#[derive(Serialize, Deserialize)]
struct FileFacts {
    checkpoint: String,
    version: String,
}

impl FileFacts {
    fn of(file: &state::ChangesetFile) -> Option<Self> {
        Self::deserialize(file.meta.as_ref()?.get("castor")?).ok()
    }
}

impl FileChanges {
    fn version(&self) -> String {
        format!("{}+{}", self.first, self.n)
    }
}

/// The agent's checkpoints say which files changed, also by commands; edits in the answers have the texts.
pub fn follow_checkpoints(desk: &mut SessionDesk<'_>, outcome: HubOutcome) {
    let listed: Option<CheckpointList> = outcome.ok().and_then(|it| serde_json::from_value(it).ok());
    let Some(listed) = listed else { return };
    let files = desk.hosted.trees.changed_files(&desk.hosted.cwd, &listed.checkpoints);
    if files == desk.hosted.trees.changes.files {
        return;
    }
    let revert = with_none!(state::ChangesetOperation {
        id: REVERT.to_owned(),
        label: "Undo the changes of this file".to_owned(),
        scopes: vec![state::ChangesetOperationScope::Resource],
        confirmation: Some("The file becomes what it was before this session.".into()),
        icon: Some("discard".to_owned()),
        status: state::ChangesetOperationStatus::Idle,
    } description group error);
    let action = ChangesetContentChangedAction { files, operations: Some(vec![revert]) };
    desk.emit([TreeAction::new(Tree::Changes, StateAction::ChangesetContentChanged(Box::new(action)))]);
}

/// A client marks files as seen.
///
/// # Errors
/// The reason, in words.
pub fn review(
    desk: &mut SessionDesk<'_>,
    action: ChangesetFilesReviewChangedAction,
    origin: ActionOrigin,
) -> Result<(), String> {
    let Trees { changes, marks, .. } = &mut desk.hosted.trees;
    if !action.files.iter().any(|id| changes.files.iter().any(|it| it.id == *id)) {
        return Err("the changeset has none of these files".to_owned());
    }
    for it in changes.files.iter().filter(|it| action.files.contains(&it.id)) {
        match FileFacts::of(it).filter(|_| action.reviewed) {
            Some(facts) => _ = marks.reviewed.insert(it.id.clone(), facts.version),
            None => _ = marks.reviewed.remove(&it.id),
        }
    }
    keep_marks(desk);
    desk.emit([TreeAction::new(Tree::Changes, StateAction::ChangesetFilesReviewChanged(action)).by(origin)]);
    Ok(())
}

/// The session keeps the marks for its next client.
fn keep_marks(desk: &mut SessionDesk<'_>) {
    let id = desk.hosted.id.as_str();
    let request = AgentRequest::set_state(id, STATE_KEY, &desk.hosted.trees.marks);
    desk.clients.ask(id, Next::Nothing, &request);
}

/// A client wants the changes of a file undone.
pub fn invoke_operation(
    desk: &mut SessionDesk<'_>,
    asker: WaitingClient,
    params: &InvokeChangesetOperationParams,
) -> RequestOutcome {
    if params.operation_id != REVERT {
        return Err(ClientRefusal::params("the changeset has no such operation"));
    }
    let Some(ChangesetOperationTarget::Resource { resource: uri, .. }) = &params.target else {
        return Err(ClientRefusal::params("the operation is for one file: target is a resource"));
    };
    let file = desk.hosted.trees.changes.files.iter().find(|it| it.id == *uri);
    let (Some(FileFacts { checkpoint, version }), Some(path)) = (file.and_then(FileFacts::of), path_of(uri)) else {
        return Err(ClientRefusal::new(codes::NOT_FOUND, "the changeset has no such file"));
    };
    let id = desk.hosted.id.as_str();
    let next = Next::Revert(asker, FileVersion { uri: uri.clone(), version });
    desk.clients.ask(id, next, &AgentRequest::rewind_files(id, &checkpoint, &[path]));
    Ok(())
}

pub fn follow_revert(desk: &mut SessionDesk<'_>, asker: &WaitingClient, change: FileVersion, outcome: HubOutcome) {
    let result = revert_result(outcome);
    if result.is_ok() {
        desk.hosted.trees.marks.undone.insert((change.uri, change.version));
        keep_marks(desk);
    }
    desk.clients.settle_client(asker, result);
    read_changes(desk);
}

/// Asks the agent what the session changed in files.
pub fn read_changes(desk: &mut SessionDesk<'_>) {
    let id = desk.hosted.id.as_str();
    desk.clients.ask(id, Next::Checkpoints, &AgentRequest::Checkpoints(id.into()));
}

/// The answer to a client that wants a change undone.
pub fn revert_result(outcome: HubOutcome) -> Result<InvokeChangesetOperationResult, ClientRefusal> {
    let answer: RewindAnswer = read_value(outcome?).unwrap_or_default();
    let reasons: Vec<&str> = answer.conflicts.iter().map(|it| it.reason.as_str()).collect();
    match reasons.is_empty() {
        true => Ok(InvokeChangesetOperationResult::default()),
        false => Err(ClientRefusal::new(codes::CONFLICT, reasons.join("; "))),
    }
}

impl Trees {
    fn changed_files(&self, cwd: &str, listed: &[ListedCheckpoint]) -> Vec<state::ChangesetFile> {
        let cwd = AbsPath::new(cwd);
        let mut all: BTreeMap<String, FileChanges> = BTreeMap::new();
        for checkpoint in listed {
            for file in &checkpoint.files {
                let path = cwd.as_ref().map_or_else(|| file.path.clone(), |it| it.join(&file.path).to_string());
                let changes = all.entry(path).or_insert_with(|| FileChanges {
                    first: checkpoint.id.clone(),
                    is_new: file.change == "added",
                    is_gone: false,
                    added: 0,
                    removed: 0,
                    n: 0,
                });
                changes.is_gone = file.change == "removed";
                changes.added += file.added;
                changes.removed += file.removed;
                changes.n += 1;
            }
        }
        all.retain(|_, it| !(it.is_new && it.is_gone));
        let stands = |path: &str, it: &FileChanges| !self.marks.undone.contains(&(uri_of(path), it.version()));
        let standing = all.into_iter().filter(|(path, it)| stands(path, it));
        standing.map(|(path, changes)| self.changed_file(&path, changes)).collect()
    }

    fn changed_file(&self, path: &str, changes: FileChanges) -> state::ChangesetFile {
        let (uri, version) = (uri_of(path), changes.version());
        let edits: Vec<_> = self.edits().filter(|it| is_of(it, &uri)).collect();
        let before = edits.first().and_then(|it| it.before.as_ref());
        let after = edits.last().and_then(|it| it.after.as_ref());
        // A text that the answers do not have is that of the file itself, which is there alone after the change.
        let has_before = !changes.is_new && (before.is_some() || changes.is_gone);
        let side = |text: Option<&state::FileEditSide>| state::FileEditSide {
            uri: uri.clone(),
            content: text.map_or_else(|| content_of(&uri), |it| it.content.clone()),
        };
        let edit = state::FileEdit {
            before: has_before.then(|| side(before)),
            after: (!changes.is_gone).then(|| side(after)),
            diff: Some(state::FileEditDiffStats { added: Some(changes.added), removed: Some(changes.removed) }),
        };
        // Another change of a file is to be seen again.
        let reviewed = (self.marks.reviewed.get(&uri) == Some(&version)).then_some(true);
        let meta = castor_meta(FileFacts { checkpoint: changes.first, version });
        state::ChangesetFile { id: uri, edit, reviewed, meta }
    }

    /// The edits of all calls that ended well.
    fn edits(&self) -> impl Iterator<Item = &state::ToolResultFileEditContent> {
        let ended = self.chat.turns.iter().flat_map(|it| &it.response_parts);
        let parts = ended.chain(self.chat.active_turn.iter().flat_map(|it| &it.response_parts));
        let calls = parts.filter_map(|it| match it {
            state::ResponsePart::ToolCall(it) => match &it.tool_call {
                state::ToolCallState::Completed(it) if it.success => Some(it),
                _ => None,
            },
            _ => None,
        });
        calls.flat_map(|it| it.content.iter().flatten()).filter_map(|it| match it {
            state::ToolResultContent::FileEdit(it) => Some(it),
            _ => None,
        })
    }
}

/// The present content of a file.
fn content_of(uri: &str) -> state::ContentRef {
    state::ContentRef { uri: uri.to_owned(), size_hint: None, content_type: None, nonce: None }
}

fn is_of(edit: &state::ToolResultFileEditContent, uri: &str) -> bool {
    edit.after.as_ref().or(edit.before.as_ref()).is_some_and(|it| it.uri == uri)
}
