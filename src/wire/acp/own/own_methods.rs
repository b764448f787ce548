//! The table of castor's own methods and notifications: `castor schema methods` prints their shapes.

use schemars::JsonSchema;

use crate::acp::{
    air::session_index::IndexMethods,
    mcp_servers::{McpServersMethod, McpSwitchMethod},
    own::{
        agents::AgentsMethod,
        attach::{
            AttachMethod, ClientActMethod, ClientsNotice, DetachMethod, PromptEnded, QuestionAnswered, SleepMethod,
        },
        custom_event::CustomEventMethod,
        definition_list::DefinitionsMethod,
        events::{EventNotice, EventsMethod, StreamMethod, StreamStarted, SubscribeMethod, UnsubscribeMethod},
        folder_options::OptionsMethod,
        host_tools::ToolCallMethod,
        intercept::HostMethods,
        mcp_complete::CompleteMethod,
        prompt_options::UpdateMethod,
        rewind::{CheckpointsMethod, OwnRewindMethod, RewoundNotice},
        steering::SteeringMethod,
        tool_list::ToolsMethod,
    },
};

/// castor's own methods, by name.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub struct Methods {
    #[serde(rename = "_session/steering")]
    steering: Option<SteeringMethod>,
    #[serde(flatten)]
    index: IndexMethods,
    #[serde(rename = "_castor/agents/list")]
    agents: Option<AgentsMethod>,
    #[serde(rename = "_castor/definitions/list")]
    definitions: Option<DefinitionsMethod>,
    #[serde(rename = "_castor/tools/list")]
    tools: Option<ToolsMethod>,
    #[serde(rename = "_castor/options/list")]
    options: Option<OptionsMethod>,
    #[serde(flatten)]
    host: HostMethods,
    #[serde(rename = "_castor/mcp/servers")]
    mcp_servers: Option<McpServersMethod>,
    #[serde(rename = "_castor/mcp/switch")]
    mcp_switch: Option<McpSwitchMethod>,
    /// Asks an MCP server what could stand for an argument of its prompts and resources.
    #[serde(rename = "_castor/mcp/complete")]
    complete: Option<CompleteMethod>,
    #[serde(rename = "_castor/session/attach")]
    attach: Option<AttachMethod>,
    #[serde(rename = "_castor/session/detach")]
    detach: Option<DetachMethod>,
    #[serde(rename = "_castor/session/client_act")]
    client_act: Option<ClientActMethod>,
    #[serde(rename = "_castor/session/sleep")]
    sleep: Option<SleepMethod>,
    #[serde(rename = "_castor/session/checkpoints")]
    checkpoints: Option<CheckpointsMethod>,
    #[serde(rename = "_castor/session/custom_event")]
    custom_event: Option<CustomEventMethod>,
    #[serde(rename = "_castor/session/events")]
    events: Option<EventsMethod>,
    #[serde(rename = "_castor/session/subscribe")]
    subscribe: Option<SubscribeMethod>,
    #[serde(rename = "_castor/session/unsubscribe")]
    unsubscribe: Option<UnsubscribeMethod>,
    #[serde(rename = "_castor/session/stream")]
    stream: Option<StreamMethod>,
    #[serde(rename = "_castor/session/update")]
    update: Option<UpdateMethod>,
    #[serde(rename = "_castor/session/rewind")]
    rewind: Option<OwnRewindMethod>,
    #[serde(flatten)]
    sent: SentMethods,
}

/// Those that castor calls.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct SentMethods {
    /// A notification: to clients with `_meta.castor.events`, to subscribers, and for a stream that is followed.
    #[serde(rename = "_castor/session/event")]
    event: Option<EventNotice<'static>>,
    /// A notification to clients with `_meta.castor.streams`, before the stream's first event.
    #[serde(rename = "_castor/session/stream_started")]
    stream_started: Option<StreamStarted<'static>>,
    /// A notification to clients with `_meta.castor.rewind`.
    #[serde(rename = "_castor/session/rewound")]
    rewound: Option<RewoundNotice>,
    #[serde(rename = "_castor/session/clients")]
    clients: Option<ClientsNotice<'static>>,
    #[serde(rename = "_castor/session/question_answered")]
    question_answered: Option<QuestionAnswered<'static>>,
    #[serde(rename = "_castor/session/prompt_ended")]
    prompt_ended: Option<PromptEnded<'static>>,
    #[serde(rename = "_castor/tool/call")]
    tool_call: Option<ToolCallMethod>,
}
