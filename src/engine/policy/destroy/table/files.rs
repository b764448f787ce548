//! Files. `rmdir` is not in here, which takes empty folders only.

use super::{
    Row,
    When::{Always, Begins, Holds, HoldsOutside, OntoOutside, Options, Outside, OutsideBuild, Words},
    row,
};
use crate::engine::policy::destroy::checks;

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row("7z", &[], Begins(&["-sdel"])),
    row("bfs", &[], HoldsOutside(checks::find)),
    row("cmake", &["rm"], OutsideBuild),
    row("cmake", &["remove"], OutsideBuild),
    row("cmake", &["remove_directory"], OutsideBuild),
    row("cp", &[], Holds(checks::device)),
    row("del-cli", &[], OutsideBuild),
    row("fdupes", &[], Options("d", &["--delete"])),
    row("find", &[], HoldsOutside(checks::find)),
    row("gfind", &[], HoldsOutside(checks::find)),
    row("jdupes", &[], Options("d", &["--delete"])),
    row("mv", &[], OntoOutside),
    row("rclone", &[], Words(&["purge", "delete", "deletefile", "sync", "rmdirs", "cleanup"])),
    row("rclone", &[], Words(&["move", "moveto", "dedupe"])),
    row("rdfind", &[], Words(&["-deleteduplicates"])),
    row("rimraf", &[], OutsideBuild),
    row("rm", &[], OutsideBuild),
    row("robocopy", &[], Words(&["/MIR", "/PURGE", "/MOVE", "/mir", "/purge", "/move"])),
    row("rsync", &[], Begins(&["--del", "--remove-source"])),
    row("safe-rm", &[], OutsideBuild),
    row("shred", &[], Always),
    row("srm", &[], Always),
    row("tar", &[], Begins(&["--remove-files"])),
    row("tee", &[], Holds(checks::device)),
    // Inside it is no more than `> file`.
    row("truncate", &[], Outside),
    row("unlink", &[], OutsideBuild),
    row("wipe", &[], Always),
    row("zf_rm", &[], OutsideBuild),
    row("zip", &[], Options("m", &["--move"])),
];
