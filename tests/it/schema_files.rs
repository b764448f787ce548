//! castor's own schemas: their files in `schema/` are current, and what is written and read fits them.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Stdio},
};

use castor::cli::schema::SCHEMAS;
use castor_agent::server::{machine::METHODS_V2, method_names};
use castor_base::log::Entry;
use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    schema::{UPDATES_V2, check_as_client},
    schemas::{check, files},
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// `UPDATE_EXPECT=1` rewrites them.
#[test]
fn files_are_current() {
    for it in SCHEMAS {
        let path = root().join("schema").join(it.name).with_extension("json");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&path, it.text()).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(found == it.text(), "schema/{}.json is not current: UPDATE_EXPECT=1 rewrites it", it.name);
        let printed = Command::new(env!("CARGO_BIN_EXE_castor")).args(["schema", it.name]).output().unwrap();
        assert!(printed.status.success() && printed.stdout == it.text().as_bytes(), "castor schema {}", it.name);
    }
}

#[test]
fn names_are_listed() {
    let run = |args: &[&str]| Command::new(env!("CARGO_BIN_EXE_castor")).args(args).output().unwrap();
    let (list, wrong) = (run(&["schema"]), run(&["schema", "v9"]));
    let (list_text, wrong_text) = (String::from_utf8_lossy(&list.stdout), String::from_utf8_lossy(&wrong.stderr));
    assert_eq!((list.status.code(), wrong.status.code()), (Some(0), Some(42)));
    for it in SCHEMAS {
        assert!(list_text.contains(it.name) && wrong_text.contains(it.name), "{list_text}{wrong_text}");
    }
}

/// The page's examples: castor takes their params, whatever it then says of ids that it does not have.
#[test]
fn examples_of_own_methods_are_understood() {
    let page = fs::read_to_string(root().join("docs/reference/methods.md")).unwrap();
    let mut sandbox = Sandbox::new();
    sandbox.args.extend(["--model".into(), "demo".into()]);
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let mut shown = Vec::new();
    for line in page.lines().filter(|it| it.starts_with('{')) {
        let mut message: Value = serde_json::from_str(line).unwrap();
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        if method_names().any(|it| it == method) {
            if let Some(it) = message["params"].get_mut("sessionId") {
                *it = json!(session);
            }
            let (answer, _) = client.call(&method, message["params"].take()).unwrap();
            let said = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(!said.contains("the schema has for this method"), "{line}: {said}");
            shown.push(method);
        }
    }
    // Words without a turn begin one: its calls end with the session, and castor has no second left when it is told to go.
    // One that sleeps by now has none.
    client.call("session/close", json!({ "sessionId": session })).unwrap();
    let missing: Vec<&str> =
        method_names().filter(|it| it.starts_with("_castor/") && !shown.iter().any(|other| other == it)).collect();
    assert!(missing.is_empty(), "docs/reference/methods.md has no example of {missing:?}");
}

/// What castor leaves out of version 2, its page names.
#[test]
fn version_2_is_there_or_named_in_its_page() {
    fn updates(it: &Value) -> Vec<String> {
        let members: Vec<&Value> = match it {
            Value::Object(all) => all.values().collect(),
            Value::Array(all) => all.iter().collect(),
            _ => Vec::new(),
        };
        let own = it["properties"]["sessionUpdate"]["const"].as_str().map(str::to_owned);
        own.into_iter().chain(members.into_iter().flat_map(updates)).collect()
    }
    let page = fs::read_to_string(root().join("docs/reference/protocol-v2.md")).unwrap();
    let (_, left_out) = page.split_once("## Not there").unwrap();
    let text = fs::read_to_string(root().join("schema/v2-unstable.json")).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    let shapes = schema["$defs"].as_object().unwrap();
    let updates = updates(&shapes["SessionUpdate"]);
    let methods = shapes.values().filter(|it| it["x-side"] == "agent").filter_map(|it| it["x-method"].as_str());
    // Notifications have tables of their own.
    let methods = methods.filter(|it| !["session/cancel", "mcp/message"].contains(it));
    assert!(updates.len() > UPDATES_V2.len(), "{updates:?}");
    let is_there = |it: &str| UPDATES_V2.contains(&it) || METHODS_V2.iter().any(|(name, _)| *name == it);
    let missing: Vec<&str> = updates.iter().map(String::as_str).chain(methods).filter(|it| !is_there(it)).collect();
    for it in missing {
        assert!(left_out.contains(&format!("`{it}`")), "{it} is neither sent nor named in the page");
    }
}

/// What the verbs print, before a session and after one. No model but the demo can be reached.
#[test]
fn outputs_of_verbs_fit() {
    let mut sandbox = Sandbox::new();
    let mut castor = |args: &[&str]| {
        sandbox.args = args.iter().map(Into::into).collect();
        sandbox.command().stdin(Stdio::null()).output().unwrap().stdout
    };
    let fits = |name: &str, said: &[u8]| check(name, &serde_json::from_slice(said).unwrap()).unwrap();
    fits("sessions", &castor(&["sessions", "list", "--json"]));
    castor(&["run", "-m", "demo", "hello"]);
    for (name, args) in [
        ("doctor", &["doctor", "--json"][..]),
        ("sessions", &["sessions", "list", "--json"]),
        ("export", &["sessions", "export", "latest", "--format", "json"]),
        ("auth", &["auth", "status", "--json"]),
        ("models", &["models", "gemini", "--json"]),
    ] {
        fits(name, &castor(args));
    }
}

/// What castor says in a scenario to `side`: how many messages, and those that fit not.
fn check_scenario(path: &Path, side: &str) -> (usize, Vec<String>) {
    let (mut asked, mut passed_on, mut n_checked, mut wrong) = (BTreeMap::new(), Vec::new(), 0, Vec::new());
    for line in fs::read_to_string(path).unwrap().lines() {
        let (head, message) = line.trim_start_matches("> ").split_once(' ').unwrap_or_default();
        let Ok(message) = serde_json::from_str::<Value>(message) else { continue };
        let (id, method) = (message["id"].to_string(), message["method"].as_str());
        match (line.starts_with("> "), head == side, method) {
            (true, true, Some(method)) => _ = asked.insert(id, method.to_owned()),
            (true, false, Some(method)) => passed_on.push((method.to_owned(), message["params"].clone())),
            // What a client wrote goes on as it is, right or wrong.
            (false, true, Some(method)) if passed_on.contains(&(method.to_owned(), message["params"].clone())) => (),
            (false, true, _) => {
                n_checked += 1;
                let fits = check_as_client(&message, asked.get(&id).map(String::as_str));
                wrong.extend(fits.err().map(|why| format!("{}: {why} in {line}\n", path.display())));
            }
            _ => (),
        }
    }
    (n_checked, wrong)
}

/// What the hub of `castor serve` says to its agent, and the host of AHP to the hub.
#[test]
fn messages_of_scenarios_fit() {
    let host = root().join("src/host");
    let ahp = files(&host.join("ahp/scenarios"), "txt").into_iter().map(|it| (it, "hub"));
    let all = ahp.chain([(host.join("hub/scenarios.txt"), "agent")]);
    let (counts, wrong): (Vec<usize>, Vec<Vec<String>>) = all.map(|(path, side)| check_scenario(&path, side)).unzip();
    assert!(wrong.concat().is_empty(), "{}", wrong.concat().concat());
    assert!(counts.iter().all(|it| *it > 5) && counts.iter().sum::<usize>() > 180, "{counts:?}");
    let sandbox = Sandbox::new();
    let prompt = r#"{"id":1,"method":"session/prompt","params":{"prompt":[]}}"#;
    let path = sandbox.write("scenario", &format!("> 1 {prompt}\nagent {prompt}\nhub {prompt}\n"));
    assert_eq!(["agent", "hub", "other"].map(|it| check_scenario(&path, it).1.len()), [0, 0, 0]);
    let path = sandbox.write("scenario", &format!("hub {prompt}\nhub {{\"id\":1,\"result\":{{}}}}\n"));
    assert_eq!(check_scenario(&path, "hub").1.len(), 2);
}

/// Logs of every age, as far as castor itself knows what their lines say.
#[test]
fn logs_fit() {
    let mut n_checked = 0;
    for path in files(&root().join("tests/data/logs"), "jsonl") {
        for line in fs::read_to_string(&path).unwrap().lines() {
            let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
            let Ok(entry) = serde_json::from_value::<Entry>(line.clone()) else { continue };
            let again = serde_json::to_value(&entry).unwrap();
            if again["fact"] != "unknown" && again["event"]["type"] != "unknown" {
                check("log", &line).unwrap();
                check("log", &again).unwrap();
                n_checked += 1;
            }
        }
    }
    assert!(n_checked > 20, "{n_checked}");
}

/// The settings of the conversations; what castor would not take as written does not fit.
#[test]
fn settings_fit() {
    let mut n_checked = 0;
    for path in files(&root().join("tests/data"), "txt") {
        let text = fs::read_to_string(&path).unwrap();
        for line in text.lines().filter_map(|it| it.strip_prefix("settings ")) {
            let fits = check("settings", &serde_json::from_str(line).unwrap());
            // One server there has neither command nor address.
            let is_wrong = path.ends_with("commands-mcp.txt");
            assert_eq!(fits.is_err(), is_wrong, "{}: {fits:?}", path.display());
            n_checked += 1;
        }
    }
    assert!(n_checked > 10, "{n_checked}");
    for (settings, fits) in [
        (json!({"$schema": "https://example.com/settings.json", "ui": {"theme": "x"}}), true),
        (json!({"general": {"defaultApprovalMode": "auto_edit", "maxAttempts": "$N", "vimMode": true}}), true),
        (json!({"general": {"defaultApprovalMode": "yolo"}}), false),
        (json!({"general": {"sessionRetention": {"maxAge": "30d", "maxCount": 1}}}), true),
        (json!({"general": {"sessionRetention": {"maxAge": "soon"}}}), false),
        (json!({"model": {"name": "m", "maxSessionTurns": -2}}), false),
        (json!({"model": {"nmae": "m"}}), false),
        (json!({"security": {"auth": null}}), true),
        (json!({"tools": {"shell": {"terminal": "client", "pager": "cat"}}}), true),
        (json!({"tools": {"exclude": "shell"}}), false),
        (json!({"mcpServers": {"a": {"url": "http://h", "timeout": 5, "oauth": {}}}}), true),
        (json!({"mcpServers": {"a": {"command": 5}}}), false),
        (json!({"colour": "red"}), false),
    ] {
        let found = check("settings", &settings);
        assert_eq!(found.is_ok(), fits, "{settings}: {found:?}");
    }
}

/// Editors show these.
#[test]
fn settings_are_described() {
    fn walk(path: &str, it: &Value) {
        let members = it["anyOf"].get(0).unwrap_or(it).get("properties").and_then(Value::as_object);
        assert!(it.get("description").is_some() || members.is_some(), "{path} has no description");
        members.into_iter().flatten().for_each(|(name, it)| walk(&format!("{path}.{name}"), it));
    }
    let all = SCHEMAS.iter().find(|it| it.name == "settings").unwrap();
    let all: Value = serde_json::from_str(&all.text()).unwrap();
    walk("", &all);
    let restarts = &all["properties"]["mcp"]["anyOf"][0]["properties"]["maxRestarts"];
    assert_eq!(restarts["default"], 8, "{restarts}");
}
