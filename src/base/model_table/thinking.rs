//! Thinking of models: how they may be told how much to think, and the nearest that they take.

use serde::{Deserialize, Deserializer, de::Error};

use crate::model::Thinking;

/// How a model is told how much to think.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThinkingKind {
    /// Nothing is known of it.
    #[default]
    Unknown,
    /// It does not think.
    None,
    /// It thinks, and takes no word of how much.
    Always,
    /// By a number of tokens.
    Budget,
    /// By a word.
    Levels,
    /// By a word, and it decides itself whether to think at all.
    Adaptive,
}

/// What a model takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThinkingRange {
    pub kind: ThinkingKind,
    /// From little to much.
    levels: Vec<String>,
    /// The least and the most, in tokens.
    budget: (i32, i32),
    /// A budget of 0 switches it off.
    can_be_off: bool,
}

/// Words for how much to think, from little to much, with their budget in tokens.
const WORDS: &[(&str, i32)] = &[
    ("none", 0),
    ("minimal", 512),
    ("low", 1_024),
    ("medium", 8_192),
    ("high", 24_576),
    ("xhigh", 28_672),
    ("max", 32_768),
];

/// The budget of a word; `None`: the word has no place among the others.
pub fn budget_of(word: &str) -> Option<i32> {
    WORDS.iter().find(|(it, _)| it.eq_ignore_ascii_case(word)).map(|(_, budget)| *budget)
}

fn rank(word: &str) -> Option<usize> {
    WORDS.iter().position(|(it, _)| it.eq_ignore_ascii_case(word))
}

/// The word for a budget: the largest that costs no more.
fn rank_of(budget: i32) -> usize {
    WORDS.iter().rposition(|(_, it)| *it <= budget).unwrap_or_default()
}

impl ThinkingRange {
    pub fn levels(&self) -> &[String] {
        &self.levels
    }

    /// Tells whether the model can be asked for its thoughts.
    pub fn is_known_to_think(&self) -> bool {
        !matches!(self.kind, ThinkingKind::Unknown | ThinkingKind::None)
    }

    /// The nearest that the model takes. `None`: it is told nothing, and does as it likes.
    pub fn nearest(&self, wanted: Thinking) -> Option<Thinking> {
        match (self.kind, wanted) {
            (ThinkingKind::Unknown, it) => Some(it),
            (ThinkingKind::None | ThinkingKind::Always, _) => None,
            (ThinkingKind::Budget, Thinking::Budget(-1)) => Some(Thinking::Budget(-1)),
            (ThinkingKind::Budget, Thinking::Budget(it)) => Some(Thinking::Budget(self.within_budget(it))),
            (ThinkingKind::Budget, Thinking::Level(word)) => {
                budget_of(&word).map(|it| Thinking::Budget(self.within_budget(it)))
            }
            (ThinkingKind::Levels | ThinkingKind::Adaptive, Thinking::Budget(-1)) => None,
            (ThinkingKind::Levels | ThinkingKind::Adaptive, Thinking::Budget(it)) => self.nearest_level(rank_of(it)),
            (ThinkingKind::Levels | ThinkingKind::Adaptive, Thinking::Level(word)) => self.level(&word),
        }
    }

    fn within_budget(&self, tokens: i32) -> i32 {
        let (least, most) = self.budget;
        if tokens == 0 && self.can_be_off {
            return 0;
        }
        tokens.max(least).min(most.max(least))
    }

    fn level(&self, word: &str) -> Option<Thinking> {
        match self.levels.iter().find(|it| it.eq_ignore_ascii_case(word)) {
            Some(own) => Some(Thinking::Level(own.clone())),
            None => rank(word).and_then(|it| self.nearest_level(it)),
        }
    }

    /// Of two that are equally near the smaller one: nobody pays more than was asked for.
    fn nearest_level(&self, wanted: usize) -> Option<Thinking> {
        let ranked = self.levels.iter().filter_map(|it| Some((rank(it)?, it)));
        let near = ranked.min_by_key(|(rank, _)| (rank.abs_diff(wanted), *rank));
        near.map(|(_, it)| Thinking::Level(it.clone()))
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RangeForm {
    Word(String),
    Members(RangeMembers),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RangeMembers {
    #[serde(default)]
    levels: Vec<String>,
    budget: Option<(i32, i32)>,
    #[serde(default)]
    adaptive: bool,
    #[serde(default)]
    off: bool,
}

const FORMS: &str = "`thinking` should be \"none\", \"always\", { budget = [LEAST, MOST], off = true }, { levels = [WORDS] } or { \
                     levels = [WORDS], adaptive = true }";

impl<'de> Deserialize<'de> for ThinkingRange {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let plain = |kind| Self { kind, ..Self::default() };
        match RangeForm::deserialize(from).map_err(|_| D::Error::custom(FORMS))? {
            RangeForm::Word(it) if it == "none" => Ok(plain(ThinkingKind::None)),
            RangeForm::Word(it) if it == "always" => Ok(plain(ThinkingKind::Always)),
            RangeForm::Members(it) => match (it.levels.is_empty(), it.budget) {
                (false, None) => {
                    let kind = if it.adaptive { ThinkingKind::Adaptive } else { ThinkingKind::Levels };
                    Ok(Self { kind, levels: it.levels, ..Self::default() })
                }
                (true, Some(budget)) if !it.adaptive && 0 <= budget.0 && budget.0 <= budget.1 => {
                    Ok(Self { kind: ThinkingKind::Budget, budget, can_be_off: it.off, ..Self::default() })
                }
                _ => Err(D::Error::custom(FORMS)),
            },
            RangeForm::Word(_) => Err(D::Error::custom(FORMS)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::ThinkingRange;
    use crate::model::Thinking;

    fn check(range: &serde_json::Value, wanted: &[&str], expected: &str) {
        let range: ThinkingRange = serde_json::from_value(range.clone()).unwrap();
        let read = |it: &str| it.parse().map_or_else(|_| Thinking::Level(it.to_owned()), Thinking::Budget);
        let show = |it| match it {
            None => "-".to_owned(),
            Some(Thinking::Budget(it)) => it.to_string(),
            Some(Thinking::Level(it)) => it,
        };
        let got: Vec<String> = wanted.iter().map(|it| show(range.nearest(read(it)))).collect();
        assert_eq!(got.join(" "), expected, "{range:?}");
    }

    #[test]
    fn the_nearest_that_a_model_takes() {
        let words = &["none", "minimal", "low", "medium", "HIGH", "xhigh", "max", "odd"];
        let budgets = &["-1", "0", "1", "1024", "8192", "20000", "99999"];
        for (range, by_word, by_budget) in [
            (json!("none"), "- - - - - - - -", "- - - - - - -"),
            (json!("always"), "- - - - - - - -", "- - - - - - -"),
            (
                json!({ "levels": ["low", "medium", "high"] }),
                "low low low medium high high high -",
                "- low low low medium medium high",
            ),
            (json!({ "levels": ["low", "high"] }), "low low low low high high high -", "- low low low low low high"),
            (
                json!({ "levels": ["none", "low", "xhigh", "odd"] }),
                "none none low low xhigh xhigh xhigh odd",
                "- none none low low low xhigh",
            ),
            (
                json!({ "budget": [128, 32768] }),
                "128 512 1024 8192 24576 28672 32768 -",
                "-1 128 128 1024 8192 20000 32768",
            ),
            (
                json!({ "budget": [1024, 2048], "off": true }),
                "0 1024 1024 2048 2048 2048 2048 -",
                "-1 0 1024 1024 2048 2048 2048",
            ),
            (json!({ "budget": [0, 8192] }), "0 512 1024 8192 8192 8192 8192 -", "-1 0 1 1024 8192 8192 8192"),
            (
                json!({ "levels": ["low", "max"], "adaptive": true }),
                "low low low low low max max -",
                "- low low low low low max",
            ),
        ] {
            check(&range, words, by_word);
            check(&range, budgets, by_budget);
        }
    }

    #[test]
    fn other_forms_are_refused() {
        for it in [json!("some"), json!({}), json!({ "levels": [] }), json!({ "budget": [9, 1] }), json!(3)] {
            let got = serde_json::from_value::<ThinkingRange>(it.clone());
            assert!(got.unwrap_err().to_string().starts_with("`thinking` should be"), "{it}");
        }
    }
}
