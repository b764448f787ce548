//! Disks and memory that a command names as files: whatever the program is, it may write to them.

use super::Signs;
use crate::engine::policy::{
    pieces,
    shell::{Command, Script, Word, WordKind, changed::names_in, is_language},
};

/// What a name in `/dev` begins with that is one.
const DEVICES: &[&str] = &[
    "disk", "dm-", "hd", "kmem", "loop", "mapper/", "md", "mem", "mmcblk", "mtd", "nbd", "nvme", "port", "rdisk", "sd",
    "sg", "sr", "vd", "xvd", "zvol", "$",
];
/// Programs that only look at what they are named, with one of these words; nothing listed: always.
const LOOKS: &[(&str, &[&str])] = &[
    ("[", &[]),
    ("[[", &[]),
    ("b2sum", &[]),
    ("basename", &[]),
    ("blkid", &[]),
    ("blockdev", &["--getbsz", "--getro", "--getsize64", "--getss", "--getsz", "--report"]),
    ("btrfs", &["df", "dump-super", "list", "show", "stats", "usage"]),
    ("cat", &[]),
    ("cd", &[]),
    ("cksum", &[]),
    ("cmp", &[]),
    ("declare", &[]),
    ("df", &[]),
    ("diff", &[]),
    ("dirname", &[]),
    ("du", &[]),
    ("dumpe2fs", &[]),
    ("echo", &[]),
    ("egrep", &[]),
    ("export", &[]),
    ("fdisk", &["--list", "-l", "-x"]),
    ("fgrep", &[]),
    ("file", &[]),
    ("find", &[]),
    ("findmnt", &[]),
    ("gh", &[]),
    ("git", &[]),
    ("glab", &[]),
    ("grep", &[]),
    ("hdparm", &["--direct", "-C", "-I", "-T", "-Tt", "-i", "-t", "-tT"]),
    ("head", &[]),
    ("hexdump", &[]),
    ("hexyl", &[]),
    ("iostat", &[]),
    ("less", &[]),
    ("local", &[]),
    ("losetup", &["--all", "--list", "-a", "-j", "-l"]),
    ("ls", &[]),
    ("lsblk", &[]),
    ("lsof", &[]),
    ("lvdisplay", &[]),
    ("lvs", &[]),
    ("man", &[]),
    ("md5sum", &[]),
    ("more", &[]),
    ("mountpoint", &[]),
    ("nvme", &["error-log", "fw-log", "get-log", "id-ctrl", "id-ns", "list", "list-ns", "show-regs", "smart-log"]),
    ("od", &[]),
    ("parted", &["--list", "-l", "print"]),
    ("printf", &[]),
    ("pvdisplay", &[]),
    ("pvs", &[]),
    ("qemu-img", &["check", "compare", "info", "map"]),
    ("readlink", &[]),
    ("readonly", &[]),
    ("realpath", &[]),
    ("rg", &[]),
    ("sfdisk", &["--dump", "--list", "-d", "-l"]),
    ("sha1sum", &[]),
    ("sha256sum", &[]),
    ("sha512sum", &[]),
    ("smartctl", &["--all", "--health", "--info", "--scan", "--xall", "-A", "-H", "-a", "-c", "-i", "-l", "-x"]),
    ("stat", &[]),
    ("strings", &[]),
    ("swapon", &["--show", "-s"]),
    ("test", &[]),
    ("tree", &[]),
    ("tune2fs", &["-l"]),
    ("typeset", &[]),
    ("udevadm", &["info"]),
    ("udisksctl", &["info", "status"]),
    ("vgdisplay", &[]),
    ("vgs", &[]),
    ("wc", &[]),
    ("xfs_info", &[]),
];

/// The device that a command names, unless it only looks.
pub(super) fn named(command: &Command, program: &str, script: &Script) -> Option<Signs> {
    // What those run is listed on its own.
    if command.wrapper || command.transparent {
        return None;
    }
    let word = command.args().iter().find(|it| names_one(it, program, script))?;
    let back = || command.args().iter().any(|it| it.text.starts_with('-') && it.text.contains('r'));
    let fine = match LOOKS.binary_search_by(|it| it.0.cmp(program)).ok().and_then(|at| LOOKS.get(at)) {
        Some((_, words)) => words.is_empty() || command.args().iter().any(|it| words.contains(&it.text.as_str())),
        // `xxd -r`
        None => program == "xxd" && !back(),
    };
    (!fine).then(|| Signs(vec![program.to_owned(), word.text.clone()]))
}

fn names_one(word: &Word, program: &str, script: &Script) -> bool {
    if word.text.contains("/dev/") {
        // A sentence is one only to what has a language of its own.
        let told = || !word.text.contains(char::is_whitespace) || is_language(program) || program.ends_with("sed");
        return is_in(&word.text) && told();
    }
    let set = || script.values.all.iter().any(|it| is_in(&it.word.text));
    let open = word.kind == WordKind::Expanded && !word.is_unknown() && set();
    // Where it is not told which of several it is, it may be that.
    let named = |it: &str| script.values.all.iter().any(|set| set.name.as_deref() == Some(it) && is_in(&set.word.text));
    open && match pieces::told(word, script) {
        Some(told) => told.iter().any(|it| is_in(&it.text)),
        None => names_in(&word.text).any(named),
    }
}

/// `/dev/sda`, `of=/dev/sda`, `-o/dev/sda`; not `rootfs/dev/sda`.
fn is_in(text: &str) -> bool {
    text.match_indices("/dev/").any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default();
        let stuck = before.len() == 2 && before.starts_with('-');
        // `~/dev/sdk` and `"$HOME"/dev/sdk` are folders of somebody.
        let plain = before.trim_end_matches('"');
        let begins = plain.bytes().all(|it| it == b'/') || plain.ends_with(['=', ':', ',', '(', '\'', ' ', '@', '>']);
        let path = normal_path(text.get(at..).unwrap_or_default());
        let name = path.strip_prefix("/dev/").unwrap_or_default();
        (stuck || begins) && DEVICES.iter().any(|it| name.starts_with(it))
    })
}

/// Where output must not go.
pub(in crate::engine::policy) fn is_device(text: &str) -> bool {
    let plain = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty", "/dev/zero"];
    let text = normal_path(text);
    let takes_off = || ["/delete", "/remove"].iter().any(|it| text.ends_with(it));
    text == "/proc/sysrq-trigger"
        || text.starts_with("/sys/") && takes_off()
        || text.starts_with("/dev/")
            && !plain.contains(&text.as_str())
            && !text.starts_with("/dev/fd/")
            && !text.starts_with("/dev/shm/")
}

/// `//dev/sda`, `/dev/shm/../sda`
fn normal_path(text: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in text.split('/').filter(|it| !matches!(*it, "" | ".")) {
        match name {
            ".." => _ = names.pop(),
            _ => names.push(name),
        }
    }
    let start = if text.starts_with('/') { "/" } else { "" };
    format!("{start}{}", names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::LOOKS;

    #[test]
    fn those_that_look_are_sorted() {
        assert!(LOOKS.is_sorted_by_key(|it| it.0));
    }
}
