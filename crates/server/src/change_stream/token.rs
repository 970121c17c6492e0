//! Resume tokens: positions in a change stream, in a form that sorts like the events.
//!
//! ```text
//! 82 time, 8 bytes | version 1 | kind: 0 or 128 | number | 6E or 6F
//! of an event:     | 5A 10 04 UUID, 16 bytes
//!                  | number of a fragment, where the event was split
//!                  | 04
//! ```
//! The `_data` of a token is this in hexadecimal digits. The layout is that of MongoDB's tokens: a
//! sequence of values, each with its type first, and numbers in the fewest bytes that can hold
//! twice their value. A token of kind 0 belongs to no event: everything before its time has been
//! read. 6F marks the event that ends a stream.

use windrow_collection::{ClusterTime, CollectionUuid};
use windrow_document::{Document, DocumentBuf, ValueRef};
use windrow_wire::{CommandError, ErrorCode};

use crate::errors::refuse;

const TIME: u8 = 0x82;
const ZERO: u8 = 0x29;
/// The type of a number of 0 bytes. It is one more for each byte.
const NUMBER: u8 = 0x2A;
const FALSE: u8 = 0x6E;
const TRUE: u8 = 0x6F;
const BINARY: u8 = 0x5A;
const UUID: [u8; 2] = [16, 4];
const END: u8 = 4;

const VERSION: u64 = 1;
const OF_TIME: u64 = 0;
const OF_EVENT: u64 = 128;

/// A resume token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// Everything before this time has been read.
    Before(ClusterTime),
    Event(EventToken),
}

/// The position of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventToken {
    pub time: ClusterTime,
    /// The number of the event among those of the same time.
    pub number: u64,
    /// `true` for the end of a stream, which follows the event with the same number.
    pub ends: bool,
    /// The UUID of the collection.
    pub uuid: CollectionUuid,
    /// The number of the fragment, from 0, if the event was split.
    pub fragment: Option<u64>,
}

impl Token {
    /// Returns the cluster time of the position.
    pub fn time(&self) -> ClusterTime {
        match self {
            Token::Before(time) => *time,
            Token::Event(event) => event.time,
        }
    }

    /// Returns the token as `{_data}`.
    pub fn to_document(self) -> DocumentBuf {
        let mut digits = String::new();
        for byte in self.bytes() {
            digits.push_str(&format!("{byte:02X}"));
        }
        let mut document = DocumentBuf::new();
        document.push("_data", digits);
        document
    }

    fn bytes(self) -> Vec<u8> {
        let mut bytes = vec![TIME];
        bytes.extend_from_slice(&self.time().0.to_be_bytes());
        put_number(&mut bytes, VERSION);
        match self {
            Token::Before(_) => {
                put_number(&mut bytes, OF_TIME);
                put_number(&mut bytes, 0);
                bytes.push(FALSE);
            }
            Token::Event(event) => {
                put_number(&mut bytes, OF_EVENT);
                put_number(&mut bytes, event.number);
                bytes.push(if event.ends { TRUE } else { FALSE });
                bytes.push(BINARY);
                bytes.extend_from_slice(&UUID);
                bytes.extend_from_slice(&event.uuid.0);
                if let Some(fragment) = event.fragment {
                    put_number(&mut bytes, fragment);
                }
            }
        }
        bytes.push(END);
        bytes
    }

    /// Parses a token of a client.
    ///
    /// # Errors
    ///
    /// - 40647 to 40649, 9, 50811, 15: it is not a resume token.
    /// - 260: it is not a token of this server.
    pub fn read(document: Document<'_>) -> Result<Token, CommandError> {
        let Some(ValueRef::String(digits)) = document.get("_data") else {
            return refuse(40_647, "a resume token must have a string field '_data'");
        };
        if let Some(bits) = document.get("_typeBits")
            && !matches!(bits, ValueRef::Binary { .. })
        {
            return refuse(40_648, "'_typeBits' of a resume token must be binary data");
        }
        if digits.is_empty() {
            return refuse(40_649, "'_data' of a resume token is empty");
        }
        let bytes = unhex(digits)?;
        let Some((&TIME, rest)) = bytes.split_first() else {
            return refuse(50_811, "a resume token must start with a timestamp");
        };
        let Some((time, rest)) = rest.split_first_chunk() else {
            let message = "a resume token ends within its timestamp";
            return Err(CommandError::new(ErrorCode::Overflow, message));
        };
        let time = ClusterTime(u64::from_be_bytes(*time));
        read_rest(time, rest).ok_or_else(|| {
            let message = format!("the resume token {digits} is not from this server");
            CommandError::new(ErrorCode::InvalidResumeToken, message)
        })
    }
}

fn read_rest(time: ClusterTime, mut rest: &[u8]) -> Option<Token> {
    let rest = &mut rest;
    if take_number(rest)? != VERSION {
        return None;
    }
    let kind = take_number(rest)?;
    let number = take_number(rest)?;
    let ends = match take(rest)? {
        FALSE => false,
        TRUE => true,
        _ => return None,
    };
    match kind {
        OF_TIME => Some(Token::Before(time)),
        OF_EVENT => Some(Token::Event(EventToken {
            time,
            number,
            ends,
            uuid: take_uuid(rest)?,
            fragment: take_number(rest),
        })),
        _ => None,
    }
}

fn unhex(digits: &str) -> Result<Vec<u8>, CommandError> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
    let pairs = digits.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| match pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    });
    bytes.collect::<Option<Vec<u8>>>().ok_or_else(|| {
        let message = "'_data' of a resume token is not a string of hexadecimal digits";
        CommandError::new(ErrorCode::FailedToParse, message)
    })
}

fn put_number(bytes: &mut Vec<u8>, number: u64) {
    if number == 0 {
        return bytes.push(ZERO);
    }
    let doubled = number << 1;
    let count = 8 - doubled.leading_zeros() as usize / 8;
    bytes.push(NUMBER + count as u8);
    bytes.extend(doubled.to_be_bytes().iter().skip(8 - count));
}

fn take(rest: &mut &[u8]) -> Option<u8> {
    let (&first, after) = rest.split_first()?;
    *rest = after;
    Some(first)
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let count = match take(rest)? {
        ZERO => return Some(0),
        byte => usize::from(byte.checked_sub(NUMBER)?),
    };
    let (digits, after) = rest.split_at_checked(count).filter(|_| count <= 8)?;
    *rest = after;
    let doubled = digits
        .iter()
        .fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
    Some(doubled >> 1)
}

fn take_uuid(rest: &mut &[u8]) -> Option<CollectionUuid> {
    let after = rest.strip_prefix(&[BINARY])?.strip_prefix(&UUID)?;
    let (uuid, after) = after.split_first_chunk()?;
    *rest = after;
    Some(CollectionUuid(*uuid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;

    fn event(time: u64, number: u64, ends: bool) -> Token {
        Token::Event(EventToken {
            time: ClusterTime(time),
            number,
            ends,
            uuid: CollectionUuid([7; 16]),
            fragment: None,
        })
    }

    fn part(fragment: u64) -> Token {
        match event(1, 1, false) {
            Token::Event(event) => Token::Event(EventToken {
                fragment: Some(fragment),
                ..event
            }),
            before => before,
        }
    }

    #[test]
    fn tokens_round_trip_and_sort_like_events() {
        let sorted = [
            Token::Before(ClusterTime(1)),
            event(1, 0, false),
            event(1, 0, true),
            event(1, 1, false),
            part(0),
            part(1),
            part(200),
            event(1, 127, false),
            event(1, 128, false),
            event(1, 70_000, false),
            event(1, 1 << 40, false),
            Token::Before(ClusterTime(2)),
            event(u64::MAX, 3, false),
        ];
        let digits = |token: Token| {
            let document = token.to_document();
            document.get("_data").unwrap().as_str().unwrap().to_owned()
        };
        for pair in sorted.windows(2) {
            assert!(digits(pair[0]) < digits(pair[1]), "{pair:?}");
        }
        for token in sorted {
            let document = token.to_document();
            assert_eq!(Token::read(document.as_document()).unwrap(), token);
            let lower = doc! { "_data": (digits(token).to_lowercase()) };
            assert_eq!(Token::read(lower.as_document()).unwrap(), token);
        }
    }

    #[test]
    fn tokens_have_the_layout_of_mongodb() {
        let time = ClusterTime::new(0x6B01_3D88, 0x407);
        let token = Token::Before(time).to_document();
        assert_eq!(token, doc! { "_data": "826B013D88000004072B0229296E04" });
        let event = doc! {
            "_data": "826B013D88000004072B022C0100296E5A1004BF89854B014C4322BE6F8D1A52BECB84461E5F6964002B040004",
        };
        let Token::Event(event) = Token::read(event.as_document()).unwrap() else {
            panic!("it is an event's");
        };
        assert_eq!((event.time, event.number, event.ends), (time, 0, false));
        assert_eq!(event.uuid.0[..2], [0xBF, 0x89]);
    }

    #[test]
    fn invalid_tokens_are_refused() {
        let check = |document: DocumentBuf, code: i32| {
            let error = Token::read(document.as_document()).unwrap_err();
            assert_eq!(error.code.number(), code, "{document}");
        };
        check(doc! {}, 40_647);
        check(doc! { "_data": 5 }, 40_647);
        check(doc! { "_data": "825E5A5A5A", "_typeBits": 5 }, 40_648);
        check(doc! { "_data": "" }, 40_649);
        check(doc! { "_data": "zz" }, 9);
        check(doc! { "_data": "825" }, 9);
        check(doc! { "_data": "00" }, 50_811);
        check(doc! { "_data": "825E5A5A5A" }, 15);
        check(doc! { "_data": "826B013D8800000407" }, 260);
        check(doc! { "_data": "826B013D880000040729" }, 260);
        check(doc! { "_data": "826B013D88000004072B022C0100296E" }, 260);
        check(doc! { "_data": "826B013D8800000407FFFF" }, 260);
    }
}
