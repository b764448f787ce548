//! The page about Gemini CLI: each of its settings, files, flags and commands, and how it is in castor.

use super::{code, table};
use castor_agent::settings::{
    gemini::{Compatibility, SETTINGS},
    gemini_files::FILES,
    gemini_variables::VARIABLES,
};

/// Flags of `gemini`, with the one of `castor run` that is meant.
#[rustfmt::skip]
const FLAGS: &[(&str, &str, Compatibility)] = {
    use Compatibility::{Absent, Differs, Works};
    &[
        ("-d, --debug", "debug", Works),
        ("-m, --model", "model", Works),
        ("-p, --prompt", "prompt", Works),
        ("-i, --prompt-interactive", "prompt-interactive", Works),
        ("--skip-trust", "skip-trust", Works),
        ("-w, --worktree", "worktree", Absent("make the worktree, and start castor in it")),
        ("-s, --sandbox", "sandbox", Differs("takes a level: workspace-write, read-only, off; on by default, and no container")),
        ("-y, --yolo", "yolo", Works),
        ("--approval-mode", "approval-mode", Differs("one mode more, auto; yolo asks before what cannot be undone")),
        ("--policy", "policy", Works),
        ("--admin-policy", "admin-policy", Works),
        ("--acp, --experimental-acp", "acp", Absent("`castor acp`")),
        ("--allowed-mcp-server-names", "allowed-mcp-server-names", Works),
        ("--allowed-tools", "allowed-tools", Works),
        ("-e, --extensions", "extensions", Works),
        ("-l, --list-extensions", "list-extensions", Absent("`castor extensions list`")),
        ("-r, --resume", "resume", Works),
        ("--session-file", "session-file", Absent("`castor sessions import FILE`")),
        ("--session-id", "session-id", Works),
        ("--list-sessions", "list-sessions", Works),
        ("--delete-session", "delete-session", Works),
        ("--include-directories", "include-directories", Works),
        ("--screen-reader", "screen-reader", Absent("`castor chat --plain`; without a terminal the output of `castor run` is plain")),
        ("-o, --output-format", "output-format", Differs("castor's own format `events`, beside Gemini CLI's")),
        ("--raw-output", "raw-output", Works),
        ("--accept-raw-output-risk", "accept-raw-output-risk", Works),
        ("--fake-responses", "fake-responses", Works),
        ("--fake-responses-non-strict", "fake-responses-non-strict", Works),
        ("--record-responses", "record-responses", Works),
        ("-v, --version", "version", Differs("`-V`")),
        ("-h, --help", "help", Works),
    ]
};

/// Commands of the shell: Gemini CLI's, and the words of castor's that are meant.
#[rustfmt::skip]
const SHELL: &[(&str, &str, Compatibility)] = {
    use Compatibility::{Absent, Differs, Works};
    &[
        ("gemini [query]", "run", Differs("one prompt and its answer; `castor chat` is the chat")),
        ("gemini mcp add", "mcp add", Works),
        ("gemini mcp remove", "mcp remove", Works),
        ("gemini mcp list", "mcp list", Works),
        ("gemini mcp enable", "mcp enable", Works),
        ("gemini mcp disable", "mcp disable", Works),
        ("gemini extensions install", "extensions install", Works),
        ("gemini extensions uninstall", "extensions uninstall", Works),
        ("gemini extensions list", "extensions list", Works),
        ("gemini extensions update", "extensions update", Works),
        ("gemini extensions enable", "extensions enable", Works),
        ("gemini extensions disable", "extensions disable", Works),
        ("gemini extensions link", "extensions link", Works),
        ("gemini extensions new", "extensions new", Works),
        ("gemini extensions validate", "extensions validate", Works),
        ("gemini extensions config", "extensions config", Works),
        ("gemini skills list", "skills list", Works),
        ("gemini skills enable", "skills enable", Works),
        ("gemini skills disable", "skills disable", Works),
        ("gemini skills install", "skills install", Differs("a skill that is there stays; `--scope workspace` switches it on in this folder, and writes nothing there; no `.skill` archives")),
        ("gemini skills link", "skills link", Differs("a change counts after `castor extensions update NAME`")),
        ("gemini skills uninstall", "skills uninstall", Differs("only what castor installed, in either scope")),
        ("gemini hooks migrate", "hooks migrate", Differs("prints settings, and changes no file; takes Cursor's hooks too")),
        ("gemini gemma", "gemma", Absent("the setting `model.routing.local` names a model that runs")),
    ]
};

/// Commands of a session.
#[rustfmt::skip]
const TYPED: &[(&str, Compatibility)] = {
    use Compatibility::{Absent, Differs, Works};
    &[
        ("about", Works),
        ("agents", Differs("list, show, enable, disable, reload; no config")),
        ("auth", Absent("the client's login, or `castor auth`")),
        ("bug", Absent("`castor doctor` says what a report needs")),
        ("bug-memory", Absent("castor is no Node program")),
        ("chat", Absent("the client lists and resumes sessions; `castor sessions`")),
        ("clear", Works),
        ("commands", Works),
        ("compress", Differs("takes what to keep")),
        ("copy", Absent("your editor or your terminal copies")),
        ("corgi", Absent("a toy of its screen")),
        ("directory", Differs("shows them; the client names more")),
        ("docs", Absent("these pages")),
        ("editor", Absent("Ctrl-G in `castor chat` opens $VISUAL or $EDITOR")),
        ("export-session", Absent("`castor sessions export ID`")),
        ("extensions", Differs("list and reload; the rest is `castor extensions` in the shell")),
        ("footer", Absent("the last line of `castor chat` is as it is")),
        ("gemma", Absent("the setting `model.routing.local`")),
        ("help", Works),
        ("hooks", Differs("for the session; settings switch them for good")),
        ("ide", Absent("over ACP the editor sends its context itself")),
        ("init", Works),
        ("mcp", Differs("the servers and how they are; add, remove and test as in the shell")),
        ("memory", Differs("refresh, add and inbox")),
        ("model", Works),
        ("oncall", Absent("in nightly builds: triage of Gemini CLI's own issues")),
        ("permissions", Differs("what you allowed; trust is `castor trust`")),
        ("plan", Differs("`/mode plan`; your editor shows the plan")),
        ("policies", Absent("`castor policy list`")),
        ("privacy", Absent("castor sends no usage statistics")),
        ("profile", Absent("in development builds: a display of its speed")),
        ("quit", Absent("close the session; `castor chat` has it")),
        ("restore", Differs("by prompts, as `/checkpoints` and `/rewind` have them")),
        ("resume", Absent("the client lists and resumes sessions; `castor run -r`")),
        ("rewind", Differs("takes a number of `/checkpoints`, or a message")),
        ("settings", Absent("`castor config list`, and your editor")),
        ("setup-github", Absent("[castor in CI](../how-to/ci.md)")),
        ("shells", Absent("the model lists and reads background commands")),
        ("shortcuts", Absent("`?` in an empty message of `castor chat`")),
        ("skills", Differs("list, enable, disable, reload; `castor skills link` in the shell")),
        ("stats", Works),
        ("tasks", Absent("the model lists and reads background commands")),
        ("terminal-setup", Absent("`castor chat` asks the terminal for what it can do")),
        ("theme", Absent("`castor chat --theme`; in an editor, its own colours")),
        ("tools", Works),
        ("upgrade", Absent("castor has API keys and Vertex AI, no plans of Google's")),
        ("vim", Absent("`/vi` in `castor chat`, or the setting `general.vimMode`")),
        ("voice", Absent("castor has no voice input")),
        ("@path", Works),
        ("!command", Absent("your shell; in a file of a command `!{…}` works")),
    ]
};

fn cells(what: String, compatibility: Compatibility) -> [String; 3] {
    [what, compatibility.as_str().to_owned(), compatibility.note().to_owned()]
}

pub fn compatibility() -> String {
    let settings = SETTINGS.iter().map(|(path, it)| cells(code(path), *it));
    let files = FILES.iter().map(|(name, owner, it)| {
        let place = name.strip_prefix("../").map_or_else(|| format!(".gemini/{name}"), str::to_owned);
        [code(place), owner.as_str().to_owned(), it.as_str().to_owned(), it.note().to_owned()]
    });
    let variables = VARIABLES.iter().map(|(name, why)| cells(code(name), Compatibility::Absent(why)));
    let flags = FLAGS.iter().map(|(text, _, row)| cells(code(text), *row));
    let shell = SHELL.iter().map(|(text, _, row)| cells(code(text), *row));
    let typed = TYPED.iter().map(|(name, row)| {
        let text = if name.starts_with(['@', '!']) { code(name) } else { code(format!("/{name}")) };
        cells(text, *row)
    });
    let head = |what| [what, "here", "how, or what instead"];
    format!(
        "## Settings\n\n{}\n## Files\n\n{}\n## Variables\n\n[Variables](variables.md) lists those of Gemini CLI that castor goes by.\n\n{}\n## Flags\n\n{}\n## Commands of the shell\n\n{}\n## Commands of a session\n\n{}",
        table(head("setting"), settings),
        table(["file", "whose", "here", "how, or what instead"], files),
        table(head("variable"), variables),
        table(head("flag"), flags),
        table(head("command"), shell),
        table(head("command"), typed),
    )
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::{Compatibility, FLAGS, SHELL, TYPED, compatibility};
    use castor::cli::args::Cli;
    use castor_engine::commands::is_own_command;

    /// Whether `castor run` or `castor chat` has a flag of that name.
    fn has_flag(name: &str) -> bool {
        let mut cli = Cli::command();
        cli.build();
        let places = [Some(&cli), cli.find_subcommand("run"), cli.find_subcommand("chat")];
        places.into_iter().flatten().any(|it| it.get_arguments().any(|it| it.get_long() == Some(name)))
    }

    /// Whether castor has a command of these words.
    fn has_verb(words: &str) -> bool {
        let cli = Cli::command();
        words.split(' ').try_fold(&cli, |at, word| at.find_subcommand(word)).is_some()
    }

    fn is_typed(name: &str) -> bool {
        name == "@path" || is_own_command(name)
    }

    /// A row says that something is not here exactly where castor has none of that name.
    #[test]
    fn rows_say_what_is_here() {
        let is_here = |it: &Compatibility| !matches!(it, Compatibility::Absent(_));
        for (text, name, row) in FLAGS {
            assert_eq!(is_here(row), has_flag(name), "{text}");
        }
        for (text, words, row) in SHELL {
            assert_eq!(is_here(row), has_verb(words), "{text}");
        }
        for (name, row) in TYPED {
            assert_eq!(is_here(row), is_typed(name), "{name}");
        }
        let page = compatibility();
        for row in
            ["| `model.name` | works |  |", "| `ui.theme` | not here |", "| `--acp, --experimental-acp` | not here |"]
        {
            assert!(page.contains(row), "{row}");
        }
    }
}
