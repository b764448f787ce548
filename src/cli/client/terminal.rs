//! Terminal input of `castor run`, read from /dev/tty, since stdin may carry a piped prompt.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use nix::{
    poll::PollTimeout,
    sys::termios::{FlushArg, tcflush},
};
use tokio::sync::mpsc;

use castor_hands::{
    process::cbreak::{CbreakMode, KeyModes, is_in_front, open_terminal, wait_readable},
    secrets::Env,
};

/// Lines or pieces that may wait.
const QUEUE: usize = 64;
/// Milliseconds: an escape that is followed by nothing for so long is the key. Sequences come at once.
const ESCAPE_PAUSE: u16 = 30;
/// How often a process looks whether it is in front: in the background, and in milliseconds while it waits for keys.
const LATER: Duration = Duration::from_millis(100);
const LOOK: u16 = 500;

/// What came from the keyboard at once.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TypedBytes {
    /// How often what was typed had been discarded when this was read.
    pub discards: u64,
    pub bytes: Vec<u8>,
    /// Nothing more came for a moment.
    pub is_pause: bool,
}

/// The keyboard, key by key, as long as this lives.
pub struct KeyTerminal {
    mode: Arc<CbreakMode>,
    discards: Arc<AtomicU64>,
}

impl KeyTerminal {
    /// `None`: this terminal gives lines only.
    pub fn open(modes: KeyModes) -> Option<(Self, mpsc::Receiver<TypedBytes>)> {
        if Env::from_process().get("TERM").is_none_or(|it| it.is_empty() || it == "dumb") {
            return None;
        }
        let mode = CbreakMode::start(open_terminal().ok()?, modes).ok()?;
        let (to, typed) = mpsc::channel(QUEUE);
        let discards = Arc::new(AtomicU64::new(0));
        let reader = KeyReader { mode: mode.clone(), discards: discards.clone(), to };
        // It lives as long as the process: a read that waits cannot be taken back.
        thread::spawn(move || reader.run());
        Some((Self { mode, discards }, typed))
    }

    /// Drops what was typed and not read yet; gives the number that later pieces have.
    pub fn discard(&self) -> u64 {
        if self.mode.is_in_front() {
            _ = tcflush(self.mode.terminal(), FlushArg::TCIFLUSH);
        }
        // After the flush: what is read with the new number was typed after it.
        self.discards.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Ctrl-Z, as a key.
    pub fn stop(&self) {
        self.mode.stop();
    }

    /// Another program of ours reads the terminal, until it is taken again.
    pub fn lend(&self) {
        self.mode.lend();
    }

    pub fn take_again(&self) {
        self.mode.take_again();
    }

    /// Ends when the user came back after a stop.
    pub async fn resumed(&self) {
        self.mode.resumed().await;
    }
}

impl Drop for KeyTerminal {
    fn drop(&mut self) {
        self.mode.end();
    }
}

struct KeyReader {
    mode: Arc<CbreakMode>,
    discards: Arc<AtomicU64>,
    to: mpsc::Sender<TypedBytes>,
}

impl KeyReader {
    fn run(self) {
        let mut buffer = [0; 4096];
        while !self.mode.has_ended() {
            if !self.mode.may_read() {
                thread::sleep(LATER);
                continue;
            }
            self.mode.enter();
            // It is looked at again after a while: a shell can bring us to the front without a word.
            if !wait_readable(self.mode.terminal(), LOOK.into()) || !self.mode.may_read() {
                continue;
            }
            // Before the read: what is read with the last number was typed after the last flush.
            let discards = self.discards.load(Ordering::SeqCst);
            let count = match self.mode.terminal().read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => return,
                Ok(count) => count,
            };
            let bytes = buffer.get(..count).unwrap_or_default().to_vec();
            let may_be_key = bytes.last() == Some(&0x1b);
            if self.to.blocking_send(TypedBytes { discards, bytes, is_pause: false }).is_err() {
                return;
            }
            if may_be_key && !wait_readable(self.mode.terminal(), ESCAPE_PAUSE.into()) {
                _ = self.to.blocking_send(TypedBytes { discards, bytes: Vec::new(), is_pause: true });
            }
        }
    }
}

/// Whether there is a terminal to ask on.
pub fn is_there() -> bool {
    open_terminal().is_ok()
}

/// Columns of the terminal.
pub fn columns() -> usize {
    const DEFAULT: usize = 80;
    let size = open_terminal().ok().and_then(|it| rustix::termios::tcgetwinsize(it).ok());
    size.map_or(DEFAULT, |it| if it.ws_col == 0 { DEFAULT } else { it.ws_col.into() })
}

/// Whole lines. Reads in a thread that lives as long as the process.
pub fn lines() -> mpsc::Receiver<String> {
    let (to, lines) = mpsc::channel(QUEUE);
    thread::spawn(move || {
        let Ok(terminal) = open_terminal() else { return };
        let mut terminal = BufReader::new(terminal);
        loop {
            let mut line = String::new();
            if terminal.buffer().is_empty() {
                wait(terminal.get_ref());
            }
            match terminal.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => (),
            }
            let line = line.trim_end_matches(['\n', '\r']).to_owned();
            if to.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Until a line is there that is for us. The system stops a process that reads a terminal from the background, and what
/// is typed meanwhile is for the shell.
fn wait(terminal: &File) {
    while !(wait_readable(terminal, PollTimeout::NONE) && is_in_front(terminal)) {
        thread::sleep(LATER);
    }
}

/// Drops what was begun and not sent with a return: a question that comes up now must not be answered with its end.
pub fn discard_typed() {
    if let Ok(terminal) = open_terminal()
        && is_in_front(&terminal)
    {
        _ = tcflush(&terminal, FlushArg::TCIFLUSH);
    }
}
