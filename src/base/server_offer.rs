//! Offers of MCP servers beside tools: instructions, prompts, resources; and queries to them.

use std::collections::BTreeMap;

use serde_json::Value;

/// The tools by which a model finds and reads resources. Rules of Gemini CLI know these names.
pub const LIST_RESOURCES: &str = "list_mcp_resources";
pub const READ_RESOURCE: &str = "read_mcp_resource";

/// What a server has to offer beside its tools.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerOffer {
    /// How it wants to be used, in its own words.
    pub instructions: Option<String>,
    pub prompts: Vec<ServerPrompt>,
    /// It has some, also where it lists none: what templates make is in no list.
    pub has_resources: bool,
    pub resources: Vec<ServerResource>,
    /// Their addresses have places to fill in.
    pub templates: Vec<ServerResource>,
}

/// A prompt that a server makes of arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerPrompt {
    pub name: String,
    pub description: String,
    pub arguments: Vec<PromptArgument>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PromptArgument {
    pub name: String,
    pub required: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ServerResource {
    pub uri: String,
    pub name: String,
    /// May be empty.
    pub description: String,
    pub mime: Option<String>,
}

/// Something that a server is asked for outside of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerQuery {
    /// As the configuration names it.
    pub server: String,
    pub what: ServerQueryKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ServerQueryKind {
    Prompt { name: String, args: BTreeMap<String, String> },
    Resource { uri: String },
    Completion(CompletionQuery),
}

/// What could stand for an argument.
#[derive(Clone, Debug, PartialEq)]
pub struct CompletionQuery {
    pub of: CompletedOffer,
    pub argument: String,
    /// What is typed of it so far.
    pub value: String,
    /// Other arguments.
    pub known: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CompletedOffer {
    Prompt(String),
    /// A resource template.
    Template(String),
}

/// Values that a server suggests.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    pub values: Vec<String>,
    pub total: Option<u64>,
    pub has_more: bool,
}

impl ServerOffer {
    fn lists(&self, uri: &str) -> bool {
        self.resources.iter().any(|it| it.uri == uri)
    }
}

impl ServerPrompt {
    /// What is typed for it behind the slash. It always has the server's name: a server cannot shadow a command of
    /// castor's, and the name stays when another server comes.
    pub fn command(&self, server: &str) -> String {
        format!("{}:{}", command_word(server), command_word(&self.name))
    }

    /// What may follow the name.
    pub fn hint(&self) -> String {
        let word = |it: &PromptArgument| match it.required {
            true => format!("--{}=\"…\"", it.name),
            false => format!("[--{}=\"…\"]", it.name),
        };
        self.arguments.iter().map(word).collect::<Vec<_>>().join(" ")
    }
}

/// A name as a part of a command.
pub fn command_word(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    name.trim().chars().map(|c| if is_plain(c) { c } else { '-' }).collect()
}

/// The server and the address that a call of [`READ_RESOURCE`] is about. Who decides about the call and who makes it
/// find the same one: the server that is named, by argument or before the address, or the first that lists the address,
/// or the only one that has resources.
///
/// # Errors
/// What is wrong with the arguments, for the model.
pub fn resource_of<'a>(
    args: &'a Value,
    servers: impl Iterator<Item = (&'a str, &'a ServerOffer)>,
) -> Result<(&'a str, &'a str), String> {
    let said = |key: &str| args.get(key).and_then(Value::as_str).map(str::trim).filter(|it| !it.is_empty());
    let uri = said("uri").ok_or_else(|| format!("{READ_RESOURCE} needs `uri`, the address of a resource."))?;
    let having: Vec<(&str, &ServerOffer)> = servers.filter(|it| it.1.has_resources).collect();
    let names = || having.iter().map(|it| format!("{:?}", it.0)).collect::<Vec<_>>().join(", ");
    if let Some(named) = said("server") {
        let found = having.iter().find(|it| it.0 == named);
        let missing = || format!("No connected server {named:?} has resources. These have: {}.", names());
        return found.map(|it| (it.0, uri)).ok_or_else(missing);
    }
    let listing = having.iter().find(|it| it.1.lists(uri)).map(|it| (it.0, uri));
    let before = || having.iter().find_map(|(name, _)| Some((*name, strip_server(uri, name)?)));
    match (listing.or_else(before), &having[..]) {
        (Some(it), _) => Ok(it),
        (None, [only]) => Ok((only.0, uri)),
        (None, []) => Err("No connected server has resources.".to_owned()),
        (None, _) => Err(format!("No server lists this resource: name its `server`, one of {}.", names())),
    }
}

/// What stands behind `server:`.
pub fn strip_server<'a>(text: &'a str, server: &str) -> Option<&'a str> {
    text.strip_prefix(server)?.strip_prefix(':').filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{ServerOffer, ServerPrompt, ServerResource, resource_of};

    fn offer(uris: &[&str]) -> ServerOffer {
        let resource = |uri: &&str| ServerResource {
            uri: (*uri).to_owned(),
            name: String::new(),
            description: String::new(),
            mime: None,
        };
        ServerOffer { has_resources: true, resources: uris.iter().map(resource).collect(), ..ServerOffer::default() }
    }

    fn check(args: Value, servers: &[(&str, &ServerOffer)], expected: &str) {
        let found = resource_of(&args, servers.iter().copied());
        assert_eq!(found.map_or_else(|it| it, |it| format!("{} {}", it.0, it.1)), expected, "{args}");
    }

    #[test]
    fn a_resource_has_one_server() {
        let (a, b, none) = (offer(&["x:1"]), offer(&["x:1", "x:2"]), ServerOffer::default());
        let all = [("none", &none), ("a", &a), ("b", &b)];
        check(json!({}), &all, "read_mcp_resource needs `uri`, the address of a resource.");
        check(json!({"uri": "x:2"}), &all, "b x:2");
        check(json!({"uri": "x:1"}), &all, "a x:1");
        check(json!({"uri": "x:1", "server": "b"}), &all, "b x:1");
        check(json!({"uri": "b:x:9"}), &all, "b x:9");
        let none_has = "No connected server \"none\" has resources. These have: \"a\", \"b\".";
        check(json!({"uri": "x:1", "server": "none"}), &all, none_has);
        let which = "No server lists this resource: name its `server`, one of \"a\", \"b\".";
        check(json!({"uri": "x:9"}), &all, which);
        check(json!({"uri": "x:9"}), &all[..2], "a x:9");
        check(json!({"uri": "x:9"}), &all[..1], "No connected server has resources.");
    }

    #[test]
    fn a_prompt_is_a_command_of_its_server() {
        let prompt = |name: &str| {
            let (name, description) = (name.to_owned(), String::new());
            ServerPrompt { name, description, arguments: vec![] }.command("my server")
        };
        assert_eq!((prompt("compress"), prompt(" a/b c ")), ("my-server:compress".into(), "my-server:a-b-c".into()));
    }
}
