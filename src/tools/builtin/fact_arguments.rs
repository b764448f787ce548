//! The arguments of the tools that keep or propose a fact.

use serde_json::{Value, json};

use crate::builtin::{
    ToolContext,
    params::{CallArguments, invalid},
    schema::{self, text},
};
use castor_base::{
    saved_memory::{self, MemoryScope, SavedMemory},
    schema::Schema,
    tool::ToolError,
};

pub(super) struct FactArguments<'a> {
    pub saved: &'a SavedMemory,
    pub scope: MemoryScope,
    pub fact: String,
}

impl<'a> FactArguments<'a> {
    pub fn parse(args: &Value, ctx: &'a ToolContext) -> Result<Self, ToolError> {
        let params = CallArguments::of(args)?;
        let fact = saved_memory::fact(params.text("fact")?).map_err(invalid)?;
        let scope = params.opt_text("scope")?.unwrap_or(MemoryScope::Project.as_str());
        let scope = MemoryScope::parse(scope).ok_or_else(|| invalid("params/scope must be project or global"))?;
        let saved = ctx.settings.saved_memory.as_ref();
        let saved = saved.ok_or_else(|| ToolError::new("memory_failure", "castor has no folder of its own here."))?;
        Ok(Self { saved, scope, fact })
    }
}

/// The schema of these arguments.
pub(super) fn fact_schema() -> Schema {
    let scope = json!({"type": "string", "enum": ["project", "global"],
                       "description": "For this project (default), or for all of the user's."});
    schema::object(&["fact"], [("fact", text("One sentence that will still be true later.")), ("scope", scope)])
}
