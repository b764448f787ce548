//! `castor serve`: its flags, and `castor serve token` to make, list and remove tokens.

use std::{
    ffi::OsString,
    io::{self, Write},
    net::SocketAddr,
    path::PathBuf,
    process::ExitCode,
};

use clap::{Args, Subcommand};

use super::{
    agent_args::{AgentArgs, LimitArgs},
    approval_mode::ApprovalMode,
    exits::{self, EXIT_FAILED, EXIT_INPUT},
};
use crate::serve::{
    ServeLimits,
    server::{self, ServeOptions},
    tokens::{PrincipalRights, TokenFile},
};
use castor_base::path::AbsPath;
use castor_hands::{disk, secrets::Env};
use castor_host::{hub::HubLimits, remote::listener::AllowedNames};
use castor_tools::workspace;

/// How much the server takes on.
#[derive(Args, Clone, Copy, Debug)]
pub struct ServeLimitArgs {
    /// Sockets that are open at once
    #[arg(long, value_name = "N", default_value_t = ServeLimits::default().sockets)]
    pub max_sockets: usize,
    /// Connections of one principal
    #[arg(long, value_name = "N", default_value_t = ServeLimits::default().connections)]
    pub max_connections: usize,
    /// Open sessions of one principal
    #[arg(long, value_name = "N", default_value_t = HubLimits::default().sessions)]
    pub max_sessions: usize,
    /// Requests of one connection without an answer
    #[arg(long, value_name = "N", default_value_t = HubLimits::default().requests)]
    pub max_requests: usize,
}

/// Serves the agent to clients over WebSocket and HTTP.
#[derive(Args, Clone, Debug)]
#[command(after_help = exits::help("serve"), args_conflicts_with_subcommands = true)]
pub struct ServeArgs {
    /// Where to listen; another address than loopback needs TLS
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7331")]
    pub listen: SocketAddr,
    /// Certificates in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Their key in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Let tokens come in the clear, as behind a proxy that does TLS
    #[arg(long)]
    pub insecure: bool,
    /// A name of this server, beside addresses and localhost
    #[arg(long, value_name = "NAME")]
    pub allow_host: Vec<String>,
    /// Pages of this origin may ask the server
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<String>,
    #[command(flatten)]
    pub limits: ServeLimitArgs,
    /// Seconds that a connection waits for its client to come back
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub grace: u64,
    #[command(flatten)]
    pub agent_args: AgentArgs,
    #[command(subcommand)]
    pub verb: Option<ServeVerb>,
}

#[derive(Subcommand, Clone, Debug)]
pub enum ServeVerb {
    /// Make, list and remove tokens
    #[command(subcommand)]
    Token(TokenVerb),
}

#[derive(Subcommand, Clone, Debug)]
pub enum TokenVerb {
    /// Make a token, and print it once
    Add(Box<TokenArgs>),
    /// List the tokens with what they open
    List,
    /// Remove a token: its connections end
    Remove {
        /// The token's name
        name: String,
    },
}

#[derive(Args, Clone, Debug)]
pub struct TokenArgs {
    /// How you will know it
    pub name: String,
    /// Whose it is; without it, it is yours and opens what you may do
    #[arg(long, value_name = "NAME")]
    pub principal: Option<String>,
    /// A folder that the principal works in
    #[arg(long, value_name = "DIR", requires = "principal")]
    pub root: Vec<PathBuf>,
    /// A mode that it may choose; without it: any
    #[arg(long, value_name = "MODE", value_enum, hide_possible_values = true, requires = "principal")]
    pub mode: Vec<ApprovalMode>,
    /// A model that it may use; without it: any
    #[arg(long, value_name = "MODEL", requires = "principal")]
    pub model: Vec<String>,
    /// A variable that its agent gets, such as the key of a model
    #[arg(long, value_name = "NAME", requires = "principal")]
    pub env: Vec<String>,
    #[command(flatten)]
    pub budgets: LimitArgs,
}

/// Serves, or does what its verb says.
pub fn run(args: ServeArgs, env: Env, cwd: AbsPath, out: &mut dyn Write) -> ExitCode {
    let Some(ServeVerb::Token(verb)) = &args.verb else { return serve(args, env, cwd) };
    let Some(home) = workspace::castor_home(&env) else {
        eprintln!("castor: {}", workspace::NO_HOME);
        return ExitCode::from(EXIT_INPUT);
    };
    match manage_tokens(verb, &home, &cwd, out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("castor: {why}");
            ExitCode::from(EXIT_INPUT)
        }
    }
}

fn serve(args: ServeArgs, env: Env, cwd: AbsPath) -> ExitCode {
    if args.agent_args.remote.connect.is_some() {
        eprintln!("castor: --connect is for clients: acp, run and chat");
        return ExitCode::from(EXIT_INPUT);
    }
    let hub =
        HubLimits { sessions: args.limits.max_sessions, requests: args.limits.max_requests, ..HubLimits::default() };
    let limits = ServeLimits {
        sockets: args.limits.max_sockets,
        connections: args.limits.max_connections,
        hub,
        grace_ms: args.grace.saturating_mul(1000),
    };
    let file = |it: &PathBuf| cwd.join(it);
    let options = ServeOptions {
        address: args.listen,
        tls: args.tls_cert.as_ref().zip(args.tls_key.as_ref()).map(|(cert, key)| (file(cert), file(key))),
        insecure: args.insecure,
        names: AllowedNames { hosts: args.allow_host, origins: args.allow_origin },
        limits,
        flags: args.agent_args.to_flags(),
    };
    let code = server::serve(options, env, cwd);
    if code == ExitCode::FAILURE { ExitCode::from(EXIT_FAILED) } else { code }
}

fn manage_tokens(verb: &TokenVerb, home: &AbsPath, cwd: &AbsPath, out: &mut dyn Write) -> Result<(), String> {
    let mut tokens = TokenFile::load(home)?;
    let failed = |it: io::Error| it.to_string();
    match verb {
        TokenVerb::Add(args) => {
            let rights = rights(args, cwd)?;
            let token = tokens.add(&args.name, args.principal.as_deref(), rights)?;
            tokens.save(home)?;
            writeln!(out, "{token}").map_err(failed)
        }
        TokenVerb::List => {
            for it in &tokens.tokens {
                let rights = it.principal.as_ref().and_then(|name| tokens.principals.get(name));
                let whose = match (&it.principal, rights) {
                    (Some(name), Some(rights)) => format!("{name}: {}", in_words(rights)),
                    _ => "yours: all that you may do".to_owned(),
                };
                writeln!(out, "{}  {whose}", it.name).map_err(failed)?;
            }
            Ok(())
        }
        TokenVerb::Remove { name } => match tokens.remove(name) {
            true => tokens.save(home),
            false => Err(format!("there is no token {name}; `castor serve token list` lists them")),
        },
    }
}

fn rights(args: &TokenArgs, cwd: &AbsPath) -> Result<PrincipalRights, String> {
    let mut roots = Vec::new();
    for it in &args.root {
        let root = disk::real_path(&cwd.join(it)).ok().filter(|it| disk::metadata(it).is_ok_and(|it| it.is_dir));
        let root = root.ok_or_else(|| format!("{} is no folder", it.display()))?;
        let text = root.as_path().to_str().ok_or_else(|| format!("the name of {} is no Unicode", it.display()))?;
        roots.push(text.to_owned());
    }
    let budgets = AgentArgs { limits: args.budgets.clone(), ..AgentArgs::default() }.to_flags();
    if args.principal.is_none() && !budgets.is_empty() {
        return Err("budgets are for a principal: --principal NAME".to_owned());
    }
    let text = |it: OsString| it.into_string().unwrap_or_default();
    Ok(PrincipalRights {
        roots,
        modes: args.mode.iter().map(|it| it.mode().flag().to_owned()).collect(),
        models: args.model.clone(),
        budgets: budgets.into_iter().map(text).collect(),
        env: args.env.clone(),
    })
}

fn in_words(rights: &PrincipalRights) -> String {
    let list = |name: &str, them: &[String]| (!them.is_empty()).then(|| format!("{name} {}", them.join(", ")));
    let parts = [
        list("in", &rights.roots),
        list("modes", &rights.modes),
        list("models", &rights.models),
        list("with", &rights.budgets),
        list("variables", &rights.env),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}
