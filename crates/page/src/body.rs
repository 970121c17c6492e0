//! Bodies of HTTP messages. A response is either complete or streamed while a handler writes it. A
//! request is read while it is received.

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::BodyExt;
use hyper::body::{Body, Buf, Bytes, Frame, Incoming, SizeHint};
use tokio::sync::mpsc;

use crate::interrupt::InterruptOnDrop;

/// The body of a response, for hyper.
#[derive(Debug)]
pub enum PageBody {
    /// A complete body. `None` after it was sent.
    Whole(Option<Bytes>),
    /// The chunks of a [`BodyWriter`]. If the body is dropped before the last chunk was sent, the
    /// guard interrupts the commands of the request.
    Streamed {
        /// The first chunk, if [`PageBody::begin`] has received it.
        first: Option<Bytes>,
        /// The chunks that were written.
        chunks: mpsc::Receiver<io::Result<Bytes>>,
        /// `None` if the request has no commands to interrupt.
        guard: Option<InterruptOnDrop>,
    },
}

impl PageBody {
    /// Returns a complete body.
    pub fn whole(bytes: Bytes) -> PageBody {
        PageBody::Whole(Some(bytes))
    }

    /// Waits for the first chunk of a streamed body, so that an error before it can be sent as a
    /// response of its own.
    ///
    /// # Errors
    /// Fails if the writer has failed before its first chunk.
    pub async fn begin(&mut self) -> io::Result<()> {
        if let PageBody::Streamed { first, chunks, .. } = self {
            *first = chunks.recv().await.transpose()?;
        }
        Ok(())
    }
}

impl Body for PageBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let next = match self.get_mut() {
            PageBody::Whole(bytes) => Poll::Ready(bytes.take().map(Ok)),
            PageBody::Streamed {
                first,
                chunks,
                guard,
            } => {
                let next = match first.take() {
                    Some(first) => Poll::Ready(Some(Ok(first))),
                    None => chunks.poll_recv(context),
                };
                if matches!(next, Poll::Ready(None))
                    && let Some(guard) = guard.take()
                {
                    guard.disarm();
                }
                next
            }
        };
        next.map(|bytes| bytes.map(|bytes| bytes.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, PageBody::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            PageBody::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            PageBody::Streamed { .. } => SizeHint::default(),
        }
    }
}

/// The number of bytes after which a chunk is sent.
const PIECE_BYTES: usize = 64 << 10;
/// The number of chunks that wait for the client. The writer blocks if the queue is full.
const CHUNKS_MAX: usize = 4;

/// Sends a body while it is written. Blocks if the client receives slowly. Fails if the client has
/// disconnected.
#[derive(Debug)]
pub struct BodyWriter {
    sender: mpsc::Sender<io::Result<Bytes>>,
    buffer: Buffer,
}

/// The content encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyEncoding {
    /// The bytes as they are written.
    Identity,
    /// Compressed by gzip.
    Gzip,
}

/// Bytes that were written but not sent.
#[derive(Debug)]
enum Buffer {
    Plain(Vec<u8>),
    Compressed(Box<GzEncoder<Vec<u8>>>),
}

impl Buffer {
    fn bytes(&mut self) -> &mut Vec<u8> {
        match self {
            Buffer::Plain(bytes) => bytes,
            Buffer::Compressed(encoder) => encoder.get_mut(),
        }
    }
}

impl BodyWriter {
    /// Creates a writer and its body. If the body is dropped before the end, `guard` interrupts the
    /// commands of the request.
    pub fn new(encoding: BodyEncoding, guard: Option<InterruptOnDrop>) -> (BodyWriter, PageBody) {
        let (sender, chunks) = mpsc::channel(CHUNKS_MAX);
        let buffer = match encoding {
            BodyEncoding::Identity => Buffer::Plain(Vec::new()),
            BodyEncoding::Gzip => {
                Buffer::Compressed(Box::new(GzEncoder::new(Vec::new(), Compression::fast())))
            }
        };
        (
            BodyWriter { sender, buffer },
            PageBody::Streamed {
                first: None,
                chunks,
                guard,
            },
        )
    }

    /// Sends the remaining bytes.
    ///
    /// # Errors
    /// Fails if the client has disconnected.
    pub fn finish(mut self) -> io::Result<()> {
        if let Buffer::Compressed(encoder) = &mut self.buffer {
            encoder.try_finish()?;
        }
        self.send()
    }

    /// Ends the body with an error. The connection is closed without the end of the body, so that
    /// the client does not take the part that it has received for all of it.
    pub fn abort(self, error: io::Error) {
        // Fails if the client has disconnected.
        let _ = self.sender.blocking_send(Err(error));
    }

    fn send(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(self.buffer.bytes());
        if bytes.is_empty() {
            return Ok(());
        }
        let sent = self.sender.blocking_send(Ok(bytes.into()));
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// Blocks, so it must run on a thread that may block.
impl Write for BodyWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.buffer {
            Buffer::Plain(buffer) => buffer.extend_from_slice(bytes),
            Buffer::Compressed(encoder) => encoder.write_all(bytes)?,
        }
        if self.buffer.bytes().len() >= PIECE_BYTES {
            self.send()?;
        }
        Ok(bytes.len())
    }

    /// Sends all bytes written so far, so that the browser can render them.
    fn flush(&mut self) -> io::Result<()> {
        if let Buffer::Compressed(encoder) = &mut self.buffer {
            encoder.flush()?;
        }
        self.send()
    }
}

/// A request fails if the browser sends nothing for this long.
const RECEIVE_TIME_MAX: Duration = Duration::from_secs(60);
/// The time for which the rest of a body is received after its handler has stopped reading.
const DISCARD_TIME_MAX: Duration = Duration::from_secs(5);

/// Reads the body of a request while it is received. Backpressure stops the browser if nothing is
/// read.
#[derive(Debug)]
pub struct BodyReader {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    piece: Bytes,
    /// The number of bytes to come, from `Content-Length`.
    remaining: Option<u64>,
}

impl BodyReader {
    /// Receives a body on a task of its own. Must be called within the runtime.
    pub fn new(body: Incoming) -> BodyReader {
        let remaining = body.size_hint().exact();
        let (sender, pieces) = mpsc::channel(CHUNKS_MAX);
        tokio::spawn(receive(body, sender));
        BodyReader {
            pieces,
            piece: Bytes::new(),
            remaining,
        }
    }

    /// Waits for the next chunk. Returns `false` at the end.
    fn receive_piece(&mut self) -> io::Result<bool> {
        match self.pieces.blocking_recv() {
            Some(piece) => self.piece = piece?,
            None if self.remaining.unwrap_or(0) > 0 => {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            None => return Ok(false),
        }
        let received = u64::try_from(self.piece.len()).unwrap_or(u64::MAX);
        self.remaining = self
            .remaining
            .map(|remaining| remaining.saturating_sub(received));
        Ok(true)
    }
}

/// Blocks, so it must run on a thread that may block.
impl Read for BodyReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            if !self.receive_piece()? {
                return Ok(0);
            }
        }
        let count = self.piece.len().min(bytes.len());
        self.piece
            .copy_to_slice(bytes.get_mut(..count).unwrap_or_default());
        Ok(count)
    }
}

/// Passes the chunks of a body to the reader. After the reader is dropped, chunks are discarded for
/// a moment: a browser whose connection is closed while it sends does not read the response and
/// repeats the request.
async fn receive(mut body: Incoming, pieces: mpsc::Sender<io::Result<Bytes>>) {
    let mut end = None;
    while end.is_none_or(|end| Instant::now() < end) {
        let piece = match tokio::time::timeout(RECEIVE_TIME_MAX, body.frame()).await {
            Ok(None) => return,
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => Ok(data),
                // Trailers are ignored.
                Err(_) => continue,
            },
            Ok(Some(Err(_))) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        };
        let is_over = piece.is_err();
        if end.is_none() && pieces.send(piece).await.is_err() {
            end = Some(Instant::now() + DISCARD_TIME_MAX);
        }
        if is_over {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An export that failed half-way used to end like a complete one.
    #[test]
    fn failed_bodies_end_with_an_error() {
        let (mut writer, mut body) = BodyWriter::new(BodyEncoding::Identity, None);
        writer.write_all(b"half").unwrap();
        writer.flush().unwrap();
        writer.abort(io::Error::other("failed"));
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let (first, second) = runtime.unwrap().block_on(async {
            body.begin().await.unwrap();
            let first = body.frame().await.unwrap();
            (first, body.frame().await.unwrap())
        });
        assert_eq!(first.unwrap().into_data().unwrap(), "half");
        assert_eq!(second.unwrap_err().to_string(), "failed");
    }

    #[test]
    fn bodies_that_fail_at_once_do_not_begin() {
        let (writer, mut body) = BodyWriter::new(BodyEncoding::Identity, None);
        writer.abort(io::Error::other("failed"));
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let begun = runtime.unwrap().block_on(body.begin());
        assert_eq!(begun.unwrap_err().to_string(), "failed");
    }
}
