//! The machine of a principal's AHP host: orders about files, one after the other, and the user's terminals.

use std::{collections::BTreeMap, time::Duration};

use tokio::{
    sync::{mpsc, oneshot},
    time::MissedTickBehavior,
};

use super::principal::AgentGround;
use castor_base::{
    guarded_names,
    path::AbsPath,
    root_files::{FileOrder, FileTrouble},
    terminal::CommandEvent,
};
use castor_hands::{
    disk::{self, root_files},
    process::{Child, Groups, Spawn, Stdin, TerminalKeys},
};
use castor_host::ahp::{HostMemory, MachineEvent, MachineOrder, TerminalEvent, TerminalOrder};

/// What is read of a terminal goes on after so long: a program that prints without end must not fill the connections.
const PACE: Duration = Duration::from_millis(20);
/// Keys and sizes that a terminal has not taken yet.
const MAX_KEYS: usize = 256;
const SHELL_MARKS: &[u8] = include_bytes!("shell_marks.bash");

/// Something that came of an order.
pub struct MachineNews {
    pub principal: String,
    pub event: MachineEvent,
}

pub struct LocalMachine {
    ground: AgentGround,
    groups: Groups,
    orders: mpsc::UnboundedSender<(u64, FileOrder)>,
    terminals: BTreeMap<String, OpenTerminal>,
    news: NewsOutlet,
}

/// Dropping it ends the shell.
struct OpenTerminal {
    keys: mpsc::Sender<TerminalOrder>,
    _end: oneshot::Sender<()>,
}

#[derive(Clone)]
struct NewsOutlet {
    principal: String,
    news: mpsc::Sender<MachineNews>,
}

impl NewsOutlet {
    /// Tells whether anybody listens.
    async fn send(&self, event: MachineEvent) -> bool {
        self.news.send(MachineNews { principal: self.principal.clone(), event }).await.is_ok()
    }

    async fn send_terminal(&self, id: &str, event: TerminalEvent) -> bool {
        self.send(MachineEvent::Terminal { id: id.to_owned(), event }).await
    }
}

impl LocalMachine {
    /// Must be called within a runtime.
    pub fn new(ground: &AgentGround, principal: &str, groups: &Groups, news: mpsc::Sender<MachineNews>) -> Self {
        let news = NewsOutlet { principal: principal.to_owned(), news };
        let (orders, queue) = mpsc::unbounded_channel();
        tokio::spawn(carry_out_files(queue, ground.hidden(), news.clone()));
        Self { ground: ground.clone(), groups: groups.clone(), orders, terminals: BTreeMap::new(), news }
    }

    pub fn carry_out(&mut self, order: MachineOrder) {
        match order {
            // It is there as long as this is.
            MachineOrder::File { job, order } => _ = self.orders.send((job, order)),
            MachineOrder::Terminal { id, order: TerminalOrder::Start { cwd, rows, columns } } => {
                self.start_terminal(id, &cwd, (rows, columns));
            }
            MachineOrder::Terminal { id, order: TerminalOrder::End } => _ = self.terminals.remove(&id),
            MachineOrder::Terminal { id, order } => {
                // A program that reads nothing loses what is typed, as it does in any terminal.
                _ = self.terminals.get(&id).map(|it| it.keys.try_send(order));
            }
            MachineOrder::Remember(memory) => {
                let file = memory_file(&self.ground, &self.news.principal);
                if let Err(it) = disk::write_private(&file, &memory) {
                    tracing::warn!("{file}: {it}");
                }
            }
        }
    }

    fn start_terminal(&mut self, id: String, cwd: &AbsPath, size: (u16, u16)) {
        let news = self.news.clone();
        match self.spawn_shell(cwd, size) {
            Ok((child, keys)) => {
                let (orders, queue) = mpsc::channel(MAX_KEYS);
                let (end, ended) = oneshot::channel();
                tokio::spawn(pass_keys(keys, queue));
                tokio::spawn(show_output(child, (id.clone(), news), ended));
                self.terminals.insert(id, OpenTerminal { keys: orders, _end: end });
            }
            Err(it) => {
                tokio::spawn(async move {
                    news.send_terminal(&id, TerminalEvent::Output(format!("the shell does not start: {it}\r\n"))).await;
                    news.send_terminal(&id, TerminalEvent::Exited(None)).await;
                });
            }
        }
    }

    fn spawn_shell(&self, cwd: &AbsPath, size: (u16, u16)) -> std::io::Result<(Child, TerminalKeys)> {
        let mut env = self.ground.of_user().env;
        env.push(("TERM".to_owned(), "xterm-256color".to_owned()));
        let shell = self.ground.env.get("SHELL").unwrap_or("/bin/sh").to_owned();
        let marks = self.ground.home.join("serve").join("shell_marks.bash");
        let has_marks = shell.ends_with("/bash") && disk::write_private_note(&marks, SHELL_MARKS).is_ok();
        let marks = marks.to_string();
        let args: &[&str] = if has_marks { &["--init-file", &marks, "-i"] } else { &[] };
        let spawn = Spawn { program: &shell, args, cwd, env: &env, stdin: Stdin::Terminal, confined: None };
        spawn.start_typed(size, &self.groups)
    }
}

impl AgentGround {
    /// What no order about a file may reach.
    fn hidden(&self) -> Vec<AbsPath> {
        let user = self.env.get("HOME").and_then(AbsPath::new);
        let secrets = user.iter().flat_map(|it| guarded_names::credentials().map(move |name| it.join(name)));
        let system = guarded_names::SYSTEM_SECRETS.iter().filter_map(|it| AbsPath::new(*it));
        let all = secrets.chain(system).chain([self.home.clone()]);
        all.map(|it| disk::real_path(&it).unwrap_or(it)).collect()
    }
}

/// Not in a principal's own folder, which its agent may write.
fn memory_file(ground: &AgentGround, principal: &str) -> AbsPath {
    let name = if principal.is_empty() { "user.json".to_owned() } else { format!("principal-{principal}.json") };
    ground.home.join("serve").join("ahp").join(name)
}

/// What the host of a principal kept; one that cannot be read is as none.
pub fn read_memory(ground: &AgentGround, principal: &str) -> HostMemory {
    let kept = disk::read_private(&memory_file(ground, principal)).ok();
    kept.and_then(|it| serde_json::from_slice(&it).ok()).unwrap_or_default()
}

async fn carry_out_files(mut queue: mpsc::UnboundedReceiver<(u64, FileOrder)>, hidden: Vec<AbsPath>, news: NewsOutlet) {
    while let Some((job, order)) = queue.recv().await {
        let hidden = hidden.clone();
        let done = tokio::task::spawn_blocking(move || root_files::carry_out(&order, &hidden)).await;
        let outcome = done.unwrap_or_else(|_| Err(FileTrouble::Failed("castor has a bug there".to_owned())));
        if !news.send(MachineEvent::File { job, outcome }).await {
            return;
        }
    }
}

async fn pass_keys(mut keys: TerminalKeys, mut queue: mpsc::Receiver<TerminalOrder>) {
    while let Some(order) = queue.recv().await {
        let done = match order {
            TerminalOrder::Keys(it) => keys.write(it.as_bytes()).await,
            TerminalOrder::Resize { rows, columns } => keys.resize(rows, columns),
            TerminalOrder::Start { .. } | TerminalOrder::End => Ok(()),
        };
        if done.is_err() {
            return;
        }
    }
}

async fn show_output(mut child: Child, (id, news): (String, NewsOutlet), mut ended: oneshot::Receiver<()>) {
    let mut pace = tokio::time::interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let event = tokio::select! {
            event = child.next() => event,
            // Dropping the child ends it.
            _ = &mut ended => return,
        };
        let is_heard = match event {
            CommandEvent::Output(text) => news.send_terminal(&id, TerminalEvent::Output(text)).await,
            CommandEvent::Exited(exit) => {
                news.send_terminal(&id, TerminalEvent::Exited(exit.code)).await;
                false
            }
            CommandEvent::OutputPending => true,
            CommandEvent::Closed | CommandEvent::TerminalLost(_) => false,
        };
        if !is_heard {
            return;
        }
        pace.tick().await;
    }
}
