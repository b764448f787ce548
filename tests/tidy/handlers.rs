//! Functions of the server take the parts of its state that they touch: the whole only to pass it on, or for three parts.

use std::collections::BTreeSet;

use super::{Report, Source, is_fn, items, sources};

const STATE: &str = "agent/server/state.rs";

#[test]
fn handlers_take_what_they_touch() {
    let sources = sources();
    let methods: BTreeSet<String> = sources.iter().flat_map(methods_of_state).collect();
    assert!(methods.contains("step"), "nothing is found");
    let mut report = Report::default();
    for source in sources.iter().filter(|it| it.name.starts_with("agent/server/") && it.name != STATE) {
        for (line, parts) in takes_more(source, &methods) {
            report.add(source, line, &format!("takes the whole state and touches {parts:?}: take these"));
        }
    }
}

#[test]
fn functions_that_take_more_are_found() {
    let source = |text: &str| Source { name: String::new(), text: text.into(), tests: String::new() };
    let methods = BTreeSet::from(["step".to_owned()]);
    let lines = |text: &str| takes_more(&source(text), &methods).len();
    assert_eq!(lines("fn list(state: &State) {\n    state.tasks.list();\n}\n"), 1);
    assert_eq!(lines("fn passes(state: &mut State) {\n    list(state);\n}\n"), 0);
    assert_eq!(lines("fn steps(state: &mut State) {\n    state.step();\n}\n"), 0);
    assert_eq!(lines("fn three(state: &State) {\n    go(&state.a, &state.b, &state.c);\n}\n"), 0);
}

fn methods_of_state(source: &Source) -> Vec<String> {
    let mut res = Vec::new();
    for state in items(&source.text, |it| it == "impl State {") {
        let text = state.lines.join("\n");
        res.extend(items(&text, is_fn).iter().filter_map(|it| word_after(&it.lines.join("\n"), "fn ")));
    }
    res
}

/// Lines of functions that could do with one or two parts of the state, and these parts.
fn takes_more(source: &Source, methods: &BTreeSet<String>) -> Vec<(usize, BTreeSet<String>)> {
    let mut res = Vec::new();
    for it in items(&source.text, is_fn) {
        let text = it.lines.join("\n");
        let Some((head, body)) = text.split_once(" {\n") else { continue };
        if !head.contains("state: &State") && !head.contains("state: &mut State") {
            continue;
        }
        let parts: BTreeSet<String> =
            body.match_indices("state.").filter_map(|(at, _)| word_after(&body[at..], "state.")).collect();
        let passes = ["(state)", "(state,", " state)", " state,", " = state;"].iter().any(|it| body.contains(it));
        if !passes && parts.len() < 3 && parts.is_disjoint(methods) {
            res.push((it.at, parts));
        }
    }
    res
}

fn word_after(text: &str, head: &str) -> Option<String> {
    let rest = &text[text.find(head)? + head.len()..];
    let end = rest.find(|it: char| it != '_' && !it.is_alphanumeric()).unwrap_or(rest.len());
    Some(rest[..end].to_owned())
}
