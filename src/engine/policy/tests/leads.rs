//! Names of commands that lead elsewhere: what is looked up, and what is thought of where they are.

use super::*;
use crate::{
    base::tool::{Lead, Tracked, Words},
    engine::policy::{leads_in_words, words},
};

fn looked_up(command: &str) -> Words {
    words("run_shell_command", &json!({ "command": command }))
}

fn path(it: &str) -> AbsPath {
    AbsPath::new(it).unwrap()
}

/// `name` leads to `real`.
fn lead(name: &str, real: &str) -> Lead {
    let real = path(real);
    let in_roots = real.is_within(&path("/w"));
    Lead { name: name.to_owned(), path: path("/w").join(name), real, in_roots }
}

fn targets(command: &str, leads: &[Lead]) -> Targets {
    Targets { command: Some(command.to_owned()), leads: leads.to_vec(), ..Targets::default() }
}

fn asked(rules: &Rules, mode: Mode, command: &str, targets: &Targets) -> Verdict {
    let args = json!({ "command": command });
    let roots = [path("/w")];
    let query = Query::new("run_shell_command", ToolKind::Execute, &args, targets);
    decide(rules, &Query { mode, roots: &roots, ..query })
}

#[test]
fn words_that_may_name_a_file_are_looked_up() {
    let check = |command: &str, want: &[&str]| {
        let found = looked_up(command).names;
        for name in want {
            assert!(found.iter().any(|it| it == name), "{command}: {name} is not in {found:?}");
        }
        assert_eq!(want.is_empty(), found.is_empty(), "{command}: {found:?}");
    };
    check("cat a b", &["a", "b"]);
    check("echo a b; ls c; git add d", &[]);
    check("cat < in > out", &["in", "out"]);
    check("grep -fx y --file=z", &["x", "y", "z"]);
    check("dd if=a of=b", &["a", "b"]);
    check("curl -d @a host:b", &["a", "b"]);
    check("f=READ; cat ${f}ME.md \"$f\"x", &["README.md", "READx"]);
    check("cat {a,b}.md $'\\x61c'", &["a.md", "b.md", "ac"]);
    check("cat A*.md", &["A*.md"]);
    check("bash -c 'sudo cat a'", &["a"]);
    check("find a -exec cat {} +", &["a"]);
    check("python3 -c 'print(open(\"a\").read())'", &["a"]);
    check("while read f; do cat \"$f\"; done <<< a", &["a"]);
    assert_eq!(looked_up("cd a && cat x; pushd -n b; cd $C").dirs, ["a", "b"]);
    assert_eq!(looked_up("cd ~/.config && cat x; cd .s*; cd; cd ~/a").dirs, ["~/.config", ".s*", "~", "~/a"]);
    check("cat \"$HOME/.config/gh/\"* ${HOME}/b $HOMES/c", &["~/.config/gh/*", "~/b"]);
    assert!(looked_up("cd \"$HOME\"/a").dirs.contains(&"~/a".to_owned()));
    assert_eq!(looked_up("cat (").names, Vec::<String>::new());
    assert_eq!(words("other", &json!({ "command": "cat a" })), Words::default());
    let many: Vec<String> = (0..500).map(|it| format!("f{it}")).collect();
    assert!(looked_up(&format!("cat {}", many.join(" "))).more);
    assert!(!looked_up("cat a").more);
}

#[test]
fn a_command_is_judged_by_where_its_names_lead() {
    let shipped = rules("");
    let all = rules("[[rule]]\ntoolName='run_shell_command'\ndecision='allow'\npriority=900");
    let named = rules(&rule("allow", "commandPrefix='cat .ssh'"));
    let key = [lead("a", "/home/u/.ssh/id_rsa"), lead("*.md", "/home/u/.ssh/id_rsa")];
    for command in
        ["cat a", "cat -n a", "grep x a", "cat *.md", "cp a b", "x=a; cat $x", "cat <a", "node -e 'f(\"a\")'"]
    {
        let targets = targets(command, &key);
        for mode in [Mode::Default, Mode::AutoEdit, Mode::Yolo] {
            let got = asked(&shipped, mode, command, &targets);
            assert_eq!((got.decision, got.grant), (Decision::Ask, None), "{command} in {mode:?}");
        }
        assert_eq!(asked(&all, Mode::Default, command, &targets).decision, Decision::Ask, "{command}");
    }
    let check = |command: &str, leads: &[Lead], want: [Decision; 3]| {
        let targets = targets(command, leads);
        let got =
            [Mode::Default, Mode::AutoEdit, Mode::Yolo].map(|mode| asked(&shipped, mode, command, &targets).decision);
        assert_eq!(got, want, "{command}");
    };
    let (allow, ask) = (Decision::Allow, Decision::Ask);
    check("cat a", &[lead("a", "/w/docs/a.md")], [allow; 3]);
    check("cat b", &key, [allow; 3]);
    check("echo a; ls a", &key, [allow; 3]);
    check("cat a", &[lead("a", "/etc/hosts")], [ask, ask, allow]);
    check("cat /etc/hosts", &[], [ask, ask, allow]);
    check("cd a && cat x", &[lead("a", "/etc")], [ask, ask, allow]);
    check("cat a", &[lead("a", "/w/.git/config")], [allow; 3]);
    check("cp x a", &[lead("a", "/w/.git/config")], [ask; 3]);
    check("echo x > a", &[lead("a", "/w/.vscode/tasks.json")], [ask; 3]);
    check("echo x > a", &[lead("a", "/etc/hosts")], [ask; 3]);
    check("echo x > a", &[lead("a", "/w/docs/a.md")], [ask, ask, allow]);
    let echo = rules(&rule("allow", "commandPrefix='echo'"));
    for (real, want) in [("/w/docs/a.md", allow), ("/etc/hosts", ask), ("/w/.git/config", ask)] {
        let command = "echo x > a";
        let got = asked(&echo, Mode::AutoEdit, command, &targets(command, &[lead("a", real)]));
        assert_eq!(got.decision, want, "{real}");
    }
    check("rm -rf target/x", &[lead("target/x", "/home/u/work")], [ask; 3]);
    check("rm -rf target/x", &[], [ask, ask, allow]);
    // What nobody named: met by those who go wherever links lead.
    let unnamed = |real: &str| [Lead { name: String::new(), path: path("/w/docs/l"), ..lead("l", real) }];
    check("grep -R x docs", &unnamed("/home/u/.ssh/id_rsa"), [ask; 3]);
    check("grep -R x docs", &unnamed("/etc"), [ask, ask, allow]);
    check("grep -r x docs", &unnamed("/etc"), [allow; 3]);
    check("cat docs/a.md", &unnamed("/home/u/.ssh/id_rsa"), [allow; 3]);
    let cat = "cat a";
    assert_eq!(asked(&named, Mode::Yolo, cat, &targets(cat, &key)).decision, Decision::Ask, "it names other words");
}

/// The name says nothing, its place does; and a folder that is named by a link is where that leads.
#[test]
fn a_place_makes_a_name_one_of_secrets() {
    let shipped = rules("");
    let hosts = path("/home/u/.config/gh/hosts.yml");
    let there = |name: &str| Lead { path: hosts.clone(), ..lead(name, "/home/u/.config/gh/hosts.yml") };
    for (name, command) in [
        ("hosts.yml", "cd ~/.config/gh && cat hosts.yml"),
        ("*/hosts.yml", "(cd ~/.config; cat */hosts.yml)"),
        ("~/.config/gh/*", "cat ~/.config/gh/*"),
        ("~/.config/gh/*", "cat \"$HOME\"/.config/gh/*"),
        ("hosts.yml", "git -C x diff --no-index /dev/null hosts.yml"),
    ] {
        let (with, without) = (targets(command, &[there(name)]), targets(command, &[]));
        assert_eq!(asked(&shipped, Mode::Yolo, command, &with).decision, Decision::Ask, "{command}");
        assert_eq!(asked(&shipped, Mode::Yolo, command, &without).decision, Decision::Allow, "{command}");
        assert_eq!(leads_in_words(&with, &path("/w")), Vec::<String>::new(), "it leads nowhere");
    }
    for (command, want) in
        [("grep -r x d", Decision::Ask), ("cp -r d e", Decision::Ask), ("grep -r x e", Decision::Allow)]
    {
        let targets =
            Targets { secrets: vec![path("/w/.docker/config.json")], ..targets(command, &[lead("d", "/w/.docker")]) };
        assert_eq!(asked(&shipped, Mode::Yolo, command, &targets).decision, want, "{command}");
    }
}

#[test]
fn a_public_key_is_one_where_it_really_is() {
    let key = "/home/u/.ssh/id_rsa.pub";
    for (real, want) in [(key, Decision::Allow), ("/home/u/.ssh/deploy", Decision::Ask), ("/w/.env", Decision::Ask)] {
        for name in ["k.md", key, "~/.ssh/*.pub"] {
            let command = format!("cat {name}");
            let lead = Lead { path: path(key), ..lead(name, real) };
            assert_eq!(
                asked(&rules(""), Mode::Yolo, &command, &targets(&command, &[lead])).decision,
                want,
                "{command}"
            );
        }
    }
    let write = targets("cp x k.md", &[lead("k.md", key)]);
    assert_eq!(asked(&rules(""), Mode::Yolo, "cp x k.md", &write).decision, Decision::Ask);
}

#[test]
fn a_file_of_secrets_is_made_where_there_is_none() {
    let check = |command: &str, absent: &str, leads: &[Lead], want: Decision| {
        let targets = Targets { absent: [path(absent)].into(), ..targets(command, leads) };
        assert_eq!(asked(&rules(""), Mode::Yolo, command, &targets).decision, want, "{command}");
    };
    let (allow, ask) = (Decision::Allow, Decision::Ask);
    let copy = "cp .env.example .env && npm test";
    check(copy, "/w/.env", &[], allow);
    check(copy, "/w/sub/.env", &[], ask);
    check(copy, "/w/.env", &[lead(".env.example", "/home/u/.ssh/id_rsa")], ask);
    check("cd sub && cp .env.example .env", "/w/.env", &[], ask);
    check("cp .env.example .env && cat .env", "/w/.env", &[], ask);
    check("cp .env.example .env; cp .env .env.example", "/w/.env", &[], ask);
    check("mv .env.example .env", "/w/.env", &[], ask);
    assert_eq!(looked_up(copy).makes, [".env"]);
    assert_eq!(looked_up("cp .env a; cp a b").makes, [""; 0]);
}

#[test]
fn a_path_that_is_checked_out_loses_what_was_changed() {
    let check = |command: &str, undone: &[&str], want: Decision| {
        let undone = undone.iter().map(|it| (*it).to_owned()).collect();
        let targets = Targets { undone, ..targets(command, &[]) };
        assert_eq!(asked(&rules(""), Mode::Yolo, command, &targets).decision, want, "{command}");
    };
    let (allow, ask) = (Decision::Allow, Decision::Ask);
    check("git checkout docs", &["docs"], ask);
    check("git checkout docs", &[], allow);
    check("git -C sub checkout -q docs", &["docs"], ask);
    check("make; sh -c 'git checkout docs'", &["docs"], ask);
    check("git checkout dist", &["dist"], allow);
    check("git checkout -b docs", &[], allow);
    check("git checkout docs; git log docs", &["log"], allow);
    check("git checkout -B main", &["main"], ask);
    check("git checkout -qBmain", &["main"], ask);
    check("git checkout -B main", &[], allow);
    check("d=docs; git checkout \"$d\"", &["docs"], ask);
    let found = |command: &str| {
        let all = looked_up(command).checked_out;
        all.into_iter().map(|it| if it.moves { format!("+{}", it.name) } else { it.name }).collect::<Vec<_>>()
    };
    assert_eq!(found("git checkout docs; git -C x checkout -q y; env -C z git checkout a"), ["docs", "y", "a"]);
    assert_eq!(found("git checkout -b x; git checkout -- y; git checkout a b; git checkout"), [""; 0]);
    assert_eq!(found("git checkout -B x; git checkout -qBy; git checkout -B z main"), ["+x", "+y"]);
    for command in [
        "d=docs; git checkout $d",
        "d=do; git checkout ${d}cs",
        "for d in docs sub; do git checkout \"$d\"; done",
        "git checkout $(echo docs)",
        "git checkout ${X:-docs}",
        "a=(docs sub); git checkout ${a[0]}",
        "a=(docs); git checkout \"${a[@]}\"",
        "git checkout {docs,sub}",
        "f() { git checkout \"$1\"; }; f docs",
        "bash -c 'git checkout \"$1\"' x docs",
        "read d <<< docs; git checkout $d",
    ] {
        assert!(found(command).contains(&"docs".to_owned()), "{command}: {:?}", found(command));
    }
}

#[test]
fn who_names_too_much_is_not_known_to_be_safe() {
    let shipped = rules("");
    let targets = Targets { unseen: true, ..targets("cat a", &[]) };
    assert_eq!(asked(&shipped, Mode::Default, "cat a", &targets).decision, Decision::Ask);
    assert_eq!(asked(&shipped, Mode::Yolo, "cat a", &targets).decision, Decision::Allow);
}

#[test]
fn code_that_names_a_secret() {
    let table = "
        yolo  python3 -c \"print(open('.env').read())\" => ask
        yolo  node -e 'fs.readFileSync(\"/home/u/.ssh/id_rsa\")' => ask
        yolo  perl -e 'open F, \"id_rsa\"; print <F>' => ask
        yolo  awk 'BEGIN { while ((getline l < \".env\") > 0) print l }' => ask
        yolo  python3 - <<'EOF'⏎open(\".npmrc\")⏎EOF => ask
        yolo  cat $'.\\x65nv' => ask
        yolo  cat $'\\56e'nv => ask
        yolo  cat .{e,x}nv => ask
        yolo  node -e 'console.log(process.env.HOME, x.key)' => allow
        yolo  python3 -c 'print(\"shadow\", \"src/a.py\")' => allow
        yolo  awk '{ print $1 }' a.txt => allow
        yolo  printf $'a\\tb' => allow
    ";
    super::check(&rules(""), &[], table);
}

#[test]
fn people_are_told_where_names_lead() {
    let told = |leads: &[Lead]| leads_in_words(&targets("x", leads), &path("/w"));
    let many: Vec<Lead> = (0..7).map(|it| lead(&format!("f{it}"), "/etc/hosts")).collect();
    assert_eq!(
        told(&[lead("a", "/home/u/.ssh/id_rsa"), lead("b", "/w/.env"), lead("c", "/w/docs/c"), lead("d/../e", "/x/e")]),
        [
            "a leads to /home/u/.ssh/id_rsa (outside the workspace; secrets may be kept there: .ssh).",
            "b leads to .env (secrets may be kept there: .env).",
            "d/../e leads to /x/e (outside the workspace).",
        ]
    );
    let all = told(&many);
    assert_eq!((all.len(), all[5].as_str()), (6, "2 more names lead elsewhere."));
}

/// `changed`: the file is not as it was added.
fn shown(mode: Mode, command: &str, changed: bool, grants: &[Grant]) -> Verdict {
    let tracked = vec![Tracked { path: path("/w/conf/.env"), changed }];
    let targets = Targets { tracked: Some(tracked), ..targets(command, &[]) };
    let args = json!({ "command": command });
    let roots = [path("/w")];
    let query = Query::new("run_shell_command", ToolKind::Execute, &args, &targets);
    decide(&rules(""), &Query { mode, roots: &roots, grants, ..query })
}

#[test]
fn git_runs_nothing_of_a_repository_unasked() {
    let targets = |command: &str| Targets { git_runs: Some("core.fsmonitor = x".to_owned()), ..targets(command, &[]) };
    let verdict = |mode, command: &str, text: &str| {
        let (args, targets, roots) = (json!({ "command": command }), targets(command), [path("/w")]);
        let query = Query::new("run_shell_command", ToolKind::Execute, &args, &targets);
        decide(&rules(text), &Query { mode, roots: &roots, ..query })
    };
    for mode in [Mode::Default, Mode::Plan] {
        for command in ["git status", "ls && git log --oneline", "git diff a.txt"] {
            let it = verdict(mode, command, "");
            assert_eq!(it.decision, Decision::Ask, "{command}");
            assert!(it.rule.contains("git runs what this repository names: core.fsmonitor = x"), "{}", it.rule);
        }
        assert_eq!(verdict(mode, "ls git", "").decision, Decision::Allow);
    }
    let rule = "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"git status\"\ndecision = \"allow\"\npriority = 9";
    assert_eq!(verdict(Mode::Default, "git status", rule).decision, Decision::Allow, "a rule of the user's knows it");
}

#[test]
fn git_shows_no_secret_unasked() {
    let (allow, ask) = (Decision::Allow, Decision::Ask);
    let check = |command: &str, changed: Decision, as_added: Decision| {
        for mode in [Mode::Default, Mode::Plan] {
            let got = [true, false].map(|it| shown(mode, command, it, &[]).decision);
            assert_eq!(got, [changed, as_added], "{command} in {mode:?}");
        }
        assert_eq!(shown(Mode::Yolo, command, true, &[]).decision, allow, "{command}");
        assert!(words("run_shell_command", &json!({ "command": command })).shows || changed == allow, "{command}");
    };
    check("git diff", ask, allow);
    check("git --no-pager diff -U5 --", ask, allow);
    check("git diff -- conf", ask, allow);
    check("git diff -- src", allow, allow);
    check("git diff -- ':/'", ask, allow);
    check("git diff --stat", allow, allow);
    check("git diff --stat -p", ask, allow);
    check("git diff --cached", ask, ask);
    check("git diff HEAD~1", ask, ask);
    check("git show", ask, ask);
    check("git show HEAD~2 -- conf", ask, ask);
    check("git show --stat HEAD", allow, allow);
    check("git log", allow, allow);
    check("git log --oneline -5", allow, allow);
    check("git log -p", ask, ask);
    check("git log --patch -- src", allow, allow);
    check("git status", allow, allow);
    check("git branch -a", allow, allow);
    let yes = [Grant::Commands { prefixes: vec!["git diff".to_owned()] }];
    let asked = shown(Mode::Default, "git diff", true, &[]);
    assert_eq!(asked.grant, Some(yes[0].clone()), "{}", asked.rule);
    assert_eq!(shown(Mode::Default, "git diff", true, &yes).decision, allow);
}
