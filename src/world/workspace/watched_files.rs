//! Files that a session goes by, as they stand on the disk: what changed is read anew at the next prompt.

use super::{
    castor_home,
    extension_files::{self, AGENTS, COMMANDS, POLICIES, SKILLS},
    files_below::SharedLook,
    gemini_home, integrity,
    memory::MemorySearch,
    memory::memory_places,
    policies::SYSTEM_FOLDERS,
    prompts::{MAX_DEPTH, SKILL_FILE, definition_files},
    settings::settings_files,
    trust::RULES_FILE,
};
use crate::{
    base::{log::GRANTS_FILE, path::AbsPath},
    world::{disk, secrets::Env},
};

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

/// A file with its size and time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchedFile {
    pub kind: WatchedKind,
    pub path: AbsPath,
    len: u64,
    modified_ms: u64,
}

/// All that are there for a session in this folder. Only names, sizes and times are read.
pub fn watched_files(env: &Env, folder: &AbsPath, memory: &MemorySearch) -> Vec<WatchedFile> {
    let mut res: Vec<WatchedFile> = Vec::new();
    let mut look = SharedLook::default();
    let definitions = definition_files(env, folder, &mut look);
    let policies = policy_files(env, folder, &mut look);
    let mut add = |kind, path: AbsPath| {
        if look.may_have(&path)
            && let Ok(it) = disk::metadata(&path)
        {
            res.push(WatchedFile { kind, path, len: it.len, modified_ms: it.modified_ms });
        }
    };
    definitions.into_iter().for_each(|it| add(WatchedKind::Definition, it));
    settings_files(env, Some(folder)).into_iter().for_each(|(_, it)| add(WatchedKind::Settings, it));
    policies.into_iter().for_each(|it| add(WatchedKind::Policy, it));
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
    let rules = [castor_home(env), gemini_home(env)].into_iter().flatten().map(|it| it.join(RULES_FILE));
    let record = castor_home(env).map(|it| integrity::file(&it, folder));
    rules.chain(record).for_each(|it| add(WatchedKind::Trust, it));
    res.sort();
    res.dedup_by(|a, b| (a.kind, &a.path) == (b.kind, &b.path));
    res
}

/// castor's own lasting yeses change with the answers that give them, which hold at once.
fn policy_files(env: &Env, folder: &AbsPath, look: &mut SharedLook) -> Vec<AbsPath> {
    let system = SYSTEM_FOLDERS.iter().filter_map(|it| AbsPath::new(*it));
    let homes = [gemini_home(env), castor_home(env)].into_iter().flatten();
    let own = [".gemini", ".castor"].into_iter().map(|it| folder.join(it));
    let folders = system.chain(homes.chain(own).map(|it| it.join("policies")));
    let files = folders.flat_map(|it| look.files_below(&it, ".toml", 0));
    files.filter(|it| !it.as_path().ends_with(GRANTS_FILE)).collect()
}

/// Those that are new, gone, or other than before.
pub fn changed_files(before: &[WatchedFile], now: &[WatchedFile]) -> Vec<(WatchedKind, AbsPath)> {
    let other = now.iter().filter(|it| !before.contains(it));
    let gone = before.iter().filter(|old| now.iter().all(|it| (it.kind, &it.path) != (old.kind, &old.path)));
    other.chain(gone).map(|it| (it.kind, it.path.clone())).collect()
}
