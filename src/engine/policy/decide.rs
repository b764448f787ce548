//! The policy decision: allow, ask or deny a tool call, in nine steps.

use super::{
    checkers::{self, DueChecker},
    command, guards,
    names::current_name,
    parts, plans,
    query::{Annotations, CallOrigin, Query},
    rule::{Rule, Tier},
    rules::RuleSet,
    verdict::{PartialVerdict, Verdict},
};
use castor_base::{
    log::{Decision, Grant},
    tool::{Access, ToolKind},
};

/// The rule that allows writing temporary files.
const TEMPORARY_RULE: &str = "the session's own folder for temporary files";

/// Decides whether the call may run. Nothing else in castor does.
///
/// In this order:
/// 1. A deny rule: deny, in every mode. Of a shell command each part counts, also those within substitutions and behind
///    wrappers; what a rule that denies may mean, and only the shell knows, is asked about, and denied in yolo.
/// 2. What the sandbox masks or holds, and trust: that is decided where the command runs.
/// 3. A plain word that names a secret file, and file tools on guarded names or what is held from commands: ask, in every mode.
///    An address, where commands could read secrets, and neither a rule of the user's nor a yes to its host allows it: ask.
/// 4. A row of `danger.toml`: ask, unless a rule of the user's names that prefix.
/// 5. An opaque line while any deny rule for commands exists: ask; in yolo and where nobody can be asked, deny.
/// 6. The user's allow and ask rules, then grants.
/// 7. It only looks (a plain line, all of it in `safe.toml`, nothing written, nothing that starts what a folder names that
///    nobody trusts): allow.
/// 8. The mode's row, which is castor's own rules; files in the session's own `/tmp` are written in every mode but plan;
///    `auto` asks where a command is not confined or cannot be undone.
/// 9. What is left to ask is denied where nobody can be asked.
///
/// The files of a patch are decided about one by one, as calls of the tools that do the same; the strictest verdict counts.
///
/// Of rules the first by tier and priority wins. What a server that is not trusted says of its tool counts where it makes
/// the decision stricter, and not else. In plan mode a rule of the user's that does not name the mode makes nothing milder.
/// What is not denied by then is heard on by the safety checkers that speak of it; none of them allows.
pub fn decide(rules: &RuleSet, query: &Query) -> Verdict {
    checkers::apply_verdicts(rules, query, decide_by_rules(rules, query))
}

/// The next safety checker that has to be heard before the call can be decided on.
pub fn next_checker<'a>(rules: &'a RuleSet, query: &Query) -> Option<DueChecker<'a>> {
    checkers::next(rules, query, || decide_by_rules(rules, query).decision)
}

/// Decides by the rules alone.
pub fn decide_by_rules(rules: &RuleSet, query: &Query) -> Verdict {
    let verdict = decide_unchecked(rules, query);
    if query.origin.annotations.is_none_or(|it: Annotations| it.trusted) {
        return verdict;
    }
    let origin = CallOrigin { annotations: None, ..query.origin };
    let unsaid = decide_unchecked(rules, &Query { origin, ..*query });
    if unsaid.decision > verdict.decision { unsaid } else { verdict }
}

fn decide_unchecked(rules: &RuleSet, query: &Query) -> Verdict {
    match query.command() {
        _ if !query.targets.parts.is_empty() => parts::decide(query, |part| decide_unchecked(rules, part)),
        Some(text) => command::decide(rules, query, text),
        None => {
            let (verdict, grant) = tool_verdict(rules, query);
            Verdict::of(query, verdict, grant)
        }
    }
}

fn tool_verdict(rules: &RuleSet, query: &Query) -> (PartialVerdict, Option<Grant>) {
    // Steps 1, 6 and 8: the first rule that speaks of the call; castor's own come last.
    let mut speaking = rules.iter().filter(|it| it.applies(query) && it.matches(query));
    let first = speaking.next().map(|it| match it.is_saved() {
        true => speaking.clone().find(|it| !it.is_saved()).filter(|next| next.outranks_saved(it, None)).unwrap_or(it),
        false => it,
    });
    let broken = first.filter(|it| it.is_broken());
    let rule = if broken.is_some() { speaking.find(|it| !it.is_broken()) } else { first };
    let verdict = rule.map_or_else(|| PartialVerdict::unmatched(query), |it| PartialVerdict::of(it, query));
    let verdict = match broken {
        Some(it) if verdict.decision == Decision::Allow => PartialVerdict::of(it, query),
        _ => verdict,
    };
    let shipped = || rules.iter().find(|it| it.tier == Tier::Default && it.applies(query) && it.matches(query));
    let verdict = plans::restrict_in_plan(query, verdict, rule, shipped());
    // Step 8. Nobody else sees what lies there, and it goes with the session.
    let verdict = match verdict.is_ordinary_question() && query.writes_temporary_only() {
        true => PartialVerdict::new(Decision::Allow, TEMPORARY_RULE),
        false => verdict,
    };
    // Nobody knows whether a yes to a tool is to just what a rule says of its arguments.
    let specific = verdict.decision == Decision::Ask && rule.is_some_and(Rule::is_specific);
    // Step 3, which no rule but one that names the file makes milder.
    let question = match verdict.decision {
        Decision::Deny => return (verdict, None),
        Decision::Ask => Some(verdict.clone().or_ask(guards::ask_about_paths(query, rule))),
        Decision::Allow => guards::ask_about_paths(query, rule),
    };
    // Step 6, its grants.
    let is_granted = query.grants.iter().any(|it| grant_covers(it, query));
    let Some(question) = question else {
        return (PartialVerdict { by_mode: verdict.by_mode && !is_granted, ..verdict }, None);
    };
    let firm = question.asks_every_time || specific;
    match !firm && is_granted {
        true => (PartialVerdict::new(Decision::Allow, command::SESSION_GRANT_RULE), None),
        false => (question, grant_offer(query).filter(|_| !firm)),
    }
}

/// Tells whether a longer grant covers the call; those for commands are looked at with their parts.
fn grant_covers(grant: &Grant, query: &Query) -> bool {
    let guarded = query.targets.paths.iter().any(|it| guards::guard_of_target(it).is_some());
    let is_for = |tool: &str| current_name(tool) == current_name(query.tool);
    match grant {
        _ if guarded => false,
        Grant::Tool { tool } => query.command().is_none() && query.targets.hosts.is_empty() && is_for(tool),
        Grant::Hosts { tool, hosts } => query.targets.asks_only(hosts) && is_for(tool),
        Grant::Edits => is_plain_edit(query),
        Grant::File { tool, path } => {
            let mut written = query.targets.paths.iter().filter(|it| it.access == Access::Write);
            is_plain_edit(query) && is_for(tool) && written.all(|it| it.real == *path)
        }
        // Of a server's tool, who knows the tools made a plain yes, or left it out.
        _ => false,
    }
}

fn is_plain_edit(query: &Query) -> bool {
    let paths = &query.targets.paths;
    query.kind == ToolKind::Edit
        && paths.iter().any(|it| it.access == Access::Write)
        && paths.iter().all(|it| it.in_roots)
}

/// The grant that "allow for this session" would mean; none where it would not spare the next question.
fn grant_offer(query: &Query) -> Option<Grant> {
    let is_edit = query.kind == ToolKind::Edit;
    let grant = if is_edit { Grant::Edits } else { Grant::for_tool(query.tool, &query.targets.hosts) };
    grant_covers(&grant, query).then_some(grant)
}
