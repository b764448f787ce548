//! TLS to Postgres, with rustls and the system's certificates, as models are reached. Ready-made connectors bring a reader
//! of certificates for channel binding, which adds nothing where the certificate is verified.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use rustls::{
    ClientConfig,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use rustls_platform_verifier::Verifier;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{
    Socket,
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream},
};
use tokio_rustls::{TlsConnector, client};

use super::fault::Fault;
use castor_base::path::AbsPath;
use castor_hands::disk;

/// Larger files hold no certificates.
const MAX_CA_BYTES: u64 = 4 << 20;

#[derive(Clone)]
pub struct Tls(TlsConnector);

impl Tls {
    /// `ca_file`: certificates that count beside the system's.
    pub fn new(ca_file: Option<&str>) -> Result<Self, Fault> {
        let failed = |why: String| Fault::Refused(format!("cannot use TLS: {why}"));
        let roots = ca_file.map(|it| certificates(it).map_err(failed)).transpose()?.unwrap_or_default();
        let provider = Arc::new(ring::default_provider());
        let verifier = Verifier::new_with_extra_roots(roots, provider.clone()).map_err(|it| failed(it.to_string()))?;
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = builder
            .map_err(|it| failed(it.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }
}

fn certificates(file: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let path = AbsPath::new(file).ok_or_else(|| format!("{file} is no absolute path"))?;
    let bytes = disk::read_head(&path, MAX_CA_BYTES).map_err(|it| format!("{path}: {it}"))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    found.map_err(|it| format!("{path}: {it}"))
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = TlsSocket;
    type TlsConnect = TlsToHost;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<TlsToHost> {
        let name = ServerName::try_from(host.to_owned());
        // A socket of this machine has no name, and no TLS.
        Ok(TlsToHost { connector: self.0.clone(), name: name.ok() })
    }
}

pub struct TlsToHost {
    connector: TlsConnector,
    name: Option<ServerName<'static>>,
}

impl TlsConnect<Socket> for TlsToHost {
    type Stream = TlsSocket;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TlsSocket>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let name = self.name.ok_or_else(|| io::Error::other("the server has no name to verify"))?;
            Ok(TlsSocket(self.connector.connect(name, socket).await?))
        })
    }
}

pub struct TlsSocket(client::TlsStream<Socket>);

impl TlsStream for TlsSocket {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for TlsSocket {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl AsyncWrite for TlsSocket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
