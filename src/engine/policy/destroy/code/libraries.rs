//! Libraries by which code does what a program does: git, files, devices.

use super::RUBY;
use crate::engine::policy::destroy::is_device;

/// What is thrown away by what a library calls it.
pub(super) fn deletes(code: &str, program: &str) -> Option<&'static str> {
    let has = |text: &str| code.contains(text);
    let by_name = match program {
        "octave" | "octave-cli" | "matlab" => has("delete(").then_some("delete("),
        "littler" | "r" | "R" | "Rscript" => has("file.remove").then_some("file.remove"),
        _ if RUBY.contains(&program) => (has("Pathname") && (has(").delete") || has(".rmtree"))).then_some(".delete"),
        _ => None,
    };
    let extra = || (has("fs-extra") && (has(".remove(") || has(".emptyDir("))).then_some("fs-extra");
    by_name.or_else(extra).or_else(|| git(code)).or_else(|| writes_device(code))
}

/// GitPython, `sh.git`, simple-git.
fn git(code: &str) -> Option<&'static str> {
    let has = |text: &str| code.contains(text);
    if !(has("import git") || has("simple-git") || has("Repo(") || has("isomorphic-git")) {
        return None;
    }
    let reset = has("reset(") && (has("--hard") || has("\"hard\"") || has("'hard'") || has("working_tree=True"));
    let push = has("push(") && (has("--force") || has("force=True") || has("force: true") || has("\"-f\""));
    let clean = has("clean(") && (has("-f") || has("force"));
    let branch = has("delete_head(") || has("delete_tag(") || has("deleteLocalBranch");
    let found = [(reset, "reset("), (push, "push("), (clean, "clean("), (branch, "delete_head(")];
    found.into_iter().find(|it| it.0).map(|it| it.1)
}

/// `open("/dev/sda", "wb")`
fn writes_device(code: &str) -> Option<&'static str> {
    let mut pieces = code.split(['"', '\'']);
    let random = |it: &str| it.ends_with("random") || it.starts_with("/dev/tty") || it.starts_with("/dev/pts");
    let named = pieces.any(|it| it.starts_with("/dev/") && is_device(it) && !random(it));
    let modes = ["\"w", "'w", "\"r+", "'r+", "\"a", "'a", "write", "O_WRONLY", "O_RDWR"];
    (named && modes.iter().any(|it| code.contains(it))).then_some("/dev/")
}
