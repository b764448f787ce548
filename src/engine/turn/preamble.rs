//! The opening of a turn: waits for MCP servers and collects notices about those that failed.

use std::collections::{BTreeMap, BTreeSet};

use crate::step::{Input, Server, ServerStatus, TrustForm, TrustPrompt, WaitingQuestion};
use castor_base::{
    credential::{Credential, CredentialOwner},
    held_program::{HeldProgram, HoldReason, ProgramName, lack_in_words},
    ids::ElicitationId,
    text,
};

/// A client may accept a question as soon as its page is open.
const MAX_ASKED: u8 = 2;
/// The beginning of notices on changed resources, and their number at once.
const CHANGED: &str = "The resource ";
const MAX_CHANGED: usize = 20;

/// The phase of a turn before its first request to a model.
#[derive(Clone, Debug, Default)]
pub struct Preamble {
    /// Names, and until when a turn waits for them.
    starting: Vec<(String, u64)>,
    notices: Vec<String>,
    /// Servers that do not start, as the folder is not trusted.
    untrusted: Vec<String>,
    /// Servers that want another credential, and why.
    unauthorized: Vec<(Credential, String)>,
    /// The number of questions to the user, by server.
    asked: BTreeMap<String, u8>,
    /// Notices that the user reads once: servers that are slow or off.
    told: BTreeSet<String>,
    /// A question to the user about the folder.
    doubt: Option<TrustForm>,
    /// The reason of the session's start, for its hooks; they run in the next turn, when trust is settled.
    opening: Option<&'static str>,
    /// They heard of it.
    opened: bool,
    /// Questions of servers, since the last turn.
    questions: Vec<WaitingQuestion>,
    /// Programs that the user is to be asked about.
    held_programs: Vec<HeldProgram>,
}

impl Preamble {
    /// `source`: startup or resume.
    pub fn of(source: &'static str) -> Self {
        Self { opening: Some(source), ..Self::default() }
    }

    /// The session starts: why, if it was not told yet.
    pub fn take_opening(&mut self) -> Option<&'static str> {
        self.opened = true;
        self.opening.take()
    }

    /// Tells whether hooks ran for its start, so that they also run for its end.
    pub fn is_opened(&self) -> bool {
        self.opened
    }

    /// It starts over.
    pub fn reopen(&mut self) {
        (self.opening, self.opened) = (Some("clear"), false);
    }

    /// It has nothing to say or to ask.
    pub fn is_empty(&self) -> bool {
        let of_servers = self.starting.is_empty() && self.untrusted.is_empty() && self.unauthorized.is_empty();
        of_servers
            && self.notices.is_empty()
            && self.questions.is_empty()
            && self.doubt.is_none()
            && self.held_programs.is_empty()
    }

    /// The user is to be asked about it, unless that happened before. Returns what they are told instead, where nobody can
    /// be asked or no answer would help.
    pub fn add_held_program(&mut self, it: &HeldProgram, interactive: bool) -> Option<String> {
        let is_same = |known: &HeldProgram| known.program == it.program;
        if self.held_programs.iter().any(is_same) || self.told.contains(&it.program.to_string()) {
            return None;
        }
        match &it.why {
            HoldReason::Lacks(denial) if !interactive || denial.program_grant().is_none() => {
                self.note_told_program(&it.program);
                Some(format!("About {}: {}.", it.program, lack_in_words(denial)))
            }
            _ => {
                self.held_programs.push(it.clone());
                None
            }
        }
    }

    /// The oldest one.
    pub fn take_held_program(&mut self) -> Option<HeldProgram> {
        (!self.held_programs.is_empty()).then(|| self.held_programs.remove(0))
    }

    /// The user hears of that program: nothing more is said about it.
    pub fn note_told_program(&mut self, program: &ProgramName) {
        self.told.insert(program.to_string());
    }

    pub fn add_question(&mut self, it: WaitingQuestion) {
        self.questions.push(it);
    }

    /// The oldest one.
    pub fn take_question(&mut self) -> Option<WaitingQuestion> {
        (!self.questions.is_empty()).then(|| self.questions.remove(0))
    }

    /// Tells whether the question was waiting here, and withdraws it.
    pub fn withdraw_question(&mut self, id: ElicitationId) -> bool {
        let n = self.questions.len();
        self.questions.retain(|it| it.elicitation != id);
        self.questions.len() < n
    }

    pub fn update_servers(&mut self, servers: &[Server], notices: Vec<String>) {
        let until = |it: &Server| match it.status {
            ServerStatus::Starting { until_ms } => Some((it.name.clone(), until_ms)),
            _ => None,
        };
        self.starting = servers.iter().filter_map(until).collect();
        let untrusted = servers.iter().filter(|it| it.status == ServerStatus::Untrusted);
        self.untrusted = untrusted.map(|it| it.name.clone()).collect();
        let refused = |it: &Server| match &it.status {
            ServerStatus::Unauthorized { why, page, can_log_in } => {
                let name = if *can_log_in { it.name.clone() } else { text::first_line(&it.name, 100) };
                let credential = Credential::new(CredentialOwner::Server, name, page.clone());
                Some((Credential { can_log_in: *can_log_in, ..credential }, why.clone()))
            }
            _ => None,
        };
        self.unauthorized = servers.iter().filter_map(refused).collect();
        self.notices.extend(notices);
    }

    /// A server that wants another credential, why, and whether the user was asked about it before. Each comes twice at
    /// most.
    pub fn next_unauthorized(&mut self) -> Option<(Credential, String, bool)> {
        let is_open = |it: &&(Credential, String)| self.asked.get(&it.0.name).is_none_or(|n| *n < MAX_ASKED);
        let (credential, why) = self.unauthorized.iter().find(is_open)?.clone();
        let n = self.asked.entry(credential.name.clone()).or_default();
        *n += 1;
        Some((credential, why, *n > 1))
    }

    /// The user does not renew it: nothing more is asked.
    pub fn give_up_on(&mut self, server: &str) {
        self.asked.insert(server.to_owned(), MAX_ASKED);
    }

    /// A server is connected anew: that it could not be reached is no news.
    pub fn forget_loss(&mut self, server: &str) {
        let start = format!("MCP server {server:?} is not available");
        self.notices.retain(|it| !it.starts_with(&start));
    }

    pub fn add_trust_prompt(&mut self, doubt: TrustPrompt) {
        match doubt {
            TrustPrompt::Ask(form) => self.doubt = Some(form),
            TrustPrompt::Tell(notice) => self.notices.push(notice),
        }
    }

    /// Keeps a notice or a changed resource for the next turn, or drops a notice that was withdrawn.
    pub fn on_news(&mut self, input: Input) {
        match input {
            Input::Notice(text) => self.notice(text),
            Input::WithdrawNotice(text) => self.withdraw_notice(&text),
            Input::ResourceChanged { server, uri } => self.add_changed_resource(&server, &uri),
            _ => (),
        }
    }

    /// However often it changes until the next turn, that is said once.
    fn add_changed_resource(&mut self, server: &str, uri: &str) {
        let named = format!("@{}:{}", text::first_line(server, 100), text::first_line(uri, 300));
        let line = format!("{CHANGED}{named} changed after it was read.");
        let n_told = self.notices.iter().filter(|it| it.starts_with(CHANGED)).count();
        if n_told < MAX_CHANGED && !self.notices.contains(&line) {
            self.notices.push(line);
        }
    }

    pub fn notice(&mut self, text: String) {
        self.notices.push(text);
    }

    /// The same, unless the session was told of it.
    pub fn notice_once(&mut self, text: String) {
        if self.told.insert(text.clone()) {
            self.notices.push(text);
        }
    }

    pub fn withdraw_notice(&mut self, text: &str) {
        self.notices.retain(|it| it != text);
    }

    /// The question that is still open.
    pub fn trust_form(&self) -> Option<TrustForm> {
        self.doubt.clone()
    }

    /// It was answered.
    pub fn clear_trust_form(&mut self) {
        self.doubt = None;
    }

    /// Until when to wait (Unix, milliseconds); `None`: for nothing.
    pub fn wait_until(&self, now_ms: u64) -> Option<u64> {
        self.starting.iter().map(|it| it.1).filter(|it| *it > now_ms).max()
    }

    /// The message that user and model should read now, once.
    pub fn take_message(&mut self) -> Option<String> {
        let mut lines = std::mem::take(&mut self.notices);
        // Servers fail side by side.
        lines.sort();
        for (name, _) in &self.starting {
            if self.told.insert(name.clone()) {
                let what = "is still starting; its tools join when it is ready";
                lines.push(format!("MCP server {name:?} {what}."));
            }
        }
        let untold: Vec<String> =
            self.untrusted.iter().filter(|it| self.told.insert((*it).clone())).map(|it| format!("{it:?}")).collect();
        if !untold.is_empty() {
            let why = "off, as this folder is not trusted; `castor trust` in it turns them on";
            lines.push(format!("MCP servers of the settings are {why}: {}.", untold.join(", ")));
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}
