//! castor as an MCP client: the handshake, and what servers ask and tell it.
// The revision of 2026-07-28 deprecates roots and log messages; servers of today ask for them and send them.
#![allow(deprecated)]

use std::{error::Error, sync::Arc};

use rmcp::{
    ClientHandler, ClientLifecycleMode, ErrorData, Peer, RoleClient,
    model::{
        ClientConfig, ClientRequest, CreateMessageRequestParams, CreateMessageResult, CustomNotification,
        CustomRequest, CustomResult, ElicitRequestParams, ElicitResult, ErrorCode, Implementation, ListRootsResult,
        LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion,
        ResourceUpdatedNotificationParam, Root, RootsCapabilities, SamplingCapability, SetLevelRequest,
        SetLevelRequestParams,
    },
    service::{
        ClientInitializeError, NotificationContext, RequestContext, RunningService, RxJsonRpcMessage, TxJsonRpcMessage,
        serve_client_with_lifecycle,
    },
    transport::Transport,
};
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;

use super::{
    elicitation_call::ServerAsker,
    error::{StartError, innermost_cause, is_unauthorized},
    subscriptions::Subscriptions,
};
use crate::mcp::transport::line_limit::LineOverflow;
use castor_base::{file_uri, path::AbsPath, sampling::SAMPLING, terminal::ObeyedFindings, text};
use castor_hands::process::server_process::ServerProcess;

/// Queued progress reports; older ones are dropped.
const PROGRESS_QUEUE: usize = 64;
/// One message for the log, in characters.
const MAX_LOGGED: usize = 1_000;
const ELICIT: &str = "elicitation/create";
const ELICITED: &str = "notifications/elicitation/complete";

/// A connection that works, and what must live as long as it does.
pub(super) struct OpenConnection {
    pub(super) service: RunningService<RoleClient, Listener>,
    pub(super) process: Option<ServerProcess>,
    /// What was found at its start.
    pub(super) startup_findings: Option<ObeyedFindings>,
    /// Its process does what the user may, by an open gate.
    pub(super) is_outside: bool,
    /// Why the gate was closed.
    pub(super) refusal: Option<String>,
    /// Why the connection ended, where it was castor that ended it.
    pub(super) overflow: LineOverflow,
}

impl OpenConnection {
    /// Shakes hands over a transport, or asks a server without a handshake what it is. The error says why in one line.
    pub(super) async fn handshake<T>(
        transport: T,
        listener: Listener,
        process: Option<ServerProcess>,
    ) -> Result<Self, StartError>
    where
        T: Transport<RoleClient> + 'static,
    {
        let lifecycle = match listener.is_stateless {
            true => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] },
            false => ClientLifecycleMode::Initialize,
        };
        Self::open(transport, listener, process, lifecycle).await
    }

    /// Asks the server what it is, as the newest revision has it, and shakes hands with one that knows no such question.
    pub(super) async fn discover<T>(transport: T, listener: Listener) -> Result<Self, StartError>
    where
        T: Transport<RoleClient> + 'static,
    {
        let lifecycle = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::LATEST],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        };
        Self::open(transport, listener, None, lifecycle).await
    }

    async fn open<T>(
        transport: T,
        mut listener: Listener,
        process: Option<ServerProcess>,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Self, StartError>
    where
        T: Transport<RoleClient> + 'static,
    {
        listener.asking.closed = CancellationToken::new();
        let watched = WatchedTransport { transport, closed: listener.asking.closed.clone() };
        match serve_client_with_lifecycle(listener, watched, lifecycle).await {
            Ok(service) => {
                let found = process.as_ref().map(ServerProcess::startup_findings);
                let (is_outside, refusal, overflow) = (false, None, LineOverflow::default());
                Ok(Self { service, process, startup_findings: found, is_outside, refusal, overflow })
            }
            Err(it) if has_no_handshake(&it) => Err(StartError::NoHandshake(text::first_line(&it.to_string(), 300))),
            Err(it) => match process {
                // An answer of another form than a handshake's is a reason of its own.
                Some(process) if !is_form(&it) => Err(StartError::Gone(process.exit_reason().await)),
                _ => Err(connect_error(&it)),
            },
        }
    }

    pub(super) async fn failure_reason(self, why: StartError) -> StartError {
        match self.process {
            Some(it) if self.service.peer().is_transport_closed() => StartError::Gone(it.exit_reason().await),
            _ => why,
        }
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
    /// Something that it lists is another one.
    pub(super) changed: Arc<Notify>,
    pub(super) progress: broadcast::Sender<ProgressNotificationParam>,
    pub(super) asking: ServerAsker,
    /// Resources whose changes matter.
    pub(super) subscriptions: Subscriptions,
    /// The server knows no handshake: each request says all.
    is_stateless: bool,
    pub(super) roots: Arc<[AbsPath]>,
}

impl Listener {
    pub(super) fn new(asking: ServerAsker, roots: Arc<[AbsPath]>) -> Self {
        let (changed, progress) = (Arc::default(), broadcast::Sender::new(PROGRESS_QUEUE));
        Self { changed, progress, asking, subscriptions: Subscriptions::default(), is_stateless: false, roots }
    }

    /// The same for a server that knows no handshake.
    pub(super) fn stateless(&self) -> Self {
        Self { is_stateless: true, ..self.clone() }
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let mut res = ClientConfig::default();
        res.client_info = Implementation::new("castor", env!("CARGO_PKG_VERSION"));
        res.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        res.capabilities.elicitation = self.asking.capability();
        res.capabilities.sampling = self.asking.samples.then(SamplingCapability::default);
        // They are a session's from its beginning to its end: nothing changes that could be told.
        res.capabilities.roots = (!self.roots.is_empty()).then(RootsCapabilities::default);
        res
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        it: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.asking.ask(&serde_json::to_value(params).unwrap_or_default(), &it.ct).await
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        it: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.asking.sample(&serde_json::to_value(params).unwrap_or_default(), &it.ct).await
    }

    /// rmcp takes what is not quite such a request for something else: it is told what is wrong with it.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        it: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        let params = request.params.unwrap_or_default();
        let result = match request.method.as_str() {
            ELICIT => serde_json::to_value(self.asking.ask(&params, &it.ct).await?),
            SAMPLING => serde_json::to_value(self.asking.sample(&params, &it.ct).await?),
            _ => return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None)),
        };
        Ok(CustomResult(result.unwrap_or_default()))
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

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(self.roots.iter().map(root).collect()))
    }

    async fn on_logging_message(&self, it: LoggingMessageNotificationParam, from: NotificationContext<RoleClient>) {
        let info = from.peer.peer_info();
        let name = info.as_ref().and_then(|it| it.server_info.as_ref()).map_or("", |it| it.name.as_str());
        log_message(name, &it);
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_resource_updated(&self, it: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        if self.subscriptions.has(&it.uri) {
            self.asking.report_update(it.uri).await;
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

/// Asks the server for the messages that the diagnostic log takes. One that does not know how sends what it likes.
pub(super) async fn set_log_level(peer: &Peer<RoleClient>) {
    let logs = peer.peer_info().is_some_and(|it| it.capabilities.logging.is_some());
    let level = match () {
        () if tracing::enabled!(tracing::Level::DEBUG) => LoggingLevel::Debug,
        () if tracing::enabled!(tracing::Level::INFO) => LoggingLevel::Info,
        () => LoggingLevel::Warning,
    };
    let request = ClientRequest::SetLevelRequest(SetLevelRequest::new(SetLevelRequestParams::new(level)));
    if logs && let Err(why) = peer.send_request(request).await {
        tracing::debug!("an MCP server takes no level for its messages: {why}");
    }
}

/// A folder of the session, as servers are told of it.
pub(super) fn root(path: &AbsPath) -> Root {
    let root = Root::new(file_uri::from_path(path.as_path()));
    match path.as_path().file_name() {
        Some(name) => root.with_name(name.to_string_lossy()),
        None => root,
    }
}

/// Into the diagnostic log: what a server reports is not for the model.
fn log_message(server: &str, it: &LoggingMessageNotificationParam) {
    let data = it.data.as_str().map_or_else(|| it.data.to_string(), str::to_owned);
    let (data, server) = (text::first_line(&data, MAX_LOGGED), text::first_line(server, 100));
    match it.level {
        LoggingLevel::Debug => tracing::debug!("MCP server {server:?} says: {data}"),
        LoggingLevel::Info | LoggingLevel::Notice => tracing::info!("MCP server {server:?} says: {data}"),
        _ => tracing::warn!("MCP server {server:?} warns: {data}"),
    }
}

/// Tells whether the server speaks a revision from which on there is none.
fn has_no_handshake(error: &ClientInitializeError) -> bool {
    let codes = [
        ErrorCode::METHOD_NOT_FOUND,
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
        // A handshake has none of the headers and words that each request has to have there.
        ErrorCode::HEADER_MISMATCH,
        ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY,
    ];
    matches!(error, ClientInitializeError::JsonRpcError(it) if codes.contains(&it.code))
}

/// Tells whether the server answered, but not as a handshake is answered.
fn is_form(error: &ClientInitializeError) -> bool {
    use ClientInitializeError as It;
    let is_closed = matches!(error, It::ConnectionClosed(_) | It::TransportError { .. } | It::Cancelled);
    !is_closed
}

/// Why the handshake failed.
fn connect_error(error: &ClientInitializeError) -> StartError {
    if error.is_authorization_required() {
        return StartError::Unauthorized("it wants authorization".to_owned());
    }
    let cause: &(dyn Error + 'static) = match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => return connect_error(fallback),
        ClientInitializeError::TransportError { error, .. } => error.error.as_ref(),
        ClientInitializeError::JsonRpcError(it) => return StartError::Gone(text::first_line(&it.message, 300)),
        other => other,
    };
    let (wants_credential, why) = (is_unauthorized(cause), innermost_cause(cause));
    if wants_credential { StartError::Unauthorized(why) } else { StartError::Gone(why) }
}
