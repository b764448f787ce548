//! What the repository around a folder has git run where it only looks. A clone brings no settings of git; an archive, or
//! a folder that others share, may.

use std::path::{Path, PathBuf};

use memchr::memmem;

use crate::{
    base::{path::AbsPath, text::is_deceptive},
    world::{disk, process::sandbox::git_config_paths},
};

/// The hook that `git status` runs when it has written the index anew.
const HOOK: &str = "post-index-change";
/// Repositories within the repository, of which `git status` looks at each.
const MAX_MODULES: usize = 200;
/// Of a setting, as it is shown.
const MAX_CHARS: usize = 200;
const MAX_INDEX: u64 = 64 << 20;
/// How the index says of an entry that it is another repository: this stands in front of it, and its path behind.
const LINK: &[u8] = b"\0\0\xE0\0";
const LINK_TO_PATH: usize = 38;

/// In words for the user; `None`: nothing. Blocks.
pub fn look(dir: &AbsPath) -> Option<String> {
    let mut tops = vec![std::iter::successors(Some(dir.clone()), AbsPath::parent).find(|it| !gits(it).is_empty())?];
    let mut at = 0;
    while let Some(top) = tops.get(at).cloned() {
        let gits = gits(&top);
        let found = gits.iter().find_map(|it| runs(top.as_path(), it.as_path()));
        let links = gits.first().map_or(Ok(Vec::new()), links);
        if let Some(it) = found.or(links.as_ref().err().cloned()) {
            return Some(it);
        }
        tops.extend(links.into_iter().flatten().map(|it| top.join(it)));
        if tops.len() > MAX_MODULES {
            return Some(format!("it has more than {MAX_MODULES} submodules"));
        }
        at += 1;
    }
    None
}

/// The folders that git takes for a folder's repository, wherever a file in place of `.git` says they are.
fn gits(top: &AbsPath) -> Vec<AbsPath> {
    let git = top.join(".git");
    let said = |file: &AbsPath| Some(String::from_utf8_lossy(&disk::read_head(file, 4_096).ok()?).trim().to_owned());
    match disk::metadata(&git) {
        Err(_) => Vec::new(),
        Ok(it) if it.is_dir => vec![git],
        Ok(_) => {
            let Some(own) = said(&git).and_then(|it| Some(top.join(it.strip_prefix("gitdir:")?.trim()))) else {
                return Vec::new();
            };
            let common = said(&own.join("commondir")).map(|it| own.join(it));
            std::iter::once(own).chain(common).collect()
        }
    }
}

/// Where other repositories are in its work tree.
fn links(git: &AbsPath) -> Result<Vec<String>, String> {
    let index = git.join("index");
    let Ok(meta) = disk::metadata(&index) else { return Ok(Vec::new()) };
    let bytes = disk::read_head(&index, MAX_INDEX).map_err(|it| format!("its index cannot be read: {it}"))?;
    let found: Vec<usize> = memmem::find_iter(&bytes, LINK).collect();
    let plain = matches!(bytes.get(..8), Some(b"DIRC\0\0\0\x02" | b"DIRC\0\0\0\x03"));
    if meta.len > MAX_INDEX || !plain && !found.is_empty() {
        return Err("its index cannot be looked through for submodules".to_owned());
    }
    // Entries of the third form may have two bytes more.
    let path = |at: usize| {
        let rest = bytes.get(at..)?;
        Some(String::from_utf8_lossy(rest.split(|it| *it == 0).next()?).into_owned())
    };
    let starts = found.iter().flat_map(|at| [at + LINK_TO_PATH, at + LINK_TO_PATH + 2]);
    Ok(starts.filter_map(path).filter(|it| !it.is_empty()).take(2 * MAX_MODULES).collect())
}

fn runs(top: &Path, git: &Path) -> Option<String> {
    let settings = match git_config_paths::all(git) {
        Ok(it) => it,
        Err(it) => return Some(format!("its settings cannot be read: {it}")),
    };
    let is = |section: &str, key: &str| settings.iter().any(|it| it.0 == section && it.1 == key);
    // What is missing of a partial clone is fetched where it is first looked at.
    let fetches = is("remote", "promisor") || is("extensions", "partialclone");
    let hooks = settings.iter().filter(|it| it.0 == "core" && it.1 == "hookspath").map(|it| top.join(&it.2));
    let mut hooks = hooks.chain([git.join("hooks")]).map(|it: PathBuf| it.join(HOOK));
    let hook = hooks.find(|it| it.is_file()).map(|it| it.display().to_string());
    let setting = settings.iter().find(|(section, key, value)| match (section.as_str(), key.as_str()) {
        ("core", "fsmonitor") => !is_boolean(value),
        ("diff", "external" | "command" | "textconv") => !value.is_empty(),
        ("filter", "clean" | "smudge" | "process") => !is_lfs(value),
        ("gpg", "program") => !value.is_empty(),
        ("core", "sshcommand" | "gitproxy" | "askpass") | ("remote", "uploadpack" | "vcs") => fetches,
        ("credential", "helper") | ("protocol", _) => fetches,
        _ => false,
    });
    setting.map(|(section, key, value)| format!("{section}.{key} = {value}")).or(hook).map(|it| plain(&it))
}

/// What a repository wrote is a part of one line of ours.
fn plain(text: &str) -> String {
    text.chars().take(MAX_CHARS).map(|it| if is_deceptive(it) { '\u{fffd}' } else { it }).collect()
}

fn is_boolean(value: &str) -> bool {
    matches!(value.to_lowercase().as_str(), "" | "true" | "false" | "yes" | "no" | "on" | "off" | "0" | "1")
}

/// What `git lfs install --local` writes.
fn is_lfs(value: &str) -> bool {
    ["git-lfs clean -- %f", "git-lfs smudge -- %f", "git-lfs filter-process", ""].contains(&value)
}

#[cfg(test)]
mod tests {
    use super::look;
    use crate::world::tools::testing::Ground;

    #[test]
    fn programs_of_the_repository_are_seen() {
        let long = " ".repeat((1 << 20) + 1);
        let lfs = "[filter \"lfs\"]\n\tclean = ";
        for (file, text, want) in [
            ("config", "[core]\n\tfsmonitor = true\n\thooksPath = .husky\n[user]\n\tname = a", None),
            ("config", &format!("{lfs} git-lfs clean -- %f\n[alias] st = !x"), None),
            ("config", "[core]\nsshCommand = ssh -i key", None),
            ("config", "[core]\nfsmonitor = ./mon", Some("core.fsmonitor = ./mon")),
            ("config", "[core]\nfsmonitor = x\\ny", Some("core.fsmonitor = x\u{fffd}y")),
            ("config", "[include] path = ../more", Some("diff.textconv = x")),
            ("config", &format!("{lfs} \"git-lfs clean -- %f; x\""), Some("filter.clean = git-lfs clean -- %f; x")),
            ("config", "[remote \"o\"]\npromisor = true\nuploadpack = x", Some("remote.uploadpack = x")),
            ("config.worktree", "[diff] external = x", Some("diff.external = x")),
            ("config", &long, Some("its settings cannot be read: ")),
            ("hooks/post-index-change", "", Some("/.git/hooks/post-index-change")),
            ("hooks/pre-commit", "", None),
        ] {
            let ground = Ground::new(&[("more", "[diff \"x\"]\ntextconv = x"), ("sub/a.txt", "")]);
            ground.write(&format!(".git/{file}"), text.as_bytes());
            let found = look(&ground.cwd.join("sub"));
            assert_eq!(found.is_some(), want.is_some(), "{text}: {found:?}");
            assert!(found.iter().zip(want).all(|(found, want)| found.contains(want)), "{found:?}");
        }
    }

    #[test]
    fn repositories_elsewhere_and_within_are_looked_at() {
        let mon = "[core] fsmonitor = x";
        let want = Some("core.fsmonitor = x".to_owned());
        let ground = Ground::new(&[(".git", "gitdir: other/place\n"), ("other/place/config", mon)]);
        assert_eq!(look(&ground.cwd), want);
        let ground = Ground::new(&[(".git", "gitdir: own"), ("own/commondir", "../all\n"), ("all/config", mon)]);
        assert_eq!(look(&ground.cwd), want);
        let ground = Ground::new(&[("a/inner/.git/config", mon), (".git/config", "")]);
        let mut index = b"DIRC\0\0\0\x02\0\0\0\x01".to_vec();
        index.extend([1; 24]);
        index.extend(b"\0\0\xE0\0");
        index.extend([1; 34]);
        index.extend(b"a/inner\0\0\0");
        ground.write(".git/index", &index);
        assert_eq!(look(&ground.cwd), want);
        ground.write("a/inner/.git/config", b"");
        assert_eq!(look(&ground.cwd), None);
        index[7] = 4;
        ground.write(".git/index", &index);
        assert!(look(&ground.cwd).unwrap().contains("its index"));
        assert_eq!(look(&Ground::new(&[("a", "")]).cwd), None);
    }
}
