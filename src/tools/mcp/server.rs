//! One MCP server from its start to its end.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    Connection, EventSink, HostHandles, ServerEvent, ServerIdentity, ServerOutage, auth,
    call::ProcessHold,
    catalog::ServerLists,
    client::{Listener, OpenConnection, set_log_level},
    connection::{ConnectionGuard, MAX_WHY, RENEWED, open_link},
    elicitation_call::ServerAsker,
    error::StartError,
    listing::{follow_lists, list_all, listen_for_changes},
    restart::{NextTry, Restarts},
    sandbox_findings::PendingFindings,
};
use crate::mcp::transport::{client_transport::ClientTransport, line_limit::TOO_LONG, stdio, web};
use castor_base::{elicitation::ElicitationSupport, held_program::HoldReason, mcp::McpLink, text};
use castor_hands::{http, process::server_process::ServerProcess};

/// Runs a server until it is gone for good or `stop` says so. Then its input is closed and its processes end.
pub async fn run_server(launch: ServerIdentity, doors: HostHandles, stop: CancellationToken, tell: EventSink) {
    let tell: EventSink = Arc::new(move |event| tell(in_visible_words(event)));
    // A server that is still starting is dropped with the future, and its process with it.
    stop.run_until_cancelled(run_with_restarts(&launch, &doors, &tell)).await;
}

/// Why a server that was tried does not come up.
pub struct StartFailure {
    /// In one line for people.
    pub why: String,
    /// It wants another credential than castor has.
    pub is_unauthorized: bool,
}

/// Starts a server once beside those of sessions, and ends it: what it lists. It may ask neither the user nor a model.
///
/// # Errors
/// Why it does not come up.
pub async fn try_server(mut launch: ServerIdentity, mut doors: HostHandles) -> Result<ServerLists, StartFailure> {
    doors.elicitation = ElicitationSupport::default();
    launch.samples = false;
    // Nobody waits for what it says otherwise.
    let tell: EventSink = Arc::new(|_| Box::pin(std::future::ready(())));
    let asking = ServerAsker::new(doors.elicitation, launch.samples, tell.clone());
    let listener = Listener::new(asking, launch.roots.clone());
    match start(&launch, &doors, listener, &tell).await {
        Ok((_open, lists)) => Ok(lists),
        Err(error) => {
            let why = text::visible_line(&error.to_string(), MAX_WHY);
            Err(StartFailure { why, is_unauthorized: wants_credential(&error) })
        }
    }
}

/// Reasons have words of the server's and of its authorization server's in them.
fn in_visible_words(event: ServerEvent) -> ServerEvent {
    let plain = |why: &str| text::visible_line(why, MAX_WHY);
    match event {
        ServerEvent::Lost(why) => ServerEvent::Lost(plain(&why)),
        ServerEvent::Unauthorized(why) => ServerEvent::Unauthorized(plain(&why)),
        ServerEvent::Down(it) => ServerEvent::Down(ServerOutage { why: plain(&it.why), ..it }),
        other => other,
    }
}

/// One life after the other; why it is gone for good is told last.
async fn run_with_restarts(launch: &ServerIdentity, doors: &HostHandles, tell: &EventSink) {
    let mut launch = launch.clone();
    let asking = ServerAsker::new(elicitation(&launch.link, doors), launch.samples, tell.clone());
    let listener = Listener::new(asking, launch.roots.clone());
    let mut restarts = Restarts::new(launch.max_restarts, Instant::now());
    let (mut open, mut ready) = match first_start(&launch, doors, &listener, (&mut restarts, tell)).await {
        Ok(it) => it,
        Err(lost) => return tell(lost).await,
    };
    let (mut plug, line) = open_link(open.service.peer().clone());
    let confined = launch.confined.clone();
    let held = ProcessHold { confined, gate: launch.gate.clone(), findings: PendingFindings::default() };
    let asks = listener.asking.n_open.subscribe();
    let connection = Connection::new(line, listener.progress.clone(), asks, held.clone(), address(&launch.link))
        .with_login(doors.login_target(&launch.link))
        .with_listener(&listener);
    let lost = loop {
        open.startup_findings.take().into_iter().for_each(|it| held.findings.add(&it));
        if let Some(gate) = launch.gate.as_ref().filter(|_| open.refusal.is_some()) {
            tell(ServerEvent::Held(HoldReason::Unseen(gate.roots.clone()))).await;
        }
        held.findings.note_start(open.is_outside, open.refusal.take());
        let trace = open.process.as_ref().map(ServerProcess::trace).unwrap_or_default();
        held.findings.follow(trace.clone());
        let confined = launch.confined.clone().filter(|_| !open.is_outside);
        tell(ServerEvent::Ready { connection: connection.clone(), lists: Box::new(ready.clone()) }).await;
        let gone = tokio::select! {
            why = run_until_gone(open, &listener.changed, launch.timeout, ready, tell) => Some(why),
            () = plug.wait_until_renewed() => None,
        };
        if let (Some(why), Some(it)) = (&gone, &confined) {
            listener.asking.report_lack(trace.take_lack(it, Some(why))).await;
        }
        let mut outage = Outage { plug: &mut plug, restarts: &mut restarts, tell };
        (open, ready) = match outage.restart(&mut launch, gone, doors, &listener).await {
            Ok(it) => it,
            Err(lost) => break lost,
        };
        restarts.came_up(Instant::now());
        listener.subscriptions.renew(open.service.peer()).await;
        plug.mark_up(open.service.peer().clone());
    };
    if let ServerEvent::Lost(why) | ServerEvent::Unauthorized(why) = &lost {
        plug.close(why);
    }
    tell(lost).await;
}

/// Starts a server that was never there, as often as one that was.
///
/// # Errors
/// The news that it could not be reached.
async fn first_start(
    launch: &ServerIdentity,
    doors: &HostHandles,
    listener: &Listener,
    (restarts, tell): (&mut Restarts, &EventSink),
) -> Result<(OpenConnection, ServerLists), ServerEvent> {
    loop {
        let error = match start(launch, doors, listener.clone(), tell).await {
            Ok(it) => {
                restarts.came_up(Instant::now());
                return Ok(it);
            }
            Err(it) => it,
        };
        let why = error.to_string();
        if launch.max_restarts == 0 || error.is_final() || matches!(error, StartError::Absent { .. }) {
            return Err(loss(why, &error));
        }
        let Some(next) = restarts.next(Instant::now()) else {
            return Err(ServerEvent::Lost(format!("{why}, {}", restarts.tries_in_words())));
        };
        let pause = next.at.saturating_duration_since(Instant::now());
        tell(ServerEvent::Down(ServerOutage { why, pause, number: next.number })).await;
        sleep_until(next.at).await;
    }
}

/// The time between two lives of a server.
struct Outage<'a> {
    plug: &'a mut ConnectionGuard,
    restarts: &'a mut Restarts,
    tell: &'a EventSink,
}

impl Outage<'_> {
    /// Starts the server again, as often as it may be. `gone`: why it ended; `None`: it is to use another link.
    ///
    /// # Errors
    /// The news that it is gone for good.
    async fn restart(
        &mut self,
        launch: &mut ServerIdentity,
        gone: Option<String>,
        doors: &HostHandles,
        listener: &Listener,
    ) -> Result<(OpenConnection, ServerLists), ServerEvent> {
        let cause = gone.clone().unwrap_or_else(|| RENEWED.to_owned());
        let mut why = gone;
        loop {
            if let Some(why) = &why {
                let next = self.restarts.next(Instant::now()).ok_or_else(|| self.end(why))?;
                self.wait(why, next).await;
            }
            if let Some(link) = self.plug.take_link() {
                launch.link = link;
            }
            match start(launch, doors, listener.clone(), self.tell).await {
                Ok(it) => return Ok(it),
                Err(again) => {
                    let said = format!("{cause}; it was started again, but {again}");
                    if again.is_final() {
                        return Err(loss(said, &again));
                    }
                    why = Some(said);
                }
            }
        }
    }

    fn end(&self, why: &str) -> ServerEvent {
        ServerEvent::Lost(format!("{why}, {}", self.restarts.tries_in_words()))
    }

    /// Until the next try, or until there is another way to reach it.
    async fn wait(&mut self, why: &str, next: NextTry) {
        self.plug.mark_down(why, next.at);
        let pause = next.at.saturating_duration_since(Instant::now());
        (self.tell)(ServerEvent::Down(ServerOutage { why: why.to_owned(), pause, number: next.number })).await;
        tokio::select! {
            () = sleep_until(next.at) => (),
            () = self.plug.wait_until_renewed() => (),
        }
    }
}

/// A server in the client has no way to ask: it shows its own forms.
fn elicitation(link: &McpLink, doors: &HostHandles) -> ElicitationSupport {
    match link {
        McpLink::Client { .. } => ElicitationSupport::default(),
        McpLink::Stdio { .. } | McpLink::Web { .. } => doors.elicitation,
    }
}

fn loss(why: String, error: &StartError) -> ServerEvent {
    if wants_credential(error) { ServerEvent::Unauthorized(why) } else { ServerEvent::Lost(why) }
}

fn wants_credential(error: &StartError) -> bool {
    matches!(error, StartError::Unauthorized(_) | StartError::NeedsScopes(_) | StartError::Status(401))
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
) -> Result<(OpenConnection, ServerLists), StartError> {
    let starting = async {
        let open = match open(launch, doors, listener.clone(), tell).await {
            Err(StartError::NoHandshake(_)) => open(launch, doors, listener.stateless(), tell).await,
            other => other,
        }?;
        let lists = match list_all(open.service.peer()).await {
            Ok(lists) => lists,
            Err(why) => {
                if let (StartError::NeedsScopes(scopes), Some(it)) = (&why, doors.login_target(&launch.link)) {
                    auth::want_scopes(&it, scopes);
                }
                return Err(open.failure_reason(why).await);
            }
        };
        set_log_level(open.service.peer()).await;
        Ok((open, lists))
    };
    match timeout(launch.timeout, starting).await {
        Ok(started) => started,
        Err(_) => Err(StartError::Silent(launch.timeout.as_secs_f64())),
    }
}

async fn open(
    launch: &ServerIdentity,
    doors: &HostHandles,
    listener: Listener,
    tell: &EventSink,
) -> Result<OpenConnection, StartError> {
    match &launch.link {
        McpLink::Stdio { .. } => stdio::open(launch, &doors.groups, listener).await,
        McpLink::Web { url, headers, speech, oauth: _ } => {
            web::open(url, (headers, *speech), &doors.http, doors.login_target(&launch.link), listener).await
        }
        McpLink::Client { .. } => OpenConnection::discover(ClientTransport::new(tell.clone()), listener).await,
    }
}

/// Follows its lists until it is gone; returns why.
async fn run_until_gone(
    connection: OpenConnection,
    changed: &Notify,
    limit: Duration,
    lists: ServerLists,
    tell: &EventSink,
) -> String {
    let OpenConnection { service, mut process, overflow, .. } = connection;
    let peer = service.peer().clone();
    tokio::select! {
        _ = service.waiting() => (),
        () = wait_for_exit(process.as_mut()) => (),
        () = listen_for_changes(&peer, changed) => (),
        () = follow_lists(&peer, changed, limit, lists, tell) => (),
    }
    match process {
        _ if overflow.happened() => TOO_LONG.to_owned(),
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
