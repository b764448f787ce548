//! Hooks: which of them fire at a point, and how their answers combine. The world runs them.

mod answer;
pub mod firing;
pub mod llm;
mod matcher;
mod outcome;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use matcher::HookMatcher;
pub use outcome::{HookNotice, HookOutcome, HookVerdict};

use castor_base::{
    hook::{Hook, HookEvent, HookSwitch},
    patch::{APPLY_PATCH, PATCH_TOOLS},
};

/// Longest text of a hook that a user is shown, or that ends a call or a turn, in bytes.
pub const MAX_USER_TEXT: usize = 4 * 1024;
/// Longest text of a hook that goes to the model, in bytes.
pub const MAX_CONTEXT: usize = 64 * 1024;

/// Hooks switched on or off in a session, by key.
pub type Switches = BTreeMap<String, HookSwitch>;

/// The hooks of a session: an immutable snapshot.
#[derive(Clone, Debug, Default)]
pub struct Hooks {
    rows: Arc<[HookRow]>,
    /// Keys that settings switch off.
    disabled: Arc<BTreeSet<String>>,
}

#[derive(Clone, Debug)]
struct HookRow {
    hook: Arc<Hook>,
    matcher: HookMatcher,
}

/// The hooks that fire at a point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FiringPlan {
    pub hooks: Vec<Arc<Hook>>,
    /// Those that only listen.
    pub observers: Vec<Arc<Hook>>,
    pub sequential: bool,
    /// Keys of those that would, but did not answer in time once.
    pub timed_out: Vec<String>,
}

impl Hooks {
    /// Hooks in the order in which they run.
    pub fn new(hooks: Vec<Hook>, disabled: BTreeSet<String>) -> Self {
        let row = |it: Hook| HookRow { matcher: HookMatcher::new(it.event, it.matcher.as_deref()), hook: Arc::new(it) };
        Self { rows: hooks.into_iter().map(row).collect(), disabled: Arc::new(disabled) }
    }

    /// The same with what the client wants to hear of. It is asked first.
    pub fn with_interceptors(self, interceptors: &[Hook]) -> Self {
        let own = self.rows.iter().cloned();
        let rows = Self::new(interceptors.to_vec(), BTreeSet::new()).rows.iter().cloned().chain(own).collect();
        Self { rows, ..self }
    }

    /// All but those about sessions and prompts of the user: a sub-agent has neither.
    pub fn for_agent(&self) -> Self {
        use HookEvent::{AfterAgent, AfterRun, BeforeAgent, BeforeRun, OnUserMessage, SessionEnd, SessionStart};
        let is_kept = |it: &&HookRow| {
            let is_of_turn = matches!(it.hook.event, OnUserMessage | BeforeRun | BeforeAgent | AfterAgent | AfterRun);
            !is_of_turn && !matches!(it.hook.event, SessionStart | SessionEnd)
        };
        Self { rows: self.rows.iter().filter(is_kept).cloned().collect(), ..self.clone() }
    }

    /// The hooks of the client alone: they start nothing.
    pub fn of_client(&self) -> Self {
        let rows = self.rows.iter().filter(|it| it.hook.is_of_client()).cloned().collect();
        Self { rows, ..self.clone() }
    }

    /// Tells that the settings have no hooks.
    pub fn is_empty(&self) -> bool {
        self.rows.iter().all(|it| it.hook.is_of_client())
    }

    pub fn all(&self) -> impl Iterator<Item = &Hook> {
        self.rows.iter().map(|it| &*it.hook)
    }

    /// Checks that it runs; the error is the setting that turns it off.
    pub fn check_enabled(&self, key: &str, switches: &Switches) -> Result<(), &'static str> {
        match switches.get(key) {
            Some(HookSwitch::On) => Ok(()),
            Some(HookSwitch::Off) => Err("off in this session"),
            Some(HookSwitch::Hung) => Err("off in this session: it did not answer in time"),
            None if self.disabled.contains(key) => Err("off by hooksConfig.disabled"),
            None => Ok(()),
        }
    }

    /// The hooks that fire now. `subject`: the tool's name, or the trigger of the event.
    pub fn plan(&self, event: HookEvent, subject: &str, switches: &Switches) -> FiringPlan {
        self.plan_of(event, switches, |it| it.fits(subject))
    }

    /// The hooks that fire for each file of a patch: those that name a tool for single files, and not the patch itself.
    pub fn plan_for_file(&self, event: HookEvent, switches: &Switches) -> FiringPlan {
        let names_file_tool = |it: &HookMatcher| PATCH_TOOLS.iter().any(|tool| it.fits(tool)) || it.fits("edit");
        self.plan_of(event, switches, |it| !it.fits(APPLY_PATCH) && names_file_tool(it))
    }

    fn plan_of(&self, event: HookEvent, switches: &Switches, fits: impl Fn(&HookMatcher) -> bool) -> FiringPlan {
        let (mut res, mut seen) = (FiringPlan::default(), BTreeSet::new());
        for HookRow { hook, matcher } in self.rows.iter().filter(|it| it.hook.event == event) {
            let key = hook.key();
            if !fits(matcher) || !seen.insert((&hook.name, &hook.command)) {
                continue;
            }
            // Of a guard that does not answer, which might have asked, somebody has to know each time.
            let is_switched = !hook.is_of_client();
            if is_switched && event.row().powers.ask && switches.get(key) == Some(&HookSwitch::Hung) {
                res.timed_out.push(key.to_owned());
            } else if is_switched && self.check_enabled(key, switches).is_err() {
                continue;
            } else if hook.observes {
                res.observers.push(hook.clone());
            } else {
                res.sequential |= hook.sequential;
                res.hooks.push(hook.clone());
            }
        }
        res
    }

    /// Tells whether anything would fire.
    pub fn has(&self, event: HookEvent, subject: &str, switches: &Switches) -> bool {
        let plan = self.plan(event, subject, switches);
        !plan.hooks.is_empty() || !plan.observers.is_empty() || !plan.timed_out.is_empty()
    }
}

#[cfg(test)]
mod tests;
