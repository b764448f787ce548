//! Stored credentials by name, in a private file or the system's keyring: the API key, logins at MCP servers.

use std::{fmt, fs::File, io};

use secrecy::SecretString;

use crate::disk;
use castor_base::path::AbsPath;

#[cfg(not(feature = "keyring"))]
use self::file as store;
#[cfg(feature = "keyring")]
use self::ring as store;

/// Under this name the key is stored: the id of the auth method that it belongs to.
const NAME: &str = "gemini-api-key";
/// Who changes one entry must not lose what another process writes meanwhile.
const LOCK: &str = "credentials.lock";

/// A failure of the stored key, with what to do about it. It holds no part of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialsError {
    /// The file, or the keyring.
    pub place: String,
    pub message: String,
}

impl fmt::Display for CredentialsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl std::error::Error for CredentialsError {}

/// The stored key.
///
/// # Errors
/// A file that others may read, or that holds something else; a keyring that does not answer.
pub fn read(home: &AbsPath) -> Result<Option<SecretString>, CredentialsError> {
    store::read(home, NAME)
}

/// What is stored under another name.
///
/// # Errors
/// As [`read`].
pub fn read_entry(home: &AbsPath, name: &str) -> Result<Option<SecretString>, CredentialsError> {
    store::read(home, name)
}

/// Stores the key in the place of an earlier one.
///
/// # Errors
/// A file that cannot be written, or whose folder others may write to; a keyring that does not answer.
pub fn save(home: &AbsPath, key: &SecretString) -> Result<(), CredentialsError> {
    save_entry(home, NAME, key)
}

/// The same under another name.
///
/// # Errors
/// As [`save`].
pub fn save_entry(home: &AbsPath, name: &str, text: &SecretString) -> Result<(), CredentialsError> {
    let _alone = lock(home)?;
    store::save(home, name, text)
}

/// Forgets the stored key; whether there was one.
///
/// # Errors
/// As [`save`].
pub fn forget(home: &AbsPath) -> Result<bool, CredentialsError> {
    forget_entry(home, NAME)
}

/// The same under another name.
///
/// # Errors
/// As [`save`].
pub fn forget_entry(home: &AbsPath, name: &str) -> Result<bool, CredentialsError> {
    if !home.as_path().is_dir() {
        return Ok(false);
    }
    let _alone = lock(home)?;
    store::forget(home, name)
}

/// Until it is dropped.
fn lock(home: &AbsPath) -> Result<File, CredentialsError> {
    let path = home.join(LOCK);
    let failed = |it: io::Error| CredentialsError { place: path.to_string(), message: it.to_string() };
    let file = disk::open_append_private(&path).map_err(failed)?;
    file.lock().map_err(failed)?;
    Ok(file)
}

/// Where the key is or would be, for people.
pub fn place(home: &AbsPath) -> String {
    store::place(home)
}

#[cfg_attr(feature = "keyring", allow(dead_code))]
mod file {
    use std::io::ErrorKind;

    use secrecy::{ExposeSecret, SecretString};
    use serde_json::{Map, Value};

    use super::CredentialsError;
    use crate::disk;
    use castor_base::path::AbsPath;

    type Entries = Map<String, Value>;

    pub fn path(home: &AbsPath) -> AbsPath {
        home.join("credentials.json")
    }

    pub fn place(home: &AbsPath) -> String {
        path(home).to_string()
    }

    pub fn read(home: &AbsPath, name: &str) -> Result<Option<SecretString>, CredentialsError> {
        let entries = entries(home)?.unwrap_or_default();
        match entries.get(name) {
            None => Ok(None),
            Some(Value::String(it)) => Ok(Some(it.trim()).filter(|it| !it.is_empty()).map(SecretString::from)),
            Some(_) => Err(failed(home, format!("{name} is not a text; log in again"))),
        }
    }

    pub fn save(home: &AbsPath, name: &str, key: &SecretString) -> Result<(), CredentialsError> {
        // What nobody can read is replaced: to log in again is the way out that errors name.
        let mut entries = entries(home).ok().flatten().unwrap_or_default();
        entries.insert(name.to_owned(), key.expose_secret().into());
        write(home, entries)
    }

    pub fn forget(home: &AbsPath, name: &str) -> Result<bool, CredentialsError> {
        // A file that is not used all the same holds a key: it goes too.
        let mut rest = entries(home).unwrap_or_else(|_| Some(Entries::new()));
        let known = rest.as_mut().map(|it| it.remove(name).is_some());
        match rest {
            None => Ok(false),
            Some(rest) if !rest.is_empty() => write(home, rest).map(|()| known == Some(true)),
            Some(_) => disk::remove(&path(home)).map_err(|it| failed(home, it.to_string())),
        }
    }

    fn entries(home: &AbsPath) -> Result<Option<Entries>, CredentialsError> {
        let bytes = match disk::read_private(&path(home)) {
            Ok(it) => it,
            Err(it) if matches!(it.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
            Err(it) => return Err(failed(home, it.to_string())),
        };
        // The parser's own words might repeat what it found.
        let broken = |_| failed(home, "not a JSON object; run `castor auth login` again".to_owned());
        serde_json::from_slice(&bytes).map(Some).map_err(broken)
    }

    fn write(home: &AbsPath, entries: Entries) -> Result<(), CredentialsError> {
        let text = format!("{:#}\n", Value::Object(entries));
        disk::write_private(&path(home), text.as_bytes()).map_err(|it| failed(home, it.to_string()))
    }

    fn failed(home: &AbsPath, message: String) -> CredentialsError {
        CredentialsError { place: place(home), message }
    }
}

#[cfg(feature = "keyring")]
mod ring {
    use std::{sync::mpsc, thread, time::Duration};

    use keyring::{Entry, Error};
    use secrecy::{ExposeSecret, SecretString};

    use super::CredentialsError;
    use castor_base::path::AbsPath;

    const SERVICE: &str = "castor";
    /// A locked keyring asks its user, who may be away: nobody waits for that.
    const PATIENCE: Duration = Duration::from_secs(2);

    pub fn place(_: &AbsPath) -> String {
        "the system's keyring".to_owned()
    }

    pub fn read(_: &AbsPath, name: &str) -> Result<Option<SecretString>, CredentialsError> {
        within(name, PATIENCE, |entry| match entry.get_password() {
            Ok(it) => Ok(Some(it.into())),
            Err(Error::NoEntry) => Ok(None),
            Err(it) => Err(it),
        })
    }

    pub fn save(_: &AbsPath, name: &str, key: &SecretString) -> Result<(), CredentialsError> {
        let key = key.clone();
        // Here the user sits in front of it.
        within(name, Duration::from_secs(120), move |entry| entry.set_password(key.expose_secret()))
    }

    pub fn forget(_: &AbsPath, name: &str) -> Result<bool, CredentialsError> {
        within(name, PATIENCE, |entry| match entry.delete_credential() {
            Ok(()) => Ok(true),
            Err(Error::NoEntry) => Ok(false),
            Err(it) => Err(it),
        })
    }

    /// On a thread of its own: the call blocks, and starts a runtime of its own.
    fn within<T: Send + 'static>(
        name: &str,
        patience: Duration,
        act: impl FnOnce(Entry) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, CredentialsError> {
        let (sender, answer) = mpsc::channel();
        let name = name.to_owned();
        thread::spawn(move || {
            // Nobody may wait any more.
            _ = sender.send(Entry::new(SERVICE, &name).and_then(act));
        });
        let failed = |message: String| CredentialsError { place: "the system's keyring".to_owned(), message };
        match answer.recv_timeout(patience) {
            Ok(outcome) => outcome.map_err(|it| failed(shown(&it))),
            Err(_) => Err(failed("it does not answer; unlock it, or set GEMINI_API_KEY".to_owned())),
        }
    }

    /// Some errors carry what was stored.
    fn shown(error: &Error) -> String {
        match error {
            Error::BadEncoding(_) | Error::BadDataFormat(..) => "the stored text is no key; log in again".to_owned(),
            other => other.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::PermissionsExt,
    };

    use secrecy::{ExposeSecret, SecretString};

    use super::{
        NAME,
        file::{self, path},
    };
    use castor_base::path::AbsPath;

    fn read(home: &AbsPath) -> Result<Option<SecretString>, super::CredentialsError> {
        file::read(home, NAME)
    }

    fn save(home: &AbsPath, key: &SecretString) -> Result<(), super::CredentialsError> {
        file::save(home, NAME, key)
    }

    fn forget(home: &AbsPath) -> Result<bool, super::CredentialsError> {
        file::forget(home, NAME)
    }

    fn home() -> (tempfile::TempDir, AbsPath) {
        let dir = tempfile::tempdir().unwrap();
        let path = AbsPath::new(dir.path()).unwrap().join("home");
        (dir, path)
    }

    fn stored(home: &AbsPath) -> Option<String> {
        read(home).unwrap().map(|it| it.expose_secret().to_owned())
    }

    fn mode(path: &AbsPath) -> u32 {
        fs::metadata(path.as_path()).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_key_is_its_owners_alone() {
        let (_keep, home) = home();
        assert_eq!(stored(&home), None);
        assert!(!forget(&home).unwrap());
        save(&home, &SecretString::from("one")).unwrap();
        assert_eq!((mode(&home), mode(&path(&home))), (0o700, 0o600));
        save(&home, &SecretString::from("two")).unwrap();
        assert_eq!(stored(&home).as_deref(), Some("two"));
        assert_eq!(fs::read_dir(home.as_path()).unwrap().count(), 1, "nothing is left behind");
        assert!(forget(&home).unwrap());
        assert_eq!(fs::read_dir(home.as_path()).unwrap().count(), 0);
    }

    #[test]
    fn what_others_can_read_is_refused_until_the_next_login() {
        let (_keep, home) = home();
        save(&home, &SecretString::from("canary")).unwrap();
        for bits in [0o640, 0o604, 0o666] {
            fs::set_permissions(path(&home).as_path(), Permissions::from_mode(bits)).unwrap();
            let error = read(&home).unwrap_err().to_string();
            assert!(error.ends_with(&format!("others can read it; run: chmod 600 '{}'", path(&home))), "{error}");
        }
        save(&home, &SecretString::from("new")).unwrap();
        assert_eq!((mode(&path(&home)), stored(&home).as_deref()), (0o600, Some("new")));
        fs::set_permissions(path(&home).as_path(), Permissions::from_mode(0o644)).unwrap();
        assert!(forget(&home).unwrap());
        assert_eq!(stored(&home), None);
    }

    #[test]
    fn a_folder_that_others_can_change_is_refused() {
        let (_keep, home) = home();
        fs::create_dir(home.as_path()).unwrap();
        fs::set_permissions(home.as_path(), Permissions::from_mode(0o777)).unwrap();
        let error = save(&home, &SecretString::from("canary")).unwrap_err().to_string();
        assert!(error.contains(&format!("chmod 700 '{home}'")) && !error.contains("canary"), "{error}");
        fs::set_permissions(home.as_path(), Permissions::from_mode(0o755)).unwrap();
        save(&home, &SecretString::from("k")).unwrap();
        assert_eq!(mode(&home), 0o755, "a folder that was there keeps its mode");
    }

    #[test]
    fn other_entries_stay_and_broken_files_do_not_speak() {
        let (_keep, home) = home();
        let write = |text: &str| {
            fs::create_dir_all(home.as_path()).unwrap();
            fs::write(path(&home).as_path(), text).unwrap();
            fs::set_permissions(path(&home).as_path(), Permissions::from_mode(0o600)).unwrap();
        };
        write(r#"{"other": {"a": 1}, "gemini-api-key": " k\n"}"#);
        assert_eq!(stored(&home).as_deref(), Some("k"));
        assert!(forget(&home).unwrap());
        assert_eq!(fs::read_to_string(path(&home).as_path()).unwrap(), "{\n  \"other\": {\n    \"a\": 1\n  }\n}\n");
        for broken in ["canary", "\"canary\"", r#"{"gemini-api-key": ["canary"]}"#] {
            write(broken);
            let error = read(&home).unwrap_err();
            let text = format!("{error} {error:?}");
            assert!(text.contains("log") && !text.contains("canary"), "{text}");
        }
    }
}
