//! Hook planning, answers and outcomes as lines of data.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value, json};

use super::{
    Hooks, Switches,
    firing::{AnswerEffect, Firing, FiringStart},
    llm,
    outcome::HookOutcome,
};
use castor_base::{
    content::Part,
    history::{Role, Turn, TurnPart},
    hook::{Hook, HookEnd, HookEvent, HookReport, HookRun, HookSource, HookSwitch},
    ids::EffectId,
    model::{Chunk, Finish, ModelParams, ModelRequest, Usage},
    tool::CallResult,
};

fn hook(event: HookEvent, command: &str) -> Hook {
    Hook {
        event,
        matcher: None,
        sequential: false,
        observes: false,
        command: command.to_owned(),
        name: None,
        description: None,
        timeout_ms: 5,
        env: Vec::new(),
        source: HookSource::User,
        scripts: Vec::new(),
        sandbox: Default::default(),
    }
}

/// Fires hooks named a, b, … that report this, the last one first, and says what was started with what.
fn fire(event: HookEvent, sequential: bool, input: Value, reports: &[HookReport]) -> (HookOutcome, Vec<HookRun>) {
    let rows = ["a", "b", "c"].iter().take(reports.len());
    let rows = rows.map(|it| Hook { sequential, ..hook(event, it) }).collect();
    let plan = Hooks::new(rows, BTreeSet::new()).plan(event, "t", &Switches::new());
    let mut runs: Vec<HookRun> = Vec::new();
    let input = input.as_object().cloned().unwrap_or_default();
    let begun = Firing::begin(event, plan, input, |run| {
        runs.push(run);
        EffectId(runs.len() as u64)
    });
    let FiringStart::Waiting(mut firing) = begun else { panic!("nothing to wait for") };
    assert_eq!(firing.take_report(EffectId(99), &reports[0], |_| EffectId(0)), AnswerEffect::Unrelated);
    loop {
        let effect = firing.running().last().unwrap();
        let taken = firing.take_report(effect, &reports[effect.0 as usize - 1], |run| {
            runs.push(run);
            EffectId(runs.len() as u64)
        });
        if let AnswerEffect::Finished(outcome) = taken {
            return (*outcome, runs);
        }
    }
}

fn exit(code: i32, stdout: &str) -> HookReport {
    HookReport { stdout: stdout.to_owned(), ..HookReport::from_end(HookEnd::Exit(code)) }
}

fn said(it: &Value) -> HookReport {
    exit(0, &it.to_string())
}

fn check(event: HookEvent, reports: &[HookReport], expected: &str) {
    let (it, _) = fire(event, false, json!({}), reports);
    let mut words: Vec<String> = Vec::new();
    words.extend(it.verdict.as_ref().map(|it| format!("{} {:?}", it.as_str(), it.reason())));
    words.extend(it.marked_context());
    words.extend((!it.change.is_empty()).then(|| Value::Object(it.change.clone()).to_string()));
    words.extend(it.notices.into_iter().map(|it| it.text));
    words.extend(it.failed);
    assert_eq!(words.join(" | "), expected, "{event:?} {reports:?}");
}

#[test]
fn codes_and_texts_are_read() {
    use HookEvent::BeforeTool;
    check(BeforeTool, &[exit(0, "")], "");
    check(BeforeTool, &[exit(0, " hello \u{1b}[1m!\n")], r#"Hook "a": hello !"#);
    check(BeforeTool, &[exit(1, "odd")], r#"Hook "a": Warning: odd"#);
    check(BeforeTool, &[exit(2, "no")], r#"block "no""#);
    check(BeforeTool, &[exit(2, "")], r#"block "exit code 2""#);
    check(BeforeTool, &[exit(127, "")], r#"block "exit code 127""#);
    let stderr = HookReport { stderr: "not you\n".to_owned(), ..exit(2, " ") };
    check(BeforeTool, &[stderr], r#"block "not you""#);
    check(BeforeTool, &[exit(2, r#"{"systemMessage": "m"}"#)], r#"block "m" | Hook "a": m"#);
    check(BeforeTool, &[exit(1, r#"{"decision": "deny", "reason": "r"}"#)], r#"block "r""#);
    check(BeforeTool, &[exit(0, r#""{\"decision\":\"block\"}""#)], r#"block "No reason provided""#);
    check(BeforeTool, &[exit(0, "{oops")], r#"The hook "a" printed JSON that cannot be read."#);
    check(BeforeTool, &[exit(2, "{oops")], r#"block "{oops""#);
    check(BeforeTool, &[exit(0, "[1]")], r#"Hook "a": [1]"#);
    for before in ["\u{feff}", "\n \u{feff}\n", "\u{feff}\u{feff} "] {
        check(BeforeTool, &[exit(0, &format!("{before}{{\"decision\":\"deny\",\"reason\":\"r\"}}\n"))], r#"block "r""#);
    }
    let on_stderr =
        HookReport { stderr: "\u{feff}{\"decision\":\"deny\",\"reason\":\"r\"}".to_owned(), ..exit(0, "\n") };
    check(BeforeTool, &[on_stderr], r#"block "r""#);
    let deny = r#"{"decision":"deny"}"#;
    for text in [
        format!("checking a.rs\n{deny}\n"),
        format!("{deny}\ndone"),
        "checking\n{\n \"decision\": \"deny\"\n}".to_owned(),
        format!("[{deny}]"),
        format!("{deny}{deny}"),
        // UTF-16, as it is read.
        deny.chars().flat_map(|it| [it, '\0']).collect(),
    ] {
        check(BeforeTool, &[exit(0, &text)], r#"The hook "a" printed JSON that cannot be read."#);
    }
    for text in ["rows:\n{\"id\": 1}\n{\"id\": 2}", "decision: deny"] {
        check(BeforeTool, &[exit(0, text)], &format!("Hook \"a\": {text}"));
    }
    let odd = said(&json!({"decision": "maybe"}));
    check(BeforeTool, &[odd], r#"The hook "a" said a decision that is none of allow, ask, block and deny."#);
    check(BeforeTool, &[said(&json!({"decision": null, "continue": true, "reason": "x"}))], "");
    let silent = json!({"systemMessage": "m", "suppressOutput": true, "decision": "approve"});
    check(BeforeTool, &[said(&silent)], "");
    for (end, why) in [
        (HookEnd::Signal("SIGSEGV".to_owned()), "was ended by SIGSEGV"),
        (HookEnd::TimedOut, "did not answer within 5 ms and is off in this session"),
        (HookEnd::TooMuchOutput, "printed too much"),
        (HookEnd::NotStarted("gone".to_owned()), "could not be started: gone"),
    ] {
        check(BeforeTool, &[HookReport::from_end(end)], &format!("The hook \"a\" {why}."));
    }
}

#[test]
fn hooks_of_other_agents_are_understood() {
    let there = json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no",
        "updatedInput": {"a": 1}
    }});
    check(HookEvent::BeforeTool, &[said(&there)], r#"block "no" | {"tool_input":{"a":1}}"#);
}

#[test]
fn the_strictest_word_counts() {
    use HookEvent::BeforeTool;
    let word = |word: &str, reason: &str| said(&json!({"decision": word, "reason": reason}));
    let (ask, deny, block) = (word("ask", "1"), word("deny", "2"), word("block", "3"));
    let stop = said(&json!({"continue": false, "stopReason": "4", "reason": "5"}));
    check(BeforeTool, &[ask.clone(), deny.clone()], r#"block "2""#);
    check(BeforeTool, &[deny, block, ask.clone()], r#"block "2\n3""#);
    check(BeforeTool, &[stop.clone(), ask.clone(), stop], r#"stop "4\n4""#);
    check(BeforeTool, &[ask.clone(), exit(0, ""), ask], r#"ask "1\n1""#);
}

#[test]
fn unsupported_hook_actions_are_reported_and_ignored() {
    let all = json!({
        "decision": "block", "reason": "r", "continue": false,
        "hookSpecificOutput": {"additionalContext": "c", "tool_input": {"a": 1}, "clearContext": true}
    });
    check(
        HookEvent::SessionStart,
        &[said(&all)],
        "<hook_context>c</hook_context> | Hook \"a\": r | Hook \"a\": SessionStart cannot block; ignored. | \
         Hook \"a\": SessionStart cannot stop; ignored. | \
         Hook \"a\": SessionStart cannot take this `tool_input`; ignored. | \
         Hook \"a\": SessionStart cannot take this `clearContext`; ignored.",
    );
    let odd = json!({"hookSpecificOutput": {"tool_input": "x"}});
    check(HookEvent::BeforeTool, &[said(&odd)], "Hook \"a\": BeforeTool cannot take this `tool_input`; ignored.");
    check(HookEvent::AfterTool, &[said(&json!({"decision": "ask"}))], "Hook \"a\": AfterTool cannot ask; ignored.");
}

#[test]
fn changes_add_up() {
    let specific = |it: Value| said(&json!({ "hookSpecificOutput": it }));
    let context = |it: &str| specific(json!({ "additionalContext": it }));
    check(
        HookEvent::BeforeAgent,
        &[context("one <b>"), context("two")],
        "<hook_context>one &lt;b&gt;\ntwo</hook_context>",
    );
    let input = |it: Value| specific(json!({ "tool_input": it }));
    check(
        HookEvent::BeforeTool,
        &[input(json!({"a": 1, "b": 1})), input(json!({"b": 2}))],
        r#"{"tool_input":{"a":1,"b":2}}"#,
    );
    let config =
        |mode: &str, names: &[&str]| specific(json!({"toolConfig": {"mode": mode, "allowedFunctionNames": names}}));
    let tools = HookEvent::BeforeToolSelection;
    check(
        tools,
        &[config("ANY", &["b", "a"]), config("AUTO", &["a"])],
        r#"{"toolConfig":{"mode":"ANY","allowedFunctionNames":["a","b"]}}"#,
    );
    check(
        tools,
        &[config("NONE", &[]), config("ANY", &["a"])],
        r#"{"toolConfig":{"mode":"NONE","allowedFunctionNames":[]}}"#,
    );
    check(tools, &[config("odd", &[])], r#"{"toolConfig":{"mode":"AUTO","allowedFunctionNames":[]}}"#);
    // Who says nothing of tools changes nothing.
    check(tools, &[exit(0, "{}")], "");
}

#[test]
fn one_after_the_other_sees_what_the_one_before_changed() {
    let change = said(&json!({"hookSpecificOutput": {"tool_input": {"b": 2}}}));
    let failed = exit(2, r#"{"hookSpecificOutput": {"tool_input": {"b": 9}}}"#);
    let input = json!({"tool_name": "t", "tool_input": {"a": 1, "b": 1}});
    let told = |runs: &[HookRun]| runs.iter().map(|it| it.input["tool_input"].to_string()).collect::<Vec<_>>();
    let (_, runs) = fire(HookEvent::BeforeTool, true, input.clone(), &[change.clone(), failed, exit(0, "")]);
    assert_eq!(told(&runs), [r#"{"a":1,"b":1}"#, r#"{"a":1,"b":2}"#, r#"{"a":1,"b":2}"#]);
    let (_, runs) = fire(HookEvent::BeforeTool, false, input, &[change, exit(0, "")]);
    assert_eq!(told(&runs), [r#"{"a":1,"b":1}"#, r#"{"a":1,"b":1}"#]);
    let more = said(&json!({"hookSpecificOutput": {"additionalContext": "more"}}));
    let (_, runs) = fire(HookEvent::BeforeAgent, true, json!({"prompt": "p"}), &[more, exit(0, "")]);
    assert_eq!(runs[1].input["prompt"], "p\n\nmore");
}

fn planned(matcher: Option<&str>, event: HookEvent, subject: &str) -> bool {
    let row = Hook { matcher: matcher.map(str::to_owned), ..hook(event, "x") };
    Hooks::new(vec![row], BTreeSet::new()).has(event, subject, &Switches::new())
}

#[test]
fn matchers() {
    use HookEvent::{AfterTool, BeforeAgent, BeforeTool, PreCompress, SessionStart};
    for all in [None, Some(""), Some("*"), Some(" ")] {
        assert!(planned(all, BeforeTool, "x") && planned(all, SessionStart, "startup"));
    }
    assert!(planned(Some("write_.*|replace"), BeforeTool, "write_file"));
    assert!(planned(Some("write"), AfterTool, "write_file") && !planned(Some("^write$"), AfterTool, "write_file"));
    assert!(!planned(Some("mcp_a_.*"), BeforeTool, "mcp_b_x"));
    // No expression: a name.
    assert!(planned(Some("a(b"), BeforeTool, "a(b") && !planned(Some("a(b"), BeforeTool, "ab"));
    assert!(planned(Some("resume"), SessionStart, "resume") && !planned(Some("res.*"), SessionStart, "resume"));
    assert!(planned(Some("auto"), PreCompress, "auto") && !planned(Some("auto"), PreCompress, "manual"));
    assert!(planned(Some("whatever"), BeforeAgent, ""));
}

#[test]
fn plans_know_switches_order_and_repetitions() {
    let event = HookEvent::BeforeTool;
    let named = |name: &str| Hook { name: Some(name.to_owned()), ..hook(event, "x") };
    let rows = vec![named("a"), hook(event, "x"), named("a"), Hook { sequential: true, ..named("b") }];
    let hooks = Hooks::new(rows, BTreeSet::from(["b".to_owned()]));
    let keys = |switches: &[(&str, HookSwitch)]| {
        let switches: Switches = switches.iter().map(|(key, it)| ((*key).to_owned(), *it)).collect();
        let plan = hooks.plan(event, "t", &switches);
        let keys: Vec<&str> = plan.hooks.iter().map(|it| it.key()).collect();
        format!("{} {} {}", keys.join(","), plan.sequential, plan.timed_out.join(","))
    };
    assert_eq!(keys(&[]), "a,x false ");
    assert_eq!(keys(&[("b", HookSwitch::On), ("x", HookSwitch::Off)]), "a,b true ");
    assert_eq!(keys(&[("a", HookSwitch::Hung)]), "x false a");
}

#[test]
fn hung_hook_is_reported_and_not_started_again() {
    let event = HookEvent::BeforeTool;
    let switches = Switches::from([("x".to_owned(), HookSwitch::Hung)]);
    let plan = Hooks::new(vec![hook(event, "x")], BTreeSet::new()).plan(event, "t", &switches);
    match Firing::begin(event, plan, Map::new(), |_| panic!("started")) {
        FiringStart::Finished(it) => assert_eq!(it.failed.len(), 1),
        FiringStart::Waiting(_) => panic!("waits"),
    }
}

fn turn(role: Role, parts: Vec<TurnPart>) -> Arc<Turn> {
    let mut res = Turn::new(role);
    *res.parts_mut() = parts;
    Arc::new(res)
}

#[test]
fn hooks_see_and_change_model_requests() {
    let text = |it: &str| TurnPart::Content(Part::text(it));
    let media = TurnPart::Content(Part::Media { mime: "image/png".to_owned(), data: "AA".into(), uri: None });
    let mut request = ModelRequest {
        model: "m".into(),
        system: "s".into(),
        contents: vec![
            turn(Role::User, vec![text("one"), media.clone(), text(" two")]),
            turn(Role::Tool, vec![media.clone()]),
            turn(Role::Model, vec![text("three")]),
        ],
        tools: [].into(),
        params: ModelParams { temperature: Some(0.5), ..ModelParams::default() },
        traits: Default::default(),
    };
    let told = llm::request_json(&request);
    let messages = json!([{"role": "user", "content": "one two"}, {"role": "model", "content": "three"}]);
    assert_eq!(told, json!({"model": "m", "messages": messages, "config": {"temperature": 0.5}}));
    let same = request.contents[2].clone();
    let change = json!({
        "messages": [{"role": "user", "content": "ONE"}, {"role": "model", "content": "three"},
            {"role": "user", "content": ["fo", {"text": "ur"}]}],
        "config": {"topK": 3, "temperature": "hot"}
    });
    llm::apply_change(&mut request, change.as_object().unwrap());
    assert_eq!(request.contents[0].parts(), [text("ONE"), media.clone()]);
    assert_eq!(request.contents[1].parts(), [media]);
    assert!(Arc::ptr_eq(&request.contents[2], &same), "what did not change keeps its bytes");
    assert_eq!(request.contents[3].parts(), [text("four")]);
    assert_eq!((request.params.top_k, request.params.temperature), (Some(3), Some(0.5)));
    llm::apply_change(&mut request, json!({"messages": []}).as_object().unwrap());
    assert_eq!(request.contents.len(), 4, "fewer messages leave the rest as it is");
}

/// As one that hides what must not reach a model.
#[test]
fn hooks_replace_results_of_tools() {
    let result = |id: &str, text: &str| {
        let (id, name) = (id.into(), "t".to_owned());
        TurnPart::Result(CallResult { id, name, content: vec![Part::text(text)], is_error: false })
    };
    let contents = vec![turn(Role::Tool, vec![result("a", "key k"), result("b", "fine")])];
    let (system, tools, params) = ("s".into(), [].into(), ModelParams::default());
    let mut request = ModelRequest { model: "m".into(), system, contents, tools, params, traits: Default::default() };
    let told = llm::request_json(&request)["tool_results"].clone();
    let (a, b) =
        (json!({"id": "a", "name": "t", "content": "key k"}), json!({"id": "b", "name": "t", "content": "fine"}));
    assert_eq!(told, json!([a, b]));
    let same = request.contents[0].clone();
    llm::apply_change(&mut request, json!({ "tool_results": told }).as_object().unwrap());
    assert!(Arc::ptr_eq(&request.contents[0], &same), "what did not change keeps its bytes");
    let change =
        json!({"tool_results": [{"id": "a", "content": "key hidden"}, {"id": "z", "content": "?"}, {"id": "b"}]});
    llm::apply_change(&mut request, change.as_object().unwrap());
    assert_eq!(request.contents[0].parts(), [result("a", "key hidden"), result("b", "fine")]);
}

#[test]
fn hooks_see_and_change_model_answers() {
    let text = |it: &str| Chunk::Text { text: it.to_owned(), signature: None };
    let call = Chunk::Call { id: None, name: "t".to_owned(), args: json!({}), signature: None };
    let usage = Chunk::Usage(Usage { input: 1, output: 2, total: 3, ..Usage::default() });
    let chunks = vec![text("a"), call.clone(), text("b"), usage.clone(), Chunk::Finish(Finish::Stop)];
    let told = llm::response_json(&chunks);
    assert_eq!(told["candidates"][0]["content"]["parts"], json!(["ab"]));
    assert_eq!((&told["text"], &told["candidates"][0]["finishReason"]), (&json!("ab"), &json!("STOP")));
    assert_eq!(told["usageMetadata"]["totalTokenCount"], 3);
    let said = |parts: Value| json!({"candidates": [{"content": {"parts": parts}}]});
    let read = |it: Value| llm::response_text(it.as_object().unwrap());
    assert_eq!(read(said(json!(["x", {"text": "y"}]))), Some("xy".to_owned()));
    assert_eq!((read(said(json!([]))), read(json!({"text": "x"}))), (None, Some("x".to_owned())));
    let finish = Chunk::Finish(Finish::Stop);
    assert_eq!(llm::replace_text(chunks, "X"), [text("X"), call.clone(), usage, finish.clone()]);
    assert_eq!(llm::replace_text(vec![call.clone(), finish.clone()], "X"), [text("X"), call, finish]);
}
