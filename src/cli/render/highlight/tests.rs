//! Tests of the colours of code: samples with their tokens, and hostile lines in every language.

use std::{collections::BTreeSet, fmt::Write as _};

use expect_test::expect_file;

use super::{
    Highlighter, MAX_CODE, MAX_LINE, highlight_classes, read_part,
    scan::{LineScan, MAX_DEPTH},
    syntaxes::SYNTAXES,
};
use crate::cli::render::text::{Line, Style};

/// What opens, ends or separates something in some language.
const PIECES: &[&str] = &[
    "(", ")", "<a", "<!--", "-->", "</script", "<script>", "/>", "a", "a ", "a: ", "a = ", "'", "\"", "\"\"\"", "`",
    "'x'", "r#\"", "\\", "[", "]]", "{", "}", "${", "$(", "#{", "#", "//", "/", "/*", "*/", "--[[", "{-", "- ", "| ",
    "---", "```", "<<E", "<<~'E'", "E", "0x", "1e", "1.", "fn ", "func (", "class ", "@a", "&amp;", "&", "é", "日本",
    "\t",
];
const SAMPLES: &str = include_str!("samples.md");

/// Names of languages with their code.
fn samples() -> Vec<(&'static str, &'static str)> {
    let blocks = SAMPLES.split("````").skip(1).step_by(2);
    let res: Vec<_> = blocks.filter_map(|it| it.trim_end().split_once('\n')).collect();
    assert!(res.len() > 20, "{} samples", res.len());
    res
}

fn color(code: &str, highlighter: &mut Highlighter) -> String {
    let lines: Vec<String> = code.lines().map(|it| highlighter.line(it).text()).collect();
    lines.join("\n")
}

/// How often a rule was looked for: what a line costs the loop that answers keys.
fn steps(line: &str, highlighter: &Highlighter) -> usize {
    let mut state = highlighter.state.clone().unwrap();
    let mut scan = LineScan::new(line);
    let mut res = 0;
    while !scan.rest().is_empty() && res <= 2 * line.len() {
        read_part(&mut scan, &mut state);
        res += 1;
    }
    res
}

/// Short, so that the code can be read: `‹keyword fn›`.
#[test]
fn tokens_have_their_classes() {
    let mut res = String::new();
    for (language, code) in samples() {
        let html = highlight_classes(code, language).unwrap_or_else(|| panic!("{language} is no language"));
        let short = html.replace("<span class=\"hl-", "‹").replace("\">", " ").replace("</span>", "›");
        let plain = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
        let short = plain.iter().fold(short, |text, (from, to)| text.replace(from, to));
        writeln!(res, "== {language}\n{short}").unwrap();
    }
    expect_file!["samples.txt"].assert_eq(&res);
}

#[test]
fn special_characters_are_escaped() {
    let html = highlight_classes("<b>\n\"<&>\"", "rs").unwrap();
    assert_eq!(html, "&lt;b&gt;\n<span class=\"hl-string\">&quot;&lt;&amp;&gt;&quot;</span>\n");
}

#[test]
fn no_character_is_lost() {
    for (language, code) in samples() {
        assert_eq!(color(code, &mut Highlighter::new(language)), code, "{language}");
    }
}

/// Each piece behind each other, in every language, and what a line leaves open goes into the next one.
#[test]
fn hostile_lines_lose_no_character_and_cost_two_steps_a_byte() {
    for syntax in SYNTAXES {
        let language = syntax.names.split(' ').next().unwrap();
        let mut highlighter = Highlighter::new(language);
        for first in PIECES {
            highlighter.bytes = 0;
            for second in PIECES {
                let line = [*first, second].repeat(5).concat().replace('\t', "    ");
                assert!(steps(&line, &highlighter) <= 2 * line.len(), "{language}: {line}");
                assert_eq!(highlighter.line(&line).text(), line, "{language}");
                let state = highlighter.state.as_ref().unwrap();
                assert!(state.outer.len() <= MAX_DEPTH, "{language}: {line}");
            }
        }
    }
}

#[test]
fn a_name_stands_for_one_language() {
    let mut names = BTreeSet::new();
    for name in SYNTAXES.iter().flat_map(|it| it.names.split(' ')) {
        assert!(names.insert(name), "{name} stands twice");
        assert_eq!(name, name.to_lowercase());
    }
}

#[test]
fn text_of_no_language_stays_plain() {
    for language in ["", "text", "notes.txt", "no-such-language", "TXT", "rust rs"] {
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
