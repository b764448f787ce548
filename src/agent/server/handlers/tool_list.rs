//! `_castor/tools/list`: the tools of a session, for hosts.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::server::reply::{Reply, reply_now};
use crate::session::live_session::LiveSession;
use castor_base::{host_tools::HostAnnotations, ids::SessionId, shown_text::show_line, tool::ToolSpec};
use castor_engine::scheduler::Toolbox;
use castor_wire::{
    acp::own::tool_list::{ListedTool, ToolList, ToolSource, read_tools},
    jsonrpc::error,
};

pub fn list(sessions: &BTreeMap<SessionId, LiveSession>, params: Option<&RawValue>) -> Reply {
    let id = read_tools(params).map_err(|it| error::invalid_params(&it))?;
    let Some(live) = sessions.get(&id) else { return Err(error::session_not_found(id.as_str())) };
    let toolbox = live.session.spec().toolbox.in_mode(live.session.record().mode);
    reply_now(&ToolList { tools: toolbox.tools.iter().map(|it| describe(&toolbox, it)).collect() })
}

fn describe(toolbox: &Toolbox, tool: &ToolSpec) -> ListedTool {
    let (host, foreign) = (toolbox.host_tool(&tool.name), toolbox.foreign_tool(&tool.name));
    let (source, annotations) = match (host, foreign) {
        (Some(it), _) => (ToolSource::Host, it.annotations),
        (None, Some(it)) => {
            (ToolSource::Mcp, annotations(it.annotations.get("readOnlyHint").is_some_and(|it| *it == true)))
        }
        (None, None) => (ToolSource::Castor, annotations(!tool.kind.has_side_effects())),
    };
    ListedTool {
        name: tool.name.to_string(),
        display_name: show_line(&tool.title).into_owned(),
        description: tool.description.to_string(),
        parameters_schema: (*tool.parameters).clone(),
        source,
        server: foreign.map(|it| it.server.clone()),
        annotations,
    }
}

fn annotations(read_only: bool) -> HostAnnotations {
    HostAnnotations { read_only, long_running: false }
}
