//! The checkpoints of a session: what each call changed, what is undone, and what can be redone.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use castor_base::{
    checkpoint::{ChangeKind, Changes, FileChange, RestoreResult},
    content::{Part, joined_text},
    ids::{CallId, CheckpointId, MessageId},
    log::{Entry, Fact},
    text,
};

/// Longest beginning of a prompt that is remembered, in characters.
const WORDS: usize = 80;

/// All of them, oldest first. Those whose call changed nothing are not here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoints {
    list: Vec<Checkpoint>,
    /// Restores that can be taken back, the last one at the end.
    restores: Vec<Restore>,
    prompts: Vec<PromptSummary>,
}

/// A prompt's text and time.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptSummary {
    pub message: MessageId,
    pub words: String,
    pub at_ms: u64,
    /// A rewind took it away.
    pub is_rewound: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    pub id: CheckpointId,
    /// The prompt whose turn it belongs to, by its place among [`Checkpoints::prompts`].
    prompt: Option<usize>,
    pub at_ms: u64,
    /// `None`: it was taken beside what ran in the background. Undoing a turn leaves such changes alone, as the user may
    /// have made some of them.
    pub call: Option<CallId>,
    /// `None`: the call's end is unknown.
    pub changes: Option<Changes>,
    pub is_undone: bool,
}

/// One restore, as far as a redo needs it.
#[derive(Clone, Debug, PartialEq)]
struct Restore {
    id: CheckpointId,
    undone: Vec<CheckpointId>,
}

/// Changes of one prompt's turn.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnChanges<'a> {
    pub prompt: &'a PromptSummary,
    /// Oldest first, also those that are undone.
    pub checkpoints: Vec<&'a Checkpoint>,
}

impl Checkpoints {
    pub(super) fn add_prompt(&mut self, message: &MessageId, content: &[Part], at_ms: u64) {
        let words = text::first_line(&joined_text(content), WORDS);
        self.prompts.push(PromptSummary { message: message.clone(), words, at_ms, is_rewound: false });
    }

    pub(super) fn apply(&mut self, entry: &Entry) {
        match &entry.fact {
            Fact::Checkpoint { id, call, changes } => {
                self.add_checkpoint(id, call.as_ref(), changes.as_ref(), entry.at)
            }
            Fact::Restored { id, undone, partial, files } => self.apply_restore(id, undone, *partial, files),
            Fact::Rewound { to } => self.apply_rewind(to),
            _ => (),
        }
    }

    fn add_checkpoint(&mut self, id: &CheckpointId, call: Option<&CallId>, changes: Option<&Changes>, at_ms: u64) {
        let known = self.list.iter_mut().find(|it| it.id == *id);
        match (known, changes) {
            (Some(_), Some(it)) if it.is_empty() => self.list.retain(|it| it.id != *id),
            (Some(known), _) => known.changes = changes.cloned(),
            (None, Some(it)) if it.is_empty() => (),
            (None, _) => self.list.push(Checkpoint {
                id: id.clone(),
                prompt: self.prompts.len().checked_sub(1),
                at_ms,
                call: call.cloned(),
                changes: changes.cloned(),
                is_undone: false,
            }),
        }
        // What was taken back belongs to a state that is left now.
        if call.is_some() && changes.is_some_and(|it| !it.is_empty()) {
            self.restores.clear();
        }
    }

    fn apply_restore(&mut self, id: &CheckpointId, undone: &[CheckpointId], is_partial: bool, files: &RestoreResult) {
        // What was kept as it is still stands, and where all was kept nothing happened.
        if files.restored.is_empty() && !files.conflicts.is_empty() {
            return;
        }
        let is_partial = is_partial || !files.conflicts.is_empty();
        let is_redo = self.restores.last().is_some_and(|it| undone.contains(&it.id));
        let again = if is_redo { self.restores.pop() } else { None };
        for it in &mut self.list {
            it.is_undone |= undone.contains(&it.id) && !is_partial;
            it.is_undone &= !again.as_ref().is_some_and(|again| again.undone.contains(&it.id));
        }
        if again.is_none() {
            let undone = if is_partial { Vec::new() } else { undone.to_vec() };
            self.restores.push(Restore { id: id.clone(), undone });
        }
    }

    /// The conversation is without this prompt and those after it; what they changed in files may still stand.
    fn apply_rewind(&mut self, to: &MessageId) {
        let first = self.prompts.iter().rposition(|it| it.message == *to && !it.is_rewound);
        let gone = first.map(|it| self.prompts.iter_mut().skip(it));
        gone.into_iter().flatten().for_each(|it| it.is_rewound = true);
    }

    /// The files that the calls of the last prompt changed, each once.
    pub fn paths_of_last_prompt(&self) -> Vec<PathBuf> {
        let last = self.prompts.len().checked_sub(1);
        let own = self.list.iter().filter(|it| it.prompt == last).filter_map(|it| it.changes.as_ref());
        let paths: BTreeSet<PathBuf> = own.flat_map(|it| it.files.iter().map(|it| it.path.clone())).collect();
        paths.into_iter().collect()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn all(&self) -> &[Checkpoint] {
        &self.list
    }

    pub fn get(&self, id: &CheckpointId) -> Option<&Checkpoint> {
        self.list.iter().find(|it| it.id == *id)
    }

    /// What the user said, oldest first.
    pub fn prompts(&self) -> &[PromptSummary] {
        &self.prompts
    }

    /// The prompt whose turn it belongs to.
    pub fn prompt_of(&self, it: &Checkpoint) -> Option<&PromptSummary> {
        self.prompts.get(it.prompt?)
    }

    /// A prompt each, oldest first, with what its turn changed.
    pub fn turns(&self) -> Vec<TurnChanges<'_>> {
        let mut res: Vec<TurnChanges<'_>> =
            self.prompts.iter().map(|prompt| TurnChanges { prompt, checkpoints: Vec::new() }).collect();
        for it in &self.list {
            if let Some(turn) = it.prompt.and_then(|at| res.get_mut(at)) {
                turn.checkpoints.push(it);
            }
        }
        res
    }

    /// What is to be undone to take back the last `n` turns that changed files and still stand.
    pub fn in_last_turns(&self, n: usize) -> Vec<CheckpointId> {
        let standing = self.list.iter().filter(|it| it.call.is_some() && !it.is_undone);
        let mut turns: Vec<Option<usize>> = standing.map(|it| it.prompt).collect();
        turns.dedup();
        let first = turns.len().saturating_sub(n);
        let turns = turns.get(first..).unwrap_or_default();
        self.active_ids(|it| turns.contains(&it.prompt))
    }

    /// What is to be undone to get back to where this prompt was said.
    pub fn since_prompt(&self, message: &MessageId) -> Option<Vec<CheckpointId>> {
        let first = self.prompts.iter().position(|it| it.message == *message)?;
        Some(self.active_ids(|it| it.prompt.is_some_and(|it| it >= first)))
    }

    /// What is to be undone to get back to where this checkpoint was taken.
    pub fn since(&self, id: &CheckpointId) -> Option<Vec<CheckpointId>> {
        let first = self.list.iter().position(|it| it.id == *id)?;
        let after = self.list.iter().skip(first + 1).filter(|it| it.call.is_some());
        let all = self.list.get(first).into_iter().chain(after).filter(|it| !it.is_undone);
        Some(all.map(|it| it.id.clone()).collect())
    }

    fn active_ids(&self, wanted: impl Fn(&Checkpoint) -> bool) -> Vec<CheckpointId> {
        let all = self.list.iter().filter(|it| it.call.is_some() && !it.is_undone && wanted(it));
        all.map(|it| it.id.clone()).collect()
    }

    /// All that the session changed and that still stands.
    pub fn in_session(&self) -> Vec<CheckpointId> {
        self.active_ids(|_| true)
    }

    /// The restore that a redo takes back.
    pub fn redo_target(&self) -> Option<&CheckpointId> {
        self.restores.last().map(|it| &it.id)
    }
}

/// What several calls changed, taken together: a path each.
pub fn merge_changes<'a>(all: impl IntoIterator<Item = &'a Checkpoint>) -> Changes {
    let mut files: BTreeMap<&PathBuf, FileChange> = BTreeMap::new();
    let (mut n_unnamed, mut not_kept) = (0, Vec::new());
    for changes in all.into_iter().filter_map(|it| it.changes.as_ref()) {
        n_unnamed += changes.n_files.saturating_sub(changes.files.len() as u64);
        not_kept.extend(changes.not_kept.iter().cloned());
        for it in &changes.files {
            let before = files.remove(&it.path);
            if let Some(both) = combine_changes(before, it) {
                files.insert(&it.path, both);
            }
        }
    }
    let files: Vec<FileChange> = files.into_values().collect();
    not_kept.sort();
    not_kept.dedup();
    Changes {
        n_files: files.len() as u64 + n_unnamed,
        added: files.iter().map(|it| it.added).sum(),
        removed: files.iter().map(|it| it.removed).sum(),
        files,
        not_kept,
    }
}

/// What a path's change comes to after another one before it; `None`: it came and went again.
fn combine_changes(first: Option<FileChange>, then: &FileChange) -> Option<FileChange> {
    let Some(first) = first else { return Some(then.clone()) };
    let change = match (first.change, then.change) {
        (ChangeKind::Added, ChangeKind::Removed) => return None,
        (ChangeKind::Added, ChangeKind::Changed) => ChangeKind::Added,
        (ChangeKind::Removed, ChangeKind::Added) => ChangeKind::Changed,
        (_, it) => it,
    };
    let (added, removed) = (first.added + then.added, first.removed + then.removed);
    Some(FileChange { change, added, removed, ..first })
}
