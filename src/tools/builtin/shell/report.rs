//! The result text of a finished command, for the model, the user and programs.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::watch::WatchEnd;
use castor_base::{
    content::Part,
    network::NetworkRecord,
    path::AbsPath,
    sandbox::{Confinement, Denial, Refusal, Refused},
    terminal::Exit,
    text::{tail, wrap_untrusted},
    tool::{Display, ToolError, ToolOutput},
};
use castor_hands::process::sandbox::denial::{find_denial, silent_program_note};

/// The most that people are shown at the end; they saw the rest while it ran.
const MAX_DISPLAY_BYTES: usize = 100_000;

/// How many refusals that did no harm the model is told of.
const MAX_REFUSALS: usize = 3;

/// To the model, after a denial: what is left to do.
const NO_WORKAROUND: &str = "Do not try to get around it.";
const ASK_USER: &str = "say what you need: only the user can allow more.";

/// To the model, before a denial that the exit code does not tell of: of `a; b` and `a | b` it is `b`'s. What was printed
/// may be a file with such words in it.
const EXIT_ZERO_DOUBT: &str = "The command ended with exit code 0, but unless it only shows what others printed: ";

/// To the model, of a line with several commands.
const EARLIER_PARTS_RAN: &str = "What stood before that in the line is done; which part it was, the output tells.";

/// The model's note on background processes where each command has its own network.
const OWN_NETWORK_NOTE: &str = "The sandbox gives each command a network of its own: no other command can reach a port of \
                            this one. Run server and client in one command, or say that you need network for commands \
                            (security.sandbox.network), which only the user can allow.";

/// Facts for the report of a call.
pub struct ReportFacts {
    pub ending: WatchEnd,
    /// Of a process of ours.
    pub pid: Option<u32>,
    /// Plain, its end kept.
    pub text: String,
    /// Where what still runs goes on printing to.
    pub log: Option<AbsPath>,
    /// What is to be said of how it ran.
    pub note: Option<String>,
    /// What held it.
    pub confined: Option<Arc<Confinement>>,
    /// What ran, and where.
    pub command: String,
    pub cwd: AbsPath,
}

impl ReportFacts {
    pub fn report(mut self) -> ToolOutput {
        let found = match &self.ending {
            WatchEnd::Exited(exit) => exit.findings.in_words("this command"),
            _ => None,
        };
        if let Some(said) = found.clone() {
            self.note = Some(self.note.map_or_else(|| said.clone(), |it| format!("{it}\n{said}")));
        }
        // The record knows of each process of the command; else only the last one's end is known.
        let is_sure = matches!(&self.ending, WatchEnd::Exited(it) if it.code != Some(0) || it.refusals.is_some());
        let said = self.denial();
        let failed = matches!(&self.ending, WatchEnd::Exited(it) if it.failed_at_door(self.hides_exit_codes()));
        let asks = if matches!(said, Some(Denial::Hosts { .. })) { failed } else { is_sure };
        let (passed, refused) = (self.passing_refusals(said.is_some()), self.refusals_in_words());
        let silent = self.confined.as_ref().and_then(|_| silent_program_note(&self.command));
        let (left, parts) = (self.next_step(), self.is_compound());
        let network = match &self.ending {
            WatchEnd::Exited(it) => it.network.to_value(),
            _ => None,
        };
        let mut res = self.plain_report();
        if let Some(it) = &said {
            let doubt = if is_sure || matches!(it, Denial::Hosts { .. }) { "" } else { EXIT_ZERO_DOUBT };
            let parts = if parts { EARLIER_PARTS_RAN } else { "" };
            let words = [it.in_words().as_str(), parts].join(" ");
            res.content.push(Part::text(format!("{doubt}{}\n{NO_WORKAROUND} {left}", words.trim_end())));
        }
        res.content.extend(passed.map(Part::text));
        res.content.extend(silent.map(Part::text));
        // For clients that show no output, such as castor's own.
        let told: Vec<String> = said.iter().map(|it| it.in_words()).chain(found).collect();
        if let (false, Some(data)) = (told.is_empty(), res.data.as_object_mut()) {
            data.insert("sandbox".to_owned(), told.join("\n").into());
        }
        // Nobody is asked about a command that ended well: it is told only.
        if let (Some(it), Some(data)) = (network, res.data.as_object_mut()) {
            data.insert(NetworkRecord::KEY.to_owned(), it);
        }
        if let (false, Some(data)) = (refused.is_empty(), res.data.as_object_mut()) {
            data.insert(Refusal::KEY.to_owned(), refused.into());
        }
        ToolOutput { denial: said.filter(|_| asks), ..res }
    }

    /// What a command, or a part of it, was kept from, as far as that is known.
    fn denial(&self) -> Option<Denial> {
        let WatchEnd::Exited(exit) = &self.ending else { return None };
        let hosts = exit.network.wanted();
        if !hosts.is_empty() {
            return Some(Denial::Hosts { hosts });
        }
        let end = (exit.code, exit.refusals.as_deref());
        let found = find_denial(self.confined.as_deref()?, &self.cwd, &self.command, end, &self.text)?;
        if exit.refusals.is_some() {
            return Some(found);
        }
        let is_elsewhere = matches!(
            found,
            Denial::Write { .. } | Denial::UntrustedFolder { .. } | Denial::Hidden { .. } | Denial::Other
        );
        let did_no_harm = exit.code == Some(0) && is_elsewhere && !self.hides_exit_codes();
        (!did_no_harm).then_some(found)
    }

    /// What was refused and led to no failure, or to none that the user can be asked about: for the model.
    fn passing_refusals(&self, is_asked: bool) -> Option<String> {
        // A server of the user's is named even where nobody is asked about its port.
        let is_told =
            |it: &&Refusal| !it.failed || !is_asked || matches!(&it.what, Refused::Connect(_)) && !it.what.is_far();
        let words: Vec<String> = self.refusals().filter(is_told).map(|it| it.what.in_words()).collect();
        let (first, more) = words.split_at_checked(MAX_REFUSALS).unwrap_or((&words, &[]));
        let more = if more.is_empty() { String::new() } else { format!(", and {} more", more.len()) };
        (!words.is_empty()).then(|| format!("The sandbox refused in passing: {}{more}.", first.join(", ")))
    }

    /// What was refused, but at the door, which tells of it by itself.
    fn refusals(&self) -> impl Iterator<Item = &Refusal> {
        let all = match &self.ending {
            WatchEnd::Exited(it) => it.refusals.as_deref().unwrap_or_default(),
            _ => &[],
        };
        all.iter().filter(|it| it.what != Refused::Door)
    }

    /// For `/network`.
    fn refusals_in_words(&self) -> Vec<String> {
        self.refusals().map(|it| it.what.in_words()).collect()
    }

    /// Whether the exit code may be another one's than that of the command that failed. A single command that ended
    /// well did what it was to do, whatever it could not write elsewhere, such as a cache in the home folder.
    fn hides_exit_codes(&self) -> bool {
        self.command.trim_end().contains(['|', ';', '&', '\n', '`', '(', '{'])
    }

    fn is_compound(&self) -> bool {
        ["&&", ";", "\n"].iter().any(|it| self.command.trim_end().contains(it))
    }

    /// The command's rights, and how the user can change them.
    fn next_step(&self) -> String {
        let (read_only, untrusted) = self.confined.as_ref().map_or((false, false), |it| (it.read_only, it.untrusted));
        let where_to = match (read_only, untrusted) {
            (false, _) => "Work within the workspace and $TMPDIR, or",
            (true, true) => {
                "The workspace is read-only for commands, as the folder is not trusted: they write in $TMPDIR. Work with \
                 that, or"
            }
            (true, false) => "The workspace is read-only for commands: they write in $TMPDIR. Work with that, or",
        };
        format!("{where_to} {ASK_USER}")
    }

    fn plain_report(self) -> ToolOutput {
        let (content, data, summary, exit) = match &self.ending {
            WatchEnd::Exited(exit) => (self.result(exit), self.exit_data(exit), exit_summary(exit), exit.code),
            WatchEnd::Cancelled => {
                let why = "Command was cancelled by user before it could complete.";
                (
                    self.cut_short(why),
                    json!({ "exitCode": null, "cancelled": true }),
                    Some("Cancelled".to_owned()),
                    None,
                )
            }
            WatchEnd::TimedOut(time) => {
                let why = format!(
                    "Command was automatically cancelled because it exceeded the timeout of {} without output.",
                    minutes(*time)
                );
                (
                    self.cut_short(&why),
                    json!({ "exitCode": null, "timedOut": true }),
                    Some("Timed out".to_owned()),
                    None,
                )
            }
            WatchEnd::Stopped(why) => {
                let why = format!("Command was stopped, {why}");
                (self.cut_short(&why), json!({ "exitCode": null, "stopped": true }), Some(why), None)
            }
            WatchEnd::Running => {
                let data = json!({ "exitCode": null, "background": true, "pid": self.pid, "log": self.log });
                (self.running(), data, Some(format!("In background, PID {}", self.pid())), None)
            }
            WatchEnd::TerminalLost(why) => return lost_output(why),
        };
        let shown = tail(&self.text, MAX_DISPLAY_BYTES);
        let text = self.note.as_ref().map_or_else(|| shown.to_owned(), |it| format!("{it}\n{shown}"));
        let display = Display::Terminal { text, exit };
        ToolOutput {
            content: vec![Part::text(match &self.note {
                Some(note) => format!("{note}\n{content}"),
                None => content,
            })],
            display: Some(display),
            summary: self.note.or(summary),
            data,
            ..ToolOutput::default()
        }
    }

    fn pid(&self) -> String {
        self.pid.map_or_else(|| "unknown".to_owned(), |it| it.to_string())
    }

    fn result(&self, exit: &Exit) -> String {
        let mut lines = vec![format!("Output: {}", wrap_untrusted(&self.text).unwrap_or_else(|| "(empty)".to_owned()))];
        lines.extend(exit.code.filter(|it| *it != 0).map(|it| format!("Exit Code: {it}")));
        lines.extend(exit.signal.as_ref().map(|it| format!("Signal: {it}")));
        if !exit.left_running.is_empty() {
            let left: Vec<_> = exit.left_running.iter().map(u32::to_string).collect();
            lines.push(format!("Background PIDs: {}", left.join(", ")));
            lines.push(format!("Process Group PGID: {}", self.pid()));
            lines.extend(self.log.as_ref().map(|it| format!("Background Output: {it}")));
            lines.extend(self.network_note().map(str::to_owned));
        }
        lines.join("\n")
    }

    fn exit_data(&self, exit: &Exit) -> Value {
        let (code, signal, left) = (exit.code, &exit.signal, &exit.left_running);
        match left.is_empty() {
            true => json!({ "exitCode": code, "signal": signal }),
            false => json!({ "exitCode": code, "signal": signal, "backgroundPids": left, "pid": self.pid }),
        }
    }

    fn cut_short(&self, why: &str) -> String {
        match wrap_untrusted(&self.text) {
            Some(text) => format!("{why} Below is the output before it was cancelled:\n{text}"),
            None => format!("{why} There was no output before it was cancelled."),
        }
    }

    fn running(&self) -> String {
        let text = wrap_untrusted(&self.text).unwrap_or_else(|| "(empty)".to_owned());
        let log = self.log.as_ref().map(|it| format!("\nIts output goes to: {it}")).unwrap_or_default();
        let apart = self.network_note().map(|it| format!("\n{it}")).unwrap_or_default();
        format!("Command is running in background. PID: {}. Initial output:\n{text}{log}{apart}", self.pid())
    }

    fn network_note(&self) -> Option<&'static str> {
        self.confined.as_ref().is_some_and(|it| !it.network).then_some(OWN_NETWORK_NOTE)
    }
}

/// It was started: running it again could do twice what should be done once.
fn lost_output(why: &str) -> ToolOutput {
    let message = format!(
        "The editor's terminal was lost while the command ran: {why}. Whether the command took effect is unknown: look \
         before you run it again."
    );
    ToolOutput::failed(ToolError::new("shell_execute_error", message))
}

fn exit_summary(exit: &Exit) -> Option<String> {
    match (exit.code, &exit.signal) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("Exit code {code}")),
        (None, signal) => signal.as_ref().map(|it| format!("Ended by {it}")),
    }
}

fn minutes(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{} seconds", time.as_secs_f64()),
        _ => format!("{:.1} minutes", time.as_secs_f64() / 60.0),
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use serde_json::json;

    use super::{ReportFacts, minutes};
    use crate::builtin::shell::watch::WatchEnd;
    use castor_base::{
        content::joined_text,
        path::AbsPath,
        sandbox::Confinement,
        terminal::{Exit, ObeyedFindings},
    };

    fn check(ending: WatchEnd, text: &str, expected: &str) -> serde_json::Value {
        let log = AbsPath::new("/s/b.log");
        let output = ReportFacts {
            ending,
            pid: Some(7),
            text: text.to_owned(),
            log,
            note: None,
            confined: None,
            command: String::new(),
            cwd: AbsPath::new("/").unwrap(),
        }
        .report();
        assert_eq!(joined_text(&output.content), expected);
        output.data
    }

    #[test]
    fn words_for_each_ending() {
        let text = |it: &str| format!("<untrusted_context>\n{it}\n</untrusted_context>");
        let exit = |code, signal: Option<&str>, left| {
            WatchEnd::Exited(Exit { code, signal: signal.map(str::to_owned), left_running: left, ..Exit::default() })
        };
        check(exit(Some(0), None, vec![]), "hi\n", &format!("Output: {}", text("hi")));
        let data = check(exit(Some(3), None, vec![]), "\n", "Output: (empty)\nExit Code: 3");
        assert_eq!(data, json!({ "exitCode": 3, "signal": null }));
        check(exit(None, Some("SIGKILL"), vec![]), "", "Output: (empty)\nSignal: SIGKILL");
        let paths = |it: &str| vec![AbsPath::new(it).unwrap()];
        let found = |findings| WatchEnd::Exited(Exit { findings, ..Exit::default() });
        let aside = found(ObeyedFindings { quarantined: paths("/w/.bashrc"), ..ObeyedFindings::default() });
        let said = "The sandbox put aside what appeared while this command ran and other programs would obey: \
                    /w/.bashrc. It is kept beside it, with `.castor-aside` in its name; only the user may put it \
                    back.\nOutput: (empty)";
        check(aside, "", said);
        let said = "The sandbox restored what git needs to know its repository: /w/.git/HEAD.\nOutput: (empty)";
        check(found(ObeyedFindings { restored: paths("/w/.git/HEAD"), ..ObeyedFindings::default() }), "", said);
        let left = "Output: (empty)\nBackground PIDs: 8, 9\nProcess Group PGID: 7\nBackground Output: /s/b.log";
        check(exit(Some(0), None, vec![8, 9]), "", left);
        let why = "Command was cancelled by user before it could complete.";
        check(WatchEnd::Cancelled, "", &format!("{why} There was no output before it was cancelled."));
        let below = format!("{why} Below is the output before it was cancelled:\n{}", text("x"));
        let data = check(WatchEnd::Cancelled, "x", &below);
        assert_eq!(data, json!({ "exitCode": null, "cancelled": true }));
        let why = "Command was automatically cancelled because it exceeded the timeout of 5.0 minutes without output.";
        let silent = WatchEnd::TimedOut(Duration::from_secs(300));
        check(silent, "", &format!("{why} There was no output before it was cancelled."));
        let running =
            "Command is running in background. PID: 7. Initial output:\n(empty)\nIts output goes to: /s/b.log";
        check(WatchEnd::Running, "", running);
    }

    fn confined(read_only: bool, untrusted: bool, network: bool) -> ReportFacts {
        let path = |it: &str| AbsPath::new(it).unwrap();
        let it = Confinement { read_only, untrusted, network, ..Confinement::for_folder(&path("/w")) };
        let text = "touch: cannot touch '/opt/a/b': Read-only file system\n".to_owned();
        let ending = WatchEnd::Exited(Exit { code: Some(1), ..Exit::default() });
        let (confined, cwd) = (Some(Arc::new(it)), path("/w"));
        ReportFacts { ending, pid: Some(7), text, log: None, note: None, confined, command: String::new(), cwd }
    }

    #[test]
    fn what_is_left_to_do_is_what_the_folder_allows() {
        let said = |read_only, untrusted| joined_text(&confined(read_only, untrusted, false).report().content);
        assert!(said(false, false).contains(" Work within the workspace and $TMPDIR, or say what"));
        assert!(
            said(true, true).contains(" read-only for commands, as the folder is not trusted: they write in $TMPDIR.")
        );
        assert!(said(true, false).contains(" read-only for commands: they write in $TMPDIR."));
    }

    /// A background server without network cannot be reached; the model is told.
    #[test]
    fn who_goes_on_without_network_cannot_be_reached_and_that_is_said() {
        let left = || WatchEnd::Exited(Exit { code: Some(0), left_running: vec![8], ..Exit::default() });
        for (ending, network, want) in [
            (WatchEnd::Running, false, true),
            (left(), false, true),
            (WatchEnd::Running, true, false),
            (left(), true, false),
        ] {
            let facts = ReportFacts { ending, text: "up\n".to_owned(), ..confined(false, false, network) };
            assert_eq!(joined_text(&facts.report().content).contains("Run server and client in one command"), want);
        }
    }

    #[test]
    fn only_a_failure_is_asked_about_and_of_several_commands_the_model_is_told() {
        let report = |code, command: &str| {
            let ending = WatchEnd::Exited(Exit { code: Some(code), ..Exit::default() });
            ReportFacts { ending, command: command.to_owned(), ..confined(false, false, false) }.report()
        };
        assert!(report(1, "touch /opt/x").denial.is_some() && report(0, "touch /opt/x; true").denial.is_none());
        let told =
            |it: &str| joined_text(&report(1, it).content).contains("What stood before that in the line is done");
        assert!(told("make && touch /opt/x") && !told("touch /opt/x"));
    }

    #[test]
    fn short_times_are_seconds() {
        assert_eq!(minutes(Duration::from_millis(1500)), "1.5 seconds");
        assert_eq!(minutes(Duration::from_secs(90)), "1.5 minutes");
    }
}
