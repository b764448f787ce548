//! Extensions from git: one commit, fetched without hooks, submodules, filters, questions or the user's configuration.

use std::{io, time::Duration};

use tokio::time::timeout;

use super::moved;
use castor_base::path::AbsPath;
use castor_hands::{
    disk,
    process::{CommandEvent, Groups, Spawn, Stdin},
    secrets::Env,
};

/// For all of it.
const PATIENCE: Duration = Duration::from_secs(300);
/// A repository that moves more often is not followed.
const MAX_MOVES: usize = 3;
/// What is kept of git's words.
const MAX_SAID: usize = 8 << 10;

/// Nothing asks, nothing is run but git itself and its transports, and nobody's configuration counts.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("GIT_ALLOW_PROTOCOL", "https:http:ssh:git:file"),
    ("GIT_ASKPASS", ""),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_LFS_SKIP_SMUDGE", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_SSH_COMMAND", "ssh -o BatchMode=yes"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GCM_INTERACTIVE", "never"),
    ("LC_ALL", "C"),
    ("SSH_ASKPASS", ""),
    ("SSH_ASKPASS_REQUIRE", "never"),
];
/// Of the user's variables, those that reach a server.
const KEPT: &[&str] = &[
    "HOME",
    "PATH",
    "SSH_AUTH_SOCK",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "https_proxy",
    "http_proxy",
    "all_proxy",
    "no_proxy",
];
const CONFIG: &[&str] = &[
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "credential.helper=",
    "-c",
    "submodule.recurse=false",
    "-c",
    "fetch.fsckObjects=true",
    "-c",
    "core.autocrlf=false",
    // The user named the address, and not where a server sends us from there.
    "-c",
    "http.followRedirects=false",
];

/// Whether a word is something to clone, and not a folder.
pub fn is_address(word: &str) -> bool {
    let schemes = ["https://", "http://", "ssh://", "git://", "file://"];
    schemes.iter().any(|it| word.starts_with(it)) || word.starts_with("git@") && word.contains(':')
}

/// What was fetched, and where from: the repository may have moved.
pub struct FetchedCommit {
    pub id: String,
    pub url: String,
}

/// Fetches one commit into a new folder, without its `.git`.
///
/// # Errors
/// What git says, and an address or a reference that is none.
pub fn clone(env: &Env, url: &str, reference: Option<&str>, to: &AbsPath) -> Result<FetchedCommit, String> {
    let plain = |it: char| !it.is_control() && !it.is_whitespace();
    if url.starts_with('-') || !url.chars().all(plain) {
        return Err(format!("{url:?} is no address of a git repository"));
    }
    let reference = reference.unwrap_or("HEAD");
    if reference.is_empty()
        || reference.starts_with(['-', '+'])
        || reference.contains(':')
        || !reference.chars().all(plain)
    {
        return Err(format!("{reference:?} is no branch, tag or commit"));
    }
    disk::create_private_dir(to).map_err(|it| it.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|it| it.to_string())?;
    let done = runtime.block_on(async { timeout(PATIENCE, fetch(env, url, reference, to)).await });
    runtime.shutdown_background();
    done.unwrap_or_else(|_| Err(format!("git took longer than {} s", PATIENCE.as_secs())))
}

async fn fetch(env: &Env, url: &str, reference: &str, to: &AbsPath) -> Result<FetchedCommit, String> {
    let git = Git { env: environment(env), folder: to };
    git.run(&["init", "--quiet", "--template=", "."]).await?;
    let (mut url, mut n_moves) = (url.to_owned(), 0);
    while let Err(why) = git.take(&url, reference).await {
        n_moves += 1;
        url = if n_moves > MAX_MOVES { Err(why) } else { moved::new_address(env, &url, why).await }?;
    }
    let found = git.run(&["rev-parse", "--verify", "--quiet", "--end-of-options", "FETCH_HEAD^{commit}"]).await?;
    let commit = match is_commit(reference) && !found.trim().starts_with(reference) {
        true => git.run(&["rev-parse", "--verify", "--quiet", &format!("{reference}^{{commit}}")]).await?,
        false => found,
    };
    let commit = commit.trim().to_owned();
    git.run(&["checkout", "--quiet", "--detach", "--no-recurse-submodules", &commit]).await?;
    disk::remove_tree(&to.join(".git")).map_err(|it| it.to_string())?;
    Ok(FetchedCommit { id: commit, url })
}

/// Whether a reference can be a commit's name, or its beginning.
fn is_commit(reference: &str) -> bool {
    reference.len() >= 7 && reference.chars().all(|it| it.is_ascii_hexdigit())
}

fn environment(env: &Env) -> Vec<(String, String)> {
    let kept = KEPT.iter().filter_map(|name| Some(((*name).to_owned(), env.get(name)?.to_owned())));
    kept.chain(ENVIRONMENT.iter().map(|(name, it)| ((*name).to_owned(), (*it).to_owned()))).collect()
}

struct Git<'a> {
    env: Vec<(String, String)>,
    folder: &'a AbsPath,
}

impl Git<'_> {
    /// Fetches one reference.
    async fn take(&self, url: &str, reference: &str) -> Result<(), String> {
        let one = ["fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", url, reference];
        let Err(why) = self.run(&one).await else { return Ok(()) };
        // Not every server gives out a commit by its name alone.
        if !is_commit(reference) {
            return Err(why);
        }
        let all = "+refs/heads/*:refs/heads/*";
        let all = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--", url, all];
        self.run(&all).await.map(|_| ()).map_err(|_| why)
    }

    /// What it prints; as an error, its last words.
    async fn run(&self, args: &[&str]) -> Result<String, String> {
        let args: Vec<&str> = CONFIG.iter().copied().chain(args.iter().copied()).collect();
        let (cwd, env) = (self.folder, self.env.as_slice());
        let spawn = Spawn { program: "git", args: &args, cwd, env, stdin: Stdin::Null, confined: None };
        let groups = Groups::default();
        let mut child = spawn.start(&groups).map_err(|it| match it.kind() {
            io::ErrorKind::NotFound => "git is not installed".to_owned(),
            _ => format!("git cannot be started: {it}"),
        })?;
        let (mut said, mut code) = (String::new(), None);
        loop {
            match child.next().await {
                CommandEvent::Output(text) => said.push_str(&text),
                CommandEvent::Exited(it) => code = it.code,
                CommandEvent::Closed | CommandEvent::TerminalLost(_) => break,
                CommandEvent::OutputPending => (),
            }
            if said.len() > MAX_SAID {
                said = castor_base::text::tail(&said, MAX_SAID / 2).to_owned();
            }
        }
        match code {
            Some(0) => Ok(said),
            _ => Err(format!("git: {}", said.lines().last().unwrap_or("it failed"))),
        }
    }
}
