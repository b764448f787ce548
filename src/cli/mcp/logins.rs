//! `castor mcp login` and `logout`.

use std::{
    io::{self, Write},
    sync::Arc,
};

use super::browser;
use crate::cli::{
    exits::{EXIT_AUTH, EXIT_FAILED, EXIT_INPUT},
    terminal_text::escape_line,
};
use castor_agent::{model::connection::ProcessEnvironment, session::place::load_ground, settings::options::Options};
use castor_base::{mcp::McpLink, path::AbsPath};
use castor_hands::{http::Http, secrets::Env};
use castor_tools::{
    mcp::auth::{self, LoginTarget},
    workspace::{NO_HOME, castor_home},
};

type Place<'a> = (&'a Env, &'a AbsPath);

pub fn log_in(name: &str, opens: bool, place: Place<'_>, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let target = match target(name, place) {
        Ok(it) => it,
        Err(why) => return writeln!(err, "castor: {}", escape_line(&why)).map(|()| EXIT_INPUT),
    };
    let (env, cwd) = place;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut shown = Ok(());
    let show = async |url: String| {
        let words = "Open this page to log in; castor waits for you to come back:";
        shown = writeln!(out, "{words}\n\n{}\n", escape_line(&url)).and_then(|()| out.flush());
        if opens {
            browser::open(&url, env, cwd);
        }
    };
    let ended = runtime.block_on(auth::log_in(&target, show));
    runtime.shutdown_background();
    shown?;
    match ended {
        Ok(()) => writeln!(out, "You are logged in at {}.", escape_line(name)).map(|()| 0),
        Err(why) => writeln!(err, "castor: the login failed: {}", escape_line(&why.to_string())).map(|()| EXIT_AUTH),
    }
}

pub fn log_out(name: &str, place: Place<'_>, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let target = match target(name, place) {
        Ok(it) => it,
        Err(why) => return writeln!(err, "castor: {}", escape_line(&why)).map(|()| EXIT_INPUT),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(auth::log_out(&target));
    runtime.shutdown_background();
    match ended {
        Ok(it) => writeln!(out, "{}.", escape_line(it.in_words().trim_end_matches('.'))).map(|()| 0),
        Err(why) => writeln!(err, "castor: {}", escape_line(&why.to_string())).map(|()| EXIT_FAILED),
    }
}

/// A server of the settings that count here.
///
/// # Errors
/// Why castor cannot log in there.
fn target(name: &str, (env, cwd): Place<'_>) -> Result<LoginTarget, String> {
    let (ground, settings) = load_ground(&Options::default(), env, cwd);
    let home = castor_home(&ground.env).ok_or(NO_HOME)?;
    let Some(server) = settings.mcp.servers.iter().find(|it| it.name == name) else {
        let off = settings.mcp.off.iter().find(|it| it.0 == name);
        return Err(match off {
            Some((_, why)) => format!("MCP server {name:?} is off: {why}"),
            None => format!("the settings have no MCP server {name:?}; `castor mcp` lists them"),
        });
    };
    if let McpLink::Stdio { .. } = server.link {
        return Err(format!("MCP server {name:?} is a program, which has logins of its own"));
    }
    let Some((url, oauth)) = server.link.login() else {
        return Err(format!(
            "MCP server {name:?} needs no login: its settings have a token in `headers`, or `oauth.enabled` is false"
        ));
    };
    let http = Arc::new(Http::new(ProcessEnvironment::of(env).link(&settings.models.connection)));
    Ok(LoginTarget { url: url.to_owned(), oauth, home, http, env: env.clone() })
}
