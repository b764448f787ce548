//! Checkpoints in the session simulator: changes of calls, results of restores, and rewinds by clients.

use super::tests::World;
use crate::step::{Input, RewindOrder, RewindTarget};
use castor_base::{
    checkpoint::{ChangeKind, Changes, Conflict, FileChange, OnConflict, RestoreOrder, RestoreResult, Rewinds},
    ids::PromptId,
};

impl World {
    /// A client wants files back, or all.
    pub(super) fn go_back(&mut self) -> Input {
        self.n_prompts += 1;
        let prompt = PromptId(self.n_prompts);
        self.open_prompts.insert(prompt);
        let checkpoints = self.session.record().checkpoints();
        let to = match (checkpoints.all().last(), checkpoints.prompts().last()) {
            (Some(it), _) if self.n.is_multiple_of(3) => RewindTarget::Checkpoint(it.id.clone()),
            (_, Some(it)) if self.n % 3 == 1 => RewindTarget::Message(it.message.clone()),
            _ => RewindTarget::Redo,
        };
        let what = [Rewinds::Both, Rewinds::Files, Rewinds::Conversation][self.dice(3) as usize];
        let on_conflict = [OnConflict::Fail, OnConflict::Keep, OnConflict::Restore][self.dice(3) as usize];
        let paths = (self.dice(4) == 0).then(|| vec!["/w/a".into()]);
        Input::ClientRewind(Box::new(RewindOrder { prompt, to, what, on_conflict, paths }))
    }

    pub(super) fn changes(&mut self) -> Result<Changes, String> {
        let file = FileChange { path: "/w/a".into(), change: ChangeKind::Changed, added: 2, removed: 1 };
        match self.dice(4) {
            0 => Ok(Changes::default()),
            1 => Err("the disk is gone".to_owned()),
            _ => Ok(Changes { files: vec![file], n_files: 1, added: 2, removed: 1, ..Changes::default() }),
        }
    }

    pub(super) fn restored(&mut self, order: &RestoreOrder) -> Result<(RestoreResult, Vec<String>), String> {
        assert!(!order.undo.is_empty(), "a restore of nothing");
        let conflict = Conflict { path: "/w/a".into(), reason: "you changed it".to_owned() };
        let files = match (self.dice(4), order.on_conflict) {
            (0, _) => return Err("the disk is gone".to_owned()),
            (1, OnConflict::Fail | OnConflict::Keep) => {
                RestoreResult { conflicts: vec![conflict], ..RestoreResult::default() }
            }
            _ => RestoreResult { restored: vec!["/w/a".into()], ..RestoreResult::default() },
        };
        Ok((files, Vec::new()))
    }
}
