//! Definitions of a folder, read again for a command that says what changed.

use crate::{
    record::Step,
    step::{Effect, Input},
    turn::{
        flow::{Flow, Phase},
        spec::TurnContext,
        state::TurnState,
    },
};
use castor_base::{agent::FolderAgents, file_prompt::FolderPrompts, ids::EffectId, text};

/// What is said of it.
type Report = fn(&TurnContext<'_, '_>, FolderAgents, FolderPrompts) -> String;

#[derive(Debug)]
struct ReadingDefinitions {
    effect: EffectId,
    report: Report,
}

pub(super) fn read(step: &mut Step<'_>, report: Report) -> Flow {
    Flow::wait(ReadingDefinitions { effect: step.start_effect(Effect::ReadDefinitions), report })
}

impl Phase for ReadingDefinitions {
    fn step(self: Box<Self>, _: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            Input::DefinitionsRead { effect: Some(effect), agents, prompts } if effect == self.effect => {
                Flow::report((self.report)(cx, agents, prompts))
            }
            other => Flow::Unrelated(self, other),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        step.start_effect(Effect::Abort { effect: self.effect });
    }
}

/// The changes that a new look at the files found, in words. `one`, `many`: what they are.
pub(super) fn changes<T: PartialEq>((one, many): (&str, &str), before: &[(&str, &T)], now: &[(&str, &T)]) -> String {
    let (mut added, mut changed) = (Vec::new(), Vec::new());
    for (name, it) in now {
        match before.iter().find(|old| old.0 == *name) {
            None => added.push((*name).to_owned()),
            Some((_, old)) if old != it => changed.push((*name).to_owned()),
            Some(_) => (),
        }
    }
    let is_gone = |it: &&(&str, &T)| now.iter().all(|new| new.0 != it.0);
    let gone = before.iter().filter(is_gone).map(|it| it.0.to_owned()).collect();
    let rows = [("New", added), ("Changed", changed), ("Gone", gone)];
    let lines: String =
        rows.iter().filter(|it| !it.1.is_empty()).map(|(what, all)| format!("- {what}: {}\n", names(all))).collect();
    let count = if now.len() == 1 { format!("is 1 {one}") } else { format!("are {} {many}", now.len()) };
    match lines.is_empty() {
        true => format!("Nothing changed: there {count}.\n"),
        false => format!("There {count}. From the next prompt on this holds:\n{lines}"),
    }
}

pub(super) fn names(all: &[String]) -> String {
    let quoted: Vec<String> = all.iter().map(|it| format!("`{}`", text::first_line(it, 100))).collect();
    if quoted.is_empty() { "none".to_owned() } else { quoted.join(", ") }
}
