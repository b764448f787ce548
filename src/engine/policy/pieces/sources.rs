//! Where words come from that a script does not set by assignments: arguments, `read`, what `echo` and `printf` print.

use super::{ANY, Index, Known, MAX_READINGS, TOO_MUCH, expand};
use crate::engine::policy::shell::{Command, Script, Word, base_name, is_shell};

/// `$1`, `$@`: what the script's own functions are called with, what `set` sets, what stands behind `sh -c 'script'`.
pub(super) fn positional(script: &Script, known: Option<&Known>) -> Vec<String> {
    let own = |name: &str| name == "set" || script.functions.iter().any(|it| it == name);
    let args = script.commands.iter().flat_map(|it| match it.name() {
        Some(name) if own(name) => it.args(),
        Some(name) if is_shell(base_name(name)) => {
            let script = it.args().iter().position(|it| !it.text.starts_with(['-', '+']) || it.text == "-s");
            script.and_then(|at| it.args().get(at + 1..)).unwrap_or_default()
        }
        _ => &[],
    });
    with_any(args.flat_map(|it| expand(it, script, known)))
}

/// What `read` and its like may find: what the script prints or hands on as text, or anything.
pub(super) fn read_in(script: &Script, known: Option<&Known>) -> Vec<String> {
    let handed = script.values.all.iter().filter(|it| it.name.is_none()).flat_map(|it| expand(&it.word, script, known));
    let says = script.commands.iter().filter(|it| matches!(it.name(), Some("echo" | "printf")));
    let said = says.clone().flat_map(Command::args).filter_map(Word::literal).map(str::to_owned);
    let put = says.filter_map(|it| match it.args() {
        [option, _, rest @ ..] if option.text == "-v" => Some(joined(rest).unwrap_or_else(|| TOO_MUCH.to_owned())),
        _ => None,
    });
    let lines = script.commands.iter().filter_map(|it| it.input.as_ref()).flat_map(|it| match it.literal {
        true => vec![it.text.clone()],
        false => expand(&Word::expanded(&it.text), script, known),
    });
    // Each word as well: a variable may get one of them.
    let odd = Index::of(script).parts_oddly(script);
    let parts = |it: char| it.is_whitespace() || odd && !(it.is_alphanumeric() || matches!(it, '-' | '_'));
    let words = |it: String| [&*it].into_iter().chain(it.split(parts)).map(str::to_owned).collect::<Vec<_>>();
    with_any(handed.chain(said).chain(put).chain(lines).flat_map(words))
}

/// What `printf -v` sets a variable to, where all of it is written out.
fn joined(words: &[Word]) -> Option<String> {
    let words: Option<Vec<&str>> = words.iter().map(Word::literal).collect();
    prints("printf", &words?)
}

/// These, and what nobody knows.
fn with_any(readings: impl Iterator<Item = String>) -> Vec<String> {
    let mut res: Vec<String> = readings.take(MAX_READINGS).collect();
    res.push(if res.len() < MAX_READINGS { ANY.to_string() } else { TOO_MUCH.to_owned() });
    res
}

/// What a command prints whose words say it all: `echo a b`, `printf %s a`.
pub(super) fn prints(name: &str, words: &[&str]) -> Option<String> {
    if words.iter().any(|it| it.trim_end_matches("\\n").contains('\\')) {
        return None;
    }
    match name {
        "echo" => {
            let option = |it: &&&str| {
                it.len() > 1 && it.strip_prefix('-').is_some_and(|it| it.bytes().all(|it| b"neE".contains(&it)))
            };
            let from = words.iter().take_while(option).count();
            Some(words.get(from..)?.join(" "))
        }
        "printf" => {
            let (format, args) = words.strip_prefix(&["--"]).unwrap_or(words).split_first()?;
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
