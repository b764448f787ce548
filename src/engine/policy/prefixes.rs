//! Command prefixes that a grant covers: the program, with its subcommand where it has one.

use super::shell::{CommandRole, ShellCommand, ShellWord, base_name};

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

/// What a yes for longer to these commands would cover; `None` when it would cover too much.
pub fn grantable_prefixes<'a>(commands: impl Iterator<Item = &'a ShellCommand>) -> Option<Vec<String>> {
    let prefixes = commands.map(|it| match it.role != CommandRole::Own {
        true => None,
        false => prefix(it),
    });
    unique(prefixes.collect::<Option<Vec<String>>>()?)
}

/// Tells whether a yes for longer to `prefixes` covers the command.
pub fn covers_command<'p>(command: &ShellCommand, prefixes: impl IntoIterator<Item = &'p String>) -> bool {
    let covers = |prefix: &String| !prefix.is_empty() && starts_with_words(command, prefix.split(' '));
    command.role == CommandRole::Own && prefixes.into_iter().any(covers)
}

/// Tells whether it begins with these words.
pub fn starts_with_words<T: AsRef<str>>(command: &ShellCommand, words: impl IntoIterator<Item = T>) -> bool {
    let mut said = command.words.iter();
    words.into_iter().all(|it| said.next().and_then(ShellWord::literal) == Some(it.as_ref()))
}

/// Tells whether a prefix is of an interpreter with the file that it runs.
pub fn runs_a_file(prefix: &str) -> bool {
    prefix.split(' ').next().is_some_and(|it| INTERPRETERS.contains(&base_name(it)))
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

/// Tells whether a word may be all that a yes needs to say of what is run.
fn is_program(word: &str) -> bool {
    let runs_more = || [INTERPRETERS, NEVER].iter().any(|it| it.contains(&base_name(word)));
    !word.is_empty() && !word.starts_with(['-', '+']) && !word.contains(char::is_whitespace) && !runs_more()
}

fn prefix(command: &ShellCommand) -> Option<String> {
    let name = command.name()?;
    let program = base_name(name);
    // Words with blanks in them would come apart again when they are compared.
    let second = command
        .args()
        .first()
        .and_then(ShellWord::literal)
        .filter(|it| !it.is_empty() && !it.contains(char::is_whitespace));
    let operand = second.filter(|it| !it.starts_with(['-', '+']));
    if name.contains(char::is_whitespace) || name.is_empty() || NEVER.contains(&program) {
        return None;
    }
    // A yes to `cd` would let the rest run anywhere.
    let narrow = INTERPRETERS.contains(&program) || WITH_SUBCOMMAND.contains(&program) || program == "cd";
    match (narrow, operand) {
        (true, Some(operand)) if RUNS.contains(&operand) && WITH_RUN.contains(&program) => {
            let it = command.args().get(1).and_then(ShellWord::literal).filter(|it| is_program(it))?;
            Some(format!("{name} {operand} {it}"))
        }
        (true, Some(operand)) => Some(format!("{name} {operand}")),
        (true, None) if !command.args().is_empty() || INTERPRETERS.contains(&program) => None,
        _ => Some(name.to_owned()),
    }
}
