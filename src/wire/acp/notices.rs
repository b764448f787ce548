//! Notices and compression messages, in the form that each client can show.

use agent_client_protocol_schema::v1::{
    CompactionStatus as Status, CompactionUpdate, ContentChunk, Meta, Notice, NoticeSeverity, SessionUpdate,
};
use serde_json::Value;

use crate::acp::{content, updates::SessionView};
use castor_base::{
    event::{Compaction, CompactionStatus},
    shown_text::show_text,
};

impl SessionView {
    /// Live only. Without notices as a thought: no client takes that for the answer.
    pub fn notice(&self, id: &str, text: &str, meta: Option<Meta>, lines: &mut Vec<u8>) {
        let text = &*show_text(text);
        let update = match self.profile.features.notices {
            false if self.profile.features.air.session_failure => return self.failure_notice(id, text, lines),
            true => SessionUpdate::Notice(Notice::new(NoticeSeverity::Warning, text).meta(meta)),
            false => {
                let chunk = ContentChunk::new(content::text_block(text)).message_id(id).meta(meta);
                SessionUpdate::AgentThoughtChunk(chunk)
            }
        };
        self.push_update(update, lines);
    }

    /// Live only; a notice where the client knows no compaction. `event`: the id of what tells of it.
    pub(super) fn compaction(&mut self, event: &str, data: &Value, lines: &mut Vec<u8>) {
        let Ok(it) = serde_json::from_value::<Compaction>(data.clone()) else { return };
        if !self.profile.features.compactions {
            if !it.text.is_empty() {
                self.notice(event, &it.text, None, lines);
            }
            return;
        }
        self.compacting = (it.status == CompactionStatus::InProgress).then(|| it.id.clone());
        self.push_update(SessionUpdate::CompactionUpdate(update(it)), lines);
    }

    /// Of a conversation that is shown again: what was compressed, where it was.
    pub(super) fn past_compaction(&self, data: &Value, lines: &mut Vec<u8>) {
        let it = serde_json::from_value::<Compaction>(data.clone()).ok();
        let done = it.filter(|it| it.status == CompactionStatus::Completed && self.profile.features.compactions);
        done.into_iter().for_each(|it| self.push_update(SessionUpdate::CompactionUpdate(update(it)), lines));
    }

    /// One that the client saw no end of has failed.
    pub(super) fn interrupt_compaction(&mut self, why: &str, lines: &mut Vec<u8>) {
        if let Some(id) = self.compacting.take() {
            let update = CompactionUpdate::new(id, Status::Failed).error(why.to_owned());
            self.push_update(SessionUpdate::CompactionUpdate(update), lines);
        }
    }
}

fn update(Compaction { id, status, summary, error, .. }: Compaction) -> CompactionUpdate {
    let status = match status {
        CompactionStatus::InProgress => Status::InProgress,
        CompactionStatus::Completed => Status::Completed,
        CompactionStatus::Failed => Status::Failed,
        CompactionStatus::Cancelled => Status::Cancelled,
    };
    let mut res = CompactionUpdate::new(id, status);
    if let Some(text) = summary {
        res = res.summary(vec![content::text_block(&text)]);
    }
    match error {
        Some(why) => res.error(show_text(&why).into_owned()),
        None => res,
    }
}
