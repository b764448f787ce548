//! The pages for users: sentences, words, sizes, beginnings, links and anchors.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    ops::Range,
};

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use regex::Regex;

use super::root;

const MAX_WORDS: usize = 25;
const MAX_LINES: usize = 119;
/// The README has one screen.
const MAX_README_LINES: usize = 60;
/// An example stands within the first screen.
const FIRST_SCREEN: usize = 30;
/// How the pages begin that `cargo xtask docs` writes.
const WRITTEN: &str = "<!-- `cargo xtask docs`";
/// Pages for castor's developers: only their links are checked.
const DEVELOPERS: &[&str] = &[
    "CONTRIBUTING.md",
    "docs/architecture.md",
    "docs/explanation/contract.md",
    "schema/README.md",
    "src/README.md",
    "src/hands/process/sandbox/README.md",
    "tests/README.md",
];
/// Habits of a translation: what not to say, and what to say.
const HABITS: &[(&str, &str)] = &[
    (r"(?i)\b(a|each|every|the|no) (yes|no)\b[ ,.;:)]", "say approval, permission, denial"),
    (r"(?i)\bfor ever\b", "say permanently"),
    (r"(?i)\b(goes|go|went|going) on\b", "say continue, resume, happen"),
    (r"(?i)\b(takes|take|took|taking) over\b", "say fall back, replace"),
    (r"(?i)\b(gives|give|gave) way\b", "say be removed, be replaced"),
    (r"(?i)\b(stands|stand|stood) in\b", "say be in, replace"),
    (r"(?i)\bon offer\b", "say available"),
    (r"(?i)\b(is|are|be|was) (told|held|said)\b", "say who does it: castor reports, keeps, says"),
    (r"(?i)\basked about\b", "say castor asks"),
    (r"(?i)\b(so|nor) (is|are|do|does)\b", "say it as a sentence of its own"),
    (r"(?i)\b(of|by|for|to|with|only) who\b", "name the actor"),
    (r"(?i)\bnobody (can|could|is|was)\b", "say without a terminal, or name the actor"),
    (r"(?i)\bspares?\b", "say skips"),
];
/// Words with which a sentence begins only when it asks.
const QUESTION_WORDS: &[&str] = &["Who ", "What ", "Whose ", "Whom "];

struct Page {
    name: String,
    text: String,
}

/// A paragraph or an item of a list.
struct Prose {
    line: usize,
    text: String,
}

#[test]
fn pages_are_easy_to_read() {
    let report: String = pages().iter().map(faults).collect();
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn links_and_anchors_lead_somewhere() {
    let mut report = String::new();
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let developers = DEVELOPERS.iter().map(|it| page(it));
    let pages: Vec<Page> = pages().into_iter().chain(developers).collect();
    for page in &pages {
        all.insert(page.name.clone(), anchors(&page.text));
    }
    for page in &pages {
        for link in links(&page.text) {
            if let Some(fault) = broken(&page.name, &link, &all) {
                let _ = writeln!(report, "{}: {link}: {fault}", page.name);
            }
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn each_page_is_in_the_list_of_pages() {
    let start = page("docs/README.md");
    let linked: BTreeSet<String> =
        links(&start.text).iter().filter_map(|it| target(&start.name, it)).map(|(file, _)| file).collect();
    let pages = pages().into_iter().map(|it| it.name);
    let left_out: Vec<String> =
        pages.filter(|it| it.starts_with("docs/") && *it != start.name && !linked.contains(it)).collect();
    assert!(left_out.is_empty(), "docs/README.md has no link to {left_out:?}");
}

#[test]
fn a_bad_page_is_found() {
    let long = "word ".repeat(MAX_WORDS + 1);
    let text = format!("# T\n\nOne. Two.\n\n- {long}end. Who reads is told.\n\n`what. is` here? {long}in `code a b`\n");
    let found = faults(&Page { name: "docs/x.md".to_owned(), text });
    for fault in ["one sentence", "27 words", "28 words", "is told", "`Who `", "no example"] {
        assert!(found.contains(fault), "{fault} is not in\n{found}");
    }
    let plain = "# T\n\nThis page is fine, e.g. short.\n\n```sh\ntrue\n```\n\nWho asks? What is it?\n";
    assert_eq!(faults(&Page { name: "docs/x.md".to_owned(), text: plain.to_owned() }), "");
    let anchors = anchors("# A `b` c!\n\n## A b c\n\n<a id=\"d\"></a>\n");
    assert_eq!(anchors.into_iter().collect::<Vec<_>>(), ["a-b-c", "a-b-c-1", "d"]);
}

/// README and everything below `docs` and `editors`, but what is for developers.
fn pages() -> Vec<Page> {
    let (mut open, mut names) = (vec!["docs".to_owned(), "editors".to_owned()], vec!["README.md".to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
            match entry.path().is_dir() {
                // What npm puts there is not ours.
                true if name.ends_with("/node_modules") => (),
                true => open.push(name),
                false => names.push(name),
            }
        }
    }
    names.retain(|it| it.ends_with(".md") && !DEVELOPERS.contains(&it.as_str()));
    names.sort();
    names.iter().map(|it| page(it)).collect()
}

fn page(name: &str) -> Page {
    let text = fs::read_to_string(root().join(name)).unwrap_or_else(|it| panic!("{name}: {it}"));
    Page { name: name.to_owned(), text }
}

fn events(text: &str) -> impl Iterator<Item = (Event<'_>, Range<usize>)> {
    Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter()
}

/// What is wrong with a page, a line each.
fn faults(page: &Page) -> String {
    let mut res = String::new();
    let mut add = |line: usize, what: String| {
        let _ = writeln!(res, "{}:{line}: {what}", page.name);
    };
    let n_lines = page.text.lines().count();
    let most = if page.name == "README.md" { MAX_README_LINES } else { MAX_LINES };
    let is_written = page.text.starts_with(WRITTEN);
    if n_lines > most && !is_written {
        add(n_lines, format!("{n_lines} lines, at most {most}"));
    }
    let prose = prose(&page.text);
    let n_first = prose.first().map_or(0, |it| sentences(&it.text).len());
    if n_first != 1 && !is_written {
        add(1, format!("a page begins with one sentence of its purpose; this has {n_first}"));
    }
    if !page.text.lines().take(FIRST_SCREEN).any(|it| it.starts_with("```") || it.starts_with('|')) {
        add(FIRST_SCREEN, "no example and no table on the first screen".to_owned());
    }
    let habits: Vec<(Regex, &str)> = HABITS.iter().map(|it| (Regex::new(it.0).unwrap(), it.1)).collect();
    let has_habit =
        |text: &str| habits.iter().find_map(|(habit, instead)| Some((habit.find(text)?.as_str().to_owned(), instead)));
    // Their tables are the texts of `--help`.
    for (at, line) in page.text.lines().enumerate().filter(|_| is_written) {
        if let Some((it, instead)) = has_habit(line) {
            add(at + 1, format!("`{it}`: {instead}"));
        }
    }
    for Prose { line, text } in &prose {
        for sentence in sentences(text) {
            let n_words = sentence.split_whitespace().filter(|it| it.contains(char::is_alphanumeric)).count();
            if n_words > MAX_WORDS {
                add(*line, format!("{n_words} words: {sentence}"));
            }
            let asks = sentence.trim_end_matches(['*', ')', '"']).ends_with('?');
            if let Some(it) = QUESTION_WORDS.iter().find(|it| sentence.starts_with(**it) && !asks) {
                add(*line, format!("`{it}` as a noun: {sentence}"));
            }
        }
        if let Some((it, instead)) = has_habit(text) {
            add(*line, format!("`{it}`: {instead}"));
        }
    }
    res
}

/// Paragraphs and items, without code blocks, tables and headings. Code in a sentence is one word.
fn prose(text: &str) -> Vec<Prose> {
    let (mut res, mut skipped, mut now) = (Vec::new(), 0_usize, Prose { line: 0, text: String::new() });
    for (event, range) in events(text) {
        let is_skipped = |it: &TagEnd| matches!(it, TagEnd::CodeBlock | TagEnd::Table | TagEnd::Heading(_));
        let is_inline = |it: &TagEnd| matches!(it, TagEnd::Link | TagEnd::Emphasis | TagEnd::Strong | TagEnd::Image);
        let flush = |now: &mut Prose, res: &mut Vec<Prose>| {
            let text = std::mem::take(&mut now.text);
            if !text.trim().is_empty() {
                res.push(Prose { line: now.line, text });
            }
        };
        match event {
            Event::Start(tag) if is_skipped(&tag.to_end()) => {
                flush(&mut now, &mut res);
                skipped += 1;
            }
            Event::End(tag) if is_skipped(&tag) => skipped -= 1,
            Event::Start(tag) if is_inline(&tag.to_end()) => (),
            Event::End(tag) if is_inline(&tag) => (),
            Event::Start(_) | Event::End(_) => flush(&mut now, &mut res),
            _ if skipped > 0 => (),
            Event::Text(it) => push(&mut now, text, &range, &it),
            Event::Code(it) => {
                let word: String = it.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
                push(&mut now, text, &range, if word.contains(char::is_alphanumeric) { &word } else { "code" });
            }
            Event::SoftBreak | Event::HardBreak => now.text.push(' '),
            _ => (),
        }
    }
    res
}

fn push(now: &mut Prose, text: &str, range: &Range<usize>, words: &str) {
    if now.text.is_empty() {
        now.line = text[..range.start].matches('\n').count() + 1;
    }
    now.text += words;
}

/// A sentence ends with a mark behind a word that is no abbreviation.
fn sentences(text: &str) -> Vec<String> {
    let (mut res, mut now) = (Vec::new(), Vec::new());
    for word in text.split_whitespace() {
        now.push(word);
        let bare = word.trim_end_matches(['"', ')', '*', '”', '\'']);
        let is_short = ["e.g.", "i.e.", "etc.", "vs."].iter().any(|it| bare.trim_start_matches('(') == *it);
        if bare.ends_with(['.', '!', '?']) && !is_short {
            res.push(now.join(" "));
            now.clear();
        }
    }
    if !now.is_empty() {
        res.push(now.join(" "));
    }
    res
}

fn links(text: &str) -> Vec<String> {
    let link = |(event, _): (Event, Range<usize>)| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(CowStr::into_string(dest_url)),
        _ => None,
    };
    events(text).filter_map(link).collect()
}

/// As GitHub makes them of headings; and the ids that a page gives.
fn anchors(text: &str) -> BTreeSet<String> {
    let (mut res, mut heading): (BTreeSet<String>, Option<String>) = Default::default();
    for (event, _) in events(text) {
        match (event, &mut heading) {
            (Event::Start(Tag::Heading { .. }), _) => heading = Some(String::new()),
            (Event::Text(it) | Event::Code(it), Some(heading)) => *heading += &it,
            (Event::End(TagEnd::Heading(HeadingLevel::H1 | _)), _) => {
                let slug = slug(&heading.take().unwrap_or_default());
                let again = (1..).map(|n| format!("{slug}-{n}")).find(|it| !res.contains(it));
                res.insert(if res.contains(&slug) { again.unwrap() } else { slug });
            }
            (Event::Html(it) | Event::InlineHtml(it), _) => {
                let ids = it.split("id=\"").skip(1).filter_map(|it| it.split('"').next());
                res.extend(ids.map(str::to_owned));
            }
            _ => (),
        }
    }
    res
}

fn slug(heading: &str) -> String {
    let kept = heading.to_lowercase().chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c)).collect::<String>();
    kept.trim().replace(' ', "-")
}

/// The file and the anchor that a link names, from the repository's root; nothing of addresses.
fn target(page: &str, link: &str) -> Option<(String, String)> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let mut path: Vec<&str> = page.split('/').collect();
    if !file.is_empty() {
        path.pop();
        for part in file.split('/') {
            match part {
                "." | "" => (),
                ".." => _ = path.pop(),
                it => path.push(it),
            }
        }
    }
    Some((path.join("/"), anchor.to_owned()))
}

fn broken(page: &str, link: &str, all: &BTreeMap<String, BTreeSet<String>>) -> Option<&'static str> {
    let (file, anchor) = target(page, link)?;
    if !root().join(&file).exists() {
        return Some("there is no such file");
    }
    let is_there = anchor.is_empty() || all.get(&file).is_none_or(|it| it.contains(&anchor));
    (!is_there).then_some("there is no such heading")
}
