//! Which model endpoint is configured, and with what key and headers.

use std::{fmt, net::IpAddr};

use secrecy::SecretString;
use url::{Host, Url};

use crate::{app::settings::Settings, world::secrets::Env};

/// How the models are reached.
#[derive(Clone, Debug)]
pub struct ModelAccess {
    pub kind: AccessKind,
    /// Without a slash at its end; `None`: the provider's own.
    pub base_url: Option<String>,
    /// `None`: the provider's usual one.
    pub api_version: Option<String>,
    pub key: Option<SecretString>,
    /// The key goes into `Authorization: Bearer`, not `x-goog-api-key`.
    pub bearer: bool,
    /// Added to each request; values may be secrets.
    pub headers: Vec<(String, SecretString)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Nothing is configured: sessions need authentication first.
    None,
    ApiKey,
    /// A base URL of the user's, with or without a key.
    Gateway,
}

impl AccessKind {
    /// What to do when this kind of access is wanted and not there.
    pub fn missing(self) -> &'static str {
        match self {
            Self::None | Self::ApiKey => {
                "No API key: set GEMINI_API_KEY where castor is started, or use --model demo to try it without one."
            }
            Self::Gateway => "No gateway: set GOOGLE_GEMINI_BASE_URL where castor is started.",
        }
    }
}

/// A configuration that cannot work: which variable, and what is wrong. Never holds the value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessError {
    pub variable: &'static str,
    pub message: String,
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.variable, self.message)
    }
}

impl std::error::Error for AccessError {}

/// What the environment configures. The user's chosen way of authentication decides between key and gateway where both
/// are there; a choice that castor does not offer (`oauth-personal` stands in many files) is passed over.
pub fn model_access(env: &Env, settings: &Settings) -> Result<ModelAccess, AccessError> {
    const BASE_URL: &str = "GOOGLE_GEMINI_BASE_URL";
    let base_url = env.get(BASE_URL).map(check_url).transpose();
    let base_url = base_url.map_err(|message| AccessError { variable: BASE_URL, message })?;
    let key = env.first(&["GEMINI_API_KEY", "GOOGLE_API_KEY"]).map(check_key).transpose()?.flatten();
    let wants_key = matches!(settings.auth_type.as_deref(), Some("gemini-api-key" | "api-key"));
    let kind = match (&base_url, &key) {
        (Some(_), Some(_)) if wants_key => AccessKind::ApiKey,
        (Some(_), _) => AccessKind::Gateway,
        (None, Some(_)) => AccessKind::ApiKey,
        (None, None) => AccessKind::None,
    };
    Ok(ModelAccess {
        kind,
        base_url,
        api_version: env.get("GOOGLE_GENAI_API_VERSION").map(check_version).transpose()?,
        key,
        bearer: env.get("GEMINI_API_KEY_AUTH_MECHANISM").is_some_and(|it| it.trim().eq_ignore_ascii_case("bearer")),
        headers: env.get("GEMINI_CLI_CUSTOM_HEADERS").map(custom_headers).unwrap_or_default(),
    })
}

/// Whether something is configured. What cannot work counts as well: its error says more than a demo would.
pub fn is_configured(env: &Env, settings: &Settings) -> bool {
    model_access(env, settings).map_or(true, |it| it.kind != AccessKind::None)
}

/// Trimmed, as keys come from files and clipboards; `None`: nothing is left.
fn check_key((variable, key): (&'static str, &str)) -> Result<Option<SecretString>, AccessError> {
    let key = key.trim();
    if !key.bytes().all(|it| it.is_ascii_graphic()) {
        let message = "the key has a character in it that no key has; copy it again".to_owned();
        return Err(AccessError { variable, message });
    }
    Ok((!key.is_empty()).then(|| key.into()))
}

/// It becomes a part of the path.
fn check_version(version: &str) -> Result<String, AccessError> {
    let version = version.trim();
    if !version.is_empty() && version.bytes().all(|it| it.is_ascii_alphanumeric()) {
        return Ok(version.to_owned());
    }
    let message = format!("{version:?} is not a version such as v1beta");
    Err(AccessError { variable: "GOOGLE_GENAI_API_VERSION", message })
}

/// Keys travel over this connection: plain http is for this machine only. The text is not repeated in messages where
/// it may hold a password.
fn check_url(text: &str) -> Result<String, String> {
    let text = text.trim();
    let url = Url::parse(text).map_err(|it| format!("invalid custom base URL: {it}; write https://host/path"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a base URL may not hold a user or password; use GEMINI_CLI_CUSTOM_HEADERS".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("a base URL may not have a ? or # part".to_owned());
    }
    match url.scheme() {
        "https" => (),
        "http" if is_local(&url) => (),
        "http" => return Err(format!("{text}: http is allowed for this machine only; use https")),
        other => return Err(format!("{other}: is not a scheme castor can use; use https")),
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        Some(Host::Ipv4(it)) => it.is_loopback(),
        Some(Host::Ipv6(it)) => IpAddr::from(it).to_canonical().is_loopback(),
        None => false,
    }
}

/// `A: b, C: d`. A comma separates only where another name and colon follow, so values may have commas; entries that
/// are no header are left out.
fn custom_headers(text: &str) -> Vec<(String, SecretString)> {
    let mut entries: Vec<String> = Vec::new();
    for piece in text.split(',') {
        let name = piece.split(':').next().unwrap_or_default().trim();
        let starts = piece.contains(':') && !name.is_empty();
        match entries.last_mut() {
            Some(last) if !starts => {
                last.push(',');
                last.push_str(piece);
            }
            _ => entries.push(piece.to_owned()),
        }
    }
    let header = |entry: &String| {
        let (name, value) = entry.split_once(':')?;
        let (name, value) = (name.trim(), value.trim());
        let good_name = !name.is_empty() && name.bytes().all(is_token);
        let good_value = value.bytes().all(|it| it == b'\t' || it == b' ' || it.is_ascii_graphic());
        (good_name && good_value).then(|| (name.to_owned(), SecretString::from(value)))
    };
    entries.iter().filter_map(header).collect()
}

/// What HTTP allows in a header's name.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::{AccessKind, custom_headers, is_configured, model_access};
    use crate::{
        app::settings::{Settings, Sources},
        world::{
            secrets::Env,
            workspace::settings::{Layers, WorkspaceFiles},
        },
    };

    fn check(pairs: &[(&str, &str)], auth: Option<&str>) -> String {
        let env = Env::from_pairs(pairs.iter().copied());
        let layers = Layers { layers: Vec::new(), workspace: WorkspaceFiles::Read, warnings: Vec::new() };
        let (mut settings, _) = Settings::merge(Sources { layers: &layers, env: &env, flags: &[] });
        settings.auth_type = auth.map(str::to_owned);
        match model_access(&env, &settings) {
            Ok(it) => {
                assert!(!format!("{it:?}").contains("canary"));
                let kind = match it.kind {
                    AccessKind::None => "none",
                    AccessKind::ApiKey => "key",
                    AccessKind::Gateway => "gateway",
                };
                let key = it.key.as_ref().map_or("-", |it| it.expose_secret());
                let url = it.base_url.unwrap_or("-".to_owned());
                format!(
                    "{kind} {key} {url} {}{}",
                    it.api_version.unwrap_or("-".to_owned()),
                    [" ", " bearer"][usize::from(it.bearer)]
                )
                .trim()
                .to_owned()
            }
            Err(it) => it.to_string(),
        }
    }

    #[test]
    fn what_cannot_work_counts_as_configured() {
        let layers = Layers { layers: Vec::new(), workspace: WorkspaceFiles::Read, warnings: Vec::new() };
        for (pairs, want) in [
            (&[][..], false),
            (&[("GEMINI_API_KEY", " ")], false),
            (&[("GEMINI_API_KEY", "k")], true),
            (&[("GEMINI_API_KEY", "k\u{1}")], true),
            (&[("GOOGLE_GEMINI_BASE_URL", "nonsense")], true),
        ] {
            let env = Env::from_pairs(pairs.iter().copied());
            let (settings, _) = Settings::merge(Sources { layers: &layers, env: &env, flags: &[] });
            assert_eq!(is_configured(&env, &settings), want, "{env:?}");
        }
    }

    #[test]
    fn tells_what_is_configured() {
        let url = "GOOGLE_GEMINI_BASE_URL";
        for (env, auth, want) in [
            (&[][..], None, "none - - -"),
            (&[], Some("gemini-api-key"), "none - - -"),
            (&[("GEMINI_API_KEY", " canary\n")], None, "key canary - -"),
            (&[("GEMINI_API_KEY", " ")], None, "none - - -"),
            (&[("GOOGLE_API_KEY", "g"), ("GEMINI_API_KEY", "k")], Some("oauth-personal"), "key k - -"),
            (&[("GOOGLE_API_KEY", "g"), ("GEMINI_API_KEY", "")], None, "key g - -"),
            (&[(url, "https://gw.example/a/")], None, "gateway - https://gw.example/a -"),
            (&[(url, "http://localhost:80"), ("GEMINI_API_KEY", "k")], None, "gateway k http://localhost -"),
            (&[(url, "http://[::1]:8/"), ("GEMINI_API_KEY", "k")], Some("api-key"), "key k http://[::1]:8 -"),
            (&[("GEMINI_API_KEY", "k"), ("GEMINI_API_KEY_AUTH_MECHANISM", "bearer")], None, "key k - - bearer"),
            (&[("GEMINI_API_KEY", "k"), ("GOOGLE_GENAI_API_VERSION", "v1")], None, "key k - v1"),
        ] {
            assert_eq!(check(env, auth), want, "{env:?}");
        }
    }

    #[test]
    fn says_what_is_wrong_without_the_secret() {
        for (name, value, want) in [
            (
                "GOOGLE_GEMINI_BASE_URL",
                "gw.example",
                "invalid custom base URL: relative URL without a base; write https://host/path",
            ),
            (
                "GOOGLE_GEMINI_BASE_URL",
                "http://gw.example",
                "http://gw.example: http is allowed for this machine only; use https",
            ),
            (
                "GOOGLE_GEMINI_BASE_URL",
                "http://127.0.0.1.evil.example",
                "http://127.0.0.1.evil.example: http is allowed for this machine only; use https",
            ),
            (
                "GOOGLE_GEMINI_BASE_URL",
                "https://u:canary@gw.example",
                "a base URL may not hold a user or password; use GEMINI_CLI_CUSTOM_HEADERS",
            ),
            ("GOOGLE_GEMINI_BASE_URL", "https://gw.example/?key=canary", "a base URL may not have a ? or # part"),
            ("GOOGLE_GEMINI_BASE_URL", "file:///etc/passwd", "file: is not a scheme castor can use; use https"),
            ("GEMINI_API_KEY", "can\nary", "the key has a character in it that no key has; copy it again"),
            ("GOOGLE_GENAI_API_VERSION", "../v1", "\"../v1\" is not a version such as v1beta"),
        ] {
            assert_eq!(check(&[(name, value)], None), format!("{name}: {want}"));
        }
    }

    #[test]
    fn reads_custom_headers() {
        for (text, want) in [
            ("", ""),
            ("A: b, C: d", "A=b|C=d"),
            ("Accept: a, b,c ,X-Y:z:1", "Accept=a, b,c|X-Y=z:1"),
            ("nothing, A: b", "A=b"),
            ("A b: c, D:", "D="),
            ("A: b\r\nEvil: x, C: d", "C=d"),
            (": x, A: b", "A=b"),
        ] {
            let got: Vec<_> =
                custom_headers(text).iter().map(|(name, it)| format!("{name}={}", it.expose_secret())).collect();
            assert_eq!(got.join("|"), want, "{text:?}");
        }
    }
}
