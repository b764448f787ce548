//! Provenance: its rules as tables. Those on real disks are beside the checkpoints.

mod lines;

use super::{ChangeAuthor, Ledger, State, Step};
use crate::disk::hash_of;

fn apply(ledger: &mut Ledger, author: ChangeAuthor, steps: &[(String, State, State)]) {
    let steps: Vec<Step> =
        steps.iter().map(|(path, old, new)| Step { path: path.as_bytes(), old: *old, new: *new }).collect();
    ledger.apply(ledger.seq + 1, author, &steps, &|_| None);
}

fn paths(ledger: &Ledger) -> Vec<String> {
    ledger.entries.keys().map(|it| String::from_utf8_lossy(it).into_owned()).collect()
}

#[test]
fn a_hundred_thousand_files_of_one_call_are_few_entries_and_none_is_forgotten() {
    let mut ledger = Ledger::default();
    let author = ChangeAuthor::Agent(("s".into(), "c".into()));
    let mut steps = vec![("new".to_owned(), State::Absent, State::Dir)];
    let hash = |n: usize| hash_of(n.to_string().as_bytes());
    for n in 0..100_001 {
        let path = if n % 2 == 0 { format!("new/{}/{n}", n % 300) } else { format!("old/{}/{n}", n % 300) };
        steps.push((path, State::Absent, State::File(hash(n))));
    }
    apply(&mut ledger, author, &steps);
    assert_eq!(paths(&ledger), ["new", "old"]);
    // Whatever moves one of them out.
    for n in [0, 1, 50_000, 100_000] {
        let step = (format!("moved{n}"), State::Absent, State::File(hash(n)));
        apply(&mut ledger, ChangeAuthor::Person, &[step]);
    }
    assert_eq!(paths(&ledger), ["moved0", "moved1", "moved100000", "moved50000", "new", "old"]);
    let strangers = (200_000..210_000).filter(|it| ledger.past.has(&hash(*it))).count();
    assert!(strangers < 500, "{strangers} of 10000 are taken for an agent's");
}

#[test]
fn many_calls_become_folders_in_the_end() {
    let mut ledger = Ledger::default();
    for n in 0..10_000 {
        let author = ChangeAuthor::Agent(("s".into(), n.to_string().as_str().into()));
        let step = (format!("d{}/{n}", n % 3), State::Absent, State::File(hash_of(n.to_string().as_bytes())));
        apply(&mut ledger, author, &[step]);
    }
    let all = paths(&ledger);
    assert!(all.len() <= 4_096, "{}", all.len());
    let is_kept = |n: usize| [format!("d{}", n % 3), format!("d{}/{n}", n % 3)].iter().any(|it| all.contains(it));
    assert!((0..10_000).step_by(97).all(is_kept));
}
