//! The response translator: turns a model's chunks into AgentEvents, in order.

use std::sync::Arc;

use crate::{
    record::{PLAN_EVENT, Record, Step},
    turn::{
        endings::{Cause, EmptyAnswer},
        model::windows,
        spec::Spec,
        state::TurnState,
    },
};
use castor_base::{
    content::Part,
    event::{EventKind, Speaker},
    ids::{CallId, MessageId},
    model::{Chunk, Finish, Purpose, Usage},
    money::Money,
    peer_agent::{PEER_MEMORY, PeerReport, REPORTED_CALL},
    price::Price,
    tool::ToolCall,
};

/// One answer as it arrives.
#[derive(Debug)]
pub struct Response {
    model: Arc<str>,
    /// The model's window, in tokens.
    window: u64,
    price: Option<Price>,
    /// The message under way, and whether it is thoughts.
    message: Option<(MessageId, bool)>,
    /// Text that may be nothing to the eye, as long as all of it may be.
    unseen: String,
    visible: bool,
    /// Ids of its messages, thoughts left aside.
    messages: Vec<MessageId>,
    thought: bool,
    n_calls: u32,
    finish: Option<Finish>,
    usage: Option<Usage>,
    /// Its text.
    said: String,
}

/// Longer ids of calls are not kept, in bytes. Some gateways hide a signature in them.
const MAX_ID: usize = 8 << 10;
/// The most bytes that can be invisible.
const MAX_UNSEEN: usize = 64 << 10;

/// Text of one kind that arrived in one piece from the loop's view.
struct TextRun {
    thought: bool,
    text: String,
    cuts: Vec<u32>,
}

impl Response {
    pub fn new(model: Arc<str>, spec: &Spec, record: &Record) -> Self {
        Self {
            window: windows::window(record, spec, &model),
            price: spec.prices.of(&model, &spec.aliases),
            model,
            message: None,
            unseen: String::new(),
            visible: false,
            messages: Vec::new(),
            thought: false,
            n_calls: 0,
            finish: None,
            usage: None,
            said: String::new(),
        }
    }

    /// The text of it.
    pub fn text(&self) -> &str {
        &self.said
    }

    /// Tells whether the user has seen anything of it.
    pub fn has_shown(&self) -> bool {
        self.thought || !self.messages.is_empty() || self.n_calls > 0
    }

    /// The messages that the user saw of it.
    pub fn messages(&self) -> &[MessageId] {
        &self.messages
    }

    /// Takes what one read brought. Adjacent text of a message becomes one event with its cuts.
    pub fn take_chunks(&mut self, turn: &mut TurnState, step: &mut Step<'_>, chunks: Vec<Chunk>) {
        let mut run: Option<TextRun> = None;
        for chunk in chunks {
            match chunk {
                Chunk::Text { text, signature: None } => self.extend(step, &mut run, false, text),
                Chunk::Thought { text, signature: None } => self.extend(step, &mut run, true, text),
                other => {
                    self.flush(step, &mut run);
                    self.take_other(turn, step, other);
                }
            }
        }
        self.flush(step, &mut run);
    }

    fn take_other(&mut self, turn: &mut TurnState, step: &mut Step<'_>, chunk: Chunk) {
        match chunk {
            Chunk::Text { text, signature } => self.say(step, false, Part::Text { text, signature }, Vec::new()),
            Chunk::Thought { text, signature } => {
                self.say(step, true, Part::Thought { thought: text, signature }, Vec::new());
            }
            Chunk::Media { mime, data } => self.say(step, false, Part::Media { mime, data, uri: None }, Vec::new()),
            Chunk::Call { id, name, args, signature } => {
                self.message = None;
                self.n_calls += 1;
                let name = if name.trim().is_empty() { "generic_tool".to_owned() } else { name.trim().to_owned() };
                let id = call_id(step, id, &name);
                let (scheduler, mut calls) = turn.calls(step);
                scheduler.propose(&mut calls, ToolCall { id, name, args }, signature.as_deref());
            }
            Chunk::Usage(usage) => self.usage = Some(usage),
            Chunk::Finish(finish) => self.finish = Some(finish),
            Chunk::Report(it) => self.report(step, it),
        }
    }

    /// Passes on the report of another agent on its own work, as its word.
    fn report(&mut self, step: &mut Step<'_>, report: PeerReport) {
        match report {
            PeerReport::Call(call) => {
                let data = serde_json::to_value(call).unwrap_or_default();
                step.emit_event(EventKind::Custom { kind: REPORTED_CALL.to_owned(), data });
            }
            PeerReport::Notice(text) => step.emit_notice(&text),
            PeerReport::Plan(data) => step.emit_event(EventKind::Custom { kind: PLAN_EVENT.to_owned(), data }),
            PeerReport::Spent { cost, window } => {
                self.window = window.unwrap_or(self.window);
                self.emit_usage(step, Usage::default(), Some(cost));
            }
            PeerReport::Memory(it) => {
                let data = serde_json::json!({ "memory": it });
                step.emit_event(EventKind::Custom { kind: PEER_MEMORY.to_owned(), data });
            }
        }
    }

    fn emit_usage(&self, step: &mut Step<'_>, usage: Usage, cost: Option<Money>) {
        let session_cost = step.record.spent.cost_with(cost);
        let (model, size, purpose) = (self.model.to_string(), self.window, Purpose::Agent);
        step.emit_event(EventKind::Usage { model, usage, size, purpose, cost, session_cost });
    }

    fn extend(&mut self, step: &mut Step<'_>, run: &mut Option<TextRun>, thought: bool, text: String) {
        if text.is_empty() {
            return;
        }
        if run.as_ref().is_some_and(|it| it.thought != thought) {
            self.flush(step, run);
        }
        match run {
            None => {
                let cuts = vec![text.len() as u32];
                *run = Some(TextRun { thought, text, cuts });
            }
            Some(run) => {
                run.text += &text;
                run.cuts.push(run.text.len() as u32);
            }
        }
    }

    fn flush(&mut self, step: &mut Step<'_>, run: &mut Option<TextRun>) {
        if let Some(TextRun { thought, text, cuts }) = run.take() {
            let part = match thought {
                true => Part::Thought { thought: text, signature: None },
                false => Part::text(text),
            };
            self.say(step, thought, part, cuts);
        }
    }

    fn say(&mut self, step: &mut Step<'_>, thought: bool, part: Part, cuts: Vec<u32>) {
        if let (false, Some(text)) = (thought, part.as_text()) {
            self.said += text;
        }
        self.thought |= thought;
        if !thought && !self.visible {
            self.unseen.push_str(part.as_text().unwrap_or("(media)"));
            self.visible = is_surely_visible(&self.unseen) || self.unseen.len() > MAX_UNSEEN;
        }
        let message_id = match &self.message {
            Some((id, same)) if *same == thought => id.clone(),
            _ => MessageId::from(step.fresh_id("m")),
        };
        if !thought && self.messages.last() != Some(&message_id) {
            self.messages.push(message_id.clone());
        }
        self.message = Some((message_id.clone(), thought));
        step.emit_event(EventKind::Message { role: Speaker::Agent, message_id, content: vec![part], cuts });
    }

    /// The answer is over, well or not: what it cost is told.
    pub fn close(&mut self, step: &mut Step<'_>) {
        if let Some(usage) = self.usage.take() {
            self.emit_usage(step, usage, self.price.map(|it| it.cost(&usage)));
        }
    }

    /// Classifies an answer without calls: the reason why the turn ends with it, and whether it is an answer at all.
    /// After results of tools a model may have nothing to add.
    pub fn classify_answer(&self, after_tools: bool) -> AnswerKind {
        let visible = self.visible || !seen(&self.unseen).is_empty();
        let empty = match (&self.finish, visible) {
            (None, _) => EmptyAnswer::NoFinish,
            (Some(Finish::MalformedCall), _) => EmptyAnswer::MalformedCall,
            (Some(Finish::UnexpectedCall), _) => EmptyAnswer::UnexpectedCall,
            (Some(Finish::MaxTokens), true) => return AnswerKind::Answer(Cause::MaxTokens),
            (Some(Finish::Safety(word)), false) if word.ends_with("RECITATION") => {
                EmptyAnswer::Recitation(word.clone())
            }
            // The same request would be refused again.
            (Some(Finish::Safety(word)), _) => return AnswerKind::Answer(Cause::Safety(word.clone())),
            (_, true) => return AnswerKind::Answer(Cause::Completed),
            (Some(Finish::MaxTokens), false) => EmptyAnswer::MaxTokens,
            (Some(Finish::Other(word)), false) => EmptyAnswer::Blocked(word.clone()),
            (Some(Finish::Stop), false) if self.thought => EmptyAnswer::ThoughtsOnly,
            (Some(Finish::Stop), false) if after_tools => return AnswerKind::Answer(Cause::Completed),
            (Some(Finish::Stop), false) => EmptyAnswer::NoText,
        };
        AnswerKind::None(empty)
    }
}

/// The kind of an answer that ended well.
pub enum AnswerKind {
    /// Its calls are to be made.
    Calls,
    Answer(Cause),
    /// It is none: one of the eight ways.
    None(EmptyAnswer),
}

/// The part of a text that an eye sees: no spaces, no characters without width, no comments.
fn seen(text: &str) -> String {
    let mut rest = text;
    let mut res = String::new();
    while let Some((before, comment)) = rest.split_once("<!--") {
        let Some((_, after)) = comment.split_once("-->") else { break };
        res.push_str(before);
        rest = after;
    }
    res.push_str(rest);
    res.retain(|it| !it.is_whitespace() && !matches!(it, '\u{200b}'..='\u{200f}' | '\u{feff}'));
    res
}

/// Tells whether no further text can make a comment of what is left.
fn is_surely_visible(text: &str) -> bool {
    let seen = seen(text);
    let may_become = |it: &str| "<!--".starts_with(it) || it.starts_with("<!--");
    !seen.is_empty() && !may_become(&seen)
}

/// The provider's id where it is usable and new, else one of ours: clients and results go by it. Sub-agents show calls
/// in the session above, where a provider's id may be known.
fn call_id(step: &mut Step<'_>, id: Option<String>, name: &str) -> CallId {
    match id.filter(|it| !it.is_empty() && it.len() <= MAX_ID).map(CallId::from) {
        Some(id) if step.record.thread().is_none() && !step.record.knows_call(&id) => id,
        _ => CallId::from(step.fresh_id(&format!("{name}-"))),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_surely_visible, seen};

    #[test]
    fn blanks_and_comments_are_no_visible_text() {
        for (text, left, surely) in [
            ("", "", false),
            (" \n\u{200b}\u{feff}", "", false),
            ("<!-- a --> <!--b-->", "", false),
            ("<!-- a", "<!--a", false),
            ("<", "<", false),
            ("<b", "<b", true),
            ("<!-- a -->b", "b", true),
            ("a<!-- b", "a<!--b", true),
        ] {
            assert_eq!((seen(text).as_str(), is_surely_visible(text)), (left, surely), "{text}");
        }
    }
}
