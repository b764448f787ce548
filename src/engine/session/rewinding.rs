//! A client has the session go back, without a turn: nobody is asked, and the one answer says what came of it.

use crate::{
    base::{
        checkpoint::{OnConflict, RestoreOrder, Restored},
        ids::{CheckpointId, EffectId, MessageId, PromptId},
    },
    engine::{
        record::Step,
        step::{Effect, Refusal, RewindOrder, Rewound},
        turn::{Kept, Spec, undo},
    },
};

/// Files are being restored.
#[derive(Debug)]
pub(super) struct Rewinding {
    pub prompt: PromptId,
    effect: EffectId,
    order: RestoreOrder,
    message: Option<MessageId>,
}

/// Begins; what needs no files is over at once.
pub(super) fn begin(
    step: &mut Step<'_>,
    spec: &Spec,
    kept: &Kept,
    is_busy: bool,
    wanted: RewindOrder,
) -> Option<Rewinding> {
    let RewindOrder { prompt, to, what, on_conflict, paths } = wanted;
    let busy = || is_busy.then(|| "the session is busy with a prompt".to_owned());
    let refusal = match undo::route(step.record, &to, what) {
        _ if what.has_files() && !spec.toolbox.checkpoints => Refusal::Failed(undo::OFF.to_owned()),
        Err(why) => Refusal::Unknown(why),
        Ok(_) if busy().is_some() => Refusal::Busy(busy().unwrap_or_default()),
        Ok(route) if route.undo.is_empty() => {
            let done = done(step, route.message, Rewound::default());
            answer(step, prompt, Ok(done));
            return None;
        }
        Ok(undo::Route { undo, message }) => match kept.holding.why_busy() {
            Some(why) => Refusal::Busy(why),
            None => {
                let order = RestoreOrder { id: CheckpointId::from(step.fresh("k")), undo, on_conflict, paths };
                let effect = step.effect(Effect::Restore(order.clone()));
                return Some(Rewinding { prompt, effect, order, message });
            }
        },
    };
    answer(step, prompt, Err(refusal));
    None
}

impl Rewinding {
    pub fn is_about(&self, own: EffectId) -> bool {
        self.effect == own
    }

    /// The files are back, or stay as they are.
    pub fn finish(self, step: &mut Step<'_>, result: Result<(Restored, Vec<String>), String>) {
        let result = match result {
            Err(why) => Err(Refusal::Failed(why)),
            Ok((files, _)) if self.order.on_conflict == OnConflict::Fail && !files.conflicts.is_empty() => {
                Ok(Rewound { files, checkpoint: None })
            }
            Ok((files, _)) => {
                let rewound = Rewound { files, checkpoint: Some(self.order.id) };
                Ok(done(step, self.message, rewound))
            }
        };
        answer(step, self.prompt, result);
    }

    /// Nobody waits for it any more. What was begun is carried out, and logged.
    pub fn leave(self, step: &mut Step<'_>) {
        let why = "it was cancelled; files that are being restored are restored all the same".to_owned();
        answer(step, self.prompt, Err(Refusal::Failed(why)));
    }
}

/// What becomes of the conversation.
fn done(_: &mut Step<'_>, _: Option<MessageId>, rewound: Rewound) -> Rewound {
    rewound
}

fn answer(step: &mut Step<'_>, prompt: PromptId, result: Result<Rewound, Refusal>) {
    step.effect(Effect::Rewound { prompt, result: Box::new(result) });
}
