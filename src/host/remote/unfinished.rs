//! Memory limit of unfinished messages, of all WebSockets together.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::MAX_MESSAGE;

/// Of all sockets.
const MAX_UNFINISHED: usize = 4 * MAX_MESSAGE;
/// Of each socket, so much is not counted: small messages are always taken.
const FREE: usize = 64 << 10;
/// Of a frame of a client with few bytes.
const FRAME_HEAD: usize = 6;

/// What all sockets share.
pub struct UnfinishedBytes {
    n: AtomicUsize,
    max: usize,
}

/// The part of one socket.
pub struct SocketBytes {
    all: Arc<UnfinishedBytes>,
    n: AtomicUsize,
}

/// A socket whose bytes count until their message has ended. It fails with `QuotaExceeded` where there is no room.
pub struct CountedSocket<S> {
    inner: S,
    bytes: Arc<SocketBytes>,
}

impl Default for UnfinishedBytes {
    fn default() -> Self {
        Self { n: AtomicUsize::new(0), max: MAX_UNFINISHED }
    }
}

impl SocketBytes {
    pub fn new(all: Arc<UnfinishedBytes>) -> Arc<Self> {
        Arc::new(Self { all, n: AtomicUsize::new(0) })
    }

    fn counted(n: usize) -> usize {
        n.saturating_sub(FREE)
    }

    /// Tells whether there is room.
    fn add(&self, more: usize) -> bool {
        let before = self.n.fetch_add(more, Ordering::Relaxed);
        let counted = Self::counted(before + more) - Self::counted(before);
        counted == 0 || self.all.n.fetch_add(counted, Ordering::Relaxed) + counted <= self.all.max
    }

    fn set(&self, n: usize) {
        let before = self.n.swap(n, Ordering::Relaxed);
        self.all.n.fetch_sub(Self::counted(before) - Self::counted(n), Ordering::Relaxed);
    }

    /// A message is taken care of. What was read of the next one is little.
    pub fn end_message(&self) {
        self.set(0);
    }

    /// A ping or a pong, which may come in the middle of a message.
    pub fn end_control_frame(&self, len: usize) {
        self.set(self.n.load(Ordering::Relaxed).saturating_sub(len + FRAME_HEAD));
    }
}

impl Drop for SocketBytes {
    fn drop(&mut self) {
        self.end_message();
    }
}

impl<S> CountedSocket<S> {
    pub fn new(inner: S, bytes: Arc<SocketBytes>) -> Self {
        Self { inner, bytes }
    }

    /// To read what does not count.
    pub fn inner_mut(&mut self) -> &mut S {
        &mut self.inner
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CountedSocket<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        Poll::Ready(match self.bytes.add(buf.filled().len().saturating_sub(before)) {
            true => Ok(()),
            false => Err(io::ErrorKind::QuotaExceeded.into()),
        })
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountedSocket<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, atomic::Ordering};

    use super::{FREE, SocketBytes, UnfinishedBytes};

    #[test]
    fn large_messages_share_what_there_is_and_small_ones_do_not_count() {
        let all = Arc::new(UnfinishedBytes { max: 1000, ..UnfinishedBytes::default() });
        let [one, two, small] = [(); 3].map(|()| SocketBytes::new(all.clone()));
        assert!(one.add(FREE) && one.add(900) && two.add(FREE + 100));
        assert!(!two.add(1), "it is full");
        assert!(small.add(FREE), "and this one is served all the same");
        one.end_message();
        assert!(two.add(899), "there is room again");
        drop(two);
        assert_eq!(all.n.load(Ordering::Relaxed), 0);
        // Control frames within a message neither add to it nor hide it.
        assert!(one.add(FREE + 500));
        for _ in 0..1000 {
            assert!(one.add(14));
            one.end_control_frame(8);
        }
        assert_eq!(all.n.load(Ordering::Relaxed), 500);
    }
}
