//! Texts that code puts together from pieces in quotes, read as one: `".e" + "nv"`, `"!r"."m x"`.

/// What joins two of them, beside nothing at all.
const SIGNS: &[char] = &['+', '.', '~'];
const QUOTES: &[char] = &['"', '\''];

/// The code without what stands between such pieces; `None`: there are none.
pub(super) fn joined(code: &str) -> Option<String> {
    let (mut res, mut rest) = (String::new(), code);
    while let Some((before, behind)) = next(rest) {
        res.push_str(before);
        rest = behind;
    }
    (rest.len() < code.len()).then_some(res + rest)
}

/// The first end of a piece at which another one begins: what is before that, and what is behind it.
fn next(code: &str) -> Option<(&str, &str)> {
    let is_text = |it: char| !it.is_whitespace() && !QUOTES.contains(&it) && !",()[]{}".contains(it);
    code.match_indices(QUOTES).find_map(|(at, quote)| {
        let (before, from) = code.split_at_checked(at)?;
        let behind = from.get(quote.len()..)?;
        let other = behind.trim_start().trim_start_matches(SIGNS).trim_start();
        let inside = other.strip_prefix(QUOTES).filter(|_| other.len() < behind.len())?;
        // An empty one ends where it begins.
        let fits = before.chars().next_back().is_some_and(is_text) && inside.starts_with(is_text);
        fits.then_some((before, inside))
    })
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn pieces_become_one_text() {
        let all = [
            (r#"open(".e"+"nv")"#, r#"open(".env")"#),
            (r#"f=".e" "nv"; g = 'a' .. "b""#, r#"f=".env"; g = 'ab""#),
            (r#"exe "!r"."m x"."y""#, r#"exe "!rm xy""#),
        ];
        for (code, want) in all {
            assert_eq!(joined(code).as_deref(), Some(want), "{code}");
        }
        for code in ["", "open('.env')", r#"f("a", "b")"#, r#"["a"]["b"]"#, r#""" "" "#, r#"x.split("+")"#] {
            assert_eq!(joined(code), None, "{code}");
        }
    }
}
