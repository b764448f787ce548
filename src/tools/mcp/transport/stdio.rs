//! The stdio transport of MCP: a child process with JSON lines on stdin and stdout.

use std::{io, time::Duration};

use tokio::time::sleep;

use crate::mcp::{
    ServerIdentity,
    client::{Listener, OpenConnection},
    error::StartError,
    transport::{line_limit::LineOverflow, line_transport::LineTransport},
};
use castor_base::{mcp::McpLink, path::AbsPath, sandbox::Confinement};
use castor_hands::{
    disk,
    process::{Groups, PipedProcess, Spawn, Stdin, reach, server_process::ServerProcess},
    secrets::{name_looks_secret, value_looks_secret},
};

/// The answer to session/new goes first: many starting processes take all cores.
const HEAD_START: Duration = Duration::from_millis(10);

/// Shorter ones are too likely to be a part of something else.
const MIN_SECRET: usize = 6;

pub(in crate::mcp) async fn open(
    launch: &ServerIdentity,
    groups: &Groups,
    listener: Listener,
) -> Result<OpenConnection, StartError> {
    let McpLink::Stdio { command, args, env, cwd } = &launch.link else {
        return Err(StartError::Broken("it is no process"));
    };
    sleep(HEAD_START).await;
    let scripts = launch.scripts.clone();
    let changed = tokio::task::spawn_blocking(move || disk::changed_file(&scripts)).await;
    if let Some(why) = changed.unwrap_or_else(|it| Some(it.to_string())) {
        return Err(StartError::Refused(why));
    }
    let cwd = cwd.as_ref().map_or_else(|| launch.cwd.clone(), |it| launch.cwd.join(it));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let refusal = match &launch.gate {
        Some(it) => it.refusal().await,
        None => None,
    };
    let is_outside = launch.gate.is_some() && refusal.is_none();
    let confined = launch.confined.as_deref().filter(|_| !is_outside);
    if confined.is_none() {
        reach::make_away(&cwd);
    }
    let caches = confined.map(caches).unwrap_or_default();
    let env: Vec<(String, String)> = launch.env.iter().chain(&caches).chain(env).cloned().collect();
    let secrets = secrets(&env, &own_paths(&cwd, confined));
    let spawn = Spawn { program: command, args: &args, cwd: &cwd, env: &env, stdin: Stdin::Piped, confined };
    let absent = |why: io::Error| StartError::Absent { command: command.clone(), why: absence(&why, &cwd) };
    let PipedProcess { life, stdin, stdout, stderr } = spawn.start_piped(groups).map_err(absent)?;
    let process = ServerProcess::new(life, stderr, secrets);
    let overflow = LineOverflow::default();
    let transport = LineTransport::new(stdout, stdin, overflow.clone());
    let (trace, asking) = (process.trace(), listener.asking.clone());
    let open = match OpenConnection::handshake(transport, listener, Some(process)).await {
        Err(StartError::Gone(why)) => {
            asking.report_lack(confined.and_then(|it| trace.take_lack(it, Some(&why)))).await;
            return Err(StartError::Gone(why));
        }
        it => it?,
    };
    Ok(OpenConnection { overflow, is_outside, refusal, ..open })
}

/// Why a program did not start, in a person's words.
fn absence(why: &io::Error, cwd: &AbsPath) -> String {
    match why.kind() {
        io::ErrorKind::NotFound if disk::real_path(cwd).is_err() => format!("the folder {cwd} is not there"),
        io::ErrorKind::NotFound => "there is no such program".to_owned(),
        _ => why.to_string(),
    }
}

/// Paths that castor itself gave the server: no part of them is a secret, such as the session's id.
fn own_paths(cwd: &AbsPath, confined: Option<&Confinement>) -> Vec<String> {
    confined.map(|it| it.own_folders.tmp.to_string()).into_iter().chain([cwd.to_string()]).collect()
}

/// What is starred out of its log. A path with stars in it could not be opened.
fn secrets(env: &[(String, String)], own_paths: &[String]) -> Vec<String> {
    let is_secret = |(name, value): &&(String, String)| name_looks_secret(name) || value_looks_secret(value);
    let is_own = |it: &String| own_paths.iter().any(|path| path.contains(it.as_str()));
    let values = env.iter().filter(is_secret).map(|(_, it)| it);
    values.filter(|it| it.len() >= MIN_SECRET && !is_own(it)).cloned().collect()
}

/// Programs that fetch servers keep them below the home folder, which a confined one cannot write.
fn caches(it: &Confinement) -> Vec<(String, String)> {
    let below = |name: &str| it.own_folders.tmp.join(name).to_string();
    vec![("XDG_CACHE_HOME".to_owned(), below("cache")), ("npm_config_cache".to_owned(), below("npm"))]
}

#[cfg(test)]
mod tests {
    use super::secrets;

    #[test]
    fn paths_of_castors_own_are_not_starred_out() {
        let env = [("MY_TOKEN", "canary-canary"), ("A_SESSION_KEY", "0190-abcd"), ("HOME", "/home/u"), ("KEY", "abc")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(secrets(&env, &["/h/.castor/scratch/0190-abcd/tmp".to_owned()]), ["canary-canary"]);
    }
}
