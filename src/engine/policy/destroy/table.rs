//! The destructive class as data: what cannot be taken back, by program, sub-command and option.

use super::checks;
use crate::engine::policy::shell::Word;

/// Folders whose content can be made again: what is deleted in them is no loss.
pub(super) const BUILD: &[&str] = &["target", "node_modules", "dist", "build", "out", ".cache", "__pycache__", ".venv"];

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
    /// The same, unless all its operands lie in build folders.
    HoldsOutside(for<'a> fn(&'a [Word]) -> Option<&'a str>),
    /// Its last operand, or all of them, lie outside of the roots.
    OntoOutside,
    /// Some operand may lie outside of the roots.
    Outside,
}

/// One row; a program may have several.
pub(super) struct Row {
    pub program: &'static str,
    /// Words behind the program's own options.
    pub sub: &'static [&'static str],
    pub when: When,
}

const fn row(program: &'static str, sub: &'static [&'static str], when: When) -> Row {
    Row { program, sub, when }
}

/// `commit --amend` is not in here: what it replaces stays in the reflog, and only a forced push makes it lasting.
#[rustfmt::skip]
pub(super) const DESTRUCTIVE: &[Row] = {
    use When::{Always, Begins, Holds, HoldsOutside, OntoOutside, Options, Outside, OutsideBuild, Unless, Words};
    &[
        // Files.
        row("rm", &[], OutsideBuild),
        row("rmdir", &[], OutsideBuild),
        row("unlink", &[], OutsideBuild),
        row("srm", &[], Always),
        row("shred", &[], Always),
        // Inside it is no more than `> file`.
        row("truncate", &[], Outside),
        row("find", &[], HoldsOutside(checks::find)),
        row("gfind", &[], HoldsOutside(checks::find)),
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
        row("git", &["branch"], Options("DMf", &["--delete", "--force"])),
        row("git", &["branch"], Words(&["-d"])),
        row("git", &["tag"], Options("df", &["--delete", "--force"])),
        row("git", &["update-ref"], Always),
        row("git", &["read-tree"], Options("u", &["--reset"])),
        row("git", &["checkout-index"], Options("f", &["--force"])),
        row("git", &["send-pack"], Options("f", &["--force", "--mirror"])),
        row("git", &["send-pack"], Begins(&["+", ":"])),
        row("git", &["checkout"], HoldsOutside(checks::checkout)),
        row("git", &["switch"], Options("fC", &["--force", "--force-create", "--discard-changes"])),
        row("git", &["restore"], HoldsOutside(checks::restore)),
        row("git", &["stash", "drop"], Always),
        row("git", &["stash", "clear"], Always),
        row("git", &["clean"], HoldsOutside(checks::clean)),
        row("git", &["rm"], Options("f", &["--force"])),
        row("git", &["worktree", "remove"], Always),
        row("git", &["submodule", "deinit"], Always),
        row("git", &["push"], Options("fd", &["--force", "--force-with-lease", "--mirror", "--delete", "--prune"])),
        row("git", &["push"], Begins(&["+", ":"])),
        // Disks, processes, accounts, permissions.
        row("dd", &[], Always),
        row("fdisk", &[], Unless(&["-l", "--list"])),
        row("sfdisk", &[], Unless(&["-l", "--list", "-d", "--dump"])),
        row("cfdisk", &[], Always),
        row("gdisk", &[], Always),
        row("sgdisk", &[], Always),
        row("parted", &[], Always),
        row("wipefs", &[], Always),
        row("blkdiscard", &[], Always),
        row("mkswap", &[], Always),
        row("swapoff", &[], Always),
        row("mount", &[], Always),
        row("umount", &[], Always),
        row("losetup", &[], Always),
        row("cryptsetup", &[], Always),
        row("lvremove", &[], Always),
        row("vgremove", &[], Always),
        row("pvremove", &[], Always),
        row("mdadm", &[], Always),
        row("zpool", &[], Words(&["destroy", "labelclear", "remove"])),
        row("zfs", &[], Words(&["destroy", "rollback"])),
        row("diskutil", &[], Unless(&["list", "info"])),
        row("chmod", &[], Options("R", &["--recursive"])),
        row("chown", &[], Options("R", &["--recursive"])),
        row("chgrp", &[], Options("R", &["--recursive"])),
        row("setfacl", &[], Options("R", &["--recursive"])),
        row("chattr", &[], Always),
        row("kill", &[], Holds(checks::kill)),
        row("killall5", &[], Always),
        row("shutdown", &[], Always),
        row("reboot", &[], Always),
        row("halt", &[], Always),
        row("poweroff", &[], Always),
        row("init", &["0"], Always),
        row("init", &["6"], Always),
        row("telinit", &[], Always),
        row("systemctl", &[], Unless(&["status", "show", "cat", "list-units", "list-unit-files", "is-active", "is-enabled"])),
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
        // Packages that others install.
        row("npm", &["publish"], Always),
        row("npm", &["unpublish"], Always),
        row("npm", &["deprecate"], Always),
        row("pnpm", &["publish"], Always),
        row("yarn", &["publish"], Always),
        row("yarn", &["npm", "publish"], Always),
        row("bun", &["publish"], Always),
        row("cargo", &["publish"], Always),
        row("cargo", &["yank"], Always),
        row("gem", &["push"], Always),
        row("gem", &["yank"], Always),
        row("twine", &["upload"], Always),
        row("poetry", &["publish"], Always),
        row("uv", &["publish"], Always),
        row("hatch", &["publish"], Always),
        row("flit", &["publish"], Always),
        row("mvn", &[], Words(&["deploy"])),
        row("gradle", &[], Begins(&["publish"])),
        row("dotnet", &["nuget", "push"], Always),
        row("vsce", &["publish"], Always),
        // What runs elsewhere.
        row("terraform", &["destroy"], Always),
        row("terraform", &["apply"], Begins(&["-destroy"])),
        row("terraform", &["state", "rm"], Always),
        row("terraform", &["workspace", "delete"], Always),
        row("tofu", &["destroy"], Always),
        row("pulumi", &["destroy"], Always),
        row("kubectl", &["delete"], Always),
        row("kubectl", &["drain"], Always),
        row("oc", &["delete"], Always),
        row("helm", &["uninstall"], Always),
        row("helm", &["delete"], Always),
        row("aws", &[], Begins(&["delete", "terminate", "deregister", "purge", "remove-"])),
        row("aws", &["s3"], Words(&["rm", "rb", "--delete"])),
        row("gcloud", &[], Words(&["delete", "destroy", "rm"])),
        row("gsutil", &[], Words(&["rm", "rb"])),
        row("az", &[], Words(&["delete", "purge", "delete-batch"])),
        row("doctl", &[], Words(&["delete", "rm", "destroy"])),
        row("fly", &[], Words(&["destroy", "delete", "remove"])),
        row("flyctl", &[], Words(&["destroy", "delete", "remove"])),
        row("heroku", &[], Words(&["apps:destroy", "pg:reset", "addons:destroy", "destroy"])),
        row("gh", &[], Words(&["delete", "archive"])),
        row("gh", &["api"], Holds(checks::http)),
        row("curl", &[], Holds(checks::http)),
        row("wget", &[], Holds(checks::http)),
        row("http", &[], Holds(checks::http)),
        row("https", &[], Holds(checks::http)),
        row("xh", &[], Holds(checks::http)),
        row("docker", &["system", "prune"], Always),
        row("docker", &["volume"], Words(&["rm", "prune", "remove"])),
        row("docker", &["image"], Words(&["prune"])),
        row("docker", &["compose"], Holds(checks::compose)),
        row("podman", &["system", "prune"], Always),
        row("podman", &["volume"], Words(&["rm", "prune"])),
        row("redis-cli", &[], Words(&["flushall", "flushdb", "FLUSHALL", "FLUSHDB"])),
        row("dropdb", &[], Always),
        row("dropuser", &[], Always),
        row("psql", &[], Holds(checks::sql)),
        row("mysql", &[], Holds(checks::sql)),
        row("mariadb", &[], Holds(checks::sql)),
        row("sqlite3", &[], Holds(checks::sql)),
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
];

/// The same where nothing stands before them: many things have a method of that name.
pub(super) const CALLS: &[&str] = &["remove(", "rm("];
