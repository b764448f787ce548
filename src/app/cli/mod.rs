//! The command line: one table of verbs over the agent and its companion.

pub mod args;
pub mod auth;
pub mod clean;
pub mod config;
pub mod docs;
pub mod doctor;
pub mod exits;
pub mod folder;
pub mod free;
pub mod hooks;
pub mod models;
pub mod output;
pub mod permissions;
pub mod policy;
pub mod run;
pub mod schema;
pub mod sessions;
#[cfg(test)]
mod testing;
pub mod trust;
pub mod undo;

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use crate::{
    app::{
        access,
        cli::{
            args::{AcpArgs, AcpVerb, AgentArgs, Verb},
            clean::Plain,
            exits::EXIT_INPUT,
            output::{Output, ended},
            run::{Reach, RunContext},
            sessions::{Desk, SessionsVerb, Trouble},
        },
        event_loop::unix_ms,
        options::{Options, Script},
        providers, serve, sessions as factory,
    },
    base::{log::Mode, now::Now, path::AbsPath},
    world::{
        disk, process,
        secrets::Env,
        store::{Store, StoreError},
        workspace,
    },
};

/// What verbs print goes through here; see [`Plain`].
fn out() -> Plain<Output> {
    Plain::new(Output::of_process())
}

fn err() -> Plain<io::Stderr> {
    Plain::new(io::stderr())
}

/// The whole program.
pub fn main() -> ExitCode {
    process::survive_size_limits();
    let cli = match args::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    if let Some(it) = no_folder(&cli.verb) {
        eprintln!("castor: {it}. {}", workspace::NO_FOLDER);
        return ExitCode::from(EXIT_INPUT);
    }
    let (out, err) = (&mut out(), &mut err());
    match cli.verb {
        Verb::Acp(AcpArgs { instead: Some(AcpVerb::Auth(args)), .. }) | Verb::Auth(args) => with_cwd(|cwd| {
            let streams = &mut auth::Streams::of_process();
            ended(auth::run(&args, &Env::from_process(), &cwd, streams))
        }),
        Verb::Acp(args) => serve::serve(options(args.agent_args), Env::from_process()),
        Verb::Run(args) => with_cwd(|cwd| run::run(args, RunContext::detect(cwd.into(), model_access))),
        Verb::Config(args) => with_cwd(|cwd| ended(config::run(&args, &Env::from_process(), &cwd, out))),
        Verb::Models(args) => {
            with_cwd(|cwd| ended(models::run(&args, &Env::from_process(), &cwd, &mut models::Streams { out, err })))
        }
        Verb::Doctor(args) => with_cwd(|cwd| ended(doctor::run(&args, &Env::from_process(), &cwd, out))),
        Verb::Sessions(args) => with_cwd(|cwd| sessions(&args.verb, &cwd, out)),
        Verb::Undo(args) => with_cwd(|cwd| undo(&undo::Verb::Undo(args), &cwd, out)),
        Verb::Redo(args) => with_cwd(|cwd| undo(&undo::Verb::Redo(args), &cwd, out)),
        Verb::Rewind(args) => with_cwd(|cwd| undo(&undo::Verb::Rewind(args), &cwd, out)),
        Verb::Diff(args) => with_cwd(|cwd| undo(&undo::Verb::Diff(args), &cwd, out)),
        Verb::Clean(args) => clean(&args, out),
        Verb::Permissions(args) => ended(permissions::run(&args, &Env::from_process(), out)),
        Verb::Hooks(args) => with_cwd(|cwd| ended(hooks::run(&args, &Env::from_process(), &cwd, out, err))),
        Verb::Docs(args) => with_cwd(|cwd| ended(docs::run(&args, &cwd, out))),
        Verb::Schema(args) => ended(schema::run(&args, out, err)),
        Verb::Trust(args) => with_cwd(|cwd| {
            let mut ask = sessions::ask_terminal;
            let ask = sessions::has_terminal().then_some(&mut ask as &mut dyn FnMut(&str) -> bool);
            ended(trust::run(&args, &Env::from_process(), &cwd, ask, out))
        }),
        Verb::Policy(args) => with_cwd(|cwd| ended(policy::run(&args, &Env::from_process(), &cwd, out))),
    }
}

/// What keeps a verb from castor's own folder. Who speaks to a client says it there, and the doctor has a place for it.
fn no_folder(verb: &Verb) -> Option<StoreError> {
    let asks =
        matches!(verb, Verb::Auth(_) | Verb::Models(_) | Verb::Permissions(_) | Verb::Sessions(_) | Verb::Trust(_));
    let home = workspace::castor_home(&Env::from_process()).filter(|_| asks)?;
    disk::file_in_the_way(&home.join("x")).map(|place| StoreError::NoFolder { place })
}

/// Whether some model can be reached from a folder or was chosen in settings, and if not, which keys were looked for.
fn model_access(folder: &AbsPath) -> Reach {
    let (ground, settings) = factory::look(&Options::default(), &Env::from_process(), folder);
    match settings.model_name.is_some() || access::is_configured(&ground.env, &settings) {
        true => Reach::Some,
        false => Reach::Keys(providers::keys(&ground.env, &settings)),
    }
}

fn sessions(verb: &SessionsVerb, cwd: &AbsPath, out: &mut dyn Write) -> ExitCode {
    let Some(home) = workspace::castor_home(&Env::from_process()) else {
        eprintln!("castor: {}", workspace::NO_HOME);
        return ExitCode::from(EXIT_INPUT);
    };
    // An export is the user's document: it is for a file or another program as it is.
    let mut document = Output::of_process();
    let out: &mut dyn Write = match (verb, io::stdout().is_terminal()) {
        (SessionsVerb::Export { .. }, false) => &mut document,
        _ => out,
    };
    let store = Store::new(home);
    let now = Now { unix_ms: unix_ms(), seed: serve::seed() };
    let mut ask = sessions::ask_terminal;
    let ask = sessions::has_terminal().then_some(&mut ask as &mut dyn FnMut(&str) -> bool);
    concluded(sessions::run(verb, &mut Desk { store: &store, cwd, now, out, ask }))
}

fn clean(args: &free::CleanArgs, out: &mut dyn Write) -> ExitCode {
    let Some(home) = workspace::castor_home(&Env::from_process()) else {
        eprintln!("castor: {}", workspace::NO_HOME);
        return ExitCode::from(EXIT_INPUT);
    };
    let mut ask = sessions::ask_terminal;
    let ask = sessions::has_terminal().then_some(&mut ask as &mut dyn FnMut(&str) -> bool);
    concluded(free::run(args, &Store::new(home), unix_ms(), out, ask))
}

fn concluded(result: Result<(), Trouble>) -> ExitCode {
    match result {
        Ok(()) => ended(Ok(0)),
        Err(it) => {
            if !it.why.is_empty() {
                _ = writeln!(err(), "castor: {}", it.why);
            }
            ExitCode::from(it.code)
        }
    }
}

fn undo(verb: &undo::Verb, cwd: &AbsPath, out: &mut dyn Write) -> ExitCode {
    let Some(home) = workspace::castor_home(&Env::from_process()) else {
        eprintln!("castor: {}", workspace::NO_HOME);
        return ExitCode::from(EXIT_INPUT);
    };
    let store = Store::new(home);
    let now = Now { unix_ms: unix_ms(), seed: serve::seed() };
    let mut choose = sessions::read_terminal;
    let choose = sessions::has_terminal().then_some(&mut choose as &mut dyn FnMut(&str) -> String);
    concluded(undo::run(verb, &mut Desk { store: &store, cwd, now, out, ask: None }, choose))
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

fn options(args: AgentArgs) -> Options {
    let strict = args.script.fake_responses.map(|file| Script { file, strict: true });
    let loose = args.script.fake_responses_non_strict.map(|file| Script { file, strict: false });
    Options {
        model: args.model,
        approval_mode: args.approval_mode.and_then(|it| Mode::parse(it.mode_id())),
        sandbox: args.sandbox,
        limits: args.limits.flags(),
        script: strict.or(loose),
        record: args.script.record_responses,
    }
}
