//! `castor hooks`: lists a folder's hooks and migrates those of Claude Code and Cursor.

mod cursor;
mod migrate;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::{Args, Subcommand};
use serde_json::Value;

use super::{exits::EXIT_INPUT, terminal_text::escape_line};
use castor_agent::session::hooks;
use castor_base::{hook::HookSource, path::AbsPath, text, trust::TrustedFileKind};
use castor_engine::hooks::Switches;
use castor_hands::{disk, secrets::Env};
use castor_tools::workspace::{folder_config, jsonc};

/// Where Claude Code and Cursor have a project's hooks.
const THEIRS: [&str; 3] = [".claude/settings.json", ".claude/settings.local.json", ".cursor/hooks.json"];

/// Looks at hooks.
#[derive(Args, Clone, Debug)]
pub struct HooksArgs {
    #[command(subcommand)]
    pub verb: HooksVerb,
}

#[derive(Subcommand, Clone, Debug)]
pub enum HooksVerb {
    /// Lists the hooks of a session in this folder, in the order in which they run
    List {
        /// The folder of the session [default: the current one]
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
    },
    /// Prints the hooks of Claude Code and Cursor as castor's, and tells what cannot be carried over
    Migrate {
        /// Their file [default: .claude/settings.json, .claude/settings.local.json and .cursor/hooks.json here]
        file: Option<PathBuf>,
    },
}

/// Returns the exit code.
pub fn run(args: &HooksArgs, env: &Env, here: &AbsPath, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    match &args.verb {
        HooksVerb::List { cwd } => list(env, &cwd.as_ref().map_or_else(|| here.clone(), |it| here.join(it)), out),
        HooksVerb::Migrate { file } => migrate(file.as_ref(), here, out, err),
    }
}

fn list(env: &Env, folder: &AbsPath, out: &mut dyn Write) -> io::Result<u8> {
    let ground = folder_config::load(env, folder);
    let found = hooks::load_hooks(&ground);
    for it in found.all() {
        let standing = found.check_enabled(it.key(), &Switches::new()).err().unwrap_or("on");
        let whose = match it.source {
            HookSource::Project => "workspace",
            HookSource::Extension => "extension",
            HookSource::User | HookSource::Client => "user",
        };
        let matcher = it.matcher.as_deref().filter(|it| !it.is_empty()).unwrap_or("*");
        let (matcher, name) = (escape_line(matcher), escape_line(&text::first_line(it.key(), 200)));
        writeln!(out, "{:<20} {matcher:<20} {whose:<10} {standing:<4} {name}", it.event.as_str())?;
    }
    if found.is_empty() {
        writeln!(out, "No hooks.")?;
    }
    if !ground.trust.is_trusted() {
        writeln!(out, "\n{folder} is not trusted: its own hooks do not run.")?;
    }
    for it in ground.project.changes(TrustedFileKind::Settings) {
        writeln!(out, "\n{}; `castor trust` trusts its current content.", escape_line(&it))?;
    }
    for it in &ground.warnings {
        writeln!(out, "{it}")?;
    }
    Ok(0)
}

fn migrate(file: Option<&PathBuf>, here: &AbsPath, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let files: Vec<AbsPath> = match file {
        Some(it) => vec![here.join(it)],
        None => THEIRS.iter().map(|it| here.join(it)).filter(|it| disk::metadata(it).is_ok()).collect(),
    };
    if files.is_empty() {
        writeln!(err, "castor: there is neither {} in {here}", THEIRS.join(" nor "))?;
        return Ok(EXIT_INPUT);
    }
    let mut found = migrate::Migration::default();
    for file in files {
        let read = disk::read(&file).map_err(|it| it.to_string());
        let settings: Result<Value, String> = read.and_then(|it| jsonc::parse(&it).map_err(|it| it.message));
        match settings {
            Ok(it) if cursor::is_cursors(&it) => found.add_cursor(&it),
            Ok(it) => found.add_settings(&it),
            Err(why) => {
                writeln!(err, "castor: {file}: {why}")?;
                return Ok(EXIT_INPUT);
            }
        }
    }
    let (settings, notes) = found.into_parts();
    writeln!(out, "{}", serde_json::to_string_pretty(&settings).unwrap_or_default())?;
    for it in notes {
        writeln!(err, "- {}", escape_line(&it))?;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::run;
    use crate::cli::testing::{Ground, parse};

    #[test]
    fn lists_and_migrates() {
        let ground = Ground::new();
        let say = |line: &[&str], trust: &str| {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let code = run(&parse(line), &ground.env(trust), &ground.root.join("w"), &mut out, &mut err).unwrap();
            let text = [String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap()].concat();
            (text.replace(&ground.root.to_string(), "$ROOT"), code)
        };
        ground.write("w/a", "");
        assert_eq!(say(&["list"], "true"), ("No hooks.\n".to_owned(), 0));
        let (text, code) = say(&["migrate"], "true");
        assert!(text.contains("there is neither .claude/settings.json") && code == 42, "{text}");
        ground.write("w/.claude/settings.json", "{ // mine\n \"hooks\": {}}");
        assert_eq!(say(&["migrate"], "true"), ("{\n  \"hooks\": {}\n}\n".to_owned(), 0));
        ground.write("w/.claude/settings.local.json", "{");
        assert_eq!(say(&["migrate"], "true").1, 42);

        let hooks = |command: &str| {
            let hook = serde_json::json!([{"matcher": "x", "hooks": [{"type": "command", "command": command}]}]);
            serde_json::json!({"hooks": {"BeforeTool": hook}, "hooksConfig": {"disabled": ["mine"]}}).to_string()
        };
        ground.write("h/.castor/settings.json", &hooks("mine"));
        ground.write("w/.castor/settings.json", &hooks("./a"));
        let user = "BeforeTool           x                    user       off by hooksConfig.disabled mine\n";
        let own = "BeforeTool           x                    workspace  on   ./a\n";
        assert_eq!(say(&["list"], "true").0, format!("{own}{user}"));
        assert_eq!(say(&["list"], "false").0, format!("{user}\n$ROOT/w is not trusted: its own hooks do not run.\n"));
        // Trusted as it is; then the script is another one.
        let list = format!("{{\"{}\": \"TRUST_FOLDER\"}}", ground.root.join("w"));
        ground.write("h/.castor/trustedFolders.json", &list);
        assert_eq!(say(&["list"], "").0, format!("{own}{user}"));
        ground.write("w/a", "changed");
        let why =
            "it starts a, which is changed since you trusted the folder; `castor trust` trusts its current content.";
        let off = format!("{user}\n.castor/settings.json is not used: {why}\n");
        assert_eq!(say(&["list"], "").0, off);
    }
}
