//! Random edits, each damaged by one rule or by several: applied exactly or refused, and never otherwise.

use super::edit;

/// By one rule all are applied exactly; by several, at most this many in a hundred are refused.
const MAX_REFUSED: usize = 20;
const WORDS: &[&str] = &["value", "total", "ünïcode", "self", "buffer", "日本", "handler", "row"];
const SHORT: &[&str] = &["}", "else:", "return", "end", ")", "pass"];
/// Blanks of one level; 0 is a tab.
const UNITS: &[usize] = &[0, 2, 4, 8];

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    TrailingBlanks,
    LineEnds,
    Shift,
    Unit,
}

const DAMAGES: &[Damage] = &[Damage::TrailingBlanks, Damage::LineEnds, Damage::Shift, Damage::Unit];

/// A line; blank ones have no text.
#[derive(Clone, Debug)]
struct Line {
    level: usize,
    /// Blanks behind the levels: it is aligned with something.
    rest: usize,
    text: String,
    trail: &'static str,
}

impl Line {
    fn new(level: usize, text: impl Into<String>) -> Self {
        Self { level, rest: 0, text: text.into(), trail: "" }
    }

    fn random(dice: &mut Dice, level: usize) -> Self {
        if dice.one_in(8) {
            return Self::new(level, dice.pick(SHORT));
        }
        let (a, b, n) = (dice.pick(WORDS), dice.pick(WORDS), dice.below(100_000));
        let text = match dice.below(4) {
            0 => format!("{a}_{n} = {b}(x, {n})"),
            1 => format!("if {a}_{n} {{"),
            2 => format!("# {a} {b} {n}"),
            _ => format!("def {a}{n}(self, {b}):"),
        };
        let trail = if dice.one_in(20) { " " } else { "" };
        Self { trail, ..Self::new(level, text) }
    }

    fn is_blank(&self) -> bool {
        self.text.is_empty()
    }

    fn typed(&self, unit: usize) -> String {
        if self.is_blank() {
            return self.trail.to_owned();
        }
        let levels = if unit == 0 { "\t".repeat(self.level) } else { " ".repeat(unit * self.level) };
        format!("{levels}{}{}{}", " ".repeat(self.rest), self.text, self.trail)
    }
}

fn typed(lines: &[Line], unit: usize) -> String {
    lines.iter().map(|it| it.typed(unit)).collect::<Vec<_>>().join("\n")
}

fn random_file(dice: &mut Dice) -> Vec<Line> {
    // A file shows what it is indented with.
    let mut res = vec![Line::new(0, "class A:"), Line::new(1, "def b():"), Line::new(2, "go()")];
    let mut level: usize = 2;
    for _ in 0..5 + dice.below(40) {
        level = match dice.below(6) {
            0 => level + 1,
            1 => level.saturating_sub(1),
            2 => level.saturating_sub(2),
            _ => level,
        };
        let blank = Line { trail: if dice.one_in(5) { "    " } else { "" }, ..Line::new(0, "") };
        let rest = usize::from(dice.one_in(25));
        let line = Line { rest, ..Line::random(dice, level) };
        res.push(if dice.one_in(8) { blank } else { line });
    }
    res.push(Line::new(0, "last()"));
    res
}

/// A few lines go, come, change, or get a line around them.
fn random_edit(dice: &mut Dice, old: &[Line]) -> Vec<Line> {
    let mut new = old.to_vec();
    for _ in 0..1 + dice.below(3) {
        let at = dice.below(new.len().max(1));
        let Some(level) = new.get(at).map(|it| it.level) else { break };
        match dice.below(6) {
            0 => drop(new.remove(at)),
            1 => new.insert(at + 1, Line::random(dice, level)),
            2 => new.insert(at + 1, Line::random(dice, level + 1)),
            3 => {
                new[at..].iter_mut().filter(|it| !it.is_blank()).for_each(|it| it.level += 1);
                new.insert(at, Line::random(dice, level));
            }
            _ if new[at].is_blank() => (),
            _ => new[at].text = new[at].text.replacen(' ', " new ", 1) + "2",
        }
    }
    new
}

/// Code goes in one level at a time, and what is changed is no deeper than what was there by more than that.
fn is_code(before: &[Line], old: &[Line], new: &[Line], behind: &[Line]) -> bool {
    let levels = |lines: &[Line]| lines.iter().filter(|it| !it.is_blank()).map(|it| it.level).collect::<Vec<_>>();
    let all = [levels(before), levels(new), levels(behind)].concat();
    let (old, new) = (levels(old), levels(new));
    let (Some(first), Some(now)) = (old.first(), new.first()) else { return false };
    // One level alone does not tell what a line left of it is.
    let is_told = old.iter().min() != old.iter().max() || new.iter().min() >= old.iter().min();
    is_told && first.abs_diff(*now) <= 1 && all.windows(2).all(|it| it[1] <= it[0] + 1)
}

#[derive(Debug)]
struct Case {
    before: String,
    after: String,
    old: String,
    new: String,
}

/// `None`: the dice made no edit that one can be sure about.
fn random_case(dice: &mut Dice, damages: &[Damage]) -> Option<Case> {
    let (unit, file) = (dice.pick(UNITS), random_file(dice));
    let from = dice.below(file.len() - 1);
    let to = (from + 1 + dice.below(10)).min(file.len() - 1);
    let old = &file[from..to];
    let new = random_edit(dice, old);
    let is_aligned_alone = old.iter().filter(|it| !it.is_blank()).all(|it| it.rest > 0);
    if is_aligned_alone || !is_code(&file[..from], old, &new, &file[to..]) {
        return None;
    }
    let end = if dice.one_in(2) { "\n" } else { "" };
    if end.is_empty() && [old, &new].iter().any(|it| it.last().is_none_or(Line::is_blank)) {
        return None;
    }
    let (true_old, true_new) = (typed(old, unit) + end, typed(&new, unit) + end);
    let before = typed(&file, unit) + if dice.one_in(6) { "" } else { "\n" };
    let bare = |lines: &[Line]| lines.iter().map(|it| it.text.clone()).collect::<Vec<_>>();
    let places = bare(&file).windows(old.len()).filter(|it| *it == bare(old)).count();
    let start = typed(&file[..from], unit).len() + usize::from(from > 0);
    if true_old == true_new || places != 1 || before.find(&true_old) != before.rfind(&true_old) {
        return None;
    }
    if before.find(&true_old) != Some(start) {
        return None;
    }
    let is_crlf = dice.one_in(2);
    let line_ends = |text: String| if is_crlf { text.replace('\n', "\r\n") } else { text };
    let after = line_ends(before.replacen(&true_old, &true_new, 1));
    let (damaged_old, new) = damaged(dice, damages, unit, (old, &new))?;
    let (damaged_old, new) = (damaged_old + end, new + end);
    let is_damaged = damaged_old != true_old || new != true_new;
    if is_damaged && (before.contains(&damaged_old) || is_as_if_moved(&true_old, &damaged_old, &new)) {
        return None;
    }
    let is_retyped = indents(&damaged_old) != indents(&true_old);
    (is_retyped || new == true_new).then_some(Case { before: line_ends(before), after, old: damaged_old, new })
}

/// Both texts as a careless model types them.
fn damaged(
    dice: &mut Dice,
    damages: &[Damage],
    unit: usize,
    (old, new): (&[Line], &[Line]),
) -> Option<(String, String)> {
    let (mut damaged_old, mut new) = (old.to_vec(), new.to_vec());
    if damages.contains(&Damage::Shift) {
        let all = old.iter().chain(&new).filter(|it| !it.is_blank());
        let room = all.map(|it| it.level).min().unwrap_or(0).cast_signed();
        let less = room > 0 && !dice.one_in(3);
        let by =
            if less { -1 - dice.below(room.cast_unsigned()).cast_signed() } else { 1 + dice.below(2).cast_signed() };
        for it in damaged_old.iter_mut().chain(&mut new).filter(|it| !it.is_blank()) {
            it.level = it.level.checked_add_signed(by)?;
        }
    }
    let others: Vec<usize> = UNITS.iter().copied().filter(|it| *it != unit).collect();
    let unit = if damages.contains(&Damage::Unit) { dice.pick(&others) } else { unit };
    for it in damaged_old.iter_mut().filter(|_| damages.contains(&Damage::TrailingBlanks)) {
        // Of a blank line among other damage nobody knows what it was.
        match dice.below(3) {
            _ if it.is_blank() && damages.len() > 1 => (),
            0 => it.trail = " \t",
            1 => it.trail = "",
            _ => (),
        }
    }
    Some((typed(&damaged_old, unit), typed(&new, unit)))
}

fn indents(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|it| !it.trim().is_empty());
    lines.map(|it| &it[..it.len() - it.trim_start().len()]).collect()
}

/// Tells whether all lines that stay stand in `new` where the file has them: they were moved by what `old` was shifted.
fn is_as_if_moved(true_old: &str, old: &str, new: &str) -> bool {
    let stay = |it: &&str| !it.trim().is_empty() && true_old.lines().any(|old| old.trim() == it.trim());
    let mut lines = new.lines().filter(stay).peekable();
    let has = |text: &str, it: &str| text.lines().any(|line| line.trim_end() == it.trim_end());
    lines.peek().is_some() && lines.all(|it| has(true_old, it) && !has(old, it))
}

fn run(seed: u64, several: bool) -> usize {
    // A test's own, and no setting of castor's.
    #[allow(clippy::disallowed_methods)]
    let cases = std::env::var("EDIT_CASES").ok().and_then(|it| it.parse().ok()).unwrap_or(2_000);
    let mut dice = Dice(seed);
    let (mut n, mut refused) = (0, 0);
    while n < cases {
        let mut damages = vec![dice.pick(DAMAGES)];
        if several {
            damages.extend(DAMAGES.iter().filter(|it| **it != damages[0] && dice.one_in(2)).collect::<Vec<_>>());
        }
        if several && damages.len() < 2 {
            continue;
        }
        let Some(case) = random_case(&mut dice, &damages) else { continue };
        n += 1;
        // The tool compares with LF only: what line ends the model gives makes no difference.
        match edit(&case.before, &case.old, &case.new, false) {
            Ok((after, _)) => assert_eq!(after, case.after, "{damages:?} {case:#?}"),
            Err(it) if several => drop((it, refused += 1)),
            Err(it) => panic!("{it:?} {damages:?} {case:#?}"),
        }
    }
    refused * 100 / cases
}

#[test]
fn an_edit_damaged_by_one_rule_is_applied_exactly() {
    assert_eq!(run(0x9e37_79b9, false), 0);
}

#[test]
fn an_edit_damaged_by_several_rules_is_applied_exactly_or_refused() {
    let refused = run(0x85eb_ca6b, true);
    assert!(refused <= MAX_REFUSED, "{refused} in a hundred are refused");
}
