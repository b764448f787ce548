//! Loop detection: a model is stuck when it repeats the same calls with the same results, or the same words.

use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hash, Hasher},
};

use memchr::memmem;
use serde_json::Value;

use castor_base::content::Part;

/// Ends of calls that are remembered; enough for the longest cycle.
const N_ENDS: usize = MAX_CYCLE * REPEATS;
/// The longest cycle that is looked for, in calls.
const MAX_CYCLE: usize = 5;
/// So often a cycle has to come.
const REPEATS: usize = 5;
/// After a warning, so many further calls of the same cycle are the end of patience.
pub(in crate::turn) const FURTHER: usize = 3;

/// Text that is looked at, in bytes: the last of what was said.
const WINDOW: usize = 5_000;
/// What has to come again, in bytes.
const PIECE: usize = 50;
/// The text is looked at each time that so much is new: a look costs about a microsecond.
const STRIDE: usize = 250;
/// So often a piece has to come within [`WINDOW`].
const SAID: usize = 10;
/// Its mean distance, in bytes.
const DISTANCE: usize = 250;
/// What stands between may differ a little: so many different texts.
const BETWEEN: usize = 5;

/// At first a model is asked every so many requests.
const INTERVAL: u32 = 10;

/// What was noticed. The words are for the model and the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    pub why: String,
    /// The words are of a model that looked at the conversation, and no orders of castor's.
    pub is_quoted: bool,
}

/// What one prompt's turn has seen of its model.
#[derive(Debug, Default)]
pub struct Loops {
    /// Calls with what came of them, the newest last.
    ends: VecDeque<u64>,
    /// The cycle that the model was warned of, and how many of its calls came since.
    warned: Option<(Vec<u64>, usize)>,
    text: Text,
}

/// What was seen in this turn, and how often it was too much.
#[derive(Debug, Default)]
pub(in crate::turn) struct LoopWatch {
    pub repeated: Loops,
    pub strikes: u32,
    pub pace: CheckPace,
}

/// When a model is asked next whether the turn leads anywhere.
#[derive(Debug)]
pub(in crate::turn) struct CheckPace {
    pub last: u32,
    pub interval: u32,
}

impl Default for CheckPace {
    fn default() -> Self {
        Self { last: 0, interval: INTERVAL }
    }
}

impl LoopWatch {
    /// Of what comes after this request of the turn: what was seen before says nothing of it.
    pub fn from(n_samples: u32) -> Self {
        Self { pace: CheckPace { last: n_samples, ..CheckPace::default() }, ..Self::default() }
    }
}

impl Loops {
    /// A call ended. The result counts: the same call with another result is progress.
    pub fn record_call(&mut self, name: &str, args: &Value, result: &[Part]) -> Option<Loop> {
        self.text = Text::default();
        let end = key(name, args, result);
        if self.ends.len() == N_ENDS {
            self.ends.pop_front();
        }
        self.ends.push_back(end);
        if let Some((cycle, n)) = &mut self.warned {
            *n = if cycle.contains(&end) { *n + 1 } else { 0 };
            if *n >= FURTHER {
                let why = format!("it went on with `{name}` after it was told that this leads nowhere");
                return Some(Loop { why, is_quoted: false });
            }
        }
        let length = (1..=MAX_CYCLE).find(|it| self.ends_in_cycle(*it))?;
        let cycle: Vec<u64> = self.ends.iter().rev().take(length).copied().collect();
        if self.warned.as_ref().is_some_and(|(known, _)| cycle.iter().all(|it| known.contains(it))) {
            return None;
        }
        self.warned = Some((cycle, 0));
        Some(Loop { why: of_calls(name, length), is_quoted: false })
    }

    /// The model said more.
    pub fn record_text(&mut self, delta: &str) -> Option<Loop> {
        self.text.push(delta).then(|| {
            self.text = Text::default();
            Loop { why: "it said the same words again and again".to_owned(), is_quoted: false }
        })
    }

    /// Tells whether the last calls are a cycle of `length`, [`REPEATS`] times.
    fn ends_in_cycle(&self, length: usize) -> bool {
        let mut last = self.ends.iter().rev().take(length * REPEATS);
        let cycle: Vec<u64> = last.by_ref().take(length).copied().collect();
        let is_whole = self.ends.len() >= length * REPEATS;
        is_whole && last.zip(cycle.iter().cycle()).all(|(end, expected)| end == expected)
    }
}

fn of_calls(name: &str, length: usize) -> String {
    match length {
        1 => format!("`{name}` was called {REPEATS} times with the same arguments and the same result"),
        _ => format!("the same {length} calls, `{name}` the last of them, came {REPEATS} times with the same results"),
    }
}

/// Equal where call and result are equal; by chance once in 2^64.
fn key(name: &str, args: &Value, result: &[Part]) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    args.hash(&mut hasher);
    for it in result {
        match it.as_text() {
            Some(text) => text.hash(&mut hasher),
            // Images and the like: their form is all that they can be compared by here.
            None => format!("{it:?}").hash(&mut hasher),
        }
    }
    hasher.finish()
}

/// The end of what the model says, as far as it is prose.
#[derive(Debug, Default)]
struct Text {
    prose: String,
    /// The line so far, whose kind may not be known yet.
    line: String,
    is_code: bool,
    /// New since the last look.
    fresh: usize,
}

impl Text {
    /// Takes more; says whether it has become a loop. Lists, tables, headings and code repeat themselves by nature: they
    /// begin anew what is looked at.
    fn push(&mut self, delta: &str) -> bool {
        for piece in delta.split_inclusive('\n') {
            self.line.push_str(piece);
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut self.line);
                self.take_line(&line);
            }
        }
        // A line without end is prose, too.
        if self.line.len() >= STRIDE {
            let line = std::mem::take(&mut self.line);
            self.take_line(&line);
        }
        self.fresh >= STRIDE && self.look()
    }

    fn take_line(&mut self, line: &str) {
        let is_fence = line.trim_start().starts_with("```");
        if is_fence {
            self.is_code = !self.is_code;
        }
        if is_fence || self.is_code || is_structure(line) {
            (self.prose, self.fresh) = (String::new(), 0);
            return;
        }
        self.prose.push_str(line);
        self.fresh += line.len();
        // Cut rarely, so that a long answer is not moved again and again.
        if self.prose.len() > 2 * WINDOW {
            let end = self.prose.len() - WINDOW;
            let at = (end..end + 4).find(|it| self.prose.is_char_boundary(*it)).unwrap_or_default();
            self.prose.drain(..at);
        }
    }

    fn look(&mut self) -> bool {
        self.fresh = 0;
        let text = self.prose.as_bytes();
        let text = text.get(text.len().saturating_sub(WINDOW)..).unwrap_or_default();
        let Some(start) = text.len().checked_sub(PIECE) else { return false };
        let piece = text.get(start..).unwrap_or_default();
        let found: Vec<usize> = memmem::find_iter(text, piece).collect();
        // Those that overlap are found by the next line's end: a piece of one letter is found once in fifty.
        let Some(last) = found.len().checked_sub(SAID).and_then(|it| found.get(it..)) else { return false };
        let (Some(first), Some(end)) = (last.first(), last.last()) else { return false };
        let mut between: Vec<&[u8]> =
            last.iter().zip(last.iter().skip(1)).filter_map(|(a, b)| text.get(a + PIECE..*b)).collect();
        between.sort_unstable();
        between.dedup();
        (end - first) <= DISTANCE * (SAID - 1) && between.len() <= BETWEEN
    }
}

/// Rows of tables, items of lists, headings, quotations, rules: what begins alike without being a loop.
fn is_structure(line: &str) -> bool {
    let line = line.trim();
    let is_item = |it: &str| it.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(". ");
    line.starts_with(['|', '#', '>'])
        || ["- ", "* ", "+ "].iter().any(|it| line.starts_with(it))
        || line.starts_with(|c: char| c.is_ascii_digit()) && is_item(line)
        || !line.is_empty() && !line.contains(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Loops;
    use castor_base::content::Part;

    /// Each call is a letter, its result a digit: `a1 a1 b2`. Gives the numbers of the calls at which something was
    /// noticed, from 1.
    fn noticed(calls: &str) -> Vec<usize> {
        let mut loops = Loops::default();
        let mut end = |it: &str| {
            let (name, result) = it.split_at(1);
            loops.record_call(name, &json!({ "x": 1 }), &[Part::text(result.to_owned())])
        };
        let ends = calls.split(' ').enumerate();
        ends.filter_map(|(n, it)| end(it).map(|_| n + 1)).collect()
    }

    fn times(n: usize, cycle: &str) -> String {
        vec![cycle; n].join(" ")
    }

    #[test]
    fn calls() {
        for (calls, expected) in [
            (times(4, "a1"), vec![]),
            (times(5, "a1"), vec![5]),
            ("a1 a2 a3 a4 a5 a6 a7".to_owned(), vec![]),
            ("a1 a1 a1 a1 b1 a1 a1 a1 a1".to_owned(), vec![]),
            (times(5, "a1 b1"), vec![10]),
            (times(5, "a1 b1 c1"), vec![15]),
            (times(5, "a1 b1 c1 d1 e1"), vec![25]),
            (times(9, "a1 b1 c1 d1 e1 f1"), vec![]),
            // At most three more after the warning.
            (times(8, "a1"), vec![5, 8]),
            (format!("{} a1", times(6, "a1 b1")), vec![10, 13]),
            // The model listened.
            (format!("{} b1 a1 b2 a1", times(5, "a1")), vec![5]),
            // It went on in the old way after a while.
            (format!("{} b1 {}", times(5, "a1"), times(3, "a1")), vec![5, 9]),
            // It began another circle.
            (format!("{} {}", times(5, "a1"), times(5, "b1")), vec![5, 10]),
            (format!("{} {}", times(5, "a1"), times(5, "a1 b1")), vec![5, 15]),
        ] {
            assert_eq!(noticed(&calls), expected, "{calls}");
        }
    }

    #[test]
    fn arguments_are_compared() {
        let mut loops = Loops::default();
        let mut end = |args: Value| loops.record_call("read", &args, &[Part::text("same")]).is_some();
        assert!((0..20).all(|n| !end(json!({ "line": n }))));
    }

    /// The text as it comes in pieces of `size` bytes.
    fn is_loop(text: &str, size: usize) -> bool {
        let mut loops = Loops::default();
        let mut rest = text;
        let mut noticed = false;
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(rest.floor_char_boundary(size.max(4).min(rest.len())));
            noticed |= loops.record_text(piece).is_some();
            rest = more;
        }
        noticed
    }

    #[test]
    fn words() {
        let sentence = "I will now look at the file once more to see what it says. ";
        let long = "The tests fail because the helper reads the wrong file, so I read the helper and then I read the file, \
            and then I think about what the helper reads. ";
        let numbered = |n: usize| format!("Item number {n} of the list says that {} is {}. ", n * 7, n * n);
        for (what, text, expected) in [
            ("a sentence", sentence.repeat(40), true),
            ("lines", format!("{sentence}\n").repeat(40), true),
            ("a long sentence", long.repeat(20), true),
            ("umlauts", "Ich prüfe es noch einmal, ob es überall grün ist, für alle. ".repeat(40), true),
            ("too few", sentence.repeat(6), false),
            ("other numbers", (0..200).map(numbered).collect(), false),
            ("far apart", (0..40).map(|n| sentence.to_owned() + &numbered(n).repeat(6)).collect(), false),
            ("list", format!("- {sentence}\n").repeat(80), false),
            ("numbers", format!("12. {sentence}\n").repeat(80), false),
            ("table", format!("| {sentence} |\n").repeat(80), false),
            ("code", format!("```\n{}```\n", format!("{sentence}\n").repeat(80)), false),
            ("rules", "────────────────────────────────────────────────────────────\n".repeat(80), false),
        ] {
            for size in [1, 7, 64, 10_000] {
                assert_eq!(is_loop(&text, size), expected, "{what}, in pieces of {size}");
            }
        }
    }

    #[test]
    fn a_call_begins_the_text_anew() {
        let sentence = "I will now look at the file once more to see what it says. ";
        let mut loops = Loops::default();
        for n in 0..100 {
            assert!(loops.record_text(sentence).is_none());
            if n % 5 == 0 {
                loops.record_call("read", &json!(n), &[]);
            }
        }
    }
}
