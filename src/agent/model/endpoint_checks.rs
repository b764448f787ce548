//! Checks of keys, base URLs and headers, before anything is sent with them.

use std::net::IpAddr;

use secrecy::SecretString;
use url::{Host, Url};

/// Trimmed, as keys come from files and clipboards; `None`: nothing is left.
///
/// # Errors
/// What is wrong with it, without a part of it.
pub fn check_key(key: &str) -> Result<Option<SecretString>, String> {
    let key = key.trim();
    if !key.bytes().all(|it| it.is_ascii_graphic()) {
        return Err("the key has a character in it that no key has; copy it again".to_owned());
    }
    Ok((!key.is_empty()).then(|| key.into()))
}

/// Keys travel over this connection: plain http is for this machine only. The text is not repeated in messages where
/// it may hold a password.
pub fn check_url(text: &str) -> Result<String, String> {
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

/// Tells whether HTTP can carry this.
pub fn is_header(name: &str, value: &str) -> bool {
    let good_name = !name.is_empty() && name.bytes().all(is_token);
    good_name && value.bytes().all(|it| it == b'\t' || it == b' ' || it.is_ascii_graphic())
}

/// What HTTP allows in a header's name.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
