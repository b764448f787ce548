//! The command line: one table of verbs over the agent and its companion.

pub mod args;
pub mod auth;
pub mod clean;
pub mod config;
pub mod doctor;
pub mod folder;
pub mod hooks;
pub mod models;
pub mod permissions;
pub mod policy;
pub mod run;
pub mod schema;
pub mod sessions;
#[cfg(test)]
mod testing;
pub mod trust;

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use crate::{
    app::{
        access,
        cli::{
            args::{AcpArgs, AcpVerb, AgentArgs, EXIT_INPUT, Verb},
            clean::Plain,
            run::{Reach, RunContext},
            sessions::{Desk, SessionsVerb},
        },
        options::{Options, Script},
        providers, serve, sessions as factory,
    },
    base::{log::Mode, path::AbsPath},
    world::{secrets::Env, store::Store, workspace},
};

/// What verbs print goes through here; see [`Plain`].
fn out() -> Plain<io::Stdout> {
    Plain::new(io::stdout())
}

fn err() -> Plain<io::Stderr> {
    Plain::new(io::stderr())
}

/// The whole program.
pub fn main() -> ExitCode {
    let cli = match args::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    match cli.verb {
        Verb::Acp(AcpArgs { instead: Some(AcpVerb::Auth(args)), .. }) | Verb::Auth(args) => with_cwd(|cwd| {
            let streams = &mut auth::Streams::of_process();
            ExitCode::from(auth::run(&args, &Env::from_process(), &cwd, streams))
        }),
        Verb::Acp(args) => serve::serve(options(args.agent_args), Env::from_process()),
        Verb::Run(args) => with_cwd(|cwd| run::run(args, RunContext::detect(cwd.into(), model_access))),
        Verb::Config(args) => with_cwd(|cwd| {
            let code = config::run(&args, &Env::from_process(), &cwd, &mut out());
            // A closed stdout is no reason to complain.
            ExitCode::from(code.unwrap_or(0))
        }),
        Verb::Models(args) => with_cwd(|cwd| {
            let streams = &mut models::Streams { out: &mut out(), err: &mut err() };
            ExitCode::from(models::run(&args, &Env::from_process(), &cwd, streams))
        }),
        Verb::Doctor(args) => with_cwd(|cwd| {
            let code = doctor::run(&args, &Env::from_process(), &cwd, &mut out());
            ExitCode::from(code.unwrap_or(EXIT_INPUT))
        }),
        Verb::Sessions(args) => with_cwd(|cwd| sessions(&args.verb, &cwd)),
        Verb::Permissions(args) => {
            let code = permissions::run(&args, &Env::from_process(), &mut out());
            ExitCode::from(code.unwrap_or(EXIT_INPUT))
        }
        Verb::Hooks(args) => with_cwd(|cwd| {
            let (out, err) = (&mut out(), &mut err());
            // A closed stdout is no reason to complain.
            ExitCode::from(hooks::run(&args, &Env::from_process(), &cwd, out, err).unwrap_or(0))
        }),
        Verb::Schema(args) => {
            let code = schema::run(&args, &mut out(), &mut err());
            // A closed stdout is no reason to complain.
            ExitCode::from(code.unwrap_or(0))
        }
        Verb::Trust(args) => with_cwd(|cwd| {
            let code = trust::run(&args, &Env::from_process(), &cwd, &mut out());
            ExitCode::from(code.unwrap_or_else(|it| {
                _ = writeln!(err(), "castor: {it}");
                1
            }))
        }),
        Verb::Policy(args) => with_cwd(|cwd| {
            let code = policy::run(&args, &Env::from_process(), &cwd, &mut out());
            ExitCode::from(code.unwrap_or(EXIT_INPUT))
        }),
    }
}

/// Whether some model can be reached from a folder, and if not, which keys were looked for.
fn model_access(folder: &AbsPath) -> Reach {
    let (ground, settings) = factory::look(&Options::default(), &Env::from_process(), folder);
    match access::is_configured(&ground.env, &settings) {
        true => Reach::Some,
        false => Reach::Keys(providers::keys(&ground.env, &settings)),
    }
}

fn sessions(verb: &SessionsVerb, cwd: &AbsPath) -> ExitCode {
    let Some(home) = workspace::castor_home(&Env::from_process()) else {
        eprintln!("castor: {}", workspace::NO_HOME);
        return ExitCode::from(EXIT_INPUT);
    };
    // An export is the user's document: it is for a file or another program as it is.
    let mut stdout: Box<dyn Write> = match (verb, io::stdout().is_terminal()) {
        (SessionsVerb::Export { .. }, false) => Box::new(io::stdout()),
        _ => Box::new(out()),
    };
    let store = Store::new(home);
    let mut ask = sessions::ask_terminal;
    let ask = sessions::has_terminal().then_some(&mut ask as &mut dyn FnMut(&str) -> bool);
    match sessions::run(verb, &mut Desk { store: &store, cwd, out: &mut *stdout, ask }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(it) => {
            if !it.why.is_empty() {
                _ = writeln!(err(), "castor: {}", it.why);
            }
            ExitCode::from(it.code)
        }
    }
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
