//! The setting for session retention: read for the whole machine, since any session sweeps all folders.

use super::{
    Getter, Sources,
    keys::{KEYS, age_ms},
    resolve::{KeyOutcome, Origin, resolve},
};
use castor_store::sessions::SessionRetention;
use castor_tools::workspace::settings::Scope;

/// `None`: nothing is removed. Switched off, or not understood: what was removed by mistake does not come back.
pub fn session_retention(sources: Sources<'_>) -> Option<SessionRetention> {
    let get = Getter(sources);
    // What is wrong with a file is said for its session already.
    if !sources.layers.warnings.is_empty() {
        tracing::debug!("settings cannot be read; no session is removed");
        return None;
    }
    if let Some(what) = invalid_value(sources) {
        tracing::warn!("{what}; no session is removed");
        return None;
    }
    if !get.flag("general.sessionRetention.enabled") {
        return None;
    }
    let age = |name: &str| get.text(name).as_deref().and_then(age_ms);
    let max_age_ms = age("general.sessionRetention.maxAge");
    let min_age_ms = age("general.sessionRetention.minRetention").unwrap_or_default();
    let max_count = get.value("general.sessionRetention.maxCount").as_u64();
    if max_age_ms.is_some_and(|it| it < min_age_ms) {
        tracing::warn!("general.sessionRetention: maxAge is below minRetention; no session is removed");
        return None;
    }
    Some(SessionRetention { max_age_ms, max_count: max_count.and_then(|it| usize::try_from(it).ok()), min_age_ms })
}

/// What the user said of it that does not count: a value that is none.
fn invalid_value(sources: Sources<'_>) -> Option<String> {
    let rows = KEYS.iter().filter(|it| it.path.starts_with("general.sessionRetention."));
    let all = rows.flat_map(|key| resolve(key, sources).candidates.into_iter().map(|it| (key.path, it)));
    all.into_iter().find_map(|(path, it)| match (it.origin, it.fate) {
        (Origin::File(Scope::Workspace, _), _) => None,
        (_, KeyOutcome::Ignored(why)) => Some(format!("{path} {why}")),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::session_retention;
    use crate::settings::{Sources, keys::age_ms};
    use castor_hands::secrets::Env;
    use castor_store::sessions::SessionRetention;
    use castor_tools::workspace::settings::{Layer, Layers, Scope, WorkspaceFiles};

    const DAY: u64 = 24 * 3_600_000;

    fn read(scope: Scope, text: &str) -> Option<SessionRetention> {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        let file = castor_base::path::AbsPath::new("/f").unwrap();
        let value = serde_json::json!({"general": {"sessionRetention": value}});
        let layer = Layer { scope, file, raw: value.clone(), value };
        let layers = Layers { layers: vec![layer], workspace: WorkspaceFiles::Read, warnings: Vec::new() };
        session_retention(Sources { layers: &layers, env: &Env::default(), flags: &[] })
    }

    fn check(text: &str, expected: Option<(u64, Option<usize>)>) {
        let actual = read(Scope::User, text).map(|it| (it.max_age_ms.unwrap() / DAY, it.max_count));
        assert_eq!(actual, expected, "{text}");
    }

    #[test]
    fn reads_what_gemini_cli_reads() {
        check("{}", Some((30, None)));
        check(r#"{"enabled": false}"#, None);
        check(r#"{"maxAge": "2w", "maxCount": 5}"#, Some((14, Some(5))));
        check(r#"{"maxAge": "12h"}"#, None);
        check(r#"{"maxAge": "3d", "minRetention": "1w"}"#, None);
        // Whoever wrote these did not mean 30 days.
        check(r#"{"maxAge": "0d"}"#, None);
        check(r#"{"maxAge": "never"}"#, None);
        check(r#"{"maxCount": 0}"#, None);
        check(r#"{"enabled": "no"}"#, None);
        let ages = [
            "1h",
            "24h",
            "2d",
            "1w",
            "6m",
            "0h",
            "-1d",
            "1.5d",
            "d",
            "",
            "7",
            "7y",
            "99999999999999999999d",
            "9999999999999999d",
        ];
        let hours: Vec<Option<u64>> = ages.iter().map(|it| age_ms(it).map(|it| it / 3_600_000)).collect();
        assert_eq!(hours[..5], [Some(1), Some(24), Some(48), Some(168), Some(4320)]);
        assert!(hours[5..].iter().all(Option::is_none), "{hours:?}");
    }

    #[test]
    fn a_repository_decides_nothing() {
        assert_eq!(read(Scope::Workspace, r#"{"maxAge": "1d", "maxCount": 1}"#), read(Scope::User, "{}"));
    }
}
