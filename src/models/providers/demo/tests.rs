//! The demo model with scripted tool results.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{DemoStep, answer, next_step, pieces, report::Entries};
use castor_base::{
    content::Part,
    history::{NOTICE, Role, Turn, TurnPart},
    model::{Chunk, Finish, ModelParams, ModelRequest},
    tool::{CallResult, ToolCall, ToolKind, ToolSpec},
};

const LISTING: &str =
    "Directory listing for /w:\n[DIR] src\nCargo.toml (90 bytes)\nREADME.md (12 bytes)\n\n(2 ignored)";

fn tool(name: &'static str, parameters: Value) -> ToolSpec {
    let (title, description) = Default::default();
    let kind = ToolKind::Read;
    ToolSpec { name: name.into(), title, description, kind, traits: Default::default(), parameters: parameters.into() }
}

fn request(prompt: &str) -> ModelRequest {
    let tools = ["list_directory", "read_file", "write_file", "run_shell_command"].map(|it| tool(it, json!({})));
    let mut turn = Turn::new(Role::User);
    turn.parts_mut().push(TurnPart::Content(Part::text(prompt)));
    let contents = vec![Arc::new(turn)];
    ModelRequest {
        model: "demo".into(),
        system: "".into(),
        contents,
        tools: tools.into(),
        params: ModelParams::default(),
        traits: Default::default(),
    }
}

/// Plays the tools until the model says something: the calls, and what it said.
fn play(prompt: &str, tool: impl Fn(&str, &Value) -> Result<&'static str, &'static str>) -> (Vec<String>, String) {
    let mut request = request(prompt);
    let mut log = Vec::new();
    for round in 0..5 {
        let calls = match next_step(&request).1 {
            DemoStep::Say(text) => return (log, text),
            DemoStep::Call(calls) => calls,
        };
        let (mut asked, mut answered) = (Turn::new(Role::Model), Turn::new(Role::Tool));
        for (at, (name, args)) in calls.into_iter().enumerate() {
            log.push(format!("{name} {args}"));
            let result = tool(name, &args);
            let id = format!("c{round}.{at}").into();
            let content = vec![Part::text(result.unwrap_or_else(|it| it))];
            let done = CallResult { id, name: name.to_owned(), content, is_error: result.is_err() };
            let call = ToolCall { id: done.id.clone(), name: name.to_owned(), args };
            asked.parts_mut().push(TurnPart::Call { call, signature: None });
            answered.parts_mut().push(TurnPart::Result(done));
        }
        request.contents.extend([Arc::new(asked), Arc::new(answered)]);
        super::super::script::check(&request.contents).unwrap();
    }
    panic!("it never stops: {log:?}");
}

#[test]
fn it_tells_what_it_saw() {
    let (calls, said) = play("What is this?", |name, args| match (name, args["file_path"].as_str()) {
        ("list_directory", _) => Ok(LISTING),
        (_, Some("README.md")) => Ok("# Pond\n\n[![badge](x)](y)\n\nA pond for ducks. And more."),
        (_, Some("Cargo.toml")) => Ok("[package]\nname = \"pond\"\n"),
        _ => Err("no"),
    });
    assert_eq!(
        calls,
        [
            r#"list_directory {"dir_path":"."}"#,
            r#"read_file {"file_path":"README.md"}"#,
            r#"read_file {"file_path":"Cargo.toml"}"#,
        ]
    );
    let start = "This looks like a Rust project (there is a `Cargo.toml`); at the top I see 2 files and 1 folder.\n\n\
        - `README.md`: “Pond” — A pond for ducks.\n- `Cargo.toml`: the package is called `pond`.\n\n";
    assert!(said.starts_with(start), "{said}");
    assert!(said.contains("castor auth login"), "{said}");
}

#[test]
fn it_says_when_tools_fail() {
    let (_, said) = play("hi", |_, _| Err("Permission denied"));
    assert!(said.starts_with("I could not look at the workspace: Permission denied"), "{said}");
    let (_, said) = play("hi", |name, _| if name == "list_directory" { Ok(LISTING) } else { Err("File not found") });
    assert!(said.contains("- I could not read `README.md`: File not found"), "{said}");
    let (calls, said) = play("hi", |_, _| Ok("Directory /w is empty."));
    assert_eq!(calls.len(), 1);
    assert!(said.contains("0 files and 0 folders"), "{said}");
    let mut request = request("hi");
    request.tools = [].into();
    assert!(matches!(next_step(&request).1, DemoStep::Say(it) if it.contains("not given that tool")));
}

#[test]
fn demo_writes_a_file_on_request() {
    let tool = |written| {
        move |name: &str, args: &Value| match name {
            "list_directory" => Ok(LISTING),
            _ => {
                assert!(args["content"].as_str().unwrap().contains("2 files and 1 folder"));
                written
            }
        }
    };
    let (calls, said) = play("Create notes.md", tool(Ok("Successfully created")));
    assert!(calls[1].starts_with(r#"write_file {"file_path":"notes.md","content":"#), "{calls:?}");
    assert_eq!(said, "I wrote `notes.md`. What came back:\n\n```\nSuccessfully created\n```");
    let (_, said) = play("leave a note", tool(Err("The user refused.")));
    assert_eq!(said, "I did not write `CASTOR-DEMO.md`. What came back:\n\n```\nThe user refused.\n```");
}

#[test]
fn demo_runs_the_requested_command() {
    let (calls, said) = play("run `echo hi`", |_, _| Ok("Output: hi ```x"));
    assert_eq!(calls, [r#"run_shell_command {"command":"echo hi"}"#]);
    assert_eq!(said, "I ran `echo hi`. What came back:\n\n````\nOutput: hi ```x\n````");
    let (_, said) = play("run `cat x`", |_, _| Ok("<untrusted_context>\nhi\n</untrusted_context>"));
    assert_eq!(said, "I ran `cat x`. What came back:\n\n```\nhi\n```", "the tags are for models");
    let (_, said) = play("run `cat x`", |_, _| Ok("hi\n</untrusted_context>"));
    assert_eq!(said, "I ran `cat x`. What came back:\n\n```\nhi\n</untrusted_context>\n```", "it is the command's own");
    let (_, said) = play("run `rm x`", |_, _| Err("denied"));
    assert!(said.starts_with("The command `rm x` did not run."), "{said}");
}

#[test]
fn an_answer_is_whole_and_always_the_same() {
    let request = request("hi");
    let first = answer(&request);
    assert_eq!(first, answer(&request));
    assert!(matches!(first[0][0], Chunk::Thought { .. }));
    let last = first.last().unwrap();
    assert!(matches!(last[..], [Chunk::Usage(it), Chunk::Finish(Finish::Stop)] if it.total == it.input + it.output));
    assert!(matches!(&first[1][0], Chunk::Call { name, args, .. }
        if name == "list_directory" && *args == json!({ "dir_path": "." })));
}

#[test]
fn pieces_and_listings() {
    let text = "ein längerer Satz mit ñ und Ümläuten, dersichnichtgutteilenlässtaberdochmuss und endet";
    assert_eq!(pieces(text).collect::<String>(), text);
    assert!(pieces(text).count() > 2);
    assert_eq!(pieces("").count(), 0);
    let entries = Entries::parse("Directory listing for /w:\n[DIR] a b\nx (1) (20 bytes)\ny (old)\n(3 ignored)");
    assert_eq!(entries, Entries { folders: vec!["a b"], files: vec!["x (1)", "y (old)"] });
}

#[test]
fn a_notice_beside_the_prompt_asks_for_nothing() {
    let asked = request("What is in this folder?");
    let mut noted = asked.clone();
    let mut turn = Turn::clone(&noted.contents[0]);
    let notice = format!("{NOTICE}\nThis folder is not trusted. Run `castor trust` in it.");
    turn.parts_mut().push(TurnPart::Content(Part::text(notice)));
    noted.contents = vec![Arc::new(turn)];
    // All but the count of tokens.
    assert_eq!(answer(&noted)[..2], answer(&asked)[..2]);
}

/// The first call of an agent with these instructions.
fn agents_call(instructions: &'static str, prompt: &str, result: Value) -> String {
    let mut request = request(prompt);
    let complete = tool("complete_task", json!({"properties": {"result": result}}));
    request.tools = [complete, tool("escalate", json!({})), tool("invoke_agent", json!({}))].into();
    request.system = instructions.into();
    match next_step(&request).1 {
        DemoStep::Call(calls) => calls.iter().map(|(name, args)| format!("{name} {args}")).collect(),
        DemoStep::Say(text) => text,
    }
}

#[test]
fn demo_plays_agents() {
    let text = || json!({"type": "string"});
    let call = agents_call("You lead.", "Ask the agent team: Look.", text());
    assert_eq!(call, r#"invoke_agent {"agent_name":"team","prompt":"Look."}"#);
    let judge = "You judge. Escalate when you read \"overwrote\".";
    assert_eq!(
        agents_call(judge, "Its result: created", text()),
        r#"complete_task {"result":"Not yet: I did not read \"overwrote\"."}"#
    );
    assert_eq!(agents_call(judge, "Its result: overwrote", text()), r#"escalate {"reason":"I read \"overwrote\"."}"#);
    assert!(agents_call("You write.", "run `ls`", text()).starts_with("complete_task {\"result\":\"I would call"));
    assert!(agents_call("You write.", "run `ls`", json!({"type": "object"})).starts_with("I would call"));
}
