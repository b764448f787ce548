//! The files of an extension or of an installed skill: hashed for the user's yes, compared with it, used as they were hashed.

use std::collections::BTreeMap;

use super::{
    manifest::{self, ExtensionManifest},
    record::{ExtensionKind, FileHash, TreeHashes},
};
use crate::workspace::{
    agents::is_agent_file,
    extension_files::{AGENTS, COMMANDS, HOOKS, MANIFEST, POLICIES, SKILLS},
    files_below::covered_files,
    memory, prompts,
};
use castor_base::{agent::AgentOrigin, path::AbsPath};
use castor_hands::disk::{self, TreeBounds, TreeFile, TreeKind};

/// How large an extension may be, programs and all.
const BOUNDS: TreeBounds = TreeBounds { files: 20_000, bytes: 256 << 20 };
/// Larger files of configuration count as too large; their readers say so.
const MAX_CONFIG: usize = 1 << 20;
/// What stands in the place of a version: a skill has none.
const SKILL_RELEASE: &str = "(skill)";

/// The files of an extension that count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    pub kind: ExtensionKind,
    /// Of a skill, what its own file says.
    pub manifest: ExtensionManifest,
    /// Files that castor reads, as they were hashed; of large ones the beginning.
    pub config: BTreeMap<AbsPath, Vec<u8>>,
    pub hashes: TreeHashes,
}

/// The files of a tree that are a part of an extension.
///
/// # Errors
/// As [`disk::list_tree`].
pub fn list(folder: &AbsPath) -> Result<Vec<TreeFile>, String> {
    covered_files(folder, BOUNDS).map_err(|it| it.to_string())
}

/// Looks at all of a folder.
///
/// # Errors
/// What cannot be read, leads out of it, or is too much; a manifest that is none.
pub fn read(folder: &AbsPath, kind: ExtensionKind) -> Result<Contents, String> {
    read_against(folder, kind, &TreeHashes::new()).map(|it| it.0)
}

/// The same where a yes is known, and what is not as it was then: those files are not opened again that nobody wrote to.
///
/// # Errors
/// As [`read`].
pub fn read_against(
    folder: &AbsPath,
    kind: ExtensionKind,
    covered: &TreeHashes,
) -> Result<(Contents, Vec<String>), String> {
    let name = match kind {
        ExtensionKind::Extension => MANIFEST,
        ExtensionKind::Skill => prompts::SKILL_FILE,
    };
    let bytes = read_config(folder, name).map_err(|it| match it.kind() {
        std::io::ErrorKind::NotFound => format!("{folder} has no {name}"),
        _ => format!("{folder}/{name} cannot be read: {it}"),
    })?;
    if bytes.1.len() > MAX_CONFIG {
        return Err(format!("{name} is over {} MiB", MAX_CONFIG >> 20));
    }
    let manifest = match kind {
        ExtensionKind::Extension => manifest::parse(&bytes.1),
        ExtensionKind::Skill => skill_manifest(&folder.join(name), &bytes.1),
    };
    let manifest = manifest.map_err(|it| format!("{name}: {it}"))?;
    let mut res = Contents { kind, manifest, ..Contents::default() };
    for it in list(folder)? {
        let hash = res.take(folder, &it, covered.get(&it.name)).map_err(|why| format!("{}: {why}", it.name))?;
        res.hashes.insert(it.name, hash);
    }
    let same = |name: &String, it: &FileHash| covered.get(name).is_some_and(|old| old.hash == it.hash);
    let other = res.hashes.iter().filter(|(name, it)| !same(name, it)).map(|it| it.0.clone());
    let gone = covered.keys().filter(|it| !res.hashes.contains_key(*it)).cloned();
    let changed = other.chain(gone).collect();
    Ok((res, changed))
}

/// A skill says of itself what an extension has a manifest for: a name and a description.
fn skill_manifest(file: &AbsPath, bytes: &[u8]) -> Result<ExtensionManifest, String> {
    let it = prompts::parse_skill(bytes, AgentOrigin::User(file.clone())).map_err(|it| it.message)?;
    manifest::check_name(&it.name)?;
    let (name, version, description) = (it.name, SKILL_RELEASE.to_owned(), it.description);
    Ok(ExtensionManifest { name, version, description, ..ExtensionManifest::default() })
}

fn read_config(folder: &AbsPath, name: &str) -> std::io::Result<(String, Vec<u8>)> {
    let real = disk::real_path(folder)?;
    disk::hash_real(&real.join(name), MAX_CONFIG + 1)
}

impl Contents {
    fn take(&mut self, folder: &AbsPath, it: &TreeFile, covered: Option<&FileHash>) -> std::io::Result<FileHash> {
        let stamp = match &it.kind {
            TreeKind::Link { to } => {
                return Ok(FileHash { hash: disk::hash(format!("-> {to}").as_bytes()), stamp: String::new() });
            }
            TreeKind::File { stamp, .. } => stamp.clone(),
        };
        if self.is_config(&it.name) {
            let (hash, bytes) = read_config(folder, &it.name)?;
            self.config.insert(folder.join(&it.name), bytes);
            return Ok(FileHash { hash, stamp });
        }
        if let Some(it) = covered.filter(|it| !stamp.is_empty() && it.stamp == stamp) {
            return Ok(it.clone());
        }
        let real = disk::real_path(folder)?.join(&it.name);
        Ok(FileHash { hash: disk::hash_real(&real, 0)?.0, stamp })
    }

    /// Tells whether castor itself reads it.
    fn is_config(&self, name: &str) -> bool {
        if self.kind == ExtensionKind::Skill {
            return name == prompts::SKILL_FILE;
        }
        let below = |folder: &str| name.strip_prefix(folder).and_then(|it| it.strip_prefix('/'));
        let depth = |it: &str| it.split('/').count();
        name == MANIFEST
            || name == HOOKS
            || self.manifest.context.iter().any(|it| it == name)
            || below(COMMANDS).is_some_and(|it| it.ends_with(".toml") && depth(it) <= prompts::MAX_DEPTH)
            || below(SKILLS).is_some_and(|it| it.ends_with(prompts::SKILL_FILE) && depth(it) <= 2)
            || below(AGENTS).is_some_and(|it| is_agent_file(it) && depth(it) == 1)
            || below(POLICIES).is_some_and(|it| it.ends_with(".toml") && depth(it) == 1)
    }

    /// Where its skills lie.
    pub fn skills_folder(&self, folder: &AbsPath) -> AbsPath {
        match self.kind {
            ExtensionKind::Extension => folder.join(SKILLS),
            ExtensionKind::Skill => folder.clone(),
        }
    }

    /// Files of context, with what a model is to read of them.
    pub fn context(&self, folder: &AbsPath) -> impl Iterator<Item = (AbsPath, String)> {
        let paths = self.manifest.context.iter().map(|it| folder.join(it));
        paths.filter_map(|it| {
            let bytes = self.config.get(&it)?;
            let head = bytes.get(..memory::MAX_FILE).unwrap_or(bytes);
            Some((it, castor_base::text::strip_hidden(&String::from_utf8_lossy(head))))
        })
    }

    /// What it brings, as counts.
    pub fn in_words(&self, folder: &AbsPath) -> String {
        let below = |at: AbsPath, end: &str| {
            self.config.keys().filter(|it| it.is_within(&at) && it.to_string().ends_with(end)).count()
        };
        let rows = [
            (self.manifest.servers.len(), "MCP server"),
            (below(folder.join(HOOKS), ""), "hook file"),
            (below(folder.join(COMMANDS), ".toml"), "command"),
            (below(self.skills_folder(folder), prompts::SKILL_FILE), "skill"),
            (below(folder.join(AGENTS), ".md"), "agent"),
            (below(folder.join(POLICIES), ".toml"), "policy file"),
            (self.context(folder).count(), "context file"),
            (self.manifest.exclude_tools.len(), "excluded tool"),
        ];
        let plural = |n: usize, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
        let told: Vec<String> = rows.iter().filter(|it| it.0 > 0).map(|(n, what)| plural(*n, what)).collect();
        if told.is_empty() { "nothing".to_owned() } else { told.join(", ") }
    }
}
