//! Plays a conversation: sends what it says, and compares what comes with what it expects.

use std::{collections::VecDeque, fs};

use serde_json::{Value, json};

use super::{
    alias::Aliases,
    file::{self, Answer, File, Step},
    pattern::{self, Expected, Line, Mark},
    rewrite::{self, NewLines},
};
use crate::{
    client::{Client, Next, Sandbox},
    mcp, schemas,
};

/// Left out unless the file says `show all`; they are validated all the same.
const QUIET_UPDATES: &[&str] = &["usage_update", "session_info_update", "available_commands_update"];

/// Why a conversation failed.
#[derive(Debug)]
pub struct Failure {
    /// The line of the file; 0: none.
    pub line: usize,
    pub why: String,
    /// All messages up to there, and what the agent wrote on stderr.
    pub transcript: String,
}

pub fn play(text: &str) -> Result<(), Failure> {
    let file = parse(text)?;
    Player::start(&file).play(&file)
}

/// The text with what came in place of its expected lines, as far as the file could be played.
pub fn rewritten(text: &str) -> Result<String, Failure> {
    let file = parse(text)?;
    let mut player = Player::start(&file);
    player.new_lines = Some(NewLines::default());
    // What stopped it shows when the new text is played.
    let _ = player.play(&file);
    Ok(player.new_lines.unwrap_or_default().put_into(text))
}

fn parse(text: &str) -> Result<File, Failure> {
    file::parse(text).map_err(|why| Failure { line: 0, why, transcript: String::new() })
}

struct Player {
    sandbox: Sandbox,
    client: Client,
    aliases: Aliases,
    show_all: bool,
    n_runs: usize,
    n_requests: u64,
    /// Read, but not yet expected.
    peeked: VecDeque<Line>,
    /// Where the file is, counted from 1.
    line: usize,
    /// What came in place of expected lines, if these are not to be compared.
    new_lines: Option<NewLines>,
}

impl Player {
    fn start(file: &File) -> Self {
        let mut sandbox = Sandbox::new();
        let header = &file.header;
        // Below /tmp the home folder gets a link to it, which others would see there.
        let test_binary = if file.names_test_binary { sandbox.test_binary() } else { std::env::current_exe().unwrap() };
        let aliases = Aliases::new(&sandbox.workspace(), &sandbox.home(), &test_binary);
        for (path, content) in &header.files {
            sandbox.write(path, &aliases.expand(content));
        }
        for (path, to, hard) in &header.links {
            let (at, to) = (sandbox.workspace().join(path), aliases.expand(to));
            match hard {
                true => std::fs::hard_link(sandbox.workspace().join(to), at).unwrap(),
                false => std::os::unix::fs::symlink(to, at).unwrap(),
            }
        }
        sandbox.args.extend(header.args.iter().map(|it| aliases.expand(it).into()));
        if header.untrusted {
            sandbox.env.clear();
        }
        sandbox.env.extend(header.env.iter().map(|(name, it)| (name.clone(), aliases.expand(it))));
        let client = launch(&mut sandbox, file, 0, &aliases);
        Self {
            sandbox,
            client,
            aliases,
            show_all: header.show_all,
            n_runs: 1,
            n_requests: 0,
            peeked: VecDeque::new(),
            line: 0,
            new_lines: None,
        }
    }

    fn play(&mut self, file: &File) -> Result<(), Failure> {
        self.all(file).map_err(|why| {
            let transcript = self.client.transcript();
            let _ = self.client.kill();
            Failure { line: self.line, why, transcript }
        })
    }

    fn all(&mut self, file: &File) -> Result<(), String> {
        self.open(file)?;
        for (idx, (line, step)) in file.steps.iter().enumerate() {
            self.line = line + 1;
            match step {
                Step::Expect(lines, expected) if self.new_lines.is_some() => {
                    let is_last = !file.steps[idx + 1..].iter().any(|(_, it)| matches!(it, Step::Expect(..)));
                    let heard = self.listen(expected, is_last)?;
                    let new = rewrite::new_lines(expected, &heard, file.header.show_lists);
                    self.new_lines.get_or_insert_default().push(lines.clone(), new);
                }
                _ => self.step(file, step)?,
            }
        }
        self.finish()
    }

    /// What the header does not leave to the file.
    fn open(&mut self, file: &File) -> Result<(), String> {
        let header = &file.header;
        if header.bare {
            return Ok(());
        }
        let capabilities = header.capabilities.clone().unwrap_or(json!({}));
        match header.version {
            Some(2) => self.client.initialize_v2(&capabilities)?,
            _ => self.client.initialize(&capabilities)?,
        };
        if !header.no_session && self.n_runs == 1 {
            let log = self.sandbox.workspace().join("mcp.log");
            let mut servers: Vec<Value> = header.mcp.iter().map(|(name, kind)| mcp::server(name, kind, &log)).collect();
            if header.version == Some(2) {
                servers.iter_mut().for_each(|it| it["type"] = json!("stdio"));
            }
            let id = self.client.new_session_with(&self.sandbox.workspace(), json!(servers))?;
            self.aliases.name('s', &id);
        }
        Ok(())
    }

    fn step(&mut self, file: &File, step: &Step) -> Result<(), String> {
        match step {
            Step::Request { method, params } => {
                self.n_requests += 1;
                let params = self.params(method, params)?;
                self.client.request_as(json!(self.n_requests), method, params);
            }
            Step::Notify { method, params } => {
                let params = self.params(method, params)?;
                self.client.notify(method, params);
            }
            Step::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => self.client.send_bytes(self.aliases.expand(text).as_bytes()),
                Err(_) => self.client.send_bytes(bytes),
            },
            Step::Answer { nth, answer } => self.answer(*nth, answer)?,
            Step::Eof => self.client.close_stdin(),
            Step::Restart => self.restart(file)?,
            Step::Expect(_, expected) => self.expect(expected)?,
            Step::FileIs { path, content } => self.check_file(path, content.as_deref())?,
            Step::Exit(code) => self.check_exit(*code)?,
            Step::LastError(pattern) => self.check_last_error(pattern)?,
        }
        Ok(())
    }

    /// Placeholders filled in; requests about a session are about the first unless they say otherwise.
    fn params(&self, method: &str, params: &Value) -> Result<Value, String> {
        let mut params: Value = file::parse_json(&self.aliases.expand(&params.to_string()))?;
        let names_none = ["session/new", "session/list"].contains(&method);
        if let (true, false, Some(fields), Some(id)) =
            (method.contains("session/"), names_none, params.as_object_mut(), self.aliases.raw("s1"))
        {
            fields.entry("sessionId").or_insert_with(|| json!(id));
        }
        Ok(params)
    }

    fn answer(&mut self, nth: Option<usize>, answer: &Answer) -> Result<(), String> {
        let question = match nth {
            Some(nth) => self.client.ledger.asked().get(nth.saturating_sub(1)).map(|it| &it.message),
            None => {
                let last = self.client.ledger.asked().last().map(|it| &it.message);
                self.client.ledger.questions().next_back().or(last)
            }
        };
        let question = question.ok_or("the agent asked nothing")?.clone();
        let mut message = json!({"jsonrpc": "2.0", "id": question["id"]});
        match answer {
            Answer::Result(it) => message["result"] = it.clone(),
            Answer::Error(it) => message["error"] = it.clone(),
            Answer::Option(kind) => {
                let options = question["params"]["options"].as_array().map(Vec::as_slice).unwrap_or_default();
                let option = options.iter().find(|it| it["kind"] == *kind).ok_or("no such option was offered")?;
                message["result"] = json!({"outcome": {"outcome": "selected", "optionId": option["optionId"]}});
            }
        }
        self.client.send(&message);
        Ok(())
    }

    fn restart(&mut self, file: &File) -> Result<(), String> {
        self.finish()?;
        self.client = launch(&mut self.sandbox, file, self.n_runs, &self.aliases);
        self.n_runs += 1;
        self.open(file)
    }

    /// Nothing may be left unsaid.
    fn finish(&mut self) -> Result<(), String> {
        let (_, rest) = self.client.end()?;
        schemas::check_logs(&self.sandbox.home())?;
        let late: Vec<Line> = rest.iter().filter_map(|it| self.line(it)).collect();
        let unread = self.peeked.drain(..).chain(late);
        let unread: Vec<String> = unread.map(|it| it.text()).collect();
        if unread.is_empty() { Ok(()) } else { Err(format!("not expected:\n< {}", unread.join("\n< "))) }
    }

    fn expect(&mut self, expected: &[Expected]) -> Result<(), String> {
        let (mut rest, start) = (expected, self.line);
        while let Some(first) = rest.first() {
            self.line = start + expected.len() - rest.len();
            let n_loose = rest.iter().take_while(|it| it.mark != Mark::Next).count();
            if n_loose == 0 {
                compare(first, &self.next()?)?;
            } else {
                self.any_order(&rest[..n_loose])?;
            }
            rest = &rest[n_loose.max(1)..];
        }
        Ok(())
    }

    /// Each line marked `<~` once, in any order, those marked `<*` any number of times in between; where there are only
    /// the latter, up to the first message that is something else.
    fn any_order(&mut self, expected: &[Expected]) -> Result<(), String> {
        let (many, mut open): (Vec<_>, Vec<_>) = expected.iter().partition(|it| it.mark == Mark::Many);
        let only_many = open.is_empty();
        while only_many || !open.is_empty() {
            let line = self.next()?;
            if let Some(at) = open.iter().position(|it| it.matches(&line)) {
                open.remove(at);
            } else if !many.iter().any(|it| it.matches(&line)) {
                let missing: Vec<&str> = open.iter().map(|it| it.text.as_str()).collect();
                let why = format!("expected: {}\nbut came: {}", missing.join("\n      or: "), line.text());
                self.peeked.push_front(line);
                return if only_many { Ok(()) } else { Err(why) };
            }
        }
        Ok(())
    }

    /// The next message that the file shows.
    fn next(&mut self) -> Result<Line, String> {
        if let Some(line) = self.peeked.pop_front() {
            return Ok(line);
        }
        loop {
            let message = self.client.next()?.ok_or("the agent ended too early")?;
            if let Some(line) = self.line(&message) {
                return Ok(line);
            }
        }
    }

    /// A message as the file says it; `None` where it says nothing of it.
    fn line(&mut self, message: &Value) -> Option<Line> {
        let (method, id) = (message["method"].as_str(), message.get("id"));
        let (Some(method), false) = (method, id.is_some() && message.get("method").is_none()) else {
            return Some(self.response(message));
        };
        let kind = message["params"]["update"]["sessionUpdate"].as_str().unwrap_or_default();
        if QUIET_UPDATES.contains(&kind) && !self.show_all {
            return None;
        }
        if let Some(id) = id {
            self.aliases.name('r', &format!("request {id}"));
        }
        let mut params = self.aliases.normalize(&message["params"]);
        if method == "$/cancel_request" {
            let id = format!("request {}", message["params"]["requestId"]);
            params["requestId"] = self.aliases.normalize(&json!(id));
        }
        let session = params.as_object_mut().and_then(|it| it.shift_remove("sessionId"));
        let other = session.as_ref().and_then(Value::as_str).filter(|it| *it != "s1");
        let suffix = other.map_or(String::new(), |it| format!(" {it}"));
        let prefix = if id.is_some() { "request " } else { "" };
        let body = if method == "session/update" { self.shown(params["update"].take()) } else { params };
        Some(Line { head: format!("{prefix}{method}{suffix}"), body })
    }

    fn shown(&self, mut update: Value) -> Value {
        if let (false, Some(fields)) = (self.show_all, update.as_object_mut()) {
            fields.shift_remove("messageId");
            // It says the same as `name`.
            if let Some(meta) = fields.get_mut("_meta").and_then(Value::as_object_mut)
                && meta.shift_remove("tool_name").is_some()
                && meta.is_empty()
            {
                fields.shift_remove("_meta");
            }
        }
        update
    }

    fn response(&mut self, message: &Value) -> Line {
        let id = &message["id"];
        let label = match id.as_u64() {
            Some(it) if it > 0 && it == self.n_requests => String::new(),
            Some(it) if (1..self.n_requests).contains(&it) => format!(" #{it}"),
            _ => format!(" id={id}"),
        };
        let kind = if message.get("error").is_some() { "error" } else { "result" };
        let mut body = self.aliases.normalize(&message[kind]);
        if let (false, Some(fields)) = (self.show_all, body.as_object_mut()) {
            fields.shift_remove("usage");
        }
        Line { head: format!("{kind}{label}"), body }
    }

    fn check_file(&self, path: &str, content: Option<&str>) -> Result<(), String> {
        let found = fs::read_to_string(self.sandbox.workspace().join(path)).ok();
        let content = content.map(|it| self.aliases.expand(it));
        if found == content { Ok(()) } else { Err(format!("{path} is {found:?}, expected {content:?}")) }
    }

    /// What a client shows of an agent that did not start.
    fn check_last_error(&self, pattern: &str) -> Result<(), String> {
        let last = self.client.last_error();
        if pattern::matches_text(pattern, &last) { Ok(()) } else { Err(format!("stderr ends with {last:?}")) }
    }

    fn check_exit(&mut self, code: i32) -> Result<(), String> {
        let (status, rest) = self.client.end()?;
        let late: Vec<Line> = rest.iter().filter_map(|it| self.line(it)).collect();
        self.peeked.extend(late);
        if status.code() == Some(code) { Ok(()) } else { Err(format!("exit status {status}, expected {code}")) }
    }

    /// All that comes in place of a step's lines.
    fn listen(&mut self, expected: &[Expected], is_last: bool) -> Result<Vec<Line>, String> {
        let mut heard: Vec<Line> = self.peeked.drain(..).collect();
        loop {
            let is_settled = self.client.ledger.is_idle() || self.client.ledger.questions().next().is_some();
            match self.client.next_within(rewrite::patience(expected, &heard, is_settled))? {
                Next::Message(message) => heard.extend(self.line(&message)),
                Next::Nothing | Next::End => break,
            }
        }
        if is_last && self.client.ledger.is_idle() {
            let (_, rest) = self.client.end()?;
            schemas::check_logs(&self.sandbox.home())?;
            heard.extend(rest.iter().filter_map(|it| self.line(it)));
        }
        Ok(heard)
    }
}

fn compare(expected: &Expected, line: &Line) -> Result<(), String> {
    if expected.matches(line) {
        return Ok(());
    }
    Err(expected.first_difference(line))
}

fn launch(sandbox: &mut Sandbox, file: &File, run: usize, aliases: &Aliases) -> Client {
    let n_args = 1 + file.header.args.len();
    sandbox.args.truncate(n_args);
    if !file.header.no_model {
        let script: String = file.scripts[run].iter().map(|it| format!("{it}\n")).collect();
        let path = sandbox.write(format!("script-{run}.jsonl"), &aliases.expand(&script));
        sandbox.args.extend(["--fake-responses".into(), path.into()]);
    }
    Client::start(sandbox)
}
