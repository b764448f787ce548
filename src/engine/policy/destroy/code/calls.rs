//! Calls in code that are the command line of another program: `repo.git.checkout(".")`, `call_command("flush")`,
//! `os.chmod("/etc", 0o777)`. They are judged as that.

use crate::engine::policy::shell::Word;

/// What hands on to a framework's own commands: by which name, and whose they are.
const FRAMEWORKS: &[(&str, &str)] = &[
    ("Artisan::call(", "artisan"),
    ("Artisan::queue(", "artisan"),
    ("Rake::Task[", "rake"),
    ("call_command(", "manage.py"),
];
const PERMISSIONS: &[(&str, &str)] =
    &[("chmod(", "chmod"), ("chmodSync(", "chmod"), ("chown(", "chown"), ("chownSync(", "chown")];
/// Libraries whose methods are git's sub-commands.
const GIT: &[&str] = &["import git", "Repo(", "import sh"];
/// More of them are not listed.
const MAX: usize = 32;

/// Each as a program and its words.
pub(super) fn find(code: &str) -> Vec<(&'static str, Vec<Word>)> {
    let inside = |call: &'static str| code.split(call).skip(1);
    let frameworks = FRAMEWORKS.iter().flat_map(|it| inside(it.0).map(|inside| (it.1, framework(inside))));
    let permissions = PERMISSIONS.iter().flat_map(|it| inside(it.0).map(|inside| (it.1, permits(it.1, inside))));
    let by_git = GIT.iter().any(|it| code.contains(it));
    let git =
        if by_git { inside("git.").filter_map(git).map(|it| ("git", it)).take(MAX).collect() } else { Vec::new() };
    let git = if code.contains("simple-git") { simple_git(code) } else { git };
    frameworks.chain(permissions).filter(|it| !it.1.is_empty()).take(MAX).chain(git).collect()
}

/// `call("migrate:fresh --seed")` is two words.
fn framework(inside: &str) -> Vec<Word> {
    arguments(inside).iter().filter_map(|it| text(it)).flat_map(str::split_whitespace).map(Word::literally).collect()
}

/// Path and mode, in whatever order. Of a mode that does not stand there, nobody knows.
fn permits(program: &str, inside: &str) -> Vec<Word> {
    let arguments = arguments(inside);
    let paths: Vec<Word> = arguments.iter().filter_map(|it| text(it)).map(Word::literally).collect();
    let number =
        arguments.iter().map(|it| it.trim_start_matches("0o")).find(|it| it.bytes().all(|it| it.is_ascii_digit()));
    let first = if program == "chmod" { number.unwrap_or("u+w") } else { "user" };
    if paths.is_empty() { paths } else { std::iter::once(Word::literally(first)).chain(paths).collect() }
}

/// `simpleGit().stash(["drop"])`, `.raw("push", "-f")`
fn simple_git(code: &str) -> Vec<(&'static str, Vec<Word>)> {
    const METHODS: &[&str] = &["branch(", "checkout(", "clean(", "push(", "raw(", "rebase(", "reset(", "stash("];
    // Its arguments may have dots in them.
    let of = |method: &&'static str| code.match_indices(*method).filter_map(|it| code.split_at_checked(it.0));
    let calls = METHODS.iter().flat_map(of).filter(|it| it.0.ends_with('.')).map(|it| it.1);
    let words = |it: &str| {
        let words = git(it)?;
        Some(("git", if it.starts_with("raw(") { words.get(1..)?.to_vec() } else { words }))
    };
    calls.filter_map(words).take(MAX).collect()
}

/// `update_ref("-d", x)`, `push(force=True)`
fn git(rest: &str) -> Option<Vec<Word>> {
    let (name, inside) = rest.split_once('(')?;
    if !name.bytes().all(|it| it.is_ascii_lowercase() || it == b'_') {
        return None;
    }
    let option = |argument: &&str| {
        let (name, value) = argument.split_once('=')?;
        let dashes = if name.len() == 1 { "-" } else { "--" };
        matches!(value.trim(), "True").then(|| format!("{dashes}{}", name.trim().replace('_', "-")))
    };
    let word = |it: &&str| text(it).map(str::to_owned).or_else(|| option(it));
    let words = arguments(inside).iter().filter_map(word).collect::<Vec<_>>();
    Some([name.replace('_', "-")].iter().chain(&words).map(|it| Word::literally(it)).collect())
}

/// What stands between commas until the bracket closes, lists apart.
fn arguments(inside: &str) -> Vec<&str> {
    let (mut res, mut from, mut quote) = (Vec::new(), 0, None);
    for (at, it) in inside.char_indices() {
        match (quote, it) {
            (Some(open), _) if open == it => quote = None,
            (Some(_), _) => (),
            (None, '"' | '\'' | '`') => quote = Some(it),
            (None, ',' | '[' | ']' | '{' | '}' | '(' | ')') => {
                res.push(inside.get(from..at).unwrap_or_default().trim());
                from = at + 1;
            }
            _ => (),
        }
        if quote.is_none() && matches!(it, ')' | ';') || res.len() > MAX {
            break;
        }
    }
    res.retain(|it| !it.is_empty());
    res
}

/// What stands between quotes, if that is all.
fn text(argument: &str) -> Option<&str> {
    let quote = argument.chars().next().filter(|it| matches!(it, '"' | '\'' | '`'))?;
    argument.strip_prefix(quote)?.strip_suffix(quote)
}
