//! What the loop has done for it: the closed list of jobs, and who takes them.

use std::{
    fs::File,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use tokio_util::sync::CancellationToken;

use crate::{
    app::{
        desk::Desk,
        event::{Listing, Wish},
    },
    base::{
        hook::HookRun,
        ids::{EffectId, SessionId},
        log::{Grant, Lasting},
        path::AbsPath,
    },
    engine::step::Effect,
    wire::jsonrpc::queue::Ticket,
    world::{
        checkpoints::Checkpoints,
        mcp::{Doors, Launch},
        store::{Cache, Store},
    },
};

/// Who does the jobs. Starting one never waits; what becomes of it comes back as events. There are the threads of the
/// process, and the simulator. No session waits for a chore, but castor's own end does; it is answered by `ChoreDone`.
pub trait Workers {
    fn start(&mut self, job: Job);
}

pub enum Job {
    /// Answered as its effect says.
    Effect(EffectJob),
    /// An MCP server, until `stop`. Answered by its news.
    Server { server: u64, launch: Launch, doors: Doors, stop: CancellationToken },
    /// A hook is told of the end of a session. A chore.
    Farewell { desk: Arc<Desk>, run: Box<HookRun> },
    /// Answered by `Listed`.
    List(Search),
    /// What the sandbox can hold here is found out before the first session asks. Not answered.
    Probe,
    /// A log is to be durable. Not answered.
    Sync(File),
    /// A session's checkpoints are not needed any more; with `forget` not even by a later castor. A chore.
    Part { checkpoints: Option<Arc<Checkpoints>>, forget: Option<(AbsPath, SessionId)> },
    /// A text is kept in a file. A chore.
    Stash { file: AbsPath, text: String },
    /// A yes for ever is written down: in the order in which these are started. Answered by `Saved`.
    Save { home: AbsPath, folder: AbsPath, lasting: Lasting },
    /// What holds beyond the sandbox in a folder for ever is written down, or struck out. As `Save`.
    Keep { home: AbsPath, folder: AbsPath, grant: Grant, holds: bool },
}

/// An effect of a session's engine.
pub struct EffectJob {
    pub desk: Arc<Desk>,
    pub id: EffectId,
    pub effect: Effect,
    /// Cancelled when the answer is no longer wanted; one that comes all the same is ignored.
    pub cancel: CancellationToken,
    /// Must be on the disk before the effect begins.
    pub log: Option<File>,
}

/// A look for sessions on the disk.
pub struct Search {
    pub ticket: Ticket,
    pub wish: Wish,
    pub store: Store,
    pub cache: Cache,
}

impl Search {
    /// Reads the disk; a machine may hold thousands of logs.
    pub fn look(self) -> Listing {
        let Self { ticket, wish, store, mut cache } = self;
        let found = catch_unwind(AssertUnwindSafe(|| store.list_again(wish.cwd.as_ref(), &mut cache)));
        Listing { ticket, wish, found: found.unwrap_or_default(), cache }
    }
}
