//! The one decision.

use super::{
    Checker, Explanation, Query, Verdict, checkers, command,
    names::current_name,
    paths, plans,
    rules::{Rule, Rules, Tier},
};
use crate::base::{
    log::{Decision, Grant, Mode},
    path::AbsPath,
    text,
    tool::{Access, TargetPath, ToolKind},
};

/// Longest reason that a question shows, in characters.
pub(super) const MAX_WHY: usize = 300;

/// A decision on its way, with its reason.
#[derive(Clone, Debug)]
pub(super) struct Opinion {
    pub decision: Decision,
    pub rule: String,
    pub deny_message: Option<String>,
    pub allow_redirection: bool,
    /// A rule with a matcher of its own decided.
    pub specific: bool,
    /// No standing yes spares it.
    pub firm: bool,
    /// Of the rule, if one decided.
    pub tier: Option<Tier>,
    /// Why it is asked; `None`: because the mode asks for all such calls.
    pub why: Option<String>,
    /// Configuration that the reason names, or the rule, where it is.
    pub opens: Vec<AbsPath>,
    /// Folders outside that a yes, or the rule, is for, and files that output goes to.
    pub gives: Vec<AbsPath>,
    /// A yes is for all of it without the sandbox.
    pub unconfined: bool,
}

impl Opinion {
    /// Of no rule: what decides is a reason of its own.
    pub fn new(decision: Decision, rule: impl Into<String>) -> Self {
        let rule = rule.into();
        let why = (decision == Decision::Ask).then(|| rule.clone());
        let (deny_message, tier, opens, gives) = (None, None, Vec::new(), Vec::new());
        Self {
            decision,
            rule,
            deny_message,
            allow_redirection: false,
            specific: false,
            firm: false,
            tier,
            why,
            opens,
            gives,
            unconfined: false,
        }
    }

    /// A question about something guarded.
    pub fn guarded(guard: &paths::Guard) -> Self {
        Self { opens: guard.places.clone(), ..Self::new(Decision::Ask, guard.to_string()) }
    }

    pub fn of(rule: &Rule, query: &Query) -> Self {
        let name = rule.name(query.tool);
        let of_people = rule.decision == Decision::Ask && rule.tier > Tier::Default;
        Self {
            decision: rule.decision,
            why: of_people.then(|| format!("a rule asks: {name}")),
            opens: Vec::new(),
            gives: Vec::new(),
            unconfined: false,
            rule: name,
            deny_message: rule.deny_message.clone().filter(|_| rule.decision == Decision::Deny),
            allow_redirection: rule.allow_redirection,
            specific: rule.is_specific(),
            firm: rule.stands_above(),
            tier: Some(rule.tier),
        }
    }

    /// No rule speaks of it.
    pub fn unmatched(query: &Query) -> Self {
        match (query.mode, query.interactive) {
            (Mode::Yolo, _) => Self::new(Decision::Allow, "yolo mode"),
            (_, true) => Self { why: None, ..Self::new(Decision::Ask, "no rule") },
            (_, false) => Self {
                deny_message: Some(unasked("no rule speaks of it")),
                ..Self::new(Decision::Deny, "no rule, and nobody can be asked")
            },
        }
    }

    /// Whether only the mode's own way asks.
    pub fn is_ordinary_question(&self) -> bool {
        self.decision == Decision::Ask && self.why.is_none()
    }

    /// One yes is for both questions, as long as both are shown: what is half done cannot be asked about again.
    pub fn take(&mut self, other: Self) {
        let more: Vec<AbsPath> = other.opens.into_iter().filter(|it| !self.opens.contains(it)).collect();
        let gives: Vec<AbsPath> = other.gives.into_iter().filter(|it| !self.gives.contains(it)).collect();
        let (Some(one), Some(another)) = (&self.why, other.why) else { return };
        let why = if *one == another { another } else { format!("{one}; {another}") };
        let nothing = more.is_empty() && gives.is_empty() && self.unconfined >= other.unconfined;
        if nothing || why.chars().count() > MAX_WHY {
            return;
        }
        self.why = Some(why);
        self.opens.extend(more);
        self.gives.extend(gives);
        self.unconfined |= other.unconfined;
    }

    /// The same question, and another one that would be asked beside it.
    pub fn beside(mut self, other: Option<Self>) -> Self {
        match other {
            Some(it) if !self.is_ordinary_question() => {
                self.take(it);
                self
            }
            other => self.because(other),
        }
    }

    /// The same question, with the reason of another one that would be asked in its place.
    pub fn because(self, other: Option<Self>) -> Self {
        match other {
            Some(it) if self.is_ordinary_question() => {
                Self { why: it.why, opens: it.opens, gives: it.gives, unconfined: it.unconfined, ..self }
            }
            _ => self,
        }
    }
}

/// Decides whether the call may run. Nothing else in castor does.
///
/// Precedence:
/// 1. The first rule, by tier and priority, that matches tool, mode, interactivity and arguments; of a shell command
///    every part is matched on its own, also those inside substitutions and behind wrappers.
/// 2. No rule: yolo allows, else ask; deny when nobody can be asked.
/// 3. A shell command that cannot be read is never allowed by what it seems to say: ask; in yolo, deny when any
///    rule denies some commands, ask when something destructive could hide in it.
/// 4. Of a shell command's parts the worst decides: deny, ask, allow. A part that a restricting rule may mean
///    counts as asked about, in yolo as that rule says.
/// 5. Known-safe commands turn the shipped rules' ask into allow, in plan mode and where nobody can be asked their deny,
///    too. Standing yeses, of the session and for ever, turn ask into allow, also a rule's of the user or below where it
///    asks about all that the yes is for. Neither touches a deny.
/// 6. Outside yolo, allow becomes ask for dangerous commands, redirections to files, and paths outside the roots.
/// 7. In every mode, allow becomes ask for what cannot be taken back (see `destroy`), for files of secrets, and for
///    writes to configuration that castor, editors, shells or git obey (see `paths`), or that a sandbox holds (see
///    `git_settings` and `reworks`), unless a rule of the user or above names just that. Standing yeses do not.
///    In yolo the same holds for tools and redirections that write outside the roots; for these any rule will do that
///    says more than the tool's name.
/// 8. What is left to ask is denied when nobody can be asked. Where somebody can, what would be kept from the network
///    half-way is asked about, in the same question (see `network`).
/// 9. What a server that is not trusted says of its tool counts where it makes the decision stricter, and not else.
/// 10. In plan mode a rule of the user or above that does not name the mode makes nothing milder than the shipped rules:
///     known-safe commands, and files in the folder of plans. One that asks is heard on the former, too.
/// 11. What is not denied by then is heard on by the safety checkers that speak of it, by tier and priority: one that
///     denies, was not asked or failed denies; one that asks is asked about, whatever was allowed; none allows.
pub fn decide(rules: &Rules, query: &Query) -> Verdict {
    checkers::heard_out(rules, query, ruled(rules, query))
}

/// What the rules say by themselves.
pub(super) fn ruled(rules: &Rules, query: &Query) -> Verdict {
    let verdict = decide_as_said(rules, query);
    if query.annotations.is_none_or(|it| it.believed) {
        return verdict;
    }
    let unsaid = decide_as_said(rules, &Query { annotations: None, ..*query });
    if unsaid.decision > verdict.decision { unsaid } else { verdict }
}

fn decide_as_said(rules: &Rules, query: &Query) -> Verdict {
    match command::command_of(query) {
        Some(text) => command::decide(rules, query, text),
        None => {
            let (opinion, grant) = call(rules, query);
            verdict(query, opinion, grant)
        }
    }
}

/// The rules' decision with its parts, for people who ask why. Nobody else is heard.
pub fn explain(rules: &Rules, query: &Query) -> Explanation {
    let verdict = ruled(rules, query);
    let parts = match command::command_of(query) {
        Some(Ok(text)) => command::parts(rules, query, text),
        _ => Vec::new(),
    };
    let checkers = match verdict.decision {
        Decision::Deny => Vec::new(),
        _ => rules.checkers().iter().filter(|it| it.speaks_of(query)).map(Checker::shown).collect(),
    };
    Explanation { verdict, parts, checkers }
}

pub(super) fn unasked(why: &str) -> String {
    format!("This needs somebody's approval ({why}), and nobody can be asked in this session.")
}

/// Step 8.
pub(super) fn verdict(query: &Query, opinion: Opinion, grant: Option<Grant>) -> Verdict {
    if opinion.decision == Decision::Ask && !query.interactive {
        let message = unasked(&opinion.rule);
        return Verdict::denied(opinion.rule, message);
    }
    let asks = opinion.decision == Decision::Ask;
    let in_a_line = |it: String| text::first_line(&it.split_whitespace().collect::<Vec<_>>().join(" "), MAX_WHY);
    // What cannot be read in the question no yes is for, nor a rule.
    let is_said = opinion.why.as_ref().is_some_and(|it| it.chars().count() <= MAX_WHY);
    Verdict {
        decision: opinion.decision,
        rule: opinion.rule,
        deny_message: opinion.deny_message,
        reason: None,
        why: opinion.why.filter(|_| asks).map(in_a_line),
        opens: opinion.opens,
        gives: opinion.gives,
        network: false,
        unconfined: opinion.unconfined && asks && is_said,
        grant: grant.filter(|_| asks),
    }
}

fn call(rules: &Rules, query: &Query) -> (Opinion, Option<Grant>) {
    let mut speaking = rules.iter().filter(|it| it.applies(query) && it.matches(query));
    let first = speaking.next().map(|it| match it.is_saved() {
        true => speaking.clone().find(|it| !it.is_saved()).filter(|next| next.is_before(it, None)).unwrap_or(it),
        false => it,
    });
    let broken = first.filter(|it| it.is_broken());
    let rule = if broken.is_some() { speaking.find(|it| !it.is_broken()) } else { first };
    let opinion = rule.map_or_else(|| Opinion::unmatched(query), |it| Opinion::of(it, query));
    let opinion = match broken {
        Some(it) if opinion.decision == Decision::Allow => Opinion::of(it, query),
        _ => opinion,
    };
    let shipped = || rules.iter().find(|it| it.tier == Tier::Default && it.applies(query) && it.matches(query));
    let opinion = plans::held(query, opinion, rule, shipped());
    let question = match opinion.decision {
        Decision::Deny => return (opinion, None),
        Decision::Ask => Some(opinion.clone().because(question_of_paths(query, rule))),
        Decision::Allow => question_of_paths(query, rule),
    };
    let Some(question) = question else { return (opinion, None) };
    // Nobody knows whether a yes to a tool is to just what a rule says of its arguments.
    let firm = question.firm || question.specific;
    match !firm && query.grants.iter().any(|it| grants(it, query)) {
        true => (Opinion::new(Decision::Allow, GRANTED), None),
        false => (question, offer(query).filter(|_| !firm)),
    }
}

const GRANTED: &str = "allowed for this session";

/// A shell command's opinion, with what is thought of the folder it runs in.
pub(super) fn with_paths(query: &Query, opinion: Opinion) -> Opinion {
    match opinion.decision {
        Decision::Deny => opinion,
        Decision::Ask => opinion.because(question_of_paths(query, None)),
        Decision::Allow => question_of_paths(query, None).unwrap_or(opinion),
    }
}

/// Why an allowed call is worth a question, by what it touches. `rule` is the one that allows it.
fn question_of_paths(query: &Query, rule: Option<&Rule>) -> Option<Opinion> {
    // castor's own folder is guarded; this place in it is for the model.
    if rule.is_some_and(Rule::is_for_plans) {
        return None;
    }
    let paths = &query.targets.paths;
    let ask = |why: String| Some(Opinion::new(Decision::Ask, why));
    let named = |it: &paths::Guard| rule.is_some_and(|rule| it.signs().named_by(rule));
    if let Some(it) = paths.iter().filter_map(paths::guard).find(|it| !named(it)) {
        return ask(it.to_string());
    }
    let outside = |it: &&TargetPath| !it.in_roots;
    if query.mode == Mode::Yolo {
        // Reading elsewhere is what the mode is for. Who takes what a command changes for bounded by the folder is right
        // where there is a sandbox; tools write by themselves and have none.
        let writes = paths.iter().any(|it| outside(&it) && it.access == Access::Write);
        let named = rule.is_some_and(|it| it.tier >= Tier::User && it.is_specific());
        let asks = writes && !named && query.targets.command.is_none();
        return asks.then(|| ask("it writes outside the workspace".to_owned())).flatten();
    }
    if paths.iter().any(|it| outside(&it)) {
        return ask("path outside the workspace".to_owned());
    }
    // An edit of nobody knows what.
    let edits = matches!(query.kind, ToolKind::Edit | ToolKind::Delete | ToolKind::Move);
    let blind = edits && !paths.iter().any(|it| it.access == Access::Write);
    if blind { ask("it does not say which file it changes".to_owned()) } else { None }
}

/// Whether a standing yes covers the call; those for commands are looked at with their parts.
fn grants(grant: &Grant, query: &Query) -> bool {
    let guarded = query.targets.paths.iter().any(|it| paths::guard(it).is_some());
    match grant {
        _ if guarded => false,
        Grant::Tool { tool } => command::command_of(query).is_none() && current_name(tool) == current_name(query.tool),
        Grant::Edits => is_plain_edit(query),
        Grant::File { tool, path } => {
            let mut written = query.targets.paths.iter().filter(|it| it.access == Access::Write);
            is_plain_edit(query) && current_name(tool) == current_name(query.tool) && written.all(|it| it.real == *path)
        }
        // Who knows the tools made a plain yes of it, or left it out.
        Grant::Foreign { .. } => false,
        Grant::Commands { .. } | Grant::Network | Grant::NetworkFor { .. } | Grant::Write { .. } => false,
    }
}

fn is_plain_edit(query: &Query) -> bool {
    let paths = &query.targets.paths;
    query.kind == ToolKind::Edit
        && paths.iter().any(|it| it.access == Access::Write)
        && paths.iter().all(|it| it.in_roots)
}

/// What "allow for this session" would mean; nothing where it would not spare the next question.
fn offer(query: &Query) -> Option<Grant> {
    let grant = match query.kind {
        ToolKind::Edit => Grant::Edits,
        _ => Grant::Tool { tool: query.tool.to_owned() },
    };
    grants(&grant, query).then_some(grant)
}
