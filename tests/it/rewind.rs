//! Rewinds and forks as the model and the disk see them: what was taken away is not sent again, a parent keeps its bytes.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    model_server::{ModelServer, stream},
};

struct Bed {
    sandbox: Sandbox,
    model: ModelServer,
}

impl Bed {
    /// The model answers with these.
    fn new(answers: &[&str]) -> Self {
        let chat = |text: &&str| {
            let chunk = json!({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]});
            stream(&format!("data: {chunk}\n\ndata: [DONE]\n\n"))
        };
        let (mut sandbox, model) = (Sandbox::new(), ModelServer::start(answers.iter().map(chat).collect()));
        sandbox.env.push(("MY_KEY".into(), "k".into()));
        sandbox.args.extend(["--model", "mine/good"].map(Into::into));
        let provider = json!({"baseUrl": format!("{}/v1", model.url), "apiKeyEnv": "MY_KEY", "models": ["good"]});
        sandbox.write("home/.castor/settings.json", &json!({"providers": {"mine": provider}}).to_string());
        Self { sandbox, model }
    }

    fn agent(&self) -> Client {
        let mut client = Client::start(&self.sandbox);
        client.initialize(&json!({})).unwrap();
        client
    }

    fn place(&self, session: &str) -> Value {
        json!({"sessionId": session, "cwd": self.sandbox.workspace(), "mcpServers": []})
    }

    fn log(&self, session: &str) -> PathBuf {
        self.sandbox.home().join(format!(".castor/sessions/{session}.jsonl"))
    }

    /// What was said, with the ids of messages.
    fn said(&self, client: &mut Client, session: &str) -> Vec<(String, String)> {
        let (answer, told) = client.call("session/load", self.place(session)).unwrap();
        assert!(answer["error"].is_null(), "{answer}");
        let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        let all = told.iter().map(|it| &it["params"]["update"]).filter(|it| it["messageId"].is_string());
        all.map(|it| (text(&it["content"]["text"]), text(&it["messageId"]))).collect()
    }

    fn texts(&self, client: &mut Client, session: &str) -> Vec<String> {
        self.said(client, session).into_iter().map(|(text, _)| text).collect()
    }

    fn rewind(&self, client: &mut Client, session: &str, to: &str) {
        let said = self.said(client, session);
        let (_, id) = said.iter().find(|(text, _)| text == to).unwrap_or_else(|| panic!("{to}: {said:?}"));
        let params = json!({"sessionId": session, "messageId": id, "what": "conversation"});
        client.result("_castor/session/rewind", params).unwrap();
    }

    /// Which of these words the last request has.
    fn sent(&self, words: &[&str]) -> Vec<String> {
        let body = self.model.asked().last().unwrap().body.clone();
        words.iter().filter(|it| body.contains(**it)).map(|it| (*it).to_owned()).collect()
    }

    fn castor(&self, args: &[&str]) -> String {
        let mut command = self.sandbox.command();
        let mut own = std::process::Command::new(command.get_program());
        own.env_clear().envs(command.get_envs().filter_map(|(name, it)| Some((name, it?))));
        command = own;
        let output = command.args(args).current_dir(self.sandbox.workspace()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

fn prompt(client: &mut Client, session: &str, text: &str) {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    assert_eq!(client.result("session/prompt", params).unwrap()["stopReason"], "end_turn");
}

fn session(bed: &Bed, client: &mut Client, prompts: &[&str]) -> String {
    let id = client.new_session(&bed.sandbox.workspace()).unwrap();
    prompts.iter().for_each(|it| prompt(client, &id, it));
    id
}

#[test]
fn rewound_turns_are_not_sent_again() {
    let bed = Bed::new(&["a-one", "a-two", "a-three", "a-four", "a-five"]);
    let mut client = bed.agent();
    let id = session(&bed, &mut client, &["p-one", "p-two", "p-three"]);
    let words = ["p-one", "a-one", "p-two", "a-two", "p-three", "a-three", "p-four", "a-four", "p-five"];
    assert_eq!(bed.sent(&words), words[..5]);
    bed.rewind(&mut client, &id, "p-two");
    assert_eq!(bed.texts(&mut client, &id), ["p-one", "a-one"]);
    prompt(&mut client, &id, "p-four");
    assert_eq!(bed.sent(&words), ["p-one", "a-one", "p-four"]);
    let log = fs::read(bed.log(&id)).unwrap();
    client.end().unwrap();
    let mut client = bed.agent();
    client.result("session/resume", bed.place(&id)).unwrap();
    assert_eq!(fs::read(bed.log(&id)).unwrap(), log, "looking changes nothing");
    prompt(&mut client, &id, "p-five");
    assert_eq!(bed.sent(&words), ["p-one", "a-one", "p-four", "a-four", "p-five"]);
    client.end().unwrap();
    // The log and what is made of it keep all.
    let export = bed.castor(&["sessions", "export", &id]);
    for it in ["## Turn 2 (rewound)", "> p-two", "## Turn 3 (rewound)", "> p-three", "## Turn 4\n", "> p-four"] {
        assert!(export.contains(it), "{it}: {export}");
    }
    assert_eq!(export.matches("(rewound)").count(), 2, "{export}");
}

#[test]
fn rewind_before_a_compression_sends_whole_turns() {
    let long: String = (0..400).map(|it| format!("{it} is a number. ")).collect();
    let summary = "<state_snapshot>summed up</state_snapshot>";
    let bed = Bed::new(&[&long, "a-two", summary, summary, "a-three", "a-four"]);
    let mut client = bed.agent();
    let id = session(&bed, &mut client, &["p-one", "p-two", "/compress", "p-three"]);
    let words = ["17 is a number", "p-two", "summed up", "p-three", "p-four"];
    let sent = bed.sent(&words);
    assert!(sent.contains(&"summed up".to_owned()) && !sent.contains(&words[0].to_owned()), "{sent:?}");
    bed.rewind(&mut client, &id, "p-two");
    prompt(&mut client, &id, "p-four");
    assert_eq!(bed.sent(&words), [words[0], "p-four"]);
    client.end().unwrap();
}

#[test]
fn a_fork_goes_on_alone_and_leaves_its_parent_alone() {
    let bed = Bed::new(&["a-one", "a-two", "a-three"]);
    let mut client = bed.agent();
    let parent = session(&bed, &mut client, &["p-one", "p-two"]);
    let said = bed.said(&mut client, &parent);
    let log = fs::read(bed.log(&parent)).unwrap();
    // Another process has it: forks only read.
    let mut other = bed.agent();
    other.call("session/load", bed.place(&parent)).unwrap().0["error"]["data"]["kind"].as_str().unwrap();
    let mut params = bed.place(&parent);
    params["_meta"] = json!({"castor": {"fork": {"messageId": said[1].1}}});
    let child = other.result("session/fork", params).unwrap()["sessionId"].as_str().unwrap().to_owned();
    prompt(&mut other, &child, "p-three");
    assert_eq!(bed.sent(&["p-one", "a-one", "p-two", "a-two", "p-three"]), ["p-one", "a-one", "p-three"]);
    assert_eq!(bed.texts(&mut other, &child), ["p-one", "a-one", "p-three", "a-three"]);
    // On the command line, at a prompt and of all.
    let at = bed.castor(&["sessions", "fork", &parent, "--at", &said[2].1]).trim().to_owned();
    assert_eq!(bed.texts(&mut other, &at), ["p-one", "a-one", "p-two"]);
    let whole = bed.castor(&["sessions", "fork", &at]).trim().to_owned();
    assert_eq!(bed.texts(&mut other, &whole), ["p-one", "a-one", "p-two"]);
    assert!(bed.castor(&["sessions", "show", &whole]).contains(&format!("fork of  {at}\n")));
    let list = other.result("session/list", json!({})).unwrap();
    let mut titles: Vec<&str> =
        list["sessions"].as_array().unwrap().iter().map(|it| it["title"].as_str().unwrap()).collect();
    titles.sort_unstable();
    assert_eq!(titles, ["p-one", "p-one (fork 2)", "p-one (fork)", "p-one (fork)"]);
    assert_eq!(fs::read(bed.log(&parent)).unwrap(), log);
    other.end().unwrap();
    client.end().unwrap();
}

/// A log says which session it is of: a copy says its own name, and castor's own schema fits it.
#[test]
fn a_fork_of_a_fork_has_its_own_name_everywhere() {
    let bed = Bed::new(&["a-one"]);
    let mut client = bed.agent();
    let parent = session(&bed, &mut client, &["p-one"]);
    client.end().unwrap();
    let child = bed.castor(&["sessions", "fork", &parent[..18]]).trim().to_owned();
    let text = fs::read_to_string(bed.log(&child)).unwrap();
    assert_eq!(text.matches(&parent).count(), 1, "{text}");
    let created: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!((created["session"].as_str(), created["parent"].as_str()), (Some(&*child), Some(&*parent)));
    crate::schemas::check_logs(&bed.sandbox.home()).unwrap();
    assert_eq!(created["roots"][0], json!(bed.sandbox.workspace()));
}
