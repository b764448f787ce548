//! The replay of a session that is opened again: only its last screens are shown, however long it is.

use std::{collections::VecDeque, time::Duration};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::state::{Chat, frame::prompt_lines};
use crate::cli::render::text::{Line, Style};
use castor_base::{ids::SessionId, log::Tuning, mode::Mode};
use castor_store::sessions::SessionStore;
use castor_wire::acp::{
    client::{ClientEvent, SessionEvent, Voice, is_user_words},
    options::ChosenOptions,
    updates::{ClientProfile, SessionView},
};

/// Updates that are kept: more than any terminal shows.
const MAX_KEPT: usize = 1_500;
/// Bytes at the end of a log that are read before the agent is there.
const MAX_LOG: u64 = 512 << 10;
/// Screens that are shown.
const SCREENS: usize = 2;

/// The end of what is replayed, as it came.
#[derive(Debug, Default)]
pub struct Replay {
    kept: VecDeque<Box<RawValue>>,
    /// Messages of the user's, all of them.
    prompts: u64,
    /// What is before that was not looked at.
    is_part: bool,
}

impl Replay {
    /// The end of the log of one of castor's own sessions: a long one takes the agent seconds to read.
    /// `None`: there is none, or nothing that could be shown.
    pub fn of_log(store: &SessionStore, id: &SessionId) -> Option<Self> {
        let size = store.log_len(id)?;
        let start = size.saturating_sub(MAX_LOG);
        // The first line is in part, and passed over.
        let (entries, _) = store.read_part(id, start..size).ok()?;
        let chosen = ChosenOptions {
            mode: Mode::default(),
            model: String::new(),
            tuning: Tuning::default(),
            limits: None,
            agent: None,
        };
        let mut lines = Vec::new();
        SessionView::new(id.clone(), ClientProfile::default(), chosen).replay(&entries, &[], &mut lines);
        let mut res = Self { is_part: start > 0, ..Self::default() };
        for it in lines.split(|it| *it == b'\n').filter(|it| !it.is_empty()) {
            if let Ok(ReplayedLine { params }) = serde_json::from_slice(it) {
                res.push(params);
            }
        }
        (res.prompts > 0).then_some(res)
    }

    pub fn push(&mut self, params: Box<RawValue>) {
        self.prompts += u64::from(is_user_words(&params));
        if self.kept.len() == MAX_KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(params);
    }

    /// Shows the end of it in the chat. `size`: columns and rows.
    pub fn show(mut self, chat: &mut Chat, now: Duration, size: (usize, usize)) {
        // It begins with a message of the user's, if it can.
        let first = self.kept.iter().position(|it| is_user_words(it)).unwrap_or_default();
        self.kept.drain(..first);
        chat.set_width(size.0);
        let (mut message, mut shown) = (String::new(), 0);
        for it in std::mem::take(&mut self.kept) {
            let SessionEvent { session, event, .. } = SessionEvent::read(&it);
            if let ClientEvent::Chunk(Voice::User, it) = &event {
                message += it.text().unwrap_or_default();
                shown += 1;
                continue;
            }
            print_prompt(chat, &mut message, now, size.0);
            chat.update(&session, &event, now);
        }
        print_prompt(chat, &mut message, now, size.0);
        chat.view.end(now);
        chat.status.turns = self.prompts;
        let cut = chat.view.keep_last_finished(size.1 * SCREENS);
        let above = self.prompts.saturating_sub(shown);
        if above > 0 || cut > 0 || self.is_part {
            let words = match above {
                _ if self.is_part => "earlier messages are in the session's log: castor sessions show".to_owned(),
                0 => "earlier lines are in the session's log: castor sessions show".to_owned(),
                n => format!("{n} earlier messages are in the session's log: castor sessions show"),
            };
            chat.view.put_first(Line::new(&format!("… {words}"), Style::DIM));
        }
    }
}

/// A notification of the agent's, as it would send it.
#[derive(Deserialize)]
struct ReplayedLine {
    params: Box<RawValue>,
}

/// What the user said, once something follows it.
fn print_prompt(chat: &mut Chat, message: &mut String, now: Duration, width: usize) {
    if message.is_empty() {
        return;
    }
    chat.view.end(now);
    chat.view.add_block(prompt_lines(message, width, "› "));
    message.clear();
}
