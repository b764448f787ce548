//! The client's own policy: it denies or asks beside castor's, and as a host it answers what castor would ask.

use crate::policy::{Query, Verdict, VerdictBasis, guard_of_target, unasked_denial};
use castor_base::{
    check::{CheckFinding, ClientPolicy, Denier},
    log::Decision,
};

const RULE: &str = "the client's policy";

/// The verdict that the client is heard about. A denial is final, but one for want of somebody to ask: there it is the
/// question that the user would get, and a host may answer that. `decide` is castor's policy.
pub fn disputed_verdict(
    query: &Query,
    client: ClientPolicy,
    own: &Verdict,
    decide: impl Fn(&Query) -> Verdict,
) -> Option<Verdict> {
    if own.decision != Decision::Deny {
        return Some(own.clone());
    }
    let is_unasked = matches!(own.denier, Denier::Nobody | Denier::Mode) && !query.interactive;
    let asked = || decide(&Query { interactive: true, ..*query });
    (is_unasked && client.may_allow).then(asked).filter(|it| it.decision == Decision::Ask)
}

/// castor's `own` verdict after the client's on `disputed`. A client that gives none denies.
pub fn apply_finding(
    query: &Query,
    (own, disputed): (Verdict, Verdict),
    said: &Result<CheckFinding, String>,
    client: ClientPolicy,
) -> Verdict {
    let finding = match said {
        Ok(it) => it,
        Err(why) => return denies(&format!("gave no verdict: {why}")),
    };
    let asks = format!("{RULE} says: {}", finding.reason);
    match finding.decision {
        Decision::Deny => denies(&format!("says: {}", finding.reason)),
        Decision::Allow if client.may_allow && may_answer(query, &disputed) => Verdict {
            decision: Decision::Allow,
            rule: RULE.to_owned(),
            reason: None,
            why: None,
            offers_auto: false,
            grant: None,
            ..disputed
        },
        Decision::Ask if own.decision == Decision::Allow && !query.interactive => {
            let message = unasked_denial(&asks);
            Verdict::denied(Denier::Nobody, asks, message)
        }
        Decision::Ask if own.decision == Decision::Allow => {
            let (rule, why, basis) = (asks.clone(), Some(asks), VerdictBasis::Guard);
            Verdict { decision: Decision::Ask, rule, why, basis, grant: None, ..own }
        }
        Decision::Allow | Decision::Ask => own,
    }
}

/// Tells whether a client may answer the question: never about what is guarded, or cannot be taken back.
fn may_answer(query: &Query, asked: &Verdict) -> bool {
    let is_guarded = query.targets.paths.iter().any(|it| guard_of_target(it).is_some());
    asked.decision == Decision::Ask && asked.basis != VerdictBasis::Guard && asked.writes.is_empty() && !is_guarded
}

fn denies(what: &str) -> Verdict {
    Verdict::denied(Denier::Client, format!("{RULE} {what}"), format!("The client's policy {what}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{apply_finding, disputed_verdict};
    use crate::policy::{Query, RuleSet, SandboxFacts, Tier, decide};
    use crate::testing::own_tools;
    use castor_base::{
        check::{CheckFinding, ClientPolicy},
        log::{Decision, Mode},
        path::AbsPath,
        tool::{Targets, ToolKind},
    };

    const OWN: &str =
        "[[rule]]\ntoolName = 'run_shell_command'\ncommandPrefix = 'deploy'\ndecision = 'deny'\npriority = 100\n";

    fn word(it: Decision) -> &'static str {
        match it {
            Decision::Allow => "allow",
            Decision::Ask => "ask",
            Decision::Deny => "deny",
        }
    }

    /// What becomes of a command: `-` where the client is not asked, else the decision after its word.
    fn decided((mode, interactive): (Mode, bool), command: &str, said: Option<Decision>, host: bool) -> String {
        let rules = RuleSet::shipped(own_tools()).with(RuleSet::parse(OWN, Tier::User, "user.toml").unwrap().0);
        let args = json!({ "command": command });
        let targets = Targets { command: Some(command.to_owned()), ..Targets::default() };
        let finding = said.map(|decision| CheckFinding { decision, reason: "so".to_owned() }).ok_or("hung".to_owned());
        let roots = [AbsPath::new("/w").unwrap()];
        let client = ClientPolicy { may_allow: host, timeout_ms: 1 };
        let call = Query::new("run_shell_command", ToolKind::Execute, &args, &targets);
        let query = Query { mode, interactive, roots: &roots, sandbox: SandboxFacts::WHOLE, ..call };
        let own = decide(&rules, &query);
        let Some(disputed) = disputed_verdict(&query, client, &own, |it| decide(&rules, it)) else {
            return format!("- {}", word(own.decision));
        };
        let verdict = apply_finding(&query, (own, disputed), &finding, client);
        format!("{} by {}", word(verdict.decision), verdict.rule)
    }

    #[test]
    fn clients_deny_always_and_allow_as_hosts() {
        let (there, nobody) = ((Mode::Default, true), (Mode::Default, false));
        let (allow, ask, deny) = (Some(Decision::Allow), Some(Decision::Ask), Some(Decision::Deny));
        for (place, command, said, host, expected) in [
            // What castor allows.
            (there, "ls", deny, false, "deny by the client's policy says: so"),
            (there, "ls", deny, true, "deny by the client's policy says: so"),
            (there, "ls", ask, false, "ask by the client's policy says: so"),
            (there, "ls", allow, true, "allow by it only looks"),
            (there, "ls", None, false, "deny by the client's policy gave no verdict: hung"),
            // What castor asks.
            (there, "npm test", allow, true, "allow by the client's policy"),
            (there, "npm test", deny, false, "deny by the client's policy says: so"),
            (there, "npm test", None, true, "deny by the client's policy gave no verdict: hung"),
            // What only the user answers: rows of danger.toml, and guarded files.
            (there, "git push --force", deny, true, "deny by the client's policy says: so"),
            // Nobody can be asked.
            (nobody, "npm test", allow, true, "allow by the client's policy"),
            (nobody, "npm test", deny, true, "deny by the client's policy says: so"),
            (nobody, "npm test", allow, false, "- deny"),
            (nobody, "ls", allow, false, "allow by it only looks"),
            // What a rule denies stays denied, and so does what plan mode does not do.
            (there, "deploy", allow, true, "- deny"),
            ((Mode::Yolo, false), "deploy", allow, true, "- deny"),
            ((Mode::Plan, false), "npm test", allow, true, "- deny"),
        ] {
            let is = decided(place, command, said, host);
            assert_eq!(is, expected, "{place:?} {command} {said:?} {host}");
        }
        for command in ["git push --force", "cat .env", "echo x > .git/config"] {
            for (place, host) in [(there, true), (there, false), (nobody, true)] {
                let is = decided(place, command, allow, host);
                assert!(!is.starts_with("allow"), "{place:?} {command} {host}: {is}");
            }
        }
        assert!(decided(there, "npm test", allow, false).starts_with("ask by default/"));
    }
}
