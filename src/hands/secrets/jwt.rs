//! Signed statements (JWT): RS256 or ES256, as the key is.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256, RsaKeyPair},
};
use rustls::pki_types::{PrivatePkcs8KeyDer, pem::PemObject};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

/// A private key.
pub enum SigningKey {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
}

impl SigningKey {
    /// From PEM (PKCS #8). `None`: it is no RSA key, and none on P-256.
    pub fn read(pem: &SecretString) -> Option<Self> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.expose_secret().as_bytes()).ok()?;
        let bytes = der.secret_pkcs8_der();
        if let Ok(it) = RsaKeyPair::from_pkcs8(bytes) {
            return Some(Self::Rsa(it));
        }
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, bytes, &SystemRandom::new()).ok().map(Self::P256)
    }

    /// The name of the algorithm.
    pub fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa(_) => "RS256",
            Self::P256(_) => "ES256",
        }
    }

    /// The claims, with their signature. `None`: they cannot be signed.
    pub fn sign(&self, kind: &str, key_id: Option<&str>, claims: &Value) -> Option<String> {
        let mut head = json!({ "alg": self.algorithm(), "typ": kind });
        if let (Some(id), Some(head)) = (key_id, head.as_object_mut()) {
            head.insert("kid".to_owned(), id.into());
        }
        let part = |it: &Value| BASE64_URL_SAFE_NO_PAD.encode(it.to_string());
        let text = format!("{}.{}", part(&head), part(claims));
        let random = SystemRandom::new();
        let signature = match self {
            Self::Rsa(it) => {
                let mut res = vec![0; it.public().modulus_len()];
                it.sign(&RSA_PKCS1_SHA256, &random, text.as_bytes(), &mut res).ok()?;
                res
            }
            Self::P256(it) => it.sign(&random, text.as_bytes()).ok()?.as_ref().to_vec(),
        };
        Some(format!("{text}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
    }
}
