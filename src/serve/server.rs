//! `castor serve`: the composition root, where listener, loop and signals are wired.

use std::{net::SocketAddr, process::ExitCode};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

use super::{
    ServeLimits,
    principal::AgentGround,
    serve_loop::{ServeInbox, ServeLoop},
    tokens::{self, TokenFile},
};
use castor_agent::{settings, telemetry};
use castor_base::path::AbsPath;
use castor_hands::{process::raise_file_limit, secrets::Env};
use castor_host::remote::{
    AHP_PATH, ListenerQueues,
    listener::{AllowedNames, HttpListener, ListenerSettings},
};
use castor_tools::workspace;

/// What came over the network and waits for the loop.
const ARRIVALS: usize = 256;

/// Of the files that this process may open, those that no socket takes: agents, tokens and logs need them.
const OTHER_FILES: u64 = 256;

/// What the command line says.
pub struct ServeOptions {
    pub address: SocketAddr,
    pub tls: Option<(AbsPath, AbsPath)>,
    /// Plain HTTP on an address that others reach.
    pub insecure: bool,
    pub names: AllowedNames,
    pub limits: ServeLimits,
    /// For the agents.
    pub flags: Vec<std::ffi::OsString>,
}

/// Serves until a signal comes.
pub fn serve(options: ServeOptions, env: Env, cwd: AbsPath) -> ExitCode {
    // Spans are those of the agents; this one has a log.
    let _exporter = telemetry::start(&env, &settings::telemetry(&env));
    match try_serve(options, env, cwd) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("castor: cannot serve: {why}");
            ExitCode::FAILURE
        }
    }
}

fn try_serve(options: ServeOptions, env: Env, cwd: AbsPath) -> Result<(), String> {
    let ServeOptions { address, tls, insecure, names, limits, flags } = options;
    if !address.ip().is_loopback() && tls.is_none() && !insecure {
        return Err(format!(
            "{address} is reached from other machines, and tokens would go there in the clear: \
             give --tls-cert and --tls-key, or --insecure behind a proxy that does TLS"
        ));
    }
    let home = workspace::castor_home(&env).ok_or_else(|| workspace::NO_HOME.to_owned())?;
    let tokens = TokenFile::load(&home)?;
    let has_tokens = !tokens.tokens.is_empty();
    let program = own_program()?;
    let (scheme, web_scheme) = if tls.is_some() { ("https", "wss") } else { ("http", "ws") };
    let settings = ListenerSettings { address, tls, names, max_sockets: max_sockets(limits.sockets) };
    let ground = AgentGround { env, home: home.clone(), cwd, program, flags };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|it| it.to_string())?;
    runtime.block_on(async move {
        let listener = HttpListener::bind(settings).await.map_err(|it| it.to_string())?;
        let address = listener.address().map_err(|it| it.to_string())?;
        let end = listen_signals().map_err(|it| format!("signals cannot be heard: {it}"))?;
        let (arrivals_tx, arrivals) = mpsc::channel(ARRIVALS);
        let (news_tx, news) = mpsc::unbounded_channel();
        let (serve_loop, agents, machine) = ServeLoop::new(ground, tokens, limits);
        // At once: whoever reads one line may be gone after it.
        let places = format!(
            "castor serves ACP at {scheme}://{address}/acp\ncastor serves AHP at {web_scheme}://{address}{AHP_PATH}\n"
        );
        print!("{places}");
        if !has_tokens {
            eprintln!("castor: nobody has a token yet: `castor serve token add NAME` ({})", tokens::file(&home));
        }
        let accepting = tokio::spawn(listener.run(ListenerQueues { arrivals: arrivals_tx, news: news_tx }));
        serve_loop.run(ServeInbox { arrivals, news, agents, machine, end }).await;
        accepting.abort();
        Ok(())
    })
}

/// A client that opens sockets without end must leave files to all others.
fn max_sockets(wanted: usize) -> usize {
    let files = raise_file_limit();
    let free = files.saturating_sub(OTHER_FILES).max(files / 2);
    let res = wanted.min(usize::try_from(free).unwrap_or(usize::MAX));
    if res < wanted {
        eprintln!("castor: {res} sockets at most: the system lets castor open {files} files (ulimit -n)");
    }
    res
}

/// This very binary, also when an update replaced its file, and where a sandbox hides its folder.
fn own_program() -> Result<String, String> {
    if cfg!(target_os = "linux") {
        return Ok("/proc/self/exe".to_owned());
    }
    let program = std::env::current_exe().map_err(|it| format!("castor's own program: {it}"))?;
    program.into_os_string().into_string().map_err(|_| "the path of castor's own program is no Unicode".to_owned())
}

fn listen_signals() -> std::io::Result<mpsc::Receiver<()>> {
    let (to, end) = mpsc::channel(1);
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()] {
        let (mut heard, to) = (signal(kind)?, to.clone());
        tokio::spawn(async move {
            heard.recv().await;
            _ = to.send(()).await;
        });
    }
    Ok(end)
}
