//! The beginning of a path after an `@` in a message, and completions of it.

use ahp::ahp_types::{commands::CompletionItem, state};

use castor_base::{path::AbsPath, root_files::FileKind};

/// Most completions of a message.
pub const MAX_COMPLETIONS: usize = 50;

/// The beginning of a path in a message.
pub struct PathBegin {
    pub root: AbsPath,
    pub folder: AbsPath,
    /// The path of that folder, as it was typed.
    typed: String,
    name: String,
    /// Where the path begins and ends in the message, in UTF-16.
    range: (usize, usize),
}

impl PathBegin {
    pub fn of(typed: &str, cwd: &str) -> Option<Self> {
        let (before, path) = typed.rsplit_once('@')?;
        let is_word = before.is_empty() || before.ends_with(char::is_whitespace);
        if !is_word || path.contains(char::is_whitespace) {
            return None;
        }
        let root = AbsPath::new(cwd)?;
        let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
        let units = |it: &str| it.encode_utf16().count();
        Some(Self {
            folder: root.join(folder),
            root,
            typed: if folder.is_empty() { String::new() } else { format!("{folder}/") },
            name: name.to_owned(),
            range: (units(before), units(typed)),
        })
    }

    /// The completions among the entries of its folder. Hidden ones are meant where the dot is typed.
    pub fn items(&self, entries: &[(String, FileKind)]) -> Vec<CompletionItem> {
        let fitting = entries.iter().filter(|it| it.0.starts_with(&self.name));
        let fitting = fitting.filter(|it| !it.0.starts_with('.') || self.name.starts_with('.'));
        fitting.take(MAX_COMPLETIONS).map(|it| self.item(it)).collect()
    }

    fn item(&self, (name, kind): &(String, FileKind)) -> CompletionItem {
        let is_folder = *kind == FileKind::Folder;
        let path = format!("{}{name}{}", self.typed, if is_folder { "/" } else { "" });
        let attachment = with_none!(state::SimpleMessageAttachment {
            label: path.clone(),
            display_kind: Some(if is_folder { "directory" } else { "document" }.to_owned()),
        } range meta model_representation);
        CompletionItem {
            insert_text: format!("@{path}{}", if is_folder { "" } else { " " }),
            range_start: i64::try_from(self.range.0).ok(),
            range_end: i64::try_from(self.range.1).ok(),
            attachment: state::MessageAttachment::Simple(attachment),
        }
    }
}
