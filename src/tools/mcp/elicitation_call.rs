//! An open MCP elicitation: sent to the loop, answered once or withdrawn.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use rmcp::{
    ErrorData,
    model::{ElicitResult, ElicitationAction, ElicitationCapability, MetaObject},
};
use serde_json::{Map, Value, json};
use tokio::sync::{broadcast, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::{EventSink, ServerEvent, ServerQuestion};
use castor_base::{
    elicitation::{ElicitationSupport, Reply},
    held_program::HoldReason,
    sampling::ServerAsk,
    sandbox::Denial,
};
use castor_wire::elicitation;

/// Questions that a server may have open: a person answers one after the other.
const MAX_OPEN: usize = 4;

#[derive(Clone)]
pub(super) struct ServerAsker {
    shows: ElicitationSupport,
    /// A model may be asked.
    pub samples: bool,
    tell: EventSink,
    n_asked: Arc<AtomicU64>,
    /// How many are open. Calls have time as long as there is one.
    pub n_open: watch::Sender<usize>,
    /// Names of pages whose purpose is done.
    pub pages_done: broadcast::Sender<String>,
    /// The connection has ended: rmcp waits for us before it reports this.
    pub closed: CancellationToken,
}

impl ServerAsker {
    pub fn new(shows: ElicitationSupport, samples: bool, tell: EventSink) -> Self {
        let (n_open, pages_done) = (watch::Sender::new(0), broadcast::Sender::new(MAX_OPEN));
        let closed = CancellationToken::new();
        Self { shows, samples, tell, n_asked: Arc::default(), n_open, pages_done, closed }
    }

    /// What the server may ask for; `None`: nothing.
    pub fn capability(&self) -> Option<ElicitationCapability> {
        let ElicitationSupport { forms, pages } = self.shows;
        let mut res = ElicitationCapability::new();
        res.form = forms.then(Default::default);
        res.url = pages.then(Default::default);
        (forms || pages).then_some(res)
    }

    /// Asks the user, until `cancelled`.
    ///
    /// # Errors
    /// For the server: why it cannot ask this.
    pub async fn ask(&self, params: &Value, cancelled: &CancellationToken) -> Result<ElicitResult, ErrorData> {
        let wanted = elicitation::parse(params).map_err(|why| ErrorData::invalid_params(why.to_string(), None))?;
        result(self.put(ServerAsk::User(wanted), cancelled).await?)
    }

    /// Puts a question, and waits for its end or `cancelled`.
    pub(super) async fn put(&self, wanted: ServerAsk, cancelled: &CancellationToken) -> Result<Reply, ErrorData> {
        let Some(_open) = OpenCount::begin(&self.n_open) else {
            let why = format!("{MAX_OPEN} questions of this server are open already");
            return Err(ErrorData::invalid_params(why, None));
        };
        let number = self.n_asked.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        (self.tell)(ServerEvent::Question(ServerQuestion { number, request: wanted, reply })).await;
        tokio::select! {
            biased;
            // Who drops the question has nobody left to ask.
            said = answer => return Ok(said.unwrap_or(Reply::Cancelled(None))),
            () = cancelled.cancelled() => (),
            () = self.closed.cancelled() => (),
        }
        (self.tell)(ServerEvent::QuestionWithdrawn(number)).await;
        Ok(Reply::Cancelled(None))
    }

    /// The sandbox refused it something that it needs.
    pub async fn report_lack(&self, lack: Option<Denial>) {
        if let Some(it) = lack {
            (self.tell)(ServerEvent::Held(HoldReason::Lacks(it))).await;
        }
    }

    pub async fn report_update(&self, uri: String) {
        (self.tell)(ServerEvent::ResourceUpdated(uri)).await;
    }

    /// What the user went to a page for is done.
    pub async fn report_completion(&self, params: Option<&Value>) {
        if let Some(id) = params.and_then(|it| it.get("elicitationId")).and_then(Value::as_str) {
            // Nobody listens where no call waits for it.
            _ = self.pages_done.send(id.to_owned());
            (self.tell)(ServerEvent::PageCompleted(id.to_owned())).await;
        }
    }
}

fn result(said: Reply) -> Result<ElicitResult, ErrorData> {
    let (action, content, why) = match said {
        Reply::Accepted(content) => (ElicitationAction::Accept, content.map(Value::from), None),
        Reply::Declined(why) => (ElicitationAction::Decline, None, why),
        Reply::Cancelled(why) => (ElicitationAction::Cancel, None, why),
        Reply::Refused(why) => return Err(ErrorData::invalid_params(why, None)),
        Reply::Sampled(_) => return Err(ErrorData::internal_error("castor has no answer", None)),
    };
    let mut res = ElicitResult::new(action);
    res.content = content;
    // The protocol has no place for a reason.
    res.meta = why.map(|it| MetaObject::from(Map::from_iter([("castor".to_owned(), json!({ "reason": it }))])));
    Ok(res)
}

/// Counted as long as it lives.
struct OpenCount(watch::Sender<usize>);

impl OpenCount {
    fn begin(open: &watch::Sender<usize>) -> Option<Self> {
        let more = |it: &mut usize| {
            let fits = *it < MAX_OPEN;
            *it += usize::from(fits);
            fits
        };
        open.send_if_modified(more).then(|| Self(open.clone()))
    }
}

impl Drop for OpenCount {
    fn drop(&mut self) {
        self.0.send_modify(|it| *it = it.saturating_sub(1));
    }
}
