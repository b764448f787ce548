//! The protocol's own words stand in wire and client alone, and each face decides about each kind of event.

use std::collections::BTreeMap;

use super::{exceptions, indent, sources};

/// Names of members that types read and write.
const WORDS: &[&str] = &["sessionUpdate", "toolCallId", "\"_meta\"", "pointer(\"/"];
const CLOSED: &str = "ClientEvent::";

/// Elsewhere a misspelt word compiles, and is silence.
#[test]
fn words_of_the_protocol_stand_in_wire_and_client() {
    let mut measured = BTreeMap::new();
    for source in sources().iter().filter(|it| !it.is_in("wire") && !it.is_in("client")) {
        measured.insert(format!("src/{}", source.name), count(&source.code()));
    }
    exceptions::check("protocol-words", 0, &measured);
}

/// A new kind of event then fails to compile in every face.
#[test]
fn a_match_on_events_has_no_wildcard() {
    let mut wrong = String::new();
    for source in sources() {
        for line in wildcards(&source.code()) {
            wrong += &format!("src/{}:{line}: `_` in a match on {CLOSED}…\n", source.name);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

fn count(code: &str) -> usize {
    WORDS.iter().map(|word| code.matches(word).count()).sum()
}

/// Lines of arms that take whatever is left, beside arms that name an event.
fn wildcards(code: &str) -> Vec<usize> {
    let lines: Vec<&str> = code.lines().collect();
    let names_event = |line: &str| {
        let pattern = line.trim_start().trim_start_matches("| ").trim_start_matches('(').trim_start_matches('&');
        pattern.starts_with(CLOSED)
    };
    let is_rest = |line: &str| line.trim_start().starts_with("_ =>");
    let mut res = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| is_rest(line)) {
        let depth = indent(line);
        let above = lines[..at].iter().rev().take_while(|it| it.trim().is_empty() || indent(it) >= depth);
        if above.filter(|it| indent(it) == depth).any(|it| names_event(it)) {
            res.push(at + 1);
        }
    }
    res
}

#[test]
fn words_and_wildcards_are_found() {
    let code = "fn a() {\n    let it = json!({\"_meta\": 1, \"toolCallId\": 2});\n    match it {\n        ClientEvent::Plan(it) => {\n            b(it)\n        }\n        | ClientEvent::Usage(_) => (),\n        _ => (),\n    }\n    match it {\n        Some(_) => (),\n        _ => (),\n    }\n}\n";
    assert_eq!((count(code), wildcards(code)), (2, vec![8]));
    let nested = "match it {\n    ClientEvent::Plan(it) => match it {\n        Some(_) => (),\n        _ => (),\n    },\n    ClientEvent::Usage(_) => (),\n}\n";
    assert_eq!(wildcards(nested), Vec::<usize>::new());
    let inner = "match it {\n    Some(_) => match it {\n        (ClientEvent::Plan(it), _) => (),\n        _ => (),\n    },\n    _ => (),\n}\n";
    assert_eq!(wildcards(inner), [4]);
}
