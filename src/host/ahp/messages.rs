//! Messages of users: from AHP to the content of a prompt, and back.

use std::{borrow::Cow, path::Path};

use ahp::ahp_types::state::{
    Annotation, AnnotationsState, Message, MessageAttachment, MessageKind, MessageOrigin, TextSelection,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use castor_base::{file_uri, path::AbsPath};
use castor_wire::acp::client::{ContentBlock, resource_uri};

/// What the host takes at the start of a message as a command for the shell.
pub const SHELL_PREFIX: &str = "!";
/// castor's own word for that.
const SHELL_COMMAND: &str = "/shell ";

pub fn file_uri(path: &str) -> String {
    file_uri::from_path(Path::new(path))
}

/// The folder of a `file:` URI on this machine.
pub fn path_of(uri: &str) -> Option<String> {
    Some(AbsPath::new(file_uri::to_path(uri)?)?.to_string())
}

pub fn user_message(text: String) -> Message {
    let origin = MessageOrigin { kind: MessageKind::User };
    Message { text, origin, attachments: None, model: None, agent: None, meta: None }
}

/// What of content blocks is text, and names of the rest.
pub fn text_of(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(it) => it.text.clone(),
        ContentBlock::ResourceLink(it) => format!("@{}", it.name),
        ContentBlock::Resource(it) => format!("@{}", resource_uri(it)),
        ContentBlock::Image(_) => "[image]".to_owned(),
        ContentBlock::Audio(_) => "[audio]".to_owned(),
        _ => String::new(),
    }
}

/// The text as castor takes it.
pub fn command_of(text: &str) -> Cow<'_, str> {
    match text.strip_prefix(SHELL_PREFIX) {
        Some(command) => format!("{SHELL_COMMAND}{}", command.trim_start()).into(),
        None => text.into(),
    }
}

/// The text as a user typed it.
pub fn typed_text(text: String) -> String {
    match text.strip_prefix(SHELL_COMMAND) {
        Some(command) => format!("{SHELL_PREFIX}{command}"),
        None => text,
    }
}

/// The blocks of a prompt.
pub fn prompt_of(message: &Message, annotations: &AnnotationsState) -> Vec<Value> {
    let text = command_of(&message.text);
    let attachments = message.attachments.iter().flatten();
    let more = attachments.filter_map(|it| attachment_block(it, annotations));
    std::iter::once(json!({ "type": "text", "text": text })).chain(more).collect()
}

/// Looks at what a client attached before any of it is shown.
///
/// # Errors
/// Why the message is not taken, in words.
pub fn check_attachments(message: &Message) -> Result<(), String> {
    message.attachments.iter().flatten().try_for_each(|it| match it {
        MessageAttachment::EmbeddedResource(it) => {
            let bytes = BASE64_STANDARD.decode(&it.data);
            let bytes = bytes.map_err(|_| format!("the data of the attachment {} is no base64", it.label))?;
            match it.content_type.starts_with("text/") && std::str::from_utf8(&bytes).is_err() {
                true => Err(format!("the attachment {} is {}, and is not in UTF-8", it.label, it.content_type)),
                false => Ok(()),
            }
        }
        MessageAttachment::Chat(_) => Err("castor takes no other chat as an attachment".to_owned()),
        MessageAttachment::Unknown(_) => Err("castor does not know this kind of attachment".to_owned()),
        MessageAttachment::Simple(_) | MessageAttachment::Resource(_) | MessageAttachment::Annotations(_) => Ok(()),
    })
}

/// `None`: it says nothing beside the text.
fn attachment_block(it: &MessageAttachment, annotations: &AnnotationsState) -> Option<Value> {
    match it {
        MessageAttachment::Simple(it) => {
            let text = it.model_representation.as_ref()?;
            Some(json!({ "type": "text", "text": format!("{}:\n{text}", it.label) }))
        }
        MessageAttachment::EmbeddedResource(it) => Some(embedded_block(&it.label, &it.content_type, &it.data)),
        MessageAttachment::Resource(it) => {
            let link = json!({ "type": "resource_link", "name": it.label, "uri": it.uri });
            let link = super::with_members(link, [("mimeType", it.content_type.as_ref().map(|it| json!(it)))]);
            match &it.selection {
                Some(selection) => Some(json!({ "type": "text", "text": selection_words(&it.uri, selection) })),
                None => Some(link),
            }
        }
        MessageAttachment::Annotations(it) => {
            let wanted = |id: &String| it.annotation_ids.as_ref().is_none_or(|all| all.contains(id));
            let named = annotations.annotations.iter().filter(|it| wanted(&it.id));
            let words: Vec<String> = named.map(annotation_words).collect();
            (!words.is_empty()).then(|| json!({ "type": "text", "text": words.join("\n") }))
        }
        // They are refused.
        MessageAttachment::Chat(_) | MessageAttachment::Unknown(_) => None,
    }
}

/// For the model.
fn annotation_words(it: &Annotation) -> String {
    let place = path_of(&it.resource).unwrap_or_else(|| it.resource.clone());
    let lines = it.range.as_ref().map(|it| format!(", lines {} to {}", it.start.line + 1, it.end.line + 1));
    let entries: Vec<&str> = it.entries.iter().map(|it| it.text.as_text()).collect();
    format!("Comment on {place}{}: {}", lines.unwrap_or_default(), entries.join("\n"))
}

fn selection_words(uri: &str, selection: &TextSelection) -> String {
    let (from, to) = (selection.range.start.line + 1, selection.range.end.line + 1);
    let place = path_of(uri).unwrap_or_else(|| uri.to_owned());
    format!("Selected: lines {from} to {to} of {place}")
}

/// Images and sounds go as they are; texts are read.
fn embedded_block(label: &str, content_type: &str, data: &str) -> Value {
    let media = ["image", "audio"].into_iter().find(|it| content_type.starts_with(&format!("{it}/")));
    if let Some(kind) = media {
        return json!({ "type": kind, "mimeType": content_type, "data": data });
    }
    let uri = format!("attachment:///{}", label.replace(char::is_whitespace, "_"));
    let text = BASE64_STANDARD.decode(data).ok().and_then(|it| String::from_utf8(it).ok());
    match text {
        Some(text) => {
            json!({ "type": "resource", "resource": { "uri": uri, "mimeType": content_type, "text": text } })
        }
        None => json!({ "type": "resource", "resource": { "uri": uri, "mimeType": content_type, "blob": data } }),
    }
}
