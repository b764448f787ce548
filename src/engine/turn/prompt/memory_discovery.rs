//! Memory files of subfolders that calls reach: added behind the results. The system instruction stays the same for
//! prompt caches.

use std::sync::Arc;

use crate::turn::{
    flow::{Flow, Phase},
    prompt::memory_reading::tell_faults,
    spec::TurnContext,
    state::TurnState,
};
use crate::{
    record::Step,
    step::{Effect, Input},
};
use castor_base::{ids::EffectId, log::Fact, memory::MemoryFile};

/// A disk that takes longer is not waited for, in milliseconds.
const PATIENCE: u64 = 2_000;
/// More places of one answer are not looked at.
const MAX_PLACES: usize = 64;

/// What is waited for.
#[derive(Debug)]
struct Discovery {
    look: EffectId,
    timer: EffectId,
}

/// All calls have ended: looks at where they were.
pub(in crate::turn) fn discover_memory(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    let roots = &cx.step.record.roots;
    // Memory of the roots themselves was read at the start.
    let mut places = turn.scheduler.touched_paths().filter(|it| !roots.contains(it)).cloned().collect::<Vec<_>>();
    turn.scheduler.clear();
    places.sort();
    places.dedup();
    places.truncate(MAX_PLACES);
    if !cx.spec.memory_sources.just_in_time || cx.scratch.discovery_off || places.is_empty() {
        return Flow::Next;
    }
    let look = cx.step.start_effect(Effect::DiscoverMemory { places });
    let timer = cx.step.start_effect(Effect::SetTimer { at_ms: cx.step.now.unix_ms.saturating_add(PATIENCE) });
    Flow::wait(Discovery { look, timer })
}

impl Phase for Discovery {
    fn step(self: Box<Self>, _: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            Input::MemoryRead { effect, files, faults } if effect == self.look => {
                cx.step.start_effect(Effect::Abort { effect: self.timer });
                tell_faults(cx, faults);
                take_files(cx.step, files);
            }
            // A read that hangs there hangs alone, and only once.
            Input::TimerFired { effect } if effect == self.timer => {
                cx.step.start_effect(Effect::Abort { effect: self.look });
                cx.scratch.discovery_off = true;
                cx.step.emit_notice(
                    "castor found no memory files of subfolders in time, and continues without them. `/memory refresh` looks again.",
                );
            }
            other => return Flow::Unrelated(self, other),
        }
        Flow::Next
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        step.start_effect(Effect::Abort { effect: self.look });
        step.start_effect(Effect::Abort { effect: self.timer });
    }
}

fn take_files(step: &mut Step<'_>, files: Result<Arc<[MemoryFile]>, String>) {
    match files {
        Ok(files) => {
            let files = step.record.unknown_memory(&files);
            if !files.is_empty() {
                step.log(Fact::Discovered { files });
            }
        }
        Err(why) => step.emit_notice(&format!("castor could not read memory files of subfolders: {why}")),
    }
}
