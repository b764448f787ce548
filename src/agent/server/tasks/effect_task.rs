//! The task of one effect: its access to session, world and loop, and its answer.

use std::{future::Future, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt;
use tokio::sync::mpsc::Sender;
use tokio_util::sync::CancellationToken;

use super::{
    Tools,
    editor_client::{EditorClient, EditorFs, EditorTerminal},
    redact_output::{self, LateSender},
};
use crate::{
    panics,
    server::event::Event,
    session::{
        mcp_access::McpTool,
        session_resources::{SessionResources, TerminalMode},
    },
};
use castor_base::{
    fs::{BoxFuture, Fs},
    ids::EffectId,
    sandbox::SandboxGrant,
    terminal::{Screen, Terminal},
    tool::{PolicyClass, Targets, ToolCall, ToolError, ToolOutput, ToolSpec},
};
use castor_engine::step::{CallHold, Input};
use castor_hands::disk::DiskFs;
use castor_tools::{
    builtin::{Background, Builtin, CallKnowledge, OnGroupEmpty, Progress, Terminals, ToolContext},
    mcp,
    redaction::Stream,
};

/// One effect's access to session, world and loop, and its answer.
pub struct EffectTask {
    pub resources: Arc<SessionResources>,
    pub id: EffectId,
    pub cancel: CancellationToken,
    pub answers: Sender<Event>,
    pub requests: Sender<Event>,
    pub tools: Tools,
    /// What the user allowed beyond the sandbox.
    pub sandbox_grant: SandboxGrant,
    /// What the call prints.
    pub output_stream: Arc<Stream>,
}

impl EffectTask {
    /// The same with what the user allowed.
    pub fn with_grant(self, sandbox_grant: SandboxGrant) -> Self {
        Self { sandbox_grant, ..self }
    }

    pub async fn send_answer(&self, input: Input) {
        _ = self.answers.send(self.event(redact_output::redact_input(&self.resources, input).await)).await;
    }

    pub fn event(&self, input: Input) -> Event {
        Event::Engine { session: self.resources.session.clone(), input }
    }

    /// `future`'s end, or what its panic said.
    pub async fn catch_panic<T>(&self, future: impl Future<Output = T>) -> Result<T, String> {
        AssertUnwindSafe(future).catch_unwind().await.map_err(|it| panics::panic_message(&*it))
    }

    /// As [`EffectTask::context`], for a call with a checkpoint.
    pub fn checkpointed_context(&self, known: CallKnowledge, hold: Option<&CallHold>) -> ToolContext {
        let ctx = self.context(known);
        let not_kept = hold.and_then(|it| it.read_only.as_deref());
        match (not_kept, &ctx.confined) {
            (Some(not_kept), Some(it)) => ToolContext { confined: Some(Arc::new(it.undoable_only(not_kept))), ..ctx },
            _ => ctx,
        }
    }

    pub fn context(&self, known: CallKnowledge) -> ToolContext {
        let resources = &self.resources;
        let disk: Arc<dyn Fs> = Arc::new(DiskFs);
        let fs: Arc<dyn Fs> = match resources.files.reads || resources.files.writes {
            false => disk,
            true => Arc::new(self.editor_fs(disk)),
        };
        ToolContext {
            cwd: resources.cwd.clone(),
            roots: resources.roots.clone(),
            scratch: resources.scratch.clone(),
            known: CallKnowledge { protected: resources.children.protected_paths.clone(), ..known },
            fs,
            cancel: self.cancel.clone(),
            progress: self.progress(),
            background: Background {
                session_closed: resources.children.closed.token.clone(),
                completed: self.late_sender(|it| vec![&mut it.how, &mut it.printed], Input::BackgroundResult),
                on_group_empty: self.group_end_sender(),
                notice: self.late_sender(|it| vec![it], Input::Notice),
            },
            settings: resources.tools.clone(),
            env: resources.children.env.clone(),
            terminals: self.terminals(),
            confined: resources
                .children
                .confined
                .as_ref()
                .and_then(|it| it.with_grant(&self.sandbox_grant))
                .map(Arc::new),
        }
    }

    /// The files that the editor has, before those of the disk.
    pub fn editor_fs(&self, disk: Arc<dyn Fs>) -> EditorFs {
        let SessionResources { cwd, roots, files, .. } = &*self.resources;
        let (cwd, roots, reads, writes) = (cwd.clone(), roots.clone(), files.reads, files.writes);
        EditorFs { client: self.editor_client(), disk, cwd, roots, reads, writes }
    }

    /// Takes what is for the session, also long after the call's own end; `texts` are the texts of it.
    pub fn late_sender<T: Send + 'static>(
        &self,
        texts: fn(&mut T) -> Vec<&mut String>,
        input: fn(T) -> Input,
    ) -> LateSender<T> {
        redact_output::late_sender(self.answers.clone(), &self.resources, texts, input)
    }

    /// Reports a background process that ended with all its children. As [`EffectTask::late_sender`].
    fn group_end_sender(&self) -> OnGroupEmpty {
        let (answers, session) = (self.answers.clone(), self.resources.session.clone());
        Arc::new(move |pid| -> BoxFuture<'static, ()> {
            let (answers, session) = (answers.clone(), session.clone());
            Box::pin(async move {
                _ = answers.send(Event::Engine { session, input: Input::BackgroundExited(pid) }).await;
            })
        })
    }

    /// Takes live text of a call.
    fn progress(&self) -> Progress {
        redact_output::output_sender(
            self.answers.clone(),
            self.resources.session.clone(),
            self.id,
            self.output_stream.clone(),
        )
    }

    pub fn mcp_tool(&self, name: &str) -> Option<&McpTool> {
        self.resources.mcp.find_tool(name)
    }

    /// Of a server's tool, or of those that read resources.
    pub async fn call_server(&self, call: &ToolCall) -> ToolOutput {
        if let Some(tool) = self.mcp_tool(&call.name) {
            return self.call_mcp(tool, call).await;
        }
        let output = self.resources.mcp.run_resource_tool(call, &self.cancel).await;
        output.unwrap_or_else(|| ToolOutput::failed(unknown_tool(call)))
    }

    pub fn server_targets(&self, call: &ToolCall) -> Result<Targets, ToolError> {
        let title = match (self.mcp_tool(&call.name), self.resources.mcp.resource_title(call)) {
            (Some(tool), _) => tool.spec.title.to_string(),
            (None, Some(title)) => title?,
            (None, None) => return Err(unknown_tool(call)),
        };
        Ok(Targets { title, ..Targets::default() })
    }

    async fn call_mcp(&self, tool: &McpTool, call: &ToolCall) -> ToolOutput {
        let call = mcp::ServerCall {
            tool: &tool.tool,
            args: &call.args,
            timeout: tool.timeout,
            cancel: &self.cancel,
            show: &self.progress(),
        };
        tool.connection.call(call).await
    }

    fn terminals(&self) -> Terminals {
        let client = match self.resources.terminal_mode {
            TerminalMode::Client { reads_lines } => {
                let terminal: Arc<dyn Terminal> =
                    Arc::new(EditorTerminal { client: self.editor_client(), reads_lines });
                Some(terminal)
            }
            TerminalMode::Text | TerminalMode::Drawn => None,
        };
        let (answers, session, effect) = (self.answers.clone(), self.resources.session.clone(), self.id);
        let attach = move |screen: Screen| -> BoxFuture<'static, ()> {
            let (answers, session) = (answers.clone(), session.clone());
            Box::pin(async move {
                _ = answers.send(Event::Engine { session, input: Input::TerminalAttached { effect, screen } }).await;
            })
        };
        Terminals {
            client,
            draws_output: self.resources.terminal_mode == TerminalMode::Drawn,
            attach: Arc::new(attach),
        }
    }

    pub fn editor_client(&self) -> EditorClient {
        EditorClient { session: self.resources.session.clone(), effect: self.id, events: self.requests.clone() }
    }

    /// Tells whether it is a tool of castor's that works on files: it pages by itself.
    pub fn is_file_tool(&self, name: &str) -> bool {
        let is_one = |it: &ToolSpec| !matches!(it.traits.class, PolicyClass::Run | PolicyClass::Fetch);
        self.tools.iter().any(|(spec, _)| spec.name == name && is_one(spec))
    }

    pub fn tool(&self, name: &str) -> Option<&dyn Builtin> {
        self.tools.iter().find(|(spec, _)| spec.name == name).map(|(_, tool)| &**tool)
    }
}

pub fn unknown_tool(call: &ToolCall) -> ToolError {
    ToolError::new("tool_not_registered", format!("Tool \"{}\" not found.", call.name))
}
