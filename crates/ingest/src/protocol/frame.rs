//! The bytes of a frame: numbers, texts, lists and optional values, as the protocol describes them.

/// Builds a frame.
pub(super) struct Encoder(Vec<u8>);

impl Encoder {
    pub fn new(tag: u8) -> Self {
        Encoder(vec![0, 0, 0, 0, tag])
    }

    /// Returns the frame. Its first four bytes, which are reserved by `new`, become its length.
    pub fn finish(mut self) -> Vec<u8> {
        let length = to_length(self.0.len() - 4).to_le_bytes();
        if let Some(prefix) = self.0.first_chunk_mut::<4>() {
            *prefix = length;
        }
        self.0
    }

    fn length(&mut self, length: usize) {
        self.u32(to_length(length));
    }

    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    pub fn texts(&mut self, texts: &[String]) {
        self.length(texts.len());
        texts.iter().for_each(|text| self.bytes(text.as_bytes()));
    }

    pub fn optional<T>(&mut self, value: Option<T>, encode: impl FnOnce(&mut Self, T)) {
        self.u8(value.is_some().into());
        if let Some(value) = value {
            encode(self, value);
        }
    }
}

/// The limits of an extraction keep texts and lists far below 4 GB. The receiver refuses a frame
/// with a greater length.
fn to_length(length: usize) -> u32 {
    let encoded = u32::try_from(length);
    debug_assert!(encoded.is_ok(), "a frame has a part of {length} bytes");
    encoded.unwrap_or(u32::MAX)
}

/// The error of a frame that the protocol does not allow.
#[derive(Debug, PartialEq)]
pub(crate) struct InvalidFrame;

/// Reads the payload of a frame.
pub(super) struct Decoder<'f>(&'f [u8]);

impl<'f> Decoder<'f> {
    pub fn new(payload: &'f [u8]) -> Self {
        Decoder(payload)
    }

    /// Fails if bytes are left.
    pub fn finish(self) -> Result<(), InvalidFrame> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(InvalidFrame)
        }
    }

    fn take(&mut self, length: usize) -> Result<&'f [u8], InvalidFrame> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(InvalidFrame)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], InvalidFrame> {
        let (array, rest) = self.0.split_first_chunk().ok_or(InvalidFrame)?;
        self.0 = rest;
        Ok(*array)
    }

    pub fn u8(&mut self) -> Result<u8, InvalidFrame> {
        self.array().map(u8::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, InvalidFrame> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, InvalidFrame> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn usize(&mut self) -> Result<usize, InvalidFrame> {
        usize::try_from(self.u64()?).map_err(|_| InvalidFrame)
    }

    pub fn bytes(&mut self) -> Result<&'f [u8], InvalidFrame> {
        let length = self.u32()?;
        self.take(length as usize)
    }

    pub fn text(&mut self) -> Result<String, InvalidFrame> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| InvalidFrame)
    }

    pub fn texts(&mut self) -> Result<Vec<String>, InvalidFrame> {
        let count = self.u32()?;
        (0..count).map(|_| self.text()).collect()
    }

    pub fn optional<T>(
        &mut self,
        decode: impl FnOnce(&mut Self) -> Result<T, InvalidFrame>,
    ) -> Result<Option<T>, InvalidFrame> {
        match self.u8()? {
            0 => Ok(None),
            1 => decode(self).map(Some),
            _ => Err(InvalidFrame),
        }
    }
}
