//! The options of a write.

use std::fmt;

use windrow_interrupt::Uninterrupted;

use crate::record::statements::Statements;
use crate::rules::DocumentValidation;
use crate::transaction::Transaction;
use crate::transaction_locks::WaitControl;

/// The options of a write. By default it is validated, outside of transactions, and waits without
/// limit.
#[derive(Clone, Copy)]
pub struct WriteOptions<'a> {
    /// Whether the collection's validator checks the documents.
    pub validation: DocumentValidation,
    /// The transaction that the write becomes part of.
    pub transaction: Option<&'a Transaction>,
    /// The statements of a retryable write, whose results are recorded. Not in a transaction.
    pub statements: Option<Statements<'a>>,
    /// Limits how long the write waits for transactions that have locked what it changes.
    pub wait_control: &'a dyn WaitControl,
}

impl Default for WriteOptions<'_> {
    fn default() -> Self {
        WriteOptions {
            validation: DocumentValidation::Enabled,
            transaction: None,
            statements: None,
            wait_control: &Uninterrupted,
        }
    }
}

impl fmt::Debug for WriteOptions<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (validation, transaction) = (self.validation, self.transaction);
        write!(formatter, "WriteOptions({validation:?}, {transaction:?})")
    }
}
