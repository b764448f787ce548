//! Terminals of the user's clients: shells that this machine runs, with their commands told apart.

use ahp::{
    ahp_types::{
        actions::{self, ActionOrigin, StateAction},
        commands::CreateTerminalParams,
        errors::{ahp_error_codes as codes, json_rpc_error_codes as rpc},
        state::{
            TerminalClaim, TerminalContentPart, TerminalInfo, TerminalLifecycleState, TerminalRunningLifecycleState,
            TerminalState,
        },
    },
    reducers::{self, ReduceOutcome},
};

use super::{
    HostMachine,
    command_marks::{CommandMarks, TerminalPart},
    orders::{MachineOrder, TerminalEvent, TerminalOrder},
};
use crate::ahp::sessions::{
    acts::number,
    messages::{path_of, uri_of},
};
use crate::ahp::{Channel, ClientRefusal, Clients, HostSettings, RequestOutcome, not_for_clients};
use castor_base::path::AbsPath;

const MAX_TERMINALS: usize = 16;
/// Bytes of output that a client gets which comes later.
const MAX_CONTENT: usize = 1 << 20;
const ROWS: u16 = 24;
const COLUMNS: u16 = 80;

pub struct HostedTerminal {
    pub state: TerminalState,
    marks: CommandMarks,
    /// The command that runs, and since when.
    command: Option<(String, u64)>,
    n_commands: u64,
    pub idle_since_ms: u64,
}

impl HostMachine {
    /// A client wants a terminal, by a name of its own.
    pub fn create_terminal(
        &mut self,
        clients: &mut Clients,
        settings: &HostSettings,
        params: CreateTerminalParams,
        client: &str,
    ) -> RequestOutcome {
        if !settings.is_user {
            let why = "only the user has terminals; ask the agent to run commands";
            return Err(ClientRefusal::new(codes::PERMISSION_DENIED, why));
        }
        let Some(Channel::Terminal(id)) = Channel::read(&params.channel) else {
            return Err(ClientRefusal::params("channel is ahp-terminal:/ID, with letters, digits, - and _ in the ID"));
        };
        if self.terminals.contains_key(&id) {
            return Err(ClientRefusal::new(codes::ALREADY_EXISTS, "there is a terminal with that URI"));
        }
        if self.terminals.len() >= MAX_TERMINALS {
            return Err(ClientRefusal::new(rpc::INVALID_REQUEST, "too many terminals are open; dispose one"));
        }
        if matches!(&params.claim, TerminalClaim::Client(it) if it.client_id != client) {
            return Err(ClientRefusal::params("a client claims terminals for itself"));
        }
        let cwd = params.cwd.as_deref().map_or_else(|| Some(settings.folder.clone()), path_of);
        let cwd = cwd.and_then(AbsPath::new).ok_or_else(|| ClientRefusal::params("cwd is a file: URI"))?;
        let (rows, columns) = (cells(params.rows, ROWS), cells(params.cols, COLUMNS));
        let state = TerminalState {
            title: params.name.unwrap_or_else(|| "Terminal".to_owned()),
            cwd: Some(uri_of(&cwd.to_string())),
            cols: Some(columns.into()),
            rows: Some(rows.into()),
            content: Vec::new(),
            lifecycle: TerminalLifecycleState::Running(TerminalRunningLifecycleState {}),
            claim: params.claim,
            supports_command_detection: None,
            is_pty: Some(true),
        };
        let marks = CommandMarks::default();
        let hosted = HostedTerminal { state, marks, command: None, n_commands: 0, idle_since_ms: clients.now_ms };
        self.terminals.insert(id.clone(), hosted);
        order_terminal(clients, &id, TerminalOrder::Start { cwd, rows, columns });
        Ok(())
    }

    pub fn dispose_terminal(&mut self, clients: &mut Clients, uri: &str) -> RequestOutcome {
        match Channel::read(uri) {
            Some(Channel::Terminal(id)) if self.terminals.contains_key(&id) => self.end_terminal(clients, &id),
            _ => return Err(ClientRefusal::no_channel(uri)),
        }
        Ok(())
    }

    fn end_terminal(&mut self, clients: &mut Clients, id: &str) {
        self.terminals.remove(id);
        order_terminal(clients, id, TerminalOrder::End);
        let channel = Channel::Terminal(id.to_owned());
        clients.unsubscribe(|it| *it == channel);
        self.announce_terminals(clients);
    }

    /// Ends terminals that no client looked at for so long, as sessions.
    pub fn drop_unused_terminals(&mut self, clients: &mut Clients, keep_ms: u64) {
        let mut unused = Vec::new();
        for (id, it) in &mut self.terminals {
            let channel = Channel::Terminal(id.clone());
            if clients.follow(|it| *it == channel) {
                it.idle_since_ms = clients.now_ms;
            }
            if clients.now_ms.saturating_sub(it.idle_since_ms) >= keep_ms {
                unused.push(id.clone());
            }
        }
        unused.iter().for_each(|it| self.end_terminal(clients, it));
    }

    /// A client does something with a terminal.
    ///
    /// # Errors
    /// Why an action is not accepted, in words.
    pub fn take_terminal_action(
        &mut self,
        clients: &mut Clients,
        id: &str,
        action: StateAction,
        origin: ActionOrigin,
    ) -> Result<(), String> {
        let Some(terminal) = self.terminals.get_mut(id) else { return Err("there is no such terminal".to_owned()) };
        match &action {
            // What is typed is seen as the program shows it.
            StateAction::TerminalInput(it) => {
                order_terminal(clients, id, TerminalOrder::Keys(it.data.clone()));
                return Ok(());
            }
            StateAction::TerminalResized(actions::TerminalResizedAction { cols, rows }) => {
                let (rows, columns) = (cells(Some(*rows), ROWS), cells(Some(*cols), COLUMNS));
                order_terminal(clients, id, TerminalOrder::Resize { rows, columns });
            }
            StateAction::TerminalClaimed(_) => {
                if !matches!(&terminal.state.claim, TerminalClaim::Client(it) if it.client_id == origin.client_id) {
                    return Err("another client holds the terminal".to_owned());
                }
            }
            StateAction::TerminalTitleChanged(_) | StateAction::TerminalCleared(_) => (),
            _ => return Err(not_for_clients()),
        }
        let is_listed = matches!(action, StateAction::TerminalClaimed(_) | StateAction::TerminalTitleChanged(_));
        terminal.emit(clients, id, action, Some(origin));
        if is_listed {
            self.announce_terminals(clients);
        }
        Ok(())
    }

    pub fn take_terminal_event(&mut self, clients: &mut Clients, id: &str, event: TerminalEvent) {
        let Some(terminal) = self.terminals.get_mut(id) else { return };
        match event {
            TerminalEvent::Output(text) => {
                for part in terminal.marks.push(&text) {
                    if let Some(action) = terminal.action_of(part, clients.now_ms) {
                        terminal.emit(clients, id, action, None);
                    }
                }
                terminal.trim();
            }
            TerminalEvent::Exited(code) => {
                let exit_code = code.map(i64::from);
                let action = StateAction::TerminalExited(actions::TerminalExitedAction { exit_code });
                terminal.emit(clients, id, action, None);
                self.announce_terminals(clients);
            }
        }
    }

    pub fn announce_terminals(&self, clients: &mut Clients) {
        let info = |(id, it): (&String, &HostedTerminal)| TerminalInfo {
            resource: Channel::Terminal(id.clone()).uri(),
            title: it.state.title.clone(),
            claim: it.state.claim.clone(),
            lifecycle: it.state.lifecycle.clone(),
        };
        let terminals = self.terminals.iter().map(info).collect();
        clients.emit_root(StateAction::RootTerminalsChanged(actions::RootTerminalsChangedAction { terminals }));
    }
}

fn order_terminal(clients: &mut Clients, id: &str, order: TerminalOrder) {
    clients.order(MachineOrder::Terminal { id: id.to_owned(), order });
}

impl HostedTerminal {
    fn emit(&mut self, clients: &mut Clients, id: &str, action: StateAction, origin: Option<ActionOrigin>) {
        if reducers::apply_action_to_terminal(&mut self.state, &action) == ReduceOutcome::Applied {
            clients.send_action(Channel::Terminal(id.to_owned()), action, origin);
        }
    }

    fn action_of(&mut self, part: TerminalPart, now_ms: u64) -> Option<StateAction> {
        Some(match part {
            TerminalPart::Text(data) => StateAction::TerminalData(actions::TerminalDataAction { data }),
            TerminalPart::Available if self.state.supports_command_detection == Some(true) => return None,
            TerminalPart::Available => {
                StateAction::TerminalCommandDetectionAvailable(actions::TerminalCommandDetectionAvailableAction {})
            }
            TerminalPart::Folder(path) => {
                let cwd = uri_of(&path);
                if self.state.cwd.as_ref() == Some(&cwd) {
                    return None;
                }
                StateAction::TerminalCwdChanged(actions::TerminalCwdChangedAction { cwd })
            }
            TerminalPart::Executed(command_line) => {
                self.n_commands += 1;
                let command_id = self.n_commands.to_string();
                self.command = Some((command_id.clone(), now_ms));
                let timestamp = number(now_ms);
                StateAction::TerminalCommandExecuted(actions::TerminalCommandExecutedAction {
                    command_id,
                    command_line,
                    timestamp,
                })
            }
            TerminalPart::Finished(exit_code) => {
                let (command_id, since_ms) = self.command.take()?;
                let duration_ms = Some(number(now_ms.saturating_sub(since_ms)));
                StateAction::TerminalCommandFinished(actions::TerminalCommandFinishedAction {
                    command_id,
                    exit_code,
                    duration_ms,
                })
            }
        })
    }

    /// Clients keep as much as they like of what they saw; for those that come later the beginning is gone.
    fn trim(&mut self) {
        let size = |it: &TerminalContentPart| match it {
            TerminalContentPart::Unclassified(it) => it.value.len(),
            TerminalContentPart::Command(it) => it.output.len(),
            TerminalContentPart::Unknown(_) => 0,
        };
        let mut total: usize = self.state.content.iter().map(size).sum();
        while total > MAX_CONTENT && self.state.content.len() > 1 {
            total -= size(&self.state.content.remove(0));
        }
        let text = match self.state.content.first_mut() {
            Some(TerminalContentPart::Unclassified(it)) => &mut it.value,
            Some(TerminalContentPart::Command(it)) => &mut it.output,
            _ => return,
        };
        if text.len() > 2 * MAX_CONTENT {
            let from = text.len() - MAX_CONTENT;
            let from = (from..text.len()).find(|it| text.is_char_boundary(*it)).unwrap_or(text.len());
            *text = text.split_off(from);
        }
    }
}

/// Rows or columns as a client wants them.
fn cells(wanted: Option<i64>, default: u16) -> u16 {
    wanted.and_then(|it| u16::try_from(it).ok()).filter(|it| (1..=1000).contains(it)).unwrap_or(default)
}
