//! castor as an MCP client: the handshake, and what servers ask and tell it.

use std::{error::Error, sync::Arc};

use rmcp::{
    ClientHandler, ClientLifecycleMode, ErrorData, RoleClient,
    model::{
        ClientConfig, CustomNotification, CustomRequest, CustomResult, ElicitRequestParams, ElicitResult, ErrorCode,
        Implementation, ProgressNotificationParam, ProtocolVersion,
    },
    service::{
        ClientInitializeError, NotificationContext, RequestContext, RunningService, RxJsonRpcMessage, TxJsonRpcMessage,
        serve_client_with_lifecycle,
    },
    transport::{Transport, streamable_http_client::StreamableHttpError},
};
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;

use super::{
    elicitation_call::ServerAsker,
    error::{StartError, is_unauthorized},
};
use crate::{
    base::{terminal::ObeyedFindings, text},
    world::process::server_process::ServerProcess,
};

/// Queued progress reports; older ones are dropped.
const PROGRESS_QUEUE: usize = 64;
const ELICIT: &str = "elicitation/create";
const ELICITED: &str = "notifications/elicitation/complete";

/// A connection that works, and what must live as long as it does.
pub(super) struct OpenConnection {
    pub(super) service: RunningService<RoleClient, Listener>,
    pub(super) process: Option<ServerProcess>,
    /// What was found at its start.
    pub(super) startup_findings: Option<ObeyedFindings>,
}

impl OpenConnection {
    /// Shakes hands over a transport. The error says why in one line.
    pub(super) async fn handshake<T>(
        transport: T,
        listener: Listener,
        process: Option<ServerProcess>,
    ) -> Result<Self, StartError>
    where
        T: Transport<RoleClient> + 'static,
    {
        Self::open(transport, listener, process, ClientLifecycleMode::Initialize).await
    }

    /// Asks the server what it is, and shakes hands with one that knows no such question.
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
                Ok(Self { service, process, startup_findings: found })
            }
            Err(it) => match process {
                Some(process) => Err(StartError::Gone(process.exit_reason().await)),
                None => Err(connect_error(&it)),
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
    pub(super) changed: Arc<Notify>,
    pub(super) progress: broadcast::Sender<ProgressNotificationParam>,
    pub(super) asking: ServerAsker,
}

impl Listener {
    pub(super) fn new(asking: ServerAsker) -> Self {
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

/// Why the handshake failed, in one line: the innermost cause says most.
fn connect_error(error: &ClientInitializeError) -> StartError {
    if error.is_authorization_required() {
        let hint = "it wants authorization; castor cannot do OAuth for MCP servers yet, so set a header with a token";
        return StartError::Unauthorized(hint.to_owned());
    }
    let mut deepest: &dyn Error = match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => return connect_error(fallback),
        ClientInitializeError::TransportError { error, .. } => error.error.as_ref(),
        other => other,
    };
    let wants_credential = is_unauthorized(deepest);
    // This one does not name its cause as such.
    if let Some(StreamableHttpError::Client(it)) = deepest.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        deepest = it;
    }
    while let Some(next) = deepest.source() {
        deepest = next;
    }
    let why = text::first_line(&deepest.to_string(), 300);
    if wants_credential { StartError::Unauthorized(why) } else { StartError::Gone(why) }
}
