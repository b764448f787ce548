//! The slash command `/model`: the current model, the choices, and why the last request was routed there.

use crate::{
    base::text,
    engine::{
        record::Step,
        turn::{Spec, windows},
    },
};

pub fn model(step: &mut Step<'_>, spec: &Spec, name: &str) -> String {
    let is_known = spec.choices.models.listed.iter().any(|(id, _)| id == name);
    match name {
        "" => format!("The model is `{}`. There are:\n{}", step.record.model, known(spec)),
        "why" if !is_known => why(step),
        _ if !is_known && !is_provided(spec, name) => missing(spec, name),
        _ => {
            step.log(windows::model_fact(spec, name));
            format!("From the next request on the model is `{name}`.")
        }
    }
}

fn known(spec: &Spec) -> String {
    spec.choices.models.listed.iter().map(|(id, _)| format!("- `{id}`\n")).collect()
}

/// Lists need not be whole, and nobody is asked for one here: who is configured is asked for any name.
fn is_provided(spec: &Spec, name: &str) -> bool {
    let parts = name.split_once('/');
    parts.is_some_and(|(provider, rest)| {
        !rest.trim().is_empty() && spec.choices.models.providers.iter().any(|it| it.name == provider)
    })
}

fn missing(spec: &Spec, name: &str) -> String {
    let name = text::first_line(name, 100);
    let providers: Vec<String> = spec.choices.models.providers.iter().map(|it| format!("`{}`", it.name)).collect();
    let hint = match name.split_once('/') {
        // A script answers as itself only.
        _ if providers.is_empty() => "",
        Some((provider, _)) if !spec.choices.models.providers.iter().any(|it| it.name == provider) => {
            let known = providers.join(", ");
            return format!(
                "There is no provider `{provider}`: known are {known}. Your settings can name more under `providers`."
            );
        }
        _ => "\nA provider's model is `PROVIDER/NAME`; `castor models PROVIDER` in a terminal lists names.",
    };
    format!("There is no model `{name}` here. There are:\n{}{hint}", known(spec))
}

/// From the facts: what was decided, not what would be decided now.
fn why(step: &Step<'_>) -> String {
    let configured = format!("The session's model is `{}`.\n", step.record.model);
    let Some(it) = step.record.last_route() else { return format!("{configured}No request was sent yet.\n") };
    let attempt = if it.attempt > 1 { format!(" (attempt {})", it.attempt) } else { String::new() };
    // Logs of old do not say.
    let why = if it.why.is_empty() { "nobody wrote down why" } else { &it.why };
    let mut text = format!("{configured}The last request went to `{}`{attempt}: {why}.\n", it.model);
    if let Some((from, why)) = &it.left_model {
        text += &format!("`{from}` was left in that turn: {why}\n");
    }
    text
}
