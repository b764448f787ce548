//! What `${x#y}`, `${x:1}`, `${x/y/z}` and `${x,,}` make of a value.

/// What in a pattern is not itself.
const SPECIAL: [char; 11] = ['$', '`', '"', '\'', '\\', '[', '?', '*', '(', '{', '~'];

/// What is left of `value` by `form`, which is all behind the variable's name; `None`: that is not found out here.
pub(super) fn cut(value: &str, form: &str) -> Option<String> {
    let plain = |it: &str| !it.contains(SPECIAL);
    match *form.as_bytes() {
        [b'#' | b'%', ..] => trimmed(value, form),
        [b'/', ..] => {
            let (all, form) = form.strip_prefix("//").map_or((false, form.get(1..)?), |it| (true, it));
            let (from, to) = form.split_once('/').unwrap_or((form, ""));
            // `&` may stand for what was found.
            if from.is_empty() || !plain(from) || !plain(to) || to.contains('&') || from.starts_with(['#', '%']) {
                return None;
            }
            Some(if all { value.replace(from, to) } else { value.replacen(from, to, 1) })
        }
        [b':', ..] => {
            let (from, count) = form.get(1..)?.split_once(':').map_or((form.get(1..)?, None), |it| (it.0, Some(it.1)));
            let from: usize = from.trim().parse().ok()?;
            let count = count.map_or(Some(usize::MAX), |it| it.trim().parse().ok())?;
            Some(value.chars().skip(from).take(count).collect())
        }
        [b',', b','] => Some(value.to_lowercase()),
        [b'^', b'^'] => Some(value.to_uppercase()),
        _ => None,
    }
}

/// Without what a pattern finds at one of its ends: a word, or `*` and a word on the way to it.
fn trimmed(value: &str, form: &str) -> Option<String> {
    let twice = ["##", "%%"].iter().find_map(|it| form.strip_prefix(it));
    let (longest, pattern) = twice.map_or((false, form.get(1..)?), |it| (true, it));
    let at_start = form.starts_with('#');
    let star = if at_start { pattern.strip_prefix('*') } else { pattern.strip_suffix('*') };
    let word = star.unwrap_or(pattern);
    if word.contains(SPECIAL) {
        return None;
    }
    let res = match (at_start, star.is_some(), longest) {
        (true, false, _) => value.strip_prefix(word),
        (false, false, _) => value.strip_suffix(word),
        (true, true, false) => value.split_once(word).map(|it| it.1),
        (true, true, true) => value.rsplit_once(word).map(|it| it.1),
        (false, true, false) => value.rsplit_once(word).map(|it| it.0),
        (false, true, true) => value.split_once(word).map(|it| it.0),
    };
    Some(res.unwrap_or(value).to_owned())
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn values_are_cut_as_bash_cuts_them() {
        let cases = [
            ("x--hard", "#x", "--hard"),
            ("x--hard", ":1", "--hard"),
            ("x--hard", ":1:4", "--ha"),
            ("a--hard", "/a/", "--hard"),
            ("aXbX", "//X/-", "a-b-"),
            ("a/b/c", "##*/", "c"),
            ("a/b/c", "#*/", "b/c"),
            ("a/b/c", "%/*", "a/b"),
            ("a/b/c", "%%/*", "a"),
            ("v1.2-x", "%-x", "v1.2"),
            ("v1.2", "#w", "v1.2"),
            ("--HARD", ",,", "--hard"),
            ("--hard", "^^", "--HARD"),
        ];
        for (value, form, want) in cases {
            assert_eq!(cut(value, form).as_deref(), Some(want), "{value} {form}");
        }
        for form in ["#?", "%[a-z]", "/a*/b", ": -2", "@Q", "^", "/$x/y", "#*\"x", "//", "/b/&"] {
            assert_eq!(cut("abc", form), None, "{form}");
        }
    }
}
