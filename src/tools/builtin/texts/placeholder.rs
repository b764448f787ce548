//! Omission placeholders such as "rest of code ...": detects them, since writing one would delete code.

const PHRASES: &[&str] = &[
    "rest of",
    "rest of method",
    "rest of methods",
    "rest of code",
    "unchanged code",
    "unchanged method",
    "unchanged methods",
];

/// Tells whether `text` has a placeholder that `allowed`, the text it stands for, does not have.
pub fn has_placeholder(text: &str, allowed: &str) -> bool {
    text.lines().filter_map(phrase).any(|it| !allowed.lines().any(|line| phrase(line) == Some(it)))
}

/// The phrase, if the line is nothing but one with dots behind it, perhaps as a comment or in parentheses.
fn phrase(line: &str) -> Option<&'static str> {
    let line = line.trim();
    let line = line.strip_prefix("//").unwrap_or(line).trim();
    let line = line.strip_prefix('(').and_then(|it| it.strip_suffix(')')).unwrap_or(line).trim();
    let (words, rest) = line.split_once("...")?;
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    PHRASES.iter().find(|it| **it == words && rest.chars().all(|it| it == '.')).copied()
}

#[cfg(test)]
mod tests {
    use super::has_placeholder;

    #[test]
    fn finds_placeholders_only() {
        let check = |text: &str, expected: bool| assert_eq!(has_placeholder(text, ""), expected, "{text}");
        check("fn a() {}\n// rest of code ...\n", true);
        check("  (Rest of  methods ....)", true);
        check("unchanged code...", true);
        check("let s = \"rest of code ...\";", false);
        check("// the rest of code ...", false);
        check("rest of code ... follows", false);
        check("rest of code", false);
        assert!(!has_placeholder("// rest of code ...", "x\nrest of code...\n"));
    }
}
