//! Rewind on a client's request, without a turn, and the rewind that a slash command leaves to do.

use crate::{
    commands::undo,
    record::{Record, Step},
    step::{Act, Effect, Input, RewindOrder, RewindRefusal, RewindResult},
    turn::TurnContext,
};
use castor_base::{
    checkpoint::{RestoreOrder, RestoreResult},
    ids::{CheckpointId, EffectId, MessageId, PromptId},
};

/// No prompt begins until it is over.
#[derive(Debug)]
pub(super) enum ClientRewind {
    Files {
        prompt: PromptId,
        effect: EffectId,
        order: Box<RestoreOrder>,
        message: Option<MessageId>,
    },
    /// The log is read; `None`: no answer is due.
    Conversation(Option<(PromptId, Box<RewindResult>)>),
}

/// Before anything else is done about an input. `in_turn`: whether a turn runs.
pub(super) fn handle_input(own: &mut Option<ClientRewind>, input: &Input, cx: &mut TurnContext<'_, '_>, in_turn: bool) {
    match input {
        Input::ClientRewind(wanted) => {
            let begun = begin(cx, in_turn || own.is_some(), RewindOrder::clone(wanted));
            *own = own.take().or(begun);
        }
        Input::Restored { effect, result } => {
            if let Some(it) = own.take_if(|it| matches!(it, ClientRewind::Files { effect: own, .. } if own == effect)) {
                *own = it.handle_restored(cx.step, result.clone());
            }
        }
        Input::RewindConversation { to, log } if !in_turn => {
            if let Some(it) = own.take_if(|it| matches!(it, ClientRewind::Conversation(_))) {
                it.finish(cx.step, Record::rewind_point(log, to).is_some());
            }
        }
        // Nobody waits for it any more. What was begun is carried out, and logged.
        Input::Cancel => *own = own.take().and_then(|it| it.cancel(cx.step)),
        Input::CancelPrompt(prompt) => {
            if let Some(it) = own.take_if(|it| it.prompt() == Some(*prompt)) {
                *own = it.cancel(cx.step);
            }
        }
        _ => (),
    }
}

/// The conversation goes back at the end of a command: the next prompt waits for that.
pub(super) fn track_rewind(own: &mut Option<ClientRewind>, acts: &[Act]) {
    let goes_back = acts.iter().any(|it| matches!(it, Act::Do(_, Effect::RewindConversation { .. })));
    if goes_back && own.is_none() {
        *own = Some(ClientRewind::Conversation(None));
    }
}

/// Begins; what needs neither files nor log is over at once.
fn begin(cx: &mut TurnContext<'_, '_>, is_busy: bool, wanted: RewindOrder) -> Option<ClientRewind> {
    let RewindOrder { prompt, to, what, on_conflict, paths } = wanted;
    let refusal = match (undo::restore_route(cx.step.record, &to, what), cx.scratch.checkpoints.busy_reason()) {
        _ if is_busy => RewindRefusal::Busy("the session is busy with a prompt".to_owned()),
        _ if what.has_files() && !cx.spec.toolbox.checkpoints => {
            RewindRefusal::Failed(undo::CHECKPOINTS_OFF.to_owned())
        }
        (Err(why), _) => RewindRefusal::Unknown(why.to_string()),
        (Ok(undo::RestoreRoute { undo, message }), _) if undo.is_empty() => {
            return rewind_conversation(cx.step, prompt, message, RewindResult::default());
        }
        (Ok(_), Some(why)) => RewindRefusal::Busy(why),
        (Ok(undo::RestoreRoute { undo, message }), None) => {
            let order = RestoreOrder { id: CheckpointId::from(cx.step.fresh_id("k")), undo, on_conflict, paths };
            let effect = cx.step.start_effect(Effect::Restore(order.clone()));
            return Some(ClientRewind::Files { prompt, effect, order: Box::new(order), message });
        }
    };
    answer(cx.step, prompt, Err(refusal));
    None
}

impl ClientRewind {
    /// Who waits for its answer.
    fn prompt(&self) -> Option<PromptId> {
        match self {
            Self::Files { prompt, .. } | Self::Conversation(Some((prompt, _))) => Some(*prompt),
            Self::Conversation(None) => None,
        }
    }

    /// The files are back, or stay as they are.
    fn handle_restored(
        self,
        step: &mut Step<'_>,
        result: Result<(RestoreResult, Vec<String>), String>,
    ) -> Option<Self> {
        let Self::Files { prompt, order, message, .. } = self else { return Some(self) };
        match result {
            Err(why) => answer(step, prompt, Err(RewindRefusal::Failed(format!("{why}; mend that and send it again")))),
            Ok((files, _)) if order.is_refused(&files) => {
                answer(step, prompt, Ok(RewindResult { files, checkpoint: None }));
            }
            Ok((files, _)) => {
                return rewind_conversation(step, prompt, message, RewindResult { files, checkpoint: Some(order.id) });
            }
        }
        None
    }

    /// The log was read.
    fn finish(self, step: &mut Step<'_>, is_back: bool) {
        let Self::Conversation(Some((prompt, rewound))) = self else { return };
        let failed = "the files are back, but not the conversation: the session's log does not have it".to_owned();
        answer(step, prompt, if is_back { Ok(*rewound) } else { Err(RewindRefusal::Failed(failed)) });
    }

    /// Nobody waits for its answer any more. The next prompt still waits for a log that is read.
    fn cancel(self, step: &mut Step<'_>) -> Option<Self> {
        if let Some(prompt) = self.prompt() {
            let why = "it was cancelled; files that are being restored are restored all the same".to_owned();
            answer(step, prompt, Err(RewindRefusal::Failed(why)));
        }
        matches!(self, Self::Conversation(_)).then_some(Self::Conversation(None))
    }
}

/// What is left to do for the conversation.
fn rewind_conversation(
    step: &mut Step<'_>,
    prompt: PromptId,
    message: Option<MessageId>,
    rewound: RewindResult,
) -> Option<ClientRewind> {
    match message {
        Some(to) => {
            step.start_effect(Effect::RewindConversation { to });
            Some(ClientRewind::Conversation(Some((prompt, Box::new(rewound)))))
        }
        None => {
            answer(step, prompt, Ok(rewound));
            None
        }
    }
}

fn answer(step: &mut Step<'_>, prompt: PromptId, result: Result<RewindResult, RewindRefusal>) {
    step.start_effect(Effect::AnswerRewind { prompt, result: Box::new(result) });
}
