//! The hand of a task: what it needs to do one effect of a session, and to say how it went.

use std::{future::Future, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt;
use tokio::sync::mpsc::Sender;
use tokio_util::sync::CancellationToken;

use crate::{
    app::{
        client::{EditorFs, EditorTerminal, Hands},
        desk::{Desk, Screens},
        event::Event,
        exit, fault,
        mcp::servers::McpTool,
        world::Tools,
    },
    base::{
        fs::{BoxFuture, Fs},
        ids::EffectId,
        sandbox::Leave,
        terminal::{Screen, Terminal},
        tool::{ToolCall, ToolOutput},
    },
    engine::step::{Hold, Input},
    world::{
        disk::DiskFs,
        mcp,
        redaction::Stream,
        tools::{Background, Builtin, Emptied, Known, Progress, Terminals, ToolContext},
    },
};

/// What a task needs to do one effect and to say how it went.
pub struct Hand {
    pub desk: Arc<Desk>,
    pub id: EffectId,
    pub cancel: CancellationToken,
    pub answers: Sender<Event>,
    pub requests: Sender<Event>,
    pub tools: Tools,
    /// What the user allowed beyond the sandbox.
    pub leave: Leave,
    /// What the call prints.
    pub printed: Arc<Stream>,
}

impl Hand {
    pub async fn say(&self, input: Input) {
        _ = self.answers.send(self.event(exit::redacted(&self.desk, input).await)).await;
    }

    pub fn event(&self, input: Input) -> Event {
        Event::Engine { session: self.desk.session.clone(), input }
    }

    /// `task`'s end, or what its panic said.
    pub async fn guard<T>(&self, task: impl Future<Output = T>) -> Result<T, String> {
        AssertUnwindSafe(task).catch_unwind().await.map_err(|it| fault::in_words(&*it))
    }

    /// As [`Hand::context`], of a call that `hold` is about.
    pub fn held_context(&self, known: Known, hold: Option<&Hold>) -> ToolContext {
        let ctx = self.context(known);
        let not_kept = hold.and_then(|it| it.not_kept.as_deref());
        match (not_kept, &ctx.confined) {
            (Some(not_kept), Some(it)) => ToolContext { confined: Some(Arc::new(it.undoable(not_kept))), ..ctx },
            _ => ctx,
        }
    }

    pub fn context(&self, known: Known) -> ToolContext {
        let desk = &self.desk;
        let disk: Arc<dyn Fs> = Arc::new(DiskFs);
        let fs: Arc<dyn Fs> = match desk.files.reads || desk.files.writes {
            false => disk,
            true => Arc::new(self.editor_fs(disk)),
        };
        ToolContext {
            cwd: desk.cwd.clone(),
            roots: desk.roots.clone(),
            scratch: desk.scratch.clone(),
            known,
            fs,
            cancel: self.cancel.clone(),
            progress: self.progress(),
            background: Background {
                closed: desk.children.closed.token.clone(),
                completed: self.teller(Input::Completed),
                emptied: self.parter(),
                notice: self.teller(Input::Noticed),
            },
            settings: desk.tools.clone(),
            env: desk.children.env.clone(),
            terminals: self.terminals(),
            confined: desk.children.confined.as_ref().and_then(|it| it.with(&self.leave)).map(Arc::new),
        }
    }

    /// The files that the editor has, before those of the disk.
    pub fn editor_fs(&self, disk: Arc<dyn Fs>) -> EditorFs {
        let Desk { cwd, roots, files, .. } = &*self.desk;
        let (cwd, roots, reads, writes) = (cwd.clone(), roots.clone(), files.reads, files.writes);
        EditorFs { hands: self.hands(), disk, cwd, roots, reads, writes }
    }

    /// Takes texts for the session, also long after the call's own end.
    pub fn teller(&self, input: fn(String) -> Input) -> Progress {
        exit::teller(self.answers.clone(), &self.desk, input)
    }

    /// Takes who ended with all their children. As [`Hand::teller`].
    fn parter(&self) -> Emptied {
        let (answers, session) = (self.answers.clone(), self.desk.session.clone());
        Arc::new(move |pid| -> BoxFuture<'static, ()> {
            let (answers, session) = (answers.clone(), session.clone());
            Box::pin(async move {
                _ = answers.send(Event::Engine { session, input: Input::Emptied(pid) }).await;
            })
        })
    }

    /// Takes live text of a call.
    fn progress(&self) -> Progress {
        exit::printer(self.answers.clone(), self.desk.session.clone(), self.id, self.printed.clone())
    }

    pub fn mcp_tool(&self, name: &str) -> Option<&McpTool> {
        self.desk.mcp.iter().find(|it| it.spec.name == name)
    }

    pub async fn call_mcp(&self, tool: &McpTool, call: &ToolCall) -> ToolOutput {
        let call = mcp::Call {
            tool: &tool.tool,
            args: &call.args,
            timeout: tool.timeout,
            cancel: &self.cancel,
            show: &self.progress(),
        };
        tool.connection.call(call).await
    }

    fn terminals(&self) -> Terminals {
        let client = match self.desk.screens {
            Screens::Client { reads_lines } => {
                let terminal: Arc<dyn Terminal> = Arc::new(EditorTerminal { hands: self.hands(), reads_lines });
                Some(terminal)
            }
            Screens::Text | Screens::Drawn => None,
        };
        let (answers, session, effect) = (self.answers.clone(), self.desk.session.clone(), self.id);
        let attach = move |screen: Screen| -> BoxFuture<'static, ()> {
            let (answers, session) = (answers.clone(), session.clone());
            Box::pin(async move {
                _ = answers.send(Event::Engine { session, input: Input::Attached { effect, screen } }).await;
            })
        };
        Terminals { client, drawn: self.desk.screens == Screens::Drawn, attach: Arc::new(attach) }
    }

    fn hands(&self) -> Hands {
        Hands { session: self.desk.session.clone(), effect: self.id, events: self.requests.clone() }
    }

    pub fn tool(&self, name: &str) -> Option<&dyn Builtin> {
        self.tools.iter().find(|(spec, _)| spec.name == name).map(|(_, tool)| &**tool)
    }
}
