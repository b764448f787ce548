//! Whether the user trusts a folder, as far as environment and files say.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    base::path::AbsPath,
    world::{
        secrets::Env,
        workspace::{Reader, Warning, castor_home, gemini_home, jsonc},
    },
};

/// The answer with its reason, for the user. Only `Trusted` switches anything on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    Trusted(String),
    Untrusted(String),
    /// Nobody has said anything about this folder yet: it may be asked.
    Unknown,
}

impl Trust {
    pub fn is_trusted(&self) -> bool {
        matches!(self, Self::Trusted(_))
    }
}

/// A rule that was found, ready to compare.
struct Rule {
    /// The folder it is about: for `TRUST_PARENT` the parent of the one it names.
    root: AbsPath,
    trusts: bool,
    why: String,
}

/// Decides in this order: the environment (castor's variable before Gemini CLI's); a rules file that cannot be
/// understood means no; the rule for the longest path, where a no beats a yes; else nothing is known.
pub fn trust(env: &Env, folder: &AbsPath, reader: Reader<'_>) -> (Trust, Vec<Warning>) {
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
    let folder = reader.real(folder);
    let fitting = rules.into_values().flatten().filter(|it: &Rule| folder.is_within(&it.root));
    let strongest = fitting.max_by_key(|it| (it.root.as_path().components().count(), !it.trusts));
    let trust = match strongest {
        Some(Rule { trusts: true, why, .. }) => Trust::Trusted(why),
        Some(Rule { why, .. }) => Trust::Untrusted(why),
        None => Trust::Unknown,
    };
    (trust, warnings)
}

fn from_env(env: &Env) -> Option<Trust> {
    let (name, value) = env.first(&["CASTOR_TRUST_WORKSPACE", "GEMINI_CLI_TRUST_WORKSPACE"])?;
    let why = format!("environment {name}={value}");
    match value.trim().to_ascii_lowercase().as_str() {
        "true" | "1" => Some(Trust::Trusted(why)),
        // Anything else was meant to say something, and not yes.
        _ => Some(Trust::Untrusted(why)),
    }
}

fn files(env: &Env) -> Vec<AbsPath> {
    let name = "trustedFolders.json";
    let gemini = match env.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH") {
        Some(it) => AbsPath::new(it),
        None => gemini_home(env).map(|it| it.join(name)),
    };
    [gemini, castor_home(env).map(|it| it.join(name))].into_iter().flatten().collect()
}

/// Rules by the canonical path they name: through symlinks a file may name one path twice.
fn read_rules(file: &AbsPath, reader: Reader<'_>) -> Result<BTreeMap<AbsPath, Vec<Rule>>, Warning> {
    let warn = |at, key, what: String| Warning {
        origin: file.to_string(),
        at,
        key,
        message: format!("{what}; until this is mended no folder counts as trusted"),
    };
    let Some(bytes) = reader.optional(file).map_err(|it| warn(None, None, format!("cannot be read: {it}")))? else {
        return Ok(BTreeMap::new());
    };
    let rules = jsonc::parse(&bytes)
        .map_err(|it| warn(Some((it.line, it.column)), None, format!("not valid JSON: {}", it.message)))?;
    let Value::Object(rules) = rules else {
        return Err(warn(Some((1, 1)), None, "should hold an object of folders".to_owned()));
    };
    let mut res = BTreeMap::<_, Vec<_>>::new();
    for (path, level) in rules {
        let Some(named) = AbsPath::new(&path) else {
            return Err(warn(None, Some(path), "is not an absolute path".to_owned()));
        };
        let named = reader.real(&named);
        let (root, trusts) = match level.as_str() {
            Some("TRUST_FOLDER") => (named.clone(), true),
            Some("TRUST_PARENT") => (named.parent().unwrap_or_else(|| named.clone()), true),
            Some("DO_NOT_TRUST") => (named.clone(), false),
            _ => {
                let what = format!("is {level}, not TRUST_FOLDER, TRUST_PARENT or DO_NOT_TRUST");
                return Err(warn(None, Some(path), what));
            }
        };
        let why = format!("{file}: {path}: {}", level.as_str().unwrap_or_default());
        res.entry(named).or_default().push(Rule { root, trusts, why });
    }
    Ok(res)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{Trust, trust};
    use crate::{
        base::path::AbsPath,
        world::{secrets::Env, workspace::Reader},
    };

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
        let (trust, warnings) = trust(&env, &path(folder), reader);
        let text = match trust {
            Trust::Trusted(why) => format!("yes {why}"),
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
            (&[("GEMINI_CLI_TRUSTED_FOLDERS_PATH", "/else.json")], "yes /else.json: /w: TRUST_FOLDER"),
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
}
