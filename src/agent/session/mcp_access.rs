//! A session's access to its MCP servers: what calls and questions go by.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use castor_base::{
    content::Part,
    mcp::McpServerConfig,
    server_offer::{LIST_RESOURCES, READ_RESOURCE, ServerOffer, ServerQuery, ServerQueryKind, resource_of},
    text,
    tool::{ToolCall, ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};
use castor_tools::mcp::{Connection, ServerLists, ServerTool, describe_resources};

/// All of one session.
#[derive(Clone, Default)]
pub struct McpAccess {
    pub tools: Vec<McpTool>,
    pub servers: Vec<ConnectedServer>,
}

/// A tool of a server, under the model's name for it. Calls go by these.
#[derive(Clone)]
pub struct McpTool {
    pub spec: ToolSpec,
    pub tool: String,
    pub server: u64,
    pub connection: Connection,
    pub timeout: Duration,
}

/// What the model and people see of it.
pub fn tool_spec(name: String, config: &McpServerConfig, tool: &ServerTool) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        // People decide by it: it must not look like more than a name.
        title: format!("{} ({} MCP)", text::first_line(&tool.name, 100), text::first_line(&config.name, 100)).into(),
        description: tool.description.clone().into(),
        // What a server says of its own harmlessness is no reason to believe it.
        kind: ToolKind::Other,
        parameters: tool.parameters.clone(),
        traits: ToolTraits::default(),
    }
}

/// A server that answers, or starts again when it is asked.
#[derive(Clone)]
pub struct ConnectedServer {
    /// As the configuration names it.
    pub name: String,
    pub server: u64,
    pub lists: Arc<ServerLists>,
    pub connection: Connection,
    pub timeout: Duration,
}

impl McpAccess {
    /// With those of another owner, who comes after.
    pub fn extend(&mut self, more: Self) {
        self.tools.extend(more.tools);
        for it in more.servers {
            if self.find_server(&it.name).is_none() {
                self.servers.push(it);
            }
        }
    }

    pub fn find_tool(&self, name: &str) -> Option<&McpTool> {
        self.tools.iter().find(|it| it.spec.name == name)
    }

    pub fn find_server(&self, name: &str) -> Option<&ConnectedServer> {
        self.servers.iter().find(|it| it.name == name)
    }

    fn offers(&self) -> impl Iterator<Item = (&str, &ServerOffer)> {
        self.servers.iter().map(|it| (it.name.as_str(), &it.lists.offer))
    }

    /// The server that a call goes to.
    pub fn server_of_call(&self, call: &ToolCall) -> Option<u64> {
        if call.name == READ_RESOURCE {
            let (server, _) = resource_of(&call.args, self.offers()).ok()?;
            return self.find_server(server).map(|it| it.server);
        }
        self.find_tool(&call.name).map(|it| it.server)
    }

    /// Its name, as the configuration has it.
    pub fn server_name_of_call(&self, call: &ToolCall) -> Option<&str> {
        let server = self.server_of_call(call)?;
        self.servers.iter().find(|it| it.server == server).map(|it| it.name.as_str())
    }

    /// The resource that it reads, and the server's number.
    pub fn resource_of_call(&self, call: &ToolCall) -> Option<(u64, String)> {
        let (server, uri) = resource_of(&call.args, self.offers()).ok().filter(|_| call.name == READ_RESOURCE)?;
        Some((self.find_server(server)?.server, uri.to_owned()))
    }

    /// The same of a question.
    pub fn resource_of_query(&self, query: &ServerQuery) -> Option<(u64, String)> {
        let ServerQueryKind::Resource { uri } = &query.what else { return None };
        Some((self.find_server(&query.server)?.server, uri.clone()))
    }

    pub async fn ask(&self, query: &ServerQuery, cancel: &CancellationToken) -> Result<Vec<Part>, String> {
        match self.find_server(&query.server) {
            Some(it) => it.connection.ask(&query.what, it.timeout, cancel).await,
            None => Err("it is not connected".to_owned()),
        }
    }

    /// The one line that people see of a call of castor's own tools of resources; `None`: it is of another tool.
    pub fn resource_title(&self, call: &ToolCall) -> Option<Result<String, ToolError>> {
        match call.name.as_str() {
            LIST_RESOURCES => Some(Ok("of MCP servers".to_owned())),
            READ_RESOURCE => Some(
                resource_of(&call.args, self.offers())
                    .map(|(server, uri)| format!("{uri} ({server} MCP)"))
                    .map_err(|why| ToolError::new("invalid_tool_params", why)),
            ),
            _ => None,
        }
    }

    /// Runs one of those tools; `None`: the call is of another one.
    pub async fn run_resource_tool(&self, call: &ToolCall, cancel: &CancellationToken) -> Option<ToolOutput> {
        match call.name.as_str() {
            LIST_RESOURCES => Some(describe_resources(&call.args, self.offers())),
            READ_RESOURCE => Some(self.read_resource(call, cancel).await),
            _ => None,
        }
    }

    async fn read_resource(&self, call: &ToolCall, cancel: &CancellationToken) -> ToolOutput {
        let failed = |kind: &str, why: String| ToolOutput::failed(ToolError::new(kind, why));
        let (server, uri) = match resource_of(&call.args, self.offers()) {
            Ok(it) => it,
            Err(why) => return failed("invalid_tool_params", why),
        };
        let what = ServerQueryKind::Resource { uri: uri.to_owned() };
        match self.ask(&ServerQuery { server: server.to_owned(), what }, cancel).await {
            Ok(content) => {
                let summary = Some(format!("Read {uri} ({server} MCP)"));
                ToolOutput { content, summary, ..ToolOutput::default() }
            }
            Err(why) => {
                failed("mcp_resource_error", format!("MCP server {server:?} does not give the resource {uri}: {why}"))
            }
        }
    }
}
