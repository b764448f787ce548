//! The certificates of the system's authorities: read beside a connection's beginning, not before it.

use std::sync::{Arc, OnceLock};

use rustls::{
    ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use rustls_platform_verifier::Verifier;

/// Those that servers are held against. To read them takes milliseconds.
#[derive(Debug)]
pub struct Roots {
    provider: Arc<CryptoProvider>,
    /// Those of the user's own files.
    more: Vec<CertificateDer<'static>>,
    verifier: OnceLock<Result<Verifier, Error>>,
}

impl Roots {
    pub fn new(more: Vec<CertificateDer<'static>>) -> Arc<Self> {
        Arc::new(Self { provider: Arc::new(ring::default_provider()), more, verifier: OnceLock::new() })
    }

    /// Reads them, on a thread that nobody waits for, until a server has said who it is.
    pub fn read_ahead(self: &Arc<Self>) {
        if let (None, Ok(runtime)) = (self.verifier.get(), tokio::runtime::Handle::try_current()) {
            let roots = self.clone();
            runtime.spawn_blocking(move || _ = roots.verifier());
        }
    }

    /// # Errors
    /// When no version of TLS is to be had.
    pub fn tls(self: Arc<Self>, protocols: &[&str]) -> Result<ClientConfig, Error> {
        let config =
            ClientConfig::builder_with_provider(self.provider.clone()).with_safe_default_protocol_versions()?;
        let mut config = config.dangerous().with_custom_certificate_verifier(self).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
        Ok(config)
    }

    fn verifier(&self) -> Result<&Verifier, Error> {
        let read = || Verifier::new_with_extra_roots(self.more.clone(), self.provider.clone());
        self.verifier.get_or_init(read).as_ref().map_err(Clone::clone)
    }
}

impl ServerCertVerifier for Roots {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verifier()?.verify_server_cert(certificate, chain, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
