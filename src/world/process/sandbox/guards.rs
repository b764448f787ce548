//! What lies in the folders that a command may write and must stay as it is.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use nix::{
    fcntl::{OFlag, openat},
    sys::stat::{Mode, mkdirat},
};

use super::{
    Plan,
    aside::{deep, is_repository},
    below, excludes,
    held::{self, Held},
    named::{self, Named, OfUser},
    outputs, rights, submodules,
};
use crate::{
    base::{
        path::AbsPath,
        sandbox::{Confinement, GIT_CONFIG, Granted, NEVER_MADE, StandIn, WORKTREE_CONFIG, held_below, is_held},
    },
    world::disk,
};

/// Another castor may remove a stand-in while we look, but not for ever.
const TRIES: usize = 20;
/// Where a command runs.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    pub cwd: &'a AbsPath,
    /// As its environment says.
    pub home: Option<&'a Path>,
}

/// `below`: how many repositories and editors' folders below a root are held at most; `None`: nothing can be mounted.
pub(super) fn plan(it: &Confinement, around: Around<'_>, below: Option<usize>) -> io::Result<(Plan, Held)> {
    for _ in 0..TRIES {
        let mut held = Held::new(it.records.as_path());
        let looked = {
            // Letting go waits for it, too.
            let _alone = held::alone();
            look(it, around, below, &mut held)
        };
        let plan = looked?;
        // A stand-in is locked, and was there then.
        let standing = held.standing();
        let mut all = plan.protected.iter().chain(&plan.deep).chain(&plan.fixed);
        if all.all(|it| standing.contains(it.as_path()) || it.symlink_metadata().is_ok()) {
            excludes::write(&plan.tmp, &standing, plan.of_user.home.as_deref());
            drop(standing);
            return Ok((plan, held));
        }
    }
    Err(io::Error::other("its folders do not come to rest"))
}

fn look(it: &Confinement, around: Around<'_>, below: Option<usize>, held: &mut Held) -> io::Result<Plan> {
    let namespaces = below.is_some();
    let (cwd, of_user) = (around.cwd.as_path().into(), OfUser::look(around.home));
    let mut plan = Plan { cwd, of_user, network: it.network, namespaces, ..Plan::default() };
    plan.tmp = it.tmp.as_path().canonicalize()?;
    it.granted.iter().for_each(|it| make(it, held));
    // A repository is made in a folder that is not written, too.
    let repositories =
        it.open.iter().filter(|open| it.read_only && open.as_path().ends_with(".git") && !it.keeps(open));
    repositories.for_each(|open| make(&Granted::Folder(open.clone()), held));
    plan.writable = writable(it)?;
    // Of what is kept nothing is ever open.
    let is_kept = |open: &AbsPath| it.kept.iter().any(|it| it.is_within(open) || open.is_within(it));
    plan.open = it.open.iter().filter(|it| !is_kept(it)).map(|it| it.as_path().to_owned()).collect();
    for root in plan.writable.clone().iter().filter(|it| it.is_dir()) {
        guard_folder(root, &mut plan, held)?;
        if let Some(most) = below {
            guard_below(root, most, &mut plan, held)?;
        }
    }
    let roots = plan.writable.clone();
    // What was there when the session began; another folder in its place is nobody's yes.
    let gits = it.gits.iter().map(AbsPath::as_path).filter(|git| git.canonicalize().is_ok_and(|it| it == **git));
    for git in gits.filter(|_| !it.read_only) {
        guard_git(git, &mut plan, held)?;
        plan.writable.push(git.to_owned());
    }
    for kept in &it.kept {
        let below = plan.writable.iter().any(|it| kept.as_path().starts_with(it));
        if below {
            // Git does nothing where its settings are a folder.
            let what = if kept.as_path().ends_with(".gitconfig") { StandIn::File("") } else { StandIn::Folder };
            protect(kept.as_path(), what, &mut plan, held)?;
        }
    }
    if namespaces {
        fix_ways(&mut plan);
    }
    // What lies within another is met twice. What is above comes first, and so is mounted first.
    for them in [&mut plan.writable, &mut plan.protected, &mut plan.deep, &mut plan.inner] {
        them.sort();
        them.dedup();
    }
    // Without mounts there is nothing that could be lifted.
    let mounted: [&[PathBuf]; 2] = if namespaces { [&plan.protected, &plan.deep] } else { [&[], &[]] };
    held.remember(&roots, &mounted, &plan.tmp, &plan.open);
    Ok(plan)
}

/// What may be written, as it is now, but for folders that nobody can look into. A command may have put a link in the place of a folder that lies within another.
pub(super) fn writable(it: &Confinement) -> io::Result<Vec<PathBuf>> {
    let roots: &[AbsPath] = if it.read_only { &[] } else { &it.roots };
    let mut res = Vec::new();
    // By a link a grant may lead where nothing is granted.
    let is_given = |real: &Path| AbsPath::new(real).is_some_and(|real| !it.is_too_wide(&real));
    let leads_there = |it: &&Granted| !matches!(it, Granted::Output(path) if !outputs::is_own(path.as_path()));
    let granted = it.granted.iter().filter(leads_there).filter_map(|it| it.path().as_path().canonicalize().ok());
    res.extend(granted.filter(|it| is_given(it)));
    // Nothing above it is written, and no link on the way may lead elsewhere.
    let opened = it.open.iter().filter(|_| it.read_only).map(AbsPath::as_path);
    let opened = opened.filter(|open| open.canonicalize().is_ok_and(|real| real == **open));
    res.extend(opened.filter(|it| is_given(it)).map(Path::to_owned));
    for folder in roots.iter().chain(&it.writable).filter(|it| it.as_path().symlink_metadata().is_ok()) {
        let Ok(real) = folder.as_path().canonicalize() else { continue };
        let is_within = it.roots.iter().chain(&it.writable).any(|it| it != folder && folder.is_within(it));
        if real != folder.as_path() && (is_within || roots.contains(folder)) {
            let why = format!("{folder} is not the folder that it was: it leads to {}", real.display());
            return Err(io::Error::other(why));
        }
        res.push(real);
    }
    // What is in them cannot be held, and no command could do much there.
    res.retain(|it| rights::opens(it));
    Ok(res)
}

/// Makes what the user allowed to be written and is not there, for the user alone. Where it cannot be made it is left out.
fn make(it: &Granted, held: &mut Held) {
    if let Granted::Output(path) = it {
        held.output(path.as_path());
        return;
    }
    let (path, private) = (it.path().as_path(), OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC);
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return };
    if path.symlink_metadata().is_ok() {
        return;
    }
    let made = held::open_folder(above).and_then(|above| match it {
        Granted::Folder(_) => Ok(mkdirat(&above, name, Mode::S_IRWXU)?),
        Granted::File(_) | Granted::Output(_) => {
            Ok(openat(&above, name, private, Mode::S_IRUSR | Mode::S_IWUSR).map(|_| ())?)
        }
    });
    if let Err(why) = made {
        tracing::warn!("{} may be written, and cannot be made: {why}", path.display());
    }
}

/// A mount point goes where the folder above it goes: so all folders between it and a root stay where they are.
fn fix_ways(plan: &mut Plan) {
    let is_below = |it: &Path| plan.writable.iter().any(|root| it.starts_with(root) && it != root);
    let ends = plan.protected.iter().chain(&plan.deep).chain(&plan.fixed).chain(&plan.writable);
    let ways = ends.flat_map(|it| it.ancestors().skip(1)).filter(|it| is_below(it)).map(Path::to_owned);
    // What is mounted itself stays where it is by that.
    let is_mounted =
        |it: &PathBuf| [&plan.writable, &plan.protected, &plan.deep, &plan.inner].iter().any(|them| them.contains(it));
    let fixed = ways.chain(plan.fixed.iter().cloned()).filter(|it| !is_mounted(it));
    let fixed: BTreeSet<PathBuf> = fixed.collect();
    // What is above comes first in this order, and so is mounted first.
    plan.fixed = fixed.into_iter().collect();
}

/// Protects configuration in a folder that may be written.
fn guard_folder(root: &Path, plan: &mut Plan, held: &mut Held) -> io::Result<()> {
    let entries = fs::read_dir(root)?.filter_map(Result::ok).map(|it| it.file_name());
    let below = held_below(root);
    let mut names: Vec<OsString> = entries.filter(|it| it != ".git" && is_held(it, &below)).collect();
    names.extend(NEVER_MADE.iter().filter(|it| **it != ".git").map(OsString::from));
    names.sort();
    names.dedup();
    // Two names in a row, such as `.github/workflows`: protected where they are there.
    for path in deep(root).iter().map(|it| root.join(it)).filter(|it| it.exists()) {
        // A link on the way counts for all that it leads to.
        let link = path.ancestors().take_while(|it| *it != root).find(|it| it.is_symlink());
        protect(link.unwrap_or(&path), StandIn::Folder, plan, held)?;
    }
    for name in names {
        protect(&root.join(name), StandIn::Folder, plan, held)?;
    }
    if is_repository(root) {
        guard_git(root, plan, held)?;
    }
    guard_git(&root.join(".git"), plan, held)
}

/// Protects what git obeys in a repository.
fn guard_git(git: &Path, plan: &mut Plan, held: &mut Held) -> io::Result<()> {
    if plan.opens(git) {
        return Ok(());
    }
    if !fs::symlink_metadata(git).is_ok_and(|it| it.is_dir()) || held::is_placeholder(git) {
        // A worktree's `.git` is a file that says where the repository is.
        return protect(git, StandIn::Folder, plan, held);
    }
    if !rights::opens(git) {
        plan.protected.push(git.to_owned());
        return Ok(());
    }
    plan.fixed.push(git.to_owned());
    held.head(git);
    // Without them it is no repository, and git looks for one elsewhere.
    let parts = ["objects", "refs"].map(|it| git.join(it));
    plan.fixed.extend(parts.into_iter().filter(|it| it.symlink_metadata().is_ok_and(|it| it.is_dir())));
    for (name, stand_in) in GIT_CONFIG {
        protect(&git.join(name), *stand_in, plan, held)?;
    }
    for it in named::by(git)?.iter().chain(&plan.of_user.names.clone()) {
        hold_named(git, it, plan, held)?;
    }
    guard_submodules(git, plan, held)?;
    let trees = git.join("worktrees");
    match fs::symlink_metadata(&trees) {
        Ok(it) if it.is_dir() => plan.fixed.push(trees.clone()),
        // No such folder, or a link: git follows it, and nothing is made where it leads.
        Ok(_) => return protect(&trees, StandIn::Folder, plan, held),
        Err(_) => return Ok(()),
    }
    let trees = fs::read_dir(trees).into_iter().flatten().filter_map(Result::ok);
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

/// What a repository keeps of its submodules is written as it is itself, and new ones are not made.
fn guard_submodules(git: &Path, plan: &mut Plan, held: &mut Held) -> io::Result<()> {
    let modules = git.join("modules");
    // Nothing can be written in what is protected but by a mount.
    if !plan.namespaces || plan.opens(&modules) {
        return Ok(());
    }
    for module in submodules::of(&modules) {
        guard_deep(plan, |deep| guard_git(&module, deep, held))?;
        plan.inner.push(module);
    }
    Ok(())
}

/// Protects what is there deeper: other repositories, and folders that an editor may have open by themselves.
fn guard_below(root: &Path, most: usize, plan: &mut Plan, held: &mut Held) -> io::Result<()> {
    guard_deep(plan, |deep| {
        // What only root's rights lead to is not there for a command, and cannot be mounted.
        let found = below::held(root).into_iter().filter(|it| rights::reaches(it));
        found.take(most).try_for_each(|path| match path.ends_with(".git") {
            true => guard_git(&path, deep, held),
            false => protect(&path, StandIn::Folder, deep, held),
        })
    })
}

/// A link down there is no reason to refuse all that is new at the top, nor one to nowhere to run nothing.
fn guard_deep(plan: &mut Plan, guard: impl FnOnce(&mut Plan) -> io::Result<()>) -> io::Result<()> {
    let (open, writable, of_user) = (plan.open.clone(), plan.writable.clone(), plan.of_user.clone());
    let mut deep = Plan { namespaces: true, open, writable, of_user, ..Plan::default() };
    guard(&mut deep)?;
    plan.deep.extend(deep.protected.into_iter().chain(deep.deep).filter(|it| it.exists()));
    plan.fixed.extend(deep.fixed);
    plan.inner.extend(deep.inner);
    Ok(())
}

impl Plan {
    /// Whether the user said that it may be written.
    fn opens(&self, path: &Path) -> bool {
        self.open.iter().any(|it| path.starts_with(it))
    }
}

fn protect(path: &Path, stand_in: StandIn, plan: &mut Plan, held: &mut Held) -> io::Result<()> {
    if plan.opens(path) {
        return Ok(());
    }
    match fs::symlink_metadata(path) {
        Ok(it) if it.is_symlink() => {
            plan.links.push(path.to_owned());
            // What it leads to is obeyed in its place.
            return match path.canonicalize() {
                Ok(it) => {
                    plan.protected.push(it);
                    Ok(())
                }
                Err(_) => hold_target(path, stand_in, plan, held),
            };
        }
        Ok(_) => held.share(path, stand_in),
        // Without mounts nothing can be made beside what is there, and with them only what is there can be held.
        Err(it) if it.kind() == io::ErrorKind::NotFound && plan.namespaces => {
            if !held.make(path, stand_in)? {
                return Ok(());
            }
        }
        Err(it) if it.kind() == io::ErrorKind::NotFound => return Ok(()),
        // All of a folder that nobody can look into: its owner could open it, and then write what is obeyed.
        Err(it) if it.kind() == io::ErrorKind::PermissionDenied => {
            let shut = path.ancestors().skip(1).find(|it| it.symlink_metadata().is_ok()).ok_or(it)?;
            plan.protected.push(shut.to_owned());
            return Ok(());
        }
        Err(it) => return Err(it),
    }
    plan.protected.push(path.to_owned());
    Ok(())
}

/// Holds the place that a link leads to where nothing is yet: whoever makes it makes what is obeyed.
fn hold_target(link: &Path, stand_in: StandIn, plan: &mut Plan, held: &mut Held) -> io::Result<()> {
    match AbsPath::new(link).and_then(|it| disk::real_path(&it).ok()) {
        Some(target) => hold_place(target.as_path(), stand_in, plan, held),
        None => Ok(()),
    }
}

fn hold_place(target: &Path, stand_in: StandIn, plan: &mut Plan, held: &mut Held) -> io::Result<()> {
    let missing = target.ancestors().take_while(|it| it.symlink_metadata().is_err()).last();
    let Some(place) = missing.filter(|it| plan.writable.iter().any(|root| it.starts_with(root))) else { return Ok(()) };
    let what = if place == target { stand_in } else { StandIn::Folder };
    protect(place, what, plan, held)
}

/// Protects what a repository's settings name, where commands may write it. What is relative counts from any folder that git
/// may be called in at the top.
fn hold_named(git: &Path, it: &Named, plan: &mut Plan, held: &mut Held) -> io::Result<()> {
    let tops: BTreeSet<PathBuf> = git.parent().map(Path::to_owned).into_iter().chain(plan.writable.clone()).collect();
    let places: BTreeSet<PathBuf> = tops.iter().filter_map(|top| it.place(top, plan.of_user.home.as_deref())).collect();
    for place in &places {
        let is_written = plan.writable.iter().any(|root| place.starts_with(root));
        let holds_root = plan.writable.iter().any(|root| root.starts_with(place));
        match (it.stand_in, fs::metadata(place).ok()) {
            (Some(_), Some(_)) if holds_root && is_written => {
                let why = format!("git's settings name all of {}, which cannot be kept from commands", place.display());
                return Err(io::Error::other(why));
            }
            _ if !is_written || holds_root => (),
            (Some(stand_in), Some(_)) => protect(place, stand_in, plan, held)?,
            (Some(stand_in), None) => hold_place(place, stand_in, plan, held)?,
            (None, Some(it)) if it.is_file() => protect(place, StandIn::File(""), plan, held)?,
            (None, _) => (),
        }
    }
    Ok(())
}
