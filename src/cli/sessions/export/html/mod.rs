//! Session export as one HTML page. All text is escaped, no script but castor's own can run in it, and it needs no other
//! file. The script only searches: without it the page is complete.

mod agent;
mod call;
mod code;
mod diff;
mod plots;
mod prose;

use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::tz::TimeZone;
use sha2::{Digest, Sha256};

use self::{call::write_call, code::write_code, plots::write_plots, prose::write_prose};
use super::{
    super::time,
    agent_story::ExportedStory,
    spending::{Spending, compact},
    story::{Story, StoryItem, StorySpeaker, Turn},
    title::plain_title,
};
use crate::cli::page::{
    PLOT_STYLE,
    escape::{Text, put},
};
use castor_base::{content::Part, text};

/// Pictures that browsers show and that can hold no script.
const PICTURES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Lines of a prompt beyond which its end is folded.
const MAX_PROMPT: usize = 30;
/// Characters of a prompt in the outline, and of a thought's title.
const MAX_TITLE: usize = 120;
/// Facts that need more room.
const WIDE: [&str; 3] = ["Tokens", "Folder", "Session"];
const NO_TITLE: &str = "A session of castor";

const HEAD: &str = r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
"#;
const STYLE: &str = include_str!("page.css");
/// The one script that may run.
const SCRIPT: &str = include_str!("page.js");
/// What a person looks for: the search is shown by the script that does it.
const TOOLBAR: &str = r#"<div class="tools">
<label><input type="checkbox" id="answers-only"> Answers only</label>
<p id="search-row" hidden><label>Search <input type="search" id="search"></label> <span id="found" role="status"></span></p>
</div>
"#;

/// The page, with times of a time zone.
pub fn html(exported: ExportedStory<'_>, zone: &TimeZone) -> String {
    let story = exported.story;
    let mut out = HEAD.to_owned();
    let title = plain_title(story.head.title.unwrap_or(NO_TITLE));
    put(&mut out, format_args!("<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n", content_policy()));
    put(&mut out, format_args!("<title>{}</title>\n<style>\n{STYLE}{PLOT_STYLE}</style>\n", Text(&title)));
    out.push_str("</head>\n<body>\n");
    write_outline(story, &mut out);
    put(&mut out, format_args!("<main>\n<h1>{}</h1>\n", Text(&title)));
    write_facts(story, zone, &mut out);
    write_plots(story, zone, &mut out);
    write_changes(story, &mut out);
    out.push_str(TOOLBAR);
    let page = Page { exported, zone };
    let before = story.turns.first().map_or(story.items.len(), |it| it.first);
    for (at, item) in story.items.iter().enumerate().take(before) {
        page.write_item(at, item, &mut out);
    }
    let mut day = String::new();
    for (nth, turn) in story.turns.iter().enumerate() {
        let its_day = time::long_day(turn.at_ms, zone);
        if its_day != day {
            put(&mut out, format_args!("<p class=\"day\">{its_day}</p>\n"));
            day = its_day;
        }
        page.write_turn(nth, turn, &mut out);
    }
    put(&mut out, format_args!("</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"));
    out
}

/// Nothing from elsewhere, and no script but the one with this hash.
fn content_policy() -> String {
    let hash = BASE64_STANDARD.encode(Sha256::digest(SCRIPT));
    format!("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; img-src data:")
}

fn write_outline(story: &Story<'_>, out: &mut String) {
    let n = story.turns.len();
    put(out, format_args!("<input type=\"checkbox\" id=\"outline-toggle\">\n"));
    put(out, format_args!("<label class=\"outline-label\" for=\"outline-toggle\">☰ Turns ({n})</label>\n"));
    out.push_str("<nav aria-label=\"Turns\">\n<ol>\n");
    for (nth, turn) in story.turns.iter().enumerate() {
        let prompt = story.prompt(nth).unwrap_or_default();
        let what = text::first_line(&plain_title(text::first_line(&prompt, MAX_TITLE * 2).as_str()), MAX_TITLE);
        let what = if what.is_empty() { "(no prompt)" } else { &what };
        let (number, took) = (nth + 1, took(turn).unwrap_or_default());
        put(out, format_args!("<li><a href=\"#turn-{number}\"><span class=\"n\">{number}</span>"));
        put(
            out,
            format_args!("<span class=\"what\">{}</span><span class=\"took\">{took}</span></a></li>\n", Text(what)),
        );
    }
    out.push_str("</ol>\n</nav>\n");
}

fn took(turn: &Turn) -> Option<String> {
    turn.ended_ms.map(|it| time::duration(it.saturating_sub(turn.at_ms)))
}

fn write_facts(story: &Story<'_>, zone: &TimeZone, out: &mut String) {
    let it = &story.head;
    let worked: u64 = story.turns.iter().filter_map(|it| Some(it.ended_ms?.saturating_sub(it.at_ms))).sum();
    let is_used = it.spent != Spending::default();
    let facts = [
        ("Model", Some(it.model.to_owned())),
        ("Began", Some(time::minute(it.created_ms, zone))),
        ("Last change", Some(time::minute(it.updated_ms, zone))),
        ("Turns", Some(format!("{}, {}", story.turns.len(), time::duration(worked)))),
        ("Tokens", is_used.then(|| it.spent.tokens_in_words())),
        ("Cost", is_used.then(|| it.spent.cost_in_words().unwrap_or_else(|| "unknown".to_owned()))),
        ("Folder", Some(it.cwd.to_string())),
        ("Session", Some(it.id.to_string())),
        ("Forked from", it.parent.map(ToString::to_string)),
    ];
    out.push_str("<dl class=\"facts\">\n");
    for (name, value) in facts {
        if let Some(value) = value {
            let class = if WIDE.contains(&name) { " class=\"wide\"" } else { "" };
            put(out, format_args!("<div{class}><dt>{name}</dt><dd>{}</dd></div>\n", Text(&value)));
        }
    }
    out.push_str("</dl>\n");
}

fn write_changes(story: &Story<'_>, out: &mut String) {
    if story.changes.is_empty() {
        return;
    }
    put(
        out,
        format_args!("<section class=\"changes\">\n<h2>Changed files ({})</h2>\n<div><table>\n", story.changes.len()),
    );
    out.push_str("<tr><th>File</th><th>Added</th><th>Removed</th><th>Turns</th></tr>\n");
    for (path, file) in &story.changes {
        let links = file.turns.iter().map(|it| format!("<a href=\"#turn-{it}\">{it}</a>"));
        let links = links.collect::<Vec<_>>().join(", ");
        put(out, format_args!("<tr><td><code>{}</code></td>", Text(&path.display().to_string())));
        let (added, removed) = match (file.added, file.removed) {
            (0, 0) => (String::new(), String::new()),
            (added, removed) => (format!("+{added}"), format!("−{removed}")),
        };
        put(out, format_args!("<td class=\"count plus\">{added}</td>"));
        put(out, format_args!("<td class=\"count minus\">{removed}</td><td>{links}</td></tr>\n"));
    }
    out.push_str("</table></div>\n</section>\n");
}

struct Page<'a> {
    exported: ExportedStory<'a>,
    zone: &'a TimeZone,
}

impl<'a> Page<'a> {
    fn write_turn(&self, nth: usize, turn: &Turn, out: &mut String) {
        let number = nth + 1;
        put(
            out,
            format_args!("<section class=\"turn\" id=\"turn-{number}\">\n<h2><a href=\"#turn-{number}\">Turn {number}"),
        );
        let is_away = self.exported.story.is_rewound(turn.first);
        put(out, format_args!("{}</a>", if is_away { " (rewound)" } else { "" }));
        let spent = &turn.spent;
        let tokens = || format!("{} in, {} out", compact(spent.usage.input), compact(spent.output()));
        let facts = [
            Some(time::clock(turn.at_ms, self.zone)),
            took(turn),
            (*spent != Spending::default()).then(tokens),
            spent.cost_in_words(),
        ];
        for it in facts.into_iter().flatten() {
            put(out, format_args!("<span>{it}</span>"));
        }
        out.push_str("</h2>\n");
        for (at, item) in self.exported.story.items_of(nth) {
            self.write_item(at, item, out);
        }
        out.push_str("</section>\n");
    }

    fn write_item(&self, at: usize, item: &StoryItem<'a>, out: &mut String) {
        let is_away = self.exported.story.is_rewound(at);
        let away = if is_away { " away" } else { "" };
        match item {
            StoryItem::Message { who, parts, .. } => write_message(*who, away, parts, out),
            StoryItem::Call(it) if it.is_plan() => (),
            StoryItem::Call(it) => match self.exported.agent(it) {
                Some(agent) => self.write_agent(it, &agent, away, out),
                None => write_call(it, is_away, self.exported.story.head.cwd, out),
            },
            StoryItem::Plan(tasks) => write_plan(tasks, away, out),
            StoryItem::Error(it) => put(out, format_args!("<p class=\"bad text{away}\">{}</p>\n", Text(it))),
            StoryItem::Note(it) => put(out, format_args!("<p class=\"note text{away}\">{}</p>\n", Text(it))),
        }
    }
}

fn write_plan(tasks: &[(&str, &str)], away: &str, out: &mut String) {
    put(out, format_args!("<ul class=\"plan{away}\">\n"));
    for (status, text) in tasks {
        let (mark, class) = match *status {
            "completed" => ("☑", "completed"),
            "in_progress" => ("▣", "current"),
            "cancelled" => ("☒", "cancelled"),
            _ => ("☐", "pending"),
        };
        put(out, format_args!("<li class=\"{class}\">{mark} {}</li>\n", Text(text)));
    }
    out.push_str("</ul>\n");
}

fn write_message(who: StorySpeaker, away: &str, parts: &[Part], out: &mut String) {
    let class = if who == StorySpeaker::User { "user" } else { "agent" };
    // Thoughts stand beside what was said.
    for part in parts {
        if let Part::Thought { thought, .. } = part {
            write_thought(thought, away, out);
        }
    }
    let is_said =
        |it: &Part| !matches!(it, Part::Thought { .. }) && !it.as_text().is_some_and(|it| it.trim().is_empty());
    if !parts.iter().any(is_said) {
        return;
    }
    put(out, format_args!("<div class=\"{class}{away}\">\n"));
    for part in parts.iter().filter(|it| is_said(it)) {
        match part {
            Part::Text { text, .. } if who == StorySpeaker::User => write_typed(text, out),
            Part::Text { text, .. } => write_prose(text, out),
            Part::Thought { .. } => (),
            Part::Media { mime, data, .. } => write_media(mime, data, out),
            Part::Reference { uri, name, text, .. } => {
                let name = name.as_deref().unwrap_or(uri);
                put(out, format_args!("<details><summary>Attached: {}</summary>", Text(name)));
                put(out, format_args!("<p class=\"note\">{}</p>", Text(uri)));
                write_code(name.rsplit('.').next().unwrap_or_default(), text.as_deref().unwrap_or_default(), out);
                out.push_str("</details>\n");
            }
        }
    }
    out.push_str("</div>\n");
}

fn write_thought(thought: &str, away: &str, out: &mut String) {
    let title = text::first_line(&plain_title(&text::first_line(thought, MAX_TITLE * 2)), MAX_TITLE);
    put(out, format_args!("<details class=\"thought{away}\"><summary>Thought: {}</summary>\n<div>", Text(&title)));
    write_prose(thought, out);
    out.push_str("</div></details>\n");
}

/// What the user typed, as it is: it need be no Markdown. The end of a long one is folded.
fn write_typed(typed: &str, out: &mut String) {
    let typed = typed.trim_matches('\n');
    let n_lines = typed.lines().count();
    let cut = match n_lines > MAX_PROMPT {
        true => typed.match_indices('\n').nth(MAX_PROMPT / 2).map_or(typed.len(), |it| it.0 + 1),
        false => typed.len(),
    };
    let (shown, folded) = typed.split_at(cut);
    put(out, format_args!("<p class=\"text\">{}</p>\n", Text(shown.trim_end())));
    if !folded.is_empty() {
        put(out, format_args!("<details><summary>{} more lines</summary>", folded.lines().count()));
        put(out, format_args!("<p class=\"text\">{}</p></details>\n", Text(folded)));
    }
}

fn write_media(mime: &str, data: &str, out: &mut String) {
    let is_base64 = data.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'/' | b'='));
    match PICTURES.iter().find(|it| **it == mime && is_base64) {
        Some(mime) => put(out, format_args!("<p><img alt=\"\" src=\"data:{mime};base64,{data}\"></p>\n")),
        None => put(out, format_args!("<p class=\"note\">Attached: {}</p>\n", Text(mime))),
    }
}
