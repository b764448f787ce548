//! `castor sessions`: lists, shows, exports, imports, repairs and deletes sessions.

mod copy;
pub mod export;
pub mod ids;
pub mod list;
pub mod numbered;
mod print;
pub mod spans;
pub mod time;
mod tree;

use std::{
    io::{self, BufRead, IsTerminal, Write},
    path::PathBuf,
};

use clap::{Args, Subcommand, ValueEnum};
use jiff::tz::TimeZone;

use self::{
    export::{AgentLogs, ExportedStory, Story},
    ids::{SessionCandidate, ShortIds, ambiguity},
    list::ListQuery,
};
use super::{exits::EXIT_INPUT, folder::folder, render::ansi::wants_color, terminal_text};
use castor_agent::server::sessions::new_id;
use castor_base::{
    clock::Now,
    ids::{MIN_NAMED, MessageId, SessionId, is_named},
    model_table::ModelTable,
    path::AbsPath,
};
use castor_engine::record::Fork;
use castor_hands::{checkpoints, disk, secrets::Env};
use castor_store::sessions::{
    SessionStore, SessionSummary, StoreError,
    import::{self, ImportDefaults, ImportOutcome},
};

/// Where stdout is no terminal.
const DEFAULT_WIDTH: usize = 80;

/// Looks after sessions.
#[derive(Args, Clone, Debug)]
pub struct SessionsArgs {
    #[command(subcommand)]
    pub verb: SessionsVerb,
}

#[derive(Subcommand, Clone, Debug)]
pub enum SessionsVerb {
    /// Lists the sessions of a folder, newest first
    List {
        /// Of this folder [default: the current one]
        #[arg(long, value_name = "DIR", conflicts_with = "all")]
        cwd: Option<PathBuf>,
        /// Of all folders, with those in which nothing was asked
        #[arg(long)]
        all: bool,
        /// Only sessions that say this, in their title or in a prompt
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// How many; 0 for all [default: 20, or all with --json]
        #[arg(short = 'n', long = "limit", value_name = "N")]
        n_rows: Option<usize>,
        /// With the sub-agents of each session below it
        #[arg(long)]
        tree: bool,
        /// As JSON, for programs
        #[arg(long)]
        json: bool,
    },
    /// Says what a session is about and what happened in it
    Show {
        /// Its id, or `latest` of this folder; the short id of `list` is enough
        #[arg(value_name = "ID|latest")]
        id: String,
    },
    /// Writes a session as a document
    Export {
        /// Its id, or `latest` of this folder; the short id of `list` is enough
        #[arg(value_name = "ID|latest")]
        id: String,
        /// md, html, json [default: by the file's name, else md]
        #[arg(long, value_name = "FORMAT", value_enum, hide_possible_values = true)]
        format: Option<Format>,
        /// Where to [default: stdout]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Replace the file if it is there
        #[arg(long, requires = "output")]
        force: bool,
    },
    /// Takes in a transcript of Gemini CLI, or an export of castor's own
    Import {
        /// The transcript or export
        file: PathBuf,
        /// The folder it belongs to, where the file does not say it [default: the current one]
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
    },
    /// Copies sessions between files and the database that CASTOR_STORE names
    Copy {
        /// Their ids; the short ids of `list` are enough
        #[arg(value_name = "ID", required_unless_present = "all")]
        ids: Vec<String>,
        /// All sessions
        #[arg(long, conflicts_with = "ids")]
        all: bool,
        /// files, postgres
        #[arg(long, value_name = "STORE", value_enum, hide_possible_values = true)]
        to: CopyTarget,
    },
    /// Mends a damaged log: keeps a copy, then drops the lines that cannot be read
    Repair {
        /// Its id; the short id of `list` is enough
        id: String,
    },
    /// Begins another session with a copy of one, and prints its id
    Fork {
        /// Its id, or `latest` of this folder; the short id of `list` is enough
        #[arg(value_name = "ID|latest")]
        id: String,
        /// The last message that is copied [default: all of it]
        #[arg(long, value_name = "MESSAGE")]
        at: Option<String>,
    },
    /// Removes sessions for good
    Delete {
        /// Its id; the short id of `list` is enough
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// Without asking
        #[arg(short, long)]
        yes: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CopyTarget {
    /// Below castor's own folder
    Files,
    /// The database that CASTOR_STORE names
    Postgres,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Markdown
    Md,
    /// One file for a browser
    Html,
    /// Everything, for programs
    Json,
}

/// An error: the line for stderr, and the exit code.
#[derive(Debug)]
pub struct CommandError {
    pub why: String,
    pub code: u8,
}

impl CommandError {
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), code: 1 }
    }

    pub fn input(why: impl Into<String>) -> Self {
        Self { why: why.into(), code: EXIT_INPUT }
    }
}

impl From<io::Error> for CommandError {
    fn from(it: io::Error) -> Self {
        match it.kind() {
            // Whoever read has had enough: no reason to complain.
            io::ErrorKind::BrokenPipe => Self { why: String::new(), code: 0 },
            _ => Self::new(it.to_string()),
        }
    }
}

impl From<StoreError> for CommandError {
    fn from(it: StoreError) -> Self {
        Self::new(it.to_string())
    }
}

/// The command's folder, store and streams.
pub struct CommandContext<'a> {
    pub store: &'a SessionStore,
    /// Where the shell is.
    pub cwd: &'a AbsPath,
    pub now: Now,
    pub out: &'a mut dyn Write,
    /// Asks a question on the terminal; `None`: there is none.
    pub ask: Option<&'a mut dyn FnMut(&str) -> bool>,
    pub look: CommandLook,
}

/// How a command shows what it finds.
#[derive(Clone, Debug)]
pub struct CommandLook {
    /// Columns of the terminal.
    pub width: usize,
    pub color: bool,
    pub zone: TimeZone,
    /// What `~` stands for.
    pub home: Option<AbsPath>,
    /// stdin is no terminal: it may hold more of what is asked.
    pub is_piped: bool,
    /// stdout is a terminal.
    pub is_terminal: bool,
}

impl Default for CommandLook {
    fn default() -> Self {
        Self {
            width: DEFAULT_WIDTH,
            color: false,
            zone: TimeZone::UTC,
            home: None,
            is_piped: false,
            is_terminal: false,
        }
    }
}

impl CommandLook {
    pub fn of_process(env: &Env) -> Self {
        let variable = |name: &str| env.get(name).map(str::to_owned);
        Self {
            width: terminal_width().unwrap_or(DEFAULT_WIDTH),
            color: wants_color(io::stdout().is_terminal(), variable),
            zone: TimeZone::system(),
            home: variable("HOME").and_then(AbsPath::new),
            is_piped: !io::stdin().is_terminal(),
            is_terminal: io::stdout().is_terminal(),
        }
    }
}

/// Columns of the terminal that stdout is.
#[cfg(unix)]
pub fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|it| *it > 0)
}

#[cfg(not(unix))]
pub fn terminal_width() -> Option<usize> {
    None
}

/// Does what was asked for.
///
/// # Errors
/// With the line for stderr.
pub fn run(verb: &SessionsVerb, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
    match verb {
        SessionsVerb::List { cwd, all, search, n_rows, tree, json } => {
            let gone = |why| {
                CommandError::input(format!("{why}; `castor sessions list --all` has those of other folders too"))
            };
            let cwd = folder(context.cwd, cwd.as_ref()).map_err(gone)?;
            let cwd = Some(cwd).filter(|_| !*all);
            list::list(context, &ListQuery { cwd, search: search.clone(), n_rows: *n_rows, with_agents: *tree }, *json)
        }
        SessionsVerb::Show { id } => {
            let id = find(context, id)?;
            let entries = context.store.read(&id)?;
            let damage = context.store.find_damage(&id)?;
            let story = Story::new(&entries).ok_or(StoreError::NotFound { id })?;
            Ok(context.out.write_all(print::outline(&story, context.store, damage.n).as_bytes())?)
        }
        SessionsVerb::Export { id, format, output, force } => {
            let to = output.as_ref().map(|it| target(context.cwd, it, *force)).transpose()?;
            export(context, id, *format, to.as_ref())
        }
        SessionsVerb::Import { file, cwd } => import(context, file, cwd.as_ref()),
        SessionsVerb::Copy { ids, all, to } => copy::copy(context, (ids, *all), *to),
        SessionsVerb::Repair { id } => repair(context, id),
        SessionsVerb::Fork { id, at } => fork(context, id, at.as_deref()),
        SessionsVerb::Delete { ids, yes } => delete(context, ids, *yes),
    }
}

/// Reads the answer to a question on the terminal.
pub fn ask_terminal(question: &str) -> bool {
    matches!(read_terminal(&format!("{question} [y/N]")).trim(), "y" | "Y" | "yes")
}

/// The same for any answer; none is an empty one.
pub fn read_terminal(question: &str) -> String {
    eprint!("{} ", terminal_text::escape_text(question));
    let mut line = String::new();
    _ = io::stdin().lock().read_line(&mut line);
    line
}

/// Whether a user can be asked.
pub fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// The session named by an id, its beginning or end, or `latest`.
///
/// # Errors
/// There is none, or more than one.
pub fn find(context: &CommandContext<'_>, word: &str) -> Result<SessionId, CommandError> {
    if word == "latest" {
        let all = context.store.list(Some(context.cwd))?.into_iter().find(|it| it.has_prompts);
        let none =
            || CommandError::input(format!("no session of {}; `castor sessions list --all` has all", context.cwd));
        return all.map(|it| it.id).ok_or_else(none);
    }
    let id = SessionId::from(word);
    if context.store.has(&id) {
        return Ok(id);
    }
    if word.len() < MIN_NAMED {
        let why = format!("{word} is too short: an id needs {MIN_NAMED} characters at least, or say latest");
        return Err(CommandError::input(format!("{why}; `castor sessions list --all` has all")));
    }
    let all = context.store.list(None)?;
    let like: Vec<_> = all.iter().filter(|it| is_named(it.id.as_str(), word)).collect();
    match like.as_slice() {
        [one] => Ok(one.id.clone()),
        [] => Err(CommandError::input(format!("session {word} was not found; `castor sessions list --all` has all"))),
        several => {
            let short = ShortIds::new(all.iter().map(|it| it.id.as_str()));
            let candidate = |it: &&SessionSummary| SessionCandidate {
                short: short.short(it.id.as_str()).to_owned(),
                when: time::ago(it.updated_ms, context.now.unix_ms, &context.look.zone),
                title: it.title.clone(),
            };
            let candidates: Vec<SessionCandidate> = several.iter().map(candidate).collect();
            Err(CommandError::input(ambiguity(word, &candidates)))
        }
    }
}

/// Where an export goes: into a folder that is there, and over a file only if that is wanted.
fn target(cwd: &AbsPath, file: &PathBuf, force: bool) -> Result<AbsPath, CommandError> {
    let path = cwd.join(file);
    let folder = path.parent().unwrap_or_else(|| cwd.clone());
    match (disk::metadata(&folder), disk::metadata(&path)) {
        (Ok(it), _) if !it.is_dir => Err(CommandError::input(format!("{folder} is not a folder"))),
        (Err(it), _) => Err(CommandError::input(format!("{folder}: {it}"))),
        (_, Ok(it)) if it.is_dir => Err(CommandError::input(format!("{path} is a folder; name a file in it"))),
        (_, Ok(_)) if !force => Err(CommandError::input(format!("{path} is there already; --force replaces it"))),
        _ => Ok(path),
    }
}

fn export(
    context: &mut CommandContext<'_>,
    id: &str,
    format: Option<Format>,
    to: Option<&AbsPath>,
) -> Result<(), CommandError> {
    let id = find(context, id)?;
    let entries = context.store.read(&id)?;
    let agents = AgentLogs::read(context.store, &entries);
    let story = Story::new(&entries).ok_or(StoreError::NotFound { id })?;
    let exported = ExportedStory::new(&story, &agents);
    let named = to.and_then(|it| it.as_path().extension()).map(|it| it.to_string_lossy());
    let named = named.as_deref().filter(|_| format.is_none()).map(|it| match Format::from_str(it, true) {
        Ok(format) => Ok(format),
        Err(_) => Err(CommandError::input(format!(
            ".{it} is no format of an export; name one with --format md, html or json"
        ))),
    });
    let text = match format.or(named.transpose()?).unwrap_or(Format::Md) {
        Format::Md => export::markdown(exported, &context.look.zone),
        Format::Html => export::html(exported, &context.look.zone),
        Format::Json => export::json(&story, &entries, &agents),
    };
    match to {
        None => context.out.write_all(text.as_bytes())?,
        Some(path) => {
            disk::write_atomic(path, text.as_bytes()).map_err(|it| CommandError::new(format!("{path}: {it}")))?;
            writeln!(context.out, "Wrote {path}")?;
        }
    }
    Ok(())
}

fn import(context: &mut CommandContext<'_>, file: &PathBuf, dir: Option<&PathBuf>) -> Result<(), CommandError> {
    let file = context.cwd.join(file);
    let bytes = disk::read(&file).map_err(|it| CommandError::input(format!("{file}: {it}")))?;
    let cwd = folder(context.cwd, dir).map_err(CommandError::input)?;
    let models = ModelTable::built_in();
    let defaults = ImportDefaults { cwd: &cwd, model: models.default_model(context.now.day()) };
    let read =
        import::parse(&bytes, defaults).map_err(|it| CommandError::input(format!("{file} was not imported: {it}")))?;
    let id = &read.id;
    match context.store.import(&read)? {
        ImportOutcome::New => writeln!(context.out, "Imported session {id}")?,
        ImportOutcome::Exists => writeln!(context.out, "Session {id} was imported before; nothing was changed")?,
        ImportOutcome::Conflict => {
            let why = format!("session {id} is here already, with other content; delete it first to import it anew");
            return Err(CommandError::new(why));
        }
    }
    if read.n_bad > 0 {
        writeln!(context.out, "{} lines of the file could not be read and were passed over", read.n_bad)?;
    }
    if read.is_folder_guessed {
        writeln!(context.out, "The file does not name its folder; {cwd} was taken (see --cwd)")?;
    }
    Ok(())
}

fn repair(context: &mut CommandContext<'_>, id: &str) -> Result<(), CommandError> {
    let id = find(context, id)?;
    let done = context.store.repair(&id)?;
    let out = &mut *context.out;
    let Some(backup) = &done.backup else {
        return Ok(writeln!(out, "Session {id} is sound (lines: {}), nothing to repair", done.n_kept)?);
    };
    writeln!(out, "Repaired session {id}: lines kept: {}, damaged places: {}", done.n_kept, done.damage.n)?;
    for it in &done.damage.places {
        let why = terminal_text::clean(&it.why);
        match it.line {
            0 => writeln!(out, "  {why}")?,
            line => writeln!(out, "  line {line}, {} bytes: {why}", it.len)?,
        }
    }
    if done.n_unknown > 0 {
        writeln!(out, "  lines of a newer castor, kept as they are: {}", done.n_unknown)?;
    }
    if done.rebuilt {
        writeln!(out, "  the first line was lost and was made anew")?;
    }
    Ok(writeln!(out, "The log as it was: {backup}")?)
}

fn fork(context: &mut CommandContext<'_>, id: &str, at: Option<&str>) -> Result<(), CommandError> {
    let parent = find(context, id)?;
    let entries = context.store.read(&parent)?;
    let (session, until) = (new_id(context.now), at.map(MessageId::from));
    let fork = Fork { session: session.clone(), until, now_ms: context.now.unix_ms };
    let none = || match at {
        Some(at) => {
            CommandError::input(format!("session {parent} has no message {at}; its export as JSON has their ids"))
        }
        None => StoreError::NotFound { id: parent.clone() }.into(),
    };
    let log = fork.copy_log(&entries).ok_or_else(none)?;
    context.store.create_with(&session, &log)?;
    Ok(writeln!(context.out, "{session}")?)
}

pub(super) fn delete(context: &mut CommandContext<'_>, words: &[String], yes: bool) -> Result<(), CommandError> {
    let mut ids = words.iter().map(|it| find(context, it)).collect::<Result<Vec<_>, _>>()?;
    ids.dedup();
    if !yes {
        let what = match ids.as_slice() {
            [one] => format!("session {one}"),
            more => format!("{} sessions", more.len()),
        };
        let Some(ask) = &mut context.ask else {
            return Err(CommandError::input(format!("{what} would be removed for good; say --yes to do so")));
        };
        if !ask(&format!("Remove {what} for good?")) {
            return Err(CommandError::new("nothing was removed"));
        }
    }
    let mut failed = Vec::new();
    for id in ids {
        match context.store.delete(&id) {
            Ok(()) => {
                if let Err(it) = checkpoints::forget_session(context.store.home(), &id) {
                    failed.push(format!("the checkpoints of session {id} stay: {it}"));
                }
                writeln!(context.out, "Removed session {id}")?;
            }
            Err(it) => failed.push(it.to_string()),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(CommandError::new(failed.join("\ncastor: "))) }
}

#[cfg(test)]
mod tests;
