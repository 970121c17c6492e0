//! On what options something is written.

use std::fmt;

use super::checks::DocumentValidation;
use crate::record::statements::Statements;
use crate::transaction::Transaction;
use crate::transaction_locks::Interrupt;

/// See the module. Usually: validated, at once for all to see, and as patient as it takes.
#[derive(Clone, Copy)]
pub struct WriteOptions<'a> {
    pub validation: DocumentValidation,
    /// It becomes part of this transaction.
    pub transaction: Option<&'a Transaction>,
    /// It is these statements of a retryable write, and is remembered as that. Not in a transaction.
    pub statements: Option<Statements<'a>>,
    /// How long a write waits for others: one outside of transactions for one that holds what it is to
    /// change.
    pub interrupt: &'a dyn Interrupt,
}

impl Default for WriteOptions<'_> {
    fn default() -> Self {
        WriteOptions {
            validation: DocumentValidation::Asked,
            transaction: None,
            statements: None,
            interrupt: &|| false,
        }
    }
}

impl fmt::Debug for WriteOptions<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (validation, transaction) = (self.validation, self.transaction);
        write!(formatter, "WriteOptions({validation:?}, {transaction:?})")
    }
}
