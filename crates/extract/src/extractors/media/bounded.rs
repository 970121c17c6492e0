//! A reader that limits how much of a file is read.

use std::io::{self, Read, Seek, SeekFrom};

use crate::format::ReadSeek;
use crate::limits::Limits;

/// The maximum number of bytes that are read. Metadata is smaller, including album covers.
const BYTES_MAX: u64 = 64 << 20;

/// Fails after [`BYTES_MAX`] bytes and at the deadline.
pub(super) struct BoundedReader<'r> {
    reader: &'r mut dyn ReadSeek,
    limits: &'r Limits,
    bytes_left: u64,
}

impl<'r> BoundedReader<'r> {
    pub(super) fn new(reader: &'r mut dyn ReadSeek, limits: &'r Limits) -> Self {
        BoundedReader {
            reader,
            limits,
            bytes_left: BYTES_MAX.min(limits.input_bytes_max),
        }
    }

    /// Reads exactly `length` bytes.
    pub(super) fn read_bytes(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.take(length as u64).read_to_end(&mut bytes)?;
        match bytes.len() {
            read if read == length => Ok(bytes),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    pub(super) fn read_array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Skips bytes. Seeking beyond the end fails at the next read.
    pub(super) fn skip(&mut self, length: u64) -> io::Result<()> {
        let length = i64::try_from(length).map_err(io::Error::other)?;
        self.seek(SeekFrom::Current(length)).map(|_| ())
    }
}

impl Read for BoundedReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.limits.check_deadline().map_err(io::Error::other)?;
        if self.bytes_left == 0 {
            return Err(io::Error::other("the properties of the file are too large"));
        }
        let length = usize::try_from(self.bytes_left).unwrap_or(usize::MAX);
        let length = length.min(buffer.len());
        let read = self
            .reader
            .read(buffer.get_mut(..length).unwrap_or_default())?;
        self.bytes_left = self.bytes_left.saturating_sub(read as u64);
        Ok(read)
    }
}

impl Seek for BoundedReader<'_> {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.limits.check_deadline().map_err(io::Error::other)?;
        self.reader.seek(position)
    }
}
