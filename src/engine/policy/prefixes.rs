//! What a standing yes to a command would cover: its program, with the sub-command where it has one.

use super::shell::{Command, Script, Word, base_name, runs_by_assignment};

/// Programs whose first word is a command of its own.
const WITH_SUBCOMMAND: &[&str] = &[
    "apt",
    "aws",
    "brew",
    "bun",
    "bundle",
    "cargo",
    "conda",
    "deno",
    "docker",
    "dotnet",
    "gcloud",
    "gem",
    "gh",
    "git",
    "go",
    "gradle",
    "helm",
    "just",
    "kubectl",
    "make",
    "mix",
    "mvn",
    "npm",
    "npx",
    "nx",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "poetry",
    "rails",
    "rustup",
    "swift",
    "systemctl",
    "terraform",
    "uv",
    "uvx",
    "yarn",
];

/// Programs that run what their operand says: a yes covers that operand, and none is offered for code on the line.
const INTERPRETERS: &[&str] = &[
    "awk", "bash", "dash", "gawk", "lua", "node", "perl", "php", "python", "python2", "python3", "ruby", "sh",
    "source", ".", "tsx", "ts-node", "zsh",
];

/// Sub-commands that run what follows, and the programs that have them: a yes covers that, too.
const RUNS: &[&str] = &["dlx", "exec", "run", "run-script", "task", "x"];
const WITH_RUN: &[&str] = &["bun", "bundle", "deno", "docker", "npm", "pnpm", "podman", "poetry", "uv", "yarn"];

/// Programs with options that run whatever they are given.
const NEVER: &[&str] = &["curl", "wget", "nc", "ncat", "socat", "tee", "mv", "cp", "ln", "rm", "export", "unset"];

/// The programs a command consists of, each with its sub-command where it has one, in order; `None` when it cannot
/// be read.
pub fn command_prefixes(text: &str) -> Option<Vec<String>> {
    let script = Script::parse(text).ok()?;
    let prefixes = script.commands.iter().filter(|it| !it.transparent).map(|it| prefix(it, false));
    unique(prefixes.collect::<Option<Vec<String>>>()?)
}

/// What a standing yes to these commands would cover; `None` when it would cover too much.
pub(super) fn grantable<'a>(commands: impl Iterator<Item = &'a Command>) -> Option<Vec<String>> {
    let prefixes = commands.map(|it| match it.opaque || it.wrapper || names_a_program(it) {
        true => None,
        false => prefix(it, true),
    });
    unique(prefixes.collect::<Option<Vec<String>>>()?)
}

/// Whether a standing yes to `prefixes` covers the command.
pub(super) fn covered<'p>(command: &Command, prefixes: impl IntoIterator<Item = &'p String>) -> bool {
    let covers = |prefix: &String| !prefix.is_empty() && is_led(command, prefix.split(' '));
    !command.opaque && !command.wrapper && prefixes.into_iter().any(covers) && !names_a_program(command)
}

/// Whether it begins with these words.
pub(super) fn is_led<T: AsRef<str>>(command: &Command, words: impl IntoIterator<Item = T>) -> bool {
    let mut said = command.words.iter();
    words.into_iter().all(|it| said.next().and_then(Word::literal) == Some(it.as_ref()))
}

/// Whether a prefix is of an interpreter with the file that it runs.
pub(super) fn runs_a_file(prefix: &str) -> bool {
    prefix.split(' ').next().is_some_and(|it| INTERPRETERS.contains(&base_name(it)))
}

/// `make test SHELL=./x`
fn names_a_program(command: &Command) -> bool {
    let sets = |it: &Word| it.literal().is_none_or(|it| !matches!(runs_by_assignment(it), Some(None)));
    let makes = matches!(command.name().map(base_name), Some("make" | "gmake"));
    makes && command.args().iter().filter(|it| it.text.contains('=')).any(sets)
}

fn unique(prefixes: Vec<String>) -> Option<Vec<String>> {
    let mut res: Vec<String> = Vec::new();
    for prefix in prefixes {
        if !res.contains(&prefix) {
            res.push(prefix);
        }
    }
    (!res.is_empty()).then_some(res)
}

/// Whether a word may be all that a yes needs to say of what is run.
fn is_program(word: &str) -> bool {
    let runs_more = || [INTERPRETERS, NEVER].iter().any(|it| it.contains(&base_name(word)));
    !word.is_empty() && !word.starts_with(['-', '+']) && !word.contains(char::is_whitespace) && !runs_more()
}

fn prefix(command: &Command, strict: bool) -> Option<String> {
    let name = command.name()?;
    let program = base_name(name);
    // Words with blanks in them would come apart again when they are compared.
    let second =
        command.args().first().and_then(Word::literal).filter(|it| !it.is_empty() && !it.contains(char::is_whitespace));
    let operand = second.filter(|it| !it.starts_with(['-', '+']));
    if name.contains(char::is_whitespace) || name.is_empty() || (strict && NEVER.contains(&program)) {
        return None;
    }
    // A yes to `cd` would let the rest run anywhere.
    let narrow = INTERPRETERS.contains(&program) || WITH_SUBCOMMAND.contains(&program) || program == "cd";
    match (narrow, operand) {
        (true, Some(operand)) if RUNS.contains(&operand) && WITH_RUN.contains(&program) => {
            match command.args().get(1).and_then(Word::literal).filter(|it| is_program(it)) {
                Some(it) => Some(format!("{name} {operand} {it}")),
                None => (!strict).then(|| format!("{name} {operand}")),
            }
        }
        (true, Some(operand)) => Some(format!("{name} {operand}")),
        (true, None) if strict && !command.args().is_empty() => None,
        (true, None) if strict && INTERPRETERS.contains(&program) => None,
        _ => Some(name.to_owned()),
    }
}
