//! Actions that clients dispatch: which the host accepts, and what each makes the agent do.

use ahp::ahp_types::{
    actions::{
        ActionOrigin, ChatPendingMessageRemovedAction, ChatPendingMessageSetAction, SessionActiveClientSetAction,
        SessionConfigChangedAction, SessionIsArchivedChangedAction, StateAction,
    },
    commands::DispatchActionParams,
    state::{Message, MessageKind, PendingMessageKind},
};
use serde_json::json;

use super::{
    AhpHost,
    channel::Channel,
    hosted_session::{Tree, TreeAction},
    hub_requests::HubRequest,
    messages,
};
use castor_wire::jsonrpc::write;

/// Why an action is not accepted, in words; `None`: it is, or the agent decides.
type Verdict = Result<(), String>;

/// An action on its way.
struct Dispatch {
    from: u64,
    session: String,
    origin: ActionOrigin,
}

impl AhpHost {
    pub(super) fn take_action(&mut self, from: u64, params: DispatchActionParams) {
        let DispatchActionParams { channel: uri, client_seq, action } = params;
        let Some(client) = self.clients.get_mut(&from) else { return };
        client.uri_style.note(&uri);
        let origin = ActionOrigin { client_id: client.id.clone().unwrap_or_default(), client_seq };
        let channel = Channel::read(&uri);
        let session = channel.as_ref().and_then(Channel::session).map(str::to_owned).unwrap_or_default();
        let is_open = self.hosted(&session).map(drop);
        let kept = action.clone();
        let dispatch = Dispatch { from, session, origin: origin.clone() };
        let verdict = match channel {
            Some(Channel::Terminal(id)) => self.take_terminal_action(&id, action, dispatch.origin),
            Some(Channel::Root) if matches!(action, StateAction::RootConfigChanged(_)) => {
                Err("castor has no configuration at the root".to_owned())
            }
            Some(Channel::Root | Channel::Watch(_) | Channel::Logs(_) | Channel::Metrics) | None => {
                Err(not_for_clients())
            }
            Some(_) if let Err(why) = is_open => Err(why),
            Some(Channel::Chat(_)) => self.take_chat_action(dispatch, action),
            Some(Channel::Session(_)) => self.take_session_action(dispatch, action),
            Some(Channel::Changes(_)) => match action {
                StateAction::ChangesetFilesReviewChanged(it) => self.review(&dispatch.session, it, dispatch.origin),
                _ => Err(not_for_clients()),
            },
            Some(Channel::Annotations(_)) => self.take_annotation(dispatch, action),
        };
        if let Err(why) = verdict {
            self.send_rejection(from, &uri, kept, (origin, &why));
        }
    }

    fn take_chat_action(&mut self, it: Dispatch, action: StateAction) -> Verdict {
        let Dispatch { from, session, origin } = it;
        match action {
            StateAction::ChatTurnStarted(it) => {
                check_message(&it.message)?;
                self.start_turn(&session, it, origin)
            }
            StateAction::ChatTurnResume(it) => self.resume_turn(&session, it, origin),
            StateAction::ChatToolCallComplete(it) => self.complete_call(&session, it, origin),
            StateAction::ChatTurnCancelled(it) => self.cancel_turn(&session, &it.turn_id, origin),
            StateAction::ChatToolCallConfirmed(it) => self.confirm_call(&session, it, origin),
            StateAction::ChatInputCompleted(it) => self.complete_input(&session, it, origin),
            StateAction::ChatPendingMessageSet(it) => self.set_pending(&session, it, origin),
            StateAction::ChatPendingMessageRemoved(it) => self.remove_pending(&session, it, origin),
            StateAction::ChatTruncated(it) => {
                let act = TreeAction::new(Tree::Chat, StateAction::ChatTruncated(it.clone())).by(origin);
                self.truncate(from, &session, it, act);
                Ok(())
            }
            action @ (StateAction::ChatInputAnswerChanged(_)
            | StateAction::ChatQueuedMessagesReordered(_)
            | StateAction::ChatIsReadChanged(_)
            | StateAction::ChatDraftChanged(_)) => {
                self.emit(&session, vec![TreeAction::new(Tree::Chat, action).by(origin)]);
                Ok(())
            }
            _ => Err(not_for_clients()),
        }
    }

    fn take_session_action(&mut self, it: Dispatch, action: StateAction) -> Verdict {
        let Dispatch { from, session, origin } = it;
        match action {
            StateAction::SessionTitleChanged(it) => {
                let params = json!({ "sessionId": session, "title": it.title });
                let act = TreeAction::new(Tree::Session, StateAction::SessionTitleChanged(it)).by(origin);
                self.ask_to_apply((from, session), act, "session/set_title", &params);
                Ok(())
            }
            StateAction::SessionConfigChanged(it) => self.change_config((from, session), it, origin),
            StateAction::SessionActiveClientSet(it) => self.set_active_client(&session, it, origin),
            action @ StateAction::SessionActiveClientRemoved(_) => {
                self.emit(&session, vec![TreeAction::new(Tree::Session, action).by(origin)]);
                Ok(())
            }
            StateAction::SessionIsReadChanged(it) => {
                let action = json!({ "type": "session/isReadChanged", "isRead": it.is_read });
                // The status of the session is that of its chat.
                let chat = json!({ "type": "chat/isReadChanged", "isRead": it.is_read });
                self.emit(&session, vec![TreeAction::session(action).by(origin), TreeAction::chat(chat)]);
                Ok(())
            }
            StateAction::SessionIsArchivedChanged(it) => self.archive((from, session), it, origin),
            action @ (StateAction::SessionMcpServerStartRequested(_)
            | StateAction::SessionMcpServerStopRequested(_)
            | StateAction::SessionCustomizationToggled(_)) => {
                self.switch_customization((from, session), action, origin)
            }
            action @ (StateAction::SessionWorkingDirectorySet(_)
            | StateAction::SessionWorkingDirectoryRemoved(_)
            | StateAction::SessionWorkingDirectoryReplaced(_)) => self.change_folders((from, session), action, origin),
            _ => Err(not_for_clients()),
        }
    }

    fn take_annotation(&mut self, it: Dispatch, action: StateAction) -> Verdict {
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
        let Dispatch { from, session, origin } = it;
        self.annotate(from, &session, TreeAction::new(Tree::Annotations, action).by(origin));
        Ok(())
    }

    /// The agent closes a session that is archived; a prompt opens it again.
    fn archive(
        &mut self,
        (from, session): (u64, String),
        it: SessionIsArchivedChangedAction,
        origin: ActionOrigin,
    ) -> Verdict {
        let hosted = self.hosted(&session)?;
        if hosted.is_busy() {
            return Err("a turn runs; cancel it first".to_owned());
        }
        let method = if it.is_archived { "session/archive" } else { "session/unarchive" };
        let act = TreeAction::new(Tree::Session, StateAction::SessionIsArchivedChanged(it)).by(origin);
        let params = json!({ "sessionId": session });
        self.ask_to_apply((from, session), act, method, &params);
        Ok(())
    }

    /// It holds when the agent did it.
    fn ask_to_apply(
        &mut self,
        (from, session): (u64, String),
        act: TreeAction,
        method: &str,
        params: &serde_json::Value,
    ) {
        self.ask_hub(HubRequest::Apply { from, session, act: Box::new(act) }, method, params);
    }

    fn change_config(
        &mut self,
        (from, session): (u64, String),
        action: SessionConfigChangedAction,
        origin: ActionOrigin,
    ) -> Verdict {
        let hosted = self.hosted(&session)?;
        let known = hosted.trees.session.config.as_ref();
        let unknown = action.config.keys().find(|name| known.is_none_or(|it| !it.values.contains_key(*name)));
        if let Some(name) = unknown {
            return Err(format!("the session has no option {name}"));
        }
        let params = json!({ "sessionId": session, "config": action.config });
        let act = TreeAction::new(Tree::Session, StateAction::SessionConfigChanged(action)).by(origin);
        self.ask_to_apply((from, session), act, "_castor/session/update", &params);
        Ok(())
    }

    /// A client takes part. It says the same again while the state has something else than it said: nothing is left out.
    fn set_active_client(&mut self, session: &str, it: SessionActiveClientSetAction, origin: ActionOrigin) -> Verdict {
        if it.active_client.client_id != origin.client_id {
            return Err("a client speaks for itself".to_owned());
        }
        let action = StateAction::SessionActiveClientSet(it);
        self.emit(session, vec![TreeAction::new(Tree::Session, action).by(origin)]);
        Ok(())
    }

    /// A message for the running turn, or for one after it.
    fn set_pending(&mut self, session: &str, it: ChatPendingMessageSetAction, origin: ActionOrigin) -> Verdict {
        check_message(&it.message)?;
        let hosted = self.hosted(session)?;
        if hosted.turn.other_prompts.contains(&it.id) {
            return Err("the agent has that message already".to_owned());
        }
        let steers = it.kind == PendingMessageKind::Steering && hosted.listening_turn().is_some();
        let (message, text) = (it.id.clone(), it.message.text.clone());
        let blocks = messages::prompt_of(&it.message, &hosted.trees.annotations);
        let it = if steers { it } else { ChatPendingMessageSetAction { kind: PendingMessageKind::Queued, ..it } };
        self.emit(session, vec![TreeAction::new(Tree::Chat, StateAction::ChatPendingMessageSet(it)).by(origin)]);
        if !steers {
            self.start_waiting(session);
            return Ok(());
        }
        let params = json!({
            "sessionId": session, "prompt": blocks, "_meta": { "steering": { "idleBehavior": "promptRequired" } },
        });
        let request = HubRequest::Steer { session: session.to_owned(), message, text };
        self.ask_hub(request, "_session/steering", &params);
        Ok(())
    }

    fn remove_pending(&mut self, session: &str, it: ChatPendingMessageRemovedAction, origin: ActionOrigin) -> Verdict {
        let hosted = self.hosted(session)?;
        if it.kind == PendingMessageKind::Steering || hosted.turn.other_prompts.contains(&it.id) {
            return Err("the agent has that message already".to_owned());
        }
        self.emit(session, vec![TreeAction::new(Tree::Chat, StateAction::ChatPendingMessageRemoved(it)).by(origin)]);
        Ok(())
    }

    pub(super) fn reject(&mut self, from: u64, session: &str, act: TreeAction, why: &str) {
        let uri = act.tree.channel(session).uri();
        if let Some(origin) = act.origin {
            self.send_rejection(from, &uri, act.action, (origin, why));
        }
    }

    fn send_rejection(&mut self, to: u64, uri: &str, action: StateAction, (origin, why): (ActionOrigin, &str)) {
        let envelope = self.action_log.rejection(uri, action, origin, why);
        self.send_with(to, |out| _ = write::notification(out, "action", &envelope));
    }
}

pub fn not_for_clients() -> String {
    "castor does not take this action from clients".to_owned()
}

/// Clients speak for users.
fn check_message(it: &Message) -> Verdict {
    match it.origin.kind {
        MessageKind::User => messages::check_attachments(it),
        _ => Err("a client sends messages of the user alone".to_owned()),
    }
}
