//! Tables: forms of names and addresses, grants, and what they match.

use super::{Host, HostGrant, HostPort, HostRefusal, HostRules, HostVerdict, NetworkRecord};

#[test]
fn a_host_has_one_form() {
    for (text, want) in [
        ("Example.COM", Some("example.com")),
        ("example.com.", Some("example.com")),
        ("exa\u{ff4d}ple.com", Some("example.com")),
        ("b\u{fc}cher.example", Some("xn--bcher-kva.example")),
        ("example\u{3002}com", Some("example.com")),
        ("_dmarc.example.com", Some("_dmarc.example.com")),
        ("127.1", Some("127.0.0.1")),
        ("2130706433", Some("127.0.0.1")),
        ("0x7f000001", Some("127.0.0.1")),
        ("0177.0.0.1", Some("127.0.0.1")),
        ("0x7f.1.", Some("127.0.0.1")),
        ("[::1]", Some("[::1]")),
        ("::1", Some("[::1]")),
        ("[::ffff:10.0.0.1]", Some("10.0.0.1")),
        ("::ffff:7f00:1", Some("127.0.0.1")),
        ("[fe80::1%eth0]", None),
        ("fe80::1%25lo", None),
        ("example.com..", None),
        ("a..b", None),
        (".example.com", None),
        ("", None),
        (".", None),
        ("ex%61mple.com", None),
        ("a@b.com", None),
        ("a b.com", None),
        ("a\tb.com", None),
        ("a\0.com", None),
        ("a/b", None),
        ("a\\b", None),
        ("1.2.3.4.5", None),
        ("256.1.1.1", None),
        ("[1.2.3.4]", None),
        ("[::1", None),
    ] {
        assert_eq!(Host::parse(text).map(|it| it.to_string()).as_deref(), want, "{text:?}");
    }
    assert_eq!(Host::parse(&format!("{}.com", "a".repeat(64))), None);
    assert_eq!(Host::parse(&["a".repeat(60).as_str(); 5].join(".")), None);
}

#[test]
fn a_port_is_digits_behind_the_last_colon() {
    for (text, usual, want) in [
        ("a.b:443", None, Some("a.b:443")),
        ("a.b", Some(80), Some("a.b:80")),
        ("a.b", None, None),
        ("[::1]:22", None, Some("[::1]:22")),
        ("[::1]", Some(22), Some("[::1]:22")),
        ("::1:22", None, None),
        ("::1", Some(22), None),
        ("a.b:+443", None, None),
        ("a.b:0", None, None),
        ("a.b:65536", None, None),
        ("a.b:", Some(80), None),
        ("a.b:44 3", None, None),
        ("a.b:1:2", None, None),
        ("user@a.b:443", None, None),
    ] {
        assert_eq!(HostPort::parse(text, usual).map(|it| it.to_string()).as_deref(), want, "{text:?}");
    }
}

#[test]
fn grants_read_back_as_they_are_written() {
    for (text, want) in [
        ("Example.com", "example.com:443"),
        ("*.Example.com", "*.example.com:443"),
        ("example.com:8443", "example.com:8443"),
        ("example.com:*", "example.com:*"),
        (" git.corp:22 private ", "git.corp:22 private"),
        ("[::1]:80", "[::1]:80"),
        ("Registries", "registries"),
    ] {
        let read = HostGrant::parse(text, Some(443)).unwrap();
        assert_eq!(read.to_string(), want, "{text}");
        assert_eq!(HostGrant::try_from(want.to_owned()), Ok(read));
    }
    for no in ["", "*", "*.", "*.1.2.3.4", "a.*.b", "https://a.b", "a.b/x", "a.b:x", "a.b:443:1", "private", "*.*.a"] {
        let read = HostGrant::parse(no, Some(443));
        assert!(read.as_ref().is_err_and(|it| it.contains("is no host")) || no == "private", "{no:?} {read:?}");
    }
}

#[test]
fn a_name_is_matched_before_any_lookup() {
    let rules = |allowed: &str, denied: &str| {
        let all = |text: &str, usual| text.split_whitespace().map(|it| HostGrant::parse(it, usual).unwrap()).collect();
        HostRules { allowed: all(allowed, Some(443)), denied: all(denied, None) }
    };
    let open = HostVerdict::Open { is_private: false };
    for (allowed, denied, target, want) in [
        ("a.com", "", "a.com:443", open),
        ("a.com", "", "A.com.:443", open),
        ("a.com", "", "a.com:80", HostVerdict::NotGranted),
        ("a.com", "", "b.a.com:443", HostVerdict::NotGranted),
        ("a.com", "", "a.com.evil.org:443", HostVerdict::NotGranted),
        ("*.a.com", "", "b.a.com:443", open),
        ("*.a.com", "", "c.b.a.com:443", open),
        ("*.a.com", "", "a.com:443", HostVerdict::NotGranted),
        ("*.a.com", "", "evila.com:443", HostVerdict::NotGranted),
        ("*.com", "", "1.2.3.4:443", HostVerdict::NotGranted),
        ("a.com:*", "", "a.com:9", open),
        ("1.2.3.4", "", "0x01020304:443", open),
        ("registries", "", "registry.npmjs.org:443", open),
        ("registries", "", "registry.npmjs.org:80", HostVerdict::NotGranted),
        ("registries", "", "upload.pypi.org:443", HostVerdict::NotGranted),
        ("registries", "", "crates.io:443", HostVerdict::NotGranted),
        ("registries", "pypi.org", "pypi.org:443", HostVerdict::Forbidden),
        ("*.a.com", "*.b.a.com", "x.b.a.com:443", HostVerdict::Forbidden),
        ("a.com:*", "a.com:25", "a.com:25", HostVerdict::Forbidden),
        ("localhost", "", "localhost:443", HostVerdict::Forbidden),
        ("*.localhost", "", "x.localhost:443", HostVerdict::Forbidden),
    ] {
        let target = HostPort::parse(target, None).unwrap();
        assert_eq!(rules(allowed, denied).decide(&target), want, "{allowed} {target}");
    }
    let private = HostRules { allowed: vec![HostGrant::parse("git.corp private", Some(443)).unwrap()], denied: vec![] };
    let target = HostPort::parse("git.corp:443", None).unwrap();
    assert_eq!(private.decide(&target), HostVerdict::Open { is_private: true });
}

#[test]
fn a_record_offers_what_a_yes_can_open() {
    let at = |text: &str| HostPort::parse(text, None).unwrap();
    let mut record = NetworkRecord::default();
    for _ in 0..3 {
        record.note_refused(&at("a.com:443"), HostRefusal::NotGranted);
    }
    record.note_refused(&at("b.corp:22"), HostRefusal::Private);
    record.note_refused(&at("c.com:443"), HostRefusal::Forbidden);
    record.note_refused(&at("d.com:443"), HostRefusal::OtherHost);
    let wanted: Vec<String> = record.wanted().iter().map(ToString::to_string).collect();
    assert_eq!(wanted, ["a.com:443", "b.corp:22 private"]);
}
