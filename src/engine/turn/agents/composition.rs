//! Composition: which agents a composite runs next and with which prompts, and what their results come to.

use std::sync::Arc;

use crate::session_tools::delegate::Composition;
use castor_base::{
    agent::{AgentKind, AgentResult, OnFailure, TaskResult, TerminateMode, failure_in_words},
    content::Part,
    history::{Turn, TurnPart},
    tool::CallResult,
};

/// What a composite does after all that its agents came to.
#[derive(Debug, PartialEq)]
pub(in crate::turn) enum NextStep {
    /// These side by side.
    Run(Vec<MemberRun>),
    Done(TaskResult),
    Failed(String),
}

/// One run of an agent that a composite names.
#[derive(Debug, PartialEq)]
pub(in crate::turn) struct MemberRun {
    pub agent: String,
    pub prompt: String,
}

/// What such a run came to.
struct MemberEnd<'c> {
    agent: &'c str,
    /// Why it failed, or what it handed in.
    result: Result<AgentResult, String>,
}

/// `turns`: the composite's history, in which the results of its agents stand in the order of their calls.
pub(in crate::turn) fn next_step(composition: &Composition, prompt: &str, turns: &[Arc<Turn>]) -> NextStep {
    let agents = &composition.composite.agents;
    let ends: Vec<MemberEnd<'_>> =
        results(turns).zip(agents.iter().cycle()).map(|(it, agent)| member_end(agent, it)).collect();
    match composition.kind {
        AgentKind::Parallel if ends.is_empty() => {
            let run = |agent: &String| MemberRun { agent: agent.clone(), prompt: prompt.to_owned() };
            NextStep::Run(agents.iter().map(run).collect())
        }
        AgentKind::Parallel => merge(composition, &ends),
        _ => go_on(composition, prompt, &ends),
    }
}

/// Tells whether an agent failed, and the others are to stop for it.
pub(in crate::turn) fn has_failed(composition: &Composition, turns: &[Arc<Turn>]) -> bool {
    composition.composite.on_failure == OnFailure::Stop && results(turns).any(|it| member_end("", it).result.is_err())
}

fn results(turns: &[Arc<Turn>]) -> impl Iterator<Item = &CallResult> {
    turns.iter().flat_map(|it| it.parts()).filter_map(|it| match it {
        TurnPart::Result(it) => Some(it),
        _ => None,
    })
}

/// Of a result the first part says it; others are notes beside it.
fn member_end<'c>(agent: &'c str, result: &CallResult) -> MemberEnd<'c> {
    let words = result.content.iter().find_map(Part::as_text).unwrap_or_default();
    let result = match AgentResult::from_words(words) {
        _ if result.is_error => Err(words.strip_prefix(&failure_in_words(agent, "")).unwrap_or(words).to_owned()),
        it if it.terminate_reason == TerminateMode::Goal => Ok(it),
        it => Err(it.result),
    };
    MemberEnd { agent, result }
}

impl MemberEnd<'_> {
    /// What it handed in, if anything.
    fn text(&self) -> Option<&str> {
        let result = self.result.as_ref().ok()?;
        let says_nothing = result.result.is_empty() && result.escalate_reason.is_some();
        (!says_nothing).then_some(&*result.result)
    }

    fn escalate_reason(&self) -> Option<&str> {
        self.result.as_ref().ok()?.escalate_reason.as_deref()
    }

    fn failure(&self) -> Option<String> {
        self.result.as_ref().err().map(|why| format!("The agent {} failed: {why}", self.agent))
    }
}

/// One after the other: the next one, or the end.
fn go_on(composition: &Composition, prompt: &str, ends: &[MemberEnd<'_>]) -> NextStep {
    let composite = &composition.composite;
    let is_loop = composition.kind == AgentKind::Loop;
    let rounds = if is_loop { composite.max_iterations } else { 1 };
    let n = composite.agents.len();
    let left = n.saturating_mul(rounds as usize).saturating_sub(ends.len());
    let failure = ends.last().and_then(MemberEnd::failure).filter(|_| composite.on_failure == OnFailure::Stop);
    if let Some(why) = failure {
        let round = composite.agents.iter().skip((ends.len() - 1) % n + 1);
        return NextStep::Failed(stopped(&why, round, last_text(ends)));
    }
    let escalation = ends.last().and_then(|it| Some((it.agent, it.escalate_reason()?)));
    let next = composite.agents.get(ends.len() % n).filter(|_| left > 0 && escalation.is_none());
    let Some(agent) = next else {
        let note = match escalation {
            Some((agent, reason)) => Some(format!("[The agent {agent} ended the loop: {reason}]")),
            None => is_loop.then(|| format!("[The loop ended after {rounds} rounds, its limit.]")),
        };
        return finish(ends, note.filter(|_| is_loop), escalation.filter(|_| !is_loop).map(|it| it.1));
    };
    let mut prompt = prompt.to_owned();
    if let Some((agent, text)) = last_text(ends) {
        prompt += &format!("\n\nThe agent {agent} worked on this before you. Its result:\n{text}");
    }
    if let Some(why) = ends.last().and_then(MemberEnd::failure) {
        prompt += &format!("\n\n[{why}]");
    }
    NextStep::Run(vec![MemberRun { agent: agent.clone(), prompt }])
}

/// The last thing that was handed in, and by which agent.
fn last_text<'e>(ends: &'e [MemberEnd<'_>]) -> Option<(&'e str, &'e str)> {
    ends.iter().rev().find_map(|it| Some((it.agent, it.text()?)))
}

/// Why the others were not started, and what is lost with them.
fn stopped<'a>(why: &str, not_started: impl Iterator<Item = &'a String>, last: Option<(&str, &str)>) -> String {
    let rest: Vec<&str> = not_started.map(String::as_str).collect();
    let rest = if rest.is_empty() { String::new() } else { format!("\nNot started: {}.", rest.join(", ")) };
    let last = last.map_or_else(String::new, |(agent, text)| format!("\nThe last result, of {agent}:\n{text}"));
    format!("{why}{rest}{last}")
}

/// The last result, with what is to be known about it. Without any, the last reason to end is one.
fn finish(ends: &[MemberEnd<'_>], note: Option<String>, escalate_reason: Option<&str>) -> NextStep {
    let failures: Vec<String> = ends.iter().filter_map(MemberEnd::failure).collect();
    let reason = ends.iter().rev().find_map(MemberEnd::escalate_reason);
    let Some(text) = last_text(ends).map(|it| it.1).or(reason) else { return NextStep::Failed(failures.join("\n")) };
    let notes = failures.into_iter().map(|it| format!("[{it}]")).chain(note);
    let text = [text.to_owned()].into_iter().chain(notes).collect::<Vec<_>>().join("\n\n");
    NextStep::Done(TaskResult { text, escalate_reason: escalate_reason.map(str::to_owned) })
}

/// Side by side: all results, each under the name of its agent.
fn merge(composition: &Composition, ends: &[MemberEnd<'_>]) -> NextStep {
    let section = |it: &MemberEnd<'_>| {
        let text = match &it.result {
            Err(why) => format!("It failed: {why}"),
            Ok(result) => it.text().or(result.escalate_reason.as_deref()).unwrap_or_default().to_owned(),
        };
        format!("## {}\n{text}", it.agent)
    };
    let text = ends.iter().map(section).collect::<Vec<_>>().join("\n\n");
    let failed = ends.iter().find_map(MemberEnd::failure);
    let stops = composition.composite.on_failure == OnFailure::Stop || ends.iter().all(|it| it.result.is_err());
    match failed.filter(|_| stops) {
        Some(_) => NextStep::Failed(format!("Not all of its agents ended well.\n\n{text}")),
        None => {
            let escalate_reason = ends.iter().find_map(MemberEnd::escalate_reason).map(str::to_owned);
            NextStep::Done(TaskResult { text, escalate_reason })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{NextStep, has_failed, next_step};
    use crate::session_tools::delegate::Composition;
    use castor_base::{
        agent::{AgentKind, AgentResult, CompositeAgent, OnFailure, TerminateMode, failure_in_words},
        content::Part,
        history::{Role, Turn, TurnPart},
        tool::CallResult,
    };

    /// `R:text` handed in, `E:reason` escalated, `T:why` ran out of time, `F:why` failed.
    fn result(agent: &str, said: &str) -> TurnPart {
        let (kind, text) = said.split_once(':').unwrap();
        let words = match kind {
            "R" => AgentResult::new(TerminateMode::Goal, text).in_words(agent),
            "T" => AgentResult::new(TerminateMode::Timeout, text).in_words(agent),
            "E" => {
                let escalate_reason = Some(text.to_owned());
                AgentResult { escalate_reason, ..AgentResult::new(TerminateMode::Goal, "") }.in_words(agent)
            }
            _ => failure_in_words(agent, text),
        };
        let (id, name, content) = ("c".into(), "invoke_agent".to_owned(), vec![Part::text(words)]);
        TurnPart::Result(CallResult { id, name, content, is_error: kind == "F" })
    }

    /// What comes after these results of `a` and `b`, and whether the others stop at once.
    #[track_caller]
    fn check(kind: AgentKind, on_failure: OnFailure, said: &[&str], want: &str) {
        let agents = vec!["a".to_owned(), "b".to_owned()];
        let composite = CompositeAgent { agents: agents.clone(), max_iterations: 2, output_key: None, on_failure };
        let composition = Composition { kind, composite };
        let turns = said.iter().zip(agents.iter().cycle()).map(|(it, agent)| {
            let mut turn = Turn::new(Role::Tool);
            turn.parts_mut().push(result(agent, it));
            Arc::new(turn)
        });
        let turns: Vec<Arc<Turn>> = turns.collect();
        let mut shown = match next_step(&composition, "P", &turns) {
            NextStep::Run(members) => {
                members.iter().map(|it| format!("run {}: {}", it.agent, it.prompt)).collect::<Vec<_>>().join("; ")
            }
            NextStep::Done(it) => format!("done {} {:?}", it.text, it.escalate_reason),
            NextStep::Failed(why) => format!("failed {why}"),
        };
        shown += if has_failed(&composition, &turns) { " !" } else { "" };
        assert_eq!(shown.replace('\n', "|"), want, "{kind:?} {said:?}");
    }

    #[test]
    fn sequences_go_on_with_the_last_result() {
        let check = |said, want| check(AgentKind::Sequential, OnFailure::Stop, said, want);
        check(&[], "run a: P");
        check(&["R:x"], "run b: P||The agent a worked on this before you. Its result:|x");
        check(&["R:x", "R:y"], "done y None");
        check(&["F:no"], "failed The agent a failed: no|Not started: b. !");
        check(&["R:x", "T:late"], "failed The agent b failed: late|The last result, of a:|x !");
        check(&["E:enough"], "done enough Some(\"enough\")");
    }

    #[test]
    fn sequences_may_go_on_without_an_agent() {
        let check = |said, want| check(AgentKind::Sequential, OnFailure::Continue, said, want);
        check(&["F:no"], "run b: P||[The agent a failed: no]");
        check(&["F:no", "R:y"], "done y||[The agent a failed: no] None");
        check(&["F:no", "F:never"], "failed The agent a failed: no|The agent b failed: never");
    }

    #[test]
    fn loops_end_by_their_limit_or_an_agent() {
        let check = |said, want| check(AgentKind::Loop, OnFailure::Stop, said, want);
        check(&["R:x", "R:y"], "run a: P||The agent b worked on this before you. Its result:|y");
        check(&["R:x", "R:y", "R:z", "R:q"], "done q||[The loop ended after 2 rounds, its limit.] None");
        check(&["R:x", "E:good"], "done x||[The agent b ended the loop: good] None");
        check(&["R:x", "R:y", "F:no"], "failed The agent a failed: no|Not started: b.|The last result, of b:|y !");
    }

    #[test]
    fn branches_are_merged() {
        let stops = |said, want| check(AgentKind::Parallel, OnFailure::Stop, said, want);
        stops(&[], "run a: P; run b: P");
        stops(&["R:x", "R:y"], "done ## a|x||## b|y None");
        stops(&["R:x", "E:good"], "done ## a|x||## b|good Some(\"good\")");
        stops(&["F:no", "R:y"], "failed Not all of its agents ended well.||## a|It failed: no||## b|y !");
        let goes_on = |said, want| check(AgentKind::Parallel, OnFailure::Continue, said, want);
        goes_on(&["F:no", "R:y"], "done ## a|It failed: no||## b|y None");
        goes_on(&["F:no", "F:no"], "failed Not all of its agents ended well.||## a|It failed: no||## b|It failed: no");
    }
}
