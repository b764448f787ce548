//! The words of a shell line, as far as they can be told without running it: whoever looks for files in it looks for
//! more rather than for less.
//!
//! Policy reads a shell line exactly, and takes what it cannot read for a reason to ask. Here nobody is asked about one
//! word: what cannot be told stands for anything.

use std::collections::BTreeMap;

use crate::base::text::head;

/// Stands for anything, also for several names in a row. In no path and no line.
pub const ANY: char = '\0';
/// How deep lines within lines are read: `bash -c "sh -c './x'"`.
const MAX_DEPTH: usize = 5;
/// More meanings of one word are "anything".
const MAX_MEANINGS: usize = 32;
/// Words of one line, with all their meanings. More is more than is looked at.
const MAX_WORDS: usize = 2000;
/// Of a word; longer ones are no paths.
const MAX_WORD: usize = 4096;
/// What stands in front of a command and is none.
const RESERVED: &[&str] = &["if", "then", "elif", "else", "do", "while", "until", "!", "{", "time", "in"];
/// Folders follow these.
const FOLDER_OPTIONS: &[&str] =
    &["-C", "--chdir", "--cwd", "--dir", "--directory", "--prefix", "--project", "--working-directory"];
/// What takes names of variables, and sets them to what nobody knows.
const READERS: &[&str] = &["read", "mapfile", "readarray", "getopts", "printf"];

/// What a word may be, in all its meanings; [`ANY`] in them.
pub type Meanings = Vec<String>;

/// What is known of variables before a line is read.
pub type Variables<'v> = &'v dyn Fn(&str) -> Meanings;

/// A command: its words.
pub type Command = Vec<Meanings>;

/// What a line says.
#[derive(Debug, Default)]
pub struct Line {
    pub commands: Vec<Command>,
    /// Where a `cd` may lead, one after the other.
    pub folders: Vec<Meanings>,
    /// It has more words than are looked at.
    pub cut: bool,
    n_words: usize,
    assigned: BTreeMap<String, Meanings>,
}

impl Line {
    pub fn read(text: &str, variables: Variables<'_>) -> Self {
        let mut res = Self::default();
        res.add(text, variables, 0);
        res
    }

    fn add(&mut self, text: &str, variables: Variables<'_>, depth: usize) {
        if depth >= MAX_DEPTH {
            self.cut = true;
            return;
        }
        let (word, command, ends) = (None, Vec::new(), Vec::new());
        Reader { rest: text, word, command, written: false, variables, depth, ends, line: self }.run();
    }

    /// Takes a command in: what it sets, where it goes, and lines in its words.
    fn take(&mut self, command: Command, variables: Variables<'_>, depth: usize) {
        self.n_words += command.iter().map(Vec::len).sum::<usize>();
        if self.n_words > MAX_WORDS {
            self.cut = true;
            return;
        }
        let literal = |at: usize| command.get(at).and_then(|it| it.first()).map(String::as_str);
        let start = (0..command.len()).find(|at| literal(*at).is_none_or(|it| !RESERVED.contains(&it))).unwrap_or(0);
        match literal(start).unwrap_or_default() {
            "for" | "select" => self.assign(literal(start + 1), command.iter().skip(start + 2).flatten().cloned()),
            "cd" | "pushd" => {
                // `cd -P x`; without an operand it is the home folder, which is nobody's workspace.
                let operand = command.iter().skip(start + 1).find(|it| !it.iter().all(|it| it.starts_with('-')));
                self.folders.extend(operand.cloned());
            }
            it if READERS.contains(&it) => {
                command.iter().skip(start + 1).flatten().for_each(|it| self.assign(Some(it), [ANY.to_string()]));
            }
            _ => (),
        }
        let mut after_option = false;
        for word in &command {
            if after_option {
                self.folders.push(word.clone());
            }
            after_option = word.iter().any(|it| FOLDER_OPTIONS.contains(&it.as_str()));
            for meaning in word {
                if let Some((name, value)) = meaning.split_once('=').or_else(|| meaning.split_at_checked(2)) {
                    // `--prefix=x`, `-Cx`
                    if FOLDER_OPTIONS.contains(&name) && !value.is_empty() {
                        self.folders.push(vec![value.to_owned()]);
                    }
                }
                if let Some((name, value)) = meaning.split_once('=') {
                    self.assign(Some(name.trim_end_matches('+')), [value.to_owned()]);
                }
                if meaning.contains([' ', '\t', '\n', ';', '&', '|', '`', '$']) {
                    self.add(meaning, variables, depth + 1);
                }
            }
        }
        self.commands.push(command);
    }

    fn assign(&mut self, name: Option<&str>, values: impl IntoIterator<Item = String>) {
        let Some(name) = name.filter(|it| !it.is_empty() && name_len(it) == it.len()) else { return };
        let known = self.assigned.entry(name.to_owned()).or_default();
        known.extend(values);
        known.sort();
        known.dedup();
        if known.len() > MAX_MEANINGS {
            *known = vec![ANY.to_string()];
        }
    }
}

struct Reader<'r, 'v> {
    rest: &'r str,
    /// `None`: between words.
    word: Option<Meanings>,
    command: Command,
    /// The next word is a file that is written: it says nothing of what runs.
    written: bool,
    variables: Variables<'v>,
    depth: usize,
    /// Where the here-documents end that begin at the next line.
    ends: Vec<String>,
    line: &'r mut Line,
}

impl<'r> Reader<'r, '_> {
    fn run(&mut self) {
        while let Some(it) = self.next() {
            match it {
                '<' if self.rest.starts_with('<') => self.here_document(),
                ' ' | '\t' | '\r' => self.end_word(),
                '<' => {
                    self.end_word();
                    // `<>` reads, too.
                    self.rest = self.rest.strip_prefix('>').unwrap_or(self.rest);
                }
                '>' => {
                    self.end_word();
                    self.rest = self.rest.trim_start_matches(['>', '&', '|']);
                    self.written = true;
                }
                '\n' => {
                    self.end_command();
                    self.documents();
                }
                ';' | '&' | '|' | '(' | ')' => self.end_command(),
                '#' if self.word.is_none() => self.rest = self.rest.find('\n').map_or("", |at| self.from(at)),
                '\\' => self.escaped(),
                '\'' => self.quoted(),
                '"' => self.double_quoted(),
                '$' | '`' => self.expansion(it),
                '~' if self.word.is_none() && !self.rest.starts_with(|it: char| it.is_alphanumeric()) => {
                    let home = self.value("HOME");
                    self.push(&home);
                }
                '*' | '?' => self.push_any(),
                '[' | '{' => self.class(it),
                _ => self.push_char(it),
            }
        }
        self.end_command();
    }

    fn next(&mut self) -> Option<char> {
        let it = self.rest.chars().next()?;
        self.rest = self.from(it.len_utf8());
        Some(it)
    }

    fn from(&self, at: usize) -> &'r str {
        self.rest.get(at..).unwrap_or_default()
    }

    /// What comes before `at`, and goes on behind `len` bytes more.
    fn take(&mut self, at: usize, len: usize) -> &'r str {
        let res = self.rest.get(..at).unwrap_or_default();
        self.rest = self.from(at + len);
        res
    }

    fn push(&mut self, more: &Meanings) {
        let word = self.word.take().unwrap_or_else(|| vec![String::new()]);
        let joined =
            word.iter().flat_map(|it| more.iter().map(move |more| head(&format!("{it}{more}"), MAX_WORD).to_owned()));
        let joined: Meanings = joined.take(MAX_MEANINGS + 1).collect();
        self.word = Some(if joined.len() > MAX_MEANINGS { vec![ANY.to_string()] } else { joined });
    }

    fn push_any(&mut self) {
        self.push(&vec![ANY.to_string()]);
    }

    fn push_char(&mut self, it: char) {
        let word = self.word.get_or_insert_with(|| vec![String::new()]);
        word.iter_mut().filter(|it| it.len() < MAX_WORD).for_each(|word| word.push(it));
    }

    fn end_word(&mut self) {
        let Some(it) = self.word.take() else { return };
        if !std::mem::take(&mut self.written) {
            self.command.push(it);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.written = false;
        let command = std::mem::take(&mut self.command);
        if !command.is_empty() {
            self.line.take(command, self.variables, self.depth);
        }
    }

    /// `<<EOF`, but not `<<<`.
    fn here_document(&mut self) {
        self.end_word();
        let rest = self.from(1);
        if let Some(rest) = rest.strip_prefix('<') {
            self.rest = rest;
            return;
        }
        self.rest = rest.trim_start_matches('-').trim_start_matches([' ', '\t']);
        let len = self.rest.find([' ', '\t', '\n', ';', '&', '|', '<', '>', ')']).unwrap_or(self.rest.len());
        let end = self.take(len, 0).replace(['\'', '"', '\\'], "");
        self.ends.push(end);
    }

    /// Quotes in a here-document are no quotes of the line. It may be a script.
    fn documents(&mut self) {
        for end in std::mem::take(&mut self.ends) {
            let mut len = 0;
            let is_end = |it: &&str| it.trim_start_matches('\t').trim_end_matches('\n') == end;
            let before: Vec<&str> = self.rest.split_inclusive('\n').take_while(|it| !is_end(it)).collect();
            before.iter().for_each(|it| len += it.len());
            if len < self.rest.len() {
                let body = self.take(len, 0);
                self.line.add(body, self.variables, self.depth + 1);
                self.rest = self.rest.split_once('\n').map_or("", |it| it.1);
            }
        }
    }

    fn escaped(&mut self) {
        match self.next() {
            Some('\n') | None => (),
            Some(it) => self.push_char(it),
        }
    }

    /// A quote that has no end may be text of a here-document: it stands for itself.
    fn quoted(&mut self) {
        match self.rest.find('\'') {
            Some(at) => {
                let text = self.take(at, 1).to_owned();
                self.push(&vec![text]);
            }
            None => self.push_char('\''),
        }
    }

    fn double_quoted(&mut self) {
        let Some(end) = end_of_quote(self.rest) else { return self.push_char('"') };
        let after = self.from(end + 1);
        self.rest = self.take(end, 1);
        self.push(&vec![String::new()]);
        while let Some(it) = self.next() {
            match it {
                '\\' if self.rest.starts_with(['$', '`', '"', '\\', '\n']) => self.escaped(),
                '$' if self.rest.starts_with(['\'', '"']) => self.push_char('$'),
                '$' | '`' => self.expansion(it),
                _ => self.push_char(it),
            }
        }
        self.rest = after;
    }

    fn expansion(&mut self, it: char) {
        let rest = self.rest;
        if it == '`' {
            return match rest.find('`') {
                Some(at) => {
                    let inner = self.take(at, 1);
                    self.substitution(inner);
                }
                None => self.push_char('`'),
            };
        }
        match rest.chars().next() {
            Some('(') => {
                let end = end_of_pair(rest, '(', ')');
                let inner = self.take(end, 1).get(1..).unwrap_or_default();
                self.substitution(inner);
            }
            Some('{') => {
                let end = end_of_pair(rest, '{', '}');
                let inner = self.take(end, 1).get(1..).unwrap_or_default();
                self.parameter(inner);
            }
            // `$'\x2e'`
            Some('\'') => {
                let end = rest.get(1..).and_then(|it| it.find('\'')).map_or(rest.len(), |it| it + 1);
                match self.take(end, 1).get(1..).unwrap_or_default() {
                    it if it.contains('\\') => self.push_any(),
                    it => self.push(&vec![it.to_owned()]),
                }
            }
            Some('"') => (),
            _ => {
                let name = self.take(name_len(rest), 0);
                match name.is_empty() {
                    // `$1`, `$@`, `$?`
                    true if rest.starts_with(|it: char| !it.is_whitespace()) => {
                        _ = self.next();
                        self.push_any();
                    }
                    true => self.push_char('$'),
                    false => {
                        let values = self.value(name);
                        self.push(&values);
                    }
                }
            }
        }
    }

    fn substitution(&mut self, inner: &str) {
        self.line.add(inner, self.variables, self.depth + 1);
        let inner = inner.trim();
        // What everybody writes for "the top of this repository", for "here", and for a program of the machine.
        let known = match inner.strip_prefix("command -v ").or_else(|| inner.strip_prefix("which ")) {
            Some(it) if !it.contains(['$', '`', '\'', '"', '\\', '*', '/']) => vec![it.trim().to_owned()],
            _ if matches!(inner, "pwd" | "pwd -P") => self.value("PWD"),
            _ if inner == "git rev-parse --show-toplevel" => self.value("GEMINI_PROJECT_DIR"),
            _ => Vec::new(),
        };
        match known.is_empty() {
            true => self.push_any(),
            false => self.push(&known),
        }
    }

    /// `${NAME}`, `${NAME:-default}`; what other operators do to a value is not followed.
    fn parameter(&mut self, inner: &str) {
        let (name, rest) = inner.split_at(name_len(inner));
        let default = [":-", ":=", "-", "="].iter().find_map(|it| rest.strip_prefix(it));
        match default {
            _ if name.is_empty() => self.push_any(),
            None if !rest.is_empty() => self.push_any(),
            Some(it) if it.contains(['$', '`', '"', '\'', '\\']) => self.push_any(),
            _ => {
                let mut values = self.value(name);
                values.extend(default.map(str::to_owned));
                self.push(&values);
            }
        }
    }

    /// What it was set to in the line, and what it was before: nobody knows which of them holds.
    fn value(&self, name: &str) -> Meanings {
        let assigned = self.line.assigned.get(name).into_iter().flatten().cloned();
        let mut res: Meanings = assigned.chain((self.variables)(name)).collect();
        res.sort();
        res.dedup();
        res
    }

    /// `[a-z]`, `{a,b}`. Alone, they are words of the shell.
    fn class(&mut self, open: char) {
        let close = if open == '[' { ']' } else { '}' };
        let end = self.rest.find([close, ' ', '\t', '\n']).filter(|at| self.from(*at).starts_with(close));
        match end {
            Some(at) if at > 0 => {
                _ = self.take(at, 1);
                self.push_any();
            }
            _ => self.push_char(open),
        }
    }
}

/// A line without the files that its output goes to: what is written every day runs nothing.
pub fn without_written(line: &str) -> String {
    let mut parts = line.split('>');
    let mut res = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let part = part.trim_start_matches(['&', '|', ' ', '\t']);
        let end = part.find([' ', '\t', '\n', ';', '&', '|', '<', '(', ')']).unwrap_or(part.len());
        res.push(' ');
        res += part.get(end..).unwrap_or_default();
    }
    res
}

/// How much of the start of `text` is a variable's name.
fn name_len(text: &str) -> usize {
    let is_name = |(at, it): &(usize, char)| *it == '_' || it.is_ascii_alphabetic() || *at > 0 && it.is_ascii_digit();
    text.char_indices().take_while(is_name).count()
}

/// Where the quote that was opened before `text` ends. Those within `$( )` and `${ }` are others'.
fn end_of_quote(text: &str) -> Option<usize> {
    let (mut depth, mut escaped, mut last) = (0_usize, false, ' ');
    for (at, it) in text.char_indices() {
        match it {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '(' | '{' if depth > 0 || last == '$' => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            '"' if depth == 0 => return Some(at),
            _ => (),
        }
        last = it;
    }
    None
}

/// Where the pair ends that `text` begins with; its end where it does not.
fn end_of_pair(text: &str, open: char, close: char) -> usize {
    let (mut depth, mut quote) = (0_usize, None);
    for (at, it) in text.char_indices() {
        match (it, quote) {
            ('\'' | '"', None) => quote = Some(it),
            (it, Some(q)) if it == q => quote = None,
            (_, Some('\'')) => (),
            (it, _) if it == open => depth += 1,
            (it, _) if it == close => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at;
                }
            }
            _ => (),
        }
    }
    text.len()
}
