//! Actions that clients dispatch: which the host accepts, and what each makes the agent do.

use ahp::ahp_types::{
    actions::{self, ActionOrigin, StateAction},
    commands::DispatchActionParams,
};

use crate::ahp::sessions::{
    SessionDesk, Tree, TreeAction, acts, annotations, changes, customizations, folders, messages, truncation,
};
use crate::ahp::{AhpHost, Channel, Next, not_for_clients};
use castor_wire::acp::client::AgentRequest;

/// The refusal of an action, in words. An accepted one may still wait for the agent.
type Verdict = Result<(), String>;

pub fn take(host: &mut AhpHost, from: u64, params: DispatchActionParams) {
    let DispatchActionParams { channel: uri, client_seq, action } = params;
    let Some(client) = host.clients.all.get_mut(&from) else { return };
    client.uri_style.note(&uri);
    let origin = ActionOrigin { client_id: client.id.clone().unwrap_or_default(), client_seq };
    let kept = (action.clone(), origin.clone());
    if let Err(why) = dispatch(host, from, &uri, (action, origin)) {
        host.clients.send_rejection(from, &uri, kept.0, (kept.1, &why));
    }
}

fn dispatch(host: &mut AhpHost, from: u64, uri: &str, (action, origin): (StateAction, ActionOrigin)) -> Verdict {
    let channel = Channel::read(uri);
    if let Some(Channel::Terminal(id)) = &channel {
        return host.machine.take_terminal_action(&mut host.clients, id, action, origin);
    }
    let Some((channel, session)) = channel.as_ref().and_then(|it| Some((it, it.session()?))) else {
        return Err(match (channel, action) {
            (Some(Channel::Root), StateAction::RootConfigChanged(_)) => {
                "castor has no configuration at the root".to_owned()
            }
            _ => not_for_clients(),
        });
    };
    let desk = host.desk(session).filter(|it| !it.hosted.is_opening());
    let mut desk = desk.ok_or_else(|| "the channel is not open; subscribe to its session".to_owned())?;
    match channel {
        Channel::Chat(_) => take_chat_action(&mut desk, from, action, origin),
        Channel::Changes(_) => match action {
            StateAction::ChangesetFilesReviewChanged(it) => changes::review(&mut desk, it, origin),
            _ => Err(not_for_clients()),
        },
        Channel::Annotations(_) => take_annotation(&mut desk, from, action, origin),
        _ => take_session_action(&mut desk, from, action, origin),
    }
}

fn take_chat_action(desk: &mut SessionDesk<'_>, from: u64, action: StateAction, origin: ActionOrigin) -> Verdict {
    match action {
        StateAction::ChatTurnStarted(it) => {
            messages::check_message(&it.message)?;
            desk.start_turn(it, origin)
        }
        StateAction::ChatTurnResume(it) => desk.resume_turn(it, origin),
        StateAction::ChatToolCallComplete(it) => desk.complete_call(it, origin),
        StateAction::ChatTurnCancelled(it) => desk.cancel_turn(&it.turn_id, origin),
        StateAction::ChatToolCallConfirmed(it) => desk.confirm_call(it, origin),
        StateAction::ChatInputCompleted(it) => desk.complete_input(it, origin),
        StateAction::ChatPendingMessageSet(it) => desk.set_pending(it, origin),
        StateAction::ChatPendingMessageRemoved(it) => desk.remove_pending(it, origin),
        StateAction::ChatTruncated(it) => {
            let turn = it.turn_id.clone();
            truncation::truncate(
                desk,
                from,
                turn.as_deref(),
                TreeAction::chat(StateAction::ChatTruncated(it)).by(origin),
            );
            Ok(())
        }
        action @ (StateAction::ChatInputAnswerChanged(_)
        | StateAction::ChatQueuedMessagesReordered(_)
        | StateAction::ChatIsReadChanged(_)
        | StateAction::ChatDraftChanged(_)) => {
            desk.emit([TreeAction::chat(action).by(origin)]);
            Ok(())
        }
        _ => Err(not_for_clients()),
    }
}

fn take_session_action(desk: &mut SessionDesk<'_>, from: u64, action: StateAction, origin: ActionOrigin) -> Verdict {
    match action {
        StateAction::SessionTitleChanged(it) => {
            let (session_id, title) = (desk.hosted.id.as_str(), it.title.clone());
            let act = TreeAction::session(StateAction::SessionTitleChanged(it)).by(origin);
            let request = AgentRequest::SetTitle { session_id, title: &title };
            desk.clients.ask(session_id, Next::apply(from, act), &request);
            Ok(())
        }
        StateAction::SessionConfigChanged(it) => change_config(desk, from, it, origin),
        StateAction::SessionActiveClientSet(it) => set_active_client(desk, it, origin),
        action @ StateAction::SessionActiveClientRemoved(_) => {
            desk.emit([TreeAction::session(action).by(origin)]);
            Ok(())
        }
        StateAction::SessionIsReadChanged(it) => {
            // The status of the session is that of its chat.
            let chat = acts::chat_read(it.is_read);
            desk.emit([TreeAction::session(StateAction::SessionIsReadChanged(it)).by(origin), chat]);
            Ok(())
        }
        StateAction::SessionIsArchivedChanged(it) => archive(desk, from, it, origin),
        action @ (StateAction::SessionMcpServerStartRequested(_)
        | StateAction::SessionMcpServerStopRequested(_)
        | StateAction::SessionCustomizationToggled(_)) => {
            customizations::switch_customization(desk, from, action, origin)
        }
        action @ (StateAction::SessionWorkingDirectorySet(_)
        | StateAction::SessionWorkingDirectoryRemoved(_)
        | StateAction::SessionWorkingDirectoryReplaced(_)) => folders::change_folders(desk, from, action, origin),
        _ => Err(not_for_clients()),
    }
}

fn take_annotation(desk: &mut SessionDesk<'_>, from: u64, action: StateAction, origin: ActionOrigin) -> Verdict {
    let is_one = matches!(
        action,
        StateAction::AnnotationsSet(_)
            | StateAction::AnnotationsUpdated(_)
            | StateAction::AnnotationsRemoved(_)
            | StateAction::AnnotationsEntrySet(_)
            | StateAction::AnnotationsEntryRemoved(_)
    );
    if !is_one {
        return Err(not_for_clients());
    }
    annotations::annotate(desk, from, TreeAction::new(Tree::Annotations, action).by(origin));
    Ok(())
}

/// The agent closes a session that is archived; a prompt opens it again.
fn archive(
    desk: &mut SessionDesk<'_>,
    from: u64,
    it: actions::SessionIsArchivedChangedAction,
    origin: ActionOrigin,
) -> Verdict {
    if desk.hosted.is_busy() {
        return Err("a turn runs; cancel it first".to_owned());
    }
    let id = desk.hosted.id.as_str();
    let request = match it.is_archived {
        true => AgentRequest::Archive(id.into()),
        false => AgentRequest::Unarchive(id.into()),
    };
    let act = TreeAction::session(StateAction::SessionIsArchivedChanged(it)).by(origin);
    desk.clients.ask(id, Next::apply(from, act), &request);
    Ok(())
}

fn change_config(
    desk: &mut SessionDesk<'_>,
    from: u64,
    it: actions::SessionConfigChangedAction,
    origin: ActionOrigin,
) -> Verdict {
    let known = desk.hosted.trees.session.config.as_ref();
    let unknown = it.config.keys().find(|name| known.is_none_or(|it| !it.values.contains_key(*name)));
    if let Some(name) = unknown {
        return Err(format!("the session has no option {name}"));
    }
    let (session_id, config) = (desk.hosted.id.as_str(), it.config.clone());
    let act = TreeAction::session(StateAction::SessionConfigChanged(it)).by(origin);
    let request = AgentRequest::SetOptions { session_id, config: &config };
    desk.clients.ask(session_id, Next::apply(from, act), &request);
    Ok(())
}

/// A client takes part. It says the same again while the state has something else than it said: nothing is left out.
fn set_active_client(
    desk: &mut SessionDesk<'_>,
    it: actions::SessionActiveClientSetAction,
    origin: ActionOrigin,
) -> Verdict {
    if it.active_client.client_id != origin.client_id {
        return Err("a client speaks for itself".to_owned());
    }
    desk.emit([TreeAction::session(StateAction::SessionActiveClientSet(it)).by(origin)]);
    Ok(())
}
