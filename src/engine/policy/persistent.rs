//! What a yes for longer, for this session or for ever, spares: the mode's question, and one that a rule of the user's own
//! or of the workspace's wants for just that. Never a no, nor what an administrator wants to be asked about.

use super::{
    patterns::Spelling,
    prefixes,
    rule::{Matcher, Rule, Tier},
    shell::{Command, Word, WordKind},
};
use crate::base::{log::Decision, path::AbsPath};

impl Rule {
    /// Whether it asks about all that a yes to `prefix` is for. A wider yes was one to something else.
    pub fn asks_of(&self, prefix: &str) -> bool {
        let leads = |it: &Vec<String>| {
            let mut words = prefix.split(' ');
            it.iter().all(|it| words.next() == Some(it))
        };
        match &self.matcher {
            Matcher::Prefixes(list) => list.iter().any(leads),
            Matcher::Command(it) => it.is_match(prefix),
            _ => !self.is_specific(),
        }
    }

    /// Whether what a yes for ever says is under this rule, which asks: else it is for something else.
    fn asks_of_saved(&self, saved: &Self, spelling: &Spelling) -> bool {
        match &saved.matcher {
            Matcher::Prefixes(list) => {
                let hits = |it: &&Vec<String>| prefixes::is_led(spelling.command, it.iter());
                list.iter().filter(hits).any(|it| self.asks_of(&it.join(" ")))
            }
            _ => !self.is_specific(),
        }
    }

    /// Whether a yes for ever gives way to it: to what people deny, and to a question that the yes was none to.
    pub fn is_before(&self, saved: &Self, spelling: Option<&Spelling>) -> bool {
        match self.decision {
            _ if self.tier == Tier::Default => false,
            Decision::Deny => true,
            Decision::Ask => !spelling.map_or(!self.is_specific(), |it| self.asks_of_saved(saved, it)),
            Decision::Allow => false,
        }
    }

    /// Whether a yes for longer would spare the next question that it asks: only then may one be given.
    pub fn is_spared_by_a_yes(&self, command: &Command) -> bool {
        let asks = |it: Vec<String>| it.iter().all(|it| self.asks_of(it));
        !self.is_specific() || prefixes::grantable(std::iter::once(command)).is_some_and(asks)
    }
}

/// Whether a command may work in other folders than the session's, which a yes of one folder is not for: a word of it
/// leads there, or is only known when it runs.
pub fn works_elsewhere(command: &Command, roots: &[AbsPath]) -> bool {
    command.args().iter().any(|it| leads_out(it, roots))
}

fn leads_out(word: &Word, roots: &[AbsPath]) -> bool {
    let outside = |it: &str| AbsPath::new(it).is_some_and(|path| !roots.iter().any(|root| path.is_within(root)));
    let absolute = |it: &str| it.find('/').and_then(|at| it.get(at..)).is_some_and(outside);
    let text = word.text.as_str();
    let value = text.split_once('=').map_or(text, |it| it.1);
    // `-C/x`: the path sticks to its option.
    let stuck = text.starts_with('-') && !text.starts_with("--") && text.find('/').is_some_and(|it| it <= 2);
    word.kind == WordKind::Expanded
        || text.starts_with('~')
        || text.split(['/', '=']).any(|it| it == "..")
        || (value.starts_with('/') || stuck) && absolute(value)
}
