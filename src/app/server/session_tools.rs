//! Handler of `_castor/tools/list`: the tools that the model has in a session.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::reply::{Reply, reply_now};
use crate::{
    app::session::live_session::LiveSession,
    base::{ids::SessionId, tool::PolicyClass},
    wire::{
        acp::session_tools::{SessionTool, SessionTools, read_tools},
        jsonrpc::error,
    },
};

pub fn list(sessions: &BTreeMap<SessionId, LiveSession>, params: Option<&RawValue>) -> Reply {
    let id = read_tools(params).map_err(|it| error::invalid_params(&it))?;
    let Some(live) = sessions.get(&id) else { return Err(error::session_not_found(id.as_str())) };
    let toolbox = &live.session.spec().toolbox;
    let tools = toolbox.tools.iter().map(|it| SessionTool {
        name: &it.name,
        title: &it.title,
        description: &it.description,
        kind: it.kind,
        parameters_schema: it.parameters.text(),
        read_only: it.traits.class == PolicyClass::Look,
        server: toolbox.foreign_tool(&it.name).map(|it| it.server.as_str()),
    });
    reply_now(&SessionTools { tools: tools.collect() })
}
