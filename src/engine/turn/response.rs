//! The translator: a model's chunks become AgentEvents, in order.

use std::sync::Arc;

use crate::{
    base::{
        content::Part,
        event::{EventKind, Speaker},
        ids::{CallId, MessageId},
        model::{Chunk, Finish, Usage},
        tool::ToolCall,
    },
    engine::{
        record::Step,
        scheduler::{Scheduler, Toolbox},
        turn::endings::{Cause, Empty},
    },
};

/// One answer as it arrives.
#[derive(Debug)]
pub struct Response {
    model: Arc<str>,
    /// How much it reads at once, in tokens.
    window: u64,
    /// The message under way, and whether it is thoughts.
    message: Option<(MessageId, bool)>,
    visible: bool,
    thought: bool,
    n_calls: u32,
    finish: Option<Finish>,
    usage: Option<Usage>,
    /// Its text.
    said: String,
}

/// Text of one kind that arrived in one piece from the loop's view.
struct Run {
    thought: bool,
    text: String,
    cuts: Vec<u32>,
}

impl Response {
    pub fn new(model: Arc<str>, window: u64) -> Self {
        Self {
            model,
            window,
            message: None,
            visible: false,
            thought: false,
            n_calls: 0,
            finish: None,
            usage: None,
            said: String::new(),
        }
    }

    /// The text of it.
    pub fn said(&self) -> &str {
        &self.said
    }

    /// Whether the user has seen anything of it.
    pub fn has_shown(&self) -> bool {
        self.visible || self.thought || self.n_calls > 0
    }

    /// Takes what one read brought. Adjacent text of a message becomes one event with its cuts.
    pub fn take(&mut self, step: &mut Step<'_>, tools: &Toolbox, scheduler: &mut Scheduler, chunks: Vec<Chunk>) {
        let mut run: Option<Run> = None;
        for chunk in chunks {
            match chunk {
                Chunk::Text { text, signature: None } => self.extend(step, &mut run, false, text),
                Chunk::Thought { text, signature: None } => self.extend(step, &mut run, true, text),
                other => {
                    self.flush(step, &mut run);
                    self.take_other(step, tools, scheduler, other);
                }
            }
        }
        self.flush(step, &mut run);
    }

    fn take_other(&mut self, step: &mut Step<'_>, tools: &Toolbox, scheduler: &mut Scheduler, chunk: Chunk) {
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
                scheduler.propose(step, tools, ToolCall { id, name, args }, signature.as_deref());
            }
            Chunk::Usage(usage) => self.usage = Some(usage),
            Chunk::Finish(finish) => self.finish = Some(finish),
        }
    }

    fn extend(&mut self, step: &mut Step<'_>, run: &mut Option<Run>, thought: bool, text: String) {
        if text.is_empty() {
            return;
        }
        if run.as_ref().is_some_and(|it| it.thought != thought) {
            self.flush(step, run);
        }
        match run {
            None => {
                let cuts = vec![text.len() as u32];
                *run = Some(Run { thought, text, cuts });
            }
            Some(run) => {
                run.text += &text;
                run.cuts.push(run.text.len() as u32);
            }
        }
    }

    fn flush(&mut self, step: &mut Step<'_>, run: &mut Option<Run>) {
        if let Some(Run { thought, text, cuts }) = run.take() {
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
        self.visible |= !thought && part.as_text().is_none_or(|it| !it.trim().is_empty());
        let message_id = match &self.message {
            Some((id, same)) if *same == thought => id.clone(),
            _ => MessageId::from(step.fresh("m")),
        };
        self.message = Some((message_id.clone(), thought));
        step.event(EventKind::Message { role: Speaker::Agent, message_id, content: vec![part], cuts });
    }

    /// The answer is over, well or not: what it cost is told.
    pub fn close(&mut self, step: &mut Step<'_>) {
        if let Some(usage) = self.usage.take() {
            step.event(EventKind::Usage { model: self.model.to_string(), usage, size: self.window });
        }
    }

    /// Why a turn ends with this answer, which made no call. After results of tools a model may have nothing to add.
    pub fn cause(&self, after_tools: bool) -> Cause {
        match (&self.finish, self.visible || after_tools) {
            (Some(Finish::Safety(word)), _) => Cause::Safety(word.clone()),
            (Some(Finish::MaxTokens), _) => Cause::MaxTokens,
            (Some(Finish::MalformedCall), _) => Cause::Empty(Empty::MalformedCall),
            (Some(Finish::UnexpectedCall), _) => Cause::Empty(Empty::UnexpectedCall),
            (_, true) => Cause::Completed,
            (Some(Finish::Other(word)), false) => Cause::Empty(Empty::Blocked(word.clone())),
            (None, false) if !self.thought => Cause::Empty(Empty::NoFinish),
            (_, false) if self.thought => Cause::Empty(Empty::ThoughtsOnly),
            (_, false) => Cause::Empty(Empty::NoText),
        }
    }
}

/// The provider's id where it is usable and new, else one of ours: clients and results go by it.
fn call_id(step: &mut Step<'_>, id: Option<String>, name: &str) -> CallId {
    match id.filter(|it| !it.is_empty() && it.len() <= 256).map(CallId::from) {
        Some(id) if !step.record.knows_call(&id) => id,
        _ => CallId::from(step.fresh(&format!("{name}-"))),
    }
}
