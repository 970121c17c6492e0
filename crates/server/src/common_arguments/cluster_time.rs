//! `$clusterTime`, which clients of a replica set send back. It is checked, but not used.

use std::time::{Duration, SystemTime};

use windrow_document::{Type, ValueRef};
use windrow_wire::{CommandError, ErrorCode};

use crate::arguments::Arguments;
use crate::clock;

/// Maximum distance to the future: MongoDB's `maxAcceptableLogicalClockDriftSecs`.
const DRIFT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// The length of the digest that signs it.
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
    if let Some(signature) = fields.document("signature")? {
        check_signature(&Arguments::within("$clusterTime.signature", signature))?;
    }
    let latest = clock::millis(SystemTime::now() + DRIFT_MAX) / 1000;
    if i64::from(time.seconds) > latest {
        let message = "New cluster time is too far from this node's wall clock time";
        let code = ErrorCode::ClusterTimeFailsRateLimiter;
        return Err(CommandError::new(code, message));
    }
    Ok(())
}

fn check_signature(signature: &Arguments<'_>) -> Result<(), CommandError> {
    match signature.get("hash") {
        None => Ok(()),
        Some(ValueRef::Binary { bytes, .. }) if bytes.len() == HASH_BYTES => Ok(()),
        Some(ValueRef::Binary { bytes, .. }) => {
            let message = format!("Unsupported SHA1Block hash length: {}", bytes.len());
            Err(CommandError::new(ErrorCode::UnsupportedFormat, message))
        }
        Some(other) => Err(signature.wrong_type("hash", other.type_of(), &[Type::Binary])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{Timestamp, Value, doc};

    /// A hash that is not binary data had counted as absent.
    #[test]
    fn a_hash_is_twenty_bytes() {
        let time = Timestamp {
            seconds: 1,
            increment: 1,
        };
        let check_hash = |hash: Value, expected: Option<i32>| {
            let signature = doc! { "hash": hash, "keyId": 0i64 };
            let given = doc! { "clusterTime": time, "signature": (signature.clone()) };
            let body = doc! { "$clusterTime": given };
            let refused = check(&Arguments::within("find", body.as_document())).err();
            let code = refused.map(|error| error.code.number());
            assert_eq!(code, expected, "{signature}");
        };
        let binary = |length: usize| Value::Binary {
            subtype: 0,
            bytes: vec![0; length],
        };
        check_hash(binary(20), None);
        check_hash(binary(5), Some(12));
        check_hash("abc".into(), Some(14));
        check_hash(5.into(), Some(14));
        check_hash(Value::Null, Some(14));
    }
}
