//! Words of the shell that are put together from pieces: what they may come to, as far as the script itself says it.

use super::{
    ansi,
    shell::{Command, Script, Word, WordKind, base_name, is_shell},
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
                let inside = self.until('`');
                self.printed(inside);
            }
            '<' | '>' if self.rest.starts_with('(') => {
                _ = self.group();
                self.push_any();
            }
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
        let command = self.script.commands.iter().find(|it| it.text == inside.trim());
        match command.and_then(prints) {
            Some(it) => self.push(&[it]),
            None => self.push_any(),
        }
    }

    /// `$1`, `$@`: what the script's own functions are called with, what `set` sets, what stands behind `sh -c 'script'`.
    fn positional(&mut self) {
        let own = |name: &str| name == "set" || self.script.functions.iter().any(|it| it == name);
        let args = self.script.commands.iter().flat_map(|it| match it.name() {
            Some(name) if own(name) => it.args(),
            Some(name) if is_shell(base_name(name)) => {
                let script = it.args().iter().position(|it| !it.text.starts_with(['-', '+']));
                script.and_then(|at| it.args().get(at + 1..)).unwrap_or_default()
            }
            _ => &[],
        });
        let depth = self.depth + 1;
        let mut values: Vec<String> = match depth > MAX_DEPTH {
            true => Vec::new(),
            false => args.flat_map(|it| expand(it, self.script, depth)).take(MAX_READINGS).collect(),
        };
        values.push(ANY.to_string());
        self.push(&values);
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
                match (name.is_empty(), rest.is_empty() || rest.starts_with('[')) {
                    (false, true) => self.variable(name),
                    (true, _) if is_positional(inside) => self.positional(),
                    (false, _) => self.or_else(name, rest),
                    _ => self.push_any(),
                }
            }
            _ => {
                let (name, rest) = self.rest.split_at(name_len(self.rest));
                match name.is_empty() {
                    true => match self.next() {
                        Some(it) if is_positional(it.encode_utf8(&mut [0; 4])) => self.positional(),
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

    /// `${x:-y}`, `${x:+y}`: the one or the other.
    fn or_else(&mut self, name: &str, rest: &str) {
        let rest = rest.strip_prefix(':').unwrap_or(rest);
        let other = rest.strip_prefix(['-', '=', '+']).filter(|it| !it.contains(['$', '`', '{', '"', '\'', '\\']));
        match other {
            Some(it) => {
                let mut either = values(name, self.script, self.depth + 1);
                either.push(it.to_owned());
                self.push(&either);
            }
            None => self.push_any(),
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
        true if reads => res = read_in(script, depth),
        true if script.assigned.iter().any(|it| it == name) => res = anything(),
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

/// What `read` and its like may find: what the script prints or hands on as text, or anything.
fn read_in(script: &Script, depth: usize) -> Vec<String> {
    let handed = script.values.iter().filter(|it| it.name.is_none()).flat_map(|it| expand(&it.word, script, depth));
    let says = script.commands.iter().filter(|it| matches!(it.name(), Some("echo" | "printf")));
    let said = says.flat_map(Command::args).filter_map(Word::literal).map(str::to_owned);
    handed.chain(said).take(MAX_READINGS).chain([ANY.to_string()]).collect()
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

/// `1`, `@`, `*`
fn is_positional(name: &str) -> bool {
    matches!(name, "@" | "*") || !name.is_empty() && name.bytes().all(|it| it.is_ascii_digit())
}

/// How much of the start of `text` is a variable's name.
fn name_len(text: &str) -> usize {
    let is_name = |(at, it): &(usize, char)| *it == '_' || it.is_ascii_alphabetic() || *at > 0 && it.is_ascii_digit();
    text.char_indices().take_while(is_name).count()
}
