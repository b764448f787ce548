//! The report of `castor doctor` as text, in short or in full.

use std::fmt::Write;

use super::{
    editors,
    probe::{ProbeStep, SERVERS},
    report::{KeysReport, Report},
};
use crate::cli::{auth::LoginStatus, output::wrap_lines};
use castor_base::model::DEMO;

impl Report {
    /// The whole report. What is to be copied into the settings of editors is not wrapped.
    pub fn to_text(&self, width: usize) -> String {
        let mut out = wrap_lines(&self.facts(), width);
        for (name, place, text) in editors::snippets(&self.program) {
            section(&mut out, &format!("{name}: {place}"), text.lines().map(str::to_owned));
        }
        let mut end = "\n".to_owned();
        self.write_todo(&mut end);
        out + &wrap_lines(&end, width)
    }

    fn facts(&self) -> String {
        let mut out =
            format!("castor {} on {} {}\n", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
        _ = writeln!(out, "  {}", self.program);
        let steps = self.preparations.steps.iter().map(|it| match &it.problem {
            None => format!("{:<16}{} ms", it.name, it.took.as_millis()),
            Some(why) => format!("{:<16}FAILED: {why}", it.name),
        });
        section(&mut out, "Handshake with itself, on the demo model", steps);
        section(&mut out, "Settings files", self.settings.files.iter().cloned());
        section(&mut out, "Settings", self.settings.values.iter().map(ToString::to_string));
        section(&mut out, "Warnings", self.settings.warnings.iter().cloned());
        section(&mut out, "Settings and files without effect", self.settings.without_effect.iter().cloned());
        section(&mut out, "Keys", key_lines(&self.keys).into_iter());
        section(&mut out, "Model", [self.model_in_words()].into_iter().chain(self.model.known.lines()));
        section(
            &mut out,
            "Sandbox of commands",
            std::iter::once(self.sandbox.in_words())
                .chain(self.sandbox.unseen.clone())
                .chain(
                    [self.sandbox.guesses, self.sandbox.no_layers, Some(self.sandbox.limits)]
                        .into_iter()
                        .flatten()
                        .map(str::to_owned),
                )
                .chain(self.sandbox.advice.iter().cloned()),
        );
        section(&mut out, "Left by castors that were killed, and removed", self.preparations.left.iter().cloned());
        section(&mut out, "Interrupted restores of files", self.preparations.recovered.iter().cloned());
        let home = self.home.iter().map(|(path, mode)| match mode {
            Some(mode) => format!("{path} (mode {mode:o})"),
            None => format!("{path} (made with the first session)"),
        });
        section(&mut out, "Home", home);
        section(
            &mut out,
            "MCP servers of the settings",
            self.servers.iter().map(|it| format!("{}: {}", it.name, it.link)),
        );
        section(&mut out, "This folder", [self.folder.path.to_string(), self.folder.trust.clone()].into_iter());
        let errors = self.history.errors.iter().map(|it| format!("{} {}: {}", it.at, it.session, it.message));
        section(&mut out, "Last errors of sessions", errors);
        section(&mut out, "Last request of the newest session", self.history.request.iter().cloned());
        out
    }

    /// The short report: whether it works.
    pub fn to_summary(&self) -> String {
        let mut out = format!("castor {}, {}\n", env!("CARGO_PKG_VERSION"), self.program);
        let (servers, steps): (Vec<&ProbeStep>, Vec<&ProbeStep>) =
            self.preparations.steps.iter().partition(|it| it.name == SERVERS);
        let took = |steps: &[&ProbeStep]| steps.iter().map(|it| it.took.as_millis()).sum::<u128>();
        let is_sound = |steps: &[&ProbeStep]| steps.iter().all(|it| it.problem.is_none());
        let mut row = |name: &str, text: &str| _ = writeln!(out, "  {name:<10}{text}");
        let failed = || "FAILED".to_owned();
        let ms = took(&steps);
        row("handshake", &if is_sound(&steps) { format!("{ms} ms, on the demo model") } else { failed() });
        if !servers.is_empty() {
            let ms = took(&servers);
            row("servers", &if is_sound(&servers) { format!("{ms} ms until all were ready") } else { failed() });
        }
        row("model", &self.model_in_words());
        self.model.known.lines().iter().for_each(|it| row("models", it));
        row("sandbox", &self.sandbox.in_words());
        row("folder", &format!("{}, {}", self.folder.path, self.folder.trust));
        if !self.preparations.left.is_empty() {
            row("removed", &format!("leftovers of a castor that was killed: {}", self.preparations.left.join(", ")));
        }
        self.preparations.recovered.iter().for_each(|it| row("recovered", it));
        // What is to be done says it again.
        let is_said = |it: &&String| self.todo.iter().any(|todo| todo.starts_with(it.as_str()));
        for it in self.settings.warnings.iter().filter(|it| !is_said(it)) {
            row("warning", it);
        }
        self.settings.without_effect.iter().for_each(|it| row("no effect", it));
        out.push_str("`castor doctor --all` shows more, and settings for editors.\n");
        self.write_todo(&mut out);
        out
    }

    fn write_todo(&self, out: &mut String) {
        if self.todo.is_empty() {
            out.push_str("All is well.\n");
        }
        for it in &self.todo {
            _ = writeln!(out, "To do: {it}");
        }
    }

    /// Its name, where its key is, and whether it is there.
    fn model_in_words(&self) -> String {
        let place = match &self.keys {
            KeysReport::Sources(it) => it
                .methods
                .iter()
                .find(|method| it.active.as_ref() == Some(&method.id))
                .and_then(|it| it.place.as_deref()),
            KeysReport::Error { .. } => None,
        };
        match (self.model.name.as_deref(), place) {
            (Some(DEMO), _) => format!("{DEMO}, which needs no key"),
            (name, Some(place)) => {
                format!("{} ({place}) {}", name.unwrap_or("chosen by castor"), self.model.reach.in_words())
            }
            (name, None) => format!("{}: no API key", name.unwrap_or("none")),
        }
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

fn key_lines(keys: &KeysReport) -> Vec<String> {
    let line = |it: &LoginStatus| format!("{:<16}{}: {}", it.id, it.source, it.place.as_deref().unwrap_or("nowhere"));
    match keys {
        KeysReport::Sources(it) => it.methods.iter().map(line).collect(),
        KeysReport::Error { error } => vec![error.clone()],
    }
}
