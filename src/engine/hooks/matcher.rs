//! Hook matchers: which tools, sources or triggers a hook applies to.

use regex::Regex;

use crate::base::hook::HookEvent;

#[derive(Clone, Debug)]
pub(super) enum HookMatcher {
    All,
    /// Anywhere in the name, as in Gemini CLI.
    Pattern(Regex),
    Literal(String),
}

impl HookMatcher {
    pub fn new(event: HookEvent, text: Option<&str>) -> Self {
        let text = text.map(str::trim).filter(|it| !it.is_empty() && *it != "*");
        match (event, text) {
            (HookEvent::BeforeTool | HookEvent::AfterTool, Some(text)) => match Regex::new(text) {
                Ok(it) => Self::Pattern(it),
                Err(_) => Self::Literal(text.to_owned()),
            },
            (HookEvent::SessionStart | HookEvent::SessionEnd | HookEvent::PreCompress, Some(text)) => {
                Self::Literal(text.to_owned())
            }
            // The others have nothing to match.
            _ => Self::All,
        }
    }

    pub fn fits(&self, subject: &str) -> bool {
        match self {
            Self::All => true,
            Self::Pattern(it) => it.is_match(subject),
            Self::Literal(it) => it == subject,
        }
    }
}
