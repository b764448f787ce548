//! `for f in *.txt; do cat "$f"; done`: what a command of a loop over plain words comes to, word by word.

use super::{Command, Script, Word, WordKind};

/// Longer lists are not gone through, nor so many words of commands.
const MAX_VALUES: usize = 100;
const MAX_WORDS: usize = 5_000;

/// What a script's loops over words set, and what is set beside them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loops {
    /// Something else gives words another meaning.
    pub beside: bool,
    /// The only one, where nothing else does and it goes over plain words.
    pub only: Option<Loop>,
}

/// A loop of a script that sets nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    name: String,
    values: Vec<Word>,
}

pub(super) fn find(script: &Script) -> Option<Loop> {
    let [name] = script.assigned.as_slice() else { return None };
    let values: Vec<Word> =
        script.values.all.iter().filter(|it| it.name.as_ref() == Some(name)).map(|it| it.word.clone()).collect();
    let n_words: usize = script.commands.iter().map(|it| it.words.len()).sum();
    let plain = values.len() * n_words <= MAX_WORDS
        && !script.loops.beside
        && (1..=MAX_VALUES).contains(&values.len())
        && values.iter().all(is_plain);
    plain.then(|| Loop { name: name.clone(), values })
}

/// One word also where it stands unquoted, and no option.
fn is_plain(word: &Word) -> bool {
    let patterns = word.kind == WordKind::Literal && word.text.contains(['*', '?', '[']);
    word.kind != WordKind::Expanded
        && !patterns
        && !word.text.is_empty()
        && !word.text.starts_with('-')
        && !word.text.contains(|it: char| it.is_whitespace() || it == '\\')
}

impl Loop {
    /// The words that it goes over, for a command that names its variable.
    pub fn values_in(&self, command: &Command) -> &[Word] {
        match command.args().iter().any(|it| self.is_named(it)) {
            true => &self.values,
            false => &[],
        }
    }

    /// The command as it runs, once for each value; as it stands, where it does not name the variable. `split`: the
    /// variable may stand unquoted for a name that nobody knows, which may come to several words.
    pub fn readings(&self, command: &Command, split: bool) -> Vec<Command> {
        let read = |word: &Word, value: &Word| {
            let known = value.kind == WordKind::Literal || split || word.text.starts_with('"');
            if self.is_named(word) && known { value.clone() } else { word.clone() }
        };
        let as_value = |value: &Word| {
            let words = command.words.iter().map(|it| read(it, value)).collect();
            Command { words, ..command.clone() }
        };
        match self.values_in(command) {
            [] => vec![command.clone()],
            values => values.iter().map(as_value).collect(),
        }
    }

    /// `$f`, `"${f}"`, and nothing around it.
    fn is_named(&self, word: &Word) -> bool {
        let text = word.text.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(&word.text);
        let name = text.strip_prefix('$').unwrap_or_default();
        let name = name.strip_prefix('{').and_then(|it| it.strip_suffix('}')).unwrap_or(name);
        word.kind == WordKind::Expanded && name == self.name
    }
}
