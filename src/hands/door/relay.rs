//! Connections at the door: what a client says first tells where it wants to, and what it says then has to fit that.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};

use super::{
    Door, hello,
    request::{BadRequest, Form, Request, is_request, read_head},
    socks,
};
use castor_base::network::{Host, HostPort, HostRefusal};

const READ: usize = 16 << 10;
/// No first message is longer.
const MAX_FIRST: usize = 64 << 10;
/// Of a client that was refused, so many pieces are read.
const MAX_UNHEARD: usize = 64;
/// Until a client has said where it wants to.
const PATIENCE: Duration = Duration::from_secs(60);
const TLS_PORT: u16 = 443;
const HTTP_PORT: u16 = 80;
const OPEN: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// What a client says, and what of it nobody has taken yet.
struct Reader {
    from: OwnedReadHalf,
    said: Vec<u8>,
}

impl Reader {
    /// Reads on until `read` finds what it wants.
    async fn read_until<T>(&mut self, read: impl Fn(&[u8]) -> Result<Option<T>, BadRequest>) -> Result<T, BadRequest> {
        loop {
            if let Some(it) = read(&self.said)? {
                return Ok(it);
            }
            if self.said.len() > MAX_FIRST || !self.read_more().await {
                return Err(BadRequest::Malformed);
            }
        }
    }

    /// Whether there was more.
    async fn read_more(&mut self) -> bool {
        self.said.reserve(READ);
        matches!(timeout(PATIENCE, self.from.read_buf(&mut self.said)).await, Ok(Ok(1..)))
    }

    /// Answers, and hears the rest out: a connection that is closed over unread words takes its answer along.
    async fn refuse(mut self, mut to: OwnedWriteHalf, answer: &[u8]) -> io::Result<()> {
        to.write_all(answer).await?;
        to.shutdown().await?;
        for _ in 0..MAX_UNHEARD {
            self.said.clear();
            if !self.read_more().await {
                break;
            }
        }
        Ok(())
    }

    /// Takes what was said, and all that is said from now on, to a server.
    async fn pass_all(mut self, to: &mut OwnedWriteHalf) -> io::Result<()> {
        to.write_all(&self.said).await?;
        copy(&mut self.from, to).await?;
        to.shutdown().await
    }

    /// Takes one request to a server, and nothing behind it.
    async fn pass_request(mut self, mut request: Request, to: &mut OwnedWriteHalf) -> io::Result<()> {
        self.said.drain(..request.length);
        to.write_all(&request.head).await?;
        loop {
            let taken = request.body.take(&self.said).map_err(|_| io::ErrorKind::InvalidData)?;
            to.write_all(self.said.get(..taken).unwrap_or_default()).await?;
            self.said.drain(..taken);
            if request.body.is_over() {
                return Ok(());
            }
            if !self.read_more().await {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// A client at the door's own port, which is a proxy of either kind.
pub(super) async fn serve_proxy(stream: TcpStream, door: &Door) -> io::Result<()> {
    let (from, to) = stream.into_split();
    let mut reader = Reader { from, said: Vec::new() };
    match reader.read_until(|said| Ok(said.first().copied())).await {
        Ok(socks::VERSION) => serve_socks(reader, to, door).await,
        Ok(_) => serve_http(reader, to, door).await,
        Err(_) => Ok(()),
    }
}

async fn serve_socks(mut reader: Reader, mut to: OwnedWriteHalf, door: &Door) -> io::Result<()> {
    let Ok((is_open, length)) = reader.read_until(|said| Ok(socks::read_greeting(said))).await else { return Ok(()) };
    reader.said.drain(..length);
    to.write_all(if is_open { &socks::WELCOME } else { &socks::NO_WAY_IN }).await?;
    let order = reader.read_until(socks::read_order).await;
    let Ok((target, length)) = order else { return to.write_all(&socks::REFUSED).await };
    reader.said.drain(..length);
    match door.connect(&target).await {
        Ok(server) => {
            to.write_all(&socks::OPEN).await?;
            tunnel(reader, to, server, &target, door).await
        }
        Err(_) => to.write_all(&socks::REFUSED).await,
    }
}

async fn serve_http(mut reader: Reader, mut to: OwnedWriteHalf, door: &Door) -> io::Result<()> {
    let request = match reader.read_until(|said| read_head(said, Form::Proxy)).await {
        Ok(it) => it,
        Err(it) => {
            door.note_bad(&it);
            return reader.refuse(to, &answer(400, "this is no request that castor passes on")).await;
        }
    };
    let server = match door.connect(&request.target).await {
        Ok(it) => it,
        Err(why) => {
            door.record.lock().is_answered |= !request.is_connect;
            return reader.refuse(to, &answer(403, &in_words(&request.target, why))).await;
        }
    };
    if request.is_connect {
        reader.said.drain(..request.length);
        to.write_all(OPEN).await?;
        return tunnel(reader, to, server, &request.target, door).await;
    }
    let (mut down, mut up) = server.into_split();
    tokio::try_join!(reader.pass_request(request, &mut up), pass_back(&mut down, &mut to)).map(drop)
}

async fn pass_back(from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf) -> io::Result<()> {
    copy(from, to).await?;
    to.shutdown().await
}

/// For the program, and for whoever reads what it prints.
fn answer(code: u16, why: &str) -> Vec<u8> {
    let body = format!("castor's sandbox: {why}\n");
    let head = format!("HTTP/1.1 {code} castor: {why}\r\nContent-Type: text/plain\r\nConnection: close\r\n");
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn in_words(target: &HostPort, why: HostRefusal) -> String {
    match why {
        HostRefusal::Unreachable => format!("{target} does not answer"),
        HostRefusal::Private => format!("{target} is on a private network, which was not allowed"),
        _ => format!("{target} was not allowed"),
    }
}

/// A program that knows no proxy, at an address that stands for a name.
pub(super) async fn serve_name(stream: TcpStream, target: &HostPort, door: &Door) -> io::Result<()> {
    let Ok(server) = door.connect(target).await else { return Ok(()) };
    let (from, to) = stream.into_split();
    tunnel(Reader { from, said: Vec::new() }, to, server, target, door).await
}

/// A connection to a host: what a client says in it first has to be for that host. In some protocols the server begins.
async fn tunnel(
    mut reader: Reader,
    mut to: OwnedWriteHalf,
    server: TcpStream,
    target: &HostPort,
    door: &Door,
) -> io::Result<()> {
    let (mut down, mut up) = server.into_split();
    let there = async {
        match inspect(&mut reader, target).await {
            Ok(None) => reader.pass_all(&mut up).await,
            Ok(Some(request)) => reader.pass_request(request, &mut up).await,
            Err(it) => {
                door.note_bad(&it);
                Err(io::ErrorKind::PermissionDenied.into())
            }
        }
    };
    tokio::try_join!(there, pass_back(&mut down, &mut to)).map(drop)
}

/// Looks at what a client says first: TLS names the host, a request does, and other protocols have no name.
async fn inspect(reader: &mut Reader, target: &HostPort) -> Result<Option<Request>, BadRequest> {
    let other = || BadRequest::OtherHost(target.clone());
    let first = match reader.read_until(|said| Ok(said.first().copied())).await {
        Ok(it) => it,
        // It says nothing, which is for the server to judge.
        Err(_) if reader.said.is_empty() => return Ok(None),
        Err(it) => return Err(it),
    };
    if first == hello::FIRST {
        let name = reader.read_until(hello::server_name).await?;
        let is_same = match (name.as_deref(), &target.host) {
            (None, Host::Address(_)) => true,
            (Some(it), host) => Host::parse(it).as_ref() == Some(host),
            (None, Host::Name(_)) => false,
        };
        return if is_same { Ok(None) } else { Err(other()) };
    }
    match (reader.read_until(|said| Ok(is_request(said))).await?, target.port) {
        (_, TLS_PORT) => Err(other()),
        (true, _) => reader.read_until(|said| read_head(said, Form::Within(target))).await.map(Some),
        (false, HTTP_PORT) => Err(BadRequest::Malformed),
        (false, _) => Ok(None),
    }
}
