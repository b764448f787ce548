//! What every mode asks about in one command: that it destroys, that it reads secrets or writes what is obeyed, that a
//! sandbox would hold it.

use super::{
    decide::Opinion,
    destroy::{self, Signs},
    git_settings::Held,
    paths::Guard,
    shell::{Command, Script},
};
use crate::base::log::Decision;

/// Of arithmetic: `a[$(rm x)]` in a variable is run by `$((a))`.
const COUNTED: &str = "it counts with text that may have commands in it, as it is read or printed only when it runs";

/// What was found in a command, whatever rules say of it.
pub(super) struct Reasons {
    pub destroys: Option<Signs>,
    /// It is in no table, and looks as if; nobody looked where it destroys.
    pub looks: Option<Signs>,
    pub guard: Option<Guard>,
    /// What it would have git write though a sandbox holds it.
    pub held: Option<Held>,
}

impl Reasons {
    pub const fn is_any(&self) -> bool {
        self.destroys.is_some() || self.looks.is_some() || self.guard.is_some() || self.held.is_some()
    }

    /// What even an allowed command is asked about, but for what a rule names.
    pub fn question(&self, command: &Command, script: &Script, named: &dyn Fn(&Signs) -> bool) -> Option<Opinion> {
        let in_words = |it: &Signs| match script.evaluated.lists(command) {
            true => format!("{COUNTED}: {}", command.text),
            false => format!("destructive: {it}"),
        };
        // Where a rule names the one, the other may still be said.
        let other = || self.destroys.as_ref().and_then(|_| destroy::looks(command, script));
        let looks = || self.looks.clone().or_else(other).filter(|it| !named(it));
        let destroys = self.destroys.as_ref().filter(|it| !named(it)).map(in_words);
        let destroys = destroys.or_else(|| Some(format!("destructive: {} looks as if it deletes", looks()?)));
        let destroys = destroys.map(|it| Opinion::new(Decision::Ask, it));
        let guard = || self.guard.as_ref().filter(|it| !named(&it.signs()));
        let reason = destroys.or_else(|| guard().map(Opinion::guarded));
        match (reason, &self.held) {
            (Some(it), Some(held)) => Some(held.beside(it)),
            (None, Some(held)) if !named(&held.signs) => Some(held.question()),
            (it, _) => it,
        }
    }
}
