//! File of earlier messages, by folder: in castor's home, for the user alone, bounded.

use serde::{Deserialize, Serialize};

use castor_base::path::AbsPath;
use castor_hands::{disk, secrets::Env};
use castor_tools::workspace;

const NAME: &str = "chat-history.json";
/// Messages of all folders, and bytes of the file.
const MAX_ENTRIES: usize = 2_000;
const MAX_BYTES: usize = 512 << 10;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    folder: String,
    text: String,
}

/// The messages that were sent from one folder.
#[derive(Clone, Debug)]
pub struct HistoryFile {
    path: AbsPath,
    folder: String,
}

impl HistoryFile {
    /// `None`: castor has no home.
    pub fn of_folder(env: &Env, folder: &str) -> Option<Self> {
        Some(Self { path: workspace::castor_home(env)?.join(NAME), folder: folder.to_owned() })
    }

    /// The oldest first. A file that is not there or not ours to read has none.
    pub fn load(&self) -> Vec<String> {
        self.read().into_iter().filter(|it| it.folder == self.folder).map(|it| it.text).collect()
    }

    fn read(&self) -> Vec<Entry> {
        let bytes = disk::read_private(&self.path).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Adds a message. The file is read anew: another chat may have added to it; of two at the same moment one is lost.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn add(&self, text: &str) -> std::io::Result<()> {
        let mut all = self.read();
        all.retain(|it| it.folder != self.folder || it.text != text);
        all.push(Entry { folder: self.folder.clone(), text: text.to_owned() });
        // From the newest on, as far as there is room.
        let mut size = 0;
        let fits = |it: &&Entry| {
            size += it.folder.len() + it.text.len();
            size <= MAX_BYTES
        };
        let kept = all.iter().rev().take(MAX_ENTRIES).take_while(fits).count();
        all.drain(..all.len() - kept);
        disk::write_private(&self.path, &serde_json::to_vec(&all)?)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)]

    use super::{HistoryFile, MAX_BYTES, MAX_ENTRIES};
    use crate::cli::testing::Ground;

    fn file(ground: &Ground, folder: &str) -> HistoryFile {
        HistoryFile::of_folder(&ground.env("true"), folder).unwrap()
    }

    #[test]
    fn each_folder_has_its_own_messages() {
        let ground = Ground::new();
        let (a, b) = (file(&ground, "/a"), file(&ground, "/b"));
        assert!(a.load().is_empty());
        for it in ["one", "two", "one"] {
            a.add(it).unwrap();
        }
        b.add("three").unwrap();
        assert_eq!((a.load(), b.load()), (vec!["two".to_owned(), "one".to_owned()], vec!["three".to_owned()]));
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(a.path.as_path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::write(a.path.as_path(), "no json").unwrap();
        assert!(a.load().is_empty());
    }

    #[test]
    fn the_oldest_are_dropped() {
        let ground = Ground::new();
        let it = file(&ground, "/a");
        let all: Vec<super::Entry> =
            (0..MAX_ENTRIES).map(|n| super::Entry { folder: "/a".to_owned(), text: n.to_string() }).collect();
        it.add("x").unwrap();
        castor_hands::disk::write_private(&it.path, &serde_json::to_vec(&all).unwrap()).unwrap();
        it.add("last").unwrap();
        let found = it.load();
        assert_eq!((found.len(), found[0].as_str(), found.last().unwrap().as_str()), (MAX_ENTRIES, "1", "last"));
        for n in 0..8 {
            it.add(&format!("{n}{}", "x".repeat(MAX_BYTES / 5))).unwrap();
        }
        let size: usize = it.load().iter().map(String::len).sum();
        assert!(size <= MAX_BYTES && it.load().len() >= 4, "{size} bytes");
    }
}
