//! What a checkpoint costs: 10,000 files with 200 MB, beside git's plumbing with an index of its own and `git status`.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

mod timing;

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use castor_base::{
    checkpoint::{OnConflict, RestoreOrder, Scope},
    path::AbsPath,
};
use castor_hands::checkpoints::{Buffers, Checkpoints, Limits};
use timing::{percentile, times};

const FILES: usize = 10_000;
const BYTES: usize = 20_000;
const ROUNDS: usize = 20;

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
    let (root, home) = (top.join("root"), top.join(".castor"));
    make_tree(&root);
    git(&root, &["init", "-q"], None);
    // The manifest believes only files that are older than this.
    wait_until_old();

    let session = Checkpoints::new(&home, &"s".into(), std::slice::from_ref(&root), Limits::default());
    let first = time(|| _ = session.open(&|| false).unwrap());
    let unchanged =
        median(|n| session.before(&format!("n{n}").as_str().into(), &Scope::Roots, &|| false).map(drop).unwrap());
    let file = root.join("d00/f0000");
    let one = median(|n| {
        let (id, scope) = (format!("f{n}").as_str().into(), Scope::Files(vec![file.clone()]));
        session.before(&id, &scope, &|| false).unwrap();
    });
    let hold = |n: usize| {
        let (id, scope) = (format!("e{n}").as_str().into(), Scope::Files(vec![file.clone()]));
        let before = time(|| _ = session.before(&id, &scope, &|| false).unwrap());
        // That the disk is slow to empty a file that it just wrote is no cost of the checkpoint.
        fs::write(&file, format!("{n}\n")).unwrap();
        before + time(|| _ = session.after(&id).unwrap())
    };
    let mut both: Vec<Duration> = (0..=ROUNDS).map(hold).skip(1).collect();
    both.sort();
    let both = percentile(&both, 50);
    drop(session);
    let session = Checkpoints::new(&home, &"t".into(), std::slice::from_ref(&root), Limits::default());
    let later = time(|| _ = session.open(&|| false).unwrap());
    session.before(&"c".into(), &Scope::Roots, &|| false).unwrap();
    for entry in fs::read_dir(&root).unwrap().flatten().filter(|it| it.file_name() != ".git") {
        fs::remove_dir_all(entry.path()).unwrap();
    }
    let removed = time(|| _ = session.after(&"c".into()).unwrap());
    let order = |id: &str, undo: &str| RestoreOrder {
        id: id.into(),
        undo: vec![undo.into()],
        on_conflict: OnConflict::Fail,
        paths: None,
    };
    // Some disks are slow to make files while they remember those that were just removed.
    wait_until_old();
    wait_until_old();
    let all = time(|| _ = session.restore(&order("r", "c"), &Buffers::default()).unwrap());
    fs::write(root.join("d01/f0000"), "x").unwrap();
    wait_until_old();
    session.before(&"d".into(), &Scope::Roots, &|| false).unwrap();
    for n in 0..100 {
        fs::write(root.join(format!("d02/f{n:04}")), "x").unwrap();
    }
    session.after(&"d".into()).unwrap();
    let some = time(|| _ = session.restore(&order("q", "d"), &Buffers::default()).unwrap());

    let index = top.join("index");
    let plumbing = || {
        git(&root, &["add", "-A", "."], Some(&index));
        git(&root, &["write-tree"], Some(&index));
    };
    let git_first = time(plumbing);
    let git_unchanged = median(|_| plumbing());
    let status = median(|_| git(&root, &["status", "--porcelain", "-uno"], Some(&index)));
    let ratio = |a: Duration, b: Duration| a.as_secs_f64() / b.as_secs_f64();
    println!("{FILES} files, {} MB", FILES * BYTES / 1_000_000);
    println!(
        "first walk           {first:?}; git add and write-tree {git_first:?}; ratio {:.2}",
        ratio(first, git_first)
    );
    println!(
        "nothing changed      {unchanged:?}; git {git_unchanged:?}, status {status:?}; ratio {:.2}",
        ratio(unchanged, git_unchanged)
    );
    println!("a later session      {later:?}");
    println!("one file, before     {one:?}; before and after {both:?}");
    println!("all files removed    {removed:?}");
    println!("restore of all       {all:?}; of 100 files {some:?}");
}

fn make_tree(root: &AbsPath) {
    let mut seed = 1_u64;
    for n in 0..FILES {
        let dir = root.join(format!("d{:02}", n / 100));
        if n % 100 == 0 {
            fs::create_dir_all(&dir).unwrap();
        }
        let mut bytes = Vec::with_capacity(BYTES);
        while bytes.len() < BYTES {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            bytes.extend_from_slice(format!("{seed:x}\n").as_bytes());
        }
        fs::write(dir.join(format!("f{:04}", n % 100)), bytes).unwrap();
    }
}

fn wait_until_old() {
    let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    while SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() < start + 4 {
        std::thread::yield_now();
    }
}

fn git(root: &AbsPath, args: &[&str], index: Option<&AbsPath>) {
    let mut command = Command::new("git");
    command.args(args).current_dir(root.as_path() as &Path);
    if let Some(it) = index {
        command.env("GIT_INDEX_FILE", it.as_path());
    }
    assert!(command.output().unwrap().status.success(), "git {args:?}");
}

fn time(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

/// Without the first, which nobody waits for.
fn median(mut run: impl FnMut(usize)) -> Duration {
    let mut n = 0;
    let mut next = || {
        n += 1;
        run(n);
    };
    next();
    percentile(&times(ROUNDS, next), 50)
}
