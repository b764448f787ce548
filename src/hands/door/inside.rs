//! Sockets within a sandbox's network: its helper makes them, and passes them to castor.

use std::{
    io::{self, IoSlice, IoSliceMut},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket},
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd},
};

use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockType, getsockopt, recvmsg, sendmsg, sockopt,
};
use tokio::{io::Interest, net::UnixStream};

/// Where programs look names up: the only server that [`RESOLV_CONF`] names.
const RESOLVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 53);
/// The door itself. Programs find it by their variables.
pub(super) const PROXY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 10_053);
/// An address of this machine within, and the mask of its network: all addresses of it lead to the door. It is one that
/// nobody has (for measurements of devices). And who asks whether there is a network sees one.
pub const NAMES_NETWORK: (Ipv4Addr, Ipv4Addr) = (Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(255, 254, 0, 0));
/// In the place of the system's, within.
pub const RESOLV_CONF: &str = "nameserver 127.0.0.1\noptions timeout:2 attempts:2\n";
#[cfg(target_os = "linux")]
const CLOSED_ON_EXEC: MsgFlags = MsgFlags::MSG_CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const CLOSED_ON_EXEC: MsgFlags = MsgFlags::empty();
/// More descriptors than the kernel passes at once are not made.
const MAX_SOCKETS: usize = 200;

/// Whether an address within stands for a name, or is the proxy's.
pub fn is_doors(to: &SocketAddr) -> bool {
    let (own, mask) = NAMES_NETWORK;
    matches!(to.ip(), IpAddr::V4(it) if it & mask == own & mask) || *to == PROXY
}

/// Makes the sockets that can be made, and passes them. A port that cannot be had is missing within, and nothing more.
///
/// # Errors
/// Castor is gone.
pub fn pass_sockets(addresses: &[SocketAddr], to: impl AsFd) -> io::Result<()> {
    let listeners = addresses.iter().take(MAX_SOCKETS).filter_map(|it| TcpListener::bind(it).ok().map(OwnedFd::from));
    let sockets: Vec<OwnedFd> = UdpSocket::bind(RESOLVER).map(OwnedFd::from).into_iter().chain(listeners).collect();
    pass(&sockets, to)
}

pub(super) fn pass(sockets: &[OwnedFd], to: impl AsFd) -> io::Result<()> {
    let numbers: Vec<RawFd> = sockets.iter().map(AsRawFd::as_raw_fd).collect();
    let message = if numbers.is_empty() { vec![] } else { vec![ControlMessage::ScmRights(&numbers)] };
    sendmsg::<()>(to.as_fd().as_raw_fd(), &[IoSlice::new(&[0])], &message, MsgFlags::empty(), None)?;
    Ok(())
}

/// A socket within.
pub(super) enum InnerSocket {
    Resolver(tokio::net::UdpSocket),
    Listener(tokio::net::TcpListener),
}

/// Waits for what the helper passes.
pub(super) async fn receive_sockets(from: UnixStream) -> io::Result<Vec<InnerSocket>> {
    let fds = from.async_io(Interest::READABLE, || receive(&from)).await?;
    Ok(fds.into_iter().filter_map(|it| InnerSocket::of(it).ok()).collect())
}

fn receive(from: &UnixStream) -> io::Result<Vec<OwnedFd>> {
    let (mut byte, mut space) = ([0], nix::cmsg_space!([RawFd; MAX_SOCKETS + 1]));
    let mut buffers = [IoSliceMut::new(&mut byte)];
    let message = recvmsg::<()>(from.as_raw_fd(), &mut buffers, Some(&mut space), CLOSED_ON_EXEC)?;
    let mut res = Vec::new();
    for it in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(fds) = it {
            // SAFETY: the kernel made them for this process just now, and nobody else knows of them.
            res.extend(fds.into_iter().map(|it| unsafe { OwnedFd::from_raw_fd(it) }));
        }
    }
    Ok(res)
}

impl InnerSocket {
    fn of(fd: OwnedFd) -> io::Result<Self> {
        if getsockopt(&fd, sockopt::SockType)? == SockType::Datagram {
            let it = UdpSocket::from(fd);
            it.set_nonblocking(true)?;
            return tokio::net::UdpSocket::from_std(it).map(Self::Resolver);
        }
        let it = TcpListener::from(fd);
        it.set_nonblocking(true)?;
        tokio::net::TcpListener::from_std(it).map(Self::Listener)
    }
}
