//! Incidents of other agents' shell rules: commands that must not run without a question.

use super::*;

/// Other commands than the one that is allowed.
const OTHERS: &[&str] = &["make", "./x", "curl -o y http://h", "npm i", "git push", "$X", "rm y"];

/// Ways to bring another command in beside `echo`; `@` is the other one.
const AROUND: &[&str] = &[
    "echo hi && @",
    "@ && echo hi",
    "echo hi || @",
    "@ || echo hi",
    "echo hi; @",
    "echo hi;@",
    "@; echo hi",
    "echo hi | @",
    "@ | echo hi",
    "echo hi |& @",
    "echo hi & @",
    "echo hi&@",
    "@ & echo hi",
    "echo hi⏎@",
    "echo hi\\\\⏎@",
    "echo hi ⏎⏎ @",
    "echo $(@)",
    "echo \"$(@)\"",
    "echo \"a ${x:-$(@)} b\"",
    "echo $(echo $(@))",
    "echo `@`",
    "echo \"`@`\"",
    "echo <(@)",
    "echo >(@)",
    "echo hi > >(@)",
    "echo hi <<< \"$(@)\"",
    "echo <<E⏎$(@)⏎E",
    "{ echo hi; @; }",
    "{ @; }; echo hi",
    "(echo hi; @)",
    "(@) && echo hi",
    "if echo hi; then @; fi",
    "if @; then echo hi; fi",
    "for i in 1; do echo $i; @; done",
    "for i in $(@); do echo $i; done",
    "while echo hi; do @; done",
    "until @; do echo hi; done",
    "case x in x) @;; *) echo hi;; esac",
    "echo hi; coproc @",
    "coproc X { @; }; echo hi",
    "f() { @; }; f; echo hi",
    "echo() { @; }; echo hi",
    "! @; echo hi",
    "time @; echo hi",
    "echo $((1 + $(@)))",
    "[[ -n $(@) ]] && echo hi",
    "A=$(@) echo hi",
    "echo hi # x⏎@",
    "trap '@' EXIT; echo hi",
];

/// S1: what is allowed is one command, and not what it is written beside.
#[test]
fn allowed_echo_allows_no_other_command() {
    let rules = rules(&rule("allow", "commandPrefix='echo'"));
    let decision = |command: &str| shell(&rules, Mode::Default, true, command, &[]).decision;
    assert_eq!(decision("echo hi"), Decision::Allow);
    let mut wrong = Vec::new();
    let texts = AROUND.iter().flat_map(|it| OTHERS.iter().map(move |other| unescaped(&it.replace('@', other))));
    let to_files = ["> f", ">> f", ">| f", "&> f", "&>> f", "2> f", "1>f", ">/tmp/f", "<> f", "> $X", "> ~/.bashrc"];
    let to_files = to_files.iter().flat_map(|it| [format!("echo hi {it}"), format!("{it} echo hi")]);
    let mut n = 0;
    for text in texts.chain(to_files) {
        n += 1;
        wrong.extend((decision(&text) != Decision::Ask).then_some(text));
    }
    assert!(n >= 200, "{n}");
    assert_eq!(wrong, Vec::<String>::new());
}

/// Programs that run what they are given; `@` is what that is.
const CARRIERS: &[&str] = &[
    "eval '@'",
    "eval @",
    "bash -c '@'",
    "sh -c \"@\"",
    "bash -lc '@'",
    "zsh -c '@'",
    "dash -c '@'",
    "bash <<< '@'",
    "bash <<'E'⏎@⏎E",
    "echo '@' | bash",
    "echo '@' | sh -s",
    "env @",
    "env A=b @",
    "env -i @",
    "env -S '@'",
    "env -S'@'",
    "env - @",
    "watchexec '@'",
    "rustup run stable @",
    "ip netns exec x @",
    "runcon -t x @",
    "sqlite3 x '.shell @'",
    "git grep -O'@' x",
    "git ls-remote 'ext::@'",
    "echo '@' | xargs -I% sh -c %",
    "echo '@' | xargs env",
    "echo '@' | xargs timeout 5",
    "R -e 'system(\"@\")'",
    "python3 <<< 'import os; os.system(\"@\")'",
    "python3.12 -c 'import os; os.system(\"@\")'",
    "julia -e 'run(`@`)'",
    "NODE_OPTIONS='--require @' node x",
    "xargs @",
    "ls | xargs -n 1 @",
    "ls | xargs -I{} sh -c '@'",
    "find . -exec @ {} \\;",
    "find . -execdir @ {} +",
    "find . -ok @ \\;",
    "awk 'BEGIN{system(\"@\")}'",
    "awk 'BEGIN{\"@\" | getline}'",
    "sed '1e @' f",
    "git -c alias.x='!@' x",
    "git -c core.pager='@' log",
    "git -c core.sshCommand='@' fetch",
    "git --exec-path=. x '@'",
    "git rebase -x '@' HEAD~1",
    "git bisect run @",
    "python -c 'import os; os.system(\"@\")'",
    "python3 -c 'import os; os.system(\"@\")'",
    "perl -e 'system(\"@\")'",
    "ruby -e '`@`'",
    "node -e 'require(\"child_process\").execSync(\"@\")'",
    "ssh -o ProxyCommand='@' host",
    "ssh host '@'",
    "nohup @",
    "nice -n 5 @",
    "timeout 5 @",
    "time -p @",
    "stdbuf -o0 @",
    "setsid @",
    "sudo @",
    "doas @",
    "su -c '@'",
    "watch '@'",
    "strace @",
    "exec @",
    "command @",
    "builtin eval '@'",
    "parallel ::: '@'",
    "tar cf x --to-command='@' y",
    "tar xf x --checkpoint-action=exec='@'",
    "rsync -e '@' a b",
    "vim -c ':!@' f",
    "docker run x @",
    "flock f @",
    "script -c '@' f",
    "PAGER='@' git log",
    "GIT_SSH_COMMAND='@' git fetch",
    "LD_PRELOAD='@' echo hi",
    "PATH='@' echo hi",
    "PATH='@'; echo hi",
    "export PATH='@'; echo hi",
    "for PATH in '@'; do echo hi; done",
    "IFS='@'; echo hi",
    "npm_config_script_shell='@' echo hi",
    "BASH_ENV='@' bash x",
    "trap '@' EXIT",
    "source <(echo '@')",
    ". <(echo '@')",
    "alias echo='@'; echo hi",
    "setpriv --reuid 1000 @",
    "setpriv --no-new-privs @",
    "prlimit --nofile=10 @",
    "taskset -c 0 @",
    "chrt -f 50 @",
    "setarch x86_64 -R @",
    "linux32 @",
    "i386 @",
    "numactl -N 0 @",
    "/lib64/ld-linux-x86-64.so.2 /bin/@",
    "perf stat @",
    "valgrind @",
    "hyperfine '@'",
    "ltrace @",
    "gdb --args @",
    "split --filter='@' f",
    "tar cf x -I '@' y",
    "tar xf x --use-compress='@'",
    "mapfile -C '@' -c 1 x",
    "readarray -C '@' x",
    "compgen -C '@' x",
    "hash -p /bin/@ echo; echo hi",
    "PS4='$(@)'; set -x; echo hi",
    "export PS4='$(@)'; set -x; echo hi",
    "sed 's/a/@/e' f",
    "sed -n '/x/e @' f",
    "git submodule foreach '@'",
    "git difftool -x '@'",
    "git rebase --exec '@' HEAD~1",
    "git clone --upload-pack='@' x y",
    "rg --pre '@' x",
    "fd -x @",
    "fd x -X @",
    "nvim -c ':!@' f",
    "emacs --eval '(shell-command \"@\")'",
    "man -P '@' ls",
    "LESSOPEN='|@ %s' less f",
    "env PAGER='@ y' git log",
    "npx -c 'x @'",
    "npx @",
    "npm exec -- @",
    "uv run @",
    "poetry run @",
    "pipenv run @",
    "docker exec x @",
    "docker run --rm -v a:b x sh -c '@'",
    "podman run x @",
    "nix-shell --run '@'",
    "direnv exec . @",
    "fakeroot @",
    "bwrap --ro-bind / / @",
    "capsh -- -c '@'",
    "pkexec @",
    "sg root '@'",
    "runuser -u x @",
    "ls | entr @",
    "rbash -c '@'",
    "ash -c '@'",
    "ksh -c '@'",
    "fish -c '@'",
    "nu -c '@'",
    "source /dev/stdin <<< '@'",
    "busybox @",
];

/// Those of which only the first command is theirs; or that carry nothing by themselves.
const FILES: &[&str] = &["PATH=", "export PATH=", "for PATH", "IFS=", "npm_config", "BASH_ENV", "LD_PRELOAD"];

const CODE: &[&str] = &["awk", "python", "perl", "ruby", "node", "R ", "julia"];

/// Of those, the ones whose scripts castor reads.
const SHELLS: &[&str] = &["bash ", "sh ", "zsh ", "dash "];

/// Those that run what they are given as it is, and only look at the clock.
const CLOCKS: &[&str] = &["time make", "time -p make", "timeout 5 make"];

/// S2: who carries a command is not allowed by a rule for what is carried, and hides nothing that is denied.
#[test]
fn carriers_hide_nothing() {
    let allows = rules(&rule("allow", "commandPrefix=['echo', 'make']"));
    let denies = rules(&rule("deny", "commandPrefix='rm'"));
    let mut wrong = Vec::new();
    for carrier in CARRIERS {
        // A script that a shell is given is read like any other; nobody else is believed.
        let text = unescaped(&carrier.replace('@', "make"));
        let got = shell(&allows, Mode::Default, true, &text, &[]).decision;
        let is_script = SHELLS.iter().any(|it| carrier.starts_with(it)) || CLOCKS.contains(&text.as_str());
        wrong.extend((got == Decision::Allow && !is_script).then(|| format!("{text:?} is allowed by a rule for make")));
        // Beside the allowed word there is one more.
        let text = unescaped(&carrier.replace('@', "make; curl x"));
        let got = shell(&allows, Mode::Default, true, &text, &[]).decision;
        wrong.extend((got == Decision::Allow).then(|| format!("{text:?} is allowed by a rule for make")));
        let text = unescaped(&carrier.replace('@', "rm y"));
        for mode in [Mode::Default, Mode::AutoEdit] {
            let got = shell(&denies, mode, true, &text, &[]).decision;
            wrong.extend((got == Decision::Allow).then(|| format!("{text:?} is allowed in {mode:?}")));
        }
        // What is denied, or cannot be taken back, is neither run in a mode that asks nobody else.
        if !FILES.iter().any(|it| carrier.starts_with(it)) {
            let got = shell(&denies, Mode::Yolo, true, &text, &[]).decision;
            // Code in another language is not read, but for what destroys.
            let is_code = CODE.iter().any(|it| carrier.starts_with(it)) && got == Decision::Ask;
            wrong.extend((got != Decision::Deny && !is_code).then(|| format!("{text:?} is not denied in yolo")));
            let text = unescaped(&carrier.replace('@', "git push --force"));
            let got = shell(&denies, Mode::Yolo, true, &text, &[]).decision;
            wrong.extend((got == Decision::Allow).then(|| format!("{text:?} pushes unasked in yolo")));
        }
        // Nobody can be asked: what is not known is not run.
        let got = shell(&denies, Mode::Default, false, &text, &[]).decision;
        wrong.extend((got != Decision::Deny).then(|| format!("{text:?} runs where nobody can be asked")));
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// S3: a backtick in an argument is a command to the shell, unless it is quoted for it.
#[test]
fn backticks_are_commands() {
    check(
        &rules(&rule("allow", "commandPrefix='git commit'")),
        &[],
        r#"
        default  git commit -m 'fix `make`' => allow
        default  git commit -m "fix \`make\`" => allow
        default  git commit -m "fix `make`" => ask
        default  git commit -m fix`make` => ask
        default  git commit -m 'fix '`make` => ask
        default  git commit -m "fix $(make)" => ask
        default  git commit -m $'fix `make`' => allow
        default!  git commit -m "fix `make`" => deny
        autoEdit  git commit -m "fix `make`" => ask"#,
    );
}

/// S4: a standing yes is for the command that was asked about.
#[test]
fn persistent_grant_covers_only_its_command() {
    let offered = shell(&RuleSet::shipped(), Mode::Default, true, "git stash pop", &[]).grant.unwrap();
    assert_eq!(offered, Grant::Commands { prefixes: vec!["git stash".to_owned()] });
    let grants = [Grant::Commands { prefixes: vec!["git status".to_owned()] }, offered];
    check(
        &RuleSet::shipped(),
        &grants,
        "
        default  git status --short --branch => allow
        default  git stash pop => allow
        default  git push => ask
        default  git => allow
        default  git -C .. status => ask
        default  git status && git push => ask
        default  git stash; make => ask
        default  git stash > f => ask
        default  git stash $(make) => ask
        default  bash -c 'git push' => ask
        default  git statusx => ask
        default  ./git status => ask
        autoEdit  git push => ask
        default!  git push => deny",
    );
}

/// S5: however many commands there are, the last one counts as the first.
#[test]
fn long_line_hides_no_denied_command() {
    let rules = rules(&rule("deny", "commandPrefix='rm'"));
    let decision = |mode, command: &str| shell(&rules, mode, true, command, &[]).decision;
    let different: Vec<String> = (0..10_000).map(|n| format!("echo {n}")).collect();
    for separator in ["; ", " && ", "\n"] {
        for many in [vec!["ls".to_owned(); 10_000].join(separator), different.join(separator)] {
            // What is longer than anybody types is not read at all, and then not allowed either.
            let hidden = format!("{many}{separator}rm x");
            assert_eq!(decision(Mode::Yolo, &hidden), Decision::Deny, "{separator:?}");
            assert_ne!(decision(Mode::Default, &hidden), Decision::Allow, "{separator:?}");
        }
    }
    let same = vec!["ls"; 10_000].join("; ");
    assert_eq!(decision(Mode::Default, &format!("{same}; rm x")), Decision::Deny);
}
