//! Memory files from the editor's side: what of them is in the request to the model.

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    model_server::{ModelServer, calls, says},
};

fn agent(server: &ModelServer, trusted: bool) -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
    if !trusted {
        sandbox.env.push(("CASTOR_TRUST_WORKSPACE".into(), "false".into()));
    }
    for (name, text) in [
        ("home/.gemini/GEMINI.md", "USER-WORD"),
        ("ws/.git/HEAD", ""),
        ("ws/AGENTS.md", "PROJECT-WORD @docs/more.md"),
        ("ws/docs/more.md", "IMPORTED-WORD"),
        ("ws/sub/GEMINI.md", "NEAREST-WORD"),
    ] {
        sandbox.write(name, text);
    }
    sandbox
}

fn prompt(client: &mut Client, session: &str, text: &str) -> (Value, String) {
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
    let (answer, updates) = client.call("session/prompt", params).unwrap();
    (answer, updates.iter().map(Value::to_string).collect())
}

fn system(server: &ModelServer, at: usize) -> String {
    let body: Value = serde_json::from_str(&server.asked()[at].body).unwrap();
    body["systemInstruction"].to_string()
}

#[test]
fn request_includes_instruction_files_as_they_are() {
    let server = ModelServer::start(vec![says("One."), says("Two."), says("Three."), says("Four.")]);
    let sandbox = agent(&server, true);
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let sub = sandbox.workspace().join("sub");
    let session = client.new_session(&sub).unwrap();
    prompt(&mut client, &session, "one");
    let first = system(&server, 0);
    let places = ["USER-WORD", "PROJECT-WORD", "IMPORTED-WORD", "NEAREST-WORD"].map(|it| first.find(it));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} {first}");

    // Imported files are read with those that import them.
    sandbox.write("ws/docs/more.md", "OTHER-WORD");
    prompt(&mut client, &session, "two");
    assert_eq!(system(&server, 1), first);
    sandbox.write("ws/AGENTS.md", "CHANGED-WORD");
    let (_, said) = prompt(&mut client, &session, "/memory refresh");
    assert!(said.contains("AGENTS.md` (project, 12 bytes)") && said.contains("(global, 9 bytes)"), "{said}");
    prompt(&mut client, &session, "three");
    let third = system(&server, 2);
    assert!(
        third.contains("CHANGED-WORD") && !third.contains("PROJECT-WORD") && !third.contains("IMPORTED"),
        "{third}"
    );
    assert!(!server.asked()[2].body.contains("/memory"), "what the user asks castor is not the model's to see");

    // A session that is loaded looks at the files of now.
    client.end().unwrap();
    sandbox.write("ws/AGENTS.md", "NEWEST-WORD");
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let params = json!({ "sessionId": session, "cwd": sub, "mcpServers": [] });
    client.result("session/load", params).unwrap();
    prompt(&mut client, &session, "four");
    let fourth = system(&server, 3);
    assert!(fourth.contains("NEWEST-WORD") && !fourth.contains("CHANGED-WORD"), "{fourth}");
}

#[test]
fn untrusted_folder_adds_no_instruction_files() {
    let server = ModelServer::start(vec![says("One.")]);
    let sandbox = agent(&server, false);
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    prompt(&mut client, &session, "one");
    let body = &server.asked()[0].body;
    assert!(body.contains("USER-WORD"), "the user's own files are the user's word anywhere: {body}");
    assert!(!body.contains("PROJECT-WORD") && !body.contains("IMPORTED-WORD"), "{body}");
    let (_, said) = prompt(&mut client, &session, "/memory");
    assert!(said.contains("1 memory file") && !said.contains("AGENTS.md` (project"), "{said}");
}

/// A workspace's settings cannot make memory of what the user's own folders keep.
#[test]
fn settings_name_the_instruction_files() {
    let server = ModelServer::start(vec![says("One.")]);
    let sandbox = agent(&server, true);
    sandbox.write("home/.gemini/oauth_creds.json", "CREDENTIAL-WORD");
    sandbox.write("ws/NOTES.md", "NOTES-WORD");
    let settings = json!({ "context": { "fileName": ["NOTES.md", "oauth_creds.json"] } });
    sandbox.write("ws/.gemini/settings.json", &settings.to_string());
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    prompt(&mut client, &session, "one");
    let body = &server.asked()[0].body;
    assert!(body.contains("NOTES-WORD"), "{body}");
    assert!(["CREDENTIAL", "USER-WORD", "PROJECT-WORD"].iter().all(|it| !body.contains(it)), "{body}");
}

fn read(file: &str) -> String {
    calls("read_file", &json!({ "file_path": file }))
}

/// How often the model is told of it in the conversation; the system instruction never changes.
fn told(server: &ModelServer, at: usize, word: &str) -> usize {
    let body: Value = serde_json::from_str(&server.asked()[at].body).unwrap();
    let first: Value = serde_json::from_str(&server.asked()[0].body).unwrap();
    assert_eq!(body["systemInstruction"], first["systemInstruction"]);
    body["contents"].to_string().matches(word).count()
}

/// They join once, behind the results, and again when they changed or were forgotten.
#[test]
fn subfolder_instructions_load_on_first_access() {
    let sub = || read("sub/x.txt");
    let answers = vec![sub(), sub(), says("1."), sub(), says("2."), says("3."), sub(), says("4.")];
    let server = ModelServer::start(answers);
    let sandbox = agent(&server, true);
    sandbox.write("ws/sub/x.txt", "text");
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    prompt(&mut client, &session, "one");
    let word = "NEAREST-WORD";
    assert_eq!([0, 1, 2].map(|it| told(&server, it, word)), [0, 1, 1]);
    let body: Value = serde_json::from_str(&server.asked()[1].body).unwrap();
    let parts = &body["contents"][2]["parts"];
    let [result, memory] = parts.as_array().unwrap().as_slice() else { panic!("{parts}") };
    assert!(result["functionResponse"].is_object() && memory["text"].as_str().unwrap().contains(word), "{parts}");

    // What was said stays said, byte for byte.
    let contents = |at: usize| {
        let body: Value = serde_json::from_str(&server.asked()[at].body).unwrap();
        body["contents"].as_array().unwrap().clone()
    };
    assert_eq!(contents(2)[..3], contents(1));

    sandbox.write("ws/sub/GEMINI.md", "CHANGED-WORD");
    prompt(&mut client, &session, "two");
    assert_eq!([told(&server, 4, word), told(&server, 4, "CHANGED-WORD")], [1, 1]);

    // The next process knows what was told.
    client.end().unwrap();
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let params = json!({ "sessionId": session, "cwd": sandbox.workspace(), "mcpServers": [] });
    client.result("session/load", params).unwrap();
    prompt(&mut client, &session, "three");
    assert_eq!(contents(5)[..contents(4).len()], contents(4));
    let (_, said) = prompt(&mut client, &session, "/memory refresh");
    assert!(said.contains("It also knows these of subfolders") && said.contains("sub/GEMINI.md` (project"), "{said}");
    prompt(&mut client, &session, "four");
    assert_eq!([5, 6, 7].map(|it| told(&server, it, "CHANGED-WORD")), [1, 1, 2]);
}

#[test]
fn subfolder_instructions_need_trust_and_can_be_disabled() {
    for (trusted, settings, want) in [
        (true, json!({}), 1),
        (true, json!({ "experimental": { "jitContext": false } }), 0),
        (true, json!({ "context": { "fileName": "NOTES.md" } }), 0),
        (false, json!({}), 0),
    ] {
        let server = ModelServer::start(vec![read("sub/x.txt"), says("Done.")]);
        let sandbox = agent(&server, trusted);
        sandbox.write("ws/sub/x.txt", "text");
        sandbox.write("home/.castor/settings.json", &settings.to_string());
        let mut client = Client::start(&sandbox);
        client.initialize(&json!({})).unwrap();
        let session = client.new_session(&sandbox.workspace()).unwrap();
        prompt(&mut client, &session, "go");
        assert_eq!(told(&server, 1, "NEAREST-WORD"), want, "{trusted} {settings}");
    }
}

/// Neither in the session that wrote them, nor in the next one, nor through a file that imports them; a person's own
/// lines count again.
#[test]
fn instructions_that_an_agent_wrote_do_not_count() {
    let write = |file: &str, text: &str| calls("write_file", &json!({ "file_path": file, "content": text }));
    let command = "mkdir -p deep; printf DEEP-%s WORD > deep/GEMINI.md; echo x > deep/x.txt";
    let answers = vec![
        write("AGENTS.md", "AGENT-WORD"),
        write("docs/more.md", "SMUGGLED-WORD"),
        calls("run_shell_command", &json!({ "command": command })),
        read("deep/x.txt"),
        says("1."),
        says("2."),
        says("3."),
    ];
    let server = ModelServer::start(answers);
    let mut sandbox = agent(&server, true);
    sandbox.write("ws/GEMINI.md", "OWN-WORD @docs/more.md");
    sandbox.args.extend(["--approval-mode", "auto"].map(Into::into));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let (_, said) = prompt(&mut client, &session, "one");
    assert_eq!(told(&server, 4, "DEEP-WORD"), 0, "{said}");
    let told_of = |said: &str, file: &str| said.matches(&format!("{file}: an agent wrote it")).count();
    assert_eq!(told_of(&said, "deep/GEMINI.md"), 1, "{said}");
    client.end().unwrap();

    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let (_, said) = prompt(&mut client, &session, "two");
    let second = system(&server, 5);
    assert!(second.contains("OWN-WORD") && second.contains("USER-WORD"), "{second}");
    assert!(!second.contains("AGENT-WORD") && !second.contains("SMUGGLED-WORD"), "{second}");
    assert!(told_of(&said, "AGENTS.md") == 1 && said.contains("imports @docs/more.md, but that failed"), "{said}");
    sandbox.write("ws/AGENTS.md", "PERSON-WORD");
    prompt(&mut client, &session, "/memory refresh");
    prompt(&mut client, &session, "three");
    assert!(system(&server, 6).contains("PERSON-WORD"));
}

/// Also while it still runs: no call has ended since that could tell whose the file is.
#[test]
fn instructions_of_a_command_in_the_background_do_not_count() {
    let command = "mkdir late; printf LATE-%s WORD > late/GEMINI.md; echo x > late/x.txt; read < hold";
    let started = calls("run_shell_command", &json!({ "command": command, "is_background": true, "delay_ms": 0 }));
    let mut left = vec![says("1."), read("late/x.txt"), started];
    let mut sandbox = Sandbox::new();
    let made = sandbox.workspace().join("late/x.txt");
    let server = ModelServer::answering(move |_| {
        while left.len() == 2 && !std::fs::exists(&made).unwrap() {
            std::thread::yield_now();
        }
        left.pop()
    });
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
    sandbox.args.extend(["--approval-mode", "auto"].map(Into::into));
    let hold = sandbox.workspace().join("hold");
    assert!(std::process::Command::new("mkfifo").arg(hold).status().unwrap().success());
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let (_, said) = prompt(&mut client, &session, "one");
    assert!(said.contains("late/GEMINI.md: an agent wrote it"), "{said}");
    assert_eq!(told(&server, 2, "LATE-WORD"), 0, "{said}");
}

/// A trust question and its answer. What it shows: a diff by file, or the message of a form.
fn answered(client: &mut Client, session: &str, choice: &str) -> (Vec<String>, String) {
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "go" }] });
    client.request_as(json!("p"), "session/prompt", params);
    let (mut diffs, mut words) = (Vec::new(), String::new());
    loop {
        let it = client.next().unwrap().expect("more was to come");
        let result = match it["method"].as_str() {
            Some("session/request_permission") => {
                let content = it["params"]["toolCall"]["content"].as_array().cloned().unwrap_or_default();
                let shown = content.iter().filter(|it| it["type"] == "diff");
                diffs.extend(shown.map(|it| format!("{} {}", it["path"].as_str().unwrap(), it["newText"])));
                words = content.first().and_then(|it| it["content"]["text"].as_str()).unwrap_or_default().to_owned();
                json!({ "outcome": { "outcome": "selected", "optionId": choice } })
            }
            Some("elicitation/create") => {
                words = it["params"]["message"].as_str().unwrap().to_owned();
                json!({ "action": "accept", "content": { "trust": choice } })
            }
            _ if it["id"] == "p" => return (diffs, words),
            _ => continue,
        };
        client.send(&json!({ "jsonrpc": "2.0", "id": it["id"], "result": result }));
    }
}

/// The question about the folder shows what an agent wrote of its instructions, and a yes is a look at that.
#[test]
fn a_trust_question_shows_the_instructions_that_an_agent_wrote() {
    for (has_forms, choice, counts) in
        [(false, "trust_folder", true), (true, "trust_folder", true), (false, "not_now", false)]
    {
        let write = calls("write_file", &json!({ "file_path": "AGENTS.md", "content": "PROJECT-WORD\nAGENT-WORD\n" }));
        let server = ModelServer::start(vec![write, says("1."), says("2."), says("3.")]);
        let mut sandbox = agent(&server, true);
        sandbox.write("ws/AGENTS.md", "PROJECT-WORD\n");
        sandbox.args.extend(["--approval-mode", "auto"].map(Into::into));
        let mut client = Client::start(&sandbox);
        client.initialize(&json!({})).unwrap();
        let session = client.new_session(&sandbox.workspace()).unwrap();
        prompt(&mut client, &session, "one");
        client.end().unwrap();

        sandbox.env.retain(|it| it.0 != "CASTOR_TRUST_WORKSPACE");
        sandbox.args = vec!["acp".into()];
        let mut client = Client::start(&sandbox);
        client.initialize(&if has_forms { json!({ "elicitation": { "form": {} } }) } else { json!({}) }).unwrap();
        let session = client.new_session(&sandbox.workspace()).unwrap();
        let (diffs, words) = answered(&mut client, &session, choice);
        assert!(words.contains("were written by an agent"), "{words}");
        let file = sandbox.workspace().join("AGENTS.md");
        match has_forms {
            true => assert!(words.contains("\n PROJECT-WORD\n+AGENT-WORD\n"), "{words}"),
            false => assert_eq!(diffs, [format!("{} \"PROJECT-WORD\\nAGENT-WORD\\n\"", file.display())]),
        }
        assert_eq!(system(&server, 2).contains("AGENT-WORD"), counts, "{choice}: {}", system(&server, 2));
        client.end().unwrap();
    }
}

/// A trusted command that changed is shown as it is.
#[test]
fn a_trust_question_shows_the_instructions_that_changed() {
    let server = ModelServer::start(vec![says("1."), says("2.")]);
    let mut sandbox = agent(&server, true);
    sandbox.env.retain(|it| it.0 != "CASTOR_TRUST_WORKSPACE");
    sandbox.write("ws/.castor/commands/c.toml", "prompt = \"OLD-WORD\"\n");
    for (text, first) in [("OLD-WORD", "Do you trust"), ("NEW-WORD", "Do you still trust")] {
        let file = sandbox.write("ws/.castor/commands/c.toml", &format!("prompt = \"{text}\"\n"));
        let mut client = Client::start(&sandbox);
        client.initialize(&json!({})).unwrap();
        let session = client.new_session(&sandbox.workspace()).unwrap();
        let (diffs, words) = answered(&mut client, &session, "trust_folder");
        assert!(words.starts_with(first), "{words}");
        let want = (text == "NEW-WORD").then(|| format!("{} \"prompt = \\\"{text}\\\"\\n\"", file.display()));
        assert_eq!(diffs, want.into_iter().collect::<Vec<_>>());
        client.end().unwrap();
    }
}

/// Commands, agents and skills that an agent wrote: nobody's trust in the folder makes them count.
#[test]
fn commands_that_an_agent_wrote_do_not_count() {
    let command = "mkdir -p .castor/commands .claude/agents .castor/skills/evil
        echo 'prompt = \"x\"' >.castor/commands/evil.toml
        printf -- '---\\nname: evil\\ndescription: EVIL-%s\\n---\\nGo.\\n' AGENT >.claude/agents/evil.md
        printf -- '---\\nname: evil\\ndescription: EVIL-%s\\n---\\nGo.\\n' SKILL >.castor/skills/evil/SKILL.md";
    let write = calls("run_shell_command", &json!({ "command": command }));
    let server = ModelServer::start(vec![write, says("1."), says("2."), says("3.")]);
    let mut sandbox = agent(&server, true);
    sandbox.args.extend(["--approval-mode", "yolo", "--sandbox", "off"].map(Into::into));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    answered(&mut client, &session, "allow_once");
    client.end().unwrap();
    assert!(sandbox.workspace().join(".castor/skills/evil/SKILL.md").exists(), "the agent wrote them");

    for (choice, counts) in [("not_now", false), ("trust_folder", true)] {
        let mut client = Client::start(&sandbox);
        client.initialize(&json!({})).unwrap();
        let session = client.new_session(&sandbox.workspace()).unwrap();
        let (diffs, words) = answered(&mut client, &session, choice);
        assert!(words.starts_with("Do you still trust the folder") && diffs.len() == 3, "{words} {diffs:?}");
        client.end().unwrap();
        let at = if counts { 3 } else { 2 };
        let body = &server.asked()[at].body;
        for word in ["EVIL-AGENT", "EVIL-SKILL"] {
            assert_eq!(body.contains(word), counts, "{choice} {word}");
        }
    }
}
