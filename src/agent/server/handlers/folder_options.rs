//! `_castor/options/list`: models, modes and other options that a session in a folder would have.

use serde_json::value::RawValue;

use crate::server::{
    agents,
    reply::{Reply, reply_now},
    state::State,
};
use crate::{
    model::{catalog::Catalog, chosen_model::model_of},
    session::{
        agents::folder_agents,
        modes::{first_mode, offered_modes},
        place::load_ground,
    },
};
use castor_base::log::Tuning;
use castor_hands::disk;
use castor_wire::{
    acp::{
        options::{self, ChosenOptions, OfferedOptions},
        own::folder_options::read_folder,
    },
    jsonrpc::error,
};

pub fn list(state: &State, params: Option<&RawValue>) -> Reply {
    let cwd = read_folder(params).map_err(|it| error::invalid_params(&it))?;
    if !disk::metadata(&cwd).is_ok_and(|it| it.is_dir) {
        return Err(error::invalid_params(&format!("{cwd} is not a folder; choose one that exists")));
    }
    let (ground, settings) = load_ground(&state.options, &state.env, &cwd);
    let model = model_of(&state.options, &settings);
    let (mode, _) = first_mode(&state.options, &ground.trust, &settings)?;
    let catalog = Catalog::for_options(&state.options, state.tasks.store.home());
    let offer = OfferedOptions {
        modes: offered_modes(&settings),
        models: catalog.models_on_offer(&state.options, &settings, &model),
        thinking: !state.options.needs_no_access(),
        booleans: state.client.as_ref().is_some_and(|it| it.bool_options),
        limits: settings.limits,
        agents: agents::names_of(&folder_agents(&ground, &settings).0),
    };
    let chosen = ChosenOptions { mode, model, tuning: Tuning::default(), limits: None, agent: None };
    reply_now(&options::response(&offer, &chosen))
}
