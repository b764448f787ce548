//! What git throws away as it checks something out: a path whose changes go, or a branch that is moved away from what only
//! it has. What is there says which it is.

use crate::{
    base::{path::AbsPath, tool::CheckedOut},
    world::{disk, process::sandbox::repository},
};

/// The names with which that is so, in any of the folders that a command may work in. Blocks.
pub fn all(named: &[CheckedOut], dirs: &[AbsPath]) -> Box<[String]> {
    let lost = |it: &&CheckedOut| dirs.iter().any(|dir| is_lost(it, dir));
    named.iter().filter(lost).map(|it| it.name.clone()).collect()
}

/// git takes a word for a commit wherever it can: what is there beside a branch of that name stays as it is.
fn is_lost(CheckedOut { name, moves }: &CheckedOut, dir: &AbsPath) -> bool {
    if !moves && (name == "HEAD" || !disk::is_there(&dir.join(name))) {
        return false;
    }
    let is_branch = |git| repository::has_reference(&git, &format!("refs/heads/{name}"));
    repository::around(dir).is_some_and(is_branch) == *moves
}

#[cfg(test)]
mod tests {
    use super::all;
    use crate::{
        base::tool::CheckedOut,
        world::{disk, tools::testing::Ground},
    };

    #[test]
    fn a_path_is_no_branch() {
        let files = [
            ("docs/a.md", ""),
            ("kept", ""),
            ("packed", ""),
            ("sub/lib/x", ""),
            (".git/HEAD", "ref: refs/heads/main\n"),
            (".git/config", ""),
            (".git/objects/x", ""),
            (".git/refs/heads/kept", "0\n"),
            (".git/packed-refs", "# pack-refs\n0 refs/heads/packed\n"),
        ];
        let ground = Ground::new(&files);
        ground.link("nowhere", "dangling");
        let cwd = ground.ctx().cwd;
        let dirs = [cwd.clone(), cwd.join("sub"), cwd.join("absent")];
        let check = |moves, names: &[&str], want: &[&str]| {
            let named: Vec<CheckedOut> = names.iter().map(|it| CheckedOut { name: (*it).to_owned(), moves }).collect();
            assert_eq!(*all(&named, &dirs), *want);
        };
        let names = ["docs", "kept", "packed", "main", "lib", "../docs", "dangling", "HEAD"];
        check(false, &names, &["docs", "lib", "../docs", "dangling"]);
        check(true, &names, &["kept", "packed"]);
        // Nobody writes to it: who reads it waits for ever.
        let packed = cwd.join(".git/packed-refs");
        disk::remove_file(&packed).unwrap();
        nix::unistd::mkfifo(packed.as_path(), nix::sys::stat::Mode::S_IRWXU).unwrap();
        check(true, &["packed"], &[]);
    }
}
