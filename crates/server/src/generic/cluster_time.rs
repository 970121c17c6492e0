//! `$clusterTime`, which clients of a replica set send on: checked, and then not needed.

use std::time::{Duration, SystemTime};

use windrow_document::{Type, ValueRef};
use windrow_wire::{CommandError, ErrorCode};

use crate::arguments::Arguments;
use crate::clock;

/// How far it may be in the future: MongoDB's `maxAcceptableLogicalClockDriftSecs`.
const DRIFT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// A digest that signs it.
const HASH_BYTES: usize = 20;

pub fn check(arguments: &Arguments<'_>) -> Result<(), CommandError> {
    let Some(value) = arguments.get("$clusterTime") else {
        return Ok(());
    };
    let Some(document) = value.as_document() else {
        let message = "field \"$clusterTime\" must be of type Object";
        return Err(CommandError::new(ErrorCode(10_065), message));
    };
    let fields = Arguments::within("$clusterTime", document);
    let time = match fields.get("clusterTime") {
        Some(ValueRef::Timestamp(time)) => time,
        other => {
            let found = other.map_or(Type::Null, ValueRef::type_of);
            return Err(fields.wrong_type("clusterTime", found, &[Type::Timestamp]));
        }
    };
    let signature = fields.document("signature")?;
    if let Some(ValueRef::Binary { bytes, .. }) = signature.and_then(|it| it.get("hash"))
        && bytes.len() != HASH_BYTES
    {
        let message = format!("Unsupported SHA1Block hash length: {}", bytes.len());
        return Err(CommandError::new(ErrorCode::UnsupportedFormat, message));
    }
    let latest = clock::millis(SystemTime::now() + DRIFT_MAX) / 1000;
    if i64::from(time.seconds) > latest {
        let message = "New cluster time is too far from this node's wall clock time";
        let code = ErrorCode::ClusterTimeFailsRateLimiter;
        return Err(CommandError::new(code, message));
    }
    Ok(())
}
