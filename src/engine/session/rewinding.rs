//! A client has the session go back, without a turn: nobody is asked, and the one answer says what came of it. Also what a
//! slash command leaves to do: the conversation goes back when the command's own turn is over.

use crate::{
    base::{
        checkpoint::{RestoreOrder, Restored},
        ids::{CheckpointId, EffectId, MessageId, PromptId},
    },
    engine::{
        record::{Record, Step},
        step::{Act, Effect, Input, Refusal, RewindOrder, Rewound},
        turn::{Kept, Spec, undo},
    },
};

/// No prompt begins until it is over.
#[derive(Debug)]
pub(super) enum Rewinding {
    Files {
        prompt: PromptId,
        effect: EffectId,
        order: Box<RestoreOrder>,
        message: Option<MessageId>,
    },
    /// The log is read; `None`: nobody waits for an answer.
    Conversation(Option<(PromptId, Box<Rewound>)>),
}

/// Before anything else is done about an input. `in_turn`: whether a turn runs.
pub(super) fn hear(
    own: &mut Option<Rewinding>,
    input: &Input,
    step: &mut Step<'_>,
    spec: &Spec,
    kept: &Kept,
    in_turn: bool,
) {
    match input {
        Input::GoBack(wanted) => {
            let begun = begin(step, spec, kept, in_turn || own.is_some(), RewindOrder::clone(wanted));
            *own = own.take().or(begun);
        }
        Input::Restored { effect, result } => {
            if let Some(it) = own.take_if(|it| matches!(it, Rewinding::Files { effect: own, .. } if own == effect)) {
                *own = it.restored(step, result.clone());
            }
        }
        Input::Rewind { to, log } if !in_turn => {
            if let Some(it) = own.take_if(|it| matches!(it, Rewinding::Conversation(_))) {
                it.finish(step, Record::before(log, to).is_some());
            }
        }
        // Nobody waits for it any more. What was begun is carried out, and logged.
        Input::Cancel => *own = own.take().and_then(|it| it.leave(step)),
        Input::CancelPrompt(prompt) => {
            if let Some(it) = own.take_if(|it| it.prompt() == Some(*prompt)) {
                *own = it.leave(step);
            }
        }
        _ => (),
    }
}

/// The conversation goes back at the end of a command: the next prompt waits for that.
pub(super) fn note(own: &mut Option<Rewinding>, acts: &[Act]) {
    let goes_back = acts.iter().any(|it| matches!(it, Act::Do(_, Effect::Rewind { .. })));
    if goes_back && own.is_none() {
        *own = Some(Rewinding::Conversation(None));
    }
}

/// Begins; what needs neither files nor log is over at once.
fn begin(step: &mut Step<'_>, spec: &Spec, kept: &Kept, is_busy: bool, wanted: RewindOrder) -> Option<Rewinding> {
    let RewindOrder { prompt, to, what, on_conflict, paths } = wanted;
    let refusal = match (undo::route(step.record, &to, what), kept.holding.why_busy()) {
        _ if is_busy => Refusal::Busy("the session is busy with a prompt".to_owned()),
        _ if what.has_files() && !spec.toolbox.checkpoints => Refusal::Failed(undo::OFF.to_owned()),
        (Err(why), _) => Refusal::Unknown(why),
        (Ok(undo::Route { undo, message }), _) if undo.is_empty() => {
            return talk(step, prompt, message, Rewound::default());
        }
        (Ok(_), Some(why)) => Refusal::Busy(why),
        (Ok(undo::Route { undo, message }), None) => {
            let order = RestoreOrder { id: CheckpointId::from(step.fresh("k")), undo, on_conflict, paths };
            let effect = step.effect(Effect::Restore(order.clone()));
            return Some(Rewinding::Files { prompt, effect, order: Box::new(order), message });
        }
    };
    answer(step, prompt, Err(refusal));
    None
}

impl Rewinding {
    /// Who waits for its answer.
    fn prompt(&self) -> Option<PromptId> {
        match self {
            Self::Files { prompt, .. } | Self::Conversation(Some((prompt, _))) => Some(*prompt),
            Self::Conversation(None) => None,
        }
    }

    /// The files are back, or stay as they are.
    fn restored(self, step: &mut Step<'_>, result: Result<(Restored, Vec<String>), String>) -> Option<Self> {
        let Self::Files { prompt, order, message, .. } = self else { return Some(self) };
        match result {
            Err(why) => answer(step, prompt, Err(Refusal::Failed(format!("{why}; mend that and send it again")))),
            Ok((files, _)) if order.is_refused(&files) => {
                answer(step, prompt, Ok(Rewound { files, checkpoint: None }));
            }
            Ok((files, _)) => return talk(step, prompt, message, Rewound { files, checkpoint: Some(order.id) }),
        }
        None
    }

    /// The log was read.
    fn finish(self, step: &mut Step<'_>, is_back: bool) {
        let Self::Conversation(Some((prompt, rewound))) = self else { return };
        let failed = "the files are back, but not the conversation: the session's log does not have it".to_owned();
        answer(step, prompt, if is_back { Ok(*rewound) } else { Err(Refusal::Failed(failed)) });
    }

    /// Nobody waits for its answer any more. The next prompt still waits for a log that is read.
    fn leave(self, step: &mut Step<'_>) -> Option<Self> {
        if let Some(prompt) = self.prompt() {
            let why = "it was cancelled; files that are being restored are restored all the same".to_owned();
            answer(step, prompt, Err(Refusal::Failed(why)));
        }
        matches!(self, Self::Conversation(_)).then_some(Self::Conversation(None))
    }
}

/// What is left to do for the conversation.
fn talk(step: &mut Step<'_>, prompt: PromptId, message: Option<MessageId>, rewound: Rewound) -> Option<Rewinding> {
    match message {
        Some(to) => {
            step.effect(Effect::Rewind { to });
            Some(Rewinding::Conversation(Some((prompt, Box::new(rewound)))))
        }
        None => {
            answer(step, prompt, Ok(rewound));
            None
        }
    }
}

fn answer(step: &mut Step<'_>, prompt: PromptId, result: Result<Rewound, Refusal>) {
    step.effect(Effect::Rewound { prompt, result: Box::new(result) });
}
