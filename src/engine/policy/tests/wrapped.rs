//! What is asked about in yolo is asked about in whatever it is put: the rows of `commands.txt`, in all that runs them.

use super::*;

/// How a command is run by another, or by the grammar; what is quoted is one word of a shell.
const WAYS: &[(&str, &str)] = &[
    ("and", "true && {}"),
    ("first", "{}\nls"),
    ("subshell", "(\n{}\n)"),
    ("if", "if true; then\n{}\nfi"),
    ("while", "while true; do\n{}\nbreak; done"),
    ("for", "for i in 1 2; do\n{}\ndone"),
    ("case", "case x in x)\n{}\n;; esac"),
    ("function", "f() {\n{}\n}\nf"),
    ("value", "x=$(\n{}\n)"),
    ("words", "echo \"$(\n{}\n)\""),
    ("pipe", "{\n{}\n} | cat"),
    ("background", "{\n{}\n} &"),
    ("bash", "bash -c 'QUOTED'"),
    ("login", "timeout 5 bash -lc 'QUOTED'"),
    ("eval", "eval 'QUOTED'"),
    ("variable", "C='QUOTED'\neval \"$C\""),
    ("trap", "trap 'QUOTED' EXIT"),
    ("input", "bash <<'XEOF'\n{}\nXEOF"),
    ("piped", "echo 'QUOTED' | bash"),
    ("script", "cat > w.sh <<'XEOF'\n{}\nXEOF\nbash w.sh"),
    ("sourced", "true && echo 'QUOTED' > w.sh && . ./w.sh"),
    ("started", "cat > w <<'XEOF'\n#!/usr/bin/env bash\n{}\nXEOF\nchmod +x w && ./w"),
    ("python", "python3 -c 'import os; os.system(\"\"\"QUOTED \"\"\")'"),
    ("python file", "cat > w.py <<'XEOF'\nimport os\nos.system(\"\"\"{} \"\"\")\nXEOF\npython3 w.py"),
    ("elsewhere", "ssh h 'QUOTED'"),
    ("container", "docker exec c sh -c 'QUOTED'"),
];

/// What means something else there: another folder, another machine, another language's escapes.
fn differs(way: &str, command: &str) -> bool {
    match way {
        "python" | "python file" => ["\\x", "\\1"].iter().any(|it| command.contains(it)) || command.contains("\"\"\""),
        "elsewhere" => command.contains('>') || command.contains(".vscode") || command.contains("~/"),
        _ => false,
    }
}

/// How many ways each row is put into; `CASTOR_WRAPPINGS=26` for all.
#[expect(clippy::disallowed_methods, reason = "how much is tried, not what castor does")]
fn ways_of_each() -> usize {
    std::env::var("CASTOR_WRAPPINGS").ok().and_then(|it| it.parse().ok()).unwrap_or(4)
}

/// The rows that are asked about by the shipped rules alone.
fn asked_about() -> Vec<String> {
    let mut shipped = true;
    let asked = include_str!("commands.txt").lines().filter_map(|line| {
        match line.split_whitespace().next() {
            Some("==") => shipped = true,
            Some("rule" | "grant") => shipped = false,
            _ => (),
        }
        line.strip_prefix("yolo  ")?.strip_suffix(" => ask").filter(|_| shipped)
    });
    asked.map(|it| unescaped(it.trim())).collect()
}

#[test]
fn what_is_asked_about_is_asked_about_in_every_wrapping() {
    let (shipped, rows) = (rules(""), asked_about());
    assert!(rows.len() > 1_700, "{}", rows.len());
    let mut wrong = String::new();
    for (nth, command) in rows.iter().enumerate() {
        for more in 0..ways_of_each() {
            let Some((name, way)) = WAYS.get((nth + more * 7) % WAYS.len()) else { continue };
            let whole = way.replace("{}", command).replace("QUOTED", &command.replace('\'', r"'\''"));
            let decision = shell(&shipped, Mode::Yolo, true, &whole, &[]).decision;
            if decision == Decision::Allow && !differs(name, command) {
                wrong += &format!("{name}: {command}\n");
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
