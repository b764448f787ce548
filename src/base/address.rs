//! Addresses of other machines, as commands and git's settings write them.

use url::Host;

const SCHEMES: &[&str] = &[
    "ftp://",
    "ftps://",
    "git+https://",
    "git+ssh://",
    "git://",
    "http://",
    "https://",
    "rsync://",
    "ssh+git://",
    "ssh://",
];

/// Whether it is surely one of another machine: `https://h/x`, `git@h:x`. Not what only runs tells: `https://$h/x`.
pub fn is_far(text: &str) -> bool {
    host(text).is_some_and(|it| is_written_out(it) && !is_near(it))
}

/// As git reads it: `h:x` is a host, `./h:x`, `x::h` and `c:x` are none.
fn host(text: &str) -> Option<&str> {
    let behind = |scheme: &&str| {
        let start = text.get(..scheme.len()).filter(|it| it.eq_ignore_ascii_case(scheme));
        start.and_then(|it| text.get(it.len()..))
    };
    let place = match text.contains("://") {
        true => SCHEMES.iter().find_map(behind)?.split(['/', '?', '#']).next()?,
        false => {
            let (host, path) = text.split_once(':')?;
            let is_host = host.len() > 1 && !host.contains('/') && !path.starts_with(':');
            Some(host).filter(|_| is_host)?
        }
    };
    let host = place.rsplit('@').next()?;
    match host.strip_prefix('[') {
        Some(it) => it.split(']').next(),
        None => host.split(':').next(),
    }
}

fn is_written_out(host: &str) -> bool {
    !host.is_empty() && host.chars().all(|it| it.is_ascii_alphanumeric() || ".-_:".contains(it))
}

/// The machine itself.
fn is_near(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let in_brackets = host.contains(':').then(|| format!("[{host}]"));
    match Host::parse(in_brackets.as_ref().unwrap_or(&host)) {
        Ok(Host::Ipv4(it)) => it.is_loopback() || it.is_unspecified(),
        Ok(Host::Ipv6(it)) => it.is_loopback() || it.is_unspecified(),
        Ok(Host::Domain(it)) => it == "localhost" || it.ends_with(".localhost"),
        Err(_) => host.starts_with("127."),
    }
}

#[cfg(test)]
mod tests {
    use super::is_far;

    #[test]
    fn other_machines_are_told_from_this_one_and_from_paths() {
        for far in [
            "https://h.example/x.git",
            "HTTPS://u:p@h:8080",
            "ssh://git@h/x",
            "git@github.com:o/x.git",
            "host:x",
            "http://[fe80::1]:80/x",
            "http://192.0.2.1",
        ] {
            assert!(is_far(far), "{far}");
        }
        for near in [
            "http://localhost:1/x",
            "http://127.0.0.1",
            "http://127.1",
            "http://[::1]:80/x",
            "u@localhost:x",
            "http://a.localhost",
            "file:///x",
            "../x",
            "./h:x",
            "ext::sh -c x",
            "c:x",
            "https://$h/x",
            "https://",
            "origin",
            "",
        ] {
            assert!(!is_far(near), "{near}");
        }
    }
}
