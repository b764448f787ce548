//! Agents of the demo model: it starts the one that a prompt names, hands in what it says, and ends loops.

use serde_json::{Value, json};

use super::{DemoStep, call, offers, report, result_of};
use castor_base::{
    agent::{AgentResult, COMPLETE_TASK, ESCALATE, INVOKE_AGENT},
    content::joined_text,
    model::ModelRequest,
    tool::CallResult,
};

/// In a prompt, before the name of an agent and its task.
const START_WORDS: &[&str] = &["ask the agent ", "start the agent ", "use the agent "];
/// In the instructions of an agent, before the words in quotes at which it ends its loop.
const END_WORDS: &str = "escalate when you read \"";

/// What only agents, or those that start them, do; `None`: nothing of it is wanted.
pub fn step(request: &ModelRequest, prompt: &str, results: &[&CallResult]) -> Option<(String, DemoStep)> {
    if let Some(words) = end_words(&request.system).filter(|_| offers(request, ESCALATE)) {
        return Some(judge(request, prompt, words));
    }
    let (agent, task) = start_words(prompt).filter(|_| offers(request, INVOKE_AGENT))?;
    let Some(it) = result_of(results, INVOKE_AGENT) else {
        let thought = format!("**Asking an agent**\nThis is a task for `{agent}`.");
        return Some((thought, call(request, INVOKE_AGENT, json!({ "agent_name": agent, "prompt": task }))));
    };
    let said = report::quoted(&AgentResult::from_words(&joined_text(&it.content)).result);
    let text = match it.is_error {
        true => format!("The agent `{agent}` failed. What came back:\n\n{said}"),
        false => format!("The agent `{agent}` is done. What came back:\n\n{said}"),
    };
    Some(("**Reading the result**\nThe agent is done.".to_owned(), DemoStep::Say(text)))
}

fn judge(request: &ModelRequest, prompt: &str, words: &str) -> (String, DemoStep) {
    let thought = format!("**Judging**\nI look for \"{words}\".");
    let step = match prompt.contains(words) {
        true => call(request, ESCALATE, json!({ "reason": format!("I read \"{words}\".") })),
        false => DemoStep::Say(format!("Not yet: I did not read \"{words}\".")),
    };
    (thought, step)
}

/// An agent hands in what it has to say, where that may be any text.
pub fn hand_in(request: &ModelRequest, step: DemoStep) -> DemoStep {
    let takes_text = |it: &Value| it.pointer("/properties/result/type").is_some_and(|it| it == "string");
    let tool = request.tools.iter().find(|it| it.name == COMPLETE_TASK);
    match step {
        DemoStep::Say(text) if tool.is_some_and(|it| takes_text(&it.parameters)) => {
            DemoStep::Call(vec![(COMPLETE_TASK, json!({ "result": text }))])
        }
        it => it,
    }
}

fn end_words(instructions: &str) -> Option<&str> {
    let at = instructions.to_ascii_lowercase().find(END_WORDS)? + END_WORDS.len();
    let (words, _) = instructions.get(at..)?.split_once('"')?;
    Some(words).filter(|it| !it.is_empty())
}

/// `Ask the agent team: look around`, `… team to look around`.
fn start_words(prompt: &str) -> Option<(&str, &str)> {
    let lower = prompt.to_ascii_lowercase();
    let at = START_WORDS.iter().find_map(|it| Some(lower.find(it)? + it.len()))?;
    let (name, task) = prompt.get(at..)?.split_once([':', ' '])?;
    let (name, task) = (name.trim_matches('`'), task.trim_start_matches([':', ' ']));
    let task = task.strip_prefix("to ").unwrap_or(task).trim();
    let is_name = !name.is_empty() && name.chars().all(|it| it.is_ascii_alphanumeric() || "-_".contains(it));
    (is_name && !task.is_empty()).then_some((name, task))
}

#[cfg(test)]
mod tests {
    use super::{end_words, start_words};

    #[test]
    fn agents_are_named_in_words() {
        for (prompt, found) in [
            ("Ask the agent team: Write a.md", Some(("team", "Write a.md"))),
            ("please use the agent `a-1` to look around\nand think", Some(("a-1", "look around\nand think"))),
            ("Ask the agent", None),
            ("Ask the agent team:", None),
            ("Ask the agent's boss: x", None),
            ("What does the agent do?", None),
        ] {
            assert_eq!(start_words(prompt), found, "{prompt}");
        }
        assert_eq!(end_words("You judge.\nEscalate when you read \"good\"."), Some("good"));
        assert_eq!(end_words("Escalate when you read \"good"), None);
        assert_eq!(end_words("Escalate when you read it"), None);
    }
}
