//! The command line: one table of verbs over the agent and its companion.

pub mod args;
pub mod config;
pub mod run;

use std::process::ExitCode;

use crate::{
    app::{
        cli::args::{AgentArgs, Cli, ConfigVerb, Verb},
        options::{Options, Script},
        serve,
    },
    base::log::Mode,
    world::secrets::Env,
};

/// The whole program.
pub fn main() -> ExitCode {
    let cli = match args::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    match cli.verb {
        Verb::Acp(args) => {
            trace();
            serve::serve(options(args), Env::from_process())
        }
        Verb::Run(args) => run::main(args, &Env::from_process()),
        Verb::Config(ConfigVerb::Explain(args)) => config::main(&args, &Env::from_process()),
    }
}

fn options(args: AgentArgs) -> Options {
    let strict = args.script.fake_responses.map(|file| Script { file, strict: true });
    let loose = args.script.fake_responses_non_strict.map(|file| Script { file, strict: false });
    Options {
        model: args.model,
        approval_mode: args.approval_mode.and_then(|it| Mode::parse(it.mode_id())),
        script: strict.or(loose),
        record: args.script.record_responses,
    }
}

/// Diagnostics go to stderr; `CASTOR_LOG` takes tracing's filters, such as `castor=debug`.
fn trace() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("CASTOR_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).without_time().init();
}
