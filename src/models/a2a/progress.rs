//! Progress of a remote task: the server's events become thoughts, and the result of the run.

use std::collections::BTreeSet;

use a2a::{Artifact, Message, Part, PartContent, Role, StreamResponse, Task, TaskState, TaskStatus};

use super::messages::Memory;
use castor_base::text;

/// Most that is kept of all artifacts of a task, in bytes, and of its messages.
const MAX_KEPT: usize = 4 << 20;
/// Most of a result, in bytes: it enters the context of the model that asked.
const MAX_RESULT: usize = 100_000;
/// Most of what is shown on the way, in bytes.
const MAX_SHOWN: usize = 256 << 10;
const MAX_ARTIFACTS: usize = 200;

/// What a task came to, or waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Completed(String),
    /// Why, for people and model.
    Failed(String),
    InputRequired(String),
    AuthRequired(String),
}

/// A task so far.
#[derive(Default)]
pub struct TaskProgress {
    context: Option<String>,
    task: Option<String>,
    state: TaskState,
    /// The answer was a message alone.
    reply: Option<String>,
    /// What the agent said with the state.
    status: Option<String>,
    said: Vec<String>,
    heard: BTreeSet<String>,
    artifacts: Vec<ArtifactText>,
    n_kept: usize,
    n_shown: usize,
}

struct ArtifactText {
    id: String,
    name: String,
    text: String,
    /// Bytes that did not fit.
    n_left_out: usize,
}

impl TaskProgress {
    /// Before the next message of a conversation.
    pub fn of(memory: &Memory) -> Self {
        Self { context: memory.context.clone(), ..Self::default() }
    }

    pub fn context(&self) -> Option<&str> {
        self.context.as_deref()
    }

    pub fn task(&self) -> Option<&str> {
        self.task.as_deref()
    }

    /// The task that waits until somebody authorizes it.
    pub fn unauthorized_task(&self) -> Option<&str> {
        self.task().filter(|_| self.state == TaskState::AuthRequired)
    }

    /// Tells whether the server works on it.
    pub fn is_under_way(&self) -> bool {
        self.task.is_some() && self.outcome().is_none()
    }

    /// What an event adds, as thoughts.
    pub fn take(&mut self, event: StreamResponse) -> Vec<String> {
        let mut out = Vec::new();
        match event {
            StreamResponse::Message(it) => {
                self.context = it.context_id.clone().or(self.context.take());
                if it.role != Role::User {
                    self.reply = Some(parts_text(&it.parts));
                }
            }
            StreamResponse::Task(it) => self.take_task(it, &mut out),
            StreamResponse::StatusUpdate(it) => {
                self.name(it.task_id, it.context_id);
                self.take_status(it.status, &mut out);
            }
            StreamResponse::ArtifactUpdate(it) => {
                self.name(it.task_id, it.context_id);
                self.take_artifact(it.artifact, it.append == Some(true), &mut out);
            }
        }
        let room = MAX_SHOWN.saturating_sub(self.n_shown);
        let mut left = room;
        out.retain(|it| {
            let fits = it.len() <= left;
            left = left.saturating_sub(it.len());
            fits
        });
        self.n_shown += room - left;
        out
    }

    fn name(&mut self, task: String, context: String) {
        self.task = Some(task).filter(|it| !it.is_empty()).or(self.task.take());
        self.context = Some(context).filter(|it| !it.is_empty()).or(self.context.take());
    }

    /// A whole task, as it is now.
    fn take_task(&mut self, it: Task, out: &mut Vec<String>) {
        self.name(it.id, it.context_id);
        for artifact in it.artifacts.into_iter().flatten() {
            self.take_artifact(artifact, false, out);
        }
        let mut said = it.history.unwrap_or_default();
        // What was said before this message is of a run before.
        let from = said.iter().rposition(|it| it.role == Role::User).map_or(0, |it| it + 1);
        said.drain(..from);
        said.iter().for_each(|it| self.hear(it, out));
        self.take_status(it.status, out);
    }

    fn take_status(&mut self, it: TaskStatus, out: &mut Vec<String>) {
        let changes = self.state != it.state;
        self.state = it.state;
        let is_told = it.message.as_ref().is_some_and(|it| it.role != Role::User);
        match it.message.filter(|_| is_told) {
            Some(message) => {
                self.status = Some(parts_text(&message.parts)).filter(|it| !it.trim().is_empty());
                self.hear(&message, out);
            }
            None => {
                self.status = None;
                if changes && !self.state.is_terminal() {
                    out.push(format!("**{}**\n\n", state_in_words(&self.state)));
                }
            }
        }
    }

    /// A message of the agent's, once.
    fn hear(&mut self, it: &Message, out: &mut Vec<String>) {
        let said = parts_text(&it.parts);
        let is_new = it.role != Role::User && !said.trim().is_empty() && self.said.last() != Some(&said);
        if is_new && self.heard.insert(it.message_id.clone()) && self.n_kept < MAX_KEPT {
            self.n_kept += said.len();
            out.push(thought(&said));
            self.said.push(said);
        }
    }

    fn take_artifact(&mut self, it: Artifact, appends: bool, out: &mut Vec<String>) {
        let fresh = parts_text(&it.parts);
        let known = self.artifacts.iter().position(|old| old.id == it.artifact_id);
        if known.is_none() && self.artifacts.len() >= MAX_ARTIFACTS {
            return;
        }
        let at = known.unwrap_or_else(|| {
            let name = text::first_line(it.name.as_deref().unwrap_or(&it.artifact_id), 100);
            self.artifacts.push(ArtifactText { id: it.artifact_id, name, text: String::new(), n_left_out: 0 });
            self.artifacts.len() - 1
        });
        let Some(artifact) = self.artifacts.get_mut(at) else { return };
        let shown = match (known.is_some(), appends, fresh.strip_prefix(artifact.text.as_str())) {
            (false, ..) => format!("**Artifact {}**\n\n{fresh}\n\n", artifact.name),
            (true, true, _) => fresh.clone(),
            // A snapshot after the parts.
            (true, false, Some(more)) => more.to_owned(),
            (true, false, None) => format!("**Artifact {} (new version)**\n\n{fresh}\n\n", artifact.name),
        };
        if !appends {
            self.n_kept -= artifact.text.len();
            (artifact.text, artifact.n_left_out) = (String::new(), 0);
        }
        let kept = text::head(&fresh, MAX_KEPT.saturating_sub(self.n_kept));
        artifact.text.push_str(kept);
        artifact.n_left_out += fresh.len() - kept.len();
        self.n_kept += kept.len();
        if !shown.is_empty() {
            out.push(shown);
        }
    }

    /// `None`: the server works on it.
    pub fn outcome(&self) -> Option<Outcome> {
        if let Some(it) = &self.reply {
            let said = if it.trim().is_empty() { "The remote agent answered with nothing." } else { it };
            return Some(Outcome::Completed(bounded(said.to_owned())));
        }
        let words = || self.status.clone().or_else(|| self.said.last().cloned());
        let failed = |what: &str| {
            let why = words().map(|it| format!(": {it}")).unwrap_or_default();
            Some(Outcome::Failed(format!("the remote agent {what}{why}")))
        };
        match self.state {
            TaskState::Completed => Some(Outcome::Completed(bounded(self.result()))),
            TaskState::Failed => failed("failed"),
            TaskState::Rejected => failed("rejected the task"),
            TaskState::Canceled => failed("cancelled the task"),
            TaskState::InputRequired => {
                let question = words().unwrap_or_else(|| "The remote agent needs your input.".to_owned());
                Some(Outcome::InputRequired(question))
            }
            TaskState::AuthRequired => {
                Some(Outcome::AuthRequired(words().unwrap_or_else(|| "it does not say which".to_owned())))
            }
            TaskState::Unspecified | TaskState::Submitted | TaskState::Working => None,
        }
    }

    /// Its last word, then its artifacts. Where there is neither, all that it said on the way.
    fn result(&self) -> String {
        let artifacts = self.artifacts.iter().map(|it| {
            let more = match it.n_left_out {
                0 => String::new(),
                n => format!("\n[{n} more bytes are left out]"),
            };
            format!("Artifact ({}):\n{}{more}", it.name, it.text)
        });
        let all: Vec<String> = self.status.iter().cloned().chain(artifacts).collect();
        match (all.is_empty(), self.said.is_empty()) {
            (false, _) => all.join("\n\n"),
            (true, false) => self.said.join("\n\n"),
            (true, true) => "The remote agent ended without a result.".to_owned(),
        }
    }
}

fn bounded(text: String) -> String {
    let head = text::head(&text, MAX_RESULT);
    match text.len() - head.len() {
        0 => text,
        n => format!("{head}\n[{n} more bytes are left out]"),
    }
}

/// What a run comes to whose question has no answer.
pub fn unanswered(question: &str) -> String {
    format!(
        "The remote agent waits for an answer to this question:\n{}\nNobody answered it. Invoke the agent again with the \
         answer to continue.",
        text::head(question, MAX_RESULT)
    )
}

/// With its first line as what it is about.
fn thought(said: &str) -> String {
    let first = text::first_line(said.trim().trim_matches('*'), 100).replace("**", "");
    match said.trim() == first {
        true => format!("**{first}**\n\n"),
        false => format!("**{first}**\n\n{}\n\n", said.trim()),
    }
}

fn state_in_words(it: &TaskState) -> &'static str {
    match it {
        TaskState::Submitted => "Submitted",
        TaskState::InputRequired => "Needs input",
        TaskState::AuthRequired => "Needs an authorization",
        _ => "Working",
    }
}

fn parts_text(parts: &[Part]) -> String {
    let all: Vec<String> = parts.iter().map(part_text).filter(|it| !it.is_empty()).collect();
    all.join("\n")
}

/// castor fetches nothing that a part names, and passes on no bytes.
fn part_text(part: &Part) -> String {
    let kind = part.media_type.as_deref().unwrap_or("unknown type");
    let name = part.filename.as_deref().unwrap_or("a file");
    match &part.content {
        PartContent::Text(it) => it.clone(),
        PartContent::Data(it) => it.to_string(),
        PartContent::Url(it) => format!("[{name} ({kind}): {it}]"),
        PartContent::Raw(it) => match str::from_utf8(it) {
            Ok(text) if kind.starts_with("text/") || kind == "application/json" => format!("{name}:\n{text}"),
            _ => format!("[{name} ({kind}), {} bytes, is left out]", it.len()),
        },
    }
}

#[cfg(test)]
mod tests {
    use a2a::StreamResponse;
    use serde_json::{Value, json};

    use super::{MAX_KEPT, MAX_RESULT, Outcome, TaskProgress};

    /// Thoughts, then the outcome.
    fn play(events: &[Value]) -> (String, Option<Outcome>) {
        let mut it = TaskProgress::default();
        let mut thoughts = String::new();
        for event in events {
            let event: StreamResponse = serde_json::from_value(event.clone()).unwrap();
            thoughts += &it.take(event).concat();
        }
        (thoughts, it.outcome())
    }

    fn status(state: &str, said: Option<(&str, &str)>) -> Value {
        let message =
            said.map(|(id, text)| json!({ "messageId": id, "role": "ROLE_AGENT", "parts": [{ "text": text }] }));
        let mut status = json!({ "state": format!("TASK_STATE_{state}") });
        message.into_iter().for_each(|it| status["message"] = it);
        json!({ "statusUpdate": { "taskId": "t", "contextId": "c", "status": status } })
    }

    fn artifact(id: &str, append: bool, parts: Value) -> Value {
        let artifact = json!({ "artifactId": id, "name": "report", "parts": parts });
        json!({ "artifactUpdate": { "taskId": "t", "contextId": "c", "artifact": artifact, "append": append } })
    }

    fn completed(text: &str) -> Option<Outcome> {
        Some(Outcome::Completed(text.to_owned()))
    }

    #[test]
    fn events_become_thoughts_and_a_result() {
        let text = |it: &str| json!([{ "text": it }]);
        let (thoughts, outcome) = play(&[
            status("SUBMITTED", None),
            status("WORKING", Some(("m1", "Looking\nat it"))),
            status("WORKING", Some(("m1", "Looking\nat it"))),
            artifact("a", false, text("one ")),
            artifact("a", true, text("two")),
            artifact("b", false, json!([{ "data": { "k": 1 } }, { "url": "http://x/f", "mediaType": "image/png" }])),
            artifact("b", false, json!([{ "raw": "aGk=", "mediaType": "text/plain", "filename": "f.txt" }])),
            status("COMPLETED", Some(("m2", "Done."))),
        ]);
        assert_eq!(
            thoughts,
            "**Submitted**\n\n**Looking**\n\nLooking\nat it\n\n**Artifact report**\n\none \n\ntwo**Artifact \
             report**\n\n{\"k\":1}\n[a file (image/png): http://x/f]\n\n**Artifact report (new \
             version)**\n\nf.txt:\nhi\n\n**Done.**\n\n"
        );
        assert_eq!(outcome, completed("Done.\n\nArtifact (report):\none two\n\nArtifact (report):\nf.txt:\nhi"));
    }

    /// After a stream that broke off the server sends the whole task.
    #[test]
    fn a_snapshot_repeats_nothing() {
        let text = |it: &str| json!([{ "text": it }]);
        let artifacts = json!([{ "artifactId": "a", "parts": text("one two") }]);
        let history = json!([
            { "messageId": "m0", "role": "ROLE_AGENT", "parts": text("of old") },
            { "messageId": "u", "role": "ROLE_USER", "parts": text("go") },
            { "messageId": "m1", "role": "ROLE_AGENT", "parts": text("Looking") },
        ]);
        let task = json!({ "task": { "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_WORKING" },
            "artifacts": artifacts, "history": history } });
        let first = [status("WORKING", Some(("m1", "Looking"))), artifact("a", false, text("one "))];
        let (thoughts, outcome) = play(&[&first[..], &[task, status("COMPLETED", None)]].concat());
        assert_eq!(thoughts, "**Looking**\n\n**Artifact report**\n\none \n\ntwo");
        assert_eq!(outcome, completed("Artifact (report):\none two"));
    }

    #[test]
    fn ends_of_a_task() {
        for (events, want) in [
            (vec![status("WORKING", None)], None),
            (vec![status("WORKING", Some(("m", "a"))), status("COMPLETED", None)], completed("a")),
            (vec![status("COMPLETED", None)], completed("The remote agent ended without a result.")),
            (
                vec![status("FAILED", Some(("m", "no disk")))],
                Some(Outcome::Failed("the remote agent failed: no disk".to_owned())),
            ),
            (vec![status("REJECTED", None)], Some(Outcome::Failed("the remote agent rejected the task".to_owned()))),
            (vec![status("INPUT_REQUIRED", Some(("m", "Which?")))], Some(Outcome::InputRequired("Which?".to_owned()))),
            (vec![status("AUTH_REQUIRED", Some(("m", "GitHub")))], Some(Outcome::AuthRequired("GitHub".to_owned()))),
            (
                vec![json!({ "message": { "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": "hi" }] } })],
                completed("hi"),
            ),
        ] {
            assert_eq!(play(&events).1, want);
        }
    }

    #[test]
    fn large_artifacts_have_an_end() {
        let large = "x".repeat(MAX_KEPT);
        let parts = json!([{ "text": large }]);
        let events = [artifact("a", false, parts.clone()), artifact("b", false, parts), status("COMPLETED", None)];
        let (thoughts, outcome) = play(&events);
        let Some(Outcome::Completed(text)) = outcome else { panic!() };
        assert!(thoughts.is_empty() && text.len() < MAX_RESULT + 100 && text.ends_with(" more bytes are left out]"));
    }
}
