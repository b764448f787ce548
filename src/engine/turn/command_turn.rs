//! Turns of slash commands that need the world first. The model is not asked and sees nothing of them.

use std::{fmt::Write, sync::Arc};

use serde_json::Map;

use super::{Phase, SessionScratch, Spec, Turn, TurnTranscript, undo::UndoRequest};
use crate::{
    base::{
        content::Part,
        event::{EndReason, EventKind, PromptOutcome, Speaker, StopKind},
        ids::{EffectId, MessageId, PromptId, StreamId},
        log::Fact,
        memory::{Memory, MemoryFile},
    },
    engine::{
        record::{COMMAND_META, Step},
        routing,
        scheduler::Scheduler,
        step::Effect,
    },
};

/// What the turn is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandTurn {
    /// The memory files, as they are now; whole, or only named.
    Memory { whole: bool },
    /// The conversation is compressed; what is to be kept above all.
    Compress { keep: String },
    /// Files are taken back, or only compared.
    Undo(UndoRequest),
}

/// A message between user and castor.
pub fn send_command_message(step: &mut Step<'_>, role: Speaker, content: Vec<Part>) {
    let message_id = MessageId::from(step.fresh_id("m"));
    let meta = Map::from_iter([(COMMAND_META.to_owned(), true.into())]);
    step.emit_event_with(EventKind::Message { role, message_id, content, cuts: Vec::new() }, meta);
}

impl Turn {
    /// Begins a turn for a command.
    pub fn begin_command(
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        (prompt, content): (PromptId, Vec<Part>),
        errand: CommandTurn,
    ) -> Self {
        let stream = StreamId::from(step.fresh_id("s"));
        step.begin_stream(stream);
        send_command_message(step, Speaker::User, content);
        let mut res = Self {
            prompt,
            phase: Phase::Finished,
            n_samples: 0,
            model: spec.aliases.model_of(&step.record.model).into(),
            router: super::router::Router::default(),
            tries: routing::failure::AttemptCounts::default(),
            single_attempt: false,
            retry_advice: None,
            scheduler: Scheduler::default(),
            tools: spec.toolbox.clone(),
            transcript: TurnTranscript::default(),
            loop_recovery: super::loop_recovery::LoopRecovery::default(),
        };
        match errand {
            CommandTurn::Memory { whole } => res.read_memory(step, Some(whole)),
            CommandTurn::Undo(wish) => res.begin_undo(step, spec, kept, wish),
            CommandTurn::Compress { keep } => res.compress_now(step, spec, kept, keep),
        }
        res
    }

    /// Memory files are looked at once for each session that is made or made anew, and when the user asks for it: what
    /// the model is told must not change with each request, or no prompt cache would hold.
    /// `shown`: to show them, whole or not, and nothing else.
    pub(super) fn read_memory(&mut self, step: &mut Step<'_>, shown: Option<bool>) {
        self.phase = Phase::ReadingMemory { effect: step.start_effect(Effect::ReadMemory), shown };
    }

    pub(super) fn on_memory_read(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        effect: EffectId,
        files: Result<Arc<[MemoryFile]>, String>,
    ) {
        let shown = match self.phase {
            Phase::ReadingMemory { effect: own, shown } if own == effect => shown,
            Phase::DiscoveringMemory(it) if it.look == effect => return self.discovered(step, spec, kept, files),
            _ => return,
        };
        kept.memory_read = true;
        kept.discovery_off &= shown.is_none();
        let found: Vec<String> = step.record.discovered_memory().map(line).collect();
        // Who asks for it wants to have it anew.
        let anew = shown.is_some() && !found.is_empty();
        match files {
            Ok(files) if anew || *files != *step.record.memory().files() => {
                step.log(Fact::Remembered { files: files.to_vec() });
            }
            Ok(_) => (),
            Err(why) => step.emit_notice(&format!("The memory files could not be read: {why}")),
        }
        match shown {
            Some(whole) => {
                let text = with(&found, in_words(step.record.memory(), whole));
                self.finish_with_report(step, text);
            }
            None => self.prepare(step, spec, kept),
        }
    }

    /// The one end of an errand.
    pub(super) fn finish_with_report(&mut self, step: &mut Step<'_>, text: String) {
        self.phase = Phase::Finished;
        send_command_message(step, Speaker::Agent, vec![Part::text(text)]);
        step.emit_event(EventKind::AgentEnd { reason: EndReason::Completed });
        let usage = step.record.turn_usage();
        step.start_effect(Effect::AnswerPrompt {
            prompt: self.prompt,
            outcome: PromptOutcome::Stop(StopKind::EndTurn),
            usage,
        });
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
