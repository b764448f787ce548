//! Built-in policy rules, and the rule set that files and settings build on them.

use super::{
    error::FileError,
    load, plans,
    rule::{Rule, Tier},
    rules::{PolicyFile, RuleSet},
    settings_rules::{self, ToolLists},
};
use castor_base::tool::ToolSpec;

const SHIPPED: &[(&str, &str)] = &[
    ("default/plan.toml", include_str!("shipped/plan.toml")),
    ("default/read-only.toml", include_str!("shipped/read-only.toml")),
    ("default/peers.toml", include_str!("shipped/peers.toml")),
    ("default/write.toml", include_str!("shipped/write.toml")),
    ("default/auto.toml", include_str!("shipped/auto.toml")),
    ("default/yolo.toml", include_str!("shipped/yolo.toml")),
];

impl RuleSet {
    /// What castor brings along for these tools of its own, by their classes.
    pub fn shipped(own: &[ToolSpec]) -> Self {
        // A shipped file that does not load allows nothing; tests see to it that all do.
        let files = SHIPPED.iter().filter_map(|(source, text)| Self::parse(text, Tier::Default, source).ok());
        // Nobody can open these files: their lines say nothing.
        let rules = files.flat_map(|it| it.0.rules).map(|mut it| {
            it.source.line = 0;
            it
        });
        let rules = rules.chain([plans::plan_file_rule()]);
        Self::default().with(rules.map(|it| Rule { tools: expand(&it.tools, own), ..it }).collect::<Vec<Rule>>())
    }

    /// What one file says, and what is wrong with what is left out. An error: the whole file is left out.
    pub fn parse(text: &str, tier: Tier, source: &str) -> Result<(PolicyFile, Vec<String>), FileError> {
        load::parse(text, tier, source)
    }

    /// As [`RuleSet::parse`], but a file that cannot be read at all makes everything a question: nobody knows what it
    /// would have denied.
    pub fn load(text: &str, tier: Tier, source: &str) -> (PolicyFile, Vec<String>) {
        let broken = |why: FileError| (vec![Rule::broken_file(tier, source)].into(), vec![why.to_string()]);
        load::parse(text, tier, source).unwrap_or_else(broken)
    }

    /// What settings say, as rules of the user.
    pub fn from_settings(lists: &ToolLists) -> Vec<Rule> {
        settings_rules::rules(lists)
    }
}

/// The names of the tools in place of their classes; of classes side by side in one order.
fn expand(names: &[String], own: &[ToolSpec]) -> Vec<String> {
    let is_class = |it: &String| it.starts_with("own:");
    let tools_of = |classes: &[String]| -> Vec<String> {
        let named = own.iter().filter(|it| classes.iter().any(|class| class == it.traits.class.as_str()));
        named.map(|it| it.name.to_string()).collect()
    };
    let groups = names.chunk_by(|a, b| is_class(a) && is_class(b));
    groups.flat_map(|it| if it.iter().all(is_class) { tools_of(it) } else { it.to_vec() }).collect()
}
