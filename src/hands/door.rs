//! The door of a sandbox: the one way that a command without the whole network has to hosts, and to ports of this machine.
//!
//! Each call has a door of its own: its sockets lie in the network of that call's sandbox, where no other process comes,
//! so it needs no password. It closes when the last process of the call is gone.

mod dial;
mod hello;
pub mod inside;
pub mod local;
mod names;
mod relay;
mod request;
mod socks;

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::{fd::OwnedFd, unix},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream, UdpSocket, UnixStream},
    runtime::{Builder, Handle},
    task::{AbortHandle, JoinSet},
};

use castor_base::network::{
    Host, HostPattern, HostPort, HostRefusal, HostRules, HostVerdict, NetworkRecord, PortGrant, Reach, note_once,
};
use dial::KnownHosts;
pub use dial::set_proxies;
use inside::{InnerSocket, PROXY};
use names::Names;
use request::BadRequest;

/// Ports of programs that know no proxy, behind names that the resolver gave an address.
const NAMED_PORTS: &[u16] = &[22, 80, 443];
/// Connections of one socket at the same time.
const MAX_CONNECTIONS: usize = 256;
/// No query is longer.
const MAX_QUERY: usize = 1024;

/// Variables by which programs find the door.
const PROXY_VARIABLES: &[&str] =
    &["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "npm_config_proxy"];
/// Servers of the command's own.
const DIRECT: &str = "localhost,.localhost,127.0.0.0/8,127.0.0.1,::1";

/// What a command is given to find the door.
pub fn variables() -> impl Iterator<Item = (String, String)> {
    let through = PROXY_VARIABLES.iter().map(|it| ((*it).to_owned(), format!("http://{PROXY}")));
    // Node's own client obeys them only so.
    let of_node = std::iter::once(("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned()));
    through.chain(["NO_PROXY", "no_proxy"].iter().map(|it| ((*it).to_owned(), DIRECT.to_owned()))).chain(of_node)
}

/// The door of one call.
#[derive(Debug)]
pub struct Door {
    /// Where it is a proxy, within.
    proxy: SocketAddr,
    rules: HostRules,
    ports: Vec<PortGrant>,
    names: Mutex<Names>,
    known: &'static KnownHosts,
    record: SharedRecord,
}

/// What came by a door so far.
#[derive(Clone, Debug, Default)]
pub struct SharedRecord(Arc<Mutex<NetworkRecord>>);

impl SharedRecord {
    pub fn read(&self) -> NetworkRecord {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, NetworkRecord> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open door. It closes, with all connections, when this is dropped.
#[derive(Debug)]
pub struct OpenDoor {
    task: AbortHandle,
    pub record: SharedRecord,
}

impl Drop for OpenDoor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Door {
    pub fn new(reach: &Reach) -> Self {
        let (rules, ports) = (reach.hosts.clone(), reach.ports.clone());
        let known = KnownHosts::of_environment();
        Self { proxy: PROXY, rules, ports, names: Mutex::default(), known, record: SharedRecord::default() }
    }

    /// What the helper listens at, within: a host that is open at another port than the usual ones has it at its own
    /// address, and a port of this machine is where it is outside.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let usual = NAMED_PORTS.iter().map(|port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, *port)));
        let mut names = self.names();
        let odd = self.rules.allowed.iter().filter_map(|it| match (&it.pattern, it.port) {
            (HostPattern::Exact(Host::Name(name)), Some(port)) if !NAMED_PORTS.contains(&port) => {
                Some(SocketAddr::from((names.address(name)?, port)))
            }
            _ => None,
        });
        let odd: Vec<SocketAddr> = odd.collect();
        let of_machine = self.ports.iter().flat_map(|it| {
            [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()].map(|at| SocketAddr::new(at, it.port))
        });
        std::iter::once(self.proxy).chain(usual).chain(odd).chain(of_machine).collect()
    }

    /// Opens it with the sockets that come by `from`.
    ///
    /// # Errors
    /// The socket cannot be waited for.
    pub fn open(self, from: OwnedFd) -> io::Result<OpenDoor> {
        let from = unix::net::UnixStream::from(from);
        from.set_nonblocking(true)?;
        let record = self.record.clone();
        let is_alone = Handle::try_current().is_err();
        let own = is_alone.then(|| Builder::new_current_thread().enable_all().build()).transpose()?;
        let runtime = own.as_ref().map_or_else(Handle::current, |it| it.handle().clone());
        let _within = runtime.enter();
        let task = runtime.spawn(serve(Arc::new(self), UnixStream::from_std(from)?));
        let res = OpenDoor { task: task.abort_handle(), record };
        if let Some(own) = own {
            // A program in the foreground: nothing else of castor runs.
            std::thread::Builder::new().name("door".to_owned()).spawn(move || own.block_on(task))?;
        }
        Ok(res)
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects to a host that is open, or says that it is not.
    async fn connect(&self, target: &HostPort) -> Result<TcpStream, HostRefusal> {
        let res = match self.rules.decide(target) {
            HostVerdict::Open { is_private } => dial::connect(target, is_private, self.known).await,
            HostVerdict::NotGranted => Err(dial::refusal_unasked(target)),
            HostVerdict::Forbidden => Err(HostRefusal::Forbidden),
        };
        match &res {
            Ok(_) => {
                tracing::info!("a command reached {target}");
                note_once(&mut self.record.lock().reached, target.clone());
            }
            Err(why) => self.note_refused(target, *why),
        }
        res
    }

    fn note_refused(&self, target: &HostPort, why: HostRefusal) {
        tracing::info!("a command was refused {target}: {why:?}");
        self.record.lock().note_refused(target, why);
    }

    /// Of what is no request nobody knows whom it was for.
    fn note_bad(&self, it: &BadRequest) {
        match it {
            BadRequest::OtherHost(target) => self.note_refused(target, HostRefusal::OtherHost),
            BadRequest::Malformed => tracing::info!("a command said something that is no request"),
        }
    }
}

async fn serve(door: Arc<Door>, from: UnixStream) {
    let Ok(sockets) = inside::receive_sockets(from).await else { return };
    let mut all = JoinSet::new();
    for it in sockets {
        match it {
            InnerSocket::Resolver(it) => all.spawn(answer_queries(it, door.clone())),
            InnerSocket::Listener(it) => all.spawn(accept(it, door.clone())),
        };
    }
    while all.join_next().await.is_some() {}
}

async fn answer_queries(socket: UdpSocket, door: Arc<Door>) {
    let mut query = [0; MAX_QUERY];
    while let Ok((n, from)) = socket.recv_from(&mut query).await {
        let reply = door.names().reply(query.get(..n).unwrap_or_default());
        if let Some(it) = reply {
            _ = socket.send_to(&it.bytes, from).await;
            it.name.into_iter().for_each(|it| note_once(&mut door.record.lock().names, it));
        }
    }
}

async fn accept(listener: TcpListener, door: Arc<Door>) {
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => _ = open.spawn(serve_one(stream, door.clone())),
                Err(_) => tokio::task::yield_now().await,
            },
            _ = open.join_next(), if open.len() >= MAX_CONNECTIONS => (),
        }
        while open.try_join_next().is_some() {}
    }
}

/// By the address that a client connected to.
async fn serve_one(mut stream: TcpStream, door: Arc<Door>) -> io::Result<()> {
    _ = stream.set_nodelay(true);
    let at = stream.local_addr()?;
    if at == door.proxy {
        return relay::serve_proxy(stream, &door).await;
    }
    let host = door.names().find(at.ip());
    if let Some(host) = host {
        return relay::serve_name(stream, &HostPort { host, port: at.port() }, &door).await;
    }
    let granted = door.ports.iter().find(|it| it.port == at.port() && at.ip().is_loopback());
    match granted.filter(|it| local::listener(it.port).as_ref() == Some(it)) {
        Some(it) => copy_bidirectional(&mut stream, &mut local::connect(it.port).await?).await.map(drop),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
