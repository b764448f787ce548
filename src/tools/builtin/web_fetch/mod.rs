//! The tool `web_fetch`: reads addresses of the web as text.
//!
//! castor asks by itself, not from the sandbox: so the address is all that leaves the machine, and the user sees it.

mod address;
mod markdown;
mod page;

use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::Url;
use serde_json::Value;

use self::page::{Body, Page};
use crate::builtin::{
    Builtin, Task, ToolContext,
    params::{CallArguments, invalid},
    schema::{self, text},
};
use castor_base::{
    content::Part,
    text::wrap_untrusted,
    tool::{BaseHash, Targets, ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};
use castor_hands::http::safe_host;

/// Of one call, as Gemini CLI's.
const MAX_ADDRESSES: usize = 20;

pub struct WebFetch;

impl Builtin for WebFetch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "web_fetch".into(),
            title: "WebFetch".into(),
            description:
                "Reads an http(s) address: pages as Markdown, other texts as they are, images and PDF as such. \
                          A redirect to another host is named, not followed."
                    .into(),
            kind: ToolKind::Fetch,
            traits: ToolTraits::FETCHES,
            parameters: schema::object(&["url"], [("url", text("The whole address."))]),
        }
    }

    fn targets<'a>(&'a self, args: &'a Value, _ctx: &'a ToolContext) -> Task<'a, Targets> {
        Box::pin(async move {
            let addresses = addresses(args)?;
            let mut hosts: Vec<String> = addresses.iter().map(safe_host).collect();
            hosts.sort();
            hosts.dedup();
            let title = addresses.iter().map(Url::as_str).collect::<Vec<_>>().join(" ");
            Ok(Targets { title, hosts, ..Targets::default() })
        })
    }

    fn run<'a>(&'a self, args: &'a Value, _base: Option<&'a BaseHash>, ctx: &'a ToolContext) -> Task<'a, ToolOutput> {
        Box::pin(async move {
            let addresses = addresses(args)?;
            let work = ctx.cancel.run_until_cancelled(read_all(&addresses, ctx));
            work.await.unwrap_or_else(|| Err(ToolError::new("cancelled", "The request was cancelled.")))
        })
    }
}

/// What a call is about: `url`, or all that `prompt` names, as models of Gemini CLI write it.
fn addresses(args: &Value) -> Result<Vec<Url>, ToolError> {
    let params = CallArguments::of(args)?;
    let (url, prompt) = (params.opt_text("url")?, params.opt_text("prompt")?);
    let Some(prompt) = prompt.filter(|_| url.is_none()) else {
        return Ok(vec![address::parse(params.text("url")?)?]);
    };
    let found: Vec<Url> = address::words(prompt).map(address::parse).collect::<Result<_, _>>()?;
    match found.len() {
        0 => Err(invalid("There is no http(s) address in 'prompt'; name one in 'url'.")),
        n if n > MAX_ADDRESSES => {
            Err(invalid(format!("{n} addresses are too many: {MAX_ADDRESSES} at most in a call.")))
        }
        _ => Ok(found),
    }
}

/// One after the other. One that fails among several is told in its place.
async fn read_all(addresses: &[Url], ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
    let (mut texts, mut media, mut summaries, mut failed) = (Vec::new(), Vec::new(), Vec::new(), None);
    for url in addresses {
        match page::fetch(url, &ctx.settings.web).await {
            Ok(page) => {
                summaries.push(page.summary());
                texts.push(in_words(&page));
                media.extend(media_part(page));
            }
            Err(error) => {
                texts.push(error.for_model.clone().unwrap_or_else(|| error.message.clone()));
                failed = failed.or(Some(error));
            }
        }
    }
    match failed.filter(|_| summaries.is_empty()) {
        Some(error) => Err(error),
        None => Ok(ToolOutput {
            content: std::iter::once(Part::text(texts.join("\n\n"))).chain(media).collect(),
            summary: Some(summaries.join("\n")),
            ..ToolOutput::default()
        }),
    }
}

/// What a page says is data, and so are the addresses that its server names.
fn in_words(page: &Page) -> String {
    let note = page.note.as_deref().map(|it| format!(" {it}")).unwrap_or_default();
    let head = format!("{}{note}", page.summary());
    match &page.body {
        Body::Text(text) => {
            format!("{head}\n{}", wrap_untrusted(text).unwrap_or_else(|| "(empty)".to_owned()))
        }
        Body::Redirect(to) => {
            let named = wrap_untrusted(to.as_str()).unwrap_or_default();
            format!("{} redirects to another host, which was not asked. If you need it, fetch:\n{named}", page.url)
        }
        Body::Media { .. } => head,
    }
}

fn media_part(page: Page) -> Option<Part> {
    let Body::Media { mime, bytes } = page.body else { return None };
    Some(Part::Media { mime, data: BASE64_STANDARD.encode(bytes).into(), uri: Some(page.url.into()) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::WebFetch;
    use crate::builtin::{Builtin, testing::ToolFixture};

    fn targets(args: &serde_json::Value) -> String {
        let fixture = ToolFixture::new(&[]);
        let ctx = fixture.ctx();
        let it = fixture.block_on(WebFetch.targets(args, &ctx));
        it.map_or_else(|it| it.message, |it| format!("{} [{}]", it.title, it.hosts.join(" ")))
    }

    #[test]
    fn a_call_names_its_addresses_either_way() {
        let of_url = |it: &str| targets(&json!({ "url": it }));
        let of_prompt = |it: &str| targets(&json!({ "prompt": it }));
        assert_eq!(of_url("https://Docs.RS/a?b=c#d"), "https://docs.rs/a?b=c [docs.rs]");
        assert_eq!(of_url("http://a.b:8080"), "http://a.b:8080/ [a.b:8080]");
        assert_eq!(
            of_url("https://github.com/o/r/blob/main/src/a.rs#L3"),
            "https://raw.githubusercontent.com/o/r/main/src/a.rs [raw.githubusercontent.com]"
        );
        assert_eq!(
            of_prompt("Compare <https://b.c/x>, (http://a.b/y). And https://b.c/x"),
            "https://b.c/x http://a.b/y [a.b b.c]"
        );
        // What is asked about is what is read.
        assert_eq!(targets(&json!({"url": "https://a.b/", "prompt": "https://c.d"})), "https://a.b/ [a.b]");
        let many: String = (0..21).map(|it| format!("https://a.b/{it} ")).collect();
        for (said, why) in [
            (of_url("ftp://a.b/x"), "http or https"),
            (of_url("a.b"), "is no address"),
            (of_url("https://me:key@a.b/"), "name or a password"),
            (of_url("https://a.b/?k=[secret from .env]"), "stands for a value"),
            (of_prompt("nothing"), "no http(s) address"),
            (of_prompt(&many), "21 addresses are too many"),
            (targets(&json!({})), "required property 'url'"),
        ] {
            assert!(said.contains(why), "{said}");
        }
    }
}
