//! The trust question about a session's folder, and the effect of its answer.

use std::sync::Arc;

use crate::{
    app::{
        server::{
            mcp,
            state::{LiveSession, State},
        },
        session::{offered_commands, policies, sessions},
        settings::Settings,
    },
    base::{
        ids::{EffectId, SessionId},
        trust::{Trust, TrustChoice, allowed_by_trust},
    },
    engine::step::{Input, OptionValue, TrustPrompt},
    wire::acp::session::SessionFolders,
    world::workspace::folder_config::{self, FolderConfig},
};

/// Files as the question shows them: a yes is about these, whatever stands on the disk meanwhile.
pub struct PendingTrust {
    pub ground: FolderConfig,
    pub place: SessionFolders,
    /// The session was begun before: its model is its own.
    pub is_resumed: bool,
}

/// What is to be said where no folder counts as trusted, as the list of those cannot be read: nobody is asked then.
pub fn unread_notice(ground: &FolderConfig) -> Option<String> {
    let Trust::Untrusted(why) = &ground.trust else { return None };
    let by_list = ground.warnings.iter().any(|it| it.to_string() == *why);
    by_list.then(|| format!("What this folder brings is not used, settings and instructions too: {why}"))
}

/// The session's next turn asks, or tells where nobody can be asked.
pub fn ask_trust(state: &mut State, id: &SessionId, pending: PendingTrust) {
    let Some(doubt) = pending.ground.doubt.clone() else { return };
    let headless = state.client.as_ref().is_some_and(|it| it.headless);
    let doubted = match headless {
        true => TrustPrompt::Tell(doubt.notice),
        false => {
            let mut form = doubt.form;
            form.message += &allowed_by_trust(&policies::allowed_if_trusted(&pending.ground, &state.env));
            TrustPrompt::Ask(Arc::new(form))
        }
    };
    if let Some(live) = state.sessions.get_mut(id) {
        live.pending_trust = Some(Box::new(pending));
    }
    state.step(id, Input::TrustPrompt(doubted));
}

/// The user said it, and the log has it.
pub fn apply_answer(state: &mut State, id: &SessionId, effect: EffectId, choice: TrustChoice) {
    let result = match state.sessions.get_mut(id).and_then(|it| it.pending_trust.take()) {
        Some(pending) => apply_choice(state, id, *pending, choice),
        // Said already, by an earlier turn.
        None => Ok(()),
    };
    state.step(id, Input::TrustApplied { effect, result });
}

fn apply_choice(state: &mut State, id: &SessionId, pending: PendingTrust, choice: TrustChoice) -> Result<(), String> {
    let PendingTrust { ground, place, is_resumed: goes_on } = pending;
    let warnings =
        folder_config::save_decision(state.tasks.store.home(), &ground, choice).map_err(|it| it.to_string())?;
    for it in warnings {
        tracing::warn!("{it}");
    }
    let before = sessions::settings_of(&state.options, &ground);
    let begun = sessions::first_mode(&state.options, &ground.trust, &before).map_or(before.approval_mode, |it| it.0);
    let ground = match choice {
        TrustChoice::Never => ground.without_trust(&state.env, "you said so"),
        _ => ground.with_trust(&state.env, "you said so"),
    };
    let after = sessions::readmit_session(state, id, ground, &place)?;
    // What the session began with follows the settings; what was chosen in it stays.
    let Some(live) = state.sessions.get(id) else { return Ok(()) };
    let (mode, model) = (live.session.record().mode, live.session.record().model.clone());
    let (old, new) = (sessions::model_of(&state.options, &before), sessions::model_of(&state.options, &after.settings));
    if model == old && old != new && !goes_on {
        offer_model(state, id, &after.settings, &new);
        state.step(id, Input::SetOption(OptionValue::Model(new)));
    }
    let wanted = if mode == begun { after.settings.approval_mode } else { mode };
    let mode_now = sessions::nearest_mode(wanted, &after);
    if mode_now != mode {
        state.step(id, Input::SetOption(OptionValue::Mode(mode_now)));
    }
    mcp::connect(state, id, after.wish);
    offered_commands::update(state, id);
    Ok(())
}

fn offer_model(state: &mut State, id: &SessionId, settings: &Settings, model: &str) {
    let models = sessions::models_on_offer(&state.options, settings, &sessions::catalog(state), model);
    if let Some(LiveSession { profile: manner, view, .. }) = state.sessions.get_mut(id) {
        manner.offer.models = models;
        view.set_offer(manner.offer.clone());
    }
}
