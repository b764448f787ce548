//! Message pieces of a turn, in the order that every provider needs: text, references, media.

use std::borrow::Cow;

use serde_json::Value;

use castor_base::{
    content::Part,
    file_uri,
    history::{Turn, TurnPart},
    tool::{CallResult, ToolCall},
};

/// One thing that a provider's message is made of.
#[derive(Debug)]
pub enum MessagePiece<'a> {
    /// Not empty, unless it is signed.
    Text {
        text: Cow<'a, str>,
        signature: Option<&'a str>,
    },
    Thought {
        text: &'a str,
        signature: Option<&'a str>,
    },
    Blob(Blob<'a>),
    Call {
        call: &'a ToolCall,
        signature: Option<&'a str>,
    },
    Result(&'a CallResult),
}

/// Bytes in base64.
#[derive(Clone, Copy, Debug)]
pub struct Blob<'a> {
    pub mime: &'a str,
    pub data: &'a str,
}

impl Blob<'_> {
    /// A URL that holds the bytes themselves.
    pub fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.mime, self.data)
    }
}

pub fn pieces(turn: &Turn) -> Vec<MessagePiece<'_>> {
    let mut res = Vec::new();
    let mut referenced = Vec::new();
    for part in turn.parts() {
        match part {
            TurnPart::Content(it) => content(&mut res, it, &mut referenced),
            TurnPart::Call { call, signature } => {
                res.push(MessagePiece::Call { call, signature: signature.as_deref() })
            }
            TurnPart::Result(it) => res.push(MessagePiece::Result(it)),
        }
    }
    if !referenced.is_empty() {
        text(&mut res, "\n--- Content from referenced context ---");
        referenced.into_iter().for_each(|it| referenced_content(&mut res, it));
    }
    res
}

/// What the user says in a turn, as values of a provider.
pub fn user_content(turn: &Turn, text: impl Fn(&str) -> Value, media: impl Fn(Blob<'_>) -> Value) -> Vec<Value> {
    let said = pieces(turn).into_iter().filter_map(|it| match it {
        MessagePiece::Text { text: it, .. } => (!it.is_empty()).then(|| text(&it)),
        MessagePiece::Blob(it) => Some(media(it)),
        _ => None,
    });
    said.collect()
}

fn content<'a>(out: &mut Vec<MessagePiece<'a>>, part: &'a Part, referenced: &mut Vec<&'a Part>) {
    match part {
        Part::Text { text, signature: None } if text.is_empty() => (),
        Part::Text { text, signature } => {
            out.push(MessagePiece::Text { text: text.into(), signature: signature.as_deref() });
        }
        Part::Thought { thought, signature } => {
            out.push(MessagePiece::Thought { text: thought, signature: signature.as_deref() });
        }
        Part::Media { .. } => out.extend(blob(part).map(MessagePiece::Blob)),
        Part::Reference { uri, text: content, data, .. } => {
            text(out, format!("@{}", file_uri::describe_uri(uri)));
            if content.is_some() || data.is_some() {
                referenced.push(part);
            }
        }
    }
}

fn referenced_content<'a>(out: &mut Vec<MessagePiece<'a>>, part: &'a Part) {
    let Part::Reference { uri, text: content, .. } = part else { return };
    text(out, format!("\nContent from @{}:\n", file_uri::describe_uri(uri)));
    match content {
        Some(it) => text(out, it.as_str()),
        None => out.extend(blob(part).map(MessagePiece::Blob)),
    }
}

fn text<'a>(out: &mut Vec<MessagePiece<'a>>, text: impl Into<Cow<'a, str>>) {
    out.push(MessagePiece::Text { text: text.into(), signature: None });
}

/// Texts of a result, a line break between them.
pub fn output_text(content: &[Part]) -> String {
    let texts = content.iter().filter_map(|it| match it {
        Part::Text { text, .. } => Some(text.clone()),
        Part::Reference { uri, text: Some(text), .. } => {
            Some(format!("Content from @{}:\n{text}", file_uri::describe_uri(uri)))
        }
        Part::Reference { uri, .. } => Some(format!("@{}", file_uri::describe_uri(uri))),
        Part::Thought { .. } | Part::Media { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// What of a result is bytes. Where there is nothing else, the second value says so in words.
pub fn split_output(content: &[Part]) -> (Vec<Blob<'_>>, String) {
    let blobs: Vec<Blob<'_>> = content.iter().filter_map(blob).collect();
    let mut text = output_text(content);
    if text.is_empty() && !blobs.is_empty() {
        text = format!("Binary content provided ({} item(s)).", blobs.len());
    }
    (blobs, text)
}

/// Media type and base64 data of a part that has bytes and no text.
pub fn blob(part: &Part) -> Option<Blob<'_>> {
    part.bytes().map(|(mime, data)| Blob { mime, data })
}
