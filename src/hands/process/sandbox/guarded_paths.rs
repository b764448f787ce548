//! Guarded paths in writable folders: a confined command cannot change them.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::{
    GuardContext, PlanNotes, PlannedNetwork, Quarantine, SandboxPlan, committed,
    git_config_paths::{self, ConfigPath, UserGitConfig},
    nested_config, new_repositories, placeholder_files,
    placeholders::Placeholders,
    plain_repository::worktree_tops,
    quarantine::nested_names,
    reachable,
    repository::is_repository,
    submodules, views,
};
use crate::disk;
use castor_base::{
    path::AbsPath,
    sandbox::{Confinement, GIT_CONFIG, Placeholder, WORKTREE_CONFIG, is_protected, protected_below},
};

/// Another castor may remove a placeholder while we look, but not for ever.
const TRIES: usize = 20;

/// `below`: how many repositories and editors' folders below a root are protected at most; `None`: nothing can be mounted.
pub(super) fn plan(
    it: &Confinement,
    around: GuardContext<'_>,
    below: Option<usize>,
) -> io::Result<(SandboxPlan, Placeholders)> {
    for _ in 0..TRIES {
        let mut standing = Placeholders::new(it.own_folders.records.as_path());
        let mut plan = empty(it, around, below.is_some())?;
        if !it.grant.read_only {
            // Letting go waits for it, too.
            let _alone = placeholder_files::lock_placeholders();
            fill_plan(it, below, &mut plan, &mut standing)?;
        }
        if plan.namespaces {
            plan.views = views::plan_views(it, &around, &plan)?;
        }
        standing.tmp = Some(plan.tmp.clone());
        // A placeholder is locked, and was there then.
        let stands = standing.paths();
        let mut all = plan.protected.iter().chain(&plan.deep).chain(&plan.fixed);
        if all.all(|it| stands.contains(it.as_path()) || it.symlink_metadata().is_ok()) {
            drop(stands);
            return Ok((plan, standing));
        }
    }
    Err(io::Error::other("its folders do not come to rest"))
}

fn empty(it: &Confinement, around: GuardContext<'_>, namespaces: bool) -> io::Result<SandboxPlan> {
    let tmp = it.own_folders.tmp.as_path().canonicalize()?;
    let mut plan = SandboxPlan {
        cwd: around.cwd.as_path().into(),
        network: PlannedNetwork { is_whole: it.network, door: Vec::new() },
        namespaces,
        tmp,
        ..SandboxPlan::default()
    };
    if !it.grant.read_only {
        plan.notes.user_config = UserGitConfig::look(around.home);
    }
    Ok(plan)
}

fn fill_plan(
    it: &Confinement,
    below: Option<usize>,
    plan: &mut SandboxPlan,
    standing: &mut Placeholders,
) -> io::Result<()> {
    plan.writable = writable_roots(it)?;
    // Of what is kept nothing is ever open.
    let is_kept = |open: &AbsPath| it.never_written.iter().any(|it| it.is_within(open) || open.is_within(it));
    let open = |them: &[AbsPath]| -> Vec<PathBuf> {
        them.iter().filter(|it| !is_kept(it)).map(|it| it.as_path().to_owned()).collect()
    };
    plan.notes.open = [open(&it.grant.config), open(&allowed_folders(it))].concat();
    for root in plan.writable.clone().iter().filter(|it| it.is_dir()) {
        guard_folder(root, plan, standing)?;
        if let Some(most) = below {
            guard_below(root, most, plan, standing)?;
        }
    }
    let roots = plan.writable.clone();
    // What was there when the session began; another folder in its place is nobody's yes.
    let gits =
        it.git_dirs.iter().filter(|git| !it.read_only && !it.read_only_paths.contains(git)).map(AbsPath::as_path);
    for git in gits.filter(|git| git.canonicalize().is_ok_and(|it| it == **git)) {
        guard_git(git, plan, standing)?;
        plan.writable.push(git.to_owned());
    }
    let lies_in_root = |path: &&AbsPath| roots.iter().any(|it| path.as_path().starts_with(it));
    for path in it.never_written.iter().chain(&it.read_only_paths).filter(lies_in_root) {
        protect(path.as_path(), plan)?;
    }
    if let Some(caches) = &it.own_folders.caches {
        super::make_private(caches.as_path())?;
        let caches = caches.as_path().canonicalize()?;
        if plan.writes(&caches) {
            plan.inner.push(caches.clone());
        }
        plan.writable.push(caches);
    }
    if plan.namespaces {
        fix_parent_folders(plan);
        // What hides castor's folder lies on the way to what is seen in it, and nobody writes there.
        let is_castors = |path: &Path| {
            it.masked.iter().any(|all| it.own_folders.records.is_within(all) && path.starts_with(all.as_path()))
        };
        plan.fixed.retain(|it| !is_castors(it));
    }
    // What lies within another is met twice. What is above comes first, and so is mounted first.
    for them in [&mut plan.writable, &mut plan.protected, &mut plan.deep, &mut plan.inner] {
        them.sort();
        them.dedup();
    }
    if below.is_none() {
        new_repositories::look(&roots);
    }
    let before = Quarantine::take_snapshot(&roots).with_commits(committed::session_commits(it));
    let stays = [plan.notes.open.clone(), open(&it.grant.named_config)].concat();
    standing.set_quarantine(before, std::mem::take(&mut plan.notes.absent), &stays);
    Ok(())
}

/// Folders outside the workspace that the user allowed to write: nothing is guarded in them, or a command could not remove
/// there what it may write. A yes to a folder around a root or a known repository says nothing of what is guarded in these.
fn allowed_folders(it: &Confinement) -> Vec<AbsPath> {
    let real = |it: &AbsPath| AbsPath::new(&it.as_path().canonicalize().ok()?);
    let is_apart = |folder: &AbsPath| {
        let known = it.roots.iter().chain(&it.writable).chain(&it.git_dirs);
        !known.clone().any(|known| known.is_within(folder) || folder.is_within(known))
    };
    it.grant.write.iter().filter_map(real).filter(is_apart).collect()
}

/// What may be written, as it is now, but for folders that nobody can look into. A command may have put a link in the place
/// of a folder that lies within another.
pub(super) fn writable_roots(it: &Confinement) -> io::Result<Vec<PathBuf>> {
    let roots: &[AbsPath] = if it.read_only { &[] } else { &it.roots };
    let mut res = Vec::new();
    // By a link a grant may lead where nothing is granted.
    let is_given = |real: &Path| AbsPath::new(real).is_some_and(|real| !it.is_too_wide(&real));
    let granted = it.grant.write.iter().filter_map(|it| it.as_path().canonicalize().ok());
    res.extend(granted.filter(|it| is_given(it)));
    // Nothing above it is written, and no link on the way may lead elsewhere.
    let opened = it.grant.config.iter().filter(|_| it.read_only).map(AbsPath::as_path);
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
    // What is in them cannot be protected, and no command could do much there.
    res.retain(|it| reachable::opens(it));
    Ok(res)
}

/// A mount point goes where the folder above it goes: so all folders between it and a root stay where they are.
fn fix_parent_folders(plan: &mut SandboxPlan) {
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

/// Protects configuration in a folder that may be written. What is not there yet is looked for when the command has ended.
fn guard_folder(root: &Path, plan: &mut SandboxPlan, standing: &mut Placeholders) -> io::Result<()> {
    let entries = fs::read_dir(root)?.filter_map(Result::ok).map(|it| it.file_name());
    let below = protected_below(root);
    let names: Vec<OsString> = entries.filter(|it| it != ".git" && is_protected(it, &below)).collect();
    // Two names in a row, such as `.github/workflows`.
    for path in nested_names(root).iter().map(|it| root.join(it)).filter(|it| it.exists()) {
        // A link on the way counts for all that it leads to.
        let link = path.ancestors().take_while(|it| *it != root).find(|it| it.is_symlink());
        protect(link.unwrap_or(&path), plan)?;
    }
    for name in names {
        protect(&root.join(name), plan)?;
    }
    if is_repository(root) {
        guard_git(root, plan, standing)?;
    }
    guard_git(&root.join(".git"), plan, standing)
}

/// Protects what git obeys in a repository.
fn guard_git(git: &Path, plan: &mut SandboxPlan, standing: &mut Placeholders) -> io::Result<()> {
    if plan.opens(git) {
        return Ok(());
    }
    if !fs::symlink_metadata(git).is_ok_and(|it| it.is_dir()) {
        // A worktree's `.git` is a file that says where the repository is.
        return protect(git, plan);
    }
    if !reachable::opens(git) {
        plan.protected.push(git.to_owned());
        return Ok(());
    }
    plan.fixed.push(git.to_owned());
    standing.add_guarded(git);
    // Without them it is no repository, and git looks for one elsewhere.
    let parts = ["objects", "refs"].map(|it| git.join(it));
    plan.fixed.extend(parts.into_iter().filter(|it| it.symlink_metadata().is_ok_and(|it| it.is_dir())));
    for (name, placeholder) in GIT_CONFIG {
        protect_or_placeholder(&git.join(name), *placeholder, plan, standing)?;
    }
    // Not a placeholder: git takes the place of objects that are not there for one more place to look into.
    for it in ["objects/info/alternates", "objects/info/http-alternates"] {
        protect(&git.join(it), plan)?;
    }
    // What checkpoints share with it by another name; git goes on where it cannot remove one.
    let packs = fs::read_dir(git.join("objects/pack")).into_iter().flatten().filter_map(Result::ok);
    let shared = packs.filter(|it| it.metadata().is_ok_and(|it| it.is_file() && it.nlink() > 1)).map(|it| it.path());
    plan.protected.extend(shared.filter(|_| plan.namespaces));
    for it in git_config_paths::paths_in(git)?.iter().chain(&plan.notes.user_config.names.clone()) {
        protect_named(git, it, plan)?;
    }
    guard_submodules(git, plan, standing)?;
    let trees = git.join("worktrees");
    match fs::symlink_metadata(&trees) {
        Ok(it) if it.is_dir() => plan.fixed.push(trees.clone()),
        // A link: git follows it, and nothing is made where it leads.
        Ok(_) => return protect(&trees, plan),
        Err(_) => return Ok(()),
    }
    let trees = fs::read_dir(trees).into_iter().flatten().filter_map(Result::ok);
    for tree in trees.filter(|it| it.file_type().is_ok_and(|it| it.is_dir())) {
        for (name, placeholder) in WORKTREE_CONFIG {
            let path = tree.path().join(name);
            match placeholder {
                Some(it) => protect_or_placeholder(&path, *it, plan, standing)?,
                None if path.exists() => protect(&path, plan)?,
                None => (),
            }
        }
    }
    Ok(())
}

/// What a repository keeps of its submodules is written as it is itself, and new ones are not made.
fn guard_submodules(git: &Path, plan: &mut SandboxPlan, standing: &mut Placeholders) -> io::Result<()> {
    let modules = git.join("modules");
    // Nothing can be written in what is protected but by a mount.
    if !plan.namespaces || plan.opens(&modules) {
        return Ok(());
    }
    for module in submodules::of(&modules) {
        guard_deep(plan, |deep| guard_git(&module, deep, standing))?;
        plan.inner.push(module);
    }
    Ok(())
}

/// Protects what is there deeper: other repositories, and folders that an editor may have open by themselves.
fn guard_below(root: &Path, most: usize, plan: &mut SandboxPlan, standing: &mut Placeholders) -> io::Result<()> {
    guard_deep(plan, |deep| {
        // What only root's rights lead to is not there for a command, and cannot be mounted.
        let found = nested_config::protected(root).into_iter().filter(|it| reachable::reaches(it));
        found.take(most).try_for_each(|path| match path.ends_with(".git") {
            true => guard_git(&path, deep, standing),
            false => protect(&path, deep),
        })
    })
}

/// A link down there is no reason to refuse all that is new at the top, nor one to nowhere to run nothing.
fn guard_deep(plan: &mut SandboxPlan, guard: impl FnOnce(&mut SandboxPlan) -> io::Result<()>) -> io::Result<()> {
    let notes = PlanNotes { absent: Vec::new(), ..plan.notes.clone() };
    let writable = plan.writable.clone();
    let mut deep = SandboxPlan { namespaces: true, writable, notes, ..SandboxPlan::default() };
    guard(&mut deep)?;
    plan.deep.extend(deep.protected.into_iter().chain(deep.deep).filter(|it| it.exists()));
    plan.fixed.extend(deep.fixed);
    plan.inner.extend(deep.inner);
    plan.notes.absent.extend(deep.notes.absent);
    Ok(())
}

impl SandboxPlan {
    /// Whether the user said that it may be written.
    fn opens(&self, path: &Path) -> bool {
        self.notes.open.iter().any(|it| path.starts_with(it))
    }

    fn writes(&self, path: &Path) -> bool {
        self.writable.iter().any(|it| path.starts_with(it))
    }
}

/// As [`protect`]; where nothing is, a placeholder stands.
fn protect_or_placeholder(
    path: &Path,
    placeholder: Placeholder,
    plan: &mut SandboxPlan,
    standing: &mut Placeholders,
) -> io::Result<()> {
    let is_absent = path.symlink_metadata().is_err_and(|it| it.kind() == io::ErrorKind::NotFound);
    // Without mounts nothing can be made beside what is there, and with them only what is there can be protected.
    if is_absent && plan.namespaces && !plan.opens(path) && standing.make(path, placeholder)? {
        plan.protected.push(path.to_owned());
        return Ok(());
    }
    standing.share(path, placeholder);
    protect(path, plan)
}

/// What is not there is looked for when the command has ended.
fn protect(path: &Path, plan: &mut SandboxPlan) -> io::Result<()> {
    if plan.opens(path) {
        return Ok(());
    }
    match fs::symlink_metadata(path) {
        Ok(it) if it.is_symlink() => {
            plan.links.push(path.to_owned());
            // What it leads to is obeyed in its place.
            match path.canonicalize() {
                // Elsewhere it is read-only anyway.
                Ok(it) if plan.writes(&it) => plan.protected.push(it),
                Ok(_) => (),
                Err(_) => {
                    let target = AbsPath::new(path).and_then(|it| disk::real_path(&it).ok());
                    plan.notes.absent.extend(target.map(|it| it.as_path().to_owned()).filter(|it| plan.writes(it)));
                }
            }
        }
        Ok(_) => plan.protected.push(path.to_owned()),
        Err(it) if it.kind() == io::ErrorKind::NotFound => plan.notes.absent.push(path.to_owned()),
        // All of a folder that nobody can look into: its owner could open it, and then write what is obeyed.
        Err(it) if it.kind() == io::ErrorKind::PermissionDenied => {
            let shut = path.ancestors().skip(1).find(|it| it.symlink_metadata().is_ok()).ok_or(it)?;
            plan.protected.push(shut.to_owned());
        }
        Err(it) => return Err(it),
    }
    Ok(())
}

/// Protects what a repository's settings name, where commands may write it. What is relative counts from any folder that git
/// may be called in at the top.
fn protect_named(git: &Path, it: &ConfigPath, plan: &mut SandboxPlan) -> io::Result<()> {
    let own = git.parent().map(Path::to_owned).into_iter().chain(worktree_tops(git));
    let tops: BTreeSet<PathBuf> = own.chain(plan.writable.clone()).collect();
    let places: BTreeSet<PathBuf> =
        tops.iter().filter_map(|top| it.place(top, plan.notes.user_config.home.as_deref())).collect();
    for place in &places {
        let holds_root = plan.writable.iter().any(|root| root.starts_with(place));
        match fs::metadata(place).ok() {
            Some(_) if it.is_whole && holds_root && plan.writes(place) => {
                let why = format!("git's settings name all of {}, which cannot be kept from commands", place.display());
                return Err(io::Error::other(why));
            }
            _ if !plan.writes(place) || holds_root => (),
            Some(found) if it.is_whole || found.is_file() => protect(place, plan)?,
            None if it.is_whole => plan.notes.absent.push(place.clone()),
            _ => (),
        }
    }
    Ok(())
}
