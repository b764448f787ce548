//! Redaction: which values count, in which encodings, and streams against whole texts.

use std::fs;

use super::{RedactionPlan, Redactor, Secrets, Source, Stream};
use castor_base::path::AbsPath;
use castor_hands::disk;

struct Ground {
    _keep: tempfile::TempDir,
    root: AbsPath,
}

#[allow(clippy::disallowed_methods)]
impl Ground {
    fn new(files: &[(&str, &str)]) -> Self {
        let keep = tempfile::tempdir().unwrap();
        let root = disk::real_path(&AbsPath::new(keep.path()).unwrap()).unwrap();
        let res = Self { _keep: keep, root };
        files.iter().for_each(|(name, text)| res.write(name, text.as_bytes()));
        res
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn secrets(&self, since_s: i64) -> Secrets {
        Secrets::new(vec![self.root.join("w")], Some(self.root.join("h")), since_s)
    }
}

fn redactor(values: &[&str]) -> Redactor {
    let mut plan = RedactionPlan::default();
    for (at, it) in values.iter().enumerate() {
        plan.sources.push(Source { path: AbsPath::new(format!("/{at}")).unwrap(), mark: format!("[{at}]") });
        plan.add(it, at);
    }
    plan.build()
}

#[test]
fn values_of_files_are_marked_with_their_names() {
    let ground = Ground::new(&[
        ("w/.env", "API_KEY=one-two-three\nPUBLIC=one-two-four"),
        ("w/a/b/prod.env", "TOKEN=\"multi\nsecond-line-of-16-chars\"\nPASS=p/s\\\"s=w0rd"),
        ("w/.env.example", "SAMPLE_KEY=changeme-please"),
        ("w/.env.local", "SAMPLE_KEY=changeme-please"),
        ("w/node_modules/x/.env", "A_KEY=not-looked-for"),
        ("w/target/.env", "A_KEY=not-looked-for"),
        ("h/.netrc", "machine x login ada password open-sesame"),
        ("h/.aws/credentials", "[default]\naws_secret_access_key = wJalrXUtnFEMI/K7MDENG"),
        ("h/src/.env", "A_KEY=not-looked-for"),
        ("out/key.pem", "A_KEY=outside-of-all"),
    ]);
    std::os::unix::fs::symlink(ground.root.join("out/key.pem"), ground.root.join("w/key.pem")).unwrap();
    let redactor = ground.secrets(i64::MAX).current_redactor(false);
    for (text, want) in [
        ("x one-two-three y", "x [secret from .env] y"),
        ("one-two-four changeme-please not-looked-for outside-of-all", ""),
        ("\"p/s\\\\\\\"s=w0rd\"", "\"[secret from a/b/prod.env]\""),
        ("open-sesame/wJalrXUtnFEMI/K7MDENG", "[secret from ~/.netrc]/[secret from ~/.aws/credentials]"),
        ("b25lLXR3by10aHJlZQ== 6f6e652d74776f2d7468726565", "[secret from .env] [secret from .env]"),
    ] {
        assert_eq!(redactor.redact(text, &[]), if want.is_empty() { text } else { want });
    }
    // A template that a command of the session made publishes nothing.
    assert_eq!(ground.secrets(0).current_redactor(false).redact("changeme-please", &[]), "[secret from .env.local]");
    let shown = ground.root.join("w/.env");
    assert_eq!(redactor.redact("one-two-three open-sesame", &[shown]), "one-two-three [secret from ~/.netrc]");
}

#[test]
#[allow(clippy::disallowed_methods)]
fn files_are_read_again_when_they_are_others() {
    let ground = Ground::new(&[("w/.env", "A_KEY=first-value")]);
    let secrets = ground.secrets(0);
    let said =
        |anew: bool| secrets.current_redactor(anew).redact("first-value second-value third-value", &[]).into_owned();
    assert_eq!(said(false), "[secret from .env] second-value third-value");
    ground.write("w/.env", b"A_KEY=second-value\n");
    ground.write("w/new/.env", b"A_KEY=third-value");
    // What was there may have been copied before.
    assert_eq!(said(false), "[secret from .env] [secret from .env] third-value");
    fs::remove_file(ground.root.join("w/.env")).unwrap();
    assert_eq!(said(true), "[secret from .env] [secret from .env] [secret from new/.env]");
    assert!(Ground::new(&[("w/x", "")]).secrets(0).current_redactor(false).is_idle());
}

/// An index in git's second form with these files.
fn index(files: &[(&str, usize)]) -> Vec<u8> {
    let mut res = b"DIRC\0\0\0\x02".to_vec();
    res.extend((files.len() as u32).to_be_bytes());
    for (path, len) in files {
        let at = res.len();
        res.extend([0; 24]);
        res.extend([0, 0, 0x81, 0xa4, 0, 0, 0, 0, 0, 0, 0, 0]);
        res.extend((*len as u32).to_be_bytes());
        res.extend([7; 20]);
        res.extend((path.len() as u16).to_be_bytes());
        res.extend(path.as_bytes());
        res.extend(vec![0; 8 - (res.len() - at) % 8]);
    }
    res
}

#[test]
fn value_in_a_tracked_file_is_no_secret() {
    let ground = Ground::new(&[
        ("w/.env", "A_KEY=postgres-dev\nB_KEY=function\nC_KEY=only-in-notes\nD_KEY=in-the-parent"),
        ("w/compose.yml", "password: postgres-dev"),
        ("w/src/a.rs", "function"),
        ("w/notes.txt", "only-in-notes"),
        ("top.txt", "in-the-parent"),
    ]);
    let all = "postgres-dev function only-in-notes in-the-parent";
    let said = |since_s: i64| ground.secrets(since_s).current_redactor(false).redact(all, &[]).into_owned();
    let mark = "[secret from .env]";
    let every = [mark; 4].join(" ");
    assert_eq!(said(i64::MAX), every, "no repository");
    ground.write(".git/index", &index(&[("top.txt", 13), ("w/compose.yml", 22), ("w/src/a.rs", 8)]));
    assert_eq!(said(i64::MAX), format!("postgres-dev function {mark} in-the-parent"));
    // What the session itself put there makes nothing public.
    assert_eq!(said(0), every);
    for broken in [&b"DIRC\0\0\0\x04\0\0\0\x01"[..], b"DIRC\0\0\0\x02\0\0\0\x09abc", b""] {
        ground.write(".git/index", broken);
        assert_eq!(said(i64::MAX), every);
    }
    // What was public when it was looked at stays so.
    ground.write(".git/index", &index(&[("w/src/a.rs", 8)]));
    let secrets = ground.secrets(i64::MAX);
    secrets.current_redactor(false);
    ground.write("w/src/a.rs", b"other");
    ground.write("w/.env", b"B_KEY=function\nE_KEY=another-one");
    assert_eq!(secrets.current_redactor(false).redact("function another-one", &[]), format!("function {mark}"));
}

/// Wherever it is cut, a stream says what the whole text says, and keeps back nothing that cannot be a beginning.
#[test]
fn a_stream_says_what_the_whole_says() {
    let redactor = std::sync::Arc::new(redactor(&["abcabcabd", "abdxyzxyz", "über-secret", "abcabcab"]));
    let texts = [
        "x abcabcabd y",
        "abcabcabcabd",
        "abcabcabdxyzxyz",
        "abcabcabcabcab",
        "abcabcab",
        "an über-secret ü",
        "über-secre",
        "YWJjYWJjYWJk xYWJjYWJjYWI=",
        "abdxyzxyabdxyzxyz",
    ];
    let cut = |text: &str, ends: &[usize]| {
        let stream = Stream::of(redactor.clone());
        let bounds: Vec<usize> = [&[0], ends, &[text.len()]].concat();
        let mut res: String = bounds.windows(2).map(|it| stream.push(text[it[0]..it[1]].to_owned())).collect();
        res += &stream.end();
        res
    };
    for text in texts {
        let whole = redactor.redact(text, &[]);
        let ends: Vec<usize> = (0..=text.len()).filter(|it| text.is_char_boundary(*it)).collect();
        assert_eq!(cut(text, &ends), whole, "{text}");
        for (at, end) in ends.iter().enumerate() {
            ends[at..].iter().for_each(|later| assert_eq!(cut(text, &[*end, *later]), whole, "{text} {end} {later}"));
        }
    }
    let stream = Stream::of(redactor.clone());
    assert_eq!(stream.push("password: abX".to_owned()), "password: abX");
    assert_eq!(stream.push("abca".to_owned()), "");
    assert_eq!(stream.push("!".to_owned()), "abca!");
}

/// Random values, texts made of their parts, random cuts: no value is in what comes out, and all else is.
#[test]
fn random_cuts_show_no_value() {
    let mut seed = 7_u64;
    let mut dice = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 33) as usize) % below
    };
    for _ in 0..300 {
        let letters: Vec<char> = "abü0".chars().collect();
        let values: Vec<String> = (0..3).map(|_| (0..8 + dice(6)).map(|_| letters[dice(4)]).collect()).collect();
        let list: Vec<&str> = values.iter().map(String::as_str).collect();
        let redactor = std::sync::Arc::new(redactor(&list));
        let mut text = String::new();
        for _ in 0..12 {
            let value: Vec<char> = values[dice(3)].chars().collect();
            let whole = dice(2) == 0;
            text.extend(&value[..if whole { value.len() } else { dice(value.len()) }]);
            text.push_str(["", "-", "a", "\n"][dice(4)]);
        }
        let (stream, mut shown, mut rest) = (Stream::of(redactor.clone()), String::new(), text.as_str());
        while !rest.is_empty() {
            let mut at = (1 + dice(9)).min(rest.len());
            while !rest.is_char_boundary(at) {
                at += 1;
            }
            let (piece, behind) = rest.split_at(at);
            shown += &stream.push(piece.to_owned());
            rest = behind;
        }
        shown += &stream.end();
        assert_eq!(shown, redactor.redact(&text, &[]), "{text} {values:?}");
        assert!(values.iter().all(|it| !shown.contains(it.as_str())), "{shown} {values:?}");
    }
}
