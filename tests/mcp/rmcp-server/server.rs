//! An MCP server on rmcp's newest line, on HTTP: `stateless` speaks 2026-07-28 alone, `both` also the revisions before.
//! It prints its port, and runs until it is killed.

use std::borrow::Cow;

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, InputRequiredResult,
        ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::json;

#[derive(Clone)]
struct Server {
    is_stateless: bool,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("castor-rmcp-server", "1"))
            .with_instructions("Say the revision when you are asked.")
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        match self.is_stateless {
            true => Cow::Borrowed(&[ProtocolVersion::V_2026_07_28]),
            false => Cow::Borrowed(&[ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28]),
        }
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        let schema = schema.as_object().cloned().unwrap_or_default();
        let echo = Tool::new("echo", "Says the text, and the revision.", schema.clone());
        Ok(ListToolsResult::with_all_items(vec![echo, Tool::new("ask", "Asks first.", schema)]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name == "ask" && request.input_responses.is_none() {
            let question =
                json!({"mode": "form", "message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}});
            let wanted = json!({"resultType": "input_required", "requestState": "mine",
                "inputRequests": {"sure": {"method": "elicitation/create", "params": question}}});
            let wanted: InputRequiredResult =
                serde_json::from_value(wanted).map_err(|it| ErrorData::internal_error(it.to_string(), None))?;
            return Ok(wanted.into());
        }
        let text = match (request.input_responses, request.request_state) {
            (Some(it), Some(state)) => Some(format!("{state} {}", json!(it))),
            _ => request.arguments.as_ref().and_then(|it| it.get("text")).and_then(|it| it.as_str()).map(str::to_owned),
        };
        let revision = context.protocol_version().map_or_else(|| "none".to_owned(), |it| it.to_string());
        let said = format!("echo: {} by {revision}", text.unwrap_or_default());
        Ok(CallToolResult::success(vec![ContentBlock::text(said)]).into())
    }
}

#[tokio::main]
async fn main() {
    let is_stateless = std::env::args().nth(1).as_deref() == Some("stateless");
    let service: StreamableHttpService<Server, LocalSessionManager> = StreamableHttpService::new(
        move || Ok(Server { is_stateless }),
        Default::default(),
        StreamableHttpServerConfig::default(),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("no port");
    println!("{}", listener.local_addr().expect("no address").port());
    let router = axum::Router::new().nest_service("/mcp", service);
    axum::serve(listener, router).await.expect("no server");
}
