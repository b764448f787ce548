//! Sandbox confinement of a session: from settings, trust and the system's abilities.

use super::host::SessionHost;
use crate::settings::{SandboxSettings, Settings};
use castor_base::{
    guarded_names,
    ids::SessionId,
    log::Grant,
    network::Reach,
    path::AbsPath,
    sandbox::{
        Confinement, OpenSecret, OwnFolders, ProgramSandbox, ProtectedPaths, SandboxGrant, SandboxLevel, SandboxState,
    },
    text,
    trust::Trust,
};
use castor_engine::policy;
use castor_hands::{
    disk,
    process::{reach::ProgramLine, sandbox, surroundings},
    secrets::Env,
};
use castor_tools::workspace::{self, folder_config::FolderConfig, saved};

/// How commands would be held in a folder.
pub fn sandbox_state(ground: &FolderConfig, settings: &Settings) -> SandboxState {
    let (wished, trusted, available) = (&settings.children.sandbox, is_harmless(ground), sandbox::is_available());
    SandboxState { level: sandbox_level(wished, trusted, available), network: wished.network, available, trusted }
}

/// The same for policy: what holds commands, and whether what they change can be taken back.
pub fn policy_sandbox(hold: SandboxState, ground: &FolderConfig, settings: &Settings) -> policy::SandboxFacts {
    let available = hold.available && hold.level != SandboxLevel::Off;
    policy::SandboxFacts {
        available,
        // To find out starts a process: not where there is something that nobody trusts yet.
        mounts: available && is_harmless(ground) && sandbox::has_mounts(),
        trusted: ground.trust.is_trusted(),
        plain_repository: has_plain_repository(ground),
        undoable: settings.children.checkpoints,
        exposed: false,
    }
}

/// Tells whether git starts no program of the folder, before the user's trust decision.
pub fn has_plain_repository(ground: &FolderConfig) -> bool {
    let git = || sandbox::repository::around(&ground.folder);
    is_harmless(ground) && git().is_none_or(|it| sandbox::is_plain(it.as_path()))
}

/// What the mode `auto` lacks in a trusted folder.
pub fn lacks_for_auto(settings: &Settings) -> Option<&'static str> {
    let available =
        sandbox::is_available() && sandbox_level(&settings.children.sandbox, true, true) != SandboxLevel::Off;
    let mounts = available && sandbox::has_mounts();
    let undoable = settings.children.checkpoints;
    policy::check_auto_available(policy::SandboxFacts { available, mounts, undoable, ..policy::SandboxFacts::WHOLE })
        .err()
}

/// Tells whether commands may write in the folder: it is trusted, or it is not distrusted and holds no configuration.
pub fn is_harmless(ground: &FolderConfig) -> bool {
    ground.trust.is_trusted() || (ground.trust == Trust::Unknown && ground.doubt.is_none())
}

/// Castor's own places that a confinement names.
pub struct SandboxPlace<'a> {
    pub env: &'a Env,
    /// Castor's own folder.
    pub home: &'a AbsPath,
    /// For temporary files.
    pub tmp: AbsPath,
}

impl<'a> SandboxPlace<'a> {
    pub fn of_session(host: &SessionHost<'a>, session: &SessionId) -> Self {
        Self { env: host.env, home: host.store.home(), tmp: host.store.tmp_dir(session) }
    }
}

/// `None`: commands may do what the user may.
pub fn for_session(
    host: &SandboxPlace<'_>,
    harmless: bool,
    roots: &[AbsPath],
    settings: &Settings,
) -> Option<Confinement> {
    let level = sandbox_level(&settings.children.sandbox, harmless, sandbox::is_available());
    let read_only = match level {
        SandboxLevel::Off => return None,
        SandboxLevel::WorkspaceWrite => false,
        SandboxLevel::ReadOnly => true,
    };
    let home = host.env.get("HOME").and_then(AbsPath::new);
    let written = &settings.children.sandbox.writable;
    let writable =
        written.iter().filter_map(|it| folder_of(it, home.as_ref())).map(canonical).filter(is_there).collect();
    let ProtectedPaths { never_written, masked, home, .. } = default_protection(home, host.home);
    let castor = canonical(host.home.clone());
    let credentials = readable(settings, home.as_ref()).into_iter().map(OpenSecret::once).collect();
    let reach = Reach { hosts: settings.children.sandbox.hosts.clone(), ..Reach::default() };
    let caches = (!read_only).then(|| castor.join("caches").join(cache_key(grant_folder(roots, &castor))));
    // Who works in a folder of the home folder does not work with the one that may be in it.
    let git_of_home = home.as_ref().map(|it| it.join(".git"));
    let gits = roots.iter().filter_map(sandbox::repository::outside_root).filter(|it| Some(it) != git_of_home.as_ref());
    Some(Confinement {
        read_only,
        untrusted: !harmless,
        roots: roots.to_vec(),
        git_dirs: gits.filter(|_| !read_only).collect(),
        writable,
        never_written,
        read_only_paths: Vec::new(),
        masked,
        home,
        grant: SandboxGrant { credentials, reach, ..SandboxGrant::default() },
        own_folders: OwnFolders { tmp: host.tmp.clone(), records: records_folder(host.home), caches },
        network: settings.children.sandbox.network,
    })
}

/// What holds a program of the user's: what holds commands, and what its own settings say beyond that. It sees what its
/// line names of the home folder and of castor's own.
pub fn for_program(commands: &Confinement, own: &ProgramSandbox, line: Option<&ProgramLine<'_>>) -> Confinement {
    let all = |written: &[String]| -> Vec<AbsPath> {
        written.iter().filter_map(|it| folder_of(it, commands.home.as_ref())).map(canonical).filter(is_there).collect()
    };
    let network = own.network == Some(true);
    let credentials = all(&own.readable).into_iter().map(OpenSecret::once).collect();
    let reach = Reach { sockets: all(&own.sockets), ..Reach::default() };
    let grant = SandboxGrant { network, credentials, reach, ..SandboxGrant::default() };
    let mut res = commands.with_grant(&grant).unwrap_or_else(|| commands.clone());
    res.network &= own.network != Some(false);
    res.writable.extend(all(&own.writable));
    let seen: Vec<AbsPath> = line.into_iter().flat_map(|it| seen_paths_of_line(it, &res)).collect();
    res.grant.seen.extend(seen);
    res
}

/// Scripts with the folder around them: what a script reads lies beside it. What opens other accounts is named in vain.
fn seen_paths_of_line(line: &ProgramLine<'_>, it: &Confinement) -> Vec<AbsPath> {
    let castor = it.own_folders.records.parent();
    let hidden: Vec<&AbsPath> = castor.iter().chain(&it.home).collect();
    let is_secret = |path: &AbsPath| {
        let masked = it.masked.iter().filter(|it| Some(*it) != castor.as_ref());
        guarded_names::SECRETS.find(path.as_path()).is_some() || masked.into_iter().any(|it| path.is_within(it))
    };
    let is_plain = |path: &AbsPath| hidden.iter().any(|it| path.is_within(it) && path != *it) && !is_secret(path);
    let beside = |path: AbsPath| match disk::metadata(&path).is_ok_and(|it| it.is_dir) {
        true => path,
        false => path.parent().filter(is_plain).unwrap_or(path),
    };
    line.named_paths().into_iter().filter(is_plain).map(beside).collect()
}

/// What no command sees, and what none writes.
fn default_protection(home: Option<AbsPath>, castor: &AbsPath) -> ProtectedPaths {
    let (castor, home) = (canonical(castor.clone()), home.map(canonical));
    let mut never_written = vec![castor.clone()];
    if let Some(home) = &home {
        let names = || [".gemini", ".castor"].iter().chain(guarded_names::home_config());
        never_written.extend(names().map(|it| home.join(it)));
        // Dotfiles are often links.
        let mut link_targets = disk::real_paths_in(home, names());
        link_targets.retain(|it| !never_written.contains(it));
        never_written.extend(link_targets);
    }
    // With the home folder all else is hidden that opens other accounts.
    let of_home = home.iter().flat_map(|it| disk::real_paths_in(it, guarded_names::CREDENTIALS_OF_TOOLS.iter()));
    let of_system = guarded_names::SYSTEM_SECRETS.iter().filter_map(|it| AbsPath::new(*it)).map(canonical);
    let masked = of_home.chain(of_system).chain([castor]).collect();
    ProtectedPaths { never_written, masked, home, readable: Vec::new() }
}

/// The same for tools that touch files by themselves, but for what the settings open.
pub fn protected_paths(env: &Env, castor: &AbsPath, settings: &Settings) -> ProtectedPaths {
    let home = env.get("HOME").and_then(AbsPath::new);
    let mut res = default_protection(home, castor);
    let (open, castor) = (readable(settings, res.home.as_ref()), canonical(castor.clone()));
    res.masked.retain(|secret| {
        castor.is_within(secret) || !open.iter().any(|it| it.is_within(secret) || secret.is_within(it))
    });
    ProtectedPaths { readable: open, ..res }
}

/// Credentials that commands may read.
fn readable(settings: &Settings, home: Option<&AbsPath>) -> Vec<AbsPath> {
    settings.children.sandbox.readable.iter().filter_map(|it| folder_of(it, home)).map(canonical).collect()
}

fn canonical(it: AbsPath) -> AbsPath {
    disk::real_path(&it).unwrap_or(it)
}

/// The name of a workspace's private folder below castor's: caches are not shared.
fn cache_key(folder: &AbsPath) -> String {
    disk::hash(folder.as_path().as_os_str().as_encoded_bytes()).chars().take(16).collect()
}

/// What the settings name for commands to write, and they cannot: for the user.
pub fn ignored_paths(settings: &Settings, home: Option<&AbsPath>) -> Vec<String> {
    let why = |written: &String| match folder_of(written, home) {
        None => Some(format!("{written} is no absolute path and not below ~/")),
        Some(it) => match disk::real_path(&it).unwrap_or(it) {
            it if !is_there(&it) => Some(format!("{written} is not there")),
            it => (!sandbox::opens(it.as_path())).then(|| format!("{written} cannot be opened")),
        },
    };
    let named = settings.children.sandbox.writable.iter().filter_map(why);
    named.map(|it| format!("security.sandbox.writable: {it}, so commands cannot write it.")).collect()
}

/// For a new session: what of the settings does not hold as it was meant. Of folders nothing where no sandbox holds
/// commands.
pub fn notice(env: &Env, harmless: bool, settings: &Settings) -> Option<String> {
    let odd = settings.children.sandbox.invalid.iter().map(|it| text::end_sentence(it));
    let level = sandbox_level(&settings.children.sandbox, harmless, sandbox::is_available());
    let ignored = ignored_paths(settings, env.get("HOME").and_then(AbsPath::new).as_ref());
    let next = "Where that changes, the next session writes it.";
    let is_told = level != SandboxLevel::Off && !ignored.is_empty();
    let left = is_told.then(|| format!("{} {next}", ignored.join(" ")));
    let inside = surroundings::is_inside().then(|| text::end_sentence(surroundings::INSIDE));
    let notices: Vec<String> = odd.chain(left).chain(inside).collect();
    (!notices.is_empty()).then(|| notices.join(" "))
}

/// Removes placeholders of killed castors, and quarantines new configuration; both as notices.
pub fn remove_leftovers(env: &Env) -> Vec<String> {
    let Some(records) = workspace::castor_home(env).map(|it| records_folder(&it)) else { return Vec::new() };
    let removed = sandbox::remove_orphans(records.as_path()).into_iter().map(|it| it.display().to_string());
    removed.chain(quarantine_leftovers(&records)).collect()
}

/// What castors that were killed left of new configuration gets another name; what is said of that.
pub fn quarantine_leftovers(records: &AbsPath) -> Option<String> {
    sandbox::quarantine_orphans(records.as_path()).in_words("a command of a castor that was killed")
}

/// The folder of placeholder records.
pub fn records_folder(home: &AbsPath) -> AbsPath {
    home.join("stand-ins")
}

/// By which it is known what holds beyond the sandbox for ever.
pub fn grant_folder<'f>(roots: &'f [AbsPath], cwd: &'f AbsPath) -> &'f AbsPath {
    roots.first().unwrap_or(cwd)
}

/// What holds for ever there. Nothing where the folder may do harm, or such answers are switched off. What was written
/// by hand is held to the same limits as what was offered.
pub fn saved_grants(home: &AbsPath, folder: &AbsPath, harmless: bool, settings: &Settings) -> Vec<Grant> {
    if !harmless || settings.disable_always_allow {
        return Vec::new();
    }
    let (grants, warning) = saved::load_grants(home, folder);
    if let Some(it) = warning {
        tracing::warn!("{it}");
    }
    grants.into_iter().filter(policy::may_persist).collect()
}

/// A folder that may do harm is not written to by commands, whatever the settings say. What was asked for by name
/// stays also where the system cannot: then commands fail, with the reason.
fn sandbox_level(settings: &SandboxSettings, harmless: bool, available: bool) -> SandboxLevel {
    match settings.level {
        // Another castor's holds: what is asked for here would only fail.
        _ if surroundings::is_inside() => SandboxLevel::Off,
        _ if !harmless && available => SandboxLevel::ReadOnly,
        Some(it) => it,
        None if available => SandboxLevel::WorkspaceWrite,
        None => SandboxLevel::Off,
    }
}

fn is_there(it: &AbsPath) -> bool {
    it.as_path().symlink_metadata().is_ok()
}

pub(super) fn folder_of(written: &str, home: Option<&AbsPath>) -> Option<AbsPath> {
    match (written.strip_prefix('~'), home) {
        (Some(""), Some(home)) => Some(home.clone()),
        (Some(rest), Some(home)) => rest.strip_prefix('/').map(|it| home.join(it)),
        _ => AbsPath::new(written),
    }
}

#[cfg(test)]
mod tests {
    use super::{folder_of, sandbox_level};
    use crate::settings::SandboxSettings;
    use castor_base::{network::HostRules, path::AbsPath, sandbox::SandboxLevel};

    #[test]
    fn trust_and_the_system_have_their_say() {
        let wish = |level| SandboxSettings {
            level,
            network: false,
            hosts: HostRules::default(),
            writable: Vec::new(),
            readable: Vec::new(),
            invalid: Vec::new(),
        };
        for (wished, trusted, available, want) in [
            (None, true, true, SandboxLevel::WorkspaceWrite),
            (None, true, false, SandboxLevel::Off),
            (None, false, true, SandboxLevel::ReadOnly),
            (Some(SandboxLevel::Off), true, true, SandboxLevel::Off),
            (Some(SandboxLevel::Off), false, true, SandboxLevel::ReadOnly),
            (Some(SandboxLevel::ReadOnly), true, false, SandboxLevel::ReadOnly),
            (Some(SandboxLevel::WorkspaceWrite), false, true, SandboxLevel::ReadOnly),
        ] {
            assert_eq!(sandbox_level(&wish(wished), trusted, available), want, "{wished:?} {trusted} {available}");
        }
    }

    #[test]
    fn folders_are_absolute_or_at_home() {
        let home = AbsPath::new("/h").unwrap();
        let written = ["~/.cache", "~", "/x", "rel", "~other/x"];
        let read = written.iter().filter_map(|it| folder_of(it, Some(&home)));
        let read: Vec<String> = read.map(|it| it.to_string()).collect();
        assert_eq!(read, ["/h/.cache", "/h", "/x"]);
    }
}
