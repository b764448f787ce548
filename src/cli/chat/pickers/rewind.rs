//! Picker of messages to go back to: what each of them changed; then files, conversation or both.

use std::cell::Cell;

use serde_json::Value;

use super::list::{PickAnswer, PickList, PickRow};
use crate::cli::{
    chat::lower::{Action, Drawn, Key, Panel, RewindWhat, Theme},
    render::words::count,
};

const KEYS: &str = "Enter goes back to before it · r takes the last rewind back · Esc closes";
const WHAT_KEYS: &str = "b, f, c or Enter · Esc goes back";
/// Files that a preview names.
const MAX_FILES: usize = 20;
const WHAT: &[(char, RewindWhat, &str)] = &[
    ('b', RewindWhat::Both, "files and conversation"),
    ('f', RewindWhat::Files, "files; the conversation stays"),
    ('c', RewindWhat::Conversation, "conversation; files stay"),
];

/// A message of the user's, and what its turn changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RewindRow {
    /// The message's id.
    pub prompt: String,
    pub text: String,
    pub files: Vec<ChangedLines>,
}

/// A file with the lines that were added and removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedLines {
    pub path: String,
    pub added: u64,
    pub removed: u64,
}

impl RewindRow {
    /// From the answer to `_castor/session/events`: messages of the user's, the oldest first.
    pub fn read_all(answer: &Value) -> Vec<Self> {
        let events = answer.get("events").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        events
            .iter()
            .filter(|it| it.get("role").and_then(Value::as_str) == Some("user"))
            .filter_map(Self::read)
            .collect()
    }

    fn read(event: &Value) -> Option<Self> {
        let parts = event.get("content")?.as_array()?;
        let text: Vec<&str> = parts.iter().filter_map(|it| it.get("text")?.as_str()).collect();
        let prompt = event.get("messageId")?.as_str()?.to_owned();
        Some(Self { prompt, text: text.join("\n"), files: Vec::new() })
    }

    /// Adds what `_castor/session/checkpoints` lists to the messages that it belongs to. Paths are shown as they are seen
    /// from `cwd`.
    pub fn add_changes(rows: &mut [Self], listing: &Value, cwd: &str) {
        let all = listing.get("checkpoints").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for it in all {
            let message = it.get("messageId").and_then(Value::as_str);
            let Some(row) = rows.iter_mut().find(|row| Some(row.prompt.as_str()) == message) else { continue };
            for file in it.get("files").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default() {
                row.add_file(file, cwd);
            }
        }
    }

    fn add_file(&mut self, file: &Value, cwd: &str) {
        let Some(path) = file.get("path").and_then(Value::as_str) else { return };
        let path = path.strip_prefix(cwd).and_then(|it| it.strip_prefix('/')).unwrap_or(path);
        let number = |key: &str| file.get(key).and_then(Value::as_u64).unwrap_or_default();
        let (added, removed) = (number("added"), number("removed"));
        match self.files.iter_mut().find(|it| it.path == path) {
            Some(it) => (it.added, it.removed) = (it.added + added, it.removed + removed),
            None => self.files.push(ChangedLines { path: path.to_owned(), added, removed }),
        }
    }

    fn changes(&self) -> String {
        let (added, removed) = self.files.iter().fold((0, 0), |sum, it| (sum.0 + it.added, sum.1 + it.removed));
        match self.files.len() {
            0 => String::new(),
            files => format!("{} +{added} −{removed}", count(files as u64, "file", "files")),
        }
    }
}

#[derive(Debug)]
pub struct RewindPicker {
    rows: Vec<RewindRow>,
    /// The message that is chosen, before what to take back is.
    chosen: Option<usize>,
    list: PickList,
    page: Cell<usize>,
}

impl RewindPicker {
    /// The oldest first. The newest is highlighted.
    pub fn new(rows: Vec<RewindRow>) -> Self {
        let mut res = Self { rows, chosen: None, list: PickList::default(), page: Cell::new(10) };
        res.show_messages(usize::MAX);
        res
    }

    fn show_messages(&mut self, at: usize) {
        let rows = self.rows.iter().map(|it| PickRow {
            label: it.text.split_whitespace().collect::<Vec<_>>().join(" "),
            detail: it.changes(),
            preview: preview(&it.files),
            ..PickRow::default()
        });
        self.list = PickList::new("go back to before a message", rows.collect()).highlighting(at);
        self.chosen = None;
    }

    fn show_what(&mut self, at: usize) {
        let Some(row) = self.rows.get(at) else { return };
        let rows =
            WHAT.iter().map(|(letter, _, words)| PickRow { label: format!("{letter}  {words}"), ..PickRow::default() });
        let text: String = row.text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect();
        // Without changes only the conversation can go back.
        let first = if row.files.is_empty() { WHAT.len() - 1 } else { 0 };
        self.list = PickList::new(&format!("back to before “{text}”"), rows.collect()).highlighting(first);
        self.chosen = Some(at);
    }

    fn rewind(&self, what: RewindWhat, out: &mut Vec<Action>) {
        if let Some(row) = self.chosen.and_then(|it| self.rows.get(it)) {
            out.push(Action::Rewind { prompt: row.prompt.clone(), what });
            out.push(Action::Close);
        }
    }

    /// Keys that are not the list's.
    fn letter(&self, key: &Key, out: &mut Vec<Action>) {
        match (key, self.chosen) {
            (Key::Char('r'), None) => out.extend([Action::Redo, Action::Close]),
            (Key::Char(letter), Some(_)) => {
                if let Some((_, what, _)) = WHAT.iter().find(|it| it.0 == *letter) {
                    self.rewind(*what, out);
                }
            }
            _ => (),
        }
    }
}

fn preview(files: &[ChangedLines]) -> Vec<String> {
    let mut res: Vec<String> =
        files.iter().take(MAX_FILES).map(|it| format!("{} +{} −{}", it.path, it.added, it.removed)).collect();
    if files.len() > MAX_FILES {
        res.push(format!("and {} more", files.len() - MAX_FILES));
    }
    res
}

impl Panel for RewindPicker {
    fn key(&mut self, key: &Key, out: &mut Vec<Action>) {
        match (self.list.key(key, self.page.get()), self.chosen) {
            (PickAnswer::Chosen(at), None) => self.show_what(at),
            (PickAnswer::Chosen(at), Some(_)) => {
                if let Some((_, what, _)) = WHAT.get(at) {
                    self.rewind(*what, out);
                }
            }
            (PickAnswer::Closed, Some(at)) => self.show_messages(at),
            (PickAnswer::Closed, None) => out.push(Action::Close),
            (PickAnswer::Other, _) => self.letter(key, out),
            (PickAnswer::Open, _) => (),
        }
    }

    fn draw(&self, width: u16, height: u16, _theme: &Theme) -> Drawn {
        self.page.set(usize::from(height).saturating_sub(3).max(1));
        self.list.draw(width, height, if self.chosen.is_some() { WHAT_KEYS } else { KEYS })
    }
}
