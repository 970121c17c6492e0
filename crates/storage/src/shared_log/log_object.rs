//! The objects of the shared log: `log/{number, 20 digits}`. An object is a segment with records,
//! or the takeover object of a server. The layout is drawn in docs/format.md.

use bytes::Bytes;

use crate::checksum::checksum;
use crate::fields::{put, u16_at, u32_at, u64_at};
use crate::local_state::Id;
use crate::log::{Kind, StoredPayload};
use crate::position::Position;

pub(crate) const FOLDER: &str = "log";
const MAGIC: &[u8; 8] = b"WRobj-01";
pub(crate) const HEADER_BYTES: usize = 80;
const RECORD_HEADER_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 8;
const FLAG_LZ4: u8 = 1;
const FLAG_TAKEOVER: u8 = 1;
const FLAG_RELEASE: u8 = 2;

pub(crate) fn name(number: u64) -> String {
    format!("{FOLDER}/{number:020}")
}

/// Returns the number in the name of a log object without its folder.
pub(crate) fn number_from_name(name: &str) -> Option<u64> {
    name.parse().ok()
}

/// The header of a log object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogObjectHeader {
    pub number: u64,
    /// The number of takeover objects up to this object, itself included.
    pub epoch: u64,
    /// The server that wrote the object.
    pub writer: Id,
    /// The id of this object. The writer recognizes by it an object that it created although the
    /// reply was lost.
    pub put: Id,
    /// The position of the first record, or of the next one if the object has no records.
    pub first: Position,
    /// The time of the newest record of the log, in milliseconds since 1970.
    pub millis: u64,
    /// The state of its writer.
    pub kind: ObjectKind,
}

/// The state of the writer of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    /// The writer extends the log.
    Segment,
    /// The writer has taken over the log. The object begins a new epoch.
    Takeover,
    /// The writer ends. Another server can take over at once.
    Release,
}

/// A record of the shared log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedRecord {
    pub position: Position,
    pub payload: StoredPayload,
}

/// A log object with verified checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogObject {
    pub header: LogObjectHeader,
    /// The address that clients connect to, if the object is a takeover object.
    pub address: String,
    pub records: Vec<SharedRecord>,
}

impl LogObject {
    /// Returns the position of the first record after this object.
    pub fn next_position(&self) -> Position {
        Position(self.header.first.0 + self.records.len() as u64)
    }
}

/// The bytes of a log object while records are added.
pub(crate) struct LogObjectEncoder {
    bytes: Vec<u8>,
    number: u64,
    count: u32,
}

impl LogObjectEncoder {
    /// Begins an object. `address` is "" for a segment.
    pub fn new(header: &LogObjectHeader, address: &str) -> Self {
        let mut bytes = vec![0; HEADER_BYTES];
        put(&mut bytes, 0, MAGIC);
        put(&mut bytes, 8, &header.number.to_le_bytes());
        put(&mut bytes, 16, &header.epoch.to_le_bytes());
        put(&mut bytes, 24, &header.writer);
        put(&mut bytes, 40, &header.put);
        put(&mut bytes, 56, &header.first.0.to_le_bytes());
        let flags = match header.kind {
            ObjectKind::Segment => 0,
            ObjectKind::Takeover => FLAG_TAKEOVER,
            ObjectKind::Release => FLAG_RELEASE,
        };
        put(&mut bytes, 64, &header.millis.to_le_bytes());
        put(&mut bytes, 76, &(address.len() as u16).to_le_bytes());
        put(&mut bytes, 78, &[flags]);
        bytes.extend_from_slice(address.as_bytes());
        Self {
            bytes,
            number: header.number,
            count: 0,
        }
    }

    pub fn add(&mut self, record: &StoredPayload) {
        let stored_bytes = record.stored.len() as u32;
        self.bytes.extend_from_slice(&stored_bytes.to_le_bytes());
        self.bytes
            .extend_from_slice(&record.raw_bytes.to_le_bytes());
        let flags = if record.lz4 { FLAG_LZ4 } else { 0 };
        let kind = u64::from(record.kind as u8) | u64::from(flags) << 8 | record.millis << 16;
        self.bytes.extend_from_slice(&kind.to_le_bytes());
        self.bytes.extend_from_slice(&record.stored);
        self.count += 1;
    }

    /// Returns the size of the object so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn finish(mut self) -> Bytes {
        put(&mut self.bytes, 72, &self.count.to_le_bytes());
        let sum = checksum(self.number, &self.bytes);
        self.bytes.extend_from_slice(&sum.to_le_bytes());
        self.bytes.into()
    }
}

/// Reads the log object `number`. The error describes the defect.
pub(crate) fn decode(bytes: &[u8], number: u64) -> Result<LogObject, &'static str> {
    let short = "the object ends too early";
    let end = bytes.len().checked_sub(CHECKSUM_BYTES).ok_or(short)?;
    let covered = bytes.get(..end).ok_or(short)?;
    if u64_at(bytes, end) != Some(checksum(number, covered)) {
        return Err("its checksum does not match, or it belongs to another number");
    }
    let header = decode_header(covered)?;
    let count = u32_at(covered, 72).ok_or(short)?;
    let length = u16_at(covered, 76).ok_or(short)?;
    let rest = covered.get(HEADER_BYTES..).ok_or(short)?;
    let (address, rest) = rest.split_at_checked(length.into()).ok_or(short)?;
    let address = std::str::from_utf8(address).map_err(|_| "its address is not UTF-8")?;
    let records = decode_records(rest, header.first, count)?;
    Ok(LogObject {
        address: address.to_owned(),
        header,
        records,
    })
}

/// Reads the header at the beginning of a log object, without the checksum at its end. The error
/// describes the defect.
pub(crate) fn decode_header(bytes: &[u8]) -> Result<LogObjectHeader, &'static str> {
    let short = "the object ends within its header";
    if bytes.get(..8) != Some(MAGIC.as_slice()) {
        return Err("it does not begin as a log object does");
    }
    let field = |offset| u64_at(bytes, offset).ok_or(short);
    let id = |offset: usize| {
        let bytes = bytes.get(offset..offset + 16).ok_or(short)?;
        Id::try_from(bytes).map_err(|_| short)
    };
    let flags = *bytes.get(78).ok_or(short)?;
    Ok(LogObjectHeader {
        number: field(8)?,
        epoch: field(16)?,
        writer: id(24)?,
        put: id(40)?,
        first: Position(field(56)?),
        millis: field(64)?,
        kind: match flags {
            0 => ObjectKind::Segment,
            FLAG_TAKEOVER => ObjectKind::Takeover,
            FLAG_RELEASE => ObjectKind::Release,
            _ => return Err("its kind is unknown"),
        },
    })
}

fn decode_records(
    mut bytes: &[u8],
    first: Position,
    count: u32,
) -> Result<Vec<SharedRecord>, &'static str> {
    let mut records = Vec::new();
    for index in 0..u64::from(count) {
        let cut = "a record of it is cut";
        let (header, rest) = bytes.split_at_checked(RECORD_HEADER_BYTES).ok_or(cut)?;
        let stored_bytes = u32_at(header, 0).ok_or(cut)?;
        let kind = u64_at(header, 8).ok_or(cut)?;
        let (stored, rest) = rest.split_at_checked(stored_bytes as usize).ok_or(cut)?;
        records.push(SharedRecord {
            position: Position(first.0 + index),
            payload: StoredPayload {
                kind: match kind as u8 {
                    0 => Kind::Data,
                    1 => Kind::Catalog,
                    _ => return Err("a record of it has an unknown kind"),
                },
                lz4: (kind >> 8) as u8 & FLAG_LZ4 != 0,
                raw_bytes: u32_at(header, 4).ok_or(cut)?,
                millis: kind >> 16,
                stored: stored.to_vec(),
            },
        });
        bytes = rest;
    }
    match bytes {
        [] => Ok(records),
        _ => Err("it has bytes after its records"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoded_object_equals_encoded_one() {
        let header = LogObjectHeader {
            number: 7,
            epoch: 3,
            writer: [1; 16],
            put: [2; 16],
            first: Position(40),
            millis: 1_700_000_000_000,
            kind: ObjectKind::Takeover,
        };
        let payload = |kind, stored: &[u8]| StoredPayload {
            kind,
            lz4: stored.len() > 3,
            raw_bytes: 12,
            millis: 1_700_000_000_000,
            stored: stored.to_vec(),
        };
        let payloads = [payload(Kind::Data, b"data"), payload(Kind::Catalog, b"")];
        let mut encoder = LogObjectEncoder::new(&header, "host:1");
        payloads.iter().for_each(|payload| encoder.add(payload));
        let bytes = encoder.finish();
        let object = decode(&bytes, 7).unwrap();
        let positions: Vec<u64> = object.records.iter().map(|it| it.position.0).collect();
        assert_eq!(positions, [40, 41]);
        assert_eq!(object.next_position(), Position(42));
        let decoded: Vec<StoredPayload> =
            object.records.iter().map(|it| it.payload.clone()).collect();
        assert_eq!(decoded, payloads);
        assert_eq!((object.header, object.address.as_str()), (header, "host:1"));
        assert!(decode(&bytes, 8).is_err(), "the number counts");
        for end in 0..bytes.len() {
            assert!(decode(&bytes[..end], 7).is_err(), "cut at {end}");
        }
    }
}
