//! `castor doctor`: checks this installation; the last lines say what to do.

mod editors;
mod json_report;
mod model_probe;
mod probe;
mod report;
mod text_report;

pub use json_report::DoctorOutput;

use std::io::{self, Write};

use clap::Args;

use crate::cli::{exits::EXIT_FAILED, output::wrap_lines};
use castor_base::path::AbsPath;
use castor_hands::secrets::Env;

/// Logs that are looked through for damage, newest first, in bytes together.
const MAX_CHECKED: u64 = 64 << 20;
/// Sessions that are looked through for errors, newest first.
const MAX_SESSIONS: usize = 20;
/// Errors that are told.
const MAX_ERRORS: usize = 5;

/// Looks at castor itself.
#[derive(Args, Clone, Debug)]
pub struct DoctorArgs {
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
    /// Everything that was found, and what to put into the settings of editors
    #[arg(long)]
    pub all: bool,
}

/// Prints what was found, in lines of `width` columns; 0 when all is well.
pub fn run(args: &DoctorArgs, env: &Env, cwd: &AbsPath, width: usize, out: &mut dyn Write) -> io::Result<u8> {
    let program = std::env::current_exe().unwrap_or_else(|_| "castor".into());
    let report =
        report::gather_report(env, cwd, &program, |servers| probe::run_handshake(&program, servers.then_some(cwd)));
    match args.json {
        true => writeln!(out, "{}", report.to_json())?,
        false if args.all => out.write_all(report.to_text(width).as_bytes())?,
        false => out.write_all(wrap_lines(&report.to_summary(), width).as_bytes())?,
    }
    Ok(if report.todo.is_empty() { 0 } else { EXIT_FAILED })
}
