//! Prompts as events: `castor run --input-format events`. Each message of the user in a line of stdin is a prompt.

use std::{
    io::{self, BufRead, BufReader, Read},
    thread,
};

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::cli::{
    args::{OutputFormat, RunArgs},
    client::prompt::{Attachment, Prompt},
    terminal_text::clean_line,
};
use castor_base::content::Part;
use castor_client::failure::Failure;

/// Prompts that are read ahead.
const QUEUE: usize = 4;
/// As of all stdin.
const MAX_LINE: u64 = 8 << 20;
const MAX_WHY: usize = 300;

/// The prompts of a stream, one after the other.
pub struct EventPrompts {
    lines: mpsc::Receiver<Result<Vec<u8>, String>>,
    n_lines: usize,
    /// Events that are no messages of the user.
    pub n_others: usize,
}

impl EventPrompts {
    pub fn new(reader: impl Read + Send + 'static) -> Self {
        let (to, lines) = mpsc::channel(QUEUE);
        // A thread that may be left behind in its read.
        thread::spawn(move || read_lines(reader, &to));
        Self { lines, n_lines: 0, n_others: 0 }
    }

    /// Those of stdin, and the first of them.
    ///
    /// # Errors
    /// When there are none, and for flags that do not go with them.
    pub async fn open(args: &RunArgs, is_piped: bool) -> Result<(Prompt, Self), Failure> {
        if args.typed().is_some() {
            return Err(Failure::input("--input-format events takes the prompts from stdin: leave PROMPT out"));
        }
        if args.output_format == OutputFormat::Json {
            return Err(Failure::input("-o json is one object for one prompt: use -o events or -o stream-json"));
        }
        if !is_piped {
            return Err(Failure::input("--input-format events reads lines from a pipe or a file on stdin"));
        }
        let mut all = Self::new(io::stdin());
        match all.next().await? {
            Some(it) => Ok((it, all)),
            None => Err(Failure::input(format!("stdin has no message of the user, and {} other events", all.n_others))),
        }
    }

    /// `Ok(None)`: the stream has ended.
    ///
    /// # Errors
    /// For a line that is no event, with its number.
    pub async fn next(&mut self) -> Result<Option<Prompt>, Failure> {
        while let Some(line) = self.lines.recv().await {
            self.n_lines += 1;
            let wrong = |it: &str| {
                Failure::input(format!("line {} of stdin is no event: {}", self.n_lines, clean_line(it, MAX_WHY)))
            };
            let line = line.map_err(|it| wrong(&it))?;
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            match read_event(&line).map_err(|it| wrong(&it))? {
                Some(it) => return Ok(Some(it)),
                None => self.n_others += 1,
            }
        }
        Ok(None)
    }
}

fn read_lines(reader: impl Read, to: &mpsc::Sender<Result<Vec<u8>, String>>) {
    let mut reader = BufReader::new(reader);
    loop {
        let mut line = Vec::new();
        let res = match reader.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(_) if line.len() as u64 > MAX_LINE => Err("it has more than 8 MiB".to_owned()),
            Ok(_) => Ok(line),
            Err(error) => Err(error.to_string()),
        };
        let is_last = res.is_err();
        if to.blocking_send(res).is_err() || is_last {
            return;
        }
    }
}

/// `None`: an event of another kind, such as the answers in a stream that was recorded.
fn read_event(line: &[u8]) -> Result<Option<Prompt>, String> {
    let event: Value = serde_json::from_slice(line).map_err(|it| it.to_string())?;
    let text = |key: &str| event.get(key).and_then(Value::as_str);
    if text("type").ok_or("it has no `type`")? != "message" || text("role") != Some("user") {
        return Ok(None);
    }
    let content = match event.get("content") {
        // The short form, for those who write it by hand.
        Some(Value::String(text)) => vec![Part::text(text.as_str())],
        Some(it) => Vec::<Part>::deserialize(it).map_err(|it| format!("content: {it}"))?,
        None => return Err("it has no `content`".to_owned()),
    };
    let mut prompt = Prompt::default();
    for part in content {
        match part {
            Part::Text { text, .. } if prompt.text.is_empty() => prompt.text = text,
            Part::Text { text, .. } => prompt.text = format!("{}\n\n{text}", prompt.text),
            Part::Thought { .. } => return Err("a user has no `thought`".to_owned()),
            Part::Media { mime, data, uri } => {
                prompt.attachments.push(Attachment::Media { mime: mime.into(), data: data.to_string(), uri });
            }
            Part::Reference { uri, text: Some(text), .. } => prompt.attachments.push(Attachment::Text { uri, text }),
            Part::Reference { uri, .. } => prompt.attachments.push(Attachment::Link { uri }),
        }
    }
    match prompt.text.trim().is_empty() && prompt.attachments.is_empty() {
        true => Err("its `content` is empty".to_owned()),
        false => Ok(Some(prompt)),
    }
}

#[cfg(test)]
mod tests {
    use super::EventPrompts;

    /// The prompts of a stream, or what is wrong with it.
    async fn prompts(stream: &'static str) -> Vec<String> {
        let mut all = EventPrompts::new(stream.as_bytes());
        let mut res = Vec::new();
        loop {
            match all.next().await {
                Ok(Some(it)) => res.push(format!("{} + {}", it.text, it.attachments.len())),
                Ok(None) => return res,
                Err(it) => {
                    res.push(it.message);
                    return res;
                }
            }
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn messages_of_the_user_are_prompts() {
        let stream = concat!(
            r#"{"type":"message","role":"user","content":"one"}"#,
            "\n\n",
            r#"{"type":"agent_start","id":"s-1"}"#,
            "\n",
            r#"{"type":"message","role":"agent","content":[{"type":"text","text":"no"}]}"#,
            "\n",
            r#"{"id":"s-2","type":"message","role":"user","content":[{"type":"text","text":"two"},{"type":"text","text":"parts"},{"type":"media","mimeType":"image/png","data":"AAAA"},{"type":"reference","uri":"file:///w/a"}]}"#,
        );
        assert_eq!(prompts(stream).await, ["one + 0", "two\n\nparts + 2"]);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_is_no_event_is_said_with_its_line() {
        for (stream, expected) in [
            ("\nhello", "line 2 of stdin is no event: expected value"),
            ("{}", "it has no `type`"),
            (r#"{"type":"message","role":"user"}"#, "it has no `content`"),
            (r#"{"type":"message","role":"user","content":[]}"#, "its `content` is empty"),
            (r#"{"type":"message","role":"user","content":[{"type":"smell"}]}"#, "content: unknown variant `smell`"),
        ] {
            let found = prompts(stream).await.join("; ");
            assert!(found.contains(expected), "{found}");
        }
    }
}
