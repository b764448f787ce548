//! List of the notices that are shown once for all, in castor's own folder.

use castor_base::path::AbsPath;
use castor_hands::disk;

const FILE: &str = "said-once.json";
/// More are forgotten, the oldest first: then they are said again.
const MAX: usize = 5_000;
const MAX_BYTES: u64 = 4 << 20;

/// Those of `subjects` that were not said yet; from now on they are. A list that cannot be kept is none.
pub fn unsaid(home: &AbsPath, subjects: &[String]) -> Vec<String> {
    let file = home.join(FILE);
    let bytes = disk::read_head(&file, MAX_BYTES).unwrap_or_default();
    let mut said: Vec<String> = serde_json::from_slice(&bytes).unwrap_or_default();
    let fresh: Vec<String> = subjects.iter().filter(|it| !said.contains(it)).cloned().collect();
    if fresh.is_empty() {
        return fresh;
    }
    said.extend(fresh.iter().cloned());
    said.drain(..said.len().saturating_sub(MAX));
    let text = serde_json::to_string(&said).unwrap_or_default();
    if let Err(it) = disk::write_atomic(&file, text.as_bytes()) {
        tracing::debug!("{file}: {it}; castor will say again what it said");
    }
    fresh
}

#[cfg(test)]
mod tests {
    use super::{FILE, unsaid};
    use castor_base::path::AbsPath;

    #[test]
    fn each_subject_is_new_once() {
        let dir = tempfile::tempdir().unwrap();
        let home = AbsPath::new(dir.path()).unwrap();
        let all = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        assert_eq!(unsaid(&home, &all(&["a", "b"])), ["a", "b"]);
        assert_eq!(unsaid(&home, &all(&["b", "c"])), ["c"]);
        assert_eq!(unsaid(&home, &all(&["a", "b", "c"])), [""; 0]);
        castor_hands::disk::write_atomic(&home.join(FILE), b"{").unwrap();
        assert_eq!(unsaid(&home, &all(&["a"])), ["a"]);
    }
}
