//! The output of a server's process: a message without end ends the connection.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, ReadBuf};

/// Of one message, in bytes; servers on the network have as much. rmcp would drop a longer one and go on: whoever waits
/// for the answer would wait without end.
const MAX_LINE: usize = 16 << 20;
pub(super) const TOO_LONG: &str = "it sent a message of more than 16 MB";

/// Whether it was too much for once. All clones say the same.
#[derive(Clone, Default)]
pub(super) struct LineOverflow(Arc<AtomicBool>);

impl LineOverflow {
    pub(super) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn happened(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

pub(super) struct LimitedLines<R> {
    inner: R,
    /// Bytes of the line so far.
    length: usize,
    max: usize,
    overflow: LineOverflow,
}

impl<R> LimitedLines<R> {
    pub(super) fn new(inner: R, overflow: LineOverflow) -> Self {
        Self { inner, length: 0, max: MAX_LINE, overflow }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LimitedLines<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let read = buf.filled().get(before..).unwrap_or_default();
        // What is read at once is far shorter than a line may be.
        self.length = match read.iter().rposition(|it| *it == b'\n') {
            Some(at) => read.len() - at - 1,
            None => self.length + read.len(),
        };
        if self.length > self.max {
            self.overflow.note();
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, TOO_LONG)));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::{LimitedLines, LineOverflow};

    #[tokio::test]
    async fn only_one_line_counts() {
        for (text, is_over) in [("aaaa\nbbbb\ncc", false), ("aaaa\nbbbbb", true), ("aaaaa", true), ("", false)] {
            let overflow = LineOverflow::default();
            let mut lines = LimitedLines { max: 4, ..LimitedLines::new(text.as_bytes(), overflow.clone()) };
            let mut one = [0; 3];
            let mut read = 0;
            let end = loop {
                match lines.read(&mut one).await {
                    Ok(0) => break Ok(()),
                    Ok(n) => read += n,
                    Err(it) => break Err(it),
                }
            };
            assert_eq!((end.is_err(), overflow.happened()), (is_over, is_over), "{text}");
            assert!(is_over || read == text.len(), "{text}");
        }
    }
}
