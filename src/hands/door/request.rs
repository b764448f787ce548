//! HTTP requests at the door: finds the host of each, and writes its head anew. Pure.
//!
//! One request goes over one connection: its head is written anew with `Connection: close`, its body is counted, and
//! nothing that comes behind it is passed on. So none can hide behind another.

use castor_base::network::HostPort;

/// Longer heads are refused.
pub(super) const MAX_HEAD: usize = 64 << 10;
const MAX_HEADERS: usize = 128;
/// A longer line has no size in it.
const MAX_SIZE_LINE: usize = 32;
const HTTP_PORT: u16 = 80;
const CONNECT: &str = "CONNECT";
/// Headers for the next hop alone. Those that `Connection` names are so as well.
const OF_HOP: &[&str] = &[
    "connection",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "upgrade",
];

/// A request that the door does not pass on, and whom it was for, as far as that can be told.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadRequest {
    Malformed,
    /// It names one host here and another there.
    OtherHost(HostPort),
}

/// What a connection is for.
#[derive(Clone, Copy)]
pub(super) enum Form<'a> {
    /// A proxy: each request says whom it is for.
    Proxy,
    /// This host, and no other.
    Within(&'a HostPort),
}

/// The head of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub target: HostPort,
    /// It wants a tunnel; nothing of it goes on.
    pub is_connect: bool,
    /// As it goes on.
    pub head: Vec<u8>,
    pub body: RequestBody,
    /// How many bytes the head had.
    pub length: usize,
}

/// Reads a head; `None`: it is not whole yet.
///
/// # Errors
/// It is none that could be understood in one way only, or is for another host.
pub(super) fn read_head(bytes: &[u8], form: Form<'_>) -> Result<Option<Request>, BadRequest> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let length = match head.parse(bytes).map_err(|_| BadRequest::Malformed)? {
        httparse::Status::Complete(it) => it,
        httparse::Status::Partial if bytes.len() < MAX_HEAD => return Ok(None),
        httparse::Status::Partial => return Err(BadRequest::Malformed),
    };
    let (Some(method), Some(path), Some(version)) = (head.method, head.path, head.version) else {
        return Err(BadRequest::Malformed);
    };
    let is_connect = method == CONNECT;
    let (target, path) = match form {
        Form::Proxy if is_connect => (HostPort::parse(path, None), path),
        Form::Proxy => split_url(path).map_or((None, path), |(target, path)| (Some(target), path)),
        Form::Within(it) => (Some(it.clone()).filter(|_| !is_connect && path.starts_with('/')), path),
    };
    let target = target.ok_or(BadRequest::Malformed)?;
    check_host(head.headers, &target, is_connect, version)?;
    let body = body_of(head.headers, version)?;
    if is_connect && body != RequestBody::Length(0) {
        return Err(BadRequest::Malformed);
    }
    let head = written(method, path, version, &target, head.headers);
    Ok(Some(Request { target, is_connect, head, body, length }))
}

/// The host and the path of an address. None that names a user: the host would be another one to some.
fn split_url(url: &str) -> Option<(HostPort, &str)> {
    let (scheme, rest) = url.split_at_checked("http://".len())?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, path) = rest.split_at_checked(end)?;
    let target = HostPort::parse(host, Some(HTTP_PORT)).filter(|_| scheme.eq_ignore_ascii_case("http://"))?;
    Some((target, path))
}

/// One `Host`, the same as where the request goes.
fn check_host(
    headers: &[httparse::Header<'_>],
    target: &HostPort,
    is_connect: bool,
    version: u8,
) -> Result<(), BadRequest> {
    let mut named = all(headers, "host");
    let usual = if is_connect { target.port } else { HTTP_PORT };
    match (named.next(), named.next()) {
        (None, _) if version == 0 || is_connect => Ok(()),
        (Some(it), None) => match std::str::from_utf8(it).ok().and_then(|it| HostPort::parse(it.trim(), Some(usual))) {
            Some(it) if is_same(&it, target) => Ok(()),
            _ => Err(BadRequest::OtherHost(target.clone())),
        },
        _ => Err(BadRequest::OtherHost(target.clone())),
    }
}

/// Many programs leave the port out where they speak through a tunnel.
fn is_same(named: &HostPort, target: &HostPort) -> bool {
    named.host == target.host && (named.port == target.port || named.port == HTTP_PORT)
}

fn all<'h>(headers: &'h [httparse::Header<'_>], name: &'static str) -> impl Iterator<Item = &'h [u8]> {
    headers.iter().filter(move |it| it.name.eq_ignore_ascii_case(name)).map(|it| it.value)
}

fn body_of(headers: &[httparse::Header<'_>], version: u8) -> Result<RequestBody, BadRequest> {
    let (mut lengths, mut codings) = (all(headers, "content-length"), all(headers, "transfer-encoding"));
    match (lengths.next(), lengths.next(), codings.next(), codings.next()) {
        (None, None, None, None) => Ok(RequestBody::Length(0)),
        (Some(it), None, None, None) => {
            let is_number = !it.is_empty() && it.iter().all(u8::is_ascii_digit);
            let length = std::str::from_utf8(it).ok().filter(|_| is_number).and_then(|it| it.parse().ok());
            length.map(RequestBody::Length).ok_or(BadRequest::Malformed)
        }
        (None, None, Some(it), None) if version == 1 && it.eq_ignore_ascii_case(b"chunked") => {
            Ok(RequestBody::ChunkSize)
        }
        _ => Err(BadRequest::Malformed),
    }
}

fn written(method: &str, path: &str, version: u8, target: &HostPort, headers: &[httparse::Header<'_>]) -> Vec<u8> {
    let slash = if path.starts_with('/') { "" } else { "/" };
    let host = match (target.port, &target.host) {
        (HTTP_PORT, host) => host.to_string(),
        _ => target.to_string(),
    };
    let mut res = format!("{method} {slash}{path} HTTP/1.{version}\r\nHost: {host}\r\n").into_bytes();
    let dropped: Vec<&[u8]> = all(headers, "connection").flat_map(|it| it.split(|it| *it == b',')).collect();
    let is_dropped = |name: &str| {
        OF_HOP.iter().any(|it| it.eq_ignore_ascii_case(name))
            || dropped.iter().any(|it| it.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
    };
    // What tells a body's length cannot be dropped by naming it.
    let is_length = |name: &str| ["content-length", "transfer-encoding"].iter().any(|it| it.eq_ignore_ascii_case(name));
    for it in headers.iter().filter(|it| is_length(it.name) || !is_dropped(it.name)) {
        res.extend([it.name.as_bytes(), b": ", it.value, b"\r\n"].concat());
    }
    res.extend(b"Connection: close\r\n\r\n");
    res
}

/// What is left of a request's body. No extensions of chunks and no trailers: hardly a program sends any.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RequestBody {
    Length(u64),
    /// A line with the size of a chunk.
    ChunkSize,
    /// A chunk with the line's end behind it. After the last one the body is over.
    Chunk {
        left: u64,
        is_last: bool,
    },
}

impl RequestBody {
    pub fn is_over(&self) -> bool {
        *self == Self::Length(0)
    }

    /// How many of these bytes are the body's, and can be told to be so.
    ///
    /// # Errors
    /// It is no chunked body.
    pub fn take(&mut self, bytes: &[u8]) -> Result<usize, BadRequest> {
        let mut taken = 0;
        loop {
            let n = self.take_part(bytes.get(taken..).unwrap_or_default())?;
            taken += n;
            if n == 0 || self.is_over() {
                return Ok(taken);
            }
        }
    }

    fn take_part(&mut self, bytes: &[u8]) -> Result<usize, BadRequest> {
        match self {
            Self::Length(left) => Ok(take_some(left, bytes)),
            Self::ChunkSize => {
                let (n, size) = match httparse::parse_chunk_size(bytes) {
                    Ok(httparse::Status::Complete(it)) => it,
                    Ok(httparse::Status::Partial) if bytes.len() < MAX_SIZE_LINE => return Ok(0),
                    _ => return Err(BadRequest::Malformed),
                };
                let digits = bytes.get(..n).and_then(|it| it.strip_suffix(b"\r\n")).filter(|it| !it.is_empty());
                digits.filter(|it| it.iter().all(u8::is_ascii_hexdigit)).ok_or(BadRequest::Malformed)?;
                *self = Self::Chunk { left: size, is_last: size == 0 };
                Ok(n)
            }
            Self::Chunk { left: 0, is_last } => match bytes {
                [b'\r', b'\n', ..] => {
                    *self = if *is_last { Self::Length(0) } else { Self::ChunkSize };
                    Ok(2)
                }
                [] | [b'\r'] => Ok(0),
                _ => Err(BadRequest::Malformed),
            },
            Self::Chunk { left, .. } => Ok(take_some(left, bytes)),
        }
    }
}

/// Takes what is there of so many bytes.
fn take_some(left: &mut u64, bytes: &[u8]) -> usize {
    let n = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
    *left -= n as u64;
    n
}

/// Whether what a client says first is a request, as far as it is there; `None`: that is not known yet.
pub(super) fn is_request(bytes: &[u8]) -> Option<bool> {
    const LONGEST: usize = 20;
    let is_token = |it: &u8| it.is_ascii_alphanumeric() || *it == b'-' || *it == b'_';
    match bytes.iter().position(|it| !is_token(it)) {
        Some(at) => Some(at > 0 && bytes.get(at) == Some(&b' ')),
        None => (bytes.len() > LONGEST).then_some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::{BadRequest, Form, RequestBody, is_request, read_head};
    use castor_base::network::HostPort;

    fn read(text: &str, within: Option<&str>) -> String {
        let target = within.map(|it| HostPort::parse(it, None).unwrap());
        let form = target.as_ref().map_or(Form::Proxy, Form::Within);
        match read_head(text.replace('\n', "\r\n").as_bytes(), form) {
            Ok(None) => "more".to_owned(),
            Ok(Some(it)) if it.is_connect => format!("tunnel {}", it.target),
            Ok(Some(it)) => format!("{}|{}", it.target, String::from_utf8(it.head).unwrap().replace("\r\n", "\n")),
            Err(BadRequest::Malformed) => "malformed".to_owned(),
            Err(BadRequest::OtherHost(it)) => format!("other than {it}"),
        }
    }

    #[test]
    fn requests_to_a_proxy_name_one_host() {
        for (text, want) in [
            (
                "GET http://A.com/x?y HTTP/1.1\nHost: a.com\nAccept: */*\n\n",
                "a.com:80|GET /x?y HTTP/1.1\nHost: a.com\nAccept: */*\nConnection: close\n\n",
            ),
            (
                "GET http://a.com?y HTTP/1.1\nHost: a.com\n\n",
                "a.com:80|GET /?y HTTP/1.1\nHost: a.com\nConnection: close\n\n",
            ),
            (
                "GET http://a.com:8080/ HTTP/1.1\nHost: a.com:8080\nProxy-Authorization: x\nConnection: keep-alive, X-Y\nx-y: 1\n\n",
                "a.com:8080|GET / HTTP/1.1\nHost: a.com:8080\nConnection: close\n\n",
            ),
            ("GET http://a.com/ HTTP/1.0\n\n", "a.com:80|GET / HTTP/1.0\nHost: a.com\nConnection: close\n\n"),
            (
                "GET http://0x7f.1/ HTTP/1.1\nHost: 127.0.0.1\n\n",
                "127.0.0.1:80|GET / HTTP/1.1\nHost: 127.0.0.1\nConnection: close\n\n",
            ),
            ("CONNECT a.com:443 HTTP/1.1\nHost: a.com:443\n\n", "tunnel a.com:443"),
            ("CONNECT a.com:443 HTTP/1.1\nHost: a.com\n\n", "tunnel a.com:443"),
            ("CONNECT [::1]:443 HTTP/1.1\n\n", "tunnel [::1]:443"),
            ("GET http://a.com/ HTTP/1.1\nHo", "more"),
            // Two hosts.
            ("GET http://a.com/ HTTP/1.1\nHost: b.com\n\n", "other than a.com:80"),
            ("GET http://a.com/ HTTP/1.1\nHost: a.com\nHost: b.com\n\n", "other than a.com:80"),
            ("GET http://a.com/ HTTP/1.1\nHost: a.com\nHost: a.com\n\n", "other than a.com:80"),
            ("GET http://a.com/ HTTP/1.1\nHost: a.com, b.com\n\n", "other than a.com:80"),
            ("GET http://a.com/ HTTP/1.1\nHost: a.com:81\n\n", "other than a.com:80"),
            ("GET http://a.com/ HTTP/1.1\n\n", "other than a.com:80"),
            ("CONNECT a.com:443 HTTP/1.1\nHost: b.com:443\n\n", "other than a.com:443"),
            ("GET http://a.com@b.com/ HTTP/1.1\nHost: a.com\n\n", "malformed"),
            ("GET http://b.com#@a.com/ HTTP/1.1\nHost: a.com\n\n", "malformed"),
            ("GET http://b.com\\@a.com/ HTTP/1.1\nHost: a.com\n\n", "malformed"),
            // No proxy's.
            ("GET / HTTP/1.1\nHost: a.com\n\n", "malformed"),
            ("GET https://a.com/ HTTP/1.1\nHost: a.com\n\n", "malformed"),
            ("GET ftp://a.com/ HTTP/1.1\nHost: a.com\n\n", "malformed"),
            ("CONNECT a.com HTTP/1.1\n\n", "malformed"),
            ("CONNECT http://a.com:443/ HTTP/1.1\n\n", "malformed"),
            ("CONNECT a.com:443 HTTP/1.1\nContent-Length: 5\n\n", "malformed"),
            ("PRI * HTTP/2.0\n\nSM\n\n", "malformed"),
            // Hidden in another.
            (
                "POST http://a.com/ HTTP/1.1\nHost: a.com\nContent-Length: 5\nTransfer-Encoding: chunked\n\n",
                "malformed",
            ),
            ("POST http://a.com/ HTTP/1.1\nHost: a.com\nContent-Length: 5\nContent-Length: 6\n\n", "malformed"),
            ("POST http://a.com/ HTTP/1.1\nHost: a.com\nContent-Length: 5, 5\n\n", "malformed"),
            ("POST http://a.com/ HTTP/1.1\nHost: a.com\nContent-Length: +5\n\n", "malformed"),
            (
                "POST http://a.com/ HTTP/1.1\nHost: a.com\nTransfer-Encoding: chunked\nTransfer-Encoding: identity\n\n",
                "malformed",
            ),
            ("POST http://a.com/ HTTP/1.1\nHost: a.com\nTransfer-Encoding: xchunked\n\n", "malformed"),
            ("POST http://a.com/ HTTP/1.0\nHost: a.com\nTransfer-Encoding: chunked\n\n", "malformed"),
            ("GET http://a.com/ HTTP/1.1\nHost : b.com\nHost: a.com\n\n", "malformed"),
            ("GET http://a.com/ HTTP/1.1\n Host: b.com\nHost: a.com\n\n", "malformed"),
            ("GET http://a.com/ HTTP/1.1\nHost: a.com\nX: y\n  folded\n\n", "malformed"),
        ] {
            assert_eq!(read(text, None), want, "{text}");
        }
    }

    #[test]
    fn requests_in_a_tunnel_are_for_its_host() {
        let within = Some("a.com:80");
        for (text, want) in [
            (
                "GET /x HTTP/1.1\nHost: a.com\nConnection: keep-alive\nUpgrade: websocket\n\n",
                "a.com:80|GET /x HTTP/1.1\nHost: a.com\nConnection: close\n\n",
            ),
            (
                "POST / HTTP/1.1\nHost: a.com\nConnection: content-length\nContent-Length: 3\n\nabc",
                "a.com:80|POST / HTTP/1.1\nHost: a.com\nContent-Length: 3\nConnection: close\n\n",
            ),
            ("GET / HTTP/1.1\nHost: b.com\n\n", "other than a.com:80"),
            ("GET http://b.com/ HTTP/1.1\nHost: a.com\n\n", "malformed"),
            ("GET http://a.com/ HTTP/1.1\nHost: a.com\n\n", "malformed"),
            ("CONNECT b.com:443 HTTP/1.1\nHost: a.com\n\n", "malformed"),
            ("OPTIONS * HTTP/1.1\nHost: a.com\n\n", "malformed"),
        ] {
            assert_eq!(read(text, within), want, "{text}");
        }
        assert_eq!(read("GET / HTTP/1.1\nHost: a.com\n\n", Some("a.com:8080")).split('|').next(), Some("a.com:8080"));
    }

    #[test]
    fn a_body_ends_where_it_says() {
        let taken = |body: &mut RequestBody, text: &str| body.take(text.as_bytes());
        let mut body = RequestBody::Length(5);
        assert_eq!((taken(&mut body, "abc"), taken(&mut body, "deGET /")), (Ok(3), Ok(2)));
        assert!(body.is_over() && taken(&mut body, "x") == Ok(0));
        let chunked = || match read_head(
            b"POST http://a.com/ HTTP/1.1\r\nHost: a.com\r\nTransfer-Encoding: Chunked\r\n\r\n",
            Form::Proxy,
        ) {
            Ok(Some(it)) => it.body,
            it => panic!("{it:?}"),
        };
        let text = "3\r\nabc\r\n00A\r\n0123456789\r\n0\r\n\r\nGET / HTTP/1.1\r\n";
        let end = text.find("GET").unwrap();
        for step in [1, 2, 3, 7, text.len()] {
            let (mut body, mut n, mut said) = (chunked(), 0, Vec::new());
            for piece in text.as_bytes().chunks(step) {
                said.extend(piece);
                let taken = body.take(&said).unwrap();
                said.drain(..taken);
                n += taken;
            }
            assert_eq!((n, body.is_over()), (end, true), "{step}");
        }
        for no in [
            "\r\n",
            "x\r\n",
            "3;a=b\r\n",
            "3\nabc",
            "3\r\nabcX",
            "0\r\nX: y\r\n\r\n",
            "0x3\r\n",
            "-1\r\n",
            "00000000000000000\r\n",
            "3 \r\n",
            "3\r\nabc\n\n",
        ] {
            assert_eq!(taken(&mut chunked(), no), Err(BadRequest::Malformed), "{no}");
        }
    }

    #[test]
    fn what_comes_first_tells_a_request_from_another_protocol() {
        for (text, want) in [
            ("GET / HTTP/1.1", Some(true)),
            ("G", None),
            ("", None),
            ("PRI * HTTP/2.0", Some(true)),
            ("SSH-2.0-OpenSSH_9", Some(false)),
            ("SSH-2", None),
            ("EHLO\r\n", Some(false)),
            (" GET", Some(false)),
            ("\u{16}\u{3}", Some(false)),
            ("AVERYLONGWORDWITHOUTANEND", Some(false)),
        ] {
            assert_eq!(is_request(text.as_bytes()), want, "{text:?}");
        }
    }
}
