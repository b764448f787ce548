//! Text as people are shown it: characters that hide, reorder or pile up are written out as `⟨U+202E⟩`, and named.

use std::{borrow::Cow, fmt::Write};

use unicode_width::UnicodeWidthChar;

use super::text::is_hidden;

/// Marks that one letter may carry. What comes on top of these covers other letters.
const MAX_MARKS: usize = 4;
/// The kinds of characters that a note names.
const MAX_NAMED: usize = 6;

/// Characters that are written out only in some places.
#[derive(Clone, Copy)]
struct Place {
    /// Line ends and tabs.
    is_line: bool,
    /// Blanks that are no space.
    has_blanks: bool,
}

/// Text of several lines: line ends and tabs stay.
pub fn show_text(text: &str) -> Cow<'_, str> {
    show(text, Place { is_line: false, has_blanks: true })
}

/// Text of one line: a line end is `\n`.
pub fn show_line(text: &str) -> Cow<'_, str> {
    show(text, Place { is_line: true, has_blanks: true })
}

/// One line, at most `max` characters: for titles and questions, where a trick of the eye could get something approved.
/// Controls and reordering marks are written out, line ends are spaces.
pub fn clean_line(text: &str, max: usize) -> String {
    let plain: String = text.trim().chars().map(|it| if matches!(it, '\n' | '\t') { ' ' } else { it }).collect();
    let mut res: String = show_line(&plain).chars().take(max + 1).collect();
    if res.chars().count() > max {
        res.pop();
        res.push('…');
    }
    res
}

/// A path that a program opens. Blanks stay, since they show as what they are; everything hidden is written out, and
/// then no file has that name.
pub fn show_path(path: &str) -> Cow<'_, str> {
    show(path, Place { is_line: true, has_blanks: false })
}

fn show(text: &str, place: Place) -> Cow<'_, str> {
    // Nearly all texts are plain, and each costs only this look.
    if text.bytes().all(|it| matches!(it, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let mut res = String::with_capacity(text.len());
    let mut around = Around::default();
    let mut chars = text.chars().peekable();
    while let Some(it) = chars.next() {
        if !around.is_odd(it, chars.peek().copied(), place) {
            res.push(it);
            continue;
        }
        match it {
            '\n' => res.push_str("\\n"),
            '\r' => res.push_str("\\r"),
            '\t' => res.push_str("\\t"),
            it => {
                let mut count = 1;
                while chars.next_if_eq(&it).is_some() {
                    count += 1;
                }
                _ = write!(res, "⟨U+{:04X}", u32::from(it));
                _ = if count > 1 { write!(res, "×{count}⟩") } else { write!(res, "⟩") };
            }
        }
    }
    if res == text { Cow::Borrowed(text) } else { Cow::Owned(res) }
}

/// What stands before a character.
#[derive(Default)]
struct Around {
    before: Option<char>,
    /// Marks since the last letter.
    marks: usize,
}

impl Around {
    /// Tells whether `it` is written out here.
    fn is_odd(&mut self, it: char, next: Option<char>, place: Place) -> bool {
        let is_mark = !is_hidden(it) && !it.is_control() && it.width() == Some(0);
        self.marks = if is_mark { self.marks + 1 } else { 0 };
        let before = self.before.replace(it);
        match it {
            '\n' | '\t' => place.is_line,
            '\u{fffd}' => true,
            it if is_hidden(it) => !joins(before, it, next),
            it if is_odd_blank(it) => place.has_blanks,
            _ => self.marks > MAX_MARKS,
        }
    }
}

/// Tells whether a hidden character does here what writing needs it for: it joins pictures to one, chooses how a
/// picture looks, or joins and parts letters of a script that has joined letters.
fn joins(before: Option<char>, it: char, next: Option<char>) -> bool {
    let is_before = |is: fn(char) -> bool| before.is_some_and(is);
    let is_next = |is: fn(char) -> bool| next.is_some_and(is);
    let is_keycap = is_before(|it| matches!(it, '0'..='9' | '#' | '*')) && next == Some('\u{20e3}');
    match it {
        '\u{fe0e}' | '\u{fe0f}' => is_before(is_picture) || is_keycap,
        '\u{200d}' if is_before(|it| is_picture(it) || it == '\u{fe0f}') => is_next(is_picture),
        '\u{200c}' | '\u{200d}' => is_before(is_joined_script) && is_next(is_joined_script),
        _ => false,
    }
}

fn is_picture(it: char) -> bool {
    matches!(it,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21ff}'
        | '\u{2300}'..='\u{23ff}' | '\u{24c2}' | '\u{25a0}'..='\u{27bf}' | '\u{2934}'..='\u{2935}'
        | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

/// Letters and marks from Arabic to Sinhala, and those of Burmese, Khmer and Mongolian.
fn is_joined_script(it: char) -> bool {
    let is_of_one = matches!(it,
        '\u{620}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{1820}'..='\u{18af}');
    is_of_one && !is_hidden(it)
}

fn is_odd_blank(it: char) -> bool {
    it != ' ' && it.is_whitespace()
}

/// A sentence that names the hidden characters of `text`, if it has any: `This command has hidden characters: U+202E
/// (right-to-left override).`
pub fn hidden_note(what: &str, text: &str) -> Option<String> {
    let found = hidden_kinds(text);
    if found.is_empty() {
        return None;
    }
    let name = |(it, count): &(char, usize)| {
        let times = if *count > 1 { format!(", {count} times") } else { String::new() };
        format!("U+{:04X} ({}{times})", u32::from(*it), name(*it))
    };
    let mut names: Vec<String> = found.iter().take(MAX_NAMED).map(name).collect();
    if let Some(more @ 1..) = found.len().checked_sub(MAX_NAMED) {
        names.push(format!("and {more} more kinds"));
    }
    Some(format!("{what} has hidden characters: {}.", names.join(", ")))
}

/// The characters that are written out in a text of several lines, each once, with their number.
fn hidden_kinds(text: &str) -> Vec<(char, usize)> {
    let mut res: Vec<(char, usize)> = Vec::new();
    if text.bytes().all(|it| matches!(it, b' '..=b'~' | b'\n' | b'\t')) {
        return res;
    }
    let (mut around, mut chars) = (Around::default(), text.chars().peekable());
    while let Some(it) = chars.next() {
        if !around.is_odd(it, chars.peek().copied(), Place { is_line: false, has_blanks: true }) {
            continue;
        }
        match res.iter_mut().find(|(known, _)| *known == it) {
            Some((_, count)) => *count += 1,
            None => res.push((it, 1)),
        }
    }
    res
}

/// What people call a character.
fn name(it: char) -> &'static str {
    match it {
        '\0' => "null",
        '\u{7}' => "bell",
        '\u{8}' => "backspace",
        '\u{b}' => "vertical tab",
        '\u{c}' => "form feed",
        '\r' => "carriage return",
        '\u{1b}' => "escape",
        '\u{7f}' => "delete",
        '\u{85}' => "next line",
        '\u{9b}' => "control sequence",
        '\u{ad}' => "soft hyphen",
        '\u{a0}' | '\u{202f}' => "no-break space",
        '\u{34f}' => "grapheme joiner",
        '\u{200b}' => "zero width space",
        '\u{200c}' => "zero width non-joiner",
        '\u{200d}' => "zero width joiner",
        '\u{200e}' => "left-to-right mark",
        '\u{200f}' => "right-to-left mark",
        '\u{61c}' => "Arabic letter mark",
        '\u{2028}' => "line separator",
        '\u{2029}' => "paragraph separator",
        '\u{202a}' => "left-to-right embedding",
        '\u{202b}' => "right-to-left embedding",
        '\u{202c}' => "end of embedding or override",
        '\u{202d}' => "left-to-right override",
        '\u{202e}' => "right-to-left override",
        '\u{2066}' => "left-to-right isolate",
        '\u{2067}' => "right-to-left isolate",
        '\u{2068}' => "first strong isolate",
        '\u{2069}' => "end of isolate",
        '\u{2060}' => "word joiner",
        '\u{2061}'..='\u{2064}' => "invisible operator",
        '\u{feff}' => "byte order mark",
        '\u{fffd}' => "replacement of what is no text",
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' | '\u{180b}'..='\u{180f}' => "variation selector",
        '\u{e0000}'..='\u{e007f}' => "tag",
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{2800}' | '\u{17b4}' | '\u{17b5}' => "blank filler",
        it if it.is_control() => "control",
        it if is_odd_blank(it) => "odd blank",
        it if is_hidden(it) => "invisible",
        _ => "one mark of too many on a letter",
    }
}

#[cfg(test)]
mod tests {
    use super::{hidden_note, show_line, show_path, show_text};

    /// Everything that hides something is written out, alone, in a row, and between letters.
    #[test]
    fn hidden_characters_are_written_out() {
        let ranges = [
            0..=0x1f,
            0x7f..=0xa0,
            0xad..=0xad,
            0x34f..=0x34f,
            0x61c..=0x61c,
            0x115f..=0x1160,
            0x1680..=0x1680,
            0x17b4..=0x17b5,
            0x180b..=0x180f,
            0x2000..=0x200f,
            0x2028..=0x202f,
            0x205f..=0x206f,
            0x2800..=0x2800,
            0x3000..=0x3000,
            0x3164..=0x3164,
            0xfe00..=0xfe0f,
            0xfeff..=0xfeff,
            0xffa0..=0xffa0,
            0xfff0..=0xfffd,
            0x1bca0..=0x1bca3,
            0x1d173..=0x1d17a,
            0xe0000..=0xe0fff,
        ];
        for it in ranges.into_iter().flatten().filter_map(char::from_u32).filter(|it| *it != '\u{fffc}') {
            let code = format!("U+{:04X}", u32::from(it));
            let (is_named, want) = match it {
                '\n' | '\t' => (false, it.escape_default().to_string()),
                '\r' => (true, "\\r".to_owned()),
                _ => (true, format!("⟨{code}⟩")),
            };
            for text in ["ab", "éé", "漢a"] {
                let (a, b) = text.split_at(text.chars().next().unwrap().len_utf8());
                assert_eq!(show_line(&format!("{a}{it}{b}")), format!("{a}{want}{b}"), "{code}");
            }
            assert!(!show_line(&it.to_string().repeat(3)).contains(it), "{code}");
            let note = hidden_note("It", &format!("a{it}b"));
            assert_eq!(note.is_some_and(|it| it.contains(&code)), is_named, "{code}");
        }
    }

    #[test]
    fn writing_that_needs_them_stays() {
        for text in [
            "plain text, 漢字 é ñ ©",
            "e\u{301}\u{323}x",
            "❤\u{fe0f} ok 👩\u{200d}🚀 👩🏽\u{200d}💻 🏳\u{fe0f}\u{200d}🌈 1\u{fe0f}\u{20e3}",
            "می\u{200c}خواهم",
            "क्\u{200d}ष",
            "שָׁלוֹם ภาษาไทยที่นี่",
            "각\u{11a8}",
        ] {
            assert_eq!(show_line(text), text);
            assert_eq!(show_path(text), text);
            assert_eq!(hidden_note("It", text), None, "{text}");
        }
        assert_eq!(show_text("a\n\tb\r\n"), "a\n\tb\\r\n");
        assert_eq!(show_path("/w/a\u{202f}b\u{3000}c\u{202e}d"), "/w/a\u{202f}b\u{3000}c⟨U+202E⟩d");
    }

    /// The same characters where nothing needs them.
    #[test]
    fn what_joins_nothing_is_written_out() {
        for (text, want) in [
            ("rm\u{200c}x\u{200d}y", "rm⟨U+200C⟩x⟨U+200D⟩y"),
            ("a\u{fe0f}b 1\u{fe0f}2", "a⟨U+FE0F⟩b 1⟨U+FE0F⟩2"),
            ("❤\u{fe0f}\u{fe0f}\u{fe0f}", "❤\u{fe0f}⟨U+FE0F×2⟩"),
            ("👩\u{200d}x", "👩⟨U+200D⟩x"),
            ("\u{200c}می", "⟨U+200C⟩می"),
            ("🏴\u{e0067}\u{e007f}", "🏴⟨U+E0067⟩⟨U+E007F⟩"),
            ("a\u{1b}[31mb\u{1b}]8;;x\u{7}", "a⟨U+001B⟩[31mb⟨U+001B⟩]8;;x⟨U+0007⟩"),
            ("a\r\nb", "a\\r\\nb"),
            ("x\u{200b}\u{200b}\u{200b}", "x⟨U+200B×3⟩"),
        ] {
            assert_eq!(show_line(text), want);
        }
        let flood = format!("a{}b", "\u{301}".repeat(500));
        assert_eq!(show_line(&flood), format!("a{}⟨U+0301×496⟩b", "\u{301}".repeat(4)));
        let mixed = show_line("a\u{300}\u{301}\u{302}\u{303}\u{304}\u{305}b").into_owned();
        assert_eq!(mixed, "a\u{300}\u{301}\u{302}\u{303}⟨U+0304⟩⟨U+0305⟩b");
    }

    #[test]
    fn a_note_names_them() {
        for (text, want) in [
            (
                "echo \u{202e}x\u{2066}y\u{2066}",
                "U+202E (right-to-left override), U+2066 (left-to-right isolate, 2 times).",
            ),
            ("a\rb\u{1b}[m", "U+000D (carriage return), U+001B (escape)."),
            ("\u{e0041}\u{ad}", "U+E0041 (tag), U+00AD (soft hyphen)."),
        ] {
            assert_eq!(
                hidden_note("This command", text).unwrap(),
                format!("This command has hidden characters: {want}")
            );
        }
        let many = hidden_note("It", "\u{1}\u{2}\u{3}\u{4}\u{5}\u{6}\u{7}\u{8}").unwrap();
        assert!(many.ends_with("U+0006 (control), and 2 more kinds."), "{many}");
        assert_eq!(hidden_note("It", "a\n\tb é"), None);
    }
}
