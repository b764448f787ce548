//! Messages of users: from AHP to the content of a prompt, and back.

use std::{borrow::Cow, path::Path};

use ahp::ahp_types::state::{
    Annotation, AnnotationsState, Message, MessageAttachment, MessageKind, MessageOrigin, TextSelection,
};
use base64::{Engine, prelude::BASE64_STANDARD};

use castor_base::{file_uri, path::AbsPath};
use castor_wire::acp::client::{
    AudioContent, BlobResourceContents, ContentBlock, EmbeddedResource, EmbeddedResourceResource, ImageContent,
    ResourceLink, TextResourceContents, resource_uri, text_block,
};

/// The beginning of a message that is a command for the shell.
pub const SHELL_PREFIX: &str = "!";
/// castor's own word for that.
const SHELL_COMMAND: &str = "/shell ";

/// The `file:` URI of a path.
pub fn uri_of(path: &str) -> String {
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

/// The text of a content block, or a name for it.
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
pub fn prompt_of(message: &Message, annotations: &AnnotationsState) -> Vec<ContentBlock> {
    let attachments = message.attachments.iter().flatten();
    let more = attachments.filter_map(|it| attachment_block(it, annotations));
    std::iter::once(text_block(command_of(&message.text))).chain(more).collect()
}

/// Looks at a client's message before anything is shown. Clients speak for users.
///
/// # Errors
/// Why the message is not taken, in words.
pub fn check_message(message: &Message) -> Result<(), String> {
    if message.origin.kind != MessageKind::User {
        return Err("a client sends messages of the user alone".to_owned());
    }
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

/// The block of an attachment; `None`: the text says all.
fn attachment_block(it: &MessageAttachment, annotations: &AnnotationsState) -> Option<ContentBlock> {
    Some(match it {
        MessageAttachment::Simple(it) => text_block(format!("{}:\n{}", it.label, it.model_representation.as_ref()?)),
        MessageAttachment::EmbeddedResource(it) => embedded_block(&it.label, &it.content_type, &it.data),
        MessageAttachment::Resource(it) => match &it.selection {
            Some(selection) => text_block(selection_words(&it.uri, selection)),
            None => {
                let link = ResourceLink::new(it.label.clone(), it.uri.clone());
                ContentBlock::ResourceLink(link.mime_type(it.content_type.clone()))
            }
        },
        MessageAttachment::Annotations(it) => {
            let wanted = |id: &String| it.annotation_ids.as_ref().is_none_or(|all| all.contains(id));
            let named = annotations.annotations.iter().filter(|it| wanted(&it.id));
            let words: Vec<String> = named.map(annotation_words).collect();
            (!words.is_empty()).then(|| text_block(words.join("\n")))?
        }
        // They are refused.
        MessageAttachment::Chat(_) | MessageAttachment::Unknown(_) => return None,
    })
}

/// An annotation in words for the model.
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
fn embedded_block(label: &str, content_type: &str, data: &str) -> ContentBlock {
    match content_type.split_once('/') {
        Some(("image", _)) => return ContentBlock::Image(ImageContent::new(data, content_type)),
        Some(("audio", _)) => return ContentBlock::Audio(AudioContent::new(data, content_type)),
        _ => (),
    }
    let uri = format!("attachment:///{}", label.replace(char::is_whitespace, "_"));
    let text = BASE64_STANDARD.decode(data).ok().and_then(|it| String::from_utf8(it).ok());
    let mime_type = content_type.to_owned();
    ContentBlock::Resource(EmbeddedResource::new(match text {
        Some(text) => {
            EmbeddedResourceResource::TextResourceContents(TextResourceContents::new(text, uri).mime_type(mime_type))
        }
        None => {
            EmbeddedResourceResource::BlobResourceContents(BlobResourceContents::new(data, uri).mime_type(mime_type))
        }
    }))
}
