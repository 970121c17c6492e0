//! Temporary files, encrypted with a key that only this process has.
//!
//! The stream is a sequence of chunks. The nonce of a chunk is its number, so chunks cannot change
//! places.
//!
//! ```text
//! 0   4  length of the chunk
//! 4  16  tag
//! 20  n  encrypted bytes
//! ```

use std::io::{self, Read, Seek, SeekFrom, Write};

use zeroize::Zeroizing;

use super::{Cipher, KEY_BYTES, TAG_BYTES, fill_random, numbered_nonce};

/// Writes an encrypted temporary stream. Each call of `write` makes a chunk, so it needs a buffer
/// around it.
///
/// ```
/// use std::io::{Cursor, Read, Write};
/// use windrow_storage::TemporaryWriter;
///
/// let mut writer = TemporaryWriter::new(Cursor::new(Vec::new()))?;
/// writer.write_all(b"some rows")?;
/// let mut text = String::new();
/// writer.finish()?.read_to_string(&mut text)?;
/// assert_eq!(text, "some rows");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct TemporaryWriter<W> {
    inner: W,
    cipher: Cipher,
    chunks: u64,
    buffer: Vec<u8>,
}

/// Reads an encrypted temporary stream from its start. [`TemporaryWriter::finish`] creates it.
#[derive(Debug)]
pub struct TemporaryReader<R> {
    inner: R,
    cipher: Cipher,
    /// The number of chunks that were read.
    chunks: u64,
    /// The number of chunks that were written.
    chunks_all: u64,
    chunk: Vec<u8>,
    /// The offset of the next byte in `chunk`.
    at: usize,
}

const HEADER_BYTES: usize = size_of::<u32>() + TAG_BYTES;
/// The largest chunk, in bytes.
const CHUNK_BYTES_MAX: usize = 1 << 20;

impl<W: Write> TemporaryWriter<W> {
    /// Returns a writer with a new random key.
    ///
    /// # Errors
    /// Fails if the operating system has no random bytes.
    pub fn new(inner: W) -> io::Result<TemporaryWriter<W>> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        fill_random(key.as_mut())?;
        Ok(TemporaryWriter {
            inner,
            cipher: Cipher::new(&key),
            chunks: 0,
            buffer: Vec::new(),
        })
    }
}

impl<W: Write + Seek> TemporaryWriter<W> {
    /// Ends the stream, and returns a reader of it. The inner stream must begin with it.
    ///
    /// # Errors
    /// Fails if the inner stream does.
    pub fn finish(mut self) -> io::Result<TemporaryReader<W>> {
        self.inner.flush()?;
        self.inner.seek(SeekFrom::Start(0))?;
        Ok(TemporaryReader {
            inner: self.inner,
            cipher: self.cipher,
            chunks: 0,
            chunks_all: self.chunks,
            chunk: Vec::new(),
            at: 0,
        })
    }
}

impl<W: Write> Write for TemporaryWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = bytes.get(..CHUNK_BYTES_MAX).unwrap_or(bytes);
        if bytes.is_empty() {
            return Ok(0);
        }
        self.buffer.clear();
        self.buffer.resize(HEADER_BYTES, 0);
        self.buffer.extend_from_slice(bytes);
        let (header, chunk) = self.buffer.split_at_mut(HEADER_BYTES);
        let tag = self.cipher.encrypt(numbered_nonce(self.chunks), &[], chunk);
        let tag = tag.ok_or_else(|| io::Error::other("a chunk cannot be encrypted"))?;
        let (length, of_tag) = header.split_at_mut(size_of::<u32>());
        length.copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        of_tag.copy_from_slice(&tag);
        self.inner.write_all(&self.buffer)?;
        self.chunks += 1;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> TemporaryReader<R> {
    fn read_chunk(&mut self) -> io::Result<()> {
        let (mut length, mut tag) = ([0; size_of::<u32>()], [0; TAG_BYTES]);
        self.inner.read_exact(&mut length)?;
        self.inner.read_exact(&mut tag)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > CHUNK_BYTES_MAX {
            return Err(io::Error::other("a chunk is longer than a chunk can be"));
        }
        self.chunk.resize(length, 0);
        self.inner.read_exact(&mut self.chunk)?;
        let decrypted = self
            .cipher
            .decrypt(numbered_nonce(self.chunks), &[], &mut self.chunk, tag);
        decrypted.ok_or_else(|| io::Error::other("a chunk cannot be decrypted"))?;
        self.chunks += 1;
        self.at = 0;
        Ok(())
    }
}

impl<R: Read> Read for TemporaryReader<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while self.at >= self.chunk.len() {
            if self.chunks == self.chunks_all {
                return Ok(0);
            }
            self.read_chunk()?;
        }
        let rest = self.chunk.get(self.at..).unwrap_or_default();
        let count = rest.len().min(bytes.len());
        bytes
            .iter_mut()
            .zip(rest)
            .for_each(|(to, from)| *to = *from);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn written(parts: &[&[u8]]) -> TemporaryReader<Cursor<Vec<u8>>> {
        let mut writer = TemporaryWriter::new(Cursor::new(Vec::new())).unwrap();
        for part in parts {
            writer.write_all(part).unwrap();
        }
        writer.finish().unwrap()
    }

    fn read(mut reader: TemporaryReader<Cursor<Vec<u8>>>) -> io::Result<Vec<u8>> {
        let mut found = Vec::new();
        reader.read_to_end(&mut found)?;
        Ok(found)
    }

    #[test]
    fn streams_are_read_as_written() {
        let large = vec![7; CHUNK_BYTES_MAX + 5];
        let check = |parts: &[&[u8]]| {
            let reader = written(parts);
            let stored = reader.inner.get_ref().clone();
            assert_eq!(read(reader).unwrap(), parts.concat());
            // Shorter parts can be among the encrypted bytes by chance.
            for part in parts.iter().filter(|part| part.len() > 8) {
                assert!(!stored.windows(9).any(|window| window == &part[..9]));
            }
        };
        check(&[]);
        check(&[b"a"]);
        check(&[b"the first part", b"", b"the second part"]);
        check(&[&large, b"the end of the stream"]);
    }

    #[test]
    fn changed_and_cut_streams_fail() {
        let length = written(&[b"one", b"two"]).inner.into_inner().len();
        for at in 0..length {
            let mut reader = written(&[b"one", b"two"]);
            reader.inner.get_mut()[at] ^= 0xFF;
            assert!(read(reader).is_err(), "byte {at}");
            let mut reader = written(&[b"one", b"two"]);
            reader.inner.get_mut().truncate(at);
            assert!(read(reader).is_err(), "cut at {at}");
        }
    }
}
