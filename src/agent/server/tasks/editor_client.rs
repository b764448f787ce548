//! The editor's files and terminals: the traits `Fs` and `Terminal` over ACP requests.

use std::{collections::VecDeque, io, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{
    sync::{mpsc::Sender, oneshot},
    time::{Instant, sleep_until},
};

use crate::server::event::{EditorRequest, Event};
use castor_base::{
    fs::{BoxFuture, ChangeError, Fs, FsError, PlannedChange},
    ids::{EffectId, SessionId},
    path::AbsPath,
    terminal::{CommandEvent, CommandLine, Exit, RunningCommand, Screen, Terminal},
};
use castor_wire::{
    acp::terminals::{self, CREATE, KILL, OUTPUT, Snapshot, WAIT},
    jsonrpc::message::RpcError,
};

/// The client does not know the file, or does not do this at all: the disk answers instead.
const NOT_FOUND: i32 = -32002;
const METHOD_NOT_FOUND: i32 = -32601;

/// The editor's methods, for one call. Holds a sender only: the loop owns the requests.
#[derive(Clone)]
pub struct EditorClient {
    pub session: SessionId,
    pub effect: EffectId,
    pub events: Sender<Event>,
}

impl EditorClient {
    /// `None`: the loop, the client or the call is gone.
    pub async fn ask(&self, method: &'static str, params: Value) -> Option<Result<Value, RpcError>> {
        let (reply, answer) = oneshot::channel();
        let (session, effect) = (self.session.clone(), self.effect);
        let request = EditorRequest { session, effect, method, params, reply };
        self.events.send(Event::Editor(request)).await.ok()?;
        answer.await.ok()
    }
}

/// Files as the editor has them.
pub struct EditorFs {
    pub client: EditorClient,
    pub disk: Arc<dyn Fs>,
    /// What the editor calls the first of `roots`.
    pub cwd: AbsPath,
    /// Folders that the editor knows, canonical; other files are the disk's.
    pub roots: Vec<AbsPath>,
    pub reads: bool,
    pub writes: bool,
}

impl EditorFs {
    /// Tells whether the editor may know it: its messages have no name that is no UTF-8.
    fn is_known(&self, path: &AbsPath) -> bool {
        path.as_path().to_str().is_some() && self.roots.iter().any(|it| path.is_within(it))
    }

    /// The editor's name for a real path: it may have opened the workspace through a link.
    fn editor_path(&self, real: &AbsPath) -> AbsPath {
        let below = self.roots.first().and_then(|it| real.as_path().strip_prefix(it).ok());
        below.map_or_else(|| real.clone(), |it| self.cwd.join(it))
    }

    /// What the editor says that a file is; `None`: it says nothing of it.
    pub async fn buffer(&self, path: &AbsPath) -> Option<Vec<u8>> {
        if !self.is_known(path) {
            return None;
        }
        let params = json!({ "sessionId": self.client.session.root(), "path": self.editor_path(path) });
        let result = self.client.ask("fs/read_text_file", params).await?.ok()?;
        let text = result.get("content").and_then(Value::as_str)?;
        (!text.is_empty() || self.is_on_disk(path).await).then(|| text.as_bytes().to_vec())
    }

    /// An empty text of a file that the disk lacks is no file: CodeCompanion answers so instead of an error.
    async fn is_on_disk(&self, path: &AbsPath) -> bool {
        !matches!(self.disk.read(path).await, Err(FsError::NotFound(_)))
    }

    async fn read_buffer(&self, path: &AbsPath) -> Result<Vec<u8>, FsError> {
        let params = json!({ "sessionId": self.client.session.root(), "path": self.editor_path(path) });
        match self.client.ask("fs/read_text_file", params).await {
            Some(Ok(result)) => match result.get("content").and_then(Value::as_str) {
                Some("") if !self.is_on_disk(path).await => Err(FsError::NotFound(path.clone())),
                Some(text) => Ok(text.as_bytes().to_vec()),
                None => self.disk.read(path).await,
            },
            // Whatever keeps the editor from showing a file (binary, too large, outside its project): the disk has it.
            Some(Err(_)) => self.disk.read(path).await,
            None => Err(editor_gone(path)),
        }
    }

    async fn write_buffer(&self, path: &AbsPath, bytes: Vec<u8>) -> Result<(), FsError> {
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(it) => return self.disk.write(path, it.into_bytes()).await,
        };
        let params =
            json!({ "sessionId": self.client.session.root(), "path": self.editor_path(path), "content": text });
        match self.client.ask("fs/write_text_file", params).await {
            Some(Ok(_)) => Ok(()),
            Some(Err(it)) if it.code == NOT_FOUND || it.code == METHOD_NOT_FOUND => {
                self.disk.write(path, text.into_bytes()).await
            }
            // Writing past an editor that refuses would make buffer and disk disagree.
            Some(Err(it)) => {
                let message = format!("the editor could not write the file: {}", it.message);
                Err(FsError::Other { path: path.clone(), message })
            }
            None => Err(editor_gone(path)),
        }
    }
}

impl EditorFs {
    /// First what the editor has no say in, as a whole; then its own files, one by one. Editors remove none.
    async fn change_all(&self, changes: Vec<PlannedChange>) -> Result<(), ChangeError> {
        let is_written = |it: &PlannedChange| it.after.is_some() && it.moved_from.is_none();
        let is_editors = |it: &PlannedChange| self.writes && is_written(it) && self.is_known(&it.path);
        let (own, of_disk): (Vec<_>, Vec<_>) = changes.into_iter().partition(is_editors);
        self.disk.change(of_disk.clone()).await?;
        for (n, it) in own.iter().enumerate() {
            if let Err(why) = self.write_buffer(&it.path, it.after.clone().unwrap_or_default()).await {
                return Err(self.take_back(own.get(..n).unwrap_or_default(), &of_disk, why).await);
            }
        }
        Ok(())
    }

    async fn take_back(&self, own: &[PlannedChange], of_disk: &[PlannedChange], why: FsError) -> ChangeError {
        let mut res = ChangeError::from(why);
        for it in own {
            let done = match &it.before {
                Some(bytes) => self.write_buffer(&it.path, bytes.clone()).await.is_ok(),
                None => self.disk.change(vec![it.inverse()]).await.is_ok(),
            };
            res.left.extend((!done).then(|| it.path.clone()));
        }
        let inverse: Vec<PlannedChange> = of_disk.iter().map(PlannedChange::inverse).collect();
        if self.disk.change(inverse).await.is_err() {
            res.left.extend(of_disk.iter().map(|it| it.path.clone()));
        }
        res
    }
}

impl Fs for EditorFs {
    fn read<'a>(&'a self, path: &'a AbsPath) -> BoxFuture<'a, Result<Vec<u8>, FsError>> {
        if self.reads && self.is_known(path) { Box::pin(self.read_buffer(path)) } else { self.disk.read(path) }
    }

    fn has_buffers(&self) -> bool {
        self.reads
    }

    fn write<'a>(&'a self, path: &'a AbsPath, bytes: Vec<u8>) -> BoxFuture<'a, Result<(), FsError>> {
        match self.writes && self.is_known(path) {
            true => Box::pin(self.write_buffer(path, bytes)),
            false => self.disk.write(path, bytes),
        }
    }

    fn change(&self, changes: Vec<PlannedChange>) -> BoxFuture<'_, Result<(), ChangeError>> {
        Box::pin(self.change_all(changes))
    }
}

fn editor_gone(path: &AbsPath) -> FsError {
    FsError::Other { path: path.clone(), message: "the editor is gone".to_owned() }
}

/// Terminals of the editor. The loop releases them when their call is over.
pub struct EditorTerminal {
    pub client: EditorClient,
    /// The editor takes a command line where the protocol has a program.
    pub reads_lines: bool,
}

impl Terminal for EditorTerminal {
    fn start<'a>(&'a self, line: CommandLine<'a>) -> BoxFuture<'a, io::Result<Box<dyn RunningCommand>>> {
        Box::pin(async move {
            let params = terminals::create(&self.client.session.root(), &line, self.reads_lines);
            let params = serde_json::to_value(params)?;
            let created = match self.client.ask(CREATE, params).await {
                Some(Ok(result)) => terminals::read_created(&result).ok_or("its answer has no terminalId".to_owned()),
                Some(Err(it)) => Err(it.message),
                None => Err("the editor is gone".to_owned()),
            };
            let terminal = created.map_err(io::Error::other)?;
            let running: Box<dyn RunningCommand> =
                Box::new(EditorCommand::new(self.client.clone(), terminal, line.silence));
            Ok(running)
        })
    }
}

/// Between two looks at a terminal, at the least.
const MIN_POLL: Duration = Duration::from_millis(500);
/// Between two looks, at the most.
const MAX_POLL: Duration = Duration::from_secs(30);

/// A command in a terminal of the editor.
struct EditorCommand {
    client: EditorClient,
    terminal: String,
    phase: Phase,
    /// What it printed, as last seen.
    seen: String,
    /// The pause between two looks; `None`: no output is wanted.
    period: Option<Duration>,
    /// Told in this order before anything else.
    queued_events: VecDeque<CommandEvent>,
}

type Answer = BoxFuture<'static, Option<Result<Value, RpcError>>>;

/// Requests under way are kept here: a future of `next` may be dropped at any time.
enum Phase {
    /// Until it ends, with looks in between.
    Waiting { exit: Answer, look: Option<Answer>, due: Option<Instant> },
    /// The editor does not say when it ends: it is asked again and again.
    Polling { look: Answer },
    /// Between two polls.
    Resting { due: Instant },
    /// It ended: what it printed is fetched.
    Fetching { exit: Exit, output: Answer },
    /// Nothing more comes of it.
    Over,
}

enum PollEvent {
    Exit(Option<Result<Value, RpcError>>),
    Look(Option<Result<Value, RpcError>>),
    Due,
}

impl EditorCommand {
    fn new(hands: EditorClient, terminal: String, silence: Option<Duration>) -> Self {
        // A tenth, so that the silence is measured well enough, at little cost: each look may bring a megabyte.
        let period = silence.map(|it| (it / 10).clamp(MIN_POLL, MAX_POLL));
        let news = VecDeque::new();
        let mut res =
            Self { client: hands, terminal, phase: Phase::Over, seen: String::new(), period, queued_events: news };
        let (exit, due) = (res.ask(WAIT), period.map(|it| Instant::now() + it));
        res.phase = Phase::Waiting { exit, look: None, due };
        res
    }

    fn ask(&self, method: &'static str) -> Answer {
        let (hands, params) =
            (self.client.clone(), terminals::terminal_params(&self.client.session.root(), &self.terminal));
        Box::pin(async move { hands.ask(method, params).await })
    }

    async fn next_event(&mut self) -> CommandEvent {
        loop {
            if let Some(it) = self.queued_events.pop_front() {
                return it;
            }
            if matches!(self.phase, Phase::Over) {
                return CommandEvent::Closed;
            }
            let woken = self.wait().await;
            self.advance_phase(woken);
        }
    }

    async fn wait(&mut self) -> PollEvent {
        match &mut self.phase {
            Phase::Waiting { exit, look, due } => tokio::select! {
                biased;
                it = exit => PollEvent::Exit(it),
                it = async { look.as_mut()?.await }, if look.is_some() => PollEvent::Look(it),
                () = at(*due), if look.is_none() => PollEvent::Due,
            },
            Phase::Polling { look } => PollEvent::Look(look.await),
            Phase::Fetching { output, .. } => PollEvent::Look(output.await),
            Phase::Resting { due } => {
                sleep_until(*due).await;
                PollEvent::Due
            }
            Phase::Over => std::future::pending().await,
        }
    }

    fn advance_phase(&mut self, woken: PollEvent) {
        match (std::mem::replace(&mut self.phase, Phase::Over), woken) {
            (Phase::Waiting { .. }, PollEvent::Exit(answer)) => match answer {
                Some(Ok(it)) => match terminals::read_exit(&it) {
                    Some(exit) => self.phase = Phase::Fetching { exit, output: self.ask(OUTPUT) },
                    None => self.phase = Phase::Polling { look: self.ask(OUTPUT) },
                },
                Some(Err(_)) => self.phase = Phase::Polling { look: self.ask(OUTPUT) },
                None => self.queued_events.push_back(CommandEvent::TerminalLost("the editor is gone".to_owned())),
            },
            (Phase::Waiting { exit, .. }, PollEvent::Look(answer)) => {
                // A look that fails says nothing: the exit does.
                if let Some(it) = answer.and_then(Result::ok).as_ref().and_then(terminals::read_output) {
                    self.note_output(it.text);
                }
                let due = self.period.map(|it| Instant::now() + it);
                self.phase = Phase::Waiting { exit, look: None, due };
            }
            (Phase::Waiting { exit, .. }, PollEvent::Due) => {
                self.phase = Phase::Waiting { exit, look: Some(self.ask(OUTPUT)), due: None };
            }
            (Phase::Polling { .. }, PollEvent::Look(answer)) => self.handle_poll(answer),
            (Phase::Resting { .. }, _) => self.phase = Phase::Polling { look: self.ask(OUTPUT) },
            (Phase::Fetching { exit, .. }, PollEvent::Look(answer)) => {
                let text = match snapshot(answer) {
                    Ok(it) => it.text,
                    Err(why) => format!("{}\n[The editor did not give the output: {why}]", self.seen),
                };
                self.queued_events.extend([CommandEvent::Output(text), CommandEvent::Exited(exit)]);
            }
            // No other phase waits for such a thing.
            (phase, _) => self.phase = phase,
        }
    }

    fn handle_poll(&mut self, answer: Option<Result<Value, RpcError>>) {
        match snapshot(answer) {
            Ok(Snapshot { text, exit: Some(exit) }) => {
                self.queued_events.extend([CommandEvent::Output(text), CommandEvent::Exited(exit)]);
            }
            Ok(Snapshot { text, exit: None }) => {
                self.note_output(text);
                self.phase = Phase::Resting { due: Instant::now() + MIN_POLL };
            }
            Err(why) => self.queued_events.push_back(CommandEvent::TerminalLost(why)),
        }
    }

    fn note_output(&mut self, text: String) {
        if text != self.seen {
            self.seen = text;
            self.queued_events.push_back(CommandEvent::OutputPending);
        }
    }

    /// For a command that is silent for too long.
    async fn kill(&mut self) -> String {
        self.phase = Phase::Over;
        _ = self.ask(KILL).await;
        if let Ok(it) = snapshot(self.ask(OUTPUT).await) { it.text } else { std::mem::take(&mut self.seen) }
    }
}

impl RunningCommand for EditorCommand {
    fn next(&mut self) -> BoxFuture<'_, CommandEvent> {
        Box::pin(self.next_event())
    }

    fn end(&mut self) -> BoxFuture<'_, String> {
        Box::pin(self.kill())
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    fn is_open(&self) -> bool {
        false
    }

    fn screen(&self) -> Option<Screen> {
        Some(Screen::Client { terminal: self.terminal.clone() })
    }
}

fn snapshot(answer: Option<Result<Value, RpcError>>) -> Result<Snapshot, String> {
    match answer {
        Some(Ok(it)) => terminals::read_output(&it).ok_or_else(|| "its answer has no output".to_owned()),
        Some(Err(it)) => Err(it.message),
        None => Err("the editor is gone".to_owned()),
    }
}

async fn at(due: Option<Instant>) {
    if let Some(it) = due { sleep_until(it).await } else { std::future::pending().await }
}

#[cfg(test)]
mod tests {
    use std::{future::Future, time::Duration};

    use serde_json::{Value, json};
    use tokio::sync::{
        mpsc::{self, Receiver},
        oneshot,
    };

    use super::{EditorClient, EditorTerminal};
    use crate::server::event::Event;
    use castor_base::{
        ids::{EffectId, SessionId},
        path::AbsPath,
        terminal::{CommandEvent, CommandLine, Exit, RunningCommand, Terminal},
    };
    use castor_wire::jsonrpc::message::RpcError;

    type Reply = oneshot::Sender<Result<Value, RpcError>>;

    async fn in_time<T>(what: impl Future<Output = T>) -> T {
        tokio::time::timeout(Duration::from_secs(20), what).await.expect("took too long")
    }

    async fn next_request(events: &mut Receiver<Event>, method: &str) -> Reply {
        let Some(Event::Editor(request)) = in_time(events.recv()).await else { panic!("nothing asked") };
        assert_eq!(request.method, method);
        request.reply
    }

    fn output(text: &str) -> Result<Value, RpcError> {
        Ok(json!({ "output": text, "truncated": false }))
    }

    /// A command that was just started, whose caller wants to hear of it twice a second.
    async fn start(events: mpsc::Sender<Event>, inbox: &mut Receiver<Event>) -> Box<dyn RunningCommand> {
        let hands = EditorClient { session: SessionId::from("s"), effect: EffectId(1), events };
        let cwd = AbsPath::new("/w").unwrap();
        let silence = Some(Duration::from_secs(1));
        let line = CommandLine { text: "x", cwd: &cwd, env: &[], limit: 9, silence };
        let terminal = EditorTerminal { client: hands, reads_lines: false };
        let create =
            async { next_request(inbox, "terminal/create").await.send(Ok(json!({ "terminalId": "t" }))).unwrap() };
        let (running, ()) = tokio::join!(terminal.start(line), create);
        running.unwrap()
    }

    #[tokio::test]
    async fn it_is_heard_while_it_runs_and_killed_with_its_last_words() {
        let (events, mut inbox) = mpsc::channel(8);
        let mut running = start(events, &mut inbox).await;
        let editor = async {
            let wait = next_request(&mut inbox, "terminal/wait_for_exit").await;
            // The same text twice is no news.
            for text in ["", "a"] {
                next_request(&mut inbox, "terminal/output").await.send(output(text)).unwrap();
            }
            wait
        };
        let (heard, wait) = in_time(async { tokio::join!(running.next(), editor) }).await;
        assert_eq!(heard, CommandEvent::OutputPending);
        let editor = async {
            next_request(&mut inbox, "terminal/kill").await.send(Ok(json!({}))).unwrap();
            next_request(&mut inbox, "terminal/output").await.send(output("ab")).unwrap();
        };
        let (rest, ()) = in_time(async { tokio::join!(running.end(), editor) }).await;
        assert_eq!(rest, "ab");
        assert!(wait.is_closed(), "nobody waits for its exit any more");
        assert_eq!(running.next().await, CommandEvent::Closed);
    }

    #[tokio::test]
    async fn without_word_of_its_exit_it_is_looked_at() {
        let (events, mut inbox) = mpsc::channel(8);
        let mut running = start(events, &mut inbox).await;
        let editor = async {
            drop(next_request(&mut inbox, "terminal/wait_for_exit").await.send(Ok(json!(null))));
            next_request(&mut inbox, "terminal/output").await.send(output("a")).unwrap();
            let end = json!({ "output": "ab", "truncated": false, "exitStatus": { "exitCode": 4 } });
            next_request(&mut inbox, "terminal/output").await.send(Ok(end)).unwrap();
        };
        let command = async { [running.next().await, running.next().await, running.next().await] };
        let (happened, ()) = in_time(async { tokio::join!(command, editor) }).await;
        let exit = Exit { code: Some(4), ..Exit::default() };
        assert_eq!(
            happened,
            [CommandEvent::OutputPending, CommandEvent::Output("ab".to_owned()), CommandEvent::Exited(exit)]
        );
    }

    #[tokio::test]
    async fn an_editor_that_is_gone_loses_the_command() {
        let (events, mut inbox) = mpsc::channel(8);
        let mut running = start(events, &mut inbox).await;
        let editor = async { drop(next_request(&mut inbox, "terminal/wait_for_exit").await) };
        let (lost, ()) = in_time(async { tokio::join!(running.next(), editor) }).await;
        assert_eq!(lost, CommandEvent::TerminalLost("the editor is gone".to_owned()));
    }
}
