//! Tests of Markdown on a terminal: golden samples, pieces of a stream, random text, bounds.

use std::{collections::BTreeMap, fmt::Write as _};

use expect_test::expect_file;

use super::{MAX_OPEN, MarkdownStream, STEP_BYTES, render};
use crate::cli::render::{
    ansi,
    text::{Color, Line, Style},
};

const SAMPLES: &str = include_str!("samples.md");

fn plain(lines: &[Line]) -> String {
    let mut res = String::new();
    for line in lines {
        ansi::paint(line, false, &mut res);
        res.push('\n');
    }
    res
}

/// Styles as words, so that a person can read them.
fn marked(lines: &[Line]) -> String {
    let mut res = String::new();
    for line in lines {
        for span in &line.spans {
            let Style { color, bold, dim, italic, underline, strike, reverse } = span.style;
            let names = [
                (bold, "bold"),
                (dim, "dim"),
                (italic, "italic"),
                (underline, "under"),
                (strike, "strike"),
                (reverse, "reverse"),
            ];
            let mut marks: Vec<String> = names.iter().filter(|it| it.0).map(|it| it.1.to_owned()).collect();
            if color != Color::Default {
                marks.push(format!("{color:?}").to_lowercase());
            }
            marks.extend(span.link().map(|it| format!("-> {it}")));
            match marks.is_empty() {
                true => res.push_str(span.text()),
                false => write!(res, "⟦{}: {}⟧", marks.join(" "), span.text()).unwrap(),
            }
        }
        res.push('\n');
    }
    res
}

#[test]
fn samples_look_as_they_should() {
    let mut res = String::new();
    for width in [40, 80, 120, 24] {
        write!(res, "===== {width} columns\n{}", plain(&render(SAMPLES, width))).unwrap();
    }
    write!(res, "===== styles\n{}", marked(&render(SAMPLES, 80))).unwrap();
    expect_file!["samples.txt"].assert_eq(&res);
}

/// What a stream gives for text in pieces of this many bytes, with a look at its tail behind each.
fn streamed(text: &str, size: usize, width: usize) -> Vec<Line> {
    let mut stream = MarkdownStream::new(width);
    let (mut res, mut start) = (Vec::new(), 0);
    while start < text.len() {
        let end = text.ceil_char_boundary((start + size).min(text.len()));
        stream.push(&text[start..end]);
        let whole = [stream.take_finished(), stream.tail()];
        check_lines(&whole.concat(), width);
        res.extend(whole.into_iter().next().unwrap());
        start = end;
    }
    res.extend(stream.finish());
    res
}

#[test]
fn pieces_give_the_same_lines_as_the_whole() {
    let long = long_text();
    for (text, width) in [(SAMPLES, 80), (SAMPLES, 33), (&long, 60)] {
        let expected = plain(&render(text, width));
        let sizes: &[usize] = if text.len() < 20_000 { &[1, 7, 100] } else { &[997] };
        for size in sizes {
            assert_eq!(plain(&streamed(text, *size, width)), expected, "pieces of {size} bytes");
        }
    }
}

/// A paragraph, a word, a table and code, each of them too long to wait for its end.
fn long_text() -> String {
    let rows = "| one | two |\n".repeat(1_000);
    let code = format!("fn main() {{ {} }}\n", "call(); ".repeat(2_000));
    let words = "word ".repeat(6_000);
    format!("{words}\n\n{}\n\n| a | b |\n|---|---|\n{rows}\n```rust\n{code}```\n- {words}", "x".repeat(40_000))
}

#[test]
fn long_block_is_shown_before_its_end() {
    let text = long_text();
    let mut stream = MarkdownStream::new(80);
    for piece in text.as_bytes().chunks(100) {
        stream.push(std::str::from_utf8(piece).unwrap());
        stream.take_finished();
        assert!(stream.unread.len() <= 2 * MAX_OPEN, "{} bytes are unread", stream.unread.len());
        let shown: usize = stream.tail().iter().map(|it| it.text().len()).sum();
        assert!(shown <= 8 * MAX_OPEN, "{shown} bytes are unfinished");
    }
    let words = |text: &str, word: &str| text.split(|it: char| !it.is_alphanumeric()).filter(|it| *it == word).count();
    let shown = plain(&render(&text, 80));
    for word in ["word", "one", "two", "call"] {
        assert_eq!(words(&shown, word), words(&text, word), "{word}");
    }
    let letters = |text: &str| text.matches("xxx").count() / 2;
    assert!(letters(&shown).abs_diff(letters(&text)) < 1_000, "a long word is lost");
}

#[test]
fn each_byte_is_parsed_once() {
    for text in [SAMPLES.repeat(20), long_text(), "- item\n".repeat(20_000), "> a\n".repeat(20_000)] {
        let mut stream = MarkdownStream::new(80);
        for piece in text.split_inclusive(' ') {
            stream.push(piece);
            stream.take_finished();
        }
        stream.finish();
        assert!(stream.blocks.parsed <= text.len() * 3 / 2, "{} of {}", stream.blocks.parsed, text.len());
    }
}

#[test]
fn steps_are_small_and_give_the_same_lines() {
    let code = format!("```rust\n{}```\n", "let a = \"b\"; // c\n".repeat(20_000));
    for text in [code, long_text(), SAMPLES.repeat(20), "\n".repeat(100_000)] {
        let mut stream = MarkdownStream::new(60);
        stream.push(&text);
        let mut lines = Vec::new();
        loop {
            let before = stream.unread_len();
            lines.extend(stream.take_step());
            let read = before - stream.unread_len();
            assert!(read <= STEP_BYTES + 2 * MAX_OPEN, "{read} bytes in a step");
            let tail: usize = stream.tail().iter().map(|it| it.text().len()).sum();
            assert!(tail <= 8 * MAX_OPEN, "{tail} bytes in a tail");
            if !stream.is_behind() {
                break;
            }
        }
        lines.extend(stream.finish());
        assert_eq!(plain(&lines), plain(&render(&text, 60)));
    }
}

#[test]
fn a_tail_shows_what_is_not_finished() {
    let mut stream = MarkdownStream::new(40);
    let mut step = |text: &str| {
        stream.push(text);
        format!("{}~~~\n{}", plain(&stream.take_finished()), plain(&stream.tail()))
    };
    assert_eq!(step("Some **wo"), "~~~\nSome **wo\n");
    assert_eq!(step("rds**\n"), "~~~\nSome words\n");
    assert_eq!(step("\n- a\n- b"), "Some words\n~~~\n\n• a\n• b\n");
    assert_eq!(step("\n"), "\n• a\n~~~\n• b\n");
    assert_eq!(step("```sh\necho 1\nec"), "• b\n\n  echo 1\n~~~\n  ec\n");
    assert_eq!(step("ho 2\n```\n| a | b |\n|--"), "  echo 2\n~~~\n\n| a | b | |--\n");
    assert_eq!(step("-|---|\n| 1"), "~~~\n\n┌───┬───┐\n│ a │ b │\n├───┼───┤\n│ 1 │   │\n└───┴───┘\n");
    assert_eq!(step(" |\n\nend"), "\n┌───┬───┐\n│ a │ b │\n├───┼───┤\n│ 1 │   │\n└───┴───┘\n~~~\n\nend\n");
}

#[test]
fn links_of_others_are_harmless() {
    for (text, expected) in [
        ("[a](https://x.org/?q=1)", "⟦under -> https://x.org/?q=1: a⟧\n"),
        ("<mailto:a@b.org>", "⟦under -> mailto:a@b.org: mailto:a@b.org⟧\n"),
        ("[a](javascript:alert)", "a\n"),
        ("[a](file:///etc/passwd) [b](src/a.rs)", "a b\n"),
        ("[a](https://x.org/&#27;]8;;y)", "a\n"),
        ("[a](<https://x.org/\u{1b}]8;;y>)", "[a](<https://x.org/\n"),
        ("[https://good.org](https://evil.org)", "⟦under -> https://evil.org: https://good.org⟧ (https://evil.org)\n"),
        ("\u{1b}[31mred\u{7}\u{202e}", "red\n"),
    ] {
        let shown = marked(&render(text, 80));
        assert_eq!(shown, expected, "{text:?}");
    }
}

fn check_lines(lines: &[Line], width: usize) {
    for line in lines {
        let text = line.text();
        assert!(line.width() <= width, "{} columns of {width}: {text:?}", line.width());
        assert!(!text.chars().any(char::is_control), "{text:?}");
        assert_eq!(text.trim_end(), text, "blanks at the end");
    }
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len())]
    }
}

const SOUP: &[&str] = &[
    "\n",
    "\n",
    "\n\n",
    " ",
    "  ",
    "    ",
    "\t",
    "word",
    "another",
    "- ",
    "* ",
    "1. ",
    "12) ",
    "> ",
    ">",
    "# ",
    "###### ",
    "```",
    "```rust\n",
    "~~~\n",
    "---",
    "===",
    "|",
    "| a | b |\n|---|:-:|\n",
    "|\n",
    "**",
    "*",
    "_",
    "~~",
    "`",
    "``",
    "[",
    "]",
    "](",
    ")",
    "]: ",
    "![",
    "[^1]",
    "<b>",
    "<br>",
    "<!--",
    "-->",
    "<div>\n",
    "&amp;",
    "&#27;",
    "\\",
    "\\\n",
    "https://x.org/",
    "日本語",
    "。",
    "👩‍👩‍👧‍👦",
    "e\u{301}",
    "\u{1b}[2J",
    "\u{7}",
    "\r\n",
    "\u{202e}",
    "- [ ] ",
    "- [x] ",
    "fn x() {}\n",
];

#[test]
fn random_text_keeps_within_its_bounds() {
    let mut dice = Dice(0x5eed_2106);
    for _ in 0..400 {
        let text: String = (0..1 + dice.roll(60)).map(|_| dice.pick(SOUP)).collect();
        let width = 10 + dice.roll(90);
        let lines = render(&text, width);
        check_lines(&lines, width);
        for size in [1, 7, 100] {
            assert_eq!(streamed(&text, size, width), lines, "pieces of {size} bytes of {text:?}");
        }
    }
}

/// A block of words that are all different, below `indent`.
fn block(dice: &mut Dice, number: &mut usize, depth: usize) -> String {
    let mut words = |dice: &mut Dice| {
        let mut res = String::new();
        for _ in 0..1 + dice.roll(12) {
            *number += 1;
            let word = format!("w{number}w");
            let (before, after) =
                [("", ""), ("", ","), ("**", "**"), ("*", "*"), ("`", "`"), ("[", "](https://x.org)")][dice.roll(6)];
            write!(res, "{before}{word}{after} ").unwrap();
        }
        res.trim_end().to_owned()
    };
    match dice.roll(if depth < 3 { 9 } else { 5 }) {
        0 => format!("# {}\n", words(dice)),
        1 => format!("```text\n{}\n  {}\n```\n", words(dice), words(dice)),
        2 => format!("| {} | {} |\n|---|--:|\n| {} | {} |\n", words(dice), words(dice), words(dice), words(dice)),
        3 | 4 => format!("{}\n{}\n", words(dice), words(dice)),
        kind => {
            let first = ["- ", "7. ", "> ", "* [ ] "][kind - 5];
            let rest = if first == "> " { "> ".to_owned() } else { " ".repeat(first.find(' ').unwrap() + 1) };
            let inner: Vec<String> = (0..1 + dice.roll(3)).map(|_| block(dice, number, depth + 1)).collect();
            let inner = inner.join("\n");
            let lines = inner.lines().enumerate().map(|(i, it)| match (i, it.is_empty()) {
                (0, _) => format!("{first}{it}\n"),
                (_, true) => format!("{}\n", rest.trim_end()),
                (_, false) => format!("{rest}{it}\n"),
            });
            lines.collect()
        }
    }
}

#[test]
fn no_word_is_lost_or_repeated() {
    let mut dice = Dice(0x5eed_0021);
    for _ in 0..300 {
        let mut number = 0;
        let blocks: Vec<String> = (0..6).map(|_| block(&mut dice, &mut number, 0)).collect();
        let text = blocks.join("\n");
        let width = 24 + dice.roll(100);
        let lines = render(&text, width);
        check_lines(&lines, width);
        let shown = plain(&lines);
        let mut counts = BTreeMap::<&str, usize>::new();
        for word in shown.split(|it: char| !it.is_ascii_alphanumeric()).filter(|it| it.starts_with('w')) {
            *counts.entry(word).or_default() += 1;
        }
        for i in 1..=number {
            assert_eq!(counts.get(format!("w{i}w").as_str()), Some(&1), "w{i}w at {width}:\n{text}\n{shown}");
        }
    }
}
