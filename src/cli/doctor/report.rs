//! The report of `castor doctor`: facts first, then problems and what to do. It never shows a key.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    MAX_CHECKED, MAX_ERRORS, MAX_SESSIONS,
    model_probe::{self, ProbeResult},
    probe::ProbeStep,
};
use crate::cli::auth::{self, AuthOutput};
use castor_agent::{
    server::serve,
    session::{
        confinement,
        place::settings_of,
        policies, prompts,
        settings_notices::{SettingsFindings, groups},
    },
    settings::{self, HookSettings, SettingValue, Settings, Sources, options::Options, set_values},
};
use castor_base::{
    event::EventKind,
    hook::Hook,
    ids::SessionId,
    log::Fact,
    mcp::{McpLink, McpServerConfig},
    path::AbsPath,
    sandbox::{SandboxLevel, SandboxState},
    text,
};
use castor_engine::routing::retirement::notices;
use castor_hands::{
    checkpoints, disk,
    http::safe_host,
    process::{command_group, sandbox},
    secrets::Env,
};
use castor_store::sessions::SessionStore;
use castor_tools::workspace::{
    self,
    folder_config::{self, FolderConfig},
};
use castor_wire::acp::session::iso_time;

pub struct Report {
    pub(super) program: String,
    pub(super) preparations: Preparations,
    pub(super) settings: SettingsReport,
    pub(super) keys: KeysReport,
    pub(super) model: Model,
    pub(super) home: Option<(AbsPath, Option<u32>)>,
    pub(super) servers: Vec<ServerReport>,
    pub(super) sandbox: Sandbox,
    pub(super) folder: FolderReport,
    pub(super) history: SessionHistory,
    /// Faults, each with its remedy.
    pub todo: Vec<String>,
}

/// Checks that run before the report.
pub(super) struct Preparations {
    /// The handshake with itself.
    pub steps: Vec<ProbeStep>,
    /// Placeholders of killed castors in the place of configuration, which are removed.
    pub left: Vec<String>,
    /// Restores of files that a crash interrupted, and that are finished or taken back.
    pub recovered: Vec<String>,
}

/// The settings part of the report.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SettingsReport {
    /// Each with its scope.
    pub files: Vec<String>,
    /// Those that are set.
    pub values: Vec<SettingValue>,
    pub warnings: Vec<String>,
    /// Settings and files without effect, each with its place and the reason.
    pub without_effect: Vec<String>,
}

/// The places of the keys, or the reason why they cannot be looked for.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum KeysReport {
    Sources(AuthOutput),
    Error { error: String },
}

/// An MCP server of the settings.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerReport {
    pub name: String,
    /// Its command without arguments, or its host.
    #[serde(rename = "where")]
    pub link: String,
}

/// The current folder.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FolderReport {
    pub path: AbsPath,
    /// Whether it is trusted, and why.
    pub trust: String,
}

/// The model of sessions in this folder.
pub(super) struct Model {
    pub name: Option<String>,
    /// The reason why it cannot be asked.
    missing: Option<String>,
    pub reach: ProbeResult,
    /// The day of what castor knows of models, and what is to be said of this one.
    pub known: ModelTableReport,
}

/// castor's own knowledge of a model.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelTableReport {
    /// The day on which the table of models was read.
    pub date: String,
    /// Whether, and when, the model is switched off.
    pub notices: Vec<String>,
}

impl ModelTableReport {
    fn of(ground: &FolderConfig) -> Self {
        let settings = settings_of(&Options::default(), ground);
        let aliases = &settings.models.aliases;
        let name = settings.model_name.as_deref().unwrap_or_else(|| aliases.default_model());
        let notices = notices(name, aliases, &settings.models.prices).into_iter().map(|it| it.text).collect();
        Self { date: aliases.models().date().to_string(), notices }
    }

    pub fn lines(&self) -> Vec<String> {
        let date = format!("castor knows models as of {}; `castor models` shows more", self.date);
        std::iter::once(date).chain(self.notices.iter().cloned()).collect()
    }
}

/// The sandbox of commands in this folder.
pub(super) struct Sandbox {
    hold: SandboxState,
    pub has: &'static str,
    pub lacks: Option<&'static str>,
    /// Files that are not held in so large a folder.
    pub unseen: Option<String>,
    /// The reason why castor guesses the sandbox's denials.
    pub guesses: Option<&'static str>,
    /// The reason why commands cannot write in the folders of tools.
    pub no_layers: Option<&'static str>,
    /// The way in which commands are held to their limits.
    pub limits: &'static str,
    /// Advice for an administrator, so that more is held, in lines.
    pub advice: Vec<String>,
}

/// The sessions part of the report, from their logs.
#[derive(Default)]
pub(super) struct SessionHistory {
    pub errors: Vec<LastFailure>,
    /// The route of the newest session's last request, and its reason.
    pub request: Option<String>,
}

/// The last error of a session.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LastFailure {
    pub session: SessionId,
    /// The time as ISO 8601.
    pub at: String,
    pub message: String,
}

/// `shake` does the handshake; it is told whether the settings name servers.
pub fn gather_report(env: &Env, cwd: &AbsPath, program: &Path, shake: impl FnOnce(bool) -> Vec<ProbeStep>) -> Report {
    let ground = folder_config::load(env, cwd);
    let layers = ground.layers();
    let sources = Sources { layers, env: &ground.env, flags: &[] };
    let (merged, of_settings) = Settings::merge(sources);
    // First what is left: the castor of the handshake would remove it, too.
    let left = confinement::remove_leftovers(env);
    let recovered = workspace::castor_home(env).map(|it| checkpoints::recover_all(&it));
    let steps = shake(!merged.mcp.servers.is_empty());
    let (recovered, stuck) = match recovered {
        Some(Err(why)) => (Vec::new(), Some(format!("an interrupted restore could not be finished: {why}"))),
        other => (other.and_then(Result::ok).unwrap_or_default(), None),
    };
    let tried = Preparations { steps, left, recovered };
    let found = SettingsFindings::new(&ground, &merged, Vec::new());
    let of_settings = ground.locate(of_settings);
    let rules = policies::rules(&ground, &[]).warnings;
    let user_home = env.get("HOME").and_then(AbsPath::new);
    let left_out = confinement::ignored_paths(&merged, user_home.as_ref());
    let of_folder = ground.warnings.iter().filter(|it| it.key.is_none());
    let warnings = of_folder.chain(&of_settings).map(ToString::to_string).chain(rules.iter().cloned());
    let of_prompts: Vec<String> = prompts::find(&ground).warnings().map(ToString::to_string).collect();
    let warnings = warnings.chain(left_out).chain(holding_hooks(sources)).chain(of_prompts);
    let home = workspace::castor_home(env);
    let castor = home.clone();
    let past = home.clone().and_then(|it| serve::open_store(it, None, env).ok());
    let damaged = past.as_ref().map(damaged_logs).unwrap_or_default();
    let past = past.as_ref().map(session_history).unwrap_or_default();
    let mode = |it: &AbsPath| disk::permissions(it).ok();
    let keys = auth::sources(env, cwd).map_or_else(|error| KeysReport::Error { error }, KeysReport::Sources);
    let missing = model_probe::missing_access(&ground.env, &merged);
    let reach =
        if missing.is_none() { model_probe::probe_model(env, &ground.env, &merged) } else { ProbeResult::NotProbed };
    let mut report = Report {
        program: program.display().to_string(),
        preparations: tried,
        settings: SettingsReport {
            files: layers.layers.iter().map(|it| format!("{} ({})", it.file, it.scope.as_str())).collect(),
            values: values(sources),
            warnings: warnings.collect(),
            without_effect: groups(&found.idle, &ground.folder),
        },
        keys,
        model: Model { name: merged.model_name.clone(), missing, reach, known: ModelTableReport::of(&ground) },
        home: home.map(|it| (it.clone(), mode(&it))),
        servers: merged.mcp.servers.iter().map(server).collect(),
        sandbox: Sandbox::of_system(confinement::sandbox_state(&ground, &merged), (cwd, castor.as_ref()), program),
        folder: FolderReport { path: cwd.clone(), trust: trust_words(&ground, user_home.as_ref()) },
        history: past,
        todo: Vec::new(),
    };
    let of_files = layers.unread_files().map(ToString::to_string).chain(rules).chain(stuck);
    report.todo = report.problems(of_files.chain(damaged));
    report
}

/// Hooks for which a whole answer of the model is held back. A command may hold a key: only names are told.
fn holding_hooks(sources: Sources<'_>) -> Vec<String> {
    let (HookSettings { hooks, disabled }, _) = settings::hooks(sources);
    let holds = |it: &&Hook| it.holds_answers() && !disabled.contains(it.key());
    let words = |it: &Hook| {
        let name = it.name.as_ref().map_or_else(|| "without a name".to_owned(), |it| format!("{it:?}"));
        format!(
            "The AfterModel hook {name} holds each answer back until it is whole. If it only listens, add \
             \"observes\": true to it."
        )
    };
    hooks.iter().filter(holds).map(words).collect()
}

/// Every setting that is set, with its value and the layer that wins. Servers have their own section, without their
/// arguments, which may hold anything.
fn values(sources: Sources<'_>) -> Vec<SettingValue> {
    let mut res = set_values(sources);
    res.retain(|it| it.key != "mcpServers");
    res.sort_by_key(|it| it.key);
    res
}

/// No arguments, no path: both may hold keys.
fn server(it: &McpServerConfig) -> ServerReport {
    let link = match &it.link {
        McpLink::Stdio { command, .. } => command.clone(),
        McpLink::Web { url, .. } => url.parse().map_or_else(|_| "no URL".to_owned(), |it| safe_host(&it)),
        // No settings name one.
        McpLink::Client { server_id } => server_id.clone(),
    };
    ServerReport { name: it.name.clone(), link }
}

/// Files of a trusted folder may have changed since: then they do not count, and that is what the user wonders about.
fn trust_words(ground: &FolderConfig, home: Option<&AbsPath>) -> String {
    let unused = ground.project.file_states().filter(|(_, counts)| !counts);
    let why = |name: &str| ground.project.why_unused(name);
    let words = |name: &str| why(name).map_or_else(|| name.to_owned(), |why| format!("{name}, {why}"));
    let files: Vec<String> = unused.map(|(name, _)| words(name)).collect();
    let unused = if files.is_empty() { String::new() } else { format!(" (not used: {})", files.join("; ")) };
    format!("{}{unused}", ground.trust.in_words(home))
}

/// From the logs of the newest sessions: they have what was shown, so nothing needs to be kept apart.
fn last_errors(store: &SessionStore) -> Vec<LastFailure> {
    let last = |id: &SessionId| {
        let entries = store.read(id).ok()?;
        entries.iter().rev().find_map(|it| match &it.fact {
            Fact::Event { event } => match &event.kind {
                EventKind::Error { message, .. } => Some(LastFailure {
                    session: id.clone(),
                    at: iso_time(it.at),
                    message: text::first_line(message, 300),
                }),
                _ => None,
            },
            _ => None,
        })
    };
    store.list(None).iter().flatten().take(MAX_SESSIONS).filter_map(|it| last(&it.id)).take(MAX_ERRORS).collect()
}

fn session_history(store: &SessionStore) -> SessionHistory {
    SessionHistory { errors: last_errors(store), request: last_request(store) }
}

/// The damaged ones of the newest logs, up to some size together: each is read whole.
fn damaged_logs(store: &SessionStore) -> Vec<String> {
    let (mut res, mut n_bytes) = (Vec::new(), 0);
    for it in store.list(None).iter().flatten() {
        if n_bytes > MAX_CHECKED {
            break;
        }
        n_bytes += store.log_len(&it.id).unwrap_or_default();
        if let Ok(damage) = store.find_damage(&it.id)
            && damage.n > 0
        {
            res.push(format!("The log of session {0} is damaged: {damage}; run: castor sessions repair {0}", it.id));
        }
    }
    res
}

fn last_request(store: &SessionStore) -> Option<String> {
    let entries = store.read(&store.list(None).ok()?.first()?.id).ok()?;
    entries.iter().rev().find_map(|it| match &it.fact {
        Fact::Attempt { model, attempt, why, .. } => Some(format!("{model}, attempt {attempt}: {why}")),
        _ => None,
    })
}

const OF_GROUP: &str = "the kernel holds commands to their limits of processes and memory, in cgroups of their own";
const COUNTED: &str =
    "castor counts the processes of commands and their memory each second, because the system lends it no cgroup";

impl Sandbox {
    fn of_system(hold: SandboxState, (cwd, home): (&AbsPath, Option<&AbsPath>), program: &Path) -> Self {
        let ((has, lacks), guesses) = (sandbox::state(), sandbox::record_note());
        let no_layers = home.filter(|_| hold.available).and_then(|it| sandbox::layer_note(it.as_path()));
        let limits = if command_group::lent().is_some() { OF_GROUP } else { COUNTED };
        // Where nothing is confined nobody looks.
        let unseen = hold.available.then(|| sandbox::unprotected_note(cwd.as_path())).flatten();
        Self { hold, has, lacks, unseen, guesses, no_layers, limits, advice: sandbox::advice(program) }
    }

    /// The problem of a demand that cannot be met: commands fail.
    fn problem(&self) -> Option<String> {
        let SandboxState { level, available, .. } = self.hold;
        let why = self.lacks.unwrap_or_default();
        let is_wanted = level != SandboxLevel::Off && !available;
        is_wanted.then(|| format!("security.sandbox.level is {}, and commands fail: {why}.", level.as_str()))
    }

    pub fn in_words(&self) -> String {
        // What the system lacks is said behind.
        let level = if self.hold.available { self.hold.in_words() } else { self.hold.level.as_str().to_owned() };
        let lacks = self.lacks.map(|it| format!(" ({it})")).unwrap_or_default();
        format!("{level}; this system has {}{lacks}", self.has)
    }
}

impl Report {
    /// `files`: those that are not taken as they are written, and why.
    fn problems(&self, files: impl Iterator<Item = String>) -> Vec<String> {
        let mut res: Vec<String> = self
            .preparations
            .steps
            .iter()
            .filter_map(|it| Some(format!("{}: {}", it.name, it.problem.as_ref()?)))
            .collect();
        res.extend(files.map(|it| text::end_sentence(&it)));
        res.extend(self.sandbox.problem());
        match (&self.home, &self.model.missing) {
            (None, _) => res.push("There is no home: set CASTOR_HOME or HOME to an absolute path.".to_owned()),
            (Some((home, Some(mode))), _) if mode & 0o022 != 0 => {
                res.push(format!("Others can write to castor's home; run: chmod 700 '{home}'"));
            }
            (_, Some(why)) => res.push(text::end_sentence(why)),
            _ => res.extend(self.model.reach.problem().map(text::end_sentence)),
        }
        res
    }
}
