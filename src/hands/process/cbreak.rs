//! Cbreak mode of the terminal: keys come one by one and are not shown. It is put back on exit, panic, Ctrl-Z and signals.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::AsFd,
    panic,
    sync::{Arc, Mutex},
};

use futures_util::FutureExt;
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        signal::{Signal, kill},
        termios::{InputFlags, LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr},
    },
    unistd::Pid,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::Notify,
    task::yield_now,
};

/// What a program wants of the terminal beside single keys.
#[derive(Clone, Copy, Debug)]
pub struct KeyModes {
    on: &'static [u8],
    off: &'static [u8],
    /// Carriage returns stay what they are, and Ctrl-S, Ctrl-Q, Ctrl-V and Ctrl-O are keys.
    pub is_raw: bool,
}

impl KeyModes {
    /// Bracketed paste.
    pub const QUESTIONS: Self = Self { on: b"\x1b[?2004h", off: b"\x1b[?2004l", is_raw: false };
    /// The same, and keys that terminals tell apart if they are asked to, such as Shift-Enter. At the end nothing stays
    /// below the place that was saved last, which is the top of the live region, and the cursor can be seen.
    pub const CHAT: Self =
        Self { on: b"\x1b[?2004h\x1b[>1u\x1b7", off: b"\x1b[<u\x1b[?2004l\x1b8\x1b[0m\x1b[J\x1b[?25h", is_raw: true };
}

/// The terminal and how it was. Nothing of it is touched from the background: that stops a process.
pub struct CbreakMode {
    terminal: File,
    modes: KeyModes,
    state: Mutex<CbreakState>,
    resumed: Notify,
}

enum CbreakState {
    /// As the shell left it.
    Off,
    On(Box<Termios>),
    /// Another program of ours has the terminal for a while.
    Lent,
    /// No more keys are wanted.
    Ended,
}

impl CbreakMode {
    /// # Errors
    /// When there is no terminal, or it has no such mode.
    pub fn start(terminal: File, modes: KeyModes) -> io::Result<Arc<Self>> {
        tcgetattr(&terminal)?;
        let mode = Arc::new(Self { terminal, modes, state: Mutex::new(CbreakState::Off), resumed: Notify::new() });
        mode.enter();
        let (to_restore, previous) = (mode.clone(), panic::take_hook());
        panic::set_hook(Box::new(move |info| {
            // The lock may be held by what panics.
            if let Ok(mut state) = to_restore.state.try_lock() {
                to_restore.restore(&mut state);
            }
            previous(info);
        }));
        mode.clone().follow_job_control();
        Ok(mode)
    }

    pub fn terminal(&self) -> &File {
        &self.terminal
    }

    pub fn is_in_front(&self) -> bool {
        is_in_front(&self.terminal)
    }

    /// Takes keys one by one, unless it does already or the terminal is another program's.
    pub fn enter(&self) {
        let Ok(mut state) = self.state.lock() else { return };
        if !matches!(*state, CbreakState::Off) || !self.is_in_front() {
            return;
        }
        let Ok(before) = tcgetattr(&self.terminal) else { return };
        if self.set(&before).is_ok() {
            _ = (&self.terminal).write_all(self.modes.on);
            *state = CbreakState::On(Box::new(before));
        }
    }

    /// After a stop: a shell may have changed the terminal meanwhile.
    fn enter_again(&self) {
        if let (Ok(state), true) = (self.state.lock(), self.is_in_front())
            && let CbreakState::On(before) = &*state
        {
            _ = self.set(before);
            _ = (&self.terminal).write_all(self.modes.on);
        }
        self.enter();
        self.resumed.notify_one();
    }

    /// Ends when the user came back after a stop.
    pub async fn resumed(&self) {
        self.resumed.notified().await;
    }

    fn set(&self, before: &Termios) -> nix::Result<()> {
        let mut new = before.clone();
        // The signal keys stay what they are, but for this: none throws away what is on its way to the screen.
        new.local_flags.remove(LocalFlags::ECHO | LocalFlags::ECHONL | LocalFlags::ICANON);
        new.local_flags.insert(LocalFlags::NOFLSH);
        if self.modes.is_raw {
            new.local_flags.remove(LocalFlags::IEXTEN);
            new.input_flags.remove(InputFlags::ICRNL | InputFlags::INLCR | InputFlags::IXON);
        }
        for (index, value) in [(SpecialCharacterIndices::VMIN, 1), (SpecialCharacterIndices::VTIME, 0)] {
            if let Some(it) = new.control_chars.get_mut(index as usize) {
                *it = value;
            }
        }
        tcsetattr(&self.terminal, SetArg::TCSANOW, &new)
    }

    /// The terminal as it was.
    pub fn leave(&self) {
        if let Ok(mut state) = self.state.lock() {
            self.restore(&mut state);
        }
    }

    /// Ctrl-Z where it is a key and no signal. As the signal it reaches all that the shell started with us: what waits for
    /// us would not notice that we alone stop, and keep the terminal.
    pub fn stop(&self) {
        self.leave();
        _ = kill(Pid::from_raw(0), Signal::SIGTSTP);
    }

    /// The terminal as it was, for a program that reads it until [`Self::take_again`].
    pub fn lend(&self) {
        if let Ok(mut state) = self.state.lock() {
            self.restore(&mut state);
            *state = CbreakState::Lent;
        }
    }

    pub fn take_again(&self) {
        if let Ok(mut state) = self.state.lock()
            && matches!(*state, CbreakState::Lent)
        {
            *state = CbreakState::Off;
        }
        self.enter();
    }

    /// Whether what is typed is for us.
    pub fn may_read(&self) -> bool {
        self.is_in_front() && self.state.lock().is_ok_and(|it| !matches!(*it, CbreakState::Lent))
    }

    /// The terminal as it was, for good.
    pub fn end(&self) {
        if let Ok(mut state) = self.state.lock() {
            self.restore(&mut state);
            *state = CbreakState::Ended;
        }
    }

    fn restore(&self, state: &mut CbreakState) {
        if let CbreakState::On(before) = state
            && self.is_in_front()
        {
            _ = (&self.terminal).write_all(self.modes.off);
            _ = tcsetattr(&self.terminal, SetArg::TCSANOW, before);
            *state = CbreakState::Off;
        }
    }

    pub fn has_ended(&self) -> bool {
        self.state.lock().is_ok_and(|it| matches!(*it, CbreakState::Ended))
    }

    /// Ctrl-Z gives the terminal back before it stops us; the return takes it again.
    fn follow_job_control(self: Arc<Self>) {
        let (Ok(mut stop), Ok(mut go_on)) = (
            signal(SignalKind::from_raw(Signal::SIGTSTP as i32)),
            signal(SignalKind::from_raw(Signal::SIGCONT as i32)),
        ) else {
            return;
        };
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    biased;
                    Some(()) = stop.recv() => {
                        self.leave();
                        // What waits for us may have stopped before us, and the user have come back since: no further
                        // signal would wake us then.
                        yield_now().await;
                        let is_back = go_on.recv().now_or_never().is_some();
                        // The signal that wakes us is heard below.
                        if is_back || !has_job_control() || kill(Pid::this(), Signal::SIGSTOP).is_err() {
                            self.enter_again();
                        }
                    }
                    Some(()) = go_on.recv() => self.enter_again(),
                    else => return,
                }
            }
        });
    }
}

/// Whether a shell looks after our process group: without one nothing would wake us again.
fn has_job_control() -> bool {
    nix::unistd::getsid(None).is_ok_and(|it| it != nix::unistd::getpgrp())
}

/// # Errors
/// Without a controlling terminal.
pub fn open_terminal() -> io::Result<File> {
    // A terminal is no file of anybody's: there is nothing for the disk's rules to guard.
    #[allow(clippy::disallowed_methods)]
    File::options().read(true).write(true).open("/dev/tty")
}

/// Whether the terminal is ours at the moment: another job's is neither read nor set.
pub fn is_in_front(terminal: &File) -> bool {
    nix::unistd::tcgetpgrp(terminal).is_ok_and(|it| it == nix::unistd::getpgrp())
}

/// Whether something can be read before the time is up. What is wrong with the terminal is said by the read.
pub fn wait_readable(terminal: &File, limit: PollTimeout) -> bool {
    let mut fds = [PollFd::new(terminal.as_fd(), PollFlags::POLLIN)];
    match poll(&mut fds, limit) {
        Ok(ready) => ready > 0,
        Err(error) => error != Errno::EINTR,
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, sync::Mutex};

    use nix::{
        pty::openpty,
        sys::termios::{LocalFlags, tcgetattr},
    };
    use tokio::sync::Notify;

    use super::{CbreakMode, CbreakState, KeyModes};

    /// Whether something is lost without the flag is up to the kernel's timing.
    #[test]
    fn signal_keys_throw_no_output_away() {
        let pty = openpty(None, None).unwrap();
        let (terminal, state) = (File::from(pty.slave), Mutex::new(CbreakState::Off));
        let mode = CbreakMode { terminal, modes: KeyModes::CHAT, state, resumed: Notify::new() };
        mode.set(&tcgetattr(&mode.terminal).unwrap()).unwrap();
        let flags = tcgetattr(&mode.terminal).unwrap().local_flags;
        assert!(
            flags.contains(LocalFlags::ISIG | LocalFlags::NOFLSH) && !flags.contains(LocalFlags::ICANON),
            "{flags:?}"
        );
    }
}
