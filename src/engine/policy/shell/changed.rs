//! What a script changes for its other words in passing: variables, and what patterns find.

use super::{Script, Unparsed, Value, Word, WordKind, base_name, wrap};

/// What runs a command with the variables among its words.
const WITH_VARIABLES: &[&str] = &["doas", "env", "sudo"];
/// What makes one variable another's name, by this option.
const REFERENCES: (&[&str], char) = (&["declare", "local", "typeset"], 'n');
/// What makes stars find names that begin with a dot, and the words by which.
const DOTS: &[(&str, &[&str])] =
    &[("set", &["globdots", "dotglob"]), ("setopt", &["globdots", "dotglob"]), ("shopt", &["dotglob"])];

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
    let with = out.commands.iter().filter(|it| it.name().is_some_and(|it| WITH_VARIABLES.contains(&base_name(it))));
    let set = with.flat_map(super::Command::args).filter_map(|it| {
        let (name, value) = it.text.trim_start_matches('"').split_once('=')?;
        let value = if it.kind == WordKind::Expanded { Word::expanded(value) } else { Word::literally(value) };
        is_name(name).then(|| Value { name: Some(name.to_owned()), word: value, appends: false })
    });
    let set: Vec<Value> = set.collect();
    out.values.all.extend(set);
    if out.commands.iter().any(finds_dots) {
        for command in &mut out.commands {
            let hidden: Vec<Word> = command.args().iter().filter_map(with_dot).collect();
            command.words.extend(hidden);
        }
    }
    Ok(())
}

fn value_of(name: &str, value: &str) -> Value {
    let word = Word::read(value).unwrap_or_else(|_| Word::unknown());
    Value { name: Some(name.to_owned()), word, appends: false }
}

fn is_name(text: &str) -> bool {
    wrap::names_variable(&format!("{text}="))
}

fn refers(command: &super::Command) -> bool {
    let (names, option) = REFERENCES;
    let is_option = |it: &Word| it.text.strip_prefix('-').is_some_and(|it| !it.starts_with('-') && it.contains(option));
    command.name().is_some_and(|it| names.contains(&it)) && command.args().iter().any(is_option)
}

fn finds_dots(command: &super::Command) -> bool {
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
