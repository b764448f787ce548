//! Google credentials (ADC): of a user, a service account or the machine.

use std::io::{self, ErrorKind};

use secrecy::SecretString;
use serde::Deserialize;

use super::Env;
use crate::disk;
use castor_base::path::AbsPath;

/// Names a file in place of the one that `gcloud` writes.
pub const CREDENTIALS_VAR: &str = "GOOGLE_APPLICATION_CREDENTIALS";
/// Names the metadata server of a machine of Google's.
const METADATA_HOST_VAR: &str = "GCE_METADATA_HOST";
const DEFAULT_METADATA_HOST: &str = "metadata.google.internal";
const TOKEN_URL: &str = "https://oauth2.googleapis.com/token";
/// Larger files hold something else.
const MAX_BYTES: u64 = 1 << 20;

#[derive(Clone, Debug)]
pub enum Credentials {
    /// As `gcloud auth application-default login` leaves them.
    User { client_id: String, client_secret: SecretString, refresh_token: SecretString, token_url: String },
    /// `key` is PEM.
    ServiceAccount { email: String, key: SecretString, key_id: Option<String>, token_url: String },
    /// Those of the machine that castor runs on, from the server of this name.
    MetadataServer { host: String },
}

/// Why the credentials that are there cannot be used; never with a part of them.
#[derive(Debug, thiserror::Error)]
pub enum GoogleError {
    #[error("{CREDENTIALS_VAR}: {0} is not an absolute path")]
    NotAbsolute(String),
    /// A file that is named and not there, or that this user may not read.
    #[error("{place}: {why}")]
    Unreadable { place: String, why: io::Error },
    #[error("{place}: {why}")]
    Broken { place: String, why: String },
}

/// What is there: the file that is named, else gcloud's, else the machine's.
///
/// # Errors
/// A file that cannot be read or used.
pub fn find(env: &Env) -> Result<Credentials, GoogleError> {
    if let Some(name) = env.get(CREDENTIALS_VAR) {
        let path = AbsPath::new(name).ok_or_else(|| GoogleError::NotAbsolute(name.to_owned()))?;
        let place = format!("{CREDENTIALS_VAR}: {path}");
        return match disk::read_head(&path, MAX_BYTES) {
            Ok(bytes) => read(&bytes, &place),
            Err(why) => Err(GoogleError::Unreadable { place, why }),
        };
    }
    if let Some(path) = gcloud(env) {
        match disk::read_head(&path, MAX_BYTES) {
            Ok(bytes) => return read(&bytes, &path.to_string()),
            Err(it) if matches!(it.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => (),
            Err(why) => return Err(GoogleError::Unreadable { place: path.to_string(), why }),
        }
    }
    Ok(Credentials::MetadataServer { host: env.get(METADATA_HOST_VAR).unwrap_or(DEFAULT_METADATA_HOST).to_owned() })
}

fn gcloud(env: &Env) -> Option<AbsPath> {
    let config = env.get("CLOUDSDK_CONFIG").and_then(AbsPath::new);
    let config = config.or_else(|| Some(AbsPath::new(env.get("HOME")?)?.join(".config/gcloud")))?;
    Some(config.join("application_default_credentials.json"))
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "type")]
    kind: String,
    client_id: Option<String>,
    client_secret: Option<SecretString>,
    refresh_token: Option<SecretString>,
    client_email: Option<String>,
    private_key: Option<SecretString>,
    private_key_id: Option<String>,
    token_uri: Option<String>,
}

/// Errors do not repeat what was found: a parser's words might.
fn read(bytes: &[u8], place: &str) -> Result<Credentials, GoogleError> {
    let broken = |why: &str| GoogleError::Broken { place: place.to_owned(), why: why.to_owned() };
    let Ok(it) = serde_json::from_slice::<File>(bytes) else { return Err(broken("not a file of Google credentials")) };
    let token_url = it.token_uri.unwrap_or_else(|| TOKEN_URL.to_owned());
    let missing = |name: &str| broken(&format!("it has no {name}"));
    match it.kind.as_str() {
        "authorized_user" => Ok(Credentials::User {
            client_id: it.client_id.ok_or_else(|| missing("client_id"))?,
            client_secret: it.client_secret.ok_or_else(|| missing("client_secret"))?,
            refresh_token: it.refresh_token.ok_or_else(|| missing("refresh_token"))?,
            token_url,
        }),
        "service_account" => Ok(Credentials::ServiceAccount {
            email: it.client_email.ok_or_else(|| missing("client_email"))?,
            key: it.private_key.ok_or_else(|| missing("private_key"))?,
            key_id: it.private_key_id,
            token_url,
        }),
        other => Err(broken(&format!(
            "credentials of the type {other:?} are not supported; use authorized_user or service_account"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::secrets::Env;

    #[test]
    fn credentials_are_found_in_their_order_and_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let gcloud = folder.path().join(".config/gcloud");
        std::fs::create_dir_all(&gcloud).unwrap();
        let write = |name: &str, text: &str| std::fs::write(gcloud.join(name), text).unwrap();
        let found = |env: &[(&str, &str)]| {
            let env = Env::from_pairs([("HOME", path)].into_iter().chain(env.iter().copied()));
            let res = find(&env).map_or_else(|it| it.to_string(), |it| format!("{it:?}"));
            assert!(!res.contains("CANARY"), "{res}");
            res.replace(path, "H")
        };
        assert_eq!(found(&[]), r#"MetadataServer { host: "metadata.google.internal" }"#);
        assert_eq!(found(&[("GCE_METADATA_HOST", "127.0.0.1:9")]), r#"MetadataServer { host: "127.0.0.1:9" }"#);
        write("service.json", r#"{"type":"service_account","client_email":"me@x","private_key":"CANARY"}"#);
        let service = format!("{path}/.config/gcloud/service.json");
        assert!(
            found(&[("GOOGLE_APPLICATION_CREDENTIALS", &service)]).starts_with(r#"ServiceAccount { email: "me@x""#)
        );
        let user = r#"{"type":"authorized_user","client_id":"i","client_secret":"CANARY","refresh_token":"CANARY"}"#;
        write("application_default_credentials.json", user);
        assert!(found(&[]).starts_with(r#"User { client_id: "i""#));
        let adc = "H/.config/gcloud/application_default_credentials.json";
        for (text, why) in [
            ("CANARY", "not a file of Google credentials"),
            (r#"{"type":"authorized_user","client_id":"CANARY"}"#, "it has no client_secret"),
            (
                r#"{"type":"external_account"}"#,
                "credentials of the type \"external_account\" are not supported; use authorized_user or service_account",
            ),
        ] {
            write("application_default_credentials.json", text);
            assert_eq!(found(&[]), format!("{adc}: {why}"));
        }
        assert!(found(&[("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere")]).contains("/nowhere: "));
    }
}
