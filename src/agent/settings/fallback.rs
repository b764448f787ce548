//! The setting `model.fallback`: fallback models and the action for each kind of failure, in Gemini CLI's words.

use serde_json::{Map, Value};

use super::Getter;
use castor_engine::routing::{
    aliases::Aliases,
    failure_class::PolicyKind,
    fallback_policies::{FallbackAction, FallbackPolicies, FallbackPolicy, OutageTransition},
};
use castor_tools::workspace::Warning;

const KEY: &str = "model.fallback.policies";
/// Of all models that have none of their own.
const ALL: &str = "*";
const MEMBERS: [&str; 4] = ["actions", "stateTransitions", "maxAttempts", "isLastResort"];

pub(super) fn read(get: &Getter<'_>, aliases: &Aliases, warnings: &mut Vec<Warning>) -> FallbackPolicies {
    let silent = get.text("model.fallback.action").as_deref() == Some("silent");
    let usual = FallbackPolicy::always(if silent { FallbackAction::Silent } else { FallbackAction::Ask });
    let mut res = FallbackPolicies { otherwise: usual, ..FallbackPolicies::default() };
    for (model, it) in get.value(KEY).as_object().into_iter().flatten() {
        match policy(it) {
            Ok(it) if model == ALL => res.otherwise = it.or(usual),
            Ok(it) => _ = res.by_model.insert(aliases.model_of(model).trim_start_matches("models/").to_owned(), it),
            Err(why) => {
                let key = Some(format!("{KEY}.{model}"));
                let message = format!("{why}; ignored");
                warnings.push(Warning { origin: "settings".to_owned(), at: None, key, message });
            }
        }
    }
    res
}

fn policy(it: &Value) -> Result<FallbackPolicy, String> {
    let members = it.as_object().ok_or("should be an object {…}")?;
    if let Some(odd) = members.keys().find(|it| !MEMBERS.contains(&it.as_str())) {
        return Err(format!("`{odd}` is none of {}", MEMBERS.join(", ")));
    }
    let max_attempts = match members.get("maxAttempts") {
        None => None,
        Some(it) => {
            let n = it.as_u64().filter(|it| *it > 0).and_then(|it| u32::try_from(it).ok());
            Some(n.ok_or("`maxAttempts` should be a whole number, at least 1")?)
        }
    };
    let last_resort = members.get("isLastResort").map_or(Some(false), Value::as_bool);
    let last_resort = last_resort.ok_or("`isLastResort` should be true or false")?;
    let actions = [("prompt", FallbackAction::Ask), ("ask", FallbackAction::Ask), ("silent", FallbackAction::Silent)];
    let transitions = [("terminal", OutageTransition::Terminal), ("sticky_retry", OutageTransition::StickyRetry)];
    Ok(FallbackPolicy {
        actions: by_kind(members, "actions", &actions)?,
        transitions: by_kind(members, "stateTransitions", &transitions)?,
        max_attempts,
        last_resort,
    })
}

fn by_kind<T: Copy>(members: &Map<String, Value>, name: &str, words: &[(&str, T)]) -> Result<[Option<T>; 4], String> {
    let Some(it) = members.get(name) else { return Ok([None; 4]) };
    let it = it.as_object().ok_or_else(|| format!("`{name}` should be an object {{…}}"))?;
    let kinds = PolicyKind::ALL.map(PolicyKind::as_str);
    if let Some(odd) = it.keys().find(|it| !kinds.contains(&it.as_str())) {
        return Err(format!("`{name}.{odd}` is none of {}", kinds.join(", ")));
    }
    let mut res = [None; 4];
    for (to, kind) in res.iter_mut().zip(kinds) {
        let Some(action_name) = it.get(kind) else { continue };
        let word = words.iter().find(|(word, _)| action_name.as_str() == Some(word)).map(|(_, it)| *it);
        let known = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(" or ");
        *to = Some(word.ok_or_else(|| format!("`{name}.{kind}` should be {}", known()))?);
    }
    Ok(res)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::policy;

    fn check(it: Value, expected: &str) {
        let actual = policy(&it).map_or_else(|why| why, |it| format!("{it:?}"));
        assert_eq!(actual, expected);
    }

    #[test]
    fn what_is_written_counts_or_is_told() {
        check(
            json!({"actions": {"transient": "silent", "unknown": "prompt"}, "maxAttempts": 3}),
            "FallbackPolicy { actions: [None, Some(Silent), None, Some(Ask)], transitions: [None, None, None, None], \
             max_attempts: Some(3), last_resort: false }",
        );
        check(
            json!({"stateTransitions": {"terminal": "sticky_retry", "not_found": "terminal"}, "isLastResort": true}),
            "FallbackPolicy { actions: [None, None, None, None], transitions: [Some(StickyRetry), None, Some(Terminal), None], \
             max_attempts: None, last_resort: true }",
        );
        check(json!("silent"), "should be an object {…}");
        check(json!({"action": "silent"}), "`action` is none of actions, stateTransitions, maxAttempts, isLastResort");
        check(
            json!({"actions": {"quota": "silent"}}),
            "`actions.quota` is none of terminal, transient, not_found, unknown",
        );
        check(json!({"actions": {"transient": true}}), "`actions.transient` should be prompt or ask or silent");
        check(json!({"stateTransitions": 1}), "`stateTransitions` should be an object {…}");
        check(json!({"maxAttempts": 0}), "`maxAttempts` should be a whole number, at least 1");
        check(json!({"isLastResort": "yes"}), "`isLastResort` should be true or false");
    }
}
