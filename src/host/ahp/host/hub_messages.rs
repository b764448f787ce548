//! Messages of the hub: updates and questions of the agent, and answers to the host's own requests.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{opening, session_requests};
use crate::ahp::clients::hub_requests::HubRequest;
use crate::ahp::sessions::{
    SessionDesk, SessionStage, changes, client_tools::NO_OWNER, config, customizations, desk::learn_models, folders,
    truncation, turn_end::TurnOutcome,
};
use crate::ahp::{AhpHost, HubOutcome, Next};
use castor_wire::acp::client::{
    ClientEvent, FieldForm, HostedCall, PermissionQuestion, SessionEvent, SessionNews, ToolAnswer, read_text,
};
use castor_wire::jsonrpc::message::{self, Message, RequestId};

pub fn take_message(host: &mut AhpHost, text: &Bytes) {
    match message::parse(text) {
        Ok(Message::Response { id, outcome }) => {
            let outcome = outcome.map(|it| serde_json::from_str(it.get()).unwrap_or_default());
            if let Some(HubRequest { session, next }) = host.clients.settle(&id) {
                settle(host, &session, next, outcome);
            }
        }
        Ok(Message::Notification { method, params }) => take_notice(host, &method, params.as_deref()),
        Ok(Message::Request { id, method, params }) => take_request(host, id, &method, params.as_deref()),
        Err(_) => (),
    }
}

/// What the host cannot show, another client may.
fn take_request(host: &mut AhpHost, id: RequestId, method: &str, params: Option<&RawValue>) {
    match method {
        "session/request_permission" => {
            let asked: PermissionQuestion = read(params);
            if let Some(mut desk) = asked.session_id.as_deref().and_then(|it| host.desk(it)) {
                desk.take_question(id, asked);
            }
        }
        "elicitation/create" => {
            let form: FieldForm = read(params);
            if let Some(mut desk) = host.desk(&form.session_id) {
                desk.take_form(id, &form);
            }
        }
        "_castor/tool/call" => {
            let called: HostedCall = read(params);
            match host.desk(&called.session_id) {
                Some(mut desk) => desk.take_tool_call(id, called),
                None => host.clients.answer_hub(&id, &ToolAnswer::failed(NO_OWNER)),
            }
        }
        _ => (),
    }
}

fn take_notice(host: &mut AhpHost, method: &str, params: Option<&RawValue>) {
    if let ("session/update", Some(params)) = (method, params) {
        return take_update(host, &SessionEvent::read(params));
    }
    let news: SessionNews = read(params);
    if let ("$/cancel_request", Some(id)) = (method, &news.request_id) {
        return host.each_desk(|desk| {
            desk.withdraw_question(id);
            desk.forget_tool_call(id);
        });
    }
    let Some(mut desk) = host.desk(&news.session_id) else { return };
    match (method, &news.request_id) {
        ("_castor/session/question_answered", Some(id)) => desk.take_other_answer(id, news.option_id.as_deref()),
        ("_castor/session/prompt_ended", _) => {
            let SessionNews { stop_reason, error, .. } = news;
            desk.end_other_prompt(&TurnOutcome { stop_reason, error, ..TurnOutcome::default() });
        }
        ("_castor/session/rewound", _) => truncation::note_rewound(&mut desk),
        _ => (),
    }
}

fn take_update(host: &mut AhpHost, told: &SessionEvent) {
    let Some(mut desk) = host.desk(&told.session) else { return };
    let acts = desk.hosted.take_event(told, desk.clients.now_ms);
    desk.emit(acts);
    if let ClientEvent::Options(options) = &told.event {
        learn_models(&mut host.clients, options);
    }
}

/// Broken members are left out.
fn read<T: DeserializeOwned + Default>(params: Option<&RawValue>) -> T {
    params.and_then(|it| read_text(it.get())).unwrap_or_default()
}

fn settle(host: &mut AhpHost, session: &str, next: Next, outcome: HubOutcome) {
    match next {
        Next::Nothing => (),
        Next::Create(asker, config) => session_requests::follow_create(host, session, asker, config, outcome),
        Next::Configure(asker) => session_requests::follow_configure(host, session, &asker, outcome),
        Next::Attach => opening::follow_attach(host, session, outcome),
        Next::FindFolder => opening::follow_find(host, session, outcome),
        Next::Load => opening::follow_load(host, session, outcome),
        Next::ReadState => opening::follow_state(host, session, outcome),
        Next::List(asker, page) => session_requests::follow_list(host, &asker, &page, outcome),
        Next::Dispose(asker) => session_requests::follow_dispose(host, session, &asker, outcome),
        Next::Resolve(asker, wanted) => {
            session_requests::follow_resolve(host, &asker, wanted.as_ref(), outcome);
        }
        Next::ReadModels => {
            let options = outcome.ok().and_then(config::read_options).unwrap_or_default();
            learn_models(&mut host.clients, &options);
        }
        next => match host.desk(session) {
            Some(mut desk) => settle_in(&mut desk, next, outcome),
            None => settle_gone(host, session, next, outcome),
        },
    }
}

/// The session is gone meanwhile: its clients still learn what became of their requests.
fn settle_gone(host: &mut AhpHost, session: &str, next: Next, outcome: HubOutcome) {
    let (from, act) = match next {
        Next::Revert(asker, _) => return host.clients.settle_client(&asker, changes::revert_result(outcome)),
        Next::Apply(it) | Next::Switch(it) => (it.from, *it.act),
        Next::CloseForFolders(it) | Next::Reopen(it) => (it.from, it.act),
        _ => return,
    };
    if let Err(it) = outcome {
        host.clients.reject(from, session, act, &it.message);
    }
}

/// Follows an answer about a session that is here.
fn settle_in(desk: &mut SessionDesk<'_>, next: Next, outcome: HubOutcome) {
    match next {
        Next::Checkpoints => changes::follow_checkpoints(desk, outcome),
        Next::Revert(asker, change) => changes::follow_revert(desk, &asker, change, outcome),
        Next::FindCut(cut) => truncation::follow_find_cut(desk, *cut, outcome),
        Next::ReadAnew => truncation::follow_read_anew(desk, &outcome),
        Next::Tools => desk.follow_tools(outcome),
        Next::Customizations(list) => customizations::follow_customizations(desk, list, outcome),
        Next::CloseForFolders(change) => folders::follow_close(desk, change, outcome),
        Next::Reopen(change) => folders::follow_reopen(desk, *change, outcome),
        Next::EndTurn(turn) => desk.end_prompt(&turn, &outcome.into()),
        Next::Revive(turn) => {
            if outcome.is_ok() {
                desk.hosted.stage = SessionStage::Open;
            }
            follow_preparation(desk, &turn, outcome, |desk, turn| desk.prompt(turn));
        }
        Next::ChooseAgent(turn) => follow_preparation(desk, &turn, outcome, |desk, turn| desk.send_prompt(turn)),
        Next::Steer(words) => desk.follow_steering(words, outcome),
        Next::Switch(it) => customizations::follow_switch(desk, it, outcome),
        Next::Apply(it) => desk.follow_apply(it, outcome),
        _ => (),
    }
}

/// Something that had to be so before a turn is so, or the turn ends.
fn follow_preparation(
    desk: &mut SessionDesk<'_>,
    turn: &str,
    outcome: HubOutcome,
    then: fn(&mut SessionDesk<'_>, &str),
) {
    match outcome {
        Ok(answer) => {
            desk.take_options(answer);
            then(desk, turn);
        }
        failed => desk.end_prompt(turn, &failed.into()),
    }
}
