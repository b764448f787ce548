//! The diff of an edit in the HTML page: added and removed lines, their code in colours.

use similar::{ChangeTag, TextDiff};

use super::code::code_lines;
use crate::cli::page::escape::{Text, put};

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

pub struct HtmlDiff {
    pub html: String,
    pub n_lines: usize,
    pub added: usize,
    pub removed: usize,
}

/// `language` may be a file's name.
pub fn diff(before: Option<&str>, after: &str, language: &str) -> HtmlDiff {
    let diff = TextDiff::from_lines(before.unwrap_or_default(), after);
    let mut res = HtmlDiff { html: "<pre class=\"diff\">".to_owned(), n_lines: 0, added: 0, removed: 0 };
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        put(&mut res.html, format_args!("<span class=\"hunk\">{}\n</span>", hunk.header()));
        let side = |is_of: fn(ChangeTag) -> bool| {
            let lines = hunk.iter_changes().filter(|it| is_of(it.tag()));
            lines.map(|it| it.value().trim_end_matches(['\n', '\r'])).collect::<Vec<_>>()
        };
        let mut old = code_lines(&side(|it| it == ChangeTag::Delete), language).into_iter();
        let mut new = code_lines(&side(|it| it != ChangeTag::Delete), language).into_iter();
        for change in hunk.iter_changes() {
            let (class, mark, line) = match change.tag() {
                ChangeTag::Delete => ("del", '-', old.next()),
                ChangeTag::Insert => ("add", '+', new.next()),
                ChangeTag::Equal => ("same", ' ', new.next()),
            };
            res.added += usize::from(mark == '+');
            res.removed += usize::from(mark == '-');
            res.n_lines += 1;
            let line = line.unwrap_or_default();
            // The line end stays within, for those who copy.
            put(&mut res.html, format_args!("<span class=\"{class}\">{mark}{line}\n</span>"));
        }
    }
    if res.n_lines == 0 {
        put(&mut res.html, format_args!("{}", Text("(no difference)")));
    }
    res.html.push_str("</pre>\n");
    res
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::diff;

    #[test]
    fn changed_lines_are_marked() {
        let it = diff(Some("a = 1\nb = \"<x>\"\n"), "a = 2\nb = \"<x>\"\nc = 3", "x.txt");
        assert_eq!((it.added, it.removed, it.n_lines), (2, 1, 4));
        expect![[r#"
            <pre class="diff"><span class="hunk">@@ -1,2 +1,3 @@
            </span><span class="del">-a = 1
            </span><span class="add">+a = 2
            </span><span class="same"> b = &quot;&lt;x&gt;&quot;
            </span><span class="add">+c = 3
            </span></pre>
        "#]]
        .assert_eq(&it.html);
        let code = diff(None, "fn main() {}\n", "src/main.rs").html;
        assert!(code.contains("<span class=\"add\">+<span class=\"hl-keyword\">fn</span>"), "{code}");
        assert_eq!(diff(Some("a\r\n"), "a\n", "x.rs").added, 1);
        assert_eq!(diff(Some("a"), "a", "x.rs").html, "<pre class=\"diff\">(no difference)</pre>\n");
    }
}
