//! The mark that replaces a secret in text: `[secret from .env]`.

use crate::text::is_deceptive;

const START: &str = "[secret from ";
/// A longer name is no mark.
const MAX_NAME: usize = 300;

/// The mark for a value of that file. It can stand within a JSON string as it is.
pub fn mark(file: &str) -> String {
    let fold = |it: char| if is_deceptive(it) || "[]\"\\".contains(it) { '_' } else { it };
    format!("{START}{}]", file.chars().take(MAX_NAME / 4).map(fold).collect::<String>())
}

/// A mark in `text` that is not in `before`, too: where it was written, a value would be lost.
pub fn find_new_mark<'t>(text: &'t str, before: &str) -> Option<&'t str> {
    let marks = text.match_indices(START).filter_map(|(at, _)| {
        let rest = text.get(at..)?;
        let end = rest.find(['\n', ']']).filter(|it| *it <= START.len() + MAX_NAME)?;
        rest.get(..=end).filter(|it| it.ends_with(']'))
    });
    marks.into_iter().find(|it| !before.contains(it))
}

#[cfg(test)]
mod tests {
    use super::{find_new_mark, mark};

    #[test]
    fn marks_are_found_as_they_are_written() {
        let check =
            |text: &str, before: &str, want: Option<&str>| assert_eq!(find_new_mark(text, before), want, "{text}");
        let env = mark(".env");
        assert_eq!(env, "[secret from .env]");
        assert_eq!(mark("a]\"\\\n.env"), "[secret from a____.env]");
        check(&format!("A={env}\n"), "", Some("[secret from .env]"));
        check(&format!("A={env}\n"), "x [secret from .env] y", None);
        check(&format!("{env}{}", mark("b/.env")), &env, Some("[secret from b/.env]"));
        check("[secret from\n.env] [secret from .env\n]", "", None);
        check(&format!("[secret from {}]", "x".repeat(400)), "", None);
        let long = mark(&"ü".repeat(4_000));
        check(&long, "", Some(&long));
    }
}
