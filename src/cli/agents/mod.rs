//! `castor agents`: lists sub-agents, shows one, writes a new one and checks their files.

mod new;
mod page;

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
use castor_agent::{
    session::{agents, place::load_ground},
    settings::options::Options,
};
use castor_base::{
    agent::{AgentList, AgentListing, AgentOrigin, Agents},
    path::AbsPath,
    text,
    trust::TrustedFileKind,
};
use castor_hands::{disk, secrets::Env};
use castor_tools::workspace::{
    Warning,
    agents::{format_of, parse},
    folder_config::FolderConfig,
};

/// Looks at sub-agents.
#[derive(Args, Clone, Debug)]
pub struct AgentsArgs {
    #[command(subcommand)]
    pub verb: AgentsVerb,
}

#[derive(Subcommand, Clone, Debug)]
pub enum AgentsVerb {
    /// Lists the sub-agents of a session in this folder
    List {
        /// One JSON object instead of text
        #[arg(long)]
        json: bool,
        /// The folder of the session [default: the current one]
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
    },
    /// Shows one, with its instructions
    Show {
        /// As `list` names it
        name: String,
        /// One JSON object instead of text
        #[arg(long)]
        json: bool,
        /// The folder of the session [default: the current one]
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
    },
    /// Writes a file for a new one, to be filled in
    New {
        /// Of a-z, 0-9, _ and -
        name: String,
        /// Among yours, in ~/.castor/agents; this is the default
        #[arg(long, conflicts_with = "workspace")]
        user: bool,
        /// Among those of the folder, in its .castor/agents
        #[arg(long)]
        workspace: bool,
        /// The folder [default: the current one]
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
    },
    /// Says what is wrong with a file, or with all files that a session in this folder reads
    #[command(after_help = exits::help("agents check"))]
    Check {
        /// Only this one, trusted or not
        file: Option<PathBuf>,
        /// The folder of the session [default: the current one]
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
    },
}

/// The folder, and all that is found for a session in it.
struct FolderAgents {
    ground: FolderConfig,
    agents: Agents,
    warnings: Vec<Warning>,
}

impl FolderAgents {
    fn of(env: &Env, folder: &AbsPath) -> Self {
        let (ground, settings) = load_ground(&Options::default(), env, folder);
        let (agents, warnings) = agents::agents(&ground, &settings);
        Self { ground, agents, warnings }
    }
}

/// Returns the exit code.
///
/// # Errors
/// The output's, and those of a file that cannot be written.
pub fn run(args: &AgentsArgs, env: &Env, here: &AbsPath, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let (AgentsVerb::List { cwd, .. }
    | AgentsVerb::Show { cwd, .. }
    | AgentsVerb::New { cwd, .. }
    | AgentsVerb::Check { cwd, .. }) = &args.verb;
    let folder = match folder(here, cwd.as_ref()) {
        Ok(it) => it,
        Err(why) => return writeln!(err, "castor: {}", escape_line(&why)).map(|()| EXIT_INPUT),
    };
    match &args.verb {
        AgentsVerb::List { json, .. } => list(&FolderAgents::of(env, &folder), *json, out),
        AgentsVerb::Show { name, json, .. } => {
            show(&FolderAgents::of(env, &folder), name, *json, &mut Streams { out, err })
        }
        AgentsVerb::New { name, workspace, .. } => {
            let found = FolderAgents::of(env, &folder);
            match new::write(name, workspace.then_some(&folder), env, &found.agents)? {
                Ok(file) => writeln!(out, "Wrote {file}. Fill it in, then run `castor agents check`.").map(|()| 0),
                Err(why) => writeln!(err, "castor: {}", escape_line(&why)).map(|()| EXIT_INPUT),
            }
        }
        AgentsVerb::Check { file: Some(file), .. } => check_file(file, here, out),
        AgentsVerb::Check { file: None, .. } => check_all(&FolderAgents::of(env, &folder), out),
    }
}

struct Streams<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
}

fn list(found: &FolderAgents, json: bool, out: &mut dyn Write) -> io::Result<u8> {
    if json {
        let agents = found.agents.iter().map(AgentListing::from).collect();
        let warnings = found.warnings.iter().map(ToString::to_string).collect();
        // Values have no keys that are not texts.
        let text = serde_json::to_string_pretty(&AgentList { agents, warnings }).unwrap_or_default();
        return writeln!(out, "{text}").map(|()| 0);
    }
    for it in found.agents.iter() {
        let state = if it.enabled { "on" } else { "off" };
        let about = escape_line(&text::first_line(&it.descriptor.description, 80));
        writeln!(out, "{:<24} {:<10} {state:<4} {about}", it.descriptor.name, it.origin.scope().as_str())?;
    }
    if found.agents.is_empty() {
        writeln!(out, "No agents: experimental.enableAgents is off.")?;
    }
    notes(found, out)
}

/// What of the folder is not used, and why.
fn notes(found: &FolderAgents, out: &mut dyn Write) -> io::Result<u8> {
    for it in agents::notes(&found.ground) {
        writeln!(out, "\n{}", escape_line(&it))?;
    }
    write_warnings(&found.warnings, out).map(|()| 0)
}

fn show(found: &FolderAgents, name: &str, json: bool, streams: &mut Streams<'_>) -> io::Result<u8> {
    let Some(it) = found.agents.iter().find(|it| it.descriptor.name == name) else {
        let name = escape_line(name);
        writeln!(streams.err, "castor: there is no agent {name}; `castor agents list` lists them")?;
        return Ok(EXIT_INPUT);
    };
    let text = match json {
        true => serde_json::to_string_pretty(&AgentListing::from(it)).unwrap_or_default(),
        false => page::page(it),
    };
    writeln!(streams.out, "{text}").map(|()| 0)
}

fn check_file(file: &Path, here: &AbsPath, out: &mut dyn Write) -> io::Result<u8> {
    let file = here.join(file);
    let fault = |at, message: String| Warning { origin: file.to_string(), at, key: None, message };
    let bytes = match disk::read_head(&file, MAX_READ) {
        Ok(it) => it,
        Err(it) => return writeln!(out, "{}", fault(None, format!("cannot be read: {it}"))).map(|()| EXIT_INPUT),
    };
    let (name, faults) = match parse(&bytes, format_of(&file), AgentOrigin::User(file.clone()), &agents::tool_name) {
        Ok((it, notes)) => (Some(it.descriptor.name), notes),
        Err(it) => (None, vec![it]),
    };
    for it in &faults {
        writeln!(out, "{}", escape_line(&fault(it.at, it.message.clone()).to_string()))?;
    }
    match name {
        Some(name) if faults.is_empty() => writeln!(out, "The agent {name} is in order.")?,
        Some(name) => writeln!(out, "The agent {name} is used without that.")?,
        None => writeln!(out, "The file defines no agent.")?,
    }
    Ok(if faults.is_empty() { 0 } else { EXIT_FAILED })
}

fn check_all(found: &FolderAgents, out: &mut dyn Write) -> io::Result<u8> {
    let files = found.agents.iter().filter(|it| it.origin.file().is_some()).count();
    writeln!(out, "Agents from files: {files}.")?;
    notes(found, out)?;
    let changed = !found.ground.project.changes(TrustedFileKind::Agent).is_empty();
    Ok(if found.warnings.is_empty() && !changed { 0 } else { EXIT_FAILED })
}

/// More than an agent's file may have.
const MAX_READ: u64 = 2 << 20;

#[cfg(test)]
mod tests;
