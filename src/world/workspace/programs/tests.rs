//! Lines in, files out.

use std::fs;

use serde_json::json;

use super::{Named, files};
use crate::{
    base::path::AbsPath,
    world::{disk, secrets::Env},
};

const FILES: &[&str] = &[
    "x.sh",
    "my script.sh",
    "scripts/m.sh",
    "scripts/sub/n.sh",
    "hooks/a.sh",
    "hooks/b.sh",
    "hooks/data.json",
    "lib/r.js",
    "src/one.ts",
    "src/deep/two.ts",
];

struct Ground {
    root: AbsPath,
    env: Env,
    _keep: tempfile::TempDir,
}

impl Ground {
    #[allow(clippy::disallowed_methods)]
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let root = disk::real_path(&AbsPath::new(keep.path()).unwrap()).unwrap().join("w");
        for it in FILES {
            let file = root.join(it);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, it).unwrap();
        }
        let env = Env::from_pairs([("HOME", "/h"), ("TOOLS", "scripts")]);
        Self { root, env, _keep: keep }
    }

    fn found(&self, settings: &serde_json::Value) -> String {
        let Named { files, more, .. } = files(settings, &self.root, &self.env);
        let mut there: Vec<String> = files
            .iter()
            .filter(|it| disk::metadata(it).is_ok_and(|it| !it.is_dir))
            .map(|it| it.shown_from(&self.root))
            .collect();
        there.sort();
        there.extend(more.map(|it| format!("({it})")));
        there.join(", ")
    }

    fn hook(&self, line: &str) -> String {
        self.found(&json!({"hooks": {"BeforeTool": [{"hooks": [{"command": line, "env": {"OF_HOOK": "hooks"}}]}]}}))
    }
}

#[test]
fn a_line_names_what_its_shell_would_run() {
    let ground = Ground::new();
    let check = |line: &str, want: &str| assert_eq!(ground.hook(line), want, "{line}");
    check(r#""$CLAUDE_PROJECT_DIR"/x.sh"#, "x.sh");
    check(r#""${GEMINI_PROJECT_DIR}/x.sh""#, "x.sh");
    check("$CASTOR_PROJECT_DIR/'x.sh'", "x.sh");
    check(r#"bash "${CLAUDE_PROJECT_DIR:-.}/hooks/a.sh""#, "hooks/a.sh");
    check("'./my script.sh' --now", "my script.sh");
    check(r"./my\ script.sh", "my script.sh");
    check("./x'.s'h", "x.sh");
    check("cd scripts && ./m.sh", "scripts/m.sh");
    check("cd scripts; cd sub; sh n.sh", "scripts/sub/n.sh");
    check(r#"cd "$CLAUDE_PROJECT_DIR/scripts" && exec ./m.sh"#, "scripts/m.sh");
    check("(cd scripts/sub || exit 1; ./n.sh)", "scripts/sub/n.sh");
    check("env -C scripts ./m.sh", "scripts/m.sh");
    check("bash -c './x.sh'", "x.sh");
    check(r#"sh -c "cd scripts && bash -c './m.sh'""#, "scripts/m.sh");
    check("d=scripts; $d/m.sh", "scripts/m.sh");
    check("$TOOLS/m.sh && $OF_HOOK/a.sh", "hooks/a.sh, scripts/m.sh");
    check("echo $(./x.sh) `cat hooks/a.sh`", "hooks/a.sh, x.sh");
    check("$(git rev-parse --show-toplevel)/x.sh", "x.sh");
    check("$(command -v node) --import=./lib/r.js -r./x.sh", "lib/r.js, x.sh");
    check("sh < x.sh | tee out", "x.sh");
    check("date >> x.sh 2>&1; true >x.sh &>x.sh", "");
    check("exec 3<>x.sh", "x.sh");
    check("# don't\n./x.sh", "x.sh");
    check("cat <<EOF\nit's\nEOF\n'./my script.sh' 'and'", "my script.sh");
    check("/usr/bin/true && ls ~/x.sh", "");
}

#[test]
fn what_a_line_does_not_say_is_all_that_it_may_mean() {
    let ground = Ground::new();
    let check = |line: &str, want: &str| assert_eq!(ground.hook(line), want, "{line}");
    let all = FILES.len();
    check("bash hooks/*.sh", "hooks/a.sh, hooks/b.sh");
    check("for it in hooks/[ab].sh; do bash \"$it\"; done", "hooks/a.sh, hooks/b.sh");
    check("for it in hooks/*; do . \"$it\"; done", "hooks/a.sh, hooks/b.sh, hooks/data.json");
    check("hooks/{a,b}.sh", "hooks/a.sh, hooks/b.sh");
    check(r#""$(dirname "$0")"/x.sh"#, "x.sh");
    check("x=$(ls | head -1); scripts/$x", "scripts/m.sh, scripts/sub/n.sh");
    check("cd \"$(mktemp -d)/../scripts\" && ./m.sh", "scripts/m.sh");
    check(r"$'\x78'.sh", "hooks/a.sh, hooks/b.sh, my script.sh, scripts/m.sh, scripts/sub/n.sh, x.sh");
    for it in
        ["read x; sh $x", "$(cat hooks/name)", "ls | xargs -n1 bash", "find . -exec sh {} \\;", "timeout 5 bash $1"]
    {
        assert_eq!(ground.hook(it).split(", ").count(), all, "{it}");
    }
    // They look at files, and run none.
    check("prettier --write src/**/*.ts; npx eslint \"$1\"; jq .x \"$2\"", "");
    check("cat src/*.ts", "src/deep/two.ts, src/one.ts");
    let long = format!("sh -c '{}'", "a b ".repeat(3000));
    check(&long, "(more words than are looked at)");
}

#[test]
#[allow(clippy::disallowed_methods)]
fn more_files_than_are_looked_at_are_told() {
    let ground = Ground::new();
    for it in 0..=200 {
        fs::write(ground.root.join(format!("hooks/{it}.sh")), "").unwrap();
    }
    assert!(
        ground
            .hook("for it in hooks/*.sh; do sh $it; done")
            .ends_with("(words that may mean more files than are looked at)")
    );
    assert_eq!(ground.hook("sh hooks/a*.sh"), "hooks/a.sh");
}

#[test]
fn the_words_of_servers_are_lines_only_where_a_shell_reads_them() {
    let ground = Ground::new();
    let server =
        |args: serde_json::Value| ground.found(&json!({"mcpServers": {"s": {"command": "run", "args": args}}}));
    assert_eq!(server(json!(["-c", "'./x.sh'"])), "x.sh");
    assert_eq!(server(json!(["cd scripts && './m.sh'"])), "scripts/m.sh");
    assert_eq!(server(json!(["$CLAUDE_PROJECT_DIR/x.sh"])), "x.sh");
    assert_eq!(server(json!(["my script.sh", "--only=src/*.ts", "hooks/*"])), "my script.sh");
}

/// Who obeys a file that no word names.
#[test]
#[allow(clippy::disallowed_methods)]
fn what_a_program_obeys_is_found_by_its_name() {
    let ground = Ground::new();
    for (file, text) in [
        ("Makefile", ""),
        ("justfile", ""),
        ("package.json", r#"{"scripts": {}}"#),
        ("Cargo.toml", ""),
        (".cargo/config.toml", ""),
        ("pyproject.toml", ""),
        ("sub/package.json", "{}"),
        ("lint/package.json", r#"{"main": "lib/start"}"#),
        ("lint/lib/start.js", ""),
        ("bare/index.js", ""),
        ("tools/__init__.py", ""),
        ("tools/check.py", ""),
        ("tools/pkg/__main__.py", ""),
        ("app/__main__.py", ""),
        ("far/mod.py", ""),
        ("bin/acme", ""),
        ("cmd/x/main.go", ""),
    ] {
        let file = ground.root.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let check = |line: &str, want: &str| assert_eq!(ground.hook(line), want, "{line}");
    check("make check", "Makefile");
    check("make -C sub check", "Makefile");
    check("just lint", "justfile");
    check("npm run check", "package.json");
    check("npm --prefix sub run check", "package.json, sub/package.json");
    check("npm run check --prefix=sub", "package.json, sub/package.json");
    check("cd sub && yarn check", "package.json, sub/package.json");
    check("timeout 9 npx --yes @acme/lint", "package.json");
    check("cargo xtask check", ".cargo/config.toml, Cargo.toml");
    check("cargo fmt", ".cargo/config.toml");
    check("/usr/bin/python3.12 -m tools.check", "tools/__init__.py, tools/check.py");
    check("python3 -m tools.pkg", "tools/__init__.py, tools/pkg/__main__.py");
    check("python3 -c 'from tools import check; check.run()'", "tools/__init__.py");
    check("python3 app --now", "app/__main__.py");
    check("PYTHONPATH=far python3 -mmod", "far/mod.py");
    check("uv run acme", "pyproject.toml");
    check("node lint", "lint/lib/start.js, lint/package.json");
    check("node ./bare/", "bare/index.js");
    check("node lib/r", "lib/r.js");
    check("node -e \"require('./lib/r')\"", "lib/r.js");
    check("go run ./cmd/x", "cmd/x/main.go");
    check("PATH=./bin:$PATH acme", "bin/acme");
    check("bash < x.sh", "x.sh");
    check("env X=1 ./x.sh", "x.sh");
    let server = |it: serde_json::Value| ground.found(&json!({"mcpServers": {"s": it}}));
    assert_eq!(server(json!({"command": "npm", "args": ["start"], "cwd": "sub"})), "package.json, sub/package.json");
    assert_eq!(server(json!({"command": "node", "args": ["lint"]})), "lint/lib/start.js, lint/package.json");
    assert_eq!(server(json!({"command": "python", "args": ["-m", "mod"], "env": {"PYTHONPATH": "far"}})), "far/mod.py");
    assert_eq!(server(json!({"command": "acme", "env": {"PATH": "./bin"}})), "bin/acme");
    assert_eq!(
        server(json!({"command": "uvicorn", "args": ["tools.check:start"]})),
        "tools/__init__.py, tools/check.py"
    );
    let with_env = json!({"hooks": {"BeforeTool": [{"hooks": [{"command": "true", "env": {"BASH_ENV": "./x.sh"}}]}]}});
    assert_eq!(ground.found(&with_env), "x.sh");
}

#[test]
fn what_is_not_watched_is_told() {
    let ground = Ground::new();
    let check = |line: &str, in_turn: &str, unseen: &str| {
        let named = files(&json!({"hooks": {"command": line}}), &ground.root, &ground.env);
        let all = |it: std::collections::BTreeSet<String>| it.into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!((all(named.in_turn).as_str(), all(named.unseen).as_str()), (in_turn, unseen), "{line}");
    };
    check("sh ./x.sh && echo done | tee out; exit 0", "", "");
    check("make check", "", "make");
    check("acme-lint --all", "", "acme-lint");
    check("python3 -m check", "", "python3");
    check("node lib/r", "lib/r.js", "");
    check("if jq -e .x 2>&1; then ./x.sh >/dev/null; fi", "", "");
}

/// What would run as soon as somebody puts it there.
#[test]
fn what_is_not_there_yet_is_known() {
    let ground = Ground::new();
    let would_run = |line: &str| {
        let named = files(&json!({"hooks": {"command": line}}), &ground.root, &ground.env);
        let all: Vec<String> = named.would_run.iter().map(|it| it.shown_from(&ground.root)).collect();
        all.join(" ")
    };
    assert_eq!(would_run("[ -x ./local.sh ] && ./local.sh; cat notes.txt; echo hi"), "local.sh");
    assert_eq!(would_run(". ./env.sh"), "env.sh");
    assert_eq!(would_run("just x"), ".justfile Justfile justfile");
}

/// A repository whose settings would keep castor looking for minutes is given up on, and does not count.
#[test]
fn looking_has_an_end() {
    let ground = Ground::new();
    let folders: String = (0..30).map(|it| format!("cd d{it}; ")).collect();
    let words: String = (0..300).map(|it| format!(" m{it}.a.b.c.d")).collect();
    let named =
        files(&json!({"hooks": {"command": format!("{folders} python3 node{words}")}}), &ground.root, &ground.env);
    assert!(named.more.is_some() && named.files.len() <= super::places::MAX_LOOKS);
}

/// Whoever is asked about a folder reads no more of the environment than the folder wrote.
#[test]
fn what_variables_hold_is_not_told() {
    let ground = Ground::new();
    let env = Env::from_pairs([("HOME", "/h"), ("AWS_SECRET_ACCESS_KEY", "canary"), ("OWN", "canary --x")]);
    let said = |settings: &serde_json::Value| {
        let Named { unseen, in_turn, .. } = files(settings, &ground.root, &env);
        unseen.into_iter().chain(in_turn).collect::<Vec<_>>().join(", ")
    };
    let server = |it: serde_json::Value| said(&json!({"mcpServers": {"s": it}}));
    assert_eq!(server(json!({"command": "acme", "env": {"K": "$AWS_SECRET_ACCESS_KEY", "L": "a $OWN"}})), "acme");
    assert_eq!(server(json!({"command": "acme", "args": ["$OWN", "a", "-c", "$OWN"]})), "acme");
    assert_eq!(server(json!({"command": "$OWN"})), "$OWN");
    let hook = |it: serde_json::Value| said(&json!({"hooks": {"AfterAgent": [{"hooks": [it]}]}}));
    for line in ["$AWS_SECRET_ACCESS_KEY x", "true && ${OWN}", "sh -c '$OWN x'", "x$AWS_SECRET_ACCESS_KEY y"] {
        assert_eq!(hook(json!({"command": line})), "a program that a variable names", "{line}");
    }
    let own = json!({"command": "acme $OWN", "env": {"K": "$OWN"}});
    // What is a line by itself may be run as one.
    assert_eq!(hook(own), "a program that a variable names, acme");
    assert_eq!(said(&json!({"tools": {"discoveryCommand": "$OWN"}})), "a program that a variable names");
}
