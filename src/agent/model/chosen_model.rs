//! The chosen model of a session: by flag, settings, script or log.

use crate::settings::{Settings, options::Options};
use castor_engine::record::Record;

/// What a session with a script for a model calls it, unless another name is given.
const SCRIPT: &str = "script";

/// The model of a new session. Where neither flag, environment nor settings name one, the table does.
pub fn model_of(options: &Options, settings: &Settings) -> String {
    match (&options.script, &settings.model_name) {
        (_, Some(model)) => model.clone(),
        (Some(_), None) => SCRIPT.to_owned(),
        (None, None) => settings.models.aliases.default_model().to_owned(),
    }
}

/// A session that goes on keeps its model, whatever settings and keys say now. A script's name is no model without the
/// script.
pub fn resumed_model(record: &Record, options: &Options, settings: &Settings) -> String {
    match &options.model {
        Some(it) => it.clone(),
        None if record.model == SCRIPT && options.script.is_none() => model_of(options, settings),
        None => record.model.clone(),
    }
}
