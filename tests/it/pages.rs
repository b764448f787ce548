//! The commands in the pages for users: each page's blocks run in order, in a home of their own, without network.
//!
//! | block | here |
//! |---|---|
//! | `sh` | runs; exit code 0, or the one that a line names by `# exit N` or `# exit N: why` |
//! | `sh key` | the same, and a Gemini API key counts |
//! | `sh google` | the same, and Google's credentials of a machine count |
//! | `sh provider=NAME` | the same, and this provider is at the server |
//! | `sh needs=TOOL` | runs where the variable `PAGES_TOOLS` names the tool, as in `.ci/run` |
//! | `text output` | is in what the block before it printed; `…` is any text |
//! | `sh example=NAME` | `examples/NAME` is in the folder, and what it imports |
//! | any with `file=PATH` | is written to this file first |
//! | `json` or `jsonl` with `schema=NAME` | fits the schema of that name |
//! | `json` with `meta=PLACE` | has a `_meta` that fits that place of the schema `meta` |
//! | `jsonl` with `acp` | messages of the protocol, by its schema |
//! | `console` and all others | for reading only |
//!
//! Models are the demo, and a server on this machine; addresses below `example.com` lead to it. `/401` and other
//! statuses behind an address are what it answers, `/portal` a web page.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use serde_json::{Value, json};

use crate::{
    model_server::{Asked, ModelServer, answers, gives, page, says, stream},
    schema, schemas,
    watched_castor::WatchedCastor,
};

/// So many pages at once.
const LANES: usize = 4;

#[derive(Debug, PartialEq)]
struct Block {
    info: String,
    text: String,
}

#[test]
fn commands_in_pages_work() {
    let pages = pages();
    let lanes = (0..LANES).map(|lane| pages.iter().skip(lane).step_by(LANES).collect::<Vec<_>>());
    let faults: String = thread::scope(|scope| {
        let lanes: Vec<_> =
            lanes.map(|it| scope.spawn(move || it.into_iter().filter_map(|it| play(it)).collect())).collect();
        lanes.into_iter().map(|it| it.join().unwrap_or_else(|_| "a lane ended\n".to_owned())).collect()
    });
    assert!(faults.is_empty(), "\n{faults}");
}

/// A command that is shown, but not run, may be one that needs more than castor and a shell.
#[test]
fn commands_that_can_run_do() {
    const MAY_NOT_RUN: &[&str] = &[
        "--agent",
        "--connect",
        "acp",
        "auth login",
        "cargo ",
        "castor serve",
        "code-server ",
        "curl ",
        "gcloud ",
        "npm ",
        "ollama ",
        "pip ",
    ];
    let mut faults = String::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for block in blocks(&text).iter().filter(|it| it.info.starts_with("console")) {
            let typed = block.text.lines().filter_map(|it| it.strip_prefix("$ "));
            for line in typed.filter(|line| !MAY_NOT_RUN.iter().any(|it| line.contains(it))) {
                faults += &format!("{}: `{line}` can be an `sh` block\n", page.display());
            }
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}

/// An error names what was looked for, too: `castor … | grep NAME` cannot fail. A block `text output` can.
#[test]
fn no_page_looks_for_a_word_in_what_castor_says() {
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for line in blocks(&text).iter().filter(|it| it.info.starts_with("sh")).flat_map(|it| it.text.lines()) {
            let is_search = line.split('|').skip(1).any(|it| it.trim_start().starts_with("grep "));
            assert!(!(line.contains("castor ") && is_search), "{}: {line}", page.display());
        }
    }
}

#[test]
fn a_page_that_is_wrong_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.md");
    let fault = |text: &str| {
        fs::write(&page, text).unwrap();
        play(&page).unwrap_or_default()
    };
    assert_eq!(
        fault("```sh\nfalse  # exit 1\necho a b\n```\n```text output\na…b\n```\n```sh needs=none\nfalse\n```\n"),
        ""
    );
    assert!(fault("```sh\ntrue  # exit 1\n```\n").contains("`true` ended with 0"));
    assert!(fault("```sh\ncastor nonsense\n```\n").contains("exit code 42"));
    assert!(fault("```sh\necho a\n```\n```text output\nb\n```\n").contains("`b` was not printed"));
    assert!(fault("```json schema=settings\n{\"model\": 1}\n```\n").contains("settings: "));
    assert!(fault("```json\n{\n```\n").contains("EOF"));
    let update =
        r#"{"method": "session/update", "params": {"sessionId": "s", "update": {"sessionUpdate": "nothing"}}}"#;
    assert!(fault(&format!("```jsonl acp\n{update}\n```\n")).contains("SessionNotification"));
    assert_eq!(fault("```json file=~/x/y\n{}\n```\n```sh\ntest -f ~/x/y\n```\n"), "");
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut open, mut res) = (vec![root.join("docs"), root.join("editors")], vec![root.join("README.md")]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false => res.push(path),
            }
        }
    }
    res.retain(|it| it.extension().is_some_and(|it| it == "md"));
    res.sort();
    res
}

fn blocks(text: &str) -> Vec<Block> {
    let (mut res, mut now) = (Vec::new(), None);
    for event in Parser::new(text) {
        match (event, &mut now) {
            (Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))), _) => {
                now = Some(Block { info: info.into_string(), text: String::new() });
            }
            (Event::Text(it), Some(block)) => block.text += &it,
            (Event::End(TagEnd::CodeBlock), _) => res.extend(now.take()),
            _ => (),
        }
    }
    res
}

/// One page's scratch home, its folder, and the server behind its addresses.
struct Stage {
    home: tempfile::TempDir,
    castor: WatchedCastor,
    server: ModelServer,
    /// Nothing where the block before was left out.
    printed: Option<String>,
}

/// Plays a page; says what went wrong.
fn play(page: &Path) -> Option<String> {
    let text = fs::read_to_string(page).unwrap();
    let blocks = blocks(&text);
    if !blocks.iter().any(is_played) {
        return None;
    }
    let mut stage = Stage::new();
    let fault = blocks.iter().find_map(|it| stage.play(it).err())?;
    Some(format!("{}: {fault}\n", page.display()))
}

fn is_played(block: &Block) -> bool {
    let kind = block.info.split(' ').next().unwrap_or_default();
    ["json", "jsonl", "sh"].contains(&kind) || block.info.contains("file=")
}

/// JSON of a page: it can be read, and fits its schema.
fn check_json(text: &str, words: &[&str]) -> Result<(), String> {
    let values = serde_json::Deserializer::from_str(text).into_iter().collect::<Result<Vec<Value>, _>>();
    let values = values.map_err(|it| format!("{it} in\n{text}"))?;
    if let Some(name) = words.iter().find_map(|it| it.strip_prefix("schema=")) {
        values.iter().try_for_each(|it| schemas::check(name, it)).map_err(|it| format!("{name}: {it} in\n{text}"))?;
    }
    if let Some(place) = words.iter().find_map(|it| it.strip_prefix("meta=")) {
        values.iter().try_for_each(|it| schemas::check("meta", &json!({ place: it["_meta"] })))?;
    }
    let version = words.iter().find_map(|it| match *it {
        "acp" => Some(1),
        "acp=2" => Some(2),
        _ => None,
    });
    version.map_or(Ok(()), |it| check_messages(it, &values)).map_err(|it| format!("{it} in\n{text}"))
}

/// Messages of both sides; those of the agent are checked.
fn check_messages(version: u64, messages: &[Value]) -> Result<(), String> {
    let mut asked = BTreeMap::new();
    for message in messages {
        let is_request = message.get("id").is_some();
        match message["method"].as_str() {
            Some(method @ ("session/update" | "session/request_permission" | "_castor/tool/call")) => {
                schema::check_sent(
                    version,
                    method,
                    if is_request { "Request" } else { "Notification" },
                    &message["params"],
                )?;
            }
            Some(method) if method.starts_with('_') && !is_request => {
                schema::check_sent(version, method, "Notification", &message["params"])?;
            }
            Some(method) => _ = asked.insert(message["id"].to_string(), method),
            None if message.get("result").is_some() => {
                let method = asked.remove(&message["id"].to_string());
                method.map_or(Ok(()), |it| schema::check_result(version, it, &message["result"]))?;
            }
            None => schema::check_error(version, &message["error"])?,
        }
    }
    Ok(())
}

impl Stage {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("project")).unwrap();
        fs::write(home.path().join("project/notes.md"), "# Notes\n\nThe parser is slow.\n").unwrap();
        let stage = Self { home, castor: WatchedCastor::new(), server: ModelServer::answering(answer), printed: None };
        let mut git = stage
            .shell("git init -q . && git add . && git -c user.name=u -c user.email=u@example.com commit -qm notes");
        assert!(git.output().unwrap().status.success(), "git is needed");
        stage
    }

    fn play(&mut self, block: &Block) -> Result<(), String> {
        let mut words = block.info.split(' ');
        let kind = words.next().unwrap_or_default();
        let words: Vec<&str> = words.collect();
        if let Some(file) = words.iter().find_map(|it| it.strip_prefix("file=")) {
            let fits =
                if file.ends_with("settings.json") { check_json(&block.text, &["schema=settings"]) } else { Ok(()) };
            return fits.and_then(|()| self.write(file, &block.text));
        }
        let needs = words.iter().find_map(|it| it.strip_prefix("needs="));
        let has = std::env::var("PAGES_TOOLS").unwrap_or_default();
        if needs.is_some_and(|it| !has.split(' ').any(|tool| tool == it)) {
            self.printed = None;
            return Ok(());
        }
        if let Some(name) = words.iter().find_map(|it| it.strip_prefix("example=")) {
            self.add_examples(name)?;
        }
        match kind {
            "json" | "jsonl" => check_json(&block.text, &words),
            "sh" => self.run(&block.text, &words),
            "text" if words.contains(&"output") => {
                self.printed.as_deref().map_or(Ok(()), |it| compare(it, &block.text))
            }
            _ => Ok(()),
        }
    }

    fn write(&self, file: &str, text: &str) -> Result<(), String> {
        let path = match file.strip_prefix("~/") {
            Some(it) => self.home.path().join(it),
            None => self.home.path().join("project").join(file),
        };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, self.with_server(text)).map_err(|it| format!("{file}: {it}"))
    }

    /// Python finds what an example imports beside it.
    fn add_examples(&self, name: &str) -> Result<(), String> {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
        for name in [name, "driver.py"] {
            let copied = fs::copy(examples.join(name), self.home.path().join("project").join(name));
            copied.map_err(|it| format!("examples/{name}: {it}"))?;
        }
        Ok(())
    }

    /// The server in the place of `https://anything.example.com`.
    fn with_server(&self, text: &str) -> String {
        let address = regex::Regex::new(r"https?://[a-z0-9.-]*example\.com(:\d+)?").unwrap();
        address.replace_all(text, &*self.server.url).into_owned()
    }

    fn shell(&self, script: &str) -> Command {
        let mut res = Command::new("bash");
        let castor = self.castor.client();
        let bin = castor.parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        res.args(["-c", script]).env_clear().stdin(Stdio::null());
        res.env("HOME", self.home.path()).env("PATH", format!("{}:{path}", bin.display()));
        res.current_dir(self.home.path().join("project"));
        res
    }

    fn run(&mut self, text: &str, words: &[&str]) -> Result<(), String> {
        let text = self.with_server(text);
        let script: String = text.lines().map(|it| line(it) + "\n").collect();
        let mut shell = self.shell(&format!("set -eu\nexec 2>&1\n{script}"));
        let url = &self.server.url;
        if words.contains(&"key") {
            shell.env("GEMINI_API_KEY", "a-key").env("GOOGLE_GEMINI_BASE_URL", url);
        }
        if words.contains(&"google") {
            shell.env("GCE_METADATA_HOST", url.trim_start_matches("http://")).env("GOOGLE_VERTEX_BASE_URL", url);
        }
        if let Some(name) = words.iter().find_map(|it| it.strip_prefix("provider=")) {
            let settings = json!({"providers": {name: {"type": "openai", "baseUrl": format!("{url}/v1")}}});
            let file = self.home.path().join("system.json");
            fs::write(&file, settings.to_string()).unwrap();
            shell.env("CASTOR_SYSTEM_SETTINGS_PATH", file);
        }
        let output = shell.output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let res = match output.status.code() {
            Some(0) => Ok(()),
            code => Err(format!("exit code {}\n{text}\n{printed}", code.unwrap_or(-1))),
        };
        self.printed = Some(printed);
        res
    }
}

/// All lines of `wanted`, in their order.
fn compare(printed: &str, wanted: &str) -> Result<(), String> {
    let mut rest = printed;
    for line in wanted.lines().filter(|it| !it.trim().is_empty()) {
        for piece in line.split('…').map(str::trim).filter(|it| !it.is_empty()) {
            let at = rest.find(piece).ok_or_else(|| format!("`{piece}` was not printed in\n{printed}"))?;
            rest = &rest[at + piece.len()..];
        }
    }
    Ok(())
}

/// A line that names its exit code, as one that checks it.
fn line(line: &str) -> String {
    let Some((command, code)) = line.rsplit_once("# exit ") else { return line.to_owned() };
    let (command, code) = (command.trim(), code.split(':').next().unwrap_or_default().trim());
    format!(
        "code=0; {command} || code=$?; test $code = {code} || {{ printf '`%s` ended with %s' '{}' $code; exit 99; }}",
        command.replace('\'', "'\\''")
    )
}

/// A model of Gemini or of a server that speaks chat completions, or a list of models, or what its address says.
fn answer(asked: &Asked) -> Option<String> {
    let chunk = json!({"choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": "stop"}]});
    let refusal = json!({"error": {"code": 400, "message": "The request was refused."}});
    let head = asked.head.lines().next().unwrap_or_default();
    let status = head.split('/').find(|it| it.len() == 3 && it.bytes().all(|it| it.is_ascii_digit()));
    Some(match head {
        it if it.contains("/portal/") => {
            page("<html><head><title>Sign in to WiFi</title></head><body>Hello</body></html>")
        }
        _ if status.is_some() => answers(&format!("{} No", status.unwrap_or_default()), &refusal.to_string()),
        it if it.contains("streamGenerateContent") => says("Hello."),
        it if it.contains("/token") => gives(&json!({"access_token": "t", "expires_in": 3600, "token_type": "Bearer"})),
        it if it.contains("completions") => stream(&format!("data: {chunk}\n\ndata: [DONE]\n\n")),
        _ => gives(&json!({"data": [{"id": "small"}], "models": []})),
    })
}
