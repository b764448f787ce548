//! Templates of agents: `${name}` takes an argument, and in instructions `{key}` or `{key?}` takes a value of the state.

use serde_json::{Map, Value};

use castor_base::state::{MAX_SCOPE, StateMap, StateScope};

/// A template with its values, and what it names in vain: that stands there as it is.
#[derive(Debug, Default)]
pub(in crate::turn) struct FilledTemplate {
    pub text: String,
    missing_arguments: Vec<String>,
    missing_keys: Vec<String>,
    /// What the values of the state take, in bytes.
    n_state: usize,
}

impl FilledTemplate {
    /// `state`: `None` where it is not filled in. Values are taken as they are: no template is looked for in them.
    pub fn new(template: &str, arguments: &Map<String, Value>, state: Option<&StateMap>) -> Self {
        let (mut res, mut rest) = (Self::default(), template);
        while let Some((before, after)) = rest.split_once('{') {
            res.text.push_str(before);
            rest = match (after.strip_prefix('{'), after.split_once('}')) {
                // Twice is no key.
                (Some(after), _) if state.is_some() => {
                    res.text.push_str("{{");
                    after
                }
                (_, Some((name, behind))) if before.ends_with('$') && is_name(name) => {
                    res.put_argument(name, arguments.get(name));
                    behind
                }
                (_, Some((name, behind))) if !before.ends_with('$') && is_key(name) => {
                    let Some(state) = state else {
                        res.text.push('{');
                        rest = after;
                        continue;
                    };
                    res.put_key(name, state);
                    behind
                }
                _ => {
                    res.text.push('{');
                    after
                }
            };
        }
        res.text.push_str(rest);
        res
    }

    fn put_argument(&mut self, name: &str, value: Option<&Value>) {
        match value {
            Some(it) => {
                self.text.pop();
                self.text.push_str(&as_text(it));
            }
            None => {
                self.missing_arguments.push(name.to_owned());
                self.text.push_str(&format!("{{{name}}}"));
            }
        }
    }

    fn put_key(&mut self, name: &str, state: &StateMap) {
        let key = name.strip_suffix('?');
        match state.get(key.unwrap_or(name)) {
            Some(it) => {
                let text = as_text(it);
                self.n_state += text.len();
                self.text.push_str(&text);
            }
            None if key.is_some() => (),
            None => {
                self.missing_keys.push(name.to_owned());
                self.text.push_str(&format!("{{{name}}}"));
            }
        }
    }

    /// # Errors
    /// For the model: what is missing.
    pub fn complete(self, arguments: &Map<String, Value>) -> Result<String, String> {
        if !self.missing_arguments.is_empty() {
            let there: Vec<&str> = arguments.keys().map(String::as_str).collect();
            let missing = self.missing_arguments.join(", ");
            return Err(format!("Missing required input parameters: {missing}. Available: {}.", there.join(", ")));
        }
        if let Some(first) = self.missing_keys.first() {
            let missing = self.missing_keys.join(", ");
            return Err(format!(
                "The state of the session has no value for: {missing}. Tell the user that the agent needs it, or that its \
                 definition may say {{{first}?}}."
            ));
        }
        match self.n_state > MAX_SCOPE {
            true => Err(format!("The values of the state in its instructions have more than {MAX_SCOPE} bytes.")),
            false => Ok(self.text),
        }
    }
}

/// Puts arguments in place of `${name}`.
///
/// # Errors
/// Which are missing, and which there are.
pub(in crate::turn) fn fill_template(template: &str, inputs: &Map<String, Value>) -> Result<String, String> {
    FilledTemplate::new(template, inputs, None).complete(inputs)
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(it) => it.clone(),
        it => it.to_string(),
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
}

fn is_key(text: &str) -> bool {
    StateScope::of(text.strip_suffix('?').unwrap_or(text)).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{FilledTemplate, fill_template};
    use castor_base::state::StateMap;

    #[test]
    fn templates_take_arguments() {
        let inputs = json!({ "query": "Why?", "n": 3 });
        let inputs = inputs.as_object().unwrap();
        for (template, filled) in [
            ("${query} ${n}", Ok("Why? 3".to_owned())),
            ("$query ${} ${a b} ${", Ok("$query ${} ${a b} ${".to_owned())),
            ("{query} {{query}} {n?}", Ok("{query} {{query}} {n?}".to_owned())),
            ("${query} ${x}${y}", Err("Missing required input parameters: x, y. Available: query, n.".to_owned())),
        ] {
            assert_eq!(fill_template(template, inputs), filled, "{template}");
        }
    }

    #[test]
    fn instructions_take_state() {
        let inputs = json!({ "query": "{a}" });
        let inputs = inputs.as_object().unwrap();
        let state = json!({ "a": "A {b}", "b": [1], "app:c": true, "user:d": "${query}" });
        let state: StateMap = serde_json::from_value(state).unwrap();
        for (template, text) in [
            ("{a} {b} {app:c} {user:d}", "A {b} [1] true ${query}"),
            ("${query} {x?}{a?}.", "{a} A {b}."),
            ("{{a}} {} {\"a\": 1} { a } {a.b} {a", "{{a}} {} {\"a\": 1} { a } {a.b} {a"),
            ("{\"k\": {a}}", "{\"k\": A {b}}"),
            ("${", "${"),
        ] {
            assert_eq!(FilledTemplate::new(template, inputs, Some(&state)).complete(inputs).as_deref(), Ok(text));
        }
        let filled = FilledTemplate::new("{a} {x} {user:y}", inputs, Some(&state));
        assert_eq!(filled.text, "A {b} {x} {user:y}");
        assert!(filled.complete(inputs).unwrap_err().contains("no value for: x, user:y."));
    }
}
