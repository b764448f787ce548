//! Conversations as text: every file of `tests/data` is played against the real binary. `README.md` there has the format.

mod alias;
mod file;
pub mod model;
mod pattern;
mod play;

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

const N_THREADS: usize = 4;

/// `UPDATE_EXPECT=1` rewrites the expected lines; `CONVERSATION=name` plays only the files with that in their name.
#[test]
fn conversations() {
    let only = std::env::var("CONVERSATION").unwrap_or_default();
    let mut paths = files();
    paths.retain(|it| it.to_string_lossy().contains(&only));
    if !castor::world::process::sandbox::is_available() {
        eprintln!("skipped: conversations named sandbox-*, since this kernel has no Landlock");
        paths.retain(|it| !it.file_name().is_some_and(|it| it.to_string_lossy().starts_with("sandbox-")));
    }
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..N_THREADS.min(paths.len()) {
            scope.spawn(|| work(&paths, &next, &failures));
        }
    });
    let mut failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    failures.sort();
    let n_failed = failures.len();
    assert!(n_failed == 0, "{n_failed} of {} conversations failed\n\n{}", paths.len(), failures.join("\n\n"));
}

fn work(paths: &[PathBuf], next: &AtomicUsize, failures: &Mutex<Vec<String>>) {
    while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
        let played = panic::catch_unwind(AssertUnwindSafe(|| check(path)));
        let failure = match played {
            Ok(Ok(())) => continue,
            Ok(Err(why)) => why,
            Err(_) => "panicked, see above".to_owned(),
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        failures.lock().unwrap_or_else(PoisonError::into_inner).push(format!("=== {name}\n{failure}"));
    }
}

fn check(path: &Path) -> Result<(), String> {
    let text = fs::read_to_string(path).unwrap();
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let (played, new) = play::play(&text, update);
    if update && new != text {
        fs::write(path, new).unwrap();
    }
    played
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let entries = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
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
