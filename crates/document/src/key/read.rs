//! Restores values from key bytes and their shape.

use std::borrow::Cow;

use super::number::{self, tag_complement};
use super::{LONG_BINARY, shape, tag};
use crate::{ArrayBuilder, Decimal128, DocumentBuf, DocumentBuilder, ObjectId, Timestamp, Value};

/// Reads the values of a key in sequence. Every method returns `None` at invalid bytes.
#[derive(Debug)]
pub struct KeyReader<'a> {
    key: &'a [u8],
    shape: &'a [u8],
    ordinal: u16,
}

/// An entry of the shape: its kind and, for a decimal, the number.
struct ShapeEntry {
    kind: u8,
    decimal: Option<Decimal128>,
}

impl<'a> KeyReader<'a> {
    /// Creates a reader. If the shape is not available, `shape` is empty and numbers get the types
    /// that their key bytes suggest.
    pub fn new(key: &'a [u8], shape: &'a [u8]) -> KeyReader<'a> {
        KeyReader {
            key,
            shape,
            ordinal: 0,
        }
    }

    /// Returns `true` if all values were read.
    pub fn is_at_end(&self) -> bool {
        self.key.is_empty()
    }

    /// The key bytes that were not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.key
    }

    /// Reads the next value.
    pub fn value(&mut self, descending: bool) -> Option<Value> {
        let bytes = if descending {
            Cow::Owned(self.key.iter().map(|byte| !byte).collect())
        } else {
            Cow::Borrowed(self.key)
        };
        let mut decoder = KeyDecoder {
            key: &bytes,
            read: 0,
            shape: self.shape,
            ordinal: self.ordinal,
        };
        let value = decoder.value()?;
        self.key = self.key.get(decoder.read..)?;
        (self.shape, self.ordinal) = (decoder.shape, decoder.ordinal);
        Some(value)
    }
}

struct KeyDecoder<'k, 's> {
    key: &'k [u8],
    read: usize,
    shape: &'s [u8],
    ordinal: u16,
}

impl<'k> KeyDecoder<'k, '_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.key.get(self.read)?;
        self.read += 1;
        Some(byte)
    }

    fn bytes(&mut self, count: usize) -> Option<&'k [u8]> {
        let bytes = self.key.get(self.read..self.read.checked_add(count)?)?;
        self.read += count;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.first_chunk().copied()
    }

    fn until_end(&mut self) -> Option<&'k [u8]> {
        let rest = self.key.get(self.read..)?;
        let length = memchr::memchr(tag::END, rest)?;
        self.read += length + 1;
        rest.get(..length)
    }

    fn cstring(&mut self) -> Option<String> {
        String::from_utf8(self.until_end()?.to_vec()).ok()
    }

    /// Reads a string. A collation's sort key is not UTF-8 and is read as replacement characters.
    fn escaped_string(&mut self) -> Option<String> {
        let mut stored = self.until_end()?;
        let mut text = Vec::with_capacity(stored.len());
        while let Some(escape) = memchr::memchr(1, stored) {
            text.extend_from_slice(stored.get(..escape)?);
            text.push(stored.get(escape + 1)?.checked_sub(1)?);
            stored = stored.get(escape + 2..)?;
        }
        text.extend_from_slice(stored);
        Some(
            String::from_utf8(text)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        )
    }

    fn value(&mut self) -> Option<Value> {
        let tag = self.byte()?;
        Some(match tag {
            tag::MIN_KEY => Value::MinKey,
            tag::UNDEFINED => Value::Undefined,
            tag::NULL => Value::Null,
            tag::NUMBER_FIRST..=tag::NUMBER_LAST => self.number(tag)?,
            tag::STRING => {
                let text = self.escaped_string()?;
                match self.shape_entry() {
                    Some(ShapeEntry {
                        kind: shape::SYMBOL,
                        ..
                    }) => Value::Symbol(text),
                    _ => Value::String(text),
                }
            }
            tag::DOCUMENT => Value::Document(self.document()?),
            tag::ARRAY => self.values()?,
            tag::BINARY => {
                let length = match self.byte()? {
                    LONG_BINARY => u32::from_be_bytes(self.array()?) as usize,
                    short => usize::from(short),
                };
                let subtype = self.byte()?;
                Value::Binary {
                    subtype,
                    bytes: self.bytes(length)?.to_vec(),
                }
            }
            tag::OBJECT_ID => Value::ObjectId(ObjectId(self.array()?)),
            tag::FALSE => Value::Bool(false),
            tag::TRUE => Value::Bool(true),
            tag::DATE_TIME => Value::DateTime((u64::from_be_bytes(self.array()?) ^ 1 << 63) as i64),
            tag::TIMESTAMP => {
                Value::Timestamp(Timestamp::from_bits(u64::from_be_bytes(self.array()?)))
            }
            tag::REGEX => Value::Regex {
                pattern: self.cstring()?,
                options: self.cstring()?,
            },
            tag::DB_POINTER => {
                let length = u32::from_be_bytes(self.array()?) as usize;
                let namespace = String::from_utf8(self.bytes(length)?.to_vec()).ok()?;
                Value::DbPointer {
                    namespace,
                    id: ObjectId(self.array()?),
                }
            }
            tag::JAVASCRIPT => Value::JavaScript(self.escaped_string()?),
            tag::JAVASCRIPT_WITH_SCOPE => Value::JavaScriptWithScope {
                code: self.escaped_string()?,
                scope: self.document()?,
            },
            tag::MAX_KEY => Value::MaxKey,
            _ => return None,
        })
    }

    fn document(&mut self) -> Option<DocumentBuf> {
        let mut builder = DocumentBuilder::new();
        while self.byte()? != tag::END {
            let name = self.cstring()?;
            builder.append(&name, self.value()?.as_ref());
        }
        Some(builder.finish())
    }

    fn values(&mut self) -> Option<Value> {
        let mut builder = ArrayBuilder::new();
        while *self.key.get(self.read)? != tag::END {
            builder.push(self.value()?.as_ref());
        }
        self.read += 1;
        Some(Value::Array(builder.finish()))
    }

    /// Returns the shape's entry for the number or string that was just read, if there is one.
    fn shape_entry(&mut self) -> Option<ShapeEntry> {
        let entry = self.shape_entry_at(self.ordinal);
        self.ordinal = self.ordinal.wrapping_add(1);
        if let (0, Some(([.., shape::WRAP], rest))) =
            (self.ordinal, self.shape.split_first_chunk::<3>())
        {
            self.shape = rest;
        }
        entry
    }

    fn shape_entry_at(&mut self, ordinal: u16) -> Option<ShapeEntry> {
        let (head, rest) = self.shape.split_first_chunk::<3>()?;
        let [low, high, kind] = *head;
        if u16::from_le_bytes([low, high]) != ordinal || kind == shape::WRAP {
            return None;
        }
        self.shape = rest;
        let mut decimal = None;
        if kind == shape::DECIMAL {
            let (bits, rest) = rest.split_first_chunk::<16>()?;
            decimal = Some(Decimal128::from_bits(u128::from_le_bytes(*bits)));
            self.shape = rest;
        }
        Some(ShapeEntry { kind, decimal })
    }

    fn number(&mut self, tag: u8) -> Option<Value> {
        let suggested = self.magnitude(tag)?;
        Some(match (self.shape_entry(), suggested) {
            (None, suggested) => suggested,
            (
                Some(ShapeEntry {
                    decimal: Some(number),
                    ..
                }),
                _,
            ) => Value::Decimal128(number),
            (
                Some(ShapeEntry {
                    kind: shape::NEGATIVE_ZERO,
                    ..
                }),
                _,
            ) => Value::Double(-0.0),
            (
                Some(ShapeEntry {
                    kind: shape::INT64, ..
                }),
                suggested,
            ) => Value::Int64(suggested.as_ref().as_whole()?),
            (Some(_), suggested) => Value::Double(suggested.as_ref().as_f64()?),
        })
    }

    /// Reads a number as the type that its key bytes suggest.
    fn magnitude(&mut self, tag: u8) -> Option<Value> {
        match tag {
            number::NAN => return Some(Value::Double(f64::NAN)),
            number::NEGATIVE_INFINITY => return Some(Value::Double(f64::NEG_INFINITY)),
            number::POSITIVE_INFINITY => return Some(Value::Double(f64::INFINITY)),
            number::ZERO => return Some(Value::Int32(0)),
            _ => {}
        }
        let negative = tag < number::ZERO;
        let mask = if negative { 0xFF } else { 0 };
        let positive = if negative { tag_complement(tag) } else { tag };
        if positive == number::POSITIVE_SMALL || positive == number::POSITIVE_HUGE {
            return self.double(negative, mask);
        }
        let length = usize::from(positive - number::POSITIVE_SMALL);
        let marked = self
            .bytes(length)?
            .iter()
            .fold(0u64, |bits, byte| bits << 8 | u64::from(byte ^ mask));
        let whole = marked >> 1;
        if marked & 1 == 0 {
            let signed = if negative {
                -(whole as i64)
            } else {
                whole as i64
            };
            return Some(Value::whole(signed));
        }
        let magnitude = whole as f64 + self.fraction(mask)?;
        Some(Value::Double(if negative { -magnitude } else { magnitude }))
    }

    fn fraction(&mut self, mask: u8) -> Option<f64> {
        let mut bits = 0u64;
        for group in 1..=number::FRACTION_GROUPS {
            let byte = self.byte()? ^ mask;
            bits |= u64::from(byte >> 1) << (7 * (number::FRACTION_GROUPS - group));
            if byte & 1 == 0 {
                break;
            }
            if group == number::FRACTION_GROUPS {
                self.skip_digits(mask)?;
            }
        }
        Some(bits as f64 / 2f64.powi(63))
    }

    fn marked_bits(&mut self, mask: u8) -> Option<u64> {
        Some(u64::from_be_bytes(
            self.array::<8>()?.map(|byte| byte ^ mask),
        ))
    }

    fn double(&mut self, negative: bool, mask: u8) -> Option<Value> {
        let marked = self.marked_bits(mask)?;
        if marked & 1 == 1 {
            self.bytes(2)?;
            self.skip_digits(mask)?;
        }
        let magnitude = f64::from_bits(marked >> 1);
        if negative && magnitude == 2f64.powi(63) && marked & 1 == 0 {
            return Some(Value::Int64(i64::MIN));
        }
        Some(Value::Double(if negative { -magnitude } else { magnitude }))
    }

    fn skip_digits(&mut self, mask: u8) -> Option<()> {
        while self.byte()? != mask {}
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrayBuf, key};

    /// The ordinals of a shape have 16 bits and wrapped around: of a key with more numbers, an
    /// early number got the type of a later one.
    #[test]
    fn types_of_more_numbers_than_ordinals_are_restored() {
        for typed in [[5, 65_541], [65_535, 65_536], [70_000, 131_077]] {
            let number = |place: i64| {
                if typed.contains(&place) {
                    Value::Int64(place)
                } else {
                    Value::Int32(place as i32)
                }
            };
            let array: ArrayBuf = (0..140_000).map(number).collect();
            let (mut bytes, mut shape) = (Vec::new(), Vec::new());
            let value = Value::Array(array);
            key::append_with_shape(&mut bytes, &mut shape, value.as_ref(), false);
            // Two windows and two types.
            assert_eq!(shape.len(), 4 * 3);
            let mut reader = KeyReader::new(&bytes, &shape);
            assert!(
                reader
                    .value(false)
                    .is_some_and(|restored| restored == value),
                "{typed:?}"
            );
        }
    }
}
