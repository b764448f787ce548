//! `castor extensions` in an empty home: what is shown, asked and kept.

use super::{ExtensionStreams, run, skills};
use crate::cli::testing::{Ground, parse};
use castor_base::path::AbsPath;

/// What is printed on both streams, with the exit code. `answer`: `None` where nobody can be asked.
fn say(ground: &Ground, line: &[&str], answer: Option<bool>) -> (String, u8) {
    let (mut out, mut err, mut asked) = (Vec::new(), Vec::new(), String::new());
    let mut ask = |question: &str| {
        asked = format!("{question}\n");
        answer.unwrap_or_default()
    };
    let ask = answer.map(|_| &mut ask as &mut dyn FnMut(&str) -> bool);
    let env = ground.env("true");
    let here: AbsPath = ground.root.join("w");
    let streams = &mut ExtensionStreams { out: &mut out, err: &mut err, ask };
    let code = run(&parse(line), &env, &here, streams).unwrap();
    let text = [out, err].map(|it| String::from_utf8(it).unwrap()).concat();
    ((text + &asked).replace(&ground.root.to_string(), "$ROOT"), code)
}

fn ground() -> Ground {
    let ground = Ground::new();
    ground.write("w/x", "");
    let manifest = r#"{"name": "ext", "version": "1", "description": "Does things", "themes": [], "excludeTools": ["glob"],
        "mcpServers": {"s": {"command": "node", "args": ["${extensionPath}/s.js", "$GITHUB_TOKEN"]}},
        "settings": [{"name": "Key", "description": "The key", "envVar": "EXT_KEY", "sensitive": true}]}"#;
    ground.write("e/gemini-extension.json", manifest);
    ground.write("e/s.js", "start()");
    ground.write("e/GEMINI.md", "Be kind.");
    ground.write("e/.env", "EXT_KEY=canary");
    ground.write("e/commands/fix.toml", "prompt = 'Fix.'\ndescription = 'Fixes'");
    ground.write(
        "e/agents/helper.md",
        "---\nname: helper\ndescription: Helps\nmcp_servers:\n  own: {command: ./run}\n---\nH",
    );
    ground.write("e/policies/p.toml", "[[rule]]\ntoolName = 'glob'\ndecision = 'allow'\npriority = 1\n");
    let hooks =
        r#"{"hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "sh ${extensionPath}/s.js"}]}]}}"#;
    ground.write("e/hooks/hooks.json", hooks);
    ground
}

#[test]
fn all_of_it_is_shown_before_it_counts() {
    let ground = ground();
    let (text, code) = say(&ground, &["install", "../e"], Some(false));
    assert_eq!(code, 1, "{text}");
    for line in [
        "ext 1, a copy of $ROOT/e\nDoes things\nIt brings:\n",
        "  MCP server s: node ${extensionPath}/s.js $GITHUB_TOKEN\n",
        "  reads your variable: GITHUB_TOKEN\n",
        "  hook: sh ${extensionPath}/s.js\n",
        "  takes away the tool: glob\n",
        "  context: GEMINI.md (8 bytes, in each session)\n",
        "  command: /fix Fixes\n",
        "  agent: helper: Helps\n",
        "    MCP server own: ./run\n",
        "  asks for Key (EXT_KEY, a secret): The key\n",
        "Not used of it:\n",
        "an extension may not allow anything",
        "  themes changes nothing: castor has no themes\n",
        "Use the extension ext?\n",
        "castor: nothing was changed\n",
    ] {
        assert!(text.contains(line), "{line:?} in {text}");
    }
    assert!(say(&ground, &["list"], None).0.starts_with("No extension is installed.\n"));
    let (text, code) = say(&ground, &["install", "../e"], None);
    assert!(code == 1 && text.contains("nobody can be asked here"), "{text}");
    let (text, code) = say(&ground, &["validate", "../e"], None);
    assert!(code == 1 && text.contains("themes changes nothing"), "{text}");
    assert_eq!(say(&ground, &["validate", "../w"], None).1, 1);
}

#[test]
fn it_is_installed_switched_updated_and_removed() {
    let ground = ground();
    let (text, code) = say(&ground, &["install", "../e", "--consent"], None);
    assert!(code == 0 && text.contains("ext 1 is installed; it counts from the next session on.\n"), "{text}");
    assert!(text.ends_with("`castor extensions config ext EXT_KEY` sets Key.\n"), "{text}");
    let has = |path: &str| castor_hands::disk::path_exists(&ground.root.join("h/.castor/extensions").join(path));
    assert!(has("ext/s.js") && !has("ext/.env"), "what the folder's owner keeps there stays there");
    let list = || say(&ground, &["list"], None).0;
    let brings = "1 MCP server, 1 hook file, 1 command, 1 agent, 1 policy file, 1 context file, 1 excluded tool";
    assert!(list().contains(" on  ") && list().contains(brings), "{}", list());
    assert_eq!(say(&ground, &["install", "../e", "--consent"], None).1, 42);
    assert_eq!(say(&ground, &["disable", "ext", "--scope", "workspace"], None).1, 0);
    assert!(list().contains("off: you switched it off"));
    assert_eq!((say(&ground, &["enable", "ext"], None).1, say(&ground, &["enable", "none"], None).1), (0, 42));
    assert!(list().contains("off: "), "the folder's own switch decides");
    assert_eq!(say(&ground, &["enable", "ext", "--scope", "workspace"], None).1, 0);
    assert!(say(&ground, &["update", "ext"], None).0.contains("ext 1 is as you agreed to it.\n"));
    ground.write("h/.castor/extensions/ext/s.js", "evil()");
    assert!(list().contains("not used: changed since your yes: s.js"), "{}", list());
    assert_eq!(say(&ground, &["update", "ext"], Some(true)).1, 0);
    assert!(list().contains(" on  "), "{}", list());
    let (text, code) = say(&ground, &["config", "ext"], None);
    assert!(code == 0 && text.contains("EXT_KEY ") && text.contains(" not set "), "{text}");
    assert_eq!((say(&ground, &["uninstall", "ext"], None).1, has("ext"), has("ext.json")), (0, false, false));
}

#[test]
fn a_linked_one_is_used_where_it_is() {
    let ground = ground();
    assert_eq!(say(&ground, &["link", "../e"], Some(true)).1, 0);
    let (text, _) = say(&ground, &["show", "ext"], None);
    assert!(text.contains("from      linked to $ROOT/e\nfolder    $ROOT/e\n"), "{text}");
    ground.write("e/s.js", "other()");
    assert!(say(&ground, &["list"], None).0.contains("changed since your yes: s.js"));
    assert_eq!(say(&ground, &["update", "--all"], Some(true)).1, 0);
    assert!(say(&ground, &["list"], None).0.contains(" on  "));
    assert_eq!(say(&ground, &["uninstall", "ext"], None).1, 0);
    assert!(castor_hands::disk::path_exists(&ground.root.join("e/s.js")), "the folder is the user's");
}

#[test]
fn a_new_one_is_in_order_and_gemini_clis_are_named() {
    let ground = ground();
    assert_eq!(say(&ground, &["new", "mine"], None).1, 0);
    let (text, code) = say(&ground, &["validate", "mine"], None);
    assert!(code == 0 && text.ends_with("The extension is in order.\n"), "{text}");
    assert_eq!((say(&ground, &["new", "mine"], None).1, say(&ground, &["new", "my ext"], None).1), (42, 42));
    ground.write("h/.gemini/extensions/old/gemini-extension.json", r#"{"name": "old", "version": "1"}"#);
    let list = say(&ground, &["list"], None).0;
    assert!(list.contains("Gemini CLI has old; `castor extensions install $ROOT/h/.gemini/extensions/old`"), "{list}");
    let settings = r#"{"security": {"blockGitExtensions": true}}"#;
    ground.write("h/.castor/settings.json", settings);
    let (text, code) = say(&ground, &["install", "https://example.com/x.git", "--consent"], None);
    assert!(code == 1 && text.contains("security.blockGitExtensions"), "{text}");
}

/// The question comes last, after all that the skill brings.
#[test]
fn a_skill_is_asked_about_before_it_counts() {
    let ground = ground();
    ground.write("s/SKILL.md", "---\nname: tidy\ndescription: Tidies up\n---\nSweep.");
    ground.write("s/run/sweep.sh", "");
    let install = |answer| {
        let (mut out, mut err, mut asked) = (Vec::new(), Vec::new(), String::new());
        let mut ask = |question: &str| {
            asked = question.to_owned();
            answer
        };
        let streams = &mut ExtensionStreams { out: &mut out, err: &mut err, ask: Some(&mut ask) };
        let order = skills::SkillOrder::Install(&parse(&["../s"]));
        let code = skills::run(&order, &ground.env("true"), &ground.root.join("w"), streams).unwrap();
        let text = [out, err].map(|it| String::from_utf8(it).unwrap()).concat();
        (text.replace(&ground.root.to_string(), "$ROOT"), asked, code)
    };
    let (text, asked, code) = install(false);
    let brings =
        "tidy (skill), a copy of $ROOT/s\nTidies up\nIt brings:\n  skill: tidy: Tidies up\n  file: run/sweep.sh\n";
    assert_eq!((text.as_str(), code), (format!("{brings}castor: nothing was changed\n").as_str(), 1));
    let risk = "Its text goes to the model, which may run what it brings as commands.";
    assert_eq!(asked, format!("{risk}\nUse the skill tidy?"));
    assert!(say(&ground, &["list"], None).0.starts_with("No extension is installed.\n"));
    let (text, _, code) = install(true);
    assert!(code == 0 && text.ends_with("tidy (skill) is installed; it counts from the next session on.\n"), "{text}");
    assert!(say(&ground, &["list"], None).0.contains(" on  1 skill\n"));
}
