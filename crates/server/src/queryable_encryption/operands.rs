//! Encrypted operands of queries.

use windrow_collection::Namespace;
use windrow_document::{Value, ValueRef};
use windrow_queryable_encryption::find::Tags;
use windrow_queryable_encryption::{FindPayload, kind, kind_of};
use windrow_wire::CommandError;

use super::state::StateReader;
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::parameters::REWRITE_MEMORY;

/// Finds the tags of the operands of one command.
pub struct TagFinder<'c> {
    reader: StateReader<'c>,
    tags: Tags,
}

impl<'c> TagFinder<'c> {
    /// Reads this state collection.
    pub fn new(context: &'c Context<'c>, state: &Namespace) -> Result<TagFinder<'c>, CommandError> {
        let bytes_max = context.state.parameters.number(REWRITE_MEMORY);
        Ok(TagFinder {
            reader: StateReader::open(context, state)?,
            tags: Tags::new(usize::try_from(bytes_max).unwrap_or_default()),
        })
    }

    /// Returns the tags of an encrypted operand. `None` if it represents the second bound of a
    /// range, which every document fulfils.
    pub fn tags(&mut self, operand: ValueRef<'_>) -> Result<Option<Vec<Value>>, CommandError> {
        let ValueRef::Binary { bytes, .. } = operand else {
            return Ok(Some(Vec::new()));
        };
        let payload = match kind_of(operand) {
            Some(kind::FIND_RANGE_PAYLOAD) => FindPayload::parse_range(bytes),
            _ => FindPayload::parse_equality(bytes),
        };
        let payload = payload.or_command_error()?;
        if payload.edges.is_none() {
            return Ok(None);
        }
        let reader = &self.reader;
        let added = self.tags.add(&payload, &mut |id| reader.look_up(id));
        added.map_err(|error| error.0)?;
        let tags = self.tags.take().into_iter().map(|tag| Value::Binary {
            subtype: 0,
            bytes: tag.0.to_vec(),
        });
        Ok(Some(tags.collect()))
    }
}

/// Returns `true` if a value is an encrypted operand for equality.
pub fn is_equality(value: ValueRef<'_>) -> bool {
    kind_of(value) == Some(kind::FIND_EQUALITY_PAYLOAD)
}

/// Returns `true` if a value is an encrypted operand for ranges.
pub fn is_range(value: ValueRef<'_>) -> bool {
    kind_of(value) == Some(kind::FIND_RANGE_PAYLOAD)
}
