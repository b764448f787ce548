//! `castor sessions list`: its table on terminals of several widths, and what it finds.
#![allow(clippy::disallowed_methods)]

use std::fs;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::{Bed, CommandLook, bed};
use castor_base::path::AbsPath;

const NOW: u64 = 1_700_000_000_000;

struct Session {
    id: &'static str,
    cwd: AbsPath,
    ago_minutes: u64,
    model: &'static str,
    title: &'static str,
    cost: Option<f64>,
    prompts: &'static [&'static str],
}

fn write(bed: &Bed, it: &Session) {
    let event = |mut kind: Value| {
        for (key, value) in [("id", json!("s-0")), ("streamId", json!("s")), ("timestamp", json!(2))] {
            kind[key] = value;
        }
        json!({"at": 2, "fact": "event", "event": kind})
    };
    let mut lines = vec![
        json!({"at": 1, "fact": "created", "version": 1, "castor": "0", "session": it.id, "cwd": it.cwd, "roots": [],
            "mode": "default", "model": "auto"}),
        event(json!({"type": "session_update", "title": it.title})),
    ];
    for (n, text) in it.prompts.iter().enumerate() {
        let content = json!([{"type": "text", "text": text}]);
        lines.push(event(json!({"type": "message", "role": "user", "messageId": format!("m{n}"), "content": content})));
    }
    lines.push(event(json!({"type": "usage", "model": it.model, "input": 1, "output": 1, "cached": 0, "thought": 0,
        "total": 2, "size": 9, "sessionCost": it.cost})));
    let path = bed.root.join(format!("home/sessions/{}.jsonl", it.id));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, lines.iter().map(|it| format!("{it}\n")).collect::<String>()).unwrap();
    let modified = std::time::UNIX_EPOCH + std::time::Duration::from_millis(NOW - it.ago_minutes * 60_000);
    fs::File::options().append(true).open(&path).unwrap().set_modified(modified).unwrap();
}

/// Three sessions of a day in the folder, and one of another folder.
fn filled() -> Bed {
    let mut bed = bed();
    let here = bed.cwd();
    let session = |id, ago_minutes, model, title| {
        let prompts: &[&str] = &["why is add() wrong?", "and now the parser"];
        Session { id, cwd: here.clone(), ago_minutes, model, title, cost: None, prompts }
    };
    let first = session(
        "01a20986-9c3b-714f-a2a1-7c2e1df75157",
        3,
        "gemini-2.5-flash",
        "Fix **add()** in the calculator, then test it",
    );
    write(&bed, &Session { cost: Some(0.0213), ..first });
    write(
        &bed,
        &session(
            "01a20986-1111-714f-a2a1-000000f85157",
            150,
            "anthropic/claude-sonnet-4.5-2026",
            "日本語のタイトルは長いので切る必要がある場合があります",
        ),
    );
    let evil = session("01a20986-2222-714f-a2a1-00000000abcd", 60 * 24 * 40, "demo", "Evil\u{1b}[2J \u{202e}title");
    write(&bed, &Session { prompts: &["x"], cost: Some(1.5), ..evil });
    let other = session("01a20986-3333-714f-a2a1-00000000ffff", 60 * 30, "demo", "Elsewhere");
    write(&bed, &Session { cwd: bed.root.join("projects/of/somebody/with/a/long/path"), ..other });
    bed.look = CommandLook { home: Some(bed.root.clone()), ..CommandLook::default() };
    bed
}

fn check(width: usize, color: bool, words: &[&str], expected: Expect) {
    let mut bed = filled();
    (bed.look.width, bed.look.color) = (width, color);
    let table = bed.castor(&[&["list"], words].concat()).unwrap().replace('\u{1b}', "^");
    expected.assert_eq(&table);
}

#[test]
fn the_table_fits_the_terminal() {
    check(
        40,
        false,
        &[],
        expect![[r#"
            ID     WHEN        TITLE
            75157  3 min ago   Fix add() in the cal…
            85157  2 h ago     日本語のタイトルは長…
            0abcd  2023-10-05  Evil⟨U+001B⟩[2J ⟨U+2…
        "#]],
    );
    check(
        80,
        false,
        &[],
        expect![[r#"
            ID     WHEN           COST  MODEL               TURNS  TITLE
            75157  3 min ago   $0.0213  gemini-2.5-flash        2  Fix add() in the calcula…
            85157  2 h ago           -  anthropic/claude-…      2  日本語のタイトルは長いの…
            0abcd  2023-10-05    $1.50  demo                    1  Evil⟨U+001B⟩[2J ⟨U+202E⟩…
        "#]],
    );
    check(
        120,
        false,
        &[],
        expect![[r#"
            ID     WHEN           COST  MODEL                     TURNS  TITLE
            75157  3 min ago   $0.0213  gemini-2.5-flash              2  Fix add() in the calculator, then test it
            85157  2 h ago           -  anthropic/claude-sonnet…      2  日本語のタイトルは長いので切る必要がある場合があります
            0abcd  2023-10-05    $1.50  demo                          1  Evil⟨U+001B⟩[2J ⟨U+202E⟩title
        "#]],
    );
    check(
        120,
        false,
        &["--all"],
        expect![[r#"
            ID     WHEN        FOLDER                               COST  MODEL                     TURNS  TITLE
            75157  3 min ago   ~/w                               $0.0213  gemini-2.5-flash              2  Fix add() in the calcula…
            85157  2 h ago     ~/w                                     -  anthropic/claude-sonnet…      2  日本語のタイトルは長いの…
            0ffff  1 day ago   …ts/of/somebody/with/a/long/path        -  demo                          2  Elsewhere
            0abcd  2023-10-05  ~/w                                 $1.50  demo                          1  Evil⟨U+001B⟩[2J ⟨U+202E⟩…
        "#]],
    );
    check(
        60,
        true,
        &["-n", "1"],
        expect![[r#"
            ^[1mID^[0m     ^[1mWHEN^[0m          ^[1mCOST^[0m  ^[1mTITLE^[0m
            ^[36m75157^[0m  ^[2m3 min ago^[0m  $0.0213  Fix add() in the calculator, the…
            ^[2m… 2 more: -n 0 shows all^[0m
        "#]],
    );
}

#[test]
fn search_looks_into_titles_and_prompts() {
    check(
        80,
        false,
        &["--search", "CALCULATOR"],
        expect![[r#"
            ID     WHEN          COST  MODEL             TURNS  TITLE
            75157  3 min ago  $0.0213  gemini-2.5-flash      2  Fix add() in the calculator…
        "#]],
    );
    check(
        60,
        false,
        &["--search", "the parser", "-n", "1"],
        expect![[r#"
            ID     WHEN          COST  TITLE
            75157  3 min ago  $0.0213  Fix add() in the calculator, the…
            … 1 more: -n 0 shows all
        "#]],
    );
    let said = filled().castor(&["list", "--search", "no such words"]).unwrap();
    assert!(said.starts_with("No session of ") && said.contains("says \"no such words\""), "{said}");
}

#[test]
fn twenty_are_shown_unless_more_are_asked_for() {
    let bed = filled();
    for n in 0..22 {
        bed.log(&format!("session-of-old-{n:02}"), &bed.cwd());
    }
    let lines = |words: &[&str]| bed.castor(words).unwrap().lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(&["list"]).len(), 22);
    assert_eq!(lines(&["list"])[21], "… 5 more: -n 0 shows all");
    assert_eq!(lines(&["list", "-n", "0"]).len(), 26);
    assert_eq!(lines(&["list", "-n", "3"])[4], "… 22 more: -n 0 shows all");
    let json = |words: &[&str]| serde_json::from_str::<Value>(&bed.castor(words).unwrap()).unwrap();
    assert_eq!(json(&["list", "--json"]).as_array().unwrap().len(), 25);
    let all = json(&["list", "--json", "--search", "calculator"]);
    assert_eq!((&all[0]["shortId"], &all[0]["turns"], &all[0]["cost"]), (&json!("75157"), &json!(2), &json!(0.0213)));
    assert_eq!((&all[0]["model"], &all[0]["turnsAreAll"]), (&json!("gemini-2.5-flash"), &json!(true)));
}

/// What the table shows is enough for each verb that takes an id.
#[test]
fn short_ids_name_their_sessions() {
    let bed = filled();
    let json: Value = serde_json::from_str(&bed.castor(&["list", "--all", "--json"]).unwrap()).unwrap();
    for it in json.as_array().unwrap() {
        let shown = bed.castor(&["show", it["shortId"].as_str().unwrap()]).unwrap();
        assert!(shown.contains(it["sessionId"].as_str().unwrap()), "{shown}");
    }
    let (why, code) = bed.castor(&["show", "01a20986"]).unwrap_err();
    assert_eq!(code, 42);
    expect![[r#"
        01a20986 names 4 sessions; use one of these ids:
          75157  3 min ago   Fix add() in the calculator, then test it
          85157  2 h ago     日本語のタイトルは長いので切る必要がある場合があります
          0ffff  1 day ago   Elsewhere
          0abcd  2023-10-05  Evil⟨U+001B⟩[2J ⟨U+202E⟩title"#]]
    .assert_eq(&why);
    assert_eq!(
        bed.castor(&["delete", "f85157", "--yes"]).unwrap(),
        "Removed session 01a20986-1111-714f-a2a1-000000f85157\n"
    );
}
