//! Command line arguments: the clap definition of the whole binary. Parsing touches nothing but argv.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::{
    agent_args::AgentArgs,
    agents::AgentsArgs,
    auth::AuthArgs,
    clean_verb::CleanArgs,
    config::ConfigArgs,
    doctor::DoctorArgs,
    exec::{ExecArgs, ShellArgs},
    exits,
    extensions::ExtensionsArgs,
    file_commands::CommandsArgs,
    gemini_flags::GeminiRunFlags,
    hooks::HooksArgs,
    install::InstallVerb,
    looked::LookedArgs,
    mcp::McpArgs,
    models::ModelsArgs,
    permissions::PermissionsArgs,
    policy::PolicyArgs,
    render::ansi::Palette,
    run::input_args::RunInputArgs,
    schema::SchemaArgs,
    serve::ServeArgs,
    sessions::SessionsArgs,
    skills::SkillsArgs,
    stats::StatsArgs,
    trust::TrustArgs,
    undo::{DiffArgs, RedoArgs, RewindArgs, UndoArgs},
};
/// The value of a `-r` without one: no command line can hold it, so that `-r ""` is a mistake and no choice.
pub const CHOOSE: &str = "\0";
const ABOUT: &str = "A coding agent for your editor, your scripts and your terminal";
const GEMINI: &str = "\nGemini CLI's flags work too, also without a command: castor -y -p \"…\"";
const EXAMPLES: &str = "\
Examples:
  castor                                   talk with castor in this folder
  castor run \"what does this crate do?\"     send one prompt, print the answer
  castor undo                              take back what that session changed
  castor acp                               the agent, for an editor to start";

#[derive(Debug, Parser)]
#[command(name = "castor", version, about = ABOUT, after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: CliVerb,
}

// There is one in a process.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Subcommand)]
pub enum CliVerb {
    #[command(flatten)]
    Agent(AgentVerb),
    /// Store, remove or look at the API key
    Auth(AuthArgs),
    /// Ask providers for their models; editors show them from then on
    Models(ModelsArgs),
    /// Look at the configuration
    Config(ConfigArgs),
    /// Look after the sessions: list, show, export, import, repair, delete
    Sessions(SessionsArgs),
    /// Sum up cost, tokens, tools and time of all sessions
    Stats(StatsArgs),
    /// Take back what a session changed in files; also redo, rewind, diff, looked, clean
    Undo(UndoArgs),
    /// Take the last undo back
    #[command(hide = true)]
    Redo(RedoArgs),
    /// Go back to before a prompt: files, conversation or both
    #[command(hide = true)]
    Rewind(RewindArgs),
    /// Show what a session changed in files
    #[command(hide = true)]
    Diff(DiffArgs),
    /// Show and free the space that undo needs
    #[command(hide = true)]
    Clean(CleanArgs),
    /// Say that you looked at what agents wrote
    #[command(hide = true)]
    Looked(LookedArgs),
    /// Run a program of yours in the sandbox of commands; also shell
    Exec(ExecArgs),
    /// Start your shell in the sandbox of commands
    #[command(hide = true)]
    Shell(ShellArgs),
    /// Ask what may run without a question
    Policy(PolicyArgs),
    /// List your permanent permissions, or revoke them
    Permissions(PermissionsArgs),
    /// List the sub-agents, show, write or check one
    Agents(AgentsArgs),
    /// List the commands that files bring, show or check one
    Commands(CommandsArgs),
    /// List the skills, show, switch or check one
    Skills(SkillsArgs),
    /// Install, list, switch and update extensions
    Extensions(ExtensionsArgs),
    /// List the hooks, or take over Claude Code's and Cursor's
    Hooks(HooksArgs),
    /// Start the MCP servers of this folder, and tell how they are
    Mcp(McpArgs),
    /// Tell whether castor works here, and what to do if not
    Doctor(DoctorArgs),
    /// Print the JSON Schema of settings, logs, outputs or _meta
    #[command(hide = true)]
    Schema(SchemaArgs),
    /// Say that a folder is trusted, or not; list; tell why
    Trust(TrustArgs),
    #[command(flatten)]
    Install(InstallVerb),
}

/// The commands that are an agent, or talk with one.
// There is one in a process.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Subcommand)]
pub enum AgentVerb {
    /// Serve an editor: JSON-RPC on stdin and stdout, until stdin closes
    Acp(AcpArgs),
    /// Talk with an agent on this terminal; also `castor` alone
    Chat(ChatArgs),
    /// Send one prompt to an agent and print the answer
    Run(RunArgs),
    /// Serve clients over WebSocket and HTTP, here or elsewhere; tokens for them
    Serve(ServeArgs),
}

/// Clients that log in by a terminal append `auth login` to the command line that they know.
#[derive(Args, Clone, Debug, Default)]
pub struct AcpArgs {
    #[command(flatten)]
    pub agent_args: AgentArgs,
    /// Where sessions are kept: files, or postgres://…; CASTOR_STORE hides a password [default: files]
    #[arg(long, value_name = "STORE")]
    pub store: Option<String>,
    #[command(subcommand)]
    pub instead: Option<AcpVerb>,
}

#[derive(Subcommand, Clone, Debug)]
pub enum AcpVerb {
    /// Store, remove or look at the API key, and do not serve
    Auth(AuthArgs),
}

/// Which session goes on, and with which agent.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionArgs {
    /// Continue a session; without an id, choose it from a list
    #[arg(short, long, value_name = "ID|N|latest", num_args = 0..=1, default_missing_value = CHOOSE)]
    pub resume: Option<String>,
    /// Continue the last session of this folder
    #[arg(short, long = "continue", conflicts_with = "resume")]
    pub continue_last: bool,
    /// Drive this ACP agent instead of castor
    #[arg(long, value_name = "CMD ARGS", conflicts_with_all = ["fake_responses", "fake_responses_non_strict", "record_responses"])]
    pub agent: Option<String>,
}

#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(after_help = exits::help("run") + GEMINI)]
pub struct RunArgs {
    /// What to ask; @FILE attaches a file; piped stdin goes before it, or stands for it
    pub prompt: Option<String>,
    #[command(flatten)]
    pub agent_args: AgentArgs,
    #[command(flatten)]
    pub session: SessionArgs,
    /// text, json, or lines: stream-json, events
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t, hide_possible_values = true)]
    pub output_format: OutputFormat,
    #[command(flatten)]
    pub input: RunInputArgs,
    /// The folder to work in
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Do not read stdin, even if it is a pipe
    #[arg(long)]
    pub no_stdin: bool,
    #[command(flatten)]
    pub gemini: GeminiRunFlags,
}

#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(after_help = exits::help("chat"))]
pub struct ChatArgs {
    /// The first message
    pub prompt: Option<String>,
    #[command(flatten)]
    pub agent_args: AgentArgs,
    #[command(flatten)]
    pub session: SessionArgs,
    /// The folder to work in
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Lines only, for screen readers: nothing is drawn twice
    #[arg(long)]
    pub plain: bool,
    /// Type with the keys of vi
    #[arg(long)]
    pub vi: bool,
    /// Colours: terminal, dark, light; without it as the terminal's background is
    #[arg(long, value_name = "NAME", value_enum, hide_possible_values = true)]
    pub theme: Option<Palette>,
    /// The first message, as Gemini CLI has it
    #[arg(short = 'i', long, value_name = "TEXT", hide = true, conflicts_with = "prompt")]
    pub prompt_interactive: Option<String>,
    #[command(flatten)]
    pub gemini: GeminiRunFlags,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// The answer, as it comes
    #[default]
    Text,
    /// One object at the end
    Json,
    /// Lines of JSON as Gemini CLI's
    StreamJson,
    /// Every AgentEvent as a line of JSON
    Events,
}

impl RunArgs {
    /// The prompt, in either way to write it.
    pub fn typed(&self) -> Option<&str> {
        self.prompt.as_deref().or(self.gemini.prompt_flag.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::{AcpArgs, AcpVerb, AgentVerb, Cli, CliVerb, OutputFormat};
    use crate::cli::{approval_mode::ApprovalMode, auth::AuthVerb};

    fn run(line: &str) -> Result<super::RunArgs, clap::Error> {
        match Cli::try_parse_from(["castor", "run"].into_iter().chain(line.split_whitespace()))?.verb {
            CliVerb::Agent(AgentVerb::Run(args)) => Ok(args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_fits_a_screen() {
        let mut command = Cli::command();
        assert!(command.render_help().to_string().lines().count() <= 36);
        for verb in ["acp", "run"] {
            let help = command.find_subcommand_mut(verb).unwrap().render_help().to_string();
            assert!(help.lines().count() <= 36, "{help}");
        }
    }

    #[test]
    fn run_reads_its_flags() {
        let args = run("hello -m demo --approval-mode autoEdit -r latest -o json --cwd /tmp").unwrap();
        assert_eq!(args.prompt.as_deref(), Some("hello"));
        assert_eq!(args.agent_args.approval_mode, Some(ApprovalMode::AutoEdit));
        assert_eq!(args.output_format, OutputFormat::Json);
        assert_eq!(run("x").unwrap().output_format, OutputFormat::Text);
        assert!(run("x --agent cat --fake-responses f").is_err());
        assert!(run("x --approval-mode never").is_err());
    }

    #[test]
    fn run_reads_the_flags_of_gemini_cli() {
        let args =
            run("-p hello -y -s read-only -d -e none -o stream-json --include-directories a,b --raw-output").unwrap();
        assert_eq!((args.typed(), args.agent_args.mode()), (Some("hello"), Some(ApprovalMode::Yolo)));
        assert_eq!((args.output_format, args.gemini.include_directories.len()), (OutputFormat::StreamJson, 2));
        for both in ["x -p y", "x -y --approval-mode plan", "x -r latest --session-id a", "x -i"] {
            assert!(run(both).is_err(), "{both}");
        }
    }

    #[test]
    fn auth_verbs_stand_alone_and_behind_the_agents_flags() {
        for line in ["auth login --key-stdin", "acp auth login --key-stdin", "acp -m x --fake-responses f auth login"] {
            let verb = Cli::try_parse_from(["castor"].into_iter().chain(line.split(' '))).unwrap().verb;
            let auth = match verb {
                CliVerb::Auth(it) => it,
                CliVerb::Agent(AgentVerb::Acp(AcpArgs { instead: Some(AcpVerb::Auth(it)), .. })) => it,
                other => panic!("{other:?}"),
            };
            let key_stdin = line.ends_with("stdin");
            assert!(matches!(auth.verb, AuthVerb::Login { key_stdin: it, .. } if it == key_stdin), "{line}");
        }
        assert!(Cli::try_parse_from(["castor", "auth", "login", "a-key"]).is_err(), "never from argv");
    }

    #[test]
    fn flags_survive_the_way_to_the_child() {
        let args =
            run("x -m=-odd --approval-mode yolo --sandbox read-only --max-cost 1 --max-cost 5/session --allowed-tools a,b(c) --policy p.toml --allowed-mcp-server-names s --fake-responses-non-strict f").unwrap().agent_args;
        let argv = ["castor".into(), "acp".into()].into_iter().chain(args.to_flags());
        match Cli::try_parse_from(argv).unwrap().verb {
            CliVerb::Agent(AgentVerb::Acp(parsed)) => assert_eq!(parsed.agent_args, args),
            other => panic!("{other:?}"),
        }
    }
}
