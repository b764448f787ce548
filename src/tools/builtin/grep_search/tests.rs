//! Searches: files and a call, and the text for the model.

use serde_json::{Value, json};

use super::GrepSearch;
use crate::builtin::testing::ToolFixture;

#[track_caller]
fn check(ground: &ToolFixture, args: Value, expected: &str) {
    assert_eq!(ground.result_text(&GrepSearch, &args), expected, "{args}");
}

/// As [`check`], where `skipped` is said at the end.
#[track_caller]
fn check_skipping(ground: &ToolFixture, args: Value, expected: &str, skipped: &str) {
    let how = "To search there, name the file or folder as dir_path, or set no_ignore.";
    check(ground, args, &format!("{expected}\n(Skipped: {skipped}. {how})"));
}

fn sources() -> ToolFixture {
    ToolFixture::new(&[
        (".geminiignore", "hidden.txt\n"),
        (".github/ci.yml", "needle\n"),
        (".gitignore", "*.gen\n"),
        ("a.gen", "needle\n"),
        ("a.log", "needle\n"),
        ("b.rs", "one\nNeedle two\nthree\n"),
        ("dist/x.js", "needle\n"),
        ("hidden.txt", "needle\n"),
        ("src/deep/c.rs", "// needle\r\nneedle(x);\r\n"),
        ("src/d.ts", "no\nneedle\nneedle TODO\nend\n"),
    ])
}

#[test]
fn finds_in_order() {
    let ground = sources();
    ground.write("zero.bin", b"needle\0\n");
    ground.write("../outside/far.txt", b"needle\n");
    ground.link("../outside", "src/out");
    ground.link("b.rs", "src/link.rs");
    nix::unistd::mkfifo(ground.cwd.join("pipe").as_path(), nix::sys::stat::Mode::S_IRWXU).unwrap();
    check_skipping(
        &ground,
        json!({"pattern": "needle"}),
        "Found 6 matches for pattern \"needle\" in path \".\":\n---\n\
         File: .github/ci.yml\nL1: needle\n---\n\
         File: b.rs\nL2: Needle two\n---\n\
         File: src/d.ts\nL2: needle\nL3: needle TODO\n---\n\
         File: src/deep/c.rs\nL1: // needle\nL2: needle(x);\n---",
        "1 file *.log; folders dist",
    );
    check(
        &ground,
        json!({"pattern": "needle", "no_ignore": true, "names_only": true}),
        "Found 7 files with matches for pattern \"needle\" in path \".\":\n\
         .github/ci.yml\na.gen\na.log\nb.rs\ndist/x.js\nsrc/d.ts\nsrc/deep/c.rs",
    );
}

#[test]
fn parameters() {
    let ground = sources();
    check_skipping(
        &ground,
        json!({"pattern": "^needle$", "include_pattern": "*.{ts,rs}", "context": 1}),
        "Found 1 match for pattern \"^needle$\" in path \".\" (filter: \"*.{ts,rs}\"):\n---\n\
         File: src/d.ts\nL1- no\nL2: needle\nL3- needle TODO\n---",
        "folders dist",
    );
    check(
        &ground,
        json!({"pattern": "needle", "dir_path": "src", "exclude_pattern": "todo|//", "before": 1, "after": 0}),
        "Found 2 matches for pattern \"needle\" in path \"src\":\n---\n\
         File: src/d.ts\nL1- no\nL2: needle\n---\n\
         File: src/deep/c.rs\nL1- // needle\nL2: needle(x);\n---",
    );
    check(
        &ground,
        json!({"pattern": "needle", "case_sensitive": true, "dir_path": "b.rs"}),
        "No matches found for pattern \"needle\" in path \"b.rs\".",
    );
    check_skipping(
        &ground,
        json!({"pattern": "needle(", "fixed_strings": true, "after": 3}),
        "Found 1 match for pattern \"needle(\" in path \".\":\n---\nFile: src/deep/c.rs\nL2: needle(x);\n---",
        "1 file *.log; folders dist",
    );
    check_skipping(
        &ground,
        json!({"pattern": "needle\\(x\\);$", "before": 0}),
        "Found 1 match for pattern \"needle\\(x\\);$\" in path \".\":\n---\nFile: src/deep/c.rs\nL2: needle(x);\n---",
        "1 file *.log; folders dist",
    );
    check(
        &ground,
        json!({"pattern": "needle", "max_matches_per_file": 1, "dir_path": "src", "after": 1}),
        "Found 2 matches for pattern \"needle\" in path \"src\":\n---\n\
         File: src/d.ts\nL2: needle\nL3- needle TODO\n---\n\
         File: src/deep/c.rs\nL1: // needle\nL2- needle(x);\n---",
    );
    check_skipping(
        &ground,
        json!({"pattern": "needle", "include_pattern": "*.log", "context": 0}),
        "Found 1 match for pattern \"needle\" in path \".\" (filter: \"*.log\"):\n---\nFile: a.log\nL1: needle\n---",
        "folders dist",
    );
    check(
        &ground,
        json!({"pattern": "needle", "dir_path": "dist", "context": 0}),
        "Found 1 match for pattern \"needle\" in path \"dist\":\n---\nFile: dist/x.js\nL1: needle\n---",
    );
    // What is named is searched, ignored or not.
    check(
        &ground,
        json!({"pattern": "needle", "dir_path": "a.gen", "context": 0}),
        "Found 1 match for pattern \"needle\" in path \"a.gen\":\n---\nFile: a.gen\nL1: needle\n---",
    );
    check(&ground, json!({"pattern": "x", "dir_path": "no"}), "search_path_not_found: Path does not exist: $W/no");
    assert!(
        ground.result_text(&GrepSearch, &json!({"pattern": "a("})).starts_with("invalid_tool_params: Invalid regular")
    );
    assert_eq!(ground.title(&GrepSearch, &json!({"pattern": "a+", "dir_path": "src"})), "'a+' within src");
    assert_eq!(ground.title(&GrepSearch, &json!({"pattern": "a", "include_pattern": "*.rs"})), "'a' in *.rs within .");
}

#[test]
fn few_matches_get_context() {
    let text: String = (1..=200).map(|it| format!("line {it}.\n")).collect();
    let ground = ToolFixture::new(&[("f", &text)]);
    let lines = |pattern: &str| ground.result_text(&GrepSearch, &json!({"pattern": pattern})).lines().count() - 4;
    assert_eq!(lines("line 100\\."), 101);
    assert_eq!(lines("line (50|100)\\."), 62);
    assert_eq!(lines("line (50|100|120|150)\\."), 4);
}

#[test]
fn stops_when_there_is_enough() {
    let text = "needle\n".repeat(70);
    let ground = ToolFixture::new(&[]);
    (0..400).for_each(|it| ground.write(&format!("{it:03}"), text.as_bytes()));
    let first = ground.result_text(&GrepSearch, &json!({"pattern": "needle"}));
    assert!(first.starts_with(
        "Found 100 matches for pattern \"needle\" in path \".\" (results limited to 100 matches for performance):"
    ));
    assert!(first.ends_with("File: 001\n".to_owned().as_str()) || first.contains("File: 001\nL1: needle"));
    assert!(!first.contains("File: 002") && !first.contains("L31: needle\n---") && first.contains("L30: needle\n---"));
    for _ in 0..5 {
        assert_eq!(ground.result_text(&GrepSearch, &json!({"pattern": "needle"})), first);
    }
    let three = ground.result_text(&GrepSearch, &json!({"pattern": "needle", "total_max_matches": 3, "after": 2}));
    assert!(three.ends_with("File: 000\nL1: needle\nL2: needle\nL3: needle\nL4- needle\nL5- needle\n---"), "{three}");
    let names =
        ground.result_text(&GrepSearch, &json!({"pattern": "needle", "names_only": true, "total_max_matches": 2}));
    assert!(names.ends_with(":\n000\n001"), "{names}");
}

#[test]
fn is_bounded_and_cancellable() {
    let wide = format!("needle {}\n", "x".repeat(5000)).repeat(300);
    let ground = ToolFixture::new(&[("wide", &wide)]);
    let said = ground.result_text(&GrepSearch, &json!({"pattern": "needle", "total_max_matches": 300}));
    assert!(said.len() < 201 * 1024 && said.ends_with("... (more matches not shown; narrow the search)"));
    assert!(said.lines().all(|it| it.len() < 2050));
    ground.cancel.cancel();
    check(&ground, json!({"pattern": "needle"}), "cancelled: The search was cancelled.");
}

/// Names of several parts, where the search begins behind the first of them.
#[test]
fn secrets_are_left_out_wherever_the_search_begins() {
    let ground = ToolFixture::new(&[
        (".cargo/credentials.toml", "needle\n"),
        (".config/gh/hosts.yml", "needle\n"),
        (".config/gh/x.yml", "none\n"),
        (".ssh/deploy", "needle\n"),
        ("keys/id_rsa", "needle\n"),
        ("sub/.m2/settings.xml", "needle\n"),
    ]);
    let check = |dir: &str, want: (bool, bool)| {
        let said = ground.result_text(&GrepSearch, &json!({"pattern": "needle", "dir_path": dir}));
        assert_eq!((said.contains("L1: needle"), said.contains("(1 file(s) left out")), want, "{dir}: {said}");
    };
    check(".cargo", (false, true));
    check(".config", (false, true));
    check(".config/gh", (false, true));
    check("keys", (false, true));
    check("sub/.m2", (false, true));
    // Policy asked about just these.
    check(".config/gh/hosts.yml", (true, false));
    check(".ssh", (true, false));
    // What the kernel tells of a process counts from the top of the disk.
    #[cfg(target_os = "linux")]
    {
        let args = json!({"pattern": "PATH", "dir_path": "/proc/self", "include_pattern": "/environ"});
        let said = ground.result_text(&GrepSearch, &args);
        assert!(said.starts_with("No matches") && said.contains("(1 file(s) left out"), "{said}");
    }
}

/// A miss says where nobody looked.
#[test]
fn what_is_skipped_is_said() {
    let ground = ToolFixture::new(&[
        (".gitignore", "*.gen\n"),
        ("a.gen", "needle"),
        ("build/x", "needle"),
        ("debug.tmp", "needle"),
        ("node_modules/m/x.js", "needle"),
        ("server.log", "needle"),
        ("src/a.rs", "thread"),
        ("src/.git/x", "needle"),
    ]);
    ground.write("icon.png", b"\x89PNG\r\n\0needle");
    ground.write("src/zero", b"needle\0");
    let search = |args: Value| ground.result_text(&GrepSearch, &args);
    let how = "To search there, name the file or folder as dir_path, or set no_ignore.)";
    assert_eq!(
        search(json!({"pattern": "needle"})),
        format!(
            "No matches found for pattern \"needle\" in path \".\".\n(Skipped: 1 file *.log; 1 file *.tmp; 2 files \
             (binary); folders build, node_modules; what .gitignore hides. {how}"
        )
    );
    let said = search(json!({"pattern": "thread"}));
    assert!(said.ends_with(&format!("(Skipped: 1 file *.log; 1 file *.tmp; folders build. {how}")), "{said}");
    // What it says helps.
    for args in [
        json!({"pattern": "needle", "dir_path": "server.log"}),
        json!({"pattern": "needle", "dir_path": "build"}),
        json!({"pattern": "needle", "include_pattern": "*.log"}),
        json!({"pattern": "needle", "no_ignore": true}),
    ] {
        assert!(search(args.clone()).starts_with("Found "), "{args}");
    }
    // Where nothing was skipped, nothing is said.
    check(
        &ground,
        json!({"pattern": "needle", "dir_path": "src/a.rs"}),
        "No matches found for pattern \"needle\" in path \"src/a.rs\".",
    );
}

/// The text is the same that `read_file` shows, so what was read there is found here.
#[test]
fn text_in_other_encodings_is_found_as_it_is_read() {
    let guessed = "\n(The encoding of 1 file is unknown: the text is read as Latin-1.)";
    let filler = "plain ascii\n".repeat(20_000);
    let cases: [(&[u8], &str, &str, &str); 6] = [
        (b"a\ncaf\xe9 au lait\n", "caf\u{e9}", "L2: caf\u{e9} au lait", guessed),
        (b"caf\xe9\n", "caf.$", "L1: caf\u{e9}", guessed),
        (b"\xff\xfec\0a\0f\0\xe9\0\n\0", "caf\u{e9}", "L1: caf\u{e9}", ""),
        (b"\0\0\xfe\xff\0\0\0c\0\0\0\xe9", "c\u{e9}", "L1: c\u{e9}", ""),
        ("caf\u{e9}\n".as_bytes(), "caf\u{e9}", "L1: caf\u{e9}", ""),
        (b"\xef\xbb\xbfcaf\xc3\xa9\n", "^caf\u{e9}$", "L1: caf\u{e9}", ""),
    ];
    for (bytes, pattern, hit, note) in cases {
        let ground = ToolFixture::new(&[]);
        ground.write("f", bytes);
        let args = json!({"pattern": pattern, "context": 0});
        check(
            &ground,
            args.clone(),
            &format!("Found 1 match for pattern \"{pattern}\" in path \".\":\n---\nFile: f\n{hit}\n---{note}"),
        );
    }
    // However late the first odd byte comes, and once however often the file is looked at.
    let ground = ToolFixture::new(&[]);
    ground.write("f", &[filler.as_bytes(), b"caf\xe9\n"].concat());
    let said = ground.result_text(&GrepSearch, &json!({"pattern": "caf\u{e9}"}));
    assert!(said.contains("L20001: caf\u{e9}\n") && said.ends_with(guessed), "{said}");
    // Chinese in GBK cannot be found: the miss says why.
    ground.write("f", b"\xb2\xe2\xca\xd4\n");
    let said = ground.result_text(&GrepSearch, &json!({"pattern": "\u{6d4b}\u{8bd5}"}));
    assert!(said.starts_with("No matches") && said.ends_with(guessed), "{said}");
}

#[test]
fn names_are_told_so_that_they_can_be_named() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let ground = ToolFixture::new(&[("re\u{301}sume\u{301}/a.txt", "needle\n")]);
    let odd = ground.cwd.join(OsStr::from_bytes(b"bad\xff"));
    #[allow(clippy::disallowed_methods)]
    std::fs::write(&odd, "needle\n").unwrap();
    let search = |args: Value| ground.result_text(&GrepSearch, &args);
    let said = search(json!({"pattern": "needle"}));
    assert!(said.contains("File: bad\\xff\n"), "{said}");
    assert!(search(json!({"pattern": "needle", "dir_path": "bad\\xff"})).starts_with("Found 1 match"));
    assert!(search(json!({"pattern": "needle", "dir_path": "r\u{e9}sum\u{e9}"})).starts_with("Found 1 match"));
    let said = search(json!({"pattern": "needle", "include_pattern": "r\u{e9}sum\u{e9}/**"}));
    assert!(said.starts_with("Found 1 match"), "{said}");
}
