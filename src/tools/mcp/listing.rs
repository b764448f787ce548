//! Listing what an MCP server offers, page by page, and again when it says that something changed.

use std::time::Duration;

use rmcp::{
    Peer, RoleClient,
    model::{
        ClientRequest, ErrorCode, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
        ListToolsRequest, PaginatedRequestParams, ServerCapabilities, ServerPeerInfo, SubscriptionFilter,
    },
    service::ServiceError,
};
use serde_json::Value;
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use super::{
    EventSink, ServerEvent,
    catalog::{self, ServerLists},
    error::{StartError, is_unauthorized, missing_scopes},
    output::result_json,
};
use castor_base::{server_offer::ServerOffer, text};

/// Pages of one listing: a server that never comes to an end is cut off.
const MAX_PAGES: usize = 100;
/// Tools of one server: beyond that they would crowd everything else out of the model's context.
const MAX_TOOLS: usize = 512;
/// Prompts of one server: each is a command in the editor's menu.
const MAX_PROMPTS: usize = 200;
/// Resources of one server, and its templates.
const MAX_RESOURCES: usize = 1_000;
/// What a server says of its own use, in characters.
const MAX_INSTRUCTIONS: usize = 2_000;
/// Bursts of "this changed" are one listing.
const SETTLE: Duration = Duration::from_millis(100);

/// Lists again whenever the server says that something changed. Never ends by itself.
pub(super) async fn follow_lists(
    peer: &Peer<RoleClient>,
    changed: &Notify,
    limit: Duration,
    mut known: ServerLists,
    tell: &EventSink,
) {
    loop {
        changed.notified().await;
        sleep(SETTLE).await;
        match timeout(limit, list_all(peer)).await {
            Ok(Ok(lists)) if lists != known => {
                known.clone_from(&lists);
                tell(ServerEvent::ListsChanged(lists)).await;
            }
            Ok(Ok(_)) => (),
            Ok(Err(why)) => tracing::warn!("an MCP server's changed lists could not be read: {why}"),
            Err(_) => tracing::warn!("an MCP server did not list what changed in time"),
        }
    }
}

/// A server without a handshake tells of changes where it is asked to. Never ends by itself.
pub(super) async fn listen_for_changes(peer: &Peer<RoleClient>, changed: &Notify) {
    let wanted = peer.peer_info().filter(|it| !it.protocol_version.has_initialize()).and_then(|it| wanted_changes(&it));
    if let Some(wanted) = wanted {
        match peer.listen(wanted).await {
            Ok(mut changes) => {
                while let Ok(Some(_)) = changes.next().await {
                    changed.notify_one();
                }
            }
            Err(why) => tracing::debug!("an MCP server does not tell of changes: {why}"),
        }
    }
    std::future::pending().await
}

/// What the server says that it tells of.
fn wanted_changes(it: &ServerPeerInfo) -> Option<SubscriptionFilter> {
    let it = &it.capabilities;
    let tools = it.tools.as_ref().is_some_and(|it| it.list_changed == Some(true));
    let prompts = it.prompts.as_ref().is_some_and(|it| it.list_changed == Some(true));
    let resources = it.resources.as_ref().is_some_and(|it| it.list_changed == Some(true));
    let mut res = SubscriptionFilter::builder();
    if tools {
        res = res.tools_list_changed();
    }
    if prompts {
        res = res.prompts_list_changed();
    }
    if resources {
        res = res.resources_list_changed();
    }
    (tools || prompts || resources).then(|| res.build())
}

fn refusal(error: &ServiceError, member: &str) -> StartError {
    let cause = if let ServiceError::TransportSend(it) = error { Some(it.error.as_ref()) } else { None };
    match cause.and_then(|it| missing_scopes(it)) {
        Some(scopes) => StartError::NeedsScopes(scopes),
        None if cause.is_some_and(|it| is_unauthorized(it)) => {
            StartError::Unauthorized("it wants authorization".to_owned())
        }
        None => StartError::Gone(format!("its {member} could not be listed: {error}")),
    }
}

/// # Errors
/// Its tools could not be listed. What else cannot be listed costs nothing but itself.
pub(super) async fn list_all(peer: &Peer<RoleClient>) -> Result<ServerLists, StartError> {
    let info = peer.peer_info();
    let can = |has: fn(&ServerCapabilities) -> bool| info.as_ref().is_none_or(|it| has(&it.capabilities));
    let tools = match can(|it| it.tools.is_some()) {
        true => list(peer, LIST_TOOLS, catalog::tool, MAX_TOOLS).await?,
        false => Vec::new(),
    };
    let prompts = match info.as_ref().is_some_and(|it| it.capabilities.prompts.is_some()) {
        true => list_or_warn(peer, LIST_PROMPTS, catalog::prompt, MAX_PROMPTS).await,
        false => Vec::new(),
    };
    let has_resources = info.as_ref().is_some_and(|it| it.capabilities.resources.is_some());
    let (resources, templates) = match has_resources {
        true => (
            list_or_warn(peer, LIST_RESOURCES, catalog::resource, MAX_RESOURCES).await,
            list_or_warn(peer, LIST_TEMPLATES, catalog::template, MAX_RESOURCES).await,
        ),
        false => Default::default(),
    };
    let instructions = info.and_then(|it| it.instructions.as_deref().and_then(instructions));
    Ok(ServerLists::new(tools, ServerOffer { instructions, prompts, has_resources, resources, templates }))
}

fn instructions(said: &str) -> Option<String> {
    let said = text::strip_hidden(said);
    let said: String = said.trim().chars().take(MAX_INSTRUCTIONS).collect();
    (!said.is_empty()).then_some(said)
}

/// The request for a page, and the member of its answer.
type Listing = (fn(PaginatedRequestParams) -> ClientRequest, &'static str);

const LIST_TOOLS: Listing = (
    |params| {
        let (method, extensions) = Default::default();
        ClientRequest::ListToolsRequest(ListToolsRequest { method, params: Some(params), extensions })
    },
    "tools",
);
const LIST_PROMPTS: Listing = (
    |params| {
        let (method, extensions) = Default::default();
        ClientRequest::ListPromptsRequest(ListPromptsRequest { method, params: Some(params), extensions })
    },
    "prompts",
);
const LIST_RESOURCES: Listing = (
    |params| {
        let (method, extensions) = Default::default();
        ClientRequest::ListResourcesRequest(ListResourcesRequest { method, params: Some(params), extensions })
    },
    "resources",
);
const LIST_TEMPLATES: Listing = (
    |params| {
        let (method, extensions) = Default::default();
        let request = ListResourceTemplatesRequest { method, params: Some(params), extensions };
        ClientRequest::ListResourceTemplatesRequest(request)
    },
    "resourceTemplates",
);

async fn list_or_warn<T>(
    peer: &Peer<RoleClient>,
    listing: Listing,
    read: fn(&Value) -> Option<T>,
    max: usize,
) -> Vec<T> {
    list(peer, listing, read, max).await.unwrap_or_else(|why| {
        tracing::warn!("an MCP server's {} are left out: {why}", listing.1);
        Vec::new()
    })
}

async fn list<T>(
    peer: &Peer<RoleClient>,
    (request, member): Listing,
    read: fn(&Value) -> Option<T>,
    max: usize,
) -> Result<Vec<T>, StartError> {
    let (mut res, mut cursor) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor.take());
        let result = match peer.send_request(request(params)).await {
            Ok(it) => result_json(&it),
            Err(ServiceError::McpError(it)) if it.code == ErrorCode::METHOD_NOT_FOUND => break,
            Err(it) => return Err(refusal(&it, member)),
        };
        let (entries, next) = catalog::page(&result, member, read)?;
        res.extend(entries);
        cursor = next;
        if cursor.is_none() || res.len() >= max {
            break;
        }
    }
    if res.len() > max || cursor.is_some() {
        tracing::warn!("an MCP server has more {member} than castor takes: {max} are kept");
    }
    res.truncate(max);
    Ok(res)
}
