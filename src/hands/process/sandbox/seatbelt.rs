//! The sandbox profile for macOS's `sandbox-exec`.

use std::{fmt::Write, path::Path};

use super::SandboxPlan;
use castor_base::{guarded_names, sandbox::GIT_CONFIG};

/// All may be read and run; writing, network and talking with other programs only as the plan says. Later rules win.
pub(super) fn profile(plan: &SandboxPlan) -> String {
    let mut res = String::from("(version 1)\n(allow default)\n(deny file-write*)\n");
    let quoted = |it: &Path| format!("{:?}", it.to_string_lossy());
    let mut subpath = |what: &str, it: &Path| _ = writeln!(res, "({what} file-write* (subpath {}))", quoted(it));
    for it in &plan.writable {
        subpath("allow", it);
    }
    for it in plan.protected.iter().chain(&plan.links) {
        subpath("deny", it);
    }
    // By name, so that what is not there cannot be made.
    for root in &plan.writable {
        let names = guarded_names::CONFIG.names.iter().chain(&guarded_names::CONFIG.paths);
        for name in names.filter(|it| **it != ".git" && !it.starts_with('/')) {
            subpath("deny", &root.join(name));
        }
    }
    for git in plan.writable.iter().map(|it| it.join(".git")).filter(|it| !plan.fixed.contains(it)) {
        subpath("deny", &git);
    }
    for git in &plan.fixed {
        GIT_CONFIG.iter().for_each(|(name, _)| subpath("deny", &git.join(name)));
    }
    for git in &plan.inner {
        subpath("allow", git);
        GIT_CONFIG.iter().for_each(|(name, _)| subpath("deny", &git.join(name)));
    }
    for it in plan.notes.open.iter().chain([&plan.tmp]) {
        subpath("allow", it);
    }
    for it in &plan.fixed {
        _ = writeln!(res, "(deny file-write-unlink (literal {}))", quoted(it));
    }
    for it in ["/dev/null", "/dev/zero", "/dev/tty", "/dev/ptmx"] {
        _ = writeln!(res, "(allow file-write* (literal {it:?}))");
    }
    res += "(allow file-write* (regex #\"^/dev/ttys[0-9]+$\"))\n";
    res += "(deny network-outbound (remote unix-socket))\n(deny process-info* (target others))\n";
    res += "(deny signal (target others))\n(allow signal (target same-sandbox))\n(deny mach-lookup (global-name-regex #\"^com\\.apple\\.(pboard|security)\"))\n";
    if !plan.network.is_whole {
        res += "(deny network*)\n(allow network* (local ip \"localhost:*\"))\n(allow network* (remote ip \"localhost:*\"))\n";
    }
    res
}

#[cfg(test)]
mod tests {
    use super::{super::PlannedNetwork, SandboxPlan, profile};

    #[test]
    fn says_what_the_plan_says() {
        let plan = SandboxPlan {
            writable: vec!["/w \"x\"".into(), "/bare".into()],
            tmp: "/t".into(),
            protected: vec!["/w \"x\"/link".into()],
            fixed: vec!["/w \"x\"/.git".into()],
            ..SandboxPlan::default()
        };
        let text = profile(&plan);
        let lines: Vec<&str> = text.lines().collect();
        for line in [
            "(deny file-write*)",
            r#"(allow file-write* (subpath "/w \"x\""))"#,
            r#"(deny file-write* (subpath "/w \"x\"/link"))"#,
            r#"(deny file-write* (subpath "/w \"x\"/.git/hooks"))"#,
            r#"(deny file-write* (subpath "/w \"x\"/.git/commondir"))"#,
            r#"(deny file-write* (subpath "/w \"x\"/.zed"))"#,
            r#"(deny file-write* (subpath "/w \"x\"/.bashrc"))"#,
            r#"(deny file-write* (subpath "/w \"x\"/.github/workflows"))"#,
            r#"(deny file-write* (subpath "/bare/.git"))"#,
            r#"(allow file-write* (subpath "/t"))"#,
            r#"(deny file-write-unlink (literal "/w \"x\"/.git"))"#,
            "(deny network-outbound (remote unix-socket))",
            "(deny signal (target others))",
            "(deny network*)",
        ] {
            assert!(lines.contains(&line), "{line}\n{text}");
        }
        assert!(!text.contains(r#"(deny file-write* (subpath "/w \"x\"/.git"))"#));
        // Later rules win.
        let at = |it: &str| lines.iter().position(|line| line.contains(it)).unwrap();
        assert!(at("(deny file-write*)") < at("(allow file-write* (subpath \"/w") && at("subpath \"/w") < at(".zed"));
        assert!(at("(deny signal (target others))") < at("(allow signal (target same-sandbox))"));
        let online = profile(&SandboxPlan { network: PlannedNetwork::WHOLE, ..SandboxPlan::default() });
        assert!(!online.contains("(deny network*)") && online.contains("(deny network-outbound (remote unix-socket))"));
        let nothing = profile(&SandboxPlan { tmp: "/t".into(), ..SandboxPlan::default() });
        let allowed = nothing.lines().filter(|it| it.starts_with("(allow file-write* (subpath")).collect::<Vec<_>>();
        assert_eq!(allowed, [r#"(allow file-write* (subpath "/t"))"#]);
    }
}
