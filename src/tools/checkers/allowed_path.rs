//! The safety checker `allowed-path`: keeps file arguments inside the session's folders and away from configuration.

use std::io;

use serde_json::Value;

use super::{CheckSite, texts};
use castor_base::{check::CheckFinding, file_uri, log::Decision, path::AbsPath};
use castor_hands::disk;

/// Folders and files that nobody changes by a call; whether to ask, or to deny.
const GUARDED: &[(&str, Decision)] =
    &[(".git", Decision::Deny), (".env", Decision::Deny), ("node_modules", Decision::Deny), (".vscode", Decision::Ask)];

/// The worst that is to be said of any path in the arguments.
pub fn judge(args: &Value, config: &Value, site: &CheckSite) -> CheckFinding {
    let names = AllowedNames { included: texts(config, "included_args"), excluded: texts(config, "excluded_args") };
    let mut found = Vec::new();
    collect(args, None, &names, &mut found);
    let findings = found.into_iter().filter_map(|it| check_path(it, site));
    findings.max_by_key(|it| it.decision).unwrap_or_else(CheckFinding::allow)
}

struct AllowedNames<'a> {
    included: Vec<&'a str>,
    excluded: Vec<&'a str>,
}

impl AllowedNames<'_> {
    /// Tells whether an argument of that name is a path.
    fn are_paths(&self, key: &str) -> bool {
        let lower = key.to_ascii_lowercase();
        let looks = ["path", "directory", "file"].iter().any(|it| lower.contains(it))
            || matches!(&*lower, "source" | "destination");
        (looks || self.included.contains(&key)) && !self.excluded.contains(&key)
    }
}

/// `key`: under which name a text stands; those of a list stand under the list's.
fn collect<'a>(value: &'a Value, key: Option<&'a str>, names: &AllowedNames, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) if key.is_some_and(|it| names.are_paths(it)) => found.push(text),
        Value::Array(list) => list.iter().for_each(|it| collect(it, key, names, found)),
        Value::Object(map) => map.iter().for_each(|(key, it)| collect(it, Some(key), names, found)),
        _ => (),
    }
}

/// `None`: nothing against it.
fn check_path(text: &str, site: &CheckSite) -> Option<CheckFinding> {
    let deny = |why: &str| Some(CheckFinding { decision: Decision::Deny, reason: format!("{text}: {why}") });
    let Some(written) = parse_path(text, site) else { return deny("nobody can say which file that is") };
    // `link/..` is castor's folder to castor, and the parent of what the link points to for everybody else.
    let (Ok(ours), Ok(theirs)) = (disk::real_path(&site.cwd.join(&written)), resolve_parts(site, &written)) else {
        return deny("nobody can say where that leads");
    };
    let mut worst: Option<(&str, Decision)> = None;
    for real in [ours, theirs] {
        let Some(root) = site.roots.iter().find(|it| real.is_within(it)) else {
            return deny("it is outside the folders of the session");
        };
        let below = real.as_path().strip_prefix(root.as_path()).unwrap_or(real.as_path()).to_string_lossy();
        let touched = GUARDED.iter().filter(|(name, _)| has_component(&below, name) || has_component(text, name));
        worst = touched.copied().chain(worst).max_by_key(|it| it.1);
    }
    worst.map(|(name, decision)| CheckFinding { decision, reason: format!("{text}: it touches {name}") })
}

/// The path as it is meant: absolute, or relative to the session's folder.
fn parse_path(text: &str, site: &CheckSite) -> Option<String> {
    if text.contains('\0') {
        return None;
    }
    if text.get(..5).is_some_and(|it| it.eq_ignore_ascii_case("file:")) {
        return Some(file_uri::to_path(text)?.to_string_lossy().into_owned());
    }
    match text.strip_prefix('~') {
        None => Some(text.to_owned()),
        // Whoever gets it may mean the home folder.
        Some(rest) => rest.strip_prefix('/').and_then(|it| site.home().map(|home| format!("{home}/{it}"))),
    }
}

/// Where the system would end up, part by part.
fn resolve_parts(site: &CheckSite, written: &str) -> io::Result<AbsPath> {
    let root = AbsPath::new("/").ok_or(io::ErrorKind::InvalidInput)?;
    let start = if written.starts_with('/') { root.clone() } else { site.cwd.clone() };
    written.split('/').filter(|it| !matches!(*it, "" | ".")).try_fold(disk::real_path(&start)?, |at, part| match part {
        ".." => Ok(at.parent().unwrap_or_else(|| root.clone())),
        name => disk::real_path(&at.join(name)),
    })
}

/// Tells whether a part of the path is that name to any file system: case, dots and blanks at the end, streams do not
/// count.
fn has_component(path: &str, name: &str) -> bool {
    path.split(['/', '\\']).any(|part| {
        let part = part.split(':').next().unwrap_or_default();
        part.trim_end_matches(['.', ' ']).eq_ignore_ascii_case(name)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::judge;
    use crate::checkers::CheckSite;
    use castor_base::{log::Decision, path::AbsPath};
    use castor_hands::disk;

    #[test]
    #[allow(clippy::disallowed_methods)]
    fn paths_in_arguments() {
        let temp = tempfile::tempdir().unwrap();
        let root = disk::real_path(&AbsPath::new(temp.path()).unwrap()).unwrap();
        std::fs::create_dir_all(root.join("ws/src").as_path()).unwrap();
        std::fs::create_dir_all(root.join("ws/.git").as_path()).unwrap();
        std::os::unix::fs::symlink("/etc", root.join("ws/out").as_path()).unwrap();
        std::os::unix::fs::symlink(".git", root.join("ws/inner").as_path()).unwrap();
        let env = vec![("HOME".to_owned(), root.to_string())];
        let (cwd, roots) = (root.join("ws"), vec![root.join("ws")]);
        let site = CheckSite { cwd, roots, env, confined: None };
        let (allow, ask, deny) = (Decision::Allow, Decision::Ask, Decision::Deny);
        let ws = root.join("ws").to_string();
        let none = Value::Null;
        for (args, config, want) in [
            (json!({"file_path": "src/a"}), none.clone(), allow),
            (json!({"file_path": format!("{ws}/new/deep/b")}), none.clone(), allow),
            (json!({"file_path": "../other"}), none.clone(), deny),
            (json!({"file_path": "src/../../other"}), none.clone(), deny),
            (json!({"file_path": "/etc/passwd"}), none.clone(), deny),
            (json!({"file_path": "out/passwd"}), none.clone(), deny),
            (json!({"file_path": "out/../etc/passwd"}), none.clone(), deny),
            (json!({"file_path": "src/../src/a"}), none.clone(), allow),
            (json!({"file_path": "inner/config"}), none.clone(), deny),
            (json!({"file_path": "~/x"}), none.clone(), deny),
            (json!({"file_path": "~/ws/src/a"}), none.clone(), allow),
            (json!({"file_path": "~root/x"}), none.clone(), deny),
            (json!({"file_path": "file:///etc/passwd"}), none.clone(), deny),
            (json!({"file_path": format!("FILE://{ws}/src/a")}), none.clone(), allow),
            (json!({"file_path": "file://elsewhere/src/a"}), none.clone(), deny),
            (json!({"dirPath": ".GIT. /hooks"}), none.clone(), deny),
            (json!({"path": "a/node_modules/b"}), none.clone(), deny),
            (json!({"path": ".env::$DATA"}), none.clone(), deny),
            (json!({"path": ".environment"}), none.clone(), allow),
            (json!({"path": ".vscode/tasks.json"}), none.clone(), ask),
            (json!({"paths": ["src/a", ".vscode/x", "/etc"]}), none.clone(), deny),
            (json!({"move": [{"source": "src/a"}, {"destination": "/tmp/b"}]}), none.clone(), deny),
            (json!({"text": "/etc/passwd", "n": 1}), none.clone(), allow),
            (json!({"target": "/etc"}), json!({"included_args": ["target"]}), deny),
            (json!({"file_path": "/etc"}), json!({"excluded_args": ["file_path"]}), allow),
            (json!({"file_path": "a\0b"}), none.clone(), deny),
            (json!(["/etc"]), none.clone(), allow),
        ] {
            let found = judge(&args, &config, &site);
            assert_eq!(found.decision, want, "{args} {found:?}");
            assert_eq!(found.reason.is_empty(), want == allow, "{args}");
        }
    }
}
