//! Memory files on disk: which exist, and what they import.

mod imports;
mod nested;
mod saved;
mod unseen;

use std::collections::BTreeSet;

use crate::workspace::{Reader, castor_home, gemini_home, trust};
use castor_base::{
    guarded_names::SECRETS,
    memory::{MAX_ALL, MemoryFile, Tier, cap_text},
    path::AbsPath,
    saved_memory::SavedMemory,
    text::strip_hidden,
    trust::Trust,
};
use castor_hands::{disk, secrets::Env};

use imports::Importer;
pub use nested::read_nested;
pub use saved::change_saved;
use unseen::{Looks, unseen_text};

/// Of a file with all that it imports, in bytes; what is over is cut.
pub const MAX_FILE: usize = 64 << 10;

/// The search for memory files.
#[derive(Clone, Debug)]
pub struct MemorySearch {
    pub env: Env,
    /// Of files; see [`is_memory_name`].
    pub names: Vec<String>,
    /// Of extensions, as they were hashed.
    pub extensions: Vec<(AbsPath, String)>,
    /// `None`: castor keeps none.
    pub saved: Option<SavedMemory>,
    /// The session's folders, the working directory first.
    pub roots: Vec<AbsPath>,
    /// Of the first one; for the others the rules are read.
    pub trust: Trust,
}

/// Tells whether a file of that name may be taken for memory: a workspace's settings may name one, and the user's own
/// folders, where it is looked for, too, hold credentials.
pub fn is_memory_name(name: &str) -> bool {
    !name.contains(['/', '\\', '\0']) && !name.starts_with('.') && name.to_ascii_lowercase().ends_with(".md")
}

/// Memory files, and what is to be said of them.
#[derive(Debug, Default)]
pub struct FoundFiles {
    pub files: Vec<MemoryFile>,
    /// Imports that failed.
    pub faults: Vec<String>,
}

/// The user's own files, then those of each trusted root, from its repository down. Each real file counts once. What
/// cannot be read is not there.
pub fn read(wanted: &MemorySearch) -> FoundFiles {
    let mut found = FoundMemory::of(wanted);
    for home in [gemini_home(&wanted.env), castor_home(&wanted.env)].into_iter().flatten() {
        found.take(&home, Tier::Global, None);
    }
    for (path, text) in wanted.extensions.iter().filter(|it| !it.1.trim().is_empty()) {
        found.push(path.clone(), Tier::Global, text);
    }
    if let Some(it) = &wanted.saved {
        found.take_saved(&it.global, Tier::Global);
        found.take_saved(&it.project, Tier::Private);
    }
    for MemoryRoot { root, top } in memory_roots(wanted) {
        folders_down(&top, &root).iter().for_each(|it| found.take(it, Tier::Project, Some(&top)));
    }
    found.found
}

/// Where memory files of a session lie, or would. Facts are left out: castor writes them itself.
pub fn memory_places(wanted: &MemorySearch) -> Vec<AbsPath> {
    let homes = [gemini_home(&wanted.env), castor_home(&wanted.env)].into_iter().flatten();
    let roots = memory_roots(wanted).into_iter().flat_map(|it| folders_down(&it.top, &it.root));
    let names = || wanted.names.iter().filter(|it| is_memory_name(it));
    let all = homes.chain(roots).flat_map(|folder| names().map(move |it| folder.join(it)).collect::<Vec<_>>());
    all.filter(|it| wanted.saved.as_ref().is_none_or(|saved| *it != saved.global && *it != saved.project)).collect()
}

/// A trusted root, where it really is.
struct MemoryRoot {
    root: AbsPath,
    /// Of its repository. What lies above the folder that was trusted nobody vouches for.
    top: AbsPath,
}

fn memory_roots(MemorySearch { env, roots, trust, .. }: &MemorySearch) -> Vec<MemoryRoot> {
    let reader = Reader::disk();
    let ground = |(at, root): (usize, &AbsPath)| {
        let root = reader.real(root);
        let own = if at == 0 { trust.clone() } else { trust_of(env, &root, trust, reader) };
        let Trust::Trusted { root: rule, .. } = own else { return None };
        Some(MemoryRoot { top: repository(&root, rule.as_ref()), root })
    };
    roots.iter().enumerate().filter_map(ground).collect()
}

/// The folders from `top` down to `folder`, both included.
fn folders_down(top: &AbsPath, folder: &AbsPath) -> Vec<AbsPath> {
    let mut folders = vec![folder.clone()];
    while let Some(parent) = folders.last().filter(|it| *it != top).and_then(AbsPath::parent) {
        folders.push(parent);
    }
    folders.reverse();
    folders
}

/// Rules for a folder of its own beat what holds for the working directory.
fn trust_of(env: &Env, folder: &AbsPath, first: &Trust, reader: Reader<'_>) -> Trust {
    let (own, _) = trust::read(env, folder, reader);
    match (&own, first) {
        (Trust::Unknown, Trust::Trusted { root: Some(root), .. }) if folder.is_within(root) => first.clone(),
        _ => own,
    }
}

/// The folder that stands for a project, whoever trusts it: that of its repository.
pub fn project(root: &AbsPath) -> AbsPath {
    repository(&Reader::disk().real(root), None)
}

/// The nearest folder with a `.git` that is not above `top`; the folder itself where there is none.
fn repository(folder: &AbsPath, top: Option<&AbsPath>) -> AbsPath {
    let mut at = Some(folder.clone());
    for _ in 0..trust::MAX_PARENTS {
        let Some(here) = at.filter(|it| top.is_none_or(|top| it.is_within(top))) else { break };
        if disk::metadata(&here.join(".git")).is_ok() {
            return here;
        }
        at = here.parent();
    }
    // A repository whose root is not trusted: as far up as it is.
    match top.filter(|top| folder.is_within(top) && trust::is_in_repository(top)) {
        Some(top) => top.clone(),
        None => folder.clone(),
    }
}

#[derive(Default)]
struct FoundMemory<'a> {
    names: Vec<&'a String>,
    found: FoundFiles,
    /// Real paths.
    seen: BTreeSet<AbsPath>,
    len: usize,
    looks: Looks,
}

impl<'a> FoundMemory<'a> {
    fn of(wanted: &'a MemorySearch) -> Self {
        let names = wanted.names.iter().filter(|it| is_memory_name(it)).collect();
        Self { names, looks: Looks::new(castor_home(&wanted.env)), ..Self::default() }
    }

    /// `top`: nothing from elsewhere counts, whatever links say; the user's own links lead where the user wants.
    fn take(&mut self, folder: &AbsPath, tier: Tier, top: Option<&AbsPath>) {
        for name in self.names.clone() {
            self.take_file(folder.join(name), tier, top);
        }
    }

    fn take_file(&mut self, path: AbsPath, tier: Tier, top: Option<&AbsPath>) {
        let Some((real, text)) = self.read_new(&path, top) else { return };
        let Some(top) = top.cloned().or_else(|| real.parent()) else { return };
        let (text, faults) = Importer::new(&top, &self.looks).expand(&real, &text);
        self.found.faults.extend(faults);
        self.push(path, tier, &text);
    }

    /// Facts import nothing: one must not bring in what waits in the inbox.
    fn take_saved(&mut self, path: &AbsPath, tier: Tier) {
        if let Some((_, text)) = self.read_new(path, None) {
            self.push(path.clone(), tier, &text);
        }
    }

    /// Where a file really is, and its text, the first time that it is met.
    fn read_new(&mut self, path: &AbsPath, top: Option<&AbsPath>) -> Option<(AbsPath, String)> {
        let real = disk::real_path(path).ok()?;
        if top.is_some_and(|top| !real.is_within(top)) || SECRETS.find(real.as_path()).is_some() {
            return None;
        }
        let text = read_text(&real).ok().filter(|it| !it.trim().is_empty())?;
        if !self.seen.insert(real.clone()) {
            return None;
        }
        if self.looks.is_unseen(&real, &text) {
            self.found.faults.push(unseen_text(path));
            return None;
        }
        Some((real, text))
    }

    fn push(&mut self, path: AbsPath, tier: Tier, text: &str) {
        let text = cap_text(text.trim(), MAX_FILE.min(MAX_ALL.saturating_sub(self.len)));
        self.len += text.len();
        self.found.files.push(MemoryFile { path, tier, text });
    }
}

/// As people see it: what hides in a text is for the model alone, and nobody would know of it.
fn read_text(real: &AbsPath) -> std::io::Result<String> {
    let bytes = disk::read_head(real, MAX_FILE as u64 + 1)?;
    Ok(strip_hidden(&String::from_utf8_lossy(&bytes)))
}

#[cfg(test)]
mod tests;
