//! Tools other than the shell, rules as files, and their order.

use super::*;

fn path(path: &str, access: Access) -> TargetPath {
    let path = AbsPath::new(path).unwrap();
    TargetPath {
        in_roots: path.as_path().starts_with("/w"),
        real: path.clone(),
        path,
        access,
        line: None,
        named: false,
    }
}

/// Lines of `mode tool kind paths => decision grant`; a path with `!` is written to.
fn check_tools(rules: &Rules, grants: &[Grant], table: &str) {
    for line in table.lines().map(str::trim).filter(|it| !it.is_empty()) {
        let (call, want) = line.split_once("=>").unwrap();
        let mut words = call.split_whitespace();
        let mode = words.next().unwrap();
        let tool = words.next().unwrap();
        let kind = match words.next().unwrap() {
            "read" => ToolKind::Read,
            "edit" => ToolKind::Edit,
            "fetch" => ToolKind::Fetch,
            _ => ToolKind::Other,
        };
        let paths = words
            .map(|it| match it.strip_suffix('!') {
                Some(it) => path(it, Access::Write),
                None => path(it, Access::Read),
            })
            .collect();
        let targets = Targets { paths, ..Targets::default() };
        let args = json!({"file_path": "x"});
        let interactive = !mode.ends_with('!');
        let mode = Mode::parse(mode.trim_end_matches('!')).unwrap();
        let got = decide(rules, &Query { mode, interactive, grants, ..Query::new(tool, kind, &args, &targets) });
        let grant = match &got.grant {
            None => String::new(),
            Some(Grant::Edits) => " edits".to_owned(),
            Some(Grant::Tool { tool }) => format!(" tool:{tool}"),
            Some(it) => format!(" {it:?}"),
        };
        assert_eq!(format!("{}{grant}", word(got.decision)), want.trim(), "{line}: {}", got.rule);
    }
}

#[test]
fn tools_and_paths() {
    check_tools(
        &rules(""),
        &[],
        "
        default   read_file   read  /w/a            => allow
        default   read_file   read  /etc/passwd     => ask tool:read_file
        default   read_file   read  /home/u/.ssh/id => ask
        autoEdit  read_file   read  /etc/passwd     => ask tool:read_file
        default!  read_file   read  /etc/passwd     => deny
        yolo      read_file   read  /etc/passwd     => allow
        default   write_file  edit  /w/a!           => ask edits
        default   replace     edit  /w/a!           => ask edits
        default   edit        edit  /w/a!           => ask edits
        default!  write_file  edit  /w/a!           => deny
        autoEdit  write_file  edit  /w/a!           => allow
        autoEdit! write_file  edit  /w/a!           => allow
        autoEdit  write_file  edit  /w/a! /x/b!     => ask
        autoEdit  write_file  edit                  => ask
        autoEdit  write_file  edit  /w/.git/hooks/x! => ask
        autoEdit  write_file  edit  /w/s/.GIT/config! => ask
        autoEdit  write_file  edit  /w/.vscode/tasks.json! => ask
        autoEdit  write_file  edit  /w/.gemini/x!   => ask
        autoEdit  write_file  edit  /w/.castor/x!   => ask
        autoEdit  write_file  edit  /w/.idea./x!    => ask
        autoEdit  write_file  edit  /w/bare/HEAD!   => ask
        autoEdit  write_file  edit  /w/head/a!      => allow
        autoEdit  write_file  edit  /w/.gitignore!  => allow
        autoEdit! write_file  edit  /w/.zed/x!      => deny
        yolo      write_file  edit  /w/.zed/x!      => ask
        yolo!     write_file  edit  /w/.zed/x!      => deny
        yolo      write_file  edit  /w/.git/x!      => ask
        yolo      read_file   read  /w/.git/config  => allow
        yolo      read_file   read  /w/.env         => ask
        yolo!     read_file   read  /w/.env         => deny
        autoEdit  read_file   read  /w/.env         => ask
        default   read_file   read  /w/.env         => ask
        plan      read_file   read  /w/.env         => ask
        default   read_file   read  /w/.env.example => allow
        default   list_directory read /h/.ssh       => ask
        yolo      grep_search read  /h/.aws         => ask
        autoEdit  write_file  edit  /w/.env!        => ask
        yolo      read_file   read  /proc/7/environ => ask
        yolo      write_file  edit  /etc/x!         => ask
        yolo      write_file  edit  /w/a! /etc/x!   => ask
        yolo!     write_file  edit  /etc/x!         => deny
        yolo      write_file  edit  /w/a!           => allow
        autoEdit  web_fetch   fetch                 => allow
        default   web_fetch   fetch                 => ask tool:web_fetch
        default   unheard_of  other                 => ask tool:unheard_of
        default!  unheard_of  other                 => deny
        yolo      unheard_of  other                 => allow
        yolo      ask_user    other                 => ask tool:ask_user
        yolo      exit_plan_mode other              => deny
        ",
    );
}

#[test]
fn grants_widen_asks_only() {
    let grants = [Grant::Edits, Grant::Tool { tool: "read_file".to_owned() }];
    check_tools(
        &rules("[[rule]]\ntoolName='replace'\ndecision='deny'\npriority=1"),
        &grants,
        "
        default   write_file  edit  /w/a!            => allow
        default   write_file  edit  /x/a!            => ask
        default   write_file  edit  /w/.git/config!  => ask
        default   replace     edit  /w/a!            => deny
        default   read_file   read  /etc/passwd      => allow
        default   read_file   read  /h/.aws/config   => ask
        default   web_fetch   fetch                  => ask tool:web_fetch
        yolo      replace     edit  /w/a!            => deny
        ",
    );
}

/// `go test` is one thing to allow, `go test -exec x` another.
#[test]
fn a_yes_for_the_session_is_none_to_what_options_run() {
    let prefixes = "cargo test,eslint,go test,gradle test,make test,npm test,prettier,pytest".split(',');
    let grants = [Grant::Commands { prefixes: prefixes.map(str::to_owned).collect() }];
    let decision = |command: &str| {
        let args = json!({ "command": command });
        let targets = Targets { command: Some(command.to_owned()), ..Targets::default() };
        let query = Query::new("run_shell_command", ToolKind::Execute, &args, &targets);
        decide(&rules(""), &Query { grants: &grants, ..query }).decision
    };
    for command in ["cargo test -p a", "go test -run X ./...", "make test V=1", "npm test -- -u", "pytest -x tests"] {
        assert_eq!(decision(command), Decision::Allow, "{command}");
    }
    let asked = "
        cargo test --config x.toml
        go test -exec ./x ./...
        gradle test -I x.gradle
        make test SHELL=./x
        npm test --script-shell=./x
        npm test --node-options '--require ./x'
        npm test --userconfig x.cfg
        npm test --globalconfig=x.cfg
        go test -vettool=./x ./...
        go test -overlay x ./...
        pytest tests -p evil
        eslint src --rulesdir=./x
        prettier --check src --plugin=./x.js
        ";
    for command in asked.trim().lines().map(str::trim) {
        assert_eq!(decision(command), Decision::Ask, "{command}");
    }
}

/// What tools and shell must not change without a word of their own.
const OBEYED: &str = "
    .castor/settings.json .castor/policies/x.toml .gemini/settings.json .claude/settings.json .cursor/mcp.json
    .codex/config.toml .mcp.json mcp.json .castorignore .geminiignore .vscode/tasks.json .vscode/settings.json
    .zed/settings.json .idea/workspace.xml .fleet/run.json a.code-workspace .devcontainer/devcontainer.json
    .dir-locals.el .exrc .nvim.lua .vimrc .git/config .git/hooks/pre-commit sub/.git/HEAD .gitmodules .gitconfig
    .husky/pre-commit .githooks/pre-push .pre-commit-config.yaml lefthook.yml .hg/hgrc .github/workflows/ci.yml
    .github/actions/a/action.yml .gitlab-ci.yml .circleci/config.yml Jenkinsfile .bashrc .bash_profile .profile
    .zshrc .zshenv .config/fish/config.fish .config/autostart/x.desktop Library/LaunchAgents/x.plist .envrc .npmrc
    .cargo/config.toml .ssh/authorized_keys";

#[test]
fn what_programs_obey_needs_a_word_of_its_own() {
    let grants = [
        Grant::Edits,
        Grant::Tool { tool: "write_file".to_owned() },
        Grant::Commands { prefixes: vec!["cp".to_owned()] },
    ];
    let shipped = rules("");
    let all = rules("[[rule]]\ntoolName='*'\ndecision='allow'\npriority=900\nallowRedirection=true");
    let files: Vec<&str> = OBEYED.split_whitespace().collect();
    assert!(files.len() >= 40);
    for rules in [&shipped, &all] {
        let edits = files.iter().flat_map(|it| {
            ["default", "autoEdit", "yolo"].map(|mode| format!("{mode} write_file edit /w/{it}! => ask\n"))
        });
        check_tools(rules, &grants, &edits.collect::<String>());
        let commands = files.iter().flat_map(|it| {
            let commands = [format!("cp x {it}"), format!("echo x > {it}"), format!("tee -a ./{it}")];
            commands.map(|it| format!("yolo  {it} => ask\ndefault  {it} => ask\n"))
        });
        super::check(rules, &grants, &commands.collect::<String>());
    }
}

#[test]
fn a_link_hides_nothing() {
    let rules = rules("");
    let check = |path: &str, real: &str, access: Access, want: Decision| {
        let (path, real) = (AbsPath::new(path).unwrap(), AbsPath::new(real).unwrap());
        let target = TargetPath { path, real, access, line: None, in_roots: true, named: false };
        let targets = Targets { paths: vec![target], ..Targets::default() };
        let kind = if access == Access::Write { ToolKind::Edit } else { ToolKind::Read };
        let query = Query { mode: Mode::Yolo, ..Query::new("any", kind, &Value::Null, &targets) };
        assert_eq!(decide(&rules, &query).decision, want);
    };
    check("/w/readme", "/w/readme", Access::Read, Decision::Allow);
    check("/w/readme", "/w/.env", Access::Read, Decision::Ask);
    check("/w/.env", "/w/readme", Access::Read, Decision::Ask);
    check("/w/notes", "/w/.git/hooks/pre-push", Access::Write, Decision::Ask);
    check("/w/notes", "/w/.git/hooks/pre-push", Access::Read, Decision::Allow);
}

/// A sandbox may be off: what plainly writes elsewhere is asked about in yolo, too.
#[test]
fn output_that_leaves_the_workspace() {
    let named = "commandPrefix='echo'\nallowRedirection=true";
    for (rules, want) in [(rules(""), "ask"), (rules(&rule("allow", named)), "allow")] {
        let commands = ["echo x > /etc/x", "echo x >> ~/.x", "echo x > $HOME/x", "echo x > ../x", "echo x > a/../../x"];
        let table = commands.map(|it| format!("yolo  {it} => {want}\n")).concat();
        super::check(&rules, &[], &table);
    }
    let inside = ["x", "/w/x", "/tmp/x", "/dev/null", "a/../x", "\"$OUT\""];
    let table = inside.map(|it| format!("yolo  echo x > {it} => allow\n")).concat();
    super::check(&rules(""), &[], &table);
}

/// Names that are not said, and what comes along with all the rest.
#[test]
fn commands_that_come_upon_secrets() {
    let shipped = rules("");
    let all = rules("[[rule]]\ntoolName='run_shell_command'\ndecision='allow'\npriority=900");
    let secrets: Vec<AbsPath> = ["/w/.env", "/w/keys/id_rsa"].map(|it| AbsPath::new(it).unwrap()).into();
    let roots = [AbsPath::new("/w").unwrap()];
    let ask = |rules: &Rules, mode: Mode, secrets: &[AbsPath], command: &str| {
        let args = json!({ "command": command });
        let targets = Targets { command: Some(command.to_owned()), secrets: secrets.to_vec(), ..Targets::default() };
        let query = Query::new("run_shell_command", ToolKind::Execute, &args, &targets);
        decide(rules, &Query { mode, roots: &roots, ..query }).decision
    };
    // Whether there are such files or not: the words could mean one.
    for command in [
        "cat .e*v",
        "cat .en?",
        "cat .[e]nv",
        "head -1 id_*",
        "cat *.pem",
        "cat $HOME/.ssh/id_rsa",
        "cat .e{n,}v",
        "cat ~/.ss*/id_rsa",
        "cat .env.*",
        "cat secret*.y*ml",
        "cp .* /tmp",
        "git diff --no-index /dev/null .env",
        "git diff .env",
        "git show HEAD:.env",
        "git log -p -- .env",
        "git blame --contents .env f",
        "git commit -F .env",
        "git commit -aF .env",
        "git commit --file=.env",
        "for f in .env; do cat \"$f\"; done",
        "f=.env; cat $f",
        "f=(a .env); cat \"${f[@]}\"",
        "read f <<< .env; cat $f",
        "f=.env; cat < $f",
        "f=.en; cat ${f}v",
        "f=.en; g=v; cat $f$g",
        "f=.en; f+=v; cat \"$f\"",
        "a=.e; b=${a}n; cat \"${b}v\"",
        "for f in .en; do cat \"${f}v\"; done",
        "d=.ss; cat ~/${d}h/config",
        "f=.en; cat < ${f}v",
        "x=$(printf .en); cat ${x}v",
        "cat $(printf .e)nv",
        "cat `printf .e`nv",
        "cat $'\\x2e'env",
        "read x <<< .en; cat ${x}v",
        "r() { cat \"${1}v\"; }; r .en",
        "n=id; cat ${n}_rsa",
        "tar cf - .env",
        "cp .env x",
        "base64 .env",
    ] {
        assert_eq!(ask(&shipped, Mode::Yolo, &[], command), Decision::Ask, "{command}");
        assert_eq!(ask(&all, Mode::Default, &[], command), Decision::Ask, "{command}");
    }
    // Only where there are some.
    for command in [
        "grep -r . .",
        "grep -rn TOKEN",
        "grep -R x keys",
        "grep -r x $DIR",
        "egrep -r --include='*' x .",
        "rg --hidden x",
        "rg x keys",
        "cat $(ls -a)",
        "cat `ls -a`",
        "ls -a | xargs cat",
        "find . -type f -exec cat {} +",
        "tar c . | base64",
        "cd sub && grep -r x .",
        "cat keys/*",
        "head -c 99 ke?s/*_rsa",
        "git grep --no-index K",
        "git grep --no-index K keys",
        "diff -rN . /var/empty",
        "cp -r . ../x",
        "cp -a keys x",
        "cp -pR $DIR x",
    ] {
        assert_eq!(ask(&shipped, Mode::Yolo, &secrets, command), Decision::Ask, "{command}");
        assert_ne!(ask(&shipped, Mode::Default, &secrets, command), Decision::Allow, "{command}");
        assert_eq!(ask(&shipped, Mode::Yolo, &[], command), Decision::Allow, "{command}");
    }
    for command in [
        "grep -r x src",
        "grep -rn x . --include=*.rs",
        "grep x README.md",
        "rg x src",
        "cat *",
        "cat src/*.rs",
        "ls -la .e*",
        "cat $(git ls-files)x.rs | wc -l; true",
        "for f in *.md; do cat $f; done",
        "npm test",
        "tar c src",
        "cat s*.rs",
        "git commit -m \"mention .env for $USER\"",
        "make -C $DIR",
        "git log -- .env",
        "git commit -m \"ignore .env\"",
        "git add .gitignore .env.example",
        "git grep K",
        "git diff --no-index src x",
        "diff -r src lib",
        "for f in .env a; do test -f $f && echo $f; done",
        "f=src; ls $f; cat $f/x",
        "for f in *; do cat \"$f\"; done",
        "for d in a b; do cat \"$d/x.rs\" \"${d}s\"; done",
        "while read -r f; do cat \"$f\" \"src/$f\"; done < list",
        "n=$(basename x .rs); cat \"$n.json\" \"$n-new\" \"$n/src\" \"$n$m\"",
        "v=1.2; cat CHANGELOG-$v.md; head -n ${v}0 x",
        "cat \"$HOME/.cargo/registry/x\" \"${USER}s\"",
        "f=.en; echo ${f}v",
        "cp -r src x",
        "cp README.md x",
        "find . -name x",
    ] {
        let want = if command.contains("$(git") { Decision::Ask } else { Decision::Allow };
        assert_eq!(ask(&shipped, Mode::Yolo, &secrets, command), want, "{command}");
    }
}

#[test]
fn a_rule_that_names_it_allows_it() {
    let rule = |what: &str| format!("[[rule]]\ntoolName='write_file'\ndecision='allow'\npriority=100\n{what}");
    let args = json!({"file_path": ".vscode/tasks.json"});
    let targets = Targets { paths: vec![path("/w/.vscode/tasks.json", Access::Write)], ..Targets::default() };
    for (what, want) in [
        ("", Decision::Ask),
        ("argsPattern='tasks'", Decision::Ask),
        ("argsPattern='\\.vscode/tasks'", Decision::Allow),
    ] {
        let rules = rules(&rule(what));
        for mode in [Mode::Default, Mode::AutoEdit, Mode::Yolo] {
            let got = decide(&rules, &Query { mode, ..Query::new("write_file", ToolKind::Edit, &args, &targets) });
            assert_eq!(got.decision, want, "{what}: {}", got.rule);
        }
    }
    // A workspace cannot allow it.
    let (weak, _) = Rules::parse(&rule("argsPattern='\\.vscode/tasks'"), Tier::Workspace, "w.toml").unwrap();
    let got = decide(&Rules::shipped().with(weak), &Query::new("write_file", ToolKind::Edit, &args, &targets));
    assert_eq!(got.decision, Decision::Ask);
}

#[test]
fn shipped_rules_keep_their_examples() {
    let rules = Rules::shipped();
    assert_eq!(rules.iter().count(), 17);
    // Of files of plans an example cannot speak: their folder is the session's.
    for rule in rules.iter().filter(|it| !it.is_for_plans()) {
        assert!(!rule.examples.matches.is_empty(), "{} has no example", rule.name("x"));
    }
}

#[test]
fn files_that_are_wrong() {
    let parse = |text: &str| Rules::parse(text, Tier::User, "u.toml");
    assert!(parse("[[rule").is_err());
    assert_eq!(parse("other = 1").unwrap().0.rules.len(), 0);
    let said = parse("[[rules]]\ntoolName='a'\ndecision='deny'\npriority=1").unwrap_err();
    assert_eq!(said, "u.toml: rules is not a key that castor knows; did you mean rule?");
    let (rules, said) = parse("[[rule]]\ntoolName='a'\ndecision='deny'\npriority=1\nmode='plan'\n").unwrap();
    assert!(rules.rules[0].is_broken() && said[0].contains("mode is not a key that castor knows; did you mean modes?"));
    assert_eq!(parse("[[rule]]\ntoolName='a'\ndecision='deny'\npriority=1\ndescription='why'\n").unwrap().1.len(), 0);
    let long = "x".repeat(2049);
    let bad = [
        "decision='allow'\npriority=1",
        "toolName=''\ndecision='allow'\npriority=1",
        "toolName=[]\ndecision='allow'\npriority=1",
        "toolName='a'\ndecision='allow'\npriority=1000",
        "toolName='a'\ndecision='allow'\npriority=-1",
        "toolName='a'\ndecision='allow'\npriority=1.5",
        "toolName='a'\ndecision='allow'\npriority=1\nmodes=['wild']",
        "toolName='a'\ndecision='allow'\npriority=1\nargsPattern='('",
        &format!("toolName='a'\ndecision='allow'\npriority=1\nargsPattern='{long}'"),
        "toolName='a'\ndecision='allow'\npriority=1\ncommandPrefix='ls'",
        "toolName='run_shell_command'\ndecision='allow'\npriority=1\ncommandPrefix=' '",
        "toolName='run_shell_command'\ndecision='allow'\npriority=1\ncommandPrefix='a'\ncommandRegex='b'",
        "toolName='a*'\ndecision='allow'\npriority=1",
        "toolName='*'\nmcpName=''\ndecision='allow'\npriority=1",
        "toolName='run_shell_command'\ndecision='allow'\npriority=1\ncomandPrefix='git push'",
        "toolName='a'\ndecision='allow'\npriority=1\nmode=['plan']",
    ];
    for text in bad {
        let (rules, warnings) = parse(&format!("[[rule]]\n{text}\n")).unwrap();
        assert_eq!((rules.rules.len(), warnings.len()), (0, 1), "{text}");
    }
}

/// A typo in a rule that denies would be found out too late.
#[test]
fn names_that_are_nearly_a_tools_are_told() {
    for (tools, near) in [
        ("'run_shel_command'", Some("run_shell_command")),
        ("['read_file', 'wirte_file']", Some("write_file")),
        ("'Replace'", Some("replace")),
        ("'edit'", None),
        ("'ShellTool'", None),
        ("'mcp_web_read_fil'", None),
        ("'read_fil*'", None),
        ("'discovered_tool_x'", None),
        ("'*'", None),
        ("'read_fil'\nmcpName='web'", None),
    ] {
        let text = format!("[[rule]]\ntoolName={tools}\ndecision='deny'\npriority=1\n");
        let (written, warnings) = Rules::parse(&text, Tier::User, "u.toml").unwrap();
        let said: Vec<Option<&str>> = warnings.iter().map(|it| it.split("mean ").nth(1)).collect();
        let want: Vec<String> = near.iter().map(|it| format!("{it}?")).collect();
        assert_eq!(said, want.iter().map(|it| Some(it.as_str())).collect::<Vec<_>>(), "{tools}");
        assert_eq!(written.rules.len(), 1);
    }
}

#[test]
fn extensions_only_restrict() {
    for (rule, holds) in [
        ("decision='allow'", false),
        ("decision='allow'\nmodes=['default']", false),
        ("decision='deny'\nmodes=['yolo']", false),
        ("decision='ask_user'\nmodes=['default', 'yolo']", false),
        ("decision='ask_user'\nmodes=['default']", true),
        ("decision='deny'", true),
    ] {
        let text = format!("[[rule]]\ntoolName='x'\npriority=1\n{rule}\n");
        let (_, warnings) = Rules::parse(&text, Tier::Extension, "e.toml").unwrap();
        assert_eq!(warnings.is_empty(), holds, "{rule}");
        assert!(Rules::parse(&text, Tier::Workspace, "w.toml").unwrap().1.is_empty(), "{rule}");
    }
}

#[test]
fn order_is_tier_then_priority() {
    let one = |decision: &str, priority: u16, tier| {
        let text = format!("[[rule]]\ntoolName='t'\ndecision='{decision}'\npriority={priority}");
        Rules::parse(&text, tier, "f").unwrap().0
    };
    let first = |rules: &Rules| rules.iter().next().map(|it| (it.decision, it.effective())).unwrap();
    let rules = Rules::default().with(one("allow", 999, Tier::Workspace)).with(one("ask_user", 0, Tier::User));
    assert_eq!(first(&rules), (Decision::Ask, 4000));
    let rules = Rules::default().with(one("allow", 5, Tier::User)).with(one("deny", 5, Tier::User));
    assert_eq!(first(&rules), (Decision::Deny, 4005));
}

#[test]
fn deny_message_and_reason() {
    let rules = rules(&rule("deny", "commandPrefix='rm'\ndeny_message='Use trash.'"));
    let got = shell(&rules, Mode::Default, true, "ls; rm x", &[]);
    assert_eq!(got.deny_message.as_deref(), Some("Use trash."));
    assert_eq!(got.rule, "user.toml:1: run_shell_command rm");
    let got = shell(&rules, Mode::Default, false, "make", &[]);
    assert!(got.deny_message.unwrap().contains("nobody can be asked"));
}

#[test]
fn args_patterns_hold_on_to_pairs() {
    let text = "[[rule]]\ntoolName='write_file'\ndecision='deny'\npriority=1\nargsPattern='\\x00\"a\":\"b\"\\x00'";
    let rules = rules(text);
    let ask = |args: Value| {
        let targets = Targets::default();
        let query = Query { mode: Mode::Yolo, ..Query::new("write_file", ToolKind::Edit, &args, &targets) };
        decide(&rules, &query).decision
    };
    assert_eq!(ask(json!({"z": 1, "a": "b"})), Decision::Deny);
    assert_eq!(ask(json!({"z": {"a": "b"}})), Decision::Allow);
    assert_eq!(ask(json!({"z": "\"a\":\"b\""})), Decision::Allow);
}
