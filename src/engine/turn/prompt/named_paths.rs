//! Temporary files that a prompt names: the session sees these in the machine's folders, and no others.

use std::{collections::BTreeSet, path::Path};

use crate::record::Step;
use castor_base::{
    content::Part,
    file_uri,
    log::{Fact, Grant},
    path::AbsPath,
    sandbox::SHARED_TMP,
};

/// Of one prompt; the rest stays text.
const MAX_NAMED: usize = 20;
/// What may stand behind a path in a sentence.
const PUNCTUATION: &[char] = &['.', ',', ';', ':', '!', '?', ')', ']', '}', '>', '*', '…'];

/// What the user names may be read. Nothing becomes of a path at which nothing is.
pub(in crate::turn) fn open_named_paths(step: &mut Step<'_>, content: &[Part]) {
    for path in named_paths(content).into_iter().take(MAX_NAMED) {
        let grant = Grant::Read { folder: path.clone() };
        let is_known = step.record.roots.iter().any(|it| path.is_within(it)) || step.record.grants.contains(&grant);
        if !is_known {
            step.log(Fact::Granted { grant, lasting: false });
        }
    }
}

fn named_paths(content: &[Part]) -> BTreeSet<AbsPath> {
    let mut res = BTreeSet::new();
    for part in content {
        match part {
            Part::Text { text, .. } => text.split(['"', '\'', '`']).for_each(|it| read_text(it, &mut res)),
            Part::Reference { uri, .. } | Part::Media { uri: Some(uri), .. } => {
                res.extend(file_uri::to_path(uri).as_deref().and_then(temporary));
            }
            Part::Media { .. } | Part::Thought { .. } => (),
        }
    }
    res
}

/// A text without quotes: each of its words, and all of it, where it is one path with blanks.
fn read_text(text: &str, res: &mut BTreeSet<AbsPath>) {
    let whole = text.trim().lines().next().filter(|it| it.starts_with('/'));
    for word in text.split_whitespace().chain(whole) {
        let path = match word.strip_prefix("file://") {
            Some(_) => file_uri::to_path(word.trim_end_matches(PUNCTUATION)),
            None => path_in(word).map(Into::into),
        };
        res.extend(path.as_deref().and_then(temporary));
    }
}

/// The path in a word such as `(/tmp/x.log:12)` or `--log=/tmp/x`, without the line.
fn path_in(word: &str) -> Option<&str> {
    let begins = |at: usize| {
        !word.get(..at).is_some_and(|it| it.ends_with(|it: char| it.is_alphanumeric() || "/._-~".contains(it)))
    };
    let starts = SHARED_TMP.iter().filter_map(|it| word.find(it)).filter(|at| begins(*at));
    let path = word.get(starts.min()?..)?.trim_end_matches(PUNCTUATION);
    let without_number =
        |it: &'_ str| it.rsplit_once(':').filter(|it| it.1.parse::<u32>().is_ok()).map(|it| it.0.len());
    let end = without_number(path).unwrap_or(path.len());
    let head = path.get(..end)?;
    head.get(..without_number(head).unwrap_or(end))
}

/// Below a shared folder; a whole one is nobody's to name.
fn temporary(path: &Path) -> Option<AbsPath> {
    let path = AbsPath::new(path)?;
    SHARED_TMP.iter().any(|it| path.as_path() != Path::new(it) && path.as_path().starts_with(it)).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::named_paths;
    use castor_base::content::Part;

    #[test]
    fn paths_of_temporary_files_are_found_in_prose() {
        for (text, want) in [
            ("what does /tmp/a.log say?", "/tmp/a.log"),
            ("look at /tmp/a.log, then (/var/tmp/b/c).", "/tmp/a.log /var/tmp/b/c"),
            ("`/tmp/x y.log` and \"/tmp/z\"", "/tmp/x /tmp/x y.log /tmp/z"),
            ("error in /tmp/a.c:12:3: bad", "/tmp/a.c"),
            ("run it with --log=/tmp/x", "/tmp/x"),
            ("see @/tmp/shot.png", "/tmp/shot.png"),
            ("see file:///tmp/a%20b.", "/tmp/a b"),
            ("/tmp/a/../../etc/passwd", ""),
            ("/tmp and /tmp/ and /var/tmp", ""),
            ("./tmp/x ws/tmp/y /mytmp/z /tmpx/y", ""),
            ("~/tmp/x", ""),
        ] {
            let found: Vec<String> = named_paths(&[Part::text(text)]).iter().map(ToString::to_string).collect();
            assert_eq!(found.join(" "), want, "{text}");
        }
        let uri = |uri: &str| Part::Reference { uri: uri.to_owned(), name: None, mime: None, text: None, data: None };
        let found = named_paths(&[uri("file:///tmp/q.pdf"), uri("file:///home/u/x"), uri("https://h/tmp/x")]);
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["/tmp/q.pdf"]);
    }
}
