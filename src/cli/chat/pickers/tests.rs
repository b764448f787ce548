//! Tests of the pickers: keys and screens as data.

use serde_json::json;

use super::{
    options::{OptionPicker, OptionRow},
    rewind::{RewindPicker, RewindRow},
    sessions::{SessionPicker, SessionRow},
};
use crate::cli::chat::{
    lower::{Action, News, Panel},
    testing::check,
};
use castor_wire::acp::client::{SessionOption, SessionPage, read_value};

fn sessions() -> Box<dyn Panel> {
    let listing = json!({"sessions": [
        {"sessionId": "01a1", "cwd": "/w/parser", "title": "The slow parser", "updatedAt": "2026-11-26T09:12:00Z"},
        {"sessionId": "01a2", "cwd": "/w/parser", "title": "Tests for add()", "updatedAt": "2026-11-25T18:44:48Z"},
        {"sessionId": "01a3", "cwd": "/w/site", "title": "日本語の題名 is a title", "updatedAt": "2026-11-20T18:44:48Z"},
        {"sessionId": "01a4", "cwd": "/w/parser", "updatedAt": "2026-11-26T12:00:00Z"},
        {"cwd": "/w/parser"},
    ]});
    let page: SessionPage = read_value(listing).unwrap();
    let mut rows: Vec<SessionRow> = page.sessions.into_iter().map(SessionRow::from).collect();
    rows[0].preview = vec!["> why is it slow?".to_owned(), "The tokenizer copies each word.".to_owned()];
    let now = "2026-11-26T22:00:00[UTC]".parse().unwrap();
    Box::new(SessionPicker::new(rows, "/w/parser", now))
}

fn rewind() -> Box<dyn Panel> {
    let row = |prompt: &str, text: &str| RewindRow {
        prompt: prompt.to_owned(),
        text: text.to_owned(),
        ..RewindRow::default()
    };
    let mut rows =
        vec![row("m1", "why is add() wrong?"), row("m2", "fix it,\nwith a test"), row("m3", "what did you do?")];
    let file = |path: &str, added: u64, removed: u64| json!({"path": path, "added": added, "removed": removed});
    let listing = json!({"checkpoints": [
        {"id": "c1", "messageId": "m2", "files": [file("/w/calc.py", 1, 1), file("/w/test.py", 9, 0)]},
        {"id": "c2", "messageId": "m2", "files": [file("/w/calc.py", 2, 0)]},
        {"id": "c3", "messageId": "m9", "files": [file("/w/gone.py", 2, 0)]},
    ]});
    RewindRow::add_changes(&mut rows, &listing, "/w");
    Box::new(RewindPicker::new(rows))
}

fn options() -> Box<dyn Panel> {
    let options = json!([
        {"id": "mode", "name": "Mode", "description": "What castor does without asking", "type": "select",
         "currentValue": "default", "options": [{"value": "default", "name": "Default"},
                                                {"value": "plan", "name": "Plan", "description": "reads only"}]},
        {"id": "model", "name": "Model", "type": "select", "currentValue": "flash", "options": [
            {"group": "g", "name": "Google", "options": [{"value": "flash", "name": "Flash"}, {"value": "pro", "name": "Pro"}]},
            {"group": "l", "name": "Local", "options": [{"value": "gemma", "name": "Gemma"}]}]},
        {"id": "show", "name": "Show thoughts", "type": "boolean", "currentValue": true},
        {"id": "odd", "currentValue": 3},
    ]);
    let options: Vec<SessionOption> = read_value(options).unwrap();
    Box::new(OptionPicker::new(options.iter().filter_map(OptionRow::of).collect()))
}

/// What a search in texts finds: one session has the word, and one that is in another folder.
fn answer_search(action: &Action) -> Option<News> {
    let Action::SearchSessions { query, ids } = action else { return None };
    let says = |(id, line): (&str, &str)| (id.to_owned(), line.to_owned());
    let lines = [("01a2", "and a borrow checker error"), ("01a3", "the borrow checker")].map(says);
    let lines = lines.into_iter().filter(|it| query == "borrow" && ids.contains(&it.0)).collect();
    Some(News::Found { query: query.clone(), lines })
}

#[test]
fn keys_give_screens_and_actions() {
    let make = |scenario: &str| match scenario.split(' ').next() {
        Some("sessions") => sessions(),
        Some("rewind") => rewind(),
        _ => options(),
    };
    check("src/cli/chat/pickers/scenarios.txt", make, answer_search);
}
