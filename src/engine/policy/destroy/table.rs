//! The destructive class as data: what cannot be taken back, by program, sub-command and option.

mod databases;
mod elsewhere;
mod published;

use super::checks;
use crate::engine::policy::shell::Word;

/// Folders whose content can be made again: what is deleted in them is no loss.
pub(super) const BUILD: &[&str] = &[
    "target",
    "node_modules",
    "dist",
    "build",
    "out",
    "__pycache__",
    "coverage",
    "htmlcov",
    "venv",
    "DerivedData",
    "Pods",
    "_build",
    "_site",
    "bazel-out",
    "cdk.out",
    "dist-newstyle",
    "elm-stuff",
    "playwright-report",
    "storybook-static",
    "test-results",
    "zig-cache",
    "zig-out",
    ".angular",
    ".astro",
    ".aws-sam",
    ".cache",
    ".dart_tool",
    ".docusaurus",
    ".eggs",
    ".expo",
    ".gradle",
    ".hypothesis",
    ".mypy_cache",
    ".next",
    ".nox",
    ".nuxt",
    ".nyc_output",
    ".output",
    ".parcel-cache",
    ".pytest_cache",
    ".ruff_cache",
    ".sass-cache",
    ".serverless",
    ".stack-work",
    ".svelte-kit",
    ".tox",
    ".turbo",
    ".venv",
    ".vite",
    ".zig-cache",
];

/// Endings of files that are made beside their sources.
pub(super) const MADE: &[&str] = &[".class", ".egg-info", ".o", ".pyc", ".pyo", ".tsbuildinfo", ".DS_Store"];

/// When a command that begins like its row destroys.
pub(super) enum When {
    Always,
    /// With a short option of these letters, or one of these long ones, which may be abbreviated.
    Options(&'static str, &'static [&'static str]),
    /// With one of these words anywhere behind.
    Words(&'static [&'static str]),
    /// With a word behind that begins so.
    Begins(&'static [&'static str]),
    /// Unless one of these is among the words: they only look.
    Unless(&'static [&'static str]),
    /// Unless all its operands lie in build folders.
    OutsideBuild,
    /// What decides, if it does.
    Holds(for<'a> fn(&'a [Word]) -> Option<&'a str>),
    /// The same, unless all of git's paths lie in build folders.
    HoldsBeside(for<'a> fn(&'a [Word]) -> Option<&'a str>),
    /// The same, unless all its operands before the first option do.
    HoldsOutside(for<'a> fn(&'a [Word]) -> Option<&'a str>),
    /// Its last operand, or all of them, lie outside of the roots.
    OntoOutside,
    /// Some operand may lie outside of the roots.
    Outside,
}

/// Words by which such a program takes something off the system.
const REMOVES: &[&str] = &["autopurge", "autoremove", "erase", "purge", "remove"];

/// One row; a program may have several.
pub(super) struct Row {
    pub program: &'static str,
    /// Words behind the program's own options.
    pub sub: &'static [&'static str],
    pub when: When,
}

/// All of them.
pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    [OWN, published::ROWS, elsewhere::ROWS, databases::ROWS].into_iter().flatten()
}

const fn row(program: &'static str, sub: &'static [&'static str], when: When) -> Row {
    Row { program, sub, when }
}

/// `commit --amend` is not in here: what it replaces stays in the reflog, and only a forced push makes it lasting. Nor is
/// `branch -d`, which refuses what is not merged.
#[rustfmt::skip]
const OWN: &[Row] = {
    use When::{Always, Begins, Holds, HoldsBeside, HoldsOutside, OntoOutside, Options, Outside, OutsideBuild, Unless, Words};
    &[
        // Files. `rmdir` takes empty folders only.
        row("rm", &[], OutsideBuild),
        row("unlink", &[], OutsideBuild),
        row("zf_rm", &[], OutsideBuild),
        row("srm", &[], Always),
        row("rimraf", &[], OutsideBuild),
        row("del-cli", &[], OutsideBuild),
        row("cmake", &["rm"], OutsideBuild),
        row("cmake", &["remove"], OutsideBuild),
        row("cmake", &["remove_directory"], OutsideBuild),
        row("shred", &[], Always),
        // Inside it is no more than `> file`.
        row("truncate", &[], Outside),
        row("find", &[], HoldsOutside(checks::find)),
        row("gfind", &[], HoldsOutside(checks::find)),
        row("bfs", &[], HoldsOutside(checks::find)),
        row("wipe", &[], Always),
        row("safe-rm", &[], OutsideBuild),
        row("fdupes", &[], Options("d", &["--delete"])),
        row("mv", &[], OntoOutside),
        row("rsync", &[], Begins(&["--del", "--remove-source"])),
        row("rclone", &[], Words(&["purge", "delete", "deletefile", "sync", "rmdirs", "cleanup"])),
        row("tar", &[], Begins(&["--remove-files"])),
        row("zip", &[], Options("m", &["--move"])),
        row("7z", &[], Begins(&["-sdel"])),
        row("tee", &[], Holds(checks::device)),
        row("cp", &[], Holds(checks::device)),
        // History.
        row("git", &["reset"], Options("", &["--hard", "--merge"])),
        row("git", &["rebase"], Unless(&["--abort", "--continue", "--quit", "--skip", "--show-current-patch"])),
        row("git", &["filter-branch"], Always),
        row("git", &["filter-repo"], Always),
        row("git", &["reflog", "expire"], Always),
        row("git", &["reflog", "delete"], Always),
        row("git", &["gc"], Begins(&["--prune", "--aggressive"])),
        row("git", &["prune"], Always),
        row("git", &["branch"], Options("CDMf", &["--force"])),
        row("git", &["tag"], Options("df", &["--delete", "--force"])),
        row("git", &["update-ref"], Always),
        row("git", &["read-tree"], Options("u", &["--reset"])),
        row("git", &["checkout-index"], Options("f", &["--force"])),
        row("git", &["send-pack"], Options("f", &["--force", "--mirror"])),
        row("git", &["send-pack"], Begins(&["+", ":"])),
        row("git", &["checkout"], Holds(checks::forced_checkout)),
        row("git", &["checkout"], HoldsBeside(checks::checkout)),
        row("git", &["switch"], Options("fC", &["--force", "--force-create", "--discard-changes"])),
        row("git", &["restore"], HoldsBeside(checks::restore)),
        row("git", &["stash", "drop"], Always),
        row("git", &["stash", "clear"], Always),
        row("git", &["clean"], HoldsBeside(checks::clean)),
        row("git", &["rm"], Holds(checks::git_rm)),
        row("git", &["worktree", "remove"], Always),
        row("git", &["submodule", "deinit"], Always),
        row("git", &["push"], Options("fd", &["--force", "--force-with-lease", "--mirror", "--delete", "--prune"])),
        row("git", &["push"], Begins(&["+", ":"])),
        row("git", &["fetch"], Holds(checks::fetch)),
        row("git", &["config"], Holds(checks::config)),
        row("git", &["remote"], Begins(&["--mirror"])),
        row("git", &["subtree"], Options("f", &["--force"])),
        row("bfg", &[], Always),
        row("java", &[], Holds(checks::bfg)),
        row("git", &["pull"], Options("f", &["--force"])),
        row("git", &["pull"], Holds(checks::fetch)),
        row("git", &["worktree", "add"], Options("B", &[])),
        row("git", &["symbolic-ref"], Options("d", &["--delete"])),
        row("git", &["reflog", "drop"], Always),
        row("git", &["submodule", "update"], Options("f", &["--force"])),
        row("git", &["lfs", "migrate"], Always),
        row("git", &["fast-import"], Options("", &["--force"])),
        row("git", &["apply"], Options("R", &["--reverse"])),
        row("hg", &["strip"], Always),
        row("hg", &["histedit"], Always),
        row("hg", &["rebase"], Always),
        row("hg", &["rollback"], Always),
        row("hg", &["up"], Options("C", &["--clean"])),
        row("hg", &["checkout"], Options("C", &["--clean"])),
        row("svn", &["cleanup"], Begins(&["--remove"])),
        row("p4", &[], Words(&["revert", "obliterate"])),
        row("hg", &["purge"], Always),
        row("hg", &["revert"], Always),
        row("hg", &["update"], Options("C", &["--clean"])),
        row("svn", &["revert"], Always),
        // Disks, processes, accounts, permissions.
        row("dd", &[], Always),
        row("fdisk", &[], Unless(&["-l", "--list"])),
        row("sfdisk", &[], Unless(&["-l", "--list", "-d", "--dump"])),
        row("cfdisk", &[], Always),
        row("gdisk", &[], Always),
        row("sgdisk", &[], Always),
        row("parted", &[], Unless(&["-l", "--list"])),
        row("wipefs", &[], Always),
        row("mke2fs", &[], Always),
        row("badblocks", &[], Options("nw", &[])),
        row("hdparm", &[], Begins(&["--security-erase", "--trim-sector", "--make-bad-sector"])),
        row("nvme", &[], Words(&["format", "sanitize", "delete-ns", "write-zeroes"])),
        row("ddrescue", &[], Always),
        row("btrfs", &[], Words(&["del", "delete", "remove"])),
        row("blkdiscard", &[], Always),
        row("mkswap", &[], Always),
        row("swapoff", &[], Always),
        row("mount", &[], Holds(checks::any)),
        row("umount", &[], Always),
        row("losetup", &[], Unless(&["-a", "-l", "--all", "--list"])),
        row("cryptsetup", &[], Always),
        row("lvremove", &[], Always),
        row("vgremove", &[], Always),
        row("pvremove", &[], Always),
        row("mdadm", &[], Always),
        row("zpool", &[], Words(&["create", "destroy", "labelclear", "remove"])),
        row("zfs", &[], Words(&["destroy", "rollback"])),
        row("diskutil", &[], Unless(&["list", "info"])),
        row("chmod", &[], Options("R", &["--recursive"])),
        row("chown", &[], Options("R", &["--recursive"])),
        row("chgrp", &[], Options("R", &["--recursive"])),
        row("setfacl", &[], Options("R", &["--recursive"])),
        row("chattr", &[], Always),
        row("kill", &[], Holds(checks::kill)),
        row("killall5", &[], Always),
        row("killall", &[], Options("u", &["--user"])),
        row("fuser", &[], Options("k", &["--kill"])),
        row("ip", &[], Words(&["del", "delete", "flush"])),
        row("fsck", &[], Always),
        row("efibootmgr", &[], Options("B", &["--delete-bootnum"])),
        row("chcon", &[], Options("R", &["--recursive"])),
        row("chflags", &[], Options("R", &[])),
        row("chpasswd", &[], Always),
        row("gpasswd", &[], Always),
        row("tmutil", &[], Words(&["delete"])),
        row("defaults", &["delete"], Always),
        row("security", &[], Begins(&["delete-"])),
        row("gpg", &[], Begins(&["--delete"])),
        row("pkill", &[], Holds(checks::pkill)),
        row("loginctl", &[], Begins(&["terminate-", "kill-"])),
        row("pm2", &[], Words(&["delete", "kill"])),
        row("service", &[], Words(&["stop", "restart"])),
        row("shutdown", &[], Always),
        row("reboot", &[], Always),
        row("halt", &[], Always),
        row("poweroff", &[], Always),
        row("init", &["0"], Always),
        row("init", &["6"], Always),
        row("telinit", &[], Always),
        row("systemctl", &[], Unless(&["status", "show", "cat", "is-active", "is-enabled", "is-failed", "is-system-running", "list-dependencies", "list-sockets", "list-timers", "list-unit-files", "list-units"])),
        row("launchctl", &[], Unless(&["list", "print"])),
        row("crontab", &[], Unless(&["-l"])),
        row("iptables", &[], Unless(&["-L", "-S", "--list", "--list-rules"])),
        row("ip6tables", &[], Unless(&["-L", "-S", "--list", "--list-rules"])),
        row("nft", &[], Unless(&["list"])),
        row("ufw", &[], Unless(&["status"])),
        row("userdel", &[], Always),
        row("deluser", &[], Always),
        row("groupdel", &[], Always),
        row("usermod", &[], Always),
        row("passwd", &[], Always),
        row("visudo", &[], Always),
        // Programs of the system.
        row("apk", &["del"], Always),
        row("apt", &[], Words(REMOVES)),
        row("apt-get", &[], Words(REMOVES)),
        row("brew", &[], Words(&["uninstall", "remove", "rm"])),
        row("dnf", &[], Words(REMOVES)),
        row("dnf", &["rm"], Always),
        row("dpkg", &[], Options("rP", &["--remove", "--purge"])),
        row("pacman", &[], Begins(&["-R", "--remove"])),
        row("snap", &["remove"], Always),
        row("yum", &[], Words(REMOVES)),
        row("zypper", &[], Words(&["remove", "rm"])),
        row("aptitude", &[], Words(REMOVES)),
        row("flatpak", &["uninstall"], Always),
        row("rpm", &[], Options("e", &["--erase"])),
        row("nix-collect-garbage", &[], Always),
    ]
};

/// What programs in other languages call to delete: looked for in code on the command line.
pub(super) const CODE: &[&str] = &[
    "rmtree",
    "unlink",
    "unlinkSync",
    "rmdir",
    "rmdirSync",
    "rmSync",
    "removedirs",
    "os.remove",
    "rm_rf",
    "rm_r",
    "remove_entry",
    "rimraf",
    "remove_tree",
    "fs.rm",
    "fsPromises.rm",
    "promises.rm",
    "promises').rm",
    "promises\").rm",
    "import remove",
    "remove_dir",
    "remove_file",
    "File.delete",
    "File.rm",
    "Dir.delete",
    "Files.delete",
    "Deno.remove",
    "file.remove",
    "file:del",
    "delete-file",
    "delete-directory",
    "deleteRecursively",
    "removeItem(at",
    "os.truncate",
    "file delete",
];

/// The same where nothing stands before them: many things have a method of that name.
pub(super) const CALLS: &[&str] = &["remove(", "rm("];
