//! Whether a command would be kept from the network half-way: where the repository's settings say that git's remotes are.

use crate::{
    base::{
        address::is_far,
        path::AbsPath,
        tool::{Reach, Remote, Which},
    },
    world::{
        disk,
        process::sandbox::{caches, named, repository},
        tools::ToolContext,
    },
};

/// More is no name of a branch or a folder.
const MAX: u64 = 4_096;

/// What of a command surely needs the network when other things are done. Blocks.
pub fn first(dir: &AbsPath, ctx: &ToolContext) -> Option<Reach> {
    let needs = |it: &Remote| leads_far(it, dir, ctx).unwrap_or(false);
    let words =
        ctx.known.words.far.iter().find(|it| it.remote.as_ref().is_none_or(needs)).map(|it| it.words.clone())?;
    let cache = words.split(' ').next().and_then(|it| cache(it, ctx));
    Some(Reach { words, cache })
}

/// Without its cache a package manager stops as it does without the network.
fn cache(program: &str, ctx: &ToolContext) -> Option<AbsPath> {
    let (home, confined) = (ctx.home()?, ctx.confined.as_deref()?);
    let cache = disk::real_place(caches::of(program, &disk::real_path(&home).ok()?)?.as_path()).ok()?;
    let above = cache.parent()?;
    let can_be = disk::metadata(&cache).map_or_else(|_| disk::metadata(&above).is_ok(), |it| it.is_dir);
    (can_be && !confined.writes(&cache) && !confined.is_too_wide(&cache) && !confined.obeyed(&cache)).then_some(cache)
}

/// `None`: nobody knows.
fn leads_far(remote: &Remote, dir: &AbsPath, ctx: &ToolContext) -> Option<bool> {
    let dir = super::reworked::real_dir(&remote.dir, dir, ctx)?;
    let git = repository::around(&dir)?;
    let (file, section) = match remote.which {
        Which::Modules if disk::metadata(&git.join("modules")).is_ok() => return None,
        Which::Modules => (dir.join(".gitmodules"), "submodule"),
        Which::Named(_) | Which::Upstream | Which::Any => (git.join("config"), "remote"),
    };
    let all = named::entries(file.as_path())?;
    // What these say may lead elsewhere.
    let is_elsewhere = |it: &str| matches!(it, "include" | "includeif" | "url");
    if all.iter().any(|it| is_elsewhere(&it.section)) {
        return None;
    }
    let upstream = match remote.which {
        Which::Upstream => followed(&branch(&dir)?, &all),
        _ => None,
    };
    if remote.which == Which::Upstream && upstream.is_none() {
        (pushes_anew(&all) || of_user(ctx).is_some_and(|it| pushes_anew(&it))).then_some(())?;
    }
    let is_meant = |name: &str| match &remote.which {
        Which::Named(it) => it == name,
        Which::Upstream => upstream.is_none_or(|it| it == name),
        Which::Any | Which::Modules => true,
    };
    let is_address = |it: &&named::Entry| it.section == section && matches!(it.key.as_str(), "url" | "pushurl");
    let mut meant = all.iter().filter(is_address).filter(|it| is_meant(&it.name)).peekable();
    meant.peek()?;
    Some(meant.all(|it| is_far(&it.value)))
}

fn of_user(ctx: &ToolContext) -> Option<Vec<named::Entry>> {
    let home = ctx.home()?;
    let files = [".gitconfig", ".config/git/config"].map(|it| home.join(it));
    Some(files.iter().filter_map(|it| named::entries(it.as_path())).flatten().collect())
}

/// The remote of a branch.
fn followed<'e>(branch: &str, settings: &'e [named::Entry]) -> Option<&'e str> {
    let says = |key: &str| settings.iter().rfind(|it| it.section == "branch" && it.name == branch && it.key == key);
    says("pushremote").or_else(|| says("remote")).map(|it| it.value.as_str())
}

/// Whether git pushes a branch that follows none.
fn pushes_anew(settings: &[named::Entry]) -> bool {
    let says = |key: &str, values: &[&str]| {
        let mut said = settings.iter().filter(|it| it.section == "push" && it.key == key);
        said.any(|it| values.contains(&it.value.as_str()))
    };
    says("autosetupremote", &["true", "yes", "on", "1"]) || says("default", &["current"])
}

/// The branch that a work tree is at.
fn branch(dir: &AbsPath) -> Option<String> {
    let said = |it: &AbsPath| Some(String::from_utf8_lossy(&disk::read_head(it, MAX).ok()?).trim().to_owned());
    let mut above = std::iter::successors(Some(dir.clone()), AbsPath::parent);
    let top = above.find(|it| disk::metadata(&it.join(".git")).is_ok())?;
    let git = top.join(".git");
    let own = match disk::metadata(&git).ok()?.is_dir {
        true => git,
        false => top.join(said(&git)?.strip_prefix("gitdir:")?.trim()),
    };
    Some(said(&own.join("HEAD"))?.strip_prefix("ref: refs/heads/")?.to_owned())
}
