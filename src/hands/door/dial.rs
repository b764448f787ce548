//! Connections from the door to the world: through the user's proxy if there is one, and to no private address unasked.
#![allow(clippy::disallowed_methods, reason = "this is where commands go out, and tests say where to")]

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, SocketAddr},
    str::FromStr,
    sync::{Mutex, OnceLock, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, lookup_host},
    time::timeout,
};

use crate::http::{
    Proxies, ProxyHop,
    public::{is_company_network, is_public},
};
use castor_base::network::{Host, HostPort, HostRefusal};

/// For a lookup and a connection together.
const PATIENCE: Duration = Duration::from_secs(15);
/// Longer answers of a proxy are none.
const MAX_ANSWER: usize = 8 << 10;
/// For tests: what a resolver says (`example.com=10.0.0.1`), and where servers really are
/// (`example.com:443=127.0.0.1:4000`), with commas. Of castor's own environment, which no workspace sets.
const TEST_NETWORK: &str = "CASTOR_TEST_NETWORK";

/// The proxies that castor itself goes through.
static PROXIES: Mutex<Option<Proxies>> = Mutex::new(None);

/// The door goes out as castor does.
pub fn set_proxies(proxies: &Proxies) {
    *PROXIES.lock().unwrap_or_else(PoisonError::into_inner) = Some(proxies.clone());
}

/// What is known of hosts without asking anybody: nothing, but in tests.
#[derive(Debug)]
pub(super) struct KnownHosts(BTreeMap<String, String>);

impl KnownHosts {
    pub fn of_environment() -> &'static Self {
        static KNOWN: OnceLock<KnownHosts> = OnceLock::new();
        KNOWN.get_or_init(|| Self::read(&std::env::var(TEST_NETWORK).unwrap_or_default()))
    }

    pub fn read(text: &str) -> Self {
        let pairs = text.split(',').filter_map(|it| it.split_once('='));
        Self(pairs.map(|(name, place)| (name.to_owned(), place.to_owned())).collect())
    }

    /// The address of a host, or of a server.
    fn find<T: FromStr>(&self, name: &impl ToString) -> Option<T> {
        self.0.get(&name.to_string()).and_then(|it| it.parse().ok())
    }

    async fn look_up(&self, target: &HostPort) -> io::Result<Vec<SocketAddr>> {
        match (&target.host, self.find(&target.host)) {
            (Host::Address(it), _) => Ok(vec![SocketAddr::new(*it, target.port)]),
            (_, Some(it)) => Ok(vec![SocketAddr::new(it, target.port)]),
            (Host::Name(it), None) => Ok(lookup_host((it.as_str(), target.port)).await?.collect()),
        }
    }
}

/// Connects to a host that a grant names.
pub(super) async fn connect(target: &HostPort, is_private: bool, known: &KnownHosts) -> Result<TcpStream, HostRefusal> {
    timeout(PATIENCE, find_and_connect(target, is_private, known)).await.unwrap_or(Err(HostRefusal::Unreachable))
}

async fn find_and_connect(target: &HostPort, is_private: bool, known: &KnownHosts) -> Result<TcpStream, HostRefusal> {
    if let Some(it) = known.find::<SocketAddr>(target) {
        return TcpStream::connect(it).await.map_err(unreachable);
    }
    if let Host::Address(it) = target.host {
        check_address(it, is_private)?;
    }
    let hop = PROXIES.lock().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(|it| it.hop_to(target));
    if let Some(it) = hop {
        return connect_through(&it, target).await.map_err(unreachable);
    }
    let found = known.look_up(target).await.map_err(unreachable)?;
    // One address of many is enough to refuse: who answers so means the others for somebody else.
    found.iter().try_for_each(|it| check_address(it.ip(), is_private))?;
    TcpStream::connect(found.as_slice()).await.map_err(unreachable)
}

fn unreachable(why: io::Error) -> HostRefusal {
    tracing::info!("the door did not get through: {why}");
    HostRefusal::Unreachable
}

/// Why a host without a grant is refused: of some addresses nobody is asked.
pub(super) fn refusal_unasked(target: &HostPort) -> HostRefusal {
    match target.host {
        Host::Address(it) if check_address(it, true).is_err() => HostRefusal::Forbidden,
        _ => HostRefusal::NotGranted,
    }
}

/// What was looked up is what is connected to: no second lookup can say something else.
fn check_address(it: IpAddr, is_private: bool) -> Result<(), HostRefusal> {
    match () {
        () if is_public(it) => Ok(()),
        () if !is_company_network(it) => Err(HostRefusal::Forbidden),
        () if is_private => Ok(()),
        () => Err(HostRefusal::Private),
    }
}

/// Asks a proxy for a tunnel.
async fn connect_through(hop: &ProxyHop, target: &HostPort) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect((hop.host.as_str(), hop.port)).await?;
    let login = hop.login.as_ref().map(|it| format!("Proxy-Authorization: {it}\r\n")).unwrap_or_default();
    stream.write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{login}\r\n").as_bytes()).await?;
    let mut answer = Vec::new();
    // Byte by byte: what follows is the host's.
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() >= MAX_ANSWER {
            return Err(io::ErrorKind::InvalidData.into());
        }
        answer.push(stream.read_u8().await?);
    }
    let code = answer.split(|it| *it == b' ').nth(1).unwrap_or_default();
    match code {
        b"200" => Ok(stream),
        it => Err(io::Error::other(format!("the proxy answered {}", String::from_utf8_lossy(it)))),
    }
}

#[cfg(test)]
mod tests {
    use super::check_address;
    use castor_base::network::HostRefusal;

    #[test]
    fn addresses_are_refused_by_where_they_lead() {
        for (address, unasked, asked) in [
            ("8.8.8.8", Ok(()), Ok(())),
            ("10.1.2.3", Err(HostRefusal::Private), Ok(())),
            ("172.16.0.1", Err(HostRefusal::Private), Ok(())),
            ("192.168.1.1", Err(HostRefusal::Private), Ok(())),
            ("100.64.0.1", Err(HostRefusal::Private), Ok(())),
            ("fd12::1", Err(HostRefusal::Private), Ok(())),
            ("127.0.0.1", Err(HostRefusal::Forbidden), Err(HostRefusal::Forbidden)),
            ("127.8.8.8", Err(HostRefusal::Forbidden), Err(HostRefusal::Forbidden)),
            ("0.0.0.0", Err(HostRefusal::Forbidden), Err(HostRefusal::Forbidden)),
            ("::1", Err(HostRefusal::Forbidden), Err(HostRefusal::Forbidden)),
            ("::", Err(HostRefusal::Forbidden), Err(HostRefusal::Forbidden)),
            ("::ffff:127.0.0.1", Err(HostRefusal::Forbidden), Err(HostRefusal::Forbidden)),
            ("64:ff9b::7f00:1", Err(HostRefusal::Forbidden), Err(HostRefusal::Forbidden)),
            ("2002:7f00:1::", Err(HostRefusal::Forbidden), Err(HostRefusal::Forbidden)),
            ("169.254.169.254", Err(HostRefusal::Forbidden), Err(HostRefusal::Forbidden)),
            ("168.63.129.16", Err(HostRefusal::Forbidden), Err(HostRefusal::Forbidden)),
            ("100.100.100.200", Err(HostRefusal::Forbidden), Err(HostRefusal::Forbidden)),
            ("fd00:ec2::254", Err(HostRefusal::Forbidden), Err(HostRefusal::Forbidden)),
            ("fe80::1", Err(HostRefusal::Forbidden), Err(HostRefusal::Forbidden)),
            ("224.0.0.1", Err(HostRefusal::Forbidden), Err(HostRefusal::Forbidden)),
            ("198.18.1.0", Err(HostRefusal::Forbidden), Err(HostRefusal::Forbidden)),
        ] {
            let of = |is_private| check_address(address.parse().unwrap(), is_private);
            assert_eq!((of(false), of(true)), (unasked, asked), "{address}");
        }
    }
}
