//! `os` under another name, in Python and Lua: `import os as o; o.remove("x")`, `__import__("os").remove("x")`.

/// What it deletes with that others have, too: `lst.remove(x)`. The rest is told by its name alone.
const METHODS: &[&str] = &["remove", "truncate"];
/// How it is got where it is called at once, and what a name is set to.
const GOT: &[&str] = &["(os)", "(\"os\")", "('os')", "[\"os\"]", "['os']"];
const MADE: &[&str] = &["os", "posix", "__import__(\"os\")", "__import__('os')"];

/// What deletes by such a name.
pub(super) fn deletes(code: &str) -> Option<&'static str> {
    let of_os = |it: &&&str| receivers(code, it).any(|it| is_os(it, code));
    METHODS.iter().find(of_os).copied().or_else(|| imports(code))
}

/// `from os import path, remove as r`
fn imports(code: &str) -> Option<&'static str> {
    let names = code.split("from os import ").skip(1).filter_map(|it| it.split(['\n', ';']).next());
    let removes = |it: &str| it.split(|it: char| !is_name(it)).any(|it| METHODS.contains(&it));
    names.into_iter().any(removes).then_some("remove")
}

/// What stands before each method of that name; blanks around the dot mean nothing.
fn receivers<'c>(code: &'c str, method: &'c str) -> impl Iterator<Item = &'c str> {
    code.match_indices(method).filter_map(move |(at, _)| {
        let behind = code.get(at + method.len()..)?;
        let before = code.get(..at)?.trim_end_matches([' ', '\t']).strip_suffix('.')?;
        (!behind.starts_with(is_name)).then(|| before.trim_end_matches([' ', '\t']))
    })
}

fn is_os(before: &str, code: &str) -> bool {
    let name = before.get(before.trim_end_matches(is_name).len()..).unwrap_or_default();
    match name {
        "" => GOT.iter().any(|it| before.ends_with(it)),
        "os" | "posix" => true,
        _ => code.match_indices(name).any(|(at, _)| {
            let (before, behind) =
                (code.get(..at).unwrap_or_default(), code.get(at + name.len()..).unwrap_or_default());
            !before.ends_with(is_name) && (is_import(before) || is_set(behind))
        }),
    }
}

/// `import os as `
fn is_import(before: &str) -> bool {
    let module = before.strip_suffix(" as ").and_then(|it| it.strip_suffix("os"));
    module.is_some_and(|it| !it.ends_with(|it| is_name(it) || it == '.'))
}

/// `=os;`, `= __import__("os")`
fn is_set(behind: &str) -> bool {
    let value = behind.trim_start_matches(' ').strip_prefix('=').map(|it| it.trim_start_matches(' '));
    let is =
        |it: &str, value: &str| value.strip_prefix(it).is_some_and(|it| !it.starts_with(|it| is_name(it) || it == '.'));
    value.is_some_and(|value| MADE.iter().any(|it| is(it, value)))
}

fn is_name(it: char) -> bool {
    it.is_alphanumeric() || it == '_'
}
