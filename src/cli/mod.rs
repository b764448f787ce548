//! The command line: one table of commands for the agent and its companion.

pub mod agent_args;
pub mod agents;
pub mod approval_mode;
pub mod args;
pub mod auth;
pub mod chat;
pub mod clean_verb;
pub mod client;
pub mod config;
pub mod doctor;
pub mod exec;
pub mod exits;
pub mod extensions;
pub mod file_commands;
pub mod folder;
pub mod gemini_flags;
pub mod hooks;
pub mod install;
pub mod looked;
pub mod mcp;
pub mod models;
pub mod output;
pub mod page;
pub mod parse;
pub mod permissions;
pub mod policy;
mod refused_list;
pub mod remote_args;
pub mod render;
pub mod run;
pub mod schema;
pub mod serve;
pub mod sessions;
pub mod skills;
pub mod stats;
pub mod terminal_text;
#[cfg(test)]
pub(crate) mod testing;
pub mod trust;
pub mod undo;
pub mod usage_hints;

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use clap::CommandFactory;

use self::{
    agent_args::AgentArgs,
    approval_mode::ApprovalMode,
    args::{AcpArgs, AcpVerb, AgentVerb, CliVerb, RunArgs},
    client::start::{ModelReach, RunContext},
    exits::EXIT_INPUT,
    output::{Output, WrappedLines, exit_code},
    sessions::{CommandContext, CommandError, CommandLook, SessionsVerb, numbered, terminal_width},
    terminal_text::CleanText,
};
use crate::serve::bridge;
use castor_agent::{
    model::{access, providers},
    server::{event_loop::unix_ms, serve as acp},
    session::place::load_ground,
    settings::options::{Options, Script},
};
use castor_base::{clock::Now, path::AbsPath};
use castor_hands::{disk, process, secrets::Env};
use castor_store::sessions::{SessionStore, StoreError};
use castor_tools::workspace;

/// The output of commands; see [`CleanText`].
fn out() -> CleanText<Output> {
    CleanText::new(Output::of_process())
}

/// The same for sentences: they are wrapped on a terminal.
fn wrapped_out() -> CleanText<WrappedLines<Output>> {
    CleanText::new(WrappedLines::new(Output::of_process(), terminal_width()))
}

fn err() -> CleanText<io::Stderr> {
    CleanText::new(io::stderr())
}

/// The whole program.
pub fn main() -> ExitCode {
    process::survive_size_limits();
    let cli = match parse::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    if let Some(it) = missing_home(&cli.verb) {
        eprintln!("castor: {it}. {}", workspace::NO_FOLDER);
        return ExitCode::from(EXIT_INPUT);
    }
    let (out, err) = (&mut out(), &mut err());
    match cli.verb {
        CliVerb::Agent(AgentVerb::Acp(AcpArgs { instead: Some(AcpVerb::Auth(args)), .. })) | CliVerb::Auth(args) => {
            with_cwd(|cwd| {
                let streams = &mut auth::AuthStreams::of_process();
                exit_code(auth::run(&args, &Env::from_process(), &cwd, streams))
            })
        }
        CliVerb::Agent(verb) => run_agent(verb, out),
        CliVerb::Config(args) => with_cwd(|cwd| exit_code(config::run(&args, &Env::from_process(), &cwd, out))),
        CliVerb::Models(args) => with_cwd(|cwd| {
            exit_code(models::run(&args, &Env::from_process(), &cwd, &mut models::ModelStreams { out, err }))
        }),
        CliVerb::Doctor(args) => {
            let width = terminal_width().unwrap_or(usize::MAX);
            with_cwd(|cwd| exit_code(doctor::run(&args, &Env::from_process(), &cwd, width, out)))
        }
        CliVerb::Sessions(args) => with_cwd(|cwd| sessions(&args.verb, &cwd, out)),
        CliVerb::Stats(args) => with_cwd(|cwd| stats(&args, &cwd)),
        CliVerb::Undo(args) => with_cwd(|cwd| undo(&undo::UndoVerb::Undo(args), &cwd, out)),
        CliVerb::Redo(args) => with_cwd(|cwd| undo(&undo::UndoVerb::Redo(args), &cwd, out)),
        CliVerb::Rewind(args) => with_cwd(|cwd| undo(&undo::UndoVerb::Rewind(args), &cwd, out)),
        CliVerb::Diff(args) => with_cwd(|cwd| undo(&undo::UndoVerb::Diff(args), &cwd, out)),
        CliVerb::Clean(args) => clean(&args, out),
        CliVerb::Looked(args) => with_cwd(|cwd| look(&args, &cwd, out)),
        CliVerb::Permissions(args) => exit_code(permissions::run(&args, &Env::from_process(), out)),
        CliVerb::Exec(args) => with_cwd(|cwd| ExitCode::from(exec::exec(&args, &Env::from_process(), &cwd))),
        CliVerb::Shell(args) => with_cwd(|cwd| ExitCode::from(exec::shell(&args, &Env::from_process(), &cwd))),
        CliVerb::Agents(args) => with_cwd(|cwd| exit_code(agents::run(&args, &Env::from_process(), &cwd, out, err))),
        CliVerb::Commands(args) => {
            with_cwd(|cwd| exit_code(file_commands::run(&args, &Env::from_process(), &cwd, out, err)))
        }
        CliVerb::Skills(args) => with_extension_streams(out, err, |env, cwd, it| skills::run(&args, env, cwd, it)),
        CliVerb::Extensions(args) => {
            with_extension_streams(out, err, |env, cwd, it| extensions::run(&args, env, cwd, it))
        }
        CliVerb::Hooks(args) => with_cwd(|cwd| exit_code(hooks::run(&args, &Env::from_process(), &cwd, out, err))),
        CliVerb::Mcp(args) => with_cwd(|cwd| exit_code(mcp::run(&args, &Env::from_process(), &cwd, out, err))),
        CliVerb::Schema(args) => exit_code(schema::run(&args, out, err)),
        CliVerb::Install(verb) => exit_code(install::run(&verb, args::Cli::command(), &mut Output::of_process())),
        CliVerb::Trust(args) => with_cwd(|cwd| {
            let mut ask = sessions::ask_terminal;
            let ask = sessions::has_terminal().then_some(&mut ask as &mut dyn FnMut(&str) -> bool);
            exit_code(trust::run(&args, &Env::from_process(), &cwd, ask, &mut wrapped_out()))
        }),
        CliVerb::Policy(args) => with_cwd(|cwd| exit_code(policy::run(&args, &Env::from_process(), &cwd, out))),
    }
}

/// For what is shown and asked about before it counts.
fn with_extension_streams(
    out: &mut dyn Write,
    err: &mut dyn Write,
    act: impl FnOnce(&Env, &AbsPath, &mut extensions::ExtensionStreams<'_>) -> io::Result<u8>,
) -> ExitCode {
    with_cwd(|cwd| {
        let mut ask = sessions::ask_terminal;
        let ask = sessions::has_terminal().then_some(&mut ask as &mut dyn FnMut(&str) -> bool);
        exit_code(act(&Env::from_process(), &cwd, &mut extensions::ExtensionStreams { out, err, ask }))
    })
}

fn run_agent(verb: AgentVerb, out: &mut dyn Write) -> ExitCode {
    match verb {
        AgentVerb::Acp(args) => match args.agent_args.remote.connect {
            Some(url) => with_cwd(|cwd| bridge::run(&url, &Env::from_process(), &cwd)),
            None => acp::serve(acp_options(args), Env::from_process()),
        },
        AgentVerb::Serve(args) => with_cwd(|cwd| serve::run(args, Env::from_process(), cwd, &mut Output::of_process())),
        AgentVerb::Chat(mut args) => {
            args.session.agent = args.agent_args.remote.bridge().or(args.session.agent);
            with_cwd(|cwd| chat::run(args, RunContext::detect(cwd.into(), model_access)))
        }
        AgentVerb::Run(args) if args.gemini.is_about_sessions() => with_cwd(|cwd| numbered_sessions(&args, &cwd, out)),
        AgentVerb::Run(mut args) => {
            args.session.agent = args.agent_args.remote.bridge().or(args.session.agent);
            with_cwd(|cwd| run::run(args, RunContext::detect(cwd.into(), model_access)))
        }
    }
}

/// Why a command cannot use castor's own folder. Commands with a client, and the doctor, report this themselves.
fn missing_home(verb: &CliVerb) -> Option<StoreError> {
    let asks = matches!(
        verb,
        CliVerb::Auth(_)
            | CliVerb::Models(_)
            | CliVerb::Permissions(_)
            | CliVerb::Sessions(_)
            | CliVerb::Stats(_)
            | CliVerb::Trust(_)
    );
    let home = workspace::castor_home(&Env::from_process()).filter(|_| asks)?;
    disk::blocking_file(&home.join("x")).map(|place| StoreError::NotAFolder { place })
}

/// Whether some model can be reached from a folder or was chosen in settings, and if not, which keys were looked for.
fn model_access(folder: &AbsPath) -> ModelReach {
    let (ground, settings) = load_ground(&Options::default(), &Env::from_process(), folder);
    match settings.model_name.is_some() || access::is_configured(&ground.env, &settings) {
        true => ModelReach::Some,
        false => ModelReach::Keys(providers::keys(&ground.env, &settings)),
    }
}

fn sessions(verb: &SessionsVerb, cwd: &AbsPath, out: &mut dyn Write) -> ExitCode {
    let store = match open_store(&Env::from_process()) {
        Ok(it) => it,
        Err(code) => return code,
    };
    // An export is the user's document: it is for a file or another program as it is.
    let mut document = Output::of_process();
    let out: &mut dyn Write = match (verb, io::stdout().is_terminal()) {
        (SessionsVerb::Export { .. }, false) => &mut document,
        // Its spans are clean, and its colours must stay what they are.
        (SessionsVerb::List { json: false, .. }, _) => &mut document,
        _ => out,
    };
    let now = Now { unix_ms: unix_ms(), seed: acp::seed() };
    let mut ask = sessions::ask_terminal;
    let ask = sessions::has_terminal().then_some(&mut ask as &mut dyn FnMut(&str) -> bool);
    let look = CommandLook::of_process(&Env::from_process());
    exit_with(sessions::run(verb, &mut CommandContext { store: &store, cwd, now, out, ask, look }))
}

fn stats(args: &stats::StatsArgs, cwd: &AbsPath) -> ExitCode {
    let env = Env::from_process();
    let store = match open_store(&env) {
        Ok(it) => it,
        Err(code) => return code,
    };
    let now = Now { unix_ms: unix_ms(), seed: acp::seed() };
    let look = CommandLook::of_process(&env);
    // Lines are cleaned one by one, and what is a document stays what it is.
    let out = &mut Output::of_process();
    let context = &mut CommandContext { store: &store, cwd, now, out, ask: None, look };
    exit_with(stats::run(args, context, stats::draws_blocks(&env), &mut err()))
}

/// `--list-sessions` and `--delete-session`.
fn numbered_sessions(args: &RunArgs, cwd: &AbsPath, out: &mut dyn Write) -> ExitCode {
    let store = match open_store(&Env::from_process()) {
        Ok(it) => it,
        Err(code) => return code,
    };
    let now = Now { unix_ms: unix_ms(), seed: acp::seed() };
    let look = CommandLook::of_process(&Env::from_process());
    let cwd = folder::folder(cwd, args.cwd.as_ref()).map_err(CommandError::input);
    exit_with(cwd.and_then(|cwd| {
        let context = &mut CommandContext { store: &store, cwd: &cwd, now, out, ask: None, look };
        match &args.gemini.delete_session {
            Some(word) => numbered::delete(context, word),
            None => numbered::list(context),
        }
    }))
}

fn clean(args: &clean_verb::CleanArgs, out: &mut dyn Write) -> ExitCode {
    let store = match open_store(&Env::from_process()) {
        Ok(it) => it,
        Err(code) => return code,
    };
    let mut ask = sessions::ask_terminal;
    let ask = sessions::has_terminal().then_some(&mut ask as &mut dyn FnMut(&str) -> bool);
    exit_with(clean_verb::run(args, &store, unix_ms(), out, ask))
}

fn look(args: &looked::LookedArgs, cwd: &AbsPath, out: &mut dyn Write) -> ExitCode {
    let store = match open_store(&Env::from_process()) {
        Ok(it) => it,
        Err(code) => return code,
    };
    let mut ask = sessions::ask_terminal;
    let ask = sessions::has_terminal().then_some(&mut ask as &mut dyn FnMut(&str) -> bool);
    exit_with(looked::run(args, store.home(), cwd, out, ask))
}

/// The sessions' store, or the exit code once it was said why there is none.
fn open_store(env: &Env) -> Result<SessionStore, ExitCode> {
    let home = workspace::castor_home(env).ok_or_else(|| workspace::NO_HOME.to_owned());
    home.and_then(|it| acp::open_store(it, None, env)).map_err(|why| {
        eprintln!("castor: {why}");
        ExitCode::from(EXIT_INPUT)
    })
}

fn exit_with(result: Result<(), CommandError>) -> ExitCode {
    match result {
        Ok(()) => exit_code(Ok(0)),
        Err(it) => {
            if !it.why.is_empty() {
                _ = writeln!(err(), "castor: {}", it.why);
            }
            ExitCode::from(it.code)
        }
    }
}

fn undo(verb: &undo::UndoVerb, cwd: &AbsPath, out: &mut dyn Write) -> ExitCode {
    let store = match open_store(&Env::from_process()) {
        Ok(it) => it,
        Err(code) => return code,
    };
    let now = Now { unix_ms: unix_ms(), seed: acp::seed() };
    let mut choose = sessions::read_terminal;
    let choose = sessions::has_terminal().then_some(&mut choose as &mut dyn FnMut(&str) -> String);
    let look = CommandLook::of_process(&Env::from_process());
    exit_with(undo::run(verb, &mut CommandContext { store: &store, cwd, now, out, ask: None, look }, choose))
}

/// Where the shell is; without it nothing that is typed makes sense.
fn with_cwd(then: impl FnOnce(AbsPath) -> ExitCode) -> ExitCode {
    match std::env::current_dir().ok().and_then(AbsPath::new) {
        Some(cwd) => then(cwd),
        None => {
            eprintln!("castor: the current folder cannot be read");
            ExitCode::from(EXIT_INPUT)
        }
    }
}

fn acp_options(args: AcpArgs) -> Options {
    Options { store: args.store, ..options(args.agent_args) }
}

fn options(args: AgentArgs) -> Options {
    let approval_mode = args.mode().map(ApprovalMode::mode);
    let strict = args.script.fake_responses.map(|file| Script { file, strict: true });
    let loose = args.script.fake_responses_non_strict.map(|file| Script { file, strict: false });
    // Where the folder is gone, the flags that need it name nothing.
    let lists = args.gemini.flags(&std::env::current_dir().unwrap_or_default());
    let extensions = (!args.gemini.extensions.is_empty()).then_some(args.gemini.extensions);
    Options {
        model: args.model,
        approval_mode,
        sandbox: args.sandbox,
        flags: args.limits.flags().into_iter().chain(lists).collect(),
        extensions,
        script: strict.or(loose),
        record: args.script.record_responses,
        store: None,
        routing: Default::default(),
        only: args.remote.rights(),
    }
}
