//! Compaction and cleanup of counters.
//!
//! Each insertion leaves a document in the compaction collection (ECOC):
//!
//! ```text
//! _id: random | fieldName: path | value: E(ECOC, ESC_vu), or E(ECOC, ESC_vu | is leaf) of an edge
//! ```
//! *Compaction* takes the distinct tokens of these documents. For each of them it writes an anchor
//! with the count and deletes the documents of the insertions. *Cleanup* writes the null anchor and
//! deletes the anchors, too.

use windrow_document::{Document, DocumentBuf, ObjectId, Value, ValueRef, doc};

use crate::cipher;
use crate::counter::{Counter, CounterState, StateId};
use crate::error::{Error, code};
use crate::fields::EncryptedFields;
use crate::payload::InsertEntry;
use crate::reader::{GENERIC, Reader};
use crate::token::Token;

/// MongoDB's error codes.
const TOKEN_TYPE: i32 = 6_346_801;
const TOKEN_MISSING: i32 = 7_294_900;
const WRONG_KIND: i32 = 8_574_701;
const NOTHING_COUNTED: i32 = 7_666_502;

/// The name of the field in a document of the compaction collection.
pub const FIELD_NAME: &str = "fieldName";

/// Returns the document that an insertion leaves in the compaction collection.
pub fn record(id: ObjectId, path: &str, entry: &InsertEntry) -> DocumentBuf {
    let value = Value::Binary {
        subtype: GENERIC,
        bytes: entry.sealed_token.clone(),
    };
    doc! { "_id": (Value::ObjectId(id)), FIELD_NAME: path, "value": value }
}

/// The tokens of a client that let the server read the documents of the compaction collection.
#[derive(Debug)]
pub struct CompactionTokens(Vec<FieldToken>);

/// The token of a field.
#[derive(Debug)]
struct FieldToken {
    path: String,
    ecoc: Token,
    /// The root of the tokens of padding. Only fields with ranges have padding.
    padding: Option<Token>,
}

/// A value of which the counter is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CountedValue {
    esc: Token,
    /// The position of the field's token.
    pub field: usize,
    /// `true` for the edge of a range that is the value itself.
    pub is_leaf: bool,
}

impl CompactionTokens {
    /// Parses the map from paths to tokens. `kind` is "compaction" or "cleanup". Fails if a field
    /// has no token.
    pub fn parse(
        document: Document<'_>,
        fields: &EncryptedFields,
        kind: &str,
    ) -> Result<CompactionTokens, Error> {
        for field in &fields.fields {
            if !document.contains(&field.path) {
                let message = format!(
                    "the {kind} token of the encrypted field '{}' is missing",
                    field.path
                );
                return Err(Error::invalid(TOKEN_MISSING, message));
            }
        }
        let tokens = document.iter().map(|(path, token)| match token {
            ValueRef::Binary {
                subtype: GENERIC, ..
            } => FieldToken::read(path, path, document, &[path], false),
            ValueRef::Document(inner) => {
                FieldToken::read(path, "ecoc", inner, &["ecoc", "anchorPaddingToken"], true)
            }
            other => {
                let message = format!(
                    "the token of the encrypted field '{path}' is a '{}', not a 'binData' of subtype \
                     0 or an 'object'",
                    other.type_of().name()
                );
                Err(Error::invalid(TOKEN_TYPE, message))
            }
        });
        tokens.collect::<Result<_, _>>().map(CompactionTokens)
    }

    /// Reads a document of the compaction collection. Returns `None` if it is of a field without a
    /// token.
    pub fn read(&self, document: Document<'_>) -> Result<Option<CountedValue>, Error> {
        let invalid =
            || Error::damaged("a document of the compaction collection has no valid form");
        let path = document.get(FIELD_NAME).and_then(ValueRef::as_str);
        let path = path.ok_or_else(invalid)?;
        let mut tokens = self.0.iter().enumerate();
        let Some((field, token)) = tokens.find(|(_, token)| token.path == path) else {
            return Ok(None);
        };
        let Some(ValueRef::Binary { bytes, .. }) = document.get("value") else {
            return Err(invalid());
        };
        let plaintext = cipher::decrypt(&token.ecoc, bytes).ok_or_else(invalid)?;
        let (esc, rest) = plaintext.split_first_chunk().ok_or_else(invalid)?;
        let is_range = match rest {
            [] => false,
            [0 | 1] => true,
            [other] => {
                let message =
                    format!("a document of the compaction collection has the leaf flag {other}");
                return Err(Error::invalid(code::BAD_VALUE, message));
            }
            _ => return Err(invalid()),
        };
        if is_range != token.padding.is_some() {
            let name = |is_range| if is_range { "ranges" } else { "equality" };
            let message = format!(
                "the token of the encrypted field '{path}' is for {}, but its values are for {}",
                name(!is_range),
                name(is_range)
            );
            return Err(Error::invalid(WRONG_KIND, message));
        }
        Ok(Some(CountedValue {
            esc: Token::new(*esc),
            field,
            is_leaf: rest == [1],
        }))
    }

    /// Returns the counter of the padding of a field. `None` if the field has no ranges.
    pub fn padding(&self, field: usize) -> Option<Counter> {
        self.0.get(field)?.padding.as_ref().map(Counter::new)
    }
}

impl FieldToken {
    fn read(
        path: &str,
        name: &str,
        document: Document<'_>,
        known: &[&str],
        is_range: bool,
    ) -> Result<FieldToken, Error> {
        let (reader, padding) = if is_range {
            let reader = Reader::new("compactionTokens", document, known)?;
            let padding = reader.token("anchorPaddingToken")?;
            (reader, Some(padding))
        } else {
            (Reader::unchecked("compactionTokens", document), None)
        };
        Ok(FieldToken {
            path: path.to_owned(),
            ecoc: reader.token(name)?,
            padding,
        })
    }
}

impl CountedValue {
    /// Returns the counter of the value.
    pub fn counter(&self) -> Counter {
        Counter::new(&self.esc)
    }
}

/// The changes of a compaction or cleanup in the state collection.
#[derive(Debug, Default, PartialEq)]
pub struct CounterChange {
    /// An anchor to insert.
    pub insert: Option<DocumentBuf>,
    /// An anchor to replace.
    pub replace: Option<DocumentBuf>,
    /// The documents to delete.
    pub delete: Vec<StateId>,
    /// `true` if nothing is left to do for the value.
    pub is_complete: bool,
}

impl Counter {
    /// Returns the change that compacts a counter. It deletes at most `delete_max` documents. If
    /// the counter has more insertions, the anchor replaces only some of them.
    pub fn compact(&self, state: CounterState, delete_max: u64) -> Result<CounterChange, Error> {
        check_counted(state, "compaction")?;
        let count = state.count.min(state.anchored.saturating_add(delete_max));
        if count == state.anchored {
            return Ok(CounterChange {
                is_complete: true,
                ..CounterChange::default()
            });
        }
        Ok(CounterChange {
            insert: Some(self.anchor(state.anchor.saturating_add(1), count)?),
            replace: None,
            delete: self.insertions(state.anchored, count),
            is_complete: count == state.count,
        })
    }

    /// Returns the change that cleans a counter up, with the limit of [`compact`](Self::compact).
    pub fn clean_up(&self, state: CounterState, delete_max: u64) -> Result<CounterChange, Error> {
        check_counted(state, "cleanup")?;
        let covered = state.null_anchor.unwrap_or_default();
        if state.count == state.anchored && state.null_anchor == Some(state.anchor) {
            return Ok(CounterChange {
                is_complete: true,
                ..CounterChange::default()
            });
        }
        let (count, anchors) = if state.count - state.anchored > delete_max {
            // An anchor for a part of the insertions: the rest follows.
            return self.compact(state, delete_max);
        } else {
            (state.count, state.anchor)
        };
        let mut delete = self.insertions(state.anchored, count);
        let anchor_ids = (covered.saturating_add(1)..=anchors).map(|number| self.anchor_id(number));
        delete.extend(anchor_ids);
        let null = self.null_anchor(anchors, count)?;
        let (insert, replace) = match state.null_anchor {
            None => (Some(null), None),
            Some(_) => (None, Some(null)),
        };
        Ok(CounterChange {
            insert,
            replace,
            delete,
            is_complete: true,
        })
    }

    /// Returns the ids of the insertions after the first count, up to the second one.
    fn insertions(&self, from: u64, to: u64) -> Vec<StateId> {
        let counts = from.saturating_add(1)..=to;
        counts.map(|count| self.insertion_id(count)).collect()
    }
}

/// Fails if a value that was inserted has no counter.
fn check_counted(state: CounterState, command: &str) -> Result<(), Error> {
    if state.count > 0 {
        return Ok(());
    }
    let message = format!(
        "{command}: an inserted value has no counter. The tokens are of other keys, or the state \
         collection is damaged."
    );
    Err(Error::invalid(NOTHING_COUNTED, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::tests::State;
    use crate::payload::InsertPayload;
    use crate::payload::tests::{insertion, token};

    fn apply(state: &mut State, change: CounterChange) {
        for document in change.insert.into_iter().chain(change.replace) {
            state.insert(document);
        }
        for id in change.delete {
            assert!(state.0.remove(&id).is_some());
        }
    }

    /// After random insertions, compactions and cleanups, the counter equals a plain count.
    #[test]
    fn compaction_keeps_counts() {
        let counter = Counter::new(&Token::new([9; 32]));
        let mut state = State::default();
        let mut expected = 0;
        let mut random = 12345_u64;
        for _ in 0..600 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let found = state.find(&counter).unwrap();
            assert_eq!(found.count, expected);
            let limit = 1 + (random >> 40) % 7;
            match (random >> 33) % 5 {
                0 if expected > 0 => {
                    let change = counter.compact(found, limit).unwrap();
                    assert_eq!(change.is_complete, found.count - found.anchored <= limit);
                    apply(&mut state, change);
                }
                1 if expected > 0 => {
                    let change = counter.clean_up(found, limit).unwrap();
                    let is_complete = change.is_complete;
                    apply(&mut state, change);
                    if is_complete {
                        assert_eq!(state.0.len(), 1);
                    }
                }
                _ => {
                    expected += 1;
                    state.insert(counter.insertion(expected));
                }
            }
        }
        assert!(expected > 300);
        let nothing = counter.compact(CounterState::default(), 10).unwrap_err();
        assert!(matches!(
            nothing,
            Error::Invalid {
                code: NOTHING_COUNTED,
                ..
            }
        ));
    }

    fn fields() -> EncryptedFields {
        let key = |byte| Value::Binary {
            subtype: 4,
            bytes: vec![byte; 16],
        };
        let fields = doc! { "fields": [
            { "keyId": (key(1)), "path": "a", "bsonType": "string",
                "queries": { "queryType": "equality" } },
            { "keyId": (key(2)), "path": "b.c", "bsonType": "int",
                "queries": { "queryType": "range" } },
        ] };
        EncryptedFields::parse(fields.as_document()).unwrap()
    }

    #[test]
    fn records_are_read_with_the_tokens_of_their_field() {
        let padded = || doc! { "ecoc": (token(2)), "anchorPaddingToken": (token(3)) };
        let tokens = doc! { "a": (token(1)), "b.c": (padded()) };
        let tokens =
            CompactionTokens::parse(tokens.as_document(), &fields(), "compaction").unwrap();
        let seal = |ecoc: u8, plaintext: &[u8]| {
            cipher::encrypt(&Token::new([ecoc; 32]), plaintext).unwrap()
        };
        let document = |path: &str, sealed: Vec<u8>| {
            let payload = InsertPayload::parse(&insertion(1, None)).unwrap();
            let entry = InsertEntry {
                sealed_token: sealed,
                ..payload.entries[0].clone()
            };
            record(ObjectId([1; 12]), path, &entry)
        };
        let esc = [8; 32];
        let leaf = |byte: u8| [&esc[..], &[byte]].concat();
        let read = |document: DocumentBuf| tokens.read(document.as_document());
        let value = CountedValue {
            esc: Token::new(esc),
            field: 0,
            is_leaf: false,
        };
        assert_eq!(read(document("a", seal(1, &esc))), Ok(Some(value)));
        for byte in [0, 1] {
            let edge = CountedValue {
                field: 1,
                is_leaf: byte == 1,
                ..value
            };
            let found = read(document("b.c", seal(2, &leaf(byte))));
            assert_eq!(found, Ok(Some(edge)));
        }
        let has_padding = [0, 1, 2].map(|field| tokens.padding(field).is_some());
        assert_eq!(has_padding, [false, true, false]);
        assert_eq!(read(document("x", seal(1, &esc))), Ok(None));
        assert_ne!(read(document("a", seal(2, &esc))), Ok(Some(value)));
        let code = |document: DocumentBuf| match read(document) {
            Err(Error::Invalid { code, .. }) => code,
            Err(Error::Damaged(_)) => -1,
            other => panic!("{other:?}"),
        };
        assert_eq!(code(document("b.c", seal(2, &leaf(2)))), 2);
        assert_eq!(code(document("b.c", seal(2, &esc))), WRONG_KIND);
        assert_eq!(code(document("a", seal(1, &leaf(0)))), WRONG_KIND);
        assert_eq!(code(document("a", vec![1; 20])), -1);
        assert_eq!(code(doc! { "_id": 1 }), -1);
        for (tokens, expected) in [
            (doc! { "a": (token(1)) }, TOKEN_MISSING),
            (doc! { "a": 1, "b.c": (token(1)) }, TOKEN_TYPE),
            (
                doc! { "a": (token(1)), "b.c": { "ecoc": (token(1)) } },
                40_414,
            ),
        ] {
            let parsed = CompactionTokens::parse(tokens.as_document(), &fields(), "Cleanup");
            match parsed {
                Err(Error::Invalid { code, .. }) => assert_eq!(code, expected),
                other => panic!("{other:?}"),
            }
        }
    }
}
