//! Reads what is made of lines: diffs, Markdown, and the texts of shells that end with a word.

use super::{
    scan::{LineScan, ReadMode, ReadState},
    token::CodeToken,
};

const DIFF_HEADS: &[&str] = &["--- ", "+++ ", "diff ", "index ", "Index: ", "new file ", "deleted file ", "rename "];

pub fn read_diff(scan: &mut LineScan) {
    let line = scan.rest();
    let token = match line.chars().next() {
        _ if DIFF_HEADS.iter().any(|it| line.starts_with(it)) => CodeToken::Heading,
        Some('+') => CodeToken::Inserted,
        Some('-') => CodeToken::Deleted,
        Some('@') => CodeToken::Key,
        _ => CodeToken::Plain,
    };
    scan.take_rest(token);
}

/// The word that ends the text stands alone on its line.
pub fn read_heredoc(scan: &mut LineScan, state: &mut ReadState, word: &str) {
    let line = scan.rest().trim();
    let is_end = line.strip_prefix(word).is_some_and(|it| it.is_empty() || it == ";");
    if is_end {
        state.mode = ReadMode::Code;
    }
    scan.take_rest(if is_end { CodeToken::Plain } else { CodeToken::Text });
}

pub fn read_markdown(scan: &mut LineScan, state: &mut ReadState) {
    let line = scan.rest();
    let text = line.trim_start();
    let fence = text.chars().next().filter(|it| text.starts_with("```") || (*it == '~' && text.starts_with("~~~")));
    let heading = text.trim_start_matches('#');
    let level = text.len() - heading.len();
    if let Some(it) = fence {
        state.mode = ReadMode::Fence(it);
        return scan.take_rest(CodeToken::Text);
    }
    if (1..=6).contains(&level) && heading.starts_with(' ') {
        return scan.take_rest(CodeToken::Heading);
    }
    while let Some(at) = scan.rest().find('`') {
        let behind = scan.rest().get(at + 1..).unwrap_or_default();
        let Some(len) = behind.find('`') else { break };
        scan.take(at, CodeToken::Plain);
        scan.take(len + 2, CodeToken::Text);
    }
    scan.take_rest(CodeToken::Plain);
}

/// Code in Markdown, up to the line that ends it.
pub fn read_fence(scan: &mut LineScan, state: &mut ReadState, fence: char) {
    let text = scan.rest().trim();
    if text.len() >= 3 && text.chars().all(|it| it == fence) {
        state.mode = ReadMode::Code;
    }
    scan.take_rest(CodeToken::Text);
}
