//! The tool `google_web_search`: what a model of Gemini finds on the web, with its sources.

use std::{fmt, sync::Arc};

use serde_json::Value;

use crate::builtin::{
    Builtin, Task, ToolContext,
    params::{CallArguments, invalid},
    schema,
};
use castor_base::{
    fs::BoxFuture,
    text::{self, wrap_untrusted},
    tool::{BaseHash, Targets, ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};

/// The name by which it is left out where no model can search.
pub const GOOGLE_WEB_SEARCH: &str = "google_web_search";
/// Longest query, and most of an answer, in bytes.
const MAX_QUERY: usize = 2_000;
const MAX_ANSWER: usize = 24 << 10;

pub struct GoogleWebSearch;

impl Builtin for GoogleWebSearch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: GOOGLE_WEB_SEARCH.into(),
            title: "GoogleSearch".into(),
            description: "Searches the web and answers a question with its sources.".into(),
            kind: ToolKind::Search,
            traits: ToolTraits::LOOKS,
            parameters: schema::object(&["query"], [("query", schema::text("What to find."))]),
        }
    }

    fn targets<'a>(&'a self, args: &'a Value, _ctx: &'a ToolContext) -> Task<'a, Targets> {
        Box::pin(async move {
            let title = format!("Searching the web for: {}", text::first_line(query(args)?, 200));
            Ok(Targets { title, ..Targets::default() })
        })
    }

    fn run<'a>(&'a self, args: &'a Value, _base: Option<&'a BaseHash>, ctx: &'a ToolContext) -> Task<'a, ToolOutput> {
        Box::pin(async move {
            let query = query(args)?;
            let Some(WebSearch(search)) = &ctx.settings.web.search else {
                return Err(ToolError::new("web_search_failed", "No model of this session can search the web."));
            };
            let found = ctx.cancel.run_until_cancelled(search(query.to_owned())).await;
            let found = found.unwrap_or_else(|| Err("the search was cancelled".to_owned()));
            let found =
                found.map_err(|why| ToolError::new("web_search_failed", format!("The search failed: {why}.")))?;
            let head = text::head(&found.text, MAX_ANSWER);
            let text = wrap_untrusted(head).unwrap_or_else(|| "Nothing was found.".to_owned());
            Ok(ToolOutput::told(text, format!("{} searched, {} tokens", found.model, found.tokens)))
        })
    }
}

fn query(args: &Value) -> Result<&str, ToolError> {
    let query = CallArguments::of(args)?.text("query")?.trim();
    match query.len() {
        0 => Err(invalid("'query' is empty.")),
        n if n > MAX_QUERY => Err(invalid(format!("'query' is over {MAX_QUERY} bytes."))),
        _ => Ok(query),
    }
}

/// Asks a model to search.
#[derive(Clone)]
pub struct WebSearch(pub Arc<SearchFn>);

type SearchFn = dyn Fn(String) -> BoxFuture<'static, Result<WebFindings, String>> + Send + Sync;

impl fmt::Debug for WebSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebSearch")
    }
}

/// What a model found.
pub struct WebFindings {
    pub text: String,
    pub model: String,
    /// What the search took; a session's own count does not have it.
    pub tokens: u64,
}

#[cfg(test)]
mod tests {
    use super::GoogleWebSearch;
    use crate::builtin::Builtin;

    /// Each request pays for it.
    #[test]
    fn its_declaration_is_small() {
        let it = GoogleWebSearch.spec();
        assert!((it.name.len() + it.description.len() + it.parameters.to_string().len()) / 4 <= 150);
    }
}
