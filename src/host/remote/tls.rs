//! TLS of the listener: certificate and key from PEM files.

use std::{io, sync::Arc};

use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio_rustls::TlsAcceptor;

use castor_base::path::AbsPath;
use castor_hands::disk;

/// Larger files hold no certificates.
const MAX_PEM: u64 = 1 << 20;

/// Reads both files once.
///
/// # Errors
/// A file that is not there or holds something else; it is named.
pub fn acceptor(certificate: &AbsPath, key: &AbsPath) -> io::Result<TlsAcceptor> {
    let failed = |file: &AbsPath, why: &dyn std::fmt::Display| io::Error::other(format!("{file}: {why}"));
    let pem = disk::read_head(certificate, MAX_PEM).map_err(|it| failed(certificate, &it))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let chain = chain.map_err(|_| failed(certificate, &"not a file of PEM certificates"))?;
    if chain.is_empty() {
        return Err(failed(certificate, &"there is no PEM certificate in it"));
    }
    let pem = disk::read_head(key, MAX_PEM).map_err(|it| failed(key, &it))?;
    let secret = PrivateKeyDer::from_pem_slice(&pem).map_err(|_| failed(key, &"there is no PEM key in it"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|it| failed(certificate, &it))?.with_no_client_auth();
    let mut config = config.with_single_cert(chain, secret).map_err(|it| failed(key, &it))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
