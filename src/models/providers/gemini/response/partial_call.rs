//! Gemini's calls whose arguments come in parts, each with the path of the value that it sets or continues.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::providers::{lenient::Items, provider_limits};
use castor_base::model::Chunk;

/// Steps of a path, at most.
const MAX_DEPTH: usize = 64;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FunctionCall {
    id: Option<String>,
    name: Option<String>,
    args: Option<Value>,
    #[serde(default)]
    partial_args: Items<PartialArg>,
    /// More of this call follows.
    will_continue: Option<bool>,
    #[serde(skip)]
    signature: Option<Arc<str>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PartialArg {
    #[serde(default)]
    json_path: String,
    string_value: Option<String>,
    number_value: Option<Value>,
    bool_value: Option<Value>,
}

impl PartialArg {
    fn value(&mut self) -> Value {
        let text = self.string_value.take().map(Value::String);
        text.or(self.number_value.take()).or(self.bool_value.take()).unwrap_or_default()
    }
}

/// The call that is under way, if one is.
#[derive(Debug, Default)]
pub struct PartialCall(Option<FunctionCall>);

impl PartialCall {
    pub fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// Takes the next part of a call, or a whole one. The chunks of what is complete now.
    pub fn take(&mut self, part: FunctionCall, signature: Option<Arc<str>>) -> Vec<Chunk> {
        let part = FunctionCall { signature, ..part };
        let mut res = Vec::new();
        let is_new = part.name.as_ref().is_some_and(|it| !it.is_empty());
        if is_new {
            res.extend(self.end());
        }
        let says_nothing = part.args.is_none() && part.partial_args.0.is_empty() && part.signature.is_none();
        let mut call = match self.0.take() {
            Some(open) => FunctionCall {
                will_continue: part.will_continue,
                partial_args: part.partial_args,
                args: part.args.or(open.args),
                id: open.id.or(part.id),
                signature: open.signature.or(part.signature),
                ..open
            },
            // The end of a call that has ended already.
            None if !is_new && says_nothing => return res,
            None => part,
        };
        for mut it in std::mem::take(&mut call.partial_args).0 {
            let value = it.value();
            set(call.args.get_or_insert_with(|| Value::Object(Map::new())), &it.json_path, value);
        }
        let goes_on = call.will_continue.unwrap_or_default();
        self.0 = Some(call);
        if !goes_on {
            res.extend(self.end());
        }
        res
    }

    /// The call under way, as far as it came.
    pub fn end(&mut self) -> Option<Chunk> {
        let call = self.0.take()?;
        let args = match call.args {
            None | Some(Value::Null) => Value::Object(Map::new()),
            Some(Value::String(it)) => provider_limits::parse_arguments(&it),
            Some(it) => it,
        };
        let id = call.id.filter(|it| !it.is_empty());
        Some(Chunk::Call { id, name: call.name.unwrap_or_default(), args, signature: call.signature })
    }
}

/// Sets the value at a path such as `$.a[0].b`; a text continues the text that is there.
fn set(root: &mut Value, path: &str, value: Value) {
    let steps =
        path.trim_start_matches('$').split(['.', '[']).map(|it| it.trim_end_matches(']').trim_matches(['\'', '"']));
    let steps: Vec<&str> = steps.filter(|it| !it.is_empty()).take(MAX_DEPTH).collect();
    set_below(root, &steps, value);
}

fn set_below(place: &mut Value, steps: &[&str], value: Value) {
    let Some((step, rest)) = steps.split_first() else {
        match (place, value) {
            (Value::String(text), Value::String(more)) => text.push_str(&more),
            (place, value) => *place = value,
        }
        return;
    };
    let at = step.parse::<usize>().ok().filter(|_| !place.is_object());
    let is_list = at.is_some();
    if place.is_array() != is_list || place.is_object() == is_list {
        *place = if is_list { Value::Array(Vec::new()) } else { Value::Object(Map::new()) };
    }
    match (place, at) {
        (Value::Array(items), Some(at)) => {
            // One that would leave a gap comes to the end.
            if at >= items.len() {
                items.push(Value::Null);
            }
            let last = items.len().saturating_sub(1);
            if let Some(it) = items.get_mut(at.min(last)) {
                set_below(it, rest, value);
            }
        }
        (Value::Object(map), _) => set_below(map.entry(*step).or_insert(Value::Null), rest, value),
        _ => (),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{PartialCall, set};
    use castor_base::model::Chunk;

    #[test]
    fn values_at_paths() {
        let mut args = json!({});
        for (path, value) in [
            ("$.a", json!("on")),
            ("$.a", json!("e")),
            ("$.list[0].b", json!("x")),
            ("$.list[0].c", json!(1.5)),
            ("$.list[1].b", json!("")),
            ("$.list[7].b", json!(true)),
            ("$['a b']", json!(null)),
            ("$.texts[0]", json!("p")),
            ("$.texts[1]", json!("q")),
            ("$.n[0][1]", json!(2)),
        ] {
            set(&mut args, path, value);
        }
        let list = json!([{ "b": "x", "c": 1.5 }, { "b": "" }, { "b": true }]);
        let expected = json!({ "a": "one", "list": list, "a b": null, "texts": ["p", "q"], "n": [[2]] });
        assert_eq!(args, expected);
        set(&mut args, "$.a[0].x", json!(1));
        set(&mut args, "", json!({ "all": 1 }));
        assert_eq!(args, json!({ "all": 1 }));
    }

    #[test]
    fn calls_in_parts() {
        let check = |parts: &[&str], expected: &[(&str, serde_json::Value)], is_open: bool| {
            let mut call = PartialCall::default();
            let read = |it: &&str| call.take(serde_json::from_str(it).unwrap(), None);
            let got: Vec<Chunk> = parts.iter().flat_map(read).collect();
            let expected = expected.iter().map(|(name, args)| Chunk::Call {
                id: None,
                name: (*name).to_owned(),
                args: args.clone(),
                signature: None,
            });
            assert_eq!((got, call.is_open()), (expected.collect(), is_open), "{parts:?}");
        };
        let begin = r#"{"name":"read","willContinue":true}"#;
        let part = r#"{"partialArgs":[{"jsonPath":"$.p","stringValue":"a","willContinue":true}],"willContinue":true}"#;
        let last = r#"{"partialArgs":[{"jsonPath":"$.p","stringValue":"b"}]}"#;
        check(&[begin, part, part, "{}"], &[("read", json!({ "p": "aa" }))], false);
        check(&[begin, part, last, "{}"], &[("read", json!({ "p": "ab" }))], false);
        check(&[begin, part, begin, "{}"], &[("read", json!({ "p": "a" })), ("read", json!({}))], false);
        check(&[begin, r#"{"willContinue":true}"#, part], &[], true);
        check(&[r#"{"name":"list"}"#, "{}", "{}"], &[("list", json!({}))], false);
        check(&[r#"{"name":"list","args":"{\"a\":1}"}"#], &[("list", json!({ "a": 1 }))], false);
        check(&[r#"{"args":{"a":1}}"#], &[("", json!({ "a": 1 }))], false);
    }
}
