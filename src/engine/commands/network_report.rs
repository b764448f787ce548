//! The report of `/network`: hosts that commands of the session reached and were refused, and what is open.

use std::collections::BTreeMap;

use crate::{
    base::log::Grant,
    engine::{record::Step, turn::Spec},
};

const NOTHING: &str = "No command of this session reached a host or was refused one.";
const HOW: &str = "`security.network.allow` and `security.network.deny` in your settings open and close hosts for all \
                   sessions; `/permissions` revokes what you allowed.";

pub(super) fn network(step: &mut Step<'_>, spec: &Spec, _: &str) -> String {
    let known = step.record.network_use();
    let mut res = String::new();
    for (title, hosts) in [("Reached", &known.reached), ("Refused", &known.refused)] {
        res += &in_lines(title, hosts);
    }
    if res.is_empty() {
        res = format!("{NOTHING}\n\n");
    }
    let grants = step.record.active_grants(&spec.toolbox.folder_grants);
    let open: Vec<String> = grants.iter().filter_map(Grant::reach_in_words).collect();
    if !open.is_empty() {
        res += &format!("You allowed commands: {}.\n\n", open.join(", "));
    }
    res + HOW
}

fn in_lines(title: &str, hosts: &BTreeMap<String, u32>) -> String {
    let line = |(host, n): (&String, &u32)| match n {
        1 => format!("- {host}\n"),
        n => format!("- {host}, by {n} commands\n"),
    };
    match hosts.is_empty() {
        true => String::new(),
        false => format!("{title}:\n{}\n", hosts.iter().map(line).collect::<String>()),
    }
}
