//! Questions over the wire show what they ask: no hidden character gets into a title, a path, an option or a message.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    conversation::model,
    mcp::server,
};

/// A character of each kind that hides something, alone, as a sequence or as a flood.
const HIDDEN: &[&str] = &[
    "\u{1}",
    "\u{7}",
    "\u{8}",
    "\u{b}",
    "\u{c}",
    "\r",
    "\u{1b}[2K",
    "\u{1b}]0;title\u{7}",
    "\u{1b}]8;;http:x\u{1b}\\",
    "\u{1b}(B",
    "\u{7f}",
    "\u{80}",
    "\u{85}",
    "\u{90}",
    "\u{9b}31m",
    "\u{9d}",
    "\u{9f}",
    "\u{a0}",
    "\u{ad}",
    "\u{34f}",
    "\u{61c}",
    "\u{115f}",
    "\u{1160}",
    "\u{1680}",
    "\u{17b4}",
    "\u{180b}",
    "\u{180e}",
    "\u{2003}",
    "\u{200b}",
    "\u{200c}",
    "\u{200d}",
    "\u{200e}",
    "\u{200f}",
    "\u{2028}",
    "\u{2029}",
    "\u{202a}",
    "\u{202b}",
    "\u{202c}",
    "\u{202d}",
    "\u{202e}",
    "\u{202f}",
    "\u{205f}",
    "\u{2060}",
    "\u{2061}",
    "\u{2064}",
    "\u{2066}",
    "\u{2067}",
    "\u{2068}",
    "\u{2069}",
    "\u{206a}",
    "\u{2800}",
    "\u{3000}",
    "\u{3164}",
    "\u{fe00}",
    "\u{fe0f}",
    "\u{feff}",
    "\u{ffa0}",
    "\u{fff9}",
    "\u{fffd}",
    "\u{1bca0}",
    "\u{1d173}",
    "\u{e0001}",
    "\u{e0041}",
    "\u{e007f}",
    "\u{e0100}",
];

/// Marks on one letter, more than any writing has.
const FLOOD: &str = "\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}\u{307}\u{308}\u{309}\u{30a}";

/// What a client shows of a message: all but raw arguments and the texts of files.
fn shown(value: &Value, texts: &mut Vec<String>) {
    const RAW: &[&str] = &["rawInput", "rawOutput", "oldText", "newText", "const", "patch"];
    match value {
        Value::String(it) => texts.push(it.clone()),
        Value::Array(all) => all.iter().for_each(|it| shown(it, texts)),
        Value::Object(all) => {
            all.iter().filter(|(name, _)| !RAW.contains(&name.as_str())).for_each(|(_, it)| shown(it, texts));
        }
        _ => (),
    }
}

/// Plays one call for each odd text, all of them allowed once. Gives the questions with the odd texts.
fn questions(is_v2: bool, prepare: impl Fn(&Sandbox) -> Value, call: impl Fn(&str) -> String) -> Vec<(String, Value)> {
    let mut sandbox = Sandbox::new();
    let odd: Vec<&str> = HIDDEN.iter().copied().chain([FLOOD]).collect();
    let all: Vec<String> = odd.iter().map(|it| call(it)).collect();
    let answers = all.chunks(8).map(|it| it.join(" + ")).chain(["text \"Done.\"".to_owned()]);
    let lines: Vec<String> = answers.map(|it| model::response(&it).unwrap().to_string() + "\n").collect();
    let script = sandbox.write("script.jsonl", &lines.concat());
    sandbox.args.extend(["--fake-responses".into(), script.into()]);
    let servers = prepare(&sandbox);
    let mut client = Client::start(&sandbox);
    match is_v2 {
        true => client.initialize_v2(&json!({})).unwrap(),
        false => client.initialize(&json!({})).unwrap(),
    };
    let session = client.new_session_with(&sandbox.workspace(), servers).unwrap();
    let prompt = json!([{ "type": "text", "text": "go" }]);
    client.request_as(json!("p"), "session/prompt", json!({ "sessionId": session, "prompt": prompt }));
    let mut res = Vec::new();
    while let Some(it) = client.next().unwrap() {
        let mut texts = Vec::new();
        // What a call gave is content.
        if it["params"]["update"]["status"] != "completed" {
            shown(&it["params"], &mut texts);
        }
        for (text, odd) in texts.iter().flat_map(|text| odd.iter().map(move |odd| (text, odd))) {
            let is_blank = odd.chars().all(|it| it.is_whitespace() && it != '\r' && !matches!(it, '\u{b}'..='\u{d}'));
            // Paths that programs open keep blanks that can be seen.
            assert!(!text.contains(*odd) || is_blank && text.starts_with('/'), "{odd:?} is in {it}");
        }
        match it["method"].as_str() {
            Some("session/request_permission") => {
                let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } });
                client.send(&json!({ "jsonrpc": "2.0", "id": it["id"], "result": outcome }));
                let call = [&it["params"]["toolCall"], &it["params"]["subject"]["toolCall"]];
                let raw = call.map(|it| it["rawInput"].to_string()).concat();
                // Calls of one answer are looked at side by side: the questions come in any order.
                let is_of = |odd: &&&str| raw.contains(json!(odd).to_string().trim_matches('"'));
                let of = odd.iter().filter(is_of).max_by_key(|it| it.len()).unwrap();
                res.push(((*of).to_owned(), it["params"].clone()));
            }
            None if it["id"] == "p" && !is_v2 => break,
            _ if it["params"]["update"]["state"] == "idle" => break,
            _ => (),
        }
    }
    assert_eq!(res.len(), odd.len(), "each is asked about");
    client.end().unwrap();
    res
}

/// How a title writes the last character of an odd text that is no plain letter.
fn code(odd: &str) -> String {
    let it = odd.chars().rfind(|it| !it.is_ascii_graphic()).unwrap();
    if it == '\r' { "\\r".to_owned() } else { format!("U+{:04X}", u32::from(it)) }
}

/// The first content of a question of version 1.
fn first_text(question: &Value) -> &str {
    question.pointer("/toolCall/content/0/content/text").and_then(Value::as_str).unwrap_or_default()
}

fn json_text(text: &str) -> Value {
    Value::from(text)
}

#[test]
fn commands() {
    for is_v2 in [false, true] {
        let call = |odd: &str| {
            format!("call run_shell_command {}", json!({ "command": format!("touch 'a{odd}'b"), "description": "d" }))
        };
        for (odd, it) in questions(is_v2, |_| json!([]), call) {
            let (words, raw) = match is_v2 {
                false => (it["toolCall"]["title"].clone(), &it["toolCall"]["rawInput"]),
                true => (it["description"].clone(), &it["subject"]["toolCall"]["rawInput"]),
            };
            assert!(words.as_str().unwrap().contains(&code(&odd)), "{odd:?}: {it}");
            let note = if is_v2 { words.as_str().unwrap() } else { first_text(&it) };
            assert!(note.starts_with("This command has hidden characters: U+"), "{odd:?}: {it}");
            assert_eq!(raw["command"], json_text(&format!("touch 'a{odd}'b")), "what would run is told as it is");
        }
    }
}

#[test]
fn files() {
    for tool in ["write_file", "replace"] {
        let prepare = |sandbox: &Sandbox| {
            for it in HIDDEN.iter().copied().chain([FLOOD]).filter(|_| tool == "replace") {
                sandbox.write(format!("ws/a{it}b"), "one\n");
            }
            json!([])
        };
        let call = |odd: &str| {
            let path = format!("a{odd}b");
            let args = match tool {
                "replace" => json!({ "file_path": path, "instruction": "i", "old_string": "one", "new_string": "two" }),
                _ => json!({ "file_path": path, "content": "x" }),
            };
            let read = json!({ "file_path": path });
            match tool {
                "replace" => format!("call read_file {read} + call replace {args}"),
                _ => format!("call write_file {args}"),
            }
        };
        for (odd, it) in questions(false, prepare, call) {
            let title = it["toolCall"]["title"].as_str().unwrap();
            assert!(title.contains(&code(&odd)), "{odd:?}: {it}");
            assert!(first_text(&it).starts_with("This path has hidden characters: U+"), "{odd:?}: {it}");
        }
    }
}

/// The text of a file goes to the client as it is, and its hidden characters are named.
#[test]
fn contents() {
    let call =
        |odd: &str| format!("call write_file {}", json!({ "file_path": "a.txt", "content": format!("x{odd}y") }));
    for (odd, it) in questions(false, |_| json!([]), call) {
        assert!(first_text(&it).starts_with("The argument `content` has hidden characters: U+"), "{odd:?}: {it}");
        assert_eq!(it["toolCall"]["content"][1]["newText"], json_text(&format!("x{odd}y")), "{it}");
    }
}

#[test]
fn tools_of_servers() {
    let prepare = |sandbox: &Sandbox| json!([server("p", "shifty", &sandbox.workspace().join("mcp.log"))]);
    let call = |odd: &str| format!("call mcp_p_echo {}", json!({ "text": format!("x{odd}y") }));
    for (odd, it) in questions(false, prepare, call) {
        assert!(first_text(&it).starts_with("The argument `text` has hidden characters: U+"), "{odd:?}: {it}");
        assert_eq!(it["toolCall"]["rawInput"]["text"], json_text(&format!("x{odd}y")));
    }
}

#[test]
fn patches() {
    let call = |odd: &str| {
        let patch = format!("*** Begin Patch\n*** Add File: a{odd}b\n+x\n*** End Patch\n");
        format!("call apply_patch {}", json!({ "input": patch }))
    };
    for (odd, it) in questions(false, |_| json!([]), call) {
        assert!(it["toolCall"]["title"].as_str().unwrap().contains(&code(&odd)), "{odd:?}: {it}");
        assert!(first_text(&it).contains(" has hidden characters: U+"), "{odd:?}: {it}");
        assert!(it["toolCall"]["content"].to_string().contains("\"diff\""), "{it}");
    }
}

#[test]
fn pages() {
    let prepare = |sandbox: &Sandbox| {
        let settings = json!({ "tools": { "webFetch": { "privateHosts": ["127.0.0.1:1"] } } });
        sandbox.write("home/.castor/settings.json", &settings.to_string());
        json!([])
    };
    let call = |odd: &str| {
        format!("call web_fetch {}", json!({ "prompt": format!("Sum up http://127.0.0.1:1/x and say a{odd}b") }))
    };
    for (odd, it) in questions(false, prepare, call) {
        assert_eq!(it["toolCall"]["title"], json_text("http://127.0.0.1:1/x"), "{odd:?}: {it}");
        assert!(first_text(&it).starts_with("The argument `prompt` has hidden characters: U+"), "{odd:?}: {it}");
    }
}

/// A server's question in the middle of a call, with words for each part of a form.
#[test]
fn questions_of_servers() {
    let odd: Vec<&str> = HIDDEN.iter().copied().chain([FLOOD]).collect();
    // Behind thirty requests of a turn a model is asked whether it leads anywhere.
    odd.chunks(24).for_each(ask_of_server);
}

fn ask_of_server(odd: &[&str]) {
    let mut sandbox = Sandbox::new();
    let ask = |odd: &&str| {
        let options = json!([{ "const": "a", "title": format!("A{odd}a") }, { "const": "b", "title": "B" }]);
        let city = json!({ "type": "string", "title": format!("T{odd}t"), "description": format!("D{odd}d"), "oneOf": options });
        let schema = json!({ "type": "object", "properties": { "city": city } });
        format!("call mcp_p_ask {}", json!({ "ask": { "message": format!("M{odd}m"), "requestedSchema": schema } }))
    };
    let answers = odd.iter().map(ask).chain(["text \"Done.\"".to_owned()]);
    let lines: Vec<String> = answers.map(|it| model::response(&it).unwrap().to_string() + "\n").collect();
    let script = sandbox.write("script.jsonl", &lines.concat());
    sandbox.args.extend(["--approval-mode", "yolo", "--fake-responses"].map(Into::into));
    sandbox.args.push(script.into());
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({ "elicitation": { "form": {} } })).unwrap();
    let servers = json!([server("p", "asks", &sandbox.home().join("mcp.log"))]);
    let session = client.new_session_with(&sandbox.workspace(), servers).unwrap();
    let prompt = json!([{ "type": "text", "text": "go" }]);
    client.request_as(json!("p"), "session/prompt", json!({ "sessionId": session, "prompt": prompt }));
    let mut n_asked = 0;
    while let Some(it) = client.next().unwrap().filter(|it| it["id"] != "p") {
        if it["method"] != "elicitation/create" {
            continue;
        }
        let mut texts = Vec::new();
        shown(&it["params"], &mut texts);
        let is_there = |part: &str| texts.iter().any(|it| it.contains(part));
        assert!(["M", "T", "D", "A"].iter().all(|it| is_there(it)), "{it}");
        for (text, odd) in texts.iter().flat_map(|text| odd.iter().map(move |odd| (text, odd))) {
            let is_blank = odd.chars().all(|it| it.is_whitespace() && it != '\r' && !matches!(it, '\u{b}'..='\u{d}'));
            assert!(!text.contains(*odd) || is_blank, "{odd:?} is in {it}");
        }
        n_asked += 1;
        client.send(&json!({ "jsonrpc": "2.0", "id": it["id"], "result": { "action": "decline" } }));
    }
    assert_eq!(n_asked, odd.len());
    client.end().unwrap();
}

/// Writing that needs joiners and selectors is shown as it is, with no note.
#[test]
fn plain_writing_has_no_note() {
    let mut sandbox = Sandbox::new();
    let text = "❤\u{fe0f} 👩\u{200d}🚀 می\u{200c}خواهم 漢字 e\u{301}";
    let call = format!("call run_shell_command {}", json!({ "command": format!("echo '{text}'\necho b") }));
    let lines: Vec<String> =
        [call.as_str(), "text \"1\""].iter().map(|it| model::response(it).unwrap().to_string() + "\n").collect();
    let script = sandbox.write("script.jsonl", &lines.concat());
    sandbox.args.extend(["--fake-responses".into(), script.into()]);
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let prompt = json!([{ "type": "text", "text": "go" }]);
    client.request_as(json!("p"), "session/prompt", json!({ "sessionId": session, "prompt": prompt }));
    let question = loop {
        let it = client.next().unwrap().expect("a question");
        if it["method"] == "session/request_permission" {
            break it;
        }
    };
    let call = &question["params"]["toolCall"];
    assert_eq!(call["title"], json_text(&format!("echo '{text}'\necho b")));
    assert!(!call["content"].to_string().contains("hidden"), "{call}");
    let outcome = json!({ "outcome": { "outcome": "cancelled" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": outcome }));
    while client.next().unwrap().is_some_and(|it| it["id"] != "p") {}
    client.end().unwrap();
}

/// What `castor run` prints into a pipe beside the answer, and the answer itself without marks that reorder it.
#[test]
fn pipes() {
    let mut sandbox = Sandbox::new();
    let call = format!("call run_shell_command {}", json!({ "command": ": '\u{202e}\r\u{1b}[2K\u{200b}'" }));
    let said = format!("text {}", json!("a\u{202e}b\u{2066}c\u{e0041}d שָ\u{200f} 👩\u{200d}🚀\n"));
    let lines: Vec<String> = [&call, &said].iter().map(|it| model::response(it).unwrap().to_string() + "\n").collect();
    sandbox.write("ws/script.jsonl", &lines.concat());
    sandbox.args = ["run", "--fake-responses=script.jsonl", "--no-stdin", "go"].map(Into::into).to_vec();
    let out = sandbox.command().stdin(Stdio::null()).output().unwrap();
    let (stdout, stderr) = (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap());
    assert!(!stderr.contains(['\u{202e}', '\r', '\u{1b}', '\u{200b}']), "{stderr:?}");
    assert!(stderr.contains("⟨U+202E⟩\\r⟨U+001B⟩[2K⟨U+200B⟩"), "{stderr}");
    assert_eq!(stdout, "a⟨U+202E⟩b⟨U+2066⟩c⟨U+E0041⟩d שָ\u{200f} 👩\u{200d}🚀\n");
}
