//! Sockets of other programs in what a command sees: each is covered, so that it reaches its own session's alone.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs,
    os::unix::{ffi::OsStringExt, fs::FileTypeExt},
    path::{Path, PathBuf},
};

use super::nested_config;
use castor_base::{path::AbsPath, sandbox::Confinement};

/// Those that somebody listens at now, by the kernel's list and by the list of mounts. One that was bound by a relative name
/// is looked for in the roots by that name.
pub(super) fn of_others(it: &Confinement) -> BTreeSet<PathBuf> {
    let bound = bound_names(&fs::read("/proc/net/unix").unwrap_or_default());
    let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let mounted = mounts.split(|it| *it == b'\n').filter_map(|it| it.split(|it| *it == b' ').nth(4)).map(path_of);
    let relative: BTreeSet<&OsStr> =
        bound.iter().filter(|it| it.is_relative()).filter_map(|it| it.file_name()).collect();
    let is_named = |it: &PathBuf| it.file_name().is_some_and(|it| relative.contains(it));
    let in_roots = it.roots.iter().map(AbsPath::as_path).flat_map(nested_config::sockets).filter(is_named);
    let all: Vec<PathBuf> =
        bound.iter().filter(|it| it.is_absolute()).cloned().chain(mounted).chain(in_roots).collect();
    all.into_iter().filter(|it| is_socket(it)).filter_map(|it| it.canonicalize().ok()).collect()
}

fn is_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|it| it.file_type().is_socket())
}

/// The names in the kernel's list, behind seven columns. Those with `@` in front have no file.
fn bound_names(list: &[u8]) -> Vec<PathBuf> {
    let name = |line: &[u8]| {
        let mut rest = line;
        for _ in 0..7 {
            let at = rest.iter().position(|it| *it == b' ')?;
            rest = rest.get(at..)?.trim_ascii_start();
        }
        (!rest.is_empty() && !rest.starts_with(b"@")).then(|| path_of(rest))
    };
    list.split(|it| *it == b'\n').skip(1).filter_map(name).collect()
}

fn path_of(bytes: &[u8]) -> PathBuf {
    OsString::from_vec(bytes.to_vec()).into()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::bound_names;

    #[test]
    fn names_are_read_with_their_blanks_and_without_those_that_have_no_file() {
        let list = b"Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 21000 /run/a b.sock
0000000000000000: 00000003 00000000 00000000 0001 03 21001
0000000000000000: 00000002 00000000 00010000 0001 01 21002 @/tmp/.X11-unix/X0
0000000000000000: 00000002 00000000 00000000 0002 01   212 ./rel.sock
";
        assert_eq!(bound_names(list), [Path::new("/run/a b.sock"), Path::new("./rel.sock")]);
    }
}
