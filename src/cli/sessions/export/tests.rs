//! Exports: they are complete, and no text leaves its place.

use base64::{Engine, prelude::BASE64_STANDARD};
use expect_test::expect_file;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{AgentLogs, EndedCall, ExportedStory, Story, StoryItem, json as to_json};
use crate::cli::page::tests::check_tags;
use castor_base::log::Entry;

const EVIL: &str = "<script>alert(1)</script>\"'&\n```\n</pre></div>-->]]>\n````\n<!-- \u{1b}[31m";

fn html(story: &Story<'_>) -> String {
    super::html(ExportedStory::new(story, &AgentLogs::default()), &TimeZone::UTC)
}

fn markdown(story: &Story<'_>) -> String {
    super::markdown(ExportedStory::new(story, &AgentLogs::default()), &TimeZone::UTC)
}

/// A log with `text` wherever a text can stand.
fn log(text: &str) -> Vec<Entry> {
    let path = format!("/w/{}", text.replace('\n', " "));
    let event = |kind: Value| {
        let mut event = json!({"id": text, "streamId": text, "timestamp": 2});
        event.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
        json!({"at": 2, "fact": "event", "event": event})
    };
    let call = |id: &str, kind: Value| {
        let mut it = kind;
        it["requestId"] = json!(id);
        event(it)
    };
    let request = json!({"type": "tool_request", "name": text, "args": {text: text},
        "display": {"title": text, "kind": "edit", "locations": [{"path": path}]}});
    let response = |display: Value, error: Value| {
        json!({"type": "tool_response", "name": text, "content": [{"type": "text", "text": text}],
            "display": display, "summary": text, "error": error, "data": {text: text}})
    };
    let parts = json!([
        {"type": "text", "text": text}, {"type": "thought", "thought": text},
        {"type": "media", "mime": text, "data": text}, {"type": "media", "mime": "image/png", "data": text},
        {"type": "media", "mime": "image/png", "data": "AAAA"},
        {"type": "reference", "uri": text, "name": text, "mime": text, "text": text},
    ]);
    let facts = vec![
        json!({"at": 1, "fact": "created", "version": 1, "castor": text, "session": text, "cwd": path, "roots": [path],
            "mode": "default", "model": text}),
        event(json!({"type": "message", "role": "user", "messageId": text, "content": parts})),
        event(json!({"type": "message", "role": "agent", "messageId": text, "content": parts})),
        call("a", request.clone()),
        call("a", json!({"type": "tool_update", "progress": "printed", "text": text})),
        call("b", request.clone()),
        call(
            "b",
            response(json!({"type": "diff", "path": path, "before": text, "after": format!("x{text}")}), Value::Null),
        ),
        call("c", request.clone()),
        call(
            "c",
            response(json!({"type": "terminal", "text": text, "exit": 1}), json!({"kind": text, "message": text})),
        ),
        call("d", request.clone()),
        call("d", response(json!({"type": "text", "text": text}), Value::Null)),
        call("e", request),
        call("e", response(Value::Null, Value::Null)),
        json!({"at": 3, "fact": "answered", "call": "d", "answer": "reject"}),
        event(json!({"type": "custom", "kind": "plan", "data": {"entries": [{"content": text, "status": text}]}})),
        event(json!({"type": "error", "status": "INTERNAL", "message": text, "fatal": true})),
        event(json!({"type": "session_update", "title": text})),
        json!({"at": 4, "fact": "model", "model": text}),
        json!({"at": 4, "fact": "attempt_failed", "abandoned": true, "failure": {"kind": "status", "message": text}}),
        event(json!({"type": "usage", "model": text, "input": 3, "output": 4, "total": 7, "size": 9})),
        event(json!({"type": "agent_end", "reason": "aborted"})),
    ];
    facts.into_iter().map(|it| serde_json::from_value(it.clone()).unwrap_or_else(|e| panic!("{e}: {it}"))).collect()
}

#[test]
fn html_holds_no_markup_of_the_session() {
    let entries = log(EVIL);
    let page = html(&Story::new(&entries).unwrap());
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (1, 1), "castor's own");
    for word in ["</pre></div>", "<!-- ", "\u{1b}", "alert(1)</script>", "src=\"data:image/png;base64,<"] {
        assert!(!page.contains(word), "{word}");
    }
    let (_, script) = page.split_once("<script>").unwrap();
    let hash = BASE64_STANDARD.encode(Sha256::digest(script.split_once("</script>").unwrap().0));
    assert!(page.contains(&format!("script-src 'sha256-{hash}';")), "the one script that may run");
    // The text is there, as text; and only castor's own tags are.
    assert!(page.matches("&lt;script&gt;alert(1)&lt;/script&gt;").count() > 20, "{page}");
    check_tags(&page);
    assert!(!page.contains("src=\"http") && !page.contains("<link"), "one file that needs nothing else");
}

#[test]
fn markdown_keeps_everything_in_its_place() {
    let entries = log(EVIL);
    let text = markdown(&Story::new(&entries).unwrap());
    let mut fence: Option<usize> = None;
    for line in text.lines() {
        let ticks = line.chars().take_while(|it| *it == '`').count();
        match fence {
            Some(len) if ticks >= len && line.len() == ticks => fence = None,
            Some(_) => (),
            None if ticks >= 3 => fence = Some(ticks),
            // Outside of blocks: quoted, in a span, or with every mark escaped.
            None if line.starts_with('>') || line.starts_with('#') => (),
            None => {
                let outside: String = line.split('`').step_by(2).collect();
                assert!(!outside.replace("\\<", "").contains('<') || line.contains("``"), "{line}");
            }
        }
    }
    assert_eq!(fence, None, "a fence is left open\n{text}");
    assert!(text.starts_with("# \\<script>"), "{text}");
    assert_eq!(text.matches("\n**Tool** ").count(), 5);
}

#[test]
fn plain_answers_stay_as_they_are() {
    let entries = log("Use `x`:\n\n```rust\nlet a = 1;\n```");
    let text = markdown(&Story::new(&entries).unwrap());
    assert!(text.contains("\nUse `x`:\n\n```rust\nlet a = 1;\n```\n"), "{text}");
    assert!(text.contains("\n> Use `x`:\n>\n> ```rust\n"), "{text}");
    assert!(text.contains("````\nUse `x`:\n\n```rust\n"), "{text}");
}

/// A log that a castor wrote: edits, a plan, commands, refusals, a failure.
const RICH: &str = include_str!("../../../../tests/data/logs/v1-rich.jsonl");

fn entries_of(lines: &str) -> Vec<Entry> {
    lines.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

#[test]
fn a_session_as_a_document() {
    let entries = entries_of(RICH);
    let story = Story::new(&entries).unwrap();
    expect_file!["golden/rich.md"].assert_eq(&markdown(&story));
    let page = html(&story);
    check_tags(&page);
    let (_, body) = page.split_once("<body>\n").unwrap();
    let (body, _) = body.split_once("<script>").unwrap();
    expect_file!["golden/rich.html"].assert_eq(body);
}

/// Two turns of two days: the first has a steering message, a plan, a price and a change, the second none of them.
fn two_turns() -> Vec<Entry> {
    let event = |at: u64, mut kind: Value| {
        for (key, value) in [("id", json!("s-0")), ("streamId", json!("s")), ("timestamp", json!(at))] {
            kind[key] = value;
        }
        json!({"at": at, "fact": "event", "event": kind})
    };
    let user = |at, id| {
        event(
            at,
            json!({"type": "message", "role": "user", "messageId": id,
        "content": [{"type": "text", "text": "# go\n\nnow"}]}),
        )
    };
    let usage = |at, cost: Option<f64>| {
        event(
            at,
            json!({"type": "usage", "model": "m", "input": 1000, "output": 10,
        "cached": 0, "thought": 20, "total": 1030, "size": 9, "cost": cost}),
        )
    };
    let todos = json!([{"description": "a", "status": "completed"}, {"description": "b", "status": "cancelled"}]);
    let facts = [
        json!({"at": 1, "fact": "created", "version": 1, "castor": "0", "session": "s", "cwd": "/w", "roots": ["/w"],
            "mode": "default", "model": "m"}),
        event(1_000, json!({"type": "agent_start"})),
        user(1_000, "m1"),
        // Steering is part of the turn.
        user(2_000, "m2"),
        event(
            2_000,
            json!({"type": "tool_request", "requestId": "c", "name": "write_todos", "args": {"todos": todos},
            "display": {"title": "WriteTodos", "kind": "think"}}),
        ),
        event(
            2_000,
            json!({"type": "custom", "kind": "plan",
            "data": {"entries": [{"content": "a", "status": "completed"}]}}),
        ),
        usage(3_000, Some(0.5)),
        event(5_500, json!({"type": "agent_end", "reason": "completed"})),
        json!({"at": 5_600, "fact": "checkpoint", "id": "k", "call": "c", "changes": {"n_files": 1, "added": 3,
            "removed": 1, "files": [{"path": "/w/a.rs", "change": "changed", "added": 3, "removed": 1}]}}),
        user(90_000_000, "m3"),
        usage(90_000_000, None),
    ];
    facts.into_iter().map(|it| serde_json::from_value(it.clone()).unwrap_or_else(|e| panic!("{e}: {it}"))).collect()
}

/// The plan of the protocol leaves cancelled tasks out, an export does not. A turn has its own tokens, cost and time.
#[test]
fn turns_have_their_figures() {
    let entries = two_turns();
    let story = Story::new(&entries).unwrap();
    assert_eq!(story.turns.len(), 2);
    assert!(story.items.iter().any(|it| matches!(it, StoryItem::Plan(tasks) if tasks.contains(&("cancelled", "b")))));
    let page = html(&story);
    for words in [
        "<span>4.5 s</span><span>1.0k in, 30 out</span><span>$0.50</span>",
        "<dd>2,000 in, 60 out (40 thoughts)</dd>",
        "<dd>at least $0.50</dd>",
        "<code>a.rs</code></td><td class=\"count plus\">+3</td><td class=\"count minus\">−1</td><td><a href=\"#turn-1\">1</a>",
        "<p class=\"day\">Friday, 2 January 1970</p>",
        "<li class=\"cancelled\">☒ b</li>",
        "<span class=\"what\">go</span>",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert_eq!(page.matches("class=\"day\"").count(), 2, "{page}");
    let text = markdown(&story);
    for words in [
        "- `a.rs` +3 −1 (turn 1)",
        "\n## Turn 1\n\n*1970-01-01 00:00 · 4.5 s · 1,000 in, 30 out (20 thoughts) · $0.50*",
        "- [ ] b (cancelled)",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn the_story_is_whole() {
    let entries = log("t");
    let story = Story::new(&entries).unwrap();
    assert_eq!((story.head.title, story.head.model, story.head.spent.usage.total), (Some("t"), "t", 7));
    let ends: Vec<EndedCall> = story.calls().map(|it| it.end).collect();
    assert_eq!(
        ends,
        [EndedCall::Unknown, EndedCall::Succeeded, EndedCall::Failed("t"), EndedCall::Succeeded, EndedCall::Succeeded]
    );
    assert_eq!(story.calls().next().unwrap().output, "t");
    assert_eq!(story.n_prompts(), 1);
    assert!(story.items.iter().any(|it| matches!(it, StoryItem::Note(text) if text.ends_with("cancelled"))));
    assert!(Story::new(&entries[1..]).is_none());
    assert!(Story::new(&[]).is_none());
}

/// A rewound turn is gone for model, list and title, and stays in log and export.
#[test]
fn export_marks_rewound_turns() {
    let mut entries = log("t");
    let rewind = json!({"at": 5, "fact": "rewound", "to": "t"});
    entries.push(serde_json::from_value(rewind).unwrap());
    entries.extend(log("u").into_iter().skip(1).take(2));
    let story = Story::new(&entries).unwrap();
    let marks: Vec<bool> = story.marked_items().map(|(_, mark)| mark == " (rewound)").collect();
    let n = marks.len() - 2;
    assert!(n > 10 && marks[..n].iter().all(|it| *it) && !marks[n] && !marks[n + 1], "{marks:?}");
    assert_eq!((story.head.title, story.head.model, story.head.spent.usage.total), (None, "t", 7));
    let text = markdown(&story);
    assert!(text.contains("\n## Turn 1 (rewound)\n") && text.contains("\n## Turn 2\n"), "{text}");
    assert_eq!(text.matches("(rewound)").count(), n - 2 + 1, "each item but the messages, and the turn: {text}");
    let page = html(&story);
    assert!(page.contains(">Turn 1 (rewound)</a>") && page.contains(">Turn 2</a>"), "{page}");
    assert!(page.matches(" away\"").count() >= n, "{page}");
}

#[test]
fn json_has_all_facts() {
    let entries = log(EVIL);
    let value: Value =
        serde_json::from_str(&to_json(&Story::new(&entries).unwrap(), &entries, &AgentLogs::default())).unwrap();
    assert_eq!(value["format"], super::FORMAT);
    let again: Vec<Entry> = serde_json::from_value(value["entries"].clone()).unwrap();
    assert_eq!(again, entries);
}
