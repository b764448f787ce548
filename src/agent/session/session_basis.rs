//! Basis of a session: its folders, settings and trust when it was built.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;

use crate::settings::{Settings, Sources, set_values};
use castor_base::{agent::FolderAgents, file_prompt::FolderPrompts, text, trust::Trust};
use castor_hands::secrets::Env;
use castor_tools::workspace::{folder_config::FolderConfig, settings::Layers};
use castor_wire::acp::session::SessionFolders;

/// The most names of one kind that a notice has.
const MAX_NAMES: usize = 12;
/// Longest name, in characters.
const MAX_NAME: usize = 100;

/// Of a session that the user speaks to.
#[derive(Clone, Debug)]
pub struct SessionBasis {
    pub folders: SessionFolders,
    pub settings: Settings,
    layers: Arc<Layers>,
    env: Env,
    pub trust: Trust,
}

impl SessionBasis {
    pub fn new(folders: &SessionFolders, ground: &FolderConfig, settings: Settings) -> Self {
        let (layers, env) = (ground.shared_layers(), ground.env.clone());
        Self { folders: folders.clone(), settings, layers, env, trust: ground.trust.clone() }
    }

    /// Tells whether a session of now would be another one.
    pub fn differs(&self, now: &Self) -> bool {
        let is_trusted = |of: &Self| of.trust.is_trusted();
        (&self.settings, is_trusted(self)) != (&now.settings, is_trusted(now)) || self.values() != now.values()
    }

    /// The keys whose values are others.
    pub fn changed_keys(&self, now: &Self) -> Vec<&'static str> {
        let (before, now) = (self.values(), now.values());
        let all: BTreeSet<&str> = before.keys().chain(now.keys()).copied().collect();
        all.into_iter().filter(|it| before.get(it) != now.get(it)).collect()
    }

    /// Keys with their values, as they may be shown.
    fn values(&self) -> BTreeMap<&'static str, Value> {
        let values = set_values(Sources { layers: &self.layers, env: &self.env, flags: &[] });
        values.into_iter().map(|it| (it.key, it.value)).collect()
    }
}

/// What is new, changed or gone of agents, commands and skills, for people.
pub fn definition_changes(
    before: (&FolderAgents, &FolderPrompts),
    now: (&FolderAgents, &FolderPrompts),
) -> Vec<String> {
    let agents = |of: &FolderAgents| of.definitions.iter().map(|it| (it.descriptor.name.clone(), it.clone())).collect();
    let commands = |of: &FolderPrompts| of.commands.iter().map(|it| (format!("/{}", it.name), it.clone())).collect();
    let skills = |of: &FolderPrompts| of.skills.iter().map(|it| (it.name.clone(), it.clone())).collect();
    let rows = [
        names_of_changes("agents", agents(before.0), agents(now.0)),
        names_of_changes("commands", commands(before.1), commands(now.1)),
        names_of_changes("skills", skills(before.1), skills(now.1)),
    ];
    rows.into_iter().flatten().collect()
}

fn names_of_changes<T: PartialEq>(what: &str, before: Vec<(String, T)>, now: Vec<(String, T)>) -> Option<String> {
    let is_among = |all: &[(String, T)], name: &str| all.iter().any(|it| it.0 == name);
    let other = now.iter().filter(|it| !before.contains(it)).map(|it| match is_among(&before, &it.0) {
        true => it.0.clone(),
        false => format!("{} (new)", it.0),
    });
    let gone = before.iter().filter(|it| !is_among(&now, &it.0)).map(|it| format!("{} (gone)", it.0));
    let names: Vec<String> = other.chain(gone).collect();
    in_words(what, &names)
}

/// `settings: a, b and 3 more`; `None`: nothing of the kind.
pub fn in_words(what: &str, names: &[impl AsRef<str>]) -> Option<String> {
    let shown: Vec<String> = names.iter().take(MAX_NAMES).map(|it| text::first_line(it.as_ref(), MAX_NAME)).collect();
    let more = names.len() - shown.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!shown.is_empty()).then(|| format!("{what}: {}{more}", shown.join(", ")))
}
