//! What only the shell knows, and is harmless all the same: a process that the line started, scripts that a pattern finds.

use crate::engine::policy::shell::{Command, Script, Word, WordKind, base_name, is_shell};

pub(super) fn is_plain(command: &Command, script: &Script) -> bool {
    match command.name().map(base_name) {
        Some("trap") => kills_own(command, script),
        Some(it) if is_shell(it) => runs_found(command, script),
        _ => false,
    }
}

/// `trap "kill $SRV" EXIT`
fn kills_own(command: &Command, script: &Script) -> bool {
    let [said, signals @ ..] = command.args() else { return false };
    let Some(text) = said.text.strip_prefix('"').and_then(|it| it.strip_suffix('"')) else { return false };
    let mut words = text.split_whitespace();
    let own = |name: &str| {
        let mut set = script.values.all.iter().filter(|it| it.name.as_deref() == Some(name)).peekable();
        let started = |it: &Word| {
            let text = it.text.trim_matches('"');
            matches!(text, "$!" | "$$") || !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit())
        };
        // `read x`; what nobody sets is the user's.
        let read = || script.commands.iter().flat_map(Command::args).any(|it| it.text.split('=').next() == Some(name));
        let known = if set.peek().is_none() { !read() } else { !script.unsure.contains(name) };
        known && set.all(|it| started(&it.word))
    };
    let plain = |it: &str| match it.strip_prefix('$') {
        Some(name) => {
            let name = name.strip_prefix('{').and_then(|it| it.strip_suffix('}')).unwrap_or(name);
            !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_') && own(name)
        }
        None => matches!(it, "2>/dev/null" | "||" | "true" | "-TERM" | "-9" | "-KILL" | "-INT" | "-15" | "--"),
    };
    words.next() == Some("kill") && words.all(plain) && signals.iter().all(|it| it.literal().is_some())
}

/// `for t in tests/*.sh; do bash "$t"; done` is `bash tests/a.sh`, again and again.
fn runs_found(command: &Command, script: &Script) -> bool {
    let Some(only) = &script.loops.only else { return false };
    let flag = |it: &&Word| it.literal().is_some_and(|it| it.starts_with('-') && !it.contains(['c', 's', 'o']));
    let file = command.args().iter().find(|it| !flag(it));
    let first = file.is_some_and(|it| it.text.trim_matches('"').starts_with('$'));
    let is_script = |text: &str| [".sh", ".bash", ".bats", ".zsh"].iter().any(|it| text.ends_with(it));
    let below = |it: &Word| {
        it.kind == WordKind::Pattern
            && is_script(&it.text)
            && !it.text.starts_with(['/', '~'])
            && !it.text.contains("..")
    };
    // What the line writes may be what it finds.
    let writes =
        script.redirects.iter().any(|it| it.writes && (it.target.literal().is_none() || is_script(&it.target.text)));
    let values = only.values_in(command);
    first && !writes && !values.is_empty() && values.iter().all(below)
}
