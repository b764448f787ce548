//! Checks of requests before they are read: host, origin, method, content type, size.
//!
//! A page in the user's browser can reach a listener on loopback. By `Host` it is told apart where its own name leads here
//! (DNS rebinding), by `Origin` everywhere else. A browser sends both, and a page cannot change them.

use std::net::{Ipv4Addr, Ipv6Addr};

use hyper::{HeaderMap, Method, Uri, header};

use super::{AHP_PATH, HttpRefusal, MAX_MESSAGE};

/// The protocol's own name of a token in a query.
const AHP_TOKEN: &str = "tkn=";

/// Names under which the listener may be asked, and pages that may ask it.
#[derive(Clone, Debug, Default)]
pub struct AllowedNames {
    /// Beside addresses and `localhost`.
    pub hosts: Vec<String>,
    pub origins: Vec<String>,
}

impl AllowedNames {
    /// # Errors
    /// 400 and 403, with what would be right.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), HttpRefusal> {
        let mut said = headers.get_all(header::HOST).into_iter();
        let host = said.next().map(|it| it.to_str().unwrap_or_default());
        if said.next().is_some() {
            return Err(HttpRefusal::new(400, "send one Host header"));
        }
        let mut names = uri.authority().map(|it| it.as_str()).into_iter().chain(host).peekable();
        if names.peek().is_none() || !names.all(|it| self.knows_host(it)) {
            let why = "the name in Host is not one of this server; --allow-host NAME adds one";
            return Err(HttpRefusal::new(403, why));
        }
        match headers.get(header::ORIGIN) {
            Some(origin) if !self.origins.iter().any(|it| origin.as_bytes() == it.as_bytes()) => Err(HttpRefusal::new(
                403,
                "pages of that origin may not ask this server; --allow-origin ORIGIN lets them",
            )),
            _ => Ok(()),
        }
    }

    /// An address cannot be made to lead elsewhere, as a name can.
    fn knows_host(&self, host: &str) -> bool {
        match parse_host(host) {
            Some(HostName::Address) => true,
            Some(HostName::Name(name)) => {
                name.eq_ignore_ascii_case("localhost") || self.hosts.iter().any(|it| it.eq_ignore_ascii_case(name))
            }
            None => false,
        }
    }
}

/// The host of `host[:port]`.
enum HostName<'h> {
    Address,
    Name(&'h str),
}

/// Reads `host[:port]`, strictly: what is anything else has no host.
fn parse_host(text: &str) -> Option<HostName<'_>> {
    let is_port = |it: &str| it.bytes().all(|it| it.is_ascii_digit()) && it.parse::<u16>().is_ok();
    if let Some(rest) = text.strip_prefix('[') {
        let (address, rest) = rest.split_once(']')?;
        let is_end = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
        return (is_end && address.parse::<Ipv6Addr>().is_ok()).then_some(HostName::Address);
    }
    let (name, port) = text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port)));
    if port.is_some_and(|it| !is_port(it)) {
        return None;
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it));
    match name.parse::<Ipv4Addr>() {
        Ok(_) => Some(HostName::Address),
        Err(_) => name.split('.').all(is_label).then_some(HostName::Name(name)),
    }
}

/// # Errors
/// 404 and 405.
pub fn check_place(method: &Method, uri: &Uri) -> Result<(), HttpRefusal> {
    match uri.path() {
        _ if is_ahp(uri) && *method == Method::GET => Ok(()),
        _ if is_ahp(uri) => Err(HttpRefusal::new(405, "open a WebSocket")),
        "/acp" if [Method::GET, Method::POST, Method::DELETE, Method::OPTIONS].contains(method) => Ok(()),
        "/acp" => Err(HttpRefusal::new(405, "send GET, POST or DELETE")),
        _ => Err(HttpRefusal::new(404, "castor answers at /acp and /ahp")),
    }
}

/// Clients that know an address and a token alone ask for `/`, with the token in the query.
pub fn is_ahp(uri: &Uri) -> bool {
    let has_token = || uri.query().is_some_and(|it| it.split('&').any(|it| it.starts_with(AHP_TOKEN)));
    uri.path() == AHP_PATH || (uri.path() == "/" && has_token())
}

/// # Errors
/// 415 and 413.
pub fn check_post(headers: &HeaderMap) -> Result<(), HttpRefusal> {
    let kind = text(headers, header::CONTENT_TYPE.as_str()).unwrap_or_default();
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        return Err(HttpRefusal::new(415, "send the message as Content-Type: application/json"));
    }
    let length = text(headers, header::CONTENT_LENGTH.as_str()).and_then(|it| it.parse::<u64>().ok());
    match length.is_some_and(|it| it > MAX_MESSAGE as u64) {
        true => Err(too_large()),
        false => Ok(()),
    }
}

pub fn too_large() -> HttpRefusal {
    HttpRefusal::new(413, format!("a message has at most {} MiB", MAX_MESSAGE >> 20))
}

pub fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|it| it.to_str().ok())
}

/// Tells whether a list of words in a header has one.
pub fn has_word(headers: &HeaderMap, name: &str, word: &str) -> bool {
    words(headers, name).any(|it| it.eq_ignore_ascii_case(word))
}

/// The words of a list in a header, which may come in several.
pub fn words<'h>(headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = &'h str> {
    let all = headers.get_all(name).into_iter().filter_map(|it| it.to_str().ok());
    all.flat_map(|it| it.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use hyper::{HeaderMap, Uri};

    use super::AllowedNames;

    #[test]
    fn names_that_somebody_else_can_lead_here_are_refused() {
        let names = AllowedNames { hosts: vec!["box.example".into()], origins: vec!["https://app.example".into()] };
        for (host, origin, is_fine) in [
            ("localhost:1234", None, true),
            ("LOCALHOST", None, true),
            ("127.0.0.1:1", None, true),
            ("[::1]:1", None, true),
            ("box.example:443", None, true),
            ("evil.example:1234", None, false),
            ("localhost.evil.example", None, false),
            ("127.0.0.1.evil.example", None, false),
            ("", None, false),
            ("localhost.", None, true),
            ("localhost..", None, false),
            ("127.0.0.1.", None, true),
            ("[::1]", None, true),
            ("[::1].evil.com", None, false),
            ("[::1]evil.com", None, false),
            ("[::1]:80.evil.com", None, false),
            ("[::1]:", None, false),
            ("[::1", None, false),
            ("::1", None, false),
            ("[127.0.0.1]", None, false),
            ("[localhost]", None, false),
            ("[::1%25lo]", None, false),
            ("localhost:80@evil", None, false),
            ("localhost:80:80", None, false),
            ("localhost:+80", None, false),
            ("localhost:65536", None, false),
            ("localhost:", None, false),
            ("localhost:80/evil", None, false),
            ("localhost@evil.com", None, false),
            ("evil.com@localhost", None, false),
            ("evil.com#@localhost", None, false),
            ("evil.com\\localhost", None, false),
            ("localhost evil.com", None, false),
            ("localhost,evil.com", None, false),
            ("localhost%2eevil.com", None, false),
            ("localhost\tevil.com", None, false),
            (":80", None, false),
            (".", None, false),
            ("0x7f.1", None, false),
            ("2130706433", None, false),
            ("box.example.evil.com", None, false),
            ("box_example", None, false),
            ("localhost", Some("https://app.example"), true),
            ("localhost", Some("https://evil.example"), false),
            ("localhost", Some("http://localhost"), false),
            ("localhost", Some("null"), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("host", host.parse().unwrap());
            if let Some(it) = origin {
                headers.insert("origin", it.parse().unwrap());
            }
            let res = names.check(&Uri::from_static("/acp"), &headers);
            assert_eq!(res.map_err(|it| it.status), if is_fine { Ok(()) } else { Err(403) }, "{host} {origin:?}");
        }
    }

    #[test]
    fn one_host_is_asked_for() {
        let names = AllowedNames::default();
        let check = |uri: &'static str, hosts: &[&str]| {
            let mut headers = HeaderMap::new();
            for it in hosts {
                headers.append("host", it.parse().unwrap());
            }
            names.check(&Uri::from_static(uri), &headers).map_err(|it| it.status)
        };
        for (uri, hosts, want) in [
            ("/acp", &["localhost"][..], Ok(())),
            ("/acp", &["localhost", "localhost"], Err(400)),
            ("/acp", &["localhost", "evil.example"], Err(400)),
            ("http://localhost/acp", &["localhost", "localhost"], Err(400)),
            ("/acp", &[], Err(403)),
            ("http://localhost/acp", &[], Ok(())),
            ("http://localhost/acp", &["evil.example"], Err(403)),
            ("http://evil.example/acp", &["localhost"], Err(403)),
            ("http://localhost:80@evil.example/acp", &[], Err(403)),
            ("http://evil@localhost/acp", &[], Err(403)),
        ] {
            assert_eq!(check(uri, hosts), want, "{uri} {hosts:?}");
        }
    }
}
