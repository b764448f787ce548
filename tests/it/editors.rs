//! The examples in `editors/`: each can be parsed, and what it starts is an agent.

use std::{fs, io::Write, path::Path, process::Stdio};

use serde_json::{Value, json};

use crate::client::{Client, Sandbox};

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("editors").join(name);
    fs::read_to_string(&path).unwrap_or_else(|it| panic!("{name}: {it}"))
}

/// Starts the command line with castor's binary in its program's place, and opens a session.
fn shake_hands(name: &str, line: &[String], env: &[(String, String)]) {
    assert_eq!(line.first().map(String::as_str), Some("castor"), "{name}");
    let mut sandbox = Sandbox::new();
    sandbox.args = line[1..].iter().map(Into::into).collect();
    sandbox.env.extend(env.iter().cloned());
    sandbox.env.push(("GEMINI_API_KEY".to_owned(), "never-used".to_owned()));
    let mut client = Client::start(&sandbox);
    let answer = client.initialize(&json!({})).unwrap_or_else(|it| panic!("{name}: {it}"));
    assert_eq!(answer["protocolVersion"], 1, "{name}");
    client.new_session(&sandbox.workspace()).unwrap_or_else(|it| panic!("{name}: {it}"));
}

/// Names of the variables that a Lua file takes over from Neovim's environment.
fn passed_variables(source: &str) -> Vec<&str> {
    let names = source.split("os.getenv(\"").skip(1).filter_map(|it| it.split('"').next());
    names.filter(|it| source.contains(&format!("{it} = os.getenv"))).collect()
}

/// avante.nvim passes PATH and what its `env` names; `CASTOR_HOME` and `LANG` are the sandbox's.
#[test]
fn avante_starts_castor_with_the_variables_that_it_passes() {
    let source = read("avante.lua");
    let passed = passed_variables(&source);
    assert_eq!(passed, ["HOME", "GEMINI_API_KEY"]);
    let env = ["HOME", "CASTOR_HOME", "LANG"].iter().filter(|it| !passed.contains(it));
    let env: Vec<_> = env.map(|it| ((*it).to_owned(), String::new())).collect();
    shake_hands("avante.lua", &["castor".to_owned(), "acp".to_owned()], &env);
}

/// As from `env -i PATH=$PATH`: the home folder is then the one of the system's list of users.
#[test]
fn castor_starts_without_a_home_in_its_environment() {
    let Ok(Some(user)) = nix::unistd::User::from_uid(nix::unistd::Uid::current()) else { return };
    let path = std::env::var_os("PATH").unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_castor"));
    command.arg("acp").env_clear().env("PATH", path).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut castor = command.stderr(Stdio::piped()).spawn().unwrap();
    let greeting = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}});
    writeln!(castor.stdin.take().unwrap(), "{greeting}").unwrap();
    let ended = castor.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(said.contains("\"protocolVersion\":1"), "{} of {user:?}: {said} {ended:?}", user.name);
}

#[test]
fn json_examples_start_castor() {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let pairs = json!({"type": "object", "additionalProperties": {"type": "string"}});
    for (name, agents, kinds) in [
        ("zed.json", "agent_servers", json!({"const": "custom"})),
        ("vscode.json", "acp.agents", json!(false)),
        ("jetbrains.json", "agent_servers", json!(false)),
    ] {
        let config: Value = serde_json::from_str(&read(name)).unwrap_or_else(|it| panic!("{name}: {it}"));
        let agent = &config[agents]["castor"];
        let shape = json!({
            "type": "object", "required": ["command", "args"], "additionalProperties": false,
            "properties": {"type": kinds, "command": {"type": "string"}, "args": texts, "env": pairs},
        });
        let wrong = jsonschema::validator_for(&shape).unwrap().validate(agent).map_err(|it| it.to_string());
        assert_eq!(wrong, Ok(()), "{name}");
        let args = agent["args"].as_array().unwrap();
        let line: Vec<String> =
            [&agent["command"]].into_iter().chain(args).map(|it| it.as_str().unwrap().to_owned()).collect();
        let env = agent["env"].as_object().into_iter().flatten();
        let env: Vec<_> = env.map(|(name, it)| (name.clone(), it.as_str().unwrap().to_owned())).collect();
        shake_hands(name, &line, &env);
    }
}

#[derive(Debug, PartialEq)]
enum Token {
    Open(char),
    Close(char),
    Text(String),
}

/// Delimiters and texts of Lua or Emacs Lisp.
fn tokens(source: &str, comment: &str) -> Result<Vec<Token>, String> {
    let mut res = Vec::new();
    for line in source.lines() {
        let mut rest = line;
        while let Some(c) = rest.chars().next() {
            if rest.starts_with(comment) {
                break;
            }
            rest = &rest[c.len_utf8()..];
            match c {
                '"' => {
                    let (text, after) = rest.split_once('"').ok_or_else(|| format!("open text: {line}"))?;
                    res.push(Token::Text(text.to_owned()));
                    rest = after;
                }
                '(' | '{' | '[' => res.push(Token::Open(c)),
                ')' | '}' | ']' => res.push(Token::Close(c)),
                _ => (),
            }
        }
    }
    Ok(res)
}

fn is_balanced(tokens: &[Token]) -> bool {
    let mut open = Vec::new();
    for token in tokens {
        match token {
            Token::Open(it) => open.push(*it),
            Token::Close(it) => match (open.pop(), it) {
                (Some('('), ')') | (Some('{'), '}') | (Some('['), ']') => (),
                _ => return false,
            },
            Token::Text(_) => (),
        }
    }
    open.is_empty()
}

/// The last text that is `castor`, and the texts after it up to the end of a list.
fn command_line(tokens: &[Token]) -> Vec<String> {
    let is_castor = |it: &Token| *it == Token::Text("castor".to_owned());
    let start = tokens.iter().rposition(is_castor).unwrap_or(tokens.len());
    let list = tokens[start..].iter().take_while(|it| !matches!(it, Token::Close(_)));
    list.filter_map(|it| if let Token::Text(text) = it { Some(text.clone()) } else { None }).collect()
}

#[test]
fn lua_and_lisp_examples_start_castor() {
    for (name, comment) in [("codecompanion.lua", "--"), ("avante.lua", "--"), ("agent-shell.el", ";")] {
        let source = read(name);
        let tokens = tokens(&source, comment).unwrap_or_else(|it| panic!("{name}: {it}"));
        assert!(is_balanced(&tokens), "{name}: {tokens:?}");
        // Lua's blocks, too.
        let words = |word: &str| source.split(|c: char| !c.is_alphanumeric()).filter(|it| *it == word).count();
        assert!(comment == ";" || words("function") == words("end"), "{name}");
        let line = command_line(&tokens);
        assert_eq!(line, ["castor", "acp"], "{name}");
        shake_hands(name, &line, &[]);
    }
}

#[test]
fn balance_check_finds_broken_examples() {
    let of = |source: &str| tokens(source, "--").map(|it| is_balanced(&it));
    assert_eq!(of("f({ a = \"}\" }) -- )"), Ok(true));
    assert_eq!((of("f({ a = 1 )"), of("f(("), of("f())")), (Ok(false), Ok(false), Ok(false)));
    assert!(of("f(\"a)").is_err());
}

/// What the registry asks for, but the systems that castor is not built for.
#[test]
fn the_registry_would_take_the_manifest() {
    let manifest: Value = serde_json::from_str(&read("registry/castor/agent.json")).unwrap();
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let pairs = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let uri = json!({"type": "string", "pattern": "^https://[^ ]+$"});
    let binary = json!({
        "type": "object", "required": ["archive", "cmd"], "additionalProperties": false,
        "properties": {"archive": uri, "cmd": {"type": "string"}, "args": texts, "env": pairs},
    });
    let schema = json!({
        "type": "object", "additionalProperties": false,
        "required": ["id", "name", "version", "description", "distribution"],
        "properties": {
            "id": {"type": "string", "pattern": "^[a-z][a-z0-9-]*$"},
            "name": {"type": "string", "minLength": 1},
            "version": {"type": "string", "pattern": "^[0-9]+\\.[0-9]+\\.[0-9]+$"},
            "description": {"type": "string", "minLength": 1},
            "repository": uri, "authors": texts, "license": {"type": "string"}, "icon": {"type": "string"},
            "distribution": {"type": "object", "minProperties": 1, "additionalProperties": false, "properties": {
                "binary": {"type": "object", "minProperties": 1, "additionalProperties": false, "patternProperties":
                    {"^(darwin|linux|windows)-(aarch64|x86_64)$": binary}},
            }},
        },
    });
    let wrong = jsonschema::validator_for(&schema).unwrap().validate(&manifest).map_err(|it| it.to_string());
    assert_eq!(wrong, Ok(()));
    assert_eq!(manifest["id"], "castor");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(manifest["description"], env!("CARGO_PKG_DESCRIPTION"));
    for (system, it) in manifest["distribution"]["binary"].as_object().unwrap() {
        let archive = it["archive"].as_str().unwrap();
        assert!(archive.contains(env!("CARGO_PKG_VERSION")) && archive.contains(system), "{archive}");
        let args = it["args"].as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned());
        assert_eq!(it["cmd"], "./castor");
        shake_hands("agent.json", &["castor".to_owned()].into_iter().chain(args).collect::<Vec<_>>(), &[]);
    }
}

/// As its checks look at it: 16 by 16, and one colour, which is the text's.
#[test]
fn the_icon_is_small_and_of_one_colour() {
    let icon = read("registry/castor/icon.svg");
    let attribute = |name: &str| {
        let name = format!(" {name}=\"");
        let parts = icon.split(&name).skip(1);
        parts.map(|it| it.split('"').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(icon.starts_with("<svg ") && icon.trim_end().ends_with("</svg>"));
    assert_eq!((attribute("width"), attribute("height")), (vec!["16".to_owned()], vec!["16".to_owned()]));
    assert_eq!(attribute("viewBox"), ["0 0 16 16"]);
    let colours: Vec<String> = ["fill", "stroke", "color", "stop-color"].iter().flat_map(|it| attribute(it)).collect();
    assert!(colours.contains(&"currentColor".to_owned()), "{colours:?}");
    assert!(colours.iter().all(|it| ["currentColor", "none", "inherit"].contains(&it.as_str())), "{colours:?}");
    assert!(!icon.contains("style") && !icon.contains('#') && !icon.contains("rgb"), "{icon}");
}

/// The registry's own check: the first line on stdout answers initialize, and offers a way to sign in.
#[test]
fn the_registrys_check_finds_a_way_to_sign_in() {
    let mut sandbox = Sandbox::new();
    sandbox.env.push(("TERM".to_owned(), "dumb".to_owned()));
    let mut client = Client::start(&sandbox);
    let capabilities = json!({"terminal": true, "fs": {"readTextFile": true, "writeTextFile": true},
        "_meta": {"terminal_output": true, "terminal-auth": true}});
    let answer = client.initialize(&capabilities).unwrap();
    let methods = answer["authMethods"].as_array().unwrap();
    assert!(
        methods.iter().any(|it| matches!(it.get("type").and_then(Value::as_str), None | Some("agent" | "terminal")))
    );
}
