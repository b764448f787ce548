//! Work trees and repositories that git makes, moves and takes away outside of what commands write, and what the sandbox holds
//! of those that are linked.

use std::collections::BTreeSet;

use super::{Looker, is_written};
use crate::{
    base::{
        guarded,
        path::AbsPath,
        sandbox::Confinement,
        tool::{Change, Rework, Reworked},
    },
    world::disk,
};

const MAX_LINK: u64 = 4_096;
const MAX_TREES: usize = 200;

/// The folder to be written that what is made needs outside: it, or the first on the way that is not there.
pub fn made(work: &Rework, dir: &AbsPath, confined: &Confinement) -> Option<AbsPath> {
    let path = work.changes.iter().find_map(|it| match it {
        Change::Tree(it) | Change::Clone(it) => disk::real_path(&dir.join(it)).ok(),
        _ => None,
    })?;
    let is_full = is_there(&path) && !disk::entries(&path, 1).is_empty();
    if confined.writes(&path) || is_full {
        return None;
    }
    let missing = std::iter::successors(Some(path.clone()), AbsPath::parent).take_while(|it| !is_there(it)).last();
    let folder = missing.unwrap_or(path);
    let is_guarded = [guarded::CONFIG, guarded::SECRETS].iter().any(|it| it.find(folder.as_path()).is_some());
    let in_root = confined.folders().any(|it| folder.is_within(it) || it.is_within(&folder));
    (!is_guarded && !in_root && !confined.is_too_wide(&folder)).then_some(folder)
}

/// Adds what is needed for linked work trees to go, or to go elsewhere.
pub fn changed(work: &Rework, looker: &Looker<'_>, places: &mut BTreeSet<AbsPath>, to: &mut Reworked) {
    let paths = work.changes.iter().find_map(|it| if let Change::Trees(it) = it { Some(it) } else { None });
    let Some(paths) = paths else { return };
    let linked = linked(&looker.git);
    let Some((path, others)) = paths.split_first() else {
        // Those that are gone already.
        places.extend(linked.into_iter().filter(|it| !is_there(&it.1)).map(|it| it.0));
        return;
    };
    // git takes the end of one, too.
    let said = looker.dir.join(path);
    let real = disk::real_path(&said).unwrap_or(said);
    let is_one = |it: &&(AbsPath, AbsPath)| it.1 == real || it.1.as_path().ends_with(path);
    let Some((own, tree)) = linked.iter().find(is_one) else { return };
    places.extend([own.clone(), tree.clone()]);
    let others = others.iter().filter_map(|it| disk::real_path(&looker.dir.join(it)).ok());
    let moved = std::iter::once(tree.clone()).chain(others).filter(|it| !is_written(looker.confined, it));
    // A folder is in the one above it.
    let mut above: Vec<AbsPath> = moved.filter_map(|it| it.parent()).collect();
    above.sort();
    let Some(first) = above.first().cloned() else { return };
    let is_wide = looker.confined.is_too_wide(&first);
    // Of one that goes its empty folder stays then.
    let folder = if is_wide && paths.len() == 1 { tree.clone() } else { first };
    to.closed |= above.iter().any(|it| paths.len() > 1 && !it.is_within(&folder));
    to.top = to.top.take().or(Some(folder));
}

/// What a repository keeps of linked work trees, and where these are.
fn linked(git: &AbsPath) -> Vec<(AbsPath, AbsPath)> {
    let trees = git.join("worktrees");
    let found = disk::entries(&trees, MAX_TREES).into_iter().filter_map(|(name, _)| {
        let own = trees.join(name.to_str()?);
        let text = disk::read_head(&own.join("gitdir"), MAX_LINK).ok()?;
        let link = String::from_utf8_lossy(&text).trim().to_owned();
        Some((own.clone(), own.join(&link).parent()?))
    });
    found.collect()
}

fn is_there(it: &AbsPath) -> bool {
    disk::metadata(it).is_ok()
}
