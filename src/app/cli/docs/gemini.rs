//! The page about Gemini CLI: each of its settings, files, flags and commands, and how it is in castor.

use clap::CommandFactory;

use super::{code, table};
use crate::{
    app::{
        cli::args::Cli,
        settings::{
            gemini::{Compatibility, SETTINGS, absence},
            gemini_files::FILES,
        },
    },
    engine::session::commands::COMMANDS,
};

/// How something is here whose table does not know it all: where castor has a thing of that name it works, unless it
/// differs.
#[derive(Clone, Copy)]
enum Row {
    /// It works where castor has one of this name.
    Same,
    /// As that, with a difference.
    But(&'static str),
    /// What there is in its place, where castor has none of this name.
    Instead(&'static str),
}

impl Row {
    fn compatibility(self, is_there: bool) -> Compatibility {
        match (self, is_there) {
            (Self::Same | Self::Instead(_), true) => Compatibility::Works,
            (Self::But(how), true) => Compatibility::Differs(how),
            (Self::Instead(what) | Self::But(what), false) => Compatibility::Absent(what),
            (Self::Same, false) => Compatibility::Absent(""),
        }
    }
}

/// Flags of `gemini`, with the one of `castor run` that is meant.
#[rustfmt::skip]
const FLAGS: &[(&str, &str, Row)] = {
    use Row::{But, Instead, Same};
    &[
        ("-d, --debug", "debug", Instead("`CASTOR_LOG=debug`")),
        ("-m, --model", "model", Same),
        ("-p, --prompt", "prompt", Instead("`castor run \"…\"`")),
        ("-i, --prompt-interactive", "prompt-interactive", Instead("`castor chat PROMPT`")),
        ("--skip-trust", "skip-trust", Instead("`CASTOR_TRUST_WORKSPACE=true`, or `castor trust`")),
        ("-w, --worktree", "worktree", Instead("make the worktree, and start castor in it")),
        ("-s, --sandbox", "sandbox", But("takes a level: workspace-write, read-only, off; on by default, and no container")),
        ("-y, --yolo", "yolo", Instead("`--approval-mode yolo`")),
        ("--approval-mode", "approval-mode", But("one mode more, auto; yolo asks before what cannot be undone")),
        ("--policy", "policy", Instead("the setting `policyPaths`")),
        ("--admin-policy", "admin-policy", Instead("the setting `adminPolicyPaths`")),
        ("--acp, --experimental-acp", "acp", Instead("`castor acp`")),
        ("--allowed-mcp-server-names", "allowed-mcp-server-names", Instead("the setting `mcp.allowed`")),
        ("--allowed-tools", "allowed-tools", Instead("the setting `tools.allowed`, or a rule")),
        ("-e, --extensions", "extensions", Same),
        ("-l, --list-extensions", "list-extensions", Instead("`castor extensions list`")),
        ("-r, --resume", "resume", Same),
        ("--session-file", "session-file", Instead("`castor sessions import FILE`")),
        ("--session-id", "session-id", Instead("castor makes the ids of sessions")),
        ("--list-sessions", "list-sessions", Instead("`castor sessions`")),
        ("--delete-session", "delete-session", Instead("`castor sessions delete ID`")),
        ("--include-directories", "include-directories", Instead("the client names more folders of a session")),
        ("--screen-reader", "screen-reader", Instead("`castor chat --plain`; without a terminal the output of `castor run` is plain")),
        ("-o, --output-format", "output-format", But("castor's own format `events`, beside Gemini CLI's")),
        ("--raw-output", "raw-output", Instead("the answer is cleaned on a terminal only")),
        ("--accept-raw-output-risk", "accept-raw-output-risk", Instead("nothing to accept")),
        ("--fake-responses", "fake-responses", Same),
        ("--fake-responses-non-strict", "fake-responses-non-strict", Same),
        ("--record-responses", "record-responses", Same),
        ("-v, --version", "version", But("`-V`")),
        ("-h, --help", "help", Same),
    ]
};

/// Commands of the shell: Gemini CLI's, and the words of castor's that are meant.
#[rustfmt::skip]
const SHELL: &[(&str, &str, Row)] = {
    use Row::{But, Instead, Same};
    &[
        ("gemini [query]", "run", But("one prompt and its answer; the chat is your editor's")),
        ("gemini mcp add", "mcp add", Instead("the setting `mcpServers`")),
        ("gemini mcp remove", "mcp remove", Instead("the setting `mcpServers`")),
        ("gemini mcp list", "mcp list", Same),
        ("gemini mcp enable", "mcp enable", Instead("the setting `mcp.excluded`")),
        ("gemini mcp disable", "mcp disable", Instead("the setting `mcp.excluded`")),
        ("gemini extensions install", "extensions install", Same),
        ("gemini extensions uninstall", "extensions uninstall", Same),
        ("gemini extensions list", "extensions list", Same),
        ("gemini extensions update", "extensions update", Same),
        ("gemini extensions enable", "extensions enable", Same),
        ("gemini extensions disable", "extensions disable", Same),
        ("gemini extensions link", "extensions link", Same),
        ("gemini extensions new", "extensions new", Same),
        ("gemini extensions validate", "extensions validate", Same),
        ("gemini extensions config", "extensions config", Same),
        ("gemini skills list", "skills list", Same),
        ("gemini skills enable", "skills enable", Same),
        ("gemini skills disable", "skills disable", Same),
        ("gemini skills install", "skills install", Instead("copy the folder of the skill")),
        ("gemini skills link", "skills link", Instead("a link in the folder of skills")),
        ("gemini skills uninstall", "skills uninstall", Instead("remove the folder of the skill")),
        ("gemini hooks migrate", "hooks migrate", But("prints settings, and changes no file; takes Cursor's hooks too")),
        ("gemini gemma", "gemma", Instead("the setting `model.routing.local` names a model that runs")),
    ]
};

/// Commands of a session.
#[rustfmt::skip]
const TYPED: &[(&str, Row)] = {
    use Row::{But, Instead, Same};
    &[
        ("about", Same),
        ("agents", But("list, show, enable, disable, reload; no config")),
        ("auth", Instead("the client's login, or `castor auth`")),
        ("bug", Instead("`castor doctor` says what a report needs")),
        ("bug-memory", Instead("castor is no Node program")),
        ("chat", Instead("the client lists and resumes sessions; `castor sessions`")),
        ("clear", Same),
        ("commands", Same),
        ("compress", But("takes what to keep")),
        ("copy", Instead("your editor copies")),
        ("corgi", Instead("a toy of its screen")),
        ("directory", Instead("the client names more folders of a session")),
        ("docs", Instead("these pages")),
        ("editor", Instead("castor has no screen of its own")),
        ("export-session", Instead("`castor sessions export ID`")),
        ("extensions", Same),
        ("footer", Instead("castor has no screen of its own")),
        ("gemma", Instead("the setting `model.routing.local`")),
        ("help", Same),
        ("hooks", But("for the session; settings switch them for good")),
        ("ide", Instead("over ACP the editor sends its context itself")),
        ("init", Instead("ask for it: \"write a GEMINI.md for this project\"")),
        ("mcp", But("the servers and how they are")),
        ("memory", But("refresh, add and inbox")),
        ("model", Same),
        ("permissions", But("what you allowed; trust is `castor trust`")),
        ("plan", Instead("`/mode plan`, or the client's list of modes")),
        ("policies", Instead("`castor policy list`")),
        ("privacy", Instead("castor sends no usage statistics")),
        ("quit", Instead("close the session")),
        ("restore", Instead("`/undo`, `/rewind`")),
        ("resume", Instead("the client lists and resumes sessions; `castor run -r`")),
        ("rewind", But("takes a number of `/checkpoints`, or a message")),
        ("settings", Instead("`castor config list`, and your editor")),
        ("setup-github", Instead("[castor in CI](../how-to/ci.md)")),
        ("shells", Instead("the model lists and reads background commands")),
        ("shortcuts", Instead("castor has no screen of its own")),
        ("skills", Same),
        ("stats", Same),
        ("tasks", Instead("the model lists and reads background commands")),
        ("terminal-setup", Instead("castor has no screen of its own")),
        ("theme", Instead("castor has no screen of its own")),
        ("tools", Same),
        ("upgrade", Instead("castor has API keys and Vertex AI, no plans of Google's")),
        ("vim", Instead("castor has no screen of its own")),
        ("voice", Instead("castor has no voice input")),
        ("@path", Same),
        ("!command", Instead("your shell; in a file of a command `!{…}` works")),
    ]
};

/// Whether `castor run` has a flag of that name.
fn has_flag(name: &str) -> bool {
    let mut cli = Cli::command();
    cli.build();
    [Some(&cli), cli.find_subcommand("run"), cli.find_subcommand("chat")]
        .into_iter()
        .flatten()
        .any(|it| it.get_arguments().any(|it| it.get_long() == Some(name)))
}

/// Whether castor has a command of these words.
fn has_verb(words: &str) -> bool {
    let cli = Cli::command();
    words.split(' ').try_fold(&cli, |at, word| at.find_subcommand(word)).is_some()
}

fn is_typed(name: &str) -> bool {
    name == "@path" || COMMANDS.iter().any(|it| it.name == name)
}

fn cells(what: String, compatibility: Compatibility) -> [String; 3] {
    [what, compatibility.as_str().to_owned(), compatibility.note().to_owned()]
}

pub fn compatibility() -> String {
    let settings = SETTINGS.iter().map(|(path, it)| {
        // castor may have come to act on it since the row was written.
        let has_come = matches!(it, Compatibility::Absent(_)) && absence(path).is_none();
        cells(code(path), if has_come { Compatibility::Works } else { *it })
    });
    let files = FILES.iter().map(|(name, owner, it)| {
        let place = name.strip_prefix("../").map_or_else(|| format!(".gemini/{name}"), str::to_owned);
        [code(place), owner.as_str().to_owned(), it.as_str().to_owned(), it.note().to_owned()]
    });
    let flags = FLAGS.iter().map(|(text, name, row)| cells(code(text), row.compatibility(has_flag(name))));
    let shell = SHELL.iter().map(|(text, words, row)| cells(code(text), row.compatibility(has_verb(words))));
    let typed = TYPED.iter().map(|(name, row)| {
        let text = if name.starts_with(['@', '!']) { code(name) } else { code(format!("/{name}")) };
        cells(text, row.compatibility(is_typed(name)))
    });
    let head = |what| [what, "here", "how, or what instead"];
    format!(
        "## Settings\n\n{}\n## Files\n\n{}\n## Flags\n\n{}\n## Commands of the shell\n\n{}\n## Commands of a session\n\n{}",
        table(head("setting"), settings),
        table(["file", "whose", "here", "how, or what instead"], files),
        table(head("flag"), flags),
        table(head("command"), shell),
        table(head("command"), typed),
    )
}

#[cfg(test)]
mod tests {
    use super::{FLAGS, Row, SHELL, TYPED, compatibility, has_flag, has_verb, is_typed};

    /// What is to be the same is there; a difference is one of something that there is.
    #[test]
    fn rows_that_work_name_flags_and_commands() {
        let promised = |row: &Row| matches!(row, Row::Same | Row::But(_));
        for (text, name, row) in FLAGS {
            assert!(!promised(row) || has_flag(name), "{text}");
        }
        for (text, words, row) in SHELL {
            assert!(!promised(row) || has_verb(words), "{text}");
        }
        for (name, row) in TYPED {
            assert!(!promised(row) || is_typed(name), "{name}");
        }
        let page = compatibility();
        for row in
            ["| `model.name` | works |  |", "| `ui.theme` | not here |", "| `--acp, --experimental-acp` | not here |"]
        {
            assert!(page.contains(row), "{row}");
        }
    }
}
