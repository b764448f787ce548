//! `castor chat` on a terminal of its own: keys in, screens out. The scenarios are in `tests/data/chat`, each with the
//! screens below the bar.
//!
//! ```text
//! columns 40 80 200  of the terminals on which it is played; 80 otherwise
//! rows 24            of them
//! env TERM=dumb      args --plain       ws PATH "text"       more of the start
//! before ARGS        castor runs with these to its end, and without a terminal
//! noverb             `--fake-responses FILE` and the args alone, without `chat`
//! model …            an answer of the model, as in conversations
//! type TEXT          keys; \n is Enter, \e Escape, \t Tab, \x03 and the like a byte
//! wait TEXT          until the screen has this
//! times N TEXT       until it has it so often
//! gone TEXT          until it has it no more
//! resize 40x20       the user does that
//! kill               the agent's process dies
//! terminate          the chat gets SIGTERM
//! shell              castor runs under a shell, which says `stopped` after Ctrl-Z, and goes on at a line
//! cooked             the terminal has to be as shells have it
//! show               here the screen is kept
//! end                until castor has left; its exit code is kept, and whether the terminal is as it was
//! ```

use std::{
    fs::{self, File},
    io::{Read, Write},
    os::fd::{AsFd, OwnedFd},
    path::Path,
    process::{Child, Command},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::Duration,
};

use expect_test::expect_file;
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        signal::{Signal, kill},
        termios::{LocalFlags, tcgetattr},
    },
    unistd::Pid,
};

use crate::{
    client::{Sandbox, WATCHDOG},
    conversation::model,
    watched_castor::WatchedCastor,
};

const BAR: &str = "\n=====\n";
/// Nothing comes any more for so long: the screen is what it will be, and a question takes answers.
const QUIET: Duration = Duration::from_millis(450);

/// A terminal, and castor on it.
struct Stage {
    sandbox: Sandbox,
    master: File,
    slave: OwnedFd,
    castor: Child,
    screen: Arc<Screen>,
}

struct Screen {
    terminal: Mutex<vt100::Parser>,
    changed: Condvar,
}

impl Stage {
    fn start(steps: &[&str], columns: u16, rows: u16) -> Self {
        let mut sandbox = Sandbox::new();
        let all = |verb: &'static str| steps.iter().filter_map(move |it| it.strip_prefix(verb));
        let answers: String = all("model ").map(|it| model::response(it).unwrap().to_string() + "\n").collect();
        sandbox.write("script.jsonl", &answers);
        for it in all("ws ") {
            let (path, text) = it.split_once(' ').unwrap();
            sandbox.write(format!("ws/{path}"), &serde_json::from_str::<String>(text).unwrap());
        }
        let script = sandbox.workspace().join("../script.jsonl");
        let fake = format!("--fake-responses={}", script.display());
        for it in all("before ") {
            sandbox.args = it.split(' ').map(Into::into).chain([fake.clone().into()]).collect();
            let ended = sandbox.command().output().unwrap();
            assert!(ended.status.success(), "{it}: {ended:?}");
        }
        sandbox.program = "setsid".into();
        sandbox.args = vec!["--ctty".into(), sandbox.watched().client().into()];
        if !steps.contains(&"bare") {
            let verb = (!steps.contains(&"noverb")).then(|| "chat".to_owned());
            sandbox.args.extend(verb.into_iter().chain([fake]).map(Into::into));
        }
        sandbox.args.extend(all("args ").flat_map(|it| it.split(' ')).map(Into::into));
        if steps.contains(&"shell") {
            let line: Vec<_> = sandbox.args.iter().skip(1).map(|it| it.to_str().unwrap()).collect();
            let script = format!("set -m; {}; echo stopped; read line; fg > /dev/null; echo over", line.join(" "));
            sandbox.args = ["--ctty", "sh", "-c", &script].map(Into::into).to_vec();
        }
        sandbox.env.push(("TERM".to_owned(), "xterm-256color".to_owned()));
        // The workspace is shown as `~/ws` then, wherever temporary files lie.
        let above = sandbox.workspace().parent().unwrap().display().to_string();
        sandbox.env.push(("HOME".to_owned(), above));
        for it in all("env ") {
            let (name, value) = it.split_once('=').unwrap();
            sandbox.env.push((name.to_owned(), value.to_owned()));
        }
        let size = nix::pty::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let terminal = nix::pty::openpty(&size, None).unwrap();
        let slave = terminal.slave;
        let mut command = sandbox.command();
        let stream = || slave.try_clone().unwrap();
        command.stdin(stream()).stdout(stream()).stderr(stream());
        let castor = command.spawn().unwrap();
        let master: File = terminal.master.into();
        let terminal = Mutex::new(vt100::Parser::new(rows, columns, 0));
        let screen = Arc::new(Screen { terminal, changed: Condvar::new() });
        let (mut from, to) = (master.try_clone().unwrap(), screen.clone());
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut piece) {
                to.terminal.lock().unwrap().process(&piece[..count]);
                to.changed.notify_all();
            }
        });
        Self { sandbox, master, slave, castor, screen }
    }

    fn text(&self) -> String {
        self.text_of(&self.screen.terminal.lock().unwrap())
    }

    fn text_of(&self, terminal: &vt100::Parser) -> String {
        // How long something took depends on the machine.
        let took = regex::Regex::new(r"(?: ·| ) (?:\d+ min )?\d+ s\b").unwrap();
        let row = |it: String| took.replace_all(&it, "").trim_end().to_owned();
        let rows: Vec<String> = terminal.screen().rows(0, 500).map(row).collect();
        let used = rows.iter().rposition(|it| !it.is_empty()).map_or(0, |it| it + 1);
        let text = rows[..used].join("\n");
        let folder = self.sandbox.workspace();
        let text = text.replace(&folder.display().to_string(), "$WS").replace(env!("CARGO_BIN_EXE_castor"), "$BIN");
        text.replace(env!("CARGO_PKG_VERSION"), "$VERSION")
    }

    fn wait(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let terminal = self.screen.terminal.lock().unwrap();
        let waits = |it: &mut vt100::Parser| !is_so(&self.text_of(it));
        let (terminal, end) = self.screen.changed.wait_timeout_while(terminal, WATCHDOG, waits).unwrap();
        assert!(!end.timed_out(), "{what}; the screen is:\n{}", self.text_of(&terminal));
    }

    /// Until nothing comes any more.
    fn settle(&self) {
        let mut terminal = self.screen.terminal.lock().unwrap();
        loop {
            let (next, end) = self.screen.changed.wait_timeout(terminal, QUIET).unwrap();
            if end.timed_out() {
                return;
            }
            terminal = next;
        }
    }

    fn act(&mut self, step: &str, kept: &mut String) {
        let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
        match verb {
            "bare" | "noverb" | "before" | "shell" | "columns" | "rows" | "env" | "args" | "ws" | "model" => (),
            "type" => {
                // A question takes no letter at first.
                if ["esc no", "esc declines"].iter().any(|it| self.text().contains(it)) {
                    self.settle();
                }
                self.master.write_all(&bytes(rest)).unwrap();
            }
            "wait" => self.wait(step, |it| it.contains(rest)),
            "times" => {
                let (n, text) = rest.split_once(' ').unwrap();
                self.wait(step, |it| it.matches(text).count() >= n.parse().unwrap());
            }
            "gone" => self.wait(step, |it| !it.contains(rest)),
            "resize" => {
                let (columns, rows) = rest.split_once('x').unwrap();
                self.resize(columns.parse().unwrap(), rows.parse().unwrap());
            }
            "kill" => kill(agent_of(self.castor.id()), Signal::SIGKILL).unwrap(),
            "terminate" => kill(Pid::from_raw(self.castor.id() as i32), Signal::SIGTERM).unwrap(),
            "cooked" => {
                let flags = tcgetattr(&self.slave).unwrap().local_flags;
                assert!(flags.contains(LocalFlags::ECHO | LocalFlags::ICANON), "{flags:?}");
            }
            "show" => {
                self.settle();
                *kept += &format!("--- {rest}\n{}\n", self.text());
            }
            "end" => {
                let code = self.wait_end();
                self.settle();
                let flags = tcgetattr(&self.slave).unwrap().local_flags;
                let is_restored = flags.contains(LocalFlags::ECHO | LocalFlags::ICANON);
                let terminal = self.screen.terminal.lock().unwrap();
                let is_shown = !terminal.screen().hide_cursor() && !terminal.screen().bracketed_paste();
                assert!(is_restored && is_shown, "the terminal stays as the chat had it: {flags:?}");
                drop(terminal);
                let text = self.text();
                let id = text.rsplit_once("castor chat -r ").map(|it| it.1.trim().to_owned()).unwrap_or_default();
                let text = if id.is_empty() { text } else { text.replace(&id, "$ID") };
                *kept += &format!("--- exit {}\n{text}\n", code.map_or("by a signal".to_owned(), |it| it.to_string()));
            }
            _ => panic!("{step}"),
        }
    }

    /// Its exit code.
    fn wait_end(&mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.castor);
        let end = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
        let limit = PollTimeout::try_from(WATCHDOG).unwrap();
        let n_ended = poll(&mut [PollFd::new(end.as_fd(), PollFlags::POLLIN)], limit).unwrap();
        assert_eq!(n_ended, 1, "castor goes on; the screen is:\n{}", self.text());
        self.castor.wait().unwrap().code()
    }

    fn resize(&self, columns: u16, rows: u16) {
        self.screen.terminal.lock().unwrap().screen_mut().set_size(rows, columns);
        let size = rustix::termios::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&self.master, size).unwrap();
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        _ = self.castor.kill();
        _ = self.castor.wait();
    }
}

/// The agent is the only child of the chat, and there once the chat shows its mode.
fn agent_of(chat: u32) -> Pid {
    let children = fs::read_to_string(format!("/proc/{chat}/task/{chat}/children")).unwrap();
    Pid::from_raw(children.split_whitespace().next().unwrap().parse().unwrap())
}

fn bytes(text: &str) -> Vec<u8> {
    let mut res = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('\\') {
        res.extend(before.bytes());
        let length = match behind.as_bytes().first() {
            Some(b'n') => (b'\r', 1),
            Some(b'e') => (0x1b, 1),
            Some(b't') => (b'\t', 1),
            Some(b'x') => (u8::from_str_radix(&behind[1..3], 16).unwrap(), 3),
            _ => panic!("{text}"),
        };
        res.push(length.0);
        rest = &behind[length.1..];
    }
    res.extend(rest.bytes());
    res
}

fn check(path: &Path) {
    let file = fs::read_to_string(path).unwrap();
    let scenario = file.split(BAR).next().unwrap().trim_end();
    let steps: Vec<&str> = scenario.lines().filter(|it| !it.is_empty() && !it.starts_with('#')).collect();
    let setting = |name: &str| steps.iter().find_map(|it| it.strip_prefix(name)).map(str::trim);
    let rows = setting("rows ").map_or(24, |it| it.parse().unwrap());
    let mut res = format!("{scenario}\n{BAR}");
    for columns in setting("columns ").unwrap_or("80").split(' ') {
        res += &format!("=== {columns} columns\n");
        let mut stage = Stage::start(&steps, columns.parse().unwrap(), rows);
        for step in &steps {
            stage.act(step, &mut res);
        }
    }
    expect_file![path].assert_eq(&res);
}

#[test]
fn chats_look_as_they_did() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/chat");
    let only = std::env::var("CHAT").unwrap_or_default();
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    paths.iter().filter(|it| it.to_string_lossy().contains(&only)).for_each(|it| check(it));
}

/// A person who types `castor` and nothing else gets the chat; a program that does so made a mistake.
#[test]
fn bare_castor_is_the_chat_on_a_terminal() {
    let piped = Command::new(WatchedCastor::new().client()).output().unwrap();
    assert_eq!((piped.status.code(), piped.stdout.len()), (Some(42), 0));
    let mut stage = Stage::start(&["bare"], 80, 24);
    stage.wait("the chat", |it| it.contains("castor $VERSION"));
    stage.act("type \\x04", &mut String::new());
    assert_eq!(stage.wait_end(), Some(0));
}
