//! Tool calls in ACP's form: kinds, content and locations.

use agent_client_protocol_schema::v1::{Content, Diff, ToolCallContent, ToolCallLocation, ToolKind as WireKind};
use serde_json::Value;

use crate::acp::content::text_block;
use castor_base::{
    event::Location,
    path::AbsPath,
    shown_text::{show_line, show_path, show_text},
    text,
    tool::{Display, ToolKind},
};

/// Most text of a result that the client is shown, in bytes.
pub const MAX_SHOWN: usize = 64 * 1024;

/// Raw input and output beyond this many bytes are left out: the content says it already.
const MAX_RAW: usize = 64 * 1024;

pub fn kind(kind: ToolKind) -> WireKind {
    match kind {
        ToolKind::Read => WireKind::Read,
        ToolKind::Edit => WireKind::Edit,
        ToolKind::Delete => WireKind::Delete,
        ToolKind::Move => WireKind::Move,
        ToolKind::Search => WireKind::Search,
        ToolKind::Execute => WireKind::Execute,
        ToolKind::Think => WireKind::Think,
        ToolKind::Fetch => WireKind::Fetch,
        ToolKind::SwitchMode => WireKind::SwitchMode,
        ToolKind::Other => WireKind::Other,
    }
}

/// One content, or one for each file that changes.
pub fn display_content(display: &Display) -> Vec<ToolCallContent> {
    let content = match display {
        Display::Text { text } => text_content(text),
        Display::Diff { .. } | Display::Diffs { .. } => {
            let diff = |(path, before, after): (&AbsPath, Option<&str>, &str)| {
                ToolCallContent::Diff(
                    Diff::new(show_path(&path.to_string()).into_owned(), after).old_text(before.map(str::to_owned)),
                )
            };
            return display.diffs().into_iter().map(diff).collect();
        }
        Display::Terminal { text, exit } => match exit {
            Some(0) | None if text.is_empty() => text_content("(no output)"),
            Some(0) | None => output_content(text),
            Some(code) if text.is_empty() => text_content(&format!("(no output, exit code {code})")),
            Some(code) => text_content(&format!("{}\nexit code {code}", fenced(text))),
        },
    };
    vec![content]
}

/// The same of what the user is asked about: words and paths as they are shown, files as they are.
pub fn question_content(display: &Display) -> Vec<ToolCallContent> {
    match display {
        Display::Text { text } => vec![text_content(&show_text(text))],
        other => display_content(other),
    }
}

pub fn text_content(text: &str) -> ToolCallContent {
    ToolCallContent::Content(Content::new(text_block(text::head(text, MAX_SHOWN))))
}

/// What a command printed, in a fence that its own text cannot close.
pub fn output_content(text: &str) -> ToolCallContent {
    ToolCallContent::Content(Content::new(text_block(&fenced(text))))
}

fn fenced(text: &str) -> String {
    // The closing line must survive the bound of text content.
    let text = text::tail(text, MAX_SHOWN - 1024);
    let mut fence = String::from("```");
    while text.contains(&fence) {
        fence.push('`');
    }
    let gap = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}\n{text}{gap}{fence}")
}

pub fn locations(locations: &[Location]) -> Vec<ToolCallLocation> {
    locations
        .iter()
        .map(|it| ToolCallLocation::new(show_path(&it.path.to_string()).into_owned()).line(it.line))
        .collect()
}

/// A title as clients render it: a command as it is, an edit as plain text, everything else as Markdown. Only a command
/// may have lines, since all of it is what the user says yes to.
pub fn title(kind: ToolKind, title: &str) -> String {
    if kind == ToolKind::Execute {
        return show_text(title).into_owned();
    }
    let line = show_line(title.lines().next().unwrap_or_default());
    if kind == ToolKind::Edit {
        return line.into_owned();
    }
    let words = line.split(' ').map(|word| if is_markup(word) { code_span(word) } else { word.to_owned() });
    words.collect::<Vec<_>>().join(" ")
}

/// Whether Markdown would take something of `word` for its own. An underscore within a word is only that.
fn is_markup(word: &str) -> bool {
    let inner = |at: usize| {
        let before = word.get(..at).unwrap_or_default().chars().next_back();
        let after = word.get(at + 1..).unwrap_or_default().chars().next();
        before.is_some_and(char::is_alphanumeric) && after.is_some_and(char::is_alphanumeric)
    };
    word.char_indices().any(|(at, it)| match it {
        '*' | '`' | '[' | '<' | '~' | '\\' | '&' => true,
        '_' => !inner(at),
        _ => false,
    })
}

fn code_span(word: &str) -> String {
    match word.contains('`') {
        true => format!("`` {word} ``"),
        false => format!("`{word}`"),
    }
}

/// `value`, unless it is null or too large to send along.
pub fn limit_raw(value: &Value) -> Option<Value> {
    let fits = match value {
        Value::Null => false,
        Value::Object(map) => map.values().map(|it| it.as_str().map_or(64, str::len)).sum::<usize>() <= MAX_RAW,
        _ => true,
    };
    fits.then(|| value.clone())
}

#[cfg(test)]
mod tests {
    use super::title;
    use castor_base::tool::ToolKind::{Edit, Execute, Read, Search};

    #[test]
    fn titles() {
        for (kind, text, shown) in [
            (Execute, "a *b*\nc", "a *b*\nc"),
            (Edit, "Writing to __a__.py\nb", "Writing to __a__.py"),
            (Read, "ReadFile a_b.rs (lines 1-2)", "ReadFile a_b.rs (lines 1-2)"),
            (Read, "ReadFile src/__init__.py (lines 1-2)", "ReadFile `src/__init__.py` (lines 1-2)"),
            (Search, "SearchText 'a|b' within .", "SearchText 'a|b' within ."),
            (Search, "SearchText '[x](y)' within .", "SearchText `'[x](y)'` within ."),
            (Search, "SearchText '`'\n", "SearchText `` '`' ``"),
            (Search, "", ""),
            (Execute, "a\rb\n\u{202e}c", "a\\rb\n⟨U+202E⟩c"),
            (Edit, "Writing to \u{202e}a\rb", "Writing to ⟨U+202E⟩a\\rb"),
        ] {
            assert_eq!(title(kind, text), shown);
        }
    }
}
