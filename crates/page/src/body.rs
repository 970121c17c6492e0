//! Bodies of answers: bytes that are there, or that are written while they are sent.

use std::convert::Infallible;
use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::sync::mpsc;

/// The body of an answer, for hyper.
#[derive(Debug)]
pub enum PageBody {
    /// Bytes, until they are sent.
    Whole(Option<Bytes>),
    /// Pieces of a writer.
    Pieces(mpsc::Receiver<Bytes>),
}

impl PageBody {
    /// A body of these bytes.
    pub fn whole(bytes: Bytes) -> PageBody {
        PageBody::Whole(Some(bytes))
    }
}

impl Body for PageBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match self.get_mut() {
            PageBody::Whole(bytes) => Poll::Ready(bytes.take()),
            PageBody::Pieces(pieces) => pieces.poll_recv(context),
        };
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, PageBody::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            PageBody::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            PageBody::Pieces(_) => SizeHint::default(),
        }
    }
}

/// So many bytes are sent at a time.
const PIECE_BYTES: usize = 64 << 10;
/// So many pieces wait until the client has received those before.
const PIECES_MAX: usize = 4;

/// Sends a body while it is written. Waits if the client receives slowly, and fails if it has gone.
#[derive(Debug)]
pub struct BodyWriter {
    pieces: mpsc::Sender<Bytes>,
    buffer: Vec<u8>,
}

impl BodyWriter {
    /// Creates a writer, and the body that it writes.
    pub fn new() -> (BodyWriter, PageBody) {
        let (pieces, received) = mpsc::channel(PIECES_MAX);
        let writer = BodyWriter {
            pieces,
            buffer: Vec::new(),
        };
        (writer, PageBody::Pieces(received))
    }

    fn send(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let piece = Bytes::from(std::mem::take(&mut self.buffer));
        let sent = self.pieces.blocking_send(piece);
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// Called on threads that may block.
impl Write for BodyWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PIECE_BYTES {
            self.send()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()
    }
}
