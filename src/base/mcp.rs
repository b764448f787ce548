//! MCP server configuration, as clients and settings give it.

use std::fmt;

use crate::{path::AbsPath, sandbox::ProgramSandbox, trust::ScriptHashes};

/// One server, and what is wanted of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServerConfig {
    pub name: String,
    pub link: McpLink,
    /// For connecting, and for each request, in milliseconds.
    pub timeout_ms: u64,
    /// The user said that its tools run without a question.
    pub trust: bool,
    /// The user's settings of its sandbox.
    pub sandbox: ProgramSandbox,
    /// A workspace's settings name it.
    pub of_project: bool,
    /// The scripts of the workspace that it runs.
    pub scripts: ScriptHashes,
    /// `None`: all tools.
    pub include: Option<Vec<String>>,
    /// Wins over `include`.
    pub exclude: Vec<String>,
}

/// The settings of all servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerRules {
    /// The time that a first prompt waits for a server that starts.
    pub start_budget_ms: u64,
    /// The most restarts in a row of a server that is gone.
    pub max_restarts: u32,
    /// One may have a model answer something.
    pub samples: bool,
}

/// The transport of a server.
#[derive(Clone, PartialEq, Eq)]
pub enum McpLink {
    Stdio {
        command: String,
        args: Vec<String>,
        /// Beside the filtered environment of all children.
        env: Vec<(String, String)>,
        /// From the session's folder; `None`: that folder.
        cwd: Option<String>,
    },
    Web {
        url: String,
        headers: Vec<(String, String)>,
        speech: McpTransport,
        /// The settings of a login there.
        oauth: Option<Box<McpOAuth>>,
    },
    /// The client itself: its messages travel in the client's own protocol.
    Client {
        /// The client's name for it.
        server_id: String,
    },
}

/// The settings of a login at a server. castor finds out what they leave out.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct McpOAuth {
    /// castor does not log in there.
    pub is_off: bool,
    /// A workspace says so: the addresses in it are not the user's.
    pub is_of_workspace: bool,
    pub grant: McpGrant,
    /// The name by which the authorization server knows castor; without one castor registers itself.
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    /// The address of a document about the client, for servers that take it as its name.
    pub client_metadata_url: Option<String>,
    pub scopes: Vec<String>,
    pub audiences: Vec<String>,
    pub authorization_url: Option<String>,
    pub token_url: Option<String>,
    pub registration_url: Option<String>,
    /// An address on this machine.
    pub redirect_uri: Option<String>,
}

/// The way of a login at a server.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum McpGrant {
    /// The user does it on a page.
    #[default]
    Page,
    /// castor as itself: by the secret of the settings, or by a statement that it signs with this key.
    Client { key: Option<McpSecret> },
    /// The company's identity provider vouches for the user.
    Company(Box<IdentityProvider>),
    /// The credentials that Google's own tools use on this machine.
    Google,
    /// The same credentials have Google vouch for this service account.
    GoogleAccount { account: String, audience: String },
}

/// A key or a token, as settings give it.
#[derive(Clone, PartialEq, Eq)]
pub enum McpSecret {
    Text(String),
    /// A file of the user's, read each time.
    File(String),
}

/// The provider where a company's users log in.
#[derive(Clone, PartialEq, Eq)]
pub struct IdentityProvider {
    pub issuer: String,
    pub token_url: String,
    /// The name by which the provider knows castor.
    pub client_id: String,
    pub client_secret: Option<String>,
    /// The proof there of the user's identity.
    pub id_token: McpSecret,
}

impl McpGrant {
    /// Tells whether it uses what is the user's: no workspace and no extension may say that.
    pub fn takes_users_credentials(&self) -> bool {
        match self {
            Self::Page | Self::Client { key: None | Some(McpSecret::Text(_)) } => false,
            Self::Client { .. } | Self::Company(_) | Self::Google | Self::GoogleAccount { .. } => true,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpTransport {
    /// Streamable HTTP.
    Http,
    /// The older HTTP with server-sent events.
    Sse,
    /// Streamable HTTP, and the older one where that fails.
    Either,
}

impl McpLink {
    /// `~/` in front of a program, its arguments and its folder is the user's home, as in a shell.
    #[must_use]
    pub fn in_home(self, home: &AbsPath) -> Self {
        match self {
            Self::Stdio { command, args, env, cwd } => Self::Stdio {
                command: home.expand_word(&command),
                args: args.iter().map(|it| home.expand_word(it)).collect(),
                env,
                cwd: cwd.map(|it| home.expand_word(&it)),
            },
            it => it,
        }
    }

    /// The same as a workspace's settings name it.
    #[must_use]
    pub fn of_workspace(mut self) -> Self {
        if let Self::Web { oauth: Some(it), .. } = &mut self {
            it.is_of_workspace = true;
        }
        self
    }

    /// The address and the settings of a server at which castor can log in by itself. One that has a token in its headers
    /// is not one of them.
    pub fn login(&self) -> Option<(&str, McpOAuth)> {
        let Self::Web { url, headers, oauth, .. } = self else { return None };
        let has_token = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        let oauth = oauth.as_deref().cloned().unwrap_or_default();
        (!has_token && !oauth.is_off).then_some((url, oauth))
    }
}

impl McpServerConfig {
    /// The time that Gemini CLI waits for a server, too.
    pub const TIMEOUT_MS: u64 = 600_000;

    pub fn new(name: impl Into<String>, link: McpLink) -> Self {
        Self {
            name: name.into(),
            link,
            timeout_ms: Self::TIMEOUT_MS,
            trust: false,
            sandbox: ProgramSandbox::default(),
            of_project: false,
            scripts: ScriptHashes::new(),
            include: None,
            exclude: Vec::new(),
        }
    }

    /// Tells whether the server's tool of this name is wanted. Entries may have arguments behind the name, `tool(…)`.
    pub fn allows_tool(&self, tool: &str) -> bool {
        let names =
            |entry: &String| entry.strip_prefix(tool).is_some_and(|rest| rest.is_empty() || rest.starts_with('('));
        !self.exclude.iter().any(|it| it == tool) && self.include.as_ref().is_none_or(|it| it.iter().any(names))
    }
}

/// The client's servers, then those of the settings whose names are still free.
pub fn merge_servers(client: Vec<McpServerConfig>, settings: Vec<McpServerConfig>) -> Vec<McpServerConfig> {
    let mut res: Vec<McpServerConfig> = Vec::new();
    for it in client.into_iter().chain(settings) {
        if !res.iter().any(|known| known.name == it.name) {
            res.push(it);
        }
    }
    res
}

/// No more than whether there are some: ids and addresses may hold secrets, too.
impl fmt::Debug for McpOAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (has_id, has_secret) = (self.client_id.is_some(), self.client_secret.is_some());
        f.debug_struct("McpOAuth").field("has_id", &has_id).field("has_secret", &has_secret).finish_non_exhaustive()
    }
}

/// Without values of variables and headers: they are often secrets.
impl fmt::Debug for McpLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |it: &[(String, String)]| it.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        match self {
            Self::Stdio { command, args, env, cwd } => {
                let mut it = f.debug_struct("Stdio");
                it.field("command", command).field("n_args", &args.len()).field("env", &names(env));
                it.field("cwd", cwd).finish()
            }
            Self::Web { url, headers, speech, oauth: _ } => {
                // Paths and queries hold keys, too.
                let host = url.split('/').nth(2).and_then(|it| it.rsplit('@').next()).unwrap_or_default();
                let mut it = f.debug_struct("Web");
                it.field("host", &host).field("headers", &names(headers)).field("speech", speech).finish()
            }
            Self::Client { server_id } => f.debug_struct("Client").field("server_id", server_id).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AbsPath, McpLink, McpServerConfig, McpTransport, merge_servers};

    fn server(name: &str, command: &str) -> McpServerConfig {
        let (command, args, env) = (command.to_owned(), Vec::new(), vec![("A".to_owned(), "canary".to_owned())]);
        McpServerConfig::new(name, McpLink::Stdio { command, args, env, cwd: None })
    }

    #[test]
    fn the_home_stands_in_front_of_words() {
        let home = AbsPath::new("/h").unwrap();
        let args =
            ["~/a", "~", "~other/x", "--root=~/x", "x~/y", "~/dir/", "~/../up", "/abs", "rel"].map(str::to_owned);
        let link =
            McpLink::Stdio { command: "~/bin/x".into(), args: args.into(), env: vec![], cwd: Some("~/w".into()) };
        let McpLink::Stdio { command, args, cwd, .. } = link.in_home(&home) else { panic!() };
        assert_eq!((command.as_str(), cwd.as_deref()), ("/h/bin/x", Some("/h/w")));
        assert_eq!(args, ["/h/a", "~", "~other/x", "--root=~/x", "x~/y", "/h/dir/", "/up", "/abs", "rel"]);
    }

    #[test]
    fn the_clients_server_wins() {
        let all = merge_servers(
            vec![server("a", "1"), server("b", "2"), server("a", "3")],
            vec![server("b", "4"), server("c", "5")],
        );
        let shown: Vec<String> = all.iter().map(|it| format!("{} {:?}", it.name, it.link)).collect();
        let link = |n| format!("Stdio {{ command: \"{n}\", n_args: 0, env: [\"A\"], cwd: None }}");
        assert_eq!(shown, [format!("a {}", link(1)), format!("b {}", link(2)), format!("c {}", link(5))]);
    }

    #[test]
    fn debug_tells_no_secret() {
        let headers = vec![("Authorization".to_owned(), "canary".to_owned())];
        let link = McpLink::Web {
            url: "https://u:canary@h:1/canary?canary".to_owned(),
            headers,
            speech: McpTransport::Sse,
            oauth: None,
        };
        assert_eq!(format!("{link:?}"), "Web { host: \"h:1\", headers: [\"Authorization\"], speech: Sse }");
    }

    #[test]
    fn tools_are_filtered_by_name() {
        for (include, exclude, tool, want) in [
            (None, &[][..], "a", true),
            (None, &["a"][..], "a", false),
            (None, &["a(x)"], "a", true),
            (Some(&["a"][..]), &[], "a", true),
            (Some(&["a(x)"]), &[], "a", true),
            (Some(&["ab"]), &[], "a", false),
            (Some(&["a"]), &[], "ab", false),
            (Some(&[]), &[], "a", false),
            (Some(&["a"]), &["a"], "a", false),
        ] {
            let texts = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
            let config = McpServerConfig { include: include.map(texts), exclude: texts(exclude), ..server("s", "x") };
            assert_eq!(config.allows_tool(tool), want, "{include:?} {exclude:?} {tool}");
        }
    }
}
