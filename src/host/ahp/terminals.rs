//! Terminals of the user's clients: shells that this machine runs, with their commands told apart.

use ahp::{
    ahp_types::{
        actions::{
            ActionOrigin, RootTerminalsChangedAction, StateAction, TerminalCommandDetectionAvailableAction,
            TerminalCommandExecutedAction, TerminalCommandFinishedAction, TerminalCwdChangedAction, TerminalDataAction,
            TerminalExitedAction, TerminalResizedAction,
        },
        commands::CreateTerminalParams,
        errors::{ahp_error_codes as codes, json_rpc_error_codes as rpc},
        state::{
            TerminalClaim, TerminalContentPart, TerminalInfo, TerminalLifecycleState, TerminalRunningLifecycleState,
            TerminalState,
        },
    },
    reducers::{self, ReduceOutcome},
};
use serde_json::Value;

use super::{
    AhpHost, AhpOutput,
    actions::not_for_clients,
    channel::Channel,
    client_requests::{ClientRefusal, HostCall, RequestOutcome},
    command_marks::{CommandMarks, TerminalPart},
    machine::{MachineOrder, TerminalEvent, TerminalOrder},
    messages::{file_uri, path_of},
};
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

impl AhpHost {
    pub(super) fn create_terminal(&mut self, call: HostCall<'_>) -> RequestOutcome {
        let params: CreateTerminalParams = call.read()?;
        if !self.settings.is_user {
            let why = "only the user has terminals; ask the agent to run commands";
            return Err(ClientRefusal::new(codes::PERMISSION_DENIED, why));
        }
        let Some(Channel::Terminal(id)) = Channel::read(&params.channel) else {
            return Err(ClientRefusal::params("channel is ahp-terminal:/ID, with letters, digits, - and _ in the ID"));
        };
        if self.work.terminals.contains_key(&id) {
            return Err(ClientRefusal::new(codes::ALREADY_EXISTS, "there is a terminal with that URI"));
        }
        if self.work.terminals.len() >= MAX_TERMINALS {
            return Err(ClientRefusal::new(rpc::INVALID_REQUEST, "too many terminals are open; dispose one"));
        }
        let of_client = self.clients.get(&call.from).and_then(|it| it.id.as_deref());
        if matches!(&params.claim, TerminalClaim::Client(it) if Some(it.client_id.as_str()) != of_client) {
            return Err(ClientRefusal::params("a client claims terminals for itself"));
        }
        let cwd = params.cwd.as_deref().map_or_else(|| Some(self.settings.folder.clone()), path_of);
        let cwd = cwd.and_then(AbsPath::new).ok_or_else(|| ClientRefusal::params("cwd is a file: URI"))?;
        let (rows, columns) = (cells(params.rows, ROWS), cells(params.cols, COLUMNS));
        let state = TerminalState {
            title: params.name.unwrap_or_else(|| "Terminal".to_owned()),
            cwd: Some(file_uri(&cwd.to_string())),
            cols: Some(columns.into()),
            rows: Some(rows.into()),
            content: Vec::new(),
            lifecycle: TerminalLifecycleState::Running(TerminalRunningLifecycleState {}),
            claim: params.claim,
            supports_command_detection: None,
            is_pty: Some(true),
        };
        let marks = CommandMarks::default();
        let hosted = HostedTerminal { state, marks, command: None, n_commands: 0, idle_since_ms: self.now_ms };
        self.work.terminals.insert(id.clone(), hosted);
        self.order_terminal(&id, TerminalOrder::Start { cwd, rows, columns });
        self.answer(&call.asker(), &Value::Null);
        self.announce_terminals();
        Ok(())
    }

    pub(super) fn dispose_terminal(&mut self, call: HostCall<'_>) -> RequestOutcome {
        let uri = call.text("channel")?;
        let id = match Channel::read(&uri) {
            Some(Channel::Terminal(id)) if self.work.terminals.contains_key(&id) => id,
            _ => return Err(ClientRefusal::no_channel(&uri)),
        };
        self.end_terminal(&id);
        self.answer(&call.asker(), &Value::Null);
        Ok(())
    }

    fn end_terminal(&mut self, id: &str) {
        self.work.terminals.remove(id);
        self.order_terminal(id, TerminalOrder::End);
        let channel = Channel::Terminal(id.to_owned());
        self.clients.values_mut().for_each(|it| _ = it.subscriptions.remove(&channel));
        self.announce_terminals();
    }

    /// Terminals that no client looked at for so long, as sessions.
    pub(super) fn drop_unused_terminals(&mut self) {
        let (now, keep_ms) = (self.now_ms, self.settings.keep_ms);
        let mut unused = Vec::new();
        for (id, it) in &mut self.work.terminals {
            let channel = Channel::Terminal(id.clone());
            if self.clients.values().any(|it| it.subscriptions.contains(&channel)) {
                it.idle_since_ms = now;
            }
            if now.saturating_sub(it.idle_since_ms) >= keep_ms {
                unused.push(id.clone());
            }
        }
        unused.iter().for_each(|it| self.end_terminal(it));
    }

    /// # Errors
    /// Why an action is not accepted, in words.
    pub(super) fn take_terminal_action(
        &mut self,
        id: &str,
        action: StateAction,
        origin: ActionOrigin,
    ) -> Result<(), String> {
        let Some(terminal) = self.work.terminals.get(id) else { return Err("there is no such terminal".to_owned()) };
        match &action {
            // What is typed is seen as the program shows it.
            StateAction::TerminalInput(it) => {
                let keys = it.data.clone();
                self.order_terminal(id, TerminalOrder::Keys(keys));
                return Ok(());
            }
            StateAction::TerminalResized(TerminalResizedAction { cols, rows }) => {
                let (rows, columns) = (cells(Some(*rows), ROWS), cells(Some(*cols), COLUMNS));
                self.order_terminal(id, TerminalOrder::Resize { rows, columns });
            }
            StateAction::TerminalClaimed(_) => {
                let holder =
                    matches!(&terminal.state.claim, TerminalClaim::Client(it) if it.client_id == origin.client_id);
                if !holder {
                    return Err("another client holds the terminal".to_owned());
                }
            }
            StateAction::TerminalTitleChanged(_) | StateAction::TerminalCleared(_) => (),
            _ => return Err(not_for_clients()),
        }
        let is_listed = matches!(action, StateAction::TerminalClaimed(_) | StateAction::TerminalTitleChanged(_));
        self.emit_terminal(id, action, Some(origin));
        if is_listed {
            self.announce_terminals();
        }
        Ok(())
    }

    pub(super) fn take_terminal_event(&mut self, id: &str, event: TerminalEvent) {
        let Some(terminal) = self.work.terminals.get_mut(id) else { return };
        let (now, parts) = match event {
            TerminalEvent::Output(text) => (self.now_ms, terminal.marks.push(&text)),
            TerminalEvent::Exited(code) => {
                let exit_code = code.map(i64::from);
                self.emit_terminal(id, StateAction::TerminalExited(TerminalExitedAction { exit_code }), None);
                return self.announce_terminals();
            }
        };
        for part in parts {
            let action = self.work.terminals.get_mut(id).and_then(|it| it.action_of(part, now));
            if let Some(action) = action {
                self.emit_terminal(id, action, None);
            }
        }
        if let Some(it) = self.work.terminals.get_mut(id) {
            it.trim();
        }
    }

    fn order_terminal(&mut self, id: &str, order: TerminalOrder) {
        self.out.push(AhpOutput::Machine(MachineOrder::Terminal { id: id.to_owned(), order }));
    }

    fn emit_terminal(&mut self, id: &str, action: StateAction, origin: Option<ActionOrigin>) {
        let Some(terminal) = self.work.terminals.get_mut(id) else { return };
        if reducers::apply_action_to_terminal(&mut terminal.state, &action) == ReduceOutcome::Applied {
            self.send_action(Channel::Terminal(id.to_owned()), action, origin);
        }
    }

    fn announce_terminals(&mut self) {
        let info = |(id, it): (&String, &HostedTerminal)| TerminalInfo {
            resource: Channel::Terminal(id.clone()).uri(),
            title: it.state.title.clone(),
            claim: it.state.claim.clone(),
            lifecycle: it.state.lifecycle.clone(),
        };
        let terminals = self.work.terminals.iter().map(info).collect();
        self.emit_root(StateAction::RootTerminalsChanged(RootTerminalsChangedAction { terminals }));
    }
}

impl HostedTerminal {
    fn action_of(&mut self, part: TerminalPart, now_ms: u64) -> Option<StateAction> {
        let millis = |it: u64| i64::try_from(it).unwrap_or(i64::MAX);
        Some(match part {
            TerminalPart::Text(data) => StateAction::TerminalData(TerminalDataAction { data }),
            TerminalPart::Available if self.state.supports_command_detection == Some(true) => return None,
            TerminalPart::Available => {
                StateAction::TerminalCommandDetectionAvailable(TerminalCommandDetectionAvailableAction {})
            }
            TerminalPart::Folder(path) => {
                let cwd = file_uri(&path);
                if self.state.cwd.as_ref() == Some(&cwd) {
                    return None;
                }
                StateAction::TerminalCwdChanged(TerminalCwdChangedAction { cwd })
            }
            TerminalPart::Executed(command_line) => {
                self.n_commands += 1;
                let command_id = self.n_commands.to_string();
                self.command = Some((command_id.clone(), now_ms));
                let timestamp = millis(now_ms);
                StateAction::TerminalCommandExecuted(TerminalCommandExecutedAction {
                    command_id,
                    command_line,
                    timestamp,
                })
            }
            TerminalPart::Finished(exit_code) => {
                let (command_id, since_ms) = self.command.take()?;
                let duration_ms = Some(millis(now_ms.saturating_sub(since_ms)));
                StateAction::TerminalCommandFinished(TerminalCommandFinishedAction {
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

/// Of a client's own number.
fn cells(wanted: Option<i64>, default: u16) -> u16 {
    wanted.and_then(|it| u16::try_from(it).ok()).filter(|it| (1..=1000).contains(it)).unwrap_or(default)
}
