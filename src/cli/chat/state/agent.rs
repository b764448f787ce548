//! The agent's steps in the chat: updates, questions, the end of a turn, its own end.

use std::{mem, time::Duration};

use serde_json::Value;

use super::{Chat, ChatPhase, frame::prompt_lines};
use crate::cli::{
    chat::{
        effects::Effect,
        lower::{AgentPhase, News, SlashCommand},
    },
    render::{
        end_line::TurnEnd,
        text::{Color, Line, Style},
        wrap::wrap,
    },
    terminal_text::clean_line,
};
use castor_client::{
    failure::{Exit, Failure},
    opening::OpenedSession,
    questions::{Answer, Question},
};
use castor_wire::acp::client::{ClientEvent, OfferedCommand, PromptAnswer};

const MAX_COMMANDS: usize = 500;
const MAX_WORDS: usize = 500;

/// What the agent does.
impl Chat {
    /// The session is open.
    pub fn opened(&mut self, opened: &OpenedSession, now: Duration) {
        self.agent.is_castor = opened.is_castor();
        self.agent.takes_steering = opened.takes_steering();
        self.changes.is_listed = opened.lists_checkpoints();
        self.changes.roots = vec![self.view.options.cwd.clone().into()];
        let facts = &mut self.status.facts;
        facts.open(&opened.session);
        if facts.model.is_empty() {
            facts.model.clone_from(&opened.model);
        }
        opened.notes.iter().for_each(|it| self.note(it));
        self.phase = ChatPhase::Idle;
        self.tell(&News::Castor(self.agent.is_castor), now);
        self.go_on(now);
    }

    /// Another session is about to be opened; false: a turn is under way.
    pub fn leave_session(&mut self) -> bool {
        let is_idle = self.phase == ChatPhase::Idle;
        if is_idle {
            self.phase = ChatPhase::Starting;
        }
        is_idle
    }

    /// The other session is there, or the old one stays.
    pub fn enter_session(&mut self, now: Duration) {
        self.phase = ChatPhase::Idle;
        self.go_on(now);
    }

    /// An event of a session, or of a sub-agent below it.
    pub fn update(&mut self, session: &str, event: &ClientEvent, now: Duration) {
        self.is_stale = true;
        let change = self.view.talk.update(session, event, now);
        let ended = change.call.as_ref().filter(|it| it.has_ended);
        if let Some(call) = ended.and_then(|it| self.view.talk.call(session, &it.id)).filter(|it| !it.is_failed()) {
            self.changes.edits.add(call.diffs());
        }
        if !self.view.talk.agents.is_child(session) {
            self.status.facts.take(event);
            if let ClientEvent::Commands(it) = event {
                self.take_commands(it, now);
            }
        }
        self.view.show(session, event, &change, now);
    }

    fn take_commands(&mut self, commands: &[OfferedCommand], now: Duration) {
        let command = |it: &OfferedCommand| SlashCommand {
            name: clean_line(&it.name, MAX_WORDS),
            description: clean_line(&it.description, MAX_WORDS),
            hint: it.hint().map(|it| clean_line(it, MAX_WORDS)),
        };
        self.agent.commands = commands.iter().take(MAX_COMMANDS).map(command).collect();
        let news = News::Commands(self.agent.commands.clone());
        self.tell(&news, now);
    }

    /// The agent asks the user.
    pub fn ask(&mut self, question: Question, now: Duration) {
        self.is_stale = true;
        if matches!(self.phase, ChatPhase::Cancelling { .. } | ChatPhase::Over) {
            return self.effects.push(Effect::Answer(question.number, Answer::Cancelled));
        }
        let call = question.note_in(&mut self.view.talk, now);
        let agent = question.asker(&self.view.talk);
        let cwd = self.view.options.cwd.clone();
        let question = Question { agent, ..question };
        if self.bottom.ask(question, &call, &cwd, self.agent.takes_steering, now) {
            self.effects.push(Effect::CallUser("castor asks you something"));
        }
        self.settle(now);
    }

    pub fn withdraw(&mut self, number: u64, now: Duration) {
        self.is_stale = true;
        self.bottom.withdraw(number, now);
        self.settle(now);
    }

    /// The answer to the prompt.
    pub fn prompted(&mut self, answer: Result<PromptAnswer, Failure>, now: Duration) {
        let since = match self.phase {
            ChatPhase::Working { since } | ChatPhase::Cancelling { since } => since,
            _ => now,
        };
        self.view.end(now);
        self.bottom.cancel_questions();
        self.phase = ChatPhase::Idle;
        match answer {
            Ok(answer) => {
                let (usage, cost) = (answer.usage, answer.cost());
                usage.iter().for_each(|it| self.status.tokens.add(it));
                self.view.talk.note_answer(answer);
                // What is not known is not said after each turn.
                let is_free = cost.is_none();
                let took = now.saturating_sub(since);
                self.status.tokens.worked += took;
                let end = TurnEnd { usage, cost, is_free, took, ..TurnEnd::default() };
                self.view.add_lines(end.line().into_iter().collect());
            }
            Err(it) if it.exit == Exit::Cancelled => self.note("stopped"),
            Err(it) => self.fail(&it.message),
        }
        self.settle(now);
        self.tell(&News::Agent(AgentPhase::Idle), now);
        self.go_on(now);
        if self.phase == ChatPhase::Idle {
            self.effects.push(Effect::CallUser("castor is done"));
        }
    }

    /// What the session changed in files so far, as checkpoints have it.
    pub fn take_changes(&mut self, listing: &Value) {
        let before = self.changes.counted.take().and_then(|it| it.warning);
        self.changes.summarize(listing);
        let counted = self.changes.counted.as_ref();
        self.status.changes = counted.map(|it| it.counts.clone());
        // Once is enough.
        let warning = counted.and_then(|it| it.warning.clone()).filter(|it| before.as_ref() != Some(it));
        warning.iter().for_each(|it| self.note(it));
    }

    /// The next message that waits.
    fn go_on(&mut self, now: Duration) {
        self.is_stale = true;
        if self.phase == ChatPhase::Idle
            && let Some(draft) = self.queue.pop_front()
        {
            self.submit(draft, now);
        }
    }

    /// The agent is gone, and nobody knows yet why.
    pub fn lose_agent(&mut self, now: Duration) {
        self.tell(&News::Agent(AgentPhase::Gone), now);
    }

    /// The agent is gone, or there is no session: what was not sent is shown, so that it is not lost.
    pub fn end(&mut self, why: &str, now: Duration) {
        self.lose_agent(now);
        self.view.end(now);
        self.bottom.cancel_questions();
        self.settle(now);
        self.phase = ChatPhase::Over;
        self.fail(why);
        for it in mem::take(&mut self.queue) {
            self.note(&format!("not sent: {}", it.text));
        }
        if let Some(it) = self.bottom.take_draft() {
            self.note("not sent, and kept in the history:");
            self.view.add_lines(prompt_lines(&it.text, self.bottom.width, "  "));
            self.unsent = Some(it.text);
        }
    }

    /// A line of the agent's stderr.
    pub fn log(&mut self, line: &str) {
        self.is_stale = true;
        self.view.add_lines(wrap(&Line::new(&clean_line(line, MAX_WORDS), Style::DIM), self.bottom.width, "  "));
    }

    fn fail(&mut self, why: &str) {
        self.print_marked("✗ ", Color::Red, why);
    }

    /// A remark of the chat's own.
    pub fn note(&mut self, text: &str) {
        self.print_marked("! ", Color::Yellow, text);
    }

    fn print_marked(&mut self, mark: &str, color: Color, text: &str) {
        self.is_stale = true;
        let mut line = Line::new(mark, Style::color(color));
        line.push(text.trim(), Style::PLAIN);
        self.view.add_lines(wrap(&line, self.bottom.width, "  "));
    }
}
