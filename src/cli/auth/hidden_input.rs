//! Hidden input: reads a line from the terminal without showing it.

use std::io::{self, Read, Write};

use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use secrecy::SecretString;

/// The terminal as it was, put back when this is dropped.
struct RestoreTerminal(Termios);

impl RestoreTerminal {
    /// Besides the echo the signal keys are switched off: dying of Ctrl-C would leave the terminal mute.
    fn disable_echo() -> io::Result<Self> {
        let old = tcgetattr(io::stdin())?;
        let mut new = old.clone();
        new.local_flags.remove(LocalFlags::ECHO | LocalFlags::ECHONL | LocalFlags::ICANON | LocalFlags::ISIG);
        // What was typed ahead was seen on the screen: it is not taken for the key.
        tcsetattr(io::stdin(), SetArg::TCSAFLUSH, &new)?;
        Ok(Self(old))
    }
}

impl Drop for RestoreTerminal {
    fn drop(&mut self) {
        _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &self.0);
    }
}

/// Asks once the echo is off. `None`: the user does not want to.
///
/// # Errors
/// A terminal that cannot be read or muted.
pub fn read_line(input: &mut dyn Read, out: &mut dyn Write, question: &str) -> io::Result<Option<SecretString>> {
    let muted = RestoreTerminal::disable_echo()?;
    write!(out, "{question}")?;
    out.flush()?;
    let line = edit(input);
    drop(muted);
    writeln!(out)?;
    line
}

/// The terminal's own editing is off with its echo: this is the part of it that a pasted key needs.
fn edit(input: &mut dyn Read) -> io::Result<Option<SecretString>> {
    const MAX: usize = 16 << 10;
    let (mut line, mut byte) = (Vec::new(), [0]);
    while input.read(&mut byte)? == 1 {
        match byte {
            [b'\r' | b'\n'] => break,
            // Ctrl-C, Ctrl-\, and Ctrl-D on an empty line.
            [0x03 | 0x1c] => return Ok(None),
            [0x04] if line.is_empty() => return Ok(None),
            [0x04] => break,
            // Backspace, Ctrl-U.
            [0x08 | 0x7f] => _ = line.pop(),
            [0x15] => line.clear(),
            [it] if line.len() < MAX => line.push(it),
            _ => (),
        }
    }
    let line = String::from_utf8(line).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not UTF-8"))?;
    Ok(Some(line.into()))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::edit;

    #[test]
    fn edits_a_line() {
        for (typed, want) in [
            ("key\nrest", Some("key")),
            ("key\r", Some("key")),
            ("kex\x7fy\n", Some("key")),
            ("wrong\x15key\n", Some("key")),
            ("\x7fkey\x04", Some("key")),
            ("\n", Some("")),
            ("key", Some("key")),
            ("key\x03", None),
            ("\x04", None),
        ] {
            let got = edit(&mut typed.as_bytes()).unwrap();
            assert_eq!(got.as_ref().map(|it| it.expose_secret()), want, "{typed:?}");
        }
        assert!(edit(&mut &b"\xff\n"[..]).is_err());
    }
}
