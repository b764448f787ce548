//! The report on a background command when it ends.

use super::{super::OnCommandEnd, background::ListedProcesses};
use castor_base::{
    path::AbsPath,
    terminal::{CommandReport, Exit},
    text::{first_line, tail},
};

/// Of what it printed so much, in bytes: its end says how it went, and the rest is in its log.
const SHOWN: usize = 2_000;
/// Of its command line, in characters.
const NAMED: usize = 200;

/// A command that outlives its call, and the receiver of its report.
pub struct Completion {
    pub command: String,
    pub pid: Option<u32>,
    pub log: Option<AbsPath>,
    pub tell: OnCommandEnd,
    /// The end of what it printed since.
    pub printed: String,
    /// As the model may ask for it.
    pub listed: ListedProcesses,
}

impl Completion {
    /// It printed more.
    pub fn add_output(&mut self, text: &str) {
        self.printed.push_str(text);
        // Cut rarely, so that a talkative command is not moved again and again.
        if self.printed.len() > 8 * SHOWN {
            self.printed = tail(&self.printed, SHOWN).to_owned();
        }
    }

    /// It is over.
    pub async fn report_end(self, exit: &Exit) {
        self.listed.note_end(&in_words(exit));
        (self.tell)(self.end_report(exit)).await;
    }

    /// It, or what it left behind, passed a limit: `why`, behind "was stopped, ".
    pub async fn report_stop(self, why: &str) {
        let how = format!("was stopped, {why}");
        self.listed.note_end(&how);
        (self.tell)(self.report(&how)).await;
    }

    fn end_report(&self, exit: &Exit) -> CommandReport {
        self.report(&format!("has ended: {}.", in_words(exit)))
    }

    fn report(&self, how: &str) -> CommandReport {
        let command = first_line(&self.command.split_whitespace().collect::<Vec<_>>().join(" "), NAMED);
        let pid = self.pid.map(|it| format!(" (PID {it})")).unwrap_or_default();
        let how = format!("`{command}`{pid}, which ran in the background, {how}");
        CommandReport { how, printed: tail(&self.printed, SHOWN).trim().to_owned(), log: self.log.clone() }
    }
}

fn in_words(exit: &Exit) -> String {
    match (exit.code, &exit.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by {signal}"),
        (None, None) => "how is not known".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Completion, ListedProcesses, SHOWN};
    use castor_base::{
        path::AbsPath,
        terminal::{CommandReport, Exit},
    };

    fn completion() -> Completion {
        let tell: super::OnCommandEnd = Arc::new(|_| Box::pin(async {}));
        let log = AbsPath::new("/s/b.log");
        Completion {
            command: "make\nall".to_owned(),
            pid: Some(7),
            log,
            tell,
            printed: String::new(),
            listed: ListedProcesses::default(),
        }
    }

    #[test]
    fn says_how_it_went() {
        let mut it = completion();
        let failed = Exit { code: Some(2), ..Exit::default() };
        let how = "`make all` (PID 7), which ran in the background, has ended: exit code 2.".to_owned();
        assert_eq!(it.end_report(&failed), CommandReport { how, printed: String::new(), log: it.log.clone() });
        it.add_output("no rule\n");
        let killed = Exit { signal: Some("SIGTERM".to_owned()), ..Exit::default() };
        let report = it.end_report(&killed);
        assert!(report.how.ends_with("ended by SIGTERM.") && report.printed == "no rule", "{report:?}");
    }

    #[test]
    fn a_talkative_command_is_told_of_in_few_words() {
        let mut it = completion();
        (0..100_000).for_each(|n| it.add_output(&format!("line {n}\n")));
        let said = it.end_report(&Exit::default()).printed;
        assert!(said.len() <= SHOWN && said.ends_with("line 99999") && it.printed.len() <= 8 * SHOWN, "{said}");
    }
}
