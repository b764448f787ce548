//! The transport of a server that is a process: one message a line.

use std::collections::VecDeque;

use bytes::BytesMut;
use rmcp::{
    RoleClient,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::{Transport, async_rw::AsyncRwTransport},
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, Empty, empty};

use crate::mcp::{
    incoming::IncomingReader,
    transport::line_limit::{LineOverflow, MAX_LINE},
};
use castor_wire::jsonrpc::frame::{Frame, Framer};

/// Read at once, in bytes.
const PIECE: usize = 16 << 10;

pub(in crate::mcp) struct LineTransport<R, W: AsyncWrite> {
    /// Only writes.
    writer: AsyncRwTransport<RoleClient, Empty, W>,
    output: R,
    lines: Framer,
    has_ended: bool,
    reader: IncomingReader,
    /// What was read already.
    messages: VecDeque<RxJsonRpcMessage<RoleClient>>,
    overflow: LineOverflow,
}

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(in crate::mcp) fn new(output: R, input: W, overflow: LineOverflow) -> Self {
        Self {
            writer: AsyncRwTransport::new_client(empty(), input),
            output,
            lines: Framer::new(MAX_LINE),
            has_ended: false,
            reader: IncomingReader::default(),
            messages: VecDeque::new(),
            overflow,
        }
    }
}

impl<R, W> Transport<RoleClient> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.reader.note_sent(&item);
        self.writer.send(item)
    }

    /// May be dropped at any time: what was read is kept.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if let Some(it) = self.messages.pop_front() {
                return Some(it);
            }
            match self.lines.next() {
                Some(Frame::Line(line)) => self.messages.extend(self.reader.read(&line)),
                // Whoever waits for this answer would wait without end.
                Some(Frame::TooLong) => {
                    self.overflow.note();
                    return None;
                }
                None if self.has_ended => return None,
                None => {
                    let mut piece = BytesMut::with_capacity(PIECE);
                    self.has_ended = !matches!(self.output.read_buf(&mut piece).await, Ok(1..));
                    self.lines.push(&piece);
                    if self.has_ended {
                        // A last line without its end.
                        self.lines.push(b"\n");
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.writer.close().await
    }
}

#[cfg(test)]
mod tests {
    use rmcp::transport::Transport;

    use super::{LineOverflow, LineTransport};
    use castor_wire::jsonrpc::frame::Framer;

    #[tokio::test]
    async fn a_line_without_end_ends_the_connection() {
        let line = |n: usize| {
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"x":"{}"}}}}"#, "x".repeat(n))
        };
        for (text, n_messages, is_over) in [
            (String::new(), 0, false),
            (line(1), 1, false),
            (format!("noise\n\n{}\r\n{}", line(1), line(2)), 2, false),
            (format!("{}\n{}\n{}", line(1), line(500), line(1)), 1, true),
            (format!("{}\n{}", line(1), "x".repeat(500)), 1, true),
        ] {
            let overflow = LineOverflow::default();
            let mut it = LineTransport::new(text.as_bytes(), tokio::io::sink(), overflow.clone());
            it.lines = Framer::new(200);
            let mut got = 0;
            while it.receive().await.is_some() {
                got += 1;
            }
            assert_eq!((got, overflow.happened()), (n_messages, is_over), "{text}");
        }
    }
}
