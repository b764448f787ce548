//! Commands and skills of files, as they are typed: which one a prompt calls, and which can be typed.

use crate::turn::Spec;
use castor_base::{
    content::{Part, PromptContent},
    file_prompt::{Expansion, ExpansionSource, FolderPrompts, Skill},
    prompt_options::PromptModel,
    text,
};

/// A command as a client shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedCommand {
    pub name: String,
    pub description: String,
    /// What may follow; empty: nothing, or it is not known.
    pub hint: String,
}

impl OfferedCommand {
    /// Name, description and hint.
    pub fn words(&self) -> (&str, &str, &str) {
        (&self.name, &self.description, &self.hint)
    }
}

/// Whether castor has a command of that name.
type IsOwn = fn(&str) -> bool;

/// Longest description of a skill among commands, in characters.
const MAX_DESCRIPTION: usize = 100;

/// Commands of files, then skills.
pub fn offered_of_files(prompts: &FolderPrompts, is_own: IsOwn) -> Vec<OfferedCommand> {
    let of_files = prompts.commands.iter().map(|it| OfferedCommand {
        name: it.name.clone(),
        description: it.description.clone(),
        hint: it.hint.clone(),
    });
    let skills = prompts.skills.iter().filter(|it| it.enabled).map(|it| OfferedCommand {
        name: typed_name(it, prompts, is_own),
        description: text::first_line(&it.description, MAX_DESCRIPTION),
        hint: "task".to_owned(),
    });
    of_files.chain(skills).collect()
}

/// A name that something else has stays that one's.
fn typed_name(skill: &Skill, prompts: &FolderPrompts, is_own: IsOwn) -> String {
    let is_taken = is_own(&skill.name) || prompts.command(&skill.name).is_some();
    if is_taken { format!("skill.{}", skill.name) } else { skill.name.clone() }
}

/// The name of the command that a prompt looks like, and what stands behind it.
pub(super) fn split_command(content: &[Part]) -> Option<(&str, &str)> {
    let line = content.first()?.as_text()?.strip_prefix('/')?;
    Some(line.split_once(char::is_whitespace).unwrap_or((line, "")))
}

/// What a prompt calls of these.
pub fn find_expansion(content: &[Part], prompts: &FolderPrompts, is_own: IsOwn) -> Option<Expansion> {
    let (name, args) = split_command(content)?;
    if is_own(name) {
        return None;
    }
    let args = args.trim().to_owned();
    if let Some(it) = prompts.command(name) {
        return Some(Expansion { source: ExpansionSource::Command(it.clone()), args });
    }
    let mut skills = prompts.skills.iter().filter(|it| it.enabled);
    let it = skills.find(|it| typed_name(it, prompts, is_own) == name)?;
    Some(Expansion { source: ExpansionSource::Skill(it.clone()), args })
}

/// The model that a command's file names, where an alias says what it is.
pub fn choose_model(content: &mut PromptContent, expansion: &Expansion, spec: &Spec) {
    let ExpansionSource::Command(command) = &expansion.source else { return };
    let known = command.model.clone().filter(|it| spec.aliases.knows(it));
    if let Some(name) = known.filter(|_| content.options.model.is_none()) {
        content.options.model = Some(PromptModel { name, window: 0 });
    }
}
