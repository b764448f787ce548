//! Settings: merged once per session from files, variables and flags, then split into narrow values.

use serde_json::Value;

use castor_base::{
    limits::Limits,
    log::Mode,
    network::{HostGrant, HostRules},
    sandbox::SandboxLevel,
};
use castor_engine::{
    context::distillation,
    routing::{
        aliases::Aliases, failure::RetryPatience, fallback_policies::FallbackPolicies, prices::Prices,
        strategies::RoutingRules,
    },
};
use castor_hands::secrets::Env;
use castor_tools::{
    builtin::{ToolSettings, WebAccess, shell::limits::CommandLimits},
    workspace::{Warning, memory, settings::Layers},
};

mod agents;
mod check;
mod configs;
mod explain;
mod fallback;
pub mod gemini;
pub mod gemini_files;
pub mod gemini_variables;
mod hooks;
mod keys;
mod limits;
mod lists;
mod mcp;
mod mcp_oauth;
pub mod options;
mod prices;
pub mod provider_routing;
mod providers;
mod resolve;
mod retention;
mod schema;
pub mod server_edit;
mod skills;
mod telemetry;
mod typing;

pub use agents::{AgentOverride, AgentSettings, agents};
pub use check::{check, without_effect};
pub use explain::{SettingValue, explain, set_values};
pub use hooks::{HookSettings, hooks};
pub use keys::{Guard, KEYS, Key, KeyKind, Merge, Usage};
pub use limits::flag as limit_flag;
pub use lists::{bars_saved, invalid_deny_lists, lists, policy_paths, saved_answers};
pub use mcp::McpSettings;
pub use providers::Provider;
pub use retention::session_retention;
pub use schema::{meaning, schema};
pub use skills::{SkillSettings, skills};
pub use telemetry::telemetry;
pub use typing::takes_vi_keys;

/// Default names of memory files.
const MEMORY_NAMES: [&str; 2] = ["GEMINI.md", "AGENTS.md"];

/// Sources of values, weakest first.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    pub layers: &'a Layers,
    pub env: &'a Env,
    pub flags: &'a [Flag],
}

/// A flag of the command line that sets a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Flag {
    /// A path in `KEYS`.
    pub key: &'static str,
    /// As the user typed it: `--model`.
    pub name: &'static str,
    pub value: Value,
}

impl Flag {
    pub fn model(name: &str) -> Self {
        Self { key: "model.name", name: "--model", value: name.into() }
    }

    pub fn sandbox(level: &str) -> Self {
        Self { key: keys::SANDBOX_LEVEL, name: "--sandbox", value: level.into() }
    }

    pub fn approval_mode(mode: &str) -> Self {
        Self { key: "general.defaultApprovalMode", name: "--approval-mode", value: mode.into() }
    }
}

/// Settings of a session, as narrow values.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// `None`: the router's choice.
    pub model_name: Option<String>,
    /// Already careful enough for `disable_yolo`; what trust forbids is decided where trust is known.
    pub approval_mode: Mode,
    pub limits: Limits,
    pub caps: Caps,
    pub memory: Memory,
    pub on_failure: FailureSettings,
    pub tools: ToolSettings,
    pub children: ChildSettings,
    pub mcp: McpSettings,
    pub models: ModelSettings,
    /// They are not on offer.
    pub barred_modes: Vec<Mode>,
    pub disable_always_allow: bool,
}

/// Names and sources of memory files.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    pub names: Vec<String>,
    /// Those of sub-folders count when the work comes there.
    pub just_in_time: bool,
}

/// Caps on what a model sees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Caps {
    /// Characters of a tool's output above which it is cut.
    pub truncate_above: usize,
    /// The part of a model's window above which a conversation is compressed; 0: never.
    pub compress_above: f64,
    /// How very large results are distilled, in place of being cut; `None`: they are cut.
    pub distill: Option<distillation::DistillationLimits>,
}

impl Caps {
    fn read(get: &Getter<'_>) -> Self {
        let distilling = |name: &str| get.size(&format!("contextManagement.tools.distillation.{name}"));
        let limits = || distillation::DistillationLimits {
            keep: distilling("maxOutputTokens"),
            ask_above: distilling("summarizationThresholdTokens"),
        };
        Self {
            truncate_above: get.size("tools.truncateToolOutputThreshold"),
            compress_above: get.value("model.compressionThreshold").as_f64().unwrap_or_default(),
            distill: get.flag("experimental.contextManagement").then(limits),
        }
    }

    /// Where results are distilled they are not cut before.
    pub fn truncate_at(&self) -> usize {
        if self.distill.is_some() { 0 } else { self.truncate_above }
    }
}

/// Models and their parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSettings {
    /// The way to authenticate that the user chose, in Gemini CLI's words.
    pub auth_type: Option<String>,
    /// The only one that is allowed.
    pub enforced_auth: Option<String>,
    /// Of models, beside Gemini.
    pub providers: Vec<Provider>,
    /// The context window of models that do not state one, in tokens.
    pub window: Option<u64>,
    pub prices: Prices,
    /// Other names of models, and how they are asked.
    pub aliases: Aliases,
    /// Which of them takes what.
    pub rules: RoutingRules,
    pub connection: Connection,
    /// The only ones that are asked; empty: any.
    pub only: Vec<String>,
}

/// Network connections; times in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// `none`: none at all. `None`: as the environment says.
    pub proxy: Option<String>,
    /// Certificates that are trusted beside the system's, as it was written.
    pub ca_file: Option<String>,
    pub connect_s: u64,
    /// The longest silence of a server that is borne.
    pub idle_s: u64,
}

impl ModelSettings {
    fn read(get: &Getter<'_>, warnings: &mut Vec<Warning>) -> Self {
        let connection = Connection {
            proxy: get.text("connection.proxy"),
            ca_file: get.text("connection.caFile"),
            connect_s: get.size("connection.connectTimeout"),
            idle_s: get.size("connection.idleTimeout"),
        };
        if let Some(it) = connection.ca_file.as_deref().filter(|it| !it.starts_with('/') && !it.starts_with("~/")) {
            let key = Some("connection.caFile".to_owned());
            let message = format!("{it}: should be absolute or below ~/; ignored");
            warnings.push(Warning { origin: "settings".to_owned(), at: None, key, message });
        }
        let providers = providers::read(get, warnings);
        Self {
            auth_type: get.text("security.auth.selectedType"),
            enforced_auth: get.text("security.auth.enforcedType"),
            window: get.value("model.contextWindow").as_u64(),
            prices: prices::read(get, &providers, warnings),
            providers,
            aliases: configs::read(get, warnings),
            rules: RoutingRules {
                local: get.text("model.routing.local"),
                numerical: get.flag("model.routing.numerical"),
                threshold: get.size("model.routing.threshold"),
            },
            connection,
            only: Vec::new(),
        }
    }
}

/// Retries and fallbacks.
#[derive(Clone, Debug, PartialEq)]
pub struct FailureSettings {
    pub patience: RetryPatience,
    /// Fallback models, in order; empty: castor's own choice.
    pub models: Vec<String>,
    /// What may be done about it.
    pub policies: FallbackPolicies,
    /// A model that goes round in circles is stopped.
    pub watches_loops: bool,
    /// A model is asked if an answer is the last one.
    pub asks_next_speaker: bool,
}

/// The sandbox of commands.
#[derive(Clone, Debug, PartialEq)]
pub struct SandboxSettings {
    /// `None`: the default where the system can.
    pub level: Option<SandboxLevel>,
    pub network: bool,
    /// Without it, the hosts that are open.
    pub hosts: HostRules,
    /// As written; `~` is the home folder.
    pub writable: Vec<String>,
    /// Credentials that commands may read, written as those.
    pub readable: Vec<String>,
    /// What is not understood of it, for the user.
    pub invalid: Vec<String>,
}

impl SandboxSettings {
    fn read(get: &Getter<'_>, mut odd: Vec<String>) -> Self {
        let mut hosts = |key: &str, usual_port| {
            let read = get.texts(key).into_iter().map(|it| HostGrant::parse(&it, usual_port));
            let (good, bad): (Vec<_>, Vec<_>) = read.partition(Result::is_ok);
            odd.extend(bad.into_iter().filter_map(Result::err).map(|why| format!("{key}: {why}")));
            good.into_iter().flatten().collect()
        };
        let allowed = hosts("security.network.allow", Some(443));
        let hosts = HostRules { allowed, denied: hosts("security.network.deny", None) };
        let mut writable = get.texts("security.sandbox.writable");
        writable.extend(get.texts("tools.sandboxAllowedPaths"));
        Self {
            level: get.text(keys::SANDBOX_LEVEL).as_deref().and_then(SandboxLevel::parse),
            network: get.flag("security.sandbox.network") || get.flag("tools.sandboxNetworkAccess"),
            hosts,
            writable,
            readable: get.texts("security.sandbox.readable"),
            invalid: odd,
        }
    }
}

/// Child processes: variables, sandbox and checkpoints.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildSettings {
    pub sandbox: SandboxSettings,
    /// By the user's wish, whatever they look like.
    pub allowed: Vec<String>,
    /// Never.
    pub blocked: Vec<String>,
    /// What they change can be undone.
    pub checkpoints: bool,
}

impl Settings {
    /// Merges everything; what does not count as written comes back as warnings, those of the files' text included.
    pub fn merge(sources: Sources<'_>) -> (Self, Vec<Warning>) {
        let mut warnings = check(sources);
        let odd = check::of_sandbox(sources, &warnings);
        let get = Getter(sources);
        let disable_yolo = get.switched_off("security.disableYoloMode");
        let asked = get.mode("general.defaultApprovalMode");
        let approval_mode = possible(asked, disable_yolo);
        warnings.extend(approval_mode.as_ref().err().map(|why| no_such_mode(sources, why)));
        warnings.extend(hooks(sources).1);
        warnings.extend(agents(sources).1);
        let mcp = McpSettings::read(&get, sources, &mut warnings);
        let reach = ModelSettings::read(&get, &mut warnings);
        let (ignore_files, strange): (Vec<String>, Vec<String>) = get
            .texts("context.fileFiltering.customIgnoreFilePaths")
            .into_iter()
            .partition(|it| !it.trim().is_empty() && !it.contains(['/', '\\']));
        if !strange.is_empty() {
            let key = Some("context.fileFiltering.customIgnoreFilePaths".to_owned());
            let message = format!("{}: only names of files count, in every folder", strange.join(", "));
            warnings.push(Warning { origin: "settings".to_owned(), at: None, key, message });
        }
        let names = memory_names(&get, &mut warnings);
        let res = Self {
            memory: Memory { names, just_in_time: get.flag("experimental.jitContext") },
            model_name: get.text("model.name"),
            approval_mode: approval_mode.unwrap_or_default(),
            limits: limits::read(&get),
            caps: Caps::read(&get),
            on_failure: FailureSettings {
                patience: RetryPatience {
                    max_attempts: get.optional_size("general.maxAttempts"),
                    retry_broken: get.flag("general.retryFetchErrors"),
                },
                models: get.texts("model.fallback.models").into_iter().map(|it| it.trim().to_owned()).collect(),
                policies: fallback::read(&get, &reach.aliases, &mut warnings),
                watches_loops: !get.flag("model.disableLoopDetection"),
                asks_next_speaker: !get.flag("model.skipNextSpeakerCheck"),
            },
            tools: tool_settings(&get, ignore_files),
            children: ChildSettings {
                sandbox: SandboxSettings::read(&get, odd),
                allowed: get.texts("security.environmentVariableRedaction.allowed"),
                blocked: get.texts("security.environmentVariableRedaction.blocked"),
                checkpoints: get.flag("general.checkpointing.enabled"),
            },
            mcp,
            models: reach,
            barred_modes: if disable_yolo { vec![Mode::Auto, Mode::Yolo] } else { Vec::new() },
            disable_always_allow: lists::bars_saved(sources),
        };
        (res, warnings)
    }
}

fn tool_settings(get: &Getter<'_>, ignore_files: Vec<String>) -> ToolSettings {
    ToolSettings {
        respect_git_ignore: get.flag("context.fileFiltering.respectGitIgnore"),
        respect_gemini_ignore: get.flag("context.fileFiltering.respectGeminiIgnore"),
        ignore_files,
        shell_inactivity_s: get.size("tools.shell.inactivityTimeout"),
        shell_limits: CommandLimits {
            max_processes: get.size("tools.shell.maxProcesses"),
            max_memory_gb: get.size("tools.shell.maxMemoryGb"),
            min_free_gb: get.size("tools.shell.minFreeDiskGb"),
        },
        shell_in_client: get.text("tools.shell.terminal").as_deref() == Some("client"),
        tells_tree: get.flag("context.includeDirectoryTree"),
        saved_memory: None,
        web: WebAccess::new(get.texts("tools.webFetch.privateHosts")),
    }
}

/// Files of other names would bring whatever the user's own folders hold to a model.
fn memory_names(get: &Getter<'_>, warnings: &mut Vec<Warning>) -> Vec<String> {
    let names = match get.value("context.fileName") {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect(),
        _ => MEMORY_NAMES.map(str::to_owned).to_vec(),
    };
    let (good, strange): (Vec<String>, Vec<String>) = names.into_iter().partition(|it| memory::is_memory_name(it));
    if !strange.is_empty() {
        let key = Some("context.fileName".to_owned());
        let message = format!("{}: only names that end with .md, without a folder, count", strange.join(", "));
        warnings.push(Warning { origin: "settings".to_owned(), at: None, key, message });
    }
    good
}

fn possible(mode: Mode, disable_yolo: bool) -> Result<Mode, &'static str> {
    match mode {
        Mode::Yolo if disable_yolo => Err("yolo is switched off by security.disableYoloMode; default is used"),
        Mode::Auto if disable_yolo => Err("auto is switched off by security.disableYoloMode; default is used"),
        it => Ok(it),
    }
}

/// The origin of a mode that is not available: nearly always a flag, as no file may say yolo.
fn no_such_mode(sources: Sources<'_>, why: &str) -> Warning {
    let key = "general.defaultApprovalMode";
    let flag = sources.flags.iter().rfind(|it| it.key == key).map(|it| it.name);
    let (origin, key) = (flag.unwrap_or("settings").to_owned(), flag.is_none().then(|| key.to_owned()));
    Warning { origin, at: None, key, message: why.to_owned() }
}

/// Reads merged values as Rust types. Values were checked against the table, whose defaults a test checks: the
/// fallbacks here are never taken.
struct Getter<'a>(Sources<'a>);

impl Getter<'_> {
    fn value(&self, path: &str) -> Value {
        keys::find(path).and_then(|key| resolve::resolve(key, self.0).value).unwrap_or_default()
    }

    fn flag(&self, path: &str) -> bool {
        self.value(path).as_bool().unwrap_or_default()
    }

    /// What takes something away holds also where it is written as nothing that castor reads: `"true"`.
    fn switched_off(&self, path: &str) -> bool {
        let place = format!("/{}", path.replace('.', "/"));
        let odd = |it: &Value| it.pointer(&place).is_some_and(|it| !it.is_boolean() && !it.is_null());
        self.flag(path) || self.0.layers.layers.iter().any(|it| odd(&it.value))
    }

    fn int(&self, path: &str) -> i64 {
        self.value(path).as_i64().unwrap_or_default()
    }

    /// A number that its row says is not negative; too large ones are the largest.
    fn size<T: TryFrom<i64> + BoundedNumber>(&self, path: &str) -> T {
        T::try_from(self.int(path)).unwrap_or(T::MAX)
    }

    /// `None`: nobody set it.
    fn optional_size(&self, path: &str) -> Option<u32> {
        self.value(path).as_i64().map(|it| u32::try_from(it).unwrap_or(u32::MAX))
    }

    fn text(&self, path: &str) -> Option<String> {
        self.value(path).as_str().map(|it| it.trim().to_owned())
    }

    fn texts(&self, path: &str) -> Vec<String> {
        let value = self.value(path);
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    fn mode(&self, path: &str) -> Mode {
        self.value(path).as_str().and_then(Mode::parse).unwrap_or_default()
    }
}

trait BoundedNumber {
    const MAX: Self;
}

impl BoundedNumber for usize {
    const MAX: Self = usize::MAX;
}

impl BoundedNumber for u32 {
    const MAX: Self = u32::MAX;
}

impl BoundedNumber for u64 {
    const MAX: Self = u64::MAX;
}

#[cfg(test)]
mod tests;
