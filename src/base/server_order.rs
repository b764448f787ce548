//! Orders of the user about MCP servers: to log in or out, to switch, test, add or remove one.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOrder {
    pub verb: ServerVerb,
    /// As the configuration names it; of `add` and `remove` all that is typed behind the verb. Empty: all, for a test.
    pub server: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerVerb {
    Login,
    Logout,
    Enable,
    Disable,
    Test,
    Add,
    Remove,
}

impl ServerVerb {
    pub const ALL: [(&'static str, Self); 7] = [
        ("login", Self::Login),
        ("logout", Self::Logout),
        ("enable", Self::Enable),
        ("disable", Self::Disable),
        ("test", Self::Test),
        ("add", Self::Add),
        ("remove", Self::Remove),
    ];

    /// Tells whether something comes of it without a word behind it.
    fn stands_alone(self) -> bool {
        matches!(self, Self::Test | Self::Add | Self::Remove)
    }
}

/// What is typed behind `/mcp`, where it is such an order.
pub fn parse(args: &str) -> Option<ServerOrder> {
    let (verb, rest) = args.split_once(char::is_whitespace).unwrap_or((args, ""));
    let (_, verb) = ServerVerb::ALL.into_iter().find(|(it, _)| *it == verb)?;
    let server = rest.trim().to_owned();
    (verb.stands_alone() || !server.is_empty()).then_some(ServerOrder { verb, server })
}

/// How a user logs in at a server that wants it.
pub fn login_hint(server: &str) -> String {
    // Quoted for the shell; the session takes the name as it is.
    let plain = server.chars().all(|it| it.is_ascii_alphanumeric() || "-_.".contains(it));
    let word = if plain { server.to_owned() } else { format!("'{}'", server.replace('\'', "'\\''")) };
    format!("it needs a login: type `/mcp login {server}`, or run `castor mcp login {word}`")
}

#[cfg(test)]
mod tests {
    use super::{ServerOrder, ServerVerb, login_hint, parse};

    #[test]
    fn orders_name_a_server_or_say_all_of_it() {
        let order = |verb, server: &str| Some(ServerOrder { verb, server: server.to_owned() });
        assert_eq!(parse("login  my server "), order(ServerVerb::Login, "my server"));
        assert_eq!(parse("disable x"), order(ServerVerb::Disable, "x"));
        assert_eq!(parse("add -s user x y"), order(ServerVerb::Add, "-s user x y"));
        assert_eq!((parse("test"), parse("remove ")), (order(ServerVerb::Test, ""), order(ServerVerb::Remove, "")));
        for other in ["", "login", "login ", "desc x", "loginx y"] {
            assert_eq!(parse(other), None, "{other}");
        }
        assert!(login_hint("a b").ends_with("`castor mcp login 'a b'`") && login_hint("a").ends_with("login a`"));
    }
}
