//! The slash command `/model`: the current model, the choices, and why the last request was routed there.

use crate::{
    record::Step,
    routing::retirement,
    turn::{Spec, model::windows},
};
use castor_base::text;

pub fn model(step: &mut Step<'_>, spec: &Spec, name: &str) -> String {
    let is_known = spec.choices.models.listed.iter().any(|(id, _)| id == name);
    match name {
        "" => {
            let (model, day) = (&step.record.model, spec.aliases.models().date());
            format!("The model is `{model}`. There are:\n{}\nWhat castor knows of models is of {day}.", known(spec))
        }
        "why" if !is_known => why(step),
        _ if !is_known && !is_provided(spec, name) => missing(spec, name),
        _ => {
            step.log(windows::model_fact(spec, name));
            let notices = retirement::notices(name, &spec.aliases, &spec.prices);
            let notices: String = notices.iter().map(|it| format!(" {}", it.text)).collect();
            format!("From the next request on the model is `{name}`.{notices}")
        }
    }
}

fn known(spec: &Spec) -> String {
    let end = |id: &str| match retirement::end(&spec.aliases.model_of(id), &spec.aliases, &spec.prices) {
        Some(on) => format!(" (switched off on {on})"),
        None => String::new(),
    };
    spec.choices.models.listed.iter().map(|(id, _)| format!("- `{id}`{}\n", end(id))).collect()
}

/// Lists need not be whole, and nobody is asked for one here: who is configured is asked for any name.
fn is_provided(spec: &Spec, name: &str) -> bool {
    let providers = &spec.choices.models.providers;
    match name.split_once('/') {
        Some((provider, rest)) => !rest.trim().is_empty() && providers.iter().any(|it| it.name == provider),
        // A model that is known, though no list has it.
        None => {
            let models = spec.aliases.models();
            !providers.is_empty() && models.row(name).is_some_and(|it| spec.prices.is_makers(name, it, models))
        }
    }
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
