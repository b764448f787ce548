//! Files of secrets that a command comes upon without naming them, and those that it passes by.

use super::*;

#[test]
fn what_is_left_out_or_lies_elsewhere_is_not_come_upon() {
    let rules = rules("");
    let mut wrong = String::new();
    for (want, command) in TABLE {
        let args = json!({ "command": command });
        let secrets = ["/w/.env", "/w/sub/prod.env"].map(|it| AbsPath::new(it).unwrap()).to_vec();
        let targets = Targets { command: Some((*command).to_owned()), secrets, ..Targets::default() };
        let roots = [AbsPath::new("/w").unwrap()];
        let query = Query::new("run_shell_command", ToolKind::Execute, &args, &targets);
        let got = decide(&rules, &Query { mode: Mode::Yolo, roots: &roots, ..query });
        if word(got.decision) != *want {
            wrong += &format!("{command}: {} by {}\n", word(got.decision), got.rule);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

const TABLE: &[(&str, &str)] = &[
    ("ask", "grep -rn x ."),
    ("ask", "grep -rn x . --exclude=.env"),
    ("allow", "grep -rn x . --exclude=.env --exclude=prod.env"),
    ("allow", "grep -rn x src --exclude=.env"),
    ("allow", "grep -rn x sub --exclude='prod*'"),
    ("ask", "grep -rn x sub --exclude='*.toml'"),
    ("ask", "grep -rn x . --exclude=.env --exclude=prod.env --include='*.env' --include=.env"),
    ("ask", "grep -rn x . --exclude=\"$x\" --exclude=prod.env"),
    ("ask", "grep x --exclude=.env .env"),
    ("allow", "tar --exclude=.env --exclude=prod.env -czf a.tgz ."),
    ("ask", "tar --exclude=.env -czf a.tgz ."),
    ("ask", "tar -czf a.tgz . --exclude=.env --exclude=prod.env"),
    ("ask", "tar --anchored --exclude=.env --exclude=prod.env -czf a.tgz ."),
    ("ask", "tar --no-wildcards --exclude='.env*' --exclude='prod*' -czf a.tgz ."),
    ("allow", "find src -type f | xargs cat"),
    ("allow", "find src lib -type f -exec cat {} +"),
    ("ask", "find src sub -type f | xargs cat"),
    ("ask", "find . -type f | xargs cat"),
    ("ask", "find -type f | xargs cat"),
    ("ask", "find $x -type f | xargs cat"),
    ("ask", "cd sub && find src -type f | xargs cat"),
    ("ask", "find src/.. -type f | xargs cat"),
    ("ask", "git ls-files | xargs cat"),
];
