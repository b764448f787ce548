//! Memory tasks: reading memory files, and changing what castor remembers. All of them block.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{checkpoint_tasks::note_background_writes, effect_task::EffectTask};
use crate::panics;
use castor_base::{path::AbsPath, saved_memory::MemoryOrder};
use castor_engine::step::Input;
use castor_tools::workspace::memory::{self, FoundFiles, MemorySearch};

/// The files that count in every turn.
pub fn read(task: &EffectTask) {
    answer(task, memory::read);
}

/// Those of the subfolders that lead to places.
pub fn discover(task: &EffectTask, places: &[AbsPath]) {
    answer(task, |it| {
        note_background_writes(&task.resources.files, &it.roots);
        memory::read_nested(it, places)
    });
}

fn answer(task: &EffectTask, look: impl FnOnce(&MemorySearch) -> FoundFiles) {
    let wanted = &task.resources.model_input.memory;
    let found = catch_unwind(AssertUnwindSafe(|| look(wanted))).map_err(|it| panics::panic_message(&*it));
    let (files, faults) = match found {
        Ok(it) => (Ok(it.files.into()), it.faults),
        Err(why) => (Err(why), Vec::new()),
    };
    // The loop is gone only at exit.
    _ = task.answers.blocking_send(task.event(Input::MemoryRead { effect: task.id, files, faults }));
}

pub fn change(task: &EffectTask, order: &MemoryOrder) {
    let report = match &task.resources.tools.saved_memory {
        Some(it) => memory::change_saved(it, order),
        None => Err("castor has no folder of its own: set CASTOR_HOME or HOME".to_owned()),
    };
    _ = task.answers.blocking_send(task.event(Input::MemoryChanged { effect: task.id, report }));
}
