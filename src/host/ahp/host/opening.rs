//! Sessions that exist and are opened for a client: joined where they are open in the agent, else loaded.

use serde_json::Value;

use super::handshakes::finish_opening;
use crate::ahp::sessions::{SessionDesk, SessionStage, annotations, changes};
use crate::ahp::{AhpHost, HubOutcome, Next};
use castor_wire::acp::client::{AgentRequest, ListParams, OpenedAnswer, SessionPage, StateValues, read_value};

/// Opens a session that is not here.
pub fn open_session(host: &mut AhpHost, session: &str) {
    if host.sessions.all.contains_key(session) {
        return;
    }
    host.sessions.add(session, &host.clients);
    match host.sessions.catalog.folders.contains_key(session) {
        true => attach_session(host, session),
        false => find_folder(host, session, None),
    }
}

fn attach_session(host: &mut AhpHost, session: &str) {
    let catalog = &host.sessions.catalog;
    if let (Some(it), Some(cwd)) = (host.sessions.all.get_mut(session), catalog.folders.get(session)) {
        it.set_folders(cwd, catalog.more_folders(session));
    }
    host.clients.ask(session, Next::Attach, &AgentRequest::Attach { session_id: session, history: true });
}

pub fn follow_attach(host: &mut AhpHost, session: &str, outcome: HubOutcome) {
    match outcome {
        Ok(answer) => finish_history(host, session, answer),
        // It is not open.
        Err(_) if host.sessions.catalog.folders.contains_key(session) => {
            let params = host.sessions.catalog.opening_params(session);
            host.clients.ask(session, Next::Load, &AgentRequest::Load(params));
        }
        Err(_) => fail_opening(host, session),
    }
}

fn find_folder(host: &mut AhpHost, session: &str, cursor: Option<&str>) {
    host.clients.ask(session, Next::FindFolder, &AgentRequest::List(ListParams::all(cursor)));
}

pub fn follow_find(host: &mut AhpHost, session: &str, outcome: HubOutcome) {
    let Ok(list) = outcome else { return fail_opening(host, session) };
    let page: SessionPage = read_value(list).unwrap_or_default();
    host.sessions.catalog.note_rows(&page.sessions);
    match (host.sessions.catalog.folders.contains_key(session), page.next_cursor.as_deref()) {
        (false, Some(cursor)) => find_folder(host, session, Some(cursor)),
        // One that nothing was said in may be open, and is in no list.
        _ => attach_session(host, session),
    }
}

pub fn follow_load(host: &mut AhpHost, session: &str, outcome: HubOutcome) {
    match outcome {
        Ok(answer) => finish_history(host, session, answer),
        Err(_) => fail_opening(host, session),
    }
}

fn finish_history(host: &mut AhpHost, session: &str, answer: Value) {
    if let Some(mut desk) = host.desk(session) {
        read_finished_history(&mut desk, answer);
    }
}

/// The history came. A turn that still runs in the agent is another client's, and goes on.
fn read_finished_history(desk: &mut SessionDesk<'_>, answer: Value) {
    let opened: OpenedAnswer = read_value(answer.clone()).unwrap_or_default();
    let active = desk.hosted.trees.active_turn().map(str::to_owned);
    match opened.n_prompts() {
        0 => {
            let ended = desk.hosted.end_replayed_turn();
            desk.emit(ended);
        }
        n => {
            // Prompts that wait behind are not in the history: nothing but their ends is heard.
            let unseen = u64::from(active.is_some())..n;
            let unseen = unseen.map(|it| format!("unseen-{it}"));
            desk.hosted.turn.other_prompts.extend(active.into_iter().chain(unseen));
        }
    }
    desk.hosted.forget_replayed_times();
    desk.take_options(answer);
    let id = desk.hosted.id.as_str();
    let get = &[annotations::STATE_KEY, changes::STATE_KEY];
    desk.clients.ask(id, Next::ReadState, &AgentRequest::GetState { session_id: id, get });
}

fn take_kept_state(desk: &mut SessionDesk<'_>, kept: &StateValues) {
    let trees = &mut desk.hosted.trees;
    if let Some(it) = kept.read(annotations::STATE_KEY) {
        trees.annotations = it;
    }
    if let Some(it) = kept.read(changes::STATE_KEY) {
        trees.marks = it;
    }
    trees.session.annotations = Some(trees.annotations_summary(&desk.hosted.id));
    let id = &desk.hosted.id.clone();
    desk.hosted.set_flags(desk.catalog.is_read(id), desk.catalog.is_archived(id));
    desk.hosted.stage = SessionStage::Open;
    desk.hosted.idle_since_ms = desk.clients.now_ms;
    desk.hosted.announced = desk.hosted.trees.has_turns().then(|| desk.hosted.facts());
}

pub fn follow_state(host: &mut AhpHost, session: &str, outcome: HubOutcome) {
    let kept: StateValues = outcome.ok().and_then(read_value).unwrap_or_default();
    let Some(mut desk) = host.desk(session) else { return };
    take_kept_state(&mut desk, &kept);
    finish_opening(host, session);
    if let Some(mut desk) = host.desk(session) {
        changes::read_changes(&mut desk);
        desk.read_tools();
    }
}

fn fail_opening(host: &mut AhpHost, session: &str) {
    host.sessions.all.remove(session);
    finish_opening(host, session);
}
