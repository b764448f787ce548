//! Connections to Postgres: one for each purpose, made when it is needed and made anew when it broke.
//!
//! Appends have one: what waits for it goes together. Leases have one, since a session that another castor has locked must
//! not hold up an append. Reads have one, since a long one must not hold up a write. Heartbeats and notifications have one,
//! since they must wait behind none of these.

use std::{sync::Arc, time::Duration};

use tokio::sync::mpsc::UnboundedSender;
use tokio_postgres::{
    AsyncMessage, Client, Config, Connection, Statement,
    config::{Host, SslMode},
};

use super::{
    fault::Fault,
    migrations,
    tls::{Tls, TlsSocket},
};

/// For a connection to come about.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// For one exchange with the server.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(8);

/// What is needed for a connection.
pub struct Target {
    config: Config,
    tls: Tls,
}

impl Target {
    /// # Errors
    /// What is wrong with the address, without a word of it: it may hold a password.
    pub fn new(url: &str, password: Option<&str>) -> Result<Self, Fault> {
        let (url, ca_file) = split_options(url)?;
        let mut config: Config =
            url.parse().map_err(|_| Fault::Refused("has an address that cannot be understood".to_owned()))?;
        if config.get_password().is_none()
            && let Some(it) = password
        {
            config.password(it);
        }
        // What is tried first and then done without protects nobody.
        if config.get_ssl_mode() == SslMode::Prefer {
            let is_near = config.get_hosts().iter().all(is_near);
            config.ssl_mode(if is_near { SslMode::Disable } else { SslMode::Require });
        }
        if config.get_application_name().is_none() {
            config.application_name("castor");
        }
        config.connect_timeout(CONNECT_LIMIT).keepalives_idle(Duration::from_secs(10));
        #[cfg(target_os = "linux")]
        config.tcp_user_timeout(ANSWER_LIMIT);
        Ok(Self { config, tls: Tls::new(ca_file.as_deref())? })
    }

    /// A connection to tables of this castor's version. `news`: where its notifications go.
    pub async fn connect(&self, news: Option<UnboundedSender<String>>) -> Result<Client, Fault> {
        let silent = || Fault::Passing("does not answer".to_owned());
        let made = tokio::time::timeout(CONNECT_LIMIT, self.config.connect(self.tls.clone()));
        let (mut client, connection) = made.await.map_err(|_| silent())??;
        tokio::spawn(drive(connection, news));
        tokio::time::timeout(ANSWER_LIMIT, migrations::migrate(&mut client)).await.map_err(|_| silent())??;
        Ok(client)
    }
}

/// Tells whether nobody listens between us and the server.
fn is_near(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|it: std::net::IpAddr| it.is_loopback()),
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

/// The address without what the driver does not know: the file of certificates, and the modes that verify them, as
/// `require` does here.
fn split_options(url: &str) -> Result<(String, Option<String>), Fault> {
    let Some((base, query)) = url.split_once('?') else { return Ok((url.to_owned(), None)) };
    let (mut kept, mut ca_file) = (Vec::new(), None);
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match (&*name, &*value) {
            ("sslrootcert", file) => ca_file = Some(file.to_owned()),
            ("sslmode", "verify-ca" | "verify-full") => kept.push("sslmode=require".to_owned()),
            _ => {
                let value: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
                kept.push(format!("{name}={}", value.replace('+', "%20")));
            }
        }
    }
    let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
    Ok((format!("{base}{query}"), ca_file))
}

/// Moves the bytes of a connection until it ends.
async fn drive(mut connection: Connection<tokio_postgres::Socket, TlsSocket>, news: Option<UnboundedSender<String>>) {
    loop {
        match std::future::poll_fn(|it| connection.poll_message(it)).await {
            Some(Ok(AsyncMessage::Notification(it))) => {
                if let Some(news) = &news {
                    _ = news.send(it.payload().to_owned());
                }
            }
            Some(Ok(_)) => (),
            Some(Err(it)) => return tracing::debug!("a connection to the session store ended: {it}"),
            None => return,
        }
    }
}

/// A connection that is made when it is needed.
#[derive(Default)]
pub struct Link {
    client: Option<Arc<Client>>,
    /// The statement that is sent most, as the server knows it.
    prepared: Option<Statement>,
}

impl Link {
    pub async fn client(&mut self, target: &Target) -> Result<Arc<Client>, Fault> {
        if let Some(it) = self.client.as_ref().filter(|it| !it.is_closed()) {
            return Ok(it.clone());
        }
        self.drop_client();
        let client = Arc::new(target.connect(None).await?);
        self.client = Some(client.clone());
        Ok(client)
    }

    /// The same with a statement, which is always this one.
    pub async fn prepared(&mut self, target: &Target, sql: &str) -> Result<(Arc<Client>, Statement), Fault> {
        let client = self.client(target).await?;
        if self.prepared.is_none() {
            self.prepared = Some(client.prepare(sql).await?);
        }
        let statement = self.prepared.clone().ok_or_else(|| Fault::Passing("has no statement".to_owned()))?;
        Ok((client, statement))
    }

    /// The same for a transaction.
    pub async fn exclusive(&mut self, target: &Target) -> Result<&mut Client, Fault> {
        self.client(target).await?;
        self.client.as_mut().and_then(Arc::get_mut).ok_or_else(|| Fault::Passing("is in use".to_owned()))
    }

    /// Nobody knows in what state it is.
    pub fn drop_client(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::{Target, is_near, split_options};

    #[test]
    fn addresses_are_near_or_encrypted() {
        let of = |url: &str| Target::new(url, None).map(|it| (it.config.get_ssl_mode(), it.config.get_hosts().len()));
        use tokio_postgres::config::SslMode::{Disable, Require};
        let cases = [
            ("postgres://u@localhost/d", Disable),
            ("postgres://u@127.0.0.1:5433/d", Disable),
            ("postgres://u@%2Frun%2Fpg/d", Disable),
            ("postgres://u:p@db.example/d", Require),
            ("postgres://u:p@db.example/d?sslmode=disable", Disable),
            ("postgres://u:p@localhost/d?sslmode=verify-full", Require),
        ];
        for (url, mode) in cases {
            assert_eq!(of(url).unwrap().0, mode, "{url}");
        }
        assert_eq!(of("postgres://u@a,localhost/d").unwrap(), (Require, 2), "one of them is far");
        assert!(is_near(&tokio_postgres::config::Host::Tcp("::1".to_owned())));
    }

    #[test]
    fn an_error_says_nothing_of_the_address() {
        for url in ["postgres://u:secret@h:port/d", "postgres://u:secret@h/d?secret=1"] {
            let why = Target::new(url, None).err().unwrap().to_string();
            assert_eq!(why, "has an address that cannot be understood");
        }
        let (url, file) = split_options("postgres://h/d?sslrootcert=/a%20b&options=-c%20x").unwrap();
        assert_eq!((url.as_str(), file.as_deref()), ("postgres://h/d?options=-c%20x", Some("/a b")));
    }
}
