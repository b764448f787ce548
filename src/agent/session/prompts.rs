//! Commands and skills of a session's folder, as the settings switch them.

use crate::settings::{self, Sources};
use castor_base::{
    extension::ExtensionSummary,
    file_prompt::FolderPrompts,
    text,
    trust::{TrustedFile, TrustedFileKind},
};
use castor_engine::commands::is_own_command;
use castor_tools::workspace::{
    extensions::{Extension, ExtensionState},
    folder_config::FolderConfig,
    prompts::FoundPrompts,
};

/// Longest line that is told of a file, in characters.
const MAX_FAULT: usize = 500;

/// What is found for a session in this folder.
pub fn folder_prompts(ground: &FolderConfig) -> FolderPrompts {
    of_found(ground, find(ground))
}

/// The same with each fault as it was found.
pub fn find(ground: &FolderConfig) -> FoundPrompts {
    let mut found = ground.prompts(&is_own_command);
    let layers = ground.layers();
    let wanted = settings::skills(Sources { layers, env: &ground.env, flags: &[] });
    if !wanted.enabled {
        found.skills.clear();
    }
    for it in &mut found.skills {
        it.enabled = wanted.allows(&it.name);
    }
    found
}

fn of_found(ground: &FolderConfig, found: FoundPrompts) -> FolderPrompts {
    let faults = found.warnings().map(ToString::to_string).chain(ground.extensions.faults());
    let faults = faults.map(|it| text::first_line(&it, MAX_FAULT)).collect();
    let extensions = ground.extensions.all.iter().map(summary).collect();
    FolderPrompts {
        commands: found.commands.into(),
        skills: found.skills.into(),
        faults,
        notes: notes(ground).into(),
        extensions,
    }
}

/// An extension as it is listed.
pub fn summary(it: &Extension) -> ExtensionSummary {
    let state = match &it.state {
        ExtensionState::On(_) => "on".to_owned(),
        ExtensionState::Off(why) => format!("off: {why}"),
        ExtensionState::Unusable(why) => format!("not used: {why}"),
    };
    let brings = it.contents().map(|of| of.in_words(&it.folder)).unwrap_or_default();
    ExtensionSummary { name: it.name.clone(), version: it.release.clone(), state, brings }
}

/// Files of the folder that are not used, and why.
fn notes(ground: &FolderConfig) -> Vec<String> {
    untrusted_note(ground).into_iter().chain(changes(ground)).collect()
}

/// Nothing of a folder counts that is not trusted. In one that nobody decided about yet, that is said of files only.
pub fn untrusted_note(ground: &FolderConfig) -> Option<String> {
    let FolderConfig { trust, project, folder, .. } = ground;
    let is_ours = |it: &TrustedFile| matches!(it.kind, TrustedFileKind::Command | TrustedFileKind::Skill);
    let is_meant = !trust.is_trusted() && project.all_files().iter().any(is_ours);
    is_meant.then(|| format!("{folder} is not trusted: its own commands and skills are not used."))
}

/// What changed since the user's yes: it is not used before another one.
pub fn changes(ground: &FolderConfig) -> Vec<String> {
    [TrustedFileKind::Command, TrustedFileKind::Skill].into_iter().flat_map(|it| changes_of(ground, it)).collect()
}

pub fn changes_of(ground: &FolderConfig, kind: TrustedFileKind) -> Vec<String> {
    let changes = ground.project.changes(kind).into_iter();
    changes.map(|it| format!("{it}; `castor trust` trusts its current content.")).collect()
}
