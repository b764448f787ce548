//! Annotations of a session: clients make and change them, and the session's own state keeps them.

use ahp::ahp_types::state::AnnotationsSummary;
use serde_json::json;

use super::{
    AhpHost,
    channel::Channel,
    hosted_session::{HostedSession, TreeAction},
    hub_requests::HubRequest,
};

/// Under which the session keeps them.
pub const STATE_KEY: &str = "ahp_annotations";

pub fn summary(hosted: &HostedSession) -> AnnotationsSummary {
    let all = &hosted.trees.annotations.annotations;
    let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    AnnotationsSummary {
        resource: Channel::Annotations(hosted.id.clone()).uri(),
        annotation_count: count(all.len()),
        entry_count: count(all.iter().map(|it| it.entries.len()).sum()),
    }
}

impl AhpHost {
    /// A client changes them.
    pub(super) fn annotate(&mut self, from: u64, session: &str, act: TreeAction) {
        let Some(hosted) = self.sessions.get_mut(session) else { return };
        // What does not change anything is of no interest to others.
        let before = hosted.trees.annotations.clone();
        let is_change = hosted.reduce(&act);
        let after = std::mem::replace(&mut hosted.trees.annotations, before);
        if !is_change {
            return self.reject(from, session, act, "there is no such annotation");
        }
        let params = json!({ "sessionId": session, "set": { STATE_KEY: after } });
        let request = HubRequest::Apply { from, session: session.to_owned(), act: Box::new(act) };
        self.ask_hub(request, "_castor/session/state", &params);
    }
}
