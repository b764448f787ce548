//! Trust decisions about folders and files, and the text of the questions.

use super::{
    Trust, TrustLevel, TrustRule, TrustedFile, TrustedFileKind, TrustedHashes, change_doubt, decide, fold_case,
    folder_doubt, split_covered, trusted_hashes,
};
use crate::{path::AbsPath, question::FieldKind};

fn path(text: &str) -> AbsPath {
    AbsPath::new(text).unwrap()
}

fn piece(name: &str, kind: TrustedFileKind, hash: &str) -> TrustedFile {
    TrustedFile { name: name.to_owned(), kind, hash: (!hash.is_empty()).then(|| hash.to_owned()) }
}

fn check(rules: &[(&str, &str)], folder: &str, want: &str) {
    let rule = |(named, level): &(&str, &str)| TrustRule {
        path: path(named),
        level: TrustLevel::parse(level).unwrap(),
        file: path("/f"),
        written: path("/w"),
    };
    let rules: Vec<TrustRule> = rules.iter().map(rule).collect();
    let said = match decide(&rules, &path(folder)) {
        Trust::Trusted { root, .. } => format!("yes {}", root.unwrap()),
        Trust::Untrusted(_) => "no".to_owned(),
        Trust::Unknown => "?".to_owned(),
    };
    assert_eq!(said, want, "{rules:?} {folder}");
}

#[test]
fn longest_rule_decides_and_distrust_beats_trust() {
    check(&[], "/w", "?");
    check(&[("/w", "TRUST_FOLDER")], "/w/sub", "yes /w");
    check(&[("/w", "TRUST_FOLDER")], "/work", "?");
    check(&[("/w/a", "TRUST_PARENT")], "/w/b", "yes /w");
    check(&[("/w/a", "TRUST_PARENT"), ("/w/b", "DO_NOT_TRUST")], "/w/b", "no");
    check(&[("/w/a", "TRUST_PARENT"), ("/w", "DO_NOT_TRUST")], "/w/a", "no");
    check(&[("/w", "DO_NOT_TRUST"), ("/w/a", "TRUST_FOLDER")], "/w/a/b", "yes /w/a");
    check(&[("/", "TRUST_PARENT")], "/any", "yes /");
}

#[test]
fn paths_fold_case_as_the_platform_does() {
    assert_eq!(fold_case(&path("/W/Ä"), true), path("/w/ä"));
    assert_eq!(fold_case(&path("/W"), false), path("/W"));
}

#[test]
fn trust_covers_only_the_files_it_saw() {
    let pieces = [
        piece("s", TrustedFileKind::Settings, "1"),
        piece("p", TrustedFileKind::Policy, "2"),
        piece("m", TrustedFileKind::Memory, ""),
        piece("odd", TrustedFileKind::Env, ""),
    ];
    let all = trusted_hashes(&pieces);
    assert_eq!(all.keys().collect::<Vec<_>>(), ["p", "s"]);
    let (names, open) = split_covered(&pieces, &all);
    assert_eq!((names.into_iter().collect::<Vec<_>>().join(" "), open.len()), ("m p s".to_owned(), 0));
    let known = TrustedHashes::from([("s".to_owned(), "other".to_owned())]);
    let (names, open) = split_covered(&pieces, &known);
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["m"]);
    assert_eq!(open, [("s".to_owned(), false), ("p".to_owned(), true)]);
}

#[test]
fn questions_name_what_was_found_and_nothing_hides_in_them() {
    assert_eq!(folder_doubt(&path("/w"), &[], &[], &[]), None);
    assert_eq!(change_doubt(&path("/w"), &[], &[]), None);
    let pieces = [piece(".env", TrustedFileKind::Env, "1"), piece("a\u{202e}\nb", TrustedFileKind::Policy, "")];
    let starts = ["MCP server a: sh -c evil".to_owned()];
    let doubt = folder_doubt(&path("/w/x"), &[path("/h")], &pieces, &starts).unwrap();
    let message = &doubt.form.message;
    assert!(message.contains("- .env\n- a\u{fffd}\u{fffd}b (cannot be read"), "{message}");
    assert!(message.ends_with("They would start or reach:\n- MCP server a: sh -c evil\ncastor does not watch what these start in turn, and does not ask when that changes.\n"), "{message}");
    assert!(!doubt.notice.contains(".env") && doubt.notice.contains("policies and environment files"));
    let FieldKind::Choice { options } = &doubt.form.fields[0].kind else { panic!() };
    let values: Vec<&str> = options.iter().map(|it| it.value.as_str()).collect();
    assert_eq!(values, ["trust_folder", "trust_parent", "not_now", "never"]);

    let many: Vec<(String, bool)> = (0..30).map(|n| (format!("f{n}"), n == 0)).collect();
    let doubt = change_doubt(&path("/w"), &many, &[]).unwrap();
    assert!(doubt.form.message.contains("- f0 (new)\n- f1 (changed)\n"), "{}", doubt.form.message);
    assert!(doubt.form.message.ends_with("- and 10 more\n"));
    assert!(doubt.notice.contains(" 30 changed ") && doubt.notice.contains("f0, f1, f2, f3, f4, 25 more."));
    let one = change_doubt(&path("/w"), &[("a\u{202e}\nb".to_owned(), false)], &[]).unwrap();
    assert!(
        one.notice.contains(" 1 changed since it was trusted and is not used: a\u{fffd}\u{fffd}b."),
        "{}",
        one.notice
    );
}

/// The first turn's question says what a yes to a home folder covers.
#[test]
fn trusting_a_home_folder_warns() {
    let homes = [path("/home/u")];
    let pieces = [piece(".env", TrustedFileKind::Env, "1")];
    let check = |folder: &str, want: [Option<&str>; 2]| {
        let doubt = folder_doubt(&path(folder), &homes, &pieces, &[]).unwrap();
        let FieldKind::Choice { options } = &doubt.form.fields[0].kind else { panic!() };
        let title = |value: &str| options.iter().find(|it| it.value == value).map(|it| it.title.as_str());
        assert_eq!([title("trust_folder"), title("trust_parent")], want, "{folder}");
        doubt.form.message.contains("every project and every download")
    };
    // What holds a home folder, or is one, takes more than a click.
    for wide in ["/", "/home", "/home/u"] {
        assert!(check(wide, [None, None]), "{wide}");
    }
    let parent = "Trust everything in /home/u, your home folder included";
    assert!(!check("/home/u/p", [Some("Trust this folder"), Some(parent)]));
    assert!(!check("/home/u/p/q", [Some("Trust this folder"), Some("Trust everything in /home/u/p")]));
    assert!(!check("/home/user2/p", [Some("Trust this folder"), Some("Trust everything in /home/user2")]));
}
