//! Memory files of subfolders that calls reach: added behind the results. The system instruction stays the same for
//! prompt caches.

use std::sync::Arc;

use super::{Phase, SessionScratch, Spec, Turn};
use crate::{
    base::{ids::EffectId, log::Fact, memory::MemoryFile},
    engine::{record::Step, step::Effect},
};

/// A disk that takes longer is not waited for, in milliseconds.
const PATIENCE: u64 = 2_000;
/// More places of one answer are not looked at.
const MAX_PLACES: usize = 64;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Discovery {
    pub look: EffectId,
    pub timer: EffectId,
}

impl Discovery {
    pub fn leave(self, step: &mut Step<'_>) {
        step.start_effect(Effect::Abort { effect: self.look });
        step.start_effect(Effect::Abort { effect: self.timer });
    }
}

impl Turn {
    /// All calls have ended: looks at where they were.
    pub(super) fn discover(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut SessionScratch) {
        let roots = &step.record.roots;
        // Memory of the roots themselves was read at the start.
        let mut places = self.scheduler.touched_paths().filter(|it| !roots.contains(it)).cloned().collect::<Vec<_>>();
        self.scheduler.clear();
        places.sort();
        places.dedup();
        places.truncate(MAX_PLACES);
        if !spec.memory_sources.just_in_time || kept.discovery_off || places.is_empty() {
            return self.after_calls(step, spec, kept);
        }
        let look = step.start_effect(Effect::DiscoverMemory { places });
        let timer = step.start_effect(Effect::SetTimer { at_ms: step.now.unix_ms.saturating_add(PATIENCE) });
        self.phase = Phase::DiscoveringMemory(Discovery { look, timer });
    }

    pub(super) fn discovered(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        files: Result<Arc<[MemoryFile]>, String>,
    ) {
        let Phase::DiscoveringMemory(it) = std::mem::replace(&mut self.phase, Phase::RunningCalls) else { return };
        step.start_effect(Effect::Abort { effect: it.timer });
        match files {
            Ok(files) => {
                let files = step.record.unknown_memory(&files);
                if !files.is_empty() {
                    step.log(Fact::Discovered { files });
                }
            }
            Err(why) => step.emit_notice(&format!("Memory files of sub-folders could not be read: {why}")),
        }
        self.after_calls(step, spec, kept);
    }

    /// A read that hangs there hangs alone, and only once.
    pub(super) fn look_took_long(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut SessionScratch) {
        let Phase::DiscoveringMemory(it) = std::mem::replace(&mut self.phase, Phase::RunningCalls) else { return };
        step.start_effect(Effect::Abort { effect: it.look });
        kept.discovery_off = true;
        step.emit_notice(
            "Looking for memory files of sub-folders took too long: the agent goes on without them. `/memory refresh` has \
             it look again.",
        );
        self.after_calls(step, spec, kept);
    }
}
