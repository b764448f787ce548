//! The first message of TLS at the door: the server's name in it. Pure.

use rustls::server::Acceptor;

use super::request::BadRequest;

/// The first byte of TLS.
pub(super) const FIRST: u8 = 0x16;

/// The name in a first message, `None` within where it has none; `None`: it is not whole yet.
///
/// # Errors
/// It is none.
pub(super) fn server_name(bytes: &[u8]) -> Result<Option<Option<String>>, BadRequest> {
    let (mut acceptor, mut rest) = (Acceptor::default(), bytes);
    while !rest.is_empty() {
        // All at once may be more than it takes.
        if acceptor.read_tls(&mut rest).map_err(|_| BadRequest::Malformed)? == 0 {
            break;
        }
        if let Some(it) = acceptor.accept().map_err(|_| BadRequest::Malformed)? {
            return Ok(Some(it.client_hello().server_name().map(str::to_owned)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::{BadRequest, server_name};
    use crate::door::tests::hello;

    #[test]
    fn the_name_is_read_from_a_whole_hello() {
        let whole = hello("Example.com");
        for n in 0..whole.len() {
            assert_eq!(server_name(&whole[..n]), Ok(None), "{n}");
        }
        assert_eq!(
            server_name(&whole).map(|it| it.flatten().map(|it| it.to_lowercase())),
            Ok(Some("example.com".to_owned()))
        );
        assert_eq!(server_name(&hello("1.2.3.4")), Ok(Some(None)));
        assert_eq!(server_name(b"\x16\x03\x01\x00\x05hello"), Err(BadRequest::Malformed));
        assert_eq!(server_name(b"GET / HTTP/1.1\r\n\r\n"), Err(BadRequest::Malformed));
    }
}
