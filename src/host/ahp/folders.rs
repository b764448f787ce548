//! Folders of a session beside its first: a client adds and removes them, and the agent opens the session again with them.

use ahp::{
    ahp_types::actions::{ActionOrigin, StateAction},
    reducers::{self, ReduceOutcome},
};
use serde_json::{Value, json};

use super::{
    AhpHost,
    hosted_session::{SessionStage, Tree, TreeAction},
    hub_requests::{FolderChange, HubOutcome, HubRequest},
    messages::path_of,
};

impl AhpHost {
    /// The params by which a session is opened.
    pub(super) fn opening_params(&self, session: &str) -> Value {
        let cwd = self.catalog.folders.get(session).cloned().unwrap_or_default();
        let more = self.catalog.more_folders(session);
        json!({ "sessionId": session, "cwd": cwd, "additionalDirectories": more, "mcpServers": [] })
    }

    /// # Errors
    /// Why the folders stay as they are, in words.
    pub(super) fn change_folders(
        &mut self,
        (from, session): (u64, String),
        action: StateAction,
        origin: ActionOrigin,
    ) -> Result<(), String> {
        let hosted = self.hosted(&session)?;
        if hosted.is_busy() {
            return Err("a turn runs; wait for its end".to_owned());
        }
        let mut after = hosted.trees.session.clone();
        if reducers::apply_action_to_session(&mut after, &action) != ReduceOutcome::Applied {
            return Err("that changes nothing".to_owned());
        }
        let uris = after.working_directories.unwrap_or_default();
        let before = hosted.trees.session.working_directories.as_ref();
        if before.and_then(|it| it.first()) != uris.first() {
            return Err("the first folder of a session stays".to_owned());
        }
        let more: Option<Vec<String>> = uris.iter().skip(1).map(|it| path_of(it)).collect();
        let more = more.ok_or_else(|| "a working directory is a file: URI".to_owned())?;
        hosted.stage = SessionStage::Reopening;
        let act = TreeAction::new(Tree::Session, action).by(origin);
        let before = self.catalog.more_folders(&session).to_vec();
        let params = json!({ "sessionId": session });
        let change = Box::new(FolderChange { from, act, more, before });
        self.ask_hub(HubRequest::CloseForFolders { session, change }, "session/close", &params);
        Ok(())
    }

    pub(super) fn follow_close(&mut self, session: &str, change: Box<FolderChange>, outcome: HubOutcome) {
        if let Err(it) = outcome {
            self.set_stage(session, SessionStage::Open);
            self.reject(change.from, session, change.act, &it.message);
            return self.prompt_again(session);
        }
        self.catalog.set_more_folders(session, &change.more);
        let params = self.opening_params(session);
        self.ask_hub(HubRequest::Reopen { session: session.to_owned(), change }, "session/resume", &params);
    }

    /// A folder that the agent does not take leaves the session closed, and the next prompt opens it as it was.
    pub(super) fn follow_reopen(&mut self, session: &str, change: FolderChange, outcome: HubOutcome) {
        match outcome {
            Ok(answer) => {
                self.set_stage(session, SessionStage::Open);
                self.emit(session, vec![change.act]);
                self.take_options(session, &answer);
            }
            Err(it) => {
                self.set_stage(session, SessionStage::Dormant);
                self.catalog.set_more_folders(session, &change.before);
                self.reject(change.from, session, change.act, &it.message);
            }
        }
        self.prompt_again(session);
    }

    fn set_stage(&mut self, session: &str, stage: SessionStage) {
        if let Some(it) = self.sessions.get_mut(session) {
            it.stage = stage;
        }
    }

    /// A turn that began meanwhile.
    fn prompt_again(&mut self, session: &str) {
        let turn = self.sessions.get(session).and_then(|it| it.active_turn().map(str::to_owned));
        if let Some(turn) = turn {
            self.prompt(session, &turn);
        }
    }
}
