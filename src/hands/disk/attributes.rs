//! Attributes of files on Linux: access lists and what users noted, which new content keeps.

use std::{fs::File, io};

use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};

/// Linux' name for an access list. Without it the mode's bits for the group, which are then the most that anybody in the
/// list may do, would be the group's own.
const ACCESS_LIST: &str = "system.posix_acl_access";
/// Linux knows no longer value, and no longer list of names.
const MAX_ATTRIBUTE: usize = 64 << 10;

/// Labels and capabilities are the system's to give.
pub fn keep_attributes(new: &File, old: &File) -> io::Result<()> {
    let mut names = vec![0; MAX_ATTRIBUTE];
    // A disk that has none says so by an error.
    let Ok(len) = flistxattr(old, names.as_mut_slice()) else { return Ok(()) };
    let names = names.get(..len).unwrap_or_default().split(|it| *it == 0).filter_map(|it| str::from_utf8(it).ok());
    for name in names.filter(|it| *it == ACCESS_LIST || it.starts_with("user.")) {
        let mut value = vec![0; MAX_ATTRIBUTE];
        let kept = fgetxattr(old, name, value.as_mut_slice())
            .and_then(|len| fsetxattr(new, name, value.get(..len).unwrap_or_default(), XattrFlags::empty()));
        match kept {
            Err(it) if name == ACCESS_LIST => return Err(it.into()),
            // A note that is lost is no reason to lose the edit.
            _ => (),
        }
    }
    Ok(())
}
