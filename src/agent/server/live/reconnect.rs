//! Live sessions reach their models anew: credentials changed, or the model did.

use std::sync::Arc;

use crate::{
    model::{model_factory::ModelContext, reachability},
    server::state::State,
    session::{live_session::LiveSession, place::load_ground, session_resources::SessionResources},
};
use castor_base::ids::SessionId;
use castor_engine::step::Input;

/// Credentials changed: from its next request on, each session reaches its model with the new ones.
pub fn reconnect_models(state: &mut State) {
    let ids: Vec<SessionId> = state.sessions.keys().cloned().collect();
    for id in &ids {
        reconnect_model(state, id);
    }
}

/// Looks again how a session's model is reached. Without access each of its requests fails, with what is missing.
pub fn reconnect_model(state: &mut State, id: &SessionId) {
    let is_of_peer = |it: &&LiveSession| it.session.spec().toolbox.task.as_ref().is_some_and(|task| task.is_of_peer());
    // Another program or server answers there, whatever models are reached with.
    let Some(live) = state.sessions.get(id).filter(|it| !is_of_peer(it)) else { return };
    let (ground, settings) = load_ground(&state.options, &state.env, &live.resources.children.hooks.project);
    let model = live.session.record().model.clone();
    let context = ModelContext { options: &state.options, env: &ground.env, settings: &settings };
    let (generator, _) = reachability::reach_models(&mut state.models, context, id, &model);
    if let Some(live) = state.sessions.get_mut(id) {
        live.resources = Arc::new(SessionResources { generator, ..SessionResources::clone(&live.resources) });
    }
}

/// A prompt has a model of its own.
pub fn begin_prompt_model(state: &mut State, id: &SessionId) {
    if let Some(live) = state.sessions.get_mut(id) {
        live.has_prompt_model = true;
        reconnect_model(state, id);
    }
}

/// The session has its own model again, unless another agent goes on with the prompt.
pub fn end_prompt_model(state: &mut State, id: &SessionId) {
    let Some(live) = state.sessions.get_mut(id).filter(|it| it.has_prompt_model) else { return };
    let record = live.session.record();
    live.has_prompt_model = record.model != record.lasting_model();
    reconnect_model(state, id);
}

/// Tells a new session which models are out, as other sessions found.
pub fn send_outages(state: &mut State, id: &SessionId) {
    let known = state.models.outages.of(id);
    if !known.is_empty() {
        state.step(id, Input::Outages(known));
    }
}
