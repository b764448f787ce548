//! Retypes the indentation of new lines as a file has it, by what each line of `old_string` became there.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::lines::{Lines, indentation};

/// Blanks that one level of indentation may have.
const UNITS: [usize; 4] = [2, 3, 4, 8];

/// Units of indentation: of those as likely, the last.
const COMMON_UNITS: &[usize] = &[8, 2, 4];

/// A line of `old_string`, and the line of the file that it stands for.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    pub old: &'a str,
    pub file: &'a str,
}

#[derive(Debug, PartialEq, Eq)]
pub enum IndentFault {
    /// The pair with this number differs in another way than those before it.
    Contradiction(usize),
    /// Nothing says how deep this line of `new_string` is to go.
    Unknown(usize),
}

/// Indentation in the file, with the numbers of the pairs that show it.
type IndentTable<'a> = HashMap<&'a str, Vec<(usize, &'a str)>>;

/// The rule by which indentation is typed again.
pub struct Retyping<'a> {
    known: IndentTable<'a>,
    /// `None`: as it is written.
    rule: Option<Rule>,
}

/// The characters of one level of indentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Tab,
    Blanks(usize),
    /// A tab, or so many blanks.
    Columns(usize),
}

/// Levels of `model` are as many of `file`, and `shift` more.
#[derive(Clone, Copy, Debug)]
struct Rule {
    model: Unit,
    file: Unit,
    shift: isize,
}

impl Unit {
    /// Levels, and the blanks behind them.
    fn split(self, indent: &str) -> Option<(usize, usize)> {
        let blanks = indent.trim_start_matches('\t');
        let tabs = indent.len() - blanks.len();
        if blanks.contains('\t') {
            return None;
        }
        Some(match self {
            Self::Tab => (tabs, blanks.len()),
            Self::Blanks(n) | Self::Columns(n) => (tabs + blanks.len() / n, blanks.len() % n),
        })
    }

    fn make(self, level: usize, rest: usize) -> String {
        match self {
            Self::Tab | Self::Columns(_) => "\t".repeat(level) + &" ".repeat(rest),
            Self::Blanks(n) => " ".repeat(level * n + rest),
        }
    }
}

impl Rule {
    fn from_pair(model: Unit, file: Unit, old: &str, new: &str) -> Option<Self> {
        let (a, b) = (model.split(old)?, file.split(new)?);
        let res = Self { model, file, shift: b.0.cast_signed() - a.0.cast_signed() };
        (a.1 == b.1 && (res.shift == 0 || !res.is_odd())).then_some(res)
    }

    fn holds(&self, old: &str, new: &str) -> bool {
        Self::from_pair(self.model, self.file, old, new).is_some_and(|it| it.shift == self.shift)
    }

    fn apply(&self, indent: &str) -> Option<String> {
        let (level, rest) = self.model.split(indent)?;
        Some(self.file.make(level.checked_add_signed(self.shift)?, rest))
    }

    /// Lines were shifted, or another unit was used; not both.
    fn is_simple(&self) -> bool {
        self.model == self.file || (self.shift == 0 && !self.is_odd())
    }

    /// Three blanks are rarely a level, and often two and one that aligns something.
    fn is_odd(&self) -> bool {
        self.model == Unit::Blanks(3) || self.file == Unit::Blanks(3)
    }
}

impl<'a> Retyping<'a> {
    /// # Errors
    /// If `pairs` contradict each other, or say nothing of a line of `new`.
    pub fn new(pairs: &[Pair<'a>], new: &[&'a str], file: &Lines<'_>) -> Result<Self, IndentFault> {
        let mut known = IndentTable::new();
        let telling = || pairs.iter().enumerate().filter(|it| !is_blank(it.1.old) && !is_blank(it.1.file));
        for (n, it) in telling() {
            known.entry(indentation(it.old)).or_default().push((n, indentation(it.file)));
        }
        let is_same = telling().all(|it| indentation(it.1.old) == indentation(it.1.file));
        if (is_same && known.keys().any(|it| !it.is_empty())) || is_in_frame_of_file(pairs, new)? {
            return Ok(Self { known: IndentTable::new(), rule: None });
        }
        let mut rules: Option<Vec<Rule>> = None;
        for (n, it) in telling() {
            let (old, now) = (indentation(it.old), indentation(it.file));
            let fits = match rules.take() {
                None => candidates(pairs, new, file, (old, now)),
                Some(rules) => rules.into_iter().filter(|it| it.holds(old, now)).collect(),
            };
            if fits.is_empty() {
                return Err(IndentFault::Contradiction(n));
            }
            rules = Some(fits);
        }
        let unknown = |it: &&str| !is_blank(it) && !known.contains_key(indentation(it));
        let rules = rules.unwrap_or_default();
        let Some(first) = new.iter().position(unknown) else {
            return Ok(Self { rule: rules.first().copied(), known });
        };
        let step = usual_step(file);
        let outcomes = rules.iter().filter_map(|it| Outcome::new(*it, &known, new, step)).collect::<Vec<_>>();
        let rule = choose(&outcomes).ok_or(IndentFault::Unknown(first))?;
        Ok(Self { known, rule: Some(rule) })
    }

    /// `indent` as the file has it near the pair `at`.
    pub fn retype(&self, indent: &str, at: usize) -> String {
        if let Some(seen) = self.known.get(indent) {
            let next = seen.partition_point(|it| it.0 < at);
            let near = seen.get(next).or(seen.last());
            return near.map_or(indent, |it| it.1).to_owned();
        }
        let retyped = self.rule.and_then(|it| it.apply(indent));
        retyped.unwrap_or_else(|| indent.to_owned())
    }
}

pub fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

/// Columns, with tabs of one column: for comparisons within one style.
fn width(line: &str) -> usize {
    indentation(line).len()
}

/// Whether `new` has its lines where the file has them, and only `old` was typed otherwise. An error if it may as well be
/// that they go deeper.
fn is_in_frame_of_file(pairs: &[Pair<'_>], new: &[&str]) -> Result<bool, IndentFault> {
    let mut places: HashMap<&str, Vec<(&str, &str)>> = HashMap::new();
    for it in pairs.iter().filter(|it| !is_blank(it.old)) {
        places.entry(it.old.trim()).or_default().push((indentation(it.old), indentation(it.file)));
    }
    let least = |lines: &mut dyn Iterator<Item = &str>| lines.filter(|it| !is_blank(it)).map(width).min();
    let left = least(&mut new.iter().copied());
    let mut kept = new.iter().filter_map(|it| Some((indentation(it), places.get(it.trim())?))).peekable();
    let is_only_in_file = |it: (&str, &Vec<(&str, &str)>)| {
        it.1.iter().all(|pair| pair.0 != it.0) && it.1.iter().any(|pair| pair.1 == it.0)
    };
    let is_as_left = left == least(&mut pairs.iter().map(|it| it.file));
    if kept.peek().is_none() || !is_as_left || !kept.clone().all(is_only_in_file) {
        return Ok(false);
    }
    let is_outermost = kept.any(|it| Some(it.0.len()) == left);
    match new.iter().position(|it| !is_blank(it)) {
        Some(first) if !is_outermost || wraps_lines(pairs, new) => Err(IndentFault::Unknown(first)),
        _ => Ok(true),
    }
}

/// Tells whether a line that comes anew has a line that stays below it, one level deeper, that had none such in the
/// file.
fn wraps_lines(pairs: &[Pair<'_>], new: &[&str]) -> bool {
    let text = |it: &&Pair<'_>| !is_blank(it.file);
    let mut parents: HashMap<&str, Vec<&str>> = HashMap::new();
    for (above, it) in pairs.iter().filter(text).zip(pairs.iter().filter(text).skip(1)) {
        parents.entry(it.old.trim()).or_default().push(indentation(above.file));
    }
    let stays: BTreeSet<&str> = pairs.iter().map(|it| it.old.trim()).collect();
    let lines = || new.iter().filter(|it| !is_blank(it));
    lines().zip(lines().skip(1)).any(|(above, it)| {
        let is_wrapped = !stays.contains(above.trim()) && stays.contains(it.trim()) && width(above) < width(it);
        is_wrapped && parents.get(it.trim()).is_none_or(|all| !all.contains(&indentation(above)))
    })
}

/// The rules by which the first pair can have come about.
fn candidates(pairs: &[Pair<'_>], new: &[&str], file: &Lines<'_>, (old, now): (&str, &str)) -> Vec<Rule> {
    let has_tab = |it: &str| indentation(it).contains('\t');
    let model_tabs = pairs.iter().any(|it| has_tab(it.old)) || new.iter().any(|it| has_tab(it));
    let mut shown = pairs.iter().map(|it| it.file).filter(|it| !is_blank(it));
    let file_tabs = match shown.clone().any(|it| has_tab(it) || it.starts_with("  ")) {
        true => shown.any(has_tab),
        false => prefers_tabs(file).unwrap_or(model_tabs),
    };
    let mut units: Vec<(Unit, Unit)> = Vec::new();
    match (model_tabs, file_tabs) {
        (true, true) => units.push((Unit::Tab, Unit::Tab)),
        (true, false) => units.extend(UNITS.map(|it| (Unit::Tab, Unit::Blanks(it)))),
        (false, false) => {
            units.push((Unit::Blanks(1), Unit::Blanks(1)));
            let others = UNITS.into_iter().flat_map(|n| UNITS.map(|m| (n, m))).filter(|it| it.0 != it.1);
            units.extend(others.map(|it| (Unit::Blanks(it.0), Unit::Blanks(it.1))));
        }
        (false, true) => (),
    }
    if file_tabs {
        units.extend(UNITS.map(|it| (Unit::Blanks(it), Unit::Tab)));
        units.extend(UNITS.map(|it| (Unit::Blanks(it), Unit::Columns(it))));
    }
    units.into_iter().filter_map(|(model, file)| Rule::from_pair(model, file, old, now)).collect()
}

/// `None`: no line is indented.
fn prefers_tabs(file: &Lines<'_>) -> Option<bool> {
    let count = |start: &str| file.iter().filter(|it| it.starts_with(start) && !is_blank(it)).count();
    let (tabs, blanks) = (count("\t"), count("  "));
    (tabs + blanks > 0).then_some(tabs > blanks)
}

/// The outcome of a rule for the new lines that are as deep as no line of `old_string`.
struct Outcome {
    rule: Rule,
    indents: Vec<String>,
    /// All are whole levels, as far as these are known.
    is_whole: bool,
    /// No line is two levels deeper than the line before it.
    is_gradual: bool,
}

impl Outcome {
    /// `None`: a line would have to begin left of the first column.
    fn new(rule: Rule, known: &IndentTable<'_>, new: &[&str], step: Option<usize>) -> Option<Self> {
        let unit = if let Unit::Blanks(_) = rule.file { step.map(Unit::Blanks) } else { Some(rule.file) };
        let is_own = match rule.file {
            Unit::Blanks(n) => n == 1 || step.is_none_or(|it| it == n),
            _ => true,
        };
        let mut res = Self { rule, indents: Vec::new(), is_whole: is_own, is_gradual: true };
        let place = |indent: &str| unit.and_then(|it| it.split(indent));
        let seen = || known.iter().flat_map(|(old, all)| all.iter().map(move |it| (*old, it.0, it.1)));
        // What is aligned with something may be so again.
        let rests: BTreeSet<_> = seen().filter_map(|it| Some(place(it.2)?.1)).chain([0]).collect();
        let of_model: BTreeSet<_> = seen().filter_map(|it| Some(rule.model.split(it.0)?.1)).chain([0]).collect();
        let mut above = seen().min_by_key(|it| it.1).and_then(|it| Some(place(it.2)?.0));
        for it in new.iter().filter(|it| !is_blank(it)).map(|it| indentation(it)) {
            let seen = known.get(it).and_then(|it| it.first()).map(|it| it.1.to_owned());
            let is_new = seen.is_none();
            let indent = match seen {
                Some(it) => it,
                None => rule.apply(it)?,
            };
            let place = place(&indent);
            if let Some((level, rest)) = place.filter(|_| is_new) {
                let of_model = rule.model.split(it).is_some_and(|it| of_model.contains(&it.1));
                res.is_whole &= of_model && rests.contains(&rest);
                res.is_gradual &= above.is_none_or(|it| level <= it + 1);
            }
            above = place.map(|it| it.0);
            res.indents.extend(is_new.then_some(indent));
        }
        Some(res)
    }
}

/// The rule that is beyond doubt: the others come to the same, or to levels that no code has.
fn choose(outcomes: &[Outcome]) -> Option<Rule> {
    let only = |is_meant: &dyn Fn(&Outcome) -> bool| {
        let mut meant = outcomes.iter().filter(|it| is_meant(it));
        let first = meant.next()?;
        meant.all(|it| it.indents == first.indents).then_some(first.rule)
    };
    let has = |is_meant: &dyn Fn(&Outcome) -> bool| outcomes.iter().any(is_meant);
    let is_simple = |it: &Outcome| it.rule.is_simple();
    let is_likely = |it: &Outcome| it.is_whole && it.is_gradual;
    if let Some(it) = only(&|_| true) {
        return Some(it);
    }
    if has(&|it| is_simple(it) && is_likely(it)) {
        return only(&|it| is_simple(it) && is_likely(it));
    }
    if !has(&is_likely) {
        return only(&is_simple);
    }
    if has(&|it| is_simple(it) && it.is_whole) { None } else { only(&is_likely) }
}

/// The number of blanks by which a line of the file is mostly deeper than the line before it.
fn usual_step(file: &Lines<'_>) -> Option<usize> {
    let mut steps: BTreeMap<usize, usize> = BTreeMap::new();
    let mut above = 0;
    for it in file.iter().filter(|it| !is_blank(it) && !it.starts_with('\t')).map(width) {
        *steps.entry(it.saturating_sub(above)).or_default() += 1;
        above = it;
    }
    let units = steps.into_iter().filter(|it| UNITS.contains(&it.0));
    units.max_by_key(|it| (it.1, COMMON_UNITS.iter().position(|unit| *unit == it.0))).map(|it| it.0)
}
