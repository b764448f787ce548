//! Google access tokens over a loopback connection: requests, caching and expiry.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use rustls::pki_types::{PrivatePkcs8KeyDer, pem::PemObject};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;

/// The clock of one test: tests run side by side.
macro_rules! clock {
    () => {{
        static NOW: AtomicU64 = AtomicU64::new(1_000_000);
        (&NOW, (|| NOW.load(Ordering::Relaxed)) as fn() -> u64)
    }};
}

const KEY: &str = include_str!("../../../../tests/data/tls/service-account.key");

pub(super) async fn server() -> (TcpListener, String) {
    let it = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = it.local_addr().unwrap().to_string();
    (it, address)
}

/// Answers one request, and returns it.
pub(super) async fn serve(listener: &TcpListener, status: &str, body: impl Into<String>) -> String {
    let body = body.into();
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut bytes = Vec::new();
    let request = loop {
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "half a request");
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, rest)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|it| it.strip_prefix("content-length: ")).unwrap_or("0");
        if rest.len() >= length.parse().unwrap() {
            break text.into_owned();
        }
    };
    let length = body.len();
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    stream.write_all(answer.as_bytes()).await.unwrap();
    request
}

pub(super) fn tokens(credentials: Credentials, clock: fn() -> u64) -> Tokens {
    Tokens { clock, ..Tokens::new(credentials, Arc::default()) }
}

pub(super) fn user(address: &str) -> Credentials {
    Credentials::User {
        client_id: "id".to_owned(),
        client_secret: "CANARY secret".into(),
        refresh_token: "CANARY/refresh".into(),
        token_url: format!("http://{address}/token"),
    }
}

pub(super) fn token(value: &str, seconds: u64) -> String {
    format!(r#"{{"access_token":"{value}","expires_in":{seconds},"token_type":"Bearer"}}"#)
}

#[tokio::test]
async fn token_is_cached_until_shortly_before_expiry() {
    let (now, clock) = clock!();
    let (listener, address) = server().await;
    let tokens = tokens(user(&address), clock);
    let (got, request) = tokio::join!(tokens.get(), serve(&listener, "200 OK", token("one", 3_600)));
    assert_eq!(got.unwrap().expose_secret(), "one");
    assert!(request.starts_with("POST /token HTTP/1.1\r\n"), "{request}");
    let form = "grant_type=refresh_token&client_id=id&client_secret=CANARY+secret&refresh_token=CANARY%2Frefresh";
    assert!(request.ends_with(form), "{request}");
    // Nobody is asked for these.
    now.fetch_add(3_299, Ordering::Relaxed);
    let (a, b) = tokio::join!(tokens.get(), tokens.get());
    assert_eq!((a.unwrap().expose_secret(), b.unwrap().expose_secret()), ("one", "one"));
    now.fetch_add(1, Ordering::Relaxed);
    // One request serves both.
    let (a, b, _) = tokio::join!(tokens.get(), tokens.get(), serve(&listener, "200 OK", token("two", 3_600)));
    let a = a.unwrap();
    assert_eq!((a.expose_secret(), b.unwrap().expose_secret()), ("two", "two"));
    // Another one that is refused changes nothing; this one is not used again.
    tokens.invalidate(&"one".into()).await;
    assert_eq!(tokens.get().await.unwrap().expose_secret(), "two");
    tokens.invalidate(&a).await;
    let (got, _) = tokio::join!(tokens.get(), serve(&listener, "200 OK", token("three", 3_600)));
    assert_eq!(got.unwrap().expose_secret(), "three");
}

#[tokio::test]
async fn a_service_account_signs() {
    let (_, clock) = clock!();
    let (listener, address) = server().await;
    let token_url = format!("http://{address}/token");
    let credentials = Credentials::ServiceAccount {
        email: "me@project.example".to_owned(),
        key: KEY.into(),
        key_id: Some("k1".to_owned()),
        token_url: token_url.clone(),
    };
    let tokens = tokens(credentials, clock);
    let (got, request) = tokio::join!(tokens.get(), serve(&listener, "200 OK", token("one", 3_600)));
    assert_eq!(got.unwrap().expose_secret(), "one");
    let form = request.split("\r\n\r\n").nth(1).unwrap();
    let assertion = form.strip_prefix("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=");
    let parts: Vec<&str> = assertion.unwrap().split('.').collect();
    let json = |it: &str| serde_json::from_slice::<Value>(&BASE64_URL_SAFE_NO_PAD.decode(it).unwrap()).unwrap();
    assert_eq!(json(parts[0]), json!({ "alg": "RS256", "typ": "JWT", "kid": "k1" }));
    let claims = json!({
        "iss": "me@project.example", "scope": "https://www.googleapis.com/auth/cloud-platform", "aud": token_url,
        "iat": 1_000_000, "exp": 1_003_600,
    });
    assert_eq!(json(parts[1]), claims);
    let der = PrivatePkcs8KeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap();
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref().to_vec());
    let signature = BASE64_URL_SAFE_NO_PAD.decode(parts[2]).unwrap();
    key.verify(format!("{}.{}", parts[0], parts[1]).as_bytes(), &signature).unwrap();
}

#[tokio::test]
async fn metadata_server_gets_its_own_request() {
    let (_, clock) = clock!();
    let (listener, host) = server().await;
    let tokens = tokens(Credentials::MetadataServer { host }, clock);
    let (got, request) = tokio::join!(tokens.get(), serve(&listener, "200 OK", token("one", 60)));
    assert_eq!(got.unwrap().expose_secret(), "one");
    let line = "GET /computeMetadata/v1/instance/service-accounts/default/token HTTP/1.1\r\n";
    assert!(request.starts_with(line) && request.contains("metadata-flavor: Google\r\n"), "{request}");
}

#[tokio::test]
async fn scopes_are_asked_for_where_they_can_be() {
    let (_, clock) = clock!();
    let (listener, host) = server().await;
    let scopes = || vec!["https://a/x".to_owned(), "https://a/y".to_owned()];
    let machine = tokens(Credentials::MetadataServer { host }, clock).with_scopes(scopes());
    let (got, request) = tokio::join!(machine.get(), serve(&listener, "200 OK", token("one", 60)));
    assert_eq!(got.unwrap().expose_secret(), "one");
    assert!(request.contains("/default/token?scopes=https%3A%2F%2Fa%2Fx%2Chttps%3A%2F%2Fa%2Fy HTTP"), "{request}");
    let email = "me@project.example".to_owned();
    let token_url = format!("http://{}/token", listener.local_addr().unwrap());
    let account = Credentials::ServiceAccount { email, key: KEY.into(), key_id: None, token_url };
    let account = tokens(account, clock).with_scopes(scopes());
    let (_, request) = tokio::join!(account.get(), serve(&listener, "200 OK", token("two", 60)));
    let claims = request.split('.').nth_back(1).unwrap();
    let claims = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
    assert!(claims.contains(r#""scope":"https://a/x https://a/y""#), "{claims}");
}

#[tokio::test]
async fn failures_say_what_to_do_and_no_secret() {
    let (_, clock) = clock!();
    let (listener, address) = server().await;
    let tokens_of = |it: Credentials| tokens(it, clock);
    let expired = r#"{"error":"invalid_grant","error_description":"Token has been expired or revoked."}"#;
    for (status, body, kind, words) in [
        (
            "400 Bad Request",
            expired,
            FailureKind::Auth,
            "(invalid_grant: Token has been expired or revoked.). Run `gcloud",
        ),
        ("503 Service Unavailable", "", FailureKind::Status, "Google gave no access token: HTTP 503."),
        ("200 OK", r#"{"access_token":"CANARY"}"#, FailureKind::Garbage, "something that is no access token"),
    ] {
        let tokens = tokens_of(user(&address));
        let (got, _) = tokio::join!(tokens.get(), serve(&listener, status, body));
        let failure = got.unwrap_err();
        assert_eq!(failure.kind, kind, "{failure:?}");
        assert!(failure.message.contains(words) && !format!("{failure:?}{tokens:?}").contains("CANARY"), "{failure:?}");
    }
    let mut elsewhere = user(&address);
    if let Credentials::User { token_url, .. } = &mut elsewhere {
        *token_url = "http://example.com/token".to_owned();
    }
    let odd_key = Credentials::ServiceAccount {
        email: "me".to_owned(),
        key: "CANARY".into(),
        key_id: None,
        token_url: format!("http://{address}/token"),
    };
    drop(listener);
    for (credentials, words) in [
        (elsewhere, "token_uri is no https address"),
        (odd_key, "private_key is no RSA key"),
        (Credentials::MetadataServer { host: address }, "There are no Google credentials, and no metadata server"),
        (Credentials::MetadataServer { host: "a b".to_owned() }, "is no host"),
    ] {
        let failure = tokens_of(credentials).get().await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Auth);
        assert!(failure.message.contains(words) && !failure.message.contains("CANARY"), "{failure:?}");
    }
}
