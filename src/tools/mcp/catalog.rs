//! The lists of an MCP server: tools, prompts, resources. One malformed entry does not cost the others.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::error::StartError;
use castor_base::{
    schema::Schema,
    server_offer::{PromptArgument, ServerOffer, ServerPrompt, ServerResource},
    text,
};

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

/// All that a server has to offer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerLists {
    pub tools: Vec<ServerTool>,
    /// Names that the server listed more than once.
    pub repeated: Vec<String>,
    pub offer: ServerOffer,
}

impl ServerLists {
    /// Of tools with one name the first counts: a call could not say which is meant, and providers refuse both.
    pub fn new(tools: Vec<ServerTool>, offer: ServerOffer) -> Self {
        let (mut seen, mut repeated) = (BTreeSet::new(), BTreeSet::new());
        let mut is_first = |it: &ServerTool| {
            let is_new = seen.insert(it.name.clone());
            repeated.extend((!is_new).then(|| it.name.clone()));
            is_new
        };
        let tools = tools.into_iter().filter(|it| is_first(it)).collect();
        Self { tools, repeated: repeated.into_iter().collect(), offer }
    }
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
/// Longest name of a tool or a prompt: it goes back to the server as it is.
const MAX_NAME: usize = 512;
/// Longest address of a resource.
const MAX_URI: usize = 2_048;
/// Of a prompt or a resource, in bytes: they are named in lists.
const MAX_LISTED: usize = 500;
const MAX_ARGUMENTS: usize = 32;

/// One page of a listing: what stands under `member`, and the cursor of the next page.
///
/// # Errors
/// It is no list: a server without any says so by an empty one, or by nothing.
pub fn page<T>(
    result: &Value,
    member: &str,
    read: fn(&Value) -> Option<T>,
) -> Result<(Vec<T>, Option<String>), StartError> {
    let entries = match result.get(member) {
        None | Some(Value::Null) => &[],
        Some(Value::Array(it)) => it.as_slice(),
        Some(_) if member == "tools" => return Err(StartError::Broken("its list of tools is no list")),
        Some(_) => return Err(StartError::Broken("what it lists is no list")),
    };
    let next = result.get("nextCursor").and_then(Value::as_str).filter(|it| !it.is_empty());
    Ok((entries.iter().filter_map(read).collect(), next.map(str::to_owned)))
}

/// One line for lists, without what people do not see.
fn listed(it: &Value, name: &str) -> Option<String> {
    let text = text::strip_hidden(it.get(name).and_then(Value::as_str)?);
    Some(text::first_line(&text, MAX_LISTED)).filter(|it| !it.is_empty())
}

/// A name, where it can be named back: what people do not see in it would be an order to the model.
fn name(it: &Value) -> Option<&str> {
    let name = it.get("name").and_then(Value::as_str)?;
    (!name.trim().is_empty() && name.len() <= MAX_NAME && !name.chars().any(is_unseen)).then_some(name)
}

fn is_unseen(it: char) -> bool {
    text::is_hidden(it) || it.is_control()
}

pub fn prompt(it: &Value) -> Option<ServerPrompt> {
    let argument = |it: &Value| {
        let required = it.get("required") == Some(&Value::Bool(true));
        Some(PromptArgument { name: name(it)?.to_owned(), required })
    };
    let arguments = it.get("arguments").and_then(Value::as_array).into_iter().flatten();
    let name = name(it)?;
    Some(ServerPrompt {
        name: name.to_owned(),
        description: listed(it, "description").or_else(|| listed(it, "title")).unwrap_or_else(|| name.to_owned()),
        arguments: arguments.filter_map(argument).take(MAX_ARGUMENTS).collect(),
    })
}

pub fn resource(it: &Value) -> Option<ServerResource> {
    addressed(it, "uri")
}

pub fn template(it: &Value) -> Option<ServerResource> {
    addressed(it, "uriTemplate")
}

fn addressed(it: &Value, address: &str) -> Option<ServerResource> {
    let uri = it.get(address).and_then(Value::as_str)?;
    if uri.is_empty() || uri.len() > MAX_URI || uri.chars().any(|it| is_unseen(it) || it.is_whitespace()) {
        return None;
    }
    Some(ServerResource {
        uri: uri.to_owned(),
        name: listed(it, "title").or_else(|| listed(it, "name")).unwrap_or_default(),
        description: listed(it, "description").unwrap_or_default(),
        mime: listed(it, "mimeType"),
    })
}

pub fn tool(it: &Value) -> Option<ServerTool> {
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

    use super::{ServerLists, ServerTool, page, prompt, resource, template, tool};
    use castor_base::server_offer::ServerOffer;

    fn read(result: &Value) -> (Vec<ServerTool>, Option<String>) {
        page(result, "tools", tool).unwrap()
    }

    #[test]
    fn odd_prompts_and_resources_cost_only_themselves() {
        let list = json!({"prompts": [
            {"name": "a", "arguments": [{"name": "x", "required": true}, {"name": "y"}, {"required": true}, 5]},
            {"name": "b\u{202e}"}, {"name": " "}, {"title": "nameless"}, 5,
            {"name": "c", "title": "C", "description": "says\u{200b} c\nand more"},
        ]});
        let (prompts, _) = page(&list, "prompts", prompt).unwrap();
        let shown: Vec<String> =
            prompts.iter().map(|it| format!("{} {}: {}", it.command("s"), it.hint(), it.description)).collect();
        assert_eq!(shown, ["s:a --x=\"…\" [--y=\"…\"]: a", "s:c : says c"]);
        let list = json!({"resources": [
            {"uri": "x:1", "name": "one", "mimeType": "text/plain"},
            {"uri": "x:2 3"}, {"uri": ""}, {"name": "lost"}, {"uri": "x:\n"}, {"uri": "x".repeat(3_000)},
        ], "resourceTemplates": [{"uriTemplate": "x:{n}", "name": "all", "title": "All"}]});
        let (found, _) = page(&list, "resources", resource).unwrap();
        assert_eq!(found.iter().map(|it| (&*it.uri, &*it.name)).collect::<Vec<_>>(), [("x:1", "one")]);
        let (found, _) = page(&list, "resourceTemplates", template).unwrap();
        assert_eq!(found.iter().map(|it| (&*it.uri, &*it.name)).collect::<Vec<_>>(), [("x:{n}", "All")]);
    }

    #[test]
    fn odd_tools_cost_only_themselves() {
        let (tools, next) = read(&json!({"nextCursor": "2", "tools": [
            {"name": "a", "description": " does a ", "inputSchema": {"type": "object"}},
            {"name": ""}, {"description": "nameless"}, 5,
            {"name": "b", "title": "B"},
            {"name": "c"},
        ]}));
        let shown: Vec<String> = tools.iter().map(|it| format!("{}: {}", it.name, it.description)).collect();
        assert_eq!((shown, next.as_deref()), (vec!["a: does a".into(), "b: B".into(), "c: c".into()], Some("2")));
        assert_eq!(read(&json!({"tools": null, "nextCursor": ""})), (vec![], None));
        assert_eq!(read(&Value::Null), (vec![], None));
        for broken in [json!({"tools": {"a": {}}}), json!({"tools": "a"})] {
            assert_eq!(page(&broken, "tools", tool).unwrap_err().to_string(), "its list of tools is no list");
        }
    }

    #[test]
    fn a_tool_that_is_listed_twice_counts_once() {
        let (tools, _) = read(&json!({"tools": [
            {"name": "a", "title": "first"}, {"name": "b"}, {"name": "a", "title": "second"}, {"name": "a"},
        ]}));
        let lists = ServerLists::new(tools, ServerOffer::default());
        let kept: Vec<&str> = lists.tools.iter().map(|it| it.description.as_str()).collect();
        assert_eq!((kept, lists.repeated), (vec!["first", "b"], vec!["a".to_owned()]));
    }

    #[test]
    fn annotations_are_short() {
        let long = "x".repeat(201);
        let (tools, _) = read(&json!({"tools": [
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
        let (tools, _) = read(&json!({"tools": [
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
        let (tools, _) = read(&json!({"tools": [{"name": "t", "description": "x".repeat(9000)}]}));
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
            let (tools, _) = read(&json!({"tools": [{"name": "t", "inputSchema": schema}]}));
            assert_eq!(*tools[0].parameters, want, "{schema}");
        }
    }
}
