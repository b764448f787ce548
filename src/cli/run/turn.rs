//! The turns of `castor run`: the loop over agent, user and signals, up to what the run waits for.

use std::{
    collections::VecDeque,
    io,
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::{sync::mpsc, time};

use super::{ask::TerminalAsker, screen::Screen};
use crate::cli::{
    client::{
        key_input::Typed,
        link::{AgentLink, LinkEvent},
        signals::UserSignal,
    },
    terminal_text::clean_line,
};
use castor_client::{
    failure::{self, Exit, Failure, RequestFailure},
    machine::{ClientNews, ClientPhase, ClientRequest},
    opening::{OpenedSession, SessionRequest},
    questions::Question,
};
use castor_wire::acp::{client::PromptAnswer, meta::StopDetail};

/// How long a cancelled turn may take to end when the output is no longer read.
const UNREAD_GRACE: Duration = Duration::from_secs(1);
/// An agent that ends the turn and says nothing of the user's words is not waited for.
const STEERING_GRACE: Duration = Duration::from_secs(1);
/// Lines that are no messages, told one by one.
const MAX_NOISE_NOTES: u32 = 3;

/// A conversation with one agent.
pub struct Driver {
    pub link: AgentLink,
    signals: mpsc::Receiver<UserSignal>,
    pub screen: Screen,
    asker: TerminalAsker,
    /// Answers that the run waits for.
    steps: VecDeque<RunStep>,
    takes_steering: bool,
    /// Events are shown: there was a prompt, and nobody waits for the next one.
    is_in_turn: bool,
    /// The agent is gone.
    is_lost: bool,
    /// When to give up on an agent after stdout was closed.
    deadline: Option<Instant>,
    n_noise: u32,
}

/// An answer that a run waits for.
enum RunStep {
    Opened(Box<OpenedSession>),
    Prompted(Result<Box<PromptAnswer>, RequestFailure>),
    Answered(Result<Value, RequestFailure>),
}

enum TurnEvent {
    Signal(UserSignal),
    Unread,
    GiveUp,
    Typed(Typed),
    Link(LinkEvent),
    /// What waits to be shown can be flushed, or a draw is due.
    Room,
}

impl Driver {
    pub fn new(link: AgentLink, signals: mpsc::Receiver<UserSignal>, screen: Screen, asker: TerminalAsker) -> Self {
        Self {
            link,
            signals,
            screen,
            asker,
            steps: VecDeque::new(),
            takes_steering: false,
            is_in_turn: false,
            is_lost: false,
            deadline: None,
            n_noise: 0,
        }
    }

    /// Opens the session. `None`: the agent is gone.
    ///
    /// # Errors
    /// There is no session, or the user quits.
    pub async fn open(&mut self, request: SessionRequest) -> Result<Option<OpenedSession>, Failure> {
        self.link.machine.open(request);
        let Some(RunStep::Opened(opened)) = self.next_step().await? else { return Ok(None) };
        // Others never say which messages do not count.
        self.screen.set_may_discard(opened.is_castor());
        self.takes_steering = opened.takes_steering();
        self.screen.changes.is_listed = opened.lists_checkpoints();
        opened.notes.iter().for_each(|note| self.screen.note(note));
        self.screen.note_session(&opened.id, &opened.model);
        Ok(Some(*opened))
    }

    /// Waits between two turns: Ctrl-C quits, and questions are answered as ever.
    ///
    /// # Errors
    /// When the user quits, or the output is no longer read.
    pub async fn wait_idle<T>(&mut self, what: impl Future<Output = T>) -> Result<T, Failure> {
        self.is_in_turn = false;
        self.screen.end_turn();
        tokio::pin!(what);
        loop {
            let event = tokio::select! {
                biased;
                event = self.next_event() => event,
                result = &mut what => return Ok(result),
            };
            self.turn(event).await?;
        }
    }

    /// Sends the prompt in the open session, with `_meta`; gives the stop reason. `None`: the agent is gone.
    pub async fn prompt(&mut self, blocks: Vec<Value>, options: Option<Value>) -> Result<Option<String>, Failure> {
        self.is_in_turn = true;
        self.screen.start_turn();
        self.asker.listen(self.takes_steering);
        self.screen.report.note_prompt();
        self.link.machine.prompt(blocks, options);
        let answered = self.next_step().await;
        self.asker.listen(false);
        self.show_questions();
        let Some(RunStep::Prompted(answer)) = answered? else { return Ok(None) };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.screen.report.take_meta(error.meta());
                return Err(error.into_failure());
            }
        };
        self.screen.set_prompt_answer(&answer);
        let grace = Instant::now() + STEERING_GRACE;
        while self.link.machine.is_steering() && !self.is_lost {
            let Ok(event) = time::timeout_at(grace.into(), self.next_event()).await else { break };
            self.turn(event).await?;
        }
        let reason = answer.stop_reason();
        match (self.deadline, answer.stop_detail()) {
            (Some(_), _) => Err(Failure::new(Exit::Unread, "")),
            (None, Some(StopDetail::UnknownCommand)) => Err(Failure::input(self.screen.take_answer())),
            (None, detail) => failure::from_stop_reason(reason, detail).map(|()| Some(reason.to_owned())),
        }
    }

    /// The session's changes in files, for an agent that lists them and an output that says them.
    pub async fn list_changes(&mut self, request: ClientRequest) -> Option<Value> {
        if !self.link.machine.ask(request) {
            return None;
        }
        match self.next_step().await {
            Ok(Some(RunStep::Answered(answer))) => answer.ok(),
            _ => None,
        }
    }

    /// Lives on until the agent answers. `None`: it is gone.
    async fn next_step(&mut self) -> Result<Option<RunStep>, Failure> {
        self.link.carry_out().await;
        loop {
            if let Some(step) = self.steps.pop_front() {
                return Ok(Some(step));
            }
            if self.is_lost {
                return Ok(None);
            }
            let event = self.next_event().await;
            self.turn(event).await?;
        }
    }

    async fn next_event(&mut self) -> TurnEvent {
        // In order of urgency.
        tokio::select! {
            biased;
            Some(signal) = self.signals.recv() => TurnEvent::Signal(signal),
            () = self.screen.closed(), if self.deadline.is_none() => TurnEvent::Unread,
            () = until(self.deadline), if self.deadline.is_some() => TurnEvent::GiveUp,
            typed = self.asker.typed() => TurnEvent::Typed(typed),
            event = self.link.next(self.screen.has_room()), if !self.is_lost => TurnEvent::Link(event),
            () = self.screen.room() => TurnEvent::Room,
        }
    }

    /// One turn of the loop.
    async fn turn(&mut self, event: TurnEvent) -> Result<(), Failure> {
        match event {
            TurnEvent::Signal(signal) => self.signal(signal)?,
            TurnEvent::Unread => self.stop_unread()?,
            TurnEvent::GiveUp => return Err(Failure::new(Exit::Unread, "")),
            TurnEvent::Typed(typed) => {
                let text = self.asker.answer(typed);
                self.screen.write_stderr(text);
            }
            TurnEvent::Link(LinkEvent::Log(line)) => self.screen.agent_log(&line),
            TurnEvent::Link(LinkEvent::Lost) => self.is_lost = true,
            TurnEvent::Link(LinkEvent::Turned) | TurnEvent::Room => (),
        }
        while let Some(news) = self.link.machine.take_news() {
            self.take_news(news)?;
        }
        self.show_questions();
        self.steer();
        for (number, answer) in self.asker.take_answers() {
            self.link.machine.answer(number, answer);
        }
        self.link.carry_out().await;
        self.screen.flush();
        Ok(())
    }

    fn take_news(&mut self, news: ClientNews) -> Result<(), Failure> {
        match news {
            ClientNews::Opened(opened) => self.steps.push_back(RunStep::Opened(opened)),
            ClientNews::Failed(failure) => return Err(failure),
            ClientNews::Prompted(answer) => self.steps.push_back(RunStep::Prompted(answer)),
            ClientNews::Answered(_, answer) => self.steps.push_back(RunStep::Answered(answer)),
            ClientNews::Event(event) if self.is_in_turn => self.screen.update(&event),
            ClientNews::StreamEvent(params) => self.screen.event(&params),
            ClientNews::Asked(question) => self.question(*question),
            ClientNews::Withdrawn(number) => {
                let text = self.asker.withdraw(number);
                self.screen.write_stderr(text);
            }
            ClientNews::Steered(outcome) => self.screen.note(&outcome.in_words()),
            ClientNews::Noise(line) => self.note_noise(&line),
            ClientNews::Event(_) | ClientNews::Replayed(_) | ClientNews::Sessions(_) | ClientNews::Loaded(_) => (),
        }
        Ok(())
    }

    fn show_questions(&mut self) {
        if !self.asker.take_change() {
            return;
        }
        self.screen.print_lines(&self.asker.take_lines());
        self.screen.set_asking(self.asker.is_asking());
        if self.asker.takes_keys() {
            let width = self.screen.width();
            self.screen.set_panel(self.asker.panel(width));
        }
    }

    fn note_noise(&mut self, line: &str) {
        self.n_noise += 1;
        if self.n_noise <= MAX_NOISE_NOTES {
            let line = clean_line(line, 120);
            self.screen.note(&format!("the agent wrote a line that is no message to stdout; ignored: {line}"));
        }
    }

    fn question(&mut self, question: Question) {
        let (call, agent) = self.screen.take_question(&question);
        let text = self.asker.ask(Question { agent, ..question }, &call);
        self.screen.write_stderr(text);
    }

    /// What was typed while nothing was asked is told to the agent.
    fn steer(&mut self) {
        for line in self.asker.take_steering().into_iter().filter(|line| !line.trim().is_empty()) {
            if self.link.machine.phase() == ClientPhase::Prompting {
                self.link.machine.steer(line);
                self.screen.note("the agent reads this with its next step");
            }
        }
    }

    fn signal(&mut self, signal: UserSignal) -> Result<(), Failure> {
        if signal == UserSignal::Terminate || self.link.machine.phase() != ClientPhase::Prompting {
            return Err(Failure::new(Exit::Quit, "cancelled"));
        }
        if self.asker.is_asking() && !self.asker.takes_keys() {
            self.screen.write_stderr("\n".to_owned());
        }
        self.screen.note("cancelling; once more to quit at once");
        self.screen.set_cancelling();
        self.cancel();
        Ok(())
    }

    fn stop_unread(&mut self) -> Result<(), Failure> {
        if !self.is_in_turn {
            return Err(Failure::new(Exit::Unread, ""));
        }
        self.deadline = Some(Instant::now() + UNREAD_GRACE);
        self.cancel();
        Ok(())
    }

    fn cancel(&mut self) {
        self.link.machine.cancel();
        self.asker.cancel_all();
    }

    /// Writes the rest and closes the agent's stdin. The user may quit while the last words wait for a slow reader.
    pub async fn finish(mut self) -> io::Result<()> {
        let written = tokio::select! {
            written = self.screen.finish() => written,
            Some(_) = self.signals.recv() => Ok(()),
        };
        self.link.close_input();
        written
    }
}

async fn until(deadline: Option<Instant>) {
    if let Some(deadline) = deadline {
        time::sleep_until(deadline.into()).await;
    }
}
