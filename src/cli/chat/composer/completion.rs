//! Completion: files behind `@`, found by fuzzy search, and commands behind `/`.

use nucleo_matcher::{
    Config, Matcher, Utf32Str,
    pattern::{AtomKind, CaseMatching, Normalization, Pattern},
};

use crate::cli::{
    chat::lower::{SlashCommand, Theme},
    render::{
        clip::clip,
        text::{Line, Style},
    },
};

/// Candidates that one can walk through, and rows for them.
const MAX_MATCHES: usize = 50;
const MAX_ROWS: usize = 8;
/// A longer name is searched by its beginning.
const MAX_QUERY: usize = 200;

/// The word at the cursor that can be completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// What stands behind the `@`, without escapes, and where the `@` stands.
    File {
        at: usize,
        query: String,
    },
    Command {
        query: String,
    },
}

impl Token {
    /// `before` is the text up to the cursor.
    pub fn find(before: &str) -> Option<Self> {
        if let Some(query) = before.strip_prefix('/')
            && query.len() <= MAX_QUERY
            && !query.contains(|it: char| it.is_whitespace() || it == '/')
        {
            return Some(Self::Command { query: query.to_owned() });
        }
        let at = before.rfind('@')?;
        let begins_word = before.get(..at)?.chars().next_back();
        let query = unescape(before.get(at + 1..)?)?;
        let is_word = begins_word.is_none_or(|it| it.is_whitespace() || "([{<\"'`".contains(it));
        (is_word && query.len() <= MAX_QUERY).then_some(Self::File { at, query })
    }

    pub fn query(&self) -> &str {
        let (Self::File { query, .. } | Self::Command { query }) = self;
        query
    }
}

/// `None`: a blank that is not escaped ends the word.
fn unescape(text: &str) -> Option<String> {
    let (mut res, mut chars) = (String::new(), text.chars());
    while let Some(it) = chars.next() {
        match it {
            '\\' => res.extend(chars.next()),
            it if it.is_whitespace() => return None,
            it => res.push(it),
        }
    }
    Some(res)
}

/// A path as it stands behind an `@`.
pub fn escape(path: &str) -> String {
    let mut res = String::with_capacity(path.len());
    for it in path.chars() {
        if it.is_whitespace() || it == '\\' {
            res.push('\\');
        }
        res.push(it);
    }
    res
}

/// What fits the token, the best first.
#[derive(Debug)]
pub struct Completion {
    pub token: Token,
    matches: Vec<SlashCommand>,
    at: usize,
}

impl Completion {
    /// `None`: nothing fits.
    pub fn files(token: Token, paths: &[String]) -> Option<Self> {
        let named = |it: &String| SlashCommand { name: it.clone(), ..SlashCommand::default() };
        let matches = best(token.query(), paths, String::as_str).into_iter().map(named).collect();
        Self::of(token, matches)
    }

    pub fn commands(token: Token, all: &[SlashCommand]) -> Option<Self> {
        let mut matches: Vec<SlashCommand> =
            best(token.query(), all, |it| it.name.as_str()).into_iter().cloned().collect();
        // Who types the beginning of a name means it.
        matches.sort_by_key(|it| !it.name.starts_with(token.query()));
        Self::of(token, matches)
    }

    fn of(token: Token, matches: Vec<SlashCommand>) -> Option<Self> {
        (!matches.is_empty()).then_some(Self { token, matches, at: 0 })
    }

    pub fn step(&mut self, down: bool) {
        let count = self.matches.len().max(1);
        self.at = if down { (self.at + 1) % count } else { (self.at + count - 1) % count };
    }

    pub fn chosen(&self) -> Option<&SlashCommand> {
        self.matches.get(self.at)
    }

    /// One row for each candidate around the chosen one.
    pub fn draw(&self, width: usize, height: usize) -> Vec<Line> {
        let rows = height.min(MAX_ROWS);
        let first = (self.at + 1).saturating_sub(rows);
        let is_file = matches!(self.token, Token::File { .. });
        let shown = self.matches.iter().enumerate().skip(first).take(rows);
        let names = self.matches.iter().skip(first).take(rows).map(|it| it.name.chars().count());
        let column = names.max().unwrap_or_default().min(width / 2);
        let row = |(at, it): (usize, &SlashCommand)| {
            let is_chosen = at == self.at;
            let mut line = Line::new(if is_chosen { "› " } else { "  " }, Theme::ACCENT);
            let sign = if is_file { "" } else { "/" };
            line.push(&format!("{sign}{}", it.name), if is_chosen { Style::BOLD } else { Style::PLAIN });
            if let Some(hint) = &it.hint {
                line.push(&format!(" {hint}"), Theme::HINT);
            }
            if !it.description.is_empty() {
                let gap = (column + 3).saturating_sub(line.width().saturating_sub(2)).max(2);
                line.push(&" ".repeat(gap), Style::PLAIN);
                line.push(&it.description, Theme::HINT);
            }
            clip(&line, width)
        };
        shown.map(row).collect()
    }
}

/// Fuzzy search: letters in their order, better at the beginnings of words. An empty query leaves the order.
pub fn best<'a, T>(query: &str, all: &'a [T], text: impl Fn(&T) -> &str) -> Vec<&'a T> {
    if query.is_empty() {
        return all.iter().take(MAX_MATCHES).collect();
    }
    let pattern = Pattern::new(query, CaseMatching::Smart, Normalization::Smart, AtomKind::Fuzzy);
    let (mut matcher, mut buffer) = (Matcher::new(Config::DEFAULT.match_paths()), Vec::new());
    let mut found: Vec<(u32, usize, &T)> = Vec::new();
    for it in all {
        let own = text(it);
        if let Some(score) = pattern.score(Utf32Str::new(own, &mut buffer), &mut matcher) {
            found.push((score, own.len(), it));
        }
    }
    // The shorter of two that fit as well.
    found.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    found.into_iter().take(MAX_MATCHES).map(|it| it.2).collect()
}

#[cfg(test)]
mod tests {
    use super::{Completion, SlashCommand, Token, escape};

    fn file(at: usize, query: &str) -> Option<Token> {
        Some(Token::File { at, query: query.to_owned() })
    }

    #[test]
    fn words_at_the_cursor_are_tokens() {
        for (before, expected) in [
            ("see @src/ma", file(4, "src/ma")),
            ("@", file(0, "")),
            (r"(@my\ fi", file(1, "my fi")),
            ("mail me@example", None),
            ("@a b", None),
            ("/un", Some(Token::Command { query: "un".to_owned() })),
            ("/undo ", None),
            ("/etc/pas", None),
            ("say /un", None),
        ] {
            assert_eq!(Token::find(before), expected, "{before}");
        }
        assert_eq!(escape(r"a b\c"), r"a\ b\\c");
    }

    fn names(it: Option<Completion>) -> Vec<String> {
        it.map(|it| it.matches.into_iter().map(|it| it.name).collect()).unwrap_or_default()
    }

    #[test]
    fn the_best_files_are_first() {
        let all = ["src/app/main_loop.rs", "src/main.rs", "docs/manual.md", "tests/it/main.rs"].map(str::to_owned);
        let find = |query: &str| names(Completion::files(file(0, query).unwrap(), &all));
        assert_eq!(find("main.rs").first().unwrap(), "src/main.rs");
        assert_eq!(find("sml").first().unwrap(), "src/app/main_loop.rs");
        assert_eq!(find("").len(), 4);
        assert!(find("zzz").is_empty());
    }

    #[test]
    fn commands_are_shown_with_what_they_take() {
        let command = |name: &str, hint: Option<&str>| SlashCommand {
            name: name.to_owned(),
            description: format!("does {name}"),
            hint: hint.map(str::to_owned),
        };
        let all = [command("compress", None), command("model", Some("NAME")), command("memory", None)];
        let token = Token::Command { query: "m".to_owned() };
        let it = Completion::commands(token, &all).unwrap();
        let rows: Vec<String> = it.draw(40, 10).iter().map(|it| it.text()).collect();
        assert_eq!(rows, ["› /model NAME  does model", "  /memory    does memory", "  /compress  does compress"]);
        let narrow = it.draw(16, 1);
        assert_eq!((narrow.len(), narrow[0].width()), (1, 16));
    }
}
