//! The tags of a searched value or range.

use crate::counter::{Counter, Lookup};
use crate::error::Error;
use crate::payload::FindPayload;
use crate::stored::tags_of;
use crate::token::Tag;

/// MongoDB's error code if a query has too many tags.
const TAG_LIMIT: i32 = 377;

/// The tags of a query so far, with the limit on their number.
#[derive(Debug)]
pub struct Tags {
    tags: Vec<Tag>,
    bytes: usize,
    bytes_max: usize,
}

impl Tags {
    /// Creates an empty list. `bytes_max` is the greatest size in bytes of all tags together as an
    /// array of a document.
    pub fn new(bytes_max: usize) -> Tags {
        Tags {
            tags: Vec::new(),
            bytes: 0,
            bytes_max,
        }
    }

    /// Returns the tags that were added since [`new`](Self::new) or the last call.
    pub fn take(&mut self) -> Vec<Tag> {
        std::mem::take(&mut self.tags)
    }

    /// Adds the tags of all documents that a payload can match. `lookup` reads the state
    /// collection.
    pub fn add<E: From<Error>>(
        &mut self,
        payload: &FindPayload,
        lookup: &mut Lookup<'_, E>,
    ) -> Result<(), E> {
        for edge in payload.edges.iter().flatten() {
            for factor in 0..=payload.contention_max {
                let state = Counter::from_edge(edge, factor).find(lookup)?;
                self.reserve(state.count)?;
                let edc = edge.edc.derive(factor);
                self.tags.extend(tags_of(&edc, 1..=state.count));
            }
        }
        Ok(())
    }

    /// Adds the size of `count` more tags. Fails if it exceeds the limit.
    fn reserve(&mut self, count: u64) -> Result<(), Error> {
        /// An element of an array: type, name, length, subtype, tag. Names have up to 7 digits.
        const ELEMENT_BYTES: usize = 1 + 8 + 4 + 1 + 32;
        let bytes = usize::try_from(count).ok();
        let bytes =
            bytes.and_then(|count| count.checked_mul(ELEMENT_BYTES)?.checked_add(self.bytes));
        match bytes.filter(|bytes| *bytes <= self.bytes_max) {
            Some(bytes) => {
                self.bytes = bytes;
                Ok(())
            }
            None => {
                let message = format!(
                    "the tags of the encrypted query take more than {} bytes",
                    self.bytes_max
                );
                Err(Error::invalid(TAG_LIMIT, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::tests::State;
    use crate::payload::tests::{equality, range};
    use crate::token::Token;

    fn add(tags: &mut Tags, payload: &FindPayload, state: &State) -> Result<(), Error> {
        tags.add(payload, &mut |id| Ok(state.0.get(&id).cloned()))
    }

    #[test]
    fn a_query_has_the_tags_of_every_contention_factor() {
        let payload = FindPayload::parse_equality(&equality()).unwrap();
        let (edc, esc) = (Token::new([1; 32]), Token::new([2; 32]));
        let mut state = State::default();
        let mut expected = Vec::new();
        for factor in [0, 3, 8, 9] {
            let counter = Counter::new(&esc.derive(factor));
            for count in 1..=factor + 2 {
                state.insert(counter.insertion(count));
            }
            if factor <= payload.contention_max {
                expected.extend(tags_of(&edc.derive(factor), 1..=factor + 2));
            }
        }
        let mut tags = Tags::new(1 << 20);
        add(&mut tags, &payload, &state).unwrap();
        assert_eq!(tags.take(), expected);
        let mut few = Tags::new(10 * 46);
        let error = add(&mut few, &payload, &state).unwrap_err();
        assert!(matches!(
            error,
            Error::Invalid {
                code: TAG_LIMIT,
                ..
            }
        ));
    }

    #[test]
    fn the_second_bound_of_a_range_has_no_tags() {
        let stub = FindPayload::parse_range(&range(None)).unwrap();
        let mut tags = Tags::new(1 << 20);
        add(&mut tags, &stub, &State::default()).unwrap();
        assert_eq!(tags.take(), []);
    }
}
