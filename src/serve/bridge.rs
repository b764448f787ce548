//! The bridge of `castor acp --connect`: a client on stdio reaches a `castor serve`; a connection that breaks goes on.

use std::{
    collections::VecDeque,
    io,
    os::fd::{AsFd, BorrowedFd},
    process::ExitCode,
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    fs::File,
    io::{AsyncReadExt, AsyncWriteExt},
    time::{Instant, sleep},
};

use castor_agent::{model::connection::ProcessEnvironment, session::place::load_ground, settings::options::Options};
use castor_base::path::AbsPath;
use castor_hands::{disk, http::HttpLink, secrets::Env};
use castor_host::remote::client::{
    DialError, DialedSocket, EarlierConnection, ServerAddress, SocketMessage, SocketSender,
};
use castor_tools::workspace;
use castor_wire::jsonrpc::frame::{Frame, Framer};

/// The variable with the token.
pub const TOKEN: &str = "CASTOR_TOKEN";
/// The file with it, below castor's own folder.
const TOKEN_FILE: &str = "token";
const MAX_TOKEN: u64 = 4 << 10;
/// How long a server is looked for that does not answer.
const PATIENCE: Duration = Duration::from_secs(90);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Bytes of messages that are kept in case the server did not get them.
const KEPT: usize = 32 << 20;
const READ: usize = 64 << 10;

/// Passes messages on until either side ends.
pub fn run(url: &str, env: &Env, cwd: &AbsPath) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(it) => it,
        Err(error) => {
            eprintln!("castor: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let end = runtime.block_on(async {
        let address = ServerAddress::new(url, &token(env)?)?;
        let (_, settings) = load_ground(&Options::default(), env, cwd);
        let link = ProcessEnvironment::of(env).link(&settings.models.connection);
        let mut bridge = Bridge::new(address, link).map_err(|it| format!("stdin and stdout: {it}"))?;
        bridge.run().await
    });
    // A thread still waits for stdin; nothing is owed to it.
    runtime.shutdown_background();
    match end {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // The last line on stderr is what clients show when an agent goes away.
            eprintln!("castor: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Never from the command line, which others can read.
fn token(env: &Env) -> Result<String, String> {
    if let Some(it) = env.get(TOKEN) {
        return Ok(it.trim().to_owned());
    }
    let file = workspace::castor_home(env).map(|it| it.join(TOKEN_FILE));
    let text = file.as_ref().and_then(|it| disk::read_private(it).ok()).and_then(|it| String::from_utf8(it).ok());
    let text = text.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty() && it.len() as u64 <= MAX_TOKEN);
    let place = file.map_or_else(|| "a file".to_owned(), |it| it.to_string());
    text.ok_or_else(|| format!("set {TOKEN}, or write the token to {place}, which only you may read"))
}

struct Bridge {
    address: ServerAddress,
    link: HttpLink,
    earlier: Option<EarlierConnection>,
    /// Messages that the server may not have, the oldest first.
    kept: VecDeque<Bytes>,
    kept_bytes: usize,
    /// How many came before these.
    n_gone: u64,
    stdin: File,
    stdout: File,
    framer: Framer,
    buffer: Vec<u8>,
}

/// What ended a socket.
enum SocketEnd {
    /// The client says no more.
    StdinClosed,
    /// The client reads no more.
    StdoutClosed,
    Gone(Option<String>),
}

impl Bridge {
    fn new(address: ServerAddress, link: HttpLink) -> io::Result<Self> {
        let own = |it: BorrowedFd<'_>| Ok::<_, io::Error>(File::from_std(it.try_clone_to_owned()?.into()));
        Ok(Self {
            address,
            link,
            earlier: None,
            kept: VecDeque::new(),
            kept_bytes: 0,
            n_gone: 0,
            stdin: own(io::stdin().as_fd())?,
            stdout: own(io::stdout().as_fd())?,
            framer: Framer::default(),
            buffer: vec![0; READ],
        })
    }

    async fn run(&mut self) -> Result<(), String> {
        loop {
            let DialedSocket { id, received, mut sender, mut receiver } = self.dial().await?;
            self.earlier.get_or_insert(EarlierConnection { id, after: 0 });
            if !self.send_again(received, &mut sender).await? {
                continue;
            }
            let end = loop {
                tokio::select! {
                    it = receiver.next() => match it {
                        SocketMessage::Text(text) => if !self.write(&text).await { break SocketEnd::StdoutClosed },
                        SocketMessage::Gone(why) => break SocketEnd::Gone(why),
                    },
                    n = self.stdin.read(&mut self.buffer) => match n {
                        Ok(0) | Err(_) => break SocketEnd::StdinClosed,
                        Ok(n) => if !self.pass_on(n, &mut sender).await { break SocketEnd::Gone(None) },
                    },
                }
            };
            match end {
                SocketEnd::StdinClosed | SocketEnd::StdoutClosed => {
                    sender.leave().await;
                    return Ok(());
                }
                SocketEnd::Gone(why) => {
                    if let Some(why) = why {
                        tracing::warn!("the server closed the connection: {why}");
                    }
                }
            }
        }
    }

    /// Tries for a while: a server that is started again is there soon.
    async fn dial(&self) -> Result<DialedSocket, String> {
        let (start, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            match self.address.dial(&self.link, self.earlier.as_ref()).await {
                Ok(it) => return Ok(it),
                Err(DialError::Refused(why)) => return Err(why),
                // Whoever starts wants to know at once.
                Err(it) if self.earlier.is_none() || start.elapsed() > PATIENCE => return Err(it.to_string()),
                Err(_) => sleep(pause).await,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// What the server did not get of what was sent. Whether the socket took it.
    async fn send_again(&mut self, received: u64, sender: &mut SocketSender) -> Result<bool, String> {
        let have = received.checked_sub(self.n_gone).and_then(|it| usize::try_from(it).ok());
        let Some(have) = have.filter(|it| *it <= self.kept.len()) else {
            return Err("messages were lost with the connection; start again, and load the session".to_owned());
        };
        for it in self.kept.drain(..have) {
            self.kept_bytes -= it.len();
        }
        self.n_gone = received;
        for it in self.kept.clone() {
            if !sender.send(it).await {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Tells whether the socket took it.
    async fn pass_on(&mut self, n: usize, sender: &mut SocketSender) -> bool {
        self.framer.push(self.buffer.get(..n).unwrap_or_default());
        let mut is_open = true;
        while let Some(frame) = self.framer.next() {
            let Frame::Line(line) = frame else {
                tracing::warn!("a line of more than 32 MiB was not sent");
                continue;
            };
            self.kept_bytes += line.len();
            self.kept.push_back(line.clone());
            while self.kept_bytes > KEPT && self.kept.len() > 1 {
                self.kept_bytes -= self.kept.pop_front().map_or(0, |it| it.len());
                self.n_gone += 1;
            }
            // What is left is sent when there is another socket.
            is_open = is_open && sender.send(line).await;
        }
        is_open
    }

    /// Tells whether the client takes it.
    async fn write(&mut self, text: &Bytes) -> bool {
        if let Some(it) = &mut self.earlier {
            it.after += 1;
        }
        let mut line = text.to_vec();
        line.push(b'\n');
        self.stdout.write_all(&line).await.is_ok() && self.stdout.flush().await.is_ok()
    }
}
