//! `$changeStreamSplitLargeEvent`: splits an event that is larger than a document into several
//! documents.
//!
//! The fields of an event are put into fragments from the smallest to the largest, so that the
//! first fragment has as many fields as possible. A field is not split.

use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode};

use super::token::{EventToken, Token};

/// The name of the stage.
const STAGE: &str = "$changeStreamSplitLargeEvent";
/// MongoDB's error codes for an invalid stage.
const NOT_EMPTY: ErrorCode = ErrorCode(7_182_800);
const NOT_LAST: ErrorCode = ErrorCode(7_182_802);
/// Maximum bytes of the fields that every fragment has.
const FRAME_BYTES: usize = 1024;
/// The bytes of a value's type and of the end of its name.
const NAME_BYTES: usize = 2;

/// Removes the stage from the end of a pipeline. Returns `true` if it was there.
pub fn take_stage(stages: &mut Vec<ValueRef<'_>>) -> Result<bool, CommandError> {
    let operand = |stage: &ValueRef<'_>| match stage.as_document()?.first()? {
        (STAGE, operand) => Some(operand.as_document().is_some_and(|it| it.is_empty())),
        _ => None,
    };
    let Some(place) = stages.iter().position(|stage| operand(stage).is_some()) else {
        return Ok(false);
    };
    if stages.get(place).and_then(operand) == Some(false) {
        let message = format!("{STAGE} spec should be an empty object");
        return Err(CommandError::new(NOT_EMPTY, message));
    }
    if place + 1 != stages.len() {
        let message = format!("{STAGE} must be the last stage in the pipeline");
        return Err(CommandError::new(NOT_LAST, message));
    }
    stages.pop();
    Ok(true)
}

/// Returns the fragments of an event, each of at most `bytes_max` bytes, with their tokens. Returns
/// `None` if a single field is too large.
pub fn fragments(
    event: Document<'_>,
    token: EventToken,
    bytes_max: usize,
) -> Option<Vec<(Token, DocumentBuf)>> {
    let size = |name: &str, value: ValueRef<'_>| {
        let mut alone = DocumentBuf::new();
        alone.push(name, value);
        alone.as_bytes().len() + NAME_BYTES
    };
    let fields = event.iter().filter(|(name, _)| *name != "_id");
    let mut fields: Vec<_> = fields
        .map(|(name, value)| (size(name, value), name, value))
        .collect();
    fields.sort_by_key(|(size, ..)| *size);
    let room = bytes_max.saturating_sub(FRAME_BYTES);
    let (mut parts, mut used) = (vec![DocumentBuf::new()], 0);
    for (size, name, value) in fields {
        if size > room {
            return None;
        }
        if used + size > room {
            parts.push(DocumentBuf::new());
            used = 0;
        }
        used += size;
        parts.last_mut()?.push(name, value);
    }
    let of = parts.len() as i32;
    let fragment = |(number, part): (usize, DocumentBuf)| {
        let token = Token::Event(EventToken {
            fragment: Some(number as u64),
            ..token
        });
        let mut fragment = doc! {
            "_id": (token.to_document()),
            "splitEvent": { "fragment": (number as i32 + 1), "of": of },
        };
        part.iter()
            .for_each(|(name, value)| fragment.push(name, value));
        (token, fragment)
    };
    Some(parts.into_iter().enumerate().map(fragment).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_collection::{ClusterTime, CollectionUuid};
    use windrow_document::{ArrayBuf, array};

    #[test]
    fn fragments_are_filled_from_the_smallest_field_on() {
        let token = EventToken {
            time: ClusterTime(5),
            number: 1,
            ends: false,
            uuid: CollectionUuid([1; 16]),
            fragment: None,
        };
        let event = doc! {
            "_id": 1, "large": ("x".repeat(3000)), "a": 1, "medium": ("y".repeat(2000)), "b": 2,
        };
        let names = |bytes_max: usize| -> Option<Vec<Vec<String>>> {
            let fragments = fragments(event.as_document(), token, bytes_max)?;
            let names = |one: &DocumentBuf| one.iter().map(|(name, _)| name.to_owned()).collect();
            Some(fragments.iter().map(|(_, one)| names(one)).collect())
        };
        let expected = [
            vec!["_id", "splitEvent", "a", "b", "medium"],
            vec!["_id", "splitEvent", "large"],
        ];
        assert_eq!(names(5000).unwrap(), expected);
        assert_eq!(names(3000), None);
    }

    #[test]
    fn the_split_stage_is_the_last_and_empty() {
        let check = |stages: ArrayBuf, expected: Result<bool, i32>| {
            let mut stages: Vec<ValueRef<'_>> = stages.as_array().iter().collect();
            let found = take_stage(&mut stages).map_err(|error| error.code.number());
            assert_eq!(found, expected);
        };
        check(array![{ "$match": {} }], Ok(false));
        check(array![{ "$match": {} }, { STAGE: {} }], Ok(true));
        check(array![{ STAGE: {} }, { "$match": {} }], Err(7_182_802));
        check(array![{ STAGE: {} }, { STAGE: {} }], Err(7_182_802));
        check(array![{ STAGE: 1 }], Err(7_182_800));
    }
}
