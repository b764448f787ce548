//! The report on a background command when it ends.

use super::{super::Progress, background::ListedProcesses};
use crate::base::{
    path::AbsPath,
    terminal::Exit,
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
    pub tell: Progress,
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
        (self.tell)(self.end_message(exit)).await;
    }

    fn end_message(&self, exit: &Exit) -> String {
        let command = first_line(&self.command.split_whitespace().collect::<Vec<_>>().join(" "), NAMED);
        let pid = self.pid.map(|it| format!(" (PID {it})")).unwrap_or_default();
        let how = in_words(exit);
        let mut lines = vec![format!("`{command}`{pid}, which ran in the background, has ended: {how}.")];
        lines.push(match tail(&self.printed, SHOWN).trim() {
            "" => "It printed nothing more.".to_owned(),
            text => format!("The last it printed:\n{text}"),
        });
        lines.extend(self.log.as_ref().map(|it| format!("All of its output: {it}")));
        lines.join("\n")
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
    use crate::base::{path::AbsPath, terminal::Exit};

    fn completion() -> Completion {
        let tell: super::Progress = Arc::new(|_| Box::pin(async {}));
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
        assert_eq!(
            it.end_message(&failed),
            "`make all` (PID 7), which ran in the background, has ended: exit code 2.\nIt printed nothing more.\n\
             All of its output: /s/b.log"
        );
        it.add_output("no rule\n");
        let killed = Exit { signal: Some("SIGTERM".to_owned()), ..Exit::default() };
        assert!(it.end_message(&killed).contains("ended by SIGTERM.\nThe last it printed:\nno rule\nAll of"));
    }

    #[test]
    fn a_talkative_command_is_told_of_in_few_words() {
        let mut it = completion();
        (0..100_000).for_each(|n| it.add_output(&format!("line {n}\n")));
        let said = it.end_message(&Exit::default());
        assert!(said.len() < SHOWN + 300 && said.contains("line 99999\n") && it.printed.len() <= 8 * SHOWN, "{said}");
    }
}
