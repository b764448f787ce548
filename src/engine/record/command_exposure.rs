//! Commands of a session: whether it was asked about one, whether one could read secrets, and what they reached.

use std::collections::BTreeMap;

use serde_json::Value;

use castor_base::{
    event::EventKind, guarded_names::SECRET_RULE, log::Mode, network::NetworkRecord, sandbox::Refusal,
    tool::RUN_SHELL_COMMAND,
};

/// Hosts and files beyond that are not listed.
const MAX_HOSTS: usize = 500;

/// What the session knows of its commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CommandExposure {
    /// The user was asked about one as the mode asks.
    pub asked: bool,
    /// One could read secrets of the workspace: it ran without the network.
    pub exposed: bool,
    pub network: NetworkUse,
}

/// What commands reached and were refused, with the number of commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkUse {
    pub reached: BTreeMap<String, u32>,
    pub refused: BTreeMap<String, u32>,
    /// What else the sandbox refused, in words.
    pub withheld: BTreeMap<String, u32>,
}

fn count(all: &mut BTreeMap<String, u32>, of_call: Option<&Value>) {
    for it in of_call.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if all.len() < MAX_HOSTS || all.contains_key(it) {
            *all.entry(it.to_owned()).or_default() += 1;
        }
    }
}

impl CommandExposure {
    pub fn ask(&mut self, rule: &str) {
        self.asked |= rule.ends_with(RUN_SHELL_COMMAND);
        self.exposed |= rule.starts_with(SECRET_RULE);
    }

    /// A command that ran may have read secrets, whoever asked for it. Those of yolo have the network, and see none.
    pub fn note(&mut self, event: &EventKind, mode: Mode) {
        let EventKind::ToolResponse { name, error, data, .. } = event else { return };
        if name != RUN_SHELL_COMMAND {
            return;
        }
        self.exposed |= error.is_none() && mode != Mode::Yolo;
        let of_door = |key: &str| data.get(NetworkRecord::KEY)?.get(key);
        count(&mut self.network.reached, of_door(NetworkRecord::REACHED));
        count(&mut self.network.refused, of_door(NetworkRecord::REFUSED));
        count(&mut self.network.withheld, data.get(Refusal::KEY));
    }
}
