//! The binary: argv in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    castor::app::cli::main()
}
