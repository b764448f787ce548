//! What a shell command would run: every sub-command, however deep, or the reason why that cannot be told.
//!
//! The grammar is tree-sitter's; bash has the last word when the command runs. Where the two are known to differ
//! (line continuations inside words, escaped blanks, comments in back-quotes, here-documents with odd delimiters,
//! words after a redirection) the text counts as unparsed: nobody may be misled by our reading.

mod carriers;
pub(super) mod changed;
mod edits;
mod evaluate;
mod heredoc;
mod hiding;
mod interpreters;
mod loops;
mod starts;
mod unseen;
mod variables;
mod walk;
mod words;
mod wrap;
mod written;
mod xargs;

use std::{collections::BTreeSet, sync::OnceLock};

use super::pieces::{Index, Known};
pub(super) use carriers::runs_behind;
pub(super) use hiding::ends_in_shell;
pub(super) use interpreters::{SPAWNS, is_language};
pub use loops::Loops;
pub use words::{Word, WordKind};
pub(super) use wrap::{base_name, is_shell, looks_up, runs_by_assignment};
pub(super) use written::{filled, said};
pub(super) use xargs::FOUND;

/// Longer scripts are not read.
pub const MAX_BYTES: usize = 64 * 1024;
/// More words are not listed for wrappers: `env env env … ls` has the rest of them for each.
const MAX_WRAPPED: usize = 16 * 1024;
/// What reads its input itself, for words that it hands on.
const HANDS_NAMES: &[&str] = &["gxargs", "parallel", "xargs"];
/// Scripts within scripts (`bash -c "bash -c …"`) and substitutions within substitutions beyond this are not read.
pub const MAX_DEPTH: usize = 8;

/// Why a command could not be read. Such a command is never allowed by what it seems to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unparsed(pub &'static str);

/// A command that would run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Command {
    /// The name first, quoting resolved.
    pub words: Vec<Word>,
    /// As written.
    pub text: String,
    /// What it runs cannot be read from its words: `$CMD`, `eval "$x"`, `… | sh`, an unknown option of `sudo`.
    pub opaque: bool,
    /// Nor does its text say it: it runs what it reads.
    pub unseen: bool,
    /// It only runs what its script says, and that is listed on its own: `bash -c 'ls'`.
    pub transparent: bool,
    /// It runs other commands that are listed on their own: `xargs rm`, `env X=1 make`.
    pub wrapper: bool,
    /// It may be what another command of the list runs, which needs a yes itself: `uv run make`.
    pub carried: bool,
    /// Code in another language that it runs: `python -c`, `awk '…'`.
    pub code: Option<String>,
    /// Its here-document.
    pub input: Option<Input>,
    /// It reads what another command prints, or a file.
    pub piped: bool,
}

impl Command {
    /// A command by itself, as far as its first word tells.
    fn new(words: Vec<Word>, text: String) -> Self {
        let opaque = words.first().and_then(Word::literal).is_none_or(wrap::is_reserved);
        let (transparent, wrapper, carried, unseen) = (false, false, false, false);
        Self { words, text, opaque, unseen, transparent, wrapper, carried, code: None, input: None, piped: false }
    }
}

/// What a here-document hands to a command.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Input {
    pub text: String,
    /// bash expands nothing in it.
    pub literal: bool,
}

impl Command {
    /// The program, when it is written out.
    pub fn name(&self) -> Option<&str> {
        self.words.first().and_then(Word::literal)
    }

    /// The words after the name.
    pub fn args(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }

    /// The words as one line, when all of them are literal.
    pub fn literal_line(&self) -> Option<String> {
        let words: Option<Vec<&str>> = self.words.iter().map(Word::literal).collect();
        words.map(|it| it.join(" "))
    }
}

/// Where output goes to or input comes from, other than descriptors and `/dev/null`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    pub target: Word,
    pub writes: bool,
    /// The place of the command whose output it is, when it is a single one.
    pub by: Option<usize>,
    /// The places of the `cd` before it, in order, that go for it, too.
    pub behind: Vec<usize>,
}

/// What a script sets a variable to, or hands to a command as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The variable.
    pub name: Option<String>,
    pub word: Word,
    /// It comes behind what was there: `a+=b`.
    pub appends: bool,
}

/// What a script sets variables to, as far as that is written out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    pub all: Vec<Value>,
    /// What comes of that, from when it is first asked for.
    pub(super) known: OnceLock<Known>,
    pub(super) index: OnceLock<Index>,
}

/// In which folders a script runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Going {
    /// In one that the call names: as behind a `cd`.
    pub moved: bool,
    /// The one that it starts in, where that is the session's: a `cd` there goes nowhere.
    pub start: Option<String>,
    /// A `cd` in it may lead to the root or to a home.
    pub wide: bool,
    /// Its commands are joined by `&&` alone: each runs only behind all before it, in the same shell.
    pub chained: bool,
    /// Some of them may be in a shell of their own, or in a function.
    pub nested: bool,
    /// The places of its own `cd`, not those of scripts within it.
    pub(super) went: Vec<usize>,
}

/// A whole command line, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    pub commands: Vec<Command>,
    pub redirects: Vec<Redirect>,
    /// `$( )`, back-quotes, `<( )`, `>( )`.
    pub has_substitution: bool,
    /// Assignments, functions, loops over a variable, arithmetic: later words may not mean what they say.
    pub has_definitions: bool,
    /// Of these, loops over words.
    pub loops: Loops,
    /// Variables that it sets, by name.
    pub assigned: Vec<String>,
    /// Functions that it defines, by name.
    pub functions: Vec<String>,
    /// Here-documents and here-strings.
    pub has_heredoc: bool,
    pub going: Going,
    pub values: Values,
    /// Variables that may be anything where a command of it names them.
    pub(super) unsure: BTreeSet<String>,
    /// How many words wrappers run.
    pub(super) wrapped: usize,
    /// What bash evaluates in it, while it is read.
    pub(super) evaluated: evaluate::Evaluated,
}

impl Script {
    /// Reads `text`, and the scripts in it that are handed to a shell literally.
    pub fn parse(text: &str) -> Result<Self, Unparsed> {
        let joined = text.trim().replace("&&", "").contains([';', '|', '&', '\n', '(', ')', '{', '}', '`', '!']);
        let mut res = Self {
            going: Going { chained: !joined, nested: text.contains('('), ..Going::default() },
            ..Self::default()
        };
        res.add(text, 0)?;
        written::list_scripts(&mut res);
        changed::by_commands(&mut res)?;
        evaluate::list_hidden(&mut res);
        written::list_copies(&mut res)?;
        written::mark(&mut res);
        res.mark_aliases();
        res.mark_homes()?;
        res.loops.only = loops::find(&res);
        // `> x`
        if res.commands.is_empty() && !res.redirects.is_empty() {
            res.commands.push(Command::new(vec![Word::literally(":")], ":".to_owned()));
        }
        match res.commands.is_empty() {
            true => Err(Unparsed("it has no command in it")),
            false => Ok(res),
        }
    }

    /// The commands in the substitutions of a word.
    pub(super) fn commands_in<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a Command> {
        let commands = if substitutes(text) { self.commands.as_slice() } else { &[] };
        commands.iter().filter(|it| it.text.len() < text.len() && text.contains(&it.text))
    }

    /// Whether something is written to a file.
    pub fn writes_files(&self) -> bool {
        self.redirects.iter().any(|it| it.writes)
    }

    /// What an alias of the script stands for nobody puts together here: it may end anywhere, in quotes, too.
    fn mark_aliases(&mut self) {
        let defines = self.commands.iter().filter(|it| it.name() == Some("alias"));
        let names = defines.flat_map(Command::args).filter_map(|it| Some(it.text.split_once('=')?.0.to_owned()));
        let names: Vec<String> = names.collect();
        let called = |it: &&mut Command| it.name().is_some_and(|it| names.iter().any(|name| name == it));
        for command in self.commands.iter_mut().filter(called) {
            (command.opaque, command.unseen) = (true, true);
        }
    }

    /// Programs in a home that the script may set to anything, and a lookup that it makes its own.
    fn mark_homes(&mut self) -> Result<(), Unparsed> {
        if self.functions.iter().any(|it| matches!(it.as_str(), "which" | "command")) {
            return Err(Unparsed("it redefines what looks up a program"));
        }
        let names = |it: &Word| it.text == "HOME" || it.text.starts_with("HOME=");
        let set = self.assigned.iter().any(|it| it == "HOME");
        if set || self.commands.iter().any(|it| it.args().iter().any(names)) {
            let at_home = |it: &&mut Command| it.words.first().is_some_and(|it| it.text.starts_with("~/"));
            self.commands.iter_mut().filter(at_home).for_each(|it| (it.opaque, it.unseen) = (true, true));
        }
        Ok(())
    }

    fn add(&mut self, text: &str, depth: usize) -> Result<(), Unparsed> {
        if depth > MAX_DEPTH {
            return Err(Unparsed("scripts are nested too deep"));
        }
        prescan(text)?;
        let first = self.commands.len();
        for inner in walk::walk(text, self)?.into_iter().filter(|it| !it.trim().is_empty()) {
            self.add(&inner, depth + 1)?;
        }
        let mut at = first;
        while at < self.commands.len() {
            self.unwrap_at(at, depth)?;
            at += 1;
        }
        Ok(())
    }

    /// Lists what a wrapper runs behind the command at `at`. The list grows; the caller's loop reaches the new ones,
    /// so that wrappers of wrappers are taken apart too.
    fn unwrap_at(&mut self, at: usize, depth: usize) -> Result<(), Unparsed> {
        let Some(command) = self.commands.get_mut(at) else { return Ok(()) };
        // Those of a script within this one were unwrapped while it was added.
        if command.wrapper {
            return Ok(());
        }
        let (carried, piped, input) = (command.carried, command.piped, command.input.clone());
        let hands_on = !command.name().is_some_and(|it| HANDS_NAMES.contains(&base_name(it)));
        let input = input.as_ref().filter(|_| hands_on);
        let (inner, text) = match wrap::inner(&command.words, command.input.as_ref()) {
            wrap::Inner::Nothing => return Ok(()),
            hidden @ (wrap::Inner::Hidden | wrap::Inner::Unseen) => {
                command.opaque = true;
                command.unseen = matches!(hidden, wrap::Inner::Unseen);
                return Ok(());
            }
            wrap::Inner::Code(code) => {
                let starts = starts::find(&code);
                command.code = Some(code);
                return self.started(starts, at, depth);
            }
            wrap::Inner::Same(inner) => return self.list(vec![inner], true, (input, piped)),
            // What comes behind the words that may be carried is listed already.
            wrap::Inner::Carried(_) if carried => return Ok(()),
            wrap::Inner::Carried(inner) => return self.list(inner, true, (input, piped)),
            wrap::Inner::Words(inner) => (inner, None),
            wrap::Inner::Script { text, transparent } => {
                command.transparent = transparent || carried;
                (Vec::new(), Some(text))
            }
        };
        command.wrapper = true;
        self.list(inner, carried, (input, piped))?;
        match text {
            Some(text) if !text.trim().is_empty() => self.add(&text, depth + 1),
            _ => Ok(()),
        }
    }

    /// Behind a line that cannot be read anything may hide.
    fn started(&mut self, starts: Vec<starts::Start>, at: usize, depth: usize) -> Result<(), Unparsed> {
        for start in starts {
            match start {
                starts::Start::Line(line) if self.add(&line, depth + 1).is_err() => {
                    let command = self.commands.get_mut(at);
                    command.into_iter().for_each(|it| (it.opaque, it.unseen) = (true, true));
                }
                starts::Start::Line(_) => (),
                starts::Start::Words(words) => self.list(vec![words], false, (None, false))?,
            }
        }
        Ok(())
    }

    /// `input` is what they read, too: `sudo python3 - <<E`.
    fn list(
        &mut self,
        inner: Vec<Vec<Word>>,
        carried: bool,
        (input, piped): (Option<&Input>, bool),
    ) -> Result<(), Unparsed> {
        for words in inner {
            let name = words.first().and_then(Word::literal).map(base_name).unwrap_or_default();
            // What a shell runs elsewhere is not judged as if it were here.
            let reads = interpreters::is_one(name) || !carried && is_shell(name);
            let input = input.filter(|_| reads).cloned();
            let text = words.iter().map(|it| it.text.as_str()).collect::<Vec<_>>().join(" ");
            self.wrapped += words.len();
            self.commands.push(Command { carried, transparent: carried, input, piped, ..Command::new(words, text) });
            if self.commands.len() > MAX_BYTES || self.wrapped > MAX_WRAPPED {
                return Err(Unparsed("it has too many commands"));
            }
        }
        Ok(())
    }
}

/// Whether a word has a command in it.
pub(super) fn substitutes(text: &str) -> bool {
    text.contains("$(") || text.contains('`')
}

/// Characters and shapes on which readers disagree.
fn prescan(text: &str) -> Result<(), Unparsed> {
    if text.len() > MAX_BYTES {
        return Err(Unparsed("it is too long"));
    }
    // bash splits words at blanks, tabs and newlines only; a grammar may split at more. Invisible ones also make
    // people approve something other than what they see.
    let odd = |it: char| {
        !matches!(it, ' ' | '\t' | '\n')
            && (it.is_control()
                || it.is_whitespace()
                || matches!(it, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'))
    };
    // Several signs make one picture, with such a one between them.
    let picture = |it: &str| it.chars().next().is_some_and(|it| it >= '\u{2190}');
    let joined = |it: &str| it.split('\u{200d}').skip(1).all(picture);
    let shown = if joined(text) { text.replace('\u{200d}', "") } else { text.to_owned() };
    if shown.chars().any(odd) {
        return Err(Unparsed("it has control characters or unusual blanks in it"));
    }
    Ok(())
}

/// `r\⏎m` is `rm` to bash and two words to the grammar.
fn check_continuations(text: &str) -> Result<(), Unparsed> {
    let blank = |it: Option<&u8>| it.is_none_or(|it| matches!(it, b' ' | b'\t' | b'\n'));
    let bytes = text.as_bytes();
    for (at, pair) in bytes.windows(2).enumerate() {
        let before = at.checked_sub(1).and_then(|it| bytes.get(it));
        // An escaped blank belongs to its word.
        let escaped = at.checked_sub(2).and_then(|it| bytes.get(it)) == Some(&b'\\');
        if pair == b"\\\n" && (!blank(before) || escaped) && !blank(bytes.get(at + 2)) {
            return Err(Unparsed("a line is continued within a word"));
        }
    }
    Ok(())
}
