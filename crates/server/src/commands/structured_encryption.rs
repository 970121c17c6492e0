//! `compactStructuredEncryptionData` and `cleanupStructuredEncryptionData`: make the state
//! collections of encrypted fields smaller.

use windrow_access::Action;

use crate::access::Needs;
use crate::command::{AcceptedArguments, Command, ENCRYPTION_INFORMATION};
use crate::latency::LatencyClass;
use crate::queryable_encryption::{CompactionKind, compact};

pub const COMPACT_STRUCTURED_ENCRYPTION_DATA: Command = Command {
    name: "compactStructuredEncryptionData",
    help: "replaces documents of the state collection by fewer ones",
    needs: Needs::OnCollection(&[Action::compactStructuredEncryptionData]),
    class: LatencyClass::Write,
    write_concern: true,
    secrets: &["compactionTokens"],
    arguments: AcceptedArguments::Only(&[
        "compactionTokens",
        "anchorPaddingFactor",
        ENCRYPTION_INFORMATION,
    ]),
    run: |request, context| compact(request, context, CompactionKind::Compact),
    ..Command::EMPTY
};

pub const CLEANUP_STRUCTURED_ENCRYPTION_DATA: Command = Command {
    name: "cleanupStructuredEncryptionData",
    help: "replaces the anchors of the state collection, too",
    needs: Needs::OnCollection(&[Action::cleanupStructuredEncryptionData]),
    class: LatencyClass::Write,
    write_concern: true,
    secrets: &["cleanupTokens"],
    arguments: AcceptedArguments::Only(&["cleanupTokens"]),
    run: |request, context| compact(request, context, CompactionKind::CleanUp),
    ..Command::EMPTY
};
