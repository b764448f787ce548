//! The question about a session's folder: raised when the session begins, and what follows from its answer.

use std::sync::Arc;

use crate::{
    app::{
        commands, mcp, policies, sessions,
        settings::Settings,
        state::{Live, State},
    },
    base::{
        ids::{EffectId, SessionId},
        trust::{Trust, TrustChoice, would_allow},
    },
    engine::step::{Choice, Doubted, Input},
    wire::acp::session::Place,
    world::workspace::ground::{self, Ground},
};

/// Files as the question shows them: a yes is about these, whatever stands on the disk meanwhile.
pub struct Pending {
    pub ground: Ground,
    pub place: Place,
    /// The session was begun before: its model is its own.
    pub goes_on: bool,
}

/// What is to be said where no folder counts as trusted, as the list of those cannot be read: nobody is asked then.
pub fn unread(ground: &Ground) -> Option<String> {
    let Trust::Untrusted(why) = &ground.trust else { return None };
    let by_list = ground.warnings.iter().any(|it| it.to_string() == *why);
    by_list.then(|| format!("What this folder brings is not used, settings and instructions too: {why}"))
}

/// The session's next turn asks, or tells where nobody can be asked.
pub fn raise(state: &mut State, id: &SessionId, pending: Pending) {
    let Some(doubt) = pending.ground.doubt.clone() else { return };
    let headless = state.client.as_ref().is_some_and(|it| it.headless);
    let doubted = match headless {
        true => Doubted::Tell(doubt.notice),
        false => {
            let mut form = doubt.form;
            form.message += &would_allow(&policies::brought(&pending.ground, &state.env));
            Doubted::Ask(Arc::new(form))
        }
    };
    if let Some(live) = state.sessions.get_mut(id) {
        live.pending = Some(Box::new(pending));
    }
    state.step(id, Input::Doubted(doubted));
}

/// The user said it, and the log has it.
pub fn decided(state: &mut State, id: &SessionId, effect: EffectId, choice: TrustChoice) {
    let result = match state.sessions.get_mut(id).and_then(|it| it.pending.take()) {
        Some(pending) => carry_out(state, id, *pending, choice),
        // Said already, by an earlier turn.
        None => Ok(()),
    };
    state.step(id, Input::Joined { effect, result });
}

fn carry_out(state: &mut State, id: &SessionId, pending: Pending, choice: TrustChoice) -> Result<(), String> {
    let Pending { ground, place, goes_on } = pending;
    let warnings = ground::decide(state.world.store.home(), &ground, choice).map_err(|it| it.to_string())?;
    for it in warnings {
        tracing::warn!("{it}");
    }
    let before = sessions::settings_of(&state.options, &ground);
    let begun = sessions::first_mode(&state.options, &ground.trust, &before).map_or(before.approval_mode, |it| it.0);
    let ground = match choice {
        TrustChoice::Never => ground.refused(&state.env, "you said so"),
        _ => ground.accepted(&state.env, "you said so"),
    };
    let after = sessions::join(state, id, ground, &place)?;
    // What the session began with follows the settings; what was chosen in it stays.
    let Some(live) = state.sessions.get(id) else { return Ok(()) };
    let (mode, model) = (live.session.record().mode, live.session.record().model.clone());
    let (old, new) = (sessions::model_of(&state.options, &before), sessions::model_of(&state.options, &after.settings));
    if model == old && old != new && !goes_on {
        offer(state, id, &after.settings, &new);
        state.step(id, Input::Choose(Choice::Model(new)));
    }
    let wanted = if mode == begun { after.settings.approval_mode } else { mode };
    let mode_now = sessions::nearest_mode(wanted, &after);
    if mode_now != mode {
        state.step(id, Input::Choose(Choice::Mode(mode_now)));
    }
    mcp::connect(state, id, after.wish);
    commands::update(state, id);
    Ok(())
}

fn offer(state: &mut State, id: &SessionId, settings: &Settings, model: &str) {
    let models = sessions::models_on_offer(&state.options, settings, &sessions::catalog(state), model);
    if let Some(Live { manner, view, .. }) = state.sessions.get_mut(id) {
        manner.offer.models = models;
        view.offer(manner.offer.clone());
    }
}
