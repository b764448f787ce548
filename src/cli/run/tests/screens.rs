//! Golden screens: `tests/data/screens/*.txt`, each a scenario and below the bar what a terminal shows of it.
//!
//! ```text
//! mode live          (default) pipe: stdout is none; dumb: no cursor moves; log: stderr is a file; file: no terminal
//! rows 12            of the terminal; 50 otherwise
//! at 400             milliseconds since the prompt
//! text …  text:m2 …  a piece of the answer, of message m1 or m2; \n and \e stand for line end and escape
//! thought …          a piece of a thought          notice …        of castor
//! + c1 {…}           a new call                    ~ c1 {…}        more of a call
//! out c1 …           a running command's output    count c1 N      its output is N lines
//! piece c1 …         the same, only what is new
//! note … | log …     castor's own remark, a line of the agent's log
//! panel …            what the user is asked        panel           nothing any more
//! ask …              a question as text            answered         by a line
//! asked c1           the question showed the diff
//! held c1            a question of this call is up
//! resize 30x20       the user does that            cancel          Ctrl-C
//! child s2 c1 a: do  call c1 started the session s2 of the agent a; `-` for c1: it does not say which call
//! state s2 idle end_turn                            or running, requires_action, unknown
//! @s2 + c2 {…}       a step of the session s2       (child s2: of an agent below it)
//! {…}                another session/update        show            here a screen is kept
//! end {…}            the turn is over: usage, cost, changes, took in seconds, resume
//! ```

use std::{fs, path::Path, time::Duration};

use expect_test::expect_file;
use serde_json::{Value, json};

use super::super::turn_output::{OutputPiece, ScreenStyle, TurnOutput};
use crate::cli::{
    args::OutputFormat,
    render::{end_line::TurnEnd, text::Line},
};
use castor_wire::acp::client::{ClientEvent, read_value};

const BAR: &str = "\n=====\n";

/// A terminal and two streams, and a turn that is shown on them.
struct Stage {
    output: TurnOutput,
    terminal: vt100::Parser,
    size: (usize, usize),
    now: Duration,
    /// Of the step's updates.
    session: String,
    streams: [String; 2],
    style: ScreenStyle,
    draws: usize,
    /// Screens that were kept.
    kept: String,
    colored: bool,
}

impl Stage {
    fn new(mode: &str, columns: usize, rows: usize, colored: bool) -> Self {
        let style = ScreenStyle {
            format: OutputFormat::Text,
            stdout_is_terminal: !matches!(mode, "pipe" | "file"),
            stderr_is_terminal: !matches!(mode, "log" | "file"),
            is_live: matches!(mode, "live" | "pipe"),
            stdout_color: colored && mode != "dumb",
            color: colored && !matches!(mode, "dumb" | "log" | "file"),
            is_raw: false,
            holds_answer: false,
        };
        let mut output = TurnOutput::new(style);
        output.set_cwd("/w");
        output.start(Duration::ZERO);
        Self {
            output,
            terminal: vt100::Parser::new(rows as u16, columns as u16, 0),
            size: (columns, rows),
            now: Duration::ZERO,
            session: "s1".to_owned(),
            streams: Default::default(),
            style,
            draws: 0,
            kept: String::new(),
            colored,
        }
    }

    fn write(&mut self, pieces: Vec<OutputPiece>) {
        for piece in pieces {
            let (at, text, is_terminal) = match piece {
                OutputPiece::Out(it) => (0, it, self.style.stdout_is_terminal),
                OutputPiece::Err(it) => (1, it, self.style.stderr_is_terminal),
            };
            self.draws += usize::from(text.starts_with("\u{1b}[?2026h"));
            assert!(self.style.is_live || !text.contains("\u{1b}[?") && !text.contains('\r'), "{text:?}");
            match is_terminal {
                // The system adds the carriage return that a program leaves out.
                true => self.terminal.process(text.replace("\r\n", "\n").replace('\n', "\r\n").as_bytes()),
                false => self.streams[at].push_str(&text),
            }
        }
    }

    /// Time passes, and what is due is drawn.
    fn wait_until(&mut self, end: Duration) {
        while let Some(due) = self.output.draw_time().map(|it| it.max(self.now)).filter(|it| *it <= end) {
            self.now = due;
            self.flush();
        }
        self.now = self.now.max(end);
    }

    fn flush(&mut self) {
        let pieces = self.output.take_pieces(self.now, self.size, true);
        self.write(pieces);
    }

    fn act(&mut self, step: &str) {
        if let Some((session, step)) = step.strip_prefix('@').and_then(|it| it.split_once(' ')) {
            let main = std::mem::replace(&mut self.session, session.to_owned());
            self.act(step);
            self.session = main;
            return;
        }
        let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
        let (verb, message) = verb.split_once(':').filter(|_| !step.starts_with('{')).unwrap_or((verb, "m1"));
        let text = rest.replace("\\n", "\n").replace("\\e", "\u{1b}");
        match verb {
            "mode" | "rows" => (),
            "at" => self.wait_until(Duration::from_millis(rest.parse().unwrap())),
            "text" => self.chunk("agent_message_chunk", &text, message),
            "thought" => self.chunk("agent_thought_chunk", &text, message),
            "notice" => self.update(&json!({"sessionUpdate": "notice", "severity": "warning", "title": text})),
            "+" => self.call("tool_call", rest),
            "~" => self.call("tool_call_update", rest),
            "out" => {
                let (id, text) = text.split_once(' ').unwrap();
                self.print(id, text);
            }
            "piece" => {
                let (id, data) = text.split_once(' ').unwrap();
                let update =
                    json!({"status": "in_progress", "_meta": {"terminal_output": {"terminal_id": id, "data": data}}});
                self.call("tool_call_update", &format!("{id} {update}"));
            }
            "count" => {
                let (id, n) = text.split_once(' ').unwrap();
                let lines: String = (1..=n.parse::<u32>().unwrap()).map(|it| format!("line {it}\n")).collect();
                self.print(id, &lines);
            }
            "note" => self.output.note(&text),
            "log" => self.output.agent_log(&text),
            "panel" => {
                let lines = text.lines().map(Line::plain).collect();
                self.output.set_panel(lines);
                self.output.set_asking(!text.is_empty(), self.now);
            }
            "ask" => {
                self.output.set_asking(true, self.now);
                self.output.write_stderr(text);
            }
            "asked" => self.output.talk_mut().note_shown(rest),
            "held" => self.output.talk_mut().note_question(rest, self.now),
            "answered" => {
                self.terminal.process(b"1\r\n");
                self.output.set_asking(false, self.now);
            }
            "resize" => {
                let (columns, rows) = rest.split_once('x').unwrap();
                self.size = (columns.parse().unwrap(), rows.parse().unwrap());
                self.terminal.screen_mut().set_size(self.size.1 as u16, self.size.0 as u16);
            }
            "cancel" => {
                self.output.note("cancelling; once more to quit at once");
                self.output.set_cancelling();
            }
            "child" => self.child(rest),
            "state" => {
                let (session, state) = rest.split_once(' ').unwrap();
                let (state, reason) = state.split_once(' ').unwrap_or((state, "end_turn"));
                let mut state = json!({"state": state});
                if state["state"] == "idle" {
                    state["stopReason"] = json!(reason);
                }
                self.update(&json!({"sessionUpdate": "subagent_update", "sessionId": session, "state": state}));
            }
            "show" => self.show(),
            "end" => self.end(rest),
            _ if step.starts_with('{') => self.update(&serde_json::from_str(step).unwrap()),
            _ => panic!("{step}"),
        }
        self.flush();
    }

    fn update(&mut self, update: &Value) {
        let event = ClientEvent::read(update);
        let change = self.output.talk_mut().update(&self.session, &event, self.now);
        self.output.show(&self.session, &event, &change, self.now);
    }

    fn child(&mut self, rest: &str) {
        let words: Vec<&str> = rest.splitn(3, ' ').collect();
        let (name, task) = words[2].split_once(": ").unwrap();
        let mut update = json!({"sessionUpdate": "subagent_update", "sessionId": words[0], "title": name,
            "description": task, "state": {"state": "running"}});
        if words[1] != "-" {
            update["_meta"] = json!({"castor": {"call": words[1]}});
        }
        self.update(&update);
    }

    fn chunk(&mut self, kind: &str, text: &str, message: &str) {
        self.update(&json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}, "messageId": message}));
    }

    fn call(&mut self, kind: &str, rest: &str) {
        let (id, fields) = rest.split_once(' ').unwrap();
        let mut update = json!({"sessionUpdate": kind, "toolCallId": id});
        let fields: Value = serde_json::from_str(fields).unwrap_or_else(|it| panic!("{fields}: {it}"));
        update.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.update(&update);
    }

    fn print(&mut self, id: &str, text: &str) {
        let text = format!("```\n{text}\n```");
        let content = json!([{"type": "content", "content": {"type": "text", "text": text}}]);
        let update = json!({"toolCallId": id, "status": "in_progress", "content": content});
        self.call("tool_call_update", &format!("{id} {update}"));
    }

    fn end(&mut self, facts: &str) {
        let facts: Value = if facts.is_empty() { json!({}) } else { serde_json::from_str(facts).unwrap() };
        let text = |key: &str| facts.get(key).and_then(Value::as_str).map(str::to_owned);
        self.output.end(self.now);
        self.output.print_end(TurnEnd {
            changes: text("changes"),
            usage: facts.get("usage").cloned().and_then(read_value),
            cost: facts.get("cost").cloned().and_then(read_value),
            is_free: facts.get("free").is_some(),
            took: Duration::from_secs(facts.get("took").and_then(Value::as_u64).unwrap_or_default()),
            resume: text("resume"),
        });
        let pieces = self.output.take_last(self.size);
        self.write(pieces);
        self.show();
    }

    fn show(&mut self) {
        self.wait_until(self.now + Duration::from_millis(17));
        self.kept += &format!("--- {} ms\n", self.now.as_millis() / 100 * 100);
        if self.style.stdout_is_terminal || self.style.stderr_is_terminal {
            self.kept += &screen_text(self.terminal.screen(), self.colored);
        }
        for (name, text) in ["stdout", "stderr"].iter().zip(&self.streams) {
            if !text.is_empty() {
                self.kept += &format!("{name}:\n{text}");
                self.kept += if text.ends_with('\n') { "" } else { "(no line end)\n" };
            }
        }
    }
}

/// Rows without blanks at their ends; styles in braces.
fn screen_text(screen: &vt100::Screen, colored: bool) -> String {
    let (rows, columns) = screen.size();
    let row = |row: u16| -> String {
        let (mut res, mut last) = (String::new(), String::new());
        for cell in (0..columns).filter_map(|it| screen.cell(row, it)).filter(|it| !it.is_wide_continuation()) {
            let style = if colored && cell.has_contents() { style_name(cell) } else { String::new() };
            if style != last {
                res += if last.is_empty() { "" } else { "{/}" };
                res += &style;
                last = style;
            }
            res += if cell.has_contents() { cell.contents() } else { " " };
        }
        let res = res.trim_end().to_owned() + if last.is_empty() { "" } else { "{/}" };
        if res.is_empty() { res } else { format!("{res}\n") }
    };
    let lines: Vec<String> = (0..rows).map(row).collect();
    let used = lines.iter().rposition(|it| !it.is_empty()).map_or(0, |it| it + 1);
    lines[..used].iter().map(|it| if it.is_empty() { "\n" } else { it }).collect()
}

fn style_name(cell: &vt100::Cell) -> String {
    let color = match cell.fgcolor() {
        vt100::Color::Default => String::new(),
        vt100::Color::Idx(it) => {
            let names = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white", "gray"];
            names.get(it as usize).map_or(format!("{it}"), |it| (*it).to_owned())
        }
        vt100::Color::Rgb(..) => "rgb".to_owned(),
    };
    let marks =
        [(cell.bold(), "bold"), (cell.dim(), "dim"), (cell.italic(), "italic"), (cell.underline(), "underline")];
    let words: Vec<&str> = marks.iter().filter_map(|it| it.0.then_some(it.1)).chain([color.as_str()]).collect();
    let name = words.join(" ").trim().to_owned();
    if name.is_empty() { name } else { format!("{{{name}}}") }
}

fn play(scenario: &str, columns: usize, colored: bool) -> Stage {
    let steps = || scenario.lines().filter(|it| !it.is_empty() && !it.starts_with('#'));
    let setting = |name: &str| steps().find_map(|it| it.strip_prefix(name)).map(str::trim);
    let rows = setting("rows ").map_or(50, |it| it.parse().unwrap());
    let mut stage = Stage::new(setting("mode ").unwrap_or("live"), columns, rows, colored);
    stage.flush();
    steps().for_each(|it| stage.act(it));
    stage
}

#[allow(clippy::disallowed_methods)]
fn check(path: &Path) {
    let file = fs::read_to_string(path).unwrap();
    let scenario = file.split(BAR).next().unwrap().trim_end();
    let mut res = format!("{scenario}\n{BAR}");
    let mut last = String::new();
    for (columns, colored) in [(40, false), (80, false), (120, false), (80, true)] {
        let kept = play(scenario, columns, colored).kept;
        let color = if colored { ", in colour" } else { "" };
        res += &format!("=== {columns} columns{color}\n");
        res += if kept == last { "(the same)\n" } else { &kept };
        if !colored {
            last = kept;
        }
    }
    expect_file![path].assert_eq(&res);
}

#[test]
#[allow(clippy::disallowed_methods)]
fn screens_are_as_they_were() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/screens");
    let only = std::env::var("SCREEN").unwrap_or_default();
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 40, "{}", paths.len());
    paths.iter().filter(|it| it.to_string_lossy().contains(&only)).for_each(|it| check(it));
}

/// Sixty draws a second at most, whatever comes; each is small, and the last one has the last chunk.
#[test]
fn many_chunks_cost_few_draws() {
    let mut stage = Stage::new("live", 80, 24, false);
    let mut written = 0;
    for at in 0..100_000u64 {
        stage.now = Duration::from_micros(at * 10);
        stage.chunk("agent_message_chunk", &format!("chunk {at} of many\n"), "m1");
        let pieces = stage.output.take_pieces(stage.now, stage.size, true);
        written += pieces.iter().map(|(OutputPiece::Out(it) | OutputPiece::Err(it))| it.len()).sum::<usize>();
        stage.write(pieces);
    }
    assert!((30..=60).contains(&stage.draws), "{} draws", stage.draws);
    stage.show();
    assert!(stage.kept.contains("chunk 99999 of many"), "{}", stage.kept);
    assert!(written < 4_000_000, "{written} bytes");
}

/// What a command printed is not kept, nor written again and again.
#[test]
fn much_output_costs_little() {
    let mut stage = Stage::new("live", 80, 24, false);
    stage.act(r#"+ c {"kind":"execute","title":"yes","rawInput":{"command":"yes"},"status":"in_progress"}"#);
    let text = "0123456789\n".repeat(1 << 17);
    let mut written = 0;
    for at in 0..20u64 {
        stage.now = Duration::from_millis(at * 50);
        stage.print("c", &format!("{text}{at}"));
        let pieces = stage.output.take_pieces(stage.now, stage.size, true);
        written += pieces.iter().map(|(OutputPiece::Out(it) | OutputPiece::Err(it))| it.len()).sum::<usize>();
        stage.write(pieces);
    }
    stage.show();
    assert!(stage.kept.ends_with("  │ 0123456789\n  │ 19\n"), "{}", stage.kept);
    assert!(written < 8_000, "{written} bytes");
}

/// While a terminal takes nothing, nothing is drawn, and the reading stops before too much waits.
#[test]
fn a_slow_terminal_gets_the_newest_state() {
    let mut stage = Stage::new("live", 80, 24, false);
    for at in 0..5_000u64 {
        stage.chunk("agent_message_chunk", &format!("line {at} {}\n\n", "x".repeat(70)), "m1");
        stage.now = Duration::from_millis(at);
        assert!(stage.output.take_pieces(stage.now, stage.size, false).is_empty());
    }
    assert!(stage.output.is_full());
    stage.show();
    assert!(stage.kept.contains("line 4999") && stage.draws == 1, "{} {}", stage.draws, stage.kept);
    assert!(!stage.output.is_full());
}
