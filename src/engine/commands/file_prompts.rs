//! The slash commands `/commands`, `/skills` and `/extensions`: list what files bring, read them again, switch skills for
//! the session.

use super::definitions_reading::{self, changes};
use crate::{
    record::Step,
    turn::{agents::session_agent::switched_prompts, flow::Flow, spec::TurnContext},
};
use castor_base::{
    extension::ExtensionSummary,
    file_prompt::{FileCommand, FolderPrompts, Skill},
    log::Fact,
    text,
};

const COMMANDS_USAGE: &str = "`/commands` lists the commands of files, `/commands reload` reads the files again.";
const SKILLS_USAGE: &str = "`/skills` lists the skills, `/skills enable NAME` and `/skills disable NAME` switch one, \
                            `/skills reload` reads their files again.";

const EXTENSIONS_USAGE: &str = "`/extensions` lists the extensions, `/extensions reload` looks at them again. In a \
                                terminal `castor extensions` installs, switches and updates them.";

/// `/commands`.
pub(super) fn commands(cx: &mut TurnContext<'_, '_>, args: &str) -> Flow {
    match args {
        "" | "list" => Flow::report(list_commands(&cx.spec.choices.prompts)),
        "reload" | "refresh" => definitions_reading::read(cx.step, |cx, _, now| {
            let before = commands_by_name(&cx.spec.choices.prompts);
            format!(
                "{}{}",
                changes(("command of a file", "commands of files"), &before, &commands_by_name(&now)),
                notes(&now)
            )
        }),
        _ => Flow::report(COMMANDS_USAGE),
    }
}

fn commands_by_name(prompts: &FolderPrompts) -> Vec<(&str, &FileCommand)> {
    prompts.commands.iter().map(|it| (it.name.as_str(), it)).collect()
}

fn skills_by_name(prompts: &FolderPrompts) -> Vec<(&str, &Skill)> {
    prompts.skills.iter().map(|it| (it.name.as_str(), it)).collect()
}

fn list_commands(prompts: &FolderPrompts) -> String {
    let line = |it: &FileCommand| {
        let hint = if it.hint.is_empty() { String::new() } else { format!(" {}", it.hint) };
        format!("- `/{}{hint}` ({}): {}\n", it.name, it.origin.scope().as_str(), it.description)
    };
    let lines: String = prompts.commands.iter().map(line).collect();
    let none = "No file brings a command. `castor commands --help` says where they lie.\n";
    format!("{}{}", if lines.is_empty() { none } else { &lines }, notes(prompts))
}

/// What is wrong, and what is not used.
fn notes(prompts: &FolderPrompts) -> String {
    let all = prompts.faults.iter().chain(prompts.notes.iter());
    all.map(|it| format!("\n{}\n", text::first_line(it, 500))).collect()
}

/// `/skills`.
pub(super) fn skills(cx: &mut TurnContext<'_, '_>, args: &str) -> Flow {
    let (verb, name) = args.split_once(char::is_whitespace).unwrap_or((args, ""));
    let name = name.trim();
    Flow::report(match (verb, name) {
        ("" | "list", "") => list_skills(&cx.spec.choices.prompts),
        ("reload" | "refresh", "") => {
            return definitions_reading::read(cx.step, |cx, _, now| {
                let now = switched_prompts(&now, cx.step.record);
                let before = skills_by_name(&cx.spec.choices.prompts);
                format!("{}{}", changes(("skill", "skills"), &before, &skills_by_name(&now)), notes(&now))
            });
        }
        ("enable" | "disable", name) if !name.is_empty() => match cx.spec.choices.prompts.skill(name) {
            Some(it) => switch(cx.step, it, verb == "enable"),
            None => format!("There is no skill `{}`; `/skills` lists them.", text::first_line(name, 100)),
        },
        _ => SKILLS_USAGE.to_owned(),
    })
}

/// `/extensions`.
pub(super) fn extensions(cx: &mut TurnContext<'_, '_>, args: &str) -> Flow {
    match args {
        "" | "list" => Flow::report(list_extensions(&cx.spec.choices.prompts)),
        "reload" | "refresh" => definitions_reading::read(cx.step, |cx, _, now| {
            let before = extensions_by_name(&cx.spec.choices.prompts);
            let changes = changes(("extension", "extensions"), &before, &extensions_by_name(&now));
            format!("{changes}{RELOADED}{}", notes(&now))
        }),
        _ => Flow::report(EXTENSIONS_USAGE),
    }
}

/// A session keeps what it began with.
const RELOADED: &str = "Their MCP servers, hooks, policies and context count in new sessions.\n";

fn extensions_by_name(prompts: &FolderPrompts) -> Vec<(&str, &ExtensionSummary)> {
    prompts.extensions.iter().map(|it| (it.name.as_str(), it)).collect()
}

fn list_extensions(prompts: &FolderPrompts) -> String {
    let line = |it: &ExtensionSummary| {
        let brings = if it.brings.is_empty() { String::new() } else { format!(": {}", it.brings) };
        format!("- `{}` {} ({}){brings}\n", it.name, it.version, text::first_line(&it.state, 300))
    };
    let lines: String = prompts.extensions.iter().map(line).collect();
    if lines.is_empty() {
        "No extension is installed. `castor extensions install` does it.\n".to_owned()
    } else {
        lines
    }
}

fn list_skills(prompts: &FolderPrompts) -> String {
    let line = |it: &Skill| {
        let state = if it.enabled { "on" } else { "off" };
        let about = text::first_line(&it.description, 200);
        format!("- `{}` ({}, {state}): {about}\n", it.name, it.origin.scope().as_str())
    };
    let lines: String = prompts.skills.iter().map(line).collect();
    let none = "There are no skills. `castor skills --help` says where they lie.\n";
    format!("{}{}", if lines.is_empty() { none } else { &lines }, notes(prompts))
}

fn switch(step: &mut Step<'_>, it: &Skill, enabled: bool) -> String {
    let what = if enabled { "on" } else { "off" };
    if it.enabled == enabled {
        return format!("It is {what} already.");
    }
    step.log(Fact::SkillSwitched { skill: it.name.clone(), enabled });
    format!("It is {what} in this session.")
}
