//! Output of commands, and their exit code when it cannot be written.

use std::{
    fmt::Display,
    io::{self, Stdout, Write},
    process::ExitCode,
};

use crate::cli::{
    exits::EXIT_FAILED,
    render::{text::Line, wrap::wrap},
    terminal_text::CleanText,
};

/// What lines that go on are indented by, behind their own indent.
const INDENT: &str = "  ";

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

/// Wraps lines between words. Without a `width`, as in a pipe, they stay what they are.
pub struct WrappedLines<W: Write> {
    to: W,
    width: Option<usize>,
    /// Of a line that is not complete.
    left: Vec<u8>,
}

impl<W: Write> WrappedLines<W> {
    pub fn new(to: W, width: Option<usize>) -> Self {
        Self { to, width, left: Vec::new() }
    }
}

impl<W: Write> Write for WrappedLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(width) = self.width else { return self.to.write(bytes) };
        self.left.extend_from_slice(bytes);
        let end = self.left.iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1);
        let rest = self.left.split_off(end);
        let whole = std::mem::replace(&mut self.left, rest);
        self.to.write_all(wrap_lines(&String::from_utf8_lossy(&whole), width).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let left = std::mem::take(&mut self.left);
        self.to.write_all(&left)?;
        self.to.flush()
    }
}

/// Whole lines, wrapped between words.
pub fn wrap_lines(text: &str, width: usize) -> String {
    let mut res = String::new();
    for line in text.lines() {
        let blanks: String = line.chars().take_while(|it| *it == ' ').collect();
        for piece in wrap(&Line::plain(line), width, &(blanks + INDENT)) {
            res.push_str(&piece.text());
            res.push('\n');
        }
    }
    res
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::WrappedLines;

    #[test]
    fn a_terminal_gets_lines_that_end_between_words_and_a_pipe_gets_whole_ones() {
        let text = "short\n  model     gemini (ü GEMINI_API_KEY) answers\n\nTo do: run castor trust in it\n";
        let wrapped =
            "short\n  model     gemini (ü\n    GEMINI_API_KEY)\n    answers\n\nTo do: run castor trust\n  in it\n";
        for (width, want) in [(Some(23), wrapped), (None, text)] {
            let mut out = Vec::new();
            let mut to = WrappedLines::new(&mut out, width);
            text.as_bytes().chunks(3).for_each(|it| to.write_all(it).unwrap());
            assert_eq!(String::from_utf8(out).unwrap(), want);
        }
    }
}
