//! On what terms something is written.

use std::fmt;

use super::checks::DocumentValidation;
use crate::holds::Patience;
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
    /// How long a write waits for others: one outside of transactions for one that holds what it is to
    /// change.
    pub patience: &'a dyn Patience,
}

impl Default for Terms<'_> {
    fn default() -> Self {
        Terms {
            validation: DocumentValidation::Asked,
            transaction: None,
            statements: None,
            patience: &|| false,
        }
    }
}

impl fmt::Debug for Terms<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (validation, transaction) = (self.validation, self.transaction);
        write!(formatter, "Terms({validation:?}, {transaction:?})")
    }
}
