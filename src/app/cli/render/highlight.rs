//! Syntax highlighting of source code: tokens of a language, as styled lines for terminals and as CSS classes for pages.

use std::{
    cell::RefCell,
    sync::{Arc, OnceLock},
};

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use super::text::{Color, Line, Style};
use crate::app::cli::terminal_text::clean;

/// Longer lines are generated code, and regular expressions take long on them.
const MAX_LINE: usize = 2_000;
const MAX_CODE: usize = 500_000;
/// Languages of which the expressions are kept; with one more all are compiled anew as they are used.
const MAX_USED: usize = 2;
/// Fences and extensions of TypeScript.
const TYPESCRIPT: &[&str] = &["ts", "tsx", "mts", "cts", "typescript"];

/// Names of fences that no syntax has.
const ALIASES: &[(&str, &str)] = &[
    ("c++", "cpp"),
    ("console", "bash"),
    ("golang", "go"),
    ("json5", "json"),
    ("jsonc", "json"),
    ("jsonl", "json"),
    ("jsx", "js"),
    ("mjs", "js"),
    ("cjs", "js"),
    ("mts", "ts"),
    ("cts", "ts"),
    ("patch", "diff"),
    ("python3", "py"),
    ("shell", "bash"),
    ("shell-session", "bash"),
    ("sh-session", "bash"),
    ("zsh", "bash"),
];

/// Names of fences without a language: no syntax set is loaded for them.
const PLAIN: &[&str] = &["", "ascii", "log", "mermaid", "none", "output", "plain", "plaintext", "text", "txt"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Plain,
    Comment,
    Constant,
    Deleted,
    Function,
    Heading,
    Inserted,
    Key,
    Keyword,
    Text,
    Type,
}

/// Scopes as syntaxes name them, the more special first.
const SCOPES: &[(&str, Token)] = &[
    ("comment", Token::Comment),
    ("constant", Token::Constant),
    ("entity.name.function", Token::Function),
    ("entity.name.section", Token::Heading),
    ("entity.name.tag.toml", Token::Key),
    ("entity.name.tag.yaml", Token::Key),
    ("entity.name.tag", Token::Keyword),
    ("entity.name", Token::Type),
    ("entity.other.attribute-name", Token::Key),
    ("entity.other.inherited-class", Token::Type),
    ("keyword.operator.word", Token::Keyword),
    ("keyword.operator.logical.python", Token::Keyword),
    ("keyword.operator", Token::Plain),
    ("keyword", Token::Keyword),
    ("markup.deleted", Token::Deleted),
    ("markup.heading", Token::Heading),
    ("markup.inserted", Token::Inserted),
    ("markup.raw", Token::Text),
    ("meta.diff.header", Token::Heading),
    ("meta.interpolation", Token::Plain),
    ("meta.mapping.key", Token::Key),
    ("punctuation.section.interpolation", Token::Plain),
    ("source", Token::Plain),
    ("storage", Token::Keyword),
    ("string", Token::Text),
    ("support.class", Token::Type),
    ("support.type", Token::Type),
    ("text", Token::Plain),
    ("variable.language", Token::Keyword),
];

impl Token {
    /// Neither blue nor yellow, which many themes make unreadable on dark and on light; no bright black, which is the
    /// background of some.
    fn style(self) -> Style {
        match self {
            Self::Plain => Style::PLAIN,
            Self::Comment => Style::DIM,
            Self::Deleted => Style::color(Color::Red),
            Self::Inserted | Self::Text => Style::color(Color::Green),
            Self::Function | Self::Heading => Style::BOLD,
            Self::Keyword => Style::color(Color::Magenta),
            Self::Constant | Self::Key | Self::Type => Style::color(Color::Cyan),
        }
    }

    fn class(self) -> Option<&'static str> {
        Some(match self {
            Self::Plain => return None,
            Self::Comment => "hl-comment",
            Self::Constant => "hl-constant",
            Self::Deleted => "hl-deleted",
            Self::Function => "hl-function",
            Self::Heading => "hl-heading",
            Self::Inserted => "hl-inserted",
            Self::Key => "hl-key",
            Self::Keyword => "hl-keyword",
            Self::Text => "hl-string",
            Self::Type => "hl-type",
        })
    }
}

/// A set of syntaxes. Each compiles its expressions as they are used, and keeps them: 3 to 15 MB for most languages.
struct LoadedSyntaxes {
    set: Arc<SyntaxSet>,
    /// Names of those that were used.
    used: Vec<String>,
}

impl LoadedSyntaxes {
    /// syntect's own set lacks TypeScript, TOML, Kotlin, Swift and Dockerfiles. Loading this one takes 2 ms and 3 MB.
    fn load() -> Self {
        Self { set: Arc::new(two_face::syntax::extra_newlines()), used: Vec::new() }
    }

    /// A conversation in many languages would keep the expressions of all of them.
    fn begin(&mut self, language: &str) -> Option<SyntaxState> {
        let name = find_syntax(&self.set, language)?.name.clone();
        if !self.used.contains(&name) {
            if self.used.len() == MAX_USED {
                *self = Self::load();
            }
            self.used.push(name);
        }
        let state = ParseState::new(find_syntax(&self.set, language)?);
        Some(SyntaxState { set: self.set.clone(), state, scopes: ScopeStack::new() })
    }
}

thread_local! {
    static LOADED: RefCell<Option<LoadedSyntaxes>> = const { RefCell::new(None) };
}

/// Where a text of some language is read.
#[derive(Clone, Debug)]
struct SyntaxState {
    set: Arc<SyntaxSet>,
    state: ParseState,
    scopes: ScopeStack,
}

/// `language` is a fence's name of a language, a file name or an extension.
fn begin(language: &str) -> Option<SyntaxState> {
    let name = file_name(language).to_lowercase();
    let is_plain = |it: &str| PLAIN.contains(&it);
    if is_plain(&name) || name.rsplit_once('.').is_some_and(|it| is_plain(it.1)) {
        return None;
    }
    LOADED.with_borrow_mut(|it| it.get_or_insert_with(LoadedSyntaxes::load).begin(language))
}

fn file_name(language: &str) -> &str {
    language.rsplit(['/', '\\']).next().unwrap_or(language)
}

fn find_syntax<'a>(set: &'a SyntaxSet, language: &str) -> Option<&'a SyntaxReference> {
    let file = file_name(language);
    let name = file.to_lowercase();
    let alias = |name: &str| ALIASES.iter().find(|it| it.0 == name).map(|it| it.1.to_owned());
    let extension = name.rsplit('.').next().unwrap_or(&name);
    let extension = alias(extension).unwrap_or_else(|| extension.to_owned());
    let name = alias(&name).unwrap_or(name);
    [file, &name, &extension].into_iter().find_map(|it| set.find_syntax_by_token(it))
}

/// What a terminal shows a language as: TypeScript's own expressions take 40 MB and a third of a second to compile.
fn light_language(language: &str) -> &str {
    let name = file_name(language);
    let extension = name.rsplit('.').next().unwrap_or(name);
    match TYPESCRIPT.iter().any(|it| it.eq_ignore_ascii_case(extension)) {
        true => "js",
        false => language,
    }
}

/// The code in lines, or nothing if no syntax has this name. `language` may also be a file name or an extension.
pub fn highlight(code: &str, language: &str) -> Option<Vec<Line>> {
    let mut highlighter = Highlighter::new(language);
    highlighter.state.as_ref()?;
    Some(code.lines().map(|it| highlighter.line(it)).collect())
}

/// The code as HTML: text with its special characters escaped, tokens as `<span class="hl-keyword">`. Nothing if no
/// syntax has this name.
pub fn highlight_classes(code: &str, language: &str) -> Option<String> {
    let mut highlighter = Highlighter { state: Some(begin(language)?), bytes: 0 };
    let mut res = String::with_capacity(code.len() * 2);
    for line in code.lines() {
        for (text, token) in highlighter.tokens(&clean(line)) {
            match token.class() {
                None => push_escaped(text, &mut res),
                Some(class) => {
                    res.push_str(&format!("<span class=\"{class}\">"));
                    push_escaped(text, &mut res);
                    res.push_str("</span>");
                }
            }
        }
        res.push('\n');
    }
    Some(res)
}

fn push_escaped(text: &str, out: &mut String) {
    for it in text.chars() {
        match it {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            it => out.push(it),
        }
    }
}

/// Colours code that comes line by line.
#[derive(Clone, Debug)]
pub struct Highlighter {
    /// None where no colour is due: a language without a syntax, or too much code.
    state: Option<SyntaxState>,
    bytes: usize,
}

impl Highlighter {
    /// `language` may also be a file name or an extension. Code of another language stays plain.
    pub fn new(language: &str) -> Self {
        Self { state: begin(light_language(language)), bytes: 0 }
    }

    /// The next line, without its line end.
    pub fn line(&mut self, line: &str) -> Line {
        let mut res = Line::default();
        // Before a token cuts an escape sequence in two.
        for (text, token) in self.tokens(&clean(line)) {
            res.push(text, token.style());
        }
        res
    }

    fn tokens<'a>(&mut self, line: &'a str) -> Vec<(&'a str, Token)> {
        self.bytes += line.len() + 1;
        if self.bytes > MAX_CODE {
            self.state = None;
        }
        if line.len() > MAX_LINE {
            return vec![(line, Token::Plain)];
        }
        let Some(tokens) = self.state.as_mut().and_then(|it| parse(line, it)) else {
            self.state = None;
            return vec![(line, Token::Plain)];
        };
        tokens
    }
}

/// Nothing if the syntax has a fault.
fn parse<'a>(line: &'a str, syntax: &mut SyntaxState) -> Option<Vec<(&'a str, Token)>> {
    let SyntaxState { set, state, scopes } = syntax;
    let operations = state.parse_line(&format!("{line}\n"), set).ok()?;
    // Tokens, each with its end.
    let mut ends: Vec<(usize, Token)> = Vec::new();
    let mut add = |end: usize, scopes: &ScopeStack| match (ends.last_mut(), token(scopes)) {
        (Some(last), _) if last.0 >= end => (),
        (None, _) if end == 0 => (),
        (Some(last), token) if last.1 == token => last.0 = end,
        (_, token) => ends.push((end, token)),
    };
    for (at, operation) in &operations {
        add(*at.min(&line.len()), scopes);
        scopes.apply(operation).ok()?;
    }
    add(line.len(), scopes);
    let mut start = 0;
    ends.into_iter().map(|(end, token)| Some((line.get(std::mem::replace(&mut start, end)..end)?, token))).collect()
}

fn token(scopes: &ScopeStack) -> Token {
    static TABLE: OnceLock<Vec<(Scope, Token)>> = OnceLock::new();
    let table = TABLE
        .get_or_init(|| SCOPES.iter().filter_map(|(name, token)| Some((Scope::new(name).ok()?, *token))).collect());
    let found = |scope: &Scope| table.iter().find(|it| it.0.is_prefix_of(*scope)).map(|it| it.1);
    let mut stack = scopes.scopes.iter().rev().filter_map(found);
    match stack.next() {
        // A string that is a key of JSON or YAML.
        Some(Token::Text) if stack.next() == Some(Token::Key) => Token::Key,
        it => it.unwrap_or(Token::Plain),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect_file;

    use super::{Highlighter, LOADED, MAX_CODE, MAX_LINE, MAX_USED, highlight, highlight_classes};
    use crate::app::cli::render::text::{Line, Style};

    const SAMPLES: &[(&str, &str)] = &[
        ("rust", "/// Doc\nstruct A<'a> { b: &'a str } // c\nimpl A<'_> { fn f(&self) -> u8 { b'x' } }"),
        ("main.py", "@cached\ndef f(x=None):\n    \"\"\"Doc\n    more\"\"\"\n    return not x and 'a' % 1.5"),
        ("tsx", "const a: string = `x ${b + 1}`; // <c>\nexport default () => <p id=\"q\">hi & bye</p>;"),
        ("Cargo.toml", "[package]\nname = \"x\" # y\nopt-level = 3"),
        ("yml", "on: [push]\njobs:\n  test: { runs-on: ubuntu, if: true }"),
        ("console", "$ echo \"$HOME\" | grep -c x # count\nif true; then exit 1; fi"),
        ("src/Dockerfile", "FROM rust:1\nRUN cargo build --release"),
        ("patch", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new"),
        ("json", "{\"a\": [\"b\", null, 1.5e3]}"),
        ("html", "<!-- c --><a href='x'>&amp;</a>"),
        ("sql", "SELECT count(*) FROM t WHERE a = 'b' -- c"),
        ("go", "func (s *T) F() error { return fmt.Errorf(\"%d\", 1) }"),
    ];

    #[test]
    fn tokens_have_their_classes() {
        let mut res = String::new();
        for (language, code) in SAMPLES {
            write!(res, "== {language}\n{}", highlight_classes(code, language).unwrap()).unwrap();
        }
        expect_file!["highlight.txt"].assert_eq(&res);
    }

    #[test]
    fn no_character_is_lost() {
        for (language, code) in SAMPLES {
            let text: Vec<String> = highlight(code, language).unwrap().iter().map(Line::text).collect();
            assert_eq!(text.join("\n"), *code);
        }
    }

    /// Also while a text of an earlier language is still being read.
    #[test]
    fn the_expressions_of_few_languages_are_kept() {
        let mut first = Highlighter::new("rs");
        let colors = first.line("/* one");
        for (language, code) in SAMPLES {
            highlight(code, language).unwrap();
            let used = LOADED.with_borrow(|it| it.as_ref().unwrap().used.clone());
            assert!((1..=MAX_USED).contains(&used.len()), "{used:?}");
        }
        assert_eq!(colors.spans[0].style, Style::DIM);
        assert_eq!(first.line("two */").spans[0].style, Style::DIM);
    }

    #[test]
    fn text_of_no_language_stays_plain() {
        for language in ["", "text", "notes.txt", "no-such-language", "TXT"] {
            assert_eq!(highlight("fn main() {}", language), None, "{language}");
            assert_eq!(highlight_classes("<b>", language), None, "{language}");
            assert_eq!(Highlighter::new(language).line("fn"), Line::plain("fn"));
        }
    }

    #[test]
    fn much_code_is_not_colored() {
        let is_colored = |line: &Line| line.spans.iter().any(|it| it.style != Style::PLAIN);
        let mut highlighter = Highlighter::new("rs");
        assert!(!is_colored(&highlighter.line(&format!("// {}", "x".repeat(MAX_LINE)))));
        assert!(is_colored(&highlighter.line("// x")));
        highlighter.bytes = MAX_CODE - 9;
        assert!(is_colored(&highlighter.line("// x")));
        assert!(!is_colored(&highlighter.line("// x")));
    }
}
