//! Rewrites the expected lines of a conversation: what came takes their place, and a line that is late is waited for.

use std::{ops::Range, time::Duration};

use super::{
    lists,
    pattern::{Expected, Line, Mark},
};
use crate::client::WATCHDOG;

/// How long to listen where nobody can tell that all has been said.
const LISTEN: Duration = Duration::from_millis(1500);
/// The same where all requests are answered, or the agent waits for an answer.
const LISTEN_SETTLED: Duration = Duration::from_millis(300);

/// Lines of a file, and what is to stand there instead.
#[derive(Default)]
pub struct NewLines(Vec<(Range<usize>, Vec<String>)>);

impl NewLines {
    pub fn push(&mut self, at: Range<usize>, lines: Vec<String>) {
        self.0.push((at, lines));
    }

    pub fn put_into(&self, text: &str) -> String {
        let mut lines: Vec<&str> = text.lines().collect();
        for (at, new) in self.0.iter().rev() {
            lines.splice(at.clone(), new.iter().map(String::as_str));
        }
        lines.join("\n") + "\n"
    }
}

/// How long to wait for the next message: as long as any test does where an expected line may still come.
pub fn patience(expected: &[Expected], heard: &[Line], is_settled: bool) -> Duration {
    match (may_still_come(expected, heard), is_settled) {
        (true, _) => WATCHDOG,
        (false, true) => LISTEN_SETTLED,
        (false, false) => LISTEN,
    }
}

/// Whether a line of the file is missing behind the last one that came, and nothing of its kind stands in its place.
fn may_still_come(expected: &[Expected], heard: &[Line]) -> bool {
    let mut open: Vec<&Expected> = expected.iter().filter(|it| it.mark != Mark::Many && !it.is_blank()).collect();
    let mut others = Vec::new();
    for line in heard {
        match open.iter().position(|it| it.matches(line)) {
            // What should have come before it was passed over.
            Some(at) if open[at].mark == Mark::Next => {
                open.remove(at);
                let mut idx = 0;
                open.retain(|it| {
                    idx += 1;
                    idx > at || it.mark == Mark::AnyOrder
                });
            }
            Some(at) => _ = open.remove(at),
            None => others.push(line),
        }
    }
    for line in others {
        if let Some(at) = open.iter().position(|it| it.is_of_kind(line)) {
            open.remove(at);
        }
    }
    !open.is_empty()
}

/// Lines that still match stay as they are, patterns and all; drafts are spelled out, and lists if `spelled`.
pub fn new_lines(expected: &[Expected], heard: &[Line], spelled: bool) -> Vec<String> {
    let mut open: Vec<&Expected> = expected.iter().collect();
    let any_order = open.iter().any(|it| it.mark == Mark::AnyOrder);
    let text = |line: &Line| match spelled {
        true => line.text(),
        false => Line { head: line.head.clone(), body: lists::shorten(&line.body) }.text(),
    };
    let mut res: Vec<String> = Vec::new();
    for line in heard {
        let new = match open.iter().position(|it| it.matches(line)) {
            Some(at) if open[at].mark == Mark::Many => format!("{} {}", open[at].mark.text(), open[at].text),
            Some(at) if open[at].is_draft() => format!("{} {}", open.remove(at).mark.text(), text(line)),
            Some(at) => {
                let it = open.remove(at);
                format!("{} {}", it.mark.text(), it.text)
            }
            None if any_order => format!("{} {}", Mark::AnyOrder.text(), text(line)),
            None => format!("{} {}", Mark::Next.text(), text(line)),
        };
        let is_repeated = new.starts_with(Mark::Many.text()) && res.last() == Some(&new);
        if !is_repeated {
            res.push(new);
        }
    }
    res
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{Expected, Line, may_still_come, new_lines};

    fn expected(lines: &[&str]) -> Vec<Expected> {
        lines.iter().map(|it| Expected::parse(it).unwrap()).collect()
    }

    fn heard(lines: &[&str]) -> Vec<Line> {
        let line = |it: &&str| {
            let (head, body) = it.split_once(' ').unwrap_or((it, "null"));
            Line { head: head.to_owned(), body: serde_json::from_str::<Value>(body).unwrap() }
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn late_lines_are_waited_for() {
        let check = |lines: &[&str], came: &[&str], expect: bool| {
            assert_eq!(may_still_come(&expected(lines), &heard(came)), expect, "{lines:?} {came:?}");
        };
        check(&["< a", "< result {}"], &["a"], true);
        check(&["< a", "< result {}"], &["a", "result {}"], false);
        check(&["< a", "< result {}"], &["a", "result {\"b\":1}"], false);
        check(&["< a", "< b", "< result {}"], &["a", "result {}"], false);
        check(&["<~ a", "<~ b", "< result {}"], &["b", "result {}"], true);
        check(&["<* a", "< result {}"], &["result {}"], false);
        check(&["< $/cancel_request {}", "< result {}"], &["other"], true);
        check(&["<"], &[], false);
    }

    #[test]
    fn rewritten_lines_keep_their_patterns() {
        let lines = expected(&["< a {\"b\":\"$*\"}", "< c {\"d\":1}"]);
        let came = heard(&["a {\"b\":\"x\"}", "c {\"d\":2}"]);
        assert_eq!(new_lines(&lines, &came, true), ["< a {\"b\":\"$*\"}", "< c {\"d\":2}"]);
        let draft = expected(&["<~ a {\"$MORE\":1}"]);
        assert_eq!(new_lines(&draft, &heard(&["a {\"b\":1}"]), true), ["<~ a {\"b\":1}"]);
    }
}
