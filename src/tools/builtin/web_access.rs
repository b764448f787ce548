//! Access of tools to the web: the HTTP client, and the hosts of the user's own network that may be asked.

use std::sync::Arc;

use reqwest::{Client, Url};

use crate::builtin::WebSearch;
use castor_base::model::Failure;
use castor_hands::http::{Http, safe_host};

#[derive(Clone, Debug, Default)]
pub struct WebAccess {
    pub http: Arc<Http>,
    /// Hosts of this machine or its network, with a port or without: those of the user's settings.
    private_hosts: Vec<String>,
    /// `None`: no model of the session can search.
    pub search: Option<WebSearch>,
}

impl WebAccess {
    pub fn new(private_hosts: Vec<String>) -> Self {
        Self {
            private_hosts: private_hosts.iter().map(|it| it.trim().to_ascii_lowercase()).collect(),
            ..Self::default()
        }
    }

    /// The same over another client, with what searches.
    #[must_use]
    pub fn over(&self, http: Arc<Http>, search: Option<WebSearch>) -> Self {
        Self { http, search, ..self.clone() }
    }

    /// The client that may ask `url`. Names are looked up by it, and lead to public addresses only.
    ///
    /// # Errors
    /// The address is not to be asked.
    pub fn client(&self, url: &Url) -> Result<&Client, Failure> {
        self.http.client_for(url, self.is_named(url))
    }

    fn is_named(&self, url: &Url) -> bool {
        let with_port =
            url.port_or_known_default().map(|port| format!("{}:{port}", url.host_str().unwrap_or_default()));
        self.private_hosts.iter().any(|it| *it == safe_host(url) || Some(it) == with_port.as_ref())
            || url.host_str().is_some_and(|host| self.private_hosts.iter().any(|it| it == host))
    }
}

/// By what settings say: the client is the process's own.
impl PartialEq for WebAccess {
    fn eq(&self, other: &Self) -> bool {
        self.private_hosts == other.private_hosts
    }
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::WebAccess;

    #[test]
    fn private_hosts_are_those_of_the_settings() {
        let web = WebAccess::new(vec!["LocalHost:3000".to_owned(), "wiki.corp".to_owned(), "[::1]:80".to_owned()]);
        for (url, want) in [
            ("http://localhost:3000/x", true),
            ("http://wiki.corp/", true),
            ("http://wiki.corp:8080/", true),
            ("http://[::1]/", true),
            ("http://localhost/", false),
            ("http://localhost:30/", false),
            ("http://127.0.0.1:3000/", false),
            ("http://a.wiki.corp/", false),
        ] {
            assert_eq!(web.is_named(&Url::parse(url).unwrap()), want, "{url}");
        }
        assert!(web.client(&Url::parse("http://127.0.0.1/").unwrap()).is_err());
        assert!(web.client(&Url::parse("file:///etc/passwd").unwrap()).is_err());
    }
}
