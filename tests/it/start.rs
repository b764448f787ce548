//! castor starts whatever its settings say: `initialize` and `session/new` are answered with every key set, well or badly.

use std::thread;

use castor::cli::schema::SCHEMAS;
use serde_json::{Value, json};

use crate::client::{Client, Sandbox};

const N_THREADS: usize = 4;

/// Nobody ends the input meanwhile: who waits for its end, or reads it in any other way, does not answer.
#[test]
fn every_key_of_the_settings_lets_castor_start() {
    let keys = keys();
    assert!(keys.len() > 40 && keys.contains(&vec!["tools".to_owned(), "sandbox".to_owned()]), "{keys:?}");
    let mut files: Vec<String> = values().iter().map(|it| all(&keys, it).to_string()).collect();
    // One key alone each, with the kinds in turn.
    files.extend(
        keys.iter().zip(values().iter().cycle()).map(|(key, it)| all(std::slice::from_ref(key), it).to_string()),
    );
    files.extend(["", "{", "[]", "null", "\u{feff}{}", "{\"general\": {}}}", "{} // end"].map(str::to_owned));
    thread::scope(|scope| {
        for part in files.chunks(files.len().div_ceil(N_THREADS)) {
            scope.spawn(move || part.iter().for_each(|it| starts(it)));
        }
    });
}

fn starts(settings: &str) {
    let sandbox = Sandbox::new();
    sandbox.write(sandbox.home().join(".castor/settings.json"), settings);
    sandbox.write(sandbox.workspace().join(".gemini/settings.json"), settings);
    let mut client = Client::start(&sandbox);
    let answer = client.initialize(&json!({})).unwrap_or_else(|why| panic!("initialize, {settings}: {why}"));
    assert_eq!(answer["protocolVersion"], 1, "{settings}");
    let new = json!({ "cwd": sandbox.workspace(), "mcpServers": [] });
    let (answer, _) = client.call("session/new", new).unwrap_or_else(|why| panic!("session/new, {settings}: {why}"));
    assert!(answer.get("result").is_some() != answer.get("error").is_some(), "{settings}: {answer}");
    let (status, _) = client.end().unwrap_or_else(|why| panic!("{settings}: {why}"));
    assert!(status.success(), "{settings}: {status}");
}

fn values() -> Vec<Value> {
    let long = "x".repeat(70_000);
    let odd = "../../\u{1b}[31m\u{202e}$HOME${NOT_SET}\n";
    vec![
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(-1.5e300),
        json!("x"),
        json!(long),
        json!(odd),
        json!([]),
        json!(["x", 1, null, {}]),
        json!({}),
        json!({ "x": { "command": "false", "enabled": 1 }, "y": null }),
        Value::Null,
    ]
}

/// The names on the way to each key.
fn keys() -> Vec<Vec<String>> {
    let schema = SCHEMAS.iter().find(|it| it.name == "settings").unwrap();
    let (mut keys, mut path) = (Vec::new(), Vec::new());
    walk(&serde_json::from_str(&schema.text()).unwrap(), &mut path, &mut keys);
    keys
}

fn walk(schema: &Value, path: &mut Vec<String>, keys: &mut Vec<Vec<String>>) {
    match schema["anyOf"].get(0).unwrap_or(schema)["properties"].as_object() {
        Some(members) => {
            for (name, it) in members {
                path.push(name.clone());
                walk(it, path, keys);
                path.pop();
            }
        }
        None => keys.push(path.clone()),
    }
}

fn all(keys: &[Vec<String>], value: &Value) -> Value {
    let mut res = json!({});
    for key in keys {
        let place = key.iter().fold(&mut res, |it, name| &mut it[name.as_str()]);
        *place = value.clone();
    }
    res
}
