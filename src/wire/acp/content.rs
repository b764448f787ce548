//! ACP content blocks to castor's content parts, and back.

use agent_client_protocol_schema::v1::{
    AudioContent, BlobResourceContents, ContentBlock, EmbeddedResource, EmbeddedResourceResource, ImageContent,
    ResourceLink, TextContent, TextResourceContents,
};

use serde_json::Value;

use castor_base::content::{Part, PromptContent};

/// A prompt, with what its blocks say of themselves.
pub fn prompt(blocks: Vec<ContentBlock>) -> PromptContent {
    let n_piped = blocks.iter().take_while(|it| is_piped(it)).count();
    PromptContent { n_piped, ..blocks.into_iter().filter_map(part).collect::<Vec<_>>().into() }
}

/// Only texts can be, and each of them is a part.
fn is_piped(block: &ContentBlock) -> bool {
    let ContentBlock::Text(TextContent { meta: Some(meta), .. }) = block else { return false };
    meta.get("castor").and_then(|it| it.get("piped")).and_then(Value::as_bool) == Some(true)
}

/// A block of a prompt.
fn part(block: ContentBlock) -> Option<Part> {
    Some(match block {
        ContentBlock::Text(it) => Part::text(it.text),
        ContentBlock::Image(it) => Part::Media { mime: it.mime_type, data: it.data.into(), uri: it.uri },
        ContentBlock::Audio(it) => Part::Media { mime: it.mime_type, data: it.data.into(), uri: None },
        ContentBlock::ResourceLink(it) => {
            Part::Reference { uri: it.uri, name: Some(it.name), mime: it.mime_type, text: None, data: None }
        }
        ContentBlock::Resource(it) => match it.resource {
            EmbeddedResourceResource::TextResourceContents(it) => {
                Part::Reference { uri: it.uri, name: None, mime: it.mime_type, text: Some(it.text), data: None }
            }
            EmbeddedResourceResource::BlobResourceContents(it) => {
                Part::Reference { uri: it.uri, name: None, mime: it.mime_type, text: None, data: Some(it.blob.into()) }
            }
            _ => return None,
        },
        _ => return None,
    })
}

/// A part as the client sees it.
pub fn block(part: &Part) -> ContentBlock {
    match part {
        Part::Text { text, .. } | Part::Thought { thought: text, .. } => text_block(text),
        Part::Media { mime, data, .. } if mime.starts_with("audio/") => {
            ContentBlock::Audio(AudioContent::new(&**data, mime.clone()))
        }
        Part::Media { mime, data, uri } => {
            ContentBlock::Image(ImageContent::new(&**data, mime.clone()).uri(uri.clone()))
        }
        Part::Reference { uri, mime, text: Some(text), .. } => {
            let contents = TextResourceContents::new(text.clone(), uri.clone()).mime_type(mime.clone());
            ContentBlock::Resource(EmbeddedResource::new(EmbeddedResourceResource::TextResourceContents(contents)))
        }
        Part::Reference { uri, mime, data: Some(data), .. } => {
            let contents = BlobResourceContents::new(&**data, uri.clone()).mime_type(mime.clone());
            ContentBlock::Resource(EmbeddedResource::new(EmbeddedResourceResource::BlobResourceContents(contents)))
        }
        Part::Reference { uri, name, mime, .. } => {
            let name = name.clone().unwrap_or_else(|| uri.clone());
            ContentBlock::ResourceLink(ResourceLink::new(name, uri.clone()).mime_type(mime.clone()))
        }
    }
}

pub fn text_block(text: &str) -> ContentBlock {
    ContentBlock::Text(TextContent::new(text))
}
