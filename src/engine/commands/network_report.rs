//! The report of `/network`: hosts that commands of the session reached, what they were refused, and what is open.

use std::collections::BTreeMap;

use crate::{record::Step, turn::Spec};

const NOTHING: &str = "No command of this session reached a host or was refused anything.";
const HOW: &str = "`security.network.allow` and `security.network.deny` in your settings open and close hosts for all \
                   sessions; `/permissions` revokes what you allowed.";

pub(super) fn network(step: &mut Step<'_>, spec: &Spec, _: &str) -> String {
    let known = step.record.network_use();
    let mut res = String::new();
    for (title, all) in
        [("Reached", &known.reached), ("Refused", &known.refused), ("Refused by the sandbox", &known.withheld)]
    {
        res += &in_lines(title, all);
    }
    if res.is_empty() {
        res = format!("{NOTHING}\n\n");
    }
    let grants = step.record.active_grants(&spec.toolbox.folder_grants);
    let open: Vec<String> =
        grants.iter().filter_map(|it| it.reach_in_words().or_else(|| it.secrets_in_words())).collect();
    if !open.is_empty() {
        res += &format!("You allowed commands: {}.\n\n", open.join(", "));
    }
    res + HOW
}

fn in_lines(title: &str, all: &BTreeMap<String, u32>) -> String {
    let line = |(what, n): (&String, &u32)| match n {
        1 => format!("- {what}\n"),
        n => format!("- {what}, by {n} commands\n"),
    };
    match all.is_empty() {
        true => String::new(),
        false => format!("{title}:\n{}\n", all.iter().map(line).collect::<String>()),
    }
}
