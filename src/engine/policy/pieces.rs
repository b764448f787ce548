//! Words of the shell that are put together from pieces: what they may come to, as far as the script itself says it.

mod forms;

use std::collections::{BTreeMap, BTreeSet};

use super::{
    ansi,
    shell::{Command, Script, Word, WordKind, base_name, changed, is_shell},
};

/// Stands for what only the shell knows. In no word.
pub(super) const ANY: char = '\0';
/// The same, where the script says what it is, but that is too much to follow: it may well be what decides.
pub(super) const TOO_MUCH: &str = "\0\0";
/// More readings of one word are too much.
const MAX_READINGS: usize = 64;
/// Longer ones of a word, together and in bytes, are so, too, unless the word itself is that long.
const MAX_BYTES: usize = 32 * 1024;
/// Variables that stand for variables are followed so far.
const MAX_DEPTH: usize = 4;
/// What sets variables by name, to what it reads.
const READERS: &[&str] = &["mapfile", "printf", "read", "readarray"];
/// The same, and what sets them to whatever it likes.
const SETTERS: &[&str] = &["eval", "getopts", "mapfile", "printf", "read", "readarray", "source", "unset", "."];
/// What may mean more than itself.
const SPECIAL: [char; 8] = ['"', '\'', '\\', '`', '<', '>', '{', '$'];

/// What a word may come to, in lower case, [`ANY`] in it. None for code and sentences, which are words, too.
pub(super) fn readings(word: &Word, script: &Script) -> Vec<String> {
    let mut res = spellings(word, script);
    res.retain(|it| !it.contains(char::is_whitespace));
    res.iter_mut().for_each(|it| it.make_ascii_lowercase());
    res
}

/// What a word may come to, as it is written, [`ANY`] in it.
pub(super) fn spellings(word: &Word, script: &Script) -> Vec<String> {
    match word.kind {
        WordKind::Expanded => expand(word, script, Some(script.values.known.get_or_init(|| Known::of(script)))),
        _ => vec![word.text.clone()],
    }
}

/// What a word comes to, where the script says all of it: words and names of files, in variables that have no other values
/// when the word is read. None: somebody else may have a say.
pub(super) fn told(word: &Word, script: &Script) -> Option<Vec<Word>> {
    let is_plain = |name: &str| {
        let mut set = script.values.all.iter().filter(|it| it.name.as_deref() == Some(name)).peekable();
        let is_set = set.peek().is_some() && set.all(|it| !it.appends && it.word.kind != WordKind::Expanded);
        is_set && !script.unsure.contains(name)
    };
    let index = Index::of(script);
    if index.sets
        || index.assigned.contains("IFS")
        || word.text.contains('`')
        || !changed::names_in(&word.text).all(is_plain)
    {
        return None;
    }
    let read = |it: String| {
        let kind =
            if it.contains(['*', '?', '[']) || it.starts_with('~') { WordKind::Pattern } else { WordKind::Literal };
        let whole = !it.is_empty() && !it.contains(ANY) && !it.contains(char::is_whitespace);
        whole.then_some(Word { text: it, kind })
    };
    spellings(word, script).into_iter().map(read).collect()
}

/// What the variables of a script may be, each found out once: variables name variables, and to follow each of them at each
/// place multiplies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    variables: BTreeMap<String, Vec<String>>,
    /// `$1`, `$@`.
    positional: Vec<String>,
    /// What `read` and its like may find.
    read: Vec<String>,
}

/// What is asked of a script for each of its words, found out once: a script may have thousands of both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// The first command of a text.
    by_text: BTreeMap<String, usize>,
    assigned: BTreeSet<String>,
    /// Something in it sets variables by name to what it reads.
    reads: bool,
    /// Or to whatever it likes.
    sets: bool,
}

impl Index {
    pub(super) fn of(script: &Script) -> &Self {
        script.values.index.get_or_init(|| {
            let mut by_text = BTreeMap::new();
            script.commands.iter().enumerate().for_each(|(at, it)| _ = by_text.entry(it.text.clone()).or_insert(at));
            let calls =
                |names: &[&str]| script.commands.iter().any(|it| it.name().is_some_and(|it| names.contains(&it)));
            let assigned = script.assigned.iter().cloned().collect();
            let sets = calls(SETTERS) || script.commands.iter().any(changed::declares_oddly);
            Self { by_text, assigned, reads: calls(READERS), sets }
        })
    }

    /// The first command that is written so.
    pub(super) fn command<'s>(&self, text: &str, script: &'s Script) -> Option<&'s Command> {
        script.commands.get(*self.by_text.get(text)?)
    }

    /// Whether variables may be set to more than assignments say.
    pub(super) const fn sets(&self) -> bool {
        self.sets
    }
}

impl Known {
    fn of(script: &Script) -> Self {
        let mut res = Self::after(None, script);
        for _ in 1..MAX_DEPTH {
            res = Self::after(Some(&res), script);
        }
        res
    }

    /// One step further. `before` says what variables are within values; `None`: anything.
    fn after(before: Option<&Self>, script: &Script) -> Self {
        let (mut variables, mut longer) = (BTreeMap::<_, Vec<String>>::new(), Vec::new());
        for it in &script.values.all {
            let Some(name) = &it.name else { continue };
            match it.appends {
                true => longer.push((name, &it.word)),
                false => variables.entry(name.clone()).or_default().extend(expand(&it.word, script, before)),
            }
        }
        let mut res = Self { variables, positional: positional(script, before), read: read_in(script, before) };
        for (name, word) in longer {
            let unset = || [vec![String::new()], res.unset(name, script)].concat();
            let mut of_it = res.variables.get(name).cloned().unwrap_or_else(unset);
            let more = expand(word, script, before);
            let both: Vec<String> =
                of_it.iter().flat_map(|it| more.iter().map(move |more| format!("{it}{more}"))).collect();
            of_it.extend(both);
            res.variables.insert(name.clone(), bounded(of_it));
        }
        res.variables.values_mut().for_each(|it| *it = bounded(std::mem::take(it)));
        res
    }

    fn variable(&self, name: &str, script: &Script) -> Vec<String> {
        self.variables.get(name).cloned().unwrap_or_else(|| self.unset(name, script))
    }

    /// One that the script does not set to anything it says is the environment's, and no piece of a name that is not to be
    /// seen.
    fn unset(&self, name: &str, script: &Script) -> Vec<String> {
        let index = Index::of(script);
        match index.assigned.contains(name) {
            _ if index.reads => self.read.clone(),
            true => vec![ANY.to_string()],
            false => vec![String::new()],
        }
    }
}

/// The same, unless there are too many.
fn bounded(readings: Vec<String>) -> Vec<String> {
    let is_much = readings.len() > MAX_READINGS || readings.iter().map(String::len).sum::<usize>() > MAX_BYTES;
    if is_much { vec![TOO_MUCH.to_owned()] } else { readings }
}

fn expand(word: &Word, script: &Script, known: Option<&Known>) -> Vec<String> {
    if word.kind != WordKind::Expanded {
        return vec![word.text.clone()];
    }
    let max = MAX_BYTES.max(2 * word.text.len());
    let mut reader = Reader { rest: &word.text, quoted: false, res: vec![String::new()], max, script, known };
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
    /// All of `res` in bytes.
    max: usize,
    script: &'r Script,
    known: Option<&'r Known>,
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
                let inside = self.until('`');
                self.printed(inside);
            }
            '<' | '>' if self.rest.starts_with('(') => {
                _ = self.group();
                self.push_any();
            }
            '{' if !self.quoted => self.braces(),
            '$' => self.dollar(),
            _ => {
                let end = self.rest.find(SPECIAL).unwrap_or(self.rest.len());
                let (plain, rest) = self.rest.split_at(end);
                self.rest = rest;
                self.push(&[format!("{it}{plain}")]);
            }
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
        let size = |them: &[String]| them.iter().map(String::len).sum::<usize>();
        let bytes = size(&self.res) * more.len() + size(more) * self.res.len();
        match more {
            _ if bytes > self.max || self.res.len() * more.len() > MAX_READINGS => self.res = vec![TOO_MUCH.to_owned()],
            [it] => self.res.iter_mut().for_each(|res| res.push_str(it)),
            _ => {
                let joined = self.res.iter().flat_map(|it| more.iter().map(move |more| format!("{it}{more}")));
                self.res = joined.collect();
            }
        }
    }

    fn push_any(&mut self) {
        self.push(&[ANY.to_string()]);
    }

    /// What stands in the brackets that come next.
    fn group(&mut self) -> &'r str {
        let (start, mut depth) = (self.rest, 0_usize);
        while let Some(it) = self.next() {
            depth = if it == '(' { depth + 1 } else { depth - usize::from(it == ')' && depth > 0) };
            if depth == 0 {
                break;
            }
        }
        let inside = start.get(..start.len() - self.rest.len()).unwrap_or_default();
        inside.strip_prefix('(').and_then(|it| it.strip_suffix(')')).unwrap_or(inside)
    }

    /// What a substitution comes to: known where it only prints what its words say.
    fn printed(&mut self, inside: &str) {
        let command = Index::of(self.script).command(inside.trim(), self.script);
        match command.and_then(prints) {
            Some(it) => self.push(&[it]),
            None => self.push_any(),
        }
    }

    fn positional(&mut self) {
        let values = self.positionals();
        self.push(&values);
    }

    fn positionals(&self) -> Vec<String> {
        self.known.map_or_else(|| vec![TOO_MUCH.to_owned()], |it| it.positional.clone())
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
            Some('(') => {
                let inside = self.group();
                self.printed(inside);
            }
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
                // Behind an element's number or name.
                let rest = rest.strip_prefix('[').and_then(|it| it.split_once(']')).map_or(rest, |it| it.1);
                match (name.is_empty(), rest.is_empty()) {
                    (false, true) => self.variable(name),
                    (false, false) => self.or_else(self.values(name), rest),
                    (true, _) => match inside.split_at(positional_len(inside)) {
                        ("", _) => self.push_any(),
                        // Some of them, too: `${@:2}`.
                        (_, "") | ("@" | "*", _) => self.positional(),
                        (_, rest) => self.or_else(self.positionals(), rest),
                    },
                }
            }
            _ => {
                let (name, rest) = self.rest.split_at(name_len(self.rest));
                match name.is_empty() {
                    true => match self.next() {
                        Some(it) if positional_len(it.encode_utf8(&mut [0; 4])) > 0 => self.positional(),
                        _ => self.push_any(),
                    },
                    false => {
                        self.rest = rest;
                        self.variable(name);
                    }
                }
            }
        }
    }

    /// `${x:-y}`, `${x:+y}`: the one or the other; `${x#y}`: some of it.
    fn or_else(&mut self, values: Vec<String>, rest: &str) {
        let written = rest.strip_prefix(':').unwrap_or(rest).strip_prefix(['-', '=', '+']);
        let other = written.filter(|it| !it.contains(['$', '`', '{', '"', '\'', '\\']));
        match other {
            Some(it) => {
                let mut either = values;
                either.push(it.to_owned());
                self.push(&either);
            }
            None => match written {
                Some(it) if !it.contains(['`', '{', '\'', '\\']) => {
                    let inner = expand(&Word::expanded(it), self.script, self.known);
                    self.push(&[values, inner].concat());
                }
                // The script says it, in words within words.
                Some(_) => self.push(&[TOO_MUCH.to_owned()]),
                None => self.push_cut(values, rest),
            },
        }
    }

    fn push_cut(&mut self, values: Vec<String>, form: &str) {
        let cut = |it: String| match it.contains(ANY) {
            true => it,
            false => forms::cut(&it, form).unwrap_or_else(|| TOO_MUCH.to_owned()),
        };
        let cut: Vec<String> = values.into_iter().map(cut).collect();
        self.push(&cut);
    }

    fn variable(&mut self, name: &str) {
        let values = self.values(name);
        self.push(&values);
    }

    /// What a variable may be: all that the script sets it to.
    fn values(&self, name: &str) -> Vec<String> {
        self.known.map_or_else(|| vec![TOO_MUCH.to_owned()], |it| it.variable(name, self.script))
    }
}

/// `$1`, `$@`: what the script's own functions are called with, what `set` sets, what stands behind `sh -c 'script'`.
fn positional(script: &Script, known: Option<&Known>) -> Vec<String> {
    let own = |name: &str| name == "set" || script.functions.iter().any(|it| it == name);
    let args = script.commands.iter().flat_map(|it| match it.name() {
        Some(name) if own(name) => it.args(),
        Some(name) if is_shell(base_name(name)) => {
            let script = it.args().iter().position(|it| !it.text.starts_with(['-', '+']));
            script.and_then(|at| it.args().get(at + 1..)).unwrap_or_default()
        }
        _ => &[],
    });
    with_any(args.flat_map(|it| expand(it, script, known)))
}

/// What `read` and its like may find: what the script prints or hands on as text, or anything.
fn read_in(script: &Script, known: Option<&Known>) -> Vec<String> {
    let handed = script.values.all.iter().filter(|it| it.name.is_none()).flat_map(|it| expand(&it.word, script, known));
    let says = script.commands.iter().filter(|it| matches!(it.name(), Some("echo" | "printf")));
    let said = says.flat_map(Command::args).filter_map(Word::literal).map(str::to_owned);
    let lines = script.commands.iter().filter_map(|it| it.input.as_ref()).flat_map(|it| match it.literal {
        true => vec![it.text.clone()],
        false => expand(&Word::expanded(&it.text), script, known),
    });
    // Each word as well: a variable may get one of them.
    let words = |it: String| [&*it].into_iter().chain(it.split_whitespace()).map(str::to_owned).collect::<Vec<_>>();
    with_any(handed.chain(said).chain(lines).flat_map(words))
}

/// These, and what nobody knows.
fn with_any(readings: impl Iterator<Item = String>) -> Vec<String> {
    let mut res: Vec<String> = readings.take(MAX_READINGS).collect();
    res.push(if res.len() < MAX_READINGS { ANY.to_string() } else { TOO_MUCH.to_owned() });
    res
}

/// What a command prints whose words say it all: `echo a b`, `printf %s a`.
fn prints(command: &Command) -> Option<String> {
    let words: Option<Vec<&str>> = command.args().iter().map(Word::literal).collect();
    let words = words.filter(|it| !it.iter().any(|it| it.trim_end_matches("\\n").contains('\\')))?;
    match command.name()? {
        "echo" => {
            let option = |it: &&&str| {
                it.len() > 1 && it.strip_prefix('-').is_some_and(|it| it.bytes().all(|it| b"neE".contains(&it)))
            };
            let from = words.iter().take_while(option).count();
            Some(words.get(from..)?.join(" "))
        }
        "printf" => {
            let (format, args) = words.strip_prefix(&["--"]).unwrap_or(&words).split_first()?;
            let format = format.trim_end_matches("\\n");
            let plain = format.replace("%s", "");
            let times = args.len().checked_div(format.matches("%s").count()).unwrap_or(1).clamp(1, MAX_READINGS);
            let mut args = args.iter();
            let mut res = String::new();
            for piece in format.repeat(times).split_inclusive("%s") {
                match piece.strip_suffix("%s") {
                    Some(it) => res.extend([it, args.next().unwrap_or(&"")]),
                    None => res.push_str(piece),
                }
            }
            (!plain.contains('%') && !plain.starts_with('-')).then_some(res)
        }
        _ => None,
    }
}

/// How much of the start of `text` is the name of a word that a script or a function was called with: `1`, `@`, `*`.
fn positional_len(text: &str) -> usize {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 { usize::from(text.starts_with(['@', '*'])) } else { digits }
}

/// How much of the start of `text` is a variable's name.
fn name_len(text: &str) -> usize {
    let is_name = |(at, it): &(usize, char)| *it == '_' || it.is_ascii_alphabetic() || *at > 0 && it.is_ascii_digit();
    text.char_indices().take_while(is_name).count()
}
