//! One request for a page: redirects, limits, and the types that are read.

use std::time::Duration;

use encoding_rs::{Encoding, UTF_8};
use reqwest::{
    Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE},
};
use tokio::time::timeout;

use super::markdown;
use crate::builtin::{paths, web_access::WebAccess};
use castor_base::{
    model::Failure,
    text::{self, wrap_untrusted},
    tool::ToolError,
};
use castor_hands::http::{is_same_site, read_head, redirect_of, safe_host};

/// A server may be silent for so long.
const SILENCE: Duration = Duration::from_secs(10);
/// A page may take so long in all: one that comes a byte at a time is never silent.
const WHOLE: Duration = Duration::from_secs(60);
/// What is over is not read. Counted as it is unpacked.
const MAX_BYTES: usize = 10 << 20;
/// Of the text that comes of it, in bytes.
const MAX_TEXT: usize = 1 << 20;
const MAX_REDIRECTS: usize = 5;
/// Of the page that comes with an error, in bytes.
const MAX_ERROR: usize = 2_000;
const ACCEPTED: &str = "text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.9, */*;q=0.5";
/// Models read these, as those of files.
const MEDIA: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"];
const TEXTS: &[&str] = &["json", "xml", "yaml", "javascript", "ecmascript", "toml", "x-sh", "sql", "graphql"];

/// What an address led to.
pub struct Page {
    pub url: Url,
    /// Its type, and how much of it was read.
    mime: String,
    n_bytes: usize,
    /// What is missing, for the model.
    pub note: Option<String>,
    pub body: Body,
}

pub enum Body {
    Text(String),
    Media {
        mime: String,
        bytes: Vec<u8>,
    },
    /// Another host, that nobody said yes to.
    Redirect(Url),
}

impl Page {
    /// In a line.
    pub fn summary(&self) -> String {
        match &self.body {
            Body::Redirect(to) => format!("{} redirects to {}", self.url, safe_host(to)),
            _ => format!("{} ({}, {} bytes)", self.url, self.mime, self.n_bytes),
        }
    }
}

/// Asks for a page.
///
/// # Errors
/// What the server or the way to it said, or why it was not asked.
pub async fn fetch(url: &Url, web: &WebAccess) -> Result<Page, ToolError> {
    let slow = || failed(format!("{} took longer than {} s; the request was ended.", safe_host(url), WHOLE.as_secs()));
    timeout(WHOLE, follow(url.clone(), web)).await.map_err(|_| slow())?
}

async fn follow(mut url: Url, web: &WebAccess) -> Result<Page, ToolError> {
    for _ in 0..=MAX_REDIRECTS {
        let request = web.client(&url).map_err(|it| refused(&it))?.get(url.clone()).header(ACCEPT, ACCEPTED);
        let response = web.http.send_within(request, &url, SILENCE).await.map_err(|it| failed(it.message))?;
        let Some(next) = redirect_of(&response, &url) else { return read(response, url).await };
        // Said by itself: nobody is to try it in another way.
        web.client(&next).map_err(|it| {
            let why = format!("{} redirects to an address that is not asked: {}.", safe_host(&url), it.message);
            ToolError::new("web_fetch_refused", why)
        })?;
        if !is_same_site(&url, &next) {
            return Ok(Page { url, mime: String::new(), n_bytes: 0, note: None, body: Body::Redirect(next) });
        }
        url = next;
    }
    Err(failed(format!("{} redirects more than {MAX_REDIRECTS} times.", safe_host(&url))))
}

fn failed(why: impl Into<String>) -> ToolError {
    ToolError::new("web_fetch_failed", why)
}

fn refused(it: &Failure) -> ToolError {
    ToolError::new("web_fetch_refused", format!("{}; castor does not ask it.", it.message.trim_end_matches('.')))
}

async fn read(mut response: Response, url: Url) -> Result<Page, ToolError> {
    let status = response.status();
    let said = response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default().to_owned();
    if status.is_client_error() || status.is_server_error() {
        let page = String::from_utf8_lossy(&read_head(&mut response, MAX_ERROR).await).into_owned();
        return Err(status_error(&url, status, &page));
    }
    let mut mime = said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if !mime.is_empty() && kind_of(&mime).is_none() {
        return Err(wrong_type(&url, &mime));
    }
    let (bytes, is_whole) = read_body(&mut response, &url).await?;
    if mime.is_empty() {
        mime = guess(&bytes).ok_or_else(|| wrong_type(&url, "of no known type"))?.to_owned();
    }
    let n_bytes = bytes.len();
    let (body, is_cut) = match kind_of(&mime) {
        Some(Kind::Media) if !is_whole => return Err(failed(format!("{url} has more than {MAX_BYTES} bytes."))),
        Some(Kind::Media) => (Body::Media { mime: mime.clone(), bytes }, false),
        kind => {
            let base = url.clone();
            let to_text = move || text_of(&bytes, &said, kind == Some(Kind::Html), &base);
            let (text, is_cut) = paths::run_blocking(to_text).await?;
            (Body::Text(text), is_cut)
        }
    };
    let note = (!is_whole || is_cut).then(|| "It is longer: the rest was left out.".to_owned());
    Ok(Page { url, mime, n_bytes, note, body })
}

fn status_error(url: &Url, status: StatusCode, page: &str) -> ToolError {
    let why = format!("Request failed with status {status}: {url}");
    match wrap_untrusted(page) {
        Some(page) => failed(why.clone()).with_model_text(format!("{why}\n{page}")),
        None => failed(why),
    }
}

fn wrong_type(url: &Url, mime: &str) -> ToolError {
    let mime = text::head(mime, 100);
    ToolError::new("web_fetch_type", format!("{url} is {mime}: only texts, images and PDF are read."))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Html,
    Text,
    Media,
}

fn kind_of(mime: &str) -> Option<Kind> {
    let form = mime.split_once('/').map_or("", |it| it.1);
    let form = form.rsplit('+').next().unwrap_or_default();
    match mime {
        "text/html" | "application/xhtml+xml" => Some(Kind::Html),
        _ if MEDIA.contains(&mime) => Some(Kind::Media),
        _ if mime.starts_with("text/") || TEXTS.contains(&form.trim_start_matches("x-")) => Some(Kind::Text),
        _ => None,
    }
}

/// The type of what says none.
fn guess(bytes: &[u8]) -> Option<&'static str> {
    let head = bytes.get(..1024).unwrap_or(bytes);
    let text = String::from_utf8_lossy(head).trim_start().to_ascii_lowercase();
    match () {
        () if head.contains(&0) => None,
        () if text.starts_with("<!doctype html") || text.starts_with("<html") => Some("text/html"),
        () => Some("text/plain"),
    }
}

/// Up to the cap, and whether that is all.
async fn read_body(response: &mut Response, url: &Url) -> Result<(Vec<u8>, bool), ToolError> {
    let mut res = Vec::new();
    loop {
        let silent = |_| failed(format!("{} stopped in the middle of its answer.", safe_host(url)));
        let piece = timeout(SILENCE, response.chunk()).await.map_err(silent)?;
        let Some(piece) = piece.map_err(|_| failed(format!("The answer of {} broke off.", safe_host(url))))? else {
            return Ok((res, true));
        };
        let room = MAX_BYTES - res.len();
        res.extend_from_slice(piece.get(..room).unwrap_or(&piece));
        if piece.len() > room {
            return Ok((res, false));
        }
    }
}

/// The text for the model, and whether a part is missing.
fn text_of(bytes: &[u8], content_type: &str, is_html: bool, base: &Url) -> (String, bool) {
    let said = content_type.to_ascii_lowercase().split_once("charset=").map(|it| label(it.1).to_owned());
    let encoding = said.or_else(|| in_meta(bytes).filter(|_| is_html));
    let encoding = encoding.and_then(|it| Encoding::for_label(it.as_bytes())).unwrap_or(UTF_8);
    let (text, ..) = encoding.decode(bytes);
    let text = if is_html { markdown::of_html(&text, base, MAX_TEXT) } else { text.into_owned() };
    match text.len() > MAX_TEXT {
        true => (text::head(&text, MAX_TEXT).to_owned(), true),
        false => (text, false),
    }
}

fn label(text: &str) -> &str {
    text.trim_start_matches(['"', '\'']).split(['"', '\'', ';', ' ', '>', '/']).next().unwrap_or_default()
}

/// What the page itself says, in its beginning.
fn in_meta(bytes: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(bytes.get(..1024).unwrap_or(bytes)).to_ascii_lowercase();
    head.split_once("charset=").map(|it| label(it.1).to_owned())
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::{Kind, guess, is_same_site, kind_of, text_of};

    #[test]
    fn types_by_name() {
        for (mime, want) in [
            ("text/html", Some(Kind::Html)),
            ("text/markdown", Some(Kind::Text)),
            ("application/json", Some(Kind::Text)),
            ("application/ld+json", Some(Kind::Text)),
            ("application/x-yaml", Some(Kind::Text)),
            ("image/svg+xml", Some(Kind::Text)),
            ("image/png", Some(Kind::Media)),
            ("application/pdf", Some(Kind::Media)),
            ("application/zip", None),
            ("application/octet-stream", None),
            ("video/mp4", None),
        ] {
            assert_eq!(kind_of(mime), want, "{mime}");
        }
        assert_eq!(guess(b"\n<!DOCTYPE html><p>"), Some("text/html"));
        assert_eq!(guess(b"a"), Some("text/plain"));
        assert_eq!(guess(b"\x7fELF\0"), None);
    }

    #[test]
    fn a_yes_is_for_the_same_site() {
        let same = |from: &str, to: &str| is_same_site(&Url::parse(from).unwrap(), &Url::parse(to).unwrap());
        assert!(same("http://a.b/x", "https://www.a.b/y"));
        assert!(same("http://a.b:81/x", "http://a.b:81/y"));
        for (from, to) in [
            ("https://a.b/", "https://b.a/"),
            ("https://a.b/", "http://a.b/"),
            ("http://a.b/", "http://a.b:81/"),
            ("http://a.b:81/", "https://a.b/"),
            ("http://a.b/", "http://k@a.b/"),
            ("https://a.b/", "https://c.a.b/"),
        ] {
            assert!(!same(from, to), "{from} {to}");
        }
    }

    #[test]
    fn texts_are_read_in_their_encoding() {
        let base = Url::parse("https://a.b/").unwrap();
        let read = |bytes: &[u8], said: &str, html| text_of(bytes, said, html, &base).0;
        assert_eq!(read(b"caf\xe9", "text/plain; charset=ISO-8859-1", false), "café");
        assert_eq!(read(b"caf\xe9", "text/plain; charset=\"windows-1252\"", false), "café");
        assert_eq!(read("café".as_bytes(), "", false), "café");
        assert_eq!(read(b"caf\xe9", "text/plain; charset=nonsense", false), "caf\u{fffd}");
        assert_eq!(read(b"<meta charset=latin1><p>caf\xe9", "text/html", true), "café");
        let (text, is_cut) = text_of(&vec![b'x'; super::MAX_TEXT + 1], "", false, &base);
        assert!(is_cut && text.len() == super::MAX_TEXT);
    }
}
