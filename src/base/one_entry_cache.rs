//! A cache of one entry, beside the immutable thing that it is made from.

use std::sync::OnceLock;

/// Keeps the value of the first key that is asked for: nearly all ask for the same.
#[derive(Debug)]
pub struct OneEntryCache<K, V>(OnceLock<(K, V)>);

impl<K, V> Default for OneEntryCache<K, V> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

/// A copy may be changed: it keeps nothing. What is moved keeps its value, so nothing may change behind a `..self`.
impl<K, V> Clone for OneEntryCache<K, V> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<K: PartialEq, V: Clone> OneEntryCache<K, V> {
    /// The kept value, or a new one for another key.
    pub fn get(&self, key: K, make: impl Fn(&K) -> V) -> V {
        if let Some((kept, value)) = self.0.get() {
            return if *kept == key { value.clone() } else { make(&key) };
        }
        let value = make(&key);
        // Another thread may have been first: its value is the kept one then, and both are right.
        let _ = self.0.set((key, value.clone()));
        value
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::OneEntryCache;

    #[test]
    fn only_the_first_is_kept() {
        let (kept, made) = (OneEntryCache::default(), Cell::new(0));
        let make = |key: &u32| {
            made.set(made.get() + 1);
            key * 10
        };
        let got = [1, 1, 2, 2, 1].map(|key| kept.get(key, make));
        assert_eq!((got, made.get()), ([10, 10, 20, 20, 10], 3));
    }
}
