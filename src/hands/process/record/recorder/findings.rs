//! Findings: each refusal with the process that met it and those above it, and whether one of them ended in failure.

use std::fs;

use castor_base::sandbox::{Refusal, Refused};

/// How many refusals are kept. What a program meets beyond that says nothing new.
const MAX_REFUSALS: usize = 200;

#[derive(Debug, PartialEq)]
struct Finding {
    refusal: Refusal,
    /// Those that live, by their numbers, which are given anew later.
    line: Vec<i32>,
}

#[derive(Debug, Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    /// `None`: it is known.
    pub fn of_thread(&self, thread: i32, what: Refused) -> Option<(Refused, Vec<i32>)> {
        let line = line(thread);
        let is_known = |it: &Finding| it.refusal.what == what && (it.refusal.failed || it.line == line);
        (!self.0.iter().any(is_known)).then_some((what, line))
    }

    pub fn add(&mut self, (what, line): (Refused, Vec<i32>)) {
        if self.0.len() < MAX_REFUSALS {
            self.0.push(Finding { refusal: Refusal { what, failed: false }, line });
        }
    }

    /// A thread ends its whole process. A signal gives no code: the process above answers for that. Returns whether that
    /// changes a finding.
    pub fn end_of_thread(&mut self, thread: i32, code: i32) -> bool {
        let is_first = self.0.iter().any(|it| it.line.contains(&thread));
        let process = if is_first || self.0.is_empty() { Some(thread) } else { numbers(thread).map(|it| it.0) };
        process.is_some_and(|it| self.end_of_process(it, code))
    }

    pub fn end_of_process(&mut self, process: i32, code: i32) -> bool {
        if !self.0.iter().any(|it| it.line.contains(&process)) {
            return false;
        }
        for it in std::mem::take(&mut self.0) {
            let failed = it.refusal.failed || code != 0 && it.line.contains(&process);
            let line = it.line.into_iter().filter(|one| *one != process).collect();
            let now = Finding { refusal: Refusal { failed, ..it.refusal }, line };
            // What many children of one process met is the same from here on.
            if !self.0.contains(&now) {
                self.0.push(now);
            }
        }
        true
    }

    /// Each thing once.
    pub fn refusals(&self) -> Vec<Refusal> {
        let mut res: Vec<Refusal> = Vec::new();
        for Finding { refusal, .. } in &self.0 {
            match res.iter_mut().find(|it| it.what == refusal.what) {
                Some(it) => it.failed |= refusal.failed,
                None => res.push(refusal.clone()),
            }
        }
        res
    }
}

/// The process of a thread, and those above it, but for the sandbox's first one.
fn line(thread: i32) -> Vec<i32> {
    let (mut res, mut next) = (Vec::new(), numbers(thread));
    while let Some((process, parent)) = next.filter(|it| it.0 > 1 && res.len() < 64) {
        res.push(process);
        next = numbers(parent);
    }
    res
}

/// The process of a thread, and its parent.
fn numbers(thread: i32) -> Option<(i32, i32)> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let find = |key: &str| status.lines().find_map(|it| it.strip_prefix(key)?.trim().parse().ok());
    Some((find("Tgid:")?, find("PPid:")?))
}

#[cfg(test)]
mod tests {
    use super::{Findings, line};
    use castor_base::{path::AbsPath, sandbox::Refused};

    fn write(path: &str) -> Refused {
        Refused::Write(AbsPath::new(path).unwrap())
    }

    /// A program 12 below a shell 11 below the command 10; 13 is another one below the shell.
    #[test]
    fn a_failure_counts_for_all_below_and_for_none_above() {
        for (ends, want) in [
            (&[(12, 0), (11, 0), (10, 0)][..], [false, false]),
            (&[(12, 1), (11, 0), (10, 0)], [true, false]),
            (&[(13, 1), (12, 0), (11, 0), (10, 0)], [false, true]),
            (&[(12, 0), (11, 2), (10, 0)], [true, true]),
            (&[(12, 0), (11, 0), (10, 3)], [true, true]),
            // Its number is another process's by then.
            (&[(12, 0), (12, 1), (10, 0)], [false, false]),
            // A signal ended it.
            (&[(11, 0), (10, 0)], [false, false]),
        ] {
            let mut it = Findings::default();
            it.add((write("/a"), vec![12, 11, 10]));
            it.add((write("/b"), vec![13, 11, 10]));
            ends.iter().for_each(|(pid, code)| _ = it.end_of_process(*pid, *code));
            assert_eq!(it.refusals().iter().map(|it| it.failed).collect::<Vec<_>>(), want, "{ends:?}");
        }
    }

    #[test]
    fn the_same_is_told_once_and_failed_if_it_failed_anywhere() {
        let mut it = Findings::default();
        it.add((write("/a"), vec![12, 10]));
        it.add((write("/a"), vec![13, 10]));
        it.end_of_process(13, 1);
        let all = it.refusals();
        assert!(all.len() == 1 && all[0].failed, "{all:?}");
        (20..20_000).for_each(|pid| {
            it.add((write("/c"), vec![pid, 10]));
            it.end_of_process(pid, 0);
        });
        assert!(it.0.len() < 10, "many children of one process are one");
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(line(own).first(), Some(&own));
        let new = it.of_thread(own, write("/b")).unwrap();
        it.add(new);
        assert_eq!(it.of_thread(own, write("/b")), None);
    }
}
