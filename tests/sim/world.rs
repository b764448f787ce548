//! The simulated world: jobs wait until the seed has them answered; what an answer says is a few words.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
    fs::File,
    io::{self, Write as _},
    rc::Rc,
    sync::{Arc, LazyLock},
    time::Duration,
};

use castor_agent::server::machine::{EditorRequest, Event, Job, SessionSearch, StateSave, Workers};
use castor_base::{
    elicitation::{ElicitationRequest, Reply},
    ids::{EffectId, SessionId},
    question::{Field, FieldKind, Form},
    sampling::ServerAsk,
    terminal::Screen,
    tool::ToolOutput,
    trust::{TrustedFile, TrustedFileKind, folder_doubt},
};
use castor_engine::step::{Effect, Input, TrustForm, TrustPrompt};
use castor_tools::mcp::{
    Connection, ProcessHold, ServerEvent, ServerLists, ServerOutage, ServerQuestion, ServerTool, open_link,
};
use rmcp::service::serve_directly;
use serde_json::{Value, json};
use tokio::sync::{broadcast, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::{dice::Dice, words::*};

/// A text that fills the client's pipe soon.
pub const LONG: usize = 64 * 1024;
/// In a folder that every machine has.
pub const CWD: &str = "/usr";

thread_local! {
    /// After how many bytes the next write to a log stops.
    static FULL: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The way into logs, on a disk that is full when the seed says so.
pub fn write(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    match FULL.take() {
        None => file.write_all(bytes),
        Some(n) => {
            file.write_all(&bytes[..n.min(bytes.len())])?;
            Err(io::ErrorKind::StorageFull.into())
        }
    }
}

pub fn fill_disk(at: Option<usize>) {
    FULL.set(at);
}

/// Whether the next write will stop.
pub fn is_disk_full() -> bool {
    let at = FULL.take();
    FULL.set(at);
    at.is_some()
}

/// Where the loop's jobs go.
#[derive(Clone, Default)]
pub struct Queue(Rc<RefCell<Vec<Job>>>);

impl Workers for Queue {
    fn start(&mut self, job: Job) {
        self.0.borrow_mut().push(job);
    }
}

/// What an effect is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Generate,
    Resolve,
    Check,
    Preview,
    Run,
    Hook,
    Remember,
    ChangeMemory,
    Hold,
    Compare,
    Restore,
    Diff,
}

/// An effect whose answer is still to come, wanted or not.
pub struct Task {
    pub session: String,
    pub effect: u64,
    pub kind: Kind,
    pub cancel: CancellationToken,
    /// Its one answer was given: another one meets nobody.
    pub answered: bool,
    /// Of a call whose sub-agent has ended: what it comes to.
    pub output: Option<Box<ToolOutput>>,
    /// A server's tool: the server may ask the user.
    pub is_outside: bool,
}

/// A server, until nobody uses it.
pub struct Server {
    pub stop: CancellationToken,
    pub ready: bool,
}

#[derive(Default)]
pub struct World {
    pub queue: Queue,
    pub tasks: Vec<Task>,
    pub servers: BTreeMap<u64, Server>,
    pub searches: Vec<SessionSearch>,
    /// What no session waits for: hooks that hear of its end, what is to be in a file.
    pub chores: usize,
    /// Of these, what is written into the user's own files.
    pub saves: usize,
    /// Of these, changes of what sessions share.
    pub state_saves: VecDeque<StateSave>,
    /// Who waits for the editor.
    pub waiting: Vec<oneshot::Receiver<Result<Value, castor_wire::jsonrpc::message::RpcError>>>,
    /// Questions of servers without an answer.
    pub asked: Vec<Asked>,
    pub n_asked: u64,
    /// How often a user's own word came to a server.
    pub n_replies: usize,
}

pub struct Asked {
    pub server: u64,
    pub number: u64,
    reply: oneshot::Receiver<Reply>,
}

impl World {
    /// Takes what the loop wants done. Returns the sessions that begin to ask a model.
    pub fn take_jobs(&mut self) -> Vec<SessionId> {
        let jobs: Vec<Job> = self.queue.0.borrow_mut().drain(..).collect();
        let mut begun = Vec::new();
        for job in jobs {
            match job {
                Job::Effect(it) => {
                    let is_outside = matches!(&it.effect, Effect::Run { call, .. } if call.name.starts_with("mcp_"));
                    let kind = match it.effect {
                        Effect::Generate { request, .. } => {
                            assert!(!request.contents.is_empty(), "a model is asked nothing");
                            begun.push(it.resources.session.clone());
                            Kind::Generate
                        }
                        Effect::Resolve { .. } => Kind::Resolve,
                        Effect::Check(_) | Effect::CheckByClient(_) => Kind::Check,
                        Effect::Preview { .. } => Kind::Preview,
                        Effect::Run { .. } => Kind::Run,
                        Effect::RunHook(_) => Kind::Hook,
                        Effect::ChangeMemory(_) => Kind::ChangeMemory,
                        Effect::ReadMemory | Effect::DiscoverMemory { .. } => Kind::Remember,
                        Effect::OpenCheckpoints | Effect::Checkpoint { .. } => Kind::Hold,
                        Effect::CompareCheckpoint { .. } => Kind::Compare,
                        Effect::Restore(it) => {
                            assert!(!it.undo.is_empty(), "a restore of nothing");
                            Kind::Restore
                        }
                        Effect::Diff { .. } => Kind::Diff,
                        other => panic!("no job for the world: {other:?}"),
                    };
                    let (session, effect) = (it.resources.session.to_string(), it.id.0);
                    let (cancel, output) = (it.cancel, it.output);
                    self.tasks.push(Task { session, effect, kind, cancel, answered: false, output, is_outside });
                }
                Job::Server { server, stop, .. } => {
                    self.servers.insert(server, Server { stop, ready: false });
                }
                Job::ServerErrand { .. } => panic!("nobody here gives orders about servers"),
                Job::List(it) => self.searches.push(it),
                // Its servers are not there.
                Job::Complete(_) => (),
                // Its sessions are in files.
                Job::AskStore(_) | Job::NoteAgent(_) => (),
                // Nobody waits for it.
                Job::SyncLog(_) | Job::ProbeSandbox | Job::LoadTables => (),
                Job::SavePolicy { .. } | Job::SaveSandboxGrant { .. } | Job::SaveRefusal { .. } => {
                    self.chores += 1;
                    self.saves += 1;
                }
                Job::SaveState(it) => {
                    self.chores += 1;
                    self.state_saves.push_back(it);
                }
                Job::TellHook { .. } | Job::Stash { .. } | Job::ReleaseCheckpoints { .. } => self.chores += 1,
            }
        }
        self.waiting.retain_mut(|it| matches!(it.try_recv(), Err(oneshot::error::TryRecvError::Empty)));
        self.asked.retain_mut(|it| match it.reply.try_recv() {
            Ok(reply) => {
                self.n_replies += usize::from(matches!(reply, Reply::Accepted(_) | Reply::Declined(None)));
                false
            }
            Err(it) => it == oneshot::error::TryRecvError::Empty,
        });
        begun
    }

    /// The newest that has no answer: a session that is opened again counts its effects anew.
    pub fn open_task(&mut self, session: &str, effect: u64) -> Option<&mut Task> {
        let is_it = |it: &&mut Task| it.session == session && it.effect == effect && !it.answered;
        self.tasks.iter_mut().rev().find(is_it)
    }

    /// What the sub-agent of a call came to.
    pub fn output(&mut self, session: &str, effect: u64) -> Option<Box<ToolOutput>> {
        self.open_task(session, effect)?.output.clone()
    }

    /// Tasks that go on though nobody wants them to.
    pub fn n_wanted(&self) -> usize {
        self.tasks.iter().filter(|it| !it.answered && !it.cancel.is_cancelled()).count()
    }

    pub fn n_servers(&self) -> usize {
        self.servers.values().filter(|it| !it.stop.is_cancelled()).count()
    }

    /// Any words for an answer of this kind; the last answer or one before it.
    pub fn words(dice: &mut Dice, kind: Kind) -> String {
        let partial = dice.roll(5) < 3;
        match kind {
            Kind::Generate if partial => {
                let n = 1 + dice.roll(4);
                let words: Vec<&str> = (0..n).map(|_| chunk_word(dice)).collect();
                format!("chunks {}", words.join(" "))
            }
            Kind::Generate => {
                format!("generated {}", if dice.roll(4) > 0 { "ok" } else { dice.word(FAILURES) })
            }
            Kind::Resolve => {
                format!("resolved {}", dice.word(&["ok", "ok", "ok", "outside", "command", "bad", "panic"]))
            }
            Kind::Check => format!("checked {}", dice.word(&["allow", "allow", "ask", "deny", "panic"])),
            Kind::Preview => format!("previewed {}", dice.word(&["ok", "diff", "diff", "gone", "panic"])),
            Kind::Run if partial => dice
                .weighed(&[(8, "printed"), (1, "printed-long"), (1, "attached-drawn"), (1, "attached-client")])
                .into(),
            Kind::Hook => format!("hooked {}", dice.word(HOOKS)),
            Kind::ChangeMemory => format!("memory-changed {}", dice.word(&["ok", "failed"])),
            Kind::Remember => format!("remembered {}", dice.word(&["nothing", "a", "b", "panic"])),
            Kind::Hold => format!("held {}", dice.word(&["ok", "ok", "ok", "full"])),
            Kind::Compare => format!("compared {}", dice.word(&["nothing", "a", "panic"])),
            Kind::Restore => format!("restored {}", dice.word(&["a", "a", "conflict", "full"])),
            Kind::Diff => format!("diffed {}", dice.word(&["-a", "panic"])),
            Kind::Run => format!("ran {}", dice.word(&["text", "text", "diff", "full", "failed", "tail", "panic"])),
        }
    }

    /// What the words mean, for the task of this number.
    pub fn answer(effect: u64, words: &str) -> Option<Input> {
        let effect = EffectId(effect);
        let (first, rest) = words.split_once(' ').unwrap_or((words, ""));
        Some(match first {
            "chunks" => Input::Chunks { effect, chunks: rest.split(' ').map(chunk).collect::<Option<_>>()? },
            "generated" => Input::Generated { effect, result: generated(rest)? },
            "resolved" => Input::Resolved { effect, result: resolved(rest)? },
            "checked" => Input::Checked { effect, finding: checked(rest)? },
            "previewed" => Input::Previewed { effect, result: previewed(rest)? },
            "printed" => Input::OutputPrinted { effect, text: "printed\n".to_owned() },
            "printed-long" => Input::OutputPrinted { effect, text: "p".repeat(LONG) },
            "attached-drawn" => Input::TerminalAttached { effect, screen: Screen::Drawn { cwd: path(CWD) } },
            "attached-client" => {
                Input::TerminalAttached { effect, screen: Screen::Client { terminal: "t".to_owned() } }
            }
            "hooked" => Input::HookFinished { effect, report: Box::new(hooked(rest)?) },
            "memory-changed" => {
                let report = if rest == "ok" { Ok("Kept.".to_owned()) } else { Err("no".to_owned()) };
                Input::MemoryChanged { effect, report }
            }
            "remembered" => Input::MemoryRead { effect, files: remembered(rest)?, faults: Vec::new() },
            "ran" => Input::RunEnded { effect, output: Box::new(ran(rest)?), changes: Some(changes(rest)) },
            "held" => Input::Checkpointed { effect, result: held(rest)? },
            "compared" => Input::Compared { effect, changes: changes(rest) },
            "restored" => Input::Restored { effect, result: restored(rest)? },
            "diffed" => Input::Diffed { effect, result: Ok(rest.to_owned()) },
            _ => return None,
        })
    }

    /// A folder that brings settings. The machine reads none: what a yes would let in is a matter of the conversations.
    pub fn doubt() -> Option<Input> {
        let hash = Some("0".to_owned());
        let piece = TrustedFile { name: ".castor/settings.json".to_owned(), kind: TrustedFileKind::Settings, hash };
        let form = folder_doubt(&path(CWD), &[], &[piece], &[])?.form;
        let form = TrustForm { form: Arc::new(form), diffs: Arc::default() };
        Some(Input::TrustPrompt(TrustPrompt::Ask(form)))
    }

    /// Whether an answer of these words ends its task.
    pub fn is_last(words: &str) -> bool {
        let first = words.split(' ').next().unwrap_or_default();
        !["chunks", "printed", "printed-long", "attached-drawn", "attached-client"].contains(&first)
    }

    pub fn news(&mut self, server: u64, words: &str) -> Option<ServerEvent> {
        let mut words = words.split(' ');
        let first = words.next()?;
        if let Some(ask) = first.strip_prefix("asks-") {
            let number = words.next()?.parse().ok()?;
            return self.ask(server, number, ask).map(ServerEvent::Question);
        }
        if first == "takes-back" {
            let number = words.next()?.parse().ok()?;
            self.asked.retain(|it| it.server != server || it.number != number);
            return Some(ServerEvent::QuestionWithdrawn(number));
        }
        let tools: Vec<ServerTool> = words.map(server_tool).collect();
        let lists = ServerLists { tools, ..ServerLists::default() };
        Some(match first {
            "ready" => ServerEvent::Ready { connection: CONNECTION.clone(), lists: Box::new(lists) },
            "changed" => ServerEvent::ListsChanged(lists),
            "down" => {
                let (why, pause) = ("it crashed".to_owned(), Duration::from_secs(1));
                ServerEvent::Down(ServerOutage { why, pause, number: 1 })
            }
            "lost" => ServerEvent::Lost("it ended".to_owned()),
            "completes" => ServerEvent::PageCompleted("page".to_owned()),
            _ => return None,
        })
    }

    /// A server asks the user; it waits for the answer.
    fn ask(&mut self, server: u64, number: u64, what: &str) -> Option<ServerQuestion> {
        let field = |kind| {
            let (name, title, description) = ("0".to_owned(), None, None);
            Field { name, title, description, required: true, kind, default: None }
        };
        let form = |kind| ElicitationRequest::Form(Form { message: "Well?".to_owned(), fields: vec![field(kind)] });
        let wanted = match what {
            "yes-or-no" => form(FieldKind::Bool),
            "text" => form(FieldKind::Text { min: None, max: None, format: None }),
            "page" => ElicitationRequest::Page {
                message: "See".to_owned(),
                url: "https://a.b".to_owned(),
                id: "page".to_owned(),
            },
            _ => return None,
        };
        let (reply, answer) = oneshot::channel();
        self.n_asked += 1;
        self.asked.push(Asked { server, number, reply: answer });
        Some(ServerQuestion { number, request: ServerAsk::User(wanted), reply })
    }

    /// A task asks for the editor's hands; it waits for the answer.
    pub fn ask_editor(&mut self, session: &str, effect: u64, method: &str) -> Option<Event> {
        let (method, params) = match method {
            "fs/read_text_file" => ("fs/read_text_file", json!({"path": "/usr/a"})),
            "fs/write_text_file" => ("fs/write_text_file", json!({"path": "/usr/a", "content": "new"})),
            "terminal/create" => ("terminal/create", json!({"command": "bash"})),
            "terminal/output" => ("terminal/output", json!({"terminalId": "t"})),
            "terminal/wait_for_exit" => ("terminal/wait_for_exit", json!({"terminalId": "t"})),
            _ => return None,
        };
        let mut params = params;
        params["sessionId"] = json!(SessionId::from(session).root());
        let (reply, answer) = oneshot::channel();
        self.waiting.push(answer);
        let (session, effect) = (SessionId::from(session), EffectId(effect));
        Some(Event::Editor(EditorRequest { session, effect, method, params, reply }))
    }
}

pub const EDITOR: &[&str] =
    &["fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/output", "terminal/wait_for_exit"];

/// A connection to a server that is nowhere: calls are answered by the seed.
static CONNECTION: LazyLock<Connection> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _in_runtime = runtime.enter();
    let (pipe, _) = tokio::io::duplex(64);
    let service = serve_directly::<rmcp::RoleClient, _, _, _, _>((), tokio::io::split(pipe), None);
    Connection::new(
        open_link(service.peer().clone()).1,
        broadcast::channel(1).0,
        watch::channel(0).1,
        ProcessHold::default(),
        None,
    )
});
