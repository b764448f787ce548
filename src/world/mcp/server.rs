//! One MCP server from its start to its end.

use std::time::Duration;

use rmcp::{
    Peer, RoleClient,
    model::{ClientRequest, ErrorCode, ListToolsRequest, PaginatedRequestParams, ServerPeerInfo, SubscriptionFilter},
    service::ServiceError,
};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    Connection, EventSink, HostHandles, ServerEvent, ServerIdentity, ServerTool,
    call::ProcessHold,
    catalog,
    client::{Listener, OpenConnection},
    client_transport::ClientTransport,
    connection::{MAX_RESTARTS, RENEWED, open_link},
    elicitation_call::ServerAsker,
    error::StartError,
    output::result_json,
    sandbox_findings::PendingFindings,
    stdio, web,
};
use crate::{
    base::{elicitation::ElicitationSupport, mcp::McpLink},
    world::{http, process::server_process::ServerProcess},
};

/// Pages of one listing: a server that never comes to an end is cut off.
const MAX_PAGES: usize = 100;
/// Tools of one server: beyond that they would crowd everything else out of the model's context.
const MAX_TOOLS: usize = 512;
/// Bursts of "my tools changed" are one listing.
const SETTLE: Duration = Duration::from_millis(100);

/// Runs a server until it is gone for good or `stop` says so. Then its input is closed and its processes end.
pub async fn run_server(launch: ServerIdentity, doors: HostHandles, stop: CancellationToken, tell: EventSink) {
    // A server that is still starting is dropped with the future, and its process with it.
    stop.run_until_cancelled(run_with_restarts(&launch, &doors, &tell)).await;
}

/// One life after the other; why it is gone for good is told last.
async fn run_with_restarts(launch: &ServerIdentity, doors: &HostHandles, tell: &EventSink) {
    let mut launch = launch.clone();
    let listener = Listener::new(ServerAsker::new(elicitation(&launch.link, doors), tell.clone()));
    let (mut open, tools) = match start(&launch, doors, listener.clone(), tell).await {
        Ok(it) => it,
        Err(why) => return tell(loss(why.to_string(), &why)).await,
    };
    let (mut plug, line) = open_link(open.service.peer().clone());
    let confined = launch.confined.clone();
    let held = ProcessHold { confined, findings: PendingFindings::default() };
    let asks = listener.asking.n_open.subscribe();
    let connection = Connection::new(line, listener.progress.clone(), asks, held.clone(), address(&launch.link));
    let mut ready = tools;
    let lost = loop {
        open.startup_findings.take().into_iter().for_each(|it| held.findings.add(&it));
        tell(ServerEvent::Ready { connection: connection.clone(), tools: ready.clone() }).await;
        let gone = tokio::select! {
            why = run_until_gone(open, &listener.changed, launch.timeout, ready, tell) => Some(why),
            () = plug.wait_until_renewed() => None,
        };
        if let Some(why) = &gone {
            plug.mark_down(why);
            if !plug.may_restart() {
                break ServerEvent::Lost(format!("{why}, and it was started again {MAX_RESTARTS} times"));
            }
            tell(ServerEvent::Down(why.clone())).await;
            plug.wait_until_wanted().await;
        }
        if let Some(link) = plug.take_link() {
            launch.link = link;
        }
        (open, ready) = match start(&launch, doors, listener.clone(), tell).await {
            Ok(it) => it,
            Err(again) => {
                let why = gone.as_deref().unwrap_or(RENEWED);
                break loss(format!("{why}; it was started again, but {again}"), &again);
            }
        };
        plug.mark_up(open.service.peer().clone());
    };
    if let ServerEvent::Lost(why) | ServerEvent::Unauthorized(why) = &lost {
        plug.close(why);
    }
    tell(lost).await;
}

/// A server in the client has no way to ask: it shows its own forms.
fn elicitation(link: &McpLink, doors: &HostHandles) -> ElicitationSupport {
    match link {
        McpLink::Client { .. } => ElicitationSupport::default(),
        McpLink::Stdio { .. } | McpLink::Web { .. } => doors.elicitation,
    }
}

fn loss(why: String, error: &StartError) -> ServerEvent {
    match error {
        StartError::Unauthorized(_) | StartError::Status(401) => ServerEvent::Unauthorized(why),
        _ => ServerEvent::Lost(why),
    }
}

/// Where a user gets another credential for it.
fn address(link: &McpLink) -> Option<String> {
    match link {
        McpLink::Web { url, .. } => http::origin_of(url),
        McpLink::Stdio { .. } | McpLink::Client { .. } => None,
    }
}

async fn start(
    launch: &ServerIdentity,
    doors: &HostHandles,
    listener: Listener,
    tell: &EventSink,
) -> Result<(OpenConnection, Vec<ServerTool>), StartError> {
    let starting = async {
        let open = match &launch.link {
            McpLink::Stdio { .. } => stdio::open(launch, &doors.groups, listener).await,
            McpLink::Web { url, headers, speech } => web::open(url, headers, *speech, &doors.http, listener).await,
            McpLink::Client { .. } => OpenConnection::discover(ClientTransport::new(tell.clone()), listener).await,
        }?;
        let tools = match list_tools(open.service.peer()).await {
            Ok(tools) => tools,
            Err(why) => return Err(open.failure_reason(why).await),
        };
        Ok((open, tools))
    };
    match timeout(launch.timeout, starting).await {
        Ok(started) => started,
        Err(_) => Err(StartError::Silent(launch.timeout.as_secs_f64())),
    }
}

/// Lists again whenever the server says that its tools changed. Never ends by itself.
async fn follow_tools(
    peer: &Peer<RoleClient>,
    changed: &Notify,
    limit: Duration,
    mut known: Vec<ServerTool>,
    tell: &EventSink,
) {
    loop {
        changed.notified().await;
        sleep(SETTLE).await;
        match timeout(limit, list_tools(peer)).await {
            Ok(Ok(tools)) if tools != known => {
                known.clone_from(&tools);
                tell(ServerEvent::ToolsChanged(tools)).await;
            }
            Ok(Ok(_)) => (),
            Ok(Err(why)) => tracing::warn!("an MCP server's changed tools could not be listed: {why}"),
            Err(_) => tracing::warn!("an MCP server did not list its changed tools in time"),
        }
    }
}

/// A server without a handshake tells of changes where it is asked to. Never ends by itself.
async fn listen_for_changes(peer: &Peer<RoleClient>, changed: &Notify) {
    let tells = |it: &ServerPeerInfo| it.capabilities.tools.as_ref().is_some_and(|it| it.list_changed == Some(true));
    if peer.peer_info().is_some_and(|it| !it.protocol_version.has_initialize() && tells(&it)) {
        match peer.listen(SubscriptionFilter::builder().tools_list_changed().build()).await {
            Ok(mut changes) => {
                while let Ok(Some(_)) = changes.next().await {
                    changed.notify_one();
                }
            }
            Err(why) => tracing::debug!("an MCP server does not tell of changed tools: {why}"),
        }
    }
    std::future::pending().await
}

async fn list_tools(peer: &Peer<RoleClient>) -> Result<Vec<ServerTool>, StartError> {
    let has_tools = peer.peer_info().is_none_or(|it| it.capabilities.tools.is_some());
    if !has_tools {
        return Ok(Vec::new());
    }
    let (mut res, mut cursor) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let request =
            ListToolsRequest { method: Default::default(), params: Some(params), extensions: Default::default() };
        let result = match peer.send_request(ClientRequest::ListToolsRequest(request)).await {
            Ok(it) => result_json(&it),
            Err(ServiceError::McpError(it)) if it.code == ErrorCode::METHOD_NOT_FOUND => break,
            Err(it) => return Err(StartError::Gone(format!("its tools could not be listed: {it}"))),
        };
        let (tools, next) = catalog::page(&result)?;
        res.extend(tools);
        cursor = next;
        if cursor.is_none() || res.len() >= MAX_TOOLS {
            break;
        }
    }
    res.truncate(MAX_TOOLS);
    Ok(res)
}

/// Follows its tools until it is gone; returns why.
async fn run_until_gone(
    connection: OpenConnection,
    changed: &Notify,
    limit: Duration,
    tools: Vec<ServerTool>,
    tell: &EventSink,
) -> String {
    let OpenConnection { service, mut process, startup_findings: _ } = connection;
    let peer = service.peer().clone();
    tokio::select! {
        _ = service.waiting() => (),
        () = wait_for_exit(process.as_mut()) => (),
        () = listen_for_changes(&peer, changed) => (),
        () = follow_tools(&peer, changed, limit, tools, tell) => (),
    }
    match process {
        Some(it) => it.exit_reason().await,
        None => "the connection was closed".to_owned(),
    }
}

/// Never, if castor does not run the server.
async fn wait_for_exit(process: Option<&mut ServerProcess>) {
    match process {
        Some(it) => it.wait_for_exit().await,
        None => std::future::pending().await,
    }
}
