//! Ports of this machine: which program listens there, and a connection to it.
#![allow(clippy::disallowed_methods, reason = "the kernel's lists are no files of a disk")]

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
};

use tokio::net::TcpStream;

use castor_base::network::PortGrant;

/// Those with connections, of which one listens.
const TCP: &[&str] = &["tcp", "tcp6"];

/// Whether a program in this process's network listens at a port, of whichever protocol.
pub fn is_served(port: u16) -> bool {
    socket_at(port, TCP).or_else(|| socket_at(port, &["udp", "udp6"])).is_some()
}

fn socket_at(port: u16, lists: &[&str]) -> Option<String> {
    lists.iter().find_map(|it| {
        let text = std::fs::read_to_string(format!("/proc/net/{it}")).ok()?;
        text.lines().skip(1).find_map(|it| inode_of(it, port, lists == TCP).map(str::to_owned))
    })
}

/// Who listens at a port; `None`: nobody, or castor itself.
pub fn listener(port: u16) -> Option<PortGrant> {
    let pid = owner(&format!("socket:[{}]", socket_at(port, TCP)?));
    if pid.is_some_and(is_castor) {
        return None;
    }
    let program = pid.and_then(|it| std::fs::read_to_string(format!("/proc/{it}/comm")).ok()).unwrap_or_default();
    Some(PortGrant { port, program: program.trim().to_owned(), pid: pid.unwrap_or(0) })
}

/// Of a line of the kernel's list: the socket at a port.
fn inode_of(line: &str, port: u16, must_listen: bool) -> Option<&str> {
    let mut words = line.split_ascii_whitespace();
    let (local, state) = (words.nth(1)?, words.nth(1)?);
    let is_it = u16::from_str_radix(local.rsplit_once(':')?.1, 16) == Ok(port) && (!must_listen || state == "0A");
    words.nth(5).filter(|_| is_it)
}

/// The first process that has it open, of those that this user may look into.
fn owner(socket: &str) -> Option<u32> {
    let mut pids = std::fs::read_dir("/proc").ok()?.filter_map(|it| it.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|it| {
        let open = std::fs::read_dir(format!("/proc/{it}/fd")).into_iter().flatten().filter_map(Result::ok);
        open.filter_map(|it| std::fs::read_link(it.path()).ok()).any(|it| it == Path::new(socket))
    })
}

/// This castor or another one: their doors are nobody's way out.
fn is_castor(pid: u32) -> bool {
    let name = |it: &str| std::fs::read_to_string(format!("/proc/{it}/comm")).ok();
    name(&pid.to_string()) == name("self")
}

pub(super) async fn connect(port: u16) -> io::Result<TcpStream> {
    let both = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
    TcpStream::connect(both.map(|it| SocketAddr::new(it, port)).as_slice()).await
}

#[cfg(test)]
mod tests {
    use super::{inode_of, listener};

    #[test]
    fn the_kernel_lists_who_listens() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 1";
        assert_eq!(inode_of(line, 0x1f90, true), Some("12345"));
        assert_eq!(inode_of(line, 80, true), None);
        let other = line.replace(" 0A ", " 01 ");
        assert_eq!((inode_of(&other, 0x1f90, true), inode_of(&other, 0x1f90, false)), (None, Some("12345")));
        // What castor itself opens is nobody's.
        let own = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = own.local_addr().unwrap().port();
        assert_eq!(listener(port), None);
    }
}
