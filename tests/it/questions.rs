//! Questions of `castor run` on a terminal of its own, while stdin is a pipe; and the terminal afterwards.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    process::{Child, Stdio},
};

use nix::sys::termios::{LocalFlags, tcgetattr};

use crate::{client::Sandbox, conversation::model};

/// A shell on a terminal of its own, which starts castor behind a pipe and says how it ended.
struct Terminal {
    sandbox: Sandbox,
    master: File,
    slave: OwnedFd,
    shell: Child,
    screen: String,
}

impl Terminal {
    fn start(term: &str) -> Self {
        let mut sandbox = Sandbox::new();
        let answers = [r#"call run_shell_command {"command": "touch made"}"#, r#"text "All done.""#];
        let lines: Vec<String> = answers.iter().map(|it| model::response(it).unwrap().to_string() + "\n").collect();
        sandbox.write("ws/script.jsonl", &lines.concat());
        let castor = sandbox.watched().client();
        let castor = castor.display();
        let script = format!(
            "trap : INT; echo context | '{castor}' run --fake-responses=script.jsonl 'go on'; echo \"exit $?\""
        );
        sandbox.program = "setsid".into();
        sandbox.args = ["--ctty", "sh", "-c", &script].map(Into::into).to_vec();
        sandbox.env.push(("TERM".to_owned(), term.to_owned()));
        let terminal = nix::pty::openpty(None, None).unwrap();
        let slave = terminal.slave;
        let mut command = sandbox.command();
        command.stdin(slave.try_clone().unwrap()).stderr(slave.try_clone().unwrap()).stdout(Stdio::piped());
        let shell = command.spawn().unwrap();
        Self { sandbox, master: terminal.master.into(), slave, shell, screen: String::new() }
    }

    fn wait_for(&mut self, text: &str) {
        while !self.screen.contains(text) {
            let mut piece = [0; 1024];
            let count = self.master.read(&mut piece).unwrap();
            self.screen += &String::from_utf8_lossy(&piece[..count]);
        }
    }

    fn press(&mut self, keys: &[u8]) {
        self.master.write_all(keys).unwrap();
    }

    /// Whether lines are typed and seen as they are in a shell.
    fn is_as_shells_have_it(&self) -> bool {
        let flags = tcgetattr(&self.slave).unwrap().local_flags;
        assert!(flags.contains(LocalFlags::ISIG));
        let usual = LocalFlags::ECHO | LocalFlags::ICANON;
        assert!(flags.contains(usual) || !flags.intersects(usual), "{flags:?}");
        flags.contains(usual)
    }

    /// What went to stdout until the end.
    fn finish(mut self) -> (String, Sandbox) {
        // Somebody reads the screen until the end, or its writers would wait.
        let mut master = self.master.try_clone().unwrap();
        std::thread::spawn(move || _ = std::io::copy(&mut master, &mut std::io::sink()));
        let mut out = String::new();
        self.shell.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.shell.wait().unwrap();
        assert!(self.is_as_shells_have_it(), "the terminal stays as the questions had it");
        (out, self.sandbox)
    }
}

#[test]
fn one_key_approves_while_stdin_is_a_pipe() {
    let mut terminal = Terminal::start("xterm");
    terminal.wait_for("Reject");
    assert!(!terminal.is_as_shells_have_it());
    terminal.press(b"y");
    let (out, sandbox) = terminal.finish();
    assert!(out.contains("All done.") && out.ends_with("exit 0\n"), "{out}");
    assert!(sandbox.workspace().join("made").exists());
}

#[test]
fn ctrl_c_gives_the_terminal_back() {
    let mut terminal = Terminal::start("xterm");
    terminal.wait_for("Reject");
    assert!(!terminal.is_as_shells_have_it());
    terminal.press(b"\x03");
    let (out, sandbox) = terminal.finish();
    assert!(out.ends_with("exit 130\n"), "{out}");
    assert!(!sandbox.workspace().join("made").exists());
}

/// Without single keys a line answers, and the terminal is never touched.
#[test]
fn a_dumb_terminal_answers_by_lines() {
    let mut terminal = Terminal::start("dumb");
    terminal.wait_for("n: ");
    assert!(terminal.is_as_shells_have_it());
    terminal.press(b"n\n");
    let (out, sandbox) = terminal.finish();
    assert!(out.contains("All done."), "{out}");
    assert!(!sandbox.workspace().join("made").exists());
}
