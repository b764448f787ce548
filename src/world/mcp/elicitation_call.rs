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
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::{EventSink, ServerEvent, ServerQuestion, elicitation};
use crate::base::elicitation::{ElicitationSupport, Reply};

/// Questions that a server may have open: a person answers one after the other.
const MAX_OPEN: usize = 4;

#[derive(Clone)]
pub(super) struct ServerAsker {
    shows: ElicitationSupport,
    tell: EventSink,
    n_asked: Arc<AtomicU64>,
    /// How many are open. Calls have time as long as there is one.
    pub n_open: watch::Sender<usize>,
    /// The connection has ended: rmcp waits for us before it reports this.
    pub closed: CancellationToken,
}

impl ServerAsker {
    pub fn new(shows: ElicitationSupport, tell: EventSink) -> Self {
        Self { shows, tell, n_asked: Arc::default(), n_open: watch::Sender::new(0), closed: CancellationToken::new() }
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
        let wanted = elicitation::parse(params).map_err(|why| ErrorData::invalid_params(why, None))?;
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
            said = answer => return result(said.unwrap_or(Reply::Cancelled(None))),
            () = cancelled.cancelled() => (),
            () = self.closed.cancelled() => (),
        }
        (self.tell)(ServerEvent::QuestionWithdrawn(number)).await;
        result(Reply::Cancelled(None))
    }

    /// What the user went to a page for is done.
    pub async fn report_completion(&self, params: Option<&Value>) {
        if let Some(id) = params.and_then(|it| it.get("elicitationId")).and_then(Value::as_str) {
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
