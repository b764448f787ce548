//! Orders of the user about one MCP server: to log in or out, to switch it for a session.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOrder {
    pub verb: ServerVerb,
    /// As the configuration names it.
    pub server: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerVerb {
    Login,
    Logout,
    Enable,
    Disable,
}

impl ServerVerb {
    pub const ALL: [(&'static str, Self); 4] =
        [("login", Self::Login), ("logout", Self::Logout), ("enable", Self::Enable), ("disable", Self::Disable)];
}

/// What is typed behind `/mcp`, where it is such an order.
pub fn parse(args: &str) -> Option<ServerOrder> {
    let (verb, name) = args.split_once(char::is_whitespace)?;
    let (_, verb) = ServerVerb::ALL.into_iter().find(|(it, _)| *it == verb)?;
    let server = name.trim().to_owned();
    (!server.is_empty()).then_some(ServerOrder { verb, server })
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
    fn orders_name_a_server() {
        let order = |verb, server: &str| Some(ServerOrder { verb, server: server.to_owned() });
        assert_eq!(parse("login  my server "), order(ServerVerb::Login, "my server"));
        assert_eq!(parse("disable x"), order(ServerVerb::Disable, "x"));
        for other in ["", "login", "login ", "desc x", "loginx y"] {
            assert_eq!(parse(other), None, "{other}");
        }
        assert!(login_hint("a b").ends_with("`castor mcp login 'a b'`") && login_hint("a").ends_with("login a`"));
    }
}
