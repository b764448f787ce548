//! Model aliases: names and parameters for models that extend each other, and overrides on top.

mod dated_names;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::civil::Date;
use serde_json::{Map, Value};

use super::{
    alias::{Alias, ModelConfig},
    model_limits,
};
use castor_base::{
    model::{ModelParams, ModelRequest, Thinking},
    model_table::{AutoModels, ModelTable, ParameterSet},
};

/// Longest chain of aliases that extend each other.
const MAX_DEPTH: usize = 100;
/// The alias that models without one extend.
const CHAT_BASE: &str = "chat-base";
/// The scope of requests that name none: the conversation itself.
const CORE: &str = "core";

/// Settings for matching requests; an override that names nothing matches none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Override {
    /// A model, or an alias of the chain.
    pub model: Option<String>,
    pub scope: Option<String>,
    pub is_retry: Option<bool>,
    pub config: ModelConfig,
}

/// All of them; every chain of aliases ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Aliases {
    aliases: Arc<BTreeMap<String, Alias>>,
    models: Arc<ModelTable>,
    /// Parameters, by model, that it refused lately.
    learned_refusals: Arc<BTreeMap<String, ParameterSet>>,
    /// The day on which the models behind castor's own names are served.
    day: Date,
    /// Names that leave the choice to the router.
    autos: BTreeMap<String, AutoModels>,
    overrides: Vec<Override>,
    /// The user's own names. Their `chat-base` is for models of every provider, castor's for Gemini's; their `auto` is
    /// what they say.
    own_names: BTreeSet<String>,
}

/// The reason why an alias cannot be followed.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum AliasError {
    #[error("there is no alias {0:?}")]
    Unknown(String),
    #[error("its aliases extend each other in a circle, or are more than {MAX_DEPTH}")]
    Endless,
}

/// A request whose model is not known yet.
#[derive(Clone, Copy, Debug)]
pub struct WantedModel<'a> {
    /// A model or an alias.
    pub name: &'a str,
    /// The purpose of the request; `None`: the conversation itself.
    pub scope: Option<&'a str>,
    pub is_retry: bool,
    /// The conversation, not a question beside it: models without an alias extend what conversations do.
    pub is_chat: bool,
}

impl<'a> WantedModel<'a> {
    pub fn for_agent(name: &'a str) -> Self {
        Self { name, scope: None, is_retry: false, is_chat: true }
    }
}

impl Aliases {
    /// Aliases that cannot be followed are left out; the second value says why.
    pub fn new(
        own: BTreeMap<String, Alias>,
        overrides: Vec<Override>,
        models: Arc<ModelTable>,
    ) -> (Self, Vec<(String, AliasError)>) {
        let own_names: BTreeSet<String> = own.keys().cloned().collect();
        let mut res = Self { aliases: Arc::new(own), models, overrides, own_names, ..Self::default() };
        res.add_built_in();
        let broken = res.aliases.keys().filter_map(|it| Some((it.clone(), res.chain(it).err()?)));
        let broken: Vec<(String, AliasError)> = broken.collect();
        broken.iter().for_each(|(name, _)| _ = Arc::make_mut(&mut res.aliases).remove(name));
        (res, broken)
    }

    /// The same, with what models refused lately.
    #[must_use]
    pub fn with_refusals(self, learned: BTreeMap<String, ParameterSet>) -> Self {
        Self { learned_refusals: Arc::new(learned), ..self }
    }

    pub fn learned_refusals(&self, model: &str) -> ParameterSet {
        self.learned_refusals.get(model).copied().unwrap_or_default()
    }

    /// The table of known models.
    pub fn models(&self) -> &ModelTable {
        &self.models
    }

    pub fn knows(&self, name: &str) -> bool {
        self.aliases.contains_key(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.aliases.keys().map(String::as_str)
    }

    /// Names and what they stand for; those that castor brings only if wanted.
    pub fn offered_names(&self, built_in: bool) -> Vec<(String, String)> {
        let is_offered = |name: &str| match self.built_in(name) {
            Some(it) => built_in && (it.model.is_some() || it.auto.is_some()),
            None => true,
        };
        let names = self.aliases.keys().filter(|it| is_offered(it) && self.model(it).is_some());
        let meaning = |it: &str| match self.auto(it) {
            Some(AutoModels { pro, flash }) => {
                format!("{} or {}, as it needs", self.model_of(pro), self.model_of(flash))
            }
            None => self.model_of(it),
        };
        names.map(|it| (it.clone(), format!("{it} ({})", meaning(it)))).collect()
    }

    /// The model that an alias names by itself or by those that it extends.
    pub(super) fn model(&self, name: &str) -> Option<&str> {
        let chain = self.chain(name).unwrap_or_default();
        chain.iter().rev().find_map(|it| self.aliases.get(*it)?.config.model.as_deref())
    }

    /// From the root to the name itself.
    fn chain(&self, name: &str) -> Result<Vec<&str>, AliasError> {
        let mut res: Vec<&str> = Vec::new();
        let mut next = Some(name);
        while let Some(name) = next {
            let found = self.aliases.get_key_value(name);
            let (name, alias) = found.ok_or_else(|| AliasError::Unknown(name.to_owned()))?;
            if res.contains(&name.as_str()) || res.len() >= MAX_DEPTH {
                return Err(AliasError::Endless);
            }
            res.push(name);
            next = alias.extends.as_deref();
        }
        res.reverse();
        Ok(res)
    }

    /// The names whose parameters count, from the root. Of conversations those of the model's family, too, where an
    /// alias is no more than another name for it.
    fn config_names<'n>(&'n self, wanted: WantedModel<'n>) -> Vec<&'n str> {
        // Before the router has its say it is the larger model.
        let name = self.auto(wanted.name).map_or(wanted.name, |it| it.pro.as_str());
        let own = self.chain(name).unwrap_or_default();
        let says_more = |it: &&str| self.aliases.get(*it).is_some_and(|it| !it.config.generation.is_empty());
        if !wanted.is_chat || own.len() > 1 || own.iter().any(says_more) {
            return own;
        }
        let model = self.model(name).unwrap_or(name);
        // castor's own are for the service whose words they are.
        let family = self.models.family_of(model).filter(|_| model_limits::is_gemini(model));
        let base = family.and_then(|it| it.asks_as.as_deref());
        let base = base.or_else(|| self.own_names.contains(CHAT_BASE).then_some(CHAT_BASE));
        let base = base.and_then(|it| self.chain(it).ok()).unwrap_or_default();
        base.into_iter().chain(own).collect()
    }

    /// The model that is asked in the end. A name that is no alias is one.
    pub fn model_of(&self, name: &str) -> String {
        // Most names are a model's own, and a turn asks often.
        if self.overrides.is_empty() && !self.knows(name) {
            return name.to_owned();
        }
        // Parameters say nothing about it, and are the most of the work.
        self.merged(WantedModel::for_agent(name), ModelConfig::take_model).model.unwrap_or_default()
    }

    /// The model and the parameters.
    pub fn resolve(&self, wanted: WantedModel<'_>) -> (String, ModelParams) {
        let merged = self.merged(wanted, ModelConfig::take);
        (merged.model.unwrap_or_default(), params(&merged.generation))
    }

    fn merged(&self, wanted: WantedModel<'_>, take: fn(&mut ModelConfig, &ModelConfig)) -> ModelConfig {
        let chain = self.config_names(wanted);
        let mut merged = ModelConfig::default();
        for it in chain.iter().filter_map(|it| self.aliases.get(*it)) {
            take(&mut merged, &it.config);
        }
        let name = self.auto(wanted.name).map_or(wanted.name, |it| it.pro.as_str());
        let model = match self.knows(name) {
            true => merged.model.clone().unwrap_or_else(|| name.to_owned()),
            // What models in general extend does not say which one it is.
            false => name.to_owned(),
        };
        // The same question in the same way would get the same answer. Only Gemini takes any temperature with any model.
        if wanted.is_retry && model_limits::is_gemini(&model) {
            merged.generation.insert("temperature".to_owned(), 1.0.into());
        }
        merged.model = Some(model);
        let mut fitting: Vec<(usize, usize, &Override)> = Vec::new();
        for it in &self.overrides {
            let level = it.level(&chain, merged.model.as_deref(), wanted.name);
            if let Some(level) = level.filter(|_| it.fits(wanted)) {
                fitting.push((level, it.n_keys(), it));
            }
        }
        // Stable: of two that are equal the later one wins.
        fitting.sort_by_key(|(level, n_keys, _)| (*level, *n_keys));
        fitting.into_iter().for_each(|(.., it)| take(&mut merged, &it.config));
        merged
    }

    /// Fills in parameters that the request does not have yet.
    pub fn fill_params(&self, request: &mut ModelRequest, wanted: WantedModel<'_>) {
        // A hook or a fallback may have named another model since.
        let own = self.model_of(wanted.name) == *request.model;
        let name = if own { wanted.name } else { &request.model };
        let (_, it) = self.resolve(WantedModel { name, ..wanted });
        let params = &mut request.params;
        params.temperature = params.temperature.or(it.temperature);
        params.top_p = params.top_p.or(it.top_p);
        params.top_k = params.top_k.or(it.top_k);
        params.max_output_tokens = params.max_output_tokens.or(it.max_output_tokens);
        params.thinking = params.thinking.take().or(it.thinking);
        if params.stop.is_empty() {
            params.stop = it.stop;
        }
        self.models.fit(&request.model, params);
    }
}

impl Override {
    fn n_keys(&self) -> usize {
        usize::from(self.model.is_some()) + usize::from(self.scope.is_some()) + usize::from(self.is_retry.is_some())
    }

    /// The place in the chain of aliases that it is about; `None`: it is about another model.
    fn level(&self, chain: &[&str], model: Option<&str>, name: &str) -> Option<usize> {
        match self.model.as_deref() {
            None => Some(0),
            Some(it) => match chain.iter().position(|alias| *alias == it) {
                Some(at) => Some(at + 1),
                None => (Some(it) == model || it == name).then_some(0),
            },
        }
    }

    fn fits(&self, wanted: WantedModel<'_>) -> bool {
        let scope = wanted.scope.unwrap_or(CORE);
        self.n_keys() > 0
            && self.scope.as_deref().is_none_or(|it| it == scope)
            && self.is_retry.is_none_or(|it| it == wanted.is_retry)
    }
}

impl ModelConfig {
    fn take_model(&mut self, other: &Self) {
        self.model = other.model.clone().or(self.model.take());
    }

    fn take(&mut self, other: &Self) {
        self.take_model(other);
        merge(&mut self.generation, &other.generation);
    }
}

/// Objects grow into each other, all else replaces.
fn merge(to: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (key, value) in from {
        match (to.get_mut(key), value) {
            (Some(Value::Object(to)), Value::Object(from)) => merge(to, from),
            _ => _ = to.insert(key.clone(), value.clone()),
        }
    }
}

fn params(it: &Map<String, Value>) -> ModelParams {
    let number = |key: &str| it.get(key).and_then(Value::as_f64);
    let count = |key: &str| it.get(key).and_then(Value::as_u64).and_then(|it| u32::try_from(it).ok());
    let thinking = it.get("thinkingConfig");
    let level = thinking.and_then(|it| it.get("thinkingLevel")).and_then(Value::as_str);
    let budget = thinking.and_then(|it| it.get("thinkingBudget")).and_then(Value::as_i64);
    let budget = budget.and_then(|it| i32::try_from(it).ok()).map(Thinking::Budget);
    let stop = it.get("stopSequences").and_then(Value::as_array).into_iter().flatten();
    ModelParams {
        temperature: number("temperature"),
        top_p: number("topP"),
        top_k: count("topK"),
        max_output_tokens: count("maxOutputTokens"),
        thinking: level.map(|it| Thinking::Level(it.to_lowercase())).or(budget),
        include_thoughts: false,
        stop: stop.filter_map(Value::as_str).map(str::to_owned).collect(),
        schema: None,
        searches_web: false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Alias, Aliases, ModelConfig, ModelTable, Override, WantedModel};

    fn config(model: Option<&str>, generation: &Value) -> ModelConfig {
        ModelConfig { model: model.map(str::to_owned), generation: generation.as_object().unwrap().clone() }
    }

    fn alias(name: &str, extends: Option<&str>, model: Option<&str>, generation: &Value) -> (String, Alias) {
        (name.to_owned(), Alias { extends: extends.map(str::to_owned), config: config(model, generation) })
    }

    fn over(model: Option<&str>, scope: Option<&str>, is_retry: Option<bool>, temperature: f64) -> Override {
        let config = config(None, &json!({ "temperature": temperature }));
        Override { model: model.map(str::to_owned), scope: scope.map(str::to_owned), is_retry, config }
    }

    #[test]
    fn chains_from_root_to_leaf() {
        let table = [
            alias("base", None, Some("m"), &json!({"temperature": 0, "thinkingConfig": {"thinkingBudget": 9}})),
            alias("middle", Some("base"), None, &json!({"topP": 0.5, "stopSequences": ["a", "b"]})),
            alias("leaf", Some("middle"), None, &json!({"temperature": 0.7, "stopSequences": ["c"]})),
            alias("other", Some("leaf"), Some("n"), &json!({"thinkingConfig": {"thinkingLevel": "HIGH"}})),
        ];
        let (aliases, broken) = Aliases::new(table.into(), Vec::new(), ModelTable::built_in());
        assert_eq!(broken, []);
        let (model, it) = aliases.resolve(WantedModel::for_agent("leaf"));
        assert_eq!(
            (model.as_str(), it.temperature, it.top_p, it.stop),
            ("m", Some(0.7), Some(0.5), vec!["c".to_owned()])
        );
        assert_eq!(it.thinking, Some(super::Thinking::Budget(9)));
        let (model, it) = aliases.resolve(WantedModel::for_agent("other"));
        assert_eq!((model.as_str(), it.thinking), ("n", Some(super::Thinking::Level("high".to_owned()))));
        assert_eq!(
            aliases.resolve(WantedModel::for_agent("no-alias")),
            ("no-alias".to_owned(), super::ModelParams::default())
        );
        assert_eq!(["pro", "flash"].map(|it| aliases.model_of(it)), ["gemini-4-argon", "gemini-3.8-flash"]);
    }

    #[test]
    fn the_model_is_the_same_with_and_without_its_parameters() {
        let table = [
            alias("root", None, Some("m"), &json!({"temperature": 0})),
            alias("leaf", Some("root"), None, &json!({"topP": 0.5})),
            alias("own", Some("leaf"), Some("n"), &json!({})),
        ];
        let names = |model: &str, to: &str| Override {
            model: Some(model.to_owned()),
            config: config(Some(to), &json!({"topK": 2})),
            ..Override::default()
        };
        let (aliases, _) = Aliases::new(
            table.into(),
            vec![names("root", "x"), names("own", "y"), names("plain", "z")],
            ModelTable::built_in(),
        );
        let models = ["root", "leaf", "own", "plain", "other", "pro"].map(|name| {
            let model = aliases.model_of(name);
            assert_eq!(model, aliases.resolve(WantedModel::for_agent(name)).0, "{name}");
            model
        });
        assert_eq!(models, ["x", "x", "y", "z", "other", "gemini-4-argon"]);
    }

    /// Only Gemini's models get these parameters, and only where settings say nothing else.
    #[test]
    fn each_family_is_asked_in_its_way() {
        let said = |own: Vec<(String, Alias)>, overrides: &[Override], name: &str| {
            let (aliases, _) = Aliases::new(own.into_iter().collect(), overrides.to_vec(), ModelTable::built_in());
            let it = aliases.resolve(WantedModel::for_agent(name)).1;
            format!("{:?} {:?} {:?} {:?}", it.temperature, it.top_p, it.top_k, it.thinking)
        };
        let plain = |name| said(Vec::new(), &[], name);
        let high = r#"Some(1.0) Some(0.95) Some(64) Some(Level("high"))"#;
        assert_eq!(plain("gemini-2.5-flash"), "Some(1.0) Some(0.95) Some(64) Some(Budget(8192))");
        assert_eq!([plain("gemini-3-pro-preview"), plain("pro"), plain("gemma-4-x")], [high; 3]);
        assert_eq!(plain("gemini-exp"), "Some(1.0) Some(0.95) Some(64) None");
        assert_eq!([plain("openai/gpt"), plain("gemini-2.0-flash")], ["None None None None"; 2]);
        // Settings go before all of it, and the user's own base is for everybody.
        let own = || vec![alias("chat-base", None, None, &json!({"temperature": 0.5}))];
        assert_eq!(said(own(), &[], "gemini-2.5-pro"), "Some(0.5) None None Some(Budget(8192))");
        assert_eq!(said(own(), &[], "openai/gpt"), "Some(0.5) None None None");
        let colder = over(Some("chat-base-3"), None, None, 0.1);
        assert_eq!(said(Vec::new(), &[colder], "pro"), high.replacen("1.0", "0.1", 1));
    }

    #[test]
    fn circles_and_missing_parents_are_left_out() {
        let none = json!({});
        let mut table = vec![
            alias("a", Some("b"), None, &none),
            alias("b", Some("a"), None, &none),
            alias("c", Some("nobody"), None, &none),
            alias("d", Some("c"), None, &none),
            alias("well", None, Some("m"), &none),
        ];
        table.extend((0..101).map(|it| alias(&format!("n{it}"), Some(&format!("n{}", it + 1)), None, &none)));
        table.push(alias("n101", None, Some("m"), &none));
        let (aliases, broken) = Aliases::new(table.into_iter().collect(), Vec::new(), ModelTable::built_in());
        let names: Vec<&str> = broken.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "d", "n0", "n1"]);
        assert_eq!(["a", "well", "n2"].map(|it| aliases.model_of(it)), ["a", "m", "m"]);
    }

    #[test]
    fn the_most_special_override_wins_and_then_the_last() {
        let table =
            [alias("root", None, Some("m"), &json!({"temperature": 0})), alias("leaf", Some("root"), None, &json!({}))];
        let temperature = |overrides: &[Override], wanted: WantedModel<'_>| {
            let (aliases, _) = Aliases::new(table.clone().into(), overrides.to_vec(), ModelTable::built_in());
            aliases.resolve(wanted).1.temperature
        };
        let agent = WantedModel::for_agent("leaf");
        let retry = WantedModel { is_retry: true, ..agent };
        let helper = WantedModel { scope: Some("helper"), ..agent };
        let leaf = over(Some("leaf"), None, None, 0.3);
        assert_eq!(temperature(&[leaf.clone(), over(Some("root"), None, None, 0.2)], agent), Some(0.3));
        assert_eq!(temperature(&[leaf.clone(), over(Some("m"), None, Some(false), 0.1)], agent), Some(0.3));
        assert_eq!(temperature(&[leaf.clone(), over(Some("leaf"), None, None, 0.4)], agent), Some(0.4));
        assert_eq!(temperature(&[over(Some("leaf"), Some("core"), None, 0.5), leaf.clone()], agent), Some(0.5));
        assert_eq!(temperature(&[over(None, Some("core"), None, 0.6)], helper), Some(0.0));
        assert_eq!(temperature(&[over(None, Some("helper"), None, 0.6)], helper), Some(0.6));
        assert_eq!(temperature(&[], retry), Some(1.0), "another attempt is asked in another way");
        assert_eq!(temperature(&[over(None, None, Some(true), 0.8)], retry), Some(0.8));
        assert_eq!(temperature(&[over(None, None, Some(true), 1.0)], agent), Some(0.0));
        assert_eq!(temperature(&[over(None, None, None, 0.9)], agent), Some(0.0));
    }
}
