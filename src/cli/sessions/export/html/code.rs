//! Code in the HTML page: tokens as spans with classes, where castor knows the language.

use crate::cli::{
    page::escape::{Text, printable_text, put},
    render::highlight::highlight_classes,
};

/// Longer code stays without colours.
const MAX_CODE: usize = 256 << 10;

pub fn write_code(language: &str, code: &str, out: &mut String) {
    let html = colored(code, language).unwrap_or_else(|| Text(code).to_string());
    put(out, format_args!("<pre><code>{html}</code></pre>\n"));
}

fn colored(code: &str, language: &str) -> Option<String> {
    if code.len() > MAX_CODE { None } else { highlight_classes(&printable_text(code), language) }
}

/// Each line by itself: a diff sets its mark before it.
pub fn code_lines(lines: &[&str], language: &str) -> Vec<String> {
    let html = colored(&lines.join("\n"), language);
    let res: Vec<String> = html.iter().flat_map(|it| it.lines()).map(str::to_owned).collect();
    // A line end of another kind within a line, or no language.
    match res.len() == lines.len() {
        true => res,
        false => lines.iter().map(|it| Text(it).to_string()).collect(),
    }
}
