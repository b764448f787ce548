//! Parser for `NAME=value` lines of `.env` files.

/// Lines `NAME=value`, with or without `export`. Quotes may span lines; `"…"` knows `\n`, `\"`, `\\`. Nothing is filled in
/// and nothing is run. Lines that are something else are skipped.
pub fn parse(text: &str) -> Vec<(String, String)> {
    parse_lines(text).into_iter().map(|(_, name, value)| (name, value)).collect()
}

/// The same, each with its line, from 1.
pub fn parse_lines(text: &str) -> Vec<(usize, String, String)> {
    let mut res = Vec::new();
    let text = text.trim_start_matches('\u{feff}');
    let mut rest = text;
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let before = text.get(..text.len() - rest.len()).unwrap_or_default();
        let number = before.matches('\n').count() + 1;
        let Some((name, value)) = line.split_once('=').and_then(|(name, value)| Some((name_of(name)?, value))) else {
            rest = after;
            continue;
        };
        let value = value.trim_start();
        let quote = value.chars().next().filter(|it| "'\"`".contains(*it));
        let from_value = rest.get(line.len() - value.len()..).unwrap_or_default();
        match quote.and_then(|quote| quoted(from_value, quote)) {
            Some((value, len)) => {
                res.push((number, name, value));
                let behind = from_value.get(len..).unwrap_or_default();
                rest = behind.split_once('\n').map_or("", |(_, after)| after);
            }
            None => {
                let bare = value.split_once(" #").map_or(value, |(value, _)| value);
                let bare = if bare.starts_with('#') { "" } else { bare.trim() };
                res.push((number, name, bare.to_owned()));
                rest = after;
            }
        }
    }
    res
}

fn name_of(text: &str) -> Option<String> {
    let text = text.trim();
    let name = text.strip_prefix("export").filter(|it| it.starts_with(char::is_whitespace)).unwrap_or(text).trim();
    let starts = name.starts_with(|it: char| it == '_' || it.is_ascii_alphabetic());
    let fits = starts && name.len() <= 100 && name.chars().all(|it| it == '_' || it.is_ascii_alphanumeric());
    fits.then(|| name.to_owned())
}

/// The text in quotes at the start, and how long it is with them; `None`: it does not end.
fn quoted(text: &str, quote: char) -> Option<(String, usize)> {
    let mut res = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, it)) = chars.next() {
        match it {
            _ if it == quote => return Some((res, at + it.len_utf8())),
            '\\' if quote == '"' => match chars.next()?.1 {
                'n' => res.push('\n'),
                'r' => res.push('\r'),
                't' => res.push('\t'),
                other @ ('"' | '\\') => res.push(other),
                other => res.extend(['\\', other]),
            },
            other => res.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{parse, parse_lines};

    fn check(text: &str, want: &[(&str, &str)]) {
        let got = parse(text);
        let got: Vec<(&str, &str)> = got.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(got, want, "{text:?}");
    }

    #[test]
    fn reads_what_people_write() {
        check("A=1\r\n# B=2\n\nexport C = x y # note\n", &[("A", "1"), ("C", "x y")]);
        check("A=\"a\\n\\\"b\\\" #c\" # d\nB='$(id) \\n'", &[("A", "a\n\"b\" #c"), ("B", "$(id) \\n")]);
        check("A='one\ntwo'\nB=$(touch x)`id`", &[("A", "one\ntwo"), ("B", "$(touch x)`id`")]);
        check("A=\"open\nB=2", &[("A", "\"open"), ("B", "2")]);
        check("A=\nB=#c\nC=a#b\nD", &[("A", ""), ("B", ""), ("C", "a#b")]);
        check("1A=x\nA B=x\nexportA=y\n=z\n\u{feff}", &[("exportA", "y")]);
        check("\u{feff}A=é", &[("A", "é")]);
        let lines: Vec<usize> = parse_lines("A=1\n\nB='x\ny'\nodd\nC=2").into_iter().map(|it| it.0).collect();
        assert_eq!(lines, [1, 3, 6]);
    }
}
