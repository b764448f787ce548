//! The pages on castor's own methods and on `_meta`, from their schemas: members, and an example of each.

use serde_json::{Value, json};

use super::{code, list, samples, table};
use castor::cli::schema;
use castor_agent::server;
use castor_host::hub;

/// So deep are members of members listed and shown.
const MAX_DEPTH: usize = 4;

/// What its column of types says of members that must be there, or need not.
#[derive(Clone, Copy)]
enum Side {
    /// What castor reads.
    Params,
    /// What castor writes.
    Written,
    /// `_meta`, where everything is optional.
    Meta,
}

/// A schema with its definitions.
struct Shapes {
    root: Value,
}

pub fn methods() -> String {
    let shapes = Shapes { root: schema::value("methods") };
    let all: Vec<(&String, &Value)> = shapes.members().collect();
    let overview =
        all.iter().map(|(name, it)| [code(name), sender(name, shapes.resolve(it)).to_owned(), shapes.meaning(it)]);
    let overview = table(["name", "sent by", "does"], overview);
    overview + &all.iter().map(|(name, it)| shapes.method(name, it)).collect::<String>()
}

pub fn meta() -> String {
    let shapes = Shapes { root: schema::value("meta") };
    let place = |(name, it): (&String, &Value)| {
        let rows = table(["member of `_meta`", "type", "meaning"], shapes.rows(it, "", Side::Meta, &[]));
        let example = json!({ "_meta": shapes.sample("", it, &|_| true, 0) });
        let about = it["description"].as_str().unwrap_or_default();
        format!("## `{name}`\n\nPlace: {about}\n\n{rows}\n```json meta={name}\n{example}\n```\n")
    };
    let places: Vec<String> = shapes.members().map(place).collect();
    places.join("\n")
}

fn sender(name: &str, shape: &Value) -> &'static str {
    if server::method_names().chain(hub::method_names()).any(|it| it == name) {
        "you"
    } else if is_request(shape) {
        "castor, and you answer"
    } else {
        "castor"
    }
}

/// Requests have params and a result; what is flat is sent, and not answered.
fn is_request(shape: &Value) -> bool {
    shape["properties"].get("result").is_some()
}

impl Shapes {
    fn members(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.root.get("properties").and_then(Value::as_object).into_iter().flatten()
    }

    /// What stands behind a reference, and behind "or null".
    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let mut res = schema;
        loop {
            let alternatives = res["anyOf"].as_array().map(Vec::as_slice);
            res = match (res["$ref"].as_str(), alternatives) {
                (Some(name), _) => self.root.pointer(name.trim_start_matches('#')).unwrap_or(&Value::Null),
                (None, Some([it, null])) if null["type"] == "null" => it,
                _ => return res,
            };
        }
    }

    /// Its description; of a type that is only text, what the type is says nothing of the member.
    fn meaning(&self, schema: &Value) -> String {
        let shape = self.resolve(schema);
        let of_type = Some(shape).filter(|it| kind_of(it) != Some("string"));
        let own = [Some(schema), of_type].into_iter().flatten().find_map(|it| it["description"].as_str());
        let words = shape["oneOf"].as_array().into_iter().flatten();
        let words =
            words.filter_map(|it| Some(format!(" `{}`: {}", it["const"].as_str()?, it["description"].as_str()?)));
        let all = own.unwrap_or_default().to_owned() + &words.collect::<String>();
        all.replace('\n', " ").replace("`None`", "absent").trim().to_owned()
    }

    fn kind(&self, schema: &Value) -> String {
        let shape = self.resolve(schema);
        let kind = kind_of(shape);
        let words = words(shape);
        match kind {
            _ if !words.is_empty() => list(words),
            Some("string") if shape["format"] == "date-time" => "time, ISO 8601".to_owned(),
            Some("string") => "text".to_owned(),
            Some("integer") => "whole number".to_owned(),
            Some("boolean") => "true or false".to_owned(),
            Some("array") => format!("list of {}", self.kind(&shape["items"])),
            Some(it) => it.to_owned(),
            None => {
                let mut kinds: Vec<String> = alternatives(shape).map(|it| self.kind(it)).collect();
                kinds.dedup();
                if kinds.is_empty() { "any value".to_owned() } else { kinds.join(" or ") }
            }
        }
    }

    /// A row for each member, and for each of theirs. `above`: the shapes that it is in.
    fn rows<'a>(&'a self, schema: &'a Value, before: &str, side: Side, above: &[&'a Value]) -> Vec<[String; 3]> {
        let (mut shape, mut before) = (self.resolve(schema), before.to_owned());
        while shape["type"] == "array" {
            shape = self.resolve(&shape["items"]);
            before = format!("{}[].", before.trim_end_matches('.'));
        }
        if above.len() == MAX_DEPTH || above.iter().any(|it| std::ptr::eq(*it, shape)) {
            return Vec::new();
        }
        let above = [above, &[shape]].concat();
        let members = shape["properties"].as_object().into_iter().flatten();
        let rows = members.filter(|(name, _)| *name != "_meta").flat_map(|(name, it)| {
            let path = format!("{before}{name}");
            let kind = self.kind(it) + note(side, is_required(shape, name));
            let own = [code(&path), kind, self.meaning(it)];
            std::iter::once(own).chain(self.rows(it, &format!("{path}."), side, &above))
        });
        rows.collect()
    }

    /// Whether a value is of this shape, as far as members of one name differ.
    fn fits(&self, value: &Value, schema: &Value) -> bool {
        let shape = self.resolve(schema);
        match (value, kind_of(shape)) {
            (Value::Array(items), Some("array")) => items.iter().all(|it| self.fits(it, &shape["items"])),
            (Value::Object(members), Some("object")) => {
                let required = shape["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let is_open = shape["additionalProperties"] != false;
                let is_known = |it: &String| is_open || shape["properties"].get(it).is_some();
                required.into_iter().all(|it| members.contains_key(it)) && members.keys().all(is_known)
            }
            (Value::String(it), Some("string")) => {
                let words = words(shape);
                words.is_empty() || words.contains(&it.as_str())
            }
            (Value::Number(_), Some(kind)) => ["integer", "number"].contains(&kind),
            (Value::Bool(_), Some(kind)) => kind == "boolean",
            (Value::Null, kind) => kind.is_none() || shape["type"].is_array(),
            (_, kind) => kind.is_none(),
        }
    }

    /// A value that fits: with what must be there, and what is wanted besides.
    fn sample(&self, name: &str, schema: &Value, wants: &dyn Fn(&str) -> bool, depth: usize) -> Value {
        let shape = self.resolve(schema);
        if let Some(it) = samples::of(name).find(|it| self.fits(it, shape)) {
            return it;
        }
        if let Some(word) = words(shape).first() {
            return json!(word);
        }
        let kind = kind_of(shape);
        match kind {
            Some("boolean") => json!(true),
            Some("integer" | "number") => json!(1),
            Some("string") => json!(name),
            Some("array") if depth < MAX_DEPTH => json!([self.sample(name, &shape["items"], wants, depth + 1)]),
            Some("array") => json!([]),
            Some("object") => {
                let members = shape["properties"].as_object().into_iter().flatten();
                let shown = members.filter(|(name, _)| *name != "_meta" && (is_required(shape, name) || wants(name)));
                Value::Object(shown.map(|(name, it)| (name.clone(), self.sample(name, it, wants, depth + 1))).collect())
            }
            _ => alternatives(shape).next().map_or(Value::Null, |it| self.sample(name, it, wants, depth + 1)),
        }
    }

    /// The part of the page on one method, notification or update.
    fn method(&self, name: &str, schema: &Value) -> String {
        let shape = self.resolve(schema);
        let part = |head: &str, schema: &Value, side: Side| {
            let rows = self.rows(schema, "", side, &[]);
            if rows.is_empty() { String::new() } else { table([head, "type", "meaning"], rows) + "\n" }
        };
        let shown = samples::SHOWN.iter().find(|it| it.0 == name).map_or(&[][..], |it| it.1);
        let params = |schema: &Value| self.sample("", schema, &|it| shown.contains(&it), 0);
        let (tables, messages) = if is_request(shape) {
            let (sent, result) = (member(shape, "params"), member(shape, "result"));
            let ask = json!({ "jsonrpc": "2.0", "id": 1, "method": name, "params": params(sent) });
            let result_shown = self.sample("", result, &|it| samples::of(it).next().is_some(), 0);
            let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": result_shown });
            let tables = [("member of params", sent, Side::Params), ("member of the result", result, Side::Written)];
            let tables = tables.map(|(head, schema, side)| part(head, schema, side));
            (tables.concat(), format!("{ask}\n{answer}"))
        } else {
            let message = json!({ "jsonrpc": "2.0", "method": name, "params": params(schema) });
            (part("member of params", schema, Side::Written), message.to_string())
        };
        format!("\n## `{name}`\n\n{}\n\n{tables}```jsonl acp\n{messages}\n```\n", self.meaning(schema))
    }
}

fn member<'a>(shape: &'a Value, name: &str) -> &'a Value {
    shape.get("properties").and_then(|it| it.get(name)).unwrap_or(&Value::Null)
}

/// The type of a shape, or the one beside null.
fn kind_of(shape: &Value) -> Option<&str> {
    match &shape["type"] {
        Value::Array(several) => several.first().and_then(Value::as_str),
        it => it.as_str(),
    }
}

fn note(side: Side, is_required: bool) -> &'static str {
    match (side, is_required) {
        (Side::Params, true) => ", required",
        (Side::Written, false) => ", may be absent",
        _ => "",
    }
}

fn is_required(shape: &Value, name: &str) -> bool {
    shape["required"].as_array().is_some_and(|it| it.contains(&name.into()))
}

fn alternatives(shape: &Value) -> impl Iterator<Item = &Value> {
    ["oneOf", "anyOf"].into_iter().filter_map(|it| shape[it].as_array()).flatten()
}

/// The words of an enumeration; none of a shape that has other values, too.
fn words(shape: &Value) -> Vec<&str> {
    fn own(shape: &Value) -> Option<Vec<&str>> {
        match (&shape["const"], &shape["enum"]) {
            (Value::String(it), _) => Some(vec![it]),
            (_, Value::Array(all)) => all.iter().map(Value::as_str).collect(),
            _ => None,
        }
    }
    let several = || alternatives(shape).map(own).collect::<Option<Vec<_>>>();
    own(shape).or_else(|| Some(several()?.concat())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An example that does not fit would teach what castor refuses.
    #[test]
    fn examples_fit_their_schemas() {
        let validator = jsonschema::validator_for(&schema::value("methods")).unwrap();
        let page = methods();
        let messages = page.lines().filter(|it| it.starts_with('{')).map(|it| serde_json::from_str(it).unwrap());
        let messages: Vec<Value> = messages.filter(|it: &Value| it.get("method").is_some()).collect();
        assert!(messages.len() >= server::method_names().filter(|it| it.starts_with("_castor/")).count(), "{page}");
        for message in messages {
            let is_request = message.get("id").is_some();
            let shape = if is_request { json!({ "params": message["params"] }) } else { message["params"].clone() };
            let method = message["method"].as_str().unwrap();
            validator.validate(&json!({ method: shape })).unwrap_or_else(|it| panic!("{message}: {it}"));
        }
    }

    /// One that castor calls by itself has no row in its table of methods.
    #[test]
    fn own_methods_have_shapes() {
        let shapes = ["methods", "drafts"].map(schema::value);
        let has_shape = |name: &&str| shapes.iter().any(|it| it["properties"].get(name).is_some());
        let missing: Vec<&str> = server::method_names().filter(|it| it.starts_with('_') && !has_shape(it)).collect();
        assert!(
            missing.is_empty(),
            "schema/methods.json lacks {missing:?}: src/wire/acp/own/own_methods.rs lists them"
        );
    }
}
