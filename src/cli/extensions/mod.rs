//! `castor extensions`: installs, lists, switches, updates, checks and begins extensions.

mod git;
mod install;
mod moved;
mod page;
mod settings;
pub mod skills;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::{Args, Subcommand, ValueEnum};

use super::{
    exits::{self, EXIT_FAILED, EXIT_INPUT},
    folder::folder,
    terminal_text::escape_line,
};
use castor_agent::session::prompts::summary;
use castor_base::path::AbsPath;
use castor_hands::{disk, secrets::Env};
use castor_tools::workspace::{
    NO_HOME, castor_home,
    extension_files::{HOOKS, MANIFEST},
    extensions::{
        Extension, contents,
        manifest::is_extension_name,
        record::{self, ExtensionKind, ExtensionRecord},
    },
    folder_config::{self, FolderConfig},
    gemini_home,
};

/// Looks after extensions.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "An extension is a folder with a gemini-extension.json, as Gemini CLI has them. What it brings is shown \
                        before it counts; files that change later count for nothing until you say yes again."
)]
pub struct ExtensionsArgs {
    #[command(subcommand)]
    pub verb: ExtensionsVerb,
}

#[derive(Subcommand, Clone, Debug)]
pub enum ExtensionsVerb {
    /// Lists those that are installed, and whether they count in this folder
    List {
        /// The folder of the session [default: the current one]
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
    },
    /// Shows what one brings
    Show {
        /// As `list` names it
        name: String,
    },
    /// Copies one from a folder or a git repository, once you have seen what it brings
    Install {
        /// A folder, or an address that git can clone
        source: String,
        /// The branch, tag or commit [default: the repository's own]
        #[arg(long, value_name = "REF")]
        r#ref: Option<String>,
        /// Yes to what it brings, without a question
        #[arg(long)]
        consent: bool,
    },
    /// Uses a folder where it is; after a change, say `update`
    Link {
        /// The folder of the extension
        folder: PathBuf,
        /// Yes to what it brings, without a question
        #[arg(long)]
        consent: bool,
    },
    /// Removes one
    Uninstall {
        /// As `list` names it
        name: String,
    },
    /// Switches one on
    Enable(SwitchArgs),
    /// Switches one off
    Disable(SwitchArgs),
    /// Fetches one anew, shows what it brings now, and asks
    Update {
        /// As `list` names it
        #[arg(required_unless_present = "all")]
        name: Option<String>,
        /// All that are installed
        #[arg(long, conflicts_with = "name")]
        all: bool,
        /// Yes to what it brings, without a question
        #[arg(long)]
        consent: bool,
    },
    /// Lists the values that one asks for, or sets one
    Config {
        /// As `list` names it
        name: String,
        /// The name or the variable of the value; it is read from stdin, an empty one removes it
        setting: Option<String>,
    },
    /// Says what a folder brings as an extension, and what is wrong with it
    #[command(after_help = exits::help("extensions validate"))]
    Validate {
        /// The folder of the extension
        folder: PathBuf,
    },
    /// Begins a new one in a new folder
    New {
        /// The folder; its name is the extension's
        folder: PathBuf,
    },
}

#[derive(Args, Clone, Debug)]
pub struct SwitchArgs {
    /// As `list` names it
    pub name: String,
    /// Everywhere, or in this folder and below it
    #[arg(long, value_enum, default_value_t)]
    pub scope: SwitchScope,
    /// The folder of `--scope workspace` [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SwitchScope {
    #[default]
    User,
    Workspace,
}

/// Where it talks to the user.
pub struct ExtensionStreams<'a> {
    pub out: &'a mut dyn Write,
    pub err: &'a mut dyn Write,
    /// `None`: nobody can be asked.
    pub ask: Option<&'a mut dyn FnMut(&str) -> bool>,
}

/// What a verb works with.
struct Cx<'a, 'b> {
    env: &'a Env,
    home: AbsPath,
    here: &'a AbsPath,
    streams: &'a mut ExtensionStreams<'b>,
}

/// Why a verb ended without doing it.
enum Stop {
    Output(io::Error),
    /// The exit code and the words.
    Failed(u8, String),
}

impl From<io::Error> for Stop {
    fn from(it: io::Error) -> Self {
        Self::Output(it)
    }
}

fn failed<T>(why: impl ToString) -> Result<T, Stop> {
    Err(Stop::Failed(EXIT_FAILED, why.to_string()))
}

fn wrong<T>(why: impl ToString) -> Result<T, Stop> {
    Err(Stop::Failed(EXIT_INPUT, why.to_string()))
}

/// Returns the exit code.
///
/// # Errors
/// The output's.
pub fn run(args: &ExtensionsArgs, env: &Env, here: &AbsPath, streams: &mut ExtensionStreams<'_>) -> io::Result<u8> {
    with_cx(env, here, streams, |cx| run_verb(cx, &args.verb))
}

fn with_cx(
    env: &Env,
    here: &AbsPath,
    streams: &mut ExtensionStreams<'_>,
    act: impl FnOnce(&mut Cx<'_, '_>) -> Result<u8, Stop>,
) -> io::Result<u8> {
    let Some(home) = castor_home(env) else {
        return writeln!(streams.err, "castor: {NO_HOME}").map(|()| EXIT_FAILED);
    };
    let cx = &mut Cx { env, home, here, streams };
    match act(cx) {
        Ok(code) => Ok(code),
        Err(Stop::Output(it)) => Err(it),
        Err(Stop::Failed(code, why)) => writeln!(cx.streams.err, "castor: {}", escape_line(&why)).map(|()| code),
    }
}

fn run_verb(cx: &mut Cx<'_, '_>, verb: &ExtensionsVerb) -> Result<u8, Stop> {
    match verb {
        ExtensionsVerb::List { cwd } => list(cx, cwd.as_ref()),
        ExtensionsVerb::Show { name } => show(cx, name),
        ExtensionsVerb::Install { source, r#ref, consent } => install::install(cx, source, r#ref.as_deref(), *consent),
        ExtensionsVerb::Link { folder, consent } => install::link(cx, &cx.here.join(folder), *consent),
        ExtensionsVerb::Uninstall { name } => uninstall(cx, name),
        ExtensionsVerb::Enable(args) => switch(cx, args, true),
        ExtensionsVerb::Disable(args) => switch(cx, args, false),
        ExtensionsVerb::Update { name, consent, .. } => install::update(cx, name.as_deref(), *consent),
        ExtensionsVerb::Config { name, setting } => settings::config(cx, name, setting.as_deref()),
        ExtensionsVerb::Validate { folder } => validate(cx, &cx.here.join(folder)),
        ExtensionsVerb::New { folder } => begin(cx, &cx.here.join(folder)),
    }
}

impl Cx<'_, '_> {
    fn record(&self, name: &str) -> Result<ExtensionRecord, Stop> {
        match record::read(&self.home, name) {
            Ok(Some(it)) => Ok(it),
            Ok(None) => wrong(format!("there is no extension {name}; `castor extensions list` lists them")),
            Err(why) => failed(why),
        }
    }

    /// As sessions in this folder see them.
    fn ground(&self, cwd: Option<&PathBuf>) -> Result<FolderConfig, Stop> {
        let folder = folder(self.here, cwd).or_else(wrong)?;
        Ok(folder_config::load(self.env, &folder))
    }

    fn say(&mut self, line: &str) -> Result<(), Stop> {
        Ok(writeln!(self.streams.out, "{}", escape_line(line))?)
    }
}

fn list(cx: &mut Cx<'_, '_>, cwd: Option<&PathBuf>) -> Result<u8, Stop> {
    let ground = cx.ground(cwd)?;
    let all = &ground.extensions.all;
    if all.is_empty() {
        cx.say("No extension is installed.")?;
    }
    for it in all.iter() {
        let it = summary(it);
        cx.say(format!("{:<24} {:<10} {}  {}", it.name, it.version, it.state, it.brings).trim_end())?;
    }
    for it in &ground.extensions.warnings {
        cx.say(&it.to_string())?;
    }
    for (name, folder) in of_gemini(cx.env).into_iter().filter(|(name, _)| all.iter().all(|it| it.name != *name)) {
        cx.say(&format!("Gemini CLI has {name}; `castor extensions install {folder}` takes it over."))?;
    }
    Ok(0)
}

/// Extensions that Gemini CLI has installed, with their folders.
fn of_gemini(env: &Env) -> Vec<(String, AbsPath)> {
    let Some(folder) = gemini_home(env).map(|it| it.join("extensions")) else { return Vec::new() };
    let found = disk::read_dir(&folder).unwrap_or_default().into_iter().filter(|it| it.is_dir);
    let found = found.map(|it| (it.name.clone(), folder.join(&it.name)));
    found.filter(|(name, folder)| is_extension_name(name) && disk::path_exists(&folder.join(MANIFEST))).collect()
}

fn show(cx: &mut Cx<'_, '_>, name: &str) -> Result<u8, Stop> {
    let record = cx.record(name)?;
    let ground = cx.ground(None)?;
    let Some(it) = ground.extensions.all.iter().find(|it| it.name == record.name) else { return failed("it is gone") };
    let state = summary(it).state;
    let rows = [
        ("name", it.name.clone()),
        ("version", it.release.clone()),
        ("state", state),
        ("from", record.source.to_string()),
        ("folder", it.folder.to_string()),
    ];
    for (key, value) in rows {
        cx.say(&format!("{key:<9} {value}"))?;
    }
    if it.contents().is_some() {
        page::write(&page::of(it), cx.streams.out)?;
    }
    Ok(0)
}

fn uninstall(cx: &mut Cx<'_, '_>, name: &str) -> Result<u8, Stop> {
    let record = cx.record(name)?;
    record::remove(&cx.home, &record).or_else(failed)?;
    cx.say(&format!("The extension {name} is gone from the next session on."))?;
    Ok(0)
}

fn switch(cx: &mut Cx<'_, '_>, args: &SwitchArgs, is_on: bool) -> Result<u8, Stop> {
    let mut record = cx.record(&args.name)?;
    let folder = match args.scope {
        SwitchScope::User => None,
        SwitchScope::Workspace => {
            let folder = folder(cx.here, args.cwd.as_ref()).or_else(wrong)?;
            Some(disk::real_path(&folder).or_else(failed)?)
        }
    };
    record.switches.set(folder.as_ref(), is_on);
    record::write(&cx.home, &record).or_else(failed)?;
    let place = folder.map_or_else(|| "everywhere".to_owned(), |it| format!("in {it}"));
    cx.say(&format!("The extension {} is {} {place}.", args.name, if is_on { "on" } else { "off" }))?;
    if args.scope == SwitchScope::User && !record.switches.folders.is_empty() {
        let folders: Vec<String> =
            record.switches.folders.iter().map(|(at, on)| format!("{at} ({})", on_off(*on))).collect();
        cx.say(&format!("These folders have a switch of their own: {}.", folders.join(", ")))?;
    }
    Ok(0)
}

fn on_off(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

fn validate(cx: &mut Cx<'_, '_>, folder: &AbsPath) -> Result<u8, Stop> {
    let folder = disk::real_path(folder).or_else(wrong)?;
    let contents = contents::read(&folder, ExtensionKind::Extension).or_else(failed)?;
    let found = page::of(&Extension::candidate(&folder, contents));
    page::write(&found, cx.streams.out)?;
    if found.faults.is_empty() {
        cx.say("The extension is in order.")?;
    }
    Ok(if found.faults.is_empty() { 0 } else { EXIT_FAILED })
}

/// A manifest, context and a command to begin with.
fn begin(cx: &mut Cx<'_, '_>, folder: &AbsPath) -> Result<u8, Stop> {
    let name = folder.as_path().file_name().and_then(|it| it.to_str()).unwrap_or_default().to_owned();
    if !is_extension_name(&name) {
        return wrong(format!("{name:?} is no name of an extension: letters, digits and dashes"));
    }
    if disk::path_exists(folder) {
        return wrong(format!("{folder} is there already"));
    }
    let manifest = serde_json::json!({"name": name, "version": "0.1.0", "description": "What it is for"});
    let files = [
        (MANIFEST, format!("{manifest:#}\n")),
        ("GEMINI.md", "What the model is to know in each session.\n".to_owned()),
        ("commands/hello.toml", "description = \"Says hello\"\nprompt = \"Say hello to {{args}}.\"\n".to_owned()),
        (HOOKS, "{\n  \"hooks\": {}\n}\n".to_owned()),
    ];
    for (file, text) in files {
        disk::write_atomic(&folder.join(file), text.as_bytes()).or_else(failed)?;
    }
    cx.say(&format!("{folder} has a manifest, context, a command and an empty list of hooks."))?;
    cx.say(&format!("`castor extensions link {folder}` uses it where it is."))?;
    Ok(0)
}

#[cfg(test)]
mod tests;
