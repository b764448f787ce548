//! The command line: one table of verbs over the agent and its companion.

pub mod args;
pub mod auth;
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

use std::process::ExitCode;

use crate::{
    app::{
        access,
        cli::{
            args::{AcpArgs, AcpVerb, AgentArgs, EXIT_INPUT, Verb},
            run::{Reach, RunContext},
            sessions::{Desk, SessionsVerb},
        },
        options::{Options, Script},
        providers, serve, sessions as factory,
    },
    base::{log::Mode, path::AbsPath},
    world::{secrets::Env, store::Store, workspace},
};

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
            let code = config::run(&args, &Env::from_process(), &cwd, &mut std::io::stdout());
            // A closed stdout is no reason to complain.
            ExitCode::from(code.unwrap_or(0))
        }),
        Verb::Models(args) => with_cwd(|cwd| {
            let streams = &mut models::Streams { out: &mut std::io::stdout(), err: &mut std::io::stderr() };
            ExitCode::from(models::run(&args, &Env::from_process(), &cwd, streams))
        }),
        Verb::Doctor(args) => with_cwd(|cwd| {
            let code = doctor::run(&args, &Env::from_process(), &cwd, &mut std::io::stdout());
            ExitCode::from(code.unwrap_or(EXIT_INPUT))
        }),
        Verb::Sessions(args) => with_cwd(|cwd| sessions(&args.verb, &cwd)),
        Verb::Permissions(args) => {
            let code = permissions::run(&args, &Env::from_process(), &mut std::io::stdout());
            ExitCode::from(code.unwrap_or(EXIT_INPUT))
        }
        Verb::Hooks(args) => with_cwd(|cwd| {
            let (out, err) = (&mut std::io::stdout(), &mut std::io::stderr());
            // A closed stdout is no reason to complain.
            ExitCode::from(hooks::run(&args, &Env::from_process(), &cwd, out, err).unwrap_or(0))
        }),
        Verb::Schema(args) => {
            let code = schema::run(&args, &mut std::io::stdout(), &mut std::io::stderr());
            // A closed stdout is no reason to complain.
            ExitCode::from(code.unwrap_or(0))
        }
        Verb::Trust(args) => with_cwd(|cwd| {
            let code = trust::run(&args, &Env::from_process(), &cwd, &mut std::io::stdout());
            ExitCode::from(code.unwrap_or_else(|it| {
                eprintln!("castor: {it}");
                1
            }))
        }),
        Verb::Policy(args) => with_cwd(|cwd| {
            let code = policy::run(&args, &Env::from_process(), &cwd, &mut std::io::stdout());
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
    let (store, mut stdout) = (Store::new(home), std::io::stdout());
    let mut ask = sessions::ask_terminal;
    let ask = sessions::has_terminal().then_some(&mut ask as &mut dyn FnMut(&str) -> bool);
    match sessions::run(verb, &mut Desk { store: &store, cwd, out: &mut stdout, ask }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(it) => {
            if !it.why.is_empty() {
                eprintln!("castor: {}", it.why);
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
        script: strict.or(loose),
        record: args.script.record_responses,
    }
}
