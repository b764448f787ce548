//! Questions of the agent: approvals of calls as confirmations, others as requests for input. The first answer counts.

use std::collections::HashMap;

use ahp::ahp_types::{
    actions::{
        ActionOrigin, ChatInputCompletedAction, ChatToolCallConfirmedAction, ChatToolCallReadyAction, StateAction,
    },
    state::{
        ChatInputAnswer, ChatInputAnswerValue, ChatInputAnswered, ChatInputOption, ChatInputQuestion,
        ChatInputResponseKind, ChatInputSelectedAnswerValue, ChatInputSingleSelectQuestion, ConfirmationOption,
        ConfirmationOptionKind, FileEdit, FileEditCollection, SessionChatInputRequest, SessionInputRequest,
        SessionToolConfirmationRequest, ToolCallCancellationReason, ToolCallConfirmationReason,
        ToolCallConfirmationState, ToolCallState,
    },
};
use serde_json::{Map, Value, json};

use super::{
    HostedSession, SessionDesk, TreeAction, Trees, acts,
    calls::file_edit,
    forms,
    open_requests::{OpenQuestion, QuestionOption, key},
};
use castor_wire::acp::client::{
    CallPart, CallUpdate, FieldForm, FormAnswer, PermissionAnswer, PermissionChoice, PermissionQuestion,
};
use castor_wire::jsonrpc::message::RequestId;

/// The one question of a request for input.
const QUESTION: &str = "choice";

impl SessionDesk<'_> {
    /// The agent asks about a call, or something else with options.
    pub fn take_question(&mut self, id: RequestId, asked: PermissionQuestion) {
        // Other clients may answer; what is cancelled is answered by the agent itself.
        let Some(turn) = self.hosted.listening_turn() else { return };
        let Some(call) = asked.tool_call.clone() else { return };
        let question = open_question(asked, &call, &turn);
        // One without an approval may be about something else than a call, as about trust in the folder.
        let acts = match question.is_approval {
            true => {
                let begins = self.hosted.begin_call(&turn, &call);
                begins.into_iter().chain([self.hosted.ask_approval(&question, &call)]).collect()
            }
            false => vec![input_request(&question, &id, &call)],
        };
        self.open_question(id, question, acts);
    }

    /// The agent asks with fields; pages to visit are shown by other clients.
    pub fn take_form(&mut self, id: RequestId, form: &FieldForm) {
        let Some(turn) = self.hosted.listening_turn().filter(|_| form.has_fields()) else { return };
        let call = form.tool_call_id.clone();
        let question =
            OpenQuestion { turn, call, is_approval: false, is_form: true, is_editable: false, options: Vec::new() };
        let act = acts::input_requested(question.input_id(&id), form.message.clone(), forms::questions(form));
        self.open_question(id, question, vec![act]);
    }

    /// A question is open, and the session's own list of what waits for the user has an entry.
    fn open_question(&mut self, id: RequestId, question: OpenQuestion, acts: Vec<TreeAction>) {
        self.hosted.turn.part = None;
        self.emit(acts);
        let listed = listed_question(self.hosted, &id, &question);
        self.hosted.requests.questions.insert(id, question);
        self.emit(listed.map(acts::input_needed));
    }

    /// A client confirms or denies a call.
    ///
    /// # Errors
    /// Why that is not possible, in words.
    pub fn confirm_call(&mut self, action: ChatToolCallConfirmedAction, origin: ActionOrigin) -> Result<(), String> {
        let is_it = |it: &OpenQuestion| it.is_approval && it.call == action.tool_call_id && it.turn == action.turn_id;
        let (id, question) = self.hosted.requests.question(|_, it| is_it(it))?;
        let option = question.option(action.selected_option_id.as_deref(), action.approved);
        let option = option.ok_or_else(|| "the question has no such option".to_owned())?;
        let edited = action.edited_tool_input.as_deref().filter(|_| action.approved);
        let edited = edited.map(|it| edited_input(it, &question, option)).transpose()?;
        self.emit([TreeAction::chat(StateAction::ChatToolCallConfirmed(action)).by(origin)]);
        self.clients.answer_hub(&id, &PermissionAnswer::of(Some(&option.id)).with_input(edited));
        self.close_question(&id);
        Ok(())
    }

    /// A client answers a request for input.
    ///
    /// # Errors
    /// Why that is not possible, in words.
    pub fn complete_input(&mut self, action: ChatInputCompletedAction, origin: ActionOrigin) -> Result<(), String> {
        let is_it = |id: &RequestId, it: &OpenQuestion| !it.is_approval && it.input_id(id) == action.request_id;
        let (id, question) = self.hosted.requests.question(is_it)?;
        let trees = &self.hosted.trees;
        let form = question.is_form.then(|| form_answer(trees, &action));
        let option = match &action.response {
            _ if question.is_form => None,
            ChatInputResponseKind::Accept => {
                let chosen = chosen_option(action.answers.as_ref()).or_else(|| chosen_option(drafts(trees, &action)));
                let known = question.options.iter().find(|it| Some(it.id.as_str()) == chosen);
                Some(known.ok_or_else(|| "answer with one of the options".to_owned())?)
            }
            _ => question.option(None, false),
        };
        self.emit([TreeAction::chat(StateAction::ChatInputCompleted(action)).by(origin)]);
        match form {
            Some(it) => self.clients.answer_hub(&id, &it),
            None => self.clients.answer_hub(&id, &PermissionAnswer::of(option.map(|it| it.id.as_str()))),
        }
        self.close_question(&id);
        Ok(())
    }

    fn close_question(&mut self, id: &RequestId) {
        if self.hosted.requests.questions.remove(id).is_some() {
            self.emit([acts::input_settled(key(id))]);
        }
    }

    /// Another client of the hub answered.
    pub fn take_other_answer(&mut self, id: &RequestId, option: Option<&str>) {
        let requests = &mut self.hosted.requests;
        let withdrawn = requests.withdrawn.take().filter(|it| it.0 == *id).map(|it| it.1);
        let Some(question) = requests.questions.get(id).cloned().or(withdrawn) else { return };
        let chosen = question.options.iter().find(|it| Some(it.id.as_str()) == option);
        self.emit([match question.is_approval {
            true => confirmed_elsewhere(&question, chosen),
            false => input_answered_elsewhere(&question, id, chosen),
        }]);
        self.close_question(id);
    }

    /// The agent does not wait for answers any more.
    pub fn withdraw_questions(&mut self) {
        let ids: Vec<RequestId> = self.hosted.requests.questions.keys().cloned().collect();
        ids.iter().for_each(|it| self.close_question(it));
    }

    /// The agent cancels a question. If another client answered, that comes right after.
    pub fn withdraw_question(&mut self, id: &RequestId) {
        if let Some(question) = self.hosted.requests.questions.get(id) {
            self.hosted.requests.withdrawn = Some((id.clone(), question.clone()));
            self.close_question(id);
        }
    }
}

impl HostedSession {
    fn ask_approval(&mut self, question: &OpenQuestion, call: &CallUpdate) -> TreeAction {
        let parts = || call.content.iter().flatten();
        let reasons: Vec<&str> = parts().filter_map(CallPart::text).collect();
        let diffs = parts().filter_map(CallPart::diff);
        let items: Vec<FileEdit> = diffs.map(|it| file_edit(&mut self.contents, &self.id, it)).collect();
        let options = question.options.iter().map(|it| ConfirmationOption {
            id: it.id.clone(),
            label: it.name.clone(),
            kind: if it.allows() { ConfirmationOptionKind::Approve } else { ConfirmationOptionKind::Deny },
            group: None,
        });
        TreeAction::chat(StateAction::ChatToolCallReady(ChatToolCallReadyAction {
            options: Some(options.collect()),
            editable: Some(question.is_editable),
            confirmation_title: (!reasons.is_empty()).then(|| reasons.join("\n").into()),
            edits: (!items.is_empty()).then_some(FileEditCollection { items }),
            ..self.ready_action(&question.turn, &question.call)
        }))
    }
}

/// The entry of a question in the session's list; `None`: the chat does not show the question.
fn listed_question(hosted: &HostedSession, id: &RequestId, question: &OpenQuestion) -> Option<SessionInputRequest> {
    let (chat, key) = (hosted.chat_uri(), key(id));
    if !question.is_approval {
        let request = hosted.trees.input_request(&question.input_id(id))?.clone();
        return Some(SessionInputRequest::ChatInput(SessionChatInputRequest { id: key, chat, request }));
    }
    let tool_call = match hosted.trees.call_state(&question.call)? {
        ToolCallState::PendingConfirmation(it) => ToolCallConfirmationState::PendingConfirmation(it.clone()),
        it => ToolCallConfirmationState::Unknown(json!(it)),
    };
    let turn_id = question.turn.clone();
    let request = SessionToolConfirmationRequest { id: key, chat, turn_id, tool_call };
    Some(SessionInputRequest::ToolConfirmation(request))
}

type Answers = HashMap<String, ChatInputAnswer>;

/// What a client filled in before the request was complete.
fn drafts<'t>(trees: &'t Trees, action: &ChatInputCompletedAction) -> Option<&'t Answers> {
    trees.input_request(&action.request_id)?.answers.as_ref()
}

/// Fields that were filled in, also before; what the client sends last counts.
fn form_answer(trees: &Trees, action: &ChatInputCompletedAction) -> FormAnswer {
    let drafts = drafts(trees, action).into_iter().flatten();
    match action.response {
        ChatInputResponseKind::Accept => {
            FormAnswer::Accept { content: forms::content(drafts.chain(action.answers.iter().flatten())) }
        }
        ChatInputResponseKind::Decline => FormAnswer::Decline,
        ChatInputResponseKind::Cancel => FormAnswer::Cancel,
    }
}

fn chosen_option(answers: Option<&Answers>) -> Option<&str> {
    match answers?.get(QUESTION)? {
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
fn edited_input(text: &str, question: &OpenQuestion, option: &QuestionOption) -> Result<Map<String, Value>, String> {
    if !question.is_editable || option.kind != "allow_once" {
        return Err(
            "castor takes changed input only where a call is allowed once; deny it, and say what to change".to_owned()
        );
    }
    serde_json::from_str(text).map_err(|_| "the changed input is no JSON object".to_owned())
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
    let option = |it: &QuestionOption| ChatInputOption {
        id: it.id.clone(),
        label: it.name.clone(),
        description: None,
        recommended: None,
    };
    let choice = ChatInputSingleSelectQuestion {
        id: QUESTION.to_owned(),
        title: None,
        message: title.to_owned(),
        required: Some(true),
        options: question.options.iter().map(option).collect(),
        allow_freeform_input: None,
    };
    let message = Some(words.unwrap_or(title).to_owned());
    acts::input_requested(question.input_id(id), message, vec![ChatInputQuestion::SingleSelect(choice)])
}

fn confirmed_elsewhere(question: &OpenQuestion, chosen: Option<&QuestionOption>) -> TreeAction {
    let approved = chosen.is_some_and(QuestionOption::allows);
    TreeAction::chat(StateAction::ChatToolCallConfirmed(with_none!(ChatToolCallConfirmedAction {
        turn_id: question.turn.clone(),
        tool_call_id: question.call.clone(),
        approved,
        confirmed: approved.then_some(ToolCallConfirmationReason::UserAction),
        reason: (!approved).then_some(ToolCallCancellationReason::Denied),
        selected_option_id: chosen.map(|it| it.id.clone()),
    } meta edited_tool_input user_suggestion reason_message)))
}

fn input_answered_elsewhere(question: &OpenQuestion, id: &RequestId, chosen: Option<&QuestionOption>) -> TreeAction {
    let answer = |it: &QuestionOption| {
        let value = ChatInputSelectedAnswerValue { value: it.id.clone(), freeform_values: None };
        let answered = ChatInputAnswered { value: ChatInputAnswerValue::Selected(value) };
        HashMap::from([(QUESTION.to_owned(), ChatInputAnswer::Submitted(answered))])
    };
    TreeAction::chat(StateAction::ChatInputCompleted(ChatInputCompletedAction {
        request_id: question.input_id(id),
        response: if chosen.is_some() { ChatInputResponseKind::Accept } else { ChatInputResponseKind::Cancel },
        answers: chosen.map(answer),
    }))
}
