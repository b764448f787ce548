//! Reads a conversation file: header lines, then steps.

use std::ops::Range;

use serde_json::{Value, json};

use super::{model, pattern::Expected};

#[derive(Default)]
pub struct File {
    pub header: Header,
    /// It starts the test binary, as `$IT`.
    pub names_test_binary: bool,
    /// With the index of the line where each begins.
    pub steps: Vec<(usize, Step)>,
    /// The scripted answers of each run of the agent: one before the first `> restart`, one after each.
    pub scripts: Vec<Vec<Value>>,
}

#[derive(Default)]
pub struct Header {
    /// initialize is a step of the file.
    pub bare: bool,
    /// session/new is a step of the file.
    pub no_session: bool,
    /// The agent gets no scripted model.
    pub no_model: bool,
    pub show_all: bool,
    /// A rewrite spells lists out.
    pub show_lists: bool,
    /// The protocol's, which initialize asks for.
    pub version: Option<u64>,
    /// The folder is not trusted by the environment.
    pub untrusted: bool,
    /// MCP servers of session/new, with their kinds.
    pub mcp: Vec<(String, String)>,
    pub capabilities: Option<Value>,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Path in the sandbox and content.
    pub files: Vec<(String, String)>,
    /// Links in the workspace: path, what it leads to, and whether it is a hard one.
    pub links: Vec<(String, String, bool)>,
}

pub enum Step {
    Request {
        method: String,
        params: Value,
    },
    Notify {
        method: String,
        params: Value,
    },
    Bytes(Vec<u8>),
    Answer {
        nth: Option<usize>,
        answer: Answer,
    },
    Eof,
    Restart,
    /// Lines of the file, and what they say.
    Expect(Range<usize>, Vec<Expected>),
    /// A file of the workspace; `None`: there is none.
    FileIs {
        path: String,
        content: Option<String>,
    },
    Exit(i32),
    /// The last line on stderr, `$*` for any text.
    LastError(String),
}

pub enum Answer {
    Result(Value),
    Error(Value),
    /// The first option of that kind.
    Option(String),
}

pub fn parse(text: &str) -> Result<File, String> {
    let names_test_binary = text.contains("$IT");
    let mut file = File { names_test_binary, scripts: vec![Vec::new()], ..File::default() };
    for (idx, line) in text.lines().enumerate() {
        file.line(idx, line).map_err(|why| format!("line {}: {why}\n    {line}", idx + 1))?;
    }
    Ok(file)
}

impl File {
    fn line(&mut self, idx: usize, line: &str) -> Result<(), String> {
        if line.trim().is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if line.starts_with('<') {
            return self.expect(idx, line);
        }
        let (word, rest) = split(line);
        let step = match word {
            ">" => parse_send(rest)?,
            ">>" => {
                let (method, params) = call(rest)?;
                Step::Notify { method, params }
            }
            "file?" => {
                let (path, content) = split(rest);
                Step::FileIs { path: path.to_owned(), content: Some(parse_json(content)?) }
            }
            "nofile?" => Step::FileIs { path: rest.trim().to_owned(), content: None },
            "stderr?" => Step::LastError(parse_json(rest)?),
            "exit" => Step::Exit(rest.trim().parse().map_err(|_| "exit wants a number")?),
            "model" => {
                let script = self.scripts.last_mut().ok_or("no run")?;
                script.push(model::response(rest)?);
                return Ok(());
            }
            _ if self.steps.is_empty() => return self.header.line(line),
            _ => return Err(format!("`{word}` is no step")),
        };
        if matches!(step, Step::Restart) {
            self.scripts.push(Vec::new());
        }
        self.steps.push((idx, step));
        Ok(())
    }

    /// Adjacent lines are one step.
    fn expect(&mut self, idx: usize, line: &str) -> Result<(), String> {
        let expected = Expected::parse(line)?;
        if let Some((_, Step::Expect(lines, before))) = self.steps.last_mut()
            && lines.end == idx
        {
            lines.end += 1;
            before.push(expected);
            return Ok(());
        }
        self.steps.push((idx, Step::Expect(idx..idx + 1, vec![expected])));
        Ok(())
    }
}

impl Header {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let (word, rest) = split(line);
        match (word, rest.trim()) {
            ("bare", "") => (self.bare, self.no_session) = (true, true),
            ("no", "session") => self.no_session = true,
            ("no", "model") => self.no_model = true,
            ("show", "all") => self.show_all = true,
            ("show", "lists") => self.show_lists = true,
            ("version", it) => self.version = Some(it.parse().map_err(|_| "version wants a number")?),
            ("untrusted", "") => self.untrusted = true,
            ("mcp", it) => {
                let (name, kind) = split(it);
                self.mcp.push((name.to_owned(), kind.trim().to_owned()));
            }
            ("caps", it) => self.capabilities = Some(parse_json(it)?),
            ("args", it) => self.args.extend(it.split_whitespace().map(str::to_owned)),
            ("env", it) => {
                let (name, value) = it.split_once('=').ok_or("env wants NAME=VALUE")?;
                self.env.push((name.to_owned(), value.to_owned()));
            }
            ("settings", it) => {
                let value: Value = parse_json(it)?;
                self.files.push(("home/.castor/settings.json".to_owned(), value.to_string()));
            }
            ("file" | "home", it) => {
                let (path, content) = split(it);
                let folder = if word == "file" { "ws" } else { "home" };
                self.files.push((format!("{folder}/{path}"), parse_json(content)?));
            }
            ("link" | "hard", it) => {
                let (path, to) = split(it);
                self.links.push((path.to_owned(), to.trim().to_owned(), word == "hard"));
            }
            _ => return Err(format!("`{word}` is no line of a header")),
        }
        Ok(())
    }
}

fn parse_send(rest: &str) -> Result<Step, String> {
    let (word, more) = split(rest);
    Ok(match word {
        "raw" => Step::Bytes([unescape(more)?, b"\n".to_vec()].concat()),
        "bytes" => Step::Bytes(unescape(more)?),
        "repeat" => {
            let (count, unit) = split(more);
            let count = count.parse().map_err(|_| "repeat wants a number and text")?;
            Step::Bytes(unescape(unit)?.repeat(count))
        }
        "answer" => parse_answer(more)?,
        "eof" => Step::Eof,
        "restart" => Step::Restart,
        _ => {
            let (method, params) = call(rest)?;
            Step::Request { method, params }
        }
    })
}

fn parse_answer(rest: &str) -> Result<Step, String> {
    let (word, more) = split(rest);
    if let Some(nth) = word.strip_prefix('#') {
        let nth = nth.parse().map_err(|_| "#n wants a number")?;
        return Ok(Step::Answer { nth: Some(nth), answer: answer(more)? });
    }
    Ok(Step::Answer { nth: None, answer: answer(rest)? })
}

fn answer(text: &str) -> Result<Answer, String> {
    let (word, more) = split(text);
    Ok(match word {
        "error" => {
            let (code, message) = split(more);
            let code: i64 = code.parse().map_err(|_| "error wants a code")?;
            Answer::Error(json!({"code": code, "message": parse_json::<String>(message)?}))
        }
        "cancelled" => Answer::Result(json!({"outcome": {"outcome": "cancelled"}})),
        "allow_once" | "allow_always" | "reject_once" | "reject_always" => Answer::Option(word.to_owned()),
        _ => Answer::Result(parse_json(text)?),
    })
}

fn call(text: &str) -> Result<(String, Value), String> {
    let (method, params) = split(text);
    let params = if params.trim().is_empty() { json!({}) } else { parse_json(params)? };
    Ok((method.to_owned(), params))
}

/// The first word and what follows one blank after it.
pub fn split(text: &str) -> (&str, &str) {
    text.trim_start().split_once(' ').unwrap_or((text.trim(), ""))
}

pub fn parse_json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|it| format!("{it} in `{text}`"))
}

/// `\n`, `\r`, `\t`, `\0`, `\\` and `\xFF`; every other backslash stays, for JSON's own escapes.
fn unescape(text: &str) -> Result<Vec<u8>, String> {
    let (mut res, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once('\\') {
        res.extend(before.as_bytes());
        let mut chars = after.chars();
        let (byte, used) = match chars.next() {
            Some('n') => (b'\n', 1),
            Some('r') => (b'\r', 1),
            Some('t') => (b'\t', 1),
            Some('0') => (0, 1),
            Some('\\') => (b'\\', 1),
            Some('x') => (u8::from_str_radix(after.get(1..3).unwrap_or_default(), 16).map_err(|_| "bad \\x")?, 3),
            _ => (b'\\', 0),
        };
        res.push(byte);
        rest = &after[used..];
    }
    res.extend(rest.as_bytes());
    Ok(res)
}

#[test]
fn reads_every_kind_of_line() {
    let text = "# what\nbare\nsettings {\"a\":1}\nfile a/b.txt \"x\\n\"\nmodel text \"hi\"\n> initialize {}\n\
        < result {}\n< error {\"code\":1}\n> raw {\\xff\\\n> answer #2 allow_once\nfile? a \"x\"\n> eof\nexit 0\n";
    let file = parse(text).unwrap();
    assert!(file.header.bare && file.header.no_session);
    assert_eq!(file.header.files.len(), 2);
    assert_eq!(file.scripts[0].len(), 1);
    assert_eq!(file.steps.len(), 7);
    assert!(matches!(&file.steps[1], (6, Step::Expect(lines, it)) if *lines == (6..8) && it.len() == 2));
    assert!(matches!(&file.steps[2], (8, Step::Bytes(it)) if it == b"{\xff\\\n"));
    assert!(parse("> x {}\nbare\n").is_err());
}
