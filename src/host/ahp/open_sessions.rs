//! Sessions that exist and are opened for a client: joined where they are open in the agent, else loaded.

use serde_json::{Value, json};

use super::{
    AhpHost, annotations, changes,
    hosted_session::{HostedSession, SessionStage, TreeAction},
    hub_requests::{HubOutcome, HubRequest},
    time, with_members,
};

impl AhpHost {
    /// Unless it is opened already.
    pub(super) fn open_session(&mut self, session: &str) {
        if self.sessions.contains_key(session) {
            return;
        }
        let hosted = HostedSession::new(session, "", (&time(self.now_ms), self.action_log.last()));
        self.sessions.insert(session.to_owned(), hosted);
        match self.catalog.folders.contains_key(session) {
            true => self.attach_session(session),
            false => self.find_folder(session, None),
        }
    }

    fn attach_session(&mut self, session: &str) {
        if let (Some(it), Some(cwd)) = (self.sessions.get_mut(session), self.catalog.folders.get(session)) {
            it.set_folders(cwd, self.catalog.more_folders(session));
        }
        self.ask_hub(
            HubRequest::Attach { session: session.to_owned() },
            "_castor/session/attach",
            &json!({ "sessionId": session, "history": true }),
        );
    }

    pub(super) fn follow_attach(&mut self, session: &str, outcome: HubOutcome) {
        match outcome {
            Ok(answer) => self.finish_history(session, &answer),
            // It is not open.
            Err(_) if self.catalog.folders.contains_key(session) => self.load_session(session),
            Err(_) => self.fail_opening(session),
        }
    }

    fn find_folder(&mut self, session: &str, cursor: Option<&str>) {
        let params = with_members(json!({ "archived": "include" }), [("cursor", cursor.map(Value::from))]);
        self.ask_hub(HubRequest::FindFolder { session: session.to_owned() }, "session/list", &params);
    }

    pub(super) fn follow_find(&mut self, session: &str, outcome: HubOutcome) {
        let Ok(list) = outcome else { return self.fail_opening(session) };
        self.note_rows(&list);
        match (self.catalog.folders.contains_key(session), list.get("nextCursor").and_then(Value::as_str)) {
            (false, Some(cursor)) => self.find_folder(session, Some(cursor)),
            // One that nothing was said in may be open, and is in no list.
            _ => self.attach_session(session),
        }
    }

    fn load_session(&mut self, session: &str) {
        let params = self.opening_params(session);
        self.ask_hub(HubRequest::Load { session: session.to_owned() }, "session/load", &params);
    }

    pub(super) fn follow_load(&mut self, session: &str, outcome: HubOutcome) {
        match outcome {
            Ok(answer) => self.finish_history(session, &answer),
            Err(_) => self.fail_opening(session),
        }
    }

    /// The history came. A turn that still runs in the agent is another client's, and goes on.
    fn finish_history(&mut self, session: &str, answer: &Value) {
        let n_prompts = answer.pointer("/_meta/castor/serve/prompts").and_then(Value::as_u64).unwrap_or_default();
        let Some(hosted) = self.sessions.get_mut(session) else { return };
        let active = hosted.active_turn().map(str::to_owned);
        let ended = match (n_prompts, active) {
            (0, _) => hosted.end_replayed_turn(),
            (n, Some(turn)) => {
                // Those that wait behind it are not in the history: their ends are heard, and nothing else of them.
                hosted.turn.other_prompts.push_back(turn);
                hosted.turn.other_prompts.extend((1..n).map(|it| format!("unseen-{it}")));
                Vec::new()
            }
            (n, None) => {
                hosted.turn.other_prompts.extend((0..n).map(|it| format!("unseen-{it}")));
                Vec::new()
            }
        };
        self.emit(session, ended);
        if let Some(hosted) = self.sessions.get_mut(session) {
            hosted.forget_replayed_times();
        }
        self.take_options(session, answer);
        let params = json!({ "sessionId": session, "get": [annotations::STATE_KEY, changes::STATE_KEY] });
        self.ask_hub(HubRequest::ReadState { session: session.to_owned() }, "_castor/session/state", &params);
    }

    pub(super) fn follow_state(&mut self, session: &str, outcome: HubOutcome) {
        let now = self.now_ms;
        let Some(hosted) = self.sessions.get_mut(session) else { return };
        let state = outcome.unwrap_or_default();
        let kept = |name: &str| state.get("state")?.get(name).cloned();
        if let Some(it) = kept(annotations::STATE_KEY).and_then(|it| serde_json::from_value(it).ok()) {
            hosted.trees.annotations = it;
        }
        if let Some(it) = kept(changes::STATE_KEY).and_then(|it| serde_json::from_value(it).ok()) {
            hosted.trees.marks = it;
        }
        hosted.set_flags(self.catalog.is_read(session), self.catalog.is_archived(session));
        hosted.trees.session.annotations = Some(annotations::summary(hosted));
        hosted.stage = SessionStage::Open;
        hosted.idle_since_ms = now;
        hosted.announced = hosted.has_turns().then(|| hosted.facts());
        self.finish_opening(session);
        self.read_changes(session);
        self.read_tools(session);
    }

    fn fail_opening(&mut self, session: &str) {
        self.sessions.remove(session);
        self.finish_opening(session);
    }
}

impl HostedSession {
    pub fn set_folders(&mut self, cwd: &str, more: &[String]) {
        cwd.clone_into(&mut self.cwd);
        let all = std::iter::once(cwd).chain(more.iter().map(String::as_str));
        self.trees.session.working_directories = Some(all.map(super::messages::file_uri).collect());
    }

    /// No client sees it yet.
    fn set_flags(&mut self, is_read: bool, is_archived: bool) {
        let flags = [
            json!({ "type": "chat/isReadChanged", "isRead": is_read }),
            json!({ "type": "chat/isArchivedChanged", "isArchived": is_archived }),
        ];
        for it in flags {
            self.reduce(&TreeAction::chat(it));
        }
        let status = self.trees.chat.status;
        self.trees.session.status = status;
        self.trees.session.chats.iter_mut().for_each(|it| it.status = status);
    }
}
