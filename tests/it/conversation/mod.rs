//! Conversations as text: every file of `tests/data` is played against the real binary. `README.md` there has the format.

mod alias;
mod file;
mod lists;
pub mod model;
mod pattern;
mod play;
mod rewrite;

use std::{
    fs,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use play::Failure;

use crate::client::STDERR;

const N_THREADS: usize = 4;
/// Messages before a failure that its report has.
const N_BEFORE: usize = 10;
/// Longest line of a report, in characters.
const MAX_SHOWN: usize = 400;

/// `UPDATE_EXPECT=1` rewrites the expected lines of files that fail; `CONVERSATION=name` plays only the file of that name,
/// or, where no file has it, those with that in their name.
#[test]
fn conversations() {
    let only = std::env::var("CONVERSATION").unwrap_or_default();
    let mut paths = files();
    match paths.iter().position(|it| name(it) == only) {
        Some(at) => paths = vec![paths.swap_remove(at)],
        None => paths.retain(|it| name(it).contains(&only)),
    }
    if !castor_hands::process::sandbox::is_available() {
        eprintln!("skipped: conversations named sandbox-*, since this kernel has no Landlock");
        paths.retain(|it| !name(it).starts_with("sandbox-"));
    }
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    // The others may name the lists that it shows: it is rewritten before they are read.
    let (first, rest): (Vec<_>, Vec<_>) = paths.into_iter().partition(|it| it.ends_with(lists::FILE));
    work(&first, &AtomicUsize::new(0), &failures);
    thread::scope(|scope| {
        for _ in 0..N_THREADS.min(rest.len()) {
            scope.spawn(|| work(&rest, &next, &failures));
        }
    });
    let mut failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    failures.sort();
    let (n_failed, n_played) = (failures.len(), first.len() + rest.len());
    assert!(n_failed == 0, "{n_failed} of {n_played} conversations failed\n\n{}", failures.join("\n\n"));
}

fn work(paths: &[PathBuf], next: &AtomicUsize, failures: &Mutex<Vec<String>>) {
    while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
        let played = panic::catch_unwind(AssertUnwindSafe(|| check(path)));
        let failure = match played {
            Ok(Ok(())) => continue,
            Ok(Err(it)) => report(path, &it),
            Err(_) => format!("=== {}\npanicked, see above", name(path)),
        };
        failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
    }
}

/// Plays a file. If it fails, and is to be rewritten, the new file is played as well: it has to hold.
fn check(path: &Path) -> Result<(), Failure> {
    let text = fs::read_to_string(path).unwrap();
    let played = play::play(&text);
    if played.is_ok() || std::env::var_os("UPDATE_EXPECT").is_none() {
        return played;
    }
    let new = play::rewritten(&text)?;
    if new == text {
        return played;
    }
    fs::write(path, &new).unwrap();
    play::play(&new)
}

/// What a failure says: its place, the messages before it, and how to play the file alone.
fn report(path: &Path, failure: &Failure) -> String {
    let name = name(path);
    let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conversations").join(format!("{name}.txt"));
    fs::create_dir_all(all.parent().unwrap()).and_then(|()| fs::write(&all, &failure.transcript)).unwrap();
    let (said, errors) = failure.transcript.split_once(STDERR).unwrap_or((failure.transcript.as_str(), ""));
    let place = if failure.line > 0 { format!(":{}", failure.line) } else { String::new() };
    format!(
        "=== {name}\ntests/data/{name}.txt{place}: {}\n-- the last messages; all are in {} --\n{}\n-- on stderr --\n{}\n\
         -- play it alone --\nCONVERSATION={name} cargo test --test it conversations",
        failure.why,
        all.display(),
        last_lines(said),
        last_lines(errors),
    )
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let cut = |line: &&str| match line.char_indices().nth(MAX_SHOWN) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => (*line).to_owned(),
    };
    lines[lines.len().saturating_sub(N_BEFORE)..].iter().map(cut).collect::<Vec<_>>().join("\n")
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn files() -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).unwrap().map(|it| it.unwrap().path());
    let is_conversation = |it: &PathBuf| it.extension().is_some_and(|it| it == "txt") && !it.ends_with("findable.txt");
    let mut res: Vec<PathBuf> = entries.filter(is_conversation).collect();
    res.sort();
    res
}

/// A file that does not even parse must not wait for somebody to build the agent.
#[test]
fn conversations_are_well_formed() {
    let parsed = files().into_iter().filter_map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        file::parse(&text).err().map(|why| format!("{}: {why}", path.display()))
    });
    let bad: Vec<String> = parsed.collect();
    assert!(bad.is_empty(), "\n{}\n", bad.join("\n"));
}

#[test]
fn reports_name_the_place_and_the_command() {
    let said: String = (1..=30).map(|it| format!("<- {it}\n")).collect();
    let failure = Failure { line: 7, why: "expected".to_owned(), transcript: format!("{said}{STDERR}warned") };
    let report = report(Path::new("some/no-such.txt"), &failure);
    assert!(report.contains("tests/data/no-such.txt:7: expected"), "{report}");
    assert!(report.contains("<- 21\n") && !report.contains("<- 20\n") && report.contains("warned"), "{report}");
    assert!(report.ends_with("CONVERSATION=no-such cargo test --test it conversations"), "{report}");
    assert_eq!(last_lines(&"x".repeat(MAX_SHOWN + 1)).chars().count(), MAX_SHOWN + 1);
}
