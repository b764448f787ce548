//! The report of `castor doctor` as JSON: one object.

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    editors,
    probe::ProbeStep,
    report::{FolderReport, KeysReport, LastFailure, ModelTableReport, Report, ServerReport, SettingsReport},
};
use castor_base::path::AbsPath;

/// What `castor doctor --json` writes: one object.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DoctorOutput<'a> {
    #[serde(flatten)]
    installation: InstallationOutput<'a>,
    #[serde(flatten)]
    sessions: SessionsOutput<'a>,
}

#[derive(Serialize, JsonSchema)]
struct InstallationOutput<'a> {
    version: &'a str,
    platform: PlatformOutput<'a>,
    /// The path of this binary.
    program: &'a str,
    /// True where nothing is to be done; the exit code is 0.
    ok: bool,
    /// What is broken, each with what to do.
    todo: &'a [String],
    /// As an editor begins, on the demo model.
    handshake: Vec<StepOutput<'a>>,
    /// castor's own folder.
    home: Option<HomeOutput<'a>>,
    /// What killed castors left, and this one removed.
    removed: &'a [String],
    /// Interrupted restores of files that were finished or taken back.
    recovered: &'a [String],
    /// What to put into the settings of editors.
    editors: Vec<EditorOutput>,
}

/// What sessions of this folder get, and got.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SessionsOutput<'a> {
    settings: &'a SettingsReport,
    keys: &'a KeysReport,
    model: ModelOutput<'a>,
    sandbox: SandboxOutput<'a>,
    mcp_servers: &'a [ServerReport],
    folder: &'a FolderReport,
    /// Where the newest session's last request went, and why.
    last_request: Option<&'a str>,
    /// The last errors of the newest sessions.
    errors: &'a [LastFailure],
}

#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlatformOutput<'a> {
    os: &'a str,
    arch: &'a str,
}

#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StepOutput<'a> {
    name: &'a str,
    ms: u64,
    problem: Option<&'a str>,
}

#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ModelOutput<'a> {
    /// The one of the settings.
    name: Option<&'a str>,
    reach: ReachOutput<'a>,
    known: &'a ModelTableReport,
}

/// Both are null where the provider was not asked.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReachOutput<'a> {
    ms: Option<u64>,
    problem: Option<&'a str>,
}

#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SandboxOutput<'a> {
    /// In words.
    level: String,
    /// What this system confines commands by.
    has: &'a str,
    lacks: Option<&'a str>,
    /// What is not held in so large a folder.
    unseen: Option<&'a str>,
    /// Why it is guessed what the sandbox denied; null where the system tells.
    guesses: Option<&'a str>,
    /// Why commands cannot write in the folders of tools; null where they can.
    no_layers: Option<&'a str>,
    /// How a command is held to its limits.
    limits: &'a str,
    /// What an administrator can do so that more is held, in lines.
    advice: &'a [String],
}

#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HomeOutput<'a> {
    path: &'a AbsPath,
    /// Octal digits; null where it is not made yet.
    mode: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditorOutput {
    editor: &'static str,
    file: &'static str,
    text: String,
}

impl Report {
    pub fn to_json(&self) -> String {
        let output = DoctorOutput { installation: self.installation(), sessions: self.sessions() };
        // Structs can always be written.
        serde_json::to_string(&output).unwrap_or_default()
    }

    fn installation(&self) -> InstallationOutput<'_> {
        InstallationOutput {
            version: env!("CARGO_PKG_VERSION"),
            platform: PlatformOutput { os: std::env::consts::OS, arch: std::env::consts::ARCH },
            program: &self.program,
            ok: self.todo.is_empty(),
            todo: &self.todo,
            handshake: self.preparations.steps.iter().map(StepOutput::of).collect(),
            home: self.home.as_ref().map(|(path, mode)| HomeOutput { path, mode: mode.map(|it| format!("{it:o}")) }),
            removed: &self.preparations.left,
            recovered: &self.preparations.recovered,
            editors: editors::snippets(&self.program)
                .map(|(editor, file, text)| EditorOutput { editor, file, text })
                .collect(),
        }
    }

    fn sessions(&self) -> SessionsOutput<'_> {
        SessionsOutput {
            settings: &self.settings,
            keys: &self.keys,
            model: ModelOutput {
                name: self.model.name.as_deref(),
                reach: ReachOutput { ms: self.model.reach.ms(), problem: self.model.reach.problem() },
                known: &self.model.known,
            },
            sandbox: SandboxOutput {
                level: self.sandbox.in_words(),
                has: self.sandbox.has,
                lacks: self.sandbox.lacks,
                unseen: self.sandbox.unseen.as_deref(),
                guesses: self.sandbox.guesses,
                no_layers: self.sandbox.no_layers,
                limits: self.sandbox.limits,
                advice: &self.sandbox.advice,
            },
            mcp_servers: &self.servers,
            folder: &self.folder,
            last_request: self.history.request.as_deref(),
            errors: &self.history.errors,
        }
    }
}

impl<'a> StepOutput<'a> {
    fn of(it: &'a ProbeStep) -> Self {
        Self { name: it.name, ms: it.took.as_millis() as u64, problem: it.problem.as_deref() }
    }
}
