//! `castor exec` and `castor shell`: a person's own programs in the sandbox of commands.

use std::{ffi::OsString, io, path::Path, thread};

use clap::Args;

use super::exits::{EXIT_FAILED, EXIT_INPUT};
use castor_agent::{
    model::connection::ProcessEnvironment,
    session::{
        confinement::{self, SandboxPlace},
        place::load_ground,
    },
    settings::{Settings, options::Options},
};
use castor_base::{
    checkpoint::Scope,
    ids::CheckpointId,
    network::HostGrant,
    path::AbsPath,
    sandbox::{Denial, SandboxGrant, in_a_row},
};
use castor_hands::{
    checkpoints::{Checkpoints, Limits},
    disk, door,
    process::{
        Spawn, Stdin, foreground,
        sandbox::{self, denial::recorded_denial},
        surroundings,
    },
    provenance::Provenance,
    secrets::{Env, name_looks_secret, value_looks_secret},
};
use castor_tools::workspace::{self, castor_home, memory};

/// As shells and `env` have it.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;

#[derive(Args, Clone, Debug)]
pub struct ExecArgs {
    /// With network: without it, as security.sandbox.network says
    #[arg(long)]
    pub network: bool,
    /// The program and its arguments, as they are
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "LINE")]
    pub line: Vec<OsString>,
}

#[derive(Args, Clone, Debug)]
pub struct ShellArgs {
    /// With network: without it, as security.sandbox.network says
    #[arg(long)]
    pub network: bool,
}

/// Your shell, as `$SHELL` names it.
pub fn shell(args: &ShellArgs, env: &Env, cwd: &AbsPath) -> u8 {
    let shell = env.get("SHELL").filter(|it| Path::new(it).is_absolute()).unwrap_or("bash");
    run(&[shell], args.network, env, cwd)
}

pub fn exec(args: &ExecArgs, env: &Env, cwd: &AbsPath) -> u8 {
    let line: Option<Vec<&str>> = args.line.iter().map(|it| it.to_str()).collect();
    match line {
        Some(it) => run(&it, args.network, env, cwd),
        None => {
            eprintln!("castor exec: an argument is no UTF-8");
            EXIT_INPUT
        }
    }
}

/// Runs it to its end, with this process's streams and terminal. What to exit with.
fn run(argv: &[&str], network: bool, env: &Env, cwd: &AbsPath) -> u8 {
    if surroundings::is_inside() {
        return failed_start(argv, &foreground::become_program(argv, cwd));
    }
    // What this system can confine with is tried while the settings are read.
    let trial = thread::spawn(sandbox::has_mounts);
    let (folder, castor) = match (folder_of(cwd, env), castor_home(env)) {
        (folder, Some(castor)) => (folder, castor),
        (_, None) => {
            eprintln!("castor: {}", workspace::NO_HOME);
            return EXIT_FAILED;
        }
    };
    let (ground, settings) = load_ground(&Options::default(), env, &folder);
    let tmp = castor.join("tmp").join(format!("exec-{}", uuid::Uuid::now_v7().simple())).join("tmp");
    let place = SandboxPlace { env, home: &castor, tmp };
    door::set_proxies(&ProcessEnvironment::of(env).link(&settings.models.connection).proxies);
    let harmless = confinement::is_harmless(&ground);
    let roots = [folder];
    let Some(confined) = confinement::for_session(&place, harmless, &roots, &settings) else {
        eprintln!("castor: nothing was run: {}", absence(&settings));
        return EXIT_FAILED;
    };
    let grant = SandboxGrant { network, ..SandboxGrant::default() };
    let confined = confined.with_grant(&grant).unwrap_or(confined);
    let env = env_for(env, &settings);
    let Some((program, args)) = argv.split_first() else { return EXIT_INPUT };
    // Signals are heard by this thread alone.
    _ = trial.join();
    let spawn = Spawn { program, args, cwd, env: &env, stdin: Stdin::Inherited, confined: Some(&confined) };
    let unseen = UnseenCode::near(&castor, &roots);
    let end = foreground::run_confined(&spawn);
    drop(unseen);
    match end {
        Ok(end) => {
            if let Some(it) = end.findings.in_words("this program") {
                eprintln!("castor: {it}");
            }
            let wanted = end.network.wanted();
            if !wanted.is_empty() {
                eprintln!("castor: {}", refused_in_words(&wanted));
            }
            if let Some(it) = recorded_denial(&confined, &end.refusals, "") {
                eprintln!("castor: {}", denied_in_words(&it));
            }
            end.exit_code()
        }
        Err(why) => failed_start(argv, &why),
    }
}

/// A run beside code that an agent wrote and nobody looked at: what it leaves counts as an agent's, too.
struct UnseenCode {
    checkpoints: Checkpoints,
    run: CheckpointId,
}

impl UnseenCode {
    fn near(castor: &AbsPath, [folder]: &[AbsPath; 1]) -> Option<Self> {
        let roots = Provenance::new(castor, std::slice::from_ref(folder)).roots_with_unseen(folder);
        let session = format!("exec-{}", uuid::Uuid::now_v7()).as_str().into();
        let checkpoints = Checkpoints::new(castor, &session, &roots, Limits::default());
        let run: CheckpointId = "exec".into();
        if roots.is_empty() {
            return None;
        }
        match checkpoints.before(&run, &Scope::Roots, &|| false) {
            Ok(_) => Some(Self { checkpoints, run }),
            Err(why) => {
                eprintln!("castor: what this program leaves counts as yours, for castor keeps no record of it: {why}");
                None
            }
        }
    }
}

impl Drop for UnseenCode {
    fn drop(&mut self) {
        if let Err(why) = self.checkpoints.after(&self.run) {
            eprintln!("castor: there is no record of what this program left: {why}");
        }
        self.checkpoints.close();
    }
}

/// Nobody can be asked: the program has ended.
fn refused_in_words(wanted: &[HostGrant]) -> String {
    let named = serde_json::json!(wanted.iter().map(ToString::to_string).collect::<Vec<_>>());
    format!("the sandbox refused {}; security.network.allow = {named} in your settings allows that", in_a_row(wanted))
}

/// What else the sandbox kept it from, by its record, where the program or a child of it failed.
fn denied_in_words(denial: &Denial) -> String {
    let way = match denial {
        Denial::Network => " castor exec --network allows that for once.".to_owned(),
        Denial::Write { folder } => {
            format!(" security.sandbox.writable = [{:?}] in your settings allows that.", folder.to_string())
        }
        _ => String::new(),
    };
    denial.in_words() + &way
}

fn failed_start(argv: &[&str], why: &io::Error) -> u8 {
    let program = argv.first().copied().unwrap_or_default();
    match why.kind() {
        io::ErrorKind::NotFound => {
            eprintln!("castor: {program}: there is no such program");
            NOT_FOUND
        }
        io::ErrorKind::PermissionDenied => {
            eprintln!("castor: {program}: {why}");
            NOT_STARTED
        }
        _ => {
            eprintln!("castor: nothing was run: {why}");
            EXIT_FAILED
        }
    }
}

/// The repository around the folder, as its tools know it; the folder itself where there is none, or the home is one.
fn folder_of(cwd: &AbsPath, env: &Env) -> AbsPath {
    let real = disk::real_path(cwd).unwrap_or_else(|_| cwd.clone());
    let home = env.get("HOME").and_then(AbsPath::new).and_then(|it| disk::real_path(&it).ok());
    let repository = memory::project(&real);
    let is_wide = home.is_some_and(|home| home.is_within(&repository)) || repository.parent().is_none();
    if is_wide { real } else { repository }
}

/// Why there is no sandbox.
fn absence(settings: &Settings) -> String {
    match settings.children.sandbox.level {
        Some(_) => "the sandbox is off in your settings (security.sandbox.level)".to_owned(),
        None => {
            "this system has nothing to confine programs with; `castor doctor --all` says what is missing".to_owned()
        }
    }
}

/// All that the person's shell has but for secrets: what runs may be what an agent wrote.
fn env_for(env: &Env, settings: &Settings) -> Vec<(String, String)> {
    let children = &settings.children;
    let base = env.child_env(&children.allowed, &children.blocked);
    let is_plain = |name: &str, value: &str| !name_looks_secret(name) && !value_looks_secret(value);
    let is_blocked = |name: &str| children.blocked.iter().any(|it| it.eq_ignore_ascii_case(name));
    let more = env.all().filter(|(name, value)| is_plain(name, value) && !is_blocked(name));
    more.chain(base).collect()
}
