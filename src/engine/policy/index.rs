//! Rule index by the first word of a command, so that few of hundreds of rules are tried.

use std::collections::HashMap;

use super::{
    patterns::CommandSpelling,
    rule::{ArgsMatcher, Rule},
};

/// The places of rules for commands.
#[derive(Clone, Debug, Default)]
pub struct RuleIndex {
    /// By the first word, in lower case.
    by_word: HashMap<String, Vec<usize>>,
    /// Of those that may speak of any command.
    others: Vec<usize>,
}

impl<'r> FromIterator<(usize, &'r Rule)> for RuleIndex {
    fn from_iter<T: IntoIterator<Item = (usize, &'r Rule)>>(rules: T) -> Self {
        let mut res = Self::default();
        for (at, rule) in rules {
            let words: Option<Vec<String>> = match &rule.matcher {
                ArgsMatcher::Prefixes(list) => {
                    list.iter().map(|it| it.first().map(|it| it.to_ascii_lowercase())).collect()
                }
                ArgsMatcher::Command(it) => it.first_words.clone(),
                _ => None,
            };
            match words {
                Some(words) => words.into_iter().for_each(|it| res.by_word.entry(it).or_default().push(at)),
                None => res.others.push(at),
            }
        }
        res
    }
}

impl RuleIndex {
    /// Those that may speak of a command, in order.
    pub fn candidates(&self, spelling: &CommandSpelling) -> Vec<usize> {
        let mut res = self.others.clone();
        match spelling.first_words() {
            Some(words) => words.iter().for_each(|it| res.extend(self.by_word.get(it).into_iter().flatten())),
            // Its program is only known when it runs.
            None => res.extend(self.by_word.values().flatten()),
        }
        res.sort_unstable();
        res.dedup();
        res
    }
}
