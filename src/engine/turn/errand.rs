//! Turns for slash commands that need the world first. The model is not asked for an answer, and sees nothing of them.

use std::{fmt::Write, sync::Arc};

use serde_json::Map;

use super::{Kept, Phase, Spec, Talk, Turn, undo::Wish};
use crate::{
    base::{
        content::Part,
        event::{EndReason, EventKind, Outcome, Speaker, Stop},
        ids::{EffectId, MessageId, PromptId, StreamId},
        log::Fact,
        memory::{Memory, MemoryFile},
    },
    engine::{
        record::{COMMAND, Step},
        routing,
        scheduler::Scheduler,
        step::Effect,
    },
};

/// What the turn is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Errand {
    /// The memory files, as they are now; whole, or only named.
    Memory { whole: bool },
    /// The conversation is compressed; what is to be kept above all.
    Compress { keep: String },
    /// Files are taken back, or only compared.
    GoBack(Wish),
}

/// A message between user and castor.
pub fn aside(step: &mut Step<'_>, role: Speaker, content: Vec<Part>) {
    let message_id = MessageId::from(step.fresh("m"));
    let meta = Map::from_iter([(COMMAND.to_owned(), true.into())]);
    step.event_with(EventKind::Message { role, message_id, content, cuts: Vec::new() }, meta);
}

impl Turn {
    /// Begins a turn for a command.
    pub fn for_errand(
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut Kept,
        (prompt, content): (PromptId, Vec<Part>),
        errand: Errand,
    ) -> Self {
        let stream = StreamId::from(step.fresh("s"));
        step.begin_stream(stream);
        aside(step, Speaker::User, content);
        let mut res = Self {
            prompt,
            phase: Phase::Finished,
            n_samples: 0,
            model: spec.aliases.model_of(&step.record.model).into(),
            router: super::router::Router::default(),
            tries: routing::failure::Tries::default(),
            once: false,
            again: None,
            scheduler: Scheduler::default(),
            tools: spec.toolbox.clone(),
            talk: Talk::default(),
            circles: super::circles::Circles::default(),
        };
        match errand {
            Errand::Memory { whole } => res.remember(step, Some(whole)),
            Errand::GoBack(wish) => res.go_back(step, spec, kept, wish),
            Errand::Compress { keep } => res.compress_now(step, spec, kept, keep),
        }
        res
    }

    /// Memory files are looked at once for each session that is made or made anew, and when the user asks for it: what
    /// the model is told must not change with each request, or no prompt cache would hold.
    /// `shown`: to show them, whole or not, and nothing else.
    pub(super) fn remember(&mut self, step: &mut Step<'_>, shown: Option<bool>) {
        self.phase = Phase::Remembering { effect: step.effect(Effect::Remember), shown };
    }

    pub(super) fn remembered(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut Kept,
        effect: EffectId,
        files: Result<Arc<[MemoryFile]>, String>,
    ) {
        let shown = match self.phase {
            Phase::Remembering { effect: own, shown } if own == effect => shown,
            Phase::Discovering(it) if it.look == effect => return self.discovered(step, spec, kept, files),
            _ => return,
        };
        kept.remembered = true;
        kept.is_blind &= shown.is_none();
        let found: Vec<String> = step.record.found().map(line).collect();
        // Who asks for it wants to have it anew.
        let anew = shown.is_some() && !found.is_empty();
        match files {
            Ok(files) if anew || *files != *step.record.memory().files() => {
                step.log(Fact::Remembered { files: files.to_vec() });
            }
            Ok(_) => (),
            Err(why) => step.notice(&format!("The memory files could not be read: {why}")),
        }
        match shown {
            Some(whole) => {
                let text = with(&found, in_words(step.record.memory(), whole));
                self.report(step, text);
            }
            None => self.prepare(step, spec, kept),
        }
    }

    /// The one end of an errand.
    pub(super) fn report(&mut self, step: &mut Step<'_>, text: String) {
        self.phase = Phase::Finished;
        aside(step, Speaker::Agent, vec![Part::text(text)]);
        step.event(EventKind::AgentEnd { reason: EndReason::Completed });
        let usage = step.record.turn_usage();
        step.effect(Effect::Settle { prompt: self.prompt, outcome: Outcome::Stop(Stop::EndTurn), usage });
    }
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
    format!("{text}\n\nOf sub-folders it was told these; when work comes there again it is told anew:\n{found}")
}
