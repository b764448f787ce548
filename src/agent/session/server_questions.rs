//! Elicitations of MCP servers: the session that each belongs to, and its answer.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::oneshot;

use castor_base::{
    elicitation::{ElicitationRequest, Reply},
    ids::{EffectId, ElicitationId, SessionId},
    sampling::ServerAsk,
};
use castor_engine::step::{Input, WaitingQuestion};
use castor_tools::mcp::ServerQuestion;

/// Pages that may be told to be done; of more the oldest is forgotten.
const MAX_PAGES: usize = 64;
/// A call that was given up may go on in its server, and ask.
const GIVEN_UP_MS: u64 = 60_000;

const NO_CALL: &str = "no call of this server is running, so castor cannot ask the user";
const ONE_WAITS: &str = "another question of this server waits for the user already";
const UNCLEAR: &str = "several sessions call this server, and it cannot be known for which of them it asks";

/// Questions of servers that are open, and pages that were shown for them.
#[derive(Default)]
pub struct ServerQuestions {
    open: BTreeMap<ElicitationId, OpenQuestion>,
    pages: Vec<OpenPage>,
    given_up: Vec<WithdrawnQuestion>,
    n_asked: u64,
}

/// A call of a session that is under way.
pub type RunningCall = (SessionId, EffectId);

struct OpenQuestion {
    server: u64,
    /// The server's own count.
    number: u64,
    session: SessionId,
    reply: oneshot::Sender<Reply>,
    /// It came outside of any call: the session's next turn asks it.
    waits: bool,
}

struct OpenPage {
    id: ElicitationId,
    server: u64,
    session: SessionId,
    /// As the server calls it.
    name: String,
}

struct WithdrawnQuestion {
    server: u64,
    session: SessionId,
    at_ms: u64,
}

impl ServerQuestions {
    /// Those that calls wait for.
    pub fn count(&self) -> usize {
        self.open.values().filter(|it| !it.waits).count()
    }

    /// A call ended before its server had answered.
    pub fn give_up(&mut self, server: u64, session: &SessionId, now_ms: u64) {
        self.given_up.retain(|it| it.at_ms + GIVEN_UP_MS > now_ms && (it.server != server || it.session != *session));
        self.given_up.push(WithdrawnQuestion { server, session: session.clone(), at_ms: now_ms });
    }

    /// Drops all questions of a session; their servers are told that no user can be asked.
    pub fn forget(&mut self, session: &SessionId) {
        self.open.retain(|_, it| it.session != *session);
        self.pages.retain(|it| it.session != *session);
    }

    pub fn forget_all(&mut self) {
        self.open.clear();
    }

    /// A server is gone: it will not say that a page is done.
    pub fn forget_server(&mut self, server: u64) {
        self.pages.retain(|it| it.server != server);
        self.given_up.retain(|it| it.server != server);
    }

    /// The one session that calls the server.
    ///
    /// # Errors
    /// Why there is none. A server does not say for which call it asks; what it has of progress tokens in such a
    /// request are its own. So nobody is shown what may be another session's.
    fn session_of(&self, server: u64, calls: &[(SessionId, EffectId)], now_ms: u64) -> Result<SessionId, &'static str> {
        let given_up = self.given_up.iter().filter(|it| it.server == server && it.at_ms + GIVEN_UP_MS > now_ms);
        let sessions: BTreeSet<&SessionId> =
            calls.iter().map(|(session, _)| session).chain(given_up.map(|it| &it.session)).collect();
        match (calls, sessions.len()) {
            ([], _) => Err(NO_CALL),
            ([(session, _), ..], 1) => Ok(session.clone()),
            _ => Err(UNCLEAR),
        }
    }

    /// A server asks, while these calls of it run; these sessions have it, under these names. Where none runs and one
    /// session has it, its next turn asks. Returns whom, and with what; `None`: the server has its answer.
    pub fn ask(
        &mut self,
        server: u64,
        question: ServerQuestion,
        (calls, users): (Vec<RunningCall>, Vec<(SessionId, String)>),
        now_ms: u64,
    ) -> Option<(SessionId, Input)> {
        let ServerQuestion { number, request, reply } = question;
        let is_given_up = self.given_up.iter().any(|it| it.server == server && it.at_ms + GIVEN_UP_MS > now_ms);
        if let (ServerAsk::User(request), [], [(session, name)], false) = (&request, &*calls, &*users, is_given_up) {
            if self.open.values().any(|it| it.server == server && it.waits) {
                _ = reply.send(Reply::Cancelled(Some(ONE_WAITS.to_owned())));
                return None;
            }
            let elicitation = self.open(server, (number, reply, true), session, request);
            let waiting = WaitingQuestion { elicitation, server: name.clone(), request: request.clone() };
            return Some((session.clone(), Input::ServerQuestionWaits(Box::new(waiting))));
        }
        let session = match self.session_of(server, &calls, now_ms) {
            Ok(it) => it,
            Err(why) => {
                tracing::warn!("an MCP server's question was not asked: {why}");
                // It may be gone by now.
                _ = reply.send(Reply::Cancelled(Some(why.to_owned())));
                return None;
            }
        };
        let elicitation = match &request {
            ServerAsk::User(it) => self.open(server, (number, reply, false), &session, it),
            ServerAsk::Model(_) => {
                self.register(OpenQuestion { server, number, session: session.clone(), reply, waits: false })
            }
        };
        let calls = calls.into_iter().map(|(_, effect)| effect).collect();
        Some((session, Input::ElicitationRequested { elicitation, calls, request }))
    }

    fn register(&mut self, it: OpenQuestion) -> ElicitationId {
        self.n_asked += 1;
        let id = ElicitationId(self.n_asked);
        self.open.insert(id, it);
        id
    }

    fn open(
        &mut self,
        server: u64,
        (number, reply, waits): (u64, oneshot::Sender<Reply>, bool),
        session: &SessionId,
        request: &ElicitationRequest,
    ) -> ElicitationId {
        let elicitation = self.register(OpenQuestion { server, number, session: session.clone(), reply, waits });
        if let ElicitationRequest::Page { id: name, .. } = request
            && !name.is_empty()
        {
            self.pages.retain(|it| it.server != server || it.name != *name);
            self.pages.push(OpenPage { id: elicitation, server, session: session.clone(), name: name.clone() });
            let n_old = self.pages.len().saturating_sub(MAX_PAGES);
            self.pages.drain(..n_old);
        }
        elicitation
    }

    /// What the server is told.
    pub fn send_reply(&mut self, id: ElicitationId, reply: Reply) {
        let Some(open) = self.open.remove(&id) else { return };
        if !matches!(reply, Reply::Accepted(_)) {
            self.pages.retain(|it| it.id != id);
        }
        // The server may have taken it back by now.
        _ = open.reply.send(reply);
    }

    /// The server no longer wants to know. Returns who is told.
    pub fn withdraw(&mut self, server: u64, number: u64) -> Option<(SessionId, Input)> {
        let id = *self.open.iter().find(|(_, it)| it.server == server && it.number == number)?.0;
        self.pages.retain(|it| it.id != id);
        let open = self.open.remove(&id)?;
        Some((open.session, Input::ElicitationWithdrawn { elicitation: id }))
    }

    /// What the user went to a page for is done. Returns the page, if the server had shown it.
    pub fn complete_page(&mut self, server: u64, name: &str) -> Option<ElicitationId> {
        let at = self.pages.iter().position(|it| it.server == server && it.name == name)?;
        Some(self.pages.remove(at).id)
    }
}
