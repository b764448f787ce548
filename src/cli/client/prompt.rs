//! The prompt of `castor run`: arguments, what is piped into stdin, and attachments, as ACP content blocks.

use std::{borrow::Cow, io::Read, pin::pin, thread, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time};

use super::media::{Contents, classify};
use castor_base::file_uri;
use castor_client::{failure::Failure, opening::piped_block};
use castor_wire::acp::client::PromptAbilities;

/// When to say that stdin is waited for: a script may have left an open pipe that nobody writes to.
pub const PATIENCE: Duration = Duration::from_millis(500);
/// As Gemini CLI.
const MAX_PIPED: usize = 8 << 20;
const USAGE: &str = "nothing to ask. Usage: castor run PROMPT, or pipe text into castor run";
const CUT: &str = "stdin was cut after 8 MiB";
const WAITING: &str = "waiting for stdin to end… (`--no-stdin` does not read it)";

/// A prompt before the agent's capabilities are known.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// Text of stdin, before the typed words: a block of its own, as the words name the session.
    pub piped: Option<String>,
    pub text: String,
    pub attachments: Vec<Attachment>,
}

/// Something that goes with the text of a prompt.
#[derive(Debug, PartialEq, Eq)]
pub enum Attachment {
    /// Bytes in base64. Without a URI they came from stdin.
    Media { mime: Cow<'static, str>, data: String, uri: Option<String> },
    /// A text file, or the list of a folder.
    Text { uri: String, text: String },
    /// The agent reads it by its own rules.
    Link { uri: String },
}

impl Prompt {
    /// What the user says, as one text.
    pub fn in_words(&self) -> String {
        self.piped.as_ref().map_or_else(|| self.text.clone(), |it| format!("{it}\n\n{}", self.text))
    }

    /// Content blocks for an agent. What it does not take becomes a link.
    ///
    /// # Errors
    /// For media on stdin that the agent does not take: there is nothing to link to.
    pub fn into_blocks(self, can: PromptAbilities) -> Result<Vec<Value>, Failure> {
        // The empty line parts the two where an agent joins them.
        let piped = self.piped.map(|it| it + "\n\n");
        let piped = piped.map(|it| Ok(piped_block(&it)));
        let attachments = self.attachments.into_iter().map(|it| it.into_block(can));
        piped.into_iter().chain([Ok(json!({"type": "text", "text": self.text}))]).chain(attachments).collect()
    }
}

impl Attachment {
    fn into_block(self, can: PromptAbilities) -> Result<Value, Failure> {
        let resource = |it: Value| json!({"type": "resource", "resource": it});
        Ok(match self {
            Self::Media { mime, data, uri } if can.image && mime.starts_with("image/") => {
                json!({"type": "image", "mimeType": mime, "data": data, "uri": uri})
            }
            Self::Media { mime, data, .. } if can.audio && mime.starts_with("audio/") => {
                json!({"type": "audio", "mimeType": mime, "data": data})
            }
            Self::Media { mime, data, uri } if can.embedded_context => {
                resource(json!({"uri": uri.unwrap_or_else(|| "stdin:".to_owned()), "mimeType": mime, "blob": data}))
            }
            Self::Media { mime, uri: None, .. } => {
                return Err(Failure::input(format!("stdin is {mime}, and this agent does not accept that")));
            }
            Self::Text { uri, text } if can.embedded_context => resource(json!({"uri": uri, "text": text})),
            Self::Media { uri: Some(uri), .. } | Self::Text { uri, .. } | Self::Link { uri } => {
                json!({"type": "resource_link", "name": name_of(&uri), "uri": uri})
            }
        })
    }
}

fn name_of(uri: &str) -> String {
    let shown = file_uri::describe_uri(uri);
    shown.trim_end_matches('/').rsplit('/').next().unwrap_or(uri).to_owned()
}

/// The prompt, and what is to be said of stdin. `on_wait` gets what to say when stdin has not ended after `patience`.
pub async fn read(
    typed: Option<&str>,
    piped: Option<impl Read + Send + 'static>,
    patience: Duration,
    on_wait: impl FnMut(&str),
) -> Result<(Prompt, Option<String>), Failure> {
    let typed = typed.filter(|it| !it.trim().is_empty());
    let (bytes, is_cut) = match piped {
        Some(reader) => read_to_end(reader, patience, on_wait).await?,
        None => (Vec::new(), false),
    };
    let mut note = is_cut.then(|| CUT.to_owned());
    let piped = match classify(&bytes, is_cut) {
        Contents::Text(it) => it,
        Contents::Damaged(text, n) => {
            let what = if n == 1 { "1 byte of stdin is".to_owned() } else { format!("{n} bytes of stdin are") };
            let cut = note.map(|it| format!("; {it}")).unwrap_or_default();
            note = Some(format!("{what} not UTF-8; the model sees \u{fffd} there{cut}"));
            text
        }
        Contents::Media(mime) => return ask_about(typed, mime, &bytes, is_cut).map(|it| (it, None)),
        Contents::Binary(why) => {
            let how = "pipe UTF-8 text, an image, a PDF or audio";
            return Err(Failure::input(format!("stdin is neither text nor media ({why}): {how}")));
        }
    };
    let (piped, text) = match (typed, piped.trim_end()) {
        (None, "") => return Err(Failure::input(USAGE)),
        (None, piped) => (None, piped.to_owned()),
        (Some(typed), "") => (None, typed.to_owned()),
        // A slash command is one only at the very start.
        (Some(typed), piped) if typed.starts_with('/') => (None, format!("{typed}\n\n{piped}")),
        (Some(typed), piped) => (Some(piped.to_owned()), typed.to_owned()),
    };
    Ok((Prompt { piped, text, attachments: Vec::new() }, note))
}

/// Half an image is none, and one without a question asks nothing.
fn ask_about(typed: Option<&str>, mime: &'static str, bytes: &[u8], is_cut: bool) -> Result<Prompt, Failure> {
    if is_cut {
        return Err(Failure::input(format!("stdin is {mime} of more than 8 MiB: make it smaller")));
    }
    let Some(typed) = typed else {
        return Err(Failure::input(format!("stdin is {mime}: say what to do with it, as in castor run PROMPT < FILE")));
    };
    let media = Attachment::Media { mime: mime.into(), data: BASE64_STANDARD.encode(bytes), uri: None };
    Ok(Prompt { piped: None, text: typed.to_owned(), attachments: vec![media] })
}

/// All bytes until the end, or the first of too many.
async fn read_to_end(
    reader: impl Read + Send + 'static,
    patience: Duration,
    mut on_wait: impl FnMut(&str),
) -> Result<(Vec<u8>, bool), Failure> {
    let (to, mut chunks) = mpsc::channel::<std::io::Result<Vec<u8>>>(4);
    // A thread that may be left behind in its read.
    thread::spawn(move || read_chunks(reader, &to));
    let mut note = pin!(time::sleep(patience));
    let (mut bytes, mut is_noted) = (Vec::new(), false);
    loop {
        tokio::select! {
            biased;
            it = chunks.recv() => match it {
                None => return Ok((bytes, false)),
                Some(it) => bytes.extend(it.map_err(|it| Failure::input(format!("stdin cannot be read: {it}")))?),
            },
            () = &mut note, if !is_noted => {
                is_noted = true;
                on_wait(WAITING);
            }
        }
        if bytes.len() > MAX_PIPED {
            bytes.truncate(MAX_PIPED);
            return Ok((bytes, true));
        }
    }
}

fn read_chunks(mut reader: impl Read, to: &mpsc::Sender<std::io::Result<Vec<u8>>>) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let chunk = match reader.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => Ok(buffer.get(..count).unwrap_or_default().to_vec()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let is_last = chunk.is_err();
        if to.blocking_send(chunk).is_err() || is_last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{self, Read, Write},
        time::Duration,
    };

    use serde_json::json;

    use super::{Attachment, CUT, MAX_PIPED, Prompt, PromptAbilities, WAITING, read};
    use castor_client::failure::Failure;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

    async fn read_all(
        typed: Option<&str>,
        piped: Option<impl Read + Send + 'static>,
    ) -> Result<(Prompt, Option<String>), Failure> {
        read(typed, piped, Duration::MAX, |_| panic!("nothing is waited for")).await
    }

    fn all_of_it() -> PromptAbilities {
        PromptAbilities { image: true, audio: true, embedded_context: true }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn joins_what_was_piped_and_typed() {
        for (typed, piped, expected) in [
            (Some("ask"), None, "ask"),
            (Some("ask"), Some(""), "ask"),
            (Some("ask"), Some("text\n"), "text\n\nask"),
            (Some("/note"), Some("text\n"), "/note\n\ntext"),
            (None, Some("text\n"), "text"),
        ] {
            let said = read_all(typed, piped.map(str::as_bytes)).await.unwrap().0.in_words();
            assert_eq!(said, expected);
        }
        for piped in [None, Some(" \n")] {
            assert_eq!(read_all(Some(" "), piped.map(str::as_bytes)).await.unwrap_err().exit.code(), 42);
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn reads_no_more_than_it_may() {
        let (prompt, note) = read_all(None, Some(io::repeat(b'x').take(9 << 20))).await.unwrap();
        assert_eq!((prompt.text.len(), note.as_deref()), (MAX_PIPED, Some(CUT)));
        let large = read_all(Some("what?"), Some(PNG.chain(io::repeat(0).take(9 << 20)))).await.unwrap_err();
        assert_eq!(large.exit.code(), 42);
        assert!(large.message.contains("8 MiB"), "{}", large.message);
    }

    /// What comes late is part of the prompt, and somebody is told what is waited for.
    #[tokio::test(flavor = "current_thread")]
    async fn late_stdin_is_waited_for() {
        let (reader, writer) = io::pipe().unwrap();
        let (mut writer, mut noted) = (Some(writer), Vec::new());
        let on_wait = |it: &str| {
            noted.push(it.to_owned());
            if let Some(mut it) = writer.take() {
                it.write_all(b"E0308").unwrap();
            }
        };
        let (prompt, note) = read(Some("explain"), Some(reader), Duration::ZERO, on_wait).await.unwrap();
        assert_eq!((prompt.piped.as_deref(), prompt.text.as_str(), note), (Some("E0308"), "explain", None));
        let texts = [
            json!({"type": "text", "text": "E0308\n\n", "_meta": {"castor": {"piped": true}}}),
            json!({"type": "text", "text": "explain"}),
        ];
        assert_eq!(prompt.into_blocks(all_of_it()).unwrap(), texts, "what is piped comes first");
        assert_eq!(noted, [WAITING]);
        assert!(WAITING.contains("--no-stdin"));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn media_are_content_blocks() {
        let (prompt, _) = read_all(Some("what?"), Some(PNG)).await.unwrap();
        let image = json!({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgoAAAANSUhEUg==", "uri": null});
        assert_eq!(prompt.into_blocks(all_of_it()).unwrap(), [json!({"type": "text", "text": "what?"}), image]);
        let (prompt, _) = read_all(Some("what?"), Some(&b"%PDF-1.4"[..])).await.unwrap();
        let pdf = json!({"uri": "stdin:", "mimeType": "application/pdf", "blob": "JVBERi0xLjQ="});
        let blocks = prompt.into_blocks(all_of_it()).unwrap();
        assert_eq!(blocks.last().unwrap(), &json!({"type": "resource", "resource": pdf}));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_cannot_be_sent_is_refused() {
        let refused = |it: Failure, why: &str| {
            assert_eq!(it.exit.code(), 42);
            assert!(it.message.contains(why), "{}", it.message);
        };
        let (prompt, _) = read_all(Some("what?"), Some(PNG)).await.unwrap();
        refused(prompt.into_blocks(PromptAbilities::default()).unwrap_err(), "does not accept");
        refused(read_all(None, Some(PNG)).await.unwrap_err(), "castor run PROMPT < FILE");
        refused(read_all(Some("what?"), Some(&b"a\0b"[..])).await.unwrap_err(), "a NUL byte stands at offset 1");
        refused(read_all(Some("what?"), Some(&b"\xff\xfe\xfd\xe9"[..])).await.unwrap_err(), "byte 0xff at offset 0");
        let (prompt, note) = read_all(Some("why?"), Some(&b"a.c: caf\xe9: error\n"[..])).await.unwrap();
        assert_eq!(prompt.piped.as_deref(), Some("a.c: caf\u{fffd}: error"));
        assert_eq!(note.as_deref(), Some("1 byte of stdin is not UTF-8; the model sees \u{fffd} there"));
    }

    #[test]
    fn capabilities_choose_the_block() {
        let blocks = |can| {
            let file = |name: &str| Some(format!("file:///w/{name}"));
            let attachments = vec![
                Attachment::Text { uri: "file:///w/a.rs".to_owned(), text: "fn".to_owned() },
                Attachment::Media { mime: "image/png".into(), data: "eA==".to_owned(), uri: file("a.png") },
                Attachment::Link { uri: "file:///w/.env".to_owned() },
            ];
            let blocks = Prompt { attachments, ..Prompt::default() }.into_blocks(can).unwrap();
            blocks.iter().map(|it| it["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(blocks(all_of_it()), ["text", "resource", "image", "resource_link"]);
        let links = ["text", "resource_link", "resource_link", "resource_link"];
        assert_eq!(blocks(PromptAbilities::default()), links);
    }
}
