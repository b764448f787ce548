//! Access to a remote agent's server: which addresses may be asked, and what castor proves itself with there.

use std::{io, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::{
    Client, RequestBuilder, Url,
    header::{HeaderName, HeaderValue},
};
use secrecy::{ExposeSecret, SecretString};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    sync::OnceCell,
    time::timeout,
};

use super::RemoteHands;
use crate::providers::google::Tokens;
use castor_base::{
    credential::{Credential, CredentialOwner},
    model::{Details, Failure, FailureKind},
    path::AbsPath,
    peer_agent::{CardSource, KeySource, RemoteAgent, RemoteAuth},
    sandbox::Confinement,
};
use castor_hands::{
    disk,
    http::{self, Http, safe_host},
    process::{
        Groups, Spawn, Stdin,
        reach::{self, ProgramLine},
        sandbox,
    },
    secrets::{Env, google},
};

/// A command for a key may ask its user something.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);
const MAX_KEY: u64 = 64 << 10;
/// Shorter texts are no secrets, and hiding them would garble what is said.
const MIN_SECRET: usize = 6;
/// Where access tokens of Google's may go.
const GOOGLE_HOSTS: &str = ".googleapis.com";

/// Where and how commands of the user's run that print keys.
#[derive(Clone)]
pub struct KeyCommands {
    pub groups: Groups,
    pub cwd: AbsPath,
    pub env: Arc<Vec<(String, String)>>,
    /// Holds one that names something of the workspace, or is of a folder that nobody trusts.
    pub confined: Option<Arc<Confinement>>,
}

/// A command for a key that starts as the user would start it, away from the workspace.
struct AwayCommand {
    cwd: AbsPath,
    env: Vec<(String, String)>,
}

impl KeyCommands {
    fn away(&self, line: &str) -> Option<AwayCommand> {
        let confined = self.confined.as_deref().filter(|it| !it.untrusted)?;
        let args = [line.to_owned()];
        let line = ProgramLine { program: "bash", args: &args, own_env: &[], folder: &self.cwd, env: &self.env };
        let castor = confined.own_folders.records.parent()?;
        let is_away = line.named_roots(&confined.roots).is_empty();
        is_away.then(|| AwayCommand { cwd: reach::away(&castor, &confined.roots), env: line.env_away(&confined.roots) })
    }
}

/// Addresses that may be asked. Those of the user's own configuration may be anywhere; what a card or a redirect names
/// is to be public, or the host that the user named.
pub struct Access {
    pub http: Arc<Http>,
    agent: String,
    /// The card's address, as the user wrote it. `None`: the user wrote the card itself.
    configured: Option<Url>,
    pub credentials: Arc<RemoteCredentials>,
}

impl Access {
    pub fn new(http: Arc<Http>, agent: &RemoteAgent, credentials: RemoteCredentials) -> Self {
        let configured = match &agent.card {
            CardSource::Url(it) => Url::parse(it).ok(),
            CardSource::Json(_) => None,
        };
        Self { http, agent: agent.name.clone(), configured, credentials: Arc::new(credentials) }
    }

    /// What a server at `url` says no to.
    pub fn refusal(&self, why: String, url: &Url) -> Failure {
        let named = self.configured.as_ref().unwrap_or(url);
        let page = http::origin_of(named.as_str());
        let credential = Some(Credential::new(CredentialOwner::Agent, self.agent.as_str(), page));
        let details = Box::new(Details { credential, ..Details::default() });
        Failure { details, ..Failure::new(FailureKind::Auth, why) }
    }

    /// The client that may ask `url`.
    ///
    /// # Errors
    /// The address is not to be asked.
    pub fn client(&self, url: &Url) -> Result<&Client, Failure> {
        self.http.client_for(url, self.configured.as_ref().is_none_or(|it| it.host() == url.host()))
    }

    /// The request with what proves it.
    ///
    /// # Errors
    /// A secret that is not there, or would travel in the open.
    pub async fn prove(&self, request: RequestBuilder, url: &Url) -> Result<RequestBuilder, Failure> {
        let Some((name, value)) = self.credentials.header(url).await? else { return Ok(request) };
        let is_open = url.scheme() == "http";
        let as_named = self.configured.as_ref().is_none_or(|it| it.scheme() == "http" && it.host() == url.host());
        if is_open && !as_named {
            let why = format!("{}: castor sends no key over http; the card should name https", safe_host(url));
            return Err(Failure::new(FailureKind::Auth, why));
        }
        Ok(request.header(name, value))
    }
}

/// The secrets of one agent, looked up once.
pub struct RemoteCredentials {
    auth: Option<RemoteAuth>,
    env: Env,
    commands: KeyCommands,
    /// Of each source, in order.
    secrets: OnceCell<Vec<SecretString>>,
    tokens: Option<Result<Tokens, String>>,
}

impl RemoteCredentials {
    pub fn new(auth: Option<&RemoteAuth>, hands: &RemoteHands) -> Self {
        let tokens = (auth == Some(&RemoteAuth::Google)).then(|| {
            let found = google::find(&hands.env).map_err(|it| it.to_string());
            found.map(|it| Tokens::new(it, hands.http.clone()))
        });
        Self {
            auth: auth.cloned(),
            env: hands.env.clone(),
            commands: hands.commands.clone(),
            secrets: OnceCell::new(),
            tokens,
        }
    }

    pub fn is_some(&self) -> bool {
        self.auth.is_some()
    }

    /// Of the secrets, where they are known without a command or a request.
    pub fn hash(&self) -> Option<String> {
        let Some(auth) = &self.auth else { return Some(String::new()) };
        if *auth == RemoteAuth::Google {
            return None;
        }
        let mut all = vec![auth.kind().to_owned()];
        for it in auth.sources() {
            all.push(match it {
                KeySource::Literal(it) => it.clone(),
                KeySource::Variable(name) => format!("{name}={}", self.env.get(name).unwrap_or_default()),
                KeySource::Command(_) => return None,
            });
        }
        Some(disk::hash(all.join("\0").as_bytes()))
    }

    /// The text without the secrets: servers like to repeat them.
    pub fn hide(&self, text: &str) -> String {
        let all = self.secrets.get().into_iter().flatten().map(SecretString::expose_secret);
        all.filter(|it| it.len() >= MIN_SECRET).fold(text.to_owned(), |res, it| res.replace(it, "[hidden]"))
    }

    async fn header(&self, url: &Url) -> Result<Option<(HeaderName, HeaderValue)>, Failure> {
        let Some(auth) = &self.auth else { return Ok(None) };
        let secrets = self.secrets.get_or_try_init(|| self.look_up(auth)).await?;
        let mut all = secrets.iter().map(SecretString::expose_secret);
        let mut next = || all.next().unwrap_or_default();
        let (name, value) = match auth {
            RemoteAuth::ApiKey { header, .. } => (header.as_str(), next().to_owned()),
            RemoteAuth::Http { scheme, .. } => ("authorization", format!("{scheme} {}", next())),
            RemoteAuth::Basic { .. } => {
                let pair = format!("{}:{}", next(), next());
                ("authorization", format!("Basic {}", STANDARD.encode(pair)))
            }
            RemoteAuth::Google => {
                ("authorization", format!("Bearer {}", self.google_token(url).await?.expose_secret()))
            }
        };
        let pair = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(&value).ok());
        let (name, mut value) = pair.ok_or_else(|| missing("auth: the secret has characters that cannot be sent"))?;
        value.set_sensitive(true);
        Ok(Some((name, value)))
    }

    async fn google_token(&self, url: &Url) -> Result<SecretString, Failure> {
        if url.scheme() != "https" || !url.host_str().is_some_and(|it| it.ends_with(GOOGLE_HOSTS)) {
            let why = format!("auth: google-credentials go to https://*{GOOGLE_HOSTS} only, not to {}", safe_host(url));
            return Err(missing(&why));
        }
        match &self.tokens {
            Some(Ok(it)) => it.get().await,
            Some(Err(why)) => Err(missing(why)),
            None => Err(missing("auth: there are no Google credentials")),
        }
    }

    async fn look_up(&self, auth: &RemoteAuth) -> Result<Vec<SecretString>, Failure> {
        let mut res = Vec::new();
        for it in auth.sources() {
            res.push(match it {
                KeySource::Literal(it) => it.clone().into(),
                KeySource::Variable(name) => match self.env.get(name).filter(|it| !it.is_empty()) {
                    Some(it) => it.to_owned().into(),
                    None => return Err(missing(&format!("auth: the variable {name} is not set"))),
                },
                KeySource::Command(line) => self.run_command(line).await?,
            });
        }
        Ok(res)
    }

    /// What it prints may be a secret: nothing of it is shown.
    async fn run_command(&self, line: &str) -> Result<SecretString, Failure> {
        let failed = |why: &str| missing(&format!("auth: the command for the key {why}"));
        let KeyCommands { groups, cwd, env, confined } = &self.commands;
        let away = self.commands.away(line);
        let confined = confined.as_deref().filter(|_| away.is_none()).map(sandbox::current_confinement);
        let args = ["-c", line];
        let (cwd, env) = away.as_ref().map_or((cwd, env.as_slice()), |it| (&it.cwd, it.env.as_slice()));
        reach::make_away(cwd);
        let confined = confined.as_ref();
        let spawn = Spawn { program: "bash", args: &args, cwd, env, stdin: Stdin::Null, confined };
        let mut process = spawn.start_piped(groups).map_err(|it| failed(&format!("did not start: {it}")))?;
        drop(process.stdin);
        let (stdout, stderr) = (process.stdout, process.stderr);
        let ended = timeout(COMMAND_LIMIT, async {
            let (printed, _, exit) = tokio::join!(read(stdout), read(stderr), process.life.wait());
            (printed, exit)
        });
        let (printed, exit) = ended.await.map_err(|_| failed("took more than 60 s"))?;
        if exit.code != Some(0) {
            return Err(failed("failed"));
        }
        let printed = printed.map_err(|it| failed(&it.to_string()))?;
        match printed.trim() {
            "" => Err(failed("printed nothing")),
            it => Ok(it.to_owned().into()),
        }
    }
}

async fn read(from: impl AsyncRead + Unpin) -> io::Result<String> {
    let mut res = String::new();
    from.take(MAX_KEY).read_to_string(&mut res).await.map(|_| res)
}

fn missing(why: &str) -> Failure {
    Failure::new(FailureKind::Auth, why)
}
