//! What a script changes for its other words in passing: variables, and what patterns find.

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::{Command, Script, Unparsed, Value, Word, WordKind, base_name, wrap};

/// What runs a command with the variables among its words.
const WITH_VARIABLES: &[&str] = &["doas", "env", "sudo"];
/// What sets variables that its words name.
const DECLARES: &[&str] = &["declare", "export", "local", "readonly", "typeset"];
/// What makes one variable another's name, by this option.
const REFERENCES: (&[&str], char) = (&["declare", "local", "typeset"], 'n');
/// What makes stars find names that begin with a dot, and the words by which.
/// The same, by being set.
const DOTTED: &[&str] = &["BASHOPTS", "GLOBIGNORE"];
/// Arrays of bash that say what a name runs.
const NAMES: &[&str] = &["BASH_ALIASES", "BASH_CMDS"];
const DOTS: &[(&str, &[&str])] =
    &[("set", &["globdots", "dotglob"]), ("setopt", &["globdots", "dotglob"]), ("shopt", &["dotglob"])];

/// Variables that have a value of the script for sure, and up to which byte: behind an assignment on its own, and in a loop.
#[derive(Debug, Default)]
pub(super) struct Sure(Vec<(String, usize)>);

impl Sure {
    pub fn enter(&mut self, node: Node, text: &str) {
        let apart = || node.next_sibling().is_none_or(|it| it.kind() != "&");
        match node.kind() {
            "variable_assignment" if node.parent().is_some_and(|it| it.kind() == "program") && apart() => {
                let name = text.split('=').next().filter(|it| is_name(it));
                self.0.extend(name.map(|it| (it.to_owned(), usize::MAX)));
            }
            "for_statement" => {
                let name = node.child_by_field_name("variable").and_then(|it| {
                    let start = it.start_byte().checked_sub(node.start_byte())?;
                    text.get(start..start + it.end_byte() - it.start_byte())
                });
                self.0.extend(name.map(|it| (it.to_owned(), node.end_byte())));
            }
            _ => (),
        }
    }

    /// Notes the variables of a command at that byte that may be anything when it runs.
    pub fn hear(&self, words: &[Word], at: usize, unsure: &mut BTreeSet<String>) {
        let open = words.iter().filter(|it| it.kind == WordKind::Expanded).flat_map(|it| names_in(&it.text));
        let is_sure = |name: &str| self.0.iter().any(|it| it.0 == name && at < it.1);
        unsure.extend(open.filter(|it| !is_sure(it)).map(str::to_owned));
    }
}

/// The variables that a word names.
pub(in crate::engine::policy) fn names_in(text: &str) -> impl Iterator<Item = &str> {
    text.split('$').skip(1).map(|it| {
        let it = it.strip_prefix('{').unwrap_or(it);
        it.split(|it: char| !(it.is_ascii_alphanumeric() || it == '_')).next().unwrap_or_default()
    })
}

/// Refuses expansions that cannot be followed, and notes what `${x:=y}` sets.
pub(super) fn by_expansion(text: &str, out: &mut Script) -> Result<(), Unparsed> {
    check(text)?;
    let inside = text.strip_prefix("${").and_then(|it| it.strip_suffix('}'));
    let set = inside.and_then(|it| it.split_once('=')).map(|(name, value)| (name.trim_end_matches(':'), value));
    if let Some((name, value)) = set.filter(|(name, _)| is_name(name)) {
        out.has_definitions = true;
        out.loops.beside = true;
        out.assigned.push(name.to_owned());
        out.values.all.push(value_of(name, value));
    }
    Ok(())
}

/// Notes what the commands of a whole script change.
///
/// # Errors
/// Where a variable stands for another one.
pub(super) fn by_commands(out: &mut Script) -> Result<(), Unparsed> {
    if out.commands.iter().any(refers) {
        return Err(Unparsed("it makes a variable another's name"));
    }
    let puts_together = |it: &Word| {
        let text = it.text.trim_start_matches('"');
        let name = text.split_once('=').map_or("", |it| it.0);
        it.kind == WordKind::Expanded && !text.starts_with("$(") && name.contains(['$', '{', '`'])
    };
    let mut declares = out.commands.iter().filter(|it| declares_oddly(it));
    if declares.any(|it| it.args().iter().any(puts_together)) {
        return Err(Unparsed("it puts together the name of a variable"));
    }
    let with = |it: &Command| it.name().is_some_and(|it| WITH_VARIABLES.contains(&base_name(it)));
    let with = out.commands.iter().filter(|it| with(it) || declares_oddly(it));
    let set = with.flat_map(Command::args).filter_map(|it| {
        let (name, value) = it.text.trim_start_matches('"').split_once('=')?;
        let value = if it.kind == WordKind::Expanded { Word::expanded(value) } else { Word::literally(value) };
        is_name(name).then(|| Value { name: Some(name.to_owned()), word: value, appends: false })
    });
    let set: Vec<Value> = set.collect();
    out.assigned.extend(set.iter().filter_map(|it| it.name.clone()));
    out.values.all.extend(set);
    if out.assigned.iter().any(|it| NAMES.contains(&it.as_str())) {
        return Err(Unparsed("it sets what a name runs"));
    }
    let dotted = out.assigned.iter().any(|it| DOTTED.contains(&it.as_str()));
    if dotted || out.commands.iter().any(finds_dots) {
        for command in &mut out.commands {
            let hidden: Vec<Word> = command.args().iter().filter_map(with_dot).collect();
            command.words.extend(hidden);
        }
        let of_dots = |it: &Value| Some(Value { word: with_dot(&it.word)?, ..it.clone() });
        let hidden: Vec<Value> = out.values.all.iter().filter_map(of_dots).collect();
        out.values.all.extend(hidden);
    }
    Ok(())
}

/// `declare "a=b"`: what is in quotes is no assignment to the grammar.
pub(in crate::engine::policy) fn declares_oddly(command: &Command) -> bool {
    let odd = |it: &Word| match it.kind {
        WordKind::Expanded => !wrap::names_variable(&it.text),
        _ => it.text.contains('='),
    };
    command.name().is_some_and(|it| DECLARES.contains(&it)) && command.args().iter().any(odd)
}

fn value_of(name: &str, value: &str) -> Value {
    let word = Word::read(value).unwrap_or_else(|_| Word::unknown());
    // It may have another one already.
    Value { name: Some(name.to_owned()), word, appends: true }
}

fn is_name(text: &str) -> bool {
    wrap::names_variable(&format!("{text}="))
}

fn refers(command: &Command) -> bool {
    let (names, option) = REFERENCES;
    let is_option = |it: &Word| it.text.strip_prefix('-').is_some_and(|it| !it.starts_with('-') && it.contains(option));
    command.name().is_some_and(|it| names.contains(&it)) && command.args().iter().any(is_option)
}

fn finds_dots(command: &Command) -> bool {
    let is_said = |words: &[&str]| {
        command.args().iter().any(|it| words.contains(&it.text.to_ascii_lowercase().replace('_', "").as_str()))
    };
    command.name().is_some_and(|name| DOTS.iter().any(|(it, words)| *it == name && is_said(words)))
}

/// `a/*` finds what `a/.*` does, too.
fn with_dot(word: &Word) -> Option<Word> {
    let folders = word.text.rfind('/').map_or(0, |it| it + 1);
    let (folder, name) = word.text.split_at_checked(folders)?;
    let begins = word.kind != WordKind::Literal && name.starts_with(['*', '?', '[']);
    begins.then(|| Word { text: format!("{folder}.{name}"), kind: word.kind })
}

/// `${x@P}` runs what is in a prompt; of `@` only the sign for all of an array is not that.
fn check(text: &str) -> Result<(), Unparsed> {
    let plain = text.replace("[@]", "[*]");
    if let Some(inside) = plain.strip_prefix("${!") {
        // `${!a[@]}` are an array's keys.
        let name = inside.strip_suffix("[*]}").unwrap_or_default();
        let is_name = !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
        return if is_name { Ok(()) } else { Err(Unparsed("it reads a variable by another's name")) };
    }
    let all = ["${@", "${#@"].iter().find_map(|it| plain.strip_prefix(it));
    match all.unwrap_or(&plain).contains('@') {
        true => Err(Unparsed("it transforms a variable into a prompt")),
        false => Ok(()),
    }
}
