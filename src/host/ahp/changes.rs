//! Files that a session changed: the changeset that clients review, and the operation that undoes one.

use std::collections::BTreeMap;

use ahp::ahp_types::{
    actions::{ActionOrigin, ChangesetFilesReviewChangedAction, StateAction},
    commands::{ChangesetOperationTarget, InvokeChangesetOperationParams, InvokeChangesetOperationResult},
    errors::ahp_error_codes as codes,
    state::{ChangesetFile, ResponsePart, ToolCallState, ToolResultContent, ToolResultFileEditContent},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    AhpHost,
    channel::Channel,
    client_requests::{ClientRefusal, HostCall, RequestOutcome},
    hosted_session::{HostedSession, Tree, TreeAction, Trees},
    hub_requests::{HubOutcome, HubRequest, WaitingClient},
    messages::{file_uri, path_of},
    with_members,
};
use castor_base::path::AbsPath;

const REVERT: &str = "revert";
/// Under which the session keeps what users did with changed files.
pub const STATE_KEY: &str = "ahp_changes";

/// A checkpoint of the agent, which is of one call.
#[derive(Deserialize)]
struct ListedCheckpoint {
    id: String,
    #[serde(default)]
    files: Vec<ListedFile>,
}

#[derive(Deserialize)]
struct ListedFile {
    path: String,
    change: String,
    #[serde(default)]
    added: i64,
    #[serde(default)]
    removed: i64,
}

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

impl FileChanges {
    fn version(&self) -> String {
        format!("{}+{}", self.first, self.n)
    }
}

impl AhpHost {
    /// The agent's checkpoints say which files changed, also by commands; edits in the answers have the texts.
    pub(super) fn follow_checkpoints(&mut self, session: &str, outcome: HubOutcome) {
        let listed = outcome.ok().and_then(|it| Vec::<ListedCheckpoint>::deserialize(it.get("checkpoints")?).ok());
        let Some(listed) = listed else { return };
        let Some(hosted) = self.sessions.get(session) else { return };
        let files = hosted.changed_files(&listed);
        if json!(files) == json!(hosted.trees.changes.files) {
            return;
        }
        let operations = json!([{
            "id": REVERT, "label": "Undo the changes of this file", "scopes": ["resource"], "icon": "discard",
            "confirmation": "The file becomes what it was before this session.", "status": "idle",
        }]);
        let action = json!({ "type": "changeset/contentChanged", "files": files, "operations": operations });
        self.emit(session, vec![TreeAction::of_json(Tree::Changes, action)]);
    }

    /// A client marks files as seen.
    ///
    /// # Errors
    /// In words.
    pub(super) fn review(
        &mut self,
        session: &str,
        action: ChangesetFilesReviewChangedAction,
        origin: ActionOrigin,
    ) -> Result<(), String> {
        let hosted = self.hosted(session)?;
        let is_there = |id: &String| hosted.trees.changes.files.iter().any(|it| it.id == *id);
        if !action.files.iter().any(is_there) {
            return Err("the changeset has none of these files".to_owned());
        }
        let Trees { changes, marks, .. } = &mut hosted.trees;
        for it in changes.files.iter().filter(|it| action.files.contains(&it.id)) {
            match (action.reviewed, version_of(it)) {
                (true, Some(version)) => _ = marks.reviewed.insert(it.id.clone(), version.to_owned()),
                _ => _ = marks.reviewed.remove(&it.id),
            }
        }
        self.keep_marks(session);
        let act = TreeAction::new(Tree::Changes, StateAction::ChangesetFilesReviewChanged(action)).by(origin);
        self.emit(session, vec![act]);
        Ok(())
    }

    /// The session keeps them for its next client.
    fn keep_marks(&mut self, session: &str) {
        let Some(hosted) = self.sessions.get(session) else { return };
        let params = json!({ "sessionId": session, "set": { STATE_KEY: hosted.trees.marks } });
        self.ask_hub(HubRequest::Nothing, "_castor/session/state", &params);
    }

    pub(super) fn invoke_operation(&mut self, call: HostCall<'_>) -> RequestOutcome {
        let params: InvokeChangesetOperationParams = call.read()?;
        let channel = Channel::read(&params.channel);
        let session = match &channel {
            Some(Channel::Changes(it)) => it.clone(),
            _ => return Err(ClientRefusal::no_channel(&params.channel)),
        };
        let hosted = self.sessions.get(&session).ok_or_else(|| ClientRefusal::no_channel(&params.channel))?;
        if params.operation_id != REVERT {
            return Err(ClientRefusal::params("the changeset has no such operation"));
        }
        let Some(ChangesetOperationTarget::Resource { resource, .. }) = &params.target else {
            return Err(ClientRefusal::params("the operation is for one file: target is a resource"));
        };
        let file = hosted.trees.changes.files.iter().find(|it| it.id == *resource);
        let facts = file.and_then(|it| it.meta.as_ref()?.get("castor"));
        let fact = |name: &str| facts?.get(name)?.as_str();
        let (Some(checkpoint), Some(version), Some(path)) = (fact("checkpoint"), fact("version"), path_of(resource))
        else {
            return Err(ClientRefusal::new(codes::NOT_FOUND, "the changeset has no such file"));
        };
        let order = json!({ "sessionId": session, "checkpointId": checkpoint, "what": "files", "paths": [path] });
        let request =
            HubRequest::Revert { asker: call.asker(), session, change: (resource.clone(), version.to_owned()) };
        self.ask_hub(request, "_castor/session/rewind", &order);
        Ok(())
    }

    pub(super) fn follow_revert(
        &mut self,
        asker: &WaitingClient,
        (session, change): (&str, (String, String)),
        outcome: HubOutcome,
    ) {
        let answer = match outcome {
            Ok(it) => it,
            Err(it) => return self.refuse(asker, &ClientRefusal::of_agent(&it)),
        };
        let conflicts = answer.get("conflicts").and_then(Value::as_array).into_iter().flatten();
        let reasons: Vec<&str> = conflicts.filter_map(|it| it["reason"].as_str()).collect();
        if let Some(it) = self.sessions.get_mut(session).filter(|_| reasons.is_empty()) {
            it.trees.marks.undone.insert(change);
            self.keep_marks(session);
        }
        match reasons.is_empty() {
            true => self.answer(asker, &InvokeChangesetOperationResult { message: None, follow_up: None }),
            false => self.refuse(asker, &ClientRefusal::new(codes::CONFLICT, reasons.join("; "))),
        }
        self.read_changes(session);
    }

    /// Asks the agent what the session changed in files.
    pub(super) fn read_changes(&mut self, session: &str) {
        let request = HubRequest::Checkpoints { session: session.to_owned() };
        self.ask_hub(request, "_castor/session/checkpoints", &json!({ "sessionId": session }));
    }
}

impl HostedSession {
    fn changed_files(&self, listed: &[ListedCheckpoint]) -> Vec<Value> {
        let cwd = AbsPath::new(&self.cwd);
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
        let stands = |path: &str, it: &FileChanges| !self.trees.marks.undone.contains(&(file_uri(path), it.version()));
        let standing = all.iter().filter(|(path, it)| stands(path, it));
        standing.map(|(path, changes)| self.changed_file(path, changes)).collect()
    }

    fn changed_file(&self, path: &str, changes: &FileChanges) -> Value {
        let uri = file_uri(path);
        let (before, after) = self.texts_of(&uri);
        let side =
            |text: Option<Value>| json!({ "uri": uri, "content": text.unwrap_or_else(|| json!({ "uri": uri })) });
        let edit = json!({ "diff": { "added": changes.added, "removed": changes.removed } });
        // A text that the answers do not have is that of the file itself, which is there alone after the change.
        let has_before = !changes.is_new && (before.is_some() || changes.is_gone);
        let sides = [("before", has_before.then(|| side(before))), ("after", (!changes.is_gone).then(|| side(after)))];
        let edit = with_members(edit, sides);
        // Another change of a file is to be seen again.
        let key = changes.version();
        let reviewed = (self.trees.marks.reviewed.get(&uri) == Some(&key)).then_some(true);
        let file = json!({
            "id": uri, "edit": edit, "_meta": { "castor": { "checkpoint": changes.first, "version": key } },
        });
        with_members(file, [("reviewed", reviewed.map(Value::from))])
    }

    /// Contents before the first edit of a file in the chat, and after the last.
    fn texts_of(&self, uri: &str) -> (Option<Value>, Option<Value>) {
        let chat = &self.trees.chat;
        let parts = chat.turns.iter().flat_map(|it| &it.response_parts);
        let parts = parts.chain(chat.active_turn.iter().flat_map(|it| &it.response_parts));
        let edits: Vec<_> = parts.flat_map(edits_of).filter(|it| is_of(it, uri)).collect();
        let before = edits.first().and_then(|it| it.before.as_ref()).map(|it| json!(it.content));
        let after = edits.last().and_then(|it| it.after.as_ref()).map(|it| json!(it.content));
        (before, after)
    }
}

/// What was changed in a file, as one word.
fn version_of(it: &ChangesetFile) -> Option<&str> {
    it.meta.as_ref()?.get("castor")?.get("version")?.as_str()
}

fn is_of(edit: &ToolResultFileEditContent, uri: &str) -> bool {
    edit.after.as_ref().or(edit.before.as_ref()).is_some_and(|it| it.uri == uri)
}

/// Those of a call that ended well.
fn edits_of(part: &ResponsePart) -> Vec<&ToolResultFileEditContent> {
    let ResponsePart::ToolCall(call) = part else { return Vec::new() };
    let ToolCallState::Completed(call) = &call.tool_call else { return Vec::new() };
    let edits = call.content.iter().flatten().filter(|_| call.success).filter_map(|it| match it {
        ToolResultContent::FileEdit(it) => Some(it),
        _ => None,
    });
    edits.collect()
}
