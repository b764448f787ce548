//! May this call run? One pure function over rules, call, mode and the facts about its targets.

mod ansi;
mod checked_out;
mod checkers;
mod command;
mod danger;
mod decide;
mod derived;
mod destroy;
mod git_settings;
mod glued;
mod keys;
mod languages;
mod lasting;
mod leads;
mod load;
mod made;
mod names;
mod network;
mod outside;
mod paths;
mod pieces;
mod places;
mod plans;
mod prefixes;
mod public_keys;
mod readers;
mod reasons;
mod reworks;
pub mod rules;
mod safe;
mod senders;
pub mod shell;
mod shown;
mod standing;
#[cfg(test)]
mod tests;
mod vaults;

use serde_json::Value;

pub use checkers::{Checker, Heard, unheard};
pub use decide::{decide, explain};
pub use derived::Lists;
pub use lasting::{kept, kept_in_words, lasting, lasting_here, lasting_in_words, leave, may_be_kept};
pub use leads::{leads_in_words, real_places, words};
pub use names::{current_name, hidden};
pub use network::done_before;
pub use prefixes::command_prefixes;
pub use reworks::half_done;
pub use rules::{Rule, Rules, Tier, Written};

use crate::base::{
    log::{Decision, Grant, Mode},
    path::AbsPath,
    sandbox::Leave,
    tool::{Targets, ToolKind},
};

/// What policy is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    pub tool: &'a str,
    pub kind: ToolKind,
    pub args: &'a Value,
    pub targets: &'a Targets,
    pub mode: Mode,
    /// Whether somebody can be asked.
    pub interactive: bool,
    /// What the user allowed for this session.
    pub grants: &'a [Grant],
    /// The folders of the session, canonical.
    pub roots: &'a [AbsPath],
    /// The MCP server that the tool comes from, as the configuration names it.
    pub server: Option<&'a str>,
    pub annotations: Option<Annotations<'a>>,
    /// Of what a server says of its tool, all of it.
    pub digest: Option<&'a str>,
    /// The sub-agent that calls.
    pub subagent: Option<&'a str>,
    /// What safety checkers said of it.
    pub heard: &'a [Heard],
    /// The session's folder of plans, canonical.
    pub plans: Option<&'a AbsPath>,
}

impl<'a> Query<'a> {
    /// A call of a tool of castor's own in the default mode, of a session that allowed nothing.
    pub fn new(tool: &'a str, kind: ToolKind, args: &'a Value, targets: &'a Targets) -> Self {
        let (mode, interactive) = (Mode::Default, true);
        let (server, annotations, digest, subagent) = (None, None, None, None);
        let (grants, roots, heard) = (&[][..], &[][..], &[][..]);
        Self {
            tool,
            kind,
            args,
            targets,
            mode,
            interactive,
            grants,
            roots,
            server,
            annotations,
            digest,
            subagent,
            heard,
            plans: None,
        }
    }
}

/// What a server says of its tool.
#[derive(Clone, Copy, Debug)]
pub struct Annotations<'a> {
    pub said: &'a Value,
    /// The user trusts the server. Else its words can make a decision stricter, never milder.
    pub believed: bool,
}

/// The decision and why: the user will ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub decision: Decision,
    /// Which rule decided, with its source: `default/write.toml: run_shell_command`.
    pub rule: String,
    /// For the model, when denied by a rule that says why.
    pub deny_message: Option<String>,
    /// What a safety checker said, where it wants the question: for user and model.
    pub reason: Option<String>,
    /// Why it is asked, where that is more than the mode's own way, in a line: for the user.
    pub why: Option<String>,
    /// Configuration that the question names, or the rule that allows it: a yes is for writing it, too.
    pub opens: Vec<AbsPath>,
    /// Folders outside, and files that output goes to, that the same yes is for.
    pub gives: Vec<AbsPath>,
    /// So is it for the network.
    pub network: bool,
    /// The yes is for all of it without the sandbox, as the question says.
    pub unconfined: bool,
    /// What "allow for this session" would grant; `None`: it is not on offer.
    pub grant: Option<Grant>,
}

impl Verdict {
    /// What a yes, or the rule that allows it, is for beyond the sandbox.
    pub fn leave(&self) -> Leave {
        let (config, write) = (self.opens.clone(), self.gives.clone());
        Leave { config, write, network: self.network, unconfined: self.unconfined, ..Leave::default() }
    }

    fn denied(rule: String, message: String) -> Self {
        let (reason, why, opens, gives, grant) = (None, None, Vec::new(), Vec::new(), None);
        let deny_message = Some(message);
        let (network, unconfined) = (false, false);
        Self { decision: Decision::Deny, rule, deny_message, reason, why, opens, gives, network, unconfined, grant }
    }
}

/// The rules' verdict, with what was thought of each part of a shell command, and who would be heard besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub verdict: Verdict,
    pub parts: Vec<PartVerdict>,
    /// Safety checkers, as people see them.
    pub checkers: Vec<String>,
}

/// One command of many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartVerdict {
    pub text: String,
    pub decision: Decision,
    pub rule: String,
    /// As in [`Verdict::why`].
    pub why: Option<String>,
}
