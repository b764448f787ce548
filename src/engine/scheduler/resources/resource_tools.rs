//! The tools by which a model lists and reads resources of MCP servers.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::scheduler::unknown_tool::{HiddenTool, keep_or_hide};
use crate::{
    policy::{self, RuleSet},
    step::Server,
};
use castor_base::{
    server_offer::{LIST_RESOURCES, READ_RESOURCE, ServerOffer},
    tool::{ToolKind, ToolSpec, ToolTraits},
};

const TRAITS: ToolTraits = ToolTraits { narrows_grants: false, ..ToolTraits::LOOKS };

/// Both, for a session with a server that has resources.
pub fn specs() -> &'static [ToolSpec] {
    static SPECS: LazyLock<[ToolSpec; 2]> = LazyLock::new(|| [list(), read()]);
    &*SPECS
}

fn list() -> ToolSpec {
    ToolSpec {
        name: LIST_RESOURCES.into(),
        title: "ListResources".into(),
        description: "Lists resources of the connected MCP servers: address, type, name.".into(),
        kind: ToolKind::Read,
        traits: TRAITS,
        parameters: json!({
            "type": "object",
            "properties": { "server": { "type": "string", "description": "Only this server's." } }
        })
        .into(),
    }
}

fn read() -> ToolSpec {
    ToolSpec {
        name: READ_RESOURCE.into(),
        title: "ReadResource".into(),
        description: "Reads a resource of an MCP server.".into(),
        kind: ToolKind::Read,
        traits: TRAITS,
        parameters: json!({
            "type": "object",
            "properties": {
                "uri": { "type": "string", "description": "As list_mcp_resources has it, or made by a template of it." },
                "server": { "type": "string", "description": "Needed where the list does not have the address." }
            },
            "required": ["uri"]
        })
        .into(),
    }
}

/// The annotations that a server would give a tool that reads its resources.
pub(in crate::scheduler) fn annotations() -> &'static Value {
    static READS: LazyLock<Value> = LazyLock::new(|| json!({ "readOnlyHint": true }));
    &READS
}

/// Names and offers of those that can be asked.
pub(in crate::scheduler) fn offers(servers: &[Server]) -> impl Iterator<Item = (&str, &ServerOffer)> {
    servers.iter().filter(|it| it.is_there()).map(|it| (it.name.as_str(), &*it.offer))
}

/// Adds both to `tools` while a server has resources, unless a rule denies them.
pub(in crate::scheduler) fn add(
    (rules, interactive): (&RuleSet, bool),
    tools: &mut Vec<ToolSpec>,
    hidden: &mut Vec<HiddenTool>,
    servers: &[Server],
) {
    hidden.retain(|it| !specs().iter().any(|spec| it.is(&spec.name)));
    if !offers(servers).any(|it| it.1.has_resources) {
        return;
    }
    for spec in specs() {
        let is_new = tools.iter().all(|it| it.name != spec.name);
        if is_new && keep_or_hide(hidden, spec, None, policy::unconditional_deny(rules, spec, None, interactive)) {
            tools.push(spec.clone());
        }
    }
}
