//! Readers of decompressed bytes that enforce the limits of the extraction.

use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use crate::error::ExtractError;
use crate::limits::{ExpansionCounter, Limits};

/// Counts the bytes that a decompressor takes from its input.
pub(crate) struct CountingReader<R> {
    inner: R,
    count: Rc<Cell<u64>>,
}

impl<R> CountingReader<R> {
    /// Creates a reader. `count` is increased by the bytes that were read.
    pub(crate) fn new(inner: R, count: Rc<Cell<u64>>) -> Self {
        CountingReader { inner, count }
    }
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.inner.read(buffer)?;
        self.count.set(self.count.get() + bytes as u64);
        Ok(bytes)
    }
}

impl<R: BufRead> BufRead for CountingReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.count.set(self.count.get() + bytes as u64);
        self.inner.consume(bytes);
    }
}

/// The decompressed bytes of a member or file. Fails if they exceed a limit, and converts a panic
/// of the decompressor into an error.
pub(crate) struct ExpansionReader<R> {
    decompressor: R,
    compressed_bytes: Rc<Cell<u64>>,
    expanded_bytes: u64,
    counter: ExpansionCounter,
    limits: Limits,
}

impl<R: Read> ExpansionReader<R> {
    /// Creates a reader. `compressed_bytes` is the number of bytes that `decompressor` has read so
    /// far, or the whole size of its input.
    pub(crate) fn new(
        decompressor: R,
        compressed_bytes: Rc<Cell<u64>>,
        counter: ExpansionCounter,
        limits: &Limits,
    ) -> Self {
        ExpansionReader {
            decompressor,
            compressed_bytes,
            expanded_bytes: 0,
            counter,
            limits: limits.clone(),
        }
    }
}

impl<R: Read> Read for ExpansionReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = catch_unwind(AssertUnwindSafe(|| self.decompressor.read(buffer)));
        let bytes = read.unwrap_or_else(|_| Err(io::Error::other("its parser panicked")))?;
        self.expanded_bytes += bytes as u64;
        let compressed_bytes = self.compressed_bytes.get();
        self.limits
            .check_ratio(self.expanded_bytes, compressed_bytes)
            .and_then(|()| self.counter.add(bytes, &self.limits))
            .map_err(io::Error::other)?;
        Ok(bytes)
    }
}

/// The content of an archive member. Fails if it is shorter than the archive states.
pub(crate) struct MemberReader<'r> {
    reader: &'r mut dyn BufRead,
    rest_bytes: u64,
}

impl<'r> MemberReader<'r> {
    pub(crate) fn new(reader: &'r mut dyn BufRead, bytes: u64) -> Self {
        MemberReader {
            reader,
            rest_bytes: bytes,
        }
    }

    /// Returns the number of bytes that were not read.
    pub(crate) fn rest_bytes(&self) -> u64 {
        self.rest_bytes
    }
}

impl Read for MemberReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let bytes = available.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..bytes), available.get(..bytes)) {
            to.copy_from_slice(from);
        }
        self.consume(bytes);
        Ok(bytes)
    }
}

impl BufRead for MemberReader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.rest_bytes == 0 {
            return Ok(&[]);
        }
        let available = self.reader.fill_buf()?;
        if available.is_empty() {
            return Err(io::Error::other("the archive is cut off in a member"));
        }
        let rest = usize::try_from(self.rest_bytes).unwrap_or(usize::MAX);
        Ok(available.get(..rest).unwrap_or(available))
    }

    fn consume(&mut self, bytes: usize) {
        self.reader.consume(bytes);
        self.rest_bytes = self.rest_bytes.saturating_sub(bytes as u64);
    }
}

/// Reads at most `bytes_max` bytes. `format` is the format's name in messages.
pub(crate) fn read_up_to(
    format: &'static str,
    reader: &mut dyn Read,
    bytes_max: u64,
) -> Result<Vec<u8>, ExtractError> {
    let mut bytes = Vec::new();
    let read = reader.take(bytes_max).read_to_end(&mut bytes);
    read.map_err(|error| convert_read_error(format, error))?;
    Ok(bytes)
}

/// Converts an error of a reader. `format` is the format's name in messages.
pub(crate) fn convert_read_error(format: &'static str, error: io::Error) -> ExtractError {
    let known = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<ExtractError>());
    match known {
        Some(known) => known.clone(),
        None => ExtractError::malformed(format, error),
    }
}
