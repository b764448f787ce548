//! Commands and skills: files in folders of user and workspace, and which of one name counts.

mod commands;
mod lenient_keys;
mod skills;

use std::collections::{BTreeMap, BTreeSet};

use super::front_matter::FileFault;
use crate::workspace::{
    FolderOwner, Warning, castor_home,
    extension_files::{ExtensionFiles, ExtensionTier},
    files_below::{covered_files, files_below},
    gemini_home,
};
use castor_base::{
    agent::AgentOrigin,
    file_prompt::{CommandFormat, FileCommand, Skill},
    path::AbsPath,
    text,
    trust::TrustedFileKind,
};
use castor_hands::{
    disk::{self, TreeBounds},
    secrets::Env,
};

pub use commands::parse as parse_command;
pub use skills::parse as parse_skill;

/// Larger files define nothing: all of it goes to the model.
const MAX_BYTES: usize = 256 << 10;
/// The greatest depth of folders of commands.
pub const MAX_DEPTH: usize = 6;
/// The file of a skill.
pub const SKILL_FILE: &str = "SKILL.md";
/// All skills of a workspace, with what lies beside them. What goes beyond counts for nothing.
pub const SKILL_BOUNDS: TreeBounds = TreeBounds { files: 5_000, bytes: 64 << 20 };

/// Folders of commands below a workspace, the strongest first.
pub const COMMAND_FOLDERS: &[(&str, CommandFormat)] = &[
    (".castor/commands", CommandFormat::Toml),
    (".gemini/commands", CommandFormat::Toml),
    (".claude/commands", CommandFormat::Markdown),
];
/// Folders of skills below a workspace, the strongest first.
pub const SKILL_FOLDERS: &[&str] = &[".castor/skills", ".agents/skills", ".gemini/skills", ".claude/skills"];

/// The ending of such files' names.
pub fn extension(format: CommandFormat) -> &'static str {
    match format {
        CommandFormat::Toml => ".toml",
        CommandFormat::Markdown => ".md",
    }
}

/// The format of a file that somebody names.
pub fn format_of(file: &AbsPath) -> CommandFormat {
    match file.as_path().extension().is_some_and(|it| it == "md") {
        true => CommandFormat::Markdown,
        false => CommandFormat::Toml,
    }
}

/// The commands and skills that the files define, and those of them that do not count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundPrompts {
    /// Commands by name.
    pub commands: Vec<FileCommand>,
    /// Skills by name.
    pub skills: Vec<Skill>,
    /// Warnings about files of commands.
    pub command_warnings: Vec<Warning>,
    pub skill_warnings: Vec<Warning>,
}

impl FoundPrompts {
    /// All that is wrong.
    pub fn warnings(&self) -> impl Iterator<Item = &Warning> {
        self.command_warnings.iter().chain(&self.skill_warnings)
    }

    fn warn(&mut self, kind: TrustedFileKind, origin: &str, it: FileFault) {
        let all = match kind {
            TrustedFileKind::Skill => &mut self.skill_warnings,
            _ => &mut self.command_warnings,
        };
        all.push(Warning { origin: origin.to_owned(), at: it.at, key: None, message: it.message });
    }
}

/// The prompts of a workspace that count, as they were hashed.
pub struct TrustedPrompts {
    pub root: AbsPath,
    pub files: Vec<(TrustedFileKind, AbsPath, Vec<u8>)>,
    /// Files that nobody could read.
    pub unreadable: Vec<(TrustedFileKind, AbsPath)>,
}

/// A folder of commands or skills, with the files that count in it.
struct PromptFolder {
    at: AbsPath,
    owner: FolderOwner,
    files: Vec<(AbsPath, Result<Vec<u8>, FileFault>)>,
}

impl PromptFolder {
    /// The file as it was hashed, where the folder's trust covers it.
    fn of_workspace(name: &str, kind: TrustedFileKind, workspace: &TrustedPrompts) -> Self {
        let at = workspace.root.join(name);
        let held = workspace.files.iter().filter(|(of, file, _)| *of == kind && file.is_within(&at));
        let files = held.map(|(_, file, bytes)| (file.clone(), check_size(bytes.clone()))).collect();
        Self { at, owner: FolderOwner::Workspace, files }
    }

    fn of_user(at: AbsPath, end: &str, depth: usize) -> Self {
        let read = |file: AbsPath| {
            let bytes = disk::read_head(&file, MAX_BYTES as u64 + 1);
            let bytes = bytes.map_err(|it| FileFault::new(None, format!("cannot be read: {it}")));
            (file, bytes.and_then(check_size))
        };
        let files = files_below(&at, end, depth).into_iter().flatten().map(read).collect();
        Self { at, owner: FolderOwner::User, files }
    }

    /// The file of an extension as it was hashed.
    fn of_extension(ExtensionFiles { name, at, files }: ExtensionFiles) -> Self {
        let files = files.into_iter().map(|(file, bytes)| (file, check_size(bytes))).collect();
        Self { at, owner: FolderOwner::Extension(name), files }
    }

    fn origin(&self, file: &AbsPath) -> AgentOrigin {
        self.owner.origin(file.clone())
    }
}

/// Before anything parses it.
fn check_size(bytes: Vec<u8>) -> Result<Vec<u8>, FileFault> {
    match bytes.len() > MAX_BYTES {
        true => Err(FileFault::new(None, format!("is over {} KiB", MAX_BYTES >> 10))),
        false => Ok(bytes),
    }
}

/// The user's own folder that has this name below a workspace.
fn user_folder(env: &Env, name: &str) -> Option<AbsPath> {
    if let Some(it) = name.strip_prefix(".castor/") {
        return Some(castor_home(env)?.join(it));
    }
    if let Some(it) = name.strip_prefix(".gemini/") {
        return Some(gemini_home(env)?.join(it));
    }
    Some(env.get("HOME").and_then(AbsPath::new)?.join(name))
}

/// Reads all. `workspace`: what counts of it, where it is trusted and not the user's home. `is_own`: whether castor
/// has a command of that name.
pub fn read(
    env: &Env,
    workspace: Option<&TrustedPrompts>,
    extensions: &ExtensionTier,
    is_own: &dyn Fn(&str) -> bool,
) -> FoundPrompts {
    let mut res = FoundPrompts::default();
    let all = read_commands(env, workspace, extensions, &mut res);
    res.commands = without_clashes(all, is_own, &mut res);
    read_skills(env, workspace, extensions, &mut res);
    for (kind, file) in workspace.iter().flat_map(|it| &it.unreadable) {
        let which = if *kind == TrustedFileKind::Skill { "it or what lies beside it" } else { "it" };
        let why = format!("cannot be used: {which} is too large, cannot be read, or a link leads out of the folder");
        res.warn(*kind, &file.to_string(), FileFault::new(None, why));
    }
    res
}

fn read_commands(
    env: &Env,
    workspace: Option<&TrustedPrompts>,
    extensions: &ExtensionTier,
    res: &mut FoundPrompts,
) -> Vec<FileCommand> {
    let mut all = Vec::new();
    let mut folders = Vec::new();
    for (name, format) in COMMAND_FOLDERS {
        let user = user_folder(env, name).map(|at| PromptFolder::of_user(at, extension(*format), MAX_DEPTH));
        let own = workspace
            .map(|it| PromptFolder::of_workspace(name, TrustedFileKind::Command, it))
            .filter(|own| user.as_ref().is_none_or(|it| it.at != own.at));
        folders.extend(user.into_iter().chain(own).map(|it| (*format, it)));
    }
    let more = extensions.commands.iter().cloned();
    folders.extend(more.map(|it| (CommandFormat::Toml, PromptFolder::of_extension(it))));
    for (format, folder) in folders {
        for (file, bytes) in &folder.files {
            let named = commands::name_of(&file.relative_to(&folder.at), format);
            let parsed = bytes.clone().and_then(|it| parse_command(&it, &named, format, folder.origin(file)));
            match parsed {
                Ok((it, notes)) => {
                    notes.into_iter().for_each(|note| res.warn(TrustedFileKind::Command, &file.to_string(), note));
                    all.push(it);
                }
                Err(it) => res.warn(
                    TrustedFileKind::Command,
                    &file.to_string(),
                    FileFault { message: skipped(&it.message), ..it },
                ),
            }
        }
    }
    all
}

fn skipped(why: &str) -> String {
    format!("{why}; the file is skipped")
}

fn file_of(origin: &AgentOrigin) -> String {
    origin.file().map_or_else(|| "castor".to_owned(), ToString::to_string)
}

/// The commands without clashes: of one owner the first of a name counts. A name that castor has stays castor's, and
/// one that two owners have is nobody's: they are typed as `user.NAME`, `workspace.NAME` and `EXTENSION.NAME`. So no
/// file can take another one's place.
fn without_clashes(all: Vec<FileCommand>, is_own: &dyn Fn(&str) -> bool, res: &mut FoundPrompts) -> Vec<FileCommand> {
    let mut firsts: BTreeMap<(String, String), FileCommand> = BTreeMap::new();
    for it in all {
        let key = (it.name.clone(), it.origin.prefix().to_owned());
        match firsts.get(&key) {
            Some(first) => {
                let why = skipped(&format!("{} defines /{} already", file_of(&first.origin), it.name));
                res.warn(TrustedFileKind::Command, &file_of(&it.origin), FileFault::new(None, why));
            }
            None => _ = firsts.insert(key, it),
        }
    }
    let mut owners: BTreeMap<String, Vec<String>> = BTreeMap::new();
    firsts.keys().for_each(|(name, owner)| owners.entry(name.clone()).or_default().push(owner.clone()));
    let mut taken: BTreeSet<String> = owners.keys().cloned().collect();
    let mut named = BTreeMap::new();
    for ((name, owner), mut it) in firsts {
        let by_castor = is_own(&name);
        let all = owners.get(&name).map_or(&[][..], Vec::as_slice);
        if by_castor || all.len() > 1 {
            it.name = format!("{owner}.{name}");
            if is_own(&it.name) || !taken.insert(it.name.clone()) {
                let why = skipped(&format!("/{name} and /{} are taken", it.name));
                res.warn(TrustedFileKind::Command, &file_of(&it.origin), FileFault::new(None, why));
                continue;
            }
            let defined = format!("is defined by {}", all.join(" and "));
            let why = if by_castor { "is a command of castor" } else { defined.as_str() };
            let message = format!("/{name} {why}; this one is /{}", it.name);
            res.warn(TrustedFileKind::Command, &file_of(&it.origin), FileFault::new(None, message));
        }
        named.insert(it.name.clone(), it);
    }
    named.into_values().collect()
}

fn read_skills(env: &Env, workspace: Option<&TrustedPrompts>, extensions: &ExtensionTier, res: &mut FoundPrompts) {
    let of_user = SKILL_FOLDERS.iter().filter_map(|it| user_folder(env, it));
    let user: Vec<PromptFolder> = of_user.map(|at| PromptFolder::of_user(at, SKILL_FILE, 1)).collect();
    let own = workspace
        .into_iter()
        .flat_map(|of| SKILL_FOLDERS.iter().map(move |it| PromptFolder::of_workspace(it, TrustedFileKind::Skill, of)));
    let own: Vec<PromptFolder> = own.filter(|own| user.iter().all(|it| it.at != own.at)).collect();
    let mut found: BTreeMap<String, Skill> = BTreeMap::new();
    let more = extensions.skills.iter().cloned().map(PromptFolder::of_extension);
    for folder in own.into_iter().chain(user).chain(more) {
        for (file, bytes) in &folder.files {
            if file.as_path().file_name().is_none_or(|it| it != SKILL_FILE) {
                continue;
            }
            match bytes.clone().and_then(|it| parse_skill(&it, folder.origin(file))) {
                Ok(mut it) => match found.get(&free_name(&mut it, &found)) {
                    Some(first) => {
                        let why = skipped(&format!("{} defines the skill {} already", file_of(&first.origin), it.name));
                        res.warn(TrustedFileKind::Skill, &file.to_string(), FileFault::new(None, why));
                    }
                    None => {
                        // The user's may be a link to where it is kept.
                        it.folder = disk::real_path(&it.folder).unwrap_or_else(|_| it.folder.clone());
                        it.files = skills::list(&it.folder).into();
                        _ = found.insert(it.name.clone(), it);
                    }
                },
                Err(it) => res.warn(
                    TrustedFileKind::Skill,
                    &file.to_string(),
                    FileFault { message: skipped(&it.message), ..it },
                ),
            }
        }
    }
    res.skills = found.into_values().collect();
}

/// The skill's name. One of an extension that others have is `EXTENSION.NAME`.
fn free_name(it: &mut Skill, found: &BTreeMap<String, Skill>) -> String {
    if let (AgentOrigin::Extension(of, _), true) = (&it.origin, found.contains_key(&it.name)) {
        it.name = format!("{of}.{}", it.name);
    }
    it.name.clone()
}

/// A line without what deceives or makes lines of its own.
fn plain_line(of: &str, max: usize) -> String {
    let kept: String = of.chars().map(|it| if it.is_whitespace() { ' ' } else { it }).collect();
    let kept: String = kept.chars().filter(|it| !text::is_deceptive(*it) && !text::is_hidden(*it)).collect();
    text::first_line(kept.trim(), max)
}

/// The folders of commands, agents and skills: how names in them end, and how deep they lie.
pub fn definition_folders(env: &Env, folder: &AbsPath) -> Vec<(AbsPath, &'static str, usize)> {
    let commands = COMMAND_FOLDERS.iter().map(|(name, format)| (*name, extension(*format), MAX_DEPTH));
    let agents = super::agents::FOLDERS.iter().map(|it| (it.0, ".md", 0));
    let skills = SKILL_FOLDERS.iter().map(|it| (*it, SKILL_FILE, 1));
    let both = |(name, end, depth)| {
        let places = [Some(folder.join(name)), user_folder(env, name)];
        places.into_iter().flatten().map(move |it| (it, end, depth))
    };
    commands.chain(agents).chain(skills).flat_map(both).collect()
}

/// Files beside those of skills. An approval of the skills covers them.
pub fn files_beside(skills: &[AbsPath]) -> Vec<AbsPath> {
    let folders = skills.iter().filter_map(|it| disk::real_path(&it.parent()?).ok());
    let files = |at: AbsPath| {
        let files = covered_files(&at, SKILL_BOUNDS).unwrap_or_default().into_iter();
        files.map(move |it| at.join(&it.name))
    };
    folders.flat_map(files).collect()
}

#[cfg(test)]
mod tests;
