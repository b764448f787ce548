//! Paths that commands cannot read or write, for castor's own file tools.

use crate::{guarded_names::TOOL_FOLDERS, path::AbsPath};

/// As [`super::Confinement`] has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProtectedPaths {
    pub never_written: Vec<AbsPath>,
    pub masked: Vec<AbsPath>,
    /// The home folder, canonical: only the tools' folders in it are seen.
    pub home: Option<AbsPath>,
    /// What of the home folder the settings open.
    pub readable: Vec<AbsPath>,
}

impl ProtectedPaths {
    /// Tells whether no command of a session in these folders would see `real`. A workspace in what is masked is seen.
    pub fn is_masked(&self, real: &AbsPath, roots: &[AbsPath]) -> bool {
        let opens = |all: &AbsPath| roots.iter().any(|it| it.is_within(all) && real.is_within(it));
        self.masked.iter().any(|it| real.is_within(it) && !opens(it))
    }

    /// Tells whether it lies in the part of the home folder that no command sees without a yes.
    pub fn is_hidden(&self, real: &AbsPath, roots: &[AbsPath]) -> bool {
        let is_tools = |home: &AbsPath| TOOL_FOLDERS.iter().any(|it| real.is_within(&home.join(*it)));
        let is_opened = || roots.iter().chain(&self.readable).any(|it| real.is_within(it));
        self.home.as_ref().is_some_and(|home| real.is_within(home) && !is_tools(home)) && !is_opened()
    }

    /// Tells whether none would write it. What is elsewhere is asked about as that.
    pub fn is_never_written(&self, real: &AbsPath, roots: &[AbsPath]) -> bool {
        let root = roots.iter().filter(|it| real.is_within(it)).max_by_key(|it| it.as_path().components().count());
        root.is_some_and(|root| self.never_written.iter().any(|it| it.is_within(root) && real.is_within(it)))
    }
}

#[cfg(test)]
mod tests {
    use super::ProtectedPaths;
    use crate::path::AbsPath;

    #[test]
    fn of_the_home_tools_roots_and_what_was_opened_are_seen() {
        let path = |it: &str| AbsPath::new(it).unwrap();
        let it =
            ProtectedPaths { home: Some(path("/h")), readable: vec![path("/h/open")], ..ProtectedPaths::default() };
        let roots = [path("/h/src/ws")];
        for (at, want) in [
            ("/h", true),
            ("/h/notes", true),
            ("/h/.config/solana/id.json", true),
            ("/h/.ethereum/keystore", true),
            ("/h/src/other", true),
            ("/h/src/ws/a", false),
            ("/h/.cargo/config.toml", false),
            ("/h/.gitconfig", false),
            ("/h/.gitconfig.d/x", true),
            ("/h/open/x", false),
            ("/hh", false),
            ("/etc/passwd", false),
        ] {
            assert_eq!(it.is_hidden(&path(at), &roots), want, "{at}");
        }
        assert!(!ProtectedPaths::default().is_hidden(&path("/h/notes"), &[]));
    }
}
