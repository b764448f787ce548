//! `git checkout docs`: a branch, or a path whose changes are thrown away? What is there says it.

use super::reworked;
use crate::{
    base::{
        path::AbsPath,
        tool::{Change, Rework},
    },
    world::{disk, process::sandbox::repository, tools::ToolContext},
};

/// What a command has git check out that is a path. Blocks.
pub fn all(dir: &AbsPath, ctx: &ToolContext) -> Box<[String]> {
    ctx.known.words.reworks.iter().flat_map(|it| paths(it, dir, ctx)).collect()
}

fn paths(rework: &Rework, dir: &AbsPath, ctx: &ToolContext) -> Vec<String> {
    let words = rework.changes.iter().filter_map(|it| match it {
        Change::ToOrPath(word) => Some(word),
        _ => None,
    });
    let Some(dir) = reworked::real_dir(&rework.dir, dir, ctx) else { return Vec::new() };
    words.filter(|it| is_path(it, &dir)).cloned().collect()
}

/// git takes a word for a commit wherever it can: what is there beside a branch of that name stays as it is.
fn is_path(word: &str, dir: &AbsPath) -> bool {
    let is_there = disk::metadata(&dir.join(word)).is_ok();
    let is_branch = |git| repository::has_reference(&git, &format!("refs/heads/{word}"));
    is_there && word != "HEAD" && !repository::around(dir).is_some_and(is_branch)
}

#[cfg(test)]
mod tests {
    use super::all;
    use crate::{
        base::tool::{Change, Rework, Words},
        world::tools::{Known, ToolContext, testing::Ground},
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
        let rework = |dir: &str, words: &[&str]| Rework {
            dir: dir.to_owned(),
            changes: words.iter().map(|it| Change::ToOrPath((*it).to_owned())).collect(),
            ..Rework::default()
        };
        let reworks = vec![rework("", &["docs", "kept", "packed", "main", "lib", "../docs"]), rework("sub", &["lib"])];
        let ctx = ground.ctx();
        let known = Known { words: Words { reworks, ..Words::default() }.into(), ..Known::default() };
        let ctx = ToolContext { known, ..ctx };
        assert_eq!(*all(&ctx.cwd.clone(), &ctx), ["docs", "lib"].map(str::to_owned));
    }
}
