//! `castor skills`: lists, shows, installs, links and removes skills, switches one in your settings, and checks files.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};

use super::{
    exits::{self, EXIT_FAILED, EXIT_INPUT},
    extensions::{
        ExtensionStreams,
        skills::{self, SkillLinkArgs, SkillOrder, SkillSourceArgs},
    },
    file_commands::{MAX_READ, indented, notes},
    folder::folder,
    terminal_text::escape_line,
};
use castor_agent::session::prompts;
use castor_base::{agent::AgentOrigin, file_prompt::Skill, path::AbsPath, text, trust::TrustedFileKind};
use castor_hands::{disk, secrets::Env};
use castor_tools::workspace::{
    NO_HOME, Warning, castor_home, folder_config,
    prompts::{FoundPrompts, SKILL_FILE, parse_skill},
    settings_edit,
};

/// Looks after skills.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "They lie in the folder `skills` of .castor, .agents, .gemini and .claude, of your home and of \
                        the workspace: a folder each, with a file SKILL.md. What is installed or linked is shown \
                        before it counts; files that change later count for nothing until you say yes again."
)]
pub struct SkillsArgs {
    #[command(subcommand)]
    pub verb: SkillsVerb,
}

#[derive(Subcommand, Clone, Debug)]
pub enum SkillsVerb {
    /// Lists the skills of a session in this folder
    List {
        /// The folder of the session [default: the current one]
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
    },
    /// Shows one, with its instructions
    Show {
        /// As `list` names it
        name: String,
        /// The folder of the session [default: the current one]
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
    },
    /// Copies skills from a folder or a git repository, once you have seen what they bring
    Install(SkillSourceArgs),
    /// Uses a folder where it is; after a change, say `castor extensions update NAME`
    Link(SkillLinkArgs),
    /// Removes a skill that was installed or linked
    Uninstall {
        /// As `list` names it
        name: String,
    },
    /// Takes a skill off skills.disabled in your settings
    Enable {
        /// As `list` names it
        name: String,
    },
    /// Puts a skill on skills.disabled in your settings
    Disable {
        /// As `list` names it
        name: String,
    },
    /// Says what is wrong with a file, or with all files that a session in this folder reads
    #[command(after_help = exits::help("skills check"))]
    Check {
        /// Only this SKILL.md or folder, trusted or not
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
pub fn run(args: &SkillsArgs, env: &Env, here: &AbsPath, streams: &mut ExtensionStreams<'_>) -> io::Result<u8> {
    let order = match &args.verb {
        SkillsVerb::Install(it) => Some(SkillOrder::Install(it)),
        SkillsVerb::Link(it) => Some(SkillOrder::Link(it)),
        SkillsVerb::Uninstall { name } => Some(SkillOrder::Uninstall(name)),
        _ => None,
    };
    match order {
        Some(it) => skills::run(&it, env, here, streams),
        None => look(args, env, here, (streams.out, streams.err)),
    }
}

/// All verbs but those that install and remove.
fn look(args: &SkillsArgs, env: &Env, here: &AbsPath, (out, err): (&mut dyn Write, &mut dyn Write)) -> io::Result<u8> {
    let cwd = match &args.verb {
        SkillsVerb::List { cwd } | SkillsVerb::Show { cwd, .. } | SkillsVerb::Check { cwd, .. } => cwd.as_ref(),
        _ => None,
    };
    let folder = match folder(here, cwd) {
        Ok(it) => it,
        Err(why) => return writeln!(err, "castor: {}", escape_line(&why)).map(|()| EXIT_INPUT),
    };
    match &args.verb {
        SkillsVerb::Check { file: Some(file), .. } => return check_file(file, here, out),
        SkillsVerb::Enable { name } => return switch(env, name, true, out, err),
        SkillsVerb::Disable { name } => return switch(env, name, false, out, err),
        _ => (),
    }
    let ground = folder_config::load(env, &folder);
    let found = prompts::find(&ground);
    if let SkillsVerb::Show { name, .. } = &args.verb {
        return show(&found, name, out, err);
    }
    let checks = matches!(args.verb, SkillsVerb::Check { .. });
    if checks {
        writeln!(out, "Skills: {}.", found.skills.len())?;
    } else {
        list(&found, out)?;
    }
    let is_clean = notes(&ground, &found.skill_warnings, TrustedFileKind::Skill, out)?;
    Ok(if checks && !is_clean { EXIT_FAILED } else { 0 })
}

fn list(found: &FoundPrompts, out: &mut dyn Write) -> io::Result<()> {
    if found.skills.is_empty() {
        writeln!(out, "There are no skills.")?;
    }
    for it in &found.skills {
        let about = escape_line(&text::first_line(&it.description, 80));
        writeln!(out, "{:<24} {:<10} {:<4} {about}", escape_line(&it.name), it.origin.scope().as_str(), state(it))?;
    }
    Ok(())
}

fn state(it: &Skill) -> &'static str {
    if it.enabled { "on" } else { "off" }
}

fn show(found: &FoundPrompts, name: &str, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let Some(it) = found.skills.iter().find(|it| it.name == name) else {
        let name = escape_line(name);
        return writeln!(err, "castor: there is no skill {name}; `castor skills list` lists them").map(|()| EXIT_INPUT);
    };
    let files = if it.files.is_empty() { "none".to_owned() } else { it.files.join(", ") };
    let rows = [
        ("name", it.name.clone()),
        ("description", it.description.clone()),
        ("state", state(it).to_owned()),
        ("folder", it.folder.to_string()),
        ("files", files),
    ];
    let rows: String = rows.iter().map(|(key, value)| format!("{key:<13} {}\n", escape_line(value))).collect();
    write!(out, "{rows}{}", indented(&it.instructions)).map(|()| 0)
}

fn switch(env: &Env, name: &str, is_on: bool, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let Some(home) = castor_home(env) else {
        return writeln!(err, "castor: {NO_HOME}").map(|()| EXIT_FAILED);
    };
    let file = home.join("settings.json");
    let what = if is_on { "on" } else { "off" };
    match settings_edit::edit_list(&file, &["skills", "disabled"], name, !is_on) {
        Ok(true) => writeln!(out, "The skill {} is {what} from the next prompt on.", escape_line(name)).map(|()| 0),
        Ok(false) => writeln!(out, "The skill {} is {what} already in {file}.", escape_line(name)).map(|()| 0),
        Err(it) => writeln!(err, "castor: {}", escape_line(&it.to_string())).map(|()| EXIT_FAILED),
    }
}

fn check_file(file: &Path, here: &AbsPath, out: &mut dyn Write) -> io::Result<u8> {
    let named = here.join(file);
    let is_folder = disk::metadata(&named).is_ok_and(|it| it.is_dir);
    let file = if is_folder { named.join(SKILL_FILE) } else { named };
    let fault = |at, message: String| Warning { origin: file.to_string(), at, key: None, message };
    let bytes = match disk::read_head(&file, MAX_READ) {
        Ok(it) => it,
        Err(it) => return writeln!(out, "{}", fault(None, format!("cannot be read: {it}"))).map(|()| EXIT_INPUT),
    };
    match parse_skill(&bytes, AgentOrigin::User(file.clone())) {
        Ok(it) => writeln!(out, "The skill {} is in order.", escape_line(&it.name)).map(|()| 0),
        Err(it) => {
            writeln!(out, "{}", escape_line(&fault(it.at, it.message).to_string()))?;
            writeln!(out, "The file defines no skill.").map(|()| EXIT_FAILED)
        }
    }
}
