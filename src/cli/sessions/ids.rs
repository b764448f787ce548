//! Short ids of sessions: the end of an id, as long as it takes to be unique. All ids of a day begin with the same
//! characters, so that their beginnings say little.

use super::export::plain_title;
use crate::cli::terminal_text::clean_line;
use castor_base::ids::MIN_NAMED;

/// Sessions that an ambiguous id lists.
const MAX_CANDIDATES: usize = 10;
const MAX_TITLE: usize = 60;

/// All ids, to find the shortest end that names one of them alone.
pub struct ShortIds {
    /// Sorted.
    ids: Vec<String>,
    /// The ids from their end to their beginning, sorted.
    reversed: Vec<String>,
}

impl ShortIds {
    pub fn new<'a>(ids: impl IntoIterator<Item = &'a str>) -> Self {
        let mut ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
        let mut reversed: Vec<String> = ids.iter().map(|it| it.chars().rev().collect()).collect();
        ids.sort();
        reversed.sort();
        Self { ids, reversed }
    }

    pub fn short<'a>(&self, id: &'a str) -> &'a str {
        let ends = id.char_indices().rev().map(|(at, _)| id.get(at..).unwrap_or(id));
        // A word that begins with a dash is a flag.
        let mut fit = ends.skip(MIN_NAMED - 1).filter(|it| !it.starts_with('-'));
        fit.find(|it| self.is_unique(it)).unwrap_or(id)
    }

    fn is_unique(&self, end: &str) -> bool {
        let reversed: String = end.chars().rev().collect();
        count_beginning(&self.reversed, &reversed) == 1 && count_beginning(&self.ids, end) == 0
    }
}

/// How many of the sorted words begin so: none, one or more.
fn count_beginning(sorted: &[String], start: &str) -> usize {
    let from = sorted.partition_point(|it| it.as_str() < start);
    sorted.iter().skip(from).take(2).filter(|it| it.starts_with(start)).count()
}

/// A session that an ambiguous id may mean.
pub struct SessionCandidate {
    pub short: String,
    pub when: String,
    pub title: Option<String>,
}

/// What to say of a word that names several sessions.
pub fn ambiguity(word: &str, candidates: &[SessionCandidate]) -> String {
    let mut res = format!("{word} names {} sessions; use one of these ids:", candidates.len());
    let shown = candidates.get(..MAX_CANDIDATES).unwrap_or(candidates);
    let width =
        |of: fn(&SessionCandidate) -> &str| shown.iter().map(|it| of(it).chars().count()).max().unwrap_or_default();
    let (ids, times) = (width(|it| &it.short), width(|it| &it.when));
    for it in shown {
        let title = it.title.as_deref().map(|it| clean_line(&plain_title(it), MAX_TITLE)).unwrap_or_default();
        let (id, when) = (clean_line(&it.short, MAX_TITLE), &it.when);
        res += format!("\n  {id:ids$}  {when:times$}  {title}").trim_end();
    }
    if candidates.len() > shown.len() {
        res += &format!("\n  … {} more", candidates.len() - shown.len());
    }
    res
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::{SessionCandidate, ShortIds, ambiguity};
    use castor_base::ids::is_named;

    #[test]
    fn the_end_of_an_id_is_as_long_as_it_must_be() {
        let ids = [
            "01a20986-9c3b-714f-a2a1-7c2e1df75157",
            "01a20986-9c3b-714f-a2a1-7c2e1ef75157",
            "01a20986-9c3b-714f-a2a1-7c2e00000001",
            "01a20986-9c3b-714f-a2a1-7c2e11112222",
            "12222-is-how-this-begins",
            "session-a",
            "b",
        ];
        let short = ShortIds::new(ids);
        let found = ids.map(|it| short.short(it));
        assert_eq!(found, ["df75157", "ef75157", "00001", "112222", "egins", "ion-a", "b"]);
        for (id, word) in ids.iter().zip(found) {
            assert_eq!(ids.iter().filter(|it| is_named(it, word)).count(), 1, "{id} {word}");
        }
        assert!(is_named(ids[0], "01a20986") && !is_named(ids[0], "5157") && !is_named(ids[0], ""));
    }

    #[test]
    fn ten_candidates_are_listed() {
        let candidates: Vec<SessionCandidate> = (1..=12)
            .map(|n| SessionCandidate {
                short: format!("{n}df75157"),
                when: format!("{n} min ago"),
                title: (n != 2).then(|| format!("Title\u{1b}[2J {n}\nof two lines")),
            })
            .collect();
        expect![[r#"
            01a20986 names 12 sessions; use one of these ids:
              1df75157   1 min ago   Title⟨U+001B⟩[2J 1 of two lines
              2df75157   2 min ago
              3df75157   3 min ago   Title⟨U+001B⟩[2J 3 of two lines
              4df75157   4 min ago   Title⟨U+001B⟩[2J 4 of two lines
              5df75157   5 min ago   Title⟨U+001B⟩[2J 5 of two lines
              6df75157   6 min ago   Title⟨U+001B⟩[2J 6 of two lines
              7df75157   7 min ago   Title⟨U+001B⟩[2J 7 of two lines
              8df75157   8 min ago   Title⟨U+001B⟩[2J 8 of two lines
              9df75157   9 min ago   Title⟨U+001B⟩[2J 9 of two lines
              10df75157  10 min ago  Title⟨U+001B⟩[2J 10 of two lines
              … 2 more
        "#]]
        .assert_eq(&format!("{}\n", ambiguity("01a20986", &candidates)));
    }
}
