//! The profile that macOS's `sandbox-exec` takes, as text.

use std::{fmt::Write, path::Path};

use super::Plan;

/// All may be read and run; writing, network and talking with other programs only as the plan says. Later rules win.
pub(super) fn profile(plan: &Plan, never_made: &[&str]) -> String {
    let mut res = String::from("(version 1)\n(allow default)\n(deny file-write*)\n");
    let quoted = |it: &Path| format!("{:?}", it.to_string_lossy());
    let mut subpath = |what: &str, it: &Path| _ = writeln!(res, "({what} file-write* (subpath {}))", quoted(it));
    for it in &plan.writable {
        subpath("allow", it);
    }
    for it in &plan.protected {
        subpath("deny", it);
    }
    // By name, so that what is not there cannot be made.
    for root in &plan.writable {
        for name in never_made.iter().filter(|it| **it != ".git") {
            subpath("deny", &root.join(name));
        }
        if !plan.fixed.contains(&root.join(".git")) {
            subpath("deny", &root.join(".git"));
        }
    }
    subpath("allow", &plan.tmp);
    for it in &plan.fixed {
        _ = writeln!(res, "(deny file-write-unlink (literal {}))", quoted(it));
    }
    for it in ["/dev/null", "/dev/zero", "/dev/tty", "/dev/ptmx"] {
        _ = writeln!(res, "(allow file-write* (literal {it:?}))");
    }
    res += "(allow file-write* (regex #\"^/dev/ttys[0-9]+$\"))\n";
    res += "(deny network-outbound (remote unix-socket))\n(deny process-info* (target others))\n";
    res += "(deny signal (target others))\n(allow signal (target same-sandbox))\n(deny mach-lookup (global-name-regex #\"^com\\.apple\\.(pboard|security)\"))\n";
    if !plan.network {
        res += "(deny network*)\n(allow network* (local ip \"localhost:*\"))\n(allow network* (remote ip \"localhost:*\"))\n";
    }
    res
}

#[cfg(test)]
mod tests {
    use super::{Plan, profile};

    #[test]
    fn says_what_the_plan_says() {
        let plan = Plan {
            writable: vec!["/w \"x\"".into()],
            tmp: "/t".into(),
            protected: vec!["/w \"x\"/.git/hooks".into()],
            fixed: vec!["/w \"x\"/.git".into()],
            ..Plan::default()
        };
        let text = profile(&plan, &[".git", ".zed"]);
        let lines: Vec<&str> = text.lines().collect();
        for line in [
            r#"(allow file-write* (subpath "/w \"x\""))"#,
            r#"(deny file-write* (subpath "/w \"x\"/.git/hooks"))"#,
            r#"(deny file-write* (subpath "/w \"x\"/.zed"))"#,
            r#"(allow file-write* (subpath "/t"))"#,
            r#"(deny file-write-unlink (literal "/w \"x\"/.git"))"#,
            "(deny network*)",
        ] {
            assert!(lines.contains(&line), "{line}\n{text}");
        }
        assert!(!text.contains(r#"(deny file-write* (subpath "/w \"x\"/.git"))"#));
        let at = |it: &str| lines.iter().position(|line| line.contains(it)).unwrap();
        assert!(at("(deny file-write*)") < at("(allow file-write* (subpath \"/w") && at("subpath \"/w") < at(".zed"));
        let online = profile(&Plan { network: true, ..Plan::default() }, &[]);
        assert!(!online.contains("(deny network*)") && online.contains("(deny network-outbound (remote unix-socket))"));
    }
}
