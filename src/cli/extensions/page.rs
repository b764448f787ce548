//! The page of an extension: all that it brings, as the readers of a session find it.

use std::io::{self, Write};

use crate::cli::terminal_text::escape_line;
use castor_agent::session::agents::tool_name;
use castor_base::{agent::AgentDefinition, text};
use castor_engine::{
    commands::is_own_command,
    policy::{Rule, RuleSet, Tier},
};
use castor_tools::workspace::{
    extensions::{Extension, Extensions, contents::Contents, record::ExtensionKind},
    folder_config::FolderConfig,
    prompts::SKILL_FILE,
    settings::{Scope, variables_in},
};

/// More files of a skill are only counted.
const MAX_FILES: usize = 50;

/// What it brings, and what of it does not count.
pub struct ExtensionPage {
    lines: Vec<String>,
    pub faults: Vec<String>,
}

/// Reads all that it brings.
pub fn of(it: &Extension) -> ExtensionPage {
    let mut page = ExtensionPage { lines: Vec::new(), faults: Vec::new() };
    let Some(contents) = it.contents() else { return page };
    let ground = FolderConfig::of_extensions(&it.folder, Extensions::of(it.clone()));
    page.programs(&ground);
    page.context(it, contents);
    page.prompts(&ground);
    page.agents(&ground);
    page.policies(it, contents);
    page.settings(contents);
    page.files(contents);
    page.faults.extend(contents.manifest.notes.iter().cloned());
    page
}

impl ExtensionPage {
    fn programs(&mut self, ground: &FolderConfig) {
        let layers = ground.layers();
        self.faults.extend(layers.warnings.iter().map(ToString::to_string));
        for layer in layers.layers.iter().filter(|it| it.scope == Scope::Extension) {
            self.lines.extend(Extensions::describe(layer));
            let excluded = layer.value.pointer("/tools/exclude").and_then(|it| it.as_array()).into_iter().flatten();
            let excluded = excluded.filter_map(|it| it.as_str());
            self.lines.extend(excluded.map(|it| format!("takes away the tool: {it}")));
        }
    }

    fn context(&mut self, it: &Extension, contents: &Contents) {
        for (file, text) in contents.context(&it.folder) {
            self.lines.push(format!(
                "context: {} ({} bytes, in each session)",
                file.relative_to(&it.folder),
                text.len()
            ));
        }
        let missing = contents
            .manifest
            .context
            .iter()
            .filter(|name| *name != "GEMINI.md" && !contents.config.contains_key(&it.folder.join(name)));
        self.faults.extend(missing.map(|name| format!("contextFileName {name}: there is no such file")));
    }

    fn prompts(&mut self, ground: &FolderConfig) {
        let found = ground.prompts(&is_own_command);
        self.faults.extend(found.warnings().map(ToString::to_string));
        let commands = found.commands.iter();
        self.lines.extend(commands.map(|it| format!("command: /{} {}", it.name, it.description)));
        let skills = found.skills.iter();
        self.lines.extend(skills.map(|it| format!("skill: {}: {}", it.name, text::first_line(&it.description, 100))));
    }

    fn agents(&mut self, ground: &FolderConfig) {
        let found = ground.agents(&tool_name);
        self.faults.extend(found.warnings.iter().map(ToString::to_string));
        let own = found.definitions.iter().filter(|it| it.origin.file().is_some());
        self.lines.extend(own.flat_map(|it| agent_lines(it, ground)));
    }

    fn policies(&mut self, it: &Extension, contents: &Contents) {
        for (file, bytes) in
            contents.config.iter().filter(|(file, _)| file.relative_to(&it.folder).starts_with("policies/"))
        {
            let name = file.relative_to(&it.folder);
            let Ok(text) = str::from_utf8(bytes) else {
                self.faults.push(format!("{name}: is not UTF-8"));
                continue;
            };
            let (found, warnings) = RuleSet::load(text, Tier::Extension, &name);
            self.faults.extend(warnings);
            let rule = |it: &Rule| {
                format!("rule ({}): {}", format!("{:?}", it.decision).to_lowercase(), it.name(&it.tools.join(", ")))
            };
            self.lines.extend(found.rules.iter().map(rule));
        }
    }

    /// Of a skill, which the model reads and may run.
    fn files(&mut self, contents: &Contents) {
        let names = contents.hashes.keys().filter(|it| *it != SKILL_FILE);
        let names: Vec<&String> = names.filter(|_| contents.kind == ExtensionKind::Skill).collect();
        self.lines.extend(names.iter().take(MAX_FILES).map(|it| format!("file: {it}")));
        if names.len() > MAX_FILES {
            self.lines.push(format!("and {} more files", names.len() - MAX_FILES));
        }
    }

    fn settings(&mut self, contents: &Contents) {
        for it in &contents.manifest.settings {
            let secret = if it.is_sensitive { ", a secret" } else { "" };
            self.lines.push(format!("asks for {} ({}{secret}): {}", it.name, it.variable, it.description));
        }
        let own = |name: &String| contents.manifest.settings.iter().any(|it| it.variable == *name);
        let places = ["extensionPath", "workspacePath", "pathSeparator"];
        let named = variables_in(&serde_json::Value::Object(contents.manifest.servers.clone()));
        let named = named.iter().filter(|it| !own(it) && !places.contains(&it.as_str()));
        self.lines.extend(named.map(|it| format!("reads your variable: {it}")));
    }
}

fn agent_lines(it: &AgentDefinition, ground: &FolderConfig) -> Vec<String> {
    let about = text::first_line(&it.descriptor.description, 100);
    let mut res = vec![format!("agent: {}: {about}", it.descriptor.name)];
    let programs = it.origin.file().map(|it| ground.extensions.describe_agent(it)).unwrap_or_default();
    res.extend(programs.into_iter().map(|it| format!("  {it}")));
    res
}

/// # Errors
/// The output's.
pub fn write(page: &ExtensionPage, out: &mut dyn Write) -> io::Result<()> {
    if page.lines.is_empty() {
        writeln!(out, "It brings nothing.")?;
    } else {
        writeln!(out, "It brings:")?;
    }
    page.lines.iter().try_for_each(|it| writeln!(out, "  {}", escape_line(it)))?;
    if !page.faults.is_empty() {
        writeln!(out, "Not used of it:")?;
    }
    page.faults.iter().try_for_each(|it| writeln!(out, "  {}", escape_line(it)))
}
