//! HTML as Markdown, from the tokens of a page, in one pass.
//!
//! No tree is built: of a page that nests a million elements one costs the square of its length, and a walk the stack.

use std::collections::BTreeMap;

use html5gum::{DefaultEmitter, HtmlString, Spanned, StartTag, Token, Tokenizer};
use reqwest::Url;

/// What is no text for people, with all that is in it.
const SKIPPED: &[&str] =
    &["script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "select", "textarea"];
/// What may be hidden with all that is in it: its end has to be said.
const CONTAINERS: &[&str] = &["div", "span", "section", "article", "aside", "nav", "ul", "ol", "table", "a", "button"];
/// What begins a paragraph, and what begins a line.
const PARAGRAPHS: &[&str] =
    &["p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "ul", "ol", "dl", "table", "figure", "hr"];
#[rustfmt::skip]
const LINES: &[&str] = &[
    "div", "section", "article", "header", "footer", "main", "aside", "nav", "form", "address", "fieldset", "figcaption",
    "dt", "dd", "summary", "details", "option", "body", "tbody", "thead", "caption", "br",
];
/// Deeper lists and quotes are not set in further.
const MAX_DEPTH: usize = 8;
/// Open elements in a line that are looked at for the start of one that ends.
const MAX_OPEN: usize = 16;

/// What a page says. `base`: where it is, for what it points at. Ends at about `max` bytes.
pub fn of_html(html: &str, base: &Url, max: usize) -> String {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut writer = Writer::new(base);
    for Ok(token) in Tokenizer::new_with_emitter(html, emitter) {
        match token {
            Token::StartTag(tag) => writer.start(&tag),
            Token::EndTag(tag) => writer.end(&String::from_utf8_lossy(&tag.name)),
            Token::String(text) => writer.text(&String::from_utf8_lossy(&text)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => (),
        }
        if writer.out.len() > max {
            break;
        }
    }
    writer.finish()
}

type Attributes = BTreeMap<HtmlString, Spanned<HtmlString, ()>>;

fn attribute(all: &Attributes, name: &str) -> Option<String> {
    all.get(name.as_bytes()).map(|it| String::from_utf8_lossy(it).into_owned())
}

/// Something in a line that has an end, and what is written there.
struct OpenMark {
    tag: String,
    /// Where its text begins.
    at: usize,
    start_len: usize,
    end: String,
}

/// A table: only one that is in no other is written as such.
#[derive(Default)]
struct Table {
    depth: usize,
    rows: usize,
    cells: usize,
}

struct Writer<'u> {
    base: &'u Url,
    out: String,
    /// Ends of lines that come before the next text.
    breaks: usize,
    /// A space comes before the next text.
    space: bool,
    /// Elements with all that is in them: the name, and how many of it are open.
    skipped: Option<(String, usize)>,
    marks: Vec<OpenMark>,
    /// Lists around: the number of the last item, if they are numbered.
    lists: Vec<Option<usize>>,
    quotes: usize,
    /// The mark of an item was written last.
    after_mark: bool,
    /// Text is written as it is.
    is_pre: bool,
    table: Table,
}

impl<'u> Writer<'u> {
    fn new(base: &'u Url) -> Self {
        Self {
            base,
            out: String::new(),
            breaks: 0,
            space: false,
            skipped: None,
            marks: Vec::new(),
            lists: Vec::new(),
            quotes: 0,
            after_mark: false,
            is_pre: false,
            table: Table::default(),
        }
    }

    fn start(&mut self, tag: &StartTag<()>) {
        let name = String::from_utf8_lossy(&tag.name);
        let name = name.as_ref();
        // Of others the sign for it says nothing.
        let is_ended = tag.self_closing && name == "svg";
        if let Some((skipped, n)) = &mut self.skipped {
            *n += usize::from(*skipped == name && !is_ended);
            return;
        }
        if SKIPPED.contains(&name) || is_hidden(name, &tag.attributes) {
            self.skipped = (!is_ended).then(|| (name.to_owned(), 1));
            return;
        }
        self.begin_block(name);
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = name.get(1..).and_then(|it| it.parse().ok()).unwrap_or(1);
                self.put(&format!("{} ", "#".repeat(level)));
            }
            "hr" => self.put("---"),
            "b" | "strong" => self.open(name, "**", "**"),
            "em" | "i" => self.open(name, "*", "*"),
            "code" | "kbd" | "samp" if !self.is_pre => self.open(name, "`", "`"),
            "a" => self.open_link(&tag.attributes),
            "img" => self.image(&tag.attributes),
            "pre" => self.open_pre(&tag.attributes),
            "blockquote" => self.quotes += 1,
            "ul" => self.lists.push(None),
            "ol" => self.lists.push(Some(0)),
            "li" => self.item(),
            "table" => self.open_table(),
            "tr" => self.row(),
            "td" | "th" => self.cell(),
            "title" => self.open(name, "Title: ", ""),
            "br" if self.is_pre => self.out.push('\n'),
            _ => (),
        }
    }

    fn end(&mut self, name: &str) {
        if let Some((skipped, n)) = &mut self.skipped {
            *n -= usize::from(*skipped == name);
            if *n == 0 {
                self.skipped = None;
            }
            return;
        }
        match name {
            "b" | "strong" | "em" | "i" | "code" | "kbd" | "samp" | "a" => self.close(name),
            "pre" if self.is_pre => {
                self.is_pre = false;
                let end = if self.out.ends_with('\n') { "```" } else { "\n```" };
                self.out.push_str(end);
            }
            "blockquote" => self.quotes = self.quotes.saturating_sub(1),
            "ul" | "ol" => _ = self.lists.pop(),
            "tr" => self.end_row(),
            "table" => {
                self.end_row();
                self.table.depth = self.table.depth.saturating_sub(1);
            }
            "title" => {
                self.close(name);
                self.break_lines(2);
            }
            _ => (),
        }
        self.begin_block(name);
    }

    /// What comes next stands in a line of its own.
    fn begin_block(&mut self, name: &str) {
        if self.is_pre {
            return;
        }
        if PARAGRAPHS.contains(&name) {
            // Lists within lists, and what is in an item, stay close.
            self.break_lines(if self.lists.is_empty() { 2 } else { 1 });
        } else if LINES.contains(&name) {
            self.break_lines(1);
        }
    }

    /// In a cell a line has no end, and the mark of an item stands before its first one.
    fn break_lines(&mut self, n: usize) {
        if self.after_mark {
            return;
        }
        match self.table.cells > 0 && self.table.depth == 1 {
            true => self.space = true,
            false => self.breaks = self.breaks.max(n),
        }
    }

    fn text(&mut self, text: &str) {
        if self.skipped.is_some() || text.is_empty() {
            return;
        }
        if self.is_pre {
            self.out.push_str(text);
            return;
        }
        self.space |= text.starts_with(char::is_whitespace);
        for word in text.split_whitespace() {
            self.put(word);
            self.space = true;
        }
        self.space = text.ends_with(char::is_whitespace);
    }

    /// Writes behind what is owed before it.
    fn put(&mut self, text: &str) {
        self.settle();
        self.out.push_str(text);
    }

    fn settle(&mut self) {
        let (breaks, space) = (std::mem::take(&mut self.breaks), std::mem::take(&mut self.space));
        self.after_mark = false;
        if self.out.is_empty() {
            self.out = self.margin();
        } else if breaks > 0 {
            let margin = self.margin();
            for _ in 1..breaks {
                self.out.push('\n');
                self.out.push_str(margin.trim_end());
            }
            self.out.push('\n');
            self.out.push_str(&margin);
        } else if space && !self.out.ends_with([' ', '\n']) {
            self.out.push(' ');
        }
    }

    /// Of quotes and lists.
    fn margin(&self) -> String {
        format!("{}{}", "> ".repeat(self.quotes.min(MAX_DEPTH)), "  ".repeat(self.lists.len().min(MAX_DEPTH)))
    }

    fn open(&mut self, tag: &str, start: &str, end: &str) {
        self.put(start);
        self.marks.push(OpenMark {
            tag: tag.to_owned(),
            at: self.out.len(),
            start_len: start.len(),
            end: end.to_owned(),
        });
    }

    /// Ends what was begun last under that name; what has no text leaves nothing.
    fn close(&mut self, tag: &str) {
        let Some(back) = self.marks.iter().rev().take(MAX_OPEN).position(|it| it.tag == tag) else { return };
        let mark = self.marks.remove(self.marks.len() - 1 - back);
        match self.out.get(mark.at..).is_some_and(|it| it.trim().is_empty()) {
            true => self.out.truncate(mark.at - mark.start_len),
            false => self.out.push_str(&mark.end),
        }
        // What begins later begins nowhere.
        while self.marks.pop_if(|it| it.at > self.out.len()).is_some() {}
    }

    /// Without one that leads nowhere else there are its words alone.
    fn open_link(&mut self, attributes: &Attributes) {
        match attribute(attributes, "href").and_then(|it| self.resolve(&it)) {
            Some(to) => self.open("a", "[", &format!("]({to})")),
            None => self.open("a", "", ""),
        }
    }

    fn resolve(&self, href: &str) -> Option<Url> {
        let href = href.trim();
        let to = self.base.join(href).ok().filter(|_| !href.starts_with('#') && !href.is_empty())?;
        matches!(to.scheme(), "http" | "https" | "mailto").then_some(to)
    }

    fn image(&mut self, attributes: &Attributes) {
        let alt = attribute(attributes, "alt").unwrap_or_default();
        let alt = alt.split_whitespace().collect::<Vec<_>>().join(" ");
        if alt.is_empty() {
            return;
        }
        match attribute(attributes, "src").and_then(|it| self.resolve(&it)) {
            Some(from) => self.put(&format!("![{alt}]({from})")),
            None => self.put(&format!("![{alt}]")),
        }
    }

    fn open_pre(&mut self, attributes: &Attributes) {
        let class = attribute(attributes, "class").unwrap_or_default();
        let language = class.split_whitespace().find_map(|it| it.strip_prefix("language-")).unwrap_or_default();
        self.put(&format!("```{language}\n"));
        self.is_pre = true;
    }

    fn item(&mut self) {
        let mark = match self.lists.last_mut() {
            Some(Some(n)) => {
                *n += 1;
                format!("{n}. ")
            }
            _ => "- ".to_owned(),
        };
        self.break_lines(1);
        // Its mark stands where its text would.
        let list = self.lists.pop();
        self.settle();
        self.lists.extend(list);
        self.out.push_str(&mark);
        self.after_mark = true;
    }

    fn open_table(&mut self) {
        self.table.depth += 1;
        // The one around was there for the layout.
        self.table.cells = 0;
        self.table.rows = 0;
    }

    fn row(&mut self) {
        self.end_row();
        self.break_lines(1);
    }

    fn cell(&mut self) {
        self.table.cells += 1;
        self.space = self.table.cells > 1;
        self.put("| ");
    }

    fn end_row(&mut self) {
        let cells = std::mem::take(&mut self.table.cells);
        if cells == 0 || self.table.depth != 1 {
            return;
        }
        self.out.push_str(" |");
        self.table.rows += 1;
        if self.table.rows == 1 {
            self.breaks = 1;
            self.put(&format!("|{}", " --- |".repeat(cells)));
        }
        self.breaks = 1;
    }

    fn finish(mut self) -> String {
        if self.is_pre {
            self.out.push_str("\n```");
        }
        self.out.trim_end().to_owned()
    }
}

/// What nobody sees gives a model no words either.
fn is_hidden(name: &str, attributes: &Attributes) -> bool {
    let style = || attribute(attributes, "style").unwrap_or_default().to_ascii_lowercase().replace(' ', "");
    let hides = |it: String| it.contains("display:none") || it.contains("visibility:hidden");
    CONTAINERS.contains(&name) && (attribute(attributes, "hidden").is_some() || hides(style()))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use reqwest::Url;

    use super::of_html;

    fn check(html: &str, want: &str) {
        let base = Url::parse("https://a.b/c/d").unwrap();
        assert_eq!(of_html(html, &base, 1 << 20), want, "{html}");
    }

    #[test]
    fn pages_become_markdown() {
        check(
            "<!doctype html><html><head><title>A &amp; B</title><style>p{}</style><script>if(a<b){}</script></head>\n\
             <body><h1>One</h1>\n<p>Some <b>bold</b>, <em>soft</em> and\n <code>a&lt;b</code>.<br>Next</p></body></html>",
            "Title: A & B\n\n# One\n\nSome **bold**, *soft* and `a<b`.\nNext",
        );
        check(
            "<p>See <a href='../x?y=1#z'>this <b>one</b></a>, <a href='#top'>top</a> <a href='javascript:x()'>js</a> \
             <a href='/e'> </a><img src=i.png alt='a  pic'><img src='data:image/png;base64,AA' alt=in><img src=x>",
            "See [this **one**](https://a.b/x?y=1#z), top js ![a pic](https://a.b/c/i.png)![in]",
        );
        check(
            "<ul><li>a<ul><li>b</li><li><p>c</p></li></ul></li><li>d</ul><ol><li>x<li>y</ol><p>z",
            "- a\n  - b\n  - c\n- d\n\n1. x\n2. y\n\nz",
        );
        check(
            "<p>a</p><pre class=language-rust><code>fn x() {\n    1 &lt; 2\n}\n</code></pre><p>b",
            "a\n\n```rust\nfn x() {\n    1 < 2\n}\n```\n\nb",
        );
        check("<blockquote><p>a</p><p>b</p></blockquote><p>c", "> a\n>\n> b\n\nc");
        check(
            "<table><thead><tr><th>A<th>B</tr></thead><tbody><tr><td><p>1</p><p>2</p></td><td>3</td></tr></table><p>x",
            "| A | B |\n| --- | --- |\n| 1 2 | 3 |\n\nx",
        );
        check("<p>a<p>b<div>c</div>d", "a\n\nb\nc\nd");
        check("plain &copy; text", "plain © text");
        check("<pre>open", "```\nopen\n```");
    }

    /// Orders to a model like to hide there.
    #[test]
    fn hidden_html_is_left_out() {
        check(
            "<p>a</p><div style='display: none'>x<div>y</div></div><span hidden>z</span><noscript>n</noscript>\
             <svg><text>s</text></svg><!-- c --><template><p>t</p></template><p>b",
            "a\n\nb",
        );
    }

    /// Any of them would cost minutes, or the process.
    #[test]
    fn hostile_pages_cost_their_length() {
        let base = Url::parse("https://a.b/").unwrap();
        let started = Instant::now();
        for piece in
            ["<div>", "<b>", "<ul><li>", "<blockquote>", "<table><tr><td>", "<a href=x>", "</b></a>", "<i></b>"]
        {
            let text = of_html(&piece.repeat(100_000), &base, 1 << 20);
            assert!(text.len() < 2 << 20, "{piece}");
        }
        assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
    }
}
