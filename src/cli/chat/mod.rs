//! `castor chat`: a conversation with an agent on the terminal, inline. A client in the Agent Client Protocol, as `run`.
//!
//! Finished lines are printed once, into the terminal's own scrollback; only the last lines are drawn again. [`state`] is
//! pure: keys and messages in, lines and effects out. [`session_loop`] joins it with the agent and the terminal.

mod bottom;
mod clipboard;
pub mod composer;
mod draw_pace;
pub mod effects;
pub mod file_list;
pub mod history_file;
pub mod lower;
pub mod pickers;
mod replay;
mod screen;
mod session_loop;
mod session_search;
pub mod state;
mod status;
mod terminal_traits;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;
pub mod text_editor;

use std::{
    io::{self, IsTerminal},
    process::ExitCode,
    time::Duration,
};

use self::{
    composer::Composer,
    lower::Draft,
    replay::Replay,
    screen::ChatScreen,
    session_loop::{ChatKeys, ChatPlace, ChatSources, SessionLoop, listen_resizes, shown_folder},
    state::Chat,
    terminal_traits::TerminalTraits,
};
use super::{
    args::{CHOOSE, ChatArgs, RunArgs},
    client::{
        child::{Agent, AgentCommand},
        earlier_session,
        key_input::KeyInput,
        link::AgentLink,
        signals,
        start::{self, RunContext},
        terminal,
    },
    render::text::{Line, Style},
    sessions::{self, CommandContext, CommandLook},
    terminal_text::clean_line,
};
use castor_agent::{
    server::{event_loop::unix_ms, serve},
    session::confinement,
};
use castor_base::{clock::Now, path::AbsPath};
use castor_client::{
    failure::{Exit, Failure},
    opening::SessionRequest,
};
use castor_hands::{process::cbreak::KeyModes, secrets::Env};
use castor_tools::workspace;

const MAX_SHOWN: usize = 600;
/// Without a terminal of its own the chat has nothing to draw on.
const NO_TERMINAL: &str = "castor chat needs a terminal; castor run sends one prompt";

impl ChatArgs {
    /// The first message, in either way to write it.
    fn typed(&self) -> Option<&str> {
        let flags = self.prompt_interactive.as_deref().or(self.gemini.prompt_flag.as_deref());
        self.prompt.as_deref().or(flags).filter(|it| !it.trim().is_empty())
    }

    /// Whether the picker asks which session goes on. A first message, or a mode, is for the one that is chosen: a list
    /// asks before anything else then.
    fn picks_session(&self) -> bool {
        let is_asked = self.session.resume.as_deref() == Some(CHOOSE) && self.session.agent.is_none();
        is_asked && !self.plain && self.typed().is_none() && self.agent_args.mode().is_none()
    }

    /// The same session as `castor run` would open. An empty prompt: the list of sessions asks for none.
    fn to_run(&self) -> RunArgs {
        RunArgs {
            prompt: Some(String::new()),
            agent_args: self.agent_args.clone(),
            session: self.session.clone(),
            cwd: self.cwd.clone(),
            gemini: self.gemini.clone(),
            ..RunArgs::default()
        }
    }
}

/// Runs to the end and gives the exit code.
pub fn run(args: ChatArgs, context: RunContext) -> ExitCode {
    if !(io::stdin().is_terminal() && context.stdout_is_terminal && terminal::is_there()) {
        eprintln!("castor: {NO_TERMINAL}");
        return ExitCode::from(Exit::Input.code());
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(it) => it,
        Err(error) => {
            eprintln!("castor: cannot start: {error}");
            return ExitCode::from(Exit::Failed.code());
        }
    };
    let exit = runtime.block_on(async {
        match StartArgs::prepare(&args, &context) {
            Ok(it) => converse(&args, context, it).await,
            Err(failure) => tell(&failure),
        }
    });
    // A thread may still wait for the terminal; nothing is owed to it.
    runtime.shutdown_background();
    ExitCode::from(exit.code())
}

fn tell(failure: &Failure) -> Exit {
    eprintln!("castor: {}", failure.message);
    failure.exit
}

/// What is settled before anything is drawn: all that may ask, and nothing that takes time.
struct StartArgs {
    cwd: AbsPath,
    run_args: RunArgs,
    /// The picker of sessions comes up first.
    picks_session: bool,
}

impl StartArgs {
    fn prepare(args: &ChatArgs, context: &RunContext) -> Result<Self, Failure> {
        let mut run_args = args.to_run();
        let cwd = start::session_folder(&run_args, &context.cwd)?;
        let picks_session = args.picks_session() && context.is_live;
        if picks_session {
            run_args.session.resume = None;
        }
        earlier_session::settle(&mut run_args, &cwd)?;
        start::check_sandbox(&run_args)?;
        start::ask_trust(&run_args, &cwd)?;
        Ok(Self { cwd, run_args, picks_session })
    }
}

/// What the agent is started with, and what it is told.
struct Opening {
    launch: AgentCommand,
    request: SessionRequest,
    /// The demo answers; of these variables and providers there are keys.
    demo: Option<Vec<(String, String)>>,
    /// The end of a session that goes on.
    replay: Option<Replay>,
}

impl Opening {
    fn prepare(context: RunContext, settled: StartArgs) -> Result<Self, Failure> {
        let StartArgs { cwd, mut run_args, .. } = settled;
        let replay = read_log(&mut run_args, &cwd)?;
        let demo = start::needs_demo(&run_args, || (context.model_access)(&cwd));
        if demo.is_some() {
            run_args.agent_args.model = Some("demo".to_owned());
        }
        let request =
            SessionRequest { interactive: true, replays: replay.is_none(), ..start::session_request(&run_args, &cwd)? };
        Ok(Self { launch: start::launch(&run_args)?, request, demo, replay })
    }
}

/// The end of one of castor's own sessions, which is shown before the agent has read it. A session that is named by its
/// place gets its id.
fn read_log(args: &mut RunArgs, cwd: &AbsPath) -> Result<Option<Replay>, Failure> {
    let Some(word) = args.session.resume.clone().filter(|_| args.session.agent.is_none()) else { return Ok(None) };
    let env = Env::from_process();
    let Some(home) = workspace::castor_home(&env) else { return Ok(None) };
    let store = serve::open_store(home, None, &env).map_err(Failure::input)?;
    let now = Now { unix_ms: unix_ms(), seed: 0 };
    let mut out = io::sink();
    let look = CommandLook::of_process(&env);
    let context = CommandContext { store: &store, cwd, now, out: &mut out, ask: None, look };
    let id = sessions::find(&context, &word).map_err(|it| Failure::input(it.why))?;
    args.session.resume = Some(id.to_string());
    Ok(Replay::of_log(&store, &id))
}

async fn converse(args: &ChatArgs, context: RunContext, settled: StartArgs) -> Exit {
    // A terminal without single keys, or a reader that wants lines.
    let keys = if args.plain { None } else { KeyInput::open(KeyModes::CHAT) };
    let is_live = keys.is_some();
    let (cwd, picks_session) = (settled.cwd.clone(), settled.picks_session);
    let mut chat = Chat::new(Box::new(Composer::new(args.vi)), &settled.cwd.to_string(), is_live);
    let traits = TerminalTraits::of_env(&Env::from_process());
    let mut screen = ChatScreen::new(is_live, context.stdout_color && !args.plain, args.theme, traits);
    chat.set_width(screen.size.0);
    chat.view.add_lines(vec![heading(&cwd)]);
    // The first frame, before anything is read and before there is an agent.
    screen.draw(&mut chat, Duration::ZERO);
    let opening = match Opening::prepare(context, settled) {
        Ok(it) => it,
        Err(failure) => {
            screen.finish(&mut chat, Duration::ZERO, &[]).await;
            drop(keys);
            return tell(&failure);
        }
    };
    let Opening { launch, request, demo, replay } = opening;
    let keys = match keys {
        Some(it) => ChatKeys::Keys(Box::new(it)),
        None => ChatKeys::Lines(terminal::lines()),
    };
    let (agent, mut session) = match start(&launch, chat, screen, keys, cwd) {
        Ok(it) => it,
        Err(failure) => return tell(&failure),
    };
    if let Some(it) = replay {
        it.show(&mut session.chat, Duration::ZERO, session.screen.size);
    }
    session.set_picks_session(picks_session);
    session.load_habits();
    session.tell_demo(demo.as_deref());
    if let Some(text) = args.typed() {
        let now = session.now();
        session.chat.submit_first(Draft { text: text.to_owned(), files: Vec::new() }, now);
    }
    session.open(request);
    session.ask_background().await;
    let exit = session.run().await;
    conclude(session, agent, exit).await
}

fn start(
    launch: &AgentCommand,
    chat: Chat,
    screen: ChatScreen,
    keys: ChatKeys,
    cwd: AbsPath,
) -> Result<(Agent, SessionLoop), Failure> {
    let (agent, pipes) = start::start_agent(launch)?;
    let heard = |it: io::Error| Failure::new(Exit::Failed, format!("signals cannot be heard: {it}"));
    let signals = signals::listen_signals().map_err(heard)?;
    let resizes = listen_resizes().map_err(heard)?;
    let (link, sources) = (AgentLink::connect(pipes), ChatSources { signals, resizes });
    Ok((agent, SessionLoop::new((chat, screen), link, ChatPlace::new(cwd), sources, keys)))
}

/// Says how it ended, and lets go of the agent.
async fn conclude(mut session: SessionLoop, mut agent: Agent, exit: Exit) -> Exit {
    let now = session.now();
    if exit == Exit::Failed && !session.is_over() {
        let why = session.link.describe_end(Some(&mut agent), "").await;
        session.chat.end(&why, now);
    }
    session.keep_unsent();
    let id = session.close();
    let last = session.chat.farewell(id.as_deref(), now);
    session.finish(&last).await;
    if !agent.wait_or_kill().await {
        confinement::remove_leftovers(&Env::from_process());
    }
    exit
}

/// The first line of the chat.
fn heading(cwd: &AbsPath) -> Line {
    let env = Env::from_process();
    let folder = clean_line(&shown_folder(cwd.as_path(), env.get("HOME")), MAX_SHOWN);
    let mut line = Line::new("castor ", Style::BOLD);
    line.push(&format!("{} · {folder}", env!("CARGO_PKG_VERSION")), Style::DIM);
    line
}
