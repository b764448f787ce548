//! Logins at MCP servers without a page: by a key of castor's, by a company's identity provider, with Google's credentials.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    sync::{Arc, Mutex},
    thread,
};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RsaKeyPair},
};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject},
};
use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    mcp_server::Server,
    model_server::{ModelServer, gives, read},
    oauth_server::{CANARY, Manners, OAuthServer},
};

const KEY: &str = include_str!("../data/tls/service-account.key");

/// A castor with one server, called `web`, whose model calls it twice.
fn sandbox(server: &Value) -> Sandbox {
    let mut res = Sandbox::new();
    res.write("home/.castor/settings.json", &json!({"mcpServers": {"web": server}}).to_string());
    let line = |it: &str| crate::conversation::model::response(it).unwrap().to_string() + "\n";
    let call = line("call mcp_web_echo {\"text\":\"a\"}");
    let script = res.write("script.jsonl", &(call.clone() + &call + &line("text \"b\"")));
    res.args.extend(["--approval-mode", "yolo", "--fake-responses"].map(Into::into));
    res.args.push(script.into());
    res.env.push(("CASTOR_LOG".into(), "trace".into()));
    res
}

/// All that castor says to one prompt and to `/mcp`. It shows no page, and no part of a token.
fn play(sandbox: &Sandbox) -> String {
    let mut client = Client::start(sandbox);
    client.initialize(&json!({"elicitation": {"url": {}}})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let mut said = String::new();
    for text in ["go", "/mcp"] {
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
        let (answer, updates) = client.call("session/prompt", params).unwrap();
        assert!(!updates.iter().any(|it| it["method"] == "elicitation/create"), "{updates:?}");
        said += &updates.iter().map(|it| format!("{it}\n")).collect::<String>();
        said += &answer.to_string();
    }
    let log = std::fs::read_to_string(sandbox.stderr()).unwrap_or_default();
    for secret in [CANARY, "PRIVATE KEY", "idp-secret", "at-server"] {
        assert!(!said.contains(secret) && !log.contains(secret), "{secret}: {said}\n{log}");
    }
    said
}

fn pem(der: &[u8]) -> String {
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(der))
}

/// The text of a private key and what checks its signatures.
fn keys() -> [(String, Vec<u8>); 2] {
    let der = PrivatePkcs8KeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let rsa = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap();
    let random = SystemRandom::new();
    let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let curve = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.as_ref(), &random).unwrap();
    [(KEY.to_owned(), rsa.public_key().as_ref().to_vec()), (pem(der.as_ref()), curve.public_key().as_ref().to_vec())]
}

fn signing(server: &OAuthServer, more: &Value) -> Value {
    let mut oauth = json!({"grant": "client_credentials", "clientId": "castor-1", "scopes": ["read"]});
    oauth.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"url": server.mcp_url(), "type": "http", "oauth": oauth})
}

#[test]
fn castor_logs_in_with_a_key_of_its_own() {
    for (key, public) in keys() {
        let server = OAuthServer::start(Manners { client_key: Some(public), ..Manners::default() });
        let sandbox = sandbox(&signing(&server, &json!({"privateKeyFile": "~/key.pem"})));
        sandbox.write("home/key.pem", &key);
        let said = play(&sandbox);
        assert!(said.matches("echo: a").count() >= 2 && said.contains("`web`: ready"), "{said}");
        assert_eq!(server.n_asked("POST /token client_credentials"), 1);
    }
}

/// The key may be in a variable, which nothing shows; a token that ends soon is had anew, each time with another statement.
#[test]
fn a_token_of_castors_own_is_had_anew_before_it_ends() {
    let [(key, public), _] = keys();
    let server = OAuthServer::start(Manners { client_key: Some(public), expires_in: 1, ..Manners::default() });
    let mut sandbox = sandbox(&signing(&server, &json!({"privateKey": "$MCP_SIGNING_KEY"})));
    sandbox.env.push(("MCP_SIGNING_KEY".to_owned(), key));
    let said = play(&sandbox);
    assert!(said.matches("echo: a").count() >= 2, "{said}");
    assert!(server.n_asked("POST /token client_credentials") > 2, "{:?}", server.asked());
}

#[test]
fn keys_that_cannot_be_used_are_named_without_what_is_in_them() {
    let server = OAuthServer::start(Manners::default());
    for (more, file, words) in [
        (json!({"privateKeyFile": "~/key.pem"}), "cAnAry", "`oauth.privateKey` is no key in PEM (PKCS #8)"),
        (json!({"privateKeyFile": "/nowhere/key.pem"}), "", "`oauth.privateKeyFile`: /nowhere/key.pem: No such file"),
        (json!({"privateKeyFile": "key.pem"}), "", "`oauth.privateKeyFile`: it is no absolute path"),
        (json!({}), "", "needs `oauth.clientId`, and `oauth.clientSecret` or a private key"),
        (json!({"privateKeyFile": "~/key.pem"}), KEY, "invalid_grant"),
    ] {
        let sandbox = sandbox(&signing(&server, &more));
        sandbox.write("home/key.pem", file);
        let said = play(&sandbox);
        assert!(said.contains("`web`: failed: ") && said.contains(words), "{words}: {said}");
    }
}

/// What a hostile authorization server says for a token: it ends the login, and nothing of it acts.
#[test]
fn answers_for_tokens_are_not_believed() {
    let answer = |status: &str, head: &str, body: &str| {
        format!(
            "HTTP/1.1 {status}\r\n{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let elsewhere = "Location: http://169.254.169.254/latest/\r\n";
    let loud = json!({"error": "invalid_client", "error_description": "\u{1b}[2Jgone\u{202e}"}).to_string();
    let endless = format!("{{\"access_token\": \"{}\"}}", "a".repeat(3 << 20));
    for (said, words) in [
        (answer("307 Temporary Redirect", elsewhere, ""), "answered 307"),
        (answer("400 Bad Request", "", &loud), "answered 400: invalid_client [2Jgone"),
        (answer("200 OK", "", "<html>log in</html>"), "its answer is no access token"),
        (answer("200 OK", "", "{\"access_token\": 5, \"token_type\": \"Bearer\"}"), "its answer is no access token"),
        (answer("200 OK", "", &endless), "its answer is no access token"),
    ] {
        let [(key, public), _] = keys();
        let (client_key, token_answer) = (Some(public), Some(said));
        let server = OAuthServer::start(Manners { client_key, token_answer, ..Manners::default() });
        let sandbox = sandbox(&signing(&server, &json!({"privateKeyFile": "~/key.pem"})));
        sandbox.write("home/key.pem", &key);
        let said = play(&sandbox);
        assert!(said.contains("`web`: failed: ") && said.contains(words), "{words}: {said}");
        assert!(!said.contains("\\u001b") && !said.contains('\u{202e}'), "{said}");
    }
}

/// A token that would add a header is none.
#[test]
fn a_token_cannot_add_a_header() {
    let body = json!({"access_token": "a\r\nX-Evil: 1", "token_type": "Bearer"}).to_string();
    let token_answer = Some(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
    let [(key, public), _] = keys();
    let server = OAuthServer::start(Manners { client_key: Some(public), token_answer, ..Manners::default() });
    let sandbox = sandbox(&signing(&server, &json!({"privateKeyFile": "~/key.pem"})));
    sandbox.write("home/key.pem", &key);
    let said = play(&sandbox);
    assert!(!said.contains("echo: a") && !said.contains("`web`: ready"), "{said}");
}

fn company(server: &OAuthServer, id_token_file: &str) -> Value {
    let provider = json!({"issuer": format!("{}/idp", server.base), "tokenUrl": format!("{}/idp/token", server.base),
        "clientId": "at-idp", "clientSecret": "idp-secret", "idTokenFile": id_token_file});
    let oauth = json!({"grant": "cross_app_access", "clientId": "castor-1", "clientSecret": "at-server",
        "identityProvider": provider});
    json!({"url": server.mcp_url(), "type": "http", "oauth": oauth})
}

#[test]
fn a_companys_identity_provider_vouches_for_the_user() {
    let server = OAuthServer::start(Manners::default());
    let sandbox = sandbox(&company(&server, "~/id-token"));
    sandbox.write("home/id-token", &format!("{CANARY}user\n"));
    let said = play(&sandbox);
    assert!(said.contains("echo: a") && said.contains("`web`: ready"), "{said}");
    let asked = server.asked();
    let exchange = "POST /idp/token urn:ietf:params:oauth:grant-type:token-exchange";
    let redeemed = "POST /token urn:ietf:params:oauth:grant-type:jwt-bearer";
    assert!(asked.iter().any(|it| it == exchange) && asked.iter().any(|it| it == redeemed), "{asked:?}");
    sandbox.write("home/id-token", "somebody else");
    let said = play(&sandbox);
    assert!(said.contains("`web`: failed: ") && said.contains("IdentityProvider: invalid_grant"), "{said}");
}

/// Nobody but the user says that castor shows who the user is.
#[test]
fn a_workspaces_server_gets_no_credential_of_the_users() {
    let server = OAuthServer::start(Manners::default());
    let google = json!({"url": "https://mcp.googleapis.com/mcp", "authProviderType": "google_credentials",
        "oauth": {"scopes": ["a"]}});
    let account = json!({"url": server.mcp_url(), "authProviderType": "service_account_impersonation",
        "targetServiceAccount": "a@b", "targetAudience": "c"});
    let key = signing(&server, &json!({"privateKeyFile": "~/key.pem"}));
    for theirs in [google, account, key, company(&server, "~/id-token")] {
        let sandbox = sandbox(&json!({"command": "/no/such/program"}));
        sandbox.write("home/key.pem", KEY);
        sandbox.write("ws/.castor/settings.json", &json!({"mcpServers": {"web": theirs}}).to_string());
        let said = play(&sandbox);
        assert!(said.contains("`web`: off: its settings are wrong: logs in with credentials of yours"), "{said}");
    }
    assert!(server.asked().is_empty(), "{:?}", server.asked());
}

/// Google's services behind a proxy: the host and the first lines of each request.
fn google(tokens: &'static [&'static str]) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    thread::spawn(move || {
        for it in listener.incoming().map_while(Result::ok) {
            let seen = seen.clone();
            thread::spawn(move || serve(it, tokens, &seen));
        }
    });
    (url, asked)
}

fn tls_file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name)
}

fn serve(mut tcp: TcpStream, tokens: &[&str], seen: &Mutex<Vec<String>>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && matches!(tcp.read(&mut byte), Ok(1)) {
        head.extend(byte);
    }
    tcp.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    let certificates = vec![CertificateDer::from_pem_file(tls_file("google.test.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(tls_file("google.test.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = config.with_single_cert(certificates, key).unwrap();
    let mut tls = StreamOwned::new(ServerConnection::new(Arc::new(config)).unwrap(), tcp);
    if tls.conn.complete_io(&mut tls.sock).is_err() {
        return;
    }
    let request = read(&mut tls);
    let host = request.header("host").unwrap_or_default().to_owned();
    let line = request.head.lines().next().unwrap_or_default();
    let bearer = request.header("authorization").unwrap_or_default().to_owned();
    seen.lock().unwrap().push(format!("{host} {line} {bearer} {}", request.body));
    let answer = match host.as_str() {
        "iamcredentials.googleapis.com" => {
            let part = |it: &str| URL_SAFE_NO_PAD.encode(it);
            let token = format!("{}.{}.{}", part("{}"), part(r#"{"exp":9999999999}"#), part("id"));
            gives(&json!({ "token": token }))
        }
        _ if !tokens.iter().any(|it| bearer.starts_with(&format!("Bearer {it}"))) => {
            "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned()
        }
        _ => {
            let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
            match Server::new("").answer(&message).filter(|_| message.get("id").is_some()) {
                Some(it) => gives(&it),
                None => "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
            }
        }
    };
    _ = tls.write_all(answer.as_bytes());
    tls.conn.send_close_notify();
    _ = tls.flush();
}

fn with_google(mut sandbox: Sandbox, proxy: &str, metadata: &ModelServer) -> Sandbox {
    let authority = tls_file("google-authority.pem").display().to_string();
    let host = metadata.url.trim_start_matches("http://");
    let pairs = [("HTTPS_PROXY", proxy), ("NODE_EXTRA_CA_CERTS", &authority), ("GCE_METADATA_HOST", host)];
    sandbox.env.extend(pairs.map(|(name, it)| (name.to_owned(), it.to_owned())));
    sandbox
}

fn token(value: &str) -> String {
    gives(&json!({ "access_token": value, "expires_in": 3_600, "token_type": "Bearer" }))
}

#[test]
fn googles_credentials_go_to_googles_servers() {
    let metadata = ModelServer::start(vec![token("cAnAryOne")]);
    let (proxy, asked) = google(&["cAnAryOne"]);
    let server = json!({"httpUrl": "https://mcp.googleapis.com/mcp", "authProviderType": "google_credentials",
        "oauth": {"scopes": ["https://www.googleapis.com/auth/x"]}});
    let said = play(&with_google(sandbox(&server), &proxy, &metadata));
    assert!(said.matches("echo: a").count() >= 2 && said.contains("`web`: ready"), "{said}");
    let asked = asked.lock().unwrap();
    assert!(asked.iter().all(|it| it.starts_with("mcp.googleapis.com ")), "{asked:?}");
    let wanted = metadata.asked();
    assert_eq!(wanted.len(), 1, "one token for all requests");
    assert!(wanted[0].head.contains("scopes=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fx"), "{}", wanted[0].head);
}

#[test]
fn a_service_accounts_token_is_for_the_server_alone() {
    let metadata = ModelServer::start(vec![token("cAnAryOne")]);
    let (proxy, asked) = google(&["e30."]);
    let server = json!({"httpUrl": "https://mcp.googleapis.com/mcp", "authProviderType": "service_account_impersonation",
        "targetServiceAccount": "bot@p.iam.gserviceaccount.com", "targetAudience": "client-1"});
    let said = play(&with_google(sandbox(&server), &proxy, &metadata));
    assert!(said.contains("echo: a") && said.contains("`web`: ready"), "{said}");
    let asked = asked.lock().unwrap();
    let (own, theirs): (Vec<&String>, Vec<&String>) = asked.iter().partition(|it| it.contains("cAnAryOne"));
    let place = "iamcredentials.googleapis.com POST /v1/projects/-/serviceAccounts/bot@p.iam.gserviceaccount.com:generateIdToken";
    assert!(own.len() == 1 && own[0].starts_with(place) && own[0].contains("\"audience\":\"client-1\""), "{own:?}");
    assert!(!theirs.is_empty() && theirs.iter().all(|it| it.starts_with("mcp.googleapis.com ")), "{theirs:?}");
}

#[test]
fn googles_credentials_go_nowhere_else() {
    let metadata = ModelServer::start(vec![token("cAnAryOne")]);
    let server = OAuthServer::start(Manners::default());
    let scopes = json!({"scopes": ["a"]});
    for (url, oauth, words) in [
        (server.mcp_url(), scopes.clone(), "is for https://*.googleapis.com and https://*.luci.app, not for 127.0.0.1"),
        ("https://mcp.googleapis.com.evil.example/mcp".to_owned(), scopes, "not for mcp.googleapis.com.evil.example"),
        ("https://mcp.googleapis.com/mcp".to_owned(), json!({}), "needs `oauth.scopes`"),
    ] {
        let it = json!({"httpUrl": url, "authProviderType": "google_credentials", "oauth": oauth});
        let said = play(&with_google(sandbox(&it), "http://127.0.0.1:1", &metadata));
        assert!(said.contains("`web`: failed: ") && said.contains(words), "{words}: {said}");
    }
    assert!(server.asked().is_empty() && metadata.asked().is_empty());
}
