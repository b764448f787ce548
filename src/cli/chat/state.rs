//! The state of the chat: keys, updates, questions and answers in; lines and effects out. It knows the time only as an
//! argument.

mod agent;
pub mod frame;

use std::{collections::VecDeque, mem, time::Duration};

use self::frame::prompt_lines;
use super::{
    bottom::Bottom,
    effects::Effect,
    lower::{Action, AgentPhase, Draft, Key, News, Panel, ProposedText, SlashCommand, Theme},
    pickers::options::{OptionPicker, OptionRow},
    status::Status,
};
use crate::cli::{
    client::{attachments::names_files, change_summary::ChangeSummary},
    render::{
        text::Line,
        view::{TurnView, ViewOptions},
    },
};
use castor_client::machine::ClientRequest;

/// Messages that may wait for the end of the turn.
const MAX_QUEUE: usize = 20;
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatPhase {
    /// The session is not open yet: messages wait.
    Starting,
    Idle,
    Working {
        since: Duration,
    },
    /// The turn was cancelled; its end is awaited.
    Cancelling {
        since: Duration,
    },
    /// The agent is gone, or there is no session.
    Over,
}

/// What is known of the agent.
#[derive(Debug, Default)]
pub struct AgentTraits {
    is_castor: bool,
    takes_steering: bool,
    commands: Vec<SlashCommand>,
}

pub struct Chat {
    pub view: TurnView,
    /// In files.
    pub changes: ChangeSummary,
    bottom: Bottom,
    pub status: Status,
    phase: ChatPhase,
    /// Messages that wait for the end of the turn, or for the session.
    queue: VecDeque<Draft>,
    agent: AgentTraits,
    effects: Vec<Effect>,
    /// What stood in the composer when the agent was gone.
    unsent: Option<String>,
    theme: Theme,
    /// The next Ctrl-C quits.
    is_leaving: bool,
    /// Something has to be drawn.
    is_stale: bool,
}

impl Chat {
    /// `is_live`: the cursor can be moved.
    pub fn new(composer: Box<dyn Panel>, cwd: &str, is_live: bool) -> Self {
        let options = ViewOptions {
            cwd: cwd.to_owned(),
            width: 80,
            shows_answer: true,
            shares_terminal: true,
            is_live,
            stop_hint: "esc stops",
        };
        Self {
            view: TurnView::new(options),
            changes: ChangeSummary::default(),
            bottom: Bottom::new(composer),
            status: Status::default(),
            phase: ChatPhase::Starting,
            queue: VecDeque::new(),
            agent: AgentTraits::default(),
            effects: Vec::new(),
            unsent: None,
            theme: Theme::default(),
            is_leaving: false,
            is_stale: true,
        }
    }

    pub fn take_effects(&mut self) -> Vec<Effect> {
        let answers = self.bottom.take_answers().into_iter();
        self.effects.extend(answers.map(|(number, answer)| Effect::Answer(number, answer)));
        mem::take(&mut self.effects)
    }

    /// What the user had typed when the agent was gone.
    pub fn take_unsent(&mut self) -> Option<String> {
        self.unsent.take()
    }

    pub fn phase(&self) -> ChatPhase {
        self.phase
    }

    pub fn is_working(&self) -> bool {
        matches!(self.phase, ChatPhase::Working { .. } | ChatPhase::Cancelling { .. })
    }

    pub fn is_asking(&self) -> bool {
        self.bottom.is_asking()
    }

    pub fn has_draft(&self) -> bool {
        self.bottom.has_draft()
    }

    /// Whether something changed since the last draw.
    pub fn is_stale(&self) -> bool {
        self.is_stale
    }

    pub fn set_stale(&mut self) {
        self.is_stale = true;
    }
}

/// What the user does.
impl Chat {
    pub fn key(&mut self, key: &Key, now: Duration) {
        self.is_stale = true;
        let was_leaving = mem::take(&mut self.is_leaving);
        match key {
            Key::Ctrl('c') => {
                self.is_leaving = was_leaving;
                return self.interrupt(now);
            }
            Key::Ctrl('o') => self.print_output(),
            Key::Ctrl('t') => self.print_thought(),
            Key::BackTab if !self.bottom.has_picker() && !self.bottom.is_asking() => self.next_mode(),
            _ => {
                let mut actions = Vec::new();
                self.bottom.key(key, now, &mut actions);
                self.act_all(actions, now);
            }
        }
        self.settle(now);
    }

    /// A key that was typed before a question came up.
    pub fn typed_before(&mut self, key: &Key, now: Duration) {
        let mut actions = Vec::new();
        self.bottom.typed_before(key, &mut actions);
        self.act_all(actions, now);
    }

    /// Whether what was typed and not read yet is older than the question on the screen.
    pub fn take_outdated(&mut self) -> bool {
        self.bottom.take_outdated()
    }

    /// A line of a terminal without single keys. Gives what to show in place of an answer.
    pub fn line(&mut self, line: &str, now: Duration) -> String {
        self.is_stale = true;
        let mut shown = String::new();
        if self.bottom.is_asking() {
            shown = self.bottom.answer_line(line, now);
        } else if !line.trim().is_empty() {
            self.act(Action::Submit(Draft { text: line.to_owned(), files: Vec::new() }), now);
        }
        self.settle(now);
        shown
    }

    /// What a terminal without single keys shows in front of what is typed.
    pub fn plain_prompt(&self) -> String {
        match self.phase {
            _ if self.bottom.is_asking() => self.bottom.question_prompt(),
            ChatPhase::Idle => "> ".to_owned(),
            _ => String::new(),
        }
    }

    /// Ctrl-C: stops the turn, clears the composer, and leaves at the second time.
    pub fn interrupt(&mut self, now: Duration) {
        self.is_stale = true;
        match self.phase {
            ChatPhase::Working { .. } => self.cancel(),
            ChatPhase::Cancelling { .. } => self.effects.push(Effect::Quit),
            _ if self.is_leaving => self.effects.push(Effect::Quit),
            _ if self.bottom.has_picker() => self.bottom.close_picker(),
            _ if self.bottom.has_draft() => {
                let mut actions = Vec::new();
                self.bottom.key(&Key::Ctrl('c'), now, &mut actions);
                self.act_all(actions, now);
            }
            _ => self.is_leaving = true,
        }
        self.settle(now);
    }

    fn cancel(&mut self) {
        if let ChatPhase::Working { since } = self.phase {
            self.phase = ChatPhase::Cancelling { since };
            self.view.set_cancelling();
            self.bottom.cancel_questions();
            self.effects.push(Effect::Cancel);
        }
    }

    fn act_all(&mut self, actions: Vec<Action>, now: Duration) {
        actions.into_iter().for_each(|it| self.act(it, now));
    }

    fn act(&mut self, action: Action, now: Duration) {
        let effect = match action {
            Action::Submit(draft) => return self.submit(draft, now),
            Action::Queue(draft) => return self.enqueue(draft),
            Action::Cancel => return self.cancel(),
            Action::NextMode => return self.next_mode(),
            Action::Close => return self.bottom.close_picker(),
            Action::Note(text) => return self.note(&text),
            Action::NeedCommands => {
                let news = News::Commands(self.agent.commands.clone());
                return self.tell(&news, now);
            }
            Action::OpenOptions => return self.open_options(),
            Action::OpenSessions => Effect::ListSessions,
            Action::OpenRewind if self.agent.is_castor && self.phase == ChatPhase::Idle => Effect::ListMessages,
            Action::OpenRewind => return self.note("only a session of castor's goes back, and only between two turns"),
            Action::Redo => Effect::Ask(ClientRequest::Redo),
            Action::Rewind { prompt, what } => Effect::Ask(ClientRequest::Rewind { prompt, what }),
            Action::OpenEditor(text) => Effect::EditText(text),
            Action::NeedFiles { query } => Effect::FindFiles(query),
            Action::Remember(line) => Effect::Remember(line),
            Action::SetOption { id, value } => Effect::Ask(ClientRequest::SetOption { id, value }),
            Action::OpenSession { id } => Effect::OpenSession(id),
            Action::SearchSessions { query, ids } => Effect::SearchSessions { query, ids },
            Action::ReadClipboard => Effect::ReadClipboard,
            Action::Page(lines) => Effect::Page(lines),
            Action::EditProposal(it) => Effect::EditProposal(it),
            Action::Copy(text) => Effect::Copy(text),
            Action::Quit => Effect::Quit,
        };
        self.effects.push(effect);
    }

    fn open_options(&mut self) {
        let options: Vec<OptionRow> = self.status.facts.options.iter().filter_map(OptionRow::of).collect();
        match options.is_empty() {
            true => self.note("this agent has no options to choose from"),
            false => self.open_picker(Box::new(OptionPicker::new(options))),
        }
    }

    /// What the frame found out for composer and picker.
    pub fn tell(&mut self, news: &News, now: Duration) {
        let mut actions = Vec::new();
        self.bottom.tell(news, &mut actions);
        self.act_all(actions, now);
        self.is_stale = true;
    }

    /// The message that the chat was started with.
    pub fn submit_first(&mut self, draft: Draft, now: Duration) {
        self.submit(draft, now);
    }

    /// The user edited what a call would write: the answer is no, with the changes.
    pub fn answer_with_edit(&mut self, proposed: &ProposedText, edited: &str, now: Duration) {
        if let Err(why) = self.bottom.answer_with_edit(proposed, edited, now) {
            self.note(why);
        }
        self.is_stale = true;
        self.settle(now);
    }

    pub fn open_picker(&mut self, picker: Box<dyn Panel>) {
        self.bottom.open(picker);
        self.is_stale = true;
    }

    fn submit(&mut self, draft: Draft, now: Duration) {
        if self.phase == ChatPhase::Over {
            self.note("the agent is gone; castor chat -c continues the session");
            return self.tell(&News::Draft(draft), now);
        }
        let Some(draft) = self.expand(draft, now) else { return };
        match self.phase {
            ChatPhase::Idle => self.begin(draft, now),
            ChatPhase::Working { .. } if self.can_steer(&draft) => {
                self.view.add_block(prompt_lines(&draft.text, self.bottom.width, "» "));
                self.effects.push(Effect::Steer(draft.text));
            }
            _ => self.enqueue(draft),
        }
    }

    /// A command or a file cannot go into a turn that is under way.
    fn can_steer(&self, draft: &Draft) -> bool {
        self.agent.takes_steering && draft.files.is_empty() && !draft.text.starts_with('/') && !names_files(&draft.text)
    }

    /// `!command` and `#fact` are commands of castor's, where it has them.
    fn expand(&mut self, draft: Draft, now: Duration) -> Option<Draft> {
        let (name, words, rest) = match (draft.text.strip_prefix('!'), draft.text.strip_prefix('#')) {
            (Some(rest), _) => ("shell", "/shell", rest),
            (_, Some(rest)) if !rest.starts_with(['#', ' ']) => ("memory", "/memory add", rest),
            _ => return Some(draft),
        };
        if !self.agent.is_castor || rest.trim().is_empty() {
            return Some(draft);
        }
        if self.agent.commands.iter().any(|it| it.name == name) || self.phase == ChatPhase::Starting {
            return Some(Draft { text: format!("{words} {}", rest.trim_start()), ..draft });
        }
        self.note(&format!("this session has no /{name}"));
        self.tell(&News::Draft(draft), now);
        None
    }

    /// Words came too late for the turn: they are the next message.
    pub fn send_after_turn(&mut self, text: String, now: Duration) {
        let draft = Draft { text, files: Vec::new() };
        self.is_stale = true;
        match self.phase {
            ChatPhase::Idle => self.begin(draft, now),
            ChatPhase::Over => self.note(&format!("not sent: {}", draft.text)),
            _ => self.enqueue(draft),
        }
    }

    fn enqueue(&mut self, draft: Draft) {
        if self.queue.len() == MAX_QUEUE {
            return self.note(&format!("{MAX_QUEUE} messages wait already; this one is dropped: {}", draft.text));
        }
        self.queue.push_back(draft);
    }

    fn begin(&mut self, draft: Draft, now: Duration) {
        // Elsewhere the terminal itself shows what is typed.
        if self.view.options.is_live {
            self.view.add_block(prompt_lines(&draft.text, self.bottom.width, "› "));
        }
        self.phase = ChatPhase::Working { since: now };
        self.status.turns += 1;
        self.view.start(now);
        self.effects.push(Effect::Prompt(draft));
        let phase = if self.agent.takes_steering { AgentPhase::Steerable } else { AgentPhase::Busy };
        self.tell(&News::Agent(phase), now);
    }

    fn next_mode(&mut self) {
        if let Some(mode) = self.status.next_mode() {
            // The answer comes soon, and the next press goes on from here.
            self.status.facts.mode.clone_from(&mode);
            self.effects.push(Effect::Ask(ClientRequest::SetMode(mode)));
        }
    }

    fn print_output(&mut self) {
        let lines = self.view.whole_output(self.bottom.width);
        self.print_or_say(lines, "no command has printed anything yet");
    }

    fn print_thought(&mut self) {
        let lines = self.view.last_thought(self.bottom.width);
        self.print_or_say(lines, "no thought was shown yet");
    }

    fn print_or_say(&mut self, lines: Vec<Line>, instead: &str) {
        if lines.is_empty() {
            return self.note(instead);
        }
        self.view.add_lines(lines);
    }

    /// What follows from a key or a message: lines and words of questions, and the next message of the queue.
    fn settle(&mut self, now: Duration) {
        let lines = self.bottom.take_lines();
        if !lines.is_empty() {
            self.view.add_lines(lines);
        }
        for words in self.bottom.take_words() {
            if matches!(self.phase, ChatPhase::Working { .. }) && self.agent.takes_steering {
                self.effects.push(Effect::Steer(words));
            }
        }
        self.view.set_asking(self.bottom.is_asking(), now);
    }
}
