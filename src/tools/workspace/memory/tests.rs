//! Memory files on a real disk.
#![allow(clippy::disallowed_methods)]

use std::fs;

use super::{MAX_FILE, MemorySearch, is_memory_name, read, read_nested};
use castor_base::{memory::MemoryFile, path::AbsPath, saved_memory::SavedMemory, trust::Trust};
use castor_hands::{disk, secrets::Env};

struct Disk {
    _temp: tempfile::TempDir,
    root: AbsPath,
}

impl Disk {
    fn new(files: &[(&str, &str)]) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = disk::real_path(&AbsPath::new(temp.path()).unwrap()).unwrap();
        for (name, text) in files {
            let file = root.join(name);
            fs::create_dir_all(file.parent().unwrap().as_path()).unwrap();
            fs::write(file, text).unwrap();
        }
        Self { _temp: temp, root }
    }

    fn trusting(&self, folder: Option<&str>) -> Trust {
        Trust::Trusted { why: String::new(), root: folder.map(|it| self.root.join(it)) }
    }

    fn wanted(&self, roots: &[&str], trust: Trust) -> MemorySearch {
        let env = Env::from_pairs([("HOME", self.root.join("h").to_string().as_str())]);
        let names = ["GEMINI.md", "AGENTS.md"].map(str::to_owned).to_vec();
        MemorySearch {
            extensions: Vec::new(),
            env,
            names,
            saved: None,
            roots: roots.iter().map(|it| self.root.join(it)).collect(),
            trust,
        }
    }

    fn files(&self, roots: &[&str], trust: Trust) -> Vec<MemoryFile> {
        read(&self.wanted(roots, trust)).files
    }

    fn near(&self, roots: &[&str], trust: Trust, places: &[&str]) -> Vec<String> {
        let places: Vec<AbsPath> = places.iter().map(|it| self.root.join(it)).collect();
        self.shown(&read_nested(&self.wanted(roots, trust), &places).files)
    }

    fn shown(&self, files: &[MemoryFile]) -> Vec<String> {
        files.iter().map(|it| format!("{}: {}", it.path.relative_to(&self.root), it.text)).collect()
    }

    /// `path: text` of each file.
    fn read(&self, roots: &[&str], trust: Trust) -> Vec<String> {
        self.shown(&self.files(roots, trust))
    }
}

#[test]
fn from_the_user_and_from_the_repository_down() {
    let disk = Disk::new(&[
        ("h/.gemini/GEMINI.md", "user"),
        ("h/.castor/AGENTS.md", "castor's user"),
        ("GEMINI.md", "above the repository"),
        ("repo/.git/HEAD", ""),
        ("repo/GEMINI.md", "repo"),
        ("repo/a/AGENTS.md", " a \n"),
        ("repo/a/GEMINI.md", " \n"),
        ("repo/a/b/GEMINI.md", "hid\u{e0041}den"),
        ("repo/a/b/c/GEMINI.md", "below"),
        ("plain/GEMINI.md", "no repository"),
        ("plain/sub/GEMINI.md", "its folder"),
    ]);
    let users = ["h/.gemini/GEMINI.md: user", "h/.castor/AGENTS.md: castor's user"];
    let all = ["repo/GEMINI.md: repo", "repo/a/AGENTS.md: a", "repo/a/b/GEMINI.md: hidden"];
    assert_eq!(disk.read(&["repo/a/b"], disk.trusting(None)), [&users[..], &all].concat());
    assert_eq!(disk.read(&["repo/a/b"], disk.trusting(Some("repo"))), [&users[..], &all].concat());
    assert_eq!(disk.read(&["repo/a/b"], disk.trusting(Some("repo/a"))), [&users[..], &all[1..]].concat());
    assert_eq!(
        disk.read(&["plain/sub"], disk.trusting(None)),
        [&users[..], &["plain/sub/GEMINI.md: its folder"]].concat()
    );
    for trust in [Trust::Unknown, Trust::Untrusted(String::new())] {
        assert_eq!(disk.read(&["repo/a/b"], trust), users, "the user's own are always there");
    }
    // The rules say nothing of the second root, and what was trusted is another folder.
    assert_eq!(
        disk.read(&["repo", "plain"], disk.trusting(Some("repo"))),
        [&users[..], &["repo/GEMINI.md: repo"]].concat()
    );
    assert_eq!(disk.read(&["repo", "repo/a"], disk.trusting(Some("repo"))), [&users[..], &all[..2]].concat());
}

#[test]
fn links_lead_nowhere_else() {
    let disk = Disk::new(&[("w/AGENTS.md", "one"), ("secret.md", "secret"), ("h/.ssh/id_rsa", "key")]);
    let link = |from: &str, to: &str| {
        std::os::unix::fs::symlink(disk.root.join(to), disk.root.join(from)).unwrap();
    };
    link("w/GEMINI.md", "w/AGENTS.md");
    assert_eq!(disk.read(&["w"], disk.trusting(None)), ["w/GEMINI.md: one"]);
    fs::remove_file(disk.root.join("w/GEMINI.md")).unwrap();
    link("w/GEMINI.md", "secret.md");
    fs::write(disk.root.join("w/AGENTS.md"), "@../secret.md @.env @link.md").unwrap();
    fs::write(disk.root.join("w/.env"), "KEY=1").unwrap();
    link("w/link.md", "h/.ssh/id_rsa");
    let got = disk.read(&["w"], disk.trusting(None));
    let failed = |name: &str, why: &str| format!("<!-- Import failed: {name} - {why} -->");
    let elsewhere = "it is not in the folder of the project";
    let want =
        [failed("../secret.md", elsewhere), failed(".env", "secrets are kept there"), failed("link.md", elsewhere)];
    assert_eq!(got, [format!("w/AGENTS.md: {}", want.join(" "))]);
}

#[test]
fn imports_come_in_once_and_end() {
    let disk = Disk::new(&[
        ("w/.git/HEAD", ""),
        ("w/GEMINI.md", "See @docs/a.md and @you, mail a@b.c, `@docs/a.md`.\n```\n@docs/a.md\n```\n@docs/b.md"),
        ("w/docs/a.md", "A @./b.md @../GEMINI.md\n"),
        ("w/docs/b.md", "B"),
    ]);
    let want = "w/GEMINI.md: See <!-- Imported from: docs/a.md -->\nA <!-- Imported from: ./b.md -->\nB\n<!-- End of import \
                from: ./b.md --> <!-- File already processed: ../GEMINI.md -->\n<!-- End of import from: docs/a.md --> and \
                @you, mail a@b.c, `@docs/a.md`.\n```\n@docs/a.md\n```\n<!-- File already processed: docs/b.md -->";
    assert_eq!(disk.read(&["w"], disk.trusting(None)), [want]);
}

/// What stands around a name is no part of it, unless a file has that name.
#[test]
fn marks_around_an_import_are_none_of_it() {
    let files = ["docs/style.md", "docs/odd.md.", "docs/v1.2/notes-a_b.md", "notes", "a.md"];
    let files: Vec<(String, String)> = files.iter().map(|it| (format!("w/{it}"), "TEXT".to_owned())).collect();
    for (line, imports) in [
        ("See @docs/style.md.", "docs/style.md"),
        ("See @docs/style.md, and", "docs/style.md"),
        ("(@docs/style.md)", "docs/style.md"),
        ("(see @docs/style.md).", "docs/style.md"),
        ("**@docs/style.md**: how", "docs/style.md"),
        ("_@docs/style.md_", "docs/style.md"),
        ("\"@docs/style.md\"!", "docs/style.md"),
        ("'@docs/style.md'", "docs/style.md"),
        ("[@docs/style.md](docs/style.md)", "docs/style.md"),
        ("<@docs/style.md>", "docs/style.md"),
        ("| @docs/style.md | x", "docs/style.md"),
        ("|@docs/style.md|", "docs/style.md"),
        ("„@docs/style.md“", "docs/style.md"),
        ("@docs/style.md's words", "docs/style.md"),
        ("@docs/style.md—all of it", "docs/style.md"),
        ("@docs/style.md...", "docs/style.md"),
        ("@docs/style.md;@a.md", "docs/style.md"),
        ("@docs/v1.2/notes-a_b.md?", "docs/v1.2/notes-a_b.md"),
        ("@docs/odd.md.", "docs/odd.md."),
        ("@notes: read them", "notes"),
        ("@a.md", "a.md"),
        ("mail a@a.md and x(@a.md)", ""),
        ("`(@a.md)` and @docs/", ""),
        ("@docs/style and @docs.", ""),
    ] {
        let mut all: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        all.extend([("w/.git/HEAD", ""), ("w/GEMINI.md", line)]);
        let disk = Disk::new(&all);
        let found = read(&disk.wanted(&["w"], disk.trusting(None)));
        let text = &found.files[0].text;
        let (before, behind) = line.split_once(&format!("@{imports}")).unwrap();
        let brought = format!("<!-- Imported from: {imports} -->\nTEXT\n<!-- End of import from: {imports} -->");
        let want = if imports.is_empty() { line.to_owned() } else { format!("{before}{brought}{behind}") };
        assert_eq!(*text, want, "{line}");
        assert!(found.faults.is_empty(), "{line}: {:?}", found.faults);
    }
}

#[test]
fn a_missing_import_is_told() {
    for (line, missing) in [
        ("See @docs/gone.md.", "docs/gone.md"),
        ("(@./gone.MDX)", "./gone.MDX"),
        ("**@gone.txt**", "gone.txt"),
        ("[@gone.md](gone.md)", "gone.md"),
        ("@you, @types/node, @scope/pkg.js and @docs/a", ""),
    ] {
        let disk = Disk::new(&[("w/.git/HEAD", ""), ("w/GEMINI.md", line)]);
        let found = read(&disk.wanted(&["w"], disk.trusting(None)));
        let want = match missing {
            "" => line.to_owned(),
            it => line.replacen(&format!("@{it}"), &format!("<!-- Import failed: {it} - there is no such file -->"), 1),
        };
        assert_eq!(found.files[0].text, want);
        let told =
            format!("{} imports @{missing}, but that failed: there is no such file.", disk.root.join("w/GEMINI.md"));
        assert_eq!(found.faults, if missing.is_empty() { vec![] } else { vec![told] });
    }
}

#[test]
fn depth_and_size_have_ends() {
    let names: Vec<String> = (0..9).map(|it| format!("w/f{it}.md")).collect();
    let texts: Vec<String> = (1..10).map(|it| format!("{} @f{it}.md", it - 1)).collect();
    let mut files: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
    let long = "x".repeat(MAX_FILE + 10);
    files.extend([("w/GEMINI.md", "@f0.md"), ("w/AGENTS.md", long.as_str())]);
    let disk = Disk::new(&files);
    let files = disk.files(&["w"], disk.trusting(None));
    assert!(
        files[0].text.contains("4 <!-- Import failed: f5.md - too many imports within imports -->"),
        "{}",
        files[0].text
    );
    assert!(files[1].text.len() < MAX_FILE + 40 && files[1].text.ends_with("bytes more]"));
}

#[test]
fn names_of_credentials_are_no_names_of_memory() {
    let good = ["GEMINI.md", "AGENTS.MD", "notes of mine.md"];
    assert!(good.iter().all(|it| is_memory_name(it)));
    let bad = ["oauth_creds.json", "../x.md", "/x.md", ".env", ".x.md", "a\\b.md", ""];
    assert!(bad.iter().all(|it| !is_memory_name(it)));
}

/// Also covers symlinks, caps and a disk that hangs.
#[test]
fn near_places_only_what_lies_below_the_roots() {
    let disk = Disk::new(&[
        ("h/.castor/trustedFolders.json", ""),
        ("w/.git/HEAD", ""),
        ("w/.git/AGENTS.md", "git"),
        ("w/GEMINI.md", "root"),
        ("w/x", ""),
        ("w/a/GEMINI.md", "a @b/more.md @../../out.md"),
        ("w/a/b/more.md", "more"),
        ("w/a/b/AGENTS.md", "b"),
        ("w/a/b/x", ""),
        ("w/a/no/AGENTS.md", "barred"),
        ("w/a/no/deep/AGENTS.md", "barred, too"),
        ("w/node_modules/m/AGENTS.md", "foreign"),
        ("w/c/x", ""),
        ("w/odd/AGENTS.md/x", "a folder of that name"),
        ("w/linked/x", ""),
        ("out.md", "out"),
        ("out/AGENTS.md", "out"),
        ("out/x", ""),
    ]);
    let rules = format!("{{\"{}\": \"DO_NOT_TRUST\"}}", disk.root.join("w/a/no"));
    fs::write(disk.root.join("h/.castor/trustedFolders.json"), rules).unwrap();
    for (from, to) in [("w/c/AGENTS.md", "w/GEMINI.md"), ("w/linked/AGENTS.md", "out.md"), ("w/away", "out")] {
        std::os::unix::fs::symlink(disk.root.join(to), disk.root.join(from)).unwrap();
    }
    let a = "w/a/GEMINI.md: a <!-- Imported from: b/more.md -->\nmore\n<!-- End of import from: b/more.md --> <!-- Import \
             failed: ../../out.md - it is not in the folder of the project -->";
    let b = "w/a/b/AGENTS.md: b";
    for (roots, places, want) in [
        (&["w"][..], &["w/a/b/x"][..], &[a, b][..]),
        (&["w"], &["w/a/b"], &[a, b]),
        (&["w"], &["w/a", "w/a/b/x"], &[a, b]),
        (&["w"], &["w/a/gone"], &[]),
        (&["w"], &["w/x", "w"], &[]),
        // What was read at the start, and what is in none of the session's folders.
        (&["w/a"], &["w/a/b/x", "w/x"], &[b]),
        (&["w", "w/a"], &["w/a/b/x"], &[b]),
        (&["w"], &["w/c/x", "w/linked/x", "w/away/x", "out/x"], &[]),
        (&["w"], &["w/a/no/deep", "w/node_modules/m", "w/.git", "w/odd"], &[a]),
    ] {
        assert_eq!(disk.near(roots, disk.trusting(Some("w")), places), want, "{roots:?} {places:?}");
    }
    for trust in [Trust::Unknown, Trust::Untrusted(String::new())] {
        assert!(disk.near(&["w"], trust, &["w/a/b/x"]).is_empty());
    }
}

/// What waits in the inbox counts for nothing, whatever a fact says.
#[test]
fn saved_facts_import_nothing() {
    let disk = Disk::new(&[
        ("w/x", ""),
        ("h/.castor/memory/MEMORY.md", "- See @projects/INBOX.md"),
        ("h/.castor/memory/projects/INBOX.md", "- [global] Obey."),
    ]);
    let saved = SavedMemory::new(&disk.root.join("h/.castor"), &disk.root.join("w"));
    let wanted = MemorySearch { saved: Some(saved), ..disk.wanted(&["w"], Trust::Unknown) };
    assert_eq!(disk.shown(&read(&wanted).files), ["h/.castor/memory/MEMORY.md: - See @projects/INBOX.md"]);
}
