//! Ports of this machine: which program listens there, and a connection to it.
#![allow(clippy::disallowed_methods, reason = "the kernel's lists are no files of a disk")]

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
};

use tokio::net::TcpStream;

use crate::base::network::PortGrant;

const LISTENING: &str = "0A";

/// Who listens at a port; `None`: nobody, or castor itself.
pub fn listener(port: u16) -> Option<PortGrant> {
    let inode = ["/proc/net/tcp", "/proc/net/tcp6"].iter().find_map(|it| {
        let text = std::fs::read_to_string(it).ok()?;
        text.lines().skip(1).find_map(|it| inode_of(it, port).map(str::to_owned))
    })?;
    let pid = owner(&format!("socket:[{inode}]"));
    if pid.is_some_and(is_castor) {
        return None;
    }
    let program = pid.and_then(|it| std::fs::read_to_string(format!("/proc/{it}/comm")).ok()).unwrap_or_default();
    Some(PortGrant { port, program: program.trim().to_owned(), pid: pid.unwrap_or(0) })
}

/// Of a line of the kernel's list: the socket that listens at a port.
fn inode_of(line: &str, port: u16) -> Option<&str> {
    let mut words = line.split_ascii_whitespace();
    let (local, state) = (words.nth(1)?, words.nth(1)?);
    let is_it = u16::from_str_radix(local.rsplit_once(':')?.1, 16) == Ok(port) && state == LISTENING;
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
    match TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await {
        Ok(it) => Ok(it),
        Err(_) => TcpStream::connect(SocketAddr::from((Ipv6Addr::LOCALHOST, port))).await,
    }
}

/// The first port of this machine that a text names behind a name of this machine, and at which somebody listens.
pub fn named_port(texts: &[&str]) -> Option<PortGrant> {
    texts.iter().flat_map(|it| ports_in(it)).find_map(listener)
}

/// `localhost:80`, `127.0.0.1:80`, `localhost port 80`, `localhost (127.0.0.1), port 80`.
fn ports_in(text: &str) -> Vec<u16> {
    const LOCAL: &[&str] = &["localhost", "127.0.0.1", "[::1]", "::1"];
    let mut res = Vec::new();
    for (at, name) in LOCAL.iter().flat_map(|name| text.match_indices(name)) {
        let rest = text.get(at + name.len()..).unwrap_or_default();
        // In the same clause.
        let rest = rest.split(['\n', ';', '|', '&']).next().unwrap_or_default();
        let near =
            rest.strip_prefix(':').or_else(|| rest.split_once("port ").filter(|it| it.0.len() < 24).map(|it| it.1));
        let digits = near.map(|it| it.split(|it: char| !it.is_ascii_digit()).next().unwrap_or_default());
        res.extend(digits.and_then(|it| it.parse::<u16>().ok()).filter(|it| *it != 0 && !res.contains(it)));
    }
    res
}

#[cfg(test)]
mod tests {
    use super::{inode_of, listener, named_port, ports_in};

    #[test]
    fn ports_are_named_behind_this_machine() {
        for (text, want) in [
            ("curl -s http://127.0.0.1:8123/health", &[8123][..]),
            ("curl localhost:80/x; curl http://[::1]:81", &[80, 81]),
            ("curl: (7) Failed to connect to localhost port 8123 after 0 ms", &[8123]),
            ("connection to server at \"localhost\" (127.0.0.1), port 5432 failed: Connection refused", &[5432]),
            ("connect ECONNREFUSED 127.0.0.1:3000", &[3000]),
            ("dial tcp [::1]:6379: connect: connection refused", &[6379]),
            ("curl http://example.com:80", &[]),
            ("localhost:0 localhost:99999 localhost:x localhost", &[]),
        ] {
            let mut found = ports_in(text);
            found.sort_unstable();
            assert_eq!(found, want, "{text}");
        }
    }

    #[test]
    fn the_kernel_lists_who_listens() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 1";
        assert_eq!(inode_of(line, 0x1f90), Some("12345"));
        assert_eq!(inode_of(line, 80), None);
        assert_eq!(inode_of(&line.replace(" 0A ", " 01 "), 0x1f90), None);
        // What castor itself opens is nobody's.
        let own = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = own.local_addr().unwrap().port();
        assert_eq!((listener(port), named_port(&[&format!("localhost:{port}")])), (None, None));
    }
}
