//! HTTP connections: proxies, certificate authorities and time limits.

use std::{fmt, sync::Arc, time::Duration};

use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use reqwest::{Client, ClientBuilder, NoProxy, Proxy, Url, redirect};
use rustls::pki_types::{CertificateDer, pem::PemObject};

use super::{public::PublicNames, root_cause, roots::Roots};
use crate::disk;
use castor_base::{network::HostPort, path::AbsPath};

/// What a server may choose from.
const PROTOCOLS: &[&str] = &["h2", "http/1.1"];
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Larger files hold no certificates.
const MAX_CA_BYTES: u64 = 4 << 20;
/// A proxy cannot reach this machine as it is seen from here.
const LOCAL_HOSTS: &str = "localhost,.localhost,127.0.0.0/8,::1";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpLink {
    pub proxies: Proxies,
    /// Files of certificates that count beside the system's.
    pub ca_files: Vec<AbsPath>,
    pub connect: Duration,
    /// The longest silence that is borne, before an answer and within it. There is no limit in all: a long answer is no
    /// error.
    pub idle: Duration,
}

/// What in the settings cannot be used; never with a part of an address, which may hold a password.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LinkError {
    #[error("the {0} proxy's address cannot be used; write http://host:port")]
    Proxy(&'static str),
    /// A file of certificates that is not there, cannot be read, or holds something else.
    #[error("{file}: {why}")]
    Certificates { file: AbsPath, why: String },
    #[error("{0}")]
    Client(String),
}

/// Addresses of proxies, by what is asked through them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    pub http: Option<String>,
    pub https: Option<String>,
    /// Hosts that are asked without one, as in NO_PROXY.
    pub no_proxy: Option<String>,
}

/// A proxy on the way to a host.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyHop {
    pub host: String,
    pub port: u16,
    /// The value of `Proxy-Authorization`.
    pub login: Option<String>,
}

impl Default for HttpLink {
    fn default() -> Self {
        Self { proxies: Proxies::default(), ca_files: Vec::new(), connect: CONNECT_TIMEOUT, idle: Self::IDLE_TIMEOUT }
    }
}

impl HttpLink {
    /// How long a server may be silent unless told otherwise.
    pub const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

    /// The authorities that servers are held against. Reads the files, and nothing of the system's.
    pub(super) fn roots(&self) -> Result<Arc<Roots>, LinkError> {
        let files = self.ca_files.iter().map(certificates).collect::<Result<Vec<_>, _>>()?;
        Ok(Roots::new(files.concat()))
    }

    pub(super) fn client(&self, roots: Arc<Roots>) -> Result<Client, LinkError> {
        self.builder(roots, PROTOCOLS)?.build().map_err(|it| LinkError::Client(root_cause(&it)))
    }

    /// One whose connections can become WebSockets.
    pub fn socket_client(&self) -> Result<Client, LinkError> {
        self.builder(self.roots()?, &["http/1.1"])?
            .http1_only()
            .build()
            .map_err(|it| LinkError::Client(root_cause(&it)))
    }

    /// A proxy of a company's is at a private address itself, and looks names up for us.
    pub(super) fn public_client(&self, roots: Arc<Roots>) -> Result<Client, LinkError> {
        let names = Arc::new(PublicNames { proxies: self.proxies.hosts() });
        self.builder(roots, PROTOCOLS)?.dns_resolver(names).build().map_err(|it| LinkError::Client(root_cause(&it)))
    }

    fn builder(&self, roots: Arc<Roots>, protocols: &[&str]) -> Result<ClientBuilder, LinkError> {
        let tls = roots.tls(protocols).map_err(|it| LinkError::Client(it.to_string()))?;
        let mut builder = Client::builder()
            .tls_backend_preconfigured(tls)
            .user_agent(concat!("castor/", env!("CARGO_PKG_VERSION")))
            // No read_timeout: its clock goes on while we do not read because the editor does not.
            .connect_timeout(self.connect)
            .tcp_nodelay(true)
            .tcp_keepalive(Duration::from_secs(30))
            .pool_idle_timeout(Duration::from_secs(90))
            // A redirect would carry the key in our own header to whatever host it names.
            .redirect(redirect::Policy::none());
        // Else the system may know one, where systems do.
        if self.proxies != Proxies::default() {
            builder = builder.no_proxy();
        }
        for it in self.proxies.read()? {
            builder = builder.proxy(it);
        }
        Ok(builder)
    }
}

impl Proxies {
    /// As the usual variables say, in capitals or not.
    pub fn from_env<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Self {
        let either = |name: &str| get(name).or_else(|| get(&name.to_lowercase())).map(str::to_owned);
        let one = |name: &str| either(name).or_else(|| either("ALL_PROXY"));
        Self { http: one("HTTP_PROXY"), https: one("HTTPS_PROXY"), no_proxy: either("NO_PROXY") }
    }

    /// The proxy through which `url` is asked: host and port, as an address may hold a password.
    pub(super) fn describe_proxy(&self, url: &Url) -> Option<String> {
        let found = self.find(url.as_str())?;
        let host = found.uri().host()?;
        Some(found.uri().port_u16().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
    }

    /// The proxy through which others than castor are let to a host.
    pub fn hop_to(&self, target: &HostPort) -> Option<ProxyHop> {
        let found = self.find(&format!("https://{target}/"))?;
        let login = found.basic_auth().and_then(|it| it.to_str().ok()).map(str::to_owned);
        let port = found.uri().port_u16().unwrap_or(if found.uri().scheme_str() == Some("https") { 443 } else { 80 });
        Some(ProxyHop { host: found.uri().host()?.to_owned(), port, login })
    }

    fn find(&self, url: &str) -> Option<Intercept> {
        let rules = Matcher::builder().no(self.direct_hosts());
        let rules = self.http.iter().fold(rules, |rules, it| rules.http(it.clone()));
        let rules = self.https.iter().fold(rules, |rules, it| rules.https(it.clone()));
        rules.build().intercept(&url.parse().ok()?)
    }

    /// Hosts that are asked without one.
    fn direct_hosts(&self) -> String {
        format!("{LOCAL_HOSTS},{}", self.no_proxy.as_deref().unwrap_or_default())
    }

    /// The names of the proxies themselves.
    fn hosts(&self) -> Vec<String> {
        let named = [&self.http, &self.https].into_iter().flatten();
        let host = |it: &String| {
            let url = Url::parse(it).ok().filter(Url::has_host).or_else(|| Url::parse(&format!("http://{it}")).ok())?;
            url.host_str().map(str::to_ascii_lowercase)
        };
        named.filter_map(host).collect()
    }

    fn read(&self) -> Result<Vec<Proxy>, LinkError> {
        let direct = NoProxy::from_string(&self.direct_hosts());
        let one = |name, it: reqwest::Result<Proxy>| match it {
            Ok(it) => Ok(it.no_proxy(direct.clone())),
            Err(_) => Err(LinkError::Proxy(name)),
        };
        let https = self.https.as_deref().map(|it| one("https", Proxy::https(it)));
        let http = self.http.as_deref().map(|it| one("http", Proxy::http(it)));
        https.into_iter().chain(http).collect()
    }
}

/// Whether there are some; addresses may hold passwords.
impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |it: &Option<String>| if it.is_some() { "set" } else { "none" };
        let (http, https) = (shown(&self.http), shown(&self.https));
        f.debug_struct("Proxies").field("http", &http).field("https", &https).field("none_for", &self.no_proxy).finish()
    }
}

fn certificates(file: &AbsPath) -> Result<Vec<CertificateDer<'static>>, LinkError> {
    let failed = |why: String| LinkError::Certificates { file: file.clone(), why };
    let bytes = disk::read_head(file, MAX_CA_BYTES).map_err(|it| failed(it.to_string()))?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|_| failed("not a file of PEM certificates".to_owned()))?;
    match found.is_empty() {
        true => Err(failed("there is no PEM certificate in it".to_owned())),
        false => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::{HttpLink, Proxies};
    use castor_base::path::AbsPath;

    #[test]
    fn proxies_of_the_environment() {
        for (vars, expected) in [
            (&[][..], [None, None, None]),
            (&[("HTTPS_PROXY", "a"), ("http_proxy", "b"), ("no_proxy", "c")], [Some("b"), Some("a"), Some("c")]),
            (&[("ALL_PROXY", "a"), ("https_proxy", "b")], [Some("a"), Some("b"), None]),
        ] {
            let get = |name: &str| vars.iter().find(|(it, _)| *it == name).map(|(_, value)| *value);
            let it = Proxies::from_env(get);
            assert_eq!([it.http.as_deref(), it.https.as_deref(), it.no_proxy.as_deref()], expected, "{vars:?}");
        }
    }

    #[test]
    fn the_proxy_of_an_address_is_named_without_its_password() {
        let (http, https) = (Some("http://user:canary@proxy.corp:3128"), Some("https://user:canary@[::1]:9"));
        let proxies = |http: Option<&str>, https: Option<&str>| Proxies {
            http: http.map(str::to_owned),
            https: https.map(str::to_owned),
            no_proxy: Some("direct.example.com,10.0.0.0/8".to_owned()),
        };
        for (proxies, url, want) in [
            (proxies(http, https), "http://models.example.com/v1", Some("proxy.corp:3128")),
            (proxies(http, https), "https://models.example.com/v1?key=x", Some("[::1]:9")),
            (proxies(http, https), "https://direct.example.com", None),
            (proxies(http, https), "https://10.1.2.3/", None),
            (proxies(http, https), "http://localhost:8080/", None),
            (proxies(http, https), "http://127.0.0.1:8080/", None),
            (proxies(http, None), "https://models.example.com/v1", None),
            (proxies(None, Some("proxy.corp:8080")), "https://models.example.com/v1", Some("proxy.corp:8080")),
            (proxies(None, Some("socks5h://u:canary@proxy.corp:1080")), "https://a.b/", Some("proxy.corp:1080")),
            (Proxies::default(), "https://models.example.com/v1", None),
        ] {
            assert_eq!(proxies.describe_proxy(&url.parse().unwrap()).as_deref(), want, "{url}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_said_without_passwords() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = AbsPath::new(folder.path()).unwrap().join(name);
            std::fs::write(path.as_path(), text).unwrap();
            path
        };
        let trusting = |it: AbsPath| HttpLink { ca_files: vec![it], ..HttpLink::default() };
        let through = |it: &str| HttpLink {
            proxies: Proxies { https: Some(it.to_owned()), ..Proxies::default() },
            ..HttpLink::default()
        };
        let absent = AbsPath::new(folder.path()).unwrap().join("absent.pem");
        for (link, words) in [
            (through("http://me:CANARY@[x"), "the https proxy's address cannot be used"),
            (trusting(absent), "absent.pem: "),
            (trusting(file("empty.pem", "nothing")), "there is no PEM certificate in it"),
        ] {
            assert!(!format!("{link:?}").contains("CANARY"));
            let why = link.roots().and_then(|it| link.client(it)).unwrap_err().to_string();
            assert!(why.contains(words) && !why.contains("CANARY"), "{why}");
        }
        let link = through("http://proxy:3128");
        assert!(link.client(link.roots().unwrap()).is_ok());
    }
}
