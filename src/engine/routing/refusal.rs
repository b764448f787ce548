//! Refusals of one part of a request: which parameter, tool or media a bad request is about.

use castor_base::{model::Failure, model_table::Parameter};

/// Part of a request that castor can do without. Never messages, the system prompt, safety settings or all tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusedPart {
    /// `lasting`: the model does not know it at all, so that later sessions leave it out, too.
    Parameter {
        parameter: Parameter,
        lasting: bool,
    },
    /// The tool at its place in the offer.
    Tool(usize),
    Media {
        kind: MediaKind,
        which: MediaChoice,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaKind {
    Image,
    Audio,
    Video,
    /// PDF and other files.
    Document,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaChoice {
    /// The model reads none of this kind.
    All,
    /// One is too large.
    Largest,
    /// One cannot be read.
    Newest,
}

impl MediaKind {
    const WORDS: &[(&str, Self)] = &[
        ("image", Self::Image),
        ("vision", Self::Image),
        ("multimodal", Self::Image),
        ("multi-modal", Self::Image),
        ("inline_data", Self::Image),
        ("inlinedata", Self::Image),
        ("audio", Self::Audio),
        ("video", Self::Video),
        ("pdf", Self::Document),
        ("document", Self::Document),
        ("file_data", Self::Document),
        ("input_file", Self::Document),
        ("'file'", Self::Document),
    ];

    /// The kind of a media type.
    pub fn of_mime(mime: &str) -> Self {
        match mime.split('/').next() {
            Some("image") => Self::Image,
            Some("audio") => Self::Audio,
            Some("video") => Self::Video,
            _ => Self::Document,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Video => "video",
            Self::Document => "document",
        }
    }
}

/// The parts of a request that a refusal may mean.
#[derive(Clone, Copy, Debug)]
pub struct SentParts<'a> {
    /// Names of the tools, in the order in which they were sent.
    pub tools: &'a [&'a str],
    pub media: &'a [MediaKind],
}

/// Words of a refusal that is about what was sent, and not about who sent it, beside [`UNKNOWN`].
const REFUSES: &[&str] = &[
    "unsupported",
    "forbidden",
    "extra inputs",
    "cannot ",
    "only support",
    "incompatible",
    "not compatible",
    "can't be",
    "may not be",
    "not valid",
    "invalid",
    "must be",
    "must not",
    "should be",
    "out of range",
    "not accept",
    "exceed",
    "too large",
    "greater than",
    "less than",
    "may only be",
    "is required to be",
    "> ",
];
/// Words of a refusal that no other value would change.
const UNKNOWN: &[&str] = &[
    "unsupported parameter",
    "unavailable",
    "not support",
    "n't support",
    "unknown",
    "unrecogni",
    "unexpected",
    "not permitted",
    "extra_forbidden",
    "extra fields",
    "not allowed",
    "cannot find field",
    "deprecated",
    "no longer",
    "not available",
    "not enabled",
    "no field",
    "additional properties",
    "not implemented",
    "must be verified",
    "only the default",
    "no endpoints found",
];
const NO_MEDIA: &[&str] = &[
    "not support",
    "n't support",
    "unsupported content",
    "unknown variant",
    "no endpoints found",
    "not available",
    "not enabled",
    "only support",
    "at most 0",
    "not a vision",
    "not multimodal",
    "text-only",
    "text only",
    "not accept",
    "only supported by",
    "must be a string",
    "expected `text`",
    "expected 'text'",
    "not implemented",
];
const LARGE_MEDIA: &[&str] =
    &["exceed", "too large", "larger than", "dimension", "too big", "maximum", " > ", "at most", "too many"];
const BAD_MEDIA: &[&str] = &[
    "could not",
    "unable to",
    "failed to",
    "cannot",
    "corrupt",
    "invalid",
    "not valid",
    "unsupported",
    "decode",
    "process",
    "not match",
    "not represent",
    "unrecogni",
    "malformed",
    "bad ",
    "should be",
];
/// Other members of a request: a path that begins with one is no parameter.
const NEVER: &[&str] =
    &["messages", "input", "contents", "system", "instructions", "tools", "safety", "model", "prompt"];
/// Parameters in words.
const PHRASES: &[(&str, Parameter)] = &[
    ("response mime type", Parameter::Schema),
    ("structured output", Parameter::Schema),
    ("json mode", Parameter::Schema),
    ("stop sequence", Parameter::Stop),
    ("prompt caching", Parameter::CacheControl),
    ("cache control", Parameter::CacheControl),
    ("encrypted content", Parameter::Include),
];
/// Members of a tool that castor writes for all tools alike: they say nothing of this one.
const OF_ALL_TOOLS: &[&str] = &["strict", "type", "cachecontrol", "function.strict", "function.type"];

/// The part that a refusal is about; `None`: nothing that could be left out.
pub fn read_refusal(failure: &Failure, sent: SentParts<'_>) -> Option<RefusedPart> {
    let message = failure.message.to_lowercase();
    match failure.status? {
        400 | 422 => {
            let media = || read_media(&message, sent.media);
            match &failure.details.param {
                Some(param) => match read_tool(&param.to_lowercase(), sent.tools) {
                    it @ Some(_) => it,
                    None => match parameter_at(param) {
                        Some(it) => Some(refused_parameter(it, &message)),
                        None => find_tool_by_name(&failure.message, sent.tools).or_else(media),
                    },
                },
                None => read_tool(&message, sent.tools)
                    .or_else(|| find_tool_by_name(&failure.message, sent.tools))
                    .or_else(media)
                    .or_else(|| read_parameter(&failure.message)),
            }
        }
        // Of a router: no service behind it takes what was sent.
        404 if message.contains("no endpoints found") => {
            read_media(&message, sent.media).or_else(|| read_parameter(&failure.message))
        }
        404 | 415 | 500 | 501 => read_media(&message, sent.media)
            .filter(|it| matches!(it, RefusedPart::Media { which: MediaChoice::All, .. })),
        _ => None,
    }
}

fn has(text: &str, parts: &[&str]) -> bool {
    parts.iter().any(|it| text.contains(it))
}

/// `tools[3].function.parameters`, `tools.3.custom.name`, `function_declarations[2]`, `"tools",3`.
fn read_tool(text: &str, tools: &[&str]) -> Option<RefusedPart> {
    let squeezed: String = text.chars().filter(|it| !matches!(it, '\'' | '"' | '`' | ' ' | '_')).collect();
    // Gemini's declarations are within a tool of their own.
    let found = index_behind(&squeezed, "functiondeclarations").or_else(|| index_behind(&squeezed, "tools"));
    let (index, rest) = found?;
    let member = rest.trim_start_matches(['.', ',', ']', ')']);
    let end = member.find(|it: char| !it.is_ascii_alphanumeric() && it != '.').unwrap_or(member.len());
    let is_of_all = OF_ALL_TOOLS.contains(&member.get(..end)?.trim_end_matches('.'));
    (index < tools.len() && tools.len() > 1 && !is_of_all).then_some(RefusedPart::Tool(index))
}

fn index_behind<'t>(text: &'t str, list: &str) -> Option<(usize, &'t str)> {
    text.match_indices(list).find_map(|(at, _)| {
        let rest = text.get(at + list.len()..)?.strip_prefix(['[', '.', ',', '/'])?;
        let end = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
        Some((rest.get(..end)?.parse().ok()?, rest.get(end..)?))
    })
}

/// A tool by its name: in quotes, or where the message speaks of tools and the name is no common word.
fn find_tool_by_name(message: &str, tools: &[&str]) -> Option<RefusedPart> {
    let lower = message.to_lowercase();
    if tools.len() < 2 || !has(&lower, &["function", "tool", "schema"]) {
        return None;
    }
    let named = |name: &&str| {
        message.match_indices(*name).any(|(at, _)| {
            let before = message.get(..at).and_then(|it| it.chars().next_back());
            let after = message.get(at + name.len()..).and_then(|it| it.chars().next());
            let is_part = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || matches!(it, '_' | '-'));
            let is_quoted = before.is_some_and(|it| matches!(it, '\'' | '"' | '`' | '“'));
            !is_part(before) && !is_part(after) && (is_quoted || name.contains('_'))
        })
    };
    let found = tools.iter().enumerate().filter(|(_, it)| !it.is_empty() && named(it)).max_by_key(|(_, it)| it.len());
    found.map(|(index, _)| RefusedPart::Tool(index))
}

/// Tells whether a refusal is about what was sent.
fn is_about_parts(message: &str) -> bool {
    has(message, UNKNOWN) || has(message, REFUSES)
}

fn read_media(message: &str, media: &[MediaKind]) -> Option<RefusedPart> {
    let (_, kind) = MediaKind::WORDS.iter().find(|(word, kind)| message.contains(word) && media.contains(kind))?;
    let which = match () {
        () if has(message, NO_MEDIA) => MediaChoice::All,
        () if has(message, LARGE_MEDIA) => MediaChoice::Largest,
        () if has(message, BAD_MEDIA) => MediaChoice::Newest,
        () => return None,
    };
    Some(RefusedPart::Media { kind: *kind, which })
}

fn read_parameter(message: &str) -> Option<RefusedPart> {
    let lower = message.to_lowercase();
    if !is_about_parts(&lower) {
        return None;
    }
    if let Some((_, it)) = PHRASES.iter().find(|(phrase, _)| lower.contains(phrase)) {
        return Some(refused_parameter(*it, &lower));
    }
    let is_name = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '.' | '[' | ']');
    let mut at = 0;
    let words = std::iter::from_fn(|| {
        let begin = at + lower.get(at..)?.find(is_name)?;
        let rest = lower.get(begin..)?;
        let len = rest.find(|it: char| !is_name(it)).unwrap_or(rest.len());
        at = begin + len;
        Some((lower.get(..begin)?, rest.get(..len)?, rest.get(len..)?))
    });
    let mut found = words.filter_map(|(before, word, after)| {
        let parameter = parameter_at(word.trim_end_matches('.'))?;
        let is_quoted = before.ends_with(['\'', '"', '`', '“']);
        let is_named = is_quoted
            || after.starts_with([':', '='])
            || before.ends_with("parameter ")
            || after.trim_start().starts_with("parameter")
            || (parameter == Parameter::Thinking && !is_common_verb(word));
        (is_named || !is_common_word(word)).then_some(parameter)
    });
    found.next().map(|it| refused_parameter(it, &lower))
}

/// `lower`: the message.
fn refused_parameter(parameter: Parameter, lower: &str) -> RefusedPart {
    let lasting = has(lower, UNKNOWN);
    // A limit that is unknown has another name there.
    let parameter = match parameter {
        Parameter::MaxOutputTokens if lasting && has(lower, &["max_tokens", "max_completion_tokens"]) => {
            Parameter::MaxTokensName
        }
        other => other,
    };
    RefusedPart::Parameter { parameter, lasting }
}

/// Words of any text that are names of parameters, too.
fn is_common_word(word: &str) -> bool {
    ["stop", "include", "store", "reasoning", "thinking", "effort", "text"].contains(&word)
}

fn is_common_verb(word: &str) -> bool {
    ["stop", "include", "store"].contains(&word)
}

/// The optional parameter at a place of a request: `temperature`, `reasoning.effort`, `generation_config.top_k`.
fn parameter_at(path: &str) -> Option<Parameter> {
    let path: String = path.to_lowercase().chars().filter(|it| *it != '_').collect();
    let parts: Vec<&str> = path.split(['.', '[', ']', '/']).filter(|it| !it.is_empty()).collect();
    let first = parts.iter().find(|it| !matches!(**it, "body" | "extrabody" | "request"))?;
    if NEVER.contains(first) {
        return None;
    }
    // The innermost one: who refuses a summary takes an effort.
    parts.iter().rev().find_map(|it| Parameter::of_name(it))
}

#[cfg(test)]
mod tests;
