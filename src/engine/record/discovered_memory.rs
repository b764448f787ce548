//! Memory files of subfolders: which of them the model was told, and where in its history.

use castor_base::memory::{MAX_ALL, MemoryFile, cap_text};

/// Memory files that the model was told, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DiscoveredMemory {
    notes: Vec<MemoryNote>,
}

#[derive(Clone, Debug, PartialEq)]
struct MemoryNote {
    /// The turn of the history that it stands in.
    turn: usize,
    /// Whole.
    file: MemoryFile,
    /// Of what the model was told of it, in bytes.
    len: usize,
    /// It is not told again.
    is_current: bool,
}

impl DiscoveredMemory {
    /// The files that hold now, each as it was last told.
    pub fn files(&self) -> impl Iterator<Item = &MemoryFile> {
        self.notes.iter().filter(|it| it.is_current).map(|it| &it.file)
    }

    /// What of `files` the model does not know yet, or not as it is now; nothing where there is no room for more.
    /// `len`: what else of memory it was told, in bytes.
    pub fn unknown_files(&self, files: &[MemoryFile], len: usize) -> Vec<MemoryFile> {
        let is_new = |it: &&MemoryFile| self.files().all(|known| known != *it);
        if self.room(len) == 0 { Vec::new() } else { files.iter().filter(is_new).cloned().collect() }
    }

    /// Takes down what is told in `turn`, and returns it as far as there is room.
    pub fn add_files(&mut self, files: &[MemoryFile], turn: usize, len: usize) -> Vec<MemoryFile> {
        let mut res = Vec::new();
        for file in files {
            let told = MemoryFile { text: cap_text(&file.text, self.room(len)), ..file.clone() };
            self.notes.iter_mut().filter(|it| it.file.path == file.path).for_each(|it| it.is_current = false);
            self.notes.push(MemoryNote { turn, file: file.clone(), len: told.text.len(), is_current: true });
            res.push(told);
        }
        res
    }

    /// What is found is told once more; what was told still stands where it stood.
    pub fn mark_outdated(&mut self) {
        self.notes.iter_mut().for_each(|it| it.is_current = false);
    }

    /// The first turns gave way to others: the model does not know any more what was told in them.
    pub fn compress(&mut self, n_turns: usize, n_instead: usize) {
        self.notes.retain(|it| it.turn >= n_turns);
        self.notes.iter_mut().for_each(|it| it.turn = it.turn - n_turns + n_instead);
    }

    /// The history ends before that turn.
    pub fn cut(&mut self, turn: usize) {
        self.notes.retain(|it| it.turn < turn);
    }

    fn room(&self, len: usize) -> usize {
        MAX_ALL.saturating_sub(len + self.notes.iter().map(|it| it.len).sum::<usize>())
    }
}

#[cfg(test)]
mod tests {
    use super::DiscoveredMemory;
    use castor_base::{
        memory::{MAX_ALL, MemoryFile, Tier},
        path::AbsPath,
    };

    fn file(name: &str, text: &str) -> MemoryFile {
        let path = AbsPath::new("/w").unwrap().join(name);
        MemoryFile { path, tier: Tier::Project, text: text.to_owned() }
    }

    #[test]
    fn what_gives_way_is_told_again_and_what_stays_is_not() {
        let mut found = DiscoveredMemory::default();
        let (a, b) = (file("a", "one"), file("b", "two"));
        found.add_files(std::slice::from_ref(&a), 2, 0);
        found.add_files(std::slice::from_ref(&b), 6, 0);
        let both = [a.clone(), b];
        assert!(found.unknown_files(&both, 0).is_empty());
        found.compress(4, 2);
        assert_eq!(found.unknown_files(&both, 0), [a]);
        // It stands in turn 4 now.
        found.compress(4, 1);
        assert_eq!(found.unknown_files(&both, 0).len(), 1);
        found.cut(1);
        assert_eq!(found.unknown_files(&both, 0), both);
    }

    #[test]
    fn only_the_last_of_a_file_holds_and_all_of_them_have_an_end() {
        let mut found = DiscoveredMemory::default();
        let half = "x".repeat(MAX_ALL / 2);
        let (one, other) = ([file("a", &half)], [file("a", &format!("y{half}"))]);
        assert_eq!(found.add_files(&one, 0, 0), one);
        assert_eq!(found.unknown_files(&other, 0), other);
        let told = found.add_files(&other, 0, 0);
        assert!(told[0].text.ends_with("\n[cut here: 1 bytes more]"), "{}", told[0].text.len());
        assert_eq!(found.files().collect::<Vec<_>>(), [&other[0]]);
        assert!(found.unknown_files(&one, 0).is_empty(), "there is no room for more");
        found.compress(1, 1);
        assert_eq!(found.unknown_files(&other, 0), other);
        assert!(found.unknown_files(&other, MAX_ALL).is_empty());
    }
}
