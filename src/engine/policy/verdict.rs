//! Policy verdicts: partial ones on the way, and the final allow, ask or deny.

use super::{
    query::Query,
    rule::{Rule, Tier},
};
use castor_base::{
    check::Denier,
    log::{Decision, Grant, Mode},
    path::AbsPath,
    sandbox::SandboxGrant,
    text,
};

/// Longest reason that a question shows, in characters.
const MAX_WHY: usize = 300;

/// The decision and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub decision: Decision,
    /// The rule that decided, with its source: `default/write.toml: run_shell_command`.
    pub rule: String,
    /// For the model, when denied by a rule that says why.
    pub deny_message: Option<String>,
    /// The author of a denial.
    pub denier: Denier,
    /// The finding of a safety checker that wants the question: for user and model.
    pub reason: Option<String>,
    /// The reason for the question in a line, where that is more than the mode's own way: for the user.
    pub why: Option<String>,
    /// The command only looks: it runs with everything read-only.
    pub read_only: bool,
    /// It has the network, as its mode says.
    pub network: bool,
    /// Configuration that a yes lets it write, as the question names it.
    pub writes: Vec<AbsPath>,
    pub basis: VerdictBasis,
    /// The question may be answered with the mode `auto`.
    pub offers_auto: bool,
    /// The grant that "allow for this session" would make; `None`: it is not available.
    pub grant: Option<Grant>,
}

/// The basis of a verdict, where that matters later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VerdictBasis {
    #[default]
    Rules,
    /// The mode's row allows it, or a part of it, and no rule of people's and no yes of theirs.
    Mode,
    /// A question that only the user answers, each time.
    Guard,
}

impl Verdict {
    /// Step 2: the sandbox grant that it gives the call, with its restrictions. What the sandbox masks or holds, and what a
    /// folder may do that nobody trusts, is decided where the command runs.
    pub fn sandbox_grant(&self) -> SandboxGrant {
        SandboxGrant {
            network_by_mode: self.network,
            read_only: self.read_only,
            named_config: self.writes.clone(),
            ..SandboxGrant::default()
        }
    }

    pub fn denied(denier: Denier, rule: String, message: String) -> Self {
        Self { deny_message: Some(message), denier, ..Self::new(Decision::Deny, rule) }
    }

    fn new(decision: Decision, rule: String) -> Self {
        Self { decision, rule, ..Self::default() }
    }

    /// Step 9: what is left to ask is denied where nobody can be asked.
    pub fn of(query: &Query, part: PartialVerdict, grant: Option<Grant>) -> Self {
        let asks = part.decision == Decision::Ask;
        if asks && !query.interactive {
            let message = unasked_denial(&part.rule);
            return Self::denied(Denier::Nobody, part.rule, message);
        }
        let in_a_line = |it: String| text::first_line(&it.split_whitespace().collect::<Vec<_>>().join(" "), MAX_WHY);
        Self {
            deny_message: part.deny_message,
            denier: part.denier,
            why: part.why.filter(|_| asks).map(in_a_line),
            grant: grant.filter(|_| asks),
            basis: match part.decision {
                Decision::Allow if part.by_mode => VerdictBasis::Mode,
                Decision::Ask if part.asks_every_time => VerdictBasis::Guard,
                _ => VerdictBasis::Rules,
            },
            ..Self::new(part.decision, part.rule)
        }
    }
}

pub fn unasked_denial(why: &str) -> String {
    format!("This needs an approval ({why}), and nobody can be asked in this session.")
}

/// A decision on its way, with its reason.
#[derive(Clone, Debug)]
pub struct PartialVerdict {
    pub decision: Decision,
    pub rule: String,
    pub deny_message: Option<String>,
    pub denier: Denier,
    /// Output may go to files.
    pub allows_redirection: bool,
    /// No yes for longer spares it.
    pub asks_every_time: bool,
    /// castor's own rules say so, for the mode.
    pub by_mode: bool,
    /// The reason for the question; `None`: the mode asks for all such calls.
    pub why: Option<String>,
}

impl PartialVerdict {
    /// A verdict of no rule: a reason of its own decides.
    pub fn new(decision: Decision, rule: impl Into<String>) -> Self {
        let rule = rule.into();
        let why = (decision == Decision::Ask).then(|| rule.clone());
        Self {
            decision,
            rule,
            deny_message: None,
            denier: Denier::Rule,
            allows_redirection: false,
            asks_every_time: false,
            by_mode: false,
            why,
        }
    }

    /// A question that no yes for longer spares.
    pub fn ask(why: impl Into<String>) -> Self {
        Self { asks_every_time: true, ..Self::new(Decision::Ask, why) }
    }

    pub fn of(rule: &Rule, query: &Query) -> Self {
        let name = rule.name(query.tool);
        let of_people = rule.decision == Decision::Ask && rule.tier > Tier::Default;
        Self {
            decision: rule.decision,
            why: of_people.then(|| format!("a rule asks: {name}")),
            rule: name,
            deny_message: rule.deny_message.clone().filter(|_| rule.decision == Decision::Deny),
            denier: if rule.tier == Tier::Default { Denier::Mode } else { Denier::Rule },
            allows_redirection: rule.allows.redirection,
            asks_every_time: rule.asks_every_time(),
            by_mode: rule.tier == Tier::Default,
        }
    }

    /// No rule speaks of it.
    pub fn unmatched(query: &Query) -> Self {
        match (query.mode, query.interactive) {
            (Mode::Yolo, _) => Self { allows_redirection: true, ..Self::new(Decision::Allow, "yolo mode") },
            (_, true) => Self { why: None, ..Self::new(Decision::Ask, "no rule") },
            (_, false) => Self {
                deny_message: Some(unasked_denial("no rule speaks of it")),
                denier: Denier::Nobody,
                ..Self::new(Decision::Deny, "no rule allows it")
            },
        }
    }

    /// Tells whether only the mode's own way asks.
    pub fn is_ordinary_question(&self) -> bool {
        self.decision == Decision::Ask && self.why.is_none()
    }

    /// The question in place of a yes; beside a question of the mode's own its reason is shown.
    pub fn or_ask(self, question: Option<Self>) -> Self {
        match question {
            Some(it) if self.decision == Decision::Allow => it,
            Some(it) if self.is_ordinary_question() => {
                Self { why: it.why, asks_every_time: self.asks_every_time || it.asks_every_time, ..self }
            }
            _ => self,
        }
    }
}
