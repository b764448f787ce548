//! The slash command `/permissions`: lists what the user allowed, and takes it back.

use crate::{record::Step, step::Effect, turn::Spec};
use castor_base::{
    log::{Fact, Grant},
    text,
};

pub(super) fn permissions(step: &mut Step<'_>, spec: &Spec, args: &str) -> String {
    let kept = &spec.toolbox.folder_grants;
    let grants = step.record.active_grants(kept);
    let mut words = args.split_whitespace();
    let held = match &*spec.toolbox.sandbox.words {
        "" => String::new(),
        it => format!("\n\nSandbox of commands: {it}."),
    };
    let lasting: String =
        spec.toolbox.rules.describe_saved().map(|it| format!("- {}\n", text::first_line(&it, 200))).collect();
    let held = match lasting.trim_end() {
        "" => held,
        it => format!("\n\nPermanent permissions, which `castor permissions` removes:\n{it}{held}"),
    };
    match (words.next(), words.next()) {
        (None, _) if grants.is_empty() => format!("Nothing is allowed beyond the rules.{held}"),
        (None, _) => {
            let always = |it| match (kept.contains(it), step.record.is_saved(it)) {
                (true, _) => ", always in this folder",
                (_, true) => ", saved for future sessions",
                _ => "",
            };
            let line = |(n, it)| format!("{}. {}{}\n", n + 1, in_words(it), always(it));
            let lines: String = grants.iter().enumerate().map(line).collect();
            format!("Allowed for this session:\n{lines}\n`/permissions revoke NUMBER` takes one back.{held}")
        }
        (Some("revoke"), Some("all")) => {
            let n = grants.len();
            grants.into_iter().for_each(|grant| revoke(step, grant));
            format!("{n} revoked.")
        }
        (Some("revoke"), Some(number)) => {
            let at = number.parse::<usize>().ok().and_then(|it| it.checked_sub(1));
            match at.and_then(|it| grants.get(it)) {
                Some(grant) => {
                    revoke(step, grant.clone());
                    format!("Revoked: {}.", in_words(grant))
                }
                None => format!("There is no permission {number}; `/permissions` lists them."),
            }
        }
        _ => "`/permissions` lists them; `/permissions revoke NUMBER` or `revoke all` removes them.".to_owned(),
    }
}

/// Revokes a grant; its saved permission goes, too.
fn revoke(step: &mut Step<'_>, grant: Grant) {
    let is_of_session = matches!(grant, Grant::Edits | Grant::Network | Grant::Read { .. });
    if !is_of_session {
        step.start_effect(Effect::UpdateGrant { grant: grant.clone(), holds: false });
    }
    step.log(Fact::Revoked { grant });
}

fn in_words(grant: &Grant) -> String {
    match grant {
        Grant::Tool { tool } | Grant::Foreign { tool, .. } => format!("the tool `{tool}`"),
        Grant::Commands { prefixes } => format!("commands `{}`", prefixes.join("`, `")),
        Grant::Edits => "edits of files in the workspace".to_owned(),
        Grant::File { tool, path } => format!("`{tool}` of {path}"),
        Grant::Hosts { tool, hosts } => format!("`{tool}` of {}", hosts.join(", ")),
        Grant::Auto => "work without questions in this folder (mode auto)".to_owned(),
        Grant::Network => "network in the sandbox".to_owned(),
        Grant::NetworkFor { prefixes } => format!("network in the sandbox for `{}`", prefixes.join("`, `")),
        Grant::Reach { .. } => format!("{} in the sandbox", grant.reach_in_words().unwrap_or_default()),
        Grant::Secrets { .. } => format!("the sandbox lets {}", grant.secrets_in_words().unwrap_or_default()),
        Grant::Write { folder } => format!("writing below {} in the sandbox", text::path_in_words(&folder.to_string())),
        Grant::Read { folder } => format!("reading below {}", text::path_in_words(&folder.to_string())),
    }
}
