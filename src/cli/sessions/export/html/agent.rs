//! A call that started a sub-agent in the HTML page: the agent's own story, folded under the call.

use super::{
    super::{agent_story::AgentStory, call::Call},
    Page,
    call::{output, write_heading},
};
use crate::cli::page::escape::{Text, put};

impl Page<'_> {
    pub fn write_agent(&self, it: &Call<'_>, agent: &AgentStory<'_>, away: &str, out: &mut String) {
        put(out, format_args!("<details class=\"call run{away}\">\n<summary>"));
        write_heading(it, it.about(), "", out);
        put(out, format_args!("<br><b>{}</b> <small>{}</small>", Text(agent.facts.name), agent.in_words().join(" · ")));
        out.push_str("</summary>\n<div>\n");
        if let Some(story) = &agent.story {
            let page = Page { exported: self.exported.inner(story), zone: self.zone };
            for (at, item) in story.items.iter().enumerate() {
                page.write_item(at, item, out);
            }
        }
        if let Some(flaw) = agent.flaw() {
            put(out, format_args!("<p class=\"note\">{flaw}</p>\n"));
        }
        out.push_str("</div>\n");
        if agent.story.is_none() {
            let args = serde_json::to_string_pretty(it.args).unwrap_or_default();
            put(out, format_args!("<pre class=\"args\">{}</pre>\n", Text(&args)));
        }
        if !output(it).is_empty() {
            put(out, format_args!("<pre>{}</pre>\n", Text(output(it))));
        }
        out.push_str("</details>\n");
    }
}
