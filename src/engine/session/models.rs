//! `/model`: which model it is, which there are, and why the last request went where it went.

use crate::{
    base::log::Fact,
    engine::{record::Step, turn::Spec},
};

pub fn model(step: &mut Step<'_>, spec: &Spec, name: &str) -> String {
    let known = || spec.models.iter().map(|(id, _)| format!("- `{id}`\n")).collect::<String>();
    let is_known = spec.models.iter().any(|(id, _)| id == name);
    match name {
        "" => format!("The model is `{}`. There are:\n{}", step.record.model, known()),
        "why" if !is_known => why(step),
        _ if !is_known => format!("There is no model `{name}` here. There are:\n{}", known()),
        _ => {
            step.log(Fact::Model { model: name.to_owned() });
            format!("From the next request on the model is `{name}`.")
        }
    }
}

/// From the facts: what was decided, not what would be decided now.
fn why(step: &Step<'_>) -> String {
    let configured = format!("The session's model is `{}`.\n", step.record.model);
    let Some(it) = step.record.routed() else { return format!("{configured}No request was sent yet.\n") };
    let attempt = if it.attempt > 1 { format!(" (attempt {})", it.attempt) } else { String::new() };
    // Logs of old do not say.
    let why = if it.why.is_empty() { "nobody wrote down why" } else { &it.why };
    let mut text = format!("{configured}The last request went to `{}`{attempt}: {why}.\n", it.model);
    if let Some((from, why)) = &it.left {
        text += &format!("`{from}` was left in that turn: {why}\n");
    }
    text
}
