//! Commands on encrypted fields: requests with `encryptionInformation`, as drivers send them.
//!
//! Each command becomes a plain one, which the same function runs:
//!
//! - Queries: an encrypted operand becomes a list of tags, and the query one on `__safeContent__`
//!   (`operands`, `filter`, `expression`, `rewrite`).
//! - Writes: payloads become encrypted values, and `__safeContent__` the tags of all values of the
//!   document (`payloads`, `insert`, `update`). The counters in the state collection (`state`) and
//!   the document change in one transaction (`transaction`).
//!
//! `compaction` makes the state collections small again. The forms of payloads and state are those
//! of the crate `windrow-queryable-encryption`.

mod collections;
mod compaction;
mod expression;
mod filter;
mod insert;
mod operands;
mod payloads;
mod rewrite;
mod state;
mod transaction;
mod update;

pub use collections::{
    check_capping, check_creation, check_index, check_renaming, check_validation,
};
pub use compaction::{CompactionKind, compact};
pub use insert::insert;
pub use rewrite::{rewrite_command, run_query};
pub use update::{find_and_modify, update};

use windrow_wire::{CommandError, Reply, Request};

use crate::command::{Command, ENCRYPTION_INFORMATION};
use crate::context::Context;

/// Runs the function of a command, or the one for requests about encrypted fields. `find` looks up
/// other commands.
pub fn encrypted_or_plain(
    command: &Command,
    request: &Request,
    context: &Context<'_>,
    find: fn(&str) -> Option<&'static Command>,
) -> Result<Reply, CommandError> {
    match command.encrypted {
        Some(run) if request.get(ENCRYPTION_INFORMATION).is_some() => {
            let context = Context {
                hides_arguments: true,
                ..*context
            };
            run(command, request, &context, find)
        }
        _ => (command.run)(request, context),
    }
}
