//! Lines of agents, as tables.

use super::super::lines::{LineSet, after_agent, after_person};

const FN: &str = "fn a() {\n    let x = run('curl', one, two);\n    x.wait();\n}\n";

fn changed(old: &[u8], new: &[u8]) -> Option<LineSet> {
    after_agent(old, &LineSet::new(), new)
}

#[track_caller]
fn check(old: &str, own: &[usize], new: &str, want: &[usize]) {
    let own: LineSet = own.iter().copied().collect();
    let found = after_person(old.as_bytes(), &own, new.as_bytes()).unwrap();
    assert_eq!(found.into_iter().collect::<Vec<_>>(), want, "{old:?} -> {new:?}");
}

/// Old text, the agent's lines, the person's text, what is still the agent's.
#[test]
fn a_person_clears_what_they_touch_and_nothing_else() {
    check("a\nb\nc\n", &[0, 1, 2], "a\nB\nc\n", &[0, 2]);
    check("a\nb\nc\n", &[1], "a\nB\nc\n", &[]);
    check("a\nb\nc\n", &[1], "A\nb\nC\n", &[1]);
    check("a\nb\n", &[1], "new\na\nb\n", &[2]);
    check("a\nb\nc\n", &[1], "a\nc\n", &[]);
    check("curl x | sh\nok\n", &[0], "curl y | sh\nok\n", &[]);
    check("rm -rf build dist\n", &[0], "rm -rf build\n", &[]);
    // The end of the file, without a new line.
    check("a\nb", &[1], "a\nb\n", &[1]);
    check("", &[], "x\n", &[]);
    check("a\n", &[0], "", &[]);
}

#[test]
fn a_formatter_clears_nothing() {
    check(FN, &[1, 2], &FN.replace("    ", "\t\t"), &[1, 2]);
    check(FN, &[0, 1, 2, 3], &FN.replace('\n', "\r\n"), &[0, 1, 2, 3]);
    check(FN, &[1], &FN.replace('\'', "\"").replace("two", "two,"), &[1]);
    // Wrapped, and wrapped back.
    let wrapped = "fn a() {\n    let x = run(\n        'curl',\n        one,\n        two,\n    );\n    x.wait();\n}\n";
    check(FN, &[1], wrapped, &[1, 2, 3, 4]);
    check(wrapped, &[2], FN, &[1]);
    // Indented, and one line of it edited: that one alone is seen.
    check("a b\nc d\ne f\n", &[0, 1, 2], "  a b\n  c X\n  e f\n", &[0, 2]);
    // Semicolons, and all on one line.
    check("let a = 1\nlet b = 2\n", &[0, 1], "let a = 1;\nlet b = 2;\n", &[0, 1]);
    check("let a = 1\nlet b = 2\n", &[0], "let a = 1; let b = 2;\n", &[0]);
}

#[test]
fn what_is_moved_stays_the_agents() {
    check("evil one\nb\nc\nd\n", &[0], "b\nc\nd\nevil one\n", &[3]);
    check("evil one\nb\nc\nd\n", &[0], "b\n    evil one;\nc\nd\nx\n", &[1]);
    check("use b::B;\nuse a::A;\n", &[0, 1], "use a::A;\nuse b::B;\n", &[0, 1]);
}

#[test]
fn another_file_in_its_place_is_the_persons() {
    check("#!/bin/sh\ncurl x | sh\n}\n\n", &[0, 1, 2, 3], "one\n}\n\ntwo\n", &[]);
    check("a\n{\n}\n", &[0, 1, 2], "", &[]);
    let many = |word: &str| (0..400).map(|it| format!("{word} {it}\n")).collect::<String>();
    check(&many("old"), &(0..400).collect::<Vec<_>>(), &many("new"), &[]);
}

#[test]
fn what_an_agent_changes_is_its_own() {
    let found = |old: &str, new: &str| changed(old.as_bytes(), new.as_bytes()).unwrap().into_iter().collect::<Vec<_>>();
    assert_eq!(found("", "a\nb\n"), [0, 1]);
    assert_eq!(found("a\nb\nc\n", "a\nB\nc\n"), [1]);
    // Blanks count: they may mean something.
    assert_eq!(found("if x:\n  a\n  b\n", "if x:\n  a\nb\n"), [2]);
    // What is gone leaves its place.
    assert_eq!((found("a\nguard\nb\n", "a\nb\n"), found("a\nguard\n", "a\n")), (vec![1], vec![0]));
    assert_eq!(found("a\n", "a\r\n"), [0]);
    let own = LineSet::from([0]);
    assert_eq!(after_agent(b"x\nb\n", &own, b"new\nx\nb\n").unwrap().into_iter().collect::<Vec<_>>(), [0, 1]);
    assert_eq!(changed(b"a\0", b"b"), None, "no text");
    assert_eq!(changed(b"a", &vec![b'x'; 600 << 10]), None, "too long");
}
