//! Steps after a call's run, in their order: its output is redacted, cut and told, and changes are saved.

use std::sync::Arc;

use tracing::Span;

use super::{checkpoint_tasks, effect_task::EffectTask, redact_output, truncate_output::truncate_output};
use crate::server::traces;
use castor_base::{
    checkpoint::Changes,
    host_tools::HostRun,
    path::AbsPath,
    tool::{TargetPath, ToolCall, ToolOutput},
};
use castor_engine::step::{CallHold, Input};

/// A step after a call's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallEndStep {
    /// The values of secrets become marks.
    Redact,
    /// What is too long for the model goes to a file.
    Cut,
    /// The client gets what its stream of output held back.
    Print,
    /// The trace gets the size and the error of what is left.
    Trace,
    /// The checkpoint takes in what the call changed.
    SaveChanges,
}

/// `Redact` comes first: files of long outputs, clients and traces get no secret's value. `Print` comes before the end of the
/// call is told, and `SaveChanges` last, with what the steps before wrote.
const ORDER: [CallEndStep; 5] =
    [CallEndStep::Redact, CallEndStep::Cut, CallEndStep::Print, CallEndStep::Trace, CallEndStep::SaveChanges];

/// A call that ran, with the output of its tool.
pub struct FinishedCall<'t> {
    pub task: &'t EffectTask,
    pub call: ToolCall,
    pub output: ToolOutput,
    /// What was decided about.
    pub targets: Arc<[TargetPath]>,
    /// The host that ran the call.
    pub host: Option<Box<HostRun>>,
    pub hold: Option<CallHold>,
    /// The files that castor's own tool wrote.
    pub written: Vec<AbsPath>,
    pub span: Span,
}

impl FinishedCall<'_> {
    /// The answer to the loop.
    pub async fn finish(mut self) -> Input {
        let (mut whole, mut changes) = (None, None);
        for step in ORDER {
            match step {
                CallEndStep::Redact => {
                    self.redact().await;
                    whole = Some(traces::output_size(&self.output));
                }
                CallEndStep::Cut => self.cut().await,
                CallEndStep::Print => self.print().await,
                CallEndStep::Trace => {
                    let size = whole.unwrap_or_else(|| traces::output_size(&self.output));
                    traces::note_output(&self.span, &self.call, &self.output, size);
                }
                CallEndStep::SaveChanges => changes = self.save_changes().await,
            }
        }
        Input::RunEnded { effect: self.task.id, output: Box::new(self.output), changes }
    }

    fn is_of_files(&self) -> bool {
        self.host.is_none() && self.task.is_file_tool(&self.call.name)
    }

    async fn redact(&mut self) {
        // The values of secrets stand in files of the workspace, which are the host's where that runs all calls.
        if self.host.as_ref().is_none_or(|it| !it.runs_all) {
            let files = self.is_of_files().then_some(&*self.targets);
            redact_output::redact_call_output(&self.task.resources, &mut self.output, files).await;
        }
    }

    /// Tools of files page by themselves.
    async fn cut(&mut self) {
        if !self.is_of_files() {
            let whole = std::mem::take(&mut self.output);
            self.output = truncate_output(&self.task.resources, &self.call, whole).await;
        }
    }

    async fn print(&self) {
        let rest = self.task.output_stream.end();
        if !rest.is_empty() {
            self.task.send_answer(Input::OutputPrinted { effect: self.task.id, text: rest }).await;
        }
    }

    async fn save_changes(&mut self) -> Option<Result<Changes, String>> {
        let hold = self.hold.take()?;
        Some(checkpoint_tasks::end_call(self.task, hold, &self.written).await)
    }
}

#[cfg(test)]
mod tests {
    use super::{CallEndStep, ORDER};

    #[test]
    fn secrets_go_before_anything_is_written_or_told() {
        assert_eq!(ORDER.first(), Some(&CallEndStep::Redact));
        assert_eq!(ORDER.last(), Some(&CallEndStep::SaveChanges));
    }
}
