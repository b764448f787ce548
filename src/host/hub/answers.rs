//! Answers: the agent's to requests, and the first one of a connection to a question.

use serde_json::{Map, Value, json, value::RawValue};

use super::{AgentAnswer, AgentState, Errand, ForwardedRequest, Hub, envelope};
use castor_wire::{
    acp::own::attach::{PromptEnded, QuestionAnswered},
    jsonrpc::{message::RequestId, write},
};

impl Hub {
    /// The agent answers a request of the hub.
    pub(super) fn settle(&mut self, id: &RequestId, answer: AgentAnswer) {
        let Some(ForwardedRequest { from, id, errand }) = self.requests.settle(id) else { return };
        if let Some(client) = from.and_then(|it| self.connections.get_mut(&it)) {
            client.n_open = client.n_open.saturating_sub(1);
        }
        match errand {
            Errand::Greet => self.take_introduction(answer),
            Errand::Sleep(session) => self.settle_sleep(&session, &answer),
            Errand::Wake(session) => self.settle_wake(&session, answer),
            Errand::Attach(session) => self.join(&session, (from, &id), answer),
            errand => {
                // What follows from it is seen before those that asked know of it.
                let attaches = self.follow_answer(errand, from, &answer);
                if let Some(from) = from {
                    self.answer(from, &id, &answer);
                }
                if let (Some(session), Some(from)) = (attaches, from) {
                    self.ask_again(&session, from);
                }
            }
        }
    }

    /// Returns the session that the connection is attached to by it.
    fn follow_answer(&mut self, errand: Errand, from: Option<u64>, answer: &AgentAnswer) -> Option<String> {
        match (errand, answer) {
            (Errand::Open(place), Ok(result)) => {
                let session = field(result, "sessionId");
                self.open(&session, place, from);
                return Some(session);
            }
            (Errand::Load(session), Ok(_)) => return Some(session),
            (Errand::Load(session), Err(_)) => {
                if let Some(from) = from {
                    self.detach(&session, from);
                }
                self.forget_if_unused(&session);
            }
            (Errand::End(session), Ok(_)) => self.forget(&session),
            (Errand::Prompt(session), answer) => self.end_prompt(&session, from, answer),
            (Errand::Subscribe(session), Ok(result)) => {
                let id = field(result, "subscriptionId");
                match from.filter(|it| self.connections.contains_key(it)) {
                    Some(from) => _ = self.subscriptions.insert((session, id), from),
                    None => self.unsubscribe(&session, &id),
                }
            }
            (Errand::Unsubscribe(session, id), Ok(_)) => _ = self.subscriptions.remove(&(session, id)),
            _ => (),
        }
        None
    }

    fn take_introduction(&mut self, answer: AgentAnswer) {
        let AgentState::Starting(waiting) = std::mem::replace(&mut self.agent, AgentState::Absent) else { return };
        match answer {
            Ok(result) => {
                self.agent = AgentState::Ready(envelope::read(Some(&result)));
                waiting.into_iter().for_each(|(from, id)| self.introduce_agent(from, &id));
            }
            Err(_) => {
                for (from, id) in waiting {
                    self.answer(from, &id, &answer);
                }
            }
        }
    }

    /// A connection joins: it gets the history as updates, then the answer, then what happens from then on.
    fn join(&mut self, session: &str, (from, id): (Option<u64>, &RequestId), answer: AgentAnswer) {
        let Some(from) = from else { return };
        let answer = answer.map(|result| {
            let mut result: Map<String, Value> = envelope::read(Some(&result));
            self.attach(session, from);
            let prompts = self.sessions.get(session).map_or(0, |it| it.n_prompts);
            let meta = result.entry("_meta").or_insert_with(|| json!({}));
            if let Some(it) = envelope::object_at(meta, &["castor"]) {
                it.insert("serve".to_owned(), json!({ "prompts": prompts }));
            }
            let Some(Value::Array(history)) = result.remove("history") else { return result };
            for mut params in history {
                if let Some(it) = envelope::object_at(&mut params, &["_meta", "castor"]) {
                    it.insert("history".to_owned(), json!(true));
                }
                self.send_with(from, |out| _ = write::notification(out, "session/update", &params));
            }
            result
        });
        match answer {
            Ok(result) => {
                self.send_with(from, |out| write::result(out, id, &result));
                self.ask_again(session, from);
            }
            Err(error) => self.answer(from, id, &Err(error)),
        }
    }

    /// The others learn that the turn is over, and how.
    fn end_prompt(&mut self, session: &str, from: Option<u64>, answer: &AgentAnswer) {
        let now = self.now_ms;
        if let Some(it) = self.sessions.get_mut(session) {
            it.n_prompts = it.n_prompts.saturating_sub(1);
            it.last_used_ms = now;
        }
        let notice = PromptEnded {
            session_id: session,
            by: from.map(|it| self.name_client(it)),
            stop_reason: answer.as_ref().ok().map(|it| field(it, "stopReason")),
            error: answer.as_ref().err().map(|it| it.message.as_str()),
        };
        self.tell_others(session, from, "_castor/session/prompt_ended", &notice);
    }

    /// A connection answers a question: the first answer counts, and the others are told. An error of a client that cannot
    /// show it is none, as long as another may answer.
    pub(super) fn take_answer(&mut self, from: u64, id: RequestId, answer: AgentAnswer) {
        let Some(question) = self.questions.get_mut(&id).filter(|it| it.asked.contains(&from)) else { return };
        if answer.is_err() && question.asked.len() > 1 {
            question.asked.retain(|it| *it != from);
            return;
        }
        let Some(question) = self.questions.remove(&id) else { return };
        self.touch(&question.session);
        if question.is_call {
            return self.tell_agent(|out| envelope::write_answer(out, &id, &answer));
        }
        let outcome = answer.as_ref().ok().and_then(|it| serde_json::from_str::<Value>(it.get()).ok());
        let chosen = outcome.as_ref().and_then(|it| it.pointer("/outcome/optionId")).and_then(Value::as_str);
        let by = self.name_client(from);
        let act = json!({ "kind": "answer", "by": by, "requestId": id, "optionId": chosen });
        self.note_act(&question.session, act);
        self.tell_agent(|out| envelope::write_answer(out, &id, &answer));
        let others: Vec<u64> = question.asked.into_iter().filter(|it| *it != from).collect();
        let withdrawn = json!({ "requestId": id });
        let withdrawn = envelope::message(|out| _ = write::notification(out, "$/cancel_request", &withdrawn));
        others.into_iter().for_each(|it| self.send(it, withdrawn.clone()));
        let notice = QuestionAnswered { session_id: &question.session, request_id: &id, by, option_id: chosen };
        self.tell_others(&question.session, Some(from), "_castor/session/question_answered", &notice);
    }
}

fn field(result: &RawValue, name: &str) -> String {
    let fields: Map<String, Value> = envelope::read(Some(result));
    fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}
