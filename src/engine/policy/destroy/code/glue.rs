//! Words that code puts together: they matter where it can call what has such a name, or run such a text.

use super::{DOTTED, RUBY, spawns};

/// What takes a name or a text that is then run.
const REACH: &[&str] = &[
    "](",
    "Function(",
    "__dict__",
    "__import__",
    "compile(",
    "constructor",
    "eval ",
    "eval(",
    "exec ",
    "exec(",
    "getattr",
    "global",
    "import(",
    "import_module",
    "locals(",
    "method",
    "process",
    "spawn",
    "system",
    "vars(",
];
const OF_RUBY: &[&str] = &["`", "const_get", "send", "instance_", "public_"];
const OF_DOTTED: &[&str] = &["`", "&$", "&{", "->(", "->$", "qx", "${", "open", "require", "include", "call_user"];

/// Whether a name or text that is put together may be called or run.
pub(super) fn reaches(code: &str, program: &str) -> bool {
    let has = |list: &[&str]| list.iter().any(|it| code.contains(it));
    let dotted = || DOTTED.contains(&program) && (has(OF_DOTTED) || calls_variable(code));
    // Lua finds its functions in tables.
    let loads = || program.starts_with("lua") && (has(&["load", "dostring", "_G", "_ENV", "require"]) || indexes(code));
    has(REACH)
        || spawns(code)
        || RUBY.contains(&program) && has(OF_RUBY)
        || dotted()
        || loads()
        || indexes(code)
        || requires(code)
}

/// `$f("x")`
fn calls_variable(code: &str) -> bool {
    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
    code.split('$')
        .skip(1)
        .any(|it| it.trim_start_matches(is_name).trim_start().starts_with('(') && it.starts_with(is_name))
}

/// `fs['rm' + 'Sync']`
fn indexes(code: &str) -> bool {
    let named = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | ')' | ']');
    code.match_indices('[').any(|(at, _)| {
        let before = code.get(..at).and_then(|it| it.chars().next_back());
        let behind = code.get(at + 1..).unwrap_or_default().trim_start();
        before.is_some_and(named) && behind.starts_with(['"', '\'', '`'])
    })
}

/// `require(k)`: no file of its own.
fn requires(code: &str) -> bool {
    let own = |it: &str| ["'./", "\"./", "`./", "'../", "\"../"].iter().any(|start| it.starts_with(start));
    code.split("require(").skip(1).any(|it| !own(it.trim_start()) && !it.trim_start().starts_with(['"', '\'']))
}

/// `'app.' + m`, `f'app.{m}'`: a module of a package that is named.
pub(super) fn is_within(inside: &str) -> bool {
    let text = inside.trim_start_matches('f');
    let Some(rest) = text.strip_prefix(['"', '\'']) else { return false };
    let start = rest.split(['"', '\'', '{']).next().unwrap_or_default();
    let name = start.strip_suffix('.').unwrap_or_default();
    !matches!(name, "" | "os" | "subprocess" | "builtins" | "shutil" | "asyncio" | "multiprocessing")
        && name.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'.'))
}
