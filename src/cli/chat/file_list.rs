//! List of a folder's files for completion, without what ignore files hide and what may hold secrets.

use castor_agent::{session::place::load_ground, settings::options::Options};
use castor_base::path::AbsPath;
use castor_hands::{disk, secrets::Env};
use castor_tools::builtin::walk::{Excludes, IgnoreRules, WalkPlan};

/// Files and folders that are listed, and that are looked at.
const MAX_PATHS: usize = 20_000;
const MAX_SEEN: usize = 200_000;

/// Paths as they are seen from the folder, those near to it first; folders end with a slash. Blocks.
pub fn list_files(folder: &AbsPath, env: &Env) -> Vec<String> {
    let Ok(root) = disk::real_path(folder) else { return Vec::new() };
    let rules = IgnoreRules::of_settings(&load_ground(&Options::default(), env, folder).1.tools);
    let plan = WalkPlan::of_folder(root.clone(), rules);
    let mut res = Vec::new();
    for entry in plan.walk("", Excludes::Core).take(MAX_SEEN).flatten() {
        let path = entry.path();
        let Some(name) = path.strip_prefix(root.as_path()).ok().and_then(|it| it.to_str()) else { continue };
        if name.is_empty() || plan.is_secret(path) {
            continue;
        }
        let is_dir = entry.file_type().is_some_and(|it| it.is_dir());
        res.push(if is_dir { format!("{name}/") } else { name.to_owned() });
        if res.len() == MAX_PATHS {
            break;
        }
    }
    res.sort_by_key(|it| it.trim_end_matches('/').matches('/').count());
    res
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)]

    use super::list_files;
    use crate::cli::testing::Ground;

    #[test]
    fn ignored_and_secret_files_are_not_listed() {
        let ground = Ground::new();
        for name in ["src/a/b.rs", "src/main.rs", "x.log", ".env", "node_modules/x.js", "z.md"] {
            ground.write(&format!("w/{name}"), "");
        }
        ground.write("w/.gitignore", "*.log\n");
        std::os::unix::fs::symlink(ground.root.as_path(), ground.root.join("w/up").as_path()).unwrap();
        let all = list_files(&ground.root.join("w"), &ground.env("true"));
        assert_eq!(all, [".gitignore", "src/", "up", "z.md", "src/a/", "src/main.rs", "src/a/b.rs"]);
    }
}
