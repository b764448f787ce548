//! The prompt of `castor run`: arguments and piped text.

use std::{io::Read, thread, time::Duration};

use tokio::{sync::mpsc, time};

use super::failure::Failure;

/// With a prompt on the command line, how long to wait for the first byte of stdin: a script may have left us an open
/// pipe that nobody writes to.
const FIRST_BYTE: Duration = Duration::from_millis(500);
/// As Gemini CLI.
const MAX_PIPED: usize = 8 << 20;
const USAGE: &str = "nothing to ask. Usage: castor run PROMPT, or pipe text into castor run";

/// What is said where stdin is not all in the prompt.
const CUT: &str = "stdin was cut after 8 MiB";
const SILENT: &str =
    "nothing came on stdin within half a second: it is left out. Without a prompt on the command line it is waited for";

/// A text, and what is to be said of stdin when something of it was left out.
type PromptText = (String, Option<&'static str>);

/// The prompt, and what is to be said of stdin.
pub async fn read(typed: Option<&str>, piped: Option<impl Read + Send + 'static>) -> Result<PromptText, Failure> {
    read_within(FIRST_BYTE, typed, piped).await
}

async fn read_within(
    patience: Duration,
    typed: Option<&str>,
    piped: Option<impl Read + Send + 'static>,
) -> Result<PromptText, Failure> {
    let typed = typed.filter(|it| !it.trim().is_empty());
    let (piped, cut) = match piped {
        Some(reader) => read_piped(reader, typed.map(|_| patience)).await?,
        None => (String::new(), None),
    };
    let piped = piped.trim_end();
    match (typed, piped) {
        (None, "") => Err(Failure::input(USAGE)),
        (None, piped) => Ok((piped.to_owned(), cut)),
        (Some(typed), "") => Ok((typed.to_owned(), cut)),
        // A slash command is one only at the very start.
        (Some(typed), piped) if typed.starts_with('/') => Ok((format!("{typed}\n\n{piped}"), cut)),
        (Some(typed), piped) => Ok((format!("{piped}\n\n{typed}"), cut)),
    }
}

async fn read_piped(reader: impl Read + Send + 'static, patience: Option<Duration>) -> Result<PromptText, Failure> {
    let (to, mut chunks) = mpsc::channel::<std::io::Result<Vec<u8>>>(4);
    // A thread that may be left behind in its read.
    thread::spawn(move || read_chunks(reader, &to));
    let mut bytes = Vec::new();
    let mut next = match patience {
        Some(patience) => match time::timeout(patience, chunks.recv()).await {
            Ok(it) => it,
            Err(_) => return Ok((String::new(), Some(SILENT))),
        },
        None => chunks.recv().await,
    };
    while let Some(chunk) = next {
        bytes.extend(chunk.map_err(|it| Failure::input(format!("stdin cannot be read: {it}")))?);
        if bytes.len() > MAX_PIPED {
            bytes.truncate(MAX_PIPED);
            return Ok((String::from_utf8_lossy(&bytes).into_owned(), Some(CUT)));
        }
        next = chunks.recv().await;
    }
    Ok((String::from_utf8_lossy(&bytes).into_owned(), None))
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
    use std::io::{self, Read};

    use super::{CUT, Duration, MAX_PIPED, SILENT, read, read_within};

    #[tokio::test(flavor = "current_thread")]
    async fn joins_what_was_piped_and_typed() {
        for (typed, piped, expected) in [
            (Some("ask"), None, "ask"),
            (Some("ask"), Some(""), "ask"),
            (Some("ask"), Some("text\n"), "text\n\nask"),
            (Some("/note"), Some("text\n"), "/note\n\ntext"),
            (None, Some("text\n"), "text"),
        ] {
            assert_eq!(read(typed, piped.map(str::as_bytes)).await.unwrap().0, expected);
        }
        for piped in [None, Some(" \n")] {
            assert_eq!(read(Some(" "), piped.map(str::as_bytes)).await.unwrap_err().exit.code(), 42);
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn reads_no_more_than_it_may() {
        let (prompt, cut) = read(None, Some(io::repeat(b'x').take(9 << 20))).await.unwrap();
        assert_eq!((prompt.len(), cut), (MAX_PIPED, Some(CUT)));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_pipe_that_is_silent_is_told() {
        let (silent, _writer) = io::pipe().unwrap();
        assert_eq!(
            read_within(Duration::ZERO, Some("ask"), Some(silent)).await.unwrap(),
            ("ask".to_owned(), Some(SILENT))
        );
    }
}
