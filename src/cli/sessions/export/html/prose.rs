//! Markdown of a session as HTML: markup of the text stays text, links go to the web or to mail only, pictures are links.

use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd, html};

use super::code::write_code;
use crate::cli::page::escape::{Text, printable_text};

/// Schemes that a link may have.
const SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];

pub fn write_prose(text: &str, out: &mut String) {
    let text = printable_text(text);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut filter = SafeEvents::default();
    for event in Parser::new_ext(&text, options) {
        filter.push(event);
    }
    html::push_html(out, filter.events.into_iter());
}

/// Events of Markdown that cannot do harm in a page.
#[derive(Default)]
struct SafeEvents<'a> {
    events: Vec<Event<'a>>,
    /// The block of code that is read: its language and its text.
    code: Option<(String, String)>,
    /// Of each open link or picture whether it is a link in the page.
    links: Vec<bool>,
}

impl<'a> SafeEvents<'a> {
    fn push(&mut self, event: Event<'a>) {
        if let Some((language, mut code)) = self.code.take() {
            match event {
                Event::End(TagEnd::CodeBlock) => {
                    let mut block = String::new();
                    write_code(&language, &code, &mut block);
                    self.events.push(Event::Html(block.into()));
                    return;
                }
                Event::Text(it) => code.push_str(&it),
                _ => (),
            }
            self.code = Some((language, code));
            return;
        }
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            // The text's own markup.
            Event::Html(it) | Event::InlineHtml(it) => self.events.push(Event::Text(it)),
            it => self.events.push(it),
        }
    }

    fn start(&mut self, tag: Tag<'a>) {
        match tag {
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    CodeBlockKind::Fenced(it) => it.split([' ', ',', '{']).next().unwrap_or_default().to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::HtmlBlock => self.events.push(Event::Start(Tag::Paragraph)),
            Tag::Heading { level, .. } => {
                let level = below(level);
                self.events.push(Event::Start(Tag::Heading {
                    level,
                    id: None,
                    classes: Vec::new(),
                    attrs: Vec::new(),
                }));
            }
            Tag::Link { link_type, dest_url, .. } | Tag::Image { link_type, dest_url, .. } => {
                self.open_link(link_type, &dest_url);
            }
            Tag::Table(_) => {
                self.push_markup("<div class=\"table\">");
                self.events.push(Event::Start(tag));
            }
            it => self.events.push(Event::Start(it)),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::HtmlBlock => self.events.push(Event::End(TagEnd::Paragraph)),
            TagEnd::Heading(level) => self.events.push(Event::End(TagEnd::Heading(below(level)))),
            TagEnd::Link | TagEnd::Image => {
                if self.links.pop() == Some(true) {
                    self.push_markup("</a>");
                }
            }
            TagEnd::Table => {
                self.events.push(Event::End(tag));
                self.push_markup("</div>");
            }
            it => self.events.push(Event::End(it)),
        }
    }

    fn open_link(&mut self, kind: LinkType, address: &str) {
        let address = if kind == LinkType::Email { format!("mailto:{address}") } else { address.to_owned() };
        let start = address.get(..8).unwrap_or(&address).to_ascii_lowercase();
        // A picture in a link, or a link in a picture's words: one link is enough.
        let is_safe = SCHEMES.iter().any(|it| start.starts_with(it)) && !self.links.contains(&true);
        if is_safe {
            let tag = format!("<a href=\"{}\" rel=\"noopener noreferrer\">", Text(&address));
            self.events.push(Event::InlineHtml(tag.into()));
        }
        self.links.push(is_safe);
    }

    fn push_markup(&mut self, markup: &'static str) {
        self.events.push(Event::InlineHtml(CowStr::Borrowed(markup)));
    }
}

/// The title and the turns have the first two levels of headings.
fn below(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::write_prose;

    fn html(text: &str) -> String {
        let mut out = String::new();
        write_prose(text, &mut out);
        out
    }

    #[test]
    fn markdown_becomes_html() {
        let text = "# How it *works*\n\n- [x] done\n- `code`\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```text\na < b\n```\nsee <https://x.y> or [it](http://a/b?c=1&d=2)";
        expect![[r#"
            <h3>How it <em>works</em></h3>
            <ul>
            <li><input disabled="" type="checkbox" checked=""/>
            done</li>
            <li><code>code</code></li>
            </ul>
            <div class="table"><table><thead><tr><th>a</th><th style="text-align: right">b</th></tr></thead><tbody>
            <tr><td>1</td><td style="text-align: right">2</td></tr>
            </tbody></table>
            </div><pre><code>a &lt; b
            </code></pre>
            <p>see <a href="https://x.y" rel="noopener noreferrer">https://x.y</a> or <a href="http://a/b?c=1&amp;d=2" rel="noopener noreferrer">it</a></p>
        "#]]
        .assert_eq(&html(text));
    }

    #[test]
    fn nothing_of_the_text_becomes_markup() {
        let text = "<img src=x onerror=alert(1)>\n\na <b onclick=x>b</b>\n\n[j](javascript:alert(1)) [d](data:text/html,x) \
            [v](VBScript:x) ![p](https://track/me.png) ![q](file:///etc/passwd) [h](HTTPS://ok) [r](/w/a.rs)\n\n\
            [\"](<http://a\" onclick=\"x>)\n\n```\"><script>\n</pre><script>\n```\n\u{1b}[31m";
        let page = html(text);
        for word in [
            "<img",
            "<b",
            "<script",
            "javascript:",
            "data:text",
            "VBScript",
            "file:",
            "href=\"/w",
            "\" onclick",
            "\u{1b}",
        ] {
            assert!(!page.contains(word), "{word}: {page}");
        }
        assert!(page.contains("href=\"https://track/me.png\"") && page.contains("href=\"HTTPS://ok\""), "{page}");
        assert_eq!(page.matches("<a ").count(), page.matches("</a>").count(), "{page}");
    }
}
