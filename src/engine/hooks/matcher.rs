//! Hook matchers: which tools, sources or triggers a hook applies to.

use regex::Regex;

use castor_base::hook::{HookEvent, HookSubject};

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
        match (event.row().subject, text) {
            (HookSubject::Tool, Some(text)) => match Regex::new(text) {
                Ok(it) => Self::Pattern(it),
                Err(_) => Self::Literal(text.to_owned()),
            },
            (HookSubject::Words(_), Some(text)) => Self::Literal(text.to_owned()),
            (HookSubject::Nothing, _) | (_, None) => Self::All,
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
