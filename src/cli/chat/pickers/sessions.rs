//! Picker of sessions: by day and folder, with a search and a preview.

use std::cell::Cell;

use jiff::{Timestamp, Zoned};

use super::list::{PickAnswer, PickList, PickRow};
use crate::cli::chat::lower::{Action, Drawn, Key, News, Panel, Theme};
use castor_wire::acp::client::AgentSession;

const KEYS: &str = "Enter opens · type to search titles and texts · Tab this folder or all · Esc closes";

/// Characters that are looked for in texts: with fewer nearly each would have them.
const MIN_QUERY: usize = 3;

/// A session, as the agent lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionRow {
    pub id: String,
    pub title: String,
    pub folder: String,
    pub changed: Option<Timestamp>,
    /// Its first and last messages, where the chat knows them.
    pub preview: Vec<String>,
}

impl From<AgentSession> for SessionRow {
    fn from(it: AgentSession) -> Self {
        Self {
            id: it.session_id,
            title: it.title.unwrap_or_default(),
            folder: it.cwd.unwrap_or_default(),
            changed: it.updated_at.and_then(|it| it.parse().ok()),
            preview: Vec::new(),
        }
    }
}

#[derive(Debug)]
pub struct SessionPicker {
    sessions: Vec<SessionRow>,
    /// The chat's own folder.
    folder: String,
    now: Zoned,
    is_all: bool,
    list: PickList,
    page: Cell<usize>,
}

impl SessionPicker {
    /// The newest first. `now` has the time zone in which days are counted.
    pub fn new(mut sessions: Vec<SessionRow>, folder: &str, now: Zoned) -> Self {
        sessions.sort_by_key(|it| std::cmp::Reverse(it.changed));
        let is_all = !sessions.iter().any(|it| it.folder == folder);
        let mut res =
            Self { sessions, folder: folder.to_owned(), now, is_all, list: PickList::default(), page: Cell::new(10) };
        res.fill();
        res
    }

    fn listed_sessions(&self) -> impl Iterator<Item = &SessionRow> {
        self.sessions.iter().filter(|it| self.is_all || it.folder == self.folder)
    }

    fn fill(&mut self) {
        let rows = self.listed_sessions().map(|it| self.row(it)).collect();
        let title = if self.is_all { "all sessions" } else { "sessions of this folder" };
        self.list = PickList::new(title, rows).with_search();
    }

    fn row(&self, it: &SessionRow) -> PickRow {
        let changed = it.changed.map(|it| it.to_zoned(self.now.time_zone().clone()));
        let day = changed.as_ref().map_or_else(|| "at some time".to_owned(), |it| day(it, &self.now));
        let title = if it.title.trim().is_empty() { "without a title" } else { &it.title };
        let mut preview = vec![title.to_owned(), format!("in {}", it.folder), format!("id {}", it.id)];
        preview.extend(it.preview.iter().cloned());
        PickRow {
            heading: if self.is_all { format!("{day} · {}", it.folder) } else { day },
            label: title.to_owned(),
            detail: changed.map(|it| it.strftime("%H:%M").to_string()).unwrap_or_default(),
            words: format!("{} {}", it.id, it.preview.join(" ")),
            preview,
            found_line: None,
        }
    }
}

fn day(then: &Zoned, now: &Zoned) -> String {
    let is_yesterday = now.date().yesterday().is_ok_and(|it| it == then.date());
    match then.date() == now.date() {
        true => "today".to_owned(),
        false if is_yesterday => "yesterday".to_owned(),
        false => then.strftime("%A, %-d %B %Y").to_string(),
    }
}

impl Panel for SessionPicker {
    fn key(&mut self, key: &Key, out: &mut Vec<Action>) {
        let before = self.list.query().to_owned();
        match self.list.key(key, self.page.get()) {
            PickAnswer::Chosen(at) => {
                let id = self.listed_sessions().nth(at).map(|it| it.id.clone());
                out.extend(id.map(|id| Action::OpenSession { id }));
                out.push(Action::Close);
            }
            PickAnswer::Closed => out.push(Action::Close),
            PickAnswer::Other if *key == Key::Tab => {
                self.is_all = !self.is_all;
                self.fill();
            }
            PickAnswer::Open | PickAnswer::Other => (),
        }
        let query = self.list.query();
        if query != before && query.trim().chars().count() >= MIN_QUERY {
            let ids = self.listed_sessions().map(|it| it.id.clone()).collect();
            out.push(Action::SearchSessions { query: query.to_owned(), ids });
        }
    }

    fn tell(&mut self, news: &News, _out: &mut Vec<Action>) {
        let News::Found { query, lines } = news else { return };
        let row =
            |(id, line): &(String, String)| Some((self.listed_sessions().position(|it| it.id == *id)?, line.clone()));
        let rows = lines.iter().filter_map(row).collect();
        self.list.add_found(query, rows);
    }

    fn draw(&self, width: u16, height: u16, _theme: &Theme) -> Drawn {
        self.page.set(usize::from(height).saturating_sub(3).max(1));
        self.list.draw(width, height, KEYS)
    }
}
