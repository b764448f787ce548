//! Web pages and redirects in the place of a model's answer: a login page, a proxy, a wrong base URL.

use reqwest::{
    Url,
    header::{self, HeaderMap},
};

use castor_base::{
    model::{Details, Failure, FailureKind},
    text,
};
use castor_hands::http::safe_host;

/// Longest title of a page that is shown, in characters.
const MAX_TITLE: usize = 80;
/// In `Details::words` of such a failure.
pub const WEB_PAGE: &str = "web_page";

/// The failure for an answer that no model's API gives; `None`: it may be one. `api` is what was expected at `url`.
pub fn failure(status: u16, headers: &HeaderMap, body: &[u8], (api, url): (&str, &Url)) -> Option<Failure> {
    let what = describe(status, headers, body)?;
    let api = if api.is_empty() { "the model's API" } else { api };
    let message = format!("This is not {api}: {}://{} {what}.", url.scheme(), safe_host(url));
    let details = Details { words: vec![WEB_PAGE.to_owned()], ..Details::default() };
    let status = Some(status);
    Some(Failure { status, details: Box::new(details), ..Failure::new(FailureKind::Garbage, message) })
}

fn describe(status: u16, headers: &HeaderMap, body: &[u8]) -> Option<String> {
    let header = |name| headers.get(name).and_then(|it| it.to_str().ok());
    if (300..400).contains(&status) {
        let to = header(header::LOCATION).and_then(|it| Url::parse(it).ok()).filter(Url::has_host);
        let to = to.map_or_else(|| "elsewhere".to_owned(), |it| format!("to {}", safe_host(&it)));
        return Some(format!("redirects {to} (HTTP {status})"));
    }
    let body = String::from_utf8_lossy(body);
    let is_typed = header(header::CONTENT_TYPE).is_some_and(|it| it.to_ascii_lowercase().starts_with("text/html"));
    let start = body.trim_start().get(..9).unwrap_or_default().to_ascii_lowercase();
    let is_page = start == "<!doctype" || start.starts_with("<html");
    // Providers' own front ends answer with pages when they are overloaded.
    if !(is_typed || is_page) || body.trim().is_empty() || matches!(status, 408 | 429 | 500..) {
        return None;
    }
    let title = title(&body).map(|it| format!(" (title: {it})")).unwrap_or_default();
    let code = if status == 200 { String::new() } else { format!(", HTTP {status}") };
    Some(format!("answered with a web page{title}{code}"))
}

fn title(page: &str) -> Option<String> {
    let lower = page.to_ascii_lowercase();
    let tag = lower.find("<title")?;
    let start = tag + lower.get(tag..)?.find('>')? + 1;
    let end = start + lower.get(start..)?.find("</title")?;
    let title = page.get(start..end)?.split_whitespace().collect::<Vec<_>>().join(" ");
    (!title.is_empty()).then(|| text::first_line(&title, MAX_TITLE))
}

#[cfg(test)]
mod tests {
    use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION};

    use super::failure;

    #[test]
    fn pages_and_redirects_are_told_from_errors_of_the_api() {
        let check = |status: u16, kind: &str, body: &str, expected: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, kind.parse().unwrap());
            headers.insert(LOCATION, "https://user:secret@wifi.test/login?key=secret".parse().unwrap());
            let url = "http://u:secret@gw.test:81/secret?k=secret".parse().unwrap();
            let found = failure(status, &headers, body.as_bytes(), ("the Gemini API", &url));
            assert_eq!(found.as_ref().map(|it| it.message.as_str()), expected, "{status} {kind} {body}");
        };
        let page = "\n<!DOCTYPE html><html><head><TITLE lang=en>Sign in\n to WiFi</TITLE></head></html>";
        let titled = "This is not the Gemini API: http://gw.test:81 answered with a web page (title: Sign in to WiFi)";
        check(200, "text/html; charset=utf-8", page, Some(&format!("{titled}.")));
        check(404, "text/plain", page, Some(&format!("{titled}, HTTP 404.")));
        let bare = "This is not the Gemini API: http://gw.test:81 answered with a web page, HTTP 403.";
        check(403, "text/html", "<p>no</p>", Some(bare));
        let redirect = "This is not the Gemini API: http://gw.test:81 redirects to wifi.test (HTTP 302).";
        check(302, "text/html", "", Some(redirect));
        check(404, "application/json", r#"{"error":{"message":"<html>"}}"#, None);
        check(502, "text/html", page, None);
        check(429, "text/html", page, None);
        check(200, "text/html", "", None);
        check(404, "text/plain", "<", None);
    }
}
