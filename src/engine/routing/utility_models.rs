//! Utility models: which model answers castor's own questions, such as compression or loop checks.

use std::collections::BTreeSet;

use super::{
    aliases::{Aliases, WantedModel},
    model_limits,
    strategies::RoutingRules,
};
use castor_base::model::{ModelParams, Purpose};

/// Prefix of the aliases for compression models; the model's short name or `default` follows.
const COMPRESSION: &str = "chat-compression-";

/// Models that settings name for a purpose and that cannot be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UtilityModels {
    pub unreachable_models: BTreeSet<String>,
    /// The rules by which the router asks a model.
    pub rules: RoutingRules,
}

/// The alias for what MCP servers ask.
pub const MCP_SAMPLING: &str = "mcp-sampling";

/// A utility model with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct UtilityModel {
    pub purpose: Purpose,
    pub model: String,
    /// The parameters that settings and the model's family want; the question fills the gaps.
    pub params: ModelParams,
}

impl UtilityModels {
    /// `model`: the conversation's own model.
    pub fn for_purpose(&self, purpose: Purpose, model: &str, aliases: &Aliases) -> UtilityModel {
        let reached = |it: &String| aliases.model(it).is_some_and(|it| !self.unreachable_models.contains(it));
        let small = || small(purpose).filter(|_| model_limits::is_gemini(model)).map(str::to_owned);
        let name = named(purpose, model).into_iter().find(reached).or_else(small);
        let name = name.unwrap_or_else(|| model.to_owned());
        let (model, mut params) = aliases.resolve(WantedModel { is_chat: false, ..WantedModel::for_agent(&name) });
        // Others may refuse a temperature beside their thoughts; a server says its own.
        if model_limits::is_gemini(&model) && purpose != Purpose::McpSampling {
            params.temperature = params.temperature.or(Some(0.0));
            params.top_p = params.top_p.or(Some(1.0));
        }
        UtilityModel { purpose, model, params }
    }

    /// All utility models of a conversation with `model`.
    pub fn all(&self, model: &str, aliases: &Aliases) -> BTreeSet<String> {
        NAMED.into_iter().chain([Purpose::Compressor]).map(|it| self.for_purpose(it, model, aliases).model).collect()
    }
}

/// Purposes that settings may name a model for by one alias.
const NAMED: [Purpose; 6] = [
    Purpose::Router,
    Purpose::Summarizer,
    Purpose::LoopDetector,
    Purpose::LoopDoubleCheck,
    Purpose::NextSpeaker,
    Purpose::McpSampling,
];

/// The models that settings name for any purpose: they have to be in reach.
pub fn models(aliases: &Aliases) -> BTreeSet<String> {
    let named: Vec<String> = NAMED.into_iter().flat_map(|it| named(it, "")).collect();
    let is_one = |it: &&str| it.starts_with(COMPRESSION) || named.iter().any(|name| name == it);
    aliases.names().filter(is_one).filter_map(|it| aliases.model(it).map(str::to_owned)).collect()
}

/// The aliases that may say it, in Gemini CLI's words; the most special first.
fn named(purpose: Purpose, model: &str) -> Vec<String> {
    match purpose {
        Purpose::Agent | Purpose::Subagent => Vec::new(),
        Purpose::Router => vec!["classifier".to_owned()],
        Purpose::Summarizer => vec!["agent-history-provider-summarizer".to_owned()],
        Purpose::LoopDetector => vec!["loop-detection".to_owned()],
        Purpose::LoopDoubleCheck => vec!["loop-detection-double-check".to_owned()],
        Purpose::NextSpeaker => vec!["next-speaker-checker".to_owned()],
        Purpose::McpSampling => vec![MCP_SAMPLING.to_owned()],
        Purpose::Compressor => {
            // Gemini CLI leaves out the maker's word: `chat-compression-2.5-pro`.
            let model = model.trim_start_matches("models/");
            let version = model.split_once('-').filter(|_| model_limits::is_gemini(model)).map(|(_, it)| it);
            let short = version.unwrap_or(model).trim_end_matches("-preview");
            vec![format!("{COMPRESSION}{short}"), format!("{COMPRESSION}default")]
        }
    }
}

/// The small one of Gemini's models for a purpose that needs no large one.
fn small(purpose: Purpose) -> Option<&'static str> {
    match purpose {
        Purpose::Router => Some("flash-lite"),
        Purpose::Summarizer | Purpose::LoopDetector | Purpose::NextSpeaker => Some("flash"),
        Purpose::Agent | Purpose::Subagent | Purpose::Compressor | Purpose::LoopDoubleCheck | Purpose::McpSampling => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{UtilityModels, models};
    use crate::routing::{
        alias::{Alias, ModelConfig},
        aliases::Aliases,
    };
    use castor_base::{
        model::Purpose::{self, Compressor, Router},
        model_table::ModelTable,
    };

    fn aliases(table: &[(&str, &str)]) -> Aliases {
        let alias = |(name, model): &(&str, &str)| {
            let generation = json!({ "maxOutputTokens": 7 }).as_object().unwrap().clone();
            let config = ModelConfig { model: Some((*model).to_owned()), generation };
            ((*name).to_owned(), Alias { extends: None, config })
        };
        Aliases::new(table.iter().map(alias).collect(), Vec::new(), ModelTable::built_in()).0
    }

    /// A utility call is billed to its model and purpose.
    #[test]
    fn a_model_for_each_purpose() {
        let plain = aliases(&[("chat-base", "m")]);
        let who = |purpose: Purpose, model: &str, aliases: &Aliases| {
            let it = UtilityModels::default().for_purpose(purpose, model, aliases);
            (it.model, it.params.temperature, it.params.max_output_tokens)
        };
        let cold = |model: &str| (model.to_owned(), Some(0.0), None);
        assert_eq!(who(Router, "gemini-3-pro-preview", &plain), cold("gemini-3.5-flash-lite"));
        assert_eq!(who(Compressor, "gemini-3-pro-preview", &plain), cold("gemini-3-pro-preview"));
        let local = ("ollama/qwen3".to_owned(), None, None);
        assert_eq!([Router, Compressor].map(|it| who(it, "ollama/qwen3", &plain)), [local.clone(), local]);

        let named = aliases(&[
            ("classifier", "a/x"),
            ("chat-compression-default", "b/x"),
            ("chat-compression-2.5-pro", "gemini-2.5-flash"),
        ]);
        assert_eq!(who(Router, "gemini-2.5-pro", &named), ("a/x".to_owned(), None, Some(7)));
        assert_eq!(who(Compressor, "models/gemini-2.5-pro", &named).0, "gemini-2.5-flash");
        assert_eq!(who(Compressor, "ollama/qwen3", &named).0, "b/x");
        assert_eq!(models(&named).into_iter().collect::<Vec<_>>(), ["a/x", "b/x", "gemini-2.5-flash"]);
        let out_of_reach = ["a/x".to_owned(), "b/x".to_owned()].into();
        let helpers = UtilityModels { unreachable_models: out_of_reach, ..UtilityModels::default() };
        assert_eq!(helpers.for_purpose(Router, "ollama/qwen3", &named).model, "ollama/qwen3");
        assert_eq!(helpers.for_purpose(Compressor, "gemini-2.5-pro", &named).model, "gemini-2.5-flash");
        let all = |model| helpers.all(model, &plain).into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!(all("gemini-2.5-pro"), "gemini-2.5-pro gemini-3.5-flash-lite gemini-3.8-flash");
        assert_eq!(all("ollama/qwen3"), "ollama/qwen3");
    }
}
