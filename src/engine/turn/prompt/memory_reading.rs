//! Memory files: read once before the first turn, and when the user asks for them; no request changes them, for
//! prompt caches.

use std::{fmt::Write, sync::Arc};

use crate::turn::{
    flow::{Flow, Phase},
    spec::TurnContext,
    state::TurnState,
};
use crate::{
    record::Step,
    step::{Effect, Input},
};
use castor_base::{
    ids::EffectId,
    log::Fact,
    memory::{Memory, MemoryFile},
};

#[derive(Debug)]
struct ReadingMemory {
    effect: EffectId,
    then: AfterReading,
}

#[derive(Debug)]
enum AfterReading {
    /// The turn goes on.
    Next,
    /// They are shown, whole or not, and no model is asked.
    Show { whole: bool },
    /// The user changed them; this was the answer.
    Report(String),
}

pub(in crate::turn) fn read_at_start(_: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    match cx.spec.memory_sources.at_start && !cx.scratch.memory_read {
        true => read(cx.step, AfterReading::Next),
        false => Flow::Next,
    }
}

/// To show them, whole or only named.
pub fn show_memory(step: &mut Step<'_>, whole: bool) -> Flow {
    read(step, AfterReading::Show { whole })
}

/// `done`: what changed in them, in words.
pub fn read_after_change(step: &mut Step<'_>, done: String) -> Flow {
    read(step, AfterReading::Report(done))
}

fn read(step: &mut Step<'_>, then: AfterReading) -> Flow {
    Flow::wait(ReadingMemory { effect: step.start_effect(Effect::ReadMemory), then })
}

impl Phase for ReadingMemory {
    fn step(self: Box<Self>, _: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            Input::MemoryRead { effect, files, faults } if effect == self.effect => {
                if !matches!(self.then, AfterReading::Next) {
                    // Who asks hears it again.
                    cx.scratch.told_faults.retain(|it| !faults.contains(it));
                }
                tell_faults(cx, faults);
                self.take_files(cx, files)
            }
            other => Flow::Unrelated(self, other),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        step.start_effect(Effect::Abort { effect: self.effect });
    }
}

/// Says once what is wrong with memory files, however often they are read.
pub(in crate::turn) fn tell_faults(cx: &mut TurnContext<'_, '_>, faults: Vec<String>) {
    for it in faults {
        if cx.scratch.told_faults.insert(it.clone()) {
            cx.step.emit_notice(&it);
        }
    }
}

impl ReadingMemory {
    fn take_files(self, cx: &mut TurnContext<'_, '_>, files: Result<Arc<[MemoryFile]>, String>) -> Flow {
        cx.scratch.memory_read = true;
        let is_asked = !matches!(self.then, AfterReading::Next);
        cx.scratch.discovery_off &= !is_asked;
        let found: Vec<String> = cx.step.record.discovered_memory().map(line).collect();
        // Who asks for it wants to have it anew.
        let anew = matches!(self.then, AfterReading::Show { .. }) && !found.is_empty();
        match files {
            Ok(files) if anew || *files != *cx.step.record.memory().files() => {
                let changed = changed_names(cx.step.record.memory().files(), &files);
                cx.step.log(Fact::Remembered { files: files.to_vec() });
                if let (AfterReading::Next, Some(names)) = (&self.then, changed) {
                    cx.step.emit_notice(&format!("Memory files changed, and castor read them anew: {names}."));
                }
            }
            Ok(_) => (),
            Err(why) => cx.step.emit_notice(&format!("The memory files could not be read: {why}")),
        }
        match self.then {
            AfterReading::Show { whole } => Flow::report(with(&found, in_words(cx.step.record.memory(), whole))),
            AfterReading::Report(done) => Flow::report(done),
            AfterReading::Next => Flow::Next,
        }
    }
}

/// The most files that a notice names.
const MAX_NAMES: usize = 5;

/// The files that are others than before, or gone; `None`: there were none before, so nothing is news.
fn changed_names(before: &[MemoryFile], now: &[MemoryFile]) -> Option<String> {
    let other = now.iter().filter(|it| !before.contains(it)).map(|it| it.path.to_string());
    let is_gone = |it: &&MemoryFile| now.iter().all(|new| new.path != it.path);
    let gone = before.iter().filter(is_gone).map(|it| format!("{} (gone)", it.path));
    let mut names: Vec<String> = other.chain(gone).filter(|_| !before.is_empty()).collect();
    let n_more = names.len().saturating_sub(MAX_NAMES);
    names.truncate(MAX_NAMES);
    if n_more > 0 {
        names.push(format!("{n_more} more"));
    }
    (!names.is_empty()).then(|| names.join(", "))
}

fn in_words(memory: &Memory, whole: bool) -> String {
    let mut res = match memory.files() {
        [] => return "There are no memory files. castor reads `GEMINI.md` and `AGENTS.md` in `~/.castor`, in `~/.gemini`, \
                      and from the top of the repository down to the folder of the session, where that is trusted."
            .to_owned(),
        files => format!("The model knows {} memory file(s), as they are now:\n", files.len()),
    };
    for file in memory.files() {
        res += &line(file);
        if whole {
            _ = writeln!(res, "\n{}\n", file.text);
        }
    }
    res
}

fn line(MemoryFile { path, tier, text }: &MemoryFile) -> String {
    format!("- `{path}` ({}, {} bytes)\n", tier.as_str(), text.len())
}

/// `found`: files of sub-folders, each a line.
fn with(found: &[String], text: String) -> String {
    let text = match found {
        [] => return text,
        _ => text.trim_end(),
    };
    let found = found.concat();
    format!("{text}\n\nIt also knows these of subfolders, and reads them again when work returns there:\n{found}")
}
