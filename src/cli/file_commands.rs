//! `castor commands`: lists the commands that files bring, shows one, and checks their files.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};

use super::{
    exits::{self, EXIT_FAILED, EXIT_INPUT},
    folder::folder,
    output::write_warnings,
    terminal_text::escape_line,
};
use castor_agent::session::prompts;
use castor_base::{
    agent::AgentOrigin,
    file_prompt::{CommandFormat, FileCommand},
    path::AbsPath,
    trust::TrustedFileKind,
};
use castor_hands::{disk, secrets::Env};
use castor_tools::workspace::{
    Warning,
    folder_config::{self, FolderConfig},
    prompts::{FoundPrompts, format_of, parse_command},
};

/// Looks at commands of files.
#[derive(Args, Clone, Debug)]
#[command(after_help = "They lie in the folder `commands` of .castor, .gemini (TOML) and .claude (Markdown), \
                        of your home and of the workspace.")]
pub struct CommandsArgs {
    #[command(subcommand)]
    pub verb: CommandsVerb,
}

#[derive(Subcommand, Clone, Debug)]
pub enum CommandsVerb {
    /// Lists what can be typed in a session in this folder, but castor's own
    List {
        /// The folder of the session [default: the current one]
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
    },
    /// Shows one, with its prompt
    Show {
        /// As `list` names it
        name: String,
        /// The folder of the session [default: the current one]
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
    },
    /// Says what is wrong with a file, or with all files that a session in this folder reads
    #[command(after_help = exits::help("commands check"))]
    Check {
        /// Only this one, trusted or not
        file: Option<PathBuf>,
        /// The folder of the session [default: the current one]
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
    },
}

/// Returns the exit code.
///
/// # Errors
/// The output's.
pub fn run(args: &CommandsArgs, env: &Env, here: &AbsPath, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let (CommandsVerb::List { cwd } | CommandsVerb::Show { cwd, .. } | CommandsVerb::Check { cwd, .. }) = &args.verb;
    let folder = match folder(here, cwd.as_ref()) {
        Ok(it) => it,
        Err(why) => return writeln!(err, "castor: {}", escape_line(&why)).map(|()| EXIT_INPUT),
    };
    if let CommandsVerb::Check { file: Some(file), .. } = &args.verb {
        return check_file(file, here, out);
    }
    let ground = folder_config::load(env, &folder);
    let found = prompts::find(&ground);
    match &args.verb {
        CommandsVerb::List { .. } => {
            list(&found, out)?;
            notes(&ground, &found.command_warnings, TrustedFileKind::Command, out).map(|_| 0)
        }
        CommandsVerb::Show { name, .. } => show(&found, name, out, err),
        CommandsVerb::Check { .. } => {
            writeln!(out, "Commands: {}.", found.commands.len())?;
            let is_clean = notes(&ground, &found.command_warnings, TrustedFileKind::Command, out)?;
            Ok(if is_clean { 0 } else { EXIT_FAILED })
        }
    }
}

fn list(found: &FoundPrompts, out: &mut dyn Write) -> io::Result<()> {
    if found.commands.is_empty() {
        writeln!(out, "No file brings a command.")?;
    }
    for it in &found.commands {
        let typed = format!("/{} {}", it.name, it.hint);
        let typed = escape_line(typed.trim_end());
        writeln!(out, "{typed:<32} {:<10} {}", it.origin.scope().as_str(), escape_line(&it.description))?;
    }
    Ok(())
}

/// What of the folder is not used, and what is wrong in files; whether there is nothing.
pub(super) fn notes(
    ground: &FolderConfig,
    warnings: &[Warning],
    kind: TrustedFileKind,
    out: &mut dyn Write,
) -> io::Result<bool> {
    let changes = prompts::changes_of(ground, kind);
    for it in prompts::untrusted_note(ground).iter().chain(&changes) {
        writeln!(out, "\n{}", escape_line(it))?;
    }
    write_warnings(warnings, out)?;
    Ok(warnings.is_empty() && changes.is_empty())
}

fn show(found: &FoundPrompts, name: &str, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let name = name.strip_prefix('/').unwrap_or(name);
    let Some(it) = found.commands.iter().find(|it| it.name == name) else {
        let name = escape_line(name);
        return writeln!(err, "castor: there is no command {name}; `castor commands list` lists them")
            .map(|()| EXIT_INPUT);
    };
    write!(out, "{}", page(it)).map(|()| 0)
}

fn page(it: &FileCommand) -> String {
    let format = match it.format {
        CommandFormat::Toml => "TOML, as Gemini CLI's",
        CommandFormat::Markdown => "Markdown, as Claude Code's",
    };
    let from = it.origin.file().map_or_else(String::new, ToString::to_string);
    let rows = [
        ("name", format!("/{}", it.name)),
        ("description", it.description.clone()),
        ("arguments", it.hint.clone()),
        ("model", it.model.clone().unwrap_or_else(|| "that of the session".to_owned())),
        ("format", format.to_owned()),
        ("from", from),
    ];
    let rows: String = rows.iter().map(|(key, value)| format!("{key:<13} {}\n", escape_line(value))).collect();
    rows + &indented(&it.prompt)
}

/// Behind blanks, so that no line looks like one of castor's.
pub(super) fn indented(text: &str) -> String {
    text.lines().map(|it| format!("\n{}", format!("  {}", escape_line(it)).trim_end())).collect::<String>() + "\n"
}

/// More than a file may have.
pub(super) const MAX_READ: u64 = 2 << 20;

fn check_file(file: &Path, here: &AbsPath, out: &mut dyn Write) -> io::Result<u8> {
    let file = here.join(file);
    let fault = |at, message: String| Warning { origin: file.to_string(), at, key: None, message };
    let bytes = match disk::read_head(&file, MAX_READ) {
        Ok(it) => it,
        Err(it) => return writeln!(out, "{}", fault(None, format!("cannot be read: {it}"))).map(|()| EXIT_INPUT),
    };
    let stem = file.as_path().file_stem().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
    let (is_there, faults) = match parse_command(&bytes, &stem, format_of(&file), AgentOrigin::User(file.clone())) {
        Ok((_, notes)) => (true, notes),
        Err(it) => (false, vec![it]),
    };
    for it in &faults {
        writeln!(out, "{}", escape_line(&fault(it.at, it.message.clone()).to_string()))?;
    }
    match (is_there, faults.is_empty()) {
        (true, true) => writeln!(out, "The command {} is in order.", escape_line(&stem))?,
        (true, false) => writeln!(out, "The command {} is used without that.", escape_line(&stem))?,
        (false, _) => writeln!(out, "The file defines no command.")?,
    }
    Ok(if faults.is_empty() { 0 } else { EXIT_FAILED })
}
