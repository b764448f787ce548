//! Compression of the conversation during a turn: hooks, a summary by a model, its check, and masks as the fallback.

use serde_json::json;

use crate::turn::{
    flow::{Flow, Station},
    model::{request_builder, windows},
    spec::TurnContext,
    state::TurnState,
    turn_hooks::{HookContinuation, fire_hooks},
    utility_call::{UtilityError, UtilityLimits, UtilityRequest, text_turn},
    utility_wait::{AfterConsulting, consult},
};
use crate::{
    context::{compression, masking, snapshot, tokens},
    hooks::HookOutcome,
    record::Step,
};
use castor_base::{
    event::{COMPACTION, Compaction, CompactionStatus, EventKind},
    history,
    hook::HookEvent,
    log::Fact,
    model::{ModelParams, Purpose},
};

/// For the snapshot, and again for the second look at it.
const LIMITS: UtilityLimits = UtilityLimits { tokens: 16_000, ms: 120_000 };

/// What the conversation is compressed for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::turn) enum CompressionGoal {
    Request,
    /// The user asked for it; what is to be kept above all.
    Command {
        keep: String,
    },
}

impl CompressionGoal {
    /// In the words of hooks.
    fn trigger(&self) -> &'static str {
        match self {
            Self::Request => "auto",
            Self::Command { .. } => "manual",
        }
    }
}

/// What is to give way.
#[derive(Clone, Debug)]
pub(in crate::turn) struct OldContext {
    pub goal: CompressionGoal,
    pub n_turns: usize,
    /// How large the next request would be, in tokens; without its frame, where nothing is requested.
    pub size: u64,
}

/// A compression under way.
#[derive(Debug)]
struct Compressing {
    id: String,
    old: OldContext,
    /// What the compressor was asked.
    question: Vec<std::sync::Arc<history::Turn>>,
    /// The first snapshot, while it is looked at again.
    first: Option<String>,
}

/// The user wants it now, whatever the size.
pub fn compress_now(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, keep: String) -> Flow {
    let turns = cx.step.record.turns();
    let size = compression::count_tokens(turns);
    match compression::split(turns) {
        Some(n_turns) => compress(turn, cx, OldContext { goal: CompressionGoal::Command { keep }, n_turns, size }),
        None => Flow::report("There is nothing to compress yet."),
    }
}

pub(in crate::turn) fn compress(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, old: OldContext) -> Flow {
    let trigger = old.goal.trigger();
    fire_hooks(turn, cx, (HookEvent::PreCompress, trigger, json!({ "trigger": trigger })), old)
}

impl HookContinuation for OldContext {
    /// The hooks have heard of it; they have no say in it.
    fn go_on(self, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, outcome: &HookOutcome) -> Flow {
        cx.step.log_hooks(HookEvent::PreCompress, outcome, None, false);
        let helper = cx.spec.helpers.for_purpose(Purpose::Compressor, &turn.model, &cx.spec.aliases);
        let window = windows::window(cx.step.record, cx.spec, &helper.model);
        let room = cx.step.record.token_scale().estimated_tokens(&helper.model, window) / 10 * 7;
        let room = room.saturating_sub(tokens::of_text(snapshot::SYSTEM) + LIMITS.tokens.min(room / 3));
        let turns = cx.step.record.turns();
        let (wish, text) = match &self.goal {
            CompressionGoal::Request => {
                ("", "The conversation fills much of what the model reads: its older part is compressed.")
            }
            CompressionGoal::Command { keep } => (keep.as_str(), ""),
        };
        let prompt = snapshot::build_prompt(turns.get(..self.n_turns).unwrap_or(turns), room, wish);
        let question = vec![text_turn(history::Role::User, prompt)];
        let it = Compressing { id: cx.step.fresh_id("k"), old: self, question, first: None };
        it.tell(cx.step, CompactionStatus::InProgress, text, (None, None));
        it.ask_for_snapshot(turn, cx)
    }
}

impl AfterConsulting for Compressing {
    /// The compressor's word, the first or the second.
    fn go_on(mut self, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, said: Result<String, UtilityError>) -> Flow {
        match (said, self.first.take()) {
            (Ok(first), None) => {
                self.question.push(text_turn(history::Role::Model, first.as_str()));
                self.question.push(text_turn(history::Role::User, snapshot::VERIFY));
                self.first = Some(first);
                self.ask_for_snapshot(turn, cx)
            }
            // The second look is a bonus.
            (said, Some(first)) => {
                let second = said.ok().filter(|text| self.summary(cx.step, text).is_some());
                self.take_snapshot(turn, cx, &second.unwrap_or(first))
            }
            (Err(why), None) => self.give_up(turn, cx, &why.to_string()),
        }
    }

    fn leave(&self, step: &mut Step<'_>) {
        self.tell(step, CompactionStatus::Cancelled, "", (None, None));
    }
}

impl Compressing {
    fn ask_for_snapshot(self, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
        let helper = cx.spec.helpers.for_purpose(Purpose::Compressor, &turn.model, &cx.spec.aliases);
        let wish = UtilityRequest {
            system: snapshot::SYSTEM.into(),
            contents: self.question.clone(),
            params: ModelParams::default(),
            limits: LIMITS,
        };
        consult(turn, cx, (helper, wish), self)
    }

    fn take_snapshot(self, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, text: &str) -> Flow {
        let OldContext { n_turns, size, .. } = self.old;
        let Some((summary, saving)) = self.summary(cx.step, text) else {
            return self.give_up(turn, cx, "what was written is not shorter than what it stands for");
        };
        let after = size.saturating_sub(saving);
        cx.step.log(Fact::Compressed { turns: n_turns as u64, summary: summary.clone(), tokens: after });
        let text = format!("The conversation was compressed: about {size} tokens are {after} now.");
        self.tell(cx.step, CompactionStatus::Completed, text.as_str(), (Some(summary), None));
        self.finish(turn, text)
    }

    /// What was not compressed is cut, where that helps, and is not tried again soon.
    fn give_up(self, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, why: &str) -> Flow {
        let text = format!("The conversation could not be compressed: {why}.");
        cx.step.log(Fact::NotCompressed { why: why.to_owned(), tokens: self.old.size });
        self.tell(cx.step, CompactionStatus::Failed, text.as_str(), (None, Some(why.to_owned())));
        if self.old.goal == CompressionGoal::Request {
            let masks = masking::mask_all(cx.step.record.turns(), &cx.spec.scratch, &cx.spec.toolbox.known_tools);
            if !masks.is_empty() {
                request_builder::mask(cx.step, masks);
            }
        }
        self.finish(turn, text)
    }

    fn finish(self, turn: &mut TurnState, text: String) -> Flow {
        match self.old.goal {
            CompressionGoal::Request => {
                turn.draft.is_compressed = true;
                Flow::Go(Station::Model)
            }
            CompressionGoal::Command { .. } => Flow::report(text),
        }
    }

    /// What would stand for the old part, and how many tokens that saves; `None`: none.
    fn summary(&self, step: &Step<'_>, text: &str) -> Option<(String, u64)> {
        let (turns, n_turns) = (step.record.turns(), self.old.n_turns);
        let summary = compression::replacement_text(turns, n_turns, &snapshot::extract_snapshot(text));
        let saving = compression::tokens_saved(turns, n_turns, &summary);
        (saving > 0).then_some((summary, saving))
    }

    fn tell(
        &self,
        step: &mut Step<'_>,
        status: CompactionStatus,
        text: &str,
        (summary, error): (Option<String>, Option<String>),
    ) {
        // A command's answer says it to everybody.
        let text = if matches!(self.old.goal, CompressionGoal::Command { .. }) { "" } else { text };
        let it = Compaction { id: self.id.clone(), status, text: text.to_owned(), summary, error };
        let data = serde_json::to_value(it).unwrap_or_default();
        step.emit_event(EventKind::Custom { kind: COMPACTION.to_owned(), data });
    }
}
