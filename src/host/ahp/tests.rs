//! The host by conversations: inputs on `>` lines, what it sends below. A mirror of each client checks what it got.
//!
//! `> 1 +`: a client connects, `> 2 + 1`: with what another one knew; `> 1 -`: it ends; `> 1 {…}`: it says something;
//! `> hub {…}`: the hub does, and `> hub METHOD {…}` is its answer to a request; `> agent - why`: the agent ends; `> log LINE`: it logs;
//! `> machine …`: something came of an order; `> tick MS`: time passes. `$OPTIONS` are options of a session, in the mode
//! `default`; `$PLAN` are the same in the mode `plan`.

use std::collections::BTreeMap;

use ahp::{
    ahp_types::{
        actions::{ActionEnvelope, StateAction},
        state::{Snapshot, SnapshotState},
    },
    reducers,
};
use bytes::Bytes;
use expect_test::expect_file;
use serde_json::Value;

use super::{
    AhpHost, AhpInput, AhpOutput, HostMemory, HostSettings, MachineEvent, MachineOrder, TerminalEvent,
    clients::channel::Channel,
};
use castor_base::root_files::{FileAnswer, FileKind};

const SCENARIOS: &[(&str, &str)] = &[
    ("scenarios/sessions.txt", include_str!("scenarios/sessions.txt")),
    ("scenarios/turns.txt", include_str!("scenarios/turns.txt")),
    ("scenarios/questions.txt", include_str!("scenarios/questions.txt")),
    ("scenarios/changes.txt", include_str!("scenarios/changes.txt")),
    ("scenarios/coming_back.txt", include_str!("scenarios/coming_back.txt")),
    ("scenarios/refusals.txt", include_str!("scenarios/refusals.txt")),
    ("scenarios/machine.txt", include_str!("scenarios/machine.txt")),
    ("scenarios/tools_and_folders.txt", include_str!("scenarios/tools_and_folders.txt")),
];

#[rustfmt::skip]
const OPTIONS: &str = r#"[{"id":"mode","name":"Mode","type":"select","currentValue":"default","options":[{"value":"default","name":"Default"},{"value":"plan","name":"Plan","description":"Reads"}]},{"id":"model","name":"Model","type":"select","currentValue":"m1","options":[{"value":"m1","name":"M 1"}]},{"id":"agent","name":"Agent","type":"select","currentValue":"default","options":[{"value":"default","name":"castor"},{"value":"reviewer","name":"Reviewer"}]}]"#;

/// What a client knows, of snapshots and actions alone.
#[derive(Clone, Default)]
struct Mirror(BTreeMap<Channel, SnapshotState>);

impl Mirror {
    fn take(&mut self, message: &Value) {
        let result = &message["result"];
        let listed = result["snapshots"].as_array().cloned().unwrap_or_default();
        let one = result.get("snapshot").filter(|it| !it.is_null()).cloned();
        for it in listed.into_iter().chain(one) {
            let it: Snapshot = serde_json::from_value(it).unwrap();
            self.0.insert(Channel::read(&it.resource).unwrap(), it.state);
        }
        let missed = result["actions"].as_array().cloned().unwrap_or_default();
        let action = message.get("params").filter(|_| message["method"] == "action").cloned();
        for it in missed.into_iter().chain(action) {
            self.reduce(serde_json::from_value(it).unwrap());
        }
    }

    fn reduce(&mut self, it: ActionEnvelope) {
        if it.rejection_reason.is_some() {
            return;
        }
        assert!(!matches!(it.action, StateAction::Unknown(_)), "{:?}", it.action);
        let Some(state) = self.0.get_mut(&Channel::read(&it.channel).unwrap()) else { return };
        let outcome = match state {
            SnapshotState::Root(tree) => reducers::apply_action_to_root(tree, &it.action),
            SnapshotState::Session(tree) => reducers::apply_action_to_session(tree, &it.action),
            SnapshotState::Chat(tree) => reducers::apply_action_to_chat(tree, &it.action),
            SnapshotState::Changeset(tree) => reducers::apply_action_to_changeset(tree, &it.action),
            SnapshotState::Annotations(tree) => reducers::apply_action_to_annotations(tree, &it.action),
            SnapshotState::Terminal(tree) => reducers::apply_action_to_terminal(tree, &it.action),
            // It tells what happened, and has no state.
            SnapshotState::ResourceWatch(_) => return,
            _ => panic!("{}", it.channel),
        };
        assert_eq!(outcome, reducers::ReduceOutcome::Applied, "{:?}", it.action);
    }

    /// Of all that the client is subscribed to.
    fn check(&self, host: &AhpHost, number: u64) {
        let client = host.clients.all.get(&number).unwrap();
        for channel in client.subscriptions.iter().filter(|it| !matches!(it, Channel::Logs(_) | Channel::Metrics)) {
            let known = self.0.get(channel).unwrap_or_else(|| panic!("{channel:?} of {number}"));
            let trees = channel.session().map(|it| &host.sessions.all.get(it).unwrap().trees);
            let mut known = known.clone();
            let real = match (&mut known, channel) {
                (SnapshotState::Root(_), Channel::Root) => serde_json::to_vec(&host.clients.root),
                (SnapshotState::Chat(it), Channel::Chat(_)) => {
                    // Its title is told by the session.
                    it.title.clone_from(&trees.unwrap().chat.title);
                    serde_json::to_vec(&trees.unwrap().chat)
                }
                (SnapshotState::Session(it), Channel::Session(_)) => {
                    // These are told at the root.
                    it.status = trees.unwrap().session.status;
                    it.annotations.clone_from(&trees.unwrap().session.annotations);
                    serde_json::to_vec(&trees.unwrap().session)
                }
                (SnapshotState::Changeset(_), Channel::Changes(_)) => serde_json::to_vec(&trees.unwrap().changes),
                (SnapshotState::Terminal(_), Channel::Terminal(id)) => {
                    serde_json::to_vec(&host.machine.terminals[id].state)
                }
                (SnapshotState::ResourceWatch(_), Channel::Watch(id)) => {
                    serde_json::to_vec(&host.machine.watches[id].state)
                }
                (SnapshotState::Annotations(_), Channel::Annotations(_)) => {
                    serde_json::to_vec(&trees.unwrap().annotations)
                }
                _ => panic!("{channel:?}"),
            };
            // What is taken from the trees above is in the protocol's own style yet.
            let shown = |it: Vec<u8>| serde_json::from_slice::<Value>(&client.uri_style.apply(&it.into())).unwrap();
            let (known, real) = (shown(serde_json::to_vec(&known).unwrap()), shown(real.unwrap()));
            assert_eq!(known, real, "{channel:?} of client {number}");
        }
    }
}

struct Run {
    host: AhpHost,
    /// Requests of the host that have no answer yet: their methods and ids.
    asked: Vec<(String, Value)>,
    mirrors: BTreeMap<u64, Mirror>,
    now_ms: u64,
}

impl Run {
    fn new() -> Self {
        let settings =
            HostSettings { folder: "/w".to_owned(), max_requests: 3, keep_ms: 1000, is_user: true, roots: Vec::new() };
        Self {
            host: AhpHost::new(settings, HostMemory::default(), 0),
            asked: Vec::new(),
            mirrors: BTreeMap::new(),
            now_ms: 0,
        }
    }

    fn step(&mut self, line: &str) -> String {
        let (head, rest) = line.split_once(' ').unwrap_or((line, ""));
        let answer = self.answer_of(rest);
        let rest = answer.as_deref().filter(|_| head == "hub").unwrap_or(rest);
        let options = OPTIONS.replace(
            r#""currentValue":"default","options":[{"value":"default","name":"Default""#,
            r#""currentValue":"plan","options":[{"value":"default","name":"Default""#,
        );
        let message =
            rest.replacen('{', "{\"jsonrpc\":\"2.0\",", 1).replace("$OPTIONS", OPTIONS).replace("$PLAN", &options);
        let number = head.parse::<u64>().unwrap_or_default();
        let of_hub = Bytes::from(message.clone());
        let input = match (head, rest) {
            ("tick", ms) => {
                self.now_ms += ms.parse::<u64>().unwrap();
                AhpInput::Tick
            }
            ("log", line) => AhpInput::AgentLogged(line),
            ("agent", _) => AhpInput::AgentEnded(rest.trim_start_matches("- ")),
            ("hub", _) => AhpInput::Hub(&of_hub),
            ("machine", rest) => AhpInput::Machine(machine_event(rest)),
            (_, _) if rest.starts_with('+') => {
                let before = rest.trim_start_matches("+ ").parse::<u64>().ok();
                let mirror = before.and_then(|it| self.mirrors.get(&it)).cloned().unwrap_or_default();
                self.mirrors.insert(number, mirror);
                AhpInput::Connected(number)
            }
            (_, "-") => AhpInput::Disconnected(number),
            _ => AhpInput::Message { from: number, text: message.as_bytes() },
        };
        let out = self.host.handle(input, self.now_ms);
        out.into_iter().map(|it| self.record(it)).collect()
    }

    /// `METHOD {"result":…}` answers the oldest request of that method, `METHOD#1 …` the one after it.
    fn answer_of(&mut self, text: &str) -> Option<String> {
        let (method, outcome) = text.split_once(" {")?;
        let (method, skip) = method.split_once('#').unwrap_or((method, "0"));
        let open = self.asked.iter().enumerate().filter(|it| it.1.0 == method).nth(skip.parse().ok()?);
        let (_, id) = self.asked.remove(open?.0);
        Some(format!("{{\"id\":{id},{outcome}"))
    }

    fn note_request(&mut self, message: &[u8]) {
        let message: Value = serde_json::from_slice(message).unwrap();
        if let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) {
            self.asked.push((method.to_owned(), id.clone()));
        }
    }

    fn record(&mut self, output: AhpOutput) -> String {
        let text = |it: &[u8]| String::from_utf8(it.to_vec()).unwrap().replace("\"jsonrpc\":\"2.0\",", "");
        let version = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
        let line = match output {
            AhpOutput::Send { to, message } => {
                self.mirrors.get_mut(&to).unwrap().take(&serde_json::from_slice(&message).unwrap());
                format!("{to} {}\n", text(&message))
            }
            AhpOutput::JoinHub => "join\n".to_owned(),
            AhpOutput::LeaveHub => "leave\n".to_owned(),
            AhpOutput::Hub(line) => {
                self.note_request(&line);
                format!("hub {}\n", text(&line))
            }
            AhpOutput::Machine(MachineOrder::Remember(it)) => format!("remember {}\n", text(&it)),
            AhpOutput::Machine(it) => format!("machine {it:?}\n"),
        };
        line.replace(&version, "\"version\":\"V\"").replace(OPTIONS, "$OPTIONS")
    }
}

/// `scan JOB PATH=VERSION…`, `list JOB NAME…`, `output ID TEXT`, `exit ID CODE`.
fn machine_event(text: &str) -> MachineEvent {
    let mut words = text.splitn(3, ' ');
    let (kind, of, rest) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap_or_default());
    let terminal = |event| MachineEvent::Terminal { id: of.to_owned(), event };
    match kind {
        "scan" => {
            let versions = rest.split_whitespace().map(|it| it.split_once('=').unwrap());
            let found = versions.map(|(path, version)| (path.to_owned(), version.to_owned())).collect();
            MachineEvent::File { job: of.parse().unwrap(), outcome: Ok(FileAnswer::Scan(found)) }
        }
        "list" => {
            let entries = rest.split_whitespace().map(|it| (it.to_owned(), FileKind::File)).collect();
            MachineEvent::File { job: of.parse().unwrap(), outcome: Ok(FileAnswer::Entries(entries)) }
        }
        "output" => terminal(TerminalEvent::Output(rest.replace("\\e", "\x1b").replace("\\a", "\x07"))),
        "exit" => terminal(TerminalEvent::Exited(rest.parse().ok())),
        _ => panic!("{text}"),
    }
}

fn run(scenario: &str) -> String {
    let (mut run, mut res) = (Run::new(), String::new());
    for line in scenario.lines() {
        if let Some(input) = line.strip_prefix("> ") {
            res += &format!("{line}\n{}", run.step(input));
        } else if line.starts_with('#') {
            res += &format!("{line}\n");
        }
    }
    for (number, mirror) in &run.mirrors {
        if run.host.clients.all.contains_key(number) {
            mirror.check(&run.host, *number);
        }
    }
    res
}

#[test]
fn scenarios_are_as_written() {
    for (name, text) in SCENARIOS {
        let runs: Vec<String> = text.split("\n\n").map(run).collect();
        expect_file![name].assert_eq(&runs.join("\n"));
    }
}
