//! Flags that castor takes as Gemini CLI does, and command lines that begin as Gemini CLI's: without a command.

use std::{ffi::OsString, path::Path};

use clap::{Args, Command};

use castor_agent::settings::Flag;
use castor_base::sandbox::SandboxLevel;

/// What the agent itself takes; `run` passes it through.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct GeminiAgentFlags {
    /// The same as `--approval-mode yolo`
    #[arg(short, long, hide = true, conflicts_with = "approval_mode")]
    pub yolo: bool,
    /// Tools that run without a question, as in `tools.allowed`
    #[arg(long, value_name = "NAMES", value_delimiter = ',', hide = true)]
    pub allowed_tools: Vec<String>,
    /// The only MCP servers of the settings that start, as in `mcp.allowed`
    #[arg(long, value_name = "NAMES", value_delimiter = ',', hide = true)]
    pub allowed_mcp_server_names: Vec<String>,
    /// More files or folders with policy rules, as in `policyPaths`
    #[arg(long, value_name = "PATHS", value_delimiter = ',', hide = true)]
    pub policy: Vec<String>,
    /// The same, as in `adminPolicyPaths`
    #[arg(long, value_name = "PATHS", value_delimiter = ',', hide = true)]
    pub admin_policy: Vec<String>,
    /// The only extensions to use, by name; `none` for none
    #[arg(short, long, value_name = "NAMES", value_delimiter = ',', hide = true)]
    pub extensions: Vec<String>,
}

/// What `castor run` takes beside its own flags.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct GeminiRunFlags {
    /// The prompt; the same as without a flag
    #[arg(short = 'p', long = "prompt", value_name = "TEXT", hide = true, conflicts_with = "prompt")]
    pub prompt_flag: Option<String>,
    /// More folders that belong to the workspace
    #[arg(long, value_name = "DIRS", value_delimiter = ',', hide = true)]
    pub include_directories: Vec<String>,
    /// List the sessions of this folder with their numbers, oldest first
    #[arg(long, hide = true)]
    pub list_sessions: bool,
    /// Remove the session with this number or id
    #[arg(long, value_name = "N|ID", hide = true)]
    pub delete_session: Option<String>,
    /// Begin a session with this id
    #[arg(long, value_name = "ID", hide = true, conflicts_with_all = ["resume", "continue_last", "agent"])]
    pub session_id: Option<String>,
    /// Leave terminal controls in the answer
    #[arg(long, hide = true)]
    pub raw_output: bool,
    /// Say nothing about the risk of that
    #[arg(long, hide = true)]
    pub accept_raw_output_risk: bool,
    /// Log everything to stderr; the same as CASTOR_LOG=debug
    #[arg(short, long, hide = true)]
    pub debug: bool,
    /// Trust the folder for this run
    #[arg(long, hide = true)]
    pub skip_trust: bool,
}

impl GeminiAgentFlags {
    /// (flag, key, values)
    fn lists(&self) -> [(&'static str, &'static str, &Vec<String>); 4] {
        [
            ("--allowed-tools", "tools.allowed", &self.allowed_tools),
            ("--allowed-mcp-server-names", "mcp.allowed", &self.allowed_mcp_server_names),
            ("--policy", "policyPaths", &self.policy),
            ("--admin-policy", "adminPolicyPaths", &self.admin_policy),
        ]
    }

    /// Flags and values, for the command line of `castor acp`.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let lists = self.lists().into_iter().map(|(flag, _, values)| (flag, values));
        lists.chain([("--extensions", &self.extensions)]).flat_map(|(flag, all)| all.iter().map(move |it| (flag, it)))
    }

    /// As settings. Paths of rules are seen from `cwd`: settings know only absolute ones.
    pub fn flags(&self, cwd: &Path) -> Vec<Flag> {
        let given = self.lists().into_iter().filter(|it| !it.2.is_empty());
        let flag = |(name, key, values): (&'static str, &'static str, &Vec<String>)| {
            let is_path = key.ends_with("Paths");
            let text = |it: &String| match is_path && !it.starts_with("~/") {
                true => cwd.join(it).to_string_lossy().into_owned(),
                false => it.clone(),
            };
            Flag { key, name, value: values.iter().map(text).collect::<Vec<_>>().into() }
        };
        given.map(flag).collect()
    }
}

impl GeminiRunFlags {
    /// Whether nothing is asked of a model: sessions are listed, or one is removed.
    pub fn is_about_sessions(&self) -> bool {
        self.list_sessions || self.delete_session.is_some()
    }
}

/// Makes a command line without a command one of `run` or `acp`; and `-v` and `-s`, which have no value there, ones that
/// castor knows. Returns whether `run` was put in. `is_fed`: stdin is no terminal, and may hold the prompt.
pub fn rewrite(argv: &mut Vec<OsString>, root: &Command, is_fed: bool) -> bool {
    let first = argv.get(1).and_then(|it| it.to_str()).map(str::to_owned);
    let is_run = match first.as_deref() {
        None => argv.len() < 2 && is_fed,
        Some("-v") => {
            replace(argv, 1, "--version");
            false
        }
        Some("-h" | "--help" | "-V" | "--version" | "--") => false,
        Some(_) if take_acp(argv, root) => false,
        Some(it) => it.starts_with('-') || it.contains(char::is_whitespace) && !is_verb(root, it),
    };
    if is_run {
        let verb = if asks_for_chat(argv) { "chat" } else { "run" };
        argv.insert(1.min(argv.len()), verb.into());
    }
    if argv.get(1).is_some_and(|it| it == "run" || it == "acp" || it == "chat") {
        spell_sandbox(argv);
    }
    is_run
}

/// `-i`, `--prompt-interactive`: the prompt is the first message of a chat.
fn asks_for_chat(argv: &[OsString]) -> bool {
    let flags = argv.iter().skip(1).take_while(|it| *it != "--").filter_map(|it| it.to_str());
    flags.into_iter().any(|it| it == "-i" || it == "--prompt-interactive" || it.starts_with("--prompt-interactive="))
}

/// Whether a word is a command.
pub fn is_verb(root: &Command, word: &str) -> bool {
    word == "help" || root.find_subcommand(word).is_some()
}

/// `--acp` among the flags before any command.
fn take_acp(argv: &mut Vec<OsString>, root: &Command) -> bool {
    let is_word = |it: &OsString| it.to_str().is_some_and(|it| is_verb(root, it));
    if argv.get(1).is_some_and(is_word) {
        return false;
    }
    let Some(at) = argv.iter().position(|it| it == "--acp" || it == "--experimental-acp") else { return false };
    argv.remove(at);
    argv.insert(1, "acp".into());
    true
}

/// `-s` and `--sandbox` without a level mean the usual one.
pub fn spell_sandbox(argv: &mut [OsString]) {
    let is_level =
        |it: Option<&OsString>| it.and_then(|it| it.to_str()).is_some_and(|it| SandboxLevel::NAMES.contains(&it));
    let end = argv.iter().position(|it| it == "--").unwrap_or(argv.len());
    for at in 2..end {
        let is_flag = argv.get(at).is_some_and(|it| it == "-s" || it == "--sandbox");
        // The word behind `-p` is the prompt.
        let is_value = argv.get(at - 1).is_some_and(|it| it == "-p" || it == "--prompt");
        if is_flag && !is_value && !is_level(argv.get(at + 1)) {
            replace(argv, at, "--sandbox=workspace-write");
        }
    }
}

fn replace(argv: &mut [OsString], at: usize, word: &str) {
    if let Some(it) = argv.get_mut(at) {
        *it = word.into();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::CommandFactory;
    use serde_json::json;

    use super::{GeminiAgentFlags, rewrite};
    use crate::cli::args::Cli;

    #[test]
    fn lines_without_a_command_get_one() {
        for (line, expected) in [
            ("-p hello", "run -p hello"),
            ("-m demo fix_it", "run -m demo fix_it"),
            ("fix_it", "run fix_it"),
            ("fix it", "fix it"),
            ("-m demo -i fix_it", "chat -m demo -i fix_it"),
            ("--prompt-interactive=fix_it", "chat --prompt-interactive=fix_it"),
            ("-p x -- -i", "run -p x -- -i"),
            ("hello", "hello"),
            ("mcp list", "mcp list"),
            ("help run", "help run"),
            ("-v", "--version"),
            ("--help", "--help"),
            ("--acp", "acp"),
            ("-m demo --experimental-acp", "acp -m demo"),
            ("run --acp", "run --acp"),
            ("-s -p x", "run --sandbox=workspace-write -p x"),
            ("run -s read-only x", "run -s read-only x"),
            ("run --sandbox fix_it", "run --sandbox=workspace-write fix_it"),
            ("run -p -s", "run -p -s"),
            ("run -- -s", "run -- -s"),
            ("policy check -s", "policy check -s"),
            ("", ""),
        ] {
            let words = line.split(' ').filter(|it| !it.is_empty()).map(|it| it.replace('_', " ").into());
            let mut argv: Vec<_> = ["castor".into()].into_iter().chain(words).collect();
            let is_run = rewrite(&mut argv, &Cli::command(), false);
            let seen: Vec<_> = argv.iter().skip(1).map(|it| it.to_str().unwrap().replace(' ', "_")).collect();
            assert_eq!(seen.join(" "), expected);
            assert_eq!(
                is_run,
                expected.starts_with(["run", "chat"].iter().find(|it| expected.starts_with(**it)).unwrap_or(&"run"))
                    && !line.starts_with("run"),
                "{line}"
            );
        }
        let mut fed = vec!["castor".into()];
        assert!(rewrite(&mut fed, &Cli::command(), true) && fed.len() == 2);
    }

    #[test]
    fn lists_are_settings() {
        let given = GeminiAgentFlags {
            allowed_tools: vec!["run_shell_command(git)".to_owned(), "write_file".to_owned()],
            policy: vec!["a.toml".to_owned(), "/b".to_owned(), "~/c".to_owned()],
            ..GeminiAgentFlags::default()
        };
        let flags = given.flags(Path::new("/w"));
        let seen: Vec<_> = flags.iter().map(|it| (it.key, it.value.clone())).collect();
        let tools = ("tools.allowed", json!(["run_shell_command(git)", "write_file"]));
        assert_eq!(seen, [tools, ("policyPaths", json!(["/w/a.toml", "/b", "~/c"]))]);
        assert_eq!(given.pairs().count(), 5);
    }
}
