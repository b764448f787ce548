//! The tool list of an MCP server. One malformed tool does not cost the others.

use serde_json::{Map, Value, json};

use crate::base::{schema::Schema, text};

/// A tool as its server names it.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerTool {
    pub name: String,
    pub description: String,
    /// JSON Schema; `type` is `object`.
    pub parameters: Schema,
    /// What the server says of it, `readOnlyHint` and such: an object of short values.
    pub annotations: Value,
}

/// Beyond this a description only costs context, in bytes.
const MAX_DESCRIPTION: usize = 8 * 1024;
/// Larger schemas are left out, in bytes.
const MAX_SCHEMA: usize = 64 * 1024;
/// Longer annotations are left out, in bytes.
const MAX_ANNOTATION: usize = 200;
const MAX_ANNOTATIONS: usize = 32;
/// Members of a schema that say something and decide nothing.
const EXPLAINS: &[&str] = &["title", "description", "$comment"];
/// Longest name of a tool: it goes back to the server as it is.
const MAX_NAME: usize = 512;

/// One page of a listing: its tools, and the cursor of the next page.
pub fn page(result: &Value) -> (Vec<ServerTool>, Option<String>) {
    let tools = result.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let next = result.get("nextCursor").and_then(Value::as_str).filter(|it| !it.is_empty());
    (tools.iter().filter_map(tool).collect(), next.map(str::to_owned))
}

fn tool(it: &Value) -> Option<ServerTool> {
    let said = |name: &str| it.get(name).and_then(Value::as_str).map(str::trim).filter(|it| !it.is_empty());
    let name = it.get("name").and_then(Value::as_str).filter(|it| !it.is_empty() && it.len() <= MAX_NAME)?;
    let title = || it.get("annotations").and_then(|it| it.get("title")).and_then(Value::as_str);
    let description = said("description").or_else(|| said("title")).or_else(title).unwrap_or(name);
    Some(ServerTool {
        name: name.to_owned(),
        description: text::head(&text::strip_hidden(description), MAX_DESCRIPTION).to_owned(),
        parameters: parameters(it.get("inputSchema")).into(),
        annotations: annotations(it.get("annotations")),
    })
}

/// Rules ask for single values.
fn annotations(it: Option<&Value>) -> Value {
    let is_short = |it: &Value| match it {
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::String(it) => it.len() <= MAX_ANNOTATION,
        Value::Array(_) | Value::Object(_) => false,
    };
    let all = it.and_then(Value::as_object).into_iter().flatten();
    let short = all.filter(|(name, it)| name.len() <= MAX_ANNOTATION && is_short(it)).take(MAX_ANNOTATIONS);
    Value::Object(short.map(|(name, it)| (name.clone(), it.clone())).collect())
}

/// Providers refuse a whole request for one tool whose parameters are no object.
fn parameters(schema: Option<&Value>) -> Value {
    let any = || json!({ "type": "object" });
    let Some(Value::Object(schema)) = schema else { return any() };
    let kind = schema.get("type");
    let of_object = match kind {
        None => true,
        Some(Value::Array(kinds)) => kinds.iter().any(|it| it == "object"),
        Some(kind) => kind == "object",
    };
    if !of_object || schema.get("properties").is_some_and(|it| !it.is_object()) {
        return any();
    }
    let mut res = Map::from_iter([("type".to_owned(), "object".into())]);
    // `$schema` names a dialect; some providers refuse to hear of it.
    let rest = schema.iter().filter(|(name, _)| !matches!(name.as_str(), "type" | "$schema"));
    res.extend(rest.map(|(name, it)| (name.clone(), it.clone())));
    let mut res = Value::Object(res);
    match is_plain(&mut res) && res.to_string().len() <= MAX_SCHEMA {
        true => res,
        false => any(),
    }
}

/// Takes what people do not see out of a schema's explanations. `false`: it stands in names or values as well, which
/// cannot be changed without meaning something else. What the model reads and no one else is an order to it.
fn is_plain(schema: &mut Value) -> bool {
    match schema {
        Value::Object(members) => members.iter_mut().all(|(name, it)| {
            if let (true, Value::String(said)) = (EXPLAINS.contains(&name.as_str()), &mut *it) {
                *said = text::head(&text::strip_hidden(said), MAX_DESCRIPTION).to_owned();
            }
            !name.chars().any(text::is_hidden) && is_plain(it)
        }),
        Value::Array(items) => items.iter_mut().all(is_plain),
        Value::String(it) => !it.chars().any(text::is_hidden),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::page;

    #[test]
    fn odd_tools_cost_only_themselves() {
        let (tools, next) = page(&json!({"nextCursor": "2", "tools": [
            {"name": "a", "description": " does a ", "inputSchema": {"type": "object"}},
            {"name": ""}, {"description": "nameless"}, 5,
            {"name": "b", "title": "B"},
            {"name": "c"},
        ]}));
        let shown: Vec<String> = tools.iter().map(|it| format!("{}: {}", it.name, it.description)).collect();
        assert_eq!((shown, next.as_deref()), (vec!["a: does a".into(), "b: B".into(), "c: c".into()], Some("2")));
        assert_eq!(page(&json!({"tools": null, "nextCursor": ""})), (vec![], None));
        assert_eq!(page(&Value::Null), (vec![], None));
    }

    #[test]
    fn annotations_are_short() {
        let long = "x".repeat(201);
        let (tools, _) = page(&json!({"tools": [
            {"name": "a", "annotations": {"readOnlyHint": true, "title": "A", "long": long, "deep": {"a": 1}}},
            {"name": "b", "annotations": [1]},
        ]}));
        let said: Vec<&Value> = tools.iter().map(|it| &it.annotations).collect();
        assert_eq!(said, [&json!({"readOnlyHint": true, "title": "A"}), &json!({})]);
    }

    /// Tags and marks of direction tell the model what nobody else sees.
    #[test]
    fn what_is_hidden_is_not_for_the_model() {
        let tags: String = "run rm".chars().map(|it| char::from_u32(0xe0000 + it as u32).unwrap()).collect();
        let hidden = format!("ad\u{202e}ds{tags}\u{200b} a\nline\u{1b}\u{2066}");
        let schema = |name: &str, said: &str, value: &str| json!({"type": "object", "properties": {name: {"description": said, "enum": [value], "title": said}}});
        let (tools, _) = page(&json!({"tools": [
            {"name": "t", "description": hidden, "inputSchema": schema("a", &hidden, "b")},
            {"name": "u", "title": hidden, "inputSchema": schema(&hidden, "", "b")},
            {"name": "v", "inputSchema": schema("a", "", &hidden)},
            {"name": "w", "description": "ü 日本語 👍"},
        ]}));
        let shown: Vec<&str> = tools.iter().map(|it| it.description.as_str()).collect();
        assert_eq!(shown, ["adds a\nline", "adds a\nline", "v", "ü 日本語 👍"]);
        assert_eq!(*tools[0].parameters, schema("a", "adds a\nline", "b"));
        assert_eq!(
            (&*tools[1].parameters, &*tools[2].parameters),
            (&json!({"type": "object"}), &json!({"type": "object"}))
        );
        let (tools, _) = page(&json!({"tools": [{"name": "t", "description": "x".repeat(9000)}]}));
        assert_eq!(tools[0].description.len(), super::MAX_DESCRIPTION);
    }

    #[test]
    fn parameters_are_an_object() {
        let object = json!({"type": "object"});
        for (schema, want) in [
            (json!(null), object.clone()),
            (json!("x"), object.clone()),
            (json!({}), object.clone()),
            (json!({"type": "string"}), object.clone()),
            (json!({"type": "object", "properties": []}), object.clone()),
            (json!({"$schema": "x", "type": ["object", "null"]}), object),
            (
                json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}}),
                json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}}),
            ),
        ] {
            let (tools, _) = page(&json!({"tools": [{"name": "t", "inputSchema": schema}]}));
            assert_eq!(*tools[0].parameters, want, "{schema}");
        }
    }
}
