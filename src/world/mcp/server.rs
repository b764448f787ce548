//! One MCP server from its start to its end.

use std::{sync::Arc, time::Duration};

use rmcp::{
    ClientHandler, ErrorData, Peer, RoleClient,
    model::{
        ClientConfig, ClientRequest, CustomNotification, CustomRequest, CustomResult, ElicitRequestParams,
        ElicitResult, ErrorCode, Implementation, ListToolsRequest, PaginatedRequestParams, ProgressNotificationParam,
        ProtocolVersion, ServerResult,
    },
    service::{
        NotificationContext, RequestContext, RunningService, RxJsonRpcMessage, ServiceError, TxJsonRpcMessage,
        serve_client,
    },
    transport::Transport,
};
use serde_json::Value;
use tokio::{
    sync::{Notify, broadcast},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    Connection, EventSink, HostHandles, ServerEvent, ServerIdentity, ServerTool,
    call::ProcessHold,
    catalog,
    connection::{MAX_RESTARTS, open_link},
    elicitation_call::ServerAsker,
    sandbox_findings::PendingFindings,
    stdio::{self, Process},
    web,
};
use crate::base::{mcp::McpLink, terminal::ObeyedFindings};

/// Pages of one listing: a server that never comes to an end is cut off.
const MAX_PAGES: usize = 100;
/// Tools of one server: beyond that they would crowd everything else out of the model's context.
const MAX_TOOLS: usize = 512;
/// Bursts of "my tools changed" are one listing.
const SETTLE: Duration = Duration::from_millis(100);
/// Queued progress reports; older ones are dropped.
const PROGRESS_QUEUE: usize = 64;

const ELICIT: &str = "elicitation/create";
const ELICITED: &str = "notifications/elicitation/complete";

/// A connection that works, and what must live as long as it does.
pub(super) struct OpenConnection {
    service: RunningService<RoleClient, Listener>,
    process: Option<Process>,
    /// What was found at its start.
    startup_findings: Option<ObeyedFindings>,
}

/// Runs a server until it is gone for good or `stop` says so. Then its input is closed and its processes end.
pub async fn run_server(launch: ServerIdentity, doors: HostHandles, stop: CancellationToken, tell: EventSink) {
    // A server that is still starting is dropped with the future, and its process with it.
    stop.run_until_cancelled(run_with_restarts(&launch, &doors, &tell)).await;
}

/// One life after the other; why it is gone for good is told last.
async fn run_with_restarts(launch: &ServerIdentity, doors: &HostHandles, tell: &EventSink) {
    let listener = Listener::new(ServerAsker::new(doors.elicitation, tell.clone()));
    let (mut open, tools) = match start(launch, doors, listener.clone()).await {
        Ok(it) => it,
        Err(why) => return tell(ServerEvent::Lost(why)).await,
    };
    let (mut plug, line) = open_link(open.service.peer().clone());
    let confined = launch.confined.clone();
    let held = ProcessHold { confined, findings: PendingFindings::default() };
    let connection = Connection::new(line, listener.progress.clone(), listener.asking.n_open.subscribe(), held.clone());
    let mut ready = tools;
    let lost = loop {
        open.startup_findings.take().into_iter().for_each(|it| held.findings.add(&it));
        tell(ServerEvent::Ready { connection: connection.clone(), tools: ready.clone() }).await;
        let why = open.run_until_gone(&listener.changed, launch.timeout, ready, tell).await;
        plug.mark_down(&why);
        if !plug.may_restart() {
            break format!("{why}, and it was started again {MAX_RESTARTS} times");
        }
        tell(ServerEvent::Down(why.clone())).await;
        plug.wait_until_wanted().await;
        (open, ready) = match start(launch, doors, listener.clone()).await {
            Ok(it) => it,
            Err(again) => break format!("{why}; it was started again, but {again}"),
        };
        plug.mark_up(open.service.peer().clone());
    };
    plug.close(&lost);
    tell(ServerEvent::Lost(lost)).await;
}

async fn start(
    launch: &ServerIdentity,
    doors: &HostHandles,
    listener: Listener,
) -> Result<(OpenConnection, Vec<ServerTool>), String> {
    let starting = async {
        let open = match &launch.link {
            McpLink::Stdio { .. } => stdio::open(launch, &doors.groups, listener).await,
            McpLink::Web { url, headers, speech } => web::open(url, headers, *speech, &doors.http, listener).await,
        }?;
        let tools = match list_tools(open.service.peer()).await {
            Ok(tools) => tools,
            Err(why) => return Err(open.failure_reason(why).await),
        };
        Ok((open, tools))
    };
    match timeout(launch.timeout, starting).await {
        Ok(started) => started,
        Err(_) => Err(format!("it did not answer within {} s", launch.timeout.as_secs_f64())),
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

async fn list_tools(peer: &Peer<RoleClient>) -> Result<Vec<ServerTool>, String> {
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
            Err(it) => return Err(format!("its tools could not be listed: {it}")),
        };
        let (tools, next) = catalog::page(&result);
        res.extend(tools);
        cursor = next;
        if cursor.is_none() || res.len() >= MAX_TOOLS {
            break;
        }
    }
    res.truncate(MAX_TOOLS);
    Ok(res)
}

/// As JSON: rmcp's types take a result for another one, or refuse it whole, where a server is a little off.
pub(super) fn result_json(result: &ServerResult) -> Value {
    serde_json::to_value(result).unwrap_or_default()
}

impl OpenConnection {
    /// Follows its tools until it is gone; returns why.
    async fn run_until_gone(
        self,
        changed: &Notify,
        limit: Duration,
        tools: Vec<ServerTool>,
        tell: &EventSink,
    ) -> String {
        let Self { service, mut process, startup_findings: _ } = self;
        let peer = service.peer().clone();
        tokio::select! {
            _ = service.waiting() => (),
            () = wait_for_exit(process.as_mut()) => (),
            () = follow_tools(&peer, changed, limit, tools, tell) => (),
        }
        match process {
            Some(it) => it.exit_reason().await,
            None => "the connection was closed".to_owned(),
        }
    }

    /// Shakes hands over a transport. The error says why in one line.
    pub(super) async fn handshake<T>(
        transport: T,
        mut listener: Listener,
        process: Option<Process>,
    ) -> Result<Self, String>
    where
        T: Transport<RoleClient> + 'static,
    {
        listener.asking.closed = CancellationToken::new();
        let watched = WatchedTransport { transport, closed: listener.asking.closed.clone() };
        match serve_client(listener, watched).await {
            Ok(service) => {
                let found = process.as_ref().map(Process::startup_findings);
                Ok(Self { service, process, startup_findings: found })
            }
            Err(it) => match process {
                Some(process) => Err(process.exit_reason().await),
                None => Err(web::connect_error(&it)),
            },
        }
    }

    async fn failure_reason(self, why: String) -> String {
        match self.process {
            Some(it) if self.service.peer().is_transport_closed() => it.exit_reason().await,
            _ => why,
        }
    }
}

/// Never, if castor does not run the server.
async fn wait_for_exit(process: Option<&mut Process>) {
    match process {
        Some(it) => it.wait_for_exit().await,
        None => std::future::pending().await,
    }
}

/// A transport that says when nothing more will come. rmcp says so only after every question was answered, or some
/// seconds later.
struct WatchedTransport<T> {
    transport: T,
    closed: CancellationToken,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for WatchedTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.transport.receive().await;
        if message.is_none() {
            self.closed.cancel();
        }
        message
    }

    fn close(&mut self) -> impl Future<Output = Result<(), T::Error>> + Send {
        self.transport.close()
    }
}

/// Handles notifications and requests of servers.
#[derive(Clone)]
pub(super) struct Listener {
    changed: Arc<Notify>,
    progress: broadcast::Sender<ProgressNotificationParam>,
    asking: ServerAsker,
}

impl Listener {
    fn new(asking: ServerAsker) -> Self {
        Self { changed: Arc::default(), progress: broadcast::Sender::new(PROGRESS_QUEUE), asking }
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let mut res = ClientConfig::default();
        res.client_info = Implementation::new("castor", env!("CARGO_PKG_VERSION"));
        res.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        res.capabilities.elicitation = self.asking.capability();
        res
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        it: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.asking.ask(&serde_json::to_value(params).unwrap_or_default(), &it.ct).await
    }

    /// rmcp takes what is not quite an elicitation for something else: it is told what is wrong with it.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        it: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != ELICIT {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None));
        }
        let result = self.asking.ask(&request.params.unwrap_or_default(), &it.ct).await?;
        Ok(CustomResult(serde_json::to_value(result).unwrap_or_default()))
    }

    async fn on_custom_notification(&self, it: CustomNotification, _: NotificationContext<RoleClient>) {
        if it.method == ELICITED {
            self.asking.report_completion(it.params.as_ref()).await;
        }
    }

    async fn on_progress(&self, it: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        // Nobody listens while no call is under way.
        _ = self.progress.send(it);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}
