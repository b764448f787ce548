//! Legal names in calls, brought back to those that the tool has: its own, and those of its arguments.

use std::{borrow::Cow, sync::Arc};

use serde_json::Value;

use super::{
    call_ids,
    legal_schema::{self, SchemaRules},
    provider_limits::tool_name,
};
use castor_base::tool_offer::ToolOffer;

/// Names of tools and of their arguments that had to change, to be found again when the model uses them.
#[derive(Debug)]
pub struct LegalNames {
    tools: ToolOffer,
    rules: &'static SchemaRules,
    /// Whose calls they are.
    signer: Cow<'static, str>,
}

impl Default for LegalNames {
    fn default() -> Self {
        Self { tools: ToolOffer::default(), rules: &legal_schema::OPENAI, signer: "".into() }
    }
}

impl LegalNames {
    /// `rules`: those that the tools were offered by.
    pub fn new(tools: &ToolOffer, rules: &'static SchemaRules, signer: impl Into<Cow<'static, str>>) -> Self {
        Self { tools: tools.clone(), rules, signer: signer.into() }
    }

    /// What remembers that a call came with this id; `None`: every provider takes it.
    pub fn mark_id(&self, id: &str) -> Option<Arc<str>> {
        call_ids::mark(&self.signer, id).map(Into::into)
    }

    /// A call under the names of the tool's own.
    pub fn restore(&self, name: String, mut args: Value) -> (String, Value) {
        let Some(tool) = self.tools.iter().find(|it| tool_name(&it.name) == *name) else { return (name, args) };
        if self.rules.has_narrow_keys {
            legal_schema::restore_keys(&mut args, &legal_schema::legalize(&tool.parameters, self.rules).keys);
        }
        (tool.name.to_string(), args)
    }
}

/// A provider's text with the tools' own names.
pub fn restore_names(text: String, tools: &ToolOffer) -> String {
    tools.iter().fold(text, |text, it| match tool_name(&it.name) {
        Cow::Owned(legal) => text.replace(&legal, &it.name),
        Cow::Borrowed(_) => text,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{LegalNames, legal_schema, tool_name};
    use castor_base::tool::{ToolKind, ToolSpec};

    #[test]
    fn names_are_found_again() {
        let spec = |name: &str| ToolSpec {
            name: name.to_owned().into(),
            title: "".into(),
            description: "".into(),
            kind: ToolKind::Other,
            traits: Default::default(),
            parameters: json!({ "properties": { "a b": {} } }).into(),
        };
        let long = "x".repeat(100);
        let tools = [spec("a.b"), spec(&long), spec("plain")].into();
        let names = LegalNames::new(&tools, &legal_schema::ANTHROPIC, "");
        let legal = legal_schema::legalize(&tools[0].parameters, &legal_schema::ANTHROPIC);
        let key = &legal.keys[0].0;
        for (name, own) in [("a.b", "a b"), (&*long, "a b"), ("plain", "a b"), ("unknown", &**key)] {
            let got = names.restore(tool_name(name).into_owned(), json!({ key: 1 }));
            assert_eq!(got, (name.to_owned(), json!({ own: 1 })));
        }
    }
}
