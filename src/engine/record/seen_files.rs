//! Files that the model has seen: their hashes when they were last read or written.

use std::collections::BTreeMap;

use castor_base::{path::AbsPath, tool::FileKnowledge};

/// Of more files nothing is kept; those that come first by name go first.
const MAX: usize = 4096;

/// Hashes by real paths.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeenFiles(BTreeMap<AbsPath, String>);

impl SeenFiles {
    /// A part that was changed of what the model does not know leaves it not knowing.
    pub fn take(&mut self, seen: &FileKnowledge) {
        seen.others.iter().for_each(|it| self.take(it));
        if seen.before.is_some() && self.0.get(&seen.path) != seen.before.as_ref() {
            return;
        }
        self.0.insert(seen.path.clone(), seen.hash.clone());
        if self.0.len() > MAX {
            self.0.pop_first();
        }
    }

    /// `None`: it never was read or written.
    pub fn hash(&self, path: &AbsPath) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_to_what_is_not_known_makes_it_no_better_known() {
        let path = AbsPath::new("/w/a").unwrap();
        let seen = |hash: &str, before: Option<&str>| FileKnowledge {
            path: path.clone(),
            hash: hash.to_owned(),
            before: before.map(str::to_owned),
            others: Vec::new(),
        };
        let mut files = SeenFiles::default();
        files.take(&seen("2", Some("1")));
        assert_eq!(files.hash(&path), None);
        files.take(&seen("1", None));
        files.take(&seen("2", Some("1")));
        assert_eq!(files.hash(&path), Some("2"));
        files.take(&seen("4", Some("3")));
        assert_eq!(files.hash(&path), Some("2"));
    }

    #[test]
    fn they_are_not_kept_without_end() {
        let mut files = SeenFiles::default();
        for nth in 0..MAX + 10 {
            let path = AbsPath::new(format!("/w/{nth:05}")).unwrap();
            files.take(&FileKnowledge { path, hash: String::new(), before: None, others: Vec::new() });
        }
        assert_eq!(files.0.len(), MAX);
    }
}
