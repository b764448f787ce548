//! Answers in a Markdown export: headings below those of the document, no HTML, and closed code.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag};

/// Levels that the document itself has.
const OUTER_LEVELS: usize = 2;
/// Each pass escapes all HTML that the text has; what is escaped may show more of it.
const MAX_PASSES: usize = 8;

pub fn embed(text: &str) -> String {
    let mut text = text.trim_end().to_owned();
    for _ in 0..MAX_PASSES {
        let found = html_marks(&text);
        if found.is_empty() {
            return close_fence(shift_headings(&text));
        }
        for at in found.into_iter().rev() {
            text.insert(at, '\\');
        }
    }
    // Rather a block of code than markup.
    let fence = "`".repeat(longest_run(&text, '`').max(2) + 1);
    format!("{fence}\n{text}\n{fence}")
}

fn parse(text: &str) -> impl Iterator<Item = (Event<'_>, Range<usize>)> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    Parser::new_ext(text, options).into_offset_iter()
}

/// Where HTML begins.
fn html_marks(text: &str) -> Vec<usize> {
    let mut res = Vec::new();
    for (event, range) in parse(text) {
        if let Event::Html(_) | Event::InlineHtml(_) = event {
            let part = text.get(range.clone()).unwrap_or_default();
            res.extend(part.match_indices('<').map(|(at, _)| range.start + at));
        }
    }
    res.dedup();
    res
}

fn shift_headings(text: &str) -> String {
    let mut res = String::with_capacity(text.len());
    let mut done = 0;
    for (event, range) in parse(text) {
        let Event::Start(Tag::Heading { level, .. }) = event else { continue };
        let Some(source) = text.get(range.clone()) else { continue };
        res.push_str(text.get(done..range.start).unwrap_or_default());
        let level = (depth(level) + OUTER_LEVELS).min(6);
        let (words, rest) = heading_words(source);
        res.push_str(&format!("{} {words}{rest}", "#".repeat(level)));
        done = range.end;
    }
    res.push_str(text.get(done..).unwrap_or_default());
    res
}

/// The words of a heading of either form, and the line end behind it.
fn heading_words(source: &str) -> (String, &'static str) {
    let end = if source.ends_with('\n') { "\n" } else { "" };
    let source = source.trim_end();
    let words = match source.starts_with('#') {
        true => source.trim_start_matches('#').trim().to_owned(),
        // Underlined: all lines but the last, which within a quotation has its mark.
        false => {
            let lines: Vec<&str> = source.lines().collect();
            let words = lines.get(..lines.len().saturating_sub(1)).unwrap_or_default();
            words.iter().map(|it| it.trim_start_matches(['>', ' ', '\t']).trim_end()).collect::<Vec<_>>().join(" ")
        }
    };
    (words, end)
}

fn depth(level: HeadingLevel) -> usize {
    level as usize
}

/// What follows the text must not be code of it.
fn close_fence(mut text: String) -> String {
    let is_last = |range: &Range<usize>| range.end >= text.len();
    let mut nesting = 0_usize;
    let mut open = None;
    for (event, range) in parse(&text) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) if nesting == 0 && is_last(&range) => {
                open = text.get(range);
            }
            Event::Start(_) => nesting += 1,
            Event::End(_) => nesting = nesting.saturating_sub(1),
            _ => (),
        }
    }
    let Some(block) = open else { return text };
    let block = block.trim_start();
    let mark = block.chars().next().unwrap_or('`');
    let len = block.chars().take_while(|it| *it == mark).count();
    let last = block.lines().skip(1).last().unwrap_or_default().trim();
    if last.chars().count() >= len && last.chars().all(|it| it == mark) {
        return text;
    }
    let fence = mark.to_string().repeat(len);
    text.push('\n');
    text.push_str(&fence);
    text
}

pub fn longest_run(text: &str, mark: char) -> usize {
    text.split(|it| it != mark).map(str::len).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use pulldown_cmark::Event;

    use super::{embed, parse};

    fn check(text: &str, expected: &str) {
        assert_eq!(embed(text), expected, "{text}");
    }

    #[test]
    fn headings_stand_below_those_of_the_document() {
        check("# How\n\ntext\n\n## Why ##\nx", "### How\n\ntext\n\n#### Why ##\nx");
        check("##### Deep", "###### Deep");
        check("Two\nlines\n=====\n\nSmall\n---\nx", "### Two lines\n\n#### Small\nx");
        check("> # In a quote\n> x", "> ### In a quote\n> x");
        check("```sh\n# a comment\n```", "```sh\n# a comment\n```");
        check("#hashtag, `# no`", "#hashtag, `# no`");
    }

    #[test]
    fn code_is_closed_and_kept() {
        check("a\n```rust\nlet a = 1;", "a\n```rust\nlet a = 1;\n```");
        check("````md\n```\nx\n```\n````", "````md\n```\nx\n```\n````");
        check("````md\n```\nx\n```", "````md\n```\nx\n```\n````");
        check("~~~\nx", "~~~\nx\n~~~");
        check("```", "```\n```");
        check("- item\n  ```\n  x", "- item\n  ```\n  x");
    }

    #[test]
    fn html_is_text() {
        check("a <b>bold</b> `<i>` Vec<T>", "a \\<b>bold\\</b> `<i>` Vec\\<T>");
        check("<https://x.y>", "<https://x.y>");
        check("<!-- no\n```\n-->\nend", "\\<!-- no\n```\n-->\nend\n```");
        let evil = "<script>alert(1)</script>\"'&\n```\n</pre></div>-->]]>\n````\n<!-- x";
        for text in [evil, "<div>\n```\n<script>\n", "> <!--\n> x\n\n<?php", "<a\nhref=x>", "<![CDATA[ x", "\\<b>"] {
            let res = embed(text) + "\n\nSENTINEL";
            let is_html = |it: &Event<'_>| matches!(it, Event::Html(_) | Event::InlineHtml(_));
            assert!(!parse(&res).any(|(it, _)| is_html(&it)), "{res}");
            let last: Vec<Event<'_>> = parse(&res).map(|it| it.0).collect();
            assert!(last.iter().any(|it| *it == Event::Text("SENTINEL".into())), "{res}");
        }
    }
}
