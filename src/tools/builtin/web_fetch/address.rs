//! Addresses as a call names them.

use reqwest::Url;

use crate::builtin::params::invalid;
use castor_base::{secret, text, tool::ToolError};

/// Longest part of what is wrong that is repeated, in bytes.
const SHOWN: usize = 200;
/// Around an address in a text.
const AROUND: &[char] = &['<', '>', '(', ')', '[', ']', '{', '}', '"', '\'', '`', ',', ';', '.', '!', '?', ':', '*'];

/// One address, as it is asked: without what stays here of it, and the file itself in place of GitHub's page about it.
pub fn parse(written: &str) -> Result<Url, ToolError> {
    let written = written.trim();
    let refuse = |why: &str| Err(invalid(format!("{} {why}", text::head(written, SHOWN))));
    if let Some(mark) = secret::find_new_mark(written, "") {
        return refuse(&format!("was not asked: {mark} stands for a value that does not leave this machine."));
    }
    let Ok(mut url) = Url::parse(written) else { return refuse("is no address; write https://host/path.") };
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return refuse("cannot be read: an address begins with http or https.");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return refuse("has a name or a password in it; castor sends none.");
    }
    url.set_fragment(None);
    Ok(raw_file(&url).unwrap_or(url))
}

/// What in a text is meant as an address, each once.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut seen = Vec::new();
    let written = text.split_whitespace().map(|it| it.trim_matches(AROUND)).filter(|it| it.contains("://"));
    written.filter(move |it| {
        let is_new = !seen.contains(it);
        seen.push(it);
        is_new
    })
}

/// Of `github.com/OWNER/NAME/blob/REF/PATH`.
fn raw_file(url: &Url) -> Option<Url> {
    if !matches!(url.host_str(), Some("github.com" | "www.github.com")) || url.port().is_some() {
        return None;
    }
    let mut parts = url.path().trim_start_matches('/').splitn(4, '/');
    let (owner, name, kind, rest) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let raw = || Url::parse(&format!("https://raw.githubusercontent.com/{owner}/{name}/{rest}")).ok();
    if kind == "blob" { raw() } else { None }
}
