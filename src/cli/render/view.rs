//! The view of a turn: events of the agent in, styled lines out. It knows the time only as an argument.
//!
//! What is over goes to the scrollback as finished lines. What is not is the live region: the end of the answer, calls
//! that run, the plan, and what is waited for. `castor run` shows it on stdout and stderr; a chat can show it as well.

mod agent_lines;
mod call;
mod call_lines;
mod calls;
mod command_output;
mod plan;
mod result;
mod thought;
mod waiting;

use std::time::Duration;

use self::{agent_lines::AgentPlace, calls::CallList, plan::PlanView, waiting::Waiting};
use super::{
    markdown::MarkdownStream,
    text::{Color, Line, Style},
    wrap::wrap,
};
use castor_client::{
    Change, Conversation,
    agents::AgentChange,
    entries::{CallChange, Words},
};
use castor_wire::acp::client::{ClientEvent, NoticeLevel, PlanList, SessionNotice, Voice};

/// Live rows are scarce: so many are left to the plan.
const PLAN_ROWS: usize = 10;
/// Finished lines that are drawn at once where a key may wait for it.
const STEP_LINES: usize = 256;

#[derive(Clone, Debug, Default)]
pub struct ViewOptions {
    /// Paths below it are shown relative to it.
    pub cwd: String,
    /// Columns of finished lines.
    pub width: usize,
    /// False: the answer goes elsewhere, such as into a pipe.
    pub shows_answer: bool,
    /// Answer and work stand on one terminal: a blank line is between them.
    pub shares_terminal: bool,
    /// There is a live region: calls keep their order, and the plan is shown once at the end.
    pub is_live: bool,
    /// How to stop what is waited for; empty: by Ctrl-C.
    pub stop_hint: &'static str,
}

/// A line that will not change any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedLine {
    pub line: Line,
    pub kind: LineKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    Answer,
    /// Calls, thoughts, notices, the plan.
    Work,
}

/// Text that is still coming.
enum OpenText {
    Nothing,
    Answer {
        stream: MarkdownStream,
        message: Option<String>,
    },
    /// It is shown elsewhere.
    Elsewhere {
        since: Duration,
    },
    /// The last thought of the conversation.
    Thought,
}

pub struct TurnView {
    pub options: ViewOptions,
    finished: Vec<FinishedLine>,
    /// What the last finished line was of: another kind stands behind a blank line.
    last: Option<LineKind>,
    text: OpenText,
    calls: CallList,
    pub talk: Conversation,
    plan: PlanView,
    waiting: Waiting,
}

impl TurnView {
    pub fn new(options: ViewOptions) -> Self {
        Self {
            options,
            finished: Vec::new(),
            last: None,
            text: OpenText::Nothing,
            calls: CallList::default(),
            talk: Conversation::default(),
            plan: PlanView::default(),
            waiting: Waiting::default(),
        }
    }

    /// All that is kept of what a command printed: one that runs, or else the last one.
    pub fn whole_output(&self, width: usize) -> Vec<Line> {
        self.calls.whole_output(&self.talk, &self.options.cwd, width)
    }

    /// The thought that is under way, or else the last one, unfolded.
    pub fn last_thought(&self, width: usize) -> Vec<Line> {
        self.talk.last_thought().map(|it| thought::unfolded(it, width)).unwrap_or_default()
    }

    /// The prompt is on its way: from now on something is waited for.
    pub fn start(&mut self, now: Duration) {
        self.waiting.start(now);
    }

    /// While the user is asked, nothing else is waited for.
    pub fn set_asking(&mut self, is_asking: bool, now: Duration) {
        self.waiting.set_asking(is_asking, now);
        if !is_asking {
            self.talk.release_questions(now);
        }
    }

    /// Ctrl-C was pressed.
    pub fn set_cancelling(&mut self) {
        self.waiting.is_cancelling = true;
    }

    /// Shows an event that the conversation has taken, and what it meant there.
    pub fn show(&mut self, session: &str, event: &ClientEvent, change: &Change, now: Duration) {
        match self.talk.agents.is_child(session) {
            true => self.show_of_agent(session, event, now),
            false => self.show_main(event, change.call.as_ref(), now),
        }
        if let Some(it) = &change.agent {
            self.show_agent(it, now);
        }
    }

    /// One of the session that the user speaks to.
    fn show_main(&mut self, event: &ClientEvent, call: Option<&CallChange>, now: Duration) {
        self.discard(&event.discarded());
        match event {
            ClientEvent::Chunk(voice, it) => match (voice, it.text().filter(|it| !it.is_empty())) {
                (Voice::Answer, Some(text)) => self.answer(text, it.message.as_deref(), now),
                (Voice::Thought, Some(_)) => self.think(now),
                (Voice::User, _) => return,
                (Voice::Answer | Voice::Thought, None) => (),
            },
            ClientEvent::Call(_) | ClientEvent::CallPart(_) => call.into_iter().for_each(|it| self.call(&it.id, now)),
            ClientEvent::Plan(it) => self.plan(it, now),
            ClientEvent::Notice(it) => {
                self.close_text(now);
                self.emit_work(notice(it, "", self.options.width));
            }
            // Agents of version 2 are not spoken to, and the rest is shown elsewhere.
            ClientEvent::Message(..)
            | ClientEvent::Terminal(_)
            | ClientEvent::TerminalOutput(_)
            | ClientEvent::Usage(_)
            | ClientEvent::Mode(_)
            | ClientEvent::Options(_)
            | ClientEvent::Commands(_)
            | ClientEvent::Info(_)
            | ClientEvent::Aside(_)
            | ClientEvent::Subagent(_)
            | ClientEvent::State(_)
            | ClientEvent::Unknown(_) => return,
        }
        self.waiting.touch(now, matches!(self.text, OpenText::Answer { .. }));
    }

    /// An agent began or ended. One that no call started has a row of its own among the calls.
    fn show_agent(&mut self, change: &AgentChange, now: Duration) {
        let (AgentChange::Started(session) | AgentChange::Ended(session)) = change;
        let Some(agent) = self.talk.agents.get(session) else { return };
        let is_started = matches!(change, AgentChange::Started(_));
        let is_nested = self.talk.agents.is_child(&agent.parent);
        if agent.call.is_none() && !is_nested {
            let row = agent.row();
            self.call(&row, now);
        }
        let Some(agent) = self.talk.agents.get(session).filter(|_| !self.options.is_live) else { return };
        let lines = match is_started {
            true => vec![agent_lines::started(&self.talk.agents, agent, self.options.width)],
            // The others end with their calls.
            false if is_nested => {
                let place = AgentPlace { options: &self.options, spinner: "", now, width: self.options.width };
                self.calls.agent_ends(&self.talk, agent, &place)
            }
            false => return,
        };
        self.add_lines(lines);
    }

    /// An event of an agent's session: only a notice has lines of its own.
    fn show_of_agent(&mut self, session: &str, event: &ClientEvent, now: Duration) {
        if let ClientEvent::Notice(it) = event {
            let who = self.talk.agents.path(session).unwrap_or_default();
            self.add_lines(notice(it, &who, self.options.width));
        }
        self.waiting.touch(now, false);
    }

    /// Lines of others, such as the program's own remarks.
    /// An answer that is still coming stays whole below them.
    pub fn add_lines(&mut self, lines: Vec<Line>) {
        self.pull_step();
        self.emit_work(lines);
    }

    /// Lines that stand for themselves, such as what the user said: an empty line parts them from what is above.
    pub fn add_block(&mut self, lines: Vec<Line>) {
        self.pull_step();
        if self.last == Some(LineKind::Work) {
            self.finished.push(FinishedLine { line: Line::default(), kind: LineKind::Work });
        }
        self.emit_work(lines);
    }

    /// The turn is over: everything that is open ends.
    pub fn end(&mut self, now: Duration) {
        self.close_text(now);
        self.talk.end_turn(now);
        let calls = self.calls.take_all(&self.options, &mut self.talk);
        self.emit_work(calls);
        if self.options.is_live {
            let plan = self.plan.lines();
            self.emit_work(plan);
        }
        self.plan = PlanView::default();
        self.waiting.stop();
    }

    /// What became final since the last time.
    pub fn take_finished(&mut self) -> Vec<FinishedLine> {
        self.pull_answer();
        std::mem::take(&mut self.finished)
    }

    /// The first of that: so many lines that a key can wait for them. `has_more`: the next ones are due.
    pub fn take_step(&mut self) -> Vec<FinishedLine> {
        self.pull_step();
        let count = self.finished.len().min(STEP_LINES);
        self.finished.drain(..count).collect()
    }

    /// Whether finished lines are left that `take_step` would give.
    pub fn has_more(&self) -> bool {
        !self.finished.is_empty() || matches!(&self.text, OpenText::Answer { stream, .. } if stream.is_behind())
    }

    /// Of the finished lines that were not taken yet only the last `count` stay; gives how many went.
    pub fn keep_last_finished(&mut self, count: usize) -> usize {
        self.pull_answer();
        let cut = self.finished.len().saturating_sub(count);
        self.finished.drain(..cut);
        cut
    }

    /// A line above all that were not taken yet.
    pub fn put_first(&mut self, line: Line) {
        self.finished.insert(0, FinishedLine { line, kind: LineKind::Work });
    }

    /// Finished lines that were not taken yet, and bytes of the answer of which no lines were made yet.
    pub fn backlog(&self) -> (usize, usize) {
        let unread = if let OpenText::Answer { stream, .. } = &self.text { stream.unread_len() } else { 0 };
        (self.finished.len(), unread)
    }

    /// When the live region changes by itself, at the soonest; `None`: never.
    pub fn changes_from(&self) -> Option<Duration> {
        match self.calls.has_open(&self.talk) {
            true => Some(Duration::ZERO),
            false => self.waiting.spinner_start(self.busy_since()),
        }
    }
}

impl TurnView {
    /// The rows that are redrawn, from top to bottom; `take_finished` comes first.
    pub fn live(&self, now: Duration, width: usize, height: usize) -> Vec<Line> {
        let status = self.status(now, width);
        let room = height.saturating_sub(status.len());
        let place = AgentPlace { options: &self.options, spinner: self.waiting.spinner(now), now, width };
        let calls = self.calls.live(&self.talk, &place, self.waiting.is_asking, room);
        let room = room.saturating_sub(calls.len());
        let plan = self.plan.live(width, room.min(PLAN_ROWS));
        let tail = match &self.text {
            // The terminal may be narrower than it was when the answer began. What stands above it comes first.
            OpenText::Answer { stream, .. } if self.finished.is_empty() => {
                stream.tail().iter().flat_map(|it| wrap(it, width, "")).collect()
            }
            _ => Vec::new(),
        };
        let mut res: Vec<Line> = Vec::new();
        let mut last = self.last;
        for (lines, kind) in [(tail, LineKind::Answer), ([calls, plan, status].concat(), LineKind::Work)] {
            if lines.is_empty() {
                continue;
            }
            if last.is_some_and(|it| it != kind) && self.options.shares_terminal {
                res.push(Line::default());
            }
            last = Some(kind);
            res.extend(lines);
        }
        // The end is what counts: the beginning comes with the finished lines.
        res.split_off(res.len().saturating_sub(height))
    }

    /// When something began that is shown while it lasts.
    fn busy_since(&self) -> Option<Duration> {
        match &self.text {
            OpenText::Thought => self.talk.last_thought().map(|it| it.started),
            OpenText::Elsewhere { since } => Some(*since),
            OpenText::Answer { .. } | OpenText::Nothing => None,
        }
    }

    /// What is waited for, if that takes long.
    fn status(&self, now: Duration, width: usize) -> Vec<Line> {
        let words = match &self.text {
            _ if self.calls.has_open(&self.talk) => return Vec::new(),
            OpenText::Thought => {
                format!("thinking  {}", self.talk.last_thought().map(Words::heading).unwrap_or_default())
            }
            OpenText::Elsewhere { .. } => "writing the answer".to_owned(),
            OpenText::Answer { .. } | OpenText::Nothing => "waiting for the model".to_owned(),
        };
        self.waiting
            .line(words.trim_end(), self.busy_since(), now, (width, self.options.stop_hint))
            .into_iter()
            .collect()
    }
}

impl TurnView {
    fn answer(&mut self, chunk: &str, message: Option<&str>, now: Duration) {
        if !self.options.shows_answer {
            if !matches!(self.text, OpenText::Elsewhere { .. }) {
                self.close_text(now);
                self.text = OpenText::Elsewhere { since: now };
            }
            return;
        }
        match &mut self.text {
            OpenText::Answer { stream, message: old }
                if old.is_none() || message.is_none_or(|it| old.as_deref() == Some(it)) =>
            {
                return stream.push(chunk);
            }
            _ => (),
        }
        self.close_text(now);
        let calls = self.calls.take_over(&self.options, &mut self.talk, true);
        self.emit_work(calls);
        if self.last == Some(LineKind::Answer) {
            self.finished.push(FinishedLine { line: Line::default(), kind: LineKind::Answer });
        }
        let mut stream = MarkdownStream::new(self.options.width);
        stream.push(chunk);
        self.text = OpenText::Answer { stream, message: message.map(str::to_owned) };
    }

    fn think(&mut self, now: Duration) {
        if !matches!(self.text, OpenText::Thought) {
            self.close_text(now);
            self.text = OpenText::Thought;
        }
    }

    /// A call, or the row of an agent, began or changed.
    fn call(&mut self, id: &str, now: Duration) {
        if self.calls.is_new(id) {
            self.close_text(now);
        }
        self.calls.add(id);
        let lines = self.calls.take_over(&self.options, &mut self.talk, !self.options.is_live);
        self.emit_work(lines);
    }

    fn plan(&mut self, plan: &PlanList, now: Duration) {
        self.close_text(now);
        self.calls.note_plan(&self.talk);
        let changes = self.plan.update(plan);
        if !self.options.is_live {
            self.emit_work(changes);
        }
    }

    /// Forgets what is not final of messages that do not count any more.
    fn discard(&mut self, ids: &[&str]) {
        let OpenText::Answer { message: Some(message), .. } = &self.text else { return };
        if ids.contains(&message.as_str()) {
            self.text = OpenText::Nothing;
        }
    }

    fn close_text(&mut self, now: Duration) {
        match std::mem::replace(&mut self.text, OpenText::Nothing) {
            OpenText::Nothing | OpenText::Elsewhere { .. } => (),
            OpenText::Answer { mut stream, .. } => {
                let lines = stream.finish();
                self.emit(lines, LineKind::Answer);
            }
            OpenText::Thought => {
                let line = self.talk.last_thought().map(|it| thought::finished(it, now, self.options.width));
                self.emit_work(line.into_iter().collect());
            }
        }
    }

    fn pull_answer(&mut self) {
        if let OpenText::Answer { stream, .. } = &mut self.text {
            let lines = stream.take_finished();
            self.emit(lines, LineKind::Answer);
        }
    }

    /// Nothing where enough lines wait already.
    fn pull_step(&mut self) {
        if let OpenText::Answer { stream, .. } = &mut self.text
            && self.finished.len() < STEP_LINES
        {
            let lines = stream.take_step();
            self.emit(lines, LineKind::Answer);
        }
    }

    fn emit_work(&mut self, lines: Vec<Line>) {
        self.emit(lines, LineKind::Work);
    }

    fn emit(&mut self, lines: Vec<Line>, kind: LineKind) {
        if lines.is_empty() {
            return;
        }
        if self.last.is_some_and(|it| it != kind) && self.options.shares_terminal {
            self.finished.push(FinishedLine { line: Line::default(), kind: LineKind::Work });
        }
        self.last = Some(kind);
        self.finished.extend(lines.into_iter().map(|line| FinishedLine { line, kind }));
    }
}

/// As `! …`, in red where it is an error. `who`: the agent that it is of.
fn notice(notice: &SessionNotice, who: &str, width: usize) -> Vec<Line> {
    let color = if notice.severity == Some(NoticeLevel::Error) { Color::Red } else { Color::Yellow };
    let said = [notice.title.as_str(), notice.description.as_str()].join(" ");
    let words = if who.is_empty() { said } else { format!("{who}: {said}") };
    let mut mark = "! ";
    let mut res = Vec::new();
    for it in words.lines().filter(|it| !it.trim().is_empty()) {
        let mut line = Line::new(mark, Style::color(color));
        line.push(it.trim_end(), Style::PLAIN);
        res.extend(wrap(&line, width, "  "));
        mark = "  ";
    }
    res
}
