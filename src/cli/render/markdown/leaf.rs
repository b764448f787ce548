//! One finished block of Markdown as styled lines: pulldown-cmark reads its headings, emphasis, links, images and cells.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::table::Table;
use crate::cli::render::{
    text::{Color, Line, Span, Style},
    wrap::wrap,
};

const MAX_ADDRESS: usize = 2_000;
const CODE_INDENT: &str = "  ";

#[derive(Debug, Default)]
pub struct LeafView {
    pub lines: Vec<Line>,
    pub is_heading: bool,
}

/// `text` is a paragraph, heading, table, rule, block of HTML or of indented code, or several without a line between.
pub fn render(text: &str, width: usize) -> LeafView {
    let mut renderer = Renderer { width, ..Renderer::default() };
    for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        renderer.add(event);
    }
    renderer.end_lines();
    renderer.view
}

/// The first two lines, if they are the head of a table.
pub fn table_head(text: &str) -> Option<String> {
    let mut lines = text.splitn(3, '\n');
    let (head, delimiters) = (lines.next()?, lines.next()?);
    let is_table = head.contains('|') && delimiters.contains('-') && delimiters.chars().all(|it| "|-: ".contains(it));
    is_table.then(|| format!("{head}\n{delimiters}"))
}

#[derive(Default)]
struct Renderer {
    width: usize,
    view: LeafView,
    /// Lines of the block up to now, before they are wrapped.
    lines: Vec<Line>,
    current: Line,
    /// Styles around the text, the last one the innermost.
    styles: Vec<Style>,
    /// Address of the link around the text, and where its text begins.
    link: Option<(String, String)>,
    table: Option<Table>,
    /// Line ends in the text are kept, and lines are indented by this.
    verbatim: Option<&'static str>,
}

impl Renderer {
    fn add(&mut self, event: Event) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(it) | Event::Html(it) | Event::FootnoteReference(it) if self.verbatim.is_some() => {
                self.add_verbatim(&it);
            }
            Event::Text(it) | Event::Html(it) => self.push(&it, self.style()),
            Event::Code(it) | Event::InlineMath(it) | Event::DisplayMath(it) => {
                self.push(&it, Style { color: Color::Cyan, ..self.style() });
            }
            Event::InlineHtml(it) if matches!(it.as_ref(), "<br>" | "<br/>" | "<br />") => self.break_line(),
            Event::InlineHtml(it) => self.push(&it, self.style()),
            Event::SoftBreak => self.push(" ", self.style()),
            Event::HardBreak => self.break_line(),
            Event::Rule => {
                self.end_lines();
                self.view.lines.push(Line::new(&"─".repeat(self.width), Style::DIM));
            }
            Event::FootnoteReference(it) => self.push(&format!("[^{it}]"), self.style()),
            Event::TaskListMarker(is_done) => self.push(if is_done { "[x] " } else { "[ ] " }, Style::PLAIN),
        }
    }

    fn start(&mut self, tag: Tag) {
        let style = self.style();
        match tag {
            Tag::Heading { level, .. } => {
                self.view.is_heading = true;
                self.styles.push(Style { bold: true, underline: level == HeadingLevel::H1, ..style });
            }
            Tag::Emphasis => self.styles.push(Style { italic: true, ..style }),
            Tag::Strong => self.styles.push(Style { bold: true, ..style }),
            Tag::Strikethrough => self.styles.push(Style { strike: true, ..style }),
            Tag::Link { dest_url, .. } => {
                self.styles.push(Style { underline: style.underline || is_safe(&dest_url), ..style });
                self.link = Some((dest_url.into_string(), String::new()));
            }
            Tag::Image { .. } => self.push("[image: ", style),
            Tag::CodeBlock(CodeBlockKind::Indented | CodeBlockKind::Fenced(_)) => self.verbatim = Some(CODE_INDENT),
            Tag::HtmlBlock => self.verbatim = Some(""),
            Tag::Table(alignments) => self.table = Some(Table::new(alignments)),
            Tag::TableRow | Tag::TableHead => {
                if let Some(table) = &mut self.table {
                    table.start_row();
                }
            }
            _ => (),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.styles.pop()),
            TagEnd::Link => self.end_link(),
            TagEnd::Image => self.push("]", self.style()),
            TagEnd::TableCell => {
                self.break_line();
                let cell = std::mem::take(&mut self.lines);
                if let Some(table) = &mut self.table {
                    table.add_cell(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.view.lines.extend(table.render(self.width));
                }
            }
            TagEnd::Heading(_) => {
                self.end_lines();
                self.styles.clear();
            }
            TagEnd::Paragraph | TagEnd::CodeBlock | TagEnd::HtmlBlock | TagEnd::Item => {
                self.end_lines();
                self.verbatim = None;
            }
            _ => (),
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn push(&mut self, text: &str, style: Style) {
        let mut span = Span::new(text, style);
        if let Some((address, shown)) = &mut self.link {
            shown.push_str(text);
            if is_safe(address) {
                span = span.with_link(address);
            }
        }
        self.current.append(span.text(), &span);
    }

    /// The address stands behind a text that pretends to be another one.
    fn end_link(&mut self) {
        self.styles.pop();
        let Some((address, shown)) = self.link.take() else { return };
        let is_other = shown.trim() != address && shown.trim_start().starts_with("http");
        if is_other {
            self.push(&format!(" ({address})"), self.style());
        }
    }

    fn add_verbatim(&mut self, text: &str) {
        for part in text.split_inclusive('\n') {
            if self.current.spans.is_empty() {
                self.current.push(self.verbatim.unwrap_or_default(), Style::PLAIN);
            }
            self.current.push(part.trim_end_matches(['\n', '\r']), self.style());
            if part.ends_with('\n') {
                self.break_line();
            }
        }
    }

    fn break_line(&mut self) {
        self.lines.push(std::mem::take(&mut self.current));
    }

    fn end_lines(&mut self) {
        if !self.current.spans.is_empty() {
            self.break_line();
        }
        for line in std::mem::take(&mut self.lines) {
            self.view.lines.extend(wrap(&line, self.width, self.verbatim.unwrap_or_default()));
        }
    }
}

/// Only what a browser or a mail program opens; what a terminal can carry.
fn is_safe(address: &str) -> bool {
    let is_known = ["http://", "https://", "mailto:"].iter().any(|it| address.starts_with(it));
    is_known && address.len() <= MAX_ADDRESS && address.bytes().all(|it| it.is_ascii_graphic())
}
