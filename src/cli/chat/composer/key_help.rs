//! The keys of the composer, as its help shows them.

use unicode_width::UnicodeWidthStr;

use crate::cli::{
    chat::lower::Theme,
    render::{
        clip::clip,
        text::{Line, Style},
    },
};

/// Keys, and what they do.
pub const KEYS: &[(&str, &str)] = &[
    ("Enter", "send; while the agent works, steer it"),
    ("Tab", "complete; while the agent works, send after the turn"),
    ("Shift-Enter, Alt-Enter, Ctrl-J, \\ Enter", "new line"),
    ("Esc, Ctrl-C", "stop the turn, close a list"),
    ("Ctrl-O, Ctrl-T", "print all output of the last command, the last thought"),
    ("Esc Esc", "clear the text; without text, go back to an earlier message"),
    ("@", "name a file"),
    ("/", "name a command"),
    ("!", "run a shell command"),
    ("#", "keep a line in castor's memory"),
    ("Up, Down", "earlier and later messages, at the edges of the text"),
    ("Ctrl-R", "search earlier messages"),
    ("Ctrl-X Ctrl-E, Ctrl-G", "edit the text in $EDITOR"),
    ("Ctrl-V", "attach the image of the clipboard"),
    ("Alt-S, Alt-O", "sessions; model, mode and other options"),
    ("Shift-Tab", "next mode"),
    ("Ctrl-A, Ctrl-E, Alt-B, Alt-F", "start and end of the line, a word left and right"),
    ("Ctrl-W, Ctrl-U, Ctrl-K, Alt-D", "cut a word, to the start, to the end, the next word"),
    ("Ctrl-Y", "insert what was cut"),
    ("Alt-U, Alt-R", "undo and redo an edit"),
    ("Ctrl-D, Ctrl-C Ctrl-C", "leave, without text"),
];

/// The table in rows of at most `width` columns; keys stand above what they do where both have no room.
pub fn draw(width: usize, height: usize) -> Vec<Line> {
    let column = KEYS.iter().map(|it| it.0.width()).max().unwrap_or_default() + 2;
    let is_wide = width >= column + 30;
    let mut lines = Vec::new();
    for (keys, what) in KEYS {
        let mut line = Line::new(keys, Theme::ACCENT);
        let gap = if is_wide { column - keys.width() } else { 2 };
        line.push(&" ".repeat(gap), Style::PLAIN);
        line.push(what, Theme::HINT);
        lines.push(clip(&line, width));
    }
    lines.truncate(height);
    lines
}
