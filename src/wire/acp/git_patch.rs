//! The change of a text file as Git writes it.

use similar::TextDiff;

/// Longest patch, in bytes.
const MAX_PATCH: usize = 1 << 20;
/// A NUL among so many first characters: the file is no text.
const LOOKED_AT: usize = 8_000;
const CONTEXT: usize = 3;

/// `before` and `after`: `None` before a file is there. `None`: it is no text, too large, or has no line that changed.
pub(super) fn git_patch((old, new): (&str, &str), before: Option<&str>, after: &str) -> Option<String> {
    let is_binary = |it: &str| it.chars().take(LOOKED_AT).any(|it| it == '\0');
    if is_binary(after) || before.is_some_and(is_binary) {
        return None;
    }
    let diff = TextDiff::from_lines(before.unwrap_or_default(), after);
    let hunks = diff.unified_diff().context_radius(CONTEXT).to_string();
    let (old, new) = (quoted_path(old), quoted_path(new));
    let (mode, from) = match before {
        Some(_) => ("", tabbed(&old)),
        None => ("new file mode 100644\n", "/dev/null".to_owned()),
    };
    let text = format!("diff --git {old} {new}\n{mode}--- {from}\n+++ {}\n{hunks}", tabbed(&new));
    (!hunks.is_empty() && text.len() <= MAX_PATCH).then_some(text)
}

/// As Git quotes it.
fn quoted_path(path: &str) -> String {
    if !path.contains(|it: char| it == '"' || it.is_control()) {
        return path.to_owned();
    }
    let mut res = String::from("\"");
    for it in path.chars() {
        match it {
            '"' => res.push_str("\\\""),
            '\n' => res.push_str("\\n"),
            '\t' => res.push_str("\\t"),
            it if it.is_control() => res.push_str(&format!("\\{:03o}", it as u32)),
            it => res.push(it),
        }
    }
    res + "\""
}

/// So that a reader sees where a path with spaces ends.
fn tabbed(path: &str) -> String {
    if path.contains(' ') && !path.starts_with('"') { format!("{path}\t") } else { path.to_owned() }
}
