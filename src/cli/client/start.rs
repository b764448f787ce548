//! The start of `castor run` and `castor chat`: surroundings, the agent's command line, its sandbox, the demo model.

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use super::{
    child::{self, Agent, AgentCommand, Pipes},
    local_servers, terminal, trust_question,
};
use crate::cli::{args::RunArgs, render::ansi::wants_color, terminal_text::clean_line};
use castor_agent::telemetry::LOG_VAR;
use castor_base::{path::AbsPath, sandbox::SandboxLevel};
use castor_client::{
    failure::{Exit, Failure},
    opening::SessionRequest,
};
use castor_hands::{
    process::{sandbox, surroundings},
    secrets::Env,
};
use castor_tools::workspace::trust::TRUST_VAR;

/// Most characters of a folder's name in a refusal.
const MAX_FOLDER: usize = 600;
const DEMO_NOTE: &str = "no API key: the built-in demo model answers. For real work run castor auth login";
const NO_MODEL_NOTE: &str = "no model is chosen: the built-in demo model answers";

/// The surroundings of a run: environment, folders, streams.
pub struct RunContext {
    /// The process's own folder; `--cwd` is seen from it.
    pub cwd: PathBuf,
    pub stdin_is_terminal: bool,
    pub stdout_is_terminal: bool,
    pub stderr_is_terminal: bool,
    /// The cursor can be moved on stderr.
    pub is_live: bool,
    /// Whether colours are wanted.
    pub stdout_color: bool,
    pub stderr_color: bool,
    /// What models can be reached from this folder. Asked only when it matters.
    pub model_access: Box<dyn FnOnce(&AbsPath) -> ModelReach>,
}

/// Models that work without a choice by the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelReach {
    /// There is a key, a gateway, or a model that needs none.
    Some,
    /// None, until one is chosen: of these variables and providers there are keys.
    Keys(Vec<(String, String)>),
}

impl RunContext {
    pub fn detect(cwd: PathBuf, model_access: impl FnOnce(&AbsPath) -> ModelReach + 'static) -> Self {
        let env = Env::from_process();
        let variable = |name: &str| env.get(name).filter(|it| !it.is_empty()).map(str::to_owned);
        let (stdout_is_terminal, stderr_is_terminal) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        Self {
            cwd,
            stdin_is_terminal: io::stdin().is_terminal(),
            stdout_is_terminal,
            stderr_is_terminal,
            is_live: stderr_is_terminal && variable("TERM").is_some_and(|it| it != "dumb"),
            stdout_color: wants_color(stdout_is_terminal, variable),
            stderr_color: wants_color(stderr_is_terminal, variable),
            model_access: Box::new(model_access),
        }
    }

    /// Whether somebody is there to answer questions.
    pub fn can_ask(&self) -> bool {
        self.stderr_is_terminal && terminal::is_there()
    }
}

/// Whether the child is told to use the demo model: nothing says which model to use, and none can be reached. Then there
/// may be keys all the same. A session that goes on has a model of its own.
pub fn needs_demo(args: &RunArgs, model_access: impl FnOnce() -> ModelReach) -> Option<Vec<(String, String)>> {
    let is_told = args.agent_args.model.is_some() || args.session.agent.is_some() || args.agent_args.script.is_fake();
    if is_told || args.session.resume.is_some() {
        return None;
    }
    if let ModelReach::Keys(keys) = model_access() { Some(keys) } else { None }
}

/// Why the demo answers, and what would be better.
pub async fn demo_notes(keys: &[(String, String)], on_terminal: bool) -> Vec<String> {
    let mut res = vec![if keys.is_empty() { DEMO_NOTE } else { NO_MODEL_NOTE }.to_owned()];
    res.extend(keys.iter().map(|(variable, provider)| {
        format!("{variable} is set: --model {provider}/NAME uses it, `castor models {provider}` lists names")
    }));
    if on_terminal {
        res.extend(local_servers::server_notes(local_servers::SERVERS).await);
    }
    res
}

/// Which agent to start: ours with the flags passed through, or the one that was named.
pub fn launch(args: &RunArgs) -> Result<AgentCommand, Failure> {
    let debug = args.gemini.debug.then_some((LOG_VAR, "debug"));
    let trust = args.gemini.skip_trust.then_some((TRUST_VAR, "true"));
    let env = debug.into_iter().chain(trust).collect();
    let Some(line) = &args.session.agent else {
        let program = std::env::current_exe()
            .map_err(|it| Failure::new(Exit::Failed, format!("cannot find castor's own program: {it}")))?;
        let args = std::iter::once("acp".into()).chain(args.agent_args.to_flags()).collect();
        return Ok(AgentCommand { program: program.into(), args, env });
    };
    let words = child::split_words(line).map_err(|it| Failure::input(format!("--agent cannot be read: {it}")))?;
    let mut words = words.into_iter();
    let program = words.next().ok_or_else(|| Failure::input("--agent needs a command"))?;
    Ok(AgentCommand { program: program.into(), args: words.map(Into::into).collect(), env })
}

/// Who asks for a sandbox by name must not go without.
pub fn check_sandbox(args: &RunArgs) -> Result<(), Failure> {
    let level = args.agent_args.sandbox.as_deref().and_then(SandboxLevel::parse);
    let is_asked = level.is_some_and(|it| it != SandboxLevel::Off) && args.session.agent.is_none();
    // A castor within castor's sandbox has that one.
    match is_asked && !sandbox::is_available() && !surroundings::is_inside() {
        true => Err(Failure::new(Exit::Sandbox, "no sandbox works on this system; `castor doctor` says why")),
        false => Ok(()),
    }
}

/// The folder of a session: `--cwd`, as seen from the process's own.
///
/// # Errors
/// It is no folder.
pub fn session_folder(args: &RunArgs, own: &Path) -> Result<AbsPath, Failure> {
    let folder = args.cwd.as_ref().map_or_else(|| own.to_owned(), |it| own.join(it));
    let cwd = AbsPath::new(&folder).filter(|it| it.as_path().is_dir());
    cwd.ok_or_else(|| Failure::input(format!("{} is no folder", folder.display())))
}

/// Asks whether the folder is trusted, where the mode needs that. Gives warnings for the user.
///
/// # Errors
/// The answer cannot be saved.
pub fn ask_trust(args: &RunArgs, cwd: &AbsPath) -> Result<Vec<String>, Failure> {
    let is_own = args.session.agent.is_none() && !args.gemini.skip_trust;
    let Some(mode) = args.agent_args.mode().filter(|_| is_own) else { return Ok(Vec::new()) };
    let ask = &mut trust_question::ask_on_terminal;
    let asked = trust_question::ask_for_mode(mode.mode(), &Env::from_process(), cwd, ask);
    asked.map_err(|it| Failure::new(Exit::Failed, format!("your answer was not saved: {it}")))
}

/// The session that the flags ask for.
///
/// # Errors
/// A folder that is none.
pub fn session_request(args: &RunArgs, cwd: &AbsPath) -> Result<SessionRequest, Failure> {
    let is_told = args.session.agent.is_some();
    // castor takes the flag for new sessions; one that goes on has a mode of its own.
    let mode = args.agent_args.mode().filter(|_| is_told || args.session.resume.is_some());
    Ok(SessionRequest {
        cwd: cwd.to_string(),
        additional: more_folders(args, cwd)?,
        id: args.gemini.session_id.clone(),
        resume: args.session.resume.clone(),
        model: args.agent_args.model.clone().filter(|_| is_told),
        mode: mode.map(|it| it.mode().as_str()),
        ..SessionRequest::default()
    })
}

/// The folders of `--include-directories`, as seen from the working folder.
fn more_folders(args: &RunArgs, cwd: &AbsPath) -> Result<Vec<String>, Failure> {
    let folder = |it: &String| {
        let path = Some(cwd.join(it)).filter(|it| it.as_path().is_dir());
        let text = path.as_ref().and_then(|it| it.as_path().to_str()).map(str::to_owned);
        text.ok_or_else(|| {
            Failure::input(format!("--include-directories: {} is no folder", clean_line(it, MAX_FOLDER)))
        })
    };
    args.gemini.include_directories.iter().map(folder).collect()
}

/// # Errors
/// When the program cannot be started.
pub fn start_agent(launch: &AgentCommand) -> Result<(Agent, Pipes), Failure> {
    child::spawn(launch).map_err(|error| {
        let exit = if error.kind() == io::ErrorKind::NotFound { Exit::Input } else { Exit::Failed };
        Failure::new(exit, format!("{} cannot be started: {error}", launch.program.to_string_lossy()))
    })
}

/// The end of an id of castor's is random: so many characters name one session among millions.
pub fn short_id(session: &str) -> String {
    const SHORT: usize = 7;
    const WHOLE: usize = 36;
    let id = if session.len() == WHOLE { session.get(WHOLE - SHORT..).unwrap_or(session) } else { session };
    clean_line(id, WHOLE)
}

#[cfg(test)]
mod tests {
    use super::{ModelReach, demo_notes, needs_demo};
    use crate::cli::args::{RunArgs, SessionArgs};

    /// A resumed session or a model from a flag never gets the demo model.
    #[test]
    fn demo_runs_only_without_other_models() {
        let args = RunArgs::default();
        let none = || ModelReach::Keys(Vec::new());
        assert_eq!(needs_demo(&args, none), Some(Vec::new()));
        assert_eq!(needs_demo(&args, || ModelReach::Some), None);
        let of = |session| RunArgs { session, ..RunArgs::default() };
        assert_eq!(needs_demo(&of(SessionArgs { agent: Some("x".into()), ..SessionArgs::default() }), none), None);
        // Whoever goes on with a session does not tell it to another model.
        assert_eq!(
            needs_demo(&of(SessionArgs { resume: Some("latest".into()), ..SessionArgs::default() }), none),
            None
        );
        let mut told = args;
        told.agent_args.model = Some("m".into());
        assert_eq!(needs_demo(&told, none), None);
    }

    /// Without a model, `castor run` names the keys that it found and the files that they come from.
    #[tokio::test]
    async fn keys_without_a_model_are_named() {
        let keys = [("OPENAI_API_KEY".to_owned(), "openai".to_owned())];
        assert_eq!(
            demo_notes(&keys, false).await,
            [
                "no model is chosen: the built-in demo model answers",
                "OPENAI_API_KEY is set: --model openai/NAME uses it, `castor models openai` lists names",
            ]
        );
    }
}
