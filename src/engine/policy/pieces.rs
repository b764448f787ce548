//! Words of the shell that are put together from pieces: what they may come to, as far as the script itself says it.

mod forms;
mod sources;

use std::collections::{BTreeMap, BTreeSet};

use super::{
    ansi,
    shell::{Command, Script, Word, WordKind, changed},
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
/// Variables that the shell itself sets, to words of the script or to what it reads.
const OF_SHELL: &[&str] =
    &["BASH_ARGV", "BASH_COMMAND", "BASH_EXECUTION_STRING", "BASH_REMATCH", "MAPFILE", "OPTARG", "REPLY", "_"];
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

    /// Whether the script says what parts words: `IFS=:`, `read -d,`.
    pub(super) fn parts_oddly(&self, script: &Script) -> bool {
        let by_option = |it: &Command| {
            it.name().is_some_and(|it| READERS.contains(&it))
                && it.args().iter().any(|it| it.text.starts_with('-') && it.text.contains('d'))
        };
        self.assigned.contains("IFS") || self.reads && script.commands.iter().any(by_option)
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
        let mut res =
            Self { variables, positional: sources::positional(script, before), read: sources::read_in(script, before) };
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
            _ if OF_SHELL.contains(&name) => vec![TOO_MUCH.to_owned()],
            _ if index.reads => self.read.clone(),
            true => vec![ANY.to_string()],
            // Behind a `cd` no relative name is believed.
            false if name == "PWD" => vec![".".to_owned()],
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
        let readings = command.map(|it| self.readings_of(it)).unwrap_or_default();
        match readings.is_empty() {
            true => self.push_any(),
            false => self.push(&readings),
        }
    }

    /// What a command may print; nothing where its words do not say it.
    fn readings_of(&self, command: &Command) -> Vec<String> {
        if !matches!(command.name(), Some("echo" | "printf")) {
            return Vec::new();
        }
        let words: Vec<Vec<String>> = command.args().iter().map(|it| expand(it, self.script, self.known)).collect();
        if words.iter().flatten().any(|it| it.contains(ANY)) {
            let much = words.iter().flatten().any(|it| it.contains(TOO_MUCH));
            return if much { vec![TOO_MUCH.to_owned()] } else { Vec::new() };
        }
        let count = words.iter().map(Vec::len).max().unwrap_or(1);
        let at = |at: usize| -> Vec<&str> {
            words.iter().filter_map(|it| it.get(at).or(it.last())).map(String::as_str).collect()
        };
        // What is printed in a form of its own may well be an option, where it has a dash.
        let odd = words.iter().flatten().any(|it| it.contains('-'));
        let name = command.name().unwrap_or_default();
        let printed: Option<Vec<String>> = (0..count).map(|it| sources::prints(name, &at(it))).collect();
        printed.unwrap_or_else(|| if odd { vec![TOO_MUCH.to_owned()] } else { Vec::new() })
    }

    fn positional(&mut self) {
        let values = self.positionals();
        self.push(&values);
    }

    fn positionals(&self) -> Vec<String> {
        self.known.map_or_else(|| vec![TOO_MUCH.to_owned()], |it| it.positional.clone())
    }

    /// `{a,b}` is either.
    fn braces(&mut self) {
        let inside = self.until('}');
        match inside.contains(',') && !inside.contains(['{', '$', '`', '"', '\'', '\\']) {
            true => self.push(&inside.split(',').map(str::to_owned).collect::<Vec<_>>()),
            // The script says it, in words within words.
            false if inside.contains(',') => self.push(&[TOO_MUCH.to_owned()]),
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
