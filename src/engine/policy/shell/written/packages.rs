//! Scripts of packages that a line writes and runs: `npm pkg set scripts.x='…' && npm run x`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Files;
use crate::engine::policy::shell::{Command, Script, base_name};

const PROGRAMS: &[&str] = &["bun", "npm", "pnpm", "yarn"];
/// These are run by their own names, and the last ones by others'.
const OWN: &[&str] = &["restart", "start", "stop", "test"];
const INSTALLS: &[&str] = &["add", "ci", "i", "install"];
const BY_INSTALL: &[&str] = &["install", "postinstall", "preinstall", "prepare"];

/// More of them are not listed.
const MAX: usize = 64;

/// Lists what those say that are run. A package that cannot be read is no package.
pub(super) fn list(script: &mut Script, files: &Files) {
    let run: BTreeSet<String> = script.commands.iter().filter(|it| is_one(it)).flat_map(run_by).collect();
    if run.is_empty() {
        return;
    }
    let packages = files.get("package.json").into_iter().flatten().rev().take(MAX).filter_map(|it| it.exact.as_deref());
    let packages: Vec<Value> = packages.filter_map(|it| serde_json::from_str(it).ok()).collect();
    let mut texts: BTreeSet<String> =
        packages.iter().flat_map(|it| run.iter().filter_map(|name| text_of(it, name))).collect();
    texts.extend(script.commands.iter().filter(|it| is_one(it)).flat_map(|it| set_by(it, &run)));
    for text in texts.into_iter().take(MAX) {
        if script.add(&text, 1).is_err() {
            script.commands.iter_mut().filter(|it| is_one(it)).for_each(|it| (it.opaque, it.unseen) = (true, true));
        }
    }
}

fn is_one(command: &Command) -> bool {
    command.name().is_some_and(|it| PROGRAMS.contains(&base_name(it)))
}

/// The names of the scripts that a command runs.
fn run_by(command: &Command) -> Vec<String> {
    let mut words = command.args().iter().map(|it| it.text.as_str()).filter(|it| !it.starts_with('-'));
    let first = words.next().unwrap_or_default();
    let name = match first {
        "run" | "run-script" => words.next().unwrap_or_default(),
        it if INSTALLS.contains(&it) => return BY_INSTALL.iter().map(|it| (*it).to_owned()).collect(),
        // `yarn x`
        it if OWN.contains(&it) || command.name() != Some("npm") => it,
        _ => return Vec::new(),
    };
    ["", "pre", "post"].iter().filter(|_| !name.is_empty()).map(|it| format!("{it}{name}")).collect()
}

fn text_of(package: &Value, name: &str) -> Option<String> {
    package.get("scripts")?.get(name)?.as_str().map(str::to_owned)
}

/// `npm pkg set scripts.x='rm x'`
fn set_by<'c>(command: &'c Command, run: &'c BTreeSet<String>) -> impl Iterator<Item = String> + 'c {
    let is_set = matches!(command.args(), [first, second, ..] if first.text == "pkg" && second.text == "set");
    let args = if is_set { command.args() } else { &[] };
    args.iter().filter_map(|it| {
        let (name, text) = it.literal()?.strip_prefix("scripts.")?.split_once('=')?;
        run.contains(name).then(|| text.to_owned())
    })
}
