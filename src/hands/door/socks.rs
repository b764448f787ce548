//! SOCKS 5 at the door: greetings and orders of a client, and the answers. Pure.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::request::BadRequest;
use castor_base::network::{Host, HostPort};

pub(super) const VERSION: u8 = 5;
const CONNECT: u8 = 1;
/// The client need not say who it is: nobody else reaches this door.
pub(super) const WELCOME: [u8; 2] = [VERSION, 0];
pub(super) const NO_WAY_IN: [u8; 2] = [VERSION, 0xff];
pub(super) const OPEN: [u8; 10] = [VERSION, 0, 0, 1, 0, 0, 0, 0, 0, 0];
/// "Not allowed by the rules".
pub(super) const REFUSED: [u8; 10] = [VERSION, 2, 0, 1, 0, 0, 0, 0, 0, 0];

/// Whether a client takes the door without a password, and how long its greeting is; `None`: it is not whole yet.
pub(super) fn read_greeting(bytes: &[u8]) -> Option<(bool, usize)> {
    let (head, rest) = bytes.split_first_chunk::<2>()?;
    let methods = rest.get(..head[1].into())?;
    Some((head[0] == VERSION && methods.contains(&0), 2 + methods.len()))
}

/// Where a client wants to, and how long its order is; `None`: it is not whole yet.
///
/// # Errors
/// It wants something else than a connection, or names no host.
pub(super) fn read_order(bytes: &[u8]) -> Result<Option<(HostPort, usize)>, BadRequest> {
    let Some((head, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let [VERSION, CONNECT, 0, kind] = *head else { return Err(BadRequest::Malformed) };
    let length = match (kind, rest) {
        (1, _) => 4,
        (3, []) => return Ok(None),
        (3, [length, ..]) => 1 + usize::from(*length),
        (4, _) => 16,
        _ => return Err(BadRequest::Malformed),
    };
    let Some((said, rest)) = rest.split_at_checked(length) else { return Ok(None) };
    let host = match said {
        [_, name @ ..] if kind == 3 => std::str::from_utf8(name).ok().and_then(Host::parse),
        [a, b, c, d] => Some(Host::Address(Ipv4Addr::new(*a, *b, *c, *d).into())),
        it => <[u8; 16]>::try_from(it).ok().map(|it| Host::Address(Ipv6Addr::from(it).to_canonical())),
    };
    let Some((port, rest)) = rest.split_first_chunk::<2>() else { return Ok(None) };
    let port = u16::from_be_bytes(*port);
    match host {
        Some(host) if port != 0 => Ok(Some((HostPort { host, port }, bytes.len() - rest.len()))),
        _ => Err(BadRequest::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::{BadRequest, read_greeting, read_order};

    #[test]
    fn an_order_names_a_host_and_a_port() {
        let order = |command: u8, kind: u8, host: &[u8]| [&[5, command, 0, kind], host, &[1, 187]].concat();
        let name = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
        let mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1];
        for (bytes, want) in [
            (order(1, 3, &name("A.com.")), Ok("a.com:443")),
            (order(1, 3, &name("127.1")), Ok("127.0.0.1:443")),
            (order(1, 1, &[1, 2, 3, 4]), Ok("1.2.3.4:443")),
            (order(1, 4, &mapped), Ok("10.0.0.1:443")),
            (order(2, 1, &[1, 2, 3, 4]), Err(BadRequest::Malformed)),
            (order(3, 1, &[1, 2, 3, 4]), Err(BadRequest::Malformed)),
            (order(1, 2, &[1, 2, 3, 4]), Err(BadRequest::Malformed)),
            (order(1, 3, &name("")), Err(BadRequest::Malformed)),
            (order(1, 3, &name("a.com\0.evil.org")), Err(BadRequest::Malformed)),
            (order(1, 3, &[1, 0xff]), Err(BadRequest::Malformed)),
            (vec![5, 1, 0, 1, 1, 2, 3, 4, 0, 0], Err(BadRequest::Malformed)),
            (vec![4, 1, 0, 80, 1, 2, 3, 4, 0], Err(BadRequest::Malformed)),
            (vec![5, 1, 1, 1, 1, 2, 3, 4, 0, 80], Err(BadRequest::Malformed)),
        ] {
            let read = read_order(&bytes).map(|it| it.unwrap().0.to_string());
            assert_eq!(read.as_deref(), want.as_ref().map(|it| *it), "{bytes:?}");
            let whole = want.is_ok();
            for n in 0..bytes.len() {
                assert!(!whole || read_order(&bytes[..n]) == Ok(None), "{n} of {bytes:?}");
            }
        }
    }

    #[test]
    fn a_greeting_without_a_password_is_taken() {
        assert_eq!(read_greeting(&[5, 2, 2, 0, 9]), Some((true, 4)));
        assert_eq!(read_greeting(&[5, 1, 2]), Some((false, 3)));
        assert_eq!(read_greeting(&[4, 1, 0]), Some((false, 3)));
        assert_eq!((read_greeting(&[5]), read_greeting(&[5, 2, 0])), (None, None));
    }
}
