//! `castor acp`: the composition root, where everything is wired.

use std::{process::ExitCode, time::Duration};

use tokio::sync::mpsc;

use super::{
    event_loop::{self, Inbox},
    machine::Machine,
    stdio::{self, Stdin},
    tasks::{Tasks, builtins, threads::Threads},
};
use crate::{
    settings::{self, options::Options},
    telemetry::{self, Exporter},
};
use castor_base::path::AbsPath;
use castor_hands::{process::Groups, secrets::Env};
use castor_store::sessions::{SessionStore, StoreAddress};
use castor_tools::workspace;

/// Acknowledgements of writes and requests of tasks that wait.
const CONTROL_QUEUE: usize = 256;
/// Answers of the world that wait: beyond that, models and tools are not read.
const ANSWER_QUEUE: usize = 32;

/// How long hooks may take to hear of the end of their sessions.
const END_HOOKS_LIMIT: Duration = Duration::from_millis(1500);
/// Debug builds take the limit from here, in milliseconds: a loaded machine needs longer to start a hook.
const END_HOOKS_VARIABLE: &str = "CASTOR_DEBUG_END_HOOKS_MS";
/// Where sessions are kept; an address with a password is better here than on a command line, which all can read.
pub const STORE_VARIABLE: &str = "CASTOR_STORE";
/// What the whole end may take, from the moment that the client is gone.
const END: Duration = Duration::from_millis(950);

/// Serves one client on stdin and stdout until it leaves.
pub fn serve(options: Options, env: Env) -> ExitCode {
    let exporter = telemetry::start(&env, &settings::telemetry(&env));
    match try_serve(options, env, exporter) {
        Ok(()) => ExitCode::SUCCESS,
        Err(it) => {
            // The last line on stderr is what clients show when an agent does not start.
            eprintln!("castor: cannot serve: {it}");
            ExitCode::FAILURE
        }
    }
}

fn try_serve(options: Options, env: Env, exporter: Option<Exporter>) -> std::io::Result<()> {
    let (control_tx, control) = mpsc::channel(CONTROL_QUEUE);
    let (answers_tx, answers) = mpsc::channel(ANSWER_QUEUE);
    let stdout = stdio::write_stdout(stdio::take_stdout()?, control_tx.clone())?;
    let home = workspace::castor_home(&env).ok_or_else(|| std::io::Error::other(workspace::NO_HOME))?;
    let hooks_limit = end_hooks_limit(&env);
    let groups = Groups::default();
    let tools = builtins(&groups);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let threads = Threads::new(tools.clone(), groups.clone(), (answers_tx, control_tx), runtime.handle().clone());
    let store = open_store(home, options.store.as_deref(), &env).map_err(std::io::Error::other)?;
    let stored = store.stored().unwrap_or_default();
    let tasks = Tasks::new(store.clone(), groups, tools, Box::new(threads));
    let mut machine = Machine::new(options, env, tasks, seed());
    let stdin = runtime.block_on(async { Stdin::open() })?;
    let inbox = Inbox { stdin, control, answers, stored };
    let end = runtime.block_on(event_loop::run(&mut machine, inbox, &stdout, hooks_limit))?;
    // What says who holds a session goes with the holder.
    drop(machine);
    store.leave();
    if let Some(it) = exporter {
        it.flush(END.saturating_sub(end.elapsed()));
    }
    stdout.finish()?;
    // Threads that read or write for ever must not hold the exit.
    std::process::exit(0)
}

/// Where sessions are kept: as the command line says, else as the environment says.
///
/// # Errors
/// An address that is none; a database that cannot be reached or used.
pub fn open_store(home: AbsPath, wanted: Option<&str>, env: &Env) -> Result<SessionStore, String> {
    let of_env = env.get(STORE_VARIABLE).map(|it| (STORE_VARIABLE, it));
    let Some((name, text)) = wanted.map(|it| ("--store", it)).or(of_env) else { return Ok(SessionStore::new(home)) };
    let address = StoreAddress::parse(text, env.get("PGPASSWORD")).map_err(|it| format!("{name}: {it}"))?;
    SessionStore::at(home, &address).map_err(|it| it.to_string())
}

fn end_hooks_limit(env: &Env) -> Duration {
    let ms = env.get(END_HOOKS_VARIABLE).filter(|_| cfg!(debug_assertions)).and_then(|it| it.parse().ok());
    ms.map_or(END_HOOKS_LIMIT, Duration::from_millis)
}

/// Different for each process.
pub fn seed() -> u64 {
    uuid::Uuid::now_v7().as_u64_pair().1
}
