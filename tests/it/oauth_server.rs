//! An MCP server that wants a login, with its authorization server, on one port of this machine.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use ring::signature::{ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::mcp_server::Server;

/// All tokens begin with it: nobody but the server and the stored file may have it.
pub const CANARY: &str = "cAnAry";

/// What it does in another way.
#[derive(Clone, Default)]
pub struct Manners {
    /// Where the authorization server is said to be.
    pub issuer: Option<String>,
    /// Where tokens are said to be given out.
    pub token_endpoint: Option<String>,
    /// Metadata is elsewhere, says a redirect.
    pub redirect: Option<String>,
    /// In seconds.
    pub expires_in: u64,
    /// A call needs this scope, too.
    pub call_scope: Option<&'static str>,
    pub registers_nobody: bool,
    /// The public key of who logs in by signed statements: RSA as DER, P-256 as a point.
    pub client_key: Option<Vec<u8>>,
    /// All that it says to who wants a token.
    pub token_answer: Option<String>,
}

#[derive(Default)]
struct Known {
    manners: Manners,
    base: String,
    n_tokens: u32,
    /// The one that counts, and what it is good for.
    token: Option<(String, String)>,
    refresh: Option<String>,
    challenge: String,
    scope: String,
    asked: Vec<String>,
    /// What the identity provider gave out.
    grant: Option<String>,
    /// Numbers of signed statements.
    seen: Vec<String>,
}

#[derive(Clone)]
pub struct OAuthServer {
    known: Arc<Mutex<Known>>,
    pub base: String,
}

impl OAuthServer {
    pub fn start(manners: Manners) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let known = Arc::new(Mutex::new(Known { manners, base: base.clone(), ..Known::default() }));
        let res = Self { known, base };
        let it = res.clone();
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let it = it.clone();
                thread::spawn(move || {
                    let mut reader = BufReader::new(socket.try_clone().unwrap());
                    while let Some(request) = Request::read(&mut reader) {
                        let answer = it.known().answer(&request);
                        let _ = (&socket).write_all(answer.as_bytes());
                    }
                });
            }
        });
        res
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn mcp_url(&self) -> String {
        format!("{}/mcp", self.base)
    }

    /// Method and path of each request; of those for tokens also what for.
    pub fn asked(&self) -> Vec<String> {
        self.known().asked.clone()
    }

    pub fn n_asked(&self, line: &str) -> usize {
        self.asked().iter().filter(|it| *it == line).count()
    }

    /// The token that it gave out counts no more.
    pub fn refuse_token(&self) {
        self.known().token = None;
    }

    /// Nor does what renews it.
    pub fn refuse_refresh(&self) {
        let mut known = self.known();
        (known.token, known.refresh) = (None, None);
    }
}

struct Request {
    method: String,
    path: String,
    query: BTreeMap<String, String>,
    token: Option<String>,
    /// The user and the password that it came with.
    basic: Option<String>,
    body: String,
}

impl Request {
    fn read(reader: &mut impl BufRead) -> Option<Self> {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|it| *it > 0)?;
        let mut words = line.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let (mut length, mut token, mut basic) = (0, None, None);
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            match header.trim().split_once(": ") {
                None => break,
                Some((name, it)) if name.eq_ignore_ascii_case("content-length") => length = it.parse().ok()?,
                Some((name, it)) if name.eq_ignore_ascii_case("authorization") => {
                    token = it.strip_prefix("Bearer ").map(str::to_owned);
                    let pair = it.strip_prefix("Basic ").and_then(|it| STANDARD.decode(it).ok());
                    basic = pair.and_then(|it| String::from_utf8(it).ok());
                }
                Some(_) => (),
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let url = url::Url::parse("http://x").unwrap().join(&target).unwrap();
        let query = url.query_pairs().into_owned().collect();
        Some(Self { method, path: url.path().to_owned(), query, token, basic, body: String::from_utf8(body).ok()? })
    }

    fn form(&self) -> BTreeMap<String, String> {
        url::form_urlencoded::parse(self.body.as_bytes()).into_owned().collect()
    }
}

fn http(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

fn ok(body: &Value) -> String {
    http("200 OK", "Content-Type: application/json\r\n", &body.to_string())
}

impl Known {
    fn answer(&mut self, request: &Request) -> String {
        let form = request.form();
        let what = form.get("grant_type").map_or(String::new(), |it| format!(" {it}"));
        self.asked.push(format!("{} {}{what}", request.method, request.path));
        let issuer = self.manners.issuer.clone().unwrap_or_else(|| self.base.clone());
        match (request.method.as_str(), request.path.as_str()) {
            ("POST", "/mcp") => self.answer_mcp(request),
            ("GET", "/.well-known/oauth-protected-resource/mcp") => {
                ok(&json!({"resource": format!("{}/mcp", self.base), "authorization_servers": [issuer]}))
            }
            ("GET", "/.well-known/oauth-authorization-server") => match &self.manners.redirect {
                Some(to) => http("302 Found", &format!("Location: {to}\r\n"), ""),
                None => self.metadata(),
            },
            ("POST", "/register") => {
                let wanted: Value = serde_json::from_str(&request.body).unwrap();
                ok(&json!({"client_id": "registered", "redirect_uris": wanted["redirect_uris"]}))
            }
            ("GET", "/authorize") => self.authorize(request),
            ("POST", "/token") => self.give_token(request, &form),
            ("POST", "/idp/token") => self.vouch(request, &form),
            ("POST", "/revoke") => {
                self.token = None;
                ok(&json!({}))
            }
            _ => http("404 Not Found", "", ""),
        }
    }

    fn metadata(&self) -> String {
        let base = &self.base;
        let token = self.manners.token_endpoint.clone().unwrap_or_else(|| format!("{base}/token"));
        let mut res = json!({"issuer": base, "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": token, "revocation_endpoint": format!("{base}/revoke"),
            "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"]});
        if !self.manners.registers_nobody {
            res["registration_endpoint"] = format!("{base}/register").into();
        }
        ok(&res)
    }

    fn answer_mcp(&mut self, request: &Request) -> String {
        let Some((_, scope)) = self.token.clone().filter(|it| request.token.as_ref() == Some(&it.0)) else {
            let base = &self.base;
            let challenge = format!(
                "WWW-Authenticate: Bearer resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\", \
                 scope=\"read\"\r\n"
            );
            return http("401 Unauthorized", &challenge, "");
        };
        let message: Value = serde_json::from_str(&request.body).unwrap();
        let missing = self.manners.call_scope.filter(|it| !scope.split(' ').any(|has| has == *it));
        if let Some(missing) = missing.filter(|_| message["method"] == "tools/call") {
            let challenge = format!("WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"{missing}\"\r\n");
            return http("403 Forbidden", &challenge, "");
        }
        match Server::new("").answer(&message).filter(|_| message.get("id").is_some()) {
            Some(it) => ok(&it),
            None => http("202 Accepted", "", ""),
        }
    }

    /// Says yes at once, as to somebody who is logged in already.
    fn authorize(&mut self, request: &Request) -> String {
        let get = |name: &str| request.query.get(name).cloned().unwrap_or_default();
        assert_eq!((get("response_type").as_str(), get("code_challenge_method").as_str()), ("code", "S256"));
        assert_eq!(get("resource"), format!("{}/mcp", self.base));
        (self.challenge, self.scope) = (get("code_challenge"), get("scope"));
        let back = format!("{}?code={CANARY}code&state={}", get("redirect_uri"), get("state"));
        http("302 Found", &format!("Location: {back}\r\n"), "")
    }

    /// What castor signed: for this server, once.
    fn is_signed(&mut self, statement: &str) -> bool {
        let parts: Vec<&str> = statement.split('.').collect();
        let json = |it: &str| serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(it).unwrap()).unwrap();
        let (head, claims) = (json(parts[0]), json(parts[1]));
        let key = self.manners.client_key.clone().unwrap_or_default();
        let (text, signature) = (format!("{}.{}", parts[0], parts[1]), URL_SAFE_NO_PAD.decode(parts[2]).unwrap());
        let verified = match head["alg"].as_str() {
            Some("RS256") => {
                UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key).verify(text.as_bytes(), &signature)
            }
            _ => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key).verify(text.as_bytes(), &signature),
        };
        let number = claims["jti"].as_str().unwrap().to_owned();
        let is_new = !self.seen.contains(&number);
        self.seen.push(number);
        verified.is_ok() && is_new && claims["aud"] == self.base.as_str() && claims["sub"] == "castor-1"
    }

    /// The identity provider's answer to who says that it has a user of it.
    fn vouch(&mut self, request: &Request, form: &BTreeMap<String, String>) -> String {
        let get = |name: &str| form.get(name).cloned().unwrap_or_default();
        if get("subject_token") != format!("{CANARY}user") || request.basic.as_deref() != Some("at-idp:idp-secret") {
            return http("400 Bad Request", "Content-Type: application/json\r\n", r#"{"error":"invalid_grant"}"#);
        }
        assert_eq!(get("audience"), self.base);
        assert_eq!(get("resource"), format!("{}/mcp", self.base));
        let part = |it: Value| URL_SAFE_NO_PAD.encode(it.to_string());
        let claims = json!({"iss": format!("{}/idp", self.base), "aud": self.base, "client_id": "castor-1", "sub": "u",
            "jti": "1", "iat": 1, "exp": 9_999_999_999_u64, "resource": get("resource")});
        let head = json!({"alg": "ES256", "typ": "oauth-id-jag+jwt"});
        let grant = format!("{}.{}.{}", part(head), part(claims), URL_SAFE_NO_PAD.encode(CANARY));
        self.grant = Some(grant.clone());
        let kind = "urn:ietf:params:oauth:token-type:id-jag";
        ok(&json!({"access_token": grant, "issued_token_type": kind, "token_type": "N_A"}))
    }

    fn give_token(&mut self, request: &Request, form: &BTreeMap<String, String>) -> String {
        if let Some(it) = &self.manners.token_answer {
            return it.clone();
        }
        let get = |name: &str| form.get(name).cloned().unwrap_or_default();
        let by_company = get("grant_type").ends_with(":jwt-bearer");
        assert!(by_company || get("resource") == format!("{}/mcp", self.base), "a token is for one server");
        let is_own = by_company || get("grant_type") == "client_credentials";
        let is_right = match get("grant_type").as_str() {
            "client_credentials" => self.is_signed(&get("client_assertion")),
            _ if by_company => {
                request.basic.as_deref() == Some("castor-1:at-server") && self.grant.take() == Some(get("assertion"))
            }
            "authorization_code" => {
                let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(get("code_verifier")));
                hash == self.challenge && get("code") == format!("{CANARY}code")
            }
            "refresh_token" => self.refresh.as_ref() == Some(&get("refresh_token")),
            _ => false,
        };
        if !is_right {
            return http("400 Bad Request", "Content-Type: application/json\r\n", r#"{"error":"invalid_grant"}"#);
        }
        self.n_tokens += 1;
        let (token, refresh) = (format!("{CANARY}token{}", self.n_tokens), format!("{CANARY}refresh{}", self.n_tokens));
        self.token = Some((token.clone(), self.scope.clone()));
        self.refresh = Some(refresh.clone());
        let expires = if self.manners.expires_in == 0 { 3600 } else { self.manners.expires_in };
        if is_own {
            return ok(&json!({"access_token": token, "token_type": "Bearer", "expires_in": expires}));
        }
        ok(&json!({"access_token": token, "token_type": "Bearer", "refresh_token": refresh, "expires_in": expires,
            "scope": self.scope}))
    }
}

/// Goes to a page as a browser does, and where it sends it.
pub fn visit(url: &str) -> String {
    let answer = get(url);
    let to = answer.lines().find_map(|it| it.strip_prefix("Location: "));
    to.map_or_else(|| answer.clone(), get)
}

fn get(url: &str) -> String {
    let url = url::Url::parse(url).unwrap();
    let mut socket = TcpStream::connect((url.host_str().unwrap(), url.port().unwrap())).unwrap();
    let target = &url[url::Position::BeforePath..];
    write!(socket, "GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut reader = BufReader::new(socket);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap() == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, it)) = line.trim().split_once(": ")
            && name.eq_ignore_ascii_case("content-length")
        {
            length = it.parse().unwrap();
        }
        head += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    head + &String::from_utf8_lossy(&body)
}
