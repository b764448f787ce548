//! The words that a finished command becomes, for the model, for people and for programs.

use std::{path::PathBuf, sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::watch::Ending;
use crate::{
    base::{
        content::Part,
        path::AbsPath,
        sandbox::{Confinement, Denial},
        terminal::Exit,
        text::{path_in_words, tail, untrusted},
        tool::{Display, ToolError, ToolOutput},
    },
    world::process::sandbox::{
        denied::{made_before, recognise},
        tracking,
    },
};

/// The most that people are shown at the end; they saw the rest while it ran.
const SHOWN: usize = 100_000;

/// To the model, after a denial: what is left to do.
const NEXT: &str = "Do not try to get around it.";
const SAY: &str = "say what you need: only the user can allow more.";

/// To the model, before a denial that the exit code does not tell of: of `a; b` and `a | b` it is `b`'s. What was printed
/// may be a file with such words in it.
const DOUBT: &str = "The command ended with exit code 0, but unless it only shows what others printed: ";

/// To the model, of a folder that it may write by now.
const MADE: &str =
    "is there, empty, and was made so that this command can write it. Do not make it again, but go on from there.";

/// To the model, of who goes on where each command has a network of its own.
const OUT_OF_REACH: &str = "The sandbox gives each command a network of its own: no other command can reach a port of \
                            this one. Run server and client in one command, or say that you need network for commands \
                            (security.sandbox.network), which only the user can allow.";

/// How much of the end of an output tells of a failure that no exit code tells of, in lines.
const LAST_LINES: usize = 20;

/// What is known when the call returns.
pub struct Facts {
    pub ending: Ending,
    /// Of a process of ours.
    pub pid: Option<u32>,
    /// Plain, its end kept.
    pub text: String,
    /// Where what still runs goes on printing to.
    pub log: Option<AbsPath>,
    /// What is to be said of how it ran.
    pub note: Option<String>,
    /// What held it, and where it ran.
    pub confined: Option<Arc<Confinement>>,
    /// What it could not write of git's settings was written for it, or is told.
    pub settled: bool,
    /// Its exit code may be another's than that of what it is about.
    pub masked: bool,
    /// The exit code that tells that it reached nobody, also where it prints nothing.
    pub unreached: Option<i32>,
    pub cwd: AbsPath,
    pub home: Option<PathBuf>,
}

impl Facts {
    pub fn report(mut self) -> ToolOutput {
        let found = match &self.ending {
            Ending::Exited(exit) => exit.findings.in_words("this command"),
            _ => None,
        };
        if let Some(said) = found.clone() {
            self.note = Some(self.note.map_or_else(|| said.clone(), |it| format!("{it}\n{said}")));
        }
        let failed = matches!(&self.ending, Ending::Exited(it) if it.code != Some(0));
        // What git could not note down counts last, and not at all where castor did the rest.
        let other = self.denied(&tracking::without_failures(&self.text));
        let said = other.or_else(|| if self.settled { None } else { self.denied(&self.text) });
        let is_hidden = !failed && self.masked && said.is_some() && self.denied(self.last_lines()) == said;
        let made = failed.then(|| made_before(self.confined.as_deref()?, &self.cwd, &self.text)).flatten();
        let (left, mut res) = (self.left_to_do(), self.plain_report());
        if let Some(it) = made {
            res.content.push(Part::text(format!("{} {MADE}", path_in_words(&it.to_string()))));
        }
        if let Some(it) = &said {
            let doubt = if failed { "" } else { DOUBT };
            res.content.push(Part::text(format!("{doubt}{}\n{NEXT} {left}", it.in_words())));
        }
        // For clients that show no output, such as castor's own.
        let told: Vec<String> = said.iter().map(|it| it.in_words()).chain(found).collect();
        if let (false, Some(data)) = (told.is_empty(), res.data.as_object_mut()) {
            data.insert("sandbox".to_owned(), told.join("\n").into());
        }
        // Nobody is asked about a command that ended well: it is told only.
        ToolOutput { denied: said.filter(|_| failed || is_hidden), ..res }
    }

    /// What a command, or a part of it, was kept from, as far as it printed that.
    fn denied(&self, text: &str) -> Option<Denial> {
        let Ending::Exited(exit) = &self.ending else { return None };
        let confined = self.confined.as_deref()?;
        let alone = !confined.network && self.unreached.is_some() && exit.code == self.unreached;
        recognise(confined, &self.cwd, self.home.as_deref(), text).or(alone.then_some(Denial::Network))
    }

    fn last_lines(&self) -> &str {
        let text = self.text.trim_end();
        let start = text.rmatch_indices('\n').nth(LAST_LINES - 1).map_or(0, |it| it.0);
        text.get(start..).unwrap_or(text)
    }

    /// What the command may do, and who can change that.
    fn left_to_do(&self) -> String {
        let (read_only, untrusted) = self.confined.as_ref().map_or((false, false), |it| (it.read_only, it.untrusted));
        let where_to = match (read_only, untrusted) {
            (false, _) => "Work within the workspace and $TMPDIR, or",
            (true, true) => {
                "The workspace is read-only for commands, as the folder is not trusted: they write in $TMPDIR. Work with \
                 that, or"
            }
            (true, false) => "The workspace is read-only for commands: they write in $TMPDIR. Work with that, or",
        };
        format!("{where_to} {SAY}")
    }

    fn plain_report(self) -> ToolOutput {
        let (content, data, summary, exit) = match &self.ending {
            Ending::Exited(exit) => (self.result(exit), exit_data(exit), exit_summary(exit), exit.code),
            Ending::Cancelled => {
                let why = "Command was cancelled by user before it could complete.";
                (
                    self.cut_short(why),
                    json!({ "exitCode": null, "cancelled": true }),
                    Some("Cancelled".to_owned()),
                    None,
                )
            }
            Ending::Silent(time) => {
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
            Ending::Running => {
                let data = json!({ "exitCode": null, "background": true, "pid": self.pid, "log": self.log });
                (self.running(), data, Some(format!("In background, PID {}", self.pid())), None)
            }
            Ending::Lost(why) => return lost(why),
        };
        let shown = tail(&self.text, SHOWN);
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
        let mut lines = vec![format!("Output: {}", untrusted(&self.text).unwrap_or_else(|| "(empty)".to_owned()))];
        lines.extend(exit.code.filter(|it| *it != 0).map(|it| format!("Exit Code: {it}")));
        lines.extend(exit.signal.as_ref().map(|it| format!("Signal: {it}")));
        if !exit.left.is_empty() {
            let left: Vec<_> = exit.left.iter().map(u32::to_string).collect();
            lines.push(format!("Background PIDs: {}", left.join(", ")));
            lines.push(format!("Process Group PGID: {}", self.pid()));
            lines.extend(self.log.as_ref().map(|it| format!("Background Output: {it}")));
            lines.extend(self.out_of_reach().map(str::to_owned));
        }
        lines.join("\n")
    }

    fn cut_short(&self, why: &str) -> String {
        match untrusted(&self.text) {
            Some(text) => format!("{why} Below is the output before it was cancelled:\n{text}"),
            None => format!("{why} There was no output before it was cancelled."),
        }
    }

    fn running(&self) -> String {
        let text = untrusted(&self.text).unwrap_or_else(|| "(empty)".to_owned());
        let log = self.log.as_ref().map(|it| format!("\nIts output goes to: {it}")).unwrap_or_default();
        let apart = self.out_of_reach().map(|it| format!("\n{it}")).unwrap_or_default();
        format!("Command is running in background. PID: {}. Initial output:\n{text}{log}{apart}", self.pid())
    }

    fn out_of_reach(&self) -> Option<&'static str> {
        self.confined.as_ref().is_some_and(|it| !it.network).then_some(OUT_OF_REACH)
    }
}

/// It was started: running it again could do twice what should be done once.
fn lost(why: &str) -> ToolOutput {
    let message = format!(
        "The editor's terminal was lost while the command ran: {why}. Whether the command took effect is unknown: look \
         before you run it again."
    );
    ToolOutput::failed(ToolError::new("shell_execute_error", message))
}

fn exit_data(exit: &Exit) -> Value {
    match exit.left.is_empty() {
        true => json!({ "exitCode": exit.code, "signal": exit.signal }),
        false => json!({ "exitCode": exit.code, "signal": exit.signal, "backgroundPids": exit.left }),
    }
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

    use super::{Facts, LAST_LINES, minutes};
    use crate::{
        base::{
            content::joined_text,
            path::AbsPath,
            sandbox::{Confinement, Denial},
            terminal::{Exit, Findings},
        },
        world::tools::shell::watch::Ending,
    };

    fn check(ending: Ending, text: &str, expected: &str) -> serde_json::Value {
        let log = AbsPath::new("/s/b.log");
        let output = Facts {
            ending,
            pid: Some(7),
            text: text.to_owned(),
            log,
            note: None,
            confined: None,
            settled: false,
            masked: false,
            unreached: None,
            cwd: AbsPath::new("/").unwrap(),
            home: None,
        }
        .report();
        assert_eq!(joined_text(&output.content), expected);
        output.data
    }

    #[test]
    fn words_for_each_ending() {
        let text = |it: &str| format!("<untrusted_context>\n{it}\n</untrusted_context>");
        let exit = |code, signal: Option<&str>, left| {
            Ending::Exited(Exit { code, signal: signal.map(str::to_owned), left, findings: Findings::default() })
        };
        check(exit(Some(0), None, vec![]), "hi\n", &format!("Output: {}", text("hi")));
        let data = check(exit(Some(3), None, vec![]), "\n", "Output: (empty)\nExit Code: 3");
        assert_eq!(data, json!({ "exitCode": 3, "signal": null }));
        check(exit(None, Some("SIGKILL"), vec![]), "", "Output: (empty)\nSignal: SIGKILL");
        let paths = |it: &str| vec![AbsPath::new(it).unwrap()];
        let found = |findings| Ending::Exited(Exit { findings, ..Exit::default() });
        let aside = found(Findings { aside: paths("/w/.bashrc"), ..Findings::default() });
        let said = "The sandbox put aside what appeared while this command ran and other programs would obey: \
                    /w/.bashrc. It is kept beside it, with `.castor-aside` in its name; only the user may put it \
                    back.\nOutput: (empty)";
        check(aside, "", said);
        let said = "Somebody outside the sandbox, or a command that was let, replaced what other programs obey while this command ran, and from \
                    then on it was not held: /w/.mcp.json. It stays as it is now; the user should look at it before \
                    using it.\nThe sandbox restored what git needs to know its repository: /w/.git/HEAD.\nOutput: \
                    (empty)";
        let findings =
            Findings { replaced: paths("/w/.mcp.json"), restored: paths("/w/.git/HEAD"), ..Findings::default() };
        check(found(findings), "", said);
        let left = "Output: (empty)\nBackground PIDs: 8, 9\nProcess Group PGID: 7\nBackground Output: /s/b.log";
        check(exit(Some(0), None, vec![8, 9]), "", left);
        let why = "Command was cancelled by user before it could complete.";
        check(Ending::Cancelled, "", &format!("{why} There was no output before it was cancelled."));
        let below = format!("{why} Below is the output before it was cancelled:\n{}", text("x"));
        let data = check(Ending::Cancelled, "x", &below);
        assert_eq!(data, json!({ "exitCode": null, "cancelled": true }));
        let why = "Command was automatically cancelled because it exceeded the timeout of 5.0 minutes without output.";
        let silent = Ending::Silent(Duration::from_secs(300));
        check(silent, "", &format!("{why} There was no output before it was cancelled."));
        let running =
            "Command is running in background. PID: 7. Initial output:\n(empty)\nIts output goes to: /s/b.log";
        check(Ending::Running, "", running);
    }

    fn confined(read_only: bool, untrusted: bool, network: bool) -> Facts {
        let path = |it: &str| AbsPath::new(it).unwrap();
        let it = Confinement { read_only, untrusted, network, ..Confinement::of(&path("/w")) };
        let text = "touch: cannot touch '/opt/a/b': Read-only file system\n".to_owned();
        let ending = Ending::Exited(Exit { code: Some(1), ..Exit::default() });
        let (confined, cwd) = (Some(Arc::new(it)), path("/w"));
        Facts {
            ending,
            pid: Some(7),
            text,
            log: None,
            note: None,
            confined,
            settled: false,
            masked: false,
            unreached: None,
            cwd,
            home: None,
        }
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

    #[test]
    fn who_goes_on_without_network_cannot_be_reached_and_that_is_said() {
        let left = || Ending::Exited(Exit { code: Some(0), left: vec![8], ..Exit::default() });
        for (ending, network, want) in [
            (Ending::Running, false, true),
            (left(), false, true),
            (Ending::Running, true, false),
            (left(), true, false),
        ] {
            let facts = Facts { ending, text: "up\n".to_owned(), ..confined(false, false, network) };
            assert_eq!(joined_text(&facts.report().content).contains("Run server and client in one command"), want);
        }
    }

    #[test]
    fn a_hidden_failure_is_asked_about_where_the_last_lines_tell() {
        let asked = |code, masked, behind: usize| {
            let facts = confined(false, false, false);
            let text = format!("{}{}", facts.text, "fine\n".repeat(behind));
            let ending = Ending::Exited(Exit { code: Some(code), ..Exit::default() });
            Facts { ending, masked, text, ..facts }.report().denied.is_some()
        };
        assert!(asked(1, false, 50) && asked(0, true, 0) && asked(0, true, LAST_LINES - 1));
        assert!(!asked(0, false, 0) && !asked(0, true, LAST_LINES));
    }

    #[test]
    fn who_prints_nothing_is_asked_about_where_its_exit_code_tells() {
        let asked = |code, network| {
            let ending = Ending::Exited(Exit { code: Some(code), ..Exit::default() });
            let facts = Facts { ending, text: String::new(), unreached: Some(6), ..confined(false, false, network) };
            facts.report().denied
        };
        assert_eq!(asked(6, false), Some(Denial::Network));
        assert_eq!((asked(6, true), asked(22, false)), (None, None));
    }

    #[test]
    fn short_times_are_seconds() {
        assert_eq!(minutes(Duration::from_millis(1500)), "1.5 seconds");
        assert_eq!(minutes(Duration::from_secs(90)), "1.5 minutes");
    }
}
