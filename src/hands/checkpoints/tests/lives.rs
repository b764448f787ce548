//! Random trees and changes: undo and redo give back the exact state.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt, fs::symlink},
    path::{Path, PathBuf},
};

use super::{Bed, bed, call, conflicts, has_git, order, tree};
use crate::checkpoints::{Buffers, Failure, RestoreOutcome};
use castor_base::checkpoint::OnConflict;

/// A few words of dice: the same seed throws the same.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = self.below(from.len());
        &from[at]
    }
}

const NAMES: &[&[u8]] = &[
    b"a",
    b"b.txt",
    b"with space",
    b"line\nend",
    b"\xff\xfe",
    b"x.sh",
    b"-rf",
    b"--output=x",
    b".env",
    b"~",
    b"a-b",
    b"A",
    b"\xc3\xa9",
    b"ignored.log",
    b".GIT",
    b"git~1",
    b"*",
    b"$(x)",
];

fn content(dice: &mut Dice) -> Vec<u8> {
    let random =
        |n: usize, dice: &mut Dice| (0..n.div_ceil(8)).flat_map(|_| dice.next().to_le_bytes()).collect::<Vec<u8>>();
    let (some, many) = (dice.below(3000), dice.below(5 << 20));
    match dice.below(40) {
        0..8 => Vec::new(),
        8..14 => b"one\r\ntwo\r\n".to_vec(),
        14..20 => b"\xef\xbb\xbfmark\n".to_vec(),
        20..32 => format!("text {}\n", dice.next()).into_bytes(),
        32..38 => random(some, dice),
        38 => random(200 << 10, dice),
        _ => random(many, dice),
    }
}

/// The folders of a tree, without git's.
fn folders(root: &Path) -> Vec<PathBuf> {
    let mut res = vec![root.to_owned()];
    let mut idx = 0;
    while let Some(dir) = res.get(idx).cloned() {
        idx += 1;
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        let found = entries.flatten().filter(|it| it.file_type().unwrap().is_dir() && it.file_name() != ".git");
        res.extend(found.map(|it| it.path()));
    }
    res
}

fn entries(root: &Path) -> Vec<PathBuf> {
    let inner = |dir: &PathBuf| fs::read_dir(dir).unwrap().flatten().map(|it| it.path()).collect::<Vec<_>>();
    let mut res: Vec<PathBuf> = folders(root).iter().flat_map(inner).filter(|it| !it.ends_with(".git")).collect();
    res.sort();
    res
}

fn remove(path: &Path) {
    match path.symlink_metadata().is_ok_and(|it| it.is_dir()) {
        true => fs::remove_dir_all(path).unwrap(),
        false => _ = fs::remove_file(path),
    }
}

/// One thing more somewhere, or in the place of another.
fn add(root: &Path, dice: &mut Dice) {
    let all = folders(root);
    let path = dice.pick(&all).join(OsStr::from_bytes(dice.pick::<&[u8]>(NAMES)));
    remove(&path);
    match dice.below(10) {
        0 => fs::create_dir(&path).unwrap(),
        1 => {
            fs::create_dir(&path).unwrap();
            fs::write(path.join("in it"), content(dice)).unwrap();
        }
        2 => symlink(*dice.pick(&["/etc/hostname", "nowhere", "a", "../..", "."]), &path).unwrap(),
        _ => {
            fs::write(&path, content(dice)).unwrap();
            let mode = *dice.pick::<u32>(&[0o644, 0o600, 0o755, 0o444, 0o700, 0o640]);
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
    }
}

fn change(root: &Path, dice: &mut Dice) {
    let all = entries(root);
    if all.is_empty() {
        return add(root, dice);
    }
    let path = dice.pick(&all).clone();
    let is_file = path.symlink_metadata().unwrap().is_file();
    match dice.below(8) {
        0 => remove(&path),
        1 if is_file => fs::write(&path, "").unwrap(),
        2 => {
            let to = root.join(OsStr::from_bytes(dice.pick::<&[u8]>(NAMES)));
            // Into itself, or onto a folder that is not empty: another time.
            _ = fs::rename(&path, to);
        }
        3 if !path.symlink_metadata().unwrap().is_symlink() => {
            let mode = *dice.pick::<u32>(&[0o755, 0o700, 0o711, 0o750]);
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        4 => {
            remove(&path);
            symlink("/etc/passwd", &path).unwrap();
        }
        5 => {
            remove(&path);
            fs::create_dir(&path).unwrap();
        }
        6 if is_file => fs::write(&path, content(dice)).unwrap(),
        _ => add(root, dice),
    }
}

const GIT: &[&str] = &[
    "git reset -q --hard HEAD~1",
    "git checkout -q -b other && echo more > more && git add more && git commit -qm more",
    "git checkout -q --detach && rm -rf a",
    "git clean -qfdx",
    "echo dirty > tracked && git stash -q",
    "git branch -q -D side",
    "rm -rf .git",
    "git branch -D side -q && git reflog expire --expire=now --all && git gc -q --prune=now",
    "git gc -q",
    "git pack-refs --all --prune && git branch -q -D side",
    "echo staged > staged && git add staged",
    "git tag v2 && git tag -d v1",
    "git mv tracked moved && git commit -qam moved",
    "git worktree add -q wt side && rm -rf wt/tracked",
    "rm -rf .git && git init -q . && git add -A && git commit -qm anew",
    "git config user.name other && printf '#!/bin/sh\\n' > .git/hooks/pre-commit && git config core.bare false",
    "git update-ref refs/heads/side/deep HEAD 2>/dev/null || git branch -q -D side && git update-ref refs/heads/side/deep HEAD",
    "git merge -q --no-ff -m both side",
    "rm -rf nested/.git && echo x > nested/x",
    "cd nested && git checkout -q -b n2 && git rm -q -r . && git commit -qm empty",
    "git status -s > /dev/null",
];

fn make_repository(bed: &Bed) {
    bed.sh(
        "git init -q -b main . && echo '* text=auto eol=crlf' > .gitattributes && echo '*.lfs filter=lfs' >> .gitattributes \
         && printf 'target\\n*.log\\n' > .gitignore && echo 1 > tracked && echo x > ignored.log && git add .gitattributes .gitignore tracked \
         && git commit -qm one && git tag v1 && git checkout -q -b side && echo 2 > tracked && git commit -qam two \
         && git checkout -q main && echo 3 > third && git add third && git commit -qm three \
         && mkdir -p nested && cd nested && git init -q -b main . && echo n > n && git add n && git commit -qm n",
    );
}

fn live(seed: u64, git: bool) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let bed = bed();
    let root = bed.root.as_path();
    if git {
        make_repository(&bed);
    }
    for _ in 0..dice.below(25) {
        add(root, &mut dice);
    }
    if git {
        bed.sh("git add -A . >/dev/null 2>&1 || true");
    }
    let checkpoints = bed.opened("s");
    let (mut states, mut names, mut said) = (vec![tree(root)], Vec::new(), Vec::new());
    for n in 0..1 + dice.below(4) {
        let name = format!("c{n}");
        call(&checkpoints, &name, || {
            for _ in 0..dice.below(6) {
                change(root, &mut dice);
            }
            if git && dice.below(3) > 0 {
                let line = *dice.pick(GIT);
                // Some do not fit what is there by then.
                bed.sh(&format!("({line}) >/dev/null 2>&1 || true"));
                said.push(line);
            }
        });
        names.push(name);
        states.push(tree(root));
    }
    let first = dice.below(names.len());
    let ids: Vec<&str> = names[first..].iter().map(String::as_str).collect();
    let told = || format!("seed {seed}: undo {ids:?} of {said:?}");
    for (own, ids, state) in [
        ("r1", ids.clone(), &states[first]),
        ("r2", vec!["r1"], states.last().unwrap()),
        ("r3", vec!["r2"], &states[first]),
    ] {
        let done = match checkpoints.restore(&order(own, &ids, OnConflict::Fail), &Buffers::default()) {
            // None of the lines did anything.
            Err(Failure::Gone) => RestoreOutcome::default(),
            it => it.unwrap(),
        };
        assert_eq!(conflicts(&done, &bed.root), Vec::<String>::new(), "{own} {}", told());
        let found = tree(root);
        let text = |it: &[u8]| String::from_utf8_lossy(it).into_owned();
        for (path, want) in state {
            assert_eq!(found.get(path), Some(want), "{own} {} of {}", text(path), told());
        }
        let more: Vec<String> = found.keys().filter(|it| !state.contains_key(*it)).map(|it| text(it)).collect();
        assert!(more.is_empty(), "{own} {more:?} of {}", told());
    }
}

#[test]
fn undo_restores_the_exact_tree() {
    let n = std::env::var("CHECKPOINT_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(8);
    let start = std::env::var("CHECKPOINT_SEED").ok().and_then(|it| it.parse().ok());
    let git = has_git();
    for seed in start.map_or(1..n + 1, |it| it..it + 1) {
        live(seed, git && seed % 4 != 0);
    }
}
