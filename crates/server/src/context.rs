//! What a command has at hand while it runs.

use windrow_wire::CommandError;

use crate::client::Client;
use crate::generic::Generic;
use crate::operations::Operation;
use crate::state::State;

/// The surroundings of one command.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub state: &'a State,
    /// Who asks.
    pub client: &'a Client,
    /// The command as `currentOp` sees it.
    pub operation: &'a Operation,
    /// Session, read and write concern, limit of time.
    pub generic: &'a Generic,
}

impl Context<'_> {
    /// Fails where the command should not go on. See [`Operation::check`].
    pub fn check(&self) -> Result<(), CommandError> {
        self.operation.check()
    }
}
