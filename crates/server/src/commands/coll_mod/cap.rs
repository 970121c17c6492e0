//! `collMod: {cappedSize, cappedMax}`: changes the limits of a capped collection.

use windrow_collection::{Cap, Collection};
use windrow_document::{Document, DocumentBuf};
use windrow_wire::{CommandError, ErrorCode};

use crate::arguments::Arguments;
use crate::commands::create::{self, CAP_BYTES_MAX};

/// The requested limits.
pub struct CapChange {
    bytes: Option<u64>,
    /// 0 is no limit.
    documents: Option<u64>,
}

impl CapChange {
    pub fn parse(arguments: &Arguments<'_>) -> Result<CapChange, CommandError> {
        let bytes = arguments.whole_number("cappedSize")?.map(bytes);
        let documents = arguments.whole_number("cappedMax")?.map(documents);
        Ok(CapChange {
            bytes: bytes.transpose()?,
            documents: documents.transpose()?,
        })
    }

    /// Fails if the collection is not capped.
    pub fn check(&self, collection: &Collection) -> Result<(), CommandError> {
        if !self.is_any() || collection.cap().is_some() {
            return Ok(());
        }
        let message = "Collection must be capped.";
        Err(CommandError::new(ErrorCode::InvalidOptions, message))
    }

    /// Returns `true` if a limit is changed.
    pub fn is_any(&self) -> bool {
        self.bytes.is_some() || self.documents.is_some()
    }

    /// Returns the options with these limits.
    pub fn changed(&self, options: Document<'_>) -> DocumentBuf {
        Cap::resized(options, self.bytes, self.documents)
    }
}

fn bytes(number: i64) -> Result<u64, CommandError> {
    if !(1..=CAP_BYTES_MAX).contains(&number) {
        let message = format!("cappedSize must be from 1 to {CAP_BYTES_MAX}, not {number}");
        return Err(CommandError::new(ErrorCode::BadValue, message));
    }
    Ok(create::rounded(number.unsigned_abs()))
}

fn documents(number: i64) -> Result<u64, CommandError> {
    match u32::try_from(number.max(0)) {
        Ok(number) if i32::try_from(number).is_ok() => Ok(u64::from(number)),
        _ => {
            let message = format!("cappedMax must be less than 2^31, not {number}");
            Err(CommandError::new(ErrorCode::BadValue, message))
        }
    }
}
