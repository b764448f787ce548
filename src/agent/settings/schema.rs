//! The JSON Schema of settings files, for editors, generated from the table of keys.

use serde_json::{Map, Value, json};

use castor_base::hook::{Hook, HookEvent};

use super::keys::{KEYS, Key, KeyKind, Usage, path_below};

/// Draft 7: all editors know it.
const DIALECT: &str = "http://json-schema.org/draft-07/schema#";

/// The schema of `settings.json`, in castor's folders and Gemini CLI's.
pub fn schema() -> Value {
    let mut res = json!({
        "$schema": DIALECT,
        "title": "Settings of castor",
        "description": "~/.castor/settings.json and .castor/settings.json of a trusted workspace; comments are allowed.",
        "type": "object",
    });
    members(&mut res, "");
    res
}

/// What may stand in the group: its rows and groups, and more only where the table says so.
fn members(schema: &mut Value, group: &str) {
    let mut properties = Map::new();
    for (path, name) in KEYS.iter().filter_map(|it| Some((it.path, below(it.path, group)?))) {
        let name = name.split('.').next().unwrap_or(name);
        if properties.contains_key(name) {
            continue;
        }
        let own = path.get(..path.len() - below(path, group).map_or(0, str::len) + name.len()).unwrap_or(path);
        properties.insert(name.to_owned(), member(own));
    }
    schema["properties"] = Value::Object(properties);
    let open = KEYS.iter().any(|it| it.path == group);
    schema["additionalProperties"] = open.into();
}

fn below<'p>(path: &'p str, group: &str) -> Option<&'p str> {
    if group.is_empty() { Some(path) } else { path_below(path, group) }
}

fn member(path: &str) -> Value {
    let row = KEYS.iter().find(|it| it.path == path);
    let mut res = row.map_or_else(|| json!({ "type": "object" }), described);
    if KEYS.iter().any(|it| path_below(it.path, path).is_some()) {
        members(&mut res, path);
    }
    // A null stands for a setting that is not there. Editors look for words outside of the choice.
    let mut words = Map::new();
    for name in ["description", "default"] {
        words.extend(res.as_object_mut().and_then(|it| it.shift_remove(name)).map(|it| (name.to_owned(), it)));
    }
    words.insert("anyOf".to_owned(), json!([res, { "type": "null" }]));
    Value::Object(words)
}

fn described(row: &Key) -> Value {
    let mut res = of_kind(row.kind);
    if row.path == "mcpServers" {
        res = json!({ "type": "object", "additionalProperties": server() });
    }
    if row.path == "agents.overrides" {
        res = json!({ "type": "object", "additionalProperties": agent_override() });
    }
    if row.path == "hooks" {
        let groups = json!({ "type": "array", "items": hooks() });
        let events: Vec<&str> = HookEvent::ALL.iter().map(|it| it.as_str()).collect();
        let events = format!("^({})$", events.join("|"));
        res = json!({ "type": "object", "patternProperties": { events: groups } });
    }
    let rest = [("description", Some(meaning(row).into())), ("default", row.default_value())];
    let rest = rest.into_iter().filter_map(|(key, it)| Some((key.to_owned(), it?)));
    if let Some(it) = res.as_object_mut() {
        it.extend(rest);
    }
    res
}

/// What a row is for, and whether castor acts on it.
pub fn meaning(row: &Key) -> String {
    let is_group = KEYS.iter().any(|it| path_below(it.path, row.path).is_some());
    let note = match row.usage {
        Usage::Used => String::new(),
        Usage::Accepted if is_group => " (castor acts on those that it names.)".to_owned(),
        Usage::Accepted => " (Accepted; castor does not act on it.)".to_owned(),
        Usage::Unsupported(what) => format!(" (It {what}.)"),
    };
    format!("{}{note}", row.doc)
}

fn of_kind(kind: KeyKind) -> Value {
    match kind {
        KeyKind::Bool => or_variable(json!({ "type": "boolean" })),
        KeyKind::Int(i64::MIN) => or_variable(json!({ "type": "integer" })),
        KeyKind::Int(min) => or_variable(json!({ "type": "integer", "minimum": min })),
        KeyKind::Fraction => or_variable(json!({ "type": "number", "minimum": 0, "maximum": 1 })),
        KeyKind::Amount => or_variable(json!({ "type": "number", "exclusiveMinimum": 0 })),
        KeyKind::Text => json!({ "type": "string", "pattern": "\\S" }),
        KeyKind::Texts => texts(),
        KeyKind::Age => json!({ "type": "string", "pattern": "^\\s*0*[1-9][0-9]*[hdwm]\\s*$|\\$" }),
        KeyKind::ApprovalMode => or_variable(json!({ "enum": ["default", "auto_edit", "auto", "plan", "autoEdit"] })),
        KeyKind::Word(words) => or_variable(json!({ "enum": words })),
        KeyKind::Object => json!({ "type": "object" }),
        KeyKind::Any => json!({}),
    }
}

fn texts() -> Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

/// `$NAME` and `${NAME}` are filled in before the type is looked at.
fn or_variable(schema: Value) -> Value {
    json!({ "anyOf": [schema, { "type": "string", "pattern": "\\$" }] })
}

fn hooks() -> Value {
    let text = |doc: &str| json!({ "type": "string", "description": doc });
    let hook = json!({
        "type": "object",
        "required": ["type", "command"],
        "properties": {
            "type": { "const": "command" },
            "command": text("A line for bash. It reads the event as JSON on its standard input."),
            "name": text("Its name [default: its command]."),
            "description": text("What it is for."),
            "timeout": { "type": "integer", "minimum": 1, "default": Hook::TIMEOUT_MS, "description":
                "In milliseconds." },
            "env": { "type": "object", "description": "Its variables, beside the filtered environment of all children." },
            "observes": { "type": "boolean", "default": false, "description":
                "It only listens: castor does not wait for it, and its answer does not count. An `AfterModel` hook without \
                 it holds each answer back until it is whole." },
        },
    });
    json!({
        "type": "object",
        "required": ["hooks"],
        "properties": {
            "matcher": text("For tools: an expression that their names contain. For other events: the trigger. [default: all]"),
            "sequential": { "type": "boolean", "default": false, "description":
                "One after the other, each told what the one before changed." },
            "hooks": { "type": "array", "items": hook },
        },
    })
}

fn agent_override() -> Value {
    json!({
        "type": "object",
        "properties": {
            "enabled": { "type": "boolean", "description": "Whether it can be started." },
            "runConfig": {
                "type": "object",
                "properties": {
                    "maxTurns": { "type": "integer", "minimum": 1, "description": "Requests to the model in one run." },
                    "maxTimeMinutes": { "type": "number", "exclusiveMinimum": 0, "description": "Minutes of work in one run." },
                },
            },
            "modelConfig": {
                "type": "object",
                "properties": {
                    "model": { "type": "string", "description": "Its model; inherit: that of the session." },
                    "generateContentConfig": {
                        "type": "object",
                        "properties": { "temperature": { "type": "number", "minimum": 0, "maximum": 2 } },
                    },
                },
            },
            "tools": { "type": "array", "items": { "type": "string" }, "description": "Its tools, in place of those of its file." },
            "mcpServers": { "type": "object", "additionalProperties": server(), "description":
                "MCP servers of its own, beside those of its file; one of the same name takes the place of the other." },
        },
    })
}

fn oauth() -> Value {
    let text = |doc: &str| json!({ "type": "string", "description": doc });
    let list = |doc: &str| json!({ "type": "array", "items": { "type": "string" }, "description": doc });
    json!({
        "type": "object",
        "description": "A login at a server on the network; what is missing is found out.",
        "properties": {
            "enabled": { "type": "boolean", "default": true, "description": "Whether castor logs in there." },
            "grant": { "enum": ["authorization_code", "client_credentials", "cross_app_access"], "default": "authorization_code", "description":
                "Who logs in: a user on a page, castor itself with id and secret or key, or the company's identity provider for the user." },
            "privateKey": text("With client_credentials: the key in PEM (PKCS #8), from a variable: \"$NAME\"."),
            "privateKeyFile": text("With client_credentials: the file of that key."),
            "identityProvider": identity_provider(),
            "clientId": text("As the authorization server knows castor; without it castor registers itself."),
            "clientSecret": text("What proves it."),
            "clientMetadataUrl": text("The address of a document about the client, for servers that take it as the id."),
            "scopes": list("What to ask for, in place of what the server names."),
            "audiences": list("Further audiences of the token."),
            "authorizationUrl": text("The page of the authorization server."),
            "tokenUrl": text("Where it gives out tokens."),
            "registrationUrl": text("Where clients register."),
            "redirectUri": text("Where the browser comes back to, on this machine: http://localhost:PORT/PATH."),
        },
    })
}

fn identity_provider() -> Value {
    let text = |doc: &str| json!({ "type": "string", "description": doc });
    json!({
        "type": "object",
        "description": "With cross_app_access: where the company's users log in.",
        "required": ["issuer", "tokenUrl", "clientId"],
        "properties": {
            "issuer": text("Its name, as its tokens have it."),
            "tokenUrl": text("Where it gives out tokens."),
            "clientId": text("As it knows castor."),
            "clientSecret": text("What proves it."),
            "idToken": text("What says who the user is, from a variable: \"$NAME\"."),
            "idTokenFile": text("The file of that token, read anew for each login."),
        },
    })
}

/// The key of one program.
fn sandbox(doc: &str) -> Value {
    let paths = |doc: &str| json!({ "type": "array", "items": { "type": "string" }, "description": doc });
    let object = json!({ "type": "object", "additionalProperties": false, "properties": {
        "network": { "type": "boolean", "description": "Whether it has the network." },
        "writable": paths("More folders that it may write."),
        "readable": paths("Credentials that it may read."),
        "sockets": paths("Sockets of other programs that it may use, such as docker's."),
    } });
    json!({ "description": format!("{doc} `false`: outside, while nothing that it reaches was written by an agent and not \
        looked at."), "anyOf": [{ "type": "boolean" }, object] })
}

fn server() -> Value {
    let text = |doc: &str| json!({ "type": "string", "description": doc });
    let list = |doc: &str| json!({ "type": "array", "items": { "type": "string" }, "description": doc });
    let pairs = |doc: &str| json!({ "type": "object", "description": doc });
    json!({
        "type": "object",
        "anyOf": [{ "required": ["command"] }, { "required": ["url"] }, { "required": ["httpUrl"] },
            { "required": ["sandbox"] }],
        "properties": {
            "command": text("The program of a server on stdio."),
            "args": list("Its arguments."),
            "env": pairs("Its variables, beside the filtered environment of all children."),
            "cwd": text("Where it works, from the session's folder."),
            "url": text("A server on the network."),
            "type": { "enum": ["http", "sse", "stdio"], "description": "The protocol of `url` [default: castor tries both]." },
            "httpUrl": text("A server that speaks streamable HTTP."),
            "headers": pairs("Sent with each request."),
            "oauth": oauth(),
            "timeout": { "type": "integer", "minimum": 1, "default": 600_000,
                "description": "For connecting, and for each request, in milliseconds." },
            "trust": { "type": "boolean", "default": false, "description":
                "Its tools run without a question, and castor believes what the server says of them. Not in a workspace's settings." },
            "sandbox": sandbox("A process that a workspace's settings name, or that reaches the workspace, runs in the sandbox of \
                commands, with network. Only the user's settings can say otherwise."),
            "authProviderType": { "enum": ["dynamic_discovery", "google_credentials", "service_account_impersonation"],
                "default": "dynamic_discovery", "description":
                "How castor logs in: by OAuth, with Google's credentials of this machine (`oauth.scopes`), or with them for a \
                 service account. Only your own settings may name the latter two." },
            "targetServiceAccount": text("With service_account_impersonation: the account's address."),
            "targetAudience": text("With service_account_impersonation: for whom its token is."),
            "includeTools": list("The only tools that are wanted."),
            "excludeTools": list("Tools that are not wanted."),
        },
    })
}
