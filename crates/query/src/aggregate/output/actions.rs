//! What a stage that writes does to its target, for access control.

use windrow_document::ValueRef;

use super::{MergeFields, Target, WhenMatchedOperand, WhenNotMatched, parse_out};
use crate::Error;

/// The target of a stage that writes, and what the stage does there.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputActions {
    /// The collection that is written to.
    pub target: Target,
    /// `true` if it may insert documents.
    pub inserts: bool,
    /// `true` if it may change documents.
    pub updates: bool,
    /// `true` if it removes documents.
    pub removes: bool,
}

impl OutputActions {
    /// Parses the operand of `$out` or `$merge` as the stage itself is parsed, without the
    /// expressions, which need variables.
    ///
    /// # Errors
    /// Fails only if parsing the stage fails.
    pub fn parse(name: &str, operand: ValueRef<'_>) -> Result<OutputActions, Error> {
        if name == "$out" {
            return Ok(OutputActions {
                target: parse_out(operand)?,
                inserts: true,
                updates: false,
                removes: true,
            });
        }
        let (target, fields) = MergeFields::from_operand(operand)?;
        let keeps = matches!(
            fields.matched,
            Some(WhenMatchedOperand::Mode("keepExisting" | "fail"))
        );
        let inserts = fields.not_matched.unwrap_or(WhenNotMatched::Insert);
        Ok(OutputActions {
            target,
            // A stage that does neither is refused when the rest of it is parsed.
            inserts: keeps || inserts == WhenNotMatched::Insert,
            updates: !keeps,
            removes: false,
        })
    }
}
