//! The process of another agent: its start in the sandbox, the handshake, and its end as a group.

use std::{io, time::Duration};

use jsonrpsee::core::client::Error;
use serde_json::{Value, value::RawValue};
use tokio::{
    sync::{mpsc::Receiver, oneshot},
    task::JoinHandle,
    time::timeout,
};

use super::{answer_line, connection::Peer};
use castor_base::{
    fs::BoxFuture,
    held_program::{ProgramName, lack_in_words},
    path::AbsPath,
    peer_agent::ProgramAgent,
    sandbox::{Confinement, Denial},
    text,
};
use castor_client::{
    incoming::Incoming,
    peer::{self, AUTH_REQUIRED, PeerFacts, Refusal},
};
use castor_hands::{
    disk,
    process::{
        Groups, PipedProcess, Spawn, Stdin, outside::OutsideGate, program_rights::ProgramRights,
        server_process::ServerProcess,
    },
    secrets::name_looks_secret,
};

/// The time that it may take to say what it is, and to make a session: programs that fetch themselves first are slow.
const PATIENCE: Duration = Duration::from_secs(120);
/// The time that it may take to leave once nobody needs it.
const FAREWELL: Duration = Duration::from_secs(1);

/// Characters of its line in messages, so that people see the reason behind it.
const MAX_LINE: usize = 120;

/// The program that is started.
pub struct AgentLaunch {
    pub program: ProgramAgent,
    pub cwd: AbsPath,
    /// Variables of commands.
    pub env: Vec<(String, String)>,
    /// `None`: it may do what the user may.
    pub confined: Option<Confinement>,
    /// The user wants it outside: where the gate is open, nothing holds it.
    pub gate: Option<OutsideGate>,
    pub rights: ProgramRights,
    pub groups: Groups,
}

/// The reason why there is no agent.
pub enum AgentStartError {
    /// The user has to sign in first.
    SignIn(String),
    Failed(String),
}

/// A program that answered, with a session of its own.
pub struct RunningAgent {
    pub session: String,
    pub incoming: Receiver<Incoming>,
    peer: Peer,
    /// `None`: it was ended.
    keeper: Option<Keeper>,
    facts: PeerFacts,
    line: String,
    /// The sandbox that holds it, for people, where that is not as usual.
    hold: String,
}

/// Holds the process in a task of its own, so that it ends in order wherever the rest is dropped.
struct Keeper {
    /// Said or dropped: it is to leave.
    stop: oneshot::Sender<()>,
    ended: JoinHandle<AgentEnd>,
}

/// The end of a process, in words.
struct AgentEnd {
    reason: String,
    findings: Option<String>,
}

impl RunningAgent {
    /// Starts the program, and makes a session. The text says what it is.
    pub async fn start(launch: &AgentLaunch) -> Result<(Self, String), AgentStartError> {
        let line = text::first_line(&launch.program.line(), MAX_LINE);
        let (mut agent, facts) = match timeout(PATIENCE, Self::open(launch, line.clone())).await {
            Ok(it) => it?,
            Err(_) => {
                let why = format!("`{line}` did not answer `initialize` within {} s", PATIENCE.as_secs());
                return Err(AgentStartError::Failed(why));
            }
        };
        agent.facts = facts;
        let made = timeout(PATIENCE, agent.request("session/new", peer::new_session(&launch.cwd))).await;
        let made = made.unwrap_or_else(|_| Err("it made no session in time".to_owned()));
        let made = made.map_err(|why| agent.error_words(&why))?;
        agent.session = peer::session_id(&made).map_err(|why| agent.error_words(&why))?;
        let name = if agent.facts.name.is_empty() { &line } else { &agent.facts.name };
        let said: Vec<String> = std::iter::once(name.clone()).chain(peer::choices(&made)).collect();
        let text = format!("Another agent works here: {}.{}", said.join(", "), agent.hold);
        Ok((agent, text))
    }

    async fn open(launch: &AgentLaunch, line: String) -> Result<(Self, PeerFacts), AgentStartError> {
        let failed = |why: String| AgentStartError::Failed(format!("`{line}` could not be used: {why}"));
        let (confined, hold) = hold(launch).await;
        let (keeper, peer, incoming) = spawn(launch, confined).await.map_err(&failed)?;
        let mut agent = Self {
            session: String::new(),
            incoming,
            peer,
            keeper: Some(keeper),
            facts: PeerFacts::default(),
            line: line.clone(),
            hold,
        };
        let mut answer = agent.request("initialize", peer::initialize());
        let mut n_noise = 0;
        let answer = loop {
            tokio::select! {
                it = &mut answer => break it,
                it = agent.incoming.recv() => match it {
                    Some(Incoming::Noise(_)) if n_noise < super::MAX_NOISE => n_noise += 1,
                    Some(Incoming::Noise(_)) => break Err("what it writes is no ACP".to_owned()),
                    Some(_) => (),
                    None => break Err(GONE.to_owned()),
                },
            }
        };
        match answer.and_then(|it| PeerFacts::read(&it)) {
            Ok(facts) => Ok((agent, facts)),
            Err(why) if why == GONE => Err(failed(agent.end_words(GONE).await)),
            Err(why) => {
                agent.stop().await;
                Err(failed(why))
            }
        }
    }

    pub fn request(&self, method: &'static str, params: Value) -> BoxFuture<'static, Result<Value, String>> {
        let answer = self.peer.request(method, params);
        Box::pin(async move {
            answer.await.map_err(|why| match why {
                Error::Call(it) if i64::from(it.code()) == AUTH_REQUIRED => SIGN_IN.to_owned(),
                Error::Call(it) => {
                    let more = it.data().map(|it| format!(" ({})", it.get())).unwrap_or_default();
                    format!("{}{more}", it.message())
                }
                _ => GONE.to_owned(),
            })
        })
    }

    pub async fn answer(&self, id: &RawValue, answer: Result<Value, Refusal>) {
        // That it is gone is told by the end of its stdout.
        _ = self.peer.outbox().send(answer_line(id, &answer)).await;
    }

    /// An error of its own, for people.
    pub fn error_words(&self, why: &str) -> AgentStartError {
        if why != SIGN_IN {
            return AgentStartError::Failed(format!("`{}` failed: {why}", self.line));
        }
        let ways = match self.facts.sign_in.as_slice() {
            [] => String::new(),
            all => format!(" Its ways: {}.", all.join(", ")),
        };
        let line = &self.line;
        let next = "then name its credentials in `readable` of the agent's file, or give its key in `env`";
        AgentStartError::SignIn(format!(
            "`{line}` wants you to sign in. Do that with this program in a terminal, {next}.{ways}"
        ))
    }

    /// The reason of its end.
    pub async fn end_reason(mut self, otherwise: &str) -> String {
        let why = self.end_words(otherwise).await;
        format!("`{}` ended before its work: {why}", self.line)
    }

    async fn end_words(&mut self, otherwise: &str) -> String {
        let reason = self.end().await.map(|it| it.reason).filter(|it| !it.is_empty());
        reason.unwrap_or_else(|| otherwise.to_owned())
    }

    /// Ends it with all its processes, and waits for that. What is to be said of what it left.
    pub async fn stop(mut self) -> Option<String> {
        self.end().await?.findings
    }

    async fn end(&mut self) -> Option<AgentEnd> {
        let Keeper { stop, ended } = self.keeper.take()?;
        self.peer.close_input();
        _ = stop.send(());
        ended.await.ok()
    }
}

/// The reason of a process's end that is known at once; its exit says more.
pub const GONE: &str = "it closed the connection";
/// The words that stand in place of an agent's own.
const SIGN_IN: &str = "auth_required";

/// The confinement that holds it now, in words for people, too.
async fn hold(launch: &AgentLaunch) -> (Option<&Confinement>, String) {
    let refusal = match &launch.gate {
        Some(it) => it.refusal().await,
        None => None,
    };
    let confined = launch.confined.as_ref().filter(|_| launch.gate.is_none() || refusal.is_some());
    let said = match (confined, refusal) {
        (None, _) => " No sandbox holds it.".to_owned(),
        (_, Some(why)) => format!(" It runs in the sandbox, though its settings say outside: {why}."),
        (Some(_), None) => String::new(),
    };
    (confined, said)
}

/// Starts the process with its keeper.
async fn spawn(
    launch: &AgentLaunch,
    confined: Option<&Confinement>,
) -> Result<(Keeper, Peer, Receiver<Incoming>), String> {
    let scripts = launch.program.scripts.clone();
    let changed = tokio::task::spawn_blocking(move || disk::changed_file(&scripts)).await;
    if let Some(why) = changed.unwrap_or_else(|it| Some(it.to_string())) {
        return Err(why);
    }
    let env: Vec<(String, String)> = launch.env.iter().chain(&launch.program.env).cloned().collect();
    let args: Vec<&str> = launch.program.args.iter().map(String::as_str).collect();
    let program = launch.program.command.as_str();
    let spawn = Spawn { program, args: &args, cwd: &launch.cwd, env: &env, stdin: Stdin::Piped, confined };
    let PipedProcess { life, stdin, stdout, stderr } = spawn.start_piped(&launch.groups).map_err(|it| absence(&it))?;
    let secrets = launch.program.env.iter().filter(|it| name_looks_secret(&it.0)).map(|it| it.1.clone());
    let process = ServerProcess::new(life, stderr, secrets.filter(|it| it.len() >= 6).collect());
    let (peer, incoming) = Peer::connect(stdout, stdin);
    let (stop, stopped) = oneshot::channel();
    let program = ProgramName::Agent(launch.program.line());
    let (rights, confined, trace) = (launch.rights.clone(), confined.cloned(), process.trace());
    // Its answers are the model's: its log and its sandbox say what it lacked.
    let lack = move |end: &str| {
        let found = trace.take_lack(confined.as_ref()?, Some(end).filter(|it| !it.is_empty()));
        found.filter(|_| rights.note_told(&program))
    };
    let ended = tokio::spawn(keep(process, lack, stopped));
    Ok((Keeper { stop, ended }, peer, incoming))
}

fn absence(why: &io::Error) -> String {
    match why.kind() {
        io::ErrorKind::NotFound => "there is no such program".to_owned(),
        _ => why.to_string(),
    }
}

/// Until nobody wants it any more. It has a moment to leave by itself.
async fn keep(
    mut process: ServerProcess,
    lack: impl Fn(&str) -> Option<Denial>,
    stopped: oneshot::Receiver<()>,
) -> AgentEnd {
    let mut by_itself = tokio::select! {
        () = process.wait_for_exit() => true,
        _ = stopped => false,
    };
    if !by_itself {
        by_itself = timeout(FAREWELL, process.wait_for_exit()).await.is_ok();
    }
    process.end().await;
    // All of it is gone by now: it is not waited for in earnest.
    let findings = timeout(FAREWELL, process.final_findings()).await.ok().and_then(|it| it.in_words("another agent"));
    let mut reason = if by_itself { process.exit_reason().await } else { String::new() };
    let lack = lack(&reason).map(|it| lack_in_words(&it));
    if let Some(it) = lack.as_ref().filter(|_| !reason.is_empty()) {
        reason += &format!(". {it}");
    }
    let findings = findings.into_iter().chain(lack.map(|it| format!("{it}.")));
    let findings = findings.reduce(|one, other| format!("{one}\n{other}"));
    AgentEnd { reason, findings }
}

impl Drop for RunningAgent {
    /// Its work is not wanted any more: it hears of that before its process ends.
    fn drop(&mut self) {
        if self.keeper.is_none() {
            return;
        }
        let params = peer::cancel(&self.session);
        let line = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":{params}}}\n");
        _ = self.peer.outbox().try_send(line.into_bytes());
    }
}
