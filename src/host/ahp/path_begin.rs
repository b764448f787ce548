//! The beginning of a path after an `@` in a message, and completions of it.

use ahp::ahp_types::{
    commands::CompletionItem,
    state::{MessageAttachment, SimpleMessageAttachment},
};

use castor_base::{path::AbsPath, root_files::FileKind};

/// The beginning of a path in a message.
pub struct PathBegin {
    pub root: AbsPath,
    pub folder: AbsPath,
    /// The path of that folder, as it was typed.
    typed: String,
    pub name: String,
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

    pub fn item(&self, (name, kind): &(String, FileKind)) -> CompletionItem {
        let is_folder = *kind == FileKind::Folder;
        let path = format!("{}{name}{}", self.typed, if is_folder { "/" } else { "" });
        let attachment = SimpleMessageAttachment {
            label: path.clone(),
            range: None,
            display_kind: Some(if is_folder { "directory" } else { "document" }.to_owned()),
            meta: None,
            model_representation: None,
        };
        CompletionItem {
            insert_text: format!("@{path}{}", if is_folder { "" } else { " " }),
            range_start: i64::try_from(self.range.0).ok(),
            range_end: i64::try_from(self.range.1).ok(),
            attachment: MessageAttachment::Simple(attachment),
        }
    }
}
