//! The table of settings keys: type, default, merging, the layers that may set it, and whether castor uses it.

use std::borrow::Cow;

use serde_json::Value;

use castor_base::{log::Mode, sandbox::SandboxLevel};
use castor_tools::workspace::settings::Scope;

/// One known setting. Objects whose members users name themselves are one row.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub path: &'static str,
    pub kind: KeyKind,
    /// As JSON text; empty: not set.
    pub default: &'static str,
    pub merge: Merge,
    pub guard: Guard,
    /// Variables that set it, weakest first.
    pub env: &'static [&'static str],
    pub usage: Usage,
    /// One line for `castor config explain`.
    pub doc: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    Bool,
    /// A whole number, at least this.
    Int(i64),
    /// A number from 0 to 1.
    Fraction,
    /// A number above 0.
    Amount,
    /// Not empty.
    Text,
    Texts,
    /// A time span such as `30d`; see [`age_ms`].
    Age,
    /// A mode. Files may not say `yolo`: that takes the user's own flag.
    ApprovalMode,
    /// One of these words.
    Word(&'static [&'static str]),
    Object,
    Any,
}

/// The way in which layers of one key are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    Replace,
    Concat,
    /// Concatenated without repetitions.
    Union,
    /// Members replace members of the same name.
    Shallow,
    /// Members are lists, concatenated by name.
    ConcatMembers,
    /// What all layers that set it agree on, in any case.
    Intersect,
}

/// The limit on a workspace's value: a repository can only tighten what protects its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    Free,
    /// It may set this value only.
    Only(bool),
    /// It may set any but this value.
    AllBut(&'static str),
    /// It may not set it.
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    Used,
    /// Accepted for the sake of files that Gemini CLI shares; nothing is lost by not acting on it.
    Accepted,
    /// Accepted too, but the user relies on an effect that does not come, and is told so.
    Unsupported(&'static str),
}

const NOT_YET: Usage = Usage::Unsupported("is accepted, but castor does not act on it yet");
const ONE_RUNTIME: Usage = Usage::Unsupported("is accepted without effect: castor has one runtime for all sessions");

impl Key {
    const fn new(path: &'static str, kind: KeyKind, default: &'static str, doc: &'static str) -> Self {
        let (merge, guard, usage) = (Merge::Replace, Guard::Free, Usage::Used);
        Self { path, kind, default, merge, guard, env: &[], usage, doc }
    }

    const fn merge(self, merge: Merge) -> Self {
        Self { merge, ..self }
    }

    const fn guard(self, guard: Guard) -> Self {
        Self { guard, ..self }
    }

    const fn env(self, env: &'static [&'static str]) -> Self {
        Self { env, ..self }
    }

    const fn usage(self, usage: Usage) -> Self {
        Self { usage, ..self }
    }

    pub fn default_value(&self) -> Option<Value> {
        serde_json::from_str(self.default).ok()
    }

    /// What counts where somebody who may set it wrote what castor cannot read: the stricter one, where the default
    /// would be the weaker. Nobody knows what was meant.
    pub fn stricter_value(&self, from: Option<Scope>) -> Option<Value> {
        let takes_away = self.path == SANDBOX_LEVEL && from != Some(Scope::Workspace);
        takes_away.then(|| SandboxLevel::ReadOnly.as_str().into())
    }

    /// The value as its type, or why it does not count. `from` is `None` for variables and flags, whose text is read as
    /// the key's type; so is text in which a variable was filled in.
    pub fn accept<'v>(&self, value: &'v Value, from: Option<Scope>, filled: bool) -> Result<Cow<'v, Value>, String> {
        let value = match value {
            Value::String(text) if filled || from.is_none() => {
                self.kind.read(text).map_or(Cow::Borrowed(value), Cow::Owned)
            }
            _ => Cow::Borrowed(value),
        };
        self.kind.check(&value, from.is_some())?;
        match (self.guard, from) {
            (Guard::Closed, Some(Scope::Workspace)) => Err("a workspace may not set this".to_owned()),
            (Guard::AllBut(no), Some(Scope::Workspace)) if value.as_str() == Some(no) => {
                Err(format!("a workspace may not set this to {no}"))
            }
            (Guard::Only(only), Some(Scope::Workspace)) if value.as_bool() != Some(only) => {
                Err(format!("a workspace may only set this to {only}"))
            }
            _ => Ok(value),
        }
    }
}

impl KeyKind {
    fn read(self, text: &str) -> Option<Value> {
        match self {
            Self::Bool => match text.trim() {
                "1" => Some(true.into()),
                "0" => Some(false.into()),
                it => it.parse::<bool>().ok().map(Value::from),
            },
            Self::Int(_) => text.trim().parse::<i64>().ok().map(Value::from),
            Self::Fraction | Self::Amount => text.trim().parse::<f64>().ok().map(Value::from),
            _ => None,
        }
    }

    fn check(self, value: &Value, in_file: bool) -> Result<(), String> {
        let fits = match self {
            Self::Bool => value.is_boolean(),
            Self::Int(min) => value.as_i64().is_some_and(|it| it >= min),
            Self::Fraction => value.as_f64().is_some_and(|it| (0.0..=1.0).contains(&it)),
            Self::Amount => value.as_f64().is_some_and(|it| it > 0.0),
            Self::Text => value.as_str().is_some_and(|it| !it.trim().is_empty()),
            Self::Age => value.as_str().and_then(age_ms).is_some(),
            Self::Texts => value.as_array().is_some_and(|it| it.iter().all(Value::is_string)),
            Self::Word(words) => value.as_str().is_some_and(|it| words.contains(&it)),
            Self::Object => value.is_object(),
            Self::Any => true,
            Self::ApprovalMode => match value.as_str().and_then(Mode::parse) {
                Some(Mode::Yolo) if in_file => {
                    return Err("yolo cannot be set in a file, only by --approval-mode yolo".to_owned());
                }
                None if !in_file => return Err("should be default, auto_edit, auto, plan or yolo".to_owned()),
                it => it.is_some(),
            },
        };
        fits.then_some(()).ok_or_else(|| format!("should be {}", self.describe()))
    }

    pub fn describe(self) -> Cow<'static, str> {
        match self {
            Self::Bool => "true or false".into(),
            Self::Int(i64::MIN) => "a whole number".into(),
            Self::Int(min) => format!("a whole number, at least {min}").into(),
            Self::Fraction => "a number from 0 to 1".into(),
            Self::Amount => "a number above 0".into(),
            Self::Text => "a text that is not empty".into(),
            Self::Texts => "a list of texts".into(),
            Self::Age => "a time span such as 12h, 30d, 4w or 6m".into(),
            Self::ApprovalMode => "default, auto_edit, auto or plan".into(),
            Self::Word(words) => words.join(" or ").into(),
            Self::Object => "an object {…}".into(),
            Self::Any => "anything".into(),
        }
    }
}

/// Milliseconds of `12h`, `30d`, `4w`, `6m` (months of 30 days); `None` for anything else, zero included.
pub fn age_ms(text: &str) -> Option<u64> {
    const HOUR: u64 = 3_600_000;
    let text = text.trim();
    let unit = match text.chars().last()? {
        'h' => HOUR,
        'd' => 24 * HOUR,
        'w' => 7 * 24 * HOUR,
        'm' => 30 * 24 * HOUR,
        _ => return None,
    };
    let digits = text.get(..text.len() - 1).filter(|it| it.bytes().all(|it| it.is_ascii_digit()))?;
    digits.parse::<u64>().ok().filter(|it| *it > 0)?.checked_mul(unit)
}

/// What holds commands.
pub const SANDBOX_LEVEL: &str = "security.sandbox.level";

/// All known settings.
#[rustfmt::skip]
pub const KEYS: &[Key] = {
    use Guard::{AllBut, Closed, Only};
    use KeyKind::{Age, Amount, Any, ApprovalMode, Bool, Fraction, Int, Object, Text, Texts, Word};
    use Merge::{Concat, ConcatMembers, Intersect, Shallow, Union};
    use Usage::Accepted;
    const fn key(path: &'static str, kind: KeyKind, default: &'static str, doc: &'static str) -> Key {
        Key::new(path, kind, default, doc)
    }
    &[
        key("general.checkpointing.enabled", Bool, "true", "Whether what calls change in files can be undone.").guard(Only(true)),
        key("general.defaultApprovalMode", ApprovalMode, r#""default""#, "The mode that sessions start in: default, auto_edit, auto or plan.").guard(AllBut("auto")),
        key("general.maxAttempts", Int(1), "", "How often a failing model request is tried before the turn ends. Unset: 10 times, 4 times without a terminal, as in a script."),
        key("general.retryFetchErrors", Bool, "true", "Whether requests that broke on the network are tried again."),
        key("general.sessionRetention.enabled", Bool, "true", "Whether old sessions are removed.").guard(Closed),
        key("general.sessionRetention.maxAge", Age, r#""30d""#, "Sessions that did not change for so long are removed: 12h, 30d, 4w, 6m.").guard(Closed),
        key("general.sessionRetention.maxCount", Int(1), "", "How many sessions are kept, the newest ones.").guard(Closed),
        key("general.sessionRetention.minRetention", Age, r#""1d""#, "A maxAge below this counts as a mistake: then nothing is removed.").guard(Closed),
        key("general.vimMode", Bool, "false", "Whether `castor chat` takes the keys of vi.").guard(Closed),
        key("model.name", Text, "", "The model that sessions start with.").env(&["GEMINI_MODEL", "CASTOR_MODEL"]),
        key("model.contextWindow", Int(1), "", "The context window of a model in tokens, if neither its provider nor castor knows it."),
        key("model.prices", Object, "{}", "Prices of models, by name, before castor's own list: US dollars for a million tokens of input, output, cached and cacheWrite; above has those of prompts with more tokens.").merge(Shallow).guard(Closed),
        key("model.fallback.models", Texts, "[]", "Models that castor falls back to when one does not answer, in order, of any provider.").guard(Closed),
        key("model.fallback.action", Word(&["ask", "silent"]), r#""ask""#, "Whether castor asks before it falls back to another model, or only reports it.").guard(Closed),
        key("model.fallback.policies", Object, "{}", "What is done about a model that fails, by its name or * for all: actions (prompt, silent) and stateTransitions (terminal, sticky_retry) by terminal, transient, not_found and unknown; maxAttempts, isLastResort.").merge(Shallow).guard(Closed),
        key("model.routing.numerical", Bool, "true", "With Gemini 3, whether auto rates a request's difficulty from 1 to 100. Otherwise it asks which model suits the request."),
        key("model.routing.threshold", Int(0), "90", "From which number on auto takes the larger model."),
        key("model.routing.local", Text, "", "A model, such as ollama/gemma3, that auto asks first which model suits a request.").guard(Closed),
        key("model.maxSessionTurns", Int(-1), "-1", "Gemini CLI's name for limits.session.requests; the lower one counts. -1: no limit.").guard(Closed),
        key("limits.turn.requests", Int(1), "", "Model calls of one prompt, at most; never more than 100.").guard(Closed),
        key("limits.turn.tokens", Int(1), "", "Tokens of one prompt, in and out, at most.").guard(Closed),
        key("limits.turn.seconds", Int(1), "", "Seconds of work for one prompt, at most; waiting for you does not count.").guard(Closed),
        key("limits.turn.cost", Amount, "", "US dollars for one prompt, at most; the price of the model has to be known.").guard(Closed),
        key("limits.session.requests", Int(1), "", "Model calls of a session, at most.").guard(Closed),
        key("limits.session.tokens", Int(1), "", "Tokens of a session, in and out, at most.").guard(Closed),
        key("limits.session.seconds", Int(1), "", "Seconds of work in a session, at most; waiting for you does not count.").guard(Closed),
        key("limits.session.cost", Amount, "", "US dollars for a session, at most; the prices of its models have to be known.").guard(Closed),
        key("tools.truncateToolOutputThreshold", Int(1), "40000", "Characters of a tool's output above which the middle is cut out for the model."),
        key("tools.shell.maxMemoryGb", Int(0), "0", "GB of memory beyond which a command is stopped; 0: nine tenths of the machine's.").guard(Closed),
        key("tools.shell.maxProcesses", Int(0), "4096", "Processes beyond which a command is stopped; 0: no limit.").guard(Closed),
        key("tools.shell.minFreeDiskGb", Int(0), "1", "GB of free disk below which a command is stopped; 0: no limit.").guard(Closed),
        key("tools.shell.inactivityTimeout", Int(0), "300", "Seconds without output after which a command is ended; 0: never."),
        key("tools.shell.terminal", Word(&["own", "client"]), r#""own""#, "Whose terminal runs commands: castor's own, or the client's where it has one (with the client's environment).").guard(Closed),
        key("tools.webFetch.privateHosts", Texts, "[]", "Hosts of this machine or its network that web_fetch may ask, such as localhost:3000; others there are refused.").merge(Union).guard(Closed),
        key("context.fileFiltering.respectGitIgnore", Bool, "true", "Whether search and listing skip what .gitignore names."),
        key("context.fileFiltering.respectGeminiIgnore", Bool, "true", "Whether search and listing skip what .geminiignore and .castorignore name."),
        key("security.auth.selectedType", Text, "", "How to authenticate: gemini-api-key, gateway or vertex-ai; others are passed over where there is a key.").guard(Closed),
        key("security.auth.enforcedType", Text, "", "The only way to authenticate at Gemini: gemini-api-key, gateway or vertex-ai. Any other is refused (exit code 41).").guard(Closed),
        key("security.disableYoloMode", Bool, "false", "Takes the modes yolo and auto off the list.").guard(Only(true)),
        key("security.disableAlwaysAllow", Bool, "false", "Takes the answers that allow more than one call off the list.").guard(Only(true)),
        key(SANDBOX_LEVEL, Word(SandboxLevel::NAMES), "", "What commands may write: workspace-write (the roots without their configuration; the default where the system can), read-only, or off.").guard(Closed),
        key("security.sandbox.network", Bool, "false", "Whether commands in the sandbox have network.").guard(Only(false)),
        key("security.network.allow", Texts, "[]", "Hosts that commands in the sandbox may reach: example.com (port 443), *.example.com, example.com:8443, example.com:*, registries (of package managers); with \" private\" behind one that is on a private network.").merge(Union).guard(Closed),
        key("security.network.deny", Texts, "[]", "Hosts that commands in the sandbox never reach, and that castor does not ask about, written so as well; without a port, on any.").merge(Union),
        key("security.sandbox.writable", Texts, "[]", "More folders that commands in the sandbox may write, such as ~/.cache.").merge(Union).guard(Closed),
        key("security.sandbox.readable", Texts, "[]", "Credentials that commands in the sandbox may read, such as ~/.npmrc; others are masked.").merge(Union).guard(Closed),
        key("security.environmentVariableRedaction.allowed", Texts, "[]", "Variables that commands see though they are not on castor's list.").merge(Union).guard(Closed),
        key("security.environmentVariableRedaction.blocked", Texts, "[]", "Variables that commands never see.").merge(Union),
        key("security.environmentVariableRedaction.enabled", Bool, "true", "castor always filters what commands see; `allowed` lets single variables through.").guard(Only(true)).usage(Accepted),
        key("security.auth.useExternal", Bool, "false", "Whether another program authenticates.").guard(Closed).usage(Accepted),
        key("security.toolSandboxing", Bool, "false", "castor confines commands anyway, see security.sandbox.level.").guard(Only(true)).usage(Accepted),
        key("security.enablePermanentToolApproval", Bool, "false", "Whether you can allow a call permanently.").guard(Only(false)),
        key("security.autoAddToPolicyByDefault", Bool, "false", "Whether \"allow permanently\" is the first choice.").guard(Only(false)).usage(Accepted),
        key("security.folderTrust.enabled", Bool, "true", "castor always asks before a folder counts as trusted.").guard(Closed).usage(Accepted),
        key("security.enableConseca", Bool, "false", "Whether a model checks each call against the task.").guard(Only(true)).usage(NOT_YET),
        key("security.blockGitExtensions", Bool, "false", "Whether extensions from git are refused.").guard(Only(true)),
        key("security.allowedExtensions", Texts, "[]", "Regular expressions: the places that extensions may come from; none: any.").guard(Closed),

        key("tools.core", Texts, "", "The only built-in tools that the model may use.").merge(Intersect),
        key("tools.exclude", Texts, "[]", "Tools that the model may not use.").merge(Union),
        key("tools.allowed", Texts, "[]", "Tools that run without a question.").merge(Union).guard(Closed),
        key("tools.confirmationRequired", Texts, "[]", "Tools that always ask.").merge(Union),
        key("tools.sandbox", Any, "", "Gemini CLI's container; castor's own sandbox is security.sandbox.level.").guard(Closed).usage(Accepted),
        key("tools.sandboxAllowedPaths", Texts, "[]", "Gemini CLI's name for security.sandbox.writable; both count.").merge(Union).guard(Closed),
        key("tools.sandboxNetworkAccess", Bool, "false", "Gemini CLI's name for security.sandbox.network; either suffices.").guard(Only(false)),
        key("tools.shell", Object, "{}", "Gemini CLI's terminal in commands: pager, colours, interactivity.").merge(Shallow).usage(Accepted),
        key("tools.discoveryCommand", Text, "", "A command that lists more tools.").guard(Closed).usage(NOT_YET),
        key("tools.callCommand", Text, "", "The command that runs a discovered tool.").guard(Closed).usage(NOT_YET),
        key("tools.useRipgrep", Bool, "true", "castor's search needs no ripgrep.").usage(Accepted),
        key("tools.disableLLMCorrection", Bool, "true", "castor repairs edits without a model.").usage(Accepted),
        key("policyPaths", Texts, "[]", "Files (.toml) or folders with policy rules, in place of ~/.gemini/policies; absolute or below ~/.").merge(Union).guard(Closed),
        key("adminPolicyPaths", Texts, "[]", "The same with an administrator's rules, where the system's folder has none.").merge(Union).guard(Closed),

        key("general", Object, "{}", "Gemini CLI's general settings.").merge(Shallow).usage(Accepted),
        key("model.compressionThreshold", Fraction, "0.5", "The part of a model's window above which the older part of a conversation is compressed; 0: never."),
        key("model.disableLoopDetection", Bool, "false", "Whether a model that repeats itself may continue."),
        key("model.skipNextSpeakerCheck", Bool, "true", "Whether no model is asked if an answer was the last one."),
        key("model.summarizeToolOutput", Object, "{}", "Tools whose output is summarized.").merge(Shallow).usage(Accepted),
        key("modelConfigs", Object, "{}", "Other names of models and their parameters: customAliases by name, with extends and modelConfig, and customOverrides.").merge(Shallow).guard(Closed),
        key("agents.overrides", Object, "{}", "Changes to sub-agents by name: enabled, runConfig (maxTurns, maxTimeMinutes), modelConfig (model, generateContentConfig.temperature), tools, mcpServers.").merge(Shallow).guard(Closed),
        key("agents", Object, "{}", "Sub-agents.").merge(Shallow).usage(Accepted),
        key("context.fileName", Any, "", "The name of memory files, or a list; they end with .md. Else GEMINI.md and AGENTS.md."),
        key("context.includeDirectoryTree", Bool, "true", "Whether the model learns at the start what lies in a trusted folder: 200 names at most."),
        key("context.includeDirectories", Texts, "[]", "More folders that belong to the workspace.").merge(Concat).usage(NOT_YET),
        key("context.fileFiltering.customIgnoreFilePaths", Texts, "[]", "Names of more ignore files, in any folder; the last one is the strongest.").merge(Union),
        key("context.fileFiltering", Object, "{}", "What search and listing skip.").merge(Shallow).usage(Accepted),
        key("context", Object, "{}", "Memory files and the folder listing.").merge(Shallow).usage(Accepted),
        key("contextManagement.tools.distillation.maxOutputTokens", Int(100), "10000", "Tokens of a result that stay, where results are distilled."),
        key("contextManagement.tools.distillation.summarizationThresholdTokens", Int(100), "20000", "Tokens above which a model lists what counts in a result, where results are distilled."),
        key("contextManagement", Object, "{}", "Masking, distillation and limits of history.").merge(Shallow).usage(Accepted),
        key("mcp.allowed", Texts, "", "The only MCP servers of the settings that may start.").merge(Intersect),
        key("mcp.excluded", Texts, "[]", "MCP servers of the settings that may not start.").merge(Union),
        key("mcp.startBudgetMs", Int(0), "10000", "How long a first prompt waits for MCP servers that start, in milliseconds."),
        key("mcp.maxRestarts", Int(0), "8", "How often an MCP server that is gone is started again in a row: after 1 second, then twice as long, 60 at most."),
        key("mcp.sampling.enabled", Bool, "true", "Whether MCP servers may have a model answer something; you are asked each time.").guard(Closed),
        key("mcp.sampling.model", Text, "", "The model that answers MCP servers; else the conversation's.").guard(Closed),
        key("mcp.sampling.maxRequests", Int(0), "20", "How many requests to a model all MCP servers of a session may make.").guard(Closed),
        key("mcp.sampling.maxTokens", Int(0), "100000", "How many tokens those may take in all, read and written.").guard(Closed),
        key("mcp.serverCommand", Text, "", "The command of one MCP server.").guard(Closed).usage(Accepted),
        key("connection.proxy", Text, "", "The proxy of all connections, http://host:port; none: no proxy. Else HTTPS_PROXY, HTTP_PROXY and NO_PROXY count.").guard(Closed),
        key("connection.caFile", Text, "", "A PEM file of authorities that are trusted beside the system's, absolute or below ~/; NODE_EXTRA_CA_CERTS counts too.").guard(Closed),
        key("connection.connectTimeout", Int(1), "10", "Seconds until a server has to take a connection.").guard(Closed),
        key("connection.idleTimeout", Int(1), "120", "Seconds that a model's server may be silent, before its answer and within it.").guard(Closed),
        key("providers", Object, "{}", "Providers of models by name, for models named NAME/MODEL: baseUrl, type (openai, responses, anthropic), apiKeyEnv, headers, models.").merge(Shallow).guard(Closed),
        key("mcpServers", Object, "{}", "MCP servers by name; those of a workspace start only where it is trusted.").merge(Shallow),
        key("hooks", Object, "{}", "Commands to run at points of a session, by event; those of a workspace run only where it is trusted.").merge(ConcatMembers),
        key("hooksConfig.enabled", Bool, "true", "Whether hooks run.").guard(Only(true)),
        key("hooksConfig.disabled", Texts, "[]", "Hooks that do not run, by name or command.").merge(Union).guard(Closed),
        key("hooksConfig.notifications", Bool, "true", "Whether running hooks are shown.").usage(Accepted),
        key("skills.enabled", Bool, "true", "Whether skills are available.").guard(Only(false)),
        key("skills.disabled", Texts, "[]", "Skills that are not available, by name.").merge(Union),
        key("extensions.disabled", Texts, "[]", "Extensions that are off, by name.").merge(Union),
        key("extensions", Object, "{}", "Extensions.").merge(Shallow).usage(Accepted),
        key("useWriteTodos", Bool, "true", "Whether the model may keep a list of tasks.").usage(Accepted),
        key("experimental.adk", Object, "{}", "Which runtime Gemini CLI uses.").merge(Shallow).usage(ONE_RUNTIME),
        key("experimental.autoMemory", Bool, "false", "Whether the agent memory_extractor is on, which proposes facts from earlier sessions.").guard(Only(false)),
        key("experimental.contextManagement", Bool, "false", "Whether very large results are distilled: a small model lists what counts in them."),
        key("experimental.enableAgents", Bool, "true", "Whether a model may start sub-agents.").guard(Only(false)),
        key("experimental.jitContext", Bool, "true", "Whether memory files of sub-folders count, from when the work comes there."),
        key("experimental", Object, "{}", "Gemini CLI's experiments.").merge(Shallow).usage(Accepted),
        key("advanced.excludedEnvVars", Texts, r#"["DEBUG", "DEBUG_MODE"]"#, "Variables that a project's .env may not set.").merge(Union).usage(Accepted),
        key("advanced", Object, "{}", "Gemini CLI's process.").merge(Shallow).usage(Accepted),
        key("admin", Object, "{}", "Set by Gemini CLI's remote administration only.").merge(Shallow).guard(Closed).usage(Accepted),
        key("output", Object, "{}", "The format of Gemini CLI's headless output.").merge(Shallow).usage(Accepted),
        key("privacy", Object, "{}", "castor sends no usage statistics.").merge(Shallow).usage(Accepted),
        key("telemetry.enabled", Bool, "false", "Whether castor exports events and metrics in Gemini CLI's names.").guard(Closed).env(&["GEMINI_TELEMETRY_ENABLED"]),
        key("telemetry.traces", Bool, "false", "Whether spans go there, too.").guard(Closed).env(&["GEMINI_TELEMETRY_TRACES_ENABLED"]),
        key("telemetry.target", Word(&["local", "gcp"]), r#""local""#, "Where they go: a collector or a file; castor cannot export to gcp.").guard(Closed).env(&["GEMINI_TELEMETRY_TARGET"]),
        key("telemetry.otlpEndpoint", Text, "", "The address of the collector, over HTTP. Else http://localhost:4318.").guard(Closed).env(&["OTEL_EXPORTER_OTLP_ENDPOINT", "GEMINI_TELEMETRY_OTLP_ENDPOINT"]),
        key("telemetry.otlpProtocol", Word(&["grpc", "http"]), r#""http""#, "castor speaks OTLP over HTTP, as JSON.").guard(Closed).env(&["GEMINI_TELEMETRY_OTLP_PROTOCOL"]),
        key("telemetry.outfile", Text, "", "A file to which they are appended, in place of a collector: one JSON message a line.").guard(Closed).env(&["GEMINI_TELEMETRY_OUTFILE"]),
        key("telemetry", Object, "{}", "Where events, metrics and spans go.").merge(Shallow).guard(Closed).usage(Accepted),
        key("billing", Object, "{}", "Gemini CLI's plans.").merge(Shallow).usage(Accepted),
        key("ide", Object, "{}", "Over ACP the editor sends its context itself.").merge(Shallow).usage(Accepted),
        key("ui", Object, "{}", "Gemini CLI's terminal screen.").merge(Shallow).usage(Accepted),
        key("$schema", Text, "", "Where editors find the schema of this file.").usage(Accepted),
    ]
};

/// Flat names that old Gemini CLI files use, and what they are called now.
const RENAMED: &[(&str, &str)] = &[
    ("allowedTools", "tools.allowed"),
    ("allowMCPServers", "mcp.allowed"),
    ("approvalMode", "general.defaultApprovalMode"),
    ("autoAccept", "general.defaultApprovalMode"),
    ("contextFileName", "context.fileName"),
    ("coreTools", "tools.core"),
    ("excludeMCPServers", "mcp.excluded"),
    ("excludeTools", "tools.exclude"),
    ("fileFiltering", "context.fileFiltering"),
    ("includeDirectories", "context.includeDirectories"),
    ("maxSessionTurns", "model.maxSessionTurns"),
    ("model", "model.name"),
    ("sandbox", "tools.sandbox"),
    ("selectedAuthType", "security.auth.selectedType"),
    ("theme", "ui"),
];

/// The row of exactly this path.
pub fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|it| it.path == path)
}

/// Tells whether known settings lie below this path.
pub fn is_group(path: &str) -> bool {
    KEYS.iter().any(|it| path_below(it.path, path).is_some())
}

/// The row of the object that holds this path, the innermost one, and the rest of the path.
pub fn enclosing_key(path: &str) -> Option<(&'static Key, &str)> {
    let rows = KEYS.iter().filter(|it| it.kind == KeyKind::Object);
    rows.filter_map(|it| Some((it, path_below(path, it.path)?))).max_by_key(|(it, _)| it.path.len())
}

/// What of `path` lies below `group`.
pub fn path_below<'p>(path: &'p str, group: &str) -> Option<&'p str> {
    path.strip_prefix(group)?.strip_prefix('.')
}

/// The known name of which this is a slip of the fingers: a neighbour in its group.
pub fn misspelt(path: &str) -> Option<&'static str> {
    let (group, name) = path.rsplit_once('.')?;
    let neighbours = KEYS.iter().filter_map(|it| Some((it.path, path_below(it.path, group)?)));
    let scored = neighbours.filter_map(|(path, it)| Some((edits(name, it, 2)?, path)));
    scored.min_by_key(|(edits, _)| *edits).map(|(_, path)| path)
}

/// The known name that was probably meant.
pub fn nearest(path: &str) -> Option<&'static str> {
    if let Some((_, now)) = RENAMED.iter().find(|(old, _)| *old == path) {
        return Some(now);
    }
    let groups = |it: &'static str| it.match_indices('.').filter_map(move |(at, _)| it.get(..at));
    let names = KEYS.iter().flat_map(|it| groups(it.path).chain([it.path]));
    let most = (1 + path.len() / 5).min(8);
    let scored = names.filter_map(|name| Some((distance(path, name, most)?, name)));
    scored.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// How far `written` is from `name`: 0 for other case, 1 for the right end in the wrong group, else edits.
fn distance(written: &str, name: &str, most: usize) -> Option<usize> {
    let end = |it: &str| it.len() - it.rfind('.').map_or(0, |dot| dot + 1);
    let same_end = || {
        let len = end(written);
        let tail = |it: &str| it.get(it.len().saturating_sub(len)..).unwrap_or_default().to_ascii_lowercase();
        len == end(name) && tail(written) == tail(name)
    };
    match written.eq_ignore_ascii_case(name) {
        true => Some(0),
        false if same_end() => Some(1),
        // A group is no slip of the fingers for its member.
        false if written.matches('.').count() != name.matches('.').count() => None,
        false => edits(written, name, most),
    }
}

/// Insertions, deletions and replacements between two texts, in any case; `None` above `most`. Lengths are compared
/// first, since this runs for each unknown member of each file, before the editor gets its session.
pub(super) fn edits(a: &str, b: &str, most: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    let count = strsim::levenshtein(&a.to_ascii_lowercase(), &b.to_ascii_lowercase());
    (count <= most).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::{KEYS, RENAMED, edits, find, is_group, nearest};

    #[test]
    fn the_table_is_sound() {
        for (at, key) in KEYS.iter().enumerate() {
            assert!(KEYS[..at].iter().all(|it| it.path != key.path), "{} twice", key.path);
            assert!(key.doc.ends_with('.'), "{}", key.path);
            assert_eq!(key.default_value().is_none(), key.default.is_empty(), "{}", key.path);
            if let Some(it) = key.default_value() {
                assert!(key.accept(&it, None, false).is_ok(), "{}", key.path);
            }
        }
        assert!(RENAMED.iter().all(|(_, now)| find(now).is_some() || is_group(now)));
    }

    #[test]
    fn finds_what_was_meant() {
        for (written, want) in [
            ("model.nmae", Some("model.name")),
            ("Model.Name", Some("model.name")),
            ("tols", Some("tools")),
            ("security.disableYolo", Some("security.disableYoloMode")),
            ("tools.respectGitIgnore", Some("context.fileFiltering.respectGitIgnore")),
            ("coreTools", Some("tools.core")),
            ("mcpservers", Some("mcpServers")),
            ("zzz", None),
            ("completely.different.thing", None),
        ] {
            assert_eq!(nearest(written), want, "{written}");
        }
        assert_eq!(edits("kitten", "Sitting", 3), Some(3));
        assert_eq!(edits("kitten", "sitting", 2), None);
        assert_eq!(edits("", "ab", 2), Some(2));
    }
}
