//! What lies in the folders that a command may write and must stay as it is.

use std::{collections::VecDeque, ffi::OsString, fs, io, path::Path};

use super::{
    Plan,
    held::{self, Held},
};
use crate::base::{
    guarded,
    path::AbsPath,
    sandbox::{Confinement, GIT_CONFIG, NEVER_MADE, StandIn, WORKTREE_CONFIG},
};

/// How far below a root configuration is looked for before each command, and in how many folders.
const DEPTH: usize = 4;
const FOLDERS: usize = 200;
/// Another castor may remove a stand-in while we look, but not for ever.
const TRIES: usize = 20;
/// Not looked into: made by tools, removed by tools, large, and full of others' configuration.
const PASSED_OVER: &[&str] = &["node_modules", "target", "vendor", "venv", "__pycache__"];

pub(super) fn plan(it: &Confinement, cwd: &AbsPath, namespaces: bool) -> io::Result<(Plan, Held)> {
    for _ in 0..TRIES {
        let mut held = Held::default();
        let looked = {
            // Letting go waits for it, too.
            let _alone = held::alone();
            look(it, cwd, namespaces, &mut held)
        };
        let plan = looked?;
        if plan.protected.iter().chain(&plan.deep).all(|it| it.symlink_metadata().is_ok()) {
            return Ok((plan, held));
        }
    }
    Err(io::Error::other("its folders do not come to rest"))
}

fn look(it: &Confinement, cwd: &AbsPath, namespaces: bool, held: &mut Held) -> io::Result<Plan> {
    let mut plan = Plan { cwd: cwd.as_path().into(), network: it.network, namespaces, ..Plan::default() };
    plan.tmp = it.tmp.as_path().into();
    let roots: &[AbsPath] = if it.read_only { &[] } else { &it.roots };
    let there = roots.iter().chain(&it.writable).map(|it| it.as_path().to_owned()).filter(|it| it.exists());
    plan.writable = there.filter_map(|it| it.canonicalize().ok()).collect();
    for root in plan.writable.clone().iter().filter(|it| it.is_dir()) {
        guard_folder(root, &mut plan, held)?;
        if namespaces {
            guard_below(root, &mut plan, held)?;
        }
    }
    for kept in &it.kept {
        let below = plan.writable.iter().any(|it| kept.as_path().starts_with(it));
        if below {
            protect(kept.as_path(), StandIn::Folder, &mut plan, held)?;
        }
    }
    held.remember(&plan.writable, &plan.tmp);
    Ok(plan)
}

/// Protects configuration in a folder that may be written.
fn guard_folder(root: &Path, plan: &mut Plan, held: &mut Held) -> io::Result<()> {
    let entries = fs::read_dir(root)?.filter_map(Result::ok).map(|it| it.file_name());
    let mut names: Vec<OsString> =
        entries.filter(|it| it != ".git" && guarded::CONFIG.find(Path::new(it)).is_some()).collect();
    names.extend(NEVER_MADE.iter().filter(|it| **it != ".git").map(OsString::from));
    names.sort();
    names.dedup();
    // Two names in a row, such as `.github/workflows`: protected where they are there.
    let deep = guarded::CONFIG.paths.iter().filter(|it| !it.starts_with('/')).map(|it| root.join(it));
    for path in deep.filter(|it| it.exists()) {
        protect(&path, StandIn::Folder, plan, held)?;
    }
    for name in names {
        protect(&root.join(name), StandIn::Folder, plan, held)?;
    }
    guard_git(&root.join(".git"), plan, held)
}

/// Protects what git obeys in a repository.
fn guard_git(git: &Path, plan: &mut Plan, held: &mut Held) -> io::Result<()> {
    if !fs::symlink_metadata(git).is_ok_and(|it| it.is_dir()) || held::is_placeholder(git) {
        // A worktree's `.git` is a file that says where the repository is.
        return protect(git, StandIn::Folder, plan, held);
    }
    plan.fixed.push(git.to_owned());
    for (name, stand_in) in GIT_CONFIG {
        protect(&git.join(name), *stand_in, plan, held)?;
    }
    let trees = fs::read_dir(git.join("worktrees")).into_iter().flatten().filter_map(Result::ok);
    for tree in trees.filter(|it| it.file_type().is_ok_and(|it| it.is_dir())) {
        for (name, stand_in) in WORKTREE_CONFIG {
            let path = tree.path().join(name);
            if stand_in.is_some() || path.exists() {
                protect(&path, stand_in.unwrap_or(StandIn::Folder), plan, held)?;
            }
        }
    }
    Ok(())
}

/// Protects what is there deeper: other repositories, and folders that an editor may have open by themselves.
fn guard_below(root: &Path, plan: &mut Plan, held: &mut Held) -> io::Result<()> {
    let mut deep = Plan { namespaces: true, ..Plan::default() };
    let mut waiting = VecDeque::from([(root.to_owned(), 0)]);
    for _ in 0..FOLDERS {
        let Some((folder, depth)) = waiting.pop_front() else { break };
        // Gone, or not ours to read.
        for entry in fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok) {
            let (name, path) = (entry.file_name(), entry.path());
            let is_dir = entry.file_type().is_ok_and(|it| it.is_dir());
            let name = name.to_string_lossy();
            match NEVER_MADE.contains(&&*name) {
                // The top is guarded already.
                true if depth == 0 => (),
                true if name == ".git" => guard_git(&path, &mut deep, held)?,
                true => protect(&path, StandIn::Folder, &mut deep, held)?,
                false if !is_dir || name.starts_with('.') || PASSED_OVER.contains(&&*name) => (),
                false if depth < DEPTH => waiting.push_back((path, depth + 1)),
                false => (),
            }
        }
    }
    // A link down there is no reason to refuse all that is new at the top, nor one to nowhere to run nothing.
    plan.deep.extend(deep.protected.into_iter().filter(|it| it.exists()));
    plan.fixed.extend(deep.fixed);
    Ok(())
}

fn protect(path: &Path, stand_in: StandIn, plan: &mut Plan, held: &mut Held) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(it) if it.is_symlink() => {
            plan.strict = true;
            // What it leads to is obeyed in its place.
            plan.protected.extend(path.canonicalize());
        }
        Ok(_) => held.share(path, stand_in),
        // Without mounts nothing can be made beside what is there, and with them only what is there can be held.
        Err(it) if it.kind() == io::ErrorKind::NotFound && plan.namespaces => {
            if !held.make(path, stand_in)? {
                return Ok(());
            }
        }
        Err(it) if it.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(it) => return Err(it),
    }
    plan.protected.push(path.to_owned());
    Ok(())
}
