//! Decompresses files of the Unix program compress (`.Z`): LZW with codes that grow from 9 to at
//! most 16 bits. Source: its source code, version 4.2.4.
//!
//! ```text
//! 1f 9d │ flags: bits of the longest codes (0–4), codes can be cleared (7) │ codes, low bit first
//! ```
//!
//! Codes are written in groups of eight. If the code length changes, the current group is padded.

use std::io::{self, BufRead, Read};

const BITS_MIN: u32 = 9;
const BITS_MAX: u32 = 16;
/// The code that clears the table, if codes can be cleared.
const CLEAR: u32 = 256;

/// The content of a file.
pub(super) struct CompressReader<R> {
    source: R,
    bits_max: u32,
    can_clear: bool,
    /// The prefix and the last byte of each code from 256 on.
    entries: Vec<(u16, u8)>,
    bits: u32,
    /// The number of codes of the current group that were read.
    group_codes: u32,
    previous: Option<u32>,
    first_byte: u8,
    /// Bits that were read from the source but not consumed.
    buffer: u64,
    buffer_bits: u32,
    /// Decoded bytes in reverse order.
    pending: Vec<u8>,
}

impl<R: BufRead> CompressReader<R> {
    pub(super) fn new(mut source: R) -> io::Result<Self> {
        let mut header = [0; 3];
        source.read_exact(&mut header)?;
        let [_, _, flags] = header;
        let bits_max = u32::from(flags & 0x1f);
        if !(BITS_MIN..=BITS_MAX).contains(&bits_max) {
            return Err(invalid("the length of its codes is not valid"));
        }
        Ok(CompressReader {
            source,
            bits_max,
            can_clear: flags & 0x80 != 0,
            entries: Vec::new(),
            bits: BITS_MIN,
            group_codes: 0,
            previous: None,
            first_byte: 0,
            buffer: 0,
            buffer_bits: 0,
            pending: Vec::new(),
        })
    }

    /// Returns the first code that is not in the table. If codes can be cleared, 256 is the clear
    /// code.
    fn next_code(&self) -> u32 {
        256 + u32::from(self.can_clear) + self.entries.len() as u32
    }

    fn read_code(&mut self) -> io::Result<Option<u32>> {
        while self.buffer_bits < self.bits {
            let mut byte = [0];
            if self.source.read(&mut byte)? == 0 {
                return Ok(None);
            }
            let [byte] = byte;
            self.buffer |= u64::from(byte) << self.buffer_bits;
            self.buffer_bits += 8;
        }
        let code = self.buffer & ((1 << self.bits) - 1);
        self.buffer >>= self.bits;
        self.buffer_bits -= self.bits;
        self.group_codes = (self.group_codes + 1) % 8;
        Ok(Some(code as u32))
    }

    /// Skips the padding of the current group and sets the code length.
    fn set_bits(&mut self, bits: u32) -> io::Result<()> {
        while self.group_codes != 0 {
            if self.read_code()?.is_none() {
                break;
            }
        }
        self.bits = bits;
        self.group_codes = 0;
        Ok(())
    }

    /// Decodes the next code into `pending`. Returns `false` at the end.
    fn decode_code(&mut self) -> io::Result<bool> {
        if self.next_code() >= 1 << self.bits && self.bits < self.bits_max {
            self.set_bits(self.bits + 1)?;
        }
        let Some(code) = self.read_code()? else {
            return Ok(false);
        };
        if code == CLEAR && self.can_clear {
            self.entries.clear();
            self.set_bits(BITS_MIN)?;
            self.previous = None;
            return Ok(true);
        }
        self.push_code(code)?;
        Ok(true)
    }

    fn push_code(&mut self, code: u32) -> io::Result<()> {
        let next = self.next_code();
        let mut current = match self.previous {
            None if code >= 256 => return Err(invalid("its first code is not a byte")),
            Some(previous) if code == next => {
                self.pending.push(self.first_byte);
                previous
            }
            _ if code > next => return Err(invalid("a code is not in its table")),
            _ => code,
        };
        let base = 256 + u32::from(self.can_clear);
        while current >= 256 {
            let entry = current
                .checked_sub(base)
                .and_then(|at| self.entries.get(at as usize));
            let Some(&(prefix, byte)) = entry else {
                return Err(invalid("a code is not in its table"));
            };
            self.pending.push(byte);
            // Terminates, because the prefix of a code is always an older code.
            current = prefix.into();
        }
        self.first_byte = current as u8;
        self.pending.push(self.first_byte);
        if let Some(previous) = self.previous
            && next < 1 << self.bits_max
        {
            self.entries.push((previous as u16, self.first_byte));
        }
        self.previous = Some(code);
        Ok(())
    }
}

fn invalid(reason: &str) -> io::Error {
    io::Error::other(reason.to_string())
}

impl<R: BufRead> Read for CompressReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        for slot in buffer {
            while self.pending.is_empty() {
                if !self.decode_code()? {
                    return Ok(filled);
                }
            }
            let Some(byte) = self.pending.pop() else {
                break;
            };
            *slot = byte;
            filled += 1;
        }
        Ok(filled)
    }
}
