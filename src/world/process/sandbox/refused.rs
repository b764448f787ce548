//! What the words of a connection that could not be made tell: whom it was for, and whether somebody is there.

use std::{
    fs,
    net::{IpAddr, SocketAddr},
};

/// What a connection to nobody is called. In a network of its own a command finds nobody at its loopback.
pub(super) const NOBODY: &[&str] =
    &["connection refused", "econnrefused", "couldn't connect", "could not connect", "failed to connect"];
/// What those say who find the socket of another program shut, in lower case. Where no socket can be opened, Docker says
/// either, and Podman sends people to its help.
const SHUT: &[&str] = &[
    "cannot connect to the docker daemon",
    "failed to connect to the docker api",
    "permission denied while trying to connect to the docker",
    "cannot connect to podman",
    "unable to connect to podman",
    "error while fetching server api version",
];
const NOT_PERMITTED: &[&str] = &["operation not permitted", "permission denied", "eperm"];
const LOOPBACK: &[&str] = &["localhost", "127.0.0.", "::1"];
/// Where the system tells who listens in the network that castor is in.
const LISTENERS: &[&str] = &["/proc/self/net/tcp", "/proc/self/net/tcp6"];

/// Whether a line has an address that is not the loopback's. Nobody there can be reached without the network, whatever
/// programs call it: curl says of all of them that it could not connect.
pub(super) fn names_far_address(line: &str) -> bool {
    let words = line.split(|it: char| !it.is_ascii_hexdigit() && !".:[]".contains(it));
    let read = |it: &str| -> Option<IpAddr> {
        let socket = it.parse::<SocketAddr>().map(|it| it.ip());
        socket.or_else(|_| it.trim_matches(['[', ']']).parse()).ok()
    };
    words.map(|it| it.trim_end_matches([':', '.'])).any(|it| {
        // `::1:80` is an address, and meant as the loopback's with a port.
        let host = it.rsplit_once(':').and_then(|(host, _)| read(host));
        let is_near = |it: &IpAddr| it.is_loopback() || it.is_unspecified();
        read(it).is_some_and(|it| !is_near(&it)) && !host.is_some_and(|it| is_near(&it))
    })
}

/// Whether a line tells of a socket of another program that could not be opened, as none can. `is_there` is asked of the
/// socket, where its place is named: where it is not, nobody waits outside either.
pub(super) fn names_shut_socket(line: &str, low: &str, is_there: impl Fn(&str) -> bool) -> bool {
    let after = ["unix://", "dial unix ", "connect EPERM "].iter().find_map(|it| Some(line.split_once(it)?.1));
    let place =
        after.and_then(|it| it.split([' ', ':', '\'', '"', ',', ')']).next()).map(|it| it.trim_end_matches('.'));
    let place = place.filter(|it| it.starts_with('/'));
    let says = |words: &[&str]| words.iter().any(|it| low.contains(it));
    // Who is told to go by the network is no matter of sockets.
    let is_shut = !low.contains("tcp://") && says(SHUT) || place.is_some() && says(NOT_PERMITTED);
    is_shut && place.is_none_or(is_there)
}

/// The ports of a connection to the loopback that was refused, as a line in lower case tells it.
pub(super) fn loopback_ports(line: &str) -> Vec<u16> {
    if ![NOBODY, LOOPBACK].iter().all(|words| words.iter().any(|it| line.contains(it))) {
        return Vec::new();
    }
    let after = ["port ", "port=", ":"].iter().flat_map(|mark| line.match_indices(mark).map(|(at, it)| at + it.len()));
    let numbers = after.filter_map(|at| line.get(at..)?.split(|it: char| !it.is_ascii_digit()).next()?.parse().ok());
    numbers.filter(|it| *it > 1).collect()
}

/// In the network that castor is in.
pub(super) fn listens(port: u16) -> bool {
    let waits = |row: &str| {
        // `sl local_address rem_address st …`: the port in hexadecimal, and 0A for who listens.
        let mut fields = row.split_ascii_whitespace().skip(1);
        let local = fields.next().and_then(|it| it.rsplit_once(':')).and_then(|it| u16::from_str_radix(it.1, 16).ok());
        local == Some(port) && fields.nth(1) == Some("0A")
    };
    LISTENERS.iter().any(|it| fs::read_to_string(it).is_ok_and(|it| it.lines().any(waits)))
}
