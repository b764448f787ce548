//! Requests about sessions: the list, new ones, their options before they begin, their contents, and their end.

use ahp::ahp_types::{
    commands::{CreateSessionParams, FetchTurnsResult, ListSessionsResult, SessionConfigCompletionsResult},
    common::JsonObject,
    errors::ahp_error_codes as codes,
    notifications::SessionRemovedParams,
};
use serde::Deserialize;

use super::{
    handshakes::finish_opening,
    host_call::{HostCall, given},
};
use crate::ahp::clients::{channel::PROVIDER, hub_requests::ListPage};
use crate::ahp::machine::files::{self, FileRequest, Places, ResourceParams};
use crate::ahp::sessions::{HostedSession, SessionStage, config, content::place_of, messages::path_of};
use crate::ahp::{AhpHost, Channel, ClientRefusal, HubOutcome, Next, RequestOutcome, WaitingClient};
use castor_wire::acp::client::{AgentRequest, ListParams, OpenParams, SessionPage, read_value};

/// Params of lists and options; each may be missing.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct QueryParams {
    limit: Option<usize>,
    cursor: Option<String>,
    working_directory: Option<String>,
    config: Option<JsonObject>,
}

impl ListPage {
    /// The page that a client wants; a cursor of the host's is `SKIP:AGENTS-CURSOR`.
    fn read(params: QueryParams) -> Result<Self, ClientRefusal> {
        let limit = params.limit.filter(|it| *it > 0);
        let Some(cursor) = params.cursor else { return Ok(Self { cursor: None, skip: 0, limit }) };
        let unknown = || ClientRefusal::params("the cursor is none of castor's; send nextCursor of the last answer");
        let (skip, cursor) = cursor.split_once(':').ok_or_else(unknown)?;
        let skip = skip.parse().map_err(|_| unknown())?;
        Ok(Self { cursor: Some(cursor.to_owned()).filter(|it| !it.is_empty()), skip, limit })
    }

    fn next(&self, n_rows: usize, next: Option<&str>) -> Option<String> {
        let end = self.limit.map_or(n_rows, |it| self.skip.saturating_add(it));
        match end < n_rows {
            true => Some(format!("{end}:{}", self.cursor.as_deref().unwrap_or_default())),
            false => next.map(|it| format!("0:{it}")),
        }
    }
}

pub fn list(host: &mut AhpHost, call: HostCall) -> RequestOutcome {
    let page = ListPage::read(call.read_known())?;
    let cursor = page.cursor.clone();
    let request = AgentRequest::List(ListParams::all(cursor.as_deref()));
    host.clients.ask("", Next::List(call.asker, page), &request);
    Ok(())
}

pub fn follow_list(host: &mut AhpHost, asker: &WaitingClient, page: &ListPage, outcome: HubOutcome) {
    let list: SessionPage = match outcome {
        Ok(it) => read_value(it).unwrap_or_default(),
        Err(it) => return host.clients.refuse(asker, it.into()),
    };
    host.sessions.catalog.note_rows(&list.sessions);
    let rows: Vec<_> = list.sessions.iter().filter(|it| host.sessions.is_listed(&it.session_id)).collect();
    let next_cursor = page.next(rows.len(), list.next_cursor.as_deref());
    let rows = rows.into_iter().skip(page.skip).take(page.limit.unwrap_or(usize::MAX));
    let items = rows.map(|it| host.sessions.summary_of_row(it)).collect();
    host.clients.answer(asker, &ListSessionsResult { next_cursor, items });
}

pub fn create(host: &mut AhpHost, call: HostCall) -> RequestOutcome {
    let params: CreateSessionParams = call.read()?;
    let Some(Channel::Session(session)) = Channel::read(&params.channel) else {
        return Err(ClientRefusal::params("channel is ahp-session:/ID, with letters, digits, - and _ in the ID"));
    };
    if params.provider.as_deref().is_some_and(|it| it != PROVIDER) {
        return Err(ClientRefusal::new(codes::PROVIDER_NOT_FOUND, "castor has one provider, castor"));
    }
    let catalog = &mut host.sessions.catalog;
    if host.sessions.all.contains_key(&session) || catalog.folders.contains_key(&session) {
        return Err(ClientRefusal::new(codes::SESSION_ALREADY_EXISTS, "there is a session with that URI"));
    }
    let folders: Option<Vec<String>> = params.working_directories.iter().flatten().map(|it| path_of(it)).collect();
    let folders = folders.ok_or_else(|| ClientRefusal::params("a working directory is a file: URI"))?;
    let (cwd, more) = match folders.split_first() {
        Some((cwd, more)) => (cwd, more),
        None => (&host.settings.folder, &[][..]),
    };
    catalog.folders.insert(session.clone(), cwd.clone());
    catalog.set_more_folders(&session, more);
    let request = AgentRequest::New(OpenParams::new(&session, cwd, more));
    host.clients.ask(&session, Next::Create(call.asker, params.config), &request);
    Ok(())
}

pub fn follow_create(
    host: &mut AhpHost,
    session: &str,
    asker: WaitingClient,
    wanted: Option<JsonObject>,
    outcome: HubOutcome,
) {
    let answer = match outcome {
        Ok(it) => it,
        Err(it) => {
            host.sessions.catalog.forget(session);
            return host.clients.refuse(&asker, it.into());
        }
    };
    host.sessions.add(session, &host.clients);
    let Some(mut desk) = host.desk(session) else { return };
    desk.take_options(answer);
    let config = wanted.map(|it| config::fitting(&desk.hosted.offer.options, &it)).filter(|it| !it.is_empty());
    match &config {
        Some(config) => {
            let request = AgentRequest::SetOptions { session_id: session, config };
            host.clients.ask(session, Next::Configure(asker), &request);
        }
        None => finish_creation(host, &asker, session),
    }
}

pub fn follow_configure(host: &mut AhpHost, session: &str, asker: &WaitingClient, outcome: HubOutcome) {
    match outcome {
        Ok(answer) => {
            if let Some(mut desk) = host.desk(session) {
                desk.take_options(answer);
            }
            finish_creation(host, asker, session);
        }
        Err(it) => {
            host.sessions.all.remove(session);
            host.sessions.catalog.forget(session);
            host.clients.ask("", Next::Nothing, &AgentRequest::Delete(session.into()));
            finish_opening(host, session);
            host.clients.refuse(asker, it.into());
        }
    }
}

fn finish_creation(host: &mut AhpHost, asker: &WaitingClient, session: &str) {
    if let Some(it) = host.sessions.all.get_mut(session) {
        it.stage = SessionStage::Open;
    }
    host.clients.answer(asker, &());
    finish_opening(host, session);
    if let Some(mut desk) = host.desk(session) {
        desk.read_tools();
    }
}

/// A session of which something was said is archived, and can be had back; an empty one is deleted.
pub fn dispose(host: &mut AhpHost, call: HostCall) -> RequestOutcome {
    let uri = call.channel_uri()?;
    let Some(Channel::Session(session)) = Channel::read(uri) else { return Err(ClientRefusal::no_channel(uri)) };
    let id = session.as_str();
    let request = match host.sessions.all.get(id).is_some_and(HostedSession::is_empty) {
        true => AgentRequest::Delete(id.into()),
        false => AgentRequest::Archive(id.into()),
    };
    host.clients.ask(id, Next::Dispose(call.asker), &request);
    Ok(())
}

pub fn follow_dispose(host: &mut AhpHost, session: &str, asker: &WaitingClient, outcome: HubOutcome) {
    if let Err(it) = outcome {
        return host.clients.refuse(asker, it.into());
    }
    let was_listed = host.sessions.is_listed(session);
    host.sessions.all.remove(session);
    host.sessions.catalog.folders.remove(session);
    host.clients.unsubscribe(|it| it.session() == Some(session));
    host.clients.answer(asker, &());
    if was_listed {
        let session = Channel::Session(session.to_owned()).uri();
        let params = SessionRemovedParams { channel: Channel::Root.uri(), session };
        host.clients.broadcast(&Channel::Root, "root/sessionRemoved", &params);
    }
}

pub fn resolve_config(host: &mut AhpHost, call: HostCall) -> RequestOutcome {
    let params: QueryParams = call.read_known();
    let cwd = match &params.working_directory {
        Some(uri) => path_of(uri).ok_or_else(|| ClientRefusal::params("workingDirectory is a file: URI"))?,
        None => host.settings.folder.clone(),
    };
    let request = AgentRequest::Options { cwd: &cwd };
    host.clients.ask("", Next::Resolve(call.asker, params.config), &request);
    Ok(())
}

pub fn follow_resolve(host: &mut AhpHost, asker: &WaitingClient, wanted: Option<&JsonObject>, outcome: HubOutcome) {
    let options = outcome.map(|it| config::read_options(it).unwrap_or_default()).map_err(ClientRefusal::from);
    host.clients.settle_client(asker, options.map(|it| config::resolved(&it, wanted)));
}

/// All values are in the schema.
pub fn complete_config(host: &mut AhpHost, call: HostCall) -> RequestOutcome {
    host.clients.answer(&call.asker, &SessionConfigCompletionsResult { items: Vec::new() });
    Ok(())
}

/// All turns are in the state already.
pub fn fetch_turns(host: &mut AhpHost, call: HostCall) -> RequestOutcome {
    if call.read_known::<QueryParams>().cursor.is_some() {
        return Err(ClientRefusal::params("there is no such cursor: all turns are in the chat's state"));
    }
    host.clients.answer(&call.asker, &FetchTurnsResult {});
    Ok(())
}

/// A request about a file, or about a content that the trees name by a URI of the host's own.
pub fn take_file_request(host: &mut AhpHost, kind: FileRequest, call: HostCall) -> RequestOutcome {
    let params: ResourceParams = call.read_known();
    if kind == FileRequest::Read && !params.uri.starts_with("file:") {
        let found = place_of(given("uri", &params.uri)?);
        let found = found.and_then(|(session, number)| host.sessions.all.get(session)?.contents.read(number));
        let missing = "there is no such content, or it is kept no longer";
        let found = found.ok_or_else(|| ClientRefusal::new(codes::NOT_FOUND, missing))?;
        host.clients.answer(&call.asker, &found);
        return Ok(());
    }
    let act = match kind {
        FileRequest::Write => files::write_act(call.read()?)?,
        _ => kind.act(&params)?,
    };
    let places = Places { settings: &host.settings, catalog: &host.sessions.catalog };
    let order = places.order(kind, &params, act)?;
    host.machine.order_file(&mut host.clients, order, kind.job(&params, call.asker));
    Ok(())
}
