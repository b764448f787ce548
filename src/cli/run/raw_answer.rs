//! The answer as the model wrote it, for a pipe, a file or the JSON object: no rendering, and only what counts.

use std::borrow::Cow;

use super::text_buffer::TextBuffer;
use crate::cli::terminal_text::Cleaner;

/// Each message starts on a line of its own.
#[derive(Debug)]
pub struct RawAnswer {
    buffer: TextBuffer,
    /// Text may be taken back until the agent continues: it waits until then.
    pub may_discard: bool,
    /// Takes terminal controls out: who reads a pipe may show it on a terminal. `None`: they stay.
    cleaner: Option<Cleaner>,
    /// What the last text belonged to; a change starts a new line.
    message: Option<String>,
    at_line_start: bool,
}

impl RawAnswer {
    /// `is_raw`: terminal controls stay in it.
    pub fn new(is_raw: bool) -> Self {
        let cleaner = (!is_raw).then(Cleaner::default);
        Self { buffer: TextBuffer::default(), may_discard: false, cleaner, message: None, at_line_start: true }
    }

    /// Takes a piece; gives what can be written now.
    pub fn push(&mut self, chunk: &str, message: Option<&str>, is_text: bool) -> String {
        let chunk = &self.clean(chunk);
        let is_other = self.message.as_deref().is_some_and(|it| message.is_some_and(|new| new != it));
        self.message = message.or(self.message.as_deref()).map(str::to_owned).or(Some(String::new()));
        let mut res = String::new();
        if is_other {
            self.break_line(&mut res);
        }
        if is_text && !self.may_discard {
            self.append(chunk, &mut res);
        } else {
            self.buffer.push(message, chunk);
        }
        res
    }

    /// A piece of the answer, as it may be shown.
    pub fn clean<'a>(&mut self, chunk: &'a str) -> Cow<'a, str> {
        self.cleaner.as_mut().map_or(Cow::Borrowed(chunk), |it| Cow::Owned(it.clean_answer(chunk)))
    }

    /// What follows is another message. Gives the line end that is missing.
    pub fn end_message(&mut self) -> String {
        let mut res = String::new();
        if self.message.take().is_some() {
            self.break_line(&mut res);
        }
        res
    }

    /// What was held counts now.
    pub fn confirm(&mut self) -> String {
        let mut res = String::new();
        for text in self.buffer.take() {
            self.break_line(&mut res);
            self.append(&text, &mut res);
        }
        res
    }

    /// Forgets messages that do not count any more.
    pub fn discard(&mut self, messages: &[&str]) {
        self.buffer.discard(messages);
    }

    /// The line end after everything.
    pub fn end(&mut self) -> &'static str {
        if std::mem::replace(&mut self.at_line_start, true) { "" } else { "\n" }
    }

    /// Everything that was held, each message on a line of its own.
    pub fn take_all(&mut self) -> String {
        let mut res = String::new();
        for text in self.buffer.take() {
            if !res.is_empty() && !res.ends_with('\n') {
                res.push('\n');
            }
            res += &text;
        }
        res
    }

    /// The last message of what was held, if it says something; nothing stays held.
    pub fn take_last(&mut self) -> String {
        self.buffer.take().filter(|it| !it.trim().is_empty()).last().unwrap_or_default()
    }

    /// Holds this text in place of what was held.
    pub fn hold(&mut self, text: &str) {
        self.buffer = TextBuffer::default();
        self.buffer.push(None, text);
    }

    fn break_line(&mut self, out: &mut String) {
        self.buffer.start_piece();
        if !self.at_line_start {
            self.append("\n", out);
        }
    }

    fn append(&mut self, text: &str, out: &mut String) {
        if let Some(last) = text.chars().next_back() {
            self.at_line_start = last == '\n';
            out.push_str(text);
        }
    }
}
