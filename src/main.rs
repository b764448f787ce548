//! The binary: argv in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: in a sandboxed command's place this process is no castor.
    #[cfg(target_os = "linux")]
    castor_hands::process::sandbox::enter_if_asked();
    castor::cli::main()
}
