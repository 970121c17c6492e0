//! Files that consist of several consecutive compressed frames.

use std::io::{self, BufRead, Read};
use std::marker::PhantomData;

/// The decompressor of one frame.
pub(super) trait Frame<R>: Sized {
    /// Starts a frame. Returns `None` if the input ends before one.
    fn start(source: R) -> io::Result<Option<Self>>;

    /// Reads decompressed bytes. Returns 0 at the end of the frame.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Returns the input, positioned after the frame.
    fn into_source(self) -> R;

    /// Returns `true` if these bytes after a frame are the start of another one.
    fn starts_with(next: &[u8]) -> bool;
}

/// The content of all frames.
pub(super) struct FrameReader<R, F> {
    state: State<R, F>,
    /// The frame is not the first one.
    is_later: bool,
    source: PhantomData<R>,
}

enum State<R, F> {
    Before(R),
    Within(F),
    Ended,
}

impl<R: BufRead, F: Frame<R>> FrameReader<R, F> {
    pub(super) fn new(source: R) -> Self {
        FrameReader {
            state: State::Before(source),
            is_later: false,
            source: PhantomData,
        }
    }
}

impl<R: BufRead, F: Frame<R>> Read for FrameReader<R, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Before(mut source) => {
                    let next = source.fill_buf()?;
                    if next.is_empty() || self.is_later && !F::starts_with(next) {
                        return Ok(0);
                    }
                    if let Some(frame) = F::start(source)? {
                        self.state = State::Within(frame);
                    }
                }
                State::Within(mut frame) => {
                    let bytes = frame.read(buffer)?;
                    if bytes > 0 || buffer.is_empty() {
                        self.state = State::Within(frame);
                        return Ok(bytes);
                    }
                    self.is_later = true;
                    self.state = State::Before(frame.into_source());
                }
                State::Ended => return Ok(0),
            }
        }
    }
}
