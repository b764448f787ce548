//! Compression of the conversation during a turn: hooks, a summary by a model, its check, and masks as the fallback.

use serde_json::json;

use super::{
    Phase, SessionScratch, Spec, Turn,
    turn_hooks::AfterTurnHooks,
    utility_call::{UtilityCall, UtilityLimits, UtilityRequest, text_turn},
    utility_wait::AfterConsulting,
    windows,
};
use crate::{
    base::{
        event::{COMPACTION, Compaction, CompactionStatus, EventKind},
        history,
        hook::HookEvent,
        log::Fact,
        model::{ModelParams, Purpose},
    },
    engine::{
        context::{compression, masking, snapshot, tokens},
        hooks::HookOutcome,
        record::Step,
        routing::utility_models::UtilityModel,
    },
};

/// For the snapshot, and again for the second look at it.
const LIMITS: UtilityLimits = UtilityLimits { tokens: 16_000, ms: 120_000 };

/// What the conversation is compressed for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CompressionGoal {
    /// A request, the attempt of this number.
    Request { attempt: u32 },
    /// The user asked for it; what is to be kept above all.
    Command { keep: String },
}

impl CompressionGoal {
    /// In the words of hooks.
    fn trigger(&self) -> &'static str {
        match self {
            Self::Request { .. } => "auto",
            Self::Command { .. } => "manual",
        }
    }
}

/// What is to give way.
#[derive(Clone, Debug)]
pub(super) struct OldContext {
    pub goal: CompressionGoal,
    pub n_turns: usize,
    /// How large the next request would be, in tokens; without its frame, where nothing is requested.
    pub size: u64,
}

/// A compression under way.
#[derive(Debug)]
pub(super) struct Compressing {
    id: String,
    old: OldContext,
    /// What the compressor was asked.
    question: Vec<std::sync::Arc<history::Turn>>,
    /// The first snapshot, while it is looked at again.
    first: Option<String>,
}

impl Turn {
    /// The user wants it now, whatever the size.
    pub(super) fn compress_now(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut SessionScratch, keep: String) {
        let turns = step.record.turns();
        let size = compression::count_tokens(turns);
        match compression::split(turns) {
            Some(n_turns) => {
                self.compress(step, spec, kept, OldContext { goal: CompressionGoal::Command { keep }, n_turns, size })
            }
            None => self.finish_with_report(step, "There is nothing to compress yet.".to_owned()),
        }
    }

    pub(super) fn compress(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut SessionScratch, old: OldContext) {
        let trigger = old.goal.trigger();
        let input = json!({ "trigger": trigger });
        self.fire_hooks(step, spec, kept, (HookEvent::PreCompress, trigger, input), AfterTurnHooks::PreCompress(old));
    }

    /// The hooks have heard of it; they have no say in it.
    pub(super) fn hooks_heard(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        outcome: &HookOutcome,
        old: OldContext,
    ) {
        step.log_hooks(HookEvent::PreCompress, outcome, None, false);
        let helper = spec.helpers.for_purpose(Purpose::Compressor, &self.model, &spec.aliases);
        let window = windows::window(step.record, spec, &helper.model);
        let room = step.record.token_scale().estimated_tokens(&helper.model, window) / 10 * 7;
        let room = room.saturating_sub(tokens::of_text(snapshot::SYSTEM) + LIMITS.tokens.min(room / 3));
        let turns = step.record.turns();
        let wish = match &old.goal {
            CompressionGoal::Request { .. } => "",
            CompressionGoal::Command { keep } => keep,
        };
        let text = snapshot::build_prompt(turns.get(..old.n_turns).unwrap_or(turns), room, wish);
        let question = vec![text_turn(history::Role::User, text)];
        let it = Compressing { id: step.fresh_id("k"), old, question, first: None };
        let text = match &it.old.goal {
            CompressionGoal::Request { .. } => {
                "The conversation fills much of what the model reads: its older part is compressed."
            }
            CompressionGoal::Command { .. } => "",
        };
        it.tell(step, CompactionStatus::InProgress, text, (None, None));
        self.ask_for_snapshot(step, spec, kept, it, helper);
    }

    fn ask_for_snapshot(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        it: Compressing,
        helper: UtilityModel,
    ) {
        let contents = it.question.clone();
        let wish = UtilityRequest {
            system: snapshot::SYSTEM.into(),
            contents,
            params: ModelParams::default(),
            limits: LIMITS,
        };
        match UtilityCall::ask(step, spec, kept, helper, wish) {
            Ok(utility) => {
                self.phase = Phase::AskingUtility { utility: Box::new(utility), then: AfterConsulting::Compress(it) }
            }
            Err(why) => self.snapshot_said(step, spec, kept, it, Err(why)),
        }
    }

    /// The compressor's word, the first or the second.
    pub(super) fn snapshot_said(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        mut it: Compressing,
        said: Result<String, String>,
    ) {
        match (said, it.first.take()) {
            (Ok(first), None) => {
                it.question.push(text_turn(history::Role::Model, first.as_str()));
                it.question.push(text_turn(history::Role::User, snapshot::VERIFY));
                it.first = Some(first);
                let helper = spec.helpers.for_purpose(Purpose::Compressor, &self.model, &spec.aliases);
                self.ask_for_snapshot(step, spec, kept, it, helper);
            }
            // The second look is a bonus.
            (said, Some(first)) => {
                let second = said.ok().filter(|text| it.summary(step, text).is_some());
                self.take_snapshot(step, spec, kept, it, &second.unwrap_or(first));
            }
            (Err(why), None) => self.uncompressed(step, spec, kept, it, &why),
        }
    }

    fn take_snapshot(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        it: Compressing,
        text: &str,
    ) {
        let OldContext { n_turns, size, .. } = it.old;
        let Some((summary, saving)) = it.summary(step, text) else {
            return self.uncompressed(step, spec, kept, it, "what was written is not shorter than what it stands for");
        };
        let after = size.saturating_sub(saving);
        step.log(Fact::Compressed { turns: n_turns as u64, summary: summary.clone(), tokens: after });
        let text = format!("The conversation was compressed: about {size} tokens are {after} now.");
        it.tell(step, CompactionStatus::Completed, text.as_str(), (Some(summary), None));
        self.after_compression(step, spec, kept, it.old, text);
    }

    /// What was not compressed is cut, where that helps, and is not tried again soon.
    fn uncompressed(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        it: Compressing,
        why: &str,
    ) {
        let text = format!("The conversation could not be compressed: {why}.");
        step.log(Fact::NotCompressed { why: why.to_owned(), tokens: it.old.size });
        it.tell(step, CompactionStatus::Failed, text.as_str(), (None, Some(why.to_owned())));
        if matches!(it.old.goal, CompressionGoal::Request { .. }) {
            let masks = masking::mask_all(step.record.turns(), &spec.scratch);
            if !masks.is_empty() {
                super::request_builder::mask(step, masks);
            }
        }
        self.after_compression(step, spec, kept, it.old, text);
    }

    fn after_compression(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        old: OldContext,
        text: String,
    ) {
        match old.goal {
            CompressionGoal::Request { attempt } => self.ask_model(step, spec, kept, attempt, false),
            CompressionGoal::Command { .. } => self.finish_with_report(step, text),
        }
    }
}

impl Compressing {
    /// What would stand for the old part, and how many tokens that saves; `None`: none.
    fn summary(&self, step: &Step<'_>, text: &str) -> Option<(String, u64)> {
        let (turns, n_turns) = (step.record.turns(), self.old.n_turns);
        let summary = compression::replacement_text(turns, n_turns, &snapshot::extract_snapshot(text));
        let saving = compression::tokens_saved(turns, n_turns, &summary);
        (saving > 0).then_some((summary, saving))
    }

    /// The turn ends before it is over.
    pub fn leave(&self, step: &mut Step<'_>) {
        self.tell(step, CompactionStatus::Cancelled, "", (None, None));
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
