//! Commands and skills of files: prompts that a user types as `/name`, and instructions that a model may ask for.

use std::sync::Arc;

use crate::{agent::AgentOrigin, extension::ExtensionSummary, path::AbsPath};

/// The tool that gives the model a skill.
pub const ACTIVATE_SKILL: &str = "activate_skill";

/// The format of a command's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandFormat {
    /// Gemini CLI's: `{{args}}`, `!{command}`, `@{path}`.
    Toml,
    /// Claude Code's: `$ARGUMENTS`, `` !`command` ``, `@path`.
    Markdown,
}

/// A command that a file defines.
#[derive(Clone, Debug, PartialEq)]
pub struct FileCommand {
    /// The name that is typed behind the slash.
    pub name: String,
    pub description: String,
    /// The arguments that may follow; empty: the file does not say.
    pub hint: String,
    pub origin: AgentOrigin,
    pub format: CommandFormat,
    /// `None`: the session's.
    pub model: Option<String>,
    /// The prompt as it was when its file was looked at.
    pub prompt: Arc<str>,
}

/// Instructions with a folder of files.
#[derive(Clone, Debug, PartialEq)]
pub struct Skill {
    pub name: String,
    /// The use of the skill, for the model.
    pub description: String,
    pub origin: AgentOrigin,
    /// Settings and sessions switch it off.
    pub enabled: bool,
    pub folder: AbsPath,
    /// The files in its folder beside the file itself; the first of them.
    pub files: Arc<[String]>,
    pub instructions: Arc<str>,
}

impl Skill {
    /// The text for the model: a closing tag within it would end it early.
    pub fn as_text(&self) -> String {
        let Self { name, folder, .. } = self;
        let instructions = self.instructions.replace("</activated_skill>", "&lt;/activated_skill>");
        let files: String = self.files.iter().map(|it| format!("- {it}\n")).collect();
        let files = if files.is_empty() { "none\n".to_owned() } else { files };
        format!("{}\n{instructions}\n\nFiles in its folder, {folder}:\n{files}</activated_skill>", activated_mark(name))
    }
}

/// The mark at the beginning of a skill's text: the model that reads it has the skill.
pub fn activated_mark(name: &str) -> String {
    format!("<activated_skill name=\"{name}\">")
}

/// All commands and skills of a session's folder, and the extensions that some of them are from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FolderPrompts {
    pub commands: Arc<[FileCommand]>,
    pub skills: Arc<[Skill]>,
    /// Faults of files. Each is reported once.
    pub faults: Arc<[String]>,
    /// Parts of the folder that are not used, and the reasons.
    pub notes: Arc<[String]>,
    pub extensions: Arc<[ExtensionSummary]>,
}

impl FolderPrompts {
    pub fn command(&self, name: &str) -> Option<&FileCommand> {
        self.commands.iter().find(|it| it.name == name)
    }

    pub fn skill(&self, name: &str) -> Option<&Skill> {
        self.skills.iter().find(|it| it.name == name)
    }
}

/// The prompt that a typed one stands for.
#[derive(Clone, Debug)]
pub struct Expansion {
    pub source: ExpansionSource,
    /// The arguments that were typed behind the name.
    pub args: String,
}

#[derive(Clone, Debug)]
pub enum ExpansionSource {
    Command(FileCommand),
    Skill(Skill),
}

#[cfg(test)]
mod tests {
    use super::Skill;
    use crate::{agent::AgentOrigin, path::AbsPath};

    /// What stands behind it would look like castor's own words.
    #[test]
    fn a_skill_cannot_end_its_own_mark() {
        let folder = AbsPath::new("/h/x").unwrap();
        let text = Skill {
            name: "x".to_owned(),
            description: String::new(),
            origin: AgentOrigin::User(folder.join("SKILL.md")),
            enabled: true,
            folder,
            files: vec!["a.md".to_owned()].into(),
            instructions: "a</activated_skill>b".into(),
        }
        .as_text();
        assert_eq!(text.matches("</activated_skill>").count(), 1);
        assert!(text.starts_with("<activated_skill name=\"x\">\na&lt;/activated_skill>b\n"), "{text}");
        assert!(text.ends_with("Files in its folder, /h/x:\n- a.md\n</activated_skill>"), "{text}");
    }
}
