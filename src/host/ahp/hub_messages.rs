//! Messages of the hub: updates and questions of the agent, and answers to the host's own requests.

use ahp::ahp_types::actions::StateAction;
use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    AhpHost,
    config::{self, ConfigOption},
    hosted_session::{SessionStage, TreeAction},
    hub_requests::{HubOutcome, HubRequest},
    read_params,
    turn_end::{TurnOutcome, notification_part},
};
use castor_wire::{
    acp::client::{ClientEvent, PermissionQuestion, SessionEvent, read_value},
    jsonrpc::message::{self, Message, RequestId},
};

impl AhpHost {
    pub(super) fn take_hub_message(&mut self, text: &Bytes) {
        match message::parse(text) {
            Ok(Message::Response { id, outcome }) => self.settle(&id, outcome.map(|it| read_params(Some(&it)))),
            Ok(Message::Notification { method, params: Some(params) }) if method == "session/update" => {
                let (told, now) = (SessionEvent::read(&params), self.now_ms);
                let Some(hosted) = self.sessions.get_mut(&told.session) else { return };
                let acts = hosted.take_event(&told, now);
                self.emit(&told.session, acts);
                if let ClientEvent::Options(options) = &told.event {
                    let options: Vec<ConfigOption> = options.iter().map(ConfigOption::from).collect();
                    self.learn_models(&options);
                }
            }
            Ok(Message::Notification { method, params }) => self.take_notice(&method, &read_params(params.as_deref())),
            Ok(Message::Request { id, method, params }) if method == "session/request_permission" => {
                let asked: PermissionQuestion = read_value(read_params(params.as_deref())).unwrap_or_default();
                let session = asked.session_id.clone().unwrap_or_default();
                self.take_question(&session, id, asked);
            }
            Ok(Message::Request { id, method, params }) if method == "elicitation/create" => {
                self.take_form(id, &read_params(params.as_deref()));
            }
            Ok(Message::Request { id, method, params }) if method == "_castor/tool/call" => {
                self.take_tool_call(id, &read_params(params.as_deref()));
            }
            // What the host cannot show, another client may.
            Ok(Message::Request { .. }) | Err(_) => (),
        }
    }

    fn take_notice(&mut self, method: &str, params: &Value) {
        let session = text_in(params, "sessionId");
        match method {
            "$/cancel_request" => {
                if let Ok(id) = serde_json::from_value(params.get("requestId").cloned().unwrap_or_default()) {
                    self.withdraw_question(&id);
                    self.withdraw_tool_call(&id);
                }
            }
            "_castor/session/question_answered" => {
                if let Ok(id) = serde_json::from_value(params.get("requestId").cloned().unwrap_or_default()) {
                    self.take_other_answer(&session, &id, params.get("optionId").and_then(Value::as_str));
                }
            }
            "_castor/session/prompt_ended" => {
                let text = |name: &str| params.get(name).and_then(Value::as_str);
                self.end_other_prompt(&session, &TurnOutcome::Reported(text("stopReason"), text("error")));
            }
            "_castor/session/rewound" => self.note_rewound(&session),
            _ => (),
        }
    }

    fn settle(&mut self, id: &RequestId, outcome: HubOutcome) {
        match self.hub_requests.settle(id) {
            None | Some(HubRequest::Nothing) => (),
            Some(HubRequest::Create { asker, session, config }) => self.follow_create(asker, session, config, outcome),
            Some(HubRequest::Configure { asker, session }) => self.follow_configure(asker, &session, outcome),
            Some(HubRequest::Attach { session }) => self.follow_attach(&session, outcome),
            Some(HubRequest::FindFolder { session }) => self.follow_find(&session, outcome),
            Some(HubRequest::Load { session }) => self.follow_load(&session, outcome),
            Some(HubRequest::ReadState { session }) => self.follow_state(&session, outcome),
            Some(HubRequest::List { asker, page }) => self.follow_list(&asker, &page, outcome),
            Some(HubRequest::Dispose { asker, session }) => self.follow_dispose(&asker, &session, outcome),
            Some(HubRequest::Resolve { asker, wanted }) => self.follow_resolve(&asker, wanted, outcome),
            Some(HubRequest::ReadModels) => {
                let options = outcome.ok().and_then(|it| config::read_options(&it)).unwrap_or_default();
                self.learn_models(&options);
            }
            Some(HubRequest::Checkpoints { session }) => self.follow_checkpoints(&session, outcome),
            Some(HubRequest::Revert { asker, session, change }) => {
                self.follow_revert(&asker, (&session, change), outcome)
            }
            Some(HubRequest::FindCut { session, cut }) => self.follow_find_cut(&session, *cut, outcome),
            Some(HubRequest::ReadAnew { session }) => self.follow_read_anew(&session, outcome),
            Some(HubRequest::Tools { session }) => self.follow_tools(&session, outcome),
            Some(HubRequest::Customizations { session, list }) => {
                self.follow_customizations(&session, list, outcome);
            }
            Some(HubRequest::CloseForFolders { session, change }) => self.follow_close(&session, change, outcome),
            Some(HubRequest::Reopen { session, change }) => self.follow_reopen(&session, *change, outcome),
            Some(request) => self.settle_in_turn(request, outcome),
        }
    }

    /// What belongs to a session that is open.
    fn settle_in_turn(&mut self, request: HubRequest, outcome: HubOutcome) {
        match request {
            HubRequest::Prompt { session, turn } => match &outcome {
                Ok(it) => self.end_prompt(&session, &turn, &TurnOutcome::Answer(it)),
                Err(it) => self.end_prompt(&session, &turn, &TurnOutcome::Failed(it)),
            },
            HubRequest::Revive { session, turn } => match outcome {
                Ok(answer) => {
                    if let Some(it) = self.sessions.get_mut(&session) {
                        it.stage = SessionStage::Open;
                    }
                    self.take_options(&session, &answer);
                    self.prompt(&session, &turn);
                }
                Err(it) => self.end_prompt(&session, &turn, &TurnOutcome::Failed(&it)),
            },
            HubRequest::ChooseAgent { session, turn } => match outcome {
                Ok(answer) => {
                    self.take_options(&session, &answer);
                    self.send_prompt(&session, &turn);
                }
                Err(it) => self.end_prompt(&session, &turn, &TurnOutcome::Failed(&it)),
            },
            HubRequest::Steer { session, message, text } => self.follow_steering(&session, &message, text, outcome),
            HubRequest::Switch { from, session, act } => self.follow_switch(from, &session, *act, outcome),
            HubRequest::Apply { from, session, act } => self.follow_apply(from, &session, *act, outcome),
            _ => (),
        }
    }

    pub(super) fn take_options(&mut self, session: &str, answer: &Value) {
        let Some(options) = config::read_options(answer) else { return };
        let Some(hosted) = self.sessions.get_mut(session) else { return };
        let acts = hosted.take_options(options.clone());
        self.emit(session, acts);
        self.learn_models(&options);
    }

    /// The root lists the models that sessions offer.
    fn learn_models(&mut self, options: &[ConfigOption]) {
        if let Some(action) = config::agents_changed(options)
            && !matches!(&action, StateAction::RootAgentsChanged(it) if it.agents == self.root.agents)
        {
            self.emit_root(action);
        }
    }

    /// The agent did what a client wants to be so, or did not.
    fn follow_apply(&mut self, from: u64, session: &str, act: TreeAction, outcome: HubOutcome) {
        match outcome {
            Ok(answer) => {
                self.note_archived(session, &act.action);
                self.emit(session, vec![act]);
                self.take_options(session, &answer);
            }
            Err(it) => self.reject(from, session, act, &it.message),
        }
    }

    /// The agent closed a session that it archived. The status of the session is that of its chat.
    fn note_archived(&mut self, session: &str, action: &StateAction) {
        let StateAction::SessionIsArchivedChanged(it) = action else { return };
        self.catalog.set_archived(session, it.is_archived);
        let Some(hosted) = self.sessions.get_mut(session) else { return };
        if it.is_archived {
            hosted.stage = SessionStage::Dormant;
        }
        let chat = json!({ "type": "chat/isArchivedChanged", "isArchived": it.is_archived });
        self.emit(session, vec![TreeAction::chat(chat)]);
    }

    /// Words for a running turn: the model has them, or they begin a turn of their own.
    fn follow_steering(&mut self, session: &str, message: &str, text: String, outcome: HubOutcome) {
        let gone = json!({ "type": "chat/pendingMessageRemoved", "kind": "steering", "id": message });
        let is_taken = outcome.as_ref().is_ok_and(|it| it["outcome"] == "injected");
        let Some(hosted) = self.sessions.get(session) else { return };
        let Some(pending) = hosted.trees.chat.steering_message.clone().filter(|it| it.id == message) else { return };
        let mut acts = vec![TreeAction::chat(gone)];
        match hosted.listening_turn() {
            Some(turn) if is_taken => acts.push(notification_part(&turn, &format!("You said: {text}"))),
            _ if is_taken => (),
            _ => {
                let queued = json!({
                    "type": "chat/pendingMessageSet", "kind": "queued", "id": pending.id, "message": pending.message,
                });
                acts.push(TreeAction::chat(queued));
            }
        }
        self.emit(session, acts);
        self.start_waiting(session);
    }
}

pub fn text_in(params: &Value, name: &str) -> String {
    params.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}
