//! Slash commands: castor answers them itself, and the model sees nothing of them but of `/shell`.

mod agents;
mod command_turn;
mod definitions_reading;
pub mod file_commands;
mod file_prompts;
mod hooks;
mod init;
mod limits;
pub mod mcp_report;
mod model;
mod network_report;
mod permissions;
mod saved_memory;
mod server_orders;
mod server_prompt;
mod shell;
mod stats;
pub mod undo;
pub mod undo_arguments;

pub use command_turn::CommandTurn;
pub use server_orders::NO_SERVERS;

use file_commands::{OfferedCommand, offered_of_files, split_command};
use mcp_report::server_in_words;
use server_prompt::{ServerPromptOrder, is_server_prompt, server_prompts};

use crate::{
    policy,
    record::Step,
    step::Effect,
    turn::{Spec, send_command_message},
};
use castor_base::{
    content::Part,
    event::{EndReason, EventKind, PromptOutcome, Speaker, StopKind},
    ids::PromptId,
    log::{Fact, Mode},
    saved_memory::MemoryOrder,
    server_order, text,
    tool::RUN_SHELL_COMMAND,
    trust::mode_refusal,
};

type ImmediateCommand = fn(&mut Step<'_>, &Spec, &str) -> String;

/// The way a command runs.
#[derive(Clone, Copy)]
enum CommandRun {
    /// It answers at once.
    Immediate(ImmediateCommand),
    /// It needs a turn, or says why its arguments make no sense.
    Turn(fn(&str) -> Result<CommandTurn, &'static str>),
    /// It depends on its arguments: `None`, and it answers at once.
    Either(fn(&str) -> Option<CommandTurn>, ImmediateCommand),
}

/// A command that is typed as `/name args`.
pub struct SlashCommand {
    pub name: &'static str,
    pub description: &'static str,
    /// The arguments that may follow the name; empty: none.
    pub hint: &'static str,
    run: CommandRun,
    /// Tells whether it has something to do; one that is typed nevertheless says what is missing.
    offered: fn(&Spec) -> bool,
    /// The conversation starts over with it.
    pub clears: bool,
}

const fn command(
    name: &'static str,
    hint: &'static str,
    description: &'static str,
    run: ImmediateCommand,
) -> SlashCommand {
    let run = CommandRun::Immediate(run);
    SlashCommand { name, description, hint, run, offered: |_| true, clears: false }
}

const fn turn_command(
    name: &'static str,
    hint: &'static str,
    description: &'static str,
    errand: fn(&str) -> Result<CommandTurn, &'static str>,
) -> SlashCommand {
    SlashCommand { name, description, hint, run: CommandRun::Turn(errand), offered: |_| true, clears: false }
}

impl SlashCommand {
    const fn clears_conversation(self) -> Self {
        Self { clears: true, ..self }
    }

    const fn offered_when(self, offered: fn(&Spec) -> bool) -> Self {
        Self { offered, ..self }
    }
}

/// The commands, in the order of `/help`.
pub const COMMANDS: &[SlashCommand] = &[
    command("help", "", "What can be typed here", help),
    command("clear", "", "Start over; the transcript stays visible", clear).clears_conversation(),
    turn_command("compress", "[what to keep]", "Replaces the older part of this conversation by a summary", compress),
    turn_command("undo", "[number of turns]", "Undoes the file changes of the last turn", undo_arguments::undo),
    turn_command("redo", "", "Takes the last `/undo` or `/rewind` of files back", undo_arguments::redo),
    turn_command(
        "rewind",
        "number|message [both|files|conversation]",
        "Goes back to before a prompt",
        undo_arguments::rewind,
    ),
    command("checkpoints", "", "The prompts so far, and what they changed in files", undo_arguments::list),
    turn_command("diff", "", "What this session changed in files", undo_arguments::diff),
    turn_command(
        "looked",
        "[file or folder]",
        "You looked at what agents wrote: it may run outside",
        undo_arguments::looked,
    ),
    command("model", "[name]", "Shows or chooses the model", model::model),
    command("mode", "[name]", "Shows or chooses what castor does without asking", mode),
    command("tools", "", "The tools that the model has", tools),
    SlashCommand {
        run: CommandRun::Either(|args| server_order::parse(args).map(CommandTurn::Server), mcp),
        ..command(
            "mcp",
            "[desc | test [name] | add|remove|login|logout|enable|disable name]",
            "The MCP servers and how they are; with `desc` also their tools",
            mcp,
        )
    },
    command("hooks", "[enable|disable name|all]", "The hooks; switches them for this session", hooks::hooks)
        .offered_when(|spec| !spec.toolbox.hooks.is_empty()),
    turn_command(
        "agents",
        "[show|enable|disable name | reload]",
        "The agents; switches them for this session",
        |args| Ok(CommandTurn::Agents(args.to_owned())),
    )
    .offered_when(|spec| !spec.choices.agents.definitions.is_empty()),
    turn_command("commands", "[list | reload]", "The commands that files bring", |args| {
        Ok(CommandTurn::FileCommands(args.to_owned()))
    })
    .offered_when(|spec| !spec.choices.prompts.commands.is_empty() || !spec.choices.prompts.faults.is_empty()),
    turn_command("skills", "[enable|disable name | reload]", "The skills; switches them for this session", |args| {
        Ok(CommandTurn::Skills(args.to_owned()))
    })
    .offered_when(|spec| !spec.choices.prompts.skills.is_empty()),
    turn_command("extensions", "[list | reload]", "The extensions, and what they bring", |args| {
        Ok(CommandTurn::Extensions(args.to_owned()))
    })
    .offered_when(|spec| !spec.choices.prompts.extensions.is_empty()),
    turn_command(
        "memory",
        "[refresh|show|add [global] fact|inbox [accept|discard number|all]]",
        "The memory files, read again; keeps facts for later sessions",
        memory,
    ),
    turn_command(
        "shell",
        "command",
        "Runs a command as a call of the model would; the model sees what it printed",
        shell,
    )
    .offered_when(|spec| spec.toolbox.find(RUN_SHELL_COMMAND).is_some()),
    command("stats", "", "Tokens and calls of this session", |step, _, _| stats::stats(&step.record.spent)),
    command("limits", "[requests=20 session.cost=5|none|default]", "How far turns and session may go", limits::run),
    command("network", "", "The hosts that commands reached and were refused", network_report::network),
    command("permissions", "[revoke number|all]", "What you allowed for this session", permissions::permissions),
    turn_command("init", "", "Has the model write GEMINI.md for this workspace", |args| match args {
        "" => Ok(CommandTurn::Init),
        _ => Err("`/init` takes no arguments: tell the model what else you want in the next prompt."),
    }),
    command("directory", "[show]", "The folders of this session", directory).offered_when(|_| false),
    SlashCommand {
        run: CommandRun::Either(
            |args| undo_arguments::rewind(args).ok().filter(|_| args != "list"),
            undo_arguments::list,
        ),
        ..command(
            "restore",
            "[list | number|message [both|files|conversation]]",
            "As `/checkpoints` and `/rewind`",
            undo_arguments::list,
        )
    }
    .offered_when(|_| false),
    command("about", "", "Which castor this is", about),
];

/// Names that users of Gemini CLI type, the command that each means, and its arguments; empty: what is typed.
const ALIASES: &[(&str, &str, &str)] = &[
    ("compact", "compress", ""),
    ("dir", "directory", ""),
    ("new", "clear", ""),
    ("plan", "mode", "plan"),
    ("summarize", "compress", ""),
    ("usage", "stats", ""),
];

/// The prompt of a server that a prompt of the user calls. No server has the name of a command of castor's.
pub fn find_server_prompt(content: &[Part], spec: &Spec) -> Option<CommandTurn> {
    let (name, args) = split_command(content)?;
    is_server_prompt(&spec.toolbox.servers, name).then(|| {
        let (command, args) = (name.to_owned(), args.trim().to_owned());
        CommandTurn::ServerPrompt(ServerPromptOrder {
            command,
            args,
            rest: content.get(1..).unwrap_or_default().to_vec(),
        })
    })
}

pub fn is_own_command(name: &str) -> bool {
    COMMANDS.iter().any(|it| it.name == name) || ALIASES.iter().any(|it| it.0 == name)
}

/// The commands that can be typed now: castor's own, those of files, prompts of servers.
pub fn all_offered(spec: &Spec) -> Vec<OfferedCommand> {
    let own = COMMANDS.iter().filter(|it| (it.offered)(spec)).map(|it| OfferedCommand {
        name: it.name.to_owned(),
        description: it.description.to_owned(),
        hint: it.hint.to_owned(),
    });
    let of_servers = server_prompts(&spec.toolbox.servers).into_iter().map(|(name, server, prompt)| {
        // People decide by it: whose words these are stands behind them.
        let description = format!("{} ({} MCP)", prompt.description, text::first_line(&server.name, 100));
        OfferedCommand { name, description, hint: prompt.hint() }
    });
    own.chain(offered_of_files(&spec.choices.prompts, is_own_command)).chain(of_servers).collect()
}

/// The command that a prompt calls, with its arguments. A space before it makes it a text.
pub fn find_command(content: &[Part]) -> Option<(&'static SlashCommand, &str)> {
    let (name, typed) = split_command(content)?;
    let (name, args) = match ALIASES.iter().find(|it| it.0 == name) {
        Some((_, meant, "")) => (*meant, typed.trim()),
        Some((_, meant, args)) => (*meant, *args),
        None => (name, typed.trim()),
    };
    COMMANDS.iter().find(|it| it.name == name).map(|it| (it, args))
}

/// Tells whether a prompt has the definitions of its folder read anew by itself, and says what it found.
pub fn reads_definitions(content: &[Part]) -> bool {
    let command = find_command(content).map(|(it, args)| (it.name, args));
    matches!(command, Some(("agents" | "commands" | "extensions" | "skills", "reload" | "refresh")))
}

/// The least likeness of a name that is worth a suggestion.
const MIN_LIKENESS: f32 = 0.5;
/// Nearly as like as the nearest.
const AS_NEAR: f32 = 0.1;

/// The most notes on files that are not used, which may be the ones that are meant.
const MAX_NOTES: usize = 3;

/// The answer to a prompt that looks like a command, and is none: a slip of the fingers is not for the model. Paths
/// such as `/usr/bin` do not look like one.
pub fn suggest_command(content: &[Part], spec: &Spec) -> Option<String> {
    let (name, _) = split_command(content)?;
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-_:.".contains(c);
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(is_word) {
        return None;
    }
    let alike = |it: &OfferedCommand| similar::TextDiff::from_chars(name, &it.name).ratio();
    let known = all_offered(spec);
    let mut near: Vec<(f32, &str)> = known.iter().map(|it| (alike(it), it.name.as_str())).collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let least = near.first().map_or(MIN_LIKENESS, |it| (it.0 - AS_NEAR).max(MIN_LIKENESS));
    let near: Vec<String> = near.iter().filter(|it| it.0 >= least).map(|it| format!("`/{}`", it.1)).collect();
    let meant = if near.is_empty() { String::new() } else { format!(" Did you mean {}?", near.join(" or ")) };
    let name = text::head(name, 100);
    let unused: String = spec.choices.prompts.notes.iter().take(MAX_NOTES).map(|it| format!("\n{it}")).collect();
    Some(format!(
        "There is no command `/{name}`.{meant} `/help` lists them all. To send it to the model, put a space or another \
         slash before it.{unused}"
    ))
}

/// Answers a command as a turn of its own; or says what it needs a longer one for.
pub fn run_command(
    command: &SlashCommand,
    args: &str,
    step: &mut Step<'_>,
    spec: &Spec,
    (prompt, content): (PromptId, &[Part]),
) -> Option<CommandTurn> {
    let now = match command.run {
        CommandRun::Immediate(run) => Ok(run),
        CommandRun::Turn(errand) => match errand(args) {
            Ok(errand) => return Some(errand),
            Err(why) => Err(why.to_owned()),
        },
        CommandRun::Either(errand, run) => match errand(args) {
            Some(errand) => return Some(errand),
            None => Ok(run),
        },
    };
    answer(step, prompt, content, |step| now.map_or_else(|why| why, |run| run(step, spec, args)));
    None
}

/// A turn of castor's own: what was typed, and what it says.
pub fn answer(step: &mut Step<'_>, prompt: PromptId, content: &[Part], say: impl FnOnce(&mut Step<'_>) -> String) {
    answer_with(step, prompt, content, (StopKind::EndTurn, say));
}

/// Answers a prompt that looks like a command, and is none.
pub fn refuse_command(step: &mut Step<'_>, prompt: PromptId, content: &[Part], why: String) {
    answer_with(step, prompt, content, (StopKind::UnknownCommand, |_: &mut Step<'_>| why));
}

fn answer_with(
    step: &mut Step<'_>,
    prompt: PromptId,
    content: &[Part],
    (stop, say): (StopKind, impl FnOnce(&mut Step<'_>) -> String),
) {
    step.begin_stream(prompt);
    send_command_message(step, Speaker::User, content.to_vec());
    let said = say(step);
    send_command_message(step, Speaker::Agent, vec![Part::text(said)]);
    step.emit_event(EventKind::AgentEnd { reason: EndReason::Completed, data: None });
    step.start_effect(Effect::AnswerPrompt { prompt, outcome: PromptOutcome::Stop(stop), usage: None, stats: None });
}

fn help(_: &mut Step<'_>, spec: &Spec, _: &str) -> String {
    let line = |it: &OfferedCommand| match it.hint.as_str() {
        "" => format!("- `/{}`: {}\n", it.name, it.description),
        hint => format!("- `/{} {hint}`: {}\n", it.name, it.description),
    };
    all_offered(spec).iter().map(line).collect()
}

fn directory(step: &mut Step<'_>, _: &Spec, args: &str) -> String {
    match args {
        "" | "show" => step.record.roots.iter().map(|it| format!("- `{it}`\n")).collect(),
        _ => "`/directory` lists the folders of this session. Its client names them when it begins: `castor run \
              --include-directories DIR`, or your editor."
            .to_owned(),
    }
}

fn clear(step: &mut Step<'_>, _: &Spec, _: &str) -> String {
    step.log(Fact::Cleared);
    "The model has forgotten the conversation so far. Files and permissions are as they were.".to_owned()
}

fn mode(step: &mut Step<'_>, spec: &Spec, name: &str) -> String {
    let known: Vec<String> = spec.choices.modes.allowed.iter().map(|it| format!("`{}`", it.as_str())).collect();
    if name.is_empty() {
        return format!("The mode is `{}`. There are {}.", step.record.mode.as_str(), known.join(", "));
    }
    match Mode::parse(name) {
        Some(mode) if spec.choices.modes.allowed.contains(&mode) => {
            step.log(Fact::Mode { mode });
            format!("The mode is `{}` now.", mode.as_str())
        }
        Some(mode) if Mode::OFFERED.contains(&mode) => {
            let is_off = !spec.choices.modes.offered.contains(&mode);
            let facts = spec.toolbox.sandbox.facts;
            let why = match policy::check_auto_available(facts) {
                Err(it) if mode == Mode::Auto && !is_off && facts.trusted => it.to_owned(),
                _ => mode_refusal(mode, is_off),
            };
            format!("The mode is still `{}`: {why}.", step.record.mode.as_str())
        }
        _ => format!("There is no mode `{name}`. There are {}.", known.join(", ")),
    }
}

fn tools(step: &mut Step<'_>, spec: &Spec, _: &str) -> String {
    let first = |text: &str| text.split_inclusive(". ").next().unwrap_or_default().trim().to_owned();
    let toolbox = spec.toolbox.in_mode(step.record.mode);
    toolbox.tools.iter().map(|it| format!("- `{}`: {}\n", it.name, first(&it.description))).collect()
}

/// The longest line for the shell that can be typed, in bytes.
const MAX_COMMAND: usize = 32 << 10;
/// Most tools of a server that are described.
const MAX_TOLD: usize = 100;

fn mcp(step: &mut Step<'_>, spec: &Spec, args: &str) -> String {
    let told = match args {
        "" | "list" => 0,
        "desc" => MAX_TOLD,
        _ => {
            return "`/mcp` lists the MCP servers, `/mcp desc` also their tools. `/mcp login NAME` and `/mcp logout NAME` \
                    begin and end a login, `/mcp enable NAME` and `/mcp disable NAME` switch a server in this session. \
                    `/mcp add NAME COMMAND_OR_URL` and `/mcp remove NAME` change the settings, `/mcp test [NAME]` \
                    starts servers anew beside the session."
                .to_owned();
        }
    };
    if spec.toolbox.servers.is_empty() {
        return NO_SERVERS.to_owned();
    }
    spec.toolbox.servers.iter().map(|it| server_in_words(it, &spec.toolbox, told, step.now.unix_ms)).collect()
}

const MEMORY_USAGE: &str = "`/memory` reads the memory files again and lists them, `/memory show` with their text. `/memory add \
                            [global] FACT` keeps a fact, `/memory inbox` shows what agents propose, and `/memory inbox \
                            accept|discard NUMBER|all` decides about it.";

fn memory(args: &str) -> Result<CommandTurn, &'static str> {
    match args {
        "" | "list" | "refresh" | "reload" => Ok(CommandTurn::Memory { whole: false }),
        "show" => Ok(CommandTurn::Memory { whole: true }),
        _ => MemoryOrder::parse(args).map(CommandTurn::SavedMemory).ok_or(MEMORY_USAGE),
    }
}

fn shell(args: &str) -> Result<CommandTurn, &'static str> {
    match args {
        "" => Err("`/shell COMMAND` runs a command in the session's folder, by the rules that hold for the model's."),
        it if it.len() > MAX_COMMAND => Err("This command is too long; put it into a script, and run that."),
        it => Ok(CommandTurn::Shell(it.to_owned())),
    }
}

fn compress(args: &str) -> Result<CommandTurn, &'static str> {
    Ok(CommandTurn::Compress { keep: text::head(args, 2_000).to_owned() })
}

fn about(step: &mut Step<'_>, _: &Spec, _: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let record = &step.record;
    format!(
        "castor {version}\n- Session: `{}`\n- Folder: `{}`\n- Model: `{}`\n- Mode: `{}`\n",
        record.session,
        record.cwd,
        record.model,
        record.mode.as_str()
    )
}
