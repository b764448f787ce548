//! A server's question on its way: told to the loop, answered once, or taken back.

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

use super::{Ask, News, Tell, elicitation};
use crate::base::elicitation::{Reply, Shows};

/// Questions that a server may have open: a person answers one after the other.
const MAX_OPEN: usize = 4;

#[derive(Clone)]
pub(super) struct Asking {
    shows: Shows,
    tell: Tell,
    n_asked: Arc<AtomicU64>,
    /// How many are open. Calls have time as long as there is one.
    pub open: watch::Sender<usize>,
    /// The connection has nothing more to say: rmcp waits for us before it tells anybody.
    pub gone: CancellationToken,
}

impl Asking {
    pub fn new(shows: Shows, tell: Tell) -> Self {
        Self { shows, tell, n_asked: Arc::default(), open: watch::Sender::new(0), gone: CancellationToken::new() }
    }

    /// What the server may ask for; `None`: nothing.
    pub fn capability(&self) -> Option<ElicitationCapability> {
        let Shows { forms, pages } = self.shows;
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
        let wanted = elicitation::read(params).map_err(|why| ErrorData::invalid_params(why, None))?;
        let Some(_open) = Open::begin(&self.open) else {
            let why = format!("{MAX_OPEN} questions of this server are open already");
            return Err(ErrorData::invalid_params(why, None));
        };
        let number = self.n_asked.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        (self.tell)(News::Asks(Ask { number, wanted, reply })).await;
        tokio::select! {
            biased;
            // Who drops the question has nobody left to ask.
            said = answer => return result(said.unwrap_or(Reply::Cancelled(None))),
            () = cancelled.cancelled() => (),
            () = self.gone.cancelled() => (),
        }
        (self.tell)(News::TakesBack(number)).await;
        result(Reply::Cancelled(None))
    }

    /// What the user went to a page for is done.
    pub async fn completed(&self, params: Option<&Value>) {
        if let Some(id) = params.and_then(|it| it.get("elicitationId")).and_then(Value::as_str) {
            (self.tell)(News::Completed(id.to_owned())).await;
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
struct Open(watch::Sender<usize>);

impl Open {
    fn begin(open: &watch::Sender<usize>) -> Option<Self> {
        let more = |it: &mut usize| {
            let fits = *it < MAX_OPEN;
            *it += usize::from(fits);
            fits
        };
        open.send_if_modified(more).then(|| Self(open.clone()))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.send_modify(|it| *it = it.saturating_sub(1));
    }
}
