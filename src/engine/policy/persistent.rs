//! Saved grants, for this session or for ever: which questions they answer. They never override a denial or an
//! administrator.

use super::{
    patterns::CommandSpelling,
    prefixes,
    rule::{ArgsMatcher, Rule, Tier},
    shell::{ShellCommand, ShellWord, WordKind},
};
use castor_base::{log::Decision, path::AbsPath};

/// Programs whose first operand says what is searched for, or what is done.
pub const PATTERN_FIRST: &[&str] = &["awk", "egrep", "fgrep", "grep", "jq", "rg", "sed"];

impl Rule {
    /// Tells whether it asks about all that a yes to `prefix` is for. A wider yes was one to something else.
    pub fn asks_about_prefix(&self, prefix: &str) -> bool {
        let leads = |it: &Vec<String>| {
            let mut words = prefix.split(' ');
            it.iter().all(|it| words.next() == Some(it))
        };
        match &self.matcher {
            ArgsMatcher::Prefixes(list) => list.iter().any(leads),
            ArgsMatcher::Command(it) => it.is_match(prefix),
            _ => !self.is_specific(),
        }
    }

    /// Tells whether what a yes for ever says is under this rule, which asks: else it is for something else.
    fn asks_of_saved(&self, saved: &Self, spelling: &CommandSpelling) -> bool {
        match &saved.matcher {
            ArgsMatcher::Prefixes(list) => {
                let hits = |it: &&Vec<String>| prefixes::starts_with_words(spelling.command, it.iter());
                list.iter().filter(hits).any(|it| self.asks_about_prefix(&it.join(" ")))
            }
            _ => !self.is_specific(),
        }
    }

    /// Tells whether a yes for ever gives way to it: to what people deny, and to a question that the yes was none to.
    pub fn outranks_saved(&self, saved: &Self, spelling: Option<&CommandSpelling>) -> bool {
        match self.decision {
            _ if self.tier == Tier::Default => false,
            Decision::Deny => true,
            Decision::Ask => !spelling.map_or(!self.is_specific(), |it| self.asks_of_saved(saved, it)),
            Decision::Allow => false,
        }
    }

    /// Tells whether a yes for longer would spare the next question that it asks: only then may one be given.
    pub fn allows_grant(&self, command: &ShellCommand) -> bool {
        let asks = |it: Vec<String>| it.iter().all(|it| self.asks_about_prefix(it));
        !self.is_specific() || prefixes::grantable_prefixes(std::iter::once(command)).is_some_and(asks)
    }
}

/// Tells whether a command may work in other folders than the session's, which a yes of one folder is not for: a word
/// of it leads there, or is only known when it runs.
pub fn works_elsewhere(command: &ShellCommand, roots: &[AbsPath]) -> bool {
    command.args().iter().any(|it| leads_out(it, roots))
}

/// Tells whether a word of it plainly names a place outside of the session's folders: what only looks is not asked
/// about in them.
pub fn names_outside(command: &ShellCommand, roots: &[AbsPath]) -> bool {
    let searches = command.program().is_some_and(|it| PATTERN_FIRST.contains(&it));
    let is_operand = |it: &&ShellWord| !it.text.starts_with('-');
    let pattern = command.args().iter().find(is_operand).filter(|_| searches);
    let named = command.args().iter().filter(|it| it.kind != WordKind::Expanded && it.text != "/dev/null");
    named.filter(|it| !pattern.is_some_and(|no| std::ptr::eq(*it, no))).any(|it| leads_out(it, roots))
}

fn leads_out(word: &ShellWord, roots: &[AbsPath]) -> bool {
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
