//! Output of a command as lines: the last ones while it runs, all of them after a failure.

use crate::cli::render::{
    clip::clip,
    text::{Line, Style},
    wrap::wrap,
};

/// Lines of a failed command's output.
pub const MAX_LINES: usize = 200;
const EDGE: &str = "  │ ";

/// The last lines, one row each.
pub fn last_lines(text: &str, count: usize, width: usize) -> Vec<Line> {
    let output = unfence(text);
    let from_the_end = output.trim_end().rsplit('\n').take(count).map(|it| edged(&Line::plain(overwritten(it))));
    let mut res: Vec<Line> = from_the_end.map(|it| clip(&it, width)).collect();
    res.reverse();
    if output.trim().is_empty() { Vec::new() } else { res }
}

/// All lines, up to a limit, wrapped.
pub fn whole(text: &str, width: usize, most: usize) -> Vec<Line> {
    let output = unfence(text).trim_end();
    if output.trim().is_empty() {
        return Vec::new();
    }
    let lines: Vec<&str> = output.lines().collect();
    let above = lines.len().saturating_sub(most);
    let mut res = Vec::new();
    if above > 0 {
        let lines = if above == 1 { "line" } else { "lines" };
        res.push(edged(&Line::new(&format!("… {above} {lines} above"), Style::DIM)));
    }
    for it in lines.iter().skip(above) {
        let line = Line::plain(overwritten(it));
        res.extend(wrap(&line, width.saturating_sub(EDGE.len()).max(10), "").iter().map(edged));
    }
    res
}

/// The output in a fence, without the fence and what an agent says behind it; other text as it is.
pub fn unfence(text: &str) -> &str {
    let ticks = text.len() - text.trim_start_matches('`').len();
    let (Some(fence), Some(rest)) = (text.get(..ticks.max(3)), text.get(ticks..)) else { return text };
    if ticks < 3 {
        return text;
    }
    // The opening line may name a language.
    let body = rest.split_once('\n').map_or("", |it| it.1);
    match body.rfind(&format!("\n{fence}")) {
        Some(end) => body.get(..end).unwrap_or_default(),
        None if body.starts_with(fence) => "",
        None => body,
    }
}

/// What a line shows whose program went back to its start, as progress bars do.
fn overwritten(line: &str) -> &str {
    line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default()
}

fn edged(line: &Line) -> Line {
    let mut res = Line::new(EDGE, Style::DIM);
    res.spans.extend(line.spans.iter().cloned());
    res
}

#[cfg(test)]
mod tests {
    use super::{MAX_LINES, last_lines, unfence, whole};

    #[test]
    fn fences_are_no_output() {
        for (text, output) in [
            ("```\none\ntwo\n```\nexit code 3", "one\ntwo"),
            ("````\na\n```\nb\n````", "a\n```\nb"),
            ("```\n```", ""),
            ("```sh\nstill runs", "still runs"),
            ("plain", "plain"),
            ("``", "``"),
            ("", ""),
        ] {
            assert_eq!(unfence(text), output, "{text:?}");
        }
    }

    #[test]
    fn long_output_keeps_its_end() {
        let text: String = (0..300).map(|it| format!("{it}\n")).collect();
        let lines: Vec<_> = whole(&text, 80, MAX_LINES).iter().map(|it| it.text()).collect();
        assert_eq!((lines.len(), lines[0].as_str(), lines[1].as_str()), (201, "  │ … 100 lines above", "  │ 100"));
        let lines: Vec<_> = last_lines("a\n10 %\r20 %\r\n\n", 8, 80).iter().map(|it| it.text()).collect();
        assert_eq!(lines, ["  │ a", "  │ 20 %"]);
    }
}
