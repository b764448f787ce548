//! Files that a session goes by, as they stand on the disk: what changed is read anew at the next prompt.

use std::collections::BTreeMap;

use super::{
    castor_home,
    extension_files::{self, AGENTS, COMMANDS, POLICIES, SKILLS},
    files_below::files_below,
    gemini_home, integrity,
    memory::MemorySearch,
    memory::memory_places,
    policies::SYSTEM_FOLDERS,
    prompts::{MAX_DEPTH, SKILL_FILE, definition_folders, files_beside},
    settings::settings_files,
    trust::RULES_FILE,
};
use castor_base::{log::GRANTS_FILE, path::AbsPath};
use castor_hands::{disk, secrets::Env};

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchedKind {
    /// Of agents, commands and skills.
    Definition,
    Settings,
    Policy,
    Memory,
    /// What the user said of folders.
    Trust,
}

/// The files of a session, with what they were at the last look.
pub struct WatchedFiles {
    /// By the folder that they lie in: where it is not there, nothing in it is looked for. Nearly all places where something
    /// could be lie in a few folders that few users have. Each prompt looks, so they are named once.
    places: BTreeMap<AbsPath, Vec<WatchedPlace>>,
    files: Vec<WatchedFile>,
}

/// A file, or a folder of files.
struct WatchedPlace {
    kind: WatchedKind,
    path: AbsPath,
    /// How names in the folder end, and how deep they lie; `None`: it is a file.
    below: Option<(&'static str, usize)>,
}

/// A file with its size and time.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WatchedFile {
    kind: WatchedKind,
    path: AbsPath,
    len: u64,
    modified_ms: u64,
}

impl WatchedFiles {
    /// All that are there for a session in this folder. Only names, sizes and times are read.
    pub fn new(env: &Env, folder: &AbsPath, memory: &MemorySearch) -> Self {
        let mut places: BTreeMap<AbsPath, Vec<WatchedPlace>> = BTreeMap::new();
        for it in watched_places(env, folder) {
            let at = it.path.parent().unwrap_or_else(|| it.path.clone());
            places.entry(at).or_default().push(it);
        }
        let files = look(&places, env, memory);
        Self { places, files }
    }

    /// Looks again. Those that are new, gone, or other than before.
    pub fn changes(&mut self, env: &Env, memory: &MemorySearch) -> Vec<(WatchedKind, AbsPath)> {
        let now = look(&self.places, env, memory);
        let before = std::mem::replace(&mut self.files, now);
        let other = self.files.iter().filter(|it| !before.contains(it));
        let is_gone = |old: &&WatchedFile| self.files.iter().all(|it| (it.kind, &it.path) != (old.kind, &old.path));
        let gone = before.iter().filter(is_gone);
        other.chain(gone).map(|it| (it.kind, it.path.clone())).collect()
    }
}

/// Those that are known before anything is read.
fn watched_places(env: &Env, folder: &AbsPath) -> Vec<WatchedPlace> {
    let file = |kind, path| WatchedPlace { kind, path, below: None };
    let policies = policy_folders(env, folder).into_iter().map(|it| (it, ".toml", 0));
    let of_folders = |kind| move |(path, end, depth)| WatchedPlace { kind, path, below: Some((end, depth)) };
    let definitions = definition_folders(env, folder).into_iter().map(of_folders(WatchedKind::Definition));
    let settings = settings_files(env, Some(folder)).into_iter().map(|(_, it)| file(WatchedKind::Settings, it));
    let rules = [castor_home(env), gemini_home(env)].into_iter().flatten().map(|it| it.join(RULES_FILE));
    let record = castor_home(env).map(|it| integrity::file(&it, folder));
    let trust = rules.chain(record).map(|it| file(WatchedKind::Trust, it));
    definitions.chain(settings).chain(policies.map(of_folders(WatchedKind::Policy))).chain(trust).collect()
}

fn policy_folders(env: &Env, folder: &AbsPath) -> Vec<AbsPath> {
    let system = SYSTEM_FOLDERS.iter().filter_map(|it| AbsPath::new(*it));
    let homes = [gemini_home(env), castor_home(env)].into_iter().flatten();
    let own = [".gemini", ".castor"].into_iter().map(|it| folder.join(it));
    system.chain(homes.chain(own).map(|it| it.join("policies"))).collect()
}

fn look(places: &BTreeMap<AbsPath, Vec<WatchedPlace>>, env: &Env, memory: &MemorySearch) -> Vec<WatchedFile> {
    let mut res: Vec<WatchedFile> = Vec::new();
    let mut add = |kind, path: AbsPath| {
        if let Ok(it) = disk::metadata(&path) {
            res.push(WatchedFile { kind, path, len: it.len, modified_ms: it.modified_ms });
        }
    };
    let is_there = |it: &AbsPath| disk::metadata(it).is_ok_and(|it| it.is_dir);
    for it in places.iter().filter(|(at, _)| is_there(at)).flat_map(|(_, places)| places) {
        files_of(it).into_iter().for_each(|path| add(it.kind, path));
    }
    let of_extensions = [
        (COMMANDS, ".toml", MAX_DEPTH, WatchedKind::Definition),
        (SKILLS, SKILL_FILE, 1, WatchedKind::Definition),
        (SKILLS, "", MAX_DEPTH, WatchedKind::Definition),
        (AGENTS, ".md", 0, WatchedKind::Definition),
        (POLICIES, ".toml", 0, WatchedKind::Policy),
    ];
    let of_extensions = extension_files::watched(env, WatchedKind::Settings, &of_extensions);
    of_extensions.into_iter().for_each(|(kind, it)| add(kind, it));
    memory_places(memory).into_iter().for_each(|it| add(WatchedKind::Memory, it));
    res.sort();
    res.dedup_by(|a, b| (a.kind, &a.path) == (b.kind, &b.path));
    res
}

/// castor's own lasting yeses change with the answers that give them, which hold at once.
fn files_of(place: &WatchedPlace) -> Vec<AbsPath> {
    let Some((end, depth)) = place.below else { return vec![place.path.clone()] };
    let mut files: Vec<AbsPath> = files_below(&place.path, end, depth).into_iter().flatten().collect();
    files.retain(|it| !it.as_path().ends_with(GRANTS_FILE));
    if end == SKILL_FILE {
        files.extend(files_beside(&files));
    }
    files
}
