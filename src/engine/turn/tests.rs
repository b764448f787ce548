//! Turns as data: what happens on the `>` lines, what the session says to it below.

use std::sync::Arc;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::Spec;
use crate::{
    base::{
        content::Part,
        event::{EventKind, ToolProgress},
        ids::{EffectId, PromptId, QuestionId, SessionId},
        log::{Answer, Fact, Grant, Mode},
        model::{Chunk, Failure, FailureKind, Finish, Usage},
        now::Now,
        path::AbsPath,
        tool::{Preview, TailCall, Targets, ToolError, ToolKind, ToolOutput, ToolSpec},
    },
    engine::{
        context::{Instructions, Surroundings},
        policy::Rules,
        record::Origin,
        scheduler::Toolbox,
        session::Session,
        step::{About, Act, Effect, Input, Kit, Out, Starting},
    },
};

fn check(script: &str, expected: Expect) {
    let mut actual = String::new();
    play(script, &mut actual);
    expected.assert_eq(&actual);
}

fn play(script: &str, actual: &mut String) {
    let cwd = AbsPath::new("/w").unwrap();
    let (mode, model) = (Mode::Default, "m".to_owned());
    let origin = Origin { session: SessionId::from("x"), cwd: cwd.clone(), roots: vec![cwd], mode, model };
    let mut out = Out::default();
    let mut session = Session::create(origin, Arc::new(spec()), Now { unix_ms: 1_000, seed: 0 }, &mut out);
    for (n, line) in script.lines().map(str::trim).filter(|it| !it.is_empty()).enumerate() {
        let mut out = Out::default();
        session.step(input(line), Now { unix_ms: 1_000, seed: n as u64 }, &mut out);
        *actual += &format!("> {line}\n");
        for act in out.acts.iter().filter_map(shown) {
            *actual += &format!("    {act}\n");
        }
    }
}

fn spec() -> Spec {
    let tool = |name: &'static str, kind| {
        let (name, description) = (name.into(), "".into());
        ToolSpec { title: Clone::clone(&name), name, description, kind, parameters: json!({}) }
    };
    let tools = vec![
        tool("read_file", ToolKind::Read),
        tool("write_file", ToolKind::Edit),
        tool("run_shell_command", ToolKind::Execute),
    ];
    let cwd = AbsPath::new("/w").unwrap();
    let around = Surroundings { cwd: cwd.clone(), roots: vec![cwd], platform: "linux", interactive: true };
    let toolbox = Toolbox::new(tools, Rules::shipped(), true);
    Spec { toolbox, instructions: Instructions::new(&around), max_samples: 3, models: Vec::new(), modes: Vec::new() }
}

fn input(line: &str) -> Input {
    let mut words = line.splitn(3, ' ');
    let (verb, id, rest) = (words.next().unwrap(), words.next().unwrap_or("0"), words.next().unwrap_or(""));
    let n = id.parse().unwrap_or(0);
    let effect = EffectId(n);
    let json = || serde_json::from_str::<Value>(rest).unwrap_or_default();
    match verb {
        "prompt" => Input::Prompt { prompt: PromptId(n), content: vec![Part::text(rest)] },
        "cancel" => Input::Cancel,
        "cancel-prompt" => Input::CancelPrompt(PromptId(n)),
        "text" => Input::Chunks { effect, chunks: rest.split('|').map(text).collect() },
        "thought" => Input::Chunks { effect, chunks: vec![Chunk::Thought { text: rest.to_owned(), signature: None }] },
        "call" => Input::Chunks { effect, chunks: rest.split(" & ").map(call).collect() },
        "usage" => {
            let usage = Usage { input: 9, output: 1, total: 10, ..Usage::default() };
            Input::Chunks { effect, chunks: vec![Chunk::Usage(usage)] }
        }
        "finish" => {
            let finish = match rest {
                "MAX_TOKENS" => Finish::MaxTokens,
                "STOP" => Finish::Stop,
                word => Finish::Safety(word.to_owned()),
            };
            Input::Chunks { effect, chunks: vec![Chunk::Finish(finish)] }
        }
        "ended" => Input::Generated { effect, result: Ok(()) },
        "failed" => {
            let status = rest.parse().ok();
            let kind = if status == Some(401) { FailureKind::Auth } else { FailureKind::Status };
            Input::Generated { effect, result: Err(Failure { status, ..Failure::new(kind, "said the server") }) }
        }
        "woke" => Input::Woke { effect },
        "tools" => Input::ToolsChanged(kit(rest)),
        "resolved" => {
            let command = json().get("command").and_then(Value::as_str).map(str::to_owned);
            Input::Resolved { effect, result: Ok(Targets { title: format!("t{n}"), paths: Vec::new(), command }) }
        }
        "invalid" => Input::Resolved { effect, result: Err(ToolError::new("invalid_tool_params", rest)) },
        "previewed" => Input::Previewed { effect, result: Ok(Preview::default()) },
        "allow" => Input::Answered { question: QuestionId(n), answer: Answer::AllowOnce },
        "for-ever" => Input::Answered { question: QuestionId(n), answer: Answer::AllowAlways },
        "always" => Input::Answered { question: QuestionId(n), answer: Answer::AllowSession },
        "reject" => Input::Answered { question: QuestionId(n), answer: Answer::Reject },
        "withdrawn" => Input::Answered { question: QuestionId(n), answer: Answer::Cancelled },
        "unable" => Input::Answered { question: QuestionId(n), answer: Answer::Unable },
        "accept" => {
            let content = json().as_object().cloned().unwrap_or_default();
            Input::Answered { question: QuestionId(n), answer: Answer::Accepted { content } }
        }
        "decline" => Input::Answered { question: QuestionId(n), answer: Answer::Declined },
        "dismiss" => Input::Answered { question: QuestionId(n), answer: Answer::Dismissed },
        "unfit" => Input::Answered { question: QuestionId(n), answer: Answer::Unfit { why: rest.to_owned() } },
        "in-text" => Input::Answered { question: QuestionId(n), answer: Answer::InText },
        "printed" => Input::Printed { effect, text: rest.to_owned() },
        "ran" => Input::Ran { effect, output: Box::new(ToolOutput::text(rest)) },
        "tail" => {
            let tail = Some(TailCall { name: rest.to_owned(), args: json!({}) });
            Input::Ran { effect, output: Box::new(ToolOutput { tail, ..ToolOutput::default() }) }
        }
        _ => panic!("unknown step: {line}"),
    }
}

/// Words: `+tool`, `!tool` (granted), `name@ms` (starting until then), `notice:text`.
fn kit(text: &str) -> Kit {
    let mut res = Kit::default();
    for word in text.split_whitespace() {
        match (word.split_at(1), word.split_once('@'), word.split_once(':')) {
            ((mark @ ("+" | "!"), name), ..) => {
                let (description, kind, title) = ("".into(), ToolKind::Other, format!("{name} (s MCP)").into());
                res.tools.push(ToolSpec {
                    name: name.to_owned().into(),
                    title,
                    description,
                    kind,
                    parameters: json!({}),
                });
                res.granted.extend((mark == "!").then(|| Grant::Tool { tool: name.to_owned() }));
            }
            (_, Some((name, ms)), _) => {
                res.starting.push(Starting { name: name.to_owned(), until_ms: ms.parse().unwrap() });
            }
            (.., Some((_, text))) => res.notices.push(text.to_owned()),
            _ => panic!("unknown word: {word}"),
        }
    }
    res
}

fn text(it: &str) -> Chunk {
    Chunk::Text { text: it.to_owned(), signature: None }
}

fn call(it: &str) -> Chunk {
    let (name, args) = it.split_once(' ').unwrap_or((it, "{}"));
    let (name, id) = name.split_once('#').map_or((name, None), |(name, id)| (name, Some(id.to_owned())));
    Chunk::Call { id, name: name.to_owned(), args: serde_json::from_str(args).unwrap_or_default(), signature: None }
}

fn shown(act: &Act) -> Option<String> {
    match act {
        Act::Log(entry) => match &entry.fact {
            Fact::Event { event } => event_line(&event.kind),
            Fact::Attempt { model, attempt } => Some(format!("attempt {attempt} of {model}")),
            Fact::AttemptFailed { abandoned, .. } => Some(format!("attempt failed, abandoned: {abandoned}")),
            Fact::Decision { decision, rule, .. } => Some(format!("{decision:?} by {rule}")),
            Fact::Answered { answer, .. } => Some(format!("answered {answer:?}")),
            Fact::Granted { grant } => Some(format!("granted {grant:?}")),
            other => Some(format!("{other:?}")),
        },
        Act::Do(id, effect) => Some(match effect {
            Effect::Generate { request } => format!("#{} Generate from {} turns", id.0, request.contents.len()),
            Effect::Resolve { call } => format!("#{} Resolve {}", id.0, call.id),
            Effect::Preview { call } => format!("#{} Preview {}", id.0, call.id),
            Effect::Run { call, durable, .. } => format!("#{} Run {} durable: {durable}", id.0, call.id),
            Effect::Ask(it) => match &it.about {
                About::Confirmation(asked) => format!("Ask {} about {} ({})", it.id.0, asked.call, asked.title),
                About::Form { form, .. } => format!("Ask {}: {}", it.id.0, form.message),
                About::Link { url, .. } => format!("Ask {} at {url}", it.id.0),
            },
            Effect::Withdraw { question } => format!("Withdraw {}", question.0),
            Effect::Wake { at_ms } => format!("#{} Wake at {}", id.0, at_ms > &1_000),
            Effect::Abort { effect } => format!("Abort #{}", effect.0),
            Effect::Save(it) => format!("Save {} {:?} {:?}", it.tool, it.prefixes, it.args_pattern),
            Effect::Settle { prompt, outcome } => format!("Settle {} {outcome:?}", prompt.0),
        }),
    }
}

fn event_line(kind: &EventKind) -> Option<String> {
    Some(match kind {
        EventKind::Message { role, content, cuts, .. } => {
            let text: Vec<&str> = content
                .iter()
                .map(|it| match it {
                    Part::Thought { thought, .. } => thought,
                    it => it.as_text().unwrap_or("?"),
                })
                .collect();
            format!("{role:?}: {} {cuts:?}", text.join("+"))
        }
        EventKind::AgentStart {} => "start".to_owned(),
        EventKind::AgentEnd { reason } => format!("end {reason:?}"),
        EventKind::ToolRequest { request_id, display, .. } => format!("call {request_id} ({})", display.title),
        EventKind::ToolUpdate { request_id, update } => match update {
            ToolProgress::Printed { text } => format!("{request_id} printed {text}"),
            ToolProgress::Attached { .. } => format!("{request_id} attached"),
            ToolProgress::Started { .. } => format!("{request_id} started"),
            ToolProgress::Described { .. } => format!("{request_id} described"),
            ToolProgress::Proposed { .. } => format!("{request_id} proposed"),
        },
        EventKind::ToolResponse { request_id, content, error, .. } => {
            let text = crate::base::content::joined_text(content);
            format!("{request_id} {}: {text}", error.as_ref().map_or("done", |it| &it.kind))
        }
        EventKind::Error { status, message, .. } => format!("error {status:?} {message}"),
        EventKind::SessionUpdate { .. } => return None,
        EventKind::Usage { usage, .. } => format!("usage {}", usage.total),
        other => format!("{other:?}"),
    })
}

#[test]
fn answers_without_tools() {
    check(
        "
        prompt 1 hello
        thought 1 hm
        text 1 Hel|lo
        text 1 !
        usage 1
        finish 1 STOP
        ended 1
        text 1 late
        ",
        expect![[r#"
            > prompt 1 hello
                start
                User: hello []
                attempt 1 of m
                #1 Generate from 1 turns
            > thought 1 hm
                Agent: hm [2]
            > text 1 Hel|lo
                Agent: Hello [3, 5]
            > text 1 !
                Agent: ! [1]
            > usage 1
            > finish 1 STOP
            > ended 1
                usage 10
                end Completed
                Settle 1 Stop(EndTurn)
            > text 1 late
        "#]],
    );
}

#[test]
fn runs_calls_side_by_side_and_asks_again() {
    check(
        r#"
        prompt 1 hello
        call 1 read_file#a {"file_path":"a"} & read_file#b {"file_path":"b"}
        ended 1
        resolved 2
        resolved 3
        ran 5 B
        ran 4 A
        text 6 Done
        ended 6
        "#,
        expect![[r#"
            > prompt 1 hello
                start
                User: hello []
                attempt 1 of m
                #1 Generate from 1 turns
            > call 1 read_file#a {"file_path":"a"} & read_file#b {"file_path":"b"}
                call a (read_file a)
                call b (read_file b)
            > ended 1
                #2 Resolve a
                #3 Resolve b
            > resolved 2
                Allow by default/read-only.toml: read_file
            > resolved 3
                Allow by default/read-only.toml: read_file
                a started
                #4 Run a durable: false
                b started
                #5 Run b durable: false
            > ran 5 B
                b done: B
            > ran 4 A
                a done: A
                attempt 1 of m
                #6 Generate from 3 turns
            > text 6 Done
                Agent: Done [4]
            > ended 6
                end Completed
                Settle 1 Stop(EndTurn)
        "#]],
    );
}

#[test]
fn edits_go_alone_and_are_asked_for() {
    check(
        r#"
        prompt 1 hello
        call 1 write_file#a {"file_path":"a"} & read_file#b {"file_path":"b"}
        ended 1
        resolved 2
        previewed 3
        allow 1
        ran 5 written
        resolved 6
        ran 7 read
        "#,
        expect![[r#"
            > prompt 1 hello
                start
                User: hello []
                attempt 1 of m
                #1 Generate from 1 turns
            > call 1 write_file#a {"file_path":"a"} & read_file#b {"file_path":"b"}
                call a (write_file a)
                call b (read_file b)
            > ended 1
                #2 Resolve a
            > resolved 2
                Ask by default/write.toml: write_file
                #3 Preview a
            > previewed 3
                a described
                Ask 1 about a (t2)
            > allow 1
                answered AllowOnce
                a started
                #5 Run a durable: true
            > ran 5 written
                a done: written
                #6 Resolve b
            > resolved 6
                Allow by default/read-only.toml: read_file
                b started
                #7 Run b durable: false
            > ran 7 read
                b done: read
                attempt 1 of m
                #8 Generate from 3 turns
        "#]],
    );
}

#[test]
fn a_no_ends_the_call_and_what_waited_for_it() {
    check(
        r#"
        prompt 1 hello
        call 1 write_file#a {"file_path":"a"} & read_file#b {"file_path":"b"}
        ended 1
        resolved 2
        previewed 3
        reject 1
        text 5 Understood
        ended 5
        "#,
        expect![[r#"
            > prompt 1 hello
                start
                User: hello []
                attempt 1 of m
                #1 Generate from 1 turns
            > call 1 write_file#a {"file_path":"a"} & read_file#b {"file_path":"b"}
                call a (write_file a)
                call b (read_file b)
            > ended 1
                #2 Resolve a
            > resolved 2
                Ask by default/write.toml: write_file
                #3 Preview a
            > previewed 3
                a described
                Ask 1 about a (t2)
            > reject 1
                answered Reject
                a cancelled: The user said no to this call. Do not try it in another way; ask what to do.
                b cancelled: [Operation Cancelled] Reason: an earlier call was refused by the user
                attempt 1 of m
                #5 Generate from 3 turns
            > text 5 Understood
                Agent: Understood [10]
            > ended 5
                end Completed
                Settle 1 Stop(EndTurn)
        "#]],
    );
}

#[test]
fn a_client_that_cannot_ask_costs_only_the_call() {
    check(
        r#"
        prompt 1 hello
        call 1 write_file#a {"file_path":"a"}
        ended 1
        resolved 2
        previewed 3
        unable 1
        "#,
        expect![[r#"
            > prompt 1 hello
                start
                User: hello []
                attempt 1 of m
                #1 Generate from 1 turns
            > call 1 write_file#a {"file_path":"a"}
                call a (write_file a)
            > ended 1
                #2 Resolve a
            > resolved 2
                Ask by default/write.toml: write_file
                #3 Preview a
            > previewed 3
                a described
                Ask 1 about a (t2)
            > unable 1
                answered Unable
                a cancelled: The client could not ask the user, so the call was not made. Go on without it.
                attempt 1 of m
                #5 Generate from 3 turns
        "#]],
    );
}

#[test]
fn cancel_stops_everything_and_late_answers_meet_nobody() {
    check(
        r#"
        prompt 1 hello
        prompt 2 and more
        call 1 run_shell_command#a {"command":"sleep 9"} & read_file#b {"file_path":"b"}
        ended 1
        resolved 2 {"command":"sleep 9"}
        previewed 4
        cancel
        allow 1
        resolved 3
        prompt 3 again
        "#,
        expect![[r#"
            > prompt 1 hello
                start
                User: hello []
                attempt 1 of m
                #1 Generate from 1 turns
            > prompt 2 and more
            > call 1 run_shell_command#a {"command":"sleep 9"} & read_file#b {"file_path":"b"}
                call a (sleep 9)
                call b (read_file b)
            > ended 1
                #2 Resolve a
                #3 Resolve b
            > resolved 2 {"command":"sleep 9"}
                Ask by default/write.toml: run_shell_command
                #4 Preview a
            > previewed 4
                a described
                Ask 1 about a (sleep 9)
            > cancel
                Withdraw 1
                a cancelled: [Operation Cancelled] Reason: the user cancelled the turn
                Abort #3
                b cancelled: [Operation Cancelled] Reason: the user cancelled the turn
                end Aborted
                Settle 1 Stop(Cancelled)
                Settle 2 Stop(Cancelled)
            > allow 1
            > resolved 3
            > prompt 3 again
                start
                User: again []
                attempt 1 of m
                #10 Generate from 5 turns
        "#]],
    );
}

#[test]
fn a_withdrawn_question_ends_the_turn() {
    check(
        r#"
        prompt 1 hello
        call 1 write_file#a {"file_path":"a"}
        ended 1
        resolved 2
        previewed 3
        withdrawn 1
        "#,
        expect![[r#"
            > prompt 1 hello
                start
                User: hello []
                attempt 1 of m
                #1 Generate from 1 turns
            > call 1 write_file#a {"file_path":"a"}
                call a (write_file a)
            > ended 1
                #2 Resolve a
            > resolved 2
                Ask by default/write.toml: write_file
                #3 Preview a
            > previewed 3
                a described
                Ask 1 about a (t2)
            > withdrawn 1
                answered Cancelled
                a cancelled: [Operation Cancelled] Reason: the user cancelled the turn
                end Aborted
                Settle 1 Stop(Cancelled)
        "#]],
    );
}

#[test]
fn a_busy_server_is_asked_again_later() {
    check(
        "
        prompt 1 hello
        failed 1 503
        woke 2
        text 3 Hi
        ended 3
        ",
        expect![[r#"
            > prompt 1 hello
                start
                User: hello []
                attempt 1 of m
                #1 Generate from 1 turns
            > failed 1 503
                attempt failed, abandoned: true
                error Unavailable The model's server has a problem (503): said the server. Trying again in 6.3 s (attempt 2 of 10).
                #2 Wake at true
            > woke 2
                attempt 2 of m
                #3 Generate from 1 turns
            > text 3 Hi
                Agent: Hi [2]
            > ended 3
                end Completed
                Settle 1 Stop(EndTurn)
        "#]],
    );
}

#[test]
fn a_refused_key_ends_the_turn() {
    check(
        "
        prompt 1 hello
        failed 1 401
        ",
        expect![[r#"
            > prompt 1 hello
                start
                User: hello []
                attempt 1 of m
                #1 Generate from 1 turns
            > failed 1 401
                attempt failed, abandoned: false
                error Unauthenticated said the server. Check the API key and the model's settings.
                end Failed
                Settle 1 AuthRequired("said the server. Check the API key and the model's settings.")
        "#]],
    );
}

#[test]
fn bad_calls_are_the_models_to_mend() {
    check(
        r#"
        prompt 1 hello
        call 1 raed_file#a {} & read_file#b [1] & read_file#c {}
        ended 1
        invalid 2 file_path is missing
        "#,
        expect![[r#"
            > prompt 1 hello
                start
                User: hello []
                attempt 1 of m
                #1 Generate from 1 turns
            > call 1 raed_file#a {} & read_file#b [1] & read_file#c {}
                call a (raed_file)
                call b (read_file)
                call c (read_file)
            > ended 1
                a tool_not_registered: Tool "raed_file" not found. Did you mean one of: "read_file", "write_file", "ask_user"?
                b invalid_tool_params: The arguments of read_file are not a JSON object.
                #2 Resolve c
            > invalid 2 file_path is missing
                c invalid_tool_params: file_path is missing
                attempt 1 of m
                #3 Generate from 3 turns
        "#]],
    );
}

#[test]
fn a_tail_call_keeps_the_id_and_meets_policy_again() {
    check(
        r#"
        prompt 1 hello
        call 1 read_file#a {"file_path":"a"}
        ended 1
        resolved 2
        tail 3 write_file
        resolved 4
        previewed 5
        allow 1
        ran 7 written
        "#,
        expect![[r#"
            > prompt 1 hello
                start
                User: hello []
                attempt 1 of m
                #1 Generate from 1 turns
            > call 1 read_file#a {"file_path":"a"}
                call a (read_file a)
            > ended 1
                #2 Resolve a
            > resolved 2
                Allow by default/read-only.toml: read_file
                a started
                #3 Run a durable: false
            > tail 3 write_file
                #4 Resolve a
            > resolved 4
                Ask by default/write.toml: write_file
                #5 Preview a
            > previewed 5
                a described
                Ask 1 about a (t4)
            > allow 1
                answered AllowOnce
                a started
                #7 Run a durable: true
            > ran 7 written
                a done: written
                attempt 1 of m
                #8 Generate from 3 turns
        "#]],
    );
}

#[test]
fn the_model_is_asked_a_bounded_number_of_times() {
    check(
        r#"
        prompt 1 hello
        call 1 write_todos {"todos":[{"description":"one","status":"in_progress"}]}
        ended 1
        call 2 write_todos {"todos":[]}
        ended 2
        call 3 write_todos {"todos":1}
        ended 3
        "#,
        expect![[r#"
            > prompt 1 hello
                start
                User: hello []
                attempt 1 of m
                #1 Generate from 1 turns
            > call 1 write_todos {"todos":[{"description":"one","status":"in_progress"}]}
                call write_todos-8690ee42c90b (WriteTodos)
            > ended 1
                Ask by no rule
                #2 Preview write_todos-8690ee42c90b
            > call 2 write_todos {"todos":[]}
            > ended 2
            > call 3 write_todos {"todos":1}
            > ended 3
        "#]],
    );
}

#[test]
fn prompts_run_in_order() {
    check(
        "
        prompt 1 one
        prompt 2 two
        prompt 3 three
        cancel-prompt 2
        text 1 1
        ended 1
        finish 3 SAFETY
        ended 3
        ",
        expect![[r#"
            > prompt 1 one
                start
                User: one []
                attempt 1 of m
                #1 Generate from 1 turns
            > prompt 2 two
            > prompt 3 three
            > cancel-prompt 2
                Settle 2 Stop(Cancelled)
            > text 1 1
                Agent: 1 [1]
            > ended 1
                end Completed
                Settle 1 Stop(EndTurn)
                start
                User: three []
                attempt 1 of m
                #4 Generate from 3 turns
            > finish 3 SAFETY
            > ended 3
        "#]],
    );
}

#[test]
fn the_first_request_waits_for_servers_that_start() {
    check(
        "
        tools 0 a@9000 b@500
        prompt 1 hello
        tools 0 +mcp_a_x b@500
        ended 3
        ",
        expect![[r#"
            > tools 0 a@9000 b@500
            > prompt 1 hello
                start
                User: hello []
                #1 Wake at true
            > tools 0 +mcp_a_x b@500
                Abort #1
                Developer: MCP server "b" is still starting; its tools join when it is ready. []
                attempt 1 of m
                #3 Generate from 1 turns
            > ended 3
                Agent: The model's answer broke off before it said anything. Try again. []
                error Internal the turn is over
                end Failed
                Settle 1 Stop(EndTurn)
        "#]],
    );
}

#[test]
fn slow_and_lost_servers_are_told_once() {
    check(
        "
        tools 0 a@9000 notice:lost
        prompt 1 hello
        woke 1
        tools 0 +mcp_a_x
        ended 2
        tools 0 notice:gone
        prompt 2 again
        ended 4
        prompt 3 again
        ",
        expect![[r#"
            > tools 0 a@9000 notice:lost
            > prompt 1 hello
                start
                User: hello []
                #1 Wake at true
            > woke 1
                Developer: lost
            MCP server "a" is still starting; its tools join when it is ready. []
                attempt 1 of m
                #2 Generate from 1 turns
            > tools 0 +mcp_a_x
            > ended 2
                Agent: The model's answer broke off before it said anything. Try again. []
                error Internal the turn is over
                end Failed
                Settle 1 Stop(EndTurn)
            > tools 0 notice:gone
            > prompt 2 again
                start
                User: again []
                Developer: gone []
                attempt 1 of m
                #4 Generate from 3 turns
            > ended 4
                Agent: The model's answer broke off before it said anything. Try again. []
                error Internal the turn is over
                end Failed
                Settle 2 Stop(EndTurn)
            > prompt 3 again
                start
                User: again []
                attempt 1 of m
                #6 Generate from 5 turns
        "#]],
    );
}

#[test]
fn cancel_ends_the_wait() {
    check(
        "
        tools 0 a@9000
        prompt 1 hello
        cancel
        woke 1
        tools 0 +mcp_a_x
        ",
        expect![[r#"
            > tools 0 a@9000
            > prompt 1 hello
                start
                User: hello []
                #1 Wake at true
            > cancel
                Abort #1
                end Aborted
                Settle 1 Stop(Cancelled)
            > woke 1
            > tools 0 +mcp_a_x
        "#]],
    );
}

#[test]
fn tools_from_outside_ask_unless_granted_and_change_with_the_next_request() {
    check(
        "
        tools 0 +mcp_a_x !mcp_a_y
        prompt 1 hello
        call 1 mcp_a_x#a {\"command\":\"ls\"} & mcp_a_y#b
        tools 0 +mcp_a_z
        ended 1
        resolved 2
        resolved 3
        previewed 4
        always 1
        ran 6 X
        ran 7 Y
        call 8 mcp_a_x#c
        ended 8
        ",
        expect![[r#"
            > tools 0 +mcp_a_x !mcp_a_y
            > prompt 1 hello
                start
                User: hello []
                attempt 1 of m
                #1 Generate from 1 turns
            > call 1 mcp_a_x#a {"command":"ls"} & mcp_a_y#b
                call a (mcp_a_x (s MCP))
                call b (mcp_a_y (s MCP))
            > tools 0 +mcp_a_z
            > ended 1
                #2 Resolve a
                #3 Resolve b
            > resolved 2
                Ask by no rule
                #4 Preview a
            > resolved 3
                Allow by allowed for this session
            > previewed 4
                a described
                Ask 1 about a (t2)
            > always 1
                answered AllowSession
                granted Tool { tool: "mcp_a_x" }
                a started
                #6 Run a durable: true
                b started
                #7 Run b durable: true
            > ran 6 X
                a done: X
            > ran 7 Y
                b done: Y
                attempt 1 of m
                #8 Generate from 3 turns
            > call 8 mcp_a_x#c
                call c (mcp_a_x)
            > ended 8
                c tool_not_registered: Tool "mcp_a_x" not found. Did you mean one of: "mcp_a_z", "ask_user", "read_file"?
                attempt 1 of m
                #9 Generate from 5 turns
        "#]],
    );
}

const QUESTION: &str =
    r#"{"questions":[{"question":"Which?","type":"choice","options":[{"label":"a"},{"label":"b"}]}]}"#;

#[test]
fn a_question_is_its_own_asking() {
    check(
        &format!(
            r#"
            prompt 1 hello
            call 1 ask_user#a {QUESTION} & read_file#b {{}}
            ended 1
            accept 1 {{"0":"b"}}
            accept 1 {{"0":"a"}}
            resolved 3
            cancel
            "#
        ),
        expect![[r#"
            > prompt 1 hello
                start
                User: hello []
                attempt 1 of m
                #1 Generate from 1 turns
            > call 1 ask_user#a {"questions":[{"question":"Which?","type":"choice","options":[{"label":"a"},{"label":"b"}]}]} & read_file#b {}
                call a (AskUser)
                call b (read_file)
            > ended 1
                Ask by no rule
                a started
                Ask 1: Which?
            > accept 1 {"0":"b"}
                answered Accepted { content: {"0": String("b")} }
                a done: {"answers":{"0":"b"}}
                #3 Resolve b
            > accept 1 {"0":"a"}
            > resolved 3
                Allow by default/read-only.toml: read_file
                b started
                #4 Run b durable: false
            > cancel
                Abort #4
                b cancelled: [Operation Cancelled] Reason: the user cancelled the turn
                end Aborted
                Settle 1 Stop(Cancelled)
        "#]],
    );
}

#[test]
fn a_question_without_an_answer() {
    for answer in ["decline 1", "dismiss 1", "unfit 1 `0` is missing", "unable 1", "allow 1"] {
        let mut session = String::new();
        let script = format!("prompt 1 hello\ncall 1 ask_user#a {QUESTION}\nended 1\n{answer}");
        play(&script, &mut session);
        assert!(session.contains("#3 Generate from 3 turns"), "the turn goes on: {session}");
    }
}

#[test]
fn a_question_in_a_message_ends_the_turn() {
    check(
        &format!(
            r#"
            prompt 1 hello
            call 1 ask_user#a {QUESTION} & read_file#b {{}}
            ended 1
            in-text 1
            prompt 2 b
            "#
        ),
        expect![[r#"
            > prompt 1 hello
                start
                User: hello []
                attempt 1 of m
                #1 Generate from 1 turns
            > call 1 ask_user#a {"questions":[{"question":"Which?","type":"choice","options":[{"label":"a"},{"label":"b"}]}]} & read_file#b {}
                call a (AskUser)
                call b (read_file)
            > ended 1
                Ask by no rule
                a started
                Ask 1: Which?
            > in-text 1
                answered InText
                a done: The client cannot show questions, so the user was asked in a message. Their next message is the answer.
                b cancelled: [Operation Cancelled] Reason: the user was asked, and the turn waits for the answer
                Agent: Which?
            - a
            - b []
                end Completed
                Settle 1 Stop(EndTurn)
            > prompt 2 b
                start
                User: b []
                attempt 1 of m
                #4 Generate from 5 turns
        "#]],
    );
}

#[test]
fn a_question_is_withdrawn_with_its_turn() {
    check(
        &format!(
            r#"
            prompt 1 hello
            call 1 ask_user#a {QUESTION}
            ended 1
            cancel
            accept 1 {{"0":"b"}}
            prompt 2 again
            call 5 ask_user#b {QUESTION}
            ended 5
            withdrawn 2
            "#
        ),
        expect![[r#"
            > prompt 1 hello
                start
                User: hello []
                attempt 1 of m
                #1 Generate from 1 turns
            > call 1 ask_user#a {"questions":[{"question":"Which?","type":"choice","options":[{"label":"a"},{"label":"b"}]}]}
                call a (AskUser)
            > ended 1
                Ask by no rule
                a started
                Ask 1: Which?
            > cancel
                Withdraw 1
                a cancelled: [Operation Cancelled] Reason: the user cancelled the turn
                end Aborted
                Settle 1 Stop(Cancelled)
            > accept 1 {"0":"b"}
            > prompt 2 again
                start
                User: again []
                attempt 1 of m
                #5 Generate from 5 turns
            > call 5 ask_user#b {"questions":[{"question":"Which?","type":"choice","options":[{"label":"a"},{"label":"b"}]}]}
                call b (AskUser)
            > ended 5
                Ask by no rule
                b started
                Ask 2: Which?
            > withdrawn 2
                answered Cancelled
                b cancelled: [Operation Cancelled] Reason: the user cancelled the turn
                end Aborted
                Settle 2 Stop(Cancelled)
        "#]],
    );
}
