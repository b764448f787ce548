//! Session export as Markdown. Each text stays inside its own block.

use std::fmt::Write as _;

use jiff::tz::TimeZone;

use super::{
    super::time,
    agent_story::{AgentStory, ExportedStory},
    answer::{embed, longest_run},
    call::{self, Call, CallContent, EndedCall},
    spending::Spending,
    story::{self, Story, StoryItem, StorySpeaker, Turn},
    title::plain_title,
};
use castor_base::{content::Part, file_uri};

/// Longest line that is repeated of a call, in characters.
const MAX_TITLE: usize = 160;

/// The document, with times of a time zone.
pub fn markdown(exported: ExportedStory<'_>, zone: &TimeZone) -> String {
    let story = exported.story;
    let mut out = String::new();
    write_head(story, zone, &mut out);
    write_changes(story, &mut out);
    let before = story.turns.first().map_or(story.items.len(), |it| it.first);
    for (at, item) in story.items.iter().enumerate().take(before) {
        write_item(exported, (at, item), &mut out);
    }
    for (nth, turn) in story.turns.iter().enumerate() {
        write_heading(nth, turn, story.mark(turn.first), zone, &mut out);
        for (at, item) in story.items_of(nth) {
            write_item(exported, (at, item), &mut out);
        }
    }
    out
}

/// Writing to a String cannot fail.
fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    _ = out.write_fmt(text);
    out.push('\n');
}

fn write_head(story: &Story<'_>, zone: &TimeZone, out: &mut String) {
    let it = &story.head;
    line(out, format_args!("# {}\n", plain(&plain_title(it.title.unwrap_or("A session of castor")))));
    line(out, format_args!("- Session: {}", span(it.id.as_str())));
    if let Some(parent) = it.parent {
        line(out, format_args!("- Forked from: {}", span(parent.as_str())));
    }
    line(out, format_args!("- Folder: {}", span(&it.cwd.to_string())));
    line(out, format_args!("- Model: {}", span(it.model)));
    let (created, updated) = (time::minute(it.created_ms, zone), time::minute(it.updated_ms, zone));
    line(out, format_args!("- Time: {created} to {updated}"));
    if it.spent != Spending::default() {
        line(out, format_args!("- Tokens: {}", it.spent.tokens_in_words()));
        line(out, format_args!("- Cost: {}", it.spent.cost_in_words().as_deref().unwrap_or("unknown")));
    }
}

fn write_changes(story: &Story<'_>, out: &mut String) {
    if story.changes.is_empty() {
        return;
    }
    line(out, format_args!("\n## Changed files\n"));
    for (path, file) in &story.changes {
        let turns = file.turns.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let path = span(&path.display().to_string());
        let lines = match (file.added, file.removed) {
            (0, 0) => String::new(),
            (added, removed) => format!("+{added} −{removed} "),
        };
        line(out, format_args!("- {path} {lines}(turn {turns})"));
    }
}

fn write_heading(nth: usize, turn: &Turn, mark: &str, zone: &TimeZone, out: &mut String) {
    let took = turn.ended_ms.map(|it| time::duration(it.saturating_sub(turn.at_ms)));
    let is_used = turn.spent != Spending::default();
    let facts = [
        Some(time::minute(turn.at_ms, zone)),
        took,
        is_used.then(|| turn.spent.tokens_in_words()),
        turn.spent.cost_in_words(),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    line(out, format_args!("\n## Turn {}{mark}\n\n*{}*", nth + 1, facts.join(" · ")));
}

fn write_item<'a>(exported: ExportedStory<'a>, (at, item): (usize, &StoryItem<'a>), out: &mut String) {
    let mark = exported.story.mark(at);
    match item {
        StoryItem::Message { who, parts, .. } => parts.iter().for_each(|it| write_part(*who, it, out)),
        StoryItem::Call(it) if it.is_plan() => (),
        StoryItem::Call(it) => write_call(exported, it, mark, out),
        StoryItem::Plan(tasks) => {
            line(out, format_args!("\n**Plan**{mark}\n"));
            for (status, text) in tasks {
                let done = if *status == "completed" { 'x' } else { ' ' };
                let note = if *status == "cancelled" { " (cancelled)" } else { "" };
                line(out, format_args!("- [{done}] {}{note}", plain(text)));
            }
        }
        StoryItem::Error(it) => {
            out.push('\n');
            quoted(&format!("**Error.**{mark} "), it, out);
        }
        StoryItem::Note(it) => line(out, format_args!("\n*{}*{mark}", plain(it))),
    }
}

fn write_part(who: StorySpeaker, part: &Part, out: &mut String) {
    match part {
        Part::Text { text, .. } if text.trim().is_empty() => return,
        _ => out.push('\n'),
    }
    match part {
        Part::Text { text, .. } if who == StorySpeaker::Agent => line(out, format_args!("{}", embed(text))),
        Part::Text { text, .. } => quoted("", text, out),
        Part::Thought { thought, .. } => quoted("*Thought:* ", thought, out),
        Part::Media { mime, data, .. } => {
            let size = data.len() / 4 * 3;
            line(out, format_args!("*Attached: {}, about {size} bytes*", span(mime)));
        }
        Part::Reference { uri, name, text, .. } => {
            let name = name.as_deref().unwrap_or_default();
            line(out, format_args!("*Attached: {} {}*", span(name), span(&file_uri::describe_uri(uri))));
            if let Some(text) = text {
                out.push('\n');
                fence("", text, out);
            }
        }
    }
}

fn write_call<'a>(exported: ExportedStory<'a>, it: &Call<'a>, mark: &str, out: &mut String) {
    let end = match it.end {
        EndedCall::Unknown => "no end is known".to_owned(),
        EndedCall::Succeeded => "done".to_owned(),
        EndedCall::Exit(code) => format!("exit code {code}"),
        EndedCall::Failed(_) => "failed".to_owned(),
    };
    let answer = it.answer.as_ref().map(|it| format!(", {}", call::answer(it))).unwrap_or_default();
    let took = it.took_ms.filter(|it| *it >= 100).map(|it| format!(", {}", time::duration(it))).unwrap_or_default();
    let title: String = it.about().chars().take(MAX_TITLE).collect();
    line(out, format_args!("\n**Tool** {}: {} *({end}{answer}{took})*{mark}\n", span(it.name), span(&title)));
    let agent = exported.agent(it);
    if let Some(agent) = &agent {
        write_agent(exported, agent, out);
    }
    // An agent's story begins with what it was asked.
    let shows_args = agent.is_none_or(|it| it.story.is_none());
    // Of a refused call the log has only words for the model.
    let shows_result = !it.is_refused() || matches!(it.content, Some(CallContent::Diffs(_)));
    match &it.content {
        _ if !shows_result => fence("json", &serde_json::to_string_pretty(it.args).unwrap_or_default(), out),
        Some(CallContent::Diffs(files)) => {
            for (path, before, after) in files {
                line(out, format_args!("{}\n", span(&path.to_string())));
                fence("diff", &story::unified_diff(*before, after), out);
            }
        }
        Some(CallContent::Terminal { text, .. }) => fence("", text, out),
        Some(CallContent::Text(text)) => write_result(it, shows_args, text, out),
        None => write_result(it, shows_args, &it.output, out),
    }
    if let EndedCall::Failed(why) = it.end
        && !it.is_refused()
        && why.trim() != it.output.trim()
    {
        out.push('\n');
        quoted("**Failed.** ", why, out);
    }
}

/// The story of a sub-agent, as a quotation within that of its call.
fn write_agent(exported: ExportedStory<'_>, it: &AgentStory<'_>, out: &mut String) {
    let mut inner = format!("**Agent** {} *({})*\n", span(it.facts.name), it.in_words().join(", "));
    if let Some(story) = &it.story {
        for (at, item) in story.items.iter().enumerate() {
            write_item(exported.inner(story), (at, item), &mut inner);
        }
    }
    if let Some(flaw) = it.flaw() {
        line(&mut inner, format_args!("\n*{flaw}*"));
    }
    for it in inner.lines() {
        line(out, format_args!("{}", format!("> {it}").trim_end()));
    }
    out.push('\n');
}

/// The arguments, and what came of them.
fn write_result(it: &Call<'_>, shows_args: bool, text: &str, out: &mut String) {
    if shows_args {
        fence("json", &serde_json::to_string_pretty(it.args).unwrap_or_default(), out);
    }
    if !text.is_empty() {
        out.push_str(if shows_args { "\n" } else { "" });
        fence("", text, out);
    }
}

/// A block that its own text cannot close: its fence is longer than any in it.
fn fence(language: &str, text: &str, out: &mut String) {
    let ticks = "`".repeat(longest_run(text, '`').max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    line(out, format_args!("{ticks}{language}\n{text}{end}{ticks}"));
}

/// Code within a line. It begins and ends with a blank where its text does so with a tick.
fn span(text: &str) -> String {
    let text: String = text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    if text.trim().is_empty() {
        return String::new();
    }
    let ticks = "`".repeat(longest_run(&text, '`') + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// A quotation ends every block that was opened in it. Its text is shown as it is.
fn quoted(lead: &str, text: &str, out: &mut String) {
    let mut lead = lead;
    for it in embed(text).lines() {
        line(out, format_args!("{}", format!("> {lead}{it}").trim_end()));
        lead = "";
    }
}

/// Words of a line, without what Markdown and HTML would read in them.
fn plain(text: &str) -> String {
    let chars: Vec<char> = text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    let is_word = |at: Option<usize>| at.and_then(|it| chars.get(it)).is_some_and(|it| it.is_alphanumeric());
    let mut res = String::new();
    for (at, it) in chars.iter().enumerate() {
        let is_mark = match it {
            '\\' | '`' | '*' | '[' | '<' | '&' | '~' => true,
            '_' => !(is_word(at.checked_sub(1)) && is_word(Some(at + 1))),
            // At the end a heading would lose it.
            '#' => at + 1 == chars.len(),
            _ => false,
        };
        if is_mark {
            res.push('\\');
        }
        res.push(*it);
    }
    res
}
