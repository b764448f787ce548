//! What `castor agents` prints, by folder and trust.

use expect_test::expect_file;

use super::run;
use crate::cli::testing::{Ground, parse};

const REVIEWER: &str = "---\nname: reviewer\ndescription: Reads a change and says what is wrong with it.\ntools: [read_file]\nmodel: flash\nsub_agents: [generalist]\nmcp_servers: {docs: {command: x}}\n---\nYou review.\n";
const RELEASE: &str =
    "---\nkind: loop\nname: release\ndescription: d\nagents: [reviewer, generalist]\noutput_key: k\n---\n";

fn say(ground: &Ground, line: &[&str], trust: &str) -> (String, u8) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = run(&parse(line), &ground.env(trust), &ground.root.join("w"), &mut out, &mut err).unwrap();
    let text = String::from_utf8([out, err].concat()).unwrap();
    (text.replace(&ground.root.to_string(), "$ROOT"), code)
}

#[test]
fn lists_shows_and_checks() {
    let ground = Ground::new();
    ground.write("h/.castor/agents/reviewer.md", REVIEWER);
    ground.write("w/.gemini/agents/release.md", RELEASE);
    ground.write("w/.gemini/agents/odd.md", "---\nname: odd\ncolour: red\n---\nT");
    ground.write("h/.castor/settings.json", r#"{"agents": {"overrides": {"generalist": {"enabled": false}}}}"#);
    let mut all = String::new();
    for (line, trust) in [
        (&["list"][..], "true"),
        (&["list"], "false"),
        (&["list", "--json"], "true"),
        (&["show", "reviewer"], "true"),
        (&["show", "release"], "true"),
        (&["show", "release", "--json"], "true"),
        (&["show", "release"], "false"),
        (&["check"], "true"),
        (&["check"], "false"),
        (&["check", ".gemini/agents/odd.md"], "false"),
        (&["check", ".gemini/agents/release.md"], "false"),
        (&["check", "gone.md"], "false"),
        (&["list", "--cwd", "gone"], "true"),
    ] {
        let (text, code) = say(&ground, line, trust);
        all += &format!("$ castor agents {} (trust: {trust})\n{text}[{code}]\n\n", line.join(" "));
    }
    expect_file!["listed.txt"].assert_eq(&all);
}

#[test]
fn new_agents_are_sound() {
    let ground = Ground::new();
    ground.write("w/x", "");
    let wrote = |place: &str| (format!("Wrote $ROOT/{place}. Fill it in, then run `castor agents check`.\n"), 0);
    assert_eq!(say(&ground, &["new", "mine"], "true"), wrote("h/.castor/agents/mine.md"));
    assert_eq!(say(&ground, &["new", "ours", "--workspace"], "true"), wrote("w/.castor/agents/ours.md"));
    assert_eq!(say(&ground, &["check"], "true"), ("Agents from files: 2.\n".to_owned(), 0));
    for (name, why) in [
        ("mine", "there is an agent mine already; `castor agents show mine` shows it"),
        ("Mine", "\"Mine\" should have 1 to 64 of the characters a-z, 0-9, _ and -"),
        ("a: b", "\"a: b\" should have 1 to 64 of the characters a-z, 0-9, _ and -"),
        ("glob", "glob is the name of a tool; choose another one"),
    ] {
        assert_eq!(say(&ground, &["new", name], "true"), (format!("castor: {why}\n"), 42));
    }
    assert_eq!(say(&ground, &["new", "ours", "--workspace"], "false").1, 42, "what is not used is there all the same");
}

/// A file that changed since the yes is named, and does not count.
#[test]
fn changed_files_are_named() {
    let ground = Ground::new();
    ground.write("w/.castor/agents/a.md", REVIEWER);
    ground.write("h/.castor/trustedFolders.json", &format!("{{\"{}\": \"TRUST_FOLDER\"}}", ground.root.join("w")));
    assert_eq!(say(&ground, &["check"], "").1, 0);
    ground.write("w/.castor/agents/a.md", RELEASE);
    let why = ".castor/agents/a.md is not used: changed since you trusted the folder; `castor trust` trusts its current content.";
    assert_eq!(say(&ground, &["check"], ""), (format!("Agents from files: 0.\n\n{why}\n"), 1));
}
