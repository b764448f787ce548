//! State that sessions share: the values of `app:` in one file, those of `user:` in one file for each user.

use std::io::{self, ErrorKind};

use serde::{Deserialize, Serialize};

use castor_base::{
    path::AbsPath,
    state::{StateDelta, StateMap, StateScope, check_size},
};
use castor_hands::disk;

#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It would be too much.
    #[error("{0}")]
    TooLarge(String),
    #[error("{file} cannot be understood: {why}; mend it, or remove it")]
    Broken { file: AbsPath, why: String },
    #[error("{file}: {source}")]
    Io { file: AbsPath, source: io::Error },
}

/// What a file holds.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct StateFile {
    /// Whose values they are: the file's name is only a hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    state: StateMap,
}

/// The values that a user's sessions share, with each other and with all sessions.
///
/// # Errors
/// A file that is there and cannot be read or understood.
pub fn read_state(home: &AbsPath, user: &str) -> Result<StateMap, StateError> {
    let mut res = StateMap::new();
    // Each prompt asks, and few users have any.
    if disk::metadata(&home.join("state")).is_err_and(|it| it.kind() == ErrorKind::NotFound) {
        return Ok(res);
    }
    for (scope, file) in files(home, user) {
        res.extend(read(scope, &file)?);
    }
    Ok(res)
}

/// Changes these values, all or none, and returns them as they are then. No change only reads them.
///
/// # Errors
/// As [`read_state`]; also for values that are too large together, and for a file that cannot be written.
pub fn save_state(home: &AbsPath, user: &str, delta: &StateDelta) -> Result<StateMap, StateError> {
    if delta.is_empty() {
        return read_state(home, user);
    }
    // Other sessions and processes change them, too; the lock goes with the handle.
    let lock_file = home.join("state/.lock");
    let failed = |source| StateError::Io { file: lock_file.clone(), source };
    let lock = disk::open_append_private(&lock_file).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let mut res = read_state(home, user)?;
    let before = res.clone();
    delta.apply(&mut res);
    check_size(&res).map_err(StateError::TooLarge)?;
    let mut written = Vec::new();
    for (scope, file) in files(home, user) {
        let (old, new) = (part(scope, &before), part(scope, &res));
        if old == new {
            continue;
        }
        if let Err(source) = write(scope, &file, user, new) {
            // All or none: only a crash between two files leaves one of them changed, and then nobody was answered.
            written.into_iter().for_each(|(scope, file, old)| _ = write(scope, &file, user, old));
            return Err(StateError::Io { file, source });
        }
        written.push((scope, file, old));
    }
    Ok(res)
}

fn files(home: &AbsPath, user: &str) -> [(StateScope, AbsPath); 2] {
    let name: String = disk::hash(user.as_bytes()).chars().take(32).collect();
    [(StateScope::App, home.join("state/app.json")), (StateScope::User, home.join(format!("state/users/{name}.json")))]
}

fn part(scope: StateScope, values: &StateMap) -> StateMap {
    let own = values.iter().filter(|(key, _)| StateScope::of(key) == Some(scope));
    own.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn read(scope: StateScope, file: &AbsPath) -> Result<StateMap, StateError> {
    let bytes = match disk::read(file) {
        Ok(it) => it,
        Err(it) if it.kind() == ErrorKind::NotFound => return Ok(StateMap::new()),
        Err(source) => return Err(StateError::Io { file: file.clone(), source }),
    };
    let broken = |why: String| StateError::Broken { file: file.clone(), why };
    let found: StateFile = serde_json::from_slice(&bytes).map_err(|it| broken(it.to_string()))?;
    match found.state.keys().find(|it| StateScope::of(it) != Some(scope)) {
        Some(key) => Err(broken(format!("{key:?} is no key that begins with {}", scope.prefix()))),
        None => Ok(found.state),
    }
}

fn write(scope: StateScope, file: &AbsPath, user: &str, state: StateMap) -> io::Result<()> {
    let user = (scope == StateScope::User).then(|| user.to_owned());
    let mut text = serde_json::to_vec_pretty(&StateFile { user, state })?;
    text.push(b'\n');
    disk::write_private(file, &text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)]

    use std::{os::unix::fs::PermissionsExt, thread};

    use serde_json::json;

    use super::{StateError, files, read_state, save_state};
    use castor_base::{
        path::AbsPath,
        state::{MAX_SCOPE, StateDelta, StateMap},
    };

    fn map(value: serde_json::Value) -> StateMap {
        serde_json::from_value(value).unwrap()
    }

    fn delta(value: serde_json::Value) -> StateDelta {
        StateDelta(map(value))
    }

    fn home() -> (tempfile::TempDir, AbsPath) {
        let temp = tempfile::tempdir().unwrap();
        let home = AbsPath::new(temp.path().join("new")).unwrap();
        (temp, home)
    }

    #[test]
    fn users_share_what_is_for_all() {
        let (_keep, home) = home();
        assert_eq!(read_state(&home, "a").unwrap(), StateMap::new());
        save_state(&home, "a", &delta(json!({ "app:x": 1, "user:y": { "z": [2] } }))).unwrap();
        save_state(&home, "../b", &delta(json!({ "user:y": "b", "app:w": 3 }))).unwrap();
        assert_eq!(read_state(&home, "a").unwrap(), map(json!({ "app:w": 3, "app:x": 1, "user:y": { "z": [2] } })));
        let left = save_state(&home, "../b", &delta(json!({ "app:x": null, "app:gone": null }))).unwrap();
        assert_eq!(left, map(json!({ "app:w": 3, "user:y": "b" })));
        for (_, file) in files(&home, "../b") {
            assert_eq!(std::fs::metadata(file.as_path()).unwrap().permissions().mode() & 0o777, 0o600, "{file}");
        }
        assert!(!home.as_path().parent().unwrap().join("b.json").exists());
    }

    #[test]
    fn what_is_refused_changes_nothing() {
        let (_keep, home) = home();
        save_state(&home, "a", &delta(json!({ "app:x": 1 }))).unwrap();
        let large = delta(json!({ "app:x": 2, "user:y": "y".repeat(MAX_SCOPE) }));
        assert!(matches!(save_state(&home, "a", &large), Err(StateError::TooLarge(_))));
        let [_, (_, of_user)] = files(&home, "a");
        std::fs::create_dir_all(of_user.as_path()).unwrap();
        let both = delta(json!({ "app:x": 2, "user:y": 1 }));
        assert!(matches!(save_state(&home, "a", &both), Err(StateError::Io { .. })));
        std::fs::remove_dir(of_user.as_path()).unwrap();
        assert_eq!(read_state(&home, "a").unwrap(), map(json!({ "app:x": 1 })));
        for broken in ["", "{\"state\":{\"x\":1}}", "{\"stat\":{}}"] {
            std::fs::write(of_user.as_path(), broken).unwrap();
            assert!(matches!(save_state(&home, "a", &both), Err(StateError::Broken { .. })), "{broken}");
            assert_eq!(std::fs::read_to_string(of_user.as_path()).unwrap(), broken);
        }
    }

    #[test]
    fn writers_at_once_lose_nothing() {
        let (_keep, home) = home();
        thread::scope(|scope| {
            for writer in 0..8 {
                let home = &home;
                scope.spawn(move || {
                    for n in 0..10 {
                        save_state(home, "a", &delta(json!({ format!("app:k{writer}_{n}"): n }))).unwrap();
                    }
                });
            }
        });
        assert_eq!(read_state(&home, "a").unwrap().len(), 80);
    }
}
