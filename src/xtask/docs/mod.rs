//! `cargo xtask docs`: writes the pages of `docs/reference/` from castor's own tables.

mod gemini;
mod protocol;
mod samples;
pub mod variables;

use std::{
    any::TypeId,
    fs, io,
    path::{Path, PathBuf},
};

use clap::{Arg, Command, CommandFactory};
use serde_json::Value;

use castor::cli::{args::Cli, chat::composer::key_help, exits};
use castor_agent::{
    session::policies::own_tools,
    settings::{self, Guard, KEYS, Key, Merge, Usage},
};
use castor_base::hook::HookEvent;
use castor_engine::commands::COMMANDS;
use castor_hands::secrets;
use castor_tools::{builtin::shell, workspace::dotenv};

const VI_KEYS: &str = "\n`castor chat --vi` begins with vi's keys, and the command `/vi` switches them on or off: `h l w b e 0 ^ $ G gg f F t T ;`, counts, `d c y` \
    with a motion or twice,\n`i a I A o O x X s S D C Y p P r u` and Ctrl-R.\n";

/// A page with the name of its file.
pub struct Page {
    pub name: &'static str,
    head: &'static str,
    body: fn() -> String,
}

#[rustfmt::skip]
pub const PAGES: &[Page] = &[
    Page { name: "chat-keys", body: chat_keys, head: "# Keys of the chat\n\nThis page lists the keys for the message that you type in [`castor chat`](../how-to/chat.md). With `?` you see them there." },
    Page { name: "commands", body: commands, head: "# Commands\n\nThis page lists the commands of the shell and of a session. `castor VERB --help` prints the same for one verb." },
    Page { name: "exit-codes", body: exit_codes, head: "# Exit codes\n\nThis page lists the codes with which castor's commands end." },
    Page { name: "gemini-compatibility", body: gemini::compatibility, head: "# Gemini CLI, piece by piece\n\nThis page lists each setting, file, flag and command of Gemini CLI 0.61, and variables, and how they are in castor. [Coming from Gemini CLI](../how-to/from-gemini-cli.md) is the short form.\n\n- *works*: as there.\n- *differs*: it has an effect, and this is another one.\n- *not here*: it has no effect. A session says so once of settings, files and variables, and `castor doctor` each time." },
    Page { name: "hooks", body: hooks, head: "# Hook events\n\nThis page lists the points of a session at which a [hook](../how-to/hooks.md) runs, and what its answer can do there.\n\n- *matcher*: the text with which castor compares the hook's `matcher`.\n- *answers*: the members that an answer may have, beside a message. All but `block`, `ask` and `stop` belong into `hookSpecificOutput`." },
    Page { name: "meta", body: protocol::meta, head: "# Members of `_meta`\n\nThis page lists what castor reads and writes in `_meta`, by place, with an example of each.\n\nAll members are optional. A dot stands between a member and its own members, and `[]` after a list. [Extensions](extensions.md) says what castor does with them." },
    Page { name: "methods", body: protocol::methods, head: "# castor's own methods\n\nThis page lists the methods and notifications that castor adds to the protocol, with an example of each.\n\ncastor refuses params that it does not know, by their names. [Methods and capabilities](protocol.md) has the protocol's own methods, and [extensions](extensions.md) says how you ask for these." },
    Page { name: "settings", body: settings, head: "# Settings\n\nThis page lists the keys of `settings.json`.\n\n| file | whose | strength |\n|---|---|---|\n| `/etc/castor/settings.json` | an administrator's | goes over all others |\n| `.castor/settings.json` in a trusted workspace | the workspace's | goes over yours, as far as the column *in a workspace* lets it |\n| `~/.castor/settings.json` | yours | goes over castor's defaults |\n| `.gemini/settings.json`, at both places | Gemini CLI's | weaker than castor's file at the same place |\n\n[Variables](variables.md) name other places for an administrator's files. `castor config explain KEY` prints the value that counts, and its file.\nThe [schema](../../schema/settings.json) has the members of `mcpServers` and `hooks`." },
    Page { name: "tools", body: tools, head: "# Tools\n\nThis page lists the tools that a model can call, besides those of [MCP servers](../how-to/mcp-servers.md).\n\n- *type*: the kind of a tool. Arguments without \"required\" may be left out.\n- *default*: castor's decision in the mode `default`, where no [rule](rules.md) of yours names the tool. `allow` is for the session's folders.\n\ncastor offers `apply_patch` or `replace`, whichever the model knows better. A call of the other one runs all the same." },
    Page { name: "variables", body: variables, head: "# Variables\n\nThis page lists the variables that castor reads, and those that it sets for the programs it starts." },
];

impl Page {
    pub fn text(&self) -> String {
        const NOTE: &str = "<!-- `cargo xtask docs` makes this page of the tables in src. -->";
        format!("{NOTE}\n{}\n\n{}", self.head, (self.body)())
    }
}

/// Writes all pages into a folder.
///
/// # Errors
/// When a page cannot be written.
pub fn write(folder: &Path) -> io::Result<()> {
    for page in PAGES {
        fs::write(folder.join(page.name.to_owned() + ".md"), page.text())?;
    }
    Ok(())
}

fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let line =
        |cells: [String; N]| format!("| {} |\n", cells.map(|it| it.replace('|', "\\|").replace('\n', " ")).join(" | "));
    let rows: String = rows.into_iter().map(line).collect();
    format!("| {} |\n|{}\n{rows}", head.join(" | "), "---|".repeat(N))
}

fn code(text: impl AsRef<str>) -> String {
    match text.as_ref() {
        "" => String::new(),
        it => format!("`{it}`"),
    }
}

fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    texts.into_iter().map(code).collect::<Vec<_>>().join(", ")
}

fn chat_keys() -> String {
    let rows = key_help::KEYS.iter().map(|(keys, what)| [(*keys).to_owned(), (*what).to_owned()]);
    table(["key", "meaning"], rows) + VI_KEYS
}

fn commands() -> String {
    let (mut verbs, mut arguments) = (Vec::new(), Vec::new());
    walk(&Cli::command(), &mut verbs, &mut arguments);
    let typed = COMMANDS.iter().map(|it| [code(format!("/{} {}", it.name, it.hint).trim()), it.description.into()]);
    let arguments = arguments.into_iter().map(|(it, verbs)| {
        let [name, kind, default, meaning] = it;
        [name, kind, default, list(verbs.iter().map(String::as_str)), meaning]
    });
    let head = ["argument", "type", "default", "of", "meaning"];
    format!(
        "## In a shell\n\n{}\n## Their arguments\n\n{}\n## In a session\n\n{}",
        table(["command", "meaning"], verbs),
        table(head, arguments),
        table(["command", "meaning"], typed)
    )
}

/// An argument, and the verbs that have it.
type Argument = ([String; 4], Vec<String>);

fn walk(command: &Command, verbs: &mut Vec<[String; 2]>, arguments: &mut Vec<Argument>) {
    for verb in command.get_subcommands() {
        let path = format!("{} {}", command.get_bin_name().unwrap_or("castor"), verb.get_name());
        for it in verb.get_arguments().map(argument) {
            let short = path.trim_start_matches("castor ").to_owned();
            match arguments.iter_mut().find(|(other, _)| *other == it) {
                Some((_, verbs)) => verbs.push(short),
                None => arguments.push((it, vec![short])),
            }
        }
        if !verb.is_subcommand_required_set() {
            let places = verb.get_positionals().map(|it| format!(" {}", syntax(it)));
            verbs.push([code(path.clone() + &places.collect::<String>()), words(verb.get_about())]);
        }
        // `acp` takes `auth` for editors that add it to the command that they know; it is the same.
        if verb.get_name() != "acp" {
            walk(&verb.clone().bin_name(path), verbs, arguments);
        }
    }
}

fn words(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default()
}

/// Its place in the line: `PLACE`, `[PLACE]`, `-f, --flag VALUE`.
fn syntax(it: &Arg) -> String {
    let value = it.get_value_names().unwrap_or_default().join(" ");
    let value = if it.get_action().takes_values() { value } else { String::new() };
    match (it.get_short(), it.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long} {value}").trim().to_owned(),
        (_, Some(long)) => format!("--{long} {value}").trim().to_owned(),
        _ if it.is_required_set() => value,
        _ => format!("[{value}]"),
    }
}

fn argument(it: &Arg) -> [String; 4] {
    let values = it.get_possible_values();
    let read = it.get_value_parser().type_id();
    let kind = match it.get_action().takes_values() {
        false => "switch".to_owned(),
        true if !values.is_empty() => list(values.iter().map(|it| it.get_name())),
        true if read == TypeId::of::<PathBuf>() => "path".to_owned(),
        true if read == TypeId::of::<usize>() || read == TypeId::of::<u64>() => "whole number".to_owned(),
        true => "text".to_owned(),
    };
    let default = it.get_default_values().iter().filter_map(|it| it.to_str());
    [code(syntax(it)), kind, list(default), words(it.get_help())]
}

fn exit_codes() -> String {
    let row = |(verb, number, meaning): (&str, u8, &str)| {
        let whose = if verb == exits::EACH { verb.to_owned() } else { code(format!("castor {verb}")) };
        [whose, number.to_string(), meaning.to_owned()]
    };
    table(["command", "code", "meaning"], exits::rows().map(row))
}

fn hooks() -> String {
    let row = |event: &HookEvent| {
        let it = event.row();
        let can = [(it.powers.block, "block"), (it.powers.ask, "ask"), (it.powers.stop, "stop")];
        let can = can.into_iter().filter(|it| it.0).map(|it| it.1).chain(it.powers.specific.iter().copied());
        [code(it.name), it.subject.describe().to_owned(), list(can), it.when.to_owned()]
    };
    table(["event", "matcher", "answers", "when"], HookEvent::ALL.iter().map(row))
}

fn settings() -> String {
    let mut keys: Vec<&Key> = KEYS.iter().collect();
    keys.sort_by_key(|it| (it.usage != Usage::Used, it.path));
    let row = |it: &Key| {
        let guard = match it.guard {
            Guard::Free => "yes".to_owned(),
            Guard::Only(it) => format!("only `{it}`"),
            Guard::AllBut(it) => format!("all but `{it}`"),
            Guard::Closed => "no".to_owned(),
        };
        let layers = match it.merge {
            Merge::Replace => "",
            Merge::Concat | Merge::Union => " The lists of all files are joined.",
            Merge::Shallow | Merge::ConcatMembers => " Each file can add members.",
            Merge::Intersect => " What the lists of all files have in common.",
        };
        let env =
            if it.env.is_empty() { String::new() } else { format!(" Variables: {}.", list(it.env.iter().copied())) };
        let meaning = settings::meaning(it) + layers + &env;
        [code(it.path), it.kind.describe().into(), code(it.default), guard, meaning]
    };
    table(["setting", "type", "default", "in a workspace", "meaning"], keys.into_iter().map(row))
}

fn tools() -> String {
    let mut rows = Vec::new();
    for tool in own_tools() {
        let kind = serde_json::to_value(tool.kind).unwrap_or_default();
        let about = tool.description.split_once(". ").map_or(&*tool.description, |it| it.0).trim_end_matches('.');
        rows.push([
            code(&tool.name),
            String::new(),
            text(&kind),
            tool.traits.class.default_decision().to_owned(),
            format!("**{}**: {}.", tool.title, about.replace('*', "\\*")),
        ]);
        let required = |name: &str| {
            tool.parameters.get("required").and_then(Value::as_array).is_some_and(|it| it.contains(&name.into()))
        };
        for (name, it) in tool.parameters.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let needed = if required(name) { ", required" } else { "" };
            rows.push([
                String::new(),
                code(name),
                kind_of(it) + needed,
                String::new(),
                text(&it["description"]).replace('*', "\\*"),
            ]);
        }
    }
    table(["tool", "argument", "type", "default", "meaning"], rows)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The type of an argument, in words.
fn kind_of(schema: &Value) -> String {
    if let Some(words) = schema["enum"].as_array().filter(|it| !it.is_empty()) {
        return list(words.iter().filter_map(Value::as_str));
    }
    match schema["type"].as_str().unwrap_or_default() {
        "string" => "text".to_owned(),
        "integer" => "whole number".to_owned(),
        "boolean" => "true or false".to_owned(),
        "array" => format!("list of {}", kind_of(&schema["items"])),
        other => other.to_owned(),
    }
}

fn variables() -> String {
    let read = variables::READ.iter().map(|(name, kind, default, meaning)| {
        let by = if dotenv::ALLOWED_VARS.contains(name) { "you, also in a `.env`" } else { "you" };
        [&*code(name), by, kind, default, meaning].map(str::to_owned)
    });
    let set = variables::SET
        .iter()
        .map(|(name, kind, meaning)| [code(name), "castor".into(), (*kind).into(), String::new(), (*meaning).into()]);
    let pairs: Vec<String> = shell::ENV.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let seen = [
        ("all values", list(secrets::CHILD_VARS.iter().copied())),
        ("absolute paths only", list(secrets::CERTIFICATES.iter().copied())),
        ("the author of a commit", list(secrets::GIT_IDENTITY.iter().copied())),
        ("castor sets them for commands", list(pairs.iter().map(String::as_str))),
        ("a workspace's settings may use them as `$NAME`", list(secrets::WORKSPACE_VARS.iter().copied())),
    ];
    let seen = seen.map(|(kind, names)| [kind.to_owned(), names]).into_iter();
    format!(
        "{}\n## What others see\n\nCommands, hooks and servers see only these variables of your environment. castor leaves out each whose name or value looks like a secret.\n\n{}",
        table(["variable", "set by", "type", "default", "meaning"], read.chain(set)),
        table(["kind", "variables"], seen),
    )
}
