//! Questions of the agent: approvals of calls as confirmations, others as requests for input. The first answer counts.

use std::collections::HashMap;

use ahp::ahp_types::{
    actions::{ActionOrigin, ChatInputCompletedAction, ChatToolCallConfirmedAction, StateAction},
    state::{ChatInputAnswer, ChatInputAnswerValue, ChatInputResponseKind, ResponsePart},
};
use serde_json::{Value, json};

use super::{
    AhpHost,
    calls::file_edit,
    forms,
    hosted_session::{HostedSession, Tree, TreeAction},
    hub_messages::text_in,
    open_requests::{OpenQuestion, QuestionOption, key},
    with_members,
};
use castor_wire::{
    acp::client::{CallPart, CallUpdate, PermissionChoice, PermissionQuestion},
    jsonrpc::message::RequestId,
};

/// The one question of a request for input.
const QUESTION: &str = "choice";

impl AhpHost {
    /// `session/request_permission`.
    pub(super) fn take_question(&mut self, session: &str, id: RequestId, asked: PermissionQuestion) {
        let Some(hosted) = self.sessions.get_mut(session) else { return };
        let Some(turn) = hosted.listening_turn() else {
            // The others may answer it; what is cancelled is answered by the agent itself.
            return;
        };
        let Some(call) = asked.tool_call.clone() else { return };
        let question = open_question(asked, &call, &turn);
        hosted.turn.part = None;
        let mut acts = Vec::new();
        match question.is_approval {
            true => {
                acts.extend(hosted.begin_call(&turn, &call));
                acts.push(hosted.ask_approval(&question, &call));
            }
            // It may be about something else than a call, as about trust in the folder.
            false => acts.push(input_request(&question, &id, &call)),
        }
        hosted.requests.questions.insert(id.clone(), question);
        self.emit(session, acts);
        self.mirror_question(session, &id);
    }

    /// `elicitation/create`; pages to visit are shown by other clients.
    pub(super) fn take_form(&mut self, id: RequestId, params: &Value) {
        let session = text_in(params, "sessionId");
        let Some(hosted) = self.sessions.get_mut(&session).filter(|_| params["mode"] == "form") else { return };
        let Some(turn) = hosted.listening_turn() else { return };
        let call = text_in(params, "toolCallId");
        let question =
            OpenQuestion { turn, call, is_approval: false, is_form: true, is_editable: false, options: Vec::new() };
        hosted.turn.part = None;
        let request = json!({
            "id": question.input_id(&id), "message": params["message"], "questions": forms::questions(params),
        });
        hosted.requests.questions.insert(id.clone(), question);
        let act = TreeAction::chat(json!({ "type": "chat/inputRequested", "request": request }));
        self.emit(&session, vec![act]);
        self.mirror_question(&session, &id);
    }

    /// The session's own list of what waits for the user.
    fn mirror_question(&mut self, session: &str, id: &RequestId) {
        let Some(hosted) = self.sessions.get(session) else { return };
        let Some(question) = hosted.requests.questions.get(id) else { return };
        let chat = hosted.chat_uri();
        let request = match question.is_approval {
            true => json!({
                "kind": "toolConfirmation", "id": key(id), "chat": chat, "turnId": question.turn,
                "toolCall": hosted.call_state(&question.call),
            }),
            false => {
                let parts = hosted.trees.chat.active_turn.as_ref().map(|it| json!(it.response_parts));
                let wanted = question.input_id(id);
                let parts = parts.as_ref().and_then(Value::as_array).into_iter().flatten();
                let request = parts.filter_map(|it| it.get("request")).find(|it| it["id"] == wanted.as_str());
                json!({ "kind": "chatInput", "id": key(id), "chat": chat, "request": request })
            }
        };
        self.emit(session, vec![TreeAction::session(json!({ "type": "session/inputNeededSet", "request": request }))]);
    }

    /// A client confirms or denies a call.
    ///
    /// # Errors
    /// Why that is not possible, in words.
    pub(super) fn confirm_call(
        &mut self,
        session: &str,
        action: ChatToolCallConfirmedAction,
        origin: ActionOrigin,
    ) -> Result<(), String> {
        let is_it = |it: &OpenQuestion| it.is_approval && it.call == action.tool_call_id && it.turn == action.turn_id;
        let (id, question) = self.question_of(session, is_it)?;
        let option = question.option(action.selected_option_id.as_deref(), action.approved);
        let option = option.ok_or_else(|| "the question has no such option".to_owned())?;
        let edited = action.edited_tool_input.as_deref().filter(|_| action.approved);
        let edited = edited.map(|it| edited_input(it, &question, option)).transpose()?;
        let answer = json!({ "outcome": { "outcome": "selected", "optionId": option.id } });
        let answer = with_members(answer, [("_meta", edited.map(|it| json!({ "castor": { "input": it } })))]);
        let act = TreeAction::new(Tree::Chat, StateAction::ChatToolCallConfirmed(action)).by(origin);
        self.emit(session, vec![act]);
        self.answer_hub(&id, &answer);
        self.close_question(session, &id);
        Ok(())
    }

    /// A client answers a request for input.
    ///
    /// # Errors
    /// Why that is not possible, in words.
    pub(super) fn complete_input(
        &mut self,
        session: &str,
        action: ChatInputCompletedAction,
        origin: ActionOrigin,
    ) -> Result<(), String> {
        let wanted = action.request_id.clone();
        let hosted = self.hosted(session)?;
        let mut open = hosted.requests.questions.iter().filter(|it| !it.1.is_approval);
        let (id, question) = open.find(|(id, it)| it.input_id(id) == wanted).ok_or_else(answered)?;
        let (id, question) = (id.clone(), question.clone());
        let answer = match action.response {
            _ if question.is_form => hosted.form_answer(&action),
            ChatInputResponseKind::Accept => {
                let answers = action.answers.as_ref();
                let chosen = answers.and_then(|it| it.get(QUESTION)).and_then(chosen_option).map(str::to_owned);
                let chosen = chosen.or_else(|| hosted.drafted_option(&wanted));
                let known = chosen.filter(|it| question.options.iter().any(|option| option.id == *it));
                let option = known.ok_or_else(|| "answer with one of the options".to_owned())?;
                json!({ "outcome": { "outcome": "selected", "optionId": option } })
            }
            _ => match question.option(None, false) {
                Some(it) => json!({ "outcome": { "outcome": "selected", "optionId": it.id } }),
                None => json!({ "outcome": { "outcome": "cancelled" } }),
            },
        };
        self.emit(session, vec![TreeAction::new(Tree::Chat, StateAction::ChatInputCompleted(action)).by(origin)]);
        self.answer_hub(&id, &answer);
        self.close_question(session, &id);
        Ok(())
    }

    fn question_of(
        &self,
        session: &str,
        is_it: impl Fn(&OpenQuestion) -> bool,
    ) -> Result<(RequestId, OpenQuestion), String> {
        let hosted = self.sessions.get(session);
        let found = hosted.and_then(|it| it.requests.questions.iter().find(|it| is_it(it.1)));
        found.map(|(id, it)| (id.clone(), it.clone())).ok_or_else(answered)
    }

    fn close_question(&mut self, session: &str, id: &RequestId) {
        let Some(hosted) = self.sessions.get_mut(session) else { return };
        if hosted.requests.questions.remove(id).is_some() {
            self.emit(
                session,
                vec![TreeAction::session(json!({ "type": "session/inputNeededRemoved", "id": key(id) }))],
            );
        }
    }

    /// Another client of the hub answered.
    pub(super) fn take_other_answer(&mut self, session: &str, id: &RequestId, option: Option<&str>) {
        let Some(hosted) = self.sessions.get_mut(session) else { return };
        let withdrawn = hosted.requests.withdrawn.take().filter(|it| it.0 == *id).map(|it| it.1);
        let Some(question) = hosted.requests.questions.get(id).cloned().or(withdrawn) else { return };
        let chosen = question.options.iter().find(|it| Some(it.id.as_str()) == option);
        let act = match question.is_approval {
            true => confirmed_elsewhere(&question, chosen),
            false => input_answered_elsewhere(&question, id, chosen),
        };
        self.emit(session, vec![act]);
        self.close_question(session, id);
    }

    /// The agent does not wait for answers any more.
    pub(super) fn withdraw_questions(&mut self, session: &str) {
        let ids: Vec<RequestId> =
            self.sessions.get(session).map(|it| it.requests.questions.keys().cloned().collect()).unwrap_or_default();
        ids.iter().for_each(|it| self.close_question(session, it));
    }

    /// `$/cancel_request`. If another client answered, that comes right after.
    pub(super) fn withdraw_question(&mut self, id: &RequestId) {
        let Some((session, hosted)) = self.sessions.iter_mut().find(|it| it.1.requests.questions.contains_key(id))
        else {
            return;
        };
        let session = session.clone();
        hosted.requests.withdrawn = hosted.requests.questions.get(id).map(|it| (id.clone(), it.clone()));
        self.close_question(&session, id);
    }
}

impl HostedSession {
    fn ask_approval(&mut self, question: &OpenQuestion, call: &CallUpdate) -> TreeAction {
        let parts = || call.content.iter().flatten();
        let reasons: Vec<&str> = parts().filter_map(CallPart::text).collect();
        let diffs = parts().filter_map(CallPart::diff);
        let edits: Vec<Value> = diffs.map(|it| file_edit(&mut self.contents, &self.id, it)).collect();
        let options = question.options.iter().map(|it| {
            let kind = if it.allows() { "approve" } else { "deny" };
            json!({ "id": it.id, "label": it.name, "kind": kind })
        });
        let members = [
            ("options", Some(options.collect())),
            ("editable", Some(json!(question.is_editable))),
            ("confirmationTitle", (!reasons.is_empty()).then(|| json!(reasons.join("\n")))),
            ("edits", (!edits.is_empty()).then(|| json!({ "items": edits }))),
        ];
        TreeAction::chat(with_members(self.ready_action(&question.turn, &question.call), members))
    }

    /// What a client chose before it completed the request.
    fn drafted_option(&self, request: &str) -> Option<String> {
        self.drafts(request)?.get(QUESTION).and_then(chosen_option).map(str::to_owned)
    }

    fn drafts(&self, request: &str) -> Option<&HashMap<String, ChatInputAnswer>> {
        let parts = &self.trees.chat.active_turn.as_ref()?.response_parts;
        let found = parts.iter().find_map(|it| match it {
            ResponsePart::InputRequest(it) if it.request.id == request => Some(&it.request),
            _ => None,
        });
        found?.answers.as_ref()
    }

    /// Fields that were filled in, also before; what the client sends last counts.
    fn form_answer(&self, action: &ChatInputCompletedAction) -> Value {
        let drafts = self.drafts(&action.request_id).into_iter().flatten();
        match action.response {
            ChatInputResponseKind::Accept => {
                json!({ "action": "accept", "content": forms::content(drafts.chain(action.answers.iter().flatten())) })
            }
            ChatInputResponseKind::Decline => json!({ "action": "decline" }),
            _ => json!({ "action": "cancel" }),
        }
    }
}

fn answered() -> String {
    "the question has an answer already, or was withdrawn".to_owned()
}

fn chosen_option(answer: &ChatInputAnswer) -> Option<&str> {
    match answer {
        ChatInputAnswer::Draft(it) | ChatInputAnswer::Submitted(it) => match &it.value {
            ChatInputAnswerValue::Selected(it) => Some(&it.value),
            ChatInputAnswerValue::Text(it) => Some(&it.value),
            _ => None,
        },
        ChatInputAnswer::Skipped(_) => None,
    }
}

/// All arguments of a call, as a client changed them. The agent decides about them anew.
///
/// # Errors
/// Why they do not count, in words.
fn edited_input(text: &str, question: &OpenQuestion, option: &QuestionOption) -> Result<Value, String> {
    if !question.is_editable || option.kind != "allow_once" {
        return Err(
            "castor takes changed input only where a call is allowed once; deny it, and say what to change".to_owned()
        );
    }
    let input = serde_json::from_str(text).ok().filter(Value::is_object);
    input.ok_or_else(|| "the changed input is no JSON object".to_owned())
}

/// castor's approvals have the input of the call with them; its other questions do not.
fn open_question(asked: PermissionQuestion, call: &CallUpdate, turn: &str) -> OpenQuestion {
    let option =
        |it: PermissionChoice| QuestionOption { id: it.option_id, name: it.name.unwrap_or_default(), kind: it.kind };
    OpenQuestion {
        turn: turn.to_owned(),
        call: call.id.clone(),
        is_approval: call.raw_input.is_some(),
        is_form: false,
        is_editable: asked.meta.castor.editable == Some(true),
        options: asked.options.into_iter().map(option).collect(),
    }
}

fn input_request(question: &OpenQuestion, id: &RequestId, call: &CallUpdate) -> TreeAction {
    let words = call.content.iter().flatten().next().and_then(CallPart::text);
    let title = call.title.as_deref().unwrap_or_default();
    let options: Vec<Value> = question.options.iter().map(|it| json!({ "id": it.id, "label": it.name })).collect();
    let request = json!({
        "id": question.input_id(id), "message": words.unwrap_or(title),
        "questions": [
            { "kind": "single-select", "id": QUESTION, "message": title, "required": true, "options": options },
        ],
    });
    TreeAction::chat(json!({ "type": "chat/inputRequested", "request": request }))
}

fn confirmed_elsewhere(question: &OpenQuestion, chosen: Option<&QuestionOption>) -> TreeAction {
    let approved = chosen.is_some_and(QuestionOption::allows);
    let action = json!({
        "type": "chat/toolCallConfirmed", "turnId": question.turn, "toolCallId": question.call, "approved": approved,
    });
    let members = [
        ("confirmed", approved.then(|| json!("user-action"))),
        ("reason", (!approved).then(|| json!("denied"))),
        ("selectedOptionId", chosen.map(|it| json!(it.id))),
    ];
    TreeAction::chat(with_members(action, members))
}

fn input_answered_elsewhere(question: &OpenQuestion, id: &RequestId, chosen: Option<&QuestionOption>) -> TreeAction {
    let request = question.input_id(id);
    TreeAction::chat(match chosen {
        Some(it) => json!({
            "type": "chat/inputCompleted", "requestId": request, "response": "accept",
            "answers": { QUESTION: { "state": "submitted", "value": { "kind": "selected", "value": it.id } } },
        }),
        None => json!({ "type": "chat/inputCompleted", "requestId": request, "response": "cancel" }),
    })
}
