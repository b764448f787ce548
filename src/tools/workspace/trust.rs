//! The user's trust in a folder, from the environment and the trust file.

use std::{collections::BTreeMap, io};

use serde_json::{Map, Value};

use crate::workspace::{Reader, Warning, castor_home, gemini_home, jsonc};
use castor_base::{
    path::AbsPath,
    trust::{self, Trust, TrustLevel, TrustRule},
};
use castor_hands::{disk, secrets::Env};

/// More folders above one are not looked at.
pub(super) const MAX_PARENTS: usize = 40;

/// The user's word on the folder of a session.
pub const TRUST_VAR: &str = "CASTOR_TRUST_WORKSPACE";
/// The rules file, in Gemini CLI's folder and in castor's.
pub(super) const RULES_FILE: &str = "trustedFolders.json";

/// Decides in this order: the environment (castor's variable before Gemini CLI's); a rules file that cannot be
/// understood means no; the rule for the longest path, where a no beats a yes; else nothing is known.
pub fn read(env: &Env, folder: &AbsPath, reader: Reader<'_>) -> (Trust, Vec<Warning>) {
    if let Some(it) = from_env(env) {
        return (it, Vec::new());
    }
    // By the path it names: castor's rule for a path replaces Gemini CLI's.
    let mut rules = BTreeMap::new();
    let mut warnings = Vec::new();
    for file in files(env) {
        match read_rules(&file, reader) {
            Ok(found) => rules.extend(found),
            Err(warning) => warnings.push(warning),
        }
    }
    if let Some(warning) = warnings.first() {
        return (Trust::Untrusted(warning.to_string()), warnings);
    }
    let folder = fold_case(&reader.real(folder));
    (trust::decide(rules.values().flatten(), &folder), warnings)
}

/// As this platform's file systems usually do.
fn fold_case(path: &AbsPath) -> AbsPath {
    trust::fold_case(path, cfg!(any(target_os = "macos", windows)))
}

fn from_env(env: &Env) -> Option<Trust> {
    let (name, value) = env.first_set(&[TRUST_VAR, "GEMINI_CLI_TRUST_WORKSPACE"])?;
    let why = format!("environment {name}={value}");
    match value.trim().to_ascii_lowercase().as_str() {
        "true" | "1" => Some(Trust::Trusted { why, root: None }),
        // Anything else was meant to say something, and not yes.
        _ => Some(Trust::Untrusted(why)),
    }
}

fn files(env: &Env) -> Vec<AbsPath> {
    let gemini = match env.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH") {
        Some(it) => AbsPath::new(it),
        None => gemini_home(env).map(|it| it.join(RULES_FILE)),
    };
    [gemini, castor_home(env).map(|it| it.join(RULES_FILE))].into_iter().flatten().collect()
}

/// By the canonical path they name: through symlinks a file may name one path twice.
type Rules = BTreeMap<AbsPath, Vec<TrustRule>>;

fn read_rules(file: &AbsPath, reader: Reader<'_>) -> Result<Rules, Warning> {
    match reader.optional(file) {
        Ok(Some(bytes)) => parse_rules(file, &bytes, reader).map(|it| it.0),
        Ok(None) => Ok(Rules::new()),
        Err(it) => Err(warning(file, None, None, format!("cannot be read: {it}"))),
    }
}

fn warning(file: &AbsPath, at: Option<(usize, usize)>, key: Option<String>, what: String) -> Warning {
    let message = format!("{what}; until this is mended no folder counts as trusted");
    Warning { origin: file.to_string(), at, key, message }
}

/// The rules, and the file as it was written.
fn parse_rules(file: &AbsPath, bytes: &[u8], reader: Reader<'_>) -> Result<(Rules, jsonc::Members), Warning> {
    let warn = |at, key, what| warning(file, at, key, what);
    // A folder that is named twice has two rules, of which a no counts, wherever it stands.
    let members = jsonc::parse_members(bytes)
        .map_err(|it| warn(Some((it.line, it.column)), None, format!("not valid JSON: {}", it.message)))?;
    let mut res = Rules::new();
    for (path, level) in members.0.iter().cloned() {
        let Some(named) = AbsPath::new(&path) else {
            return Err(warn(None, Some(path), "is not an absolute path".to_owned()));
        };
        let (written, named) = (named.clone(), fold_case(&reader.real(&named)));
        let Some(level) = level.as_str().and_then(TrustLevel::parse) else {
            let what = format!("is {level}, not TRUST_FOLDER, TRUST_PARENT or DO_NOT_TRUST");
            return Err(warn(None, Some(path), what));
        };
        // Where a repository put a link in the place of a folder, the user's yes was about another one.
        let above = written.parent().filter(|_| level != TrustLevel::Never && fold_case(&written) != named);
        if above.is_some_and(|it| is_in_repository(&it)) {
            continue;
        }
        let rule = TrustRule { path: named.clone(), level, file: file.clone(), written };
        res.entry(named).or_default().push(rule);
    }
    Ok((res, members))
}

/// Writes a rule for a folder into castor's own file, or takes it out (`None`). A file that cannot be understood is kept
/// aside. A folder that is trusted with its parent stays so where it is trusted. Whether anything changed, and what the
/// user should know.
///
/// # Errors
/// A file that cannot be written. Then nothing has changed.
pub fn set_rule(home: &AbsPath, folder: &AbsPath, level: Option<TrustLevel>) -> io::Result<(bool, Option<Warning>)> {
    // Other processes write too; the lock goes with the handle.
    let lock = disk::open_append_private(&home.join(".trustedFolders.lock"))?;
    lock.lock()?;
    let (file, reader) = (home.join(RULES_FILE), Reader::disk());
    let mut warning = None;
    let said = |it: io::Error| io::Error::new(it.kind(), format!("{file}: {it}"));
    let found = reader.optional(&file).map_err(said)?.map(|it| (parse_rules(&file, &it, reader), it));
    let mut rules = match found {
        Some((Ok((_, members)), _)) => merge_rules(members),
        Some((Err(wrong), bytes)) => {
            let aside = home.join(format!("{RULES_FILE}.bak"));
            disk::write_private(&aside, &bytes)?;
            let message = format!("could not be understood; it was kept as {aside}, its rules no longer count");
            warning = Some(Warning { message, ..wrong });
            Map::new()
        }
        None => Map::new(),
    };
    let before = rules.clone();
    let folder = reader.real(folder);
    let is_it = |it: &str| AbsPath::new(it).is_some_and(|it| fold_case(&reader.real(&it)) == fold_case(&folder));
    // Who trusts the folder again does not mean to take what is beside it away.
    let is_wide = |(name, it): (&String, &Value)| is_it(name) && it.as_str() == Some(TrustLevel::Parent.as_str());
    let level = match level {
        Some(TrustLevel::Folder) if rules.iter().any(is_wide) => Some(TrustLevel::Parent),
        it => it,
    };
    rules.retain(|name, _| !is_it(name));
    if let Some(level) = level {
        rules.insert(folder.to_string(), level.as_str().into());
    }
    if rules != before || warning.is_some() {
        let text = serde_json::to_string_pretty(&rules)? + "\n";
        disk::write_private(&file, text.as_bytes()).map_err(said)?;
    }
    Ok((rules != before, warning))
}

/// Tells whether castor's own file says that the folder is trusted with its parent.
pub fn trusts_parent(home: &AbsPath, folder: &AbsPath) -> bool {
    let folder = fold_case(&Reader::disk().real(folder));
    let rules = read_rules(&home.join(RULES_FILE), Reader::disk()).unwrap_or_default();
    rules.get(&folder).is_some_and(|it| it.iter().any(|it| it.level == TrustLevel::Parent))
}

/// One rule for each name: a no, where there is one.
fn merge_rules(jsonc::Members(rules): jsonc::Members) -> Map<String, Value> {
    let mut res = Map::new();
    for (name, level) in rules {
        let is_no = |it: &Value| it.as_str() == Some(TrustLevel::Never.as_str());
        if !res.get(&name).is_some_and(is_no) {
            res.insert(name, level);
        }
    }
    res
}

/// Every rule in castor's and Gemini CLI's files, in words.
///
/// # Errors
/// A file that cannot be understood.
pub fn list_rules(env: &Env) -> Result<Vec<String>, Warning> {
    let mut res = Vec::new();
    for file in files(env) {
        res.extend(read_rules(&file, Reader::disk())?.into_values().flatten().map(|it| it.to_string()));
    }
    Ok(res)
}

/// Somebody else's hands may change what is in there, and what its names lead to.
pub(super) fn is_in_repository(folder: &AbsPath) -> bool {
    let above = std::iter::successors(Some(folder.clone()), AbsPath::parent).take(MAX_PARENTS);
    above.into_iter().any(|it| disk::metadata(&it.join(".git")).is_ok())
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{read, set_rule};
    use crate::workspace::Reader;
    use castor_base::{
        path::AbsPath,
        trust::{Trust, TrustLevel},
    };
    use castor_hands::secrets::Env;

    fn path(text: &str) -> AbsPath {
        AbsPath::new(text).unwrap()
    }

    /// `yes`, `no` or `?`, then the reason.
    fn check(env: &[(&str, &str)], gemini: &str, castor: &str, folder: &str) -> (String, usize) {
        let reader = Reader {
            read: &|it| match it.to_string().as_str() {
                "/h/.gemini/trustedFolders.json" if !gemini.is_empty() => Ok(gemini.as_bytes().to_vec()),
                "/h/.castor/trustedFolders.json" if !castor.is_empty() => Ok(castor.as_bytes().to_vec()),
                "/else.json" => Ok(br#"{"/w": "TRUST_FOLDER"}"#.to_vec()),
                _ => Err(io::ErrorKind::NotFound.into()),
            },
            real_path: &|it| Ok(path(&it.to_string().replace("/link", "/w/real"))),
        };
        let env = Env::from_pairs(env.iter().copied().chain([("HOME", "/h")]));
        let (trust, warnings) = read(&env, &path(folder), reader);
        let text = match trust {
            Trust::Trusted { why, .. } => format!("yes {why}"),
            Trust::Untrusted(why) => format!("no {why}"),
            Trust::Unknown => "?".to_owned(),
        };
        (text, warnings.len())
    }

    #[test]
    fn the_environment_comes_first() {
        let (castor, gemini) = ("CASTOR_TRUST_WORKSPACE", "GEMINI_CLI_TRUST_WORKSPACE");
        for (env, want) in [
            (&[(castor, "true")][..], "yes environment CASTOR_TRUST_WORKSPACE=true"),
            (&[(castor, "false"), (gemini, "true")], "no environment CASTOR_TRUST_WORKSPACE=false"),
            (&[(castor, ""), (gemini, "TRUE")], "yes environment GEMINI_CLI_TRUST_WORKSPACE=TRUE"),
            (&[(castor, "maybe")], "no environment CASTOR_TRUST_WORKSPACE=maybe"),
            (&[("GEMINI_CLI_TRUSTED_FOLDERS_PATH", "/else.json")], "yes /else.json"),
        ] {
            assert_eq!(check(env, "", "", "/w"), (want.to_owned(), 0));
        }
    }

    #[test]
    fn the_longest_rule_decides() {
        for (gemini, castor, folder, want) in [
            ("", "", "/w", "?"),
            (r#"{"/w": "TRUST_FOLDER"}"#, "", "/w/sub", "yes"),
            (r#"{"/w": "TRUST_FOLDER"}"#, "", "/work", "?"),
            (r#"{"/w": "TRUST_FOLDER", "/w/a": "DO_NOT_TRUST"}"#, "", "/w/a/b", "no"),
            (r#"{"/w": "DO_NOT_TRUST", "/w/a": "TRUST_FOLDER"}"#, "", "/w/a/b", "yes"),
            (r#"{"/w/a": "TRUST_PARENT"}"#, "", "/w/b", "yes"),
            (r#"{"/w/a": "TRUST_PARENT", "/w": "DO_NOT_TRUST"}"#, "", "/w/a", "no"),
            (r#"{"/w": "DO_NOT_TRUST", "/w/a": "TRUST_PARENT"}"#, "", "/w/a", "no"),
            (r#"{"/w/a": "TRUST_PARENT", "/w/b": "DO_NOT_TRUST"}"#, "", "/w/b", "no"),
            (r#"{"/w": "DO_NOT_TRUST"}"#, r#"{"/w": "TRUST_FOLDER"}"#, "/w", "yes"),
            (r#"{"/w": "TRUST_FOLDER"}"#, r#"{"/w": "DO_NOT_TRUST"}"#, "/w", "no"),
            (r#"{"/w/real": "TRUST_FOLDER"}"#, "", "/link/x", "yes"),
            (r#"{"/link": "DO_NOT_TRUST", "/w": "TRUST_FOLDER"}"#, "", "/w/real", "no"),
            (r#"{"/w/real": "DO_NOT_TRUST", "/link": "TRUST_FOLDER"}"#, "", "/w/real", "no"),
            (r#"{"/w": "DO_NOT_TRUST", "/w": "TRUST_FOLDER"}"#, "", "/w", "no"),
            ("", r#"{"/w": "TRUST_FOLDER", "/w": "DO_NOT_TRUST", "/w": "TRUST_PARENT"}"#, "/w", "no"),
            (r#"{"/w": "DO_NOT_TRUST", "\u002fw": "TRUST_FOLDER"}"#, "", "/w/a", "no"),
            ("// mine\n{\"/w\": \"TRUST_FOLDER\",}", "", "/w", "yes"),
            (r#"{"/": "TRUST_FOLDER"}"#, "", "/any", "yes"),
        ] {
            let (got, warnings) = check(&[], gemini, castor, folder);
            assert_eq!((got.split(' ').next(), warnings), (Some(want), 0), "{gemini} {castor} {folder}: {got}");
        }
    }

    #[test]
    fn what_cannot_be_understood_trusts_nothing() {
        let good = r#"{"/w": "TRUST_FOLDER"}"#;
        for bad in ["{", "[]", r#"{"/x": "TRUST"}"#, r#"{"/x": true}"#, r#"{"x": "TRUST_FOLDER"}"#] {
            for (gemini, castor) in [(bad, good), (good, bad)] {
                let (got, warnings) = check(&[], gemini, castor, "/w");
                assert!(got.starts_with("no /h/."), "{got}");
                assert_eq!(warnings, 1, "{bad}");
            }
        }
    }

    #[test]
    #[allow(clippy::disallowed_methods)]
    fn rules_are_written_and_taken_out_and_bad_files_kept() {
        let temp = tempfile::tempdir().unwrap();
        let root = castor_hands::disk::real_path(&path(temp.path().to_str().unwrap())).unwrap();
        let (home, text) = (root.join("h"), root.join("h").to_string());
        for it in ["h", "w/a", "w/b"] {
            std::fs::create_dir_all(root.join(it)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("w/a"), root.join("link")).unwrap();
        let env = Env::from_pairs([("CASTOR_HOME", text.as_str())]);
        let trusts = |it: &str| read(&env, &root.join(it), Reader::disk()).0;
        assert!(set_rule(&home, &root.join("link"), Some(TrustLevel::Parent)).unwrap().0);
        assert!(trusts("w/b").is_trusted() && trusts("link").is_trusted());
        assert!(!set_rule(&home, &root.join("w/a"), Some(TrustLevel::Parent)).unwrap().0, "one rule for one folder");
        assert!(!set_rule(&home, &root.join("w/a"), Some(TrustLevel::Folder)).unwrap().0, "the wider yes stays");
        assert!(trusts("w/b").is_trusted());
        set_rule(&home, &root.join("w/b"), Some(TrustLevel::Never)).unwrap();
        assert!(matches!(trusts("w/b"), Trust::Untrusted(_)) && trusts("w/a").is_trusted());
        assert_eq!(super::list_rules(&env).unwrap().len(), 2);
        assert!(set_rule(&home, &root.join("link"), None).unwrap().0);
        assert_eq!(trusts("w/a"), Trust::Unknown);

        let file = home.join("trustedFolders.json");
        let (a, b) = (root.join("w/a"), root.join("w/b"));
        let twice = format!(r#"{{"{a}": "DO_NOT_TRUST", "{a}": "TRUST_FOLDER"}}"#);
        std::fs::write(&file, twice).unwrap();
        set_rule(&home, &b, Some(TrustLevel::Folder)).unwrap();
        assert!(trusts("w/b").is_trusted() && !trusts("w/a").is_trusted(), "what is written anew keeps the no");
        std::fs::write(&file, vec![b' '; (4 << 20) + 1]).unwrap();
        assert!(matches!(trusts("w/b"), Trust::Untrusted(it) if it.contains("over 4 MiB")));
        std::fs::write(&file, "{ oops").unwrap();
        let (_, warning) = set_rule(&home, &root.join("w/a"), Some(TrustLevel::Folder)).unwrap();
        assert!(warning.unwrap().to_string().contains("it was kept as"));
        assert_eq!(std::fs::read_to_string(home.join("trustedFolders.json.bak")).unwrap(), "{ oops");
        assert!(trusts("w/a").is_trusted());
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
}
