//! What the doctor found: facts first, then what is wrong and what to do about it. Never a key.

use std::{fmt::Write, path::Path, sync::Arc};

use serde_json::{Value, json};

use super::{MAX_ERRORS, MAX_SESSIONS, editors, probe::Step};
use crate::{
    app::{
        access::{self, AccessKind, Given},
        cli::auth,
        options::Options,
        providers, sessions,
        settings::{KEYS, Settings, Sources, check, explain},
    },
    base::{event::EventKind, ids::SessionId, log::Fact, mcp::McpLink, path::AbsPath, text, trust::Trust},
    wire::acp::session::iso_time,
    world::{
        disk,
        http::shown_host,
        secrets::Env,
        store::Store,
        workspace::{self, ground::Ground},
    },
};

pub struct Report {
    program: String,
    steps: Vec<Step>,
    settings: Vec<String>,
    values: Vec<String>,
    warnings: Vec<String>,
    keys: Value,
    home: Option<(AbsPath, Option<u32>)>,
    servers: Vec<(String, String)>,
    cwd: AbsPath,
    trust: String,
    past: Past,
    /// What is broken, each with what to do.
    pub todo: Vec<String>,
}

/// What the logs of sessions say.
#[derive(Default)]
struct Past {
    errors: Vec<Failed>,
    /// Where the newest session's last request went, and why.
    request: Option<String>,
}

/// The last error of a session.
struct Failed {
    session: String,
    at_ms: u64,
    message: String,
}

pub fn gather(env: &Env, cwd: &AbsPath, program: &Path, steps: Vec<Step>) -> Report {
    let (ground, merged) = sessions::look(&Options::default(), env, cwd);
    let layers = ground.layers();
    let sources = Sources { layers: &layers, env: &ground.env, flags: &[] };
    let warnings: Vec<_> = ground.warnings.iter().cloned().chain(check(sources)).collect();
    let home = workspace::castor_home(env);
    let past = home.as_ref().map(|it| past(&Store::new(it.clone()))).unwrap_or_default();
    let mode = |it: &AbsPath| disk::permissions(it).ok();
    let keys = auth::sources(env, cwd).unwrap_or_else(|it| json!({ "error": it }));
    let mut report = Report {
        program: program.display().to_string(),
        steps,
        settings: layers.layers.iter().map(|it| format!("{} ({})", it.file, it.scope.as_str())).collect(),
        values: values(sources),
        warnings: warnings.iter().map(ToString::to_string).collect(),
        keys,
        home: home.map(|it| (it.clone(), mode(&it))),
        servers: merged.mcp.servers.iter().map(|it| (it.name.clone(), shown_link(&it.link))).collect(),
        cwd: cwd.clone(),
        trust: trust_words(&ground),
        past,
        todo: Vec::new(),
    };
    report.todo = report.problems(missing(&ground.env, &merged));
    report
}

/// What keeps sessions from reaching their model.
fn missing(env: &Env, settings: &Settings) -> Option<String> {
    if let Some(model) = &settings.model_name
        && let Some(why) = providers::unknown(settings, model)
    {
        return Some(why);
    }
    match settings.model_name.as_deref().and_then(|it| providers::of(settings, it)) {
        Some(it) => providers::generator(it, env, Arc::default()).err(),
        None => match access::model_access(env, settings, &Given::default()) {
            Ok(it) if it.kind == AccessKind::None => Some(access::missing(env, settings, &Given::default())),
            Ok(_) => None,
            Err(why) => Some(why.to_string()),
        },
    }
}

/// Every setting that somebody set, with its value and who won. Servers have a section of their own, without their
/// arguments, which may hold anything.
fn values(sources: Sources<'_>) -> Vec<String> {
    let mut groups: Vec<&str> = KEYS.iter().filter_map(|it| it.path.split('.').next()).collect();
    groups.sort_unstable();
    groups.dedup();
    let text: String = groups.into_iter().map(|it| explain(it, sources).0).collect();
    let shown = KEYS.iter().filter(|it| it.path != "mcpServers").map(|it| format!("{} = ", it.path));
    let shown: Vec<String> = shown.collect();
    let is_value = |it: &&str| shown.iter().any(|start| it.starts_with(start));
    text.lines().filter(is_value).map(str::to_owned).collect()
}

/// No arguments, no path: both may hold keys.
fn shown_link(link: &McpLink) -> String {
    match link {
        McpLink::Stdio { command, .. } => command.clone(),
        McpLink::Web { url, .. } => url.parse().map_or_else(|_| "no URL".to_owned(), |it| shown_host(&it)),
    }
}

/// Files of a trusted folder may have changed since: then they do not count, and that is what the user wonders about.
fn trust_words(ground: &Ground) -> String {
    let files: Vec<&str> = ground.project.standing().filter(|(_, counts)| !counts).map(|(name, _)| name).collect();
    let unused = if files.is_empty() { String::new() } else { format!(" (not used: {})", files.join(", ")) };
    match &ground.trust {
        Trust::Trusted { why, .. } => format!("trusted: {why}{unused}"),
        Trust::Untrusted(why) => format!("not trusted: {why}{unused}"),
        Trust::Unknown => format!("not trusted: nobody has said anything about it{unused}"),
    }
}

/// From the logs of the newest sessions: they have what was shown, so nothing needs to be kept apart.
fn last_errors(store: &Store) -> Vec<Failed> {
    let last = |id: &SessionId| {
        let entries = store.read(id).ok()?;
        entries.iter().rev().find_map(|it| match &it.fact {
            Fact::Event { event } => match &event.kind {
                EventKind::Error { message, .. } => {
                    Some(Failed { session: id.to_string(), at_ms: it.at, message: text::first_line(message, 300) })
                }
                _ => None,
            },
            _ => None,
        })
    };
    store.list(None).iter().take(MAX_SESSIONS).filter_map(|it| last(&it.id)).take(MAX_ERRORS).collect()
}

fn past(store: &Store) -> Past {
    Past { errors: last_errors(store), request: last_request(store) }
}

fn last_request(store: &Store) -> Option<String> {
    let entries = store.read(&store.list(None).first()?.id).ok()?;
    entries.iter().rev().find_map(|it| match &it.fact {
        Fact::Attempt { model, attempt, why } => Some(format!("{model}, attempt {attempt}: {why}")),
        _ => None,
    })
}

impl Report {
    fn problems(&self, missing: Option<String>) -> Vec<String> {
        let mut res: Vec<String> =
            self.steps.iter().filter_map(|it| Some(format!("{}: {}", it.name, it.problem.as_ref()?))).collect();
        match (&self.home, missing) {
            (None, _) => res.push("There is no home: set CASTOR_HOME or HOME to an absolute path.".to_owned()),
            (Some((home, Some(mode))), _) if mode & 0o022 != 0 => {
                res.push(format!("Others can write to castor's home; run: chmod 700 '{home}'"));
            }
            (_, Some(why)) => res.push(text::sentence(&why)),
            _ => (),
        }
        res
    }

    pub fn to_json(&self) -> Value {
        let step = |it: &Step| json!({ "name": it.name, "ms": it.took.as_millis() as u64, "problem": it.problem });
        let failed = |it: &Failed| json!({ "session": it.session, "at": iso_time(it.at_ms), "message": it.message });
        let home =
            self.home.as_ref().map(|(path, mode)| json!({ "path": path, "mode": mode.map(|it| format!("{it:o}")) }));
        let servers = self.servers.iter().map(|(name, link)| json!({ "name": name, "where": link }));
        let snippets = editors::snippets(&self.program)
            .map(|(name, place, text)| json!({ "editor": name, "file": place, "text": text }));
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "platform": { "os": std::env::consts::OS, "arch": std::env::consts::ARCH },
            "program": self.program,
            "ok": self.todo.is_empty(),
            "todo": self.todo,
            "handshake": self.steps.iter().map(step).collect::<Vec<_>>(),
            "settings": { "files": self.settings, "values": self.values, "warnings": self.warnings },
            "keys": self.keys,
            "home": home,
            "mcpServers": servers.collect::<Vec<_>>(),
            "folder": { "path": self.cwd, "trust": self.trust },
            "lastRequest": self.past.request,
            "errors": self.past.errors.iter().map(failed).collect::<Vec<_>>(),
            "editors": snippets.collect::<Vec<_>>(),
        })
    }

    pub fn to_text(&self) -> String {
        let mut out =
            format!("castor {} on {} {}\n", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
        _ = writeln!(out, "  {}", self.program);
        let steps = self.steps.iter().map(|it| match &it.problem {
            None => format!("{:<16}{} ms", it.name, it.took.as_millis()),
            Some(why) => format!("{:<16}FAILED: {why}", it.name),
        });
        section(&mut out, "Handshake with itself, on the demo model", steps);
        section(&mut out, "Settings files", self.settings.iter().cloned());
        section(&mut out, "Settings", self.values.iter().cloned());
        section(&mut out, "Warnings", self.warnings.iter().cloned());
        section(&mut out, "Keys", key_lines(&self.keys));
        let home = self.home.iter().map(|(path, mode)| match mode {
            Some(mode) => format!("{path} (mode {mode:o})"),
            None => format!("{path} (made with the first session)"),
        });
        section(&mut out, "Home", home);
        section(
            &mut out,
            "MCP servers of the settings",
            self.servers.iter().map(|(name, link)| format!("{name}: {link}")),
        );
        section(&mut out, "This folder", [self.cwd.to_string(), self.trust.clone()].into_iter());
        let errors = self.past.errors.iter().map(|it| format!("{} {}: {}", iso_time(it.at_ms), it.session, it.message));
        section(&mut out, "Last errors of sessions", errors);
        section(&mut out, "Last request of the newest session", self.past.request.iter().cloned());
        for (name, place, text) in editors::snippets(&self.program) {
            section(&mut out, &format!("{name}: {place}"), text.lines().map(str::to_owned));
        }
        match self.todo.first() {
            None => out.push_str("\nAll is well.\n"),
            Some(first) => _ = writeln!(out, "\nTo do: {first}"),
        }
        out
    }
}

fn section(out: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    _ = writeln!(out, "\n{title}:");
    let start = out.len();
    for it in lines {
        // What goes on for more lines belongs to its own one.
        _ = writeln!(out, "  {}", it.replace('\n', "\n    "));
    }
    if out.len() == start {
        out.push_str("  none\n");
    }
}

fn key_lines(keys: &Value) -> impl Iterator<Item = String> {
    let methods = keys.get("methods").and_then(Value::as_array).into_iter().flatten();
    let field = |it: &Value, name: &str| it.get(name).and_then(Value::as_str).unwrap_or("nowhere").to_owned();
    let error = keys.get("error").and_then(Value::as_str).map(str::to_owned);
    methods
        .map(move |it| format!("{:<16}{}: {}", field(it, "id"), field(it, "source"), field(it, "place")))
        .chain(error)
}
