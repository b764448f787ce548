//! Folders of a session beside its first: a client adds and removes them, and the agent opens the session again with them.

use ahp::{
    ahp_types::actions::{ActionOrigin, StateAction},
    reducers::{self, ReduceOutcome},
};

use super::{SessionDesk, SessionStage, TreeAction, messages::path_of};
use crate::ahp::clients::hub_requests::FolderChange;
use crate::ahp::{HubOutcome, Next};
use castor_wire::acp::client::AgentRequest;

/// A client wants other folders.
///
/// # Errors
/// Why the folders stay as they are, in words.
pub fn change_folders(
    desk: &mut SessionDesk<'_>,
    from: u64,
    action: StateAction,
    origin: ActionOrigin,
) -> Result<(), String> {
    if desk.hosted.is_busy() {
        return Err("a turn runs; wait for its end".to_owned());
    }
    let mut after = desk.hosted.trees.session.clone();
    if reducers::apply_action_to_session(&mut after, &action) != ReduceOutcome::Applied {
        return Err("that changes nothing".to_owned());
    }
    let uris = after.working_directories.unwrap_or_default();
    let before = desk.hosted.trees.session.working_directories.as_ref();
    if before.and_then(|it| it.first()) != uris.first() {
        return Err("the first folder of a session stays".to_owned());
    }
    let more: Option<Vec<String>> = uris.iter().skip(1).map(|it| path_of(it)).collect();
    let more = more.ok_or_else(|| "a working directory is a file: URI".to_owned())?;
    desk.hosted.stage = SessionStage::Reopening;
    let id = desk.hosted.id.as_str();
    let (act, before) = (TreeAction::session(action).by(origin), desk.catalog.more_folders(id).to_vec());
    let change = Box::new(FolderChange { from, act, more, before });
    desk.clients.ask(id, Next::CloseForFolders(change), &AgentRequest::Close(id.into()));
    Ok(())
}

pub fn follow_close(desk: &mut SessionDesk<'_>, change: Box<FolderChange>, outcome: HubOutcome) {
    if let Err(it) = outcome {
        desk.hosted.stage = SessionStage::Open;
        desk.reject(change.from, change.act, &it.message);
        return prompt_again(desk);
    }
    let id = desk.hosted.id.as_str();
    desk.catalog.set_more_folders(id, &change.more);
    desk.clients.ask(id, Next::Reopen(change), &AgentRequest::Resume(desk.catalog.opening_params(id)));
}

/// A folder that the agent does not take leaves the session closed, and the next prompt opens the session with its old folders.
pub fn follow_reopen(desk: &mut SessionDesk<'_>, change: FolderChange, outcome: HubOutcome) {
    match outcome {
        Ok(answer) => {
            desk.hosted.stage = SessionStage::Open;
            desk.emit([change.act]);
            desk.take_options(answer);
        }
        Err(it) => {
            desk.hosted.stage = SessionStage::Dormant;
            desk.catalog.set_more_folders(&desk.hosted.id, &change.before);
            desk.reject(change.from, change.act, &it.message);
        }
    }
    prompt_again(desk);
}

/// Sends the prompt of a turn that began meanwhile.
fn prompt_again(desk: &mut SessionDesk<'_>) {
    if let Some(turn) = desk.hosted.trees.active_turn().map(str::to_owned) {
        desk.prompt(&turn);
    }
}
