//! Words of the shell that are put together from pieces: what they may come to, as far as the script itself says it.

use super::{
    ansi,
    shell::{Script, Word, WordKind},
};

/// Stands for what only the shell knows. In no word.
pub(super) const ANY: char = '\0';
/// More readings of one word are "anything".
const MAX_READINGS: usize = 64;
/// Variables that stand for variables are followed so far.
const MAX_DEPTH: usize = 4;
/// What sets variables by name, to what it reads.
const READERS: &[&str] = &["mapfile", "printf", "read", "readarray"];

/// What a word may come to, in lower case, [`ANY`] in it. None for code and sentences, which are words, too.
pub(super) fn readings(word: &Word, script: &Script) -> Vec<String> {
    let mut res = spellings(word, script);
    res.retain(|it| !it.contains(char::is_whitespace));
    res.iter_mut().for_each(|it| it.make_ascii_lowercase());
    res
}

/// What a word may come to, as it is written, [`ANY`] in it.
pub(super) fn spellings(word: &Word, script: &Script) -> Vec<String> {
    expand(word, script, 0)
}

fn expand(word: &Word, script: &Script, depth: usize) -> Vec<String> {
    if word.kind != WordKind::Expanded {
        return vec![word.text.clone()];
    }
    let mut reader = Reader { rest: &word.text, quoted: false, res: vec![String::new()], script, depth };
    while let Some(it) = reader.next() {
        reader.take(it);
    }
    reader.res
}

struct Reader<'r> {
    rest: &'r str,
    /// Within double quotes.
    quoted: bool,
    res: Vec<String>,
    script: &'r Script,
    depth: usize,
}

impl<'r> Reader<'r> {
    fn take(&mut self, it: char) {
        match it {
            '"' => self.quoted = !self.quoted,
            '\'' if !self.quoted => {
                let text = self.until('\'');
                self.push(&[text.to_owned()]);
            }
            '\\' => {
                let next = self.next().map(String::from);
                self.push(&[next.unwrap_or_default()]);
            }
            '`' => {
                _ = self.until('`');
                self.push_any();
            }
            '<' | '>' if self.rest.starts_with('(') => self.group('(', ')'),
            '{' if !self.quoted => self.braces(),
            '$' => self.dollar(),
            _ => self.push(&[it.to_string()]),
        }
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let res = chars.next();
        self.rest = chars.as_str();
        res
    }

    fn until(&mut self, end: char) -> &'r str {
        let (inside, rest) = self.rest.split_once(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        inside
    }

    fn push(&mut self, more: &[String]) {
        let joined = self.res.iter().flat_map(|it| more.iter().map(move |more| format!("{it}{more}")));
        let joined: Vec<String> = joined.take(MAX_READINGS + 1).collect();
        self.res = if joined.len() > MAX_READINGS { vec![ANY.to_string()] } else { joined };
    }

    fn push_any(&mut self) {
        self.push(&[ANY.to_string()]);
    }

    fn group(&mut self, open: char, close: char) {
        let mut depth = 0_usize;
        while let Some(it) = self.next() {
            depth = if it == open { depth + 1 } else { depth - usize::from(it == close && depth > 0) };
            if depth == 0 {
                break;
            }
        }
        self.push_any();
    }

    /// `{a,b}` is either; what is in there besides is not looked into.
    fn braces(&mut self) {
        let inside = self.until('}');
        match inside.contains(',') && !inside.contains(['{', '$', '`', '"', '\'', '\\']) {
            true => self.push(&inside.split(',').map(str::to_owned).collect::<Vec<_>>()),
            false => self.push_any(),
        }
    }

    fn dollar(&mut self) {
        match self.rest.chars().next() {
            Some('(') => self.group('(', ')'),
            Some('\'') if !self.quoted => {
                let (text, rest) = ansi::decode(self.rest.get(1..).unwrap_or_default());
                self.rest = rest;
                match text {
                    Some(it) => self.push(&[it]),
                    None => self.push_any(),
                }
            }
            Some('"') => (),
            Some('{') => {
                _ = self.next();
                let inside = self.until('}');
                let (name, rest) = inside.split_at(name_len(inside));
                match !name.is_empty() && (rest.is_empty() || rest.starts_with('[')) {
                    true => self.variable(name),
                    false => self.push_any(),
                }
            }
            _ => {
                let (name, rest) = self.rest.split_at(name_len(self.rest));
                match name.is_empty() {
                    // `$1`, `$@`
                    true => {
                        _ = self.next();
                        self.push_any();
                    }
                    false => {
                        self.rest = rest;
                        self.variable(name);
                    }
                }
            }
        }
    }

    fn variable(&mut self, name: &str) {
        let values: Vec<String> = values(name, self.script, self.depth + 1);
        self.push(&values);
    }
}

/// What a variable may be: all that the script sets it to. One that it does not set is the environment's, and no piece
/// of a name that is not to be seen.
fn values(name: &str, script: &Script, depth: usize) -> Vec<String> {
    let anything = || vec![ANY.to_string()];
    if depth > MAX_DEPTH {
        return anything();
    }
    let of_it = |appends: bool| {
        let all = script.values.iter().filter(move |it| it.appends == appends && it.name.as_deref() == Some(name));
        all.flat_map(|it| expand(&it.word, script, depth))
    };
    let reads = script.commands.iter().any(|it| it.name().is_some_and(|it| READERS.contains(&it)));
    let mut res: Vec<String> = of_it(false).take(MAX_READINGS).collect();
    match res.is_empty() {
        true if reads || script.assigned.iter().any(|it| it == name) => res = anything(),
        true => res.push(String::new()),
        false => (),
    }
    for more in of_it(true) {
        let longer: Vec<String> = res.iter().map(|it| format!("{it}{more}")).collect();
        res.extend(longer);
        if res.len() > MAX_READINGS {
            return anything();
        }
    }
    res
}

/// How much of the start of `text` is a variable's name.
fn name_len(text: &str) -> usize {
    let is_name = |(at, it): &(usize, char)| *it == '_' || it.is_ascii_alphabetic() || *at > 0 && it.is_ascii_digit();
    text.char_indices().take_while(is_name).count()
}
