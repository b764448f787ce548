//! Built-in policy rules, and the rule set that files and settings build on them.

use super::{
    load, plans,
    rule::{Rule, Tier},
    rules::{PolicyFile, RuleSet},
    settings_rules::{self, ToolLists},
};

const SHIPPED: &[(&str, &str)] = &[
    ("default/plan.toml", include_str!("shipped/plan.toml")),
    ("default/read-only.toml", include_str!("shipped/read-only.toml")),
    ("default/write.toml", include_str!("shipped/write.toml")),
    ("default/auto.toml", include_str!("shipped/auto.toml")),
    ("default/yolo.toml", include_str!("shipped/yolo.toml")),
];

impl RuleSet {
    /// What castor brings along.
    pub fn shipped() -> Self {
        // A shipped file that does not load allows nothing; tests see to it that all do.
        let files = SHIPPED.iter().filter_map(|(source, text)| Self::parse(text, Tier::Default, source).ok());
        // Nobody can open these files: their lines say nothing.
        let rules = files.flat_map(|it| it.0.rules).map(|mut it| {
            it.source.line = 0;
            it
        });
        Self::default().with(rules.chain([plans::plan_file_rule()]).collect::<Vec<Rule>>())
    }

    /// What one file says, and what is wrong with what is left out. An error: the whole file is left out.
    pub fn parse(text: &str, tier: Tier, source: &str) -> Result<(PolicyFile, Vec<String>), String> {
        load::parse(text, tier, source)
    }

    /// As [`RuleSet::parse`], but a file that cannot be read at all makes everything a question: nobody knows what it
    /// would have denied.
    pub fn load(text: &str, tier: Tier, source: &str) -> (PolicyFile, Vec<String>) {
        load::parse(text, tier, source).unwrap_or_else(|why| (vec![Rule::broken_file(tier, source)].into(), vec![why]))
    }

    /// What settings say, as rules of the user.
    pub fn from_settings(lists: &ToolLists) -> Vec<Rule> {
        settings_rules::rules(lists)
    }
}
