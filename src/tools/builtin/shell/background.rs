//! The table of processes that commands left in the background, by session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::builtin::ToolContext;
use castor_base::{path::AbsPath, text::first_line};

/// Of one session; those that ended long ago go first.
const MAX: usize = 100;
/// Of a command line, in characters.
const NAMED: usize = 200;

/// All of the process; each session sees its own.
#[derive(Clone, Debug, Default)]
pub struct BackgroundProcesses(Arc<Mutex<Vec<Entry>>>);

#[derive(Clone, Debug)]
pub struct BackgroundProcess {
    pub pid: u32,
    pub command: String,
    /// Where its output is; `None`: it could print nothing.
    pub log: Option<AbsPath>,
    /// How it ended; `None`: it runs.
    pub end: Option<String>,
}

#[derive(Debug)]
struct Entry {
    /// The session's folder for outputs, which is its own.
    session: AbsPath,
    closed: CancellationToken,
    process: Arc<Mutex<BackgroundProcess>>,
}

/// The processes of one command.
#[derive(Clone, Debug, Default)]
pub struct ListedProcesses(Vec<Arc<Mutex<BackgroundProcess>>>);

impl BackgroundProcesses {
    pub fn add(&self, ctx: &ToolContext, pids: &[u32], line: &str, log: Option<&AbsPath>) -> ListedProcesses {
        let mut entries = lock(&self.0);
        entries.retain(|it| !it.closed.is_cancelled());
        let command = first_line(&line.split_whitespace().collect::<Vec<_>>().join(" "), NAMED);
        let mut res = ListedProcesses::default();
        for &pid in pids {
            let process = BackgroundProcess { pid, command: command.clone(), log: log.cloned(), end: None };
            let process = Arc::new(Mutex::new(process));
            res.0.push(process.clone());
            entries.push(Entry {
                session: ctx.scratch.clone(),
                closed: ctx.background.session_closed.clone(),
                process,
            });
        }
        let is_its = |it: &Entry| it.session == ctx.scratch;
        while entries.iter().filter(|it| is_its(it)).count() > MAX {
            let ended = entries.iter().position(|it| is_its(it) && lock(&it.process).end.is_some());
            let Some(at) = ended.or_else(|| entries.iter().position(is_its)) else { break };
            entries.remove(at);
        }
        res
    }

    /// Those of the session, in the order in which they were started.
    pub fn of_session(&self, ctx: &ToolContext) -> Vec<BackgroundProcess> {
        let entries = lock(&self.0);
        let its = entries.iter().filter(|it| it.session == ctx.scratch);
        its.map(|it| lock(&it.process).clone()).collect()
    }

    /// The newest of that id in the session: ids come again.
    pub fn find(&self, ctx: &ToolContext, pid: usize) -> Option<BackgroundProcess> {
        self.of_session(ctx).into_iter().rev().find(|it| usize::try_from(it.pid) == Ok(pid))
    }
}

impl ListedProcesses {
    /// The first word on it counts.
    pub fn note_end(&self, how: &str) {
        for it in &self.0 {
            lock(it).end.get_or_insert_with(|| how.to_owned());
        }
    }
}

impl BackgroundProcess {
    /// Whether it runs, or how it ended.
    pub fn status(&self) -> String {
        self.end.as_ref().map_or_else(|| "running".to_owned(), |how| format!("ended: {how}"))
    }
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{BackgroundProcesses, MAX};
    use crate::builtin::{ToolContext, testing::ToolFixture};

    #[test]
    fn a_session_sees_its_own_and_a_bounded_number() {
        let fixture = ToolFixture::new(&[]);
        let (all, ctx) = (BackgroundProcesses::default(), fixture.ctx());
        let other = ToolContext { scratch: fixture.cwd.join("other"), ..fixture.ctx() };
        let first = all.add(&ctx, &[1, 2], "make\n  all", None);
        all.add(&other, &[3], "x", None);
        let shown = |it: &ToolContext| -> Vec<String> {
            all.of_session(it).iter().map(|it| format!("{} {} {}", it.pid, it.command, it.status())).collect()
        };
        assert_eq!(shown(&ctx), ["1 make all running", "2 make all running"]);
        assert!(all.find(&ctx, 3).is_none() && all.find(&other, 3).is_some());
        first.note_end("exit code 0");
        first.note_end("later");
        assert_eq!(all.find(&ctx, 1).unwrap().status(), "ended: exit code 0");
        (10..10 + MAX as u32).for_each(|it| _ = all.add(&ctx, &[it], "y", None));
        assert!(all.find(&ctx, 1).is_none() && all.of_session(&ctx).len() == MAX);
        // Who is gone is forgotten with the next.
        ctx.background.session_closed.cancel();
        all.add(&other, &[4], "z", None);
        assert!(all.of_session(&ctx).is_empty());
    }
}
