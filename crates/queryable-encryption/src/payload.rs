//! Payloads, which clients send in place of values: binary data of subtype 6.
//!
//! ```text
//! insertion      11 | document: d, s, l, p: tokens; u: UUID of the key; t: type; v: the encrypted
//!                     value; e: the key that encrypts it again; k: contention factor;
//!                     g: an array of {d, s, l, p} for the edges of a range
//! equality       12 | document: d, s, l: tokens; cm: the maximal contention factor
//! range          13 | document: payload: {g: array of {d, s, l}, cm}, payloadId, firstOperator,
//!                     secondOperator. The second bound of a range has no `payload`: that of the
//!                     first bound covers the whole range
//! ```
//! `sp`, `pn`, `tf`, `mn` and `mx` are the options of the field by which the client found the
//! edges. `d` is derived from EDC, `s` from ESC, `l` from K2; see `token`. `p` is `s`, encrypted
//! with ECOC.

use windrow_document::{Array, Document, Type, ValueRef};

use crate::cipher::IV_BYTES;
use crate::error::{Error, code};
use crate::kind;
use crate::reader::Reader;
use crate::token::{TOKEN_BYTES, Token};

/// MongoDB's error codes for payloads.
const UNEXPECTED_EQUALITY: i32 = 7_292_600;
const UNEXPECTED_RANGE: i32 = 7_292_601;
const WRONG_TYPE: i32 = 7_290_901;
const EMPTY_VALUE: i32 = 7_290_902;
const EDGE_COUNT: i32 = 7_290_910;

/// A stored value has its number of edges in one byte.
const EDGES_MAX: usize = 254;
/// The largest contention factor, which limits the searches of a query.
const CONTENTION_MAX: u64 = 10_000;
/// The UUID of the key before an encrypted value.
const KEY_ID_BYTES: usize = 16;

/// The length of an encrypted token.
const SEALED_TOKEN_BYTES: usize = IV_BYTES + TOKEN_BYTES;
/// For ranges it has one more byte: whether the edge is the value itself.
const SEALED_EDGE_BYTES: usize = SEALED_TOKEN_BYTES + 1;

const OPTIONS: &[&str] = &["sp", "pn", "tf", "mn", "mx"];

/// A value to insert.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertPayload {
    /// The UUID of the key of the field's index.
    pub key_id: [u8; 16],
    pub(crate) value_type: Type,
    pub(crate) value: Vec<u8>,
    pub(crate) value_key: Token,
    pub(crate) contention_factor: u64,
    /// `true` if the value is found by ranges.
    pub is_range: bool,
    /// The value itself, or the edges of its range.
    pub entries: Vec<InsertEntry>,
}

/// The tokens of a value, or of an edge of its range.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertEntry {
    pub(crate) edc: Token,
    pub(crate) esc: Token,
    pub(crate) server: Token,
    /// `esc`, encrypted for compaction.
    pub(crate) sealed_token: Vec<u8>,
}

impl InsertPayload {
    /// Parses binary data of subtype 6 with the kind [`INSERT_PAYLOAD`](kind::INSERT_PAYLOAD).
    pub fn parse(bytes: &[u8]) -> Result<InsertPayload, Error> {
        let document = content(bytes, kind::INSERT_PAYLOAD, code::BAD_VALUE)?;
        if document.contains("b") {
            let message = "queries for parts of encrypted strings are not supported";
            return Err(Error::Unsupported(message.to_owned()));
        }
        let mut known = vec!["d", "s", "p", "u", "t", "v", "e", "l", "k", "g"];
        known.extend(OPTIONS);
        let reader = Reader::new("InsertUpdatePayload", document, &known)?;
        let is_range = reader.get("g").is_some();
        let sealed_bytes = if is_range {
            SEALED_EDGE_BYTES
        } else {
            SEALED_TOKEN_BYTES
        };
        let whole = InsertEntry::read(&reader, sealed_bytes)?;
        let entries = if is_range {
            edges(reader.array("g")?)?
        } else {
            vec![whole]
        };
        let value = reader.bytes("v")?;
        if value.len() <= KEY_ID_BYTES {
            let message = "a payload has no encrypted value";
            return Err(Error::invalid(EMPTY_VALUE, message));
        }
        Ok(InsertPayload {
            key_id: reader.uuid("u")?,
            value_type: value_type(&reader)?,
            value: value.to_vec(),
            value_key: reader.token("e")?,
            contention_factor: contention(&reader, "k")?,
            is_range,
            entries,
        })
    }
}

impl InsertEntry {
    fn read(reader: &Reader<'_>, sealed_bytes: usize) -> Result<InsertEntry, Error> {
        let sealed = reader.bytes("p")?;
        if sealed.len() != sealed_bytes {
            let found = sealed.len();
            let message =
                format!("an encrypted token must have {sealed_bytes} bytes, but has {found}");
            return Err(Error::bad_value(message));
        }
        Ok(InsertEntry {
            edc: reader.token("d")?,
            esc: reader.token("s")?,
            server: reader.token("l")?,
            sealed_token: sealed.to_vec(),
        })
    }
}

fn edges(list: Array<'_>) -> Result<Vec<InsertEntry>, Error> {
    let count = list.count();
    if !(1..=EDGES_MAX).contains(&count) {
        let message = format!("a range must have 1 to {EDGES_MAX} edges, but has {count}");
        return Err(Error::invalid(EDGE_COUNT, message));
    }
    let read = |edge: ValueRef<'_>| {
        let reader = Reader::new("EdgeTokenSet", document_of(edge)?, &["d", "s", "l", "p"])?;
        InsertEntry::read(&reader, SEALED_EDGE_BYTES)
    };
    list.iter().map(read).collect()
}

fn document_of(value: ValueRef<'_>) -> Result<Document<'_>, Error> {
    value.as_document().ok_or_else(|| {
        let message = format!(
            "an edge of a range is the wrong type '{}', expected type 'object'",
            value.type_of().name()
        );
        Error::invalid(code::TYPE_MISMATCH, message)
    })
}

fn value_type(reader: &Reader<'_>) -> Result<Type, Error> {
    let number = reader.whole("t")?;
    let known = u8::try_from(number).ok().and_then(Type::from_byte);
    known.ok_or_else(|| {
        let message = format!("Invalid BSON Type {number} in an InsertUpdatePayload");
        Error::invalid(WRONG_TYPE, message)
    })
}

fn contention(reader: &Reader<'_>, field: &str) -> Result<u64, Error> {
    let factor = reader.whole(field)?;
    if factor > CONTENTION_MAX {
        let message =
            format!("the contention factor must be at most {CONTENTION_MAX}, but is {factor}");
        return Err(Error::bad_value(message));
    }
    Ok(factor)
}

/// Returns the document after the byte of the kind. Fails with `code` if the payload is of another
/// kind.
fn content(bytes: &[u8], kind: u8, code: i32) -> Result<Document<'_>, Error> {
    let Some((found, document)) = bytes.split_first().filter(|(found, _)| **found == kind) else {
        let found = bytes.first();
        let found = found.map_or("nothing".to_owned(), u8::to_string);
        let message = format!("a payload of kind {kind} is expected, not of kind {found}");
        return Err(Error::invalid(code, message));
    };
    debug_assert_eq!(*found, kind);
    Document::from_bytes(document)
        .map_err(|error| Error::invalid(code::INVALID_BSON, error.to_string()))
}

/// A value or a range to search for.
#[derive(Clone, Debug, PartialEq)]
pub struct FindPayload {
    /// The value itself, or the edges that cover the range. `None` for the second bound of a range:
    /// the edges of the first bound cover the whole range.
    pub edges: Option<Vec<FindEdge>>,
    /// The maximal contention factor: there is a counter for each one up to it.
    pub contention_max: u64,
}

/// The tokens of a value or an edge.
#[derive(Clone, Debug, PartialEq)]
pub struct FindEdge {
    pub(crate) edc: Token,
    pub(crate) esc: Token,
}

impl FindPayload {
    /// Parses binary data of subtype 6 with the kind
    /// [`FIND_EQUALITY_PAYLOAD`](kind::FIND_EQUALITY_PAYLOAD).
    pub fn parse_equality(bytes: &[u8]) -> Result<FindPayload, Error> {
        let document = content(bytes, kind::FIND_EQUALITY_PAYLOAD, UNEXPECTED_EQUALITY)?;
        let reader = Reader::new("FindEqualityPayload", document, &["d", "s", "l", "cm"])?;
        let edge = FindEdge::read(&reader)?;
        Ok(FindPayload {
            edges: Some(vec![edge]),
            contention_max: contention(&reader, "cm")?,
        })
    }

    /// Parses binary data of subtype 6 with the kind
    /// [`FIND_RANGE_PAYLOAD`](kind::FIND_RANGE_PAYLOAD).
    pub fn parse_range(bytes: &[u8]) -> Result<FindPayload, Error> {
        let document = content(bytes, kind::FIND_RANGE_PAYLOAD, UNEXPECTED_RANGE)?;
        let mut known = vec!["payload", "payloadId", "firstOperator", "secondOperator"];
        known.extend(OPTIONS);
        let reader = Reader::new("FindRangePayload", document, &known)?;
        reader.whole("payloadId")?;
        reader.whole("firstOperator")?;
        reader.optional_whole("secondOperator")?;
        if reader.get("payload").is_none() {
            return Ok(FindPayload {
                edges: None,
                contention_max: 0,
            });
        }
        let name = "FindRangePayload.payload";
        let inner = Reader::new(name, reader.document("payload")?, &["g", "cm"])?;
        let read = |edge: ValueRef<'_>| {
            let reader = Reader::new("EdgeFindTokenSet", document_of(edge)?, &["d", "s", "l"])?;
            FindEdge::read(&reader)
        };
        let edges: Result<Vec<FindEdge>, Error> = inner.array("g")?.iter().map(read).collect();
        Ok(FindPayload {
            edges: Some(edges?),
            contention_max: contention(&inner, "cm")?,
        })
    }
}

impl FindEdge {
    fn read(reader: &Reader<'_>) -> Result<FindEdge, Error> {
        // Only a scan of all documents would use this token.
        reader.token("l")?;
        Ok(FindEdge {
            edc: reader.token("d")?,
            esc: reader.token("s")?,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use windrow_document::{ArrayBuf, DocumentBuf, Value, doc};

    pub(crate) fn binary(subtype: u8, bytes: Vec<u8>) -> Value {
        Value::Binary { subtype, bytes }
    }

    pub(crate) fn token(byte: u8) -> Value {
        binary(0, vec![byte; 32])
    }

    fn with_kind(kind: u8, document: &DocumentBuf) -> Vec<u8> {
        [&[kind], document.as_bytes()].concat()
    }

    fn edge(sealed: usize) -> DocumentBuf {
        doc! { "d": (token(1)), "s": (token(2)), "l": (token(3)), "p": (binary(0, vec![4; sealed])) }
    }

    /// Returns an insertion with this value of `s`. It has edges if ranges must find it.
    pub(crate) fn insertion(esc: u8, edges: Option<usize>) -> Vec<u8> {
        let mut document = doc! {
            "d": (token(esc ^ 0xFF)), "s": (token(esc)), "p": (binary(0, vec![4; if edges.is_some() { 49 } else { 48 }])),
            "u": (binary(4, vec![5; 16])), "t": 2, "v": (binary(0, vec![6; 80])),
            "e": (token(7)), "l": (token(8)), "k": 0i64,
        };
        if let Some(count) = edges {
            let list: ArrayBuf = (0..count).map(|_| Value::from(edge(49))).collect();
            document.push("g", Value::from(list));
            document.push("sp", 2i64);
            document.push("tf", 6);
            document.push("mn", 0);
            document.push("mx", 100);
        }
        with_kind(kind::INSERT_PAYLOAD, &document)
    }

    pub(crate) fn equality() -> Vec<u8> {
        let document = doc! { "d": (token(1)), "s": (token(2)), "l": (token(3)), "cm": 8i64 };
        with_kind(kind::FIND_EQUALITY_PAYLOAD, &document)
    }

    pub(crate) fn range(edges: Option<usize>) -> Vec<u8> {
        let mut document = DocumentBuf::new();
        if let Some(count) = edges {
            let one = || doc! { "d": (token(1)), "s": (token(2)), "l": (token(3)) };
            let list: ArrayBuf = (0..count).map(|_| Value::from(one())).collect();
            document.push("payload", doc! { "g": (Value::from(list)), "cm": 4i64 });
        }
        for (name, value) in [
            ("payloadId", 1),
            ("firstOperator", 1),
            ("secondOperator", 4),
        ] {
            document.push(name, value);
        }
        with_kind(kind::FIND_RANGE_PAYLOAD, &document)
    }

    /// Returns all forms of payloads.
    fn samples() -> Vec<Vec<u8>> {
        vec![
            insertion(1, None),
            insertion(1, Some(3)),
            equality(),
            range(Some(4)),
            range(None),
        ]
    }

    fn parse(bytes: &[u8]) -> Result<(), Error> {
        match bytes.first() {
            Some(&kind::INSERT_PAYLOAD) => InsertPayload::parse(bytes).map(drop),
            Some(&kind::FIND_EQUALITY_PAYLOAD) => FindPayload::parse_equality(bytes).map(drop),
            _ => FindPayload::parse_range(bytes).map(drop),
        }
    }

    #[test]
    fn payloads_are_parsed() {
        let one = InsertPayload::parse(&insertion(9, None)).unwrap();
        assert_eq!(
            (one.is_range, one.entries.len(), one.key_id),
            (false, 1, [5; 16])
        );
        assert_eq!(one.entries[0].esc, Token::new([9; 32]));
        let ranges = InsertPayload::parse(&insertion(9, Some(3))).unwrap();
        assert_eq!((ranges.is_range, ranges.entries.len()), (true, 3));
        let equality = FindPayload::parse_equality(&equality()).unwrap();
        assert_eq!(
            (equality.edges.unwrap().len(), equality.contention_max),
            (1, 8)
        );
        let both = [Some(4), None].map(|edges| FindPayload::parse_range(&range(edges)).unwrap());
        assert_eq!(both[0].edges.as_ref().unwrap().len(), 4);
        assert_eq!(both[1].edges, None);
    }

    #[test]
    fn wrong_fields_have_mongodbs_codes() {
        let original = doc! {
            "d": (token(1)), "s": (token(2)), "l": (token(3)), "cm": 8i64,
        };
        let check = |name: &str, value: Option<Value>, expected: i32| {
            let mut document = DocumentBuf::new();
            for (field, old) in original.iter().filter(|(field, _)| *field != name) {
                document.push(field, old);
            }
            if let Some(value) = value {
                document.push(name, value);
            }
            let bytes = with_kind(kind::FIND_EQUALITY_PAYLOAD, &document);
            match FindPayload::parse_equality(&bytes) {
                Err(Error::Invalid { code, .. }) => assert_eq!(code, expected, "{document}"),
                other => panic!("{document}: {other:?}"),
            }
        };
        check("d", None, 40_414);
        check("x", Some(Value::from(1)), 40_415);
        check("d", Some(Value::from(1)), 14);
        check("d", Some(binary(5, vec![1; 32])), 14);
        check("d", Some(binary(0, vec![1; 31])), 6_373_501);
        check("cm", Some(Value::from("8")), 14);
        check("cm", Some(Value::from(-1)), 2);
        check("cm", Some(Value::from(10_001)), 2);
        let other_kind = FindPayload::parse_equality(&range(None)).unwrap_err();
        assert!(matches!(
            other_kind,
            Error::Invalid {
                code: 7_292_600,
                ..
            }
        ));
        let empty = InsertPayload::parse(&[]).unwrap_err();
        assert!(matches!(empty, Error::Invalid { code: 2, .. }));
        let mut text = doc! { "b": {} };
        text.push("d", token(1));
        let text = InsertPayload::parse(&with_kind(kind::INSERT_PAYLOAD, &text));
        assert!(matches!(text, Err(Error::Unsupported(_))));
    }

    /// A payload with bytes that were removed, changed or inserted is an error with a code, or
    /// another valid payload.
    #[test]
    fn damaged_payloads_are_errors() {
        let samples = samples();
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut random = move |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 16) as usize % below
        };
        let (mut refused, mut codes) = (0, std::collections::BTreeSet::new());
        for round in 0..10_000 {
            let mut bytes = samples[round % samples.len()].clone();
            for _ in 0..=random(3) {
                let at = random(bytes.len());
                match random(4) {
                    0 => bytes.truncate(at.max(1)),
                    1 => bytes[at] = random(256) as u8,
                    2 => bytes[at] ^= 1 << random(8),
                    _ => bytes.insert(at, random(256) as u8),
                }
            }
            match parse(&bytes) {
                Ok(()) => {}
                Err(Error::Invalid { code, .. }) => {
                    refused += 1;
                    codes.insert(code);
                }
                Err(Error::Unsupported(_)) => refused += 1,
                Err(other) => panic!("{other}"),
            }
        }
        assert!(refused > 5_000, "{refused}");
        for code in [2, 14, 22, 40_415, 7_292_601] {
            assert!(codes.contains(&code), "{code} is not among {codes:?}");
        }
    }
}
