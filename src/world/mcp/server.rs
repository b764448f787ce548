//! One MCP server from its start to its end.

use std::time::Duration;

use tokio::{sync::Notify, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    Connection, EventSink, HostHandles, ServerEvent, ServerIdentity, auth,
    call::ProcessHold,
    catalog::ServerLists,
    client::{Listener, OpenConnection, set_log_level},
    client_transport::ClientTransport,
    connection::{MAX_RESTARTS, RENEWED, open_link},
    elicitation_call::ServerAsker,
    error::StartError,
    listing::{follow_lists, list_all, listen_for_changes},
    sandbox_findings::PendingFindings,
    stdio, web,
};
use crate::{
    base::{elicitation::ElicitationSupport, mcp::McpLink},
    world::{http, process::server_process::ServerProcess},
};

/// Runs a server until it is gone for good or `stop` says so. Then its input is closed and its processes end.
pub async fn run_server(launch: ServerIdentity, doors: HostHandles, stop: CancellationToken, tell: EventSink) {
    // A server that is still starting is dropped with the future, and its process with it.
    stop.run_until_cancelled(run_with_restarts(&launch, &doors, &tell)).await;
}

/// One life after the other; why it is gone for good is told last.
async fn run_with_restarts(launch: &ServerIdentity, doors: &HostHandles, tell: &EventSink) {
    let mut launch = launch.clone();
    let listener =
        Listener::new(ServerAsker::new(elicitation(&launch.link, doors), tell.clone()), launch.roots.clone());
    let (mut open, mut ready) = match start(&launch, doors, listener.clone(), tell).await {
        Ok(it) => it,
        Err(why) => return tell(loss(why.to_string(), &why)).await,
    };
    let (mut plug, line) = open_link(open.service.peer().clone());
    let confined = launch.confined.clone();
    let held = ProcessHold { confined, findings: PendingFindings::default() };
    let asks = listener.asking.n_open.subscribe();
    let connection = Connection::new(line, listener.progress.clone(), asks, held.clone(), address(&launch.link))
        .with_login(doors.login_target(&launch.link));
    let lost = loop {
        open.startup_findings.take().into_iter().for_each(|it| held.findings.add(&it));
        tell(ServerEvent::Ready { connection: connection.clone(), lists: ready.clone() }).await;
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
        StartError::Unauthorized(_) | StartError::NeedsScopes(_) | StartError::Status(401) => ServerEvent::Unauthorized(why),
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
) -> Result<(OpenConnection, ServerLists), StartError> {
    let starting = async {
        let open = match &launch.link {
            McpLink::Stdio { .. } => stdio::open(launch, &doors.groups, listener).await,
            McpLink::Web { url, headers, speech, oauth: _ } => {
                web::open(url, (headers, *speech), &doors.http, doors.login_target(&launch.link), listener).await
            }
            McpLink::Client { .. } => OpenConnection::discover(ClientTransport::new(tell.clone()), listener).await,
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

/// Follows its lists until it is gone; returns why.
async fn run_until_gone(
    connection: OpenConnection,
    changed: &Notify,
    limit: Duration,
    lists: ServerLists,
    tell: &EventSink,
) -> String {
    let OpenConnection { service, mut process, startup_findings: _ } = connection;
    let peer = service.peer().clone();
    tokio::select! {
        _ = service.waiting() => (),
        () = wait_for_exit(process.as_mut()) => (),
        () = listen_for_changes(&peer, changed) => (),
        () = follow_lists(&peer, changed, limit, lists, tell) => (),
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
