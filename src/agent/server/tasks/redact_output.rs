//! Redaction of tool, hook and command output, before it goes to model, log and client. Text of models and users is not
//! redacted.

use std::{borrow::Cow, sync::Arc};

use serde_json::Value;
use tokio::sync::mpsc::Sender;

use crate::{server::event::Event, session::session_resources::SessionResources};
use castor_base::{
    content::Part,
    fs::BoxFuture,
    guarded_names::SECRETS,
    ids::{EffectId, SessionId},
    path::AbsPath,
    tool::{Access, Display, FileDiff, TargetPath, ToolError, ToolOutput},
};
use castor_engine::step::Input;
use castor_tools::{
    builtin::Progress,
    redaction::{Redactor, Secrets, Stream},
};

/// Takes what no call waits for.
pub type LateSender<T> = Arc<dyn Fn(T) -> BoxFuture<'static, ()> + Send + Sync>;

/// `input` as it may be said. `Ran` is what [`output`] made of it, and `Printed` what came out of its stream.
pub async fn redact_input(resources: &SessionResources, mut input: Input) -> Input {
    if !matches!(
        input,
        Input::Resolved { result: Err(_), .. }
            | Input::Checked { .. }
            | Input::Previewed { .. }
            | Input::HookFinished { .. }
            | Input::Diffed { .. }
            | Input::UnseenShown { shown: Some(_), .. }
            | Input::ServerAnswered { .. }
    ) {
        return input;
    }
    let exit = OutputRedactor {
        redactor: load_redactor(&resources.model_input.secrets, false).await,
        exempt_files: Vec::new(),
    };
    match &mut input {
        Input::Resolved { result: Err(it), .. } | Input::Previewed { result: Err(it), .. } => exit.error(it),
        Input::Previewed { result: Ok(it), .. } => it.display.iter_mut().for_each(|it| exit.display(it)),
        Input::Checked { finding: Ok(it), .. } => exit.text(&mut it.reason),
        Input::Checked { finding: Err(it), .. } => exit.text(it),
        Input::Diffed { result: Ok(it), .. } => exit.text(it),
        Input::UnseenShown { shown: Some(it), .. } => exit.diffs(&mut it.diffs),
        Input::ServerAnswered { result: Ok(it), .. } => it.iter_mut().for_each(|it| exit.part(it)),
        Input::ServerAnswered { result: Err(it), .. } => exit.text(it),
        Input::HookFinished { report, .. } => {
            exit.text(&mut report.stdout);
            exit.text(&mut report.stderr);
            report.sandbox_note.iter_mut().for_each(|it| exit.text(it));
        }
        _ => (),
    }
    input
}

/// Takes what is for user and model, and no call waits for: `texts` are the texts of it. It holds no desk: who holds one
/// keeps the session open.
pub fn late_sender<T: Send + 'static>(
    answers: Sender<Event>,
    resources: &SessionResources,
    texts: fn(&mut T) -> Vec<&mut String>,
    input: fn(T) -> Input,
) -> LateSender<T> {
    let (session, secrets) = (resources.session.clone(), resources.model_input.secrets.clone());
    Arc::new(move |mut late: T| -> BoxFuture<'static, ()> {
        let (answers, session, secrets) = (answers.clone(), session.clone(), secrets.clone());
        Box::pin(async move {
            let exit = OutputRedactor { redactor: load_redactor(&secrets, false).await, exempt_files: Vec::new() };
            texts(&mut late).into_iter().for_each(|it| exit.text(it));
            _ = answers.send(Event::Engine { session, input: input(late) }).await;
        })
    })
}

/// Takes what a call prints.
pub fn output_sender(answers: Sender<Event>, session: SessionId, effect: EffectId, printed: Arc<Stream>) -> Progress {
    Arc::new(move |text: String| -> BoxFuture<'static, ()> {
        let (answers, session, text) = (answers.clone(), session.clone(), printed.push(text));
        Box::pin(async move {
            if !text.is_empty() {
                _ = answers.send(Event::Engine { session, input: Input::OutputPrinted { effect, text } }).await;
            }
        })
    })
}

/// What a call returns. `files`: where a tool reads and writes files; `None`: it is a command, which may do anything.
pub async fn redact_call_output(resources: &SessionResources, output: &mut ToolOutput, files: Option<&[TargetPath]>) {
    let is_secret = |it: &&TargetPath| [&it.path, &it.real].iter().any(|it| SECRETS.find(it.as_path()).is_some());
    let mut secret = files.into_iter().flatten().filter(is_secret);
    // What the user said yes to read is read.
    let shown = secret.clone().filter(|it| it.access == Access::Read).map(|it| it.real.clone()).collect();
    let anew = files.is_none() || secret.any(|it| it.access == Access::Write);
    let exit =
        OutputRedactor { redactor: load_redactor(&resources.model_input.secrets, anew).await, exempt_files: shown };
    if !exit.redactor.is_idle() {
        exit.output(output);
    }
}

/// Looks at files, so not on the thread of the leaves.
async fn load_redactor(secrets: &Arc<Secrets>, anew: bool) -> Arc<Redactor> {
    let looked = secrets.clone();
    // It fails only when castor ends; then nothing may go out that nobody looked at.
    tokio::task::spawn_blocking(move || looked.current_redactor(anew))
        .await
        .unwrap_or_else(|_| secrets.current_redactor(anew))
}

struct OutputRedactor {
    redactor: Arc<Redactor>,
    /// Files whose values stay.
    exempt_files: Vec<AbsPath>,
}

impl OutputRedactor {
    fn output(&self, it: &mut ToolOutput) {
        it.content.iter_mut().for_each(|it| self.part(it));
        it.display.iter_mut().for_each(|it| self.display(it));
        it.summary.iter_mut().for_each(|it| self.text(it));
        it.error.iter_mut().for_each(|it| self.error(it));
        self.value(&mut it.data);
        it.tail_call.iter_mut().for_each(|it| self.value(&mut it.args));
        it.state.0.values_mut().for_each(|it| self.value(it));
    }

    fn part(&self, it: &mut Part) {
        match it {
            Part::Text { text, .. } => self.text(text),
            Part::Thought { thought, .. } => self.text(thought),
            Part::Reference { text, .. } => text.iter_mut().for_each(|it| self.text(it)),
            Part::Media { .. } => (),
        }
    }

    fn display(&self, it: &mut Display) {
        match it {
            Display::Text { text } | Display::Terminal { text, .. } => self.text(text),
            Display::Diff { before, after, .. } => {
                before.iter_mut().for_each(|it| self.shared(it));
                self.shared(after);
            }
            Display::Diffs { files } => self.diffs(files),
        }
    }

    fn diffs(&self, files: &mut [FileDiff]) {
        files.iter_mut().flat_map(|it| [&mut it.before, &mut it.after]).flatten().for_each(|it| self.shared(it));
    }

    fn error(&self, it: &mut ToolError) {
        self.text(&mut it.message);
        it.for_model.iter_mut().for_each(|it| self.text(it));
    }

    fn value(&self, it: &mut Value) {
        match it {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|it| self.value(it)),
            Value::Object(members) => members.values_mut().for_each(|it| self.value(it)),
            _ => (),
        }
    }

    fn text(&self, it: &mut String) {
        if let Cow::Owned(other) = self.redactor.redact(it, &self.exempt_files) {
            *it = other;
        }
    }

    fn shared(&self, it: &mut Arc<str>) {
        if let Cow::Owned(other) = self.redactor.redact(it, &self.exempt_files) {
            *it = other.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::OutputRedactor;
    use castor_base::{
        content::Part,
        path::AbsPath,
        state::StateDelta,
        tool::{Display, TailCall, ToolError, ToolOutput},
    };
    use castor_tools::redaction::Secrets;

    #[test]
    #[allow(clippy::disallowed_methods)]
    fn every_text_of_an_output_goes_through_it() {
        let keep = tempfile::tempdir().unwrap();
        let root = AbsPath::new(keep.path().canonicalize().unwrap()).unwrap();
        std::fs::write(root.join(".env"), "A_KEY=canary-value").unwrap();
        let with = Secrets::new(vec![root.clone()], None, 0).current_redactor(false);
        let path = root.join("canary-value");
        let text = || "x canary-value y".to_owned();
        let reference = Part::Reference { uri: "u".to_owned(), name: None, mime: None, text: Some(text()), data: None };
        let output = |display: Display| ToolOutput {
            content: vec![Part::text(text()), Part::Thought { thought: text(), signature: None }, reference.clone()],
            display: Some(display),
            summary: Some(text()),
            error: Some(ToolError::new("k", text()).with_model_text(text())),
            data: json!({"a": [text(), 1], "b": {"c": text()}}),
            tail_call: Some(TailCall { name: "t".to_owned(), args: json!([text()]) }),
            state: StateDelta([("k".to_owned(), json!([text()]))].into()),
            ..ToolOutput::default()
        };
        let diff = Display::Diff { path: path.clone(), before: Some(text().into()), after: text().into() };
        for (display, n) in
            [(Display::Text { text: text() }, 11), (Display::Terminal { text: text(), exit: None }, 11), (diff, 12)]
        {
            for (shown, is_shown) in [(Vec::new(), false), (vec![root.join(".env")], true)] {
                let mut output = output(display.clone());
                OutputRedactor { redactor: with.clone(), exempt_files: shown }.output(&mut output);
                let said = format!("{output:?}");
                assert_eq!(said.matches("x [secret from .env] y").count(), if is_shown { 0 } else { n }, "{said}");
                assert_eq!(said.matches("x canary-value y").count(), if is_shown { n } else { 0 }, "{said}");
                let has_path = matches!(&output.display, Some(Display::Diff { path: it, .. }) if *it == path);
                assert_eq!(has_path, n == 12);
            }
        }
    }
}
