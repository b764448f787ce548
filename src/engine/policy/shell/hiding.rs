//! Commands that run what nobody reads in their words, and which of them read it from their input.

use super::{Word, base_name, is_shell};

/// Commands that run what other words, files or their input say.
pub(super) const HIDING: &[&str] = &[
    "alias",
    "ansible",
    "ash",
    "at",
    "batch",
    "bind",
    "brush",
    "busybox",
    "bwrap",
    "capsh",
    "chroot",
    "cmd",
    "cmd.exe",
    "complete",
    "concurrently",
    "cpulimit",
    "crontab",
    "csh",
    "dbus-run-session",
    "elvish",
    "enable",
    "entr",
    "expect",
    "firejail",
    "fish",
    "flock",
    "gdb",
    "hyperfine",
    "ksh",
    "ksh93",
    "lldb",
    "ltrace",
    "mksh",
    "nodemon",
    "nsenter",
    "nu",
    "osh",
    "parallel",
    "perf",
    "posh",
    "powershell",
    "proot",
    "pwsh",
    "rbash",
    "rc",
    "reflex",
    "rlwrap",
    "runuser",
    "screen",
    "script",
    "sem",
    "setarch",
    "sg",
    "ssh",
    "start-stop-daemon",
    "strace",
    "su",
    "systemd-run",
    "tcsh",
    "tmux",
    "toybox",
    "unshare",
    "uxterm",
    "valgrind",
    "watch",
    "watchexec",
    "x86_64",
    "xonsh",
    "xterm",
    "xvfb-run",
    "yash",
];

/// Shells in whose languages nobody here reads scripts.
const OTHER_SHELLS: &[&str] = &[
    "ash",
    "brush",
    "csh",
    "elvish",
    "fish",
    "ksh",
    "ksh93",
    "mksh",
    "nu",
    "osh",
    "posh",
    "powershell",
    "pwsh",
    "rbash",
    "rc",
    "tcsh",
    "xonsh",
    "yash",
];

/// `curl x | ssh host sh`, `… | flock x bash -s`: it reads what it runs.
pub(in crate::engine::policy) fn ends_in_shell(args: &[Word]) -> bool {
    let name = args.iter().rev().find(|it| !it.text.starts_with('-')).and_then(Word::literal).map(base_name);
    let shell = name.is_some_and(|it| is_shell(it) || OTHER_SHELLS.contains(&it));
    shell && !args.iter().rev().take_while(|it| it.text.starts_with('-')).any(|it| it.text.ends_with("c"))
}

/// Those of the hiding ones that read their commands, unless their words say them.
pub(super) fn reads_commands(name: &str, args: &[Word]) -> bool {
    const MORE: &[&str] = &["chroot", "nsenter", "runuser", "screen", "script", "su", "unshare"];
    match name {
        "at" | "batch" => true,
        "parallel" | "sem" => !args.iter().any(|it| it.text.starts_with(":::")) || puts_together(args),
        "busybox" | "toybox" => args.len() < 2 || ends_in_shell(args),
        _ => {
            let alone = || args.iter().all(|it| it.text.starts_with('-'));
            ends_in_shell(args) || (OTHER_SHELLS.contains(&name) || MORE.contains(&name)) && alone()
        }
    }
}

/// `parallel git reset --h{} ::: ard`, `parallel g{} push ::: it`: it makes options and names.
fn puts_together(args: &[Word]) -> bool {
    let program = args.iter().find(|it| !it.text.starts_with('-'));
    let option = |it: &Word| it.text.starts_with('-') && it.text.contains('{');
    program.is_some_and(|it| it.text.contains('{') && it.text != "{}") || args.iter().any(option)
}
