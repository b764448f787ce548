//! Output of commands, and their exit code when it cannot be written.

use std::{
    fmt::Display,
    io::{self, Stdout, Write},
    process::ExitCode,
};

use crate::app::cli::{exits::EXIT_FAILED, terminal_text::CleanText};

/// Stdout, whose errors say that they are its own: verbs write files, too.
pub struct Output(Stdout);

impl Output {
    pub fn of_process() -> Self {
        Self(io::stdout())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(name_stdout)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(name_stdout)
    }
}

/// An error of stdout's.
pub fn name_stdout(it: io::Error) -> io::Error {
    io::Error::new(it.kind(), format!("the output could not be written: {it}"))
}

/// The last part of an output: a warning a line, if there are any.
pub fn write_warnings(warnings: &[impl Display], out: &mut dyn Write) -> io::Result<()> {
    if !warnings.is_empty() {
        writeln!(out, "\nWarnings:")?;
    }
    warnings.iter().try_for_each(|it| writeln!(out, "  {it}"))
}

/// The end of a verb that wrote to [`Output`]. Whoever read may have had enough, as in `castor policy list | head`: that
/// is no reason to complain. A full disk is one.
pub fn exit_code(result: io::Result<u8>) -> ExitCode {
    // Half a line may still wait.
    let written = result.and_then(|code| Output::of_process().flush().map(|()| code));
    match written {
        Ok(code) => ExitCode::from(code),
        Err(it) if it.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(it) => {
            // Nobody is left to tell where stderr is gone, too.
            _ = writeln!(CleanText::new(io::stderr()), "castor: {it}");
            ExitCode::from(EXIT_FAILED)
        }
    }
}
