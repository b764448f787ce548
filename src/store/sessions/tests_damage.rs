//! Damaged logs by seed: each damage is told, and no line counts that castor did not write.
#![allow(clippy::disallowed_methods)]

use std::{collections::BTreeSet, fs, path::PathBuf};

use serde_json::json;

use super::{SessionStore, StoreError};
use castor_base::{
    ids::SessionId,
    log::{Entry, Fact},
    path::AbsPath,
};

struct Bed {
    _dir: tempfile::TempDir,
    store: SessionStore,
    id: SessionId,
    path: PathBuf,
    entries: Vec<Entry>,
}

fn entry(n: u64, id: &str) -> Entry {
    let value = match n {
        0 => {
            json!({"at": 1, "fact": "created", "version": 3, "castor": "0", "session": id, "cwd": "/w", "roots": ["/w"],
            "mode": "default", "model": "m"})
        }
        n => json!({"at": n, "fact": "event", "event": {"id": format!("s-{n}"), "streamId": "s", "timestamp": n,
            "type": "message", "role": "user", "messageId": format!("m{n}"),
            "content": [{"type": "text", "text": format!("{id} says {n}: {}", "x".repeat((n % 7) as usize * 20))}]}}),
    };
    serde_json::from_value(value).unwrap()
}

/// A log that was written in several lives.
fn bed(id: &str) -> Bed {
    let dir = tempfile::tempdir().unwrap();
    let store = SessionStore::new(AbsPath::new(dir.path()).unwrap());
    let id = SessionId::from(id);
    let entries: Vec<Entry> = (0..24).map(|n| entry(n, id.as_str())).collect();
    store.create(&id).unwrap().append(&entries[..8]).unwrap();
    for more in entries[8..].chunks(4) {
        store.open(&id).unwrap().1.append(more).unwrap();
    }
    let path = store.log_file(&id).unwrap().as_path().to_owned();
    Bed { _dir: dir, store, id, path, entries }
}

/// Small numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

/// What was done, and what the log is then.
fn damage(whole: &[u8], other: &[u8], dice: &mut Dice) -> (&'static str, Vec<u8>) {
    let mut lines: Vec<Vec<u8>> = whole.split_inclusive(|it| *it == b'\n').map(<[u8]>::to_vec).collect();
    let mut bytes = whole.to_vec();
    let n = lines.len();
    let at = dice.below(n);
    let (from, to) = (dice.below(bytes.len()), dice.below(bytes.len()));
    match dice.below(8) {
        0 => {
            bytes[from] ^= 1 << dice.below(8);
            ("a flipped bit", bytes)
        }
        1 => {
            bytes.truncate(from);
            ("a cut", bytes)
        }
        2 => {
            bytes[from..].fill(0);
            ("a zeroed end", bytes)
        }
        3 => {
            bytes[from.min(to)..from.max(to) + 1].fill(0);
            ("zeros", bytes)
        }
        4 => {
            lines.swap(at, (at + 1 + dice.below(n - 1)) % n);
            ("two lines in each other's place", lines.concat())
        }
        5 => {
            lines.remove(at);
            ("a line less", lines.concat())
        }
        6 => {
            let again = lines[dice.below(n)].clone();
            lines.insert(at, again);
            ("a line twice", lines.concat())
        }
        _ => {
            let others: Vec<&[u8]> = other.split_inclusive(|it| *it == b'\n').collect();
            let more = [
                b"rubbish\n".as_slice(),
                b"{\"at\":1,\"fact\":\"cleared\"}\n",
                b"\n",
                others[dice.below(others.len())],
            ];
            lines.insert(at, more[dice.below(more.len())].to_vec());
            ("a line more", lines.concat())
        }
    }
}

#[test]
fn each_of_many_damages_is_told() {
    let (bed, other) = (bed("a"), bed("b"));
    let (whole, other) = (fs::read(&bed.path).unwrap(), fs::read(&other.path).unwrap());
    assert_eq!(bed.store.find_damage(&bed.id).unwrap().n, 0);
    let known: BTreeSet<String> = bed.entries.iter().map(|it| serde_json::to_string(it).unwrap()).collect();
    let mut kinds = BTreeSet::new();
    for seed in 0..600 {
        let (what, bytes) = damage(&whole, &other, &mut Dice(seed));
        if bytes == whole {
            continue;
        }
        kinds.insert(what);
        fs::write(&bed.path, &bytes).unwrap();
        let found = bed.store.find_damage(&bed.id).unwrap();
        assert!(found.n > 0 || bytes.is_empty(), "{seed}: {what}");
        match bed.store.open(&bed.id) {
            Ok((entries, log)) => {
                assert!(log.damage().n > 0 && !log.damage().to_string().is_empty(), "{seed}: {what}");
                // Without the first line there would be no session.
                let later = entries[1..].iter().map(|it| serde_json::to_string(it).unwrap());
                let n_foreign = later.filter(|it| !known.contains(it)).count();
                assert!(n_foreign == 0 || (what == "a line more" && n_foreign == 1), "{seed}: {what}");
                drop(log);
            }
            Err(StoreError::NotFound { .. }) => assert!(bytes.is_empty(), "{seed}: {what}"),
            Err(it) => assert!(it.to_string().contains("its first line is lost or damaged"), "{seed}: {what}: {it}"),
        }
        assert_eq!(fs::read(&bed.path).unwrap(), bytes, "{seed}: looking changes nothing");
    }
    assert_eq!(kinds.len(), 8, "{kinds:?}");
}

#[test]
fn a_repaired_log_is_sound_and_goes_on() {
    let (bed, other) = (bed("a"), bed("b"));
    let (whole, other) = (fs::read(&bed.path).unwrap(), fs::read(&other.path).unwrap());
    let mut n_repaired = 0;
    for seed in 0..200 {
        let (what, bytes) = damage(&whole, &other, &mut Dice(seed));
        fs::write(&bed.path, &bytes).unwrap();
        // Nothing else says in which folder the session was.
        let Ok(report) = bed.store.repair(&bed.id) else { continue };
        n_repaired += usize::from(report.backup.is_some());
        let (before, mut log) = bed.store.open(&bed.id).unwrap();
        assert_eq!(log.damage().n, 0, "{seed}: {what}: {}", log.damage());
        log.append(&[entry(99, "a")]).unwrap();
        drop(log);
        let (after, log) = bed.store.open(&bed.id).unwrap();
        assert_eq!((after.len(), log.damage().n), (before.len() + 1, 0), "{seed}: {what}: {}", log.damage());
    }
    assert!(n_repaired > 150, "{n_repaired}");
}

/// The bytes that the next write takes away, and a log that goes on behind damage.
#[test]
fn a_damaged_end_is_kept_beside_the_log() {
    let bed = bed("a");
    let whole = fs::read(&bed.path).unwrap();
    let mut zeroed = whole.clone();
    let from = whole.len() * 2 / 3;
    zeroed[from..].fill(0);
    fs::write(&bed.path, &zeroed).unwrap();
    let (entries, mut log) = bed.store.open(&bed.id).unwrap();
    let kept = log.damage().kept.clone().unwrap();
    assert_eq!(kept.as_path().file_name().unwrap(), "a.jsonl.damaged");
    let n_whole = zeroed.iter().rposition(|it| *it == b'\n').unwrap() + 1;
    assert_eq!(fs::read(&kept).unwrap(), &zeroed[n_whole..]);
    log.append(&[Entry { at: 50, fact: Fact::Cleared }]).unwrap();
    drop(log);
    let (again, log) = bed.store.open(&bed.id).unwrap();
    assert_eq!((again.len(), log.damage().n), (entries.len() + 1, 0), "{}", log.damage());
    drop(log);
    bed.store.delete(&bed.id).unwrap();
    assert!(!kept.as_path().exists());
}

/// From there on damage of the older lines is told, too.
#[test]
fn an_older_log_is_chained_when_it_goes_on() {
    let bed = bed("a");
    let old: String = bed.entries.iter().map(|it| serde_json::to_string(it).unwrap() + "\n").collect();
    let old = old.replace("\"version\":3", "\"version\":2");
    fs::write(&bed.path, &old).unwrap();
    fs::remove_dir_all(bed.store.home().join("log-ends")).unwrap();
    let (entries, mut log) = bed.store.open(&bed.id).unwrap();
    assert_eq!((entries.len(), log.damage().n), (bed.entries.len(), 0), "{}", log.damage());
    log.append(&[entry(99, "a")]).unwrap();
    drop(log);
    let grown = fs::read_to_string(&bed.path).unwrap();
    assert!(grown.starts_with(&old));
    assert_eq!(bed.store.find_damage(&bed.id).unwrap().n, 0);
    for (from, to) in [("says 5", "says 6"), (old.lines().nth(3).unwrap(), ""), ("\"at\":99,", "\"at\":98,")] {
        fs::write(&bed.path, grown.replacen(from, to, 1)).unwrap();
        assert!(bed.store.find_damage(&bed.id).unwrap().n > 0, "{from}");
    }
}

#[test]
fn lines_that_are_missing_at_the_end_are_told() {
    let bed = bed("a");
    let whole = fs::read_to_string(&bed.path).unwrap();
    let cut: String = whole.split_inclusive('\n').take(20).collect();
    fs::write(&bed.path, &cut).unwrap();
    let lost = whole.len() - cut.len();
    let expected = format!("its last {lost} bytes are missing");
    for _ in 0..2 {
        let (_, log) = bed.store.open(&bed.id).unwrap();
        assert_eq!(log.damage().to_string(), expected);
    }
    let report = bed.store.repair(&bed.id).unwrap();
    assert_eq!((report.damage.to_string(), report.n_kept), (expected, 20));
    assert_eq!(bed.store.find_damage(&bed.id).unwrap().n, 0);
}
