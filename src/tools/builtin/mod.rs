//! Built-in tools behind one trait, listed in one table.

mod aliases;
pub mod apply_patch;
pub mod exit_plan_mode;
mod fact_arguments;
pub mod folder_tree;
pub mod get_internal_docs;
pub mod glob;
pub mod google_web_search;
pub mod grep_search;
pub mod list_background_processes;
pub mod list_directory;
pub mod params;
pub mod past_sessions;
pub mod paths;
mod private_files;
pub mod propose_memory;
pub mod read_background_output;
pub mod read_file;
pub mod read_many_files;
pub mod replace;
pub mod save_memory;
mod schema;
pub mod shell;
mod skipped;
#[cfg(test)]
mod testing;
mod texts;
pub mod truncate;
pub mod walk;
mod web_access;
pub mod web_fetch;
pub mod write_file;

use std::sync::Arc;

pub use google_web_search::{GOOGLE_WEB_SEARCH, WebFindings, WebSearch};
pub use web_access::WebAccess;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use castor_base::{
    fs::{BoxFuture, Fs},
    path::AbsPath,
    sandbox::{Confinement, ProtectedPaths},
    saved_memory::SavedMemory,
    terminal::{CommandReport, Screen, Terminal},
    tool::{BaseHash, Preview, SeenFiles, TargetPath, Targets, ToolError, ToolOutput, ToolSpec},
};
use castor_hands::{disk, process::Groups};

/// A tool that castor brings along.
pub trait Builtin: Send + Sync {
    fn spec(&self) -> ToolSpec;

    /// Checks the arguments and says what the call would touch, symlinks resolved. Reads no content.
    fn targets<'a>(&'a self, args: &'a Value, ctx: &'a ToolContext) -> Task<'a, Targets>;

    /// What the user should see before saying yes; the default shows nothing but the targets' title.
    fn preview<'a>(&'a self, _args: &'a Value, _ctx: &'a ToolContext) -> Task<'a, Preview> {
        Box::pin(async { Ok(Preview::default()) })
    }

    /// Does it. `base` is what the preview was made from: when it no longer holds, nothing is done.
    fn run<'a>(&'a self, args: &'a Value, base: Option<&'a BaseHash>, ctx: &'a ToolContext) -> Task<'a, ToolOutput>;
}

/// A failure is told to the model.
pub type Task<'a, T> = BoxFuture<'a, Result<T, ToolError>>;

/// Every built-in tool, by name. Commands that tools start are registered in `groups`.
pub fn builtins(groups: Groups) -> Vec<Box<dyn Builtin>> {
    let background = shell::BackgroundProcesses::default();
    vec![
        Box::new(apply_patch::ApplyPatch),
        Box::new(exit_plan_mode::ExitPlanMode),
        Box::new(get_internal_docs::GetInternalDocs),
        Box::new(glob::Glob),
        Box::new(google_web_search::GoogleWebSearch),
        Box::new(grep_search::GrepSearch),
        Box::new(list_background_processes::ListBackgroundProcesses::new(background.clone())),
        Box::new(list_directory::ListDirectory),
        Box::new(propose_memory::ProposeMemory),
        Box::new(read_background_output::ReadBackgroundOutput::new(background.clone())),
        Box::new(read_file::ReadFile),
        Box::new(read_many_files::ReadManyFiles),
        Box::new(past_sessions::ReadPastSessions),
        Box::new(replace::Replace),
        Box::new(shell::Shell::new(groups, background)),
        Box::new(save_memory::SaveMemory),
        Box::new(web_fetch::WebFetch),
        Box::new(write_file::WriteFile),
    ]
}

/// The context of a call.
#[derive(Clone)]
pub struct ToolContext {
    /// Base of relative paths; the first root.
    pub cwd: AbsPath,
    /// Folders that belong to the session, canonical, `cwd` first.
    pub roots: Vec<AbsPath>,
    /// castor's own folder for this session's long outputs.
    pub scratch: AbsPath,
    pub known: CallKnowledge,
    pub fs: Arc<dyn Fs>,
    pub cancel: CancellationToken,
    /// Takes what was printed since the last call; waits while the loop cannot take more.
    pub progress: Progress,
    pub background: Background,
    pub settings: Arc<ToolSettings>,
    /// The environment that children get, already filtered.
    pub env: Arc<Vec<(String, String)>>,
    pub terminals: Terminals,
    /// What commands of ours may do; `None`: what the user may.
    pub confined: Option<Arc<Confinement>>,
}

impl ToolContext {
    /// Where a call's path lies: from the session's folder on. Models write `~/` as shells know it; a folder of that
    /// name is `./~`. A name that is not ASCII is the one on the disk that looks the same: only there is the disk asked.
    pub fn resolve_path(&self, path: &str) -> AbsPath {
        let below = if path == "~" { Some("") } else { path.strip_prefix("~/") };
        let home = below.and_then(|it| Some(self.home()?.join(it.trim_start_matches('/'))));
        disk::existing_path(home.unwrap_or_else(|| self.cwd.join(path)))
    }

    pub fn home(&self) -> Option<AbsPath> {
        self.env.iter().rev().find(|(name, _)| name == "HOME").and_then(|it| AbsPath::new(&it.1))
    }
}

/// Facts about a call and its targets.
#[derive(Clone, Default)]
pub struct CallKnowledge {
    /// What policy decided about: the call touches nothing else. Empty while its targets are looked for.
    pub decided_targets: Arc<[TargetPath]>,
    /// What the model knows of files that it writes as a whole.
    pub seen: SeenFiles,
    /// What is asked about as commands are kept from it, also where nothing confines them.
    pub protected: Arc<ProtectedPaths>,
}

impl CallKnowledge {
    pub fn decided(decided_targets: Arc<[TargetPath]>, seen: SeenFiles) -> Self {
        Self { decided_targets, seen, ..Self::default() }
    }
}

/// For what goes on when its call has returned.
#[derive(Clone)]
pub struct Background {
    /// The end of the session, and with it of all that commands left running.
    pub session_closed: CancellationToken,
    /// Takes what became of a command.
    pub completed: OnCommandEnd,
    /// Called when all processes of a command have ended, perhaps before its call returns.
    pub on_group_empty: OnGroupEmpty,
    /// Tells user and model, with the session's next turn.
    pub notice: Progress,
}

impl Default for Background {
    /// Discards everything.
    fn default() -> Self {
        let nobody: Progress = Arc::new(|_| Box::pin(async {}));
        let emptied: OnGroupEmpty = Arc::new(|_| Box::pin(async {}));
        Self {
            session_closed: CancellationToken::new(),
            completed: Arc::new(|_| Box::pin(async {})),
            on_group_empty: emptied,
            notice: nobody,
        }
    }
}

/// The terminals of commands, and the way in which the client shows them.
#[derive(Clone)]
pub struct Terminals {
    /// The client's own, where it has them and the user wants commands there.
    pub client: Option<Arc<dyn Terminal>>,
    /// The client draws what our commands print, colours and all.
    pub draws_output: bool,
    /// Tells the client which terminal shows a call.
    pub attach: Attach,
}

pub type Attach = Arc<dyn Fn(Screen) -> BoxFuture<'static, ()> + Send + Sync>;

impl Default for Terminals {
    /// Text.
    fn default() -> Self {
        Self { client: None, draws_output: false, attach: Arc::new(|_| Box::pin(async {})) }
    }
}

pub type OnGroupEmpty = Arc<dyn Fn(u32) -> BoxFuture<'static, ()> + Send + Sync>;

/// Takes the report on a command that outlived its call.
pub type OnCommandEnd = Arc<dyn Fn(CommandReport) -> BoxFuture<'static, ()> + Send + Sync>;

pub type Progress = Arc<dyn Fn(String) -> BoxFuture<'static, ()> + Send + Sync>;

/// The user's settings that concern tools.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSettings {
    pub respect_git_ignore: bool,
    pub respect_gemini_ignore: bool,
    /// More ignore files, by name; the last one is the strongest.
    pub ignore_files: Vec<String>,
    /// Seconds without output after which a command is ended; 0: never.
    pub shell_inactivity_s: u64,
    pub shell_limits: shell::limits::CommandLimits,
    /// Commands run in the client's terminals, where it has them.
    pub shell_in_client: bool,
    /// The model is told at the start what lies in the session's folders.
    pub tells_tree: bool,
    /// `None`: castor has no folder of its own.
    pub saved_memory: Option<SavedMemory>,
    pub web: WebAccess,
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self {
            respect_git_ignore: true,
            respect_gemini_ignore: true,
            ignore_files: Vec::new(),
            shell_inactivity_s: 300,
            shell_limits: shell::limits::CommandLimits::default(),
            shell_in_client: false,
            tells_tree: true,
            saved_memory: None,
            web: WebAccess::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Groups, builtins};
    use castor_base::patch;

    #[test]
    fn table_is_sorted_and_cheap() {
        let builtins = builtins(Groups::default());
        assert!(builtins.is_sorted_by_key(|it| it.spec().name));
        let (mut bytes, mut bytes_of_patch) = (0, patch::GRAMMAR.len());
        for spec in builtins.iter().map(|it| it.spec()) {
            assert_eq!(spec.parameters["type"], "object");
            for name in spec.parameters["required"].as_array().unwrap() {
                assert!(spec.parameters["properties"].get(name.as_str().unwrap()).is_some(), "{name}");
            }
            let n = spec.name.len() + spec.description.len() + spec.parameters.to_string().len();
            // It stands in the place of `replace` where models know it.
            if spec.traits.is_patch { bytes_of_patch += n } else { bytes += n }
        }
        println!("{bytes} bytes of specs, {bytes_of_patch} of the patch");
        assert!(bytes < 8_000, "{bytes}: every request pays for these");
        assert!(bytes_of_patch < 2_000, "{bytes_of_patch}: every request of a model with patches pays for these");
    }
}
