//! Requests about sessions: the list, new ones, their options before they begin, and their end.

use ahp::ahp_types::{
    commands::{CreateSessionParams, ListSessionsResult, SessionConfigCompletionsResult},
    common::JsonObject,
    errors::ahp_error_codes as codes,
};
use serde_json::{Value, json};

use super::{
    AhpHost,
    channel::{Channel, PROVIDER},
    client_requests::{ClientRefusal, HostCall, RequestOutcome},
    config,
    content::place_of,
    hosted_session::{HostedSession, SessionStage},
    hub_requests::{HubOutcome, HubRequest, ListPage, WaitingClient},
    messages::path_of,
    time, with_members,
};

impl ListPage {
    /// Of the client's params; a cursor of the host's is `SKIP:AGENTS-CURSOR`.
    fn read(params: &Value) -> Result<Self, ClientRefusal> {
        let limit = params["limit"].as_u64().and_then(|it| usize::try_from(it).ok()).filter(|it| *it > 0);
        let Some(cursor) = params["cursor"].as_str() else { return Ok(Self { cursor: None, skip: 0, limit }) };
        let unknown = || ClientRefusal::params("the cursor is none of castor's; send nextCursor of the last answer");
        let (skip, cursor) = cursor.split_once(':').ok_or_else(unknown)?;
        let skip = skip.parse().map_err(|_| unknown())?;
        Ok(Self { cursor: Some(cursor.to_owned()).filter(|it| !it.is_empty()), skip, limit })
    }

    fn next(&self, n_rows: usize, next: Option<&str>) -> Option<String> {
        let end = self.limit.map_or(n_rows, |it| self.skip.saturating_add(it));
        match end < n_rows {
            true => Some(format!("{end}:{}", self.cursor.as_deref().unwrap_or_default())),
            false => next.map(|it| format!("0:{it}")),
        }
    }
}

impl AhpHost {
    pub(super) fn list_sessions(&mut self, call: HostCall<'_>) -> RequestOutcome {
        let page = ListPage::read(call.params)?;
        let params =
            with_members(json!({ "archived": "include" }), [("cursor", page.cursor.as_ref().map(|it| json!(it)))]);
        self.ask_hub(HubRequest::List { asker: call.asker(), page }, "session/list", &params);
        Ok(())
    }

    pub(super) fn follow_list(&mut self, asker: &WaitingClient, page: &ListPage, outcome: HubOutcome) {
        let list = match outcome {
            Ok(it) => it,
            Err(it) => return self.refuse(asker, &ClientRefusal::of_agent(&it)),
        };
        let mut rows = self.note_rows(&list);
        rows.retain(|it| self.is_listed(it["sessionId"].as_str().unwrap_or_default()));
        let next_cursor = page.next(rows.len(), list.get("nextCursor").and_then(Value::as_str));
        let rows = rows.iter().skip(page.skip).take(page.limit.unwrap_or(usize::MAX));
        let items = rows.map(|it| self.summary_of_row(it)).collect();
        self.answer(asker, &ListSessionsResult { next_cursor, items });
    }

    /// Remembers where sessions are.
    pub(super) fn note_rows(&mut self, list: &Value) -> Vec<Value> {
        let rows = list["sessions"].as_array().cloned().unwrap_or_default();
        self.catalog.note_rows(&rows);
        rows
    }

    pub(super) fn create_session(&mut self, call: HostCall<'_>) -> RequestOutcome {
        let params: CreateSessionParams = call.read()?;
        let Some(Channel::Session(session)) = Channel::read(&params.channel) else {
            return Err(ClientRefusal::params("channel is ahp-session:/ID, with letters, digits, - and _ in the ID"));
        };
        if params.provider.as_deref().is_some_and(|it| it != PROVIDER) {
            return Err(ClientRefusal::new(codes::PROVIDER_NOT_FOUND, "castor has one provider, castor"));
        }
        if self.sessions.contains_key(&session) || self.catalog.folders.contains_key(&session) {
            return Err(ClientRefusal::new(codes::SESSION_ALREADY_EXISTS, "there is a session with that URI"));
        }
        let folders: Option<Vec<String>> = params.working_directories.iter().flatten().map(|it| path_of(it)).collect();
        let mut folders =
            folders.ok_or_else(|| ClientRefusal::params("a working directory is a file: URI"))?.into_iter();
        let cwd = folders.next().unwrap_or_else(|| self.settings.folder.clone());
        let more: Vec<String> = folders.collect();
        let wanted = json!({
            "cwd": cwd, "additionalDirectories": more, "mcpServers": [],
            "_meta": { "castor": { "sessionId": session } },
        });
        self.catalog.folders.insert(session.clone(), cwd);
        self.catalog.set_more_folders(&session, &more);
        self.ask_hub(
            HubRequest::Create { asker: call.asker(), session, config: params.config },
            "session/new",
            &wanted,
        );
        Ok(())
    }

    pub(super) fn follow_create(
        &mut self,
        asker: WaitingClient,
        session: String,
        config: Option<JsonObject>,
        outcome: HubOutcome,
    ) {
        let answer = match outcome {
            Ok(it) => it,
            Err(it) => {
                self.catalog.forget(&session);
                return self.refuse(&asker, &ClientRefusal::of_agent(&it));
            }
        };
        let cwd = self.catalog.folders.get(&session).cloned().unwrap_or_default();
        let mut hosted = HostedSession::new(&session, &cwd, (&time(self.now_ms), self.action_log.last()));
        hosted.set_folders(&cwd, self.catalog.more_folders(&session));
        hosted.idle_since_ms = self.now_ms;
        self.sessions.insert(session.clone(), hosted);
        self.take_options(&session, &answer);
        let options = self.sessions.get(&session).map(|it| it.offer.options.as_slice()).unwrap_or_default();
        let config = config.map(|it| config::fitting(options, &it)).filter(|it| !it.is_empty());
        match config {
            Some(config) => {
                let params = json!({ "sessionId": session, "config": config });
                self.ask_hub(HubRequest::Configure { asker, session }, "_castor/session/update", &params);
            }
            None => self.finish_creation(&asker, &session),
        }
    }

    pub(super) fn follow_configure(&mut self, asker: WaitingClient, session: &str, outcome: HubOutcome) {
        match outcome {
            Ok(answer) => {
                self.take_options(session, &answer);
                self.finish_creation(&asker, session);
            }
            Err(it) => {
                self.sessions.remove(session);
                self.catalog.forget(session);
                self.ask_hub(HubRequest::Nothing, "session/delete", &json!({ "sessionId": session }));
                self.finish_opening(session);
                self.refuse(&asker, &ClientRefusal::of_agent(&it));
            }
        }
    }

    fn finish_creation(&mut self, asker: &WaitingClient, session: &str) {
        if let Some(it) = self.sessions.get_mut(session) {
            it.stage = SessionStage::Open;
        }
        self.answer(asker, &Value::Null);
        self.finish_opening(session);
        self.read_tools(session);
    }

    /// A session of which something was said is archived, and can be had back; an empty one is deleted.
    pub(super) fn dispose_session(&mut self, call: HostCall<'_>) -> RequestOutcome {
        let uri = call.text("channel")?;
        let Some(Channel::Session(session)) = Channel::read(&uri) else { return Err(ClientRefusal::no_channel(&uri)) };
        let is_empty = self
            .sessions
            .get(&session)
            .is_some_and(|it| it.trees.chat.turns.is_empty() && it.active_turn().is_none() && !it.is_opening());
        let method = if is_empty { "session/delete" } else { "session/archive" };
        let params = json!({ "sessionId": session });
        self.ask_hub(HubRequest::Dispose { asker: call.asker(), session }, method, &params);
        Ok(())
    }

    pub(super) fn follow_dispose(&mut self, asker: &WaitingClient, session: &str, outcome: HubOutcome) {
        if let Err(it) = outcome {
            return self.refuse(asker, &ClientRefusal::of_agent(&it));
        }
        let was_listed = self.is_listed(session);
        self.sessions.remove(session);
        self.catalog.folders.remove(session);
        for client in self.clients.values_mut() {
            client.subscriptions.retain(|it| it.session() != Some(session));
        }
        self.answer(asker, &Value::Null);
        if was_listed {
            self.announce_removed(session);
        }
    }

    pub(super) fn resolve_config(&mut self, call: HostCall<'_>) -> RequestOutcome {
        let cwd = match call.params["workingDirectory"].as_str() {
            Some(uri) => path_of(uri).ok_or_else(|| ClientRefusal::params("workingDirectory is a file: URI"))?,
            None => self.settings.folder.clone(),
        };
        let wanted = Some(call.params["config"].clone()).filter(Value::is_object);
        let request = HubRequest::Resolve { asker: call.asker(), wanted };
        self.ask_hub(request, "_castor/options/list", &json!({ "cwd": cwd }));
        Ok(())
    }

    pub(super) fn follow_resolve(&mut self, asker: &WaitingClient, wanted: Option<Value>, outcome: HubOutcome) {
        match outcome {
            Ok(answer) => {
                let options = config::read_options(&answer).unwrap_or_default();
                let result = config::resolved(&options, wanted.as_ref().and_then(Value::as_object));
                self.answer(asker, &result);
            }
            Err(it) => self.refuse(asker, &ClientRefusal::of_agent(&it)),
        }
    }

    /// All values are in the schema.
    pub(super) fn complete_config(&mut self, call: HostCall<'_>) -> RequestOutcome {
        self.answer(&call.asker(), &SessionConfigCompletionsResult { items: Vec::new() });
        Ok(())
    }

    /// All turns are in the state already.
    pub(super) fn fetch_turns(&mut self, call: HostCall<'_>) -> RequestOutcome {
        if call.params["cursor"].is_string() {
            return Err(ClientRefusal::params("there is no such cursor: all turns are in the chat's state"));
        }
        self.answer(&call.asker(), &json!({}));
        Ok(())
    }

    /// What the trees name by a URI of the host's own.
    pub(super) fn read_content(&mut self, call: HostCall<'_>) -> RequestOutcome {
        let uri = call.text("uri")?;
        let found = place_of(&uri).and_then(|(session, number)| self.sessions.get(session)?.contents.read(number));
        let missing = "there is no such content, or it is kept no longer";
        let found = found.ok_or_else(|| ClientRefusal::new(codes::NOT_FOUND, missing))?;
        self.answer(&call.asker(), &found);
        Ok(())
    }
}
