//! On what terms something is written.

use std::fmt;

use super::checks::DocumentValidation;
use crate::holds::GiveUp;
use crate::record::statements::Statements;
use crate::transaction::Transaction;

/// See the module. Usually: validated, at once for all to see, and as patient as it takes.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    pub validation: DocumentValidation,
    /// It becomes part of this transaction.
    pub transaction: Option<&'a Transaction>,
    /// It is these statements of a retryable write, and is remembered as that. Not in a transaction.
    pub statements: Option<Statements<'a>>,
    /// Asked while a write outside of transactions waits for one that holds what it is to change.
    pub give_up: &'a GiveUp<'a>,
}

impl Default for Terms<'_> {
    fn default() -> Self {
        Terms {
            validation: DocumentValidation::Asked,
            transaction: None,
            statements: None,
            give_up: &|| false,
        }
    }
}

impl fmt::Debug for Terms<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (validation, transaction) = (self.validation, self.transaction);
        write!(formatter, "Terms({validation:?}, {transaction:?})")
    }
}
