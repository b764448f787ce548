//! Session export as one HTML file. All text is escaped, and no script can run in it.

use std::fmt::{self, Write as _};

use super::{
    story::{self, Call, CallContent, EndedCall, Story, StoryItem, StorySpeaker},
    time,
};
use crate::base::content::Part;

/// Pictures that browsers show and that can hold no script.
const PICTURES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

const HEAD: &str = r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="color-scheme" content="light dark">
<style>
:root { color-scheme: light dark; --ink: #1b1d21; --dim: #5c6370; --paper: #fff; --box: #f4f5f7; --line: #d8dbe0;
  --user: #e8f0fe; --bad: #b3261e; --add: #d7f5dd; --del: #fde2e0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e6ea; --dim: #9aa1ac; --paper: #16181c; --box: #1f2227;
  --line: #363b44; --user: #1c2a44; --bad: #ff8a80; --add: #143d20; --del: #4a1d1b; } }
body { margin: 0 auto; max-width: 52rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; }
h2 { font-size: .85rem; margin: 1.5rem 0 .25rem; color: var(--dim); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; color: var(--dim); font-size: .9rem; }
dd { margin: 0; overflow-wrap: anywhere; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; }
.user { background: var(--user); border-radius: .5rem; padding: .5rem .75rem; }
.note, .thought { color: var(--dim); font-size: .9rem; }
.bad { color: var(--bad); }
details { border: 1px solid var(--line); border-radius: .5rem; margin: .5rem 0; padding: .4rem .75rem; }
summary { cursor: pointer; overflow-wrap: anywhere; }
pre { background: var(--box); border-radius: .4rem; padding: .6rem; overflow: auto; max-height: 30rem;
  font: 13px/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
pre .add { background: var(--add); }
pre .del { background: var(--del); }
img { max-width: 100%; }
</style>
"#;

pub fn html(story: &Story<'_>) -> String {
    let mut out = HEAD.to_owned();
    head(story, &mut out);
    for (item, mark) in story.marked_items() {
        match item {
            StoryItem::Message { who, at_ms, parts, .. } => write_message(*who, mark, *at_ms, parts, &mut out),
            StoryItem::Call(it) => call(it, mark, &mut out),
            StoryItem::Plan(it) => {
                write_text(&mut out, format_args!("<details open><summary>Plan{mark}</summary><ul>\n"));
                for (status, text) in story::tasks(it) {
                    write_text(&mut out, format_args!("<li>{} <small>{}</small></li>\n", Text(text), Text(status)));
                }
                write_text(&mut out, format_args!("</ul></details>\n"));
            }
            StoryItem::Error(it) => {
                write_text(&mut out, format_args!("<p class=\"bad text\">{}{mark}</p>\n", Text(it)))
            }
            StoryItem::Note(it) => {
                write_text(&mut out, format_args!("<p class=\"note text\">{}{mark}</p>\n", Text(it)))
            }
        }
    }
    out.push_str("</body>\n</html>\n");
    out
}

/// Writing to a String cannot fail.
fn write_text(out: &mut String, text: fmt::Arguments<'_>) {
    _ = out.write_fmt(text);
}

fn head(story: &Story<'_>, out: &mut String) {
    let it = &story.head;
    let title = Text(it.title.unwrap_or("A session of castor"));
    write_text(out, format_args!("<title>{title}</title>\n</head>\n<body>\n<h1>{title}</h1>\n<dl>\n"));
    let (created, updated) = (time::plain(it.created_ms), time::plain(it.updated_ms));
    let parent = it.parent.map(ToString::to_string);
    let rows = [
        ("Session", it.id.to_string()),
        ("Forked from", parent.unwrap_or_default()),
        ("Folder", it.cwd.to_string()),
        ("Model", it.model.to_owned()),
        ("Time", format!("{created} to {updated}")),
        ("Tokens", format!("{} in, {} out", it.usage.input, it.usage.output)),
    ];
    for (name, value) in
        rows.iter().filter(|(name, text)| !text.is_empty() && (*name != "Tokens" || it.usage.total > 0))
    {
        write_text(out, format_args!("<dt>{name}</dt><dd>{}</dd>\n", Text(value)));
    }
    out.push_str("</dl>\n");
}

fn write_message(who: StorySpeaker, mark: &str, at_ms: u64, parts: &[Part], out: &mut String) {
    let (name, class) = if who == StorySpeaker::User { ("User", "user") } else { ("Agent", "agent") };
    write_text(out, format_args!("<h2>{name}{mark} · {}</h2>\n<div class=\"{class}\">\n", time::plain(at_ms)));
    for part in parts {
        match part {
            Part::Text { text, .. } => prose(text, out),
            Part::Thought { thought, .. } => {
                let open = "<details class=\"thought\"><summary>Thought</summary>";
                write_text(out, format_args!("{open}<div class=\"text\">{}</div></details>\n", Text(thought)));
            }
            Part::Media { mime, data, .. } => media(mime, data, out),
            Part::Reference { uri, name, text, .. } => {
                let name = name.as_deref().unwrap_or_default();
                write_text(out, format_args!("<p class=\"note\">Attached: {} {}</p>\n", Text(name), Text(uri)));
                if let Some(text) = text {
                    write_text(out, format_args!("<pre>{}</pre>\n", Text(text)));
                }
            }
        }
    }
    out.push_str("</div>\n");
}

fn media(mime: &str, data: &str, out: &mut String) {
    let is_base64 = data.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'/' | b'='));
    match PICTURES.iter().find(|it| **it == mime && is_base64) {
        Some(mime) => write_text(out, format_args!("<p><img alt=\"\" src=\"data:{mime};base64,{data}\"></p>\n")),
        None => write_text(out, format_args!("<p class=\"note\">Attached: {}</p>\n", Text(mime))),
    }
}

/// Text with its fenced blocks set apart; nothing else of Markdown is read.
fn prose(text: &str, out: &mut String) {
    let mut open: Option<&str> = None;
    let mut block = String::new();
    for line in text.split_inclusive('\n') {
        let start = line.trim_start();
        let ticks = start.get(..start.len() - start.trim_start_matches('`').len()).unwrap_or_default();
        let turns = match open {
            None => ticks.len() >= 3,
            Some(of) => ticks.len() >= of.len() && start.trim_end() == ticks,
        };
        if turns {
            block_of(open.is_some(), &block, out);
            block.clear();
            open = if open.is_none() { Some(ticks) } else { None };
        } else {
            block.push_str(line);
        }
    }
    block_of(open.is_some(), &block, out);
}

fn block_of(is_code: bool, text: &str, out: &mut String) {
    match (is_code, text.trim_matches('\n')) {
        (_, "") => (),
        (true, text) => write_text(out, format_args!("<pre>{}</pre>\n", Text(text))),
        (false, text) => write_text(out, format_args!("<div class=\"text\">{}</div>\n", Text(text))),
    }
}

fn call(it: &Call<'_>, mark: &str, out: &mut String) {
    let (end, class) = match it.end {
        EndedCall::Unknown => ("no end is known".to_owned(), "note"),
        EndedCall::Succeeded => ("done".to_owned(), "note"),
        EndedCall::Exit(code) => (format!("exit code {code}"), "bad"),
        EndedCall::Failed(_) => ("failed".to_owned(), "bad"),
    };
    let answer = it.answer.as_ref().map(|it| format!(", {}", story::answer(it))).unwrap_or_default();
    let (name, title) = (Text(it.name), Text(it.title));
    let summary =
        format_args!("<code>{name}</code> {title} <small class=\"{class}\">{end}{answer}{mark}</small>").to_string();
    write_text(out, format_args!("<details><summary>{summary}</summary>\n"));
    let args = serde_json::to_string_pretty(it.args).unwrap_or_default();
    write_text(out, format_args!("<pre>{}</pre>\n", Text(&args)));
    match &it.content {
        Some(CallContent::Diff { path, before, after }) => {
            write_text(out, format_args!("<p><code>{}</code></p>\n", Text(&path.to_string())));
            diff(&story::unified_diff(*before, after), out);
        }
        Some(CallContent::Terminal { text, exit }) => {
            write_text(out, format_args!("<pre>{}</pre>\n", Text(text)));
            if let Some(exit) = exit {
                write_text(out, format_args!("<p class=\"note\">Exit code {exit}</p>\n"));
            }
        }
        Some(CallContent::Text(text)) => write_text(out, format_args!("<pre>{}</pre>\n", Text(text))),
        None if !it.output.is_empty() => write_text(out, format_args!("<pre>{}</pre>\n", Text(&it.output))),
        None => (),
    }
    if let EndedCall::Failed(why) = it.end {
        write_text(out, format_args!("<p class=\"bad text\">{}</p>\n", Text(why)));
    }
    out.push_str("</details>\n");
}

fn diff(text: &str, out: &mut String) {
    out.push_str("<pre>");
    for line in text.lines() {
        match line.as_bytes().first() {
            Some(b'+') => write_text(out, format_args!("<span class=\"add\">{}</span>\n", Text(line))),
            Some(b'-') => write_text(out, format_args!("<span class=\"del\">{}</span>\n", Text(line))),
            _ => write_text(out, format_args!("{}\n", Text(line))),
        }
    }
    out.push_str("</pre>\n");
}

/// Text of the session: escaped for elements and for attributes in either kind of quotes.
#[derive(Clone, Copy)]
struct Text<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for it in self.0.chars() {
            match it {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                // Most controls are no characters of HTML; terminals' colours would stand there as rubbish.
                '\n' | '\t' => f.write_char(it)?,
                '\r' => (),
                it if it.is_control() => f.write_char('\u{fffd}')?,
                it => f.write_char(it)?,
            }
        }
        Ok(())
    }
}
