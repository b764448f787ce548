//! Network connection settings: proxies and authorities from user settings and environment, never from a project's
//! `.env`.

use std::time::Duration;

use crate::settings::Connection;
use castor_base::path::AbsPath;
use castor_hands::{
    http::{HttpLink, Proxies},
    secrets::Env,
};

/// The word for no proxy at all, whatever the environment says.
const NO_PROXY: &str = "none";
/// More authorities to trust, as Node's programs read it; SSL_CERT_FILE is read where TLS is set up.
const MORE_AUTHORITIES: &str = "NODE_EXTRA_CA_CERTS";

/// Connection settings of the process's own environment.
#[derive(Clone, Debug, Default)]
pub struct ProcessEnvironment {
    proxies: Proxies,
    ca_file: Option<AbsPath>,
    home: Option<AbsPath>,
}

impl ProcessEnvironment {
    /// `env` is that of the process, without what files add.
    pub fn of(env: &Env) -> Self {
        Self {
            proxies: Proxies::from_env(|name| env.get(name)),
            ca_file: env.get(MORE_AUTHORITIES).and_then(AbsPath::new),
            home: env.get("HOME").and_then(AbsPath::new),
        }
    }

    pub fn link(&self, settings: &Connection) -> HttpLink {
        let proxies = match settings.proxy.as_deref() {
            None => self.proxies.clone(),
            Some(NO_PROXY) => Proxies { no_proxy: Some("*".to_owned()), ..Proxies::default() },
            Some(it) => {
                let it = Some(it.to_owned());
                Proxies { http: it.clone(), https: it, no_proxy: self.proxies.no_proxy.clone() }
            }
        };
        let ca_file = settings.ca_file.as_deref().and_then(|it| self.file(it));
        HttpLink {
            proxies,
            ca_files: ca_file.into_iter().chain(self.ca_file.clone()).collect(),
            connect: Duration::from_secs(settings.connect_s),
            idle: Duration::from_secs(settings.idle_s),
        }
    }

    fn file(&self, written: &str) -> Option<AbsPath> {
        AbsPath::written(written, self.home.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::ProcessEnvironment;
    use crate::settings::Connection;
    use castor_hands::secrets::Env;

    #[test]
    fn settings_go_before_the_environment() {
        let env = [
            ("HOME", "/h"),
            ("HTTPS_PROXY", "http://env:1"),
            ("NO_PROXY", "inside"),
            ("NODE_EXTRA_CA_CERTS", "/env.pem"),
        ];
        let outside = ProcessEnvironment::of(&Env::from_pairs(env));
        let check = |proxy: Option<&str>, ca_file: Option<&str>, expected: &str| {
            let own = |it: &str| it.to_owned();
            let settings = Connection { proxy: proxy.map(own), ca_file: ca_file.map(own), connect_s: 3, idle_s: 4 };
            let it = outside.link(&settings);
            let files: Vec<String> = it.ca_files.iter().map(ToString::to_string).collect();
            let proxies = it.proxies;
            let actual = format!("{:?} {:?} {:?} {}", proxies.https, proxies.http, proxies.no_proxy, files.join(" "));
            assert_eq!((actual.as_str(), it.connect.as_secs(), it.idle.as_secs()), (expected, 3, 4));
        };
        check(None, None, r#"Some("http://env:1") None Some("inside") /env.pem"#);
        check(
            Some("http://set:2"),
            Some("~/ca.pem"),
            r#"Some("http://set:2") Some("http://set:2") Some("inside") /h/ca.pem /env.pem"#,
        );
        check(Some("none"), Some("relative.pem"), r#"None None Some("*") /env.pem"#);
    }
}
