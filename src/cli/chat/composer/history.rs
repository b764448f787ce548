//! Earlier messages: walked through with the arrows, searched with Ctrl-R.

/// Messages that one chat walks through.
const MAX_ENTRIES: usize = 1_000;

/// The oldest first. What is typed now stands behind the newest.
#[derive(Debug, Default)]
pub struct InputHistory {
    entries: Vec<String>,
    /// The entry that is shown; `entries.len()` is what is typed.
    at: usize,
    typed: String,
}

impl InputHistory {
    /// Entries of earlier sessions go before those of this one.
    pub fn load(&mut self, mut entries: Vec<String>) {
        entries.retain(|it| !self.entries.contains(it));
        let count = entries.len();
        entries.append(&mut self.entries);
        self.entries = entries;
        self.at += count;
        self.bound();
    }

    /// A message that was sent. One that comes again is the newest.
    pub fn push(&mut self, text: &str) {
        self.entries.retain(|it| it != text);
        self.entries.push(text.to_owned());
        self.bound();
        self.leave();
    }

    fn bound(&mut self) {
        let extra = self.entries.len().saturating_sub(MAX_ENTRIES);
        self.entries.drain(..extra);
        self.at = self.at.saturating_sub(extra);
    }

    /// What is shown is edited: it is what is typed now.
    pub fn leave(&mut self) {
        self.at = self.entries.len();
        self.typed.clear();
    }

    pub fn is_walking(&self) -> bool {
        self.at < self.entries.len()
    }

    pub fn older(&mut self, shown: &str) -> Option<String> {
        let to = self.at.checked_sub(1)?;
        if !self.is_walking() {
            shown.clone_into(&mut self.typed);
        }
        self.at = to;
        self.entries.get(to).cloned()
    }

    pub fn newer(&mut self) -> Option<String> {
        if !self.is_walking() {
            return None;
        }
        self.at += 1;
        match self.entries.get(self.at) {
            Some(it) => Some(it.clone()),
            None => Some(std::mem::take(&mut self.typed)),
        }
    }

    /// The newest entry before `end` that has the words in it, in any case.
    pub fn find(&self, words: &str, end: usize) -> Option<(usize, &str)> {
        let words = words.to_lowercase();
        let mut all = self.entries.iter().enumerate().take(end).rev();
        all.find(|(_, it)| it.to_lowercase().contains(&words)).map(|(at, it)| (at, it.as_str()))
    }

    pub fn count(&self) -> usize {
        self.entries.len()
    }
}

/// A search that is under way, over what was typed before it.
#[derive(Debug)]
pub struct HistorySearch {
    pub words: String,
    /// The entry that is shown, if one has the words.
    pub at: Option<usize>,
    pub typed: String,
}

#[cfg(test)]
mod tests {
    use super::{InputHistory, MAX_ENTRIES};

    #[test]
    fn what_is_typed_stands_behind_the_newest() {
        let mut it = InputHistory::default();
        it.push("two");
        it.load(vec!["one".to_owned(), "two".to_owned()]);
        assert_eq!(it.older("dra").as_deref(), Some("two"));
        assert_eq!(it.older("two").as_deref(), Some("one"));
        assert_eq!(it.older("one"), None);
        assert_eq!(it.newer().as_deref(), Some("two"));
        assert_eq!(it.newer().as_deref(), Some("dra"));
        assert_eq!(it.newer(), None);
        it.push("one");
        assert_eq!(it.older("").as_deref(), Some("one"));
        assert_eq!(it.find("TW", 2), Some((0, "two")));
        assert_eq!(it.find("one", 1), None);
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut it = InputHistory::default();
        it.load((0..MAX_ENTRIES + 5).map(|it| it.to_string()).collect());
        it.push("last");
        assert_eq!((it.count(), it.older("").as_deref()), (MAX_ENTRIES, Some("last")));
        assert_eq!(it.find("5", 1), None);
    }
}
