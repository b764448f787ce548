//! The tools that castor brings, for tests of decisions about them. The crate of the agent writes their file.

use std::sync::LazyLock;

use castor_base::{
    agent_right::AgentRight,
    tool::{PolicyClass, ToolKind, ToolSpec, ToolTraits},
};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Row {
    name: String,
    title: String,
    description: String,
    kind: ToolKind,
    parameters: Value,
    traits: Traits,
}

#[derive(Deserialize)]
struct Traits {
    class: PolicyClass,
    is_exclusive: bool,
    overwrites: bool,
    narrows_grants: bool,
    keeps_results: bool,
    returns_whole: bool,
    is_patch: bool,
    instructions: Option<String>,
    right: Option<AgentRight>,
}

/// As `session::policies` of the agent has them.
pub fn own_tools() -> &'static [ToolSpec] {
    static OWN: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| {
        let rows: Vec<Row> = serde_json::from_str(include_str!("testing/own_tools.json")).unwrap();
        rows.into_iter().map(spec).collect()
    });
    &OWN
}

fn spec(row: Row) -> ToolSpec {
    let Row { name, title, description, kind, parameters, traits } = row;
    let instructions = traits.instructions.map(|it| &*it.leak());
    let Traits {
        class, is_exclusive, overwrites, narrows_grants, keeps_results, returns_whole, is_patch, right, ..
    } = traits;
    let traits = ToolTraits {
        class,
        is_exclusive,
        overwrites,
        narrows_grants,
        keeps_results,
        returns_whole,
        is_patch,
        instructions,
        right,
    };
    let (name, title, description) = (name.into(), title.into(), description.into());
    ToolSpec { name, title, description, kind, parameters: parameters.into(), traits }
}
