//! The model catalog: cached model lists of providers. Only `castor models` asks the providers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::settings::{Provider, Settings, options::Options};
use castor_base::path::AbsPath;
use castor_engine::routing::model_limits::ContextWindows;
use castor_hands::disk;
use castor_models::providers::listing::ListedModel;

/// The name under which Gemini's own models are kept.
pub const GEMINI: &str = "gemini";
/// Larger files are not ours.
const MAX_BYTES: u64 = 16 << 20;

/// By provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Catalog(BTreeMap<String, Vec<Row>>);

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct Row {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    window: Option<u64>,
}

impl From<ListedModel> for Row {
    fn from(ListedModel { id, name, window }: ListedModel) -> Self {
        Self { id, name, window }
    }
}

impl Catalog {
    /// As it was kept. A file that is not there or cannot be read is none: asking again makes it new.
    pub fn read(home: &AbsPath) -> Self {
        let bytes = disk::read_head(&file(home), MAX_BYTES).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// # Errors
    /// The disk's.
    pub fn write(&self, home: &AbsPath) -> std::io::Result<()> {
        disk::write_private(&file(home), &serde_json::to_vec(self)?)
    }

    /// What a session offers from: a script or the demo answers as itself only.
    pub fn for_options(options: &Options, home: &AbsPath) -> Self {
        if options.needs_no_access() { Self::default() } else { Self::read(home) }
    }

    pub fn set(&mut self, provider: &str, models: Vec<ListedModel>) {
        self.0.insert(provider.to_owned(), models.into_iter().map(Row::from).collect());
    }

    /// Tells whether a list of this provider is kept.
    pub fn has_list(&self, provider: &str) -> bool {
        !self.of(provider).is_empty()
    }

    /// When a list was saved last, in milliseconds of Unix time.
    pub fn saved_at_ms(home: &AbsPath) -> Option<u64> {
        disk::metadata(&file(home)).ok().map(|it| it.modified_ms)
    }

    fn of(&self, provider: &str) -> &[Row] {
        self.0.get(provider).map(Vec::as_slice).unwrap_or_default()
    }

    /// Ids and names for a session: what is known, and the one in use.
    pub fn models_on_offer(&self, options: &Options, settings: &Settings, current: &str) -> Vec<(String, String)> {
        let aliases = &settings.models.aliases;
        let mut res = if options.needs_no_access() { Vec::new() } else { self.offer(settings) };
        res.extend(aliases.offered_names(!options.needs_no_access()));
        // Who may take over can be chosen, too.
        for it in settings.on_failure.models.iter().filter(|_| options.script.is_none()) {
            if !res.iter().any(|(id, _)| id == it) {
                res.push((it.clone(), it.clone()));
            }
        }
        if !res.iter().any(|(id, _)| id == current) {
            res.insert(0, (current.to_owned(), current.to_owned()));
        }
        res
    }

    /// Ids and names, as they are chosen: Gemini's first, then what settings and providers name.
    fn offer(&self, settings: &Settings) -> Vec<(String, String)> {
        let shown = |id: String, name: Option<&str>| (id.clone(), name.map_or(id, str::to_owned));
        let mut res: Vec<(String, String)> = match self.of(GEMINI) {
            [] => settings.models.aliases.offered_models(),
            rows => rows.iter().map(|it| shown(it.id.clone(), it.name.as_deref())).collect(),
        };
        for provider in &settings.models.providers {
            let named = provider.models.iter().map(|it| (&it.id, it.name.as_deref()));
            let listed = self.of(&provider.name).iter().map(|it| (&it.id, it.name.as_deref()));
            for (id, name) in named.chain(listed) {
                let id = format!("{}/{id}", provider.name);
                if !res.iter().any(|(it, _)| *it == id) {
                    res.push(shown(id, name));
                }
            }
        }
        res
    }

    /// How much each model reads at once. Settings go before what the provider says.
    pub fn windows(&self, settings: &Settings) -> ContextWindows {
        let gemini = self.of(GEMINI).iter().filter_map(|it| Some((it.id.clone(), it.window?)));
        let mut windows: BTreeMap<String, u64> = gemini.collect();
        for provider in &settings.models.providers {
            let listed = self.of(&provider.name).iter().map(|it| (&it.id, it.window));
            let named = provider.models.iter().map(|it| (&it.id, it.window));
            let all = listed.chain(named);
            windows.extend(all.filter_map(|(id, window)| Some((format!("{}/{id}", provider.name), window?))));
        }
        let body = |it: &Provider| Some((it.name.clone(), it.dialect.body_limit()?));
        let body_limits = settings.models.providers.iter().filter_map(body).collect();
        ContextWindows { configured: windows, otherwise: settings.models.window, body_limits }
    }
}

fn file(home: &AbsPath) -> AbsPath {
    home.join("models.json")
}
