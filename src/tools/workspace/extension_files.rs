//! Files of extensions, as the readers of agents, commands, skills and policies take them.

use std::sync::Arc;

use super::{
    castor_home,
    extensions::record::{self, ExtensionKind},
    files_below::files_below,
};
use castor_base::path::AbsPath;
use castor_hands::secrets::Env;

/// Folders of an extension that castor reads.
pub const COMMANDS: &str = "commands";
pub const SKILLS: &str = "skills";
pub const AGENTS: &str = "agents";
pub const POLICIES: &str = "policies";
/// The hooks of an extension.
pub const HOOKS: &str = "hooks/hooks.json";
/// The manifest's name in the folder of an extension.
pub const MANIFEST: &str = "gemini-extension.json";

/// The files of one extension, as they were hashed.
#[derive(Clone, Debug)]
pub struct ExtensionFiles {
    pub name: Arc<str>,
    pub at: AbsPath,
    pub files: Vec<(AbsPath, Vec<u8>)>,
}

/// All extensions that count, by what they bring.
#[derive(Clone, Debug, Default)]
pub struct ExtensionTier {
    pub commands: Vec<ExtensionFiles>,
    pub skills: Vec<ExtensionFiles>,
    /// Folders, with the extension's name.
    pub agents: Vec<(Arc<str>, AbsPath)>,
    pub policies: Vec<AbsPath>,
}

/// Files that say when extensions are to be looked at anew, and what each is: `of_settings`, or as `kinds` says of
/// folders, ends of names and depths.
pub fn watched<K: Copy>(env: &Env, of_settings: K, kinds: &[(&str, &str, usize, K)]) -> Vec<(K, AbsPath)> {
    let Some(home) = castor_home(env) else { return Vec::new() };
    let records = record::files(&home);
    let names = records.iter().filter_map(|it| it.as_path().file_stem()?.to_str().map(str::to_owned));
    let folders: Vec<_> = names.filter_map(|it| record::folder_of(&home, &it)).collect();
    let mut res: Vec<_> = records.into_iter().map(|it| (of_settings, it)).collect();
    for (folder, what) in folders {
        res.extend([MANIFEST, HOOKS].map(|it| (of_settings, folder.join(it))));
        for (name, end, depth, kind) in kinds {
            let at = match what {
                ExtensionKind::Extension => folder.join(name),
                ExtensionKind::Skill if *name == SKILLS => folder.clone(),
                ExtensionKind::Skill => continue,
            };
            let files = files_below(&at, end, *depth);
            res.extend(files.into_iter().flatten().map(|it| (*kind, it)));
        }
    }
    res
}
