//! The rules for a collection's documents, from its options: the validator, the limits of a capped
//! collection, the compression, and whether old versions are recorded.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use windrow_document::{Collation, Document, DocumentBuf, ValueRef, doc};
use windrow_index::Definition;
use windrow_index::definition::ID_INDEX_NAME;
use windrow_mql::filter::{Environment, Filter, validation_report};
use windrow_mql::{collation, interrupt};
use windrow_queryable_encryption::{EncryptedFields, SAFE_CONTENT};
use windrow_storage::Compression;

use crate::cap::Cap;
use crate::compression;
use crate::error::{Error, FailedValidation};

/// Whether the collection's validator checks a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DocumentValidation {
    /// The validator checks the document.
    #[default]
    Enabled,
    /// The validator checks the document. The write may also set the tags of encrypted values,
    /// which other writes must not change.
    Encrypted,
    /// The validator does not check the document.
    Bypassed,
}

impl DocumentValidation {
    /// Converts a client's `bypassDocumentValidation`.
    pub fn from_bypass(bypass: bool) -> DocumentValidation {
        if bypass {
            DocumentValidation::Bypassed
        } else {
            DocumentValidation::Enabled
        }
    }

    pub(crate) fn is_enabled(self) -> bool {
        self != DocumentValidation::Bypassed
    }
}

/// The rules, derived from the options whenever these change.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    validator: Option<Validator>,
    /// The encrypted fields. An error if another version stored them and this one cannot read them.
    encrypted: Option<Result<EncryptedFields, windrow_mql::Error>>,
    cap: Option<Cap>,
    /// The compression of documents, if the options specify one.
    pub compression: Option<Compression>,
    keeps_old_versions: bool,
}

#[derive(Debug)]
struct Validator {
    source: DocumentBuf,
    /// The collection's default collation. If it cannot be read, `filter` is the error.
    collation: Option<Arc<Collation>>,
    /// An error if this version of Windrow does not support a validator that another one stored.
    /// Writes report it; opening the database does not fail.
    filter: Result<Filter, windrow_mql::Error>,
    /// `true` if it reads the current time, and must be parsed for each write.
    reads_current_time: bool,
    /// `true` if documents that did not match before may be updated without matching.
    moderate: bool,
    /// `true` if a mismatch is only logged.
    warns: bool,
}

/// The result of a validation.
pub(crate) enum Verdict {
    Accepted,
    /// The document is written, and the mismatch is logged.
    Warned(Error),
    Refused(Error),
}

/// Returns the definition of the index on `_id` for a collection with these options.
pub(crate) fn id_index_definition(options: Document<'_>) -> Result<Definition, Error> {
    let collation = collation_of(options)?;
    let clustered = options
        .get("clusteredIndex")
        .and_then(ValueRef::as_document);
    let Some(clustered) = clustered else {
        return Ok(Definition::new_id_index(collation));
    };
    let name = clustered.get("name").and_then(ValueRef::as_str);
    Ok(Definition::clustered(
        name.unwrap_or(ID_INDEX_NAME),
        collation,
    ))
}

impl Rules {
    pub fn from_options(options: Document<'_>) -> Rules {
        let text = |name| options.get(name).and_then(ValueRef::as_str);
        let source = options.get("validator").and_then(ValueRef::as_document);
        let source = source.filter(|source| !source.is_empty());
        let collation = collation_of(options);
        let source = source.filter(|_| text("validationLevel") != Some("off"));
        Rules {
            cap: Cap::from_options(options),
            // This version accepts no options that it cannot read.
            compression: compression::from_options(options).unwrap_or_default(),
            keeps_old_versions: keeps_old_versions(options),
            encrypted: encrypted_fields(options),
            validator: source.map(|source| Validator {
                source: source.to_buf(),
                filter: collation
                    .clone()
                    .and_then(|collation| parse(source, collation)),
                reads_current_time: reads_current_time(source),
                moderate: text("validationLevel") == Some("moderate"),
                collation: collation.unwrap_or_default(),
                warns: text("validationAction") == Some("warn"),
            }),
        }
    }

    pub fn cap(&self) -> Option<Cap> {
        self.cap
    }

    /// Returns `true` if the log contains the old version of changed documents, for change events.
    pub fn keeps_old_versions(&self) -> bool {
        self.keeps_old_versions
    }

    /// Returns `true` if there is a validator or an encrypted field.
    pub fn validates(&self) -> bool {
        self.validator.is_some() || self.encrypted.is_some()
    }

    /// Returns the validator for a check of stored documents.
    pub fn current_validator(&self) -> CurrentValidator<'_> {
        CurrentValidator(self.validator.as_ref().map(Validator::filter))
    }

    /// Checks a document before it is written; `old` is the version that it replaces.
    pub fn check(
        &self,
        new: Document<'_>,
        old: Option<Document<'_>>,
        validation: DocumentValidation,
    ) -> Result<Verdict, Error> {
        if let Some(fields) = &self.encrypted {
            check_encrypted(fields.as_ref().map_err(Clone::clone)?, new)?;
            if validation != DocumentValidation::Encrypted {
                check_tags(new, old)?;
            }
        }
        let Some(validator) = &self.validator else {
            return Ok(Verdict::Accepted);
        };
        let filter = validator.filter()?;
        let was_rejected = match old.filter(|_| validator.moderate) {
            Some(old) => !accepts(&filter, old)?,
            None => false,
        };
        if was_rejected || accepts(&filter, new)? {
            return Ok(Verdict::Accepted);
        }
        let error = validator.failed(new)?;
        Ok(if validator.warns {
            Verdict::Warned(error)
        } else {
            Verdict::Refused(error)
        })
    }
}

/// The validator at the current time; see [`Rules::current_validator`].
pub(crate) struct CurrentValidator<'r>(Option<Result<Cow<'r, Filter>, windrow_mql::Error>>);

impl CurrentValidator<'_> {
    /// Returns `true` if the validator rejects the document. A validator that cannot be read
    /// rejects all.
    pub fn refuses(&self, document: Document<'_>) -> Result<bool, Error> {
        match &self.0 {
            None => Ok(false),
            Some(Err(_)) => Ok(true),
            Some(Ok(filter)) => Ok(!accepts(filter, document)?),
        }
    }
}

impl Validator {
    fn filter(&self) -> Result<Cow<'_, Filter>, windrow_mql::Error> {
        let filter = self.filter.as_ref().map_err(Clone::clone)?;
        if self.reads_current_time {
            parse(self.source.as_document(), self.collation.clone()).map(Cow::Owned)
        } else {
            Ok(Cow::Borrowed(filter))
        }
    }

    /// Returns the error with the reason of a mismatch. Fails if the description is interrupted or
    /// meets a bug.
    fn failed(&self, document: Document<'_>) -> Result<Error, windrow_mql::Error> {
        let environment = environment(self.collation.clone());
        let information =
            validation_report::report(self.source.as_document(), document, &environment)?;
        let failed = FailedValidation { information };
        Ok(Error::FailedValidation(Box::new(failed)))
    }
}

/// Returns `true` if the filter matches. A filter does not match a document on which its expression
/// fails. Fails if the evaluation is interrupted or meets a bug.
fn accepts(filter: &Filter, document: Document<'_>) -> Result<bool, windrow_mql::Error> {
    match filter.matches(document) {
        Ok(matched) => Ok(matched),
        Err(error) => interrupt::data_error(error).map(|_| false),
    }
}

/// MongoDB's error code for changes of `__safeContent__`.
const TAGS_CHANGED: i32 = 6_666_200;

/// Returns the encrypted fields of a collection with these options.
fn encrypted_fields(options: Document<'_>) -> Option<Result<EncryptedFields, windrow_mql::Error>> {
    let fields = options
        .get("encryptedFields")
        .and_then(ValueRef::as_document)?;
    let parsed = EncryptedFields::parse(fields);
    Some(parsed.map_err(|error| windrow_mql::Error::bad_value(error.to_string())))
}

/// Fails if an encrypted field has a value that was not encrypted.
fn check_encrypted(fields: &EncryptedFields, document: Document<'_>) -> Result<(), Error> {
    let Some(found) = fields.unencrypted(document) else {
        return Ok(());
    };
    let mut information = DocumentBuf::new();
    information.push(
        "failingDocumentId",
        document.get("_id").unwrap_or(ValueRef::Null),
    );
    let details = doc! {
        "operatorName": "$_internalSchemaBinDataFLE2EncryptedType",
        "encryptedField": (found.field.path.as_str()), "reason": (found.reason),
    };
    information.push("details", details);
    let failed = FailedValidation { information };
    Err(Error::FailedValidation(Box::new(failed)))
}

/// Fails if a write sets or changes the tags of encrypted values: queries would not find them.
fn check_tags(new: Document<'_>, old: Option<Document<'_>>) -> Result<(), Error> {
    let before = old.and_then(|old| old.get(SAFE_CONTENT));
    if new.get(SAFE_CONTENT) == before {
        return Ok(());
    }
    let message = format!("the field {SAFE_CONTENT} of encrypted documents cannot be changed");
    Err(windrow_mql::Error::new(TAGS_CHANGED, message).into())
}

fn keeps_old_versions(options: Document<'_>) -> bool {
    let images = options.get("changeStreamPreAndPostImages");
    let enabled = images
        .and_then(ValueRef::as_document)
        .and_then(|images| images.get("enabled"));
    enabled.is_some_and(ValueRef::is_truthy)
}

/// Returns the default collation of a collection with these options, or `None` for comparison by
/// bytes.
pub(crate) fn collation_of(
    options: Document<'_>,
) -> Result<Option<Arc<Collation>>, windrow_mql::Error> {
    let collation = options.get("collation").and_then(ValueRef::as_document);
    Ok(collation.map(collation::parse).transpose()?.flatten())
}

fn parse(
    source: Document<'_>,
    collation: Option<Arc<Collation>>,
) -> Result<Filter, windrow_mql::Error> {
    Filter::parse_with(source, &environment(collation))
}

fn environment(collation: Option<Arc<Collation>>) -> Environment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Environment {
        now: since.map_or(0, |since| since.as_millis() as i64),
        collation,
        constants_may_fail: true,
        ..Environment::default()
    }
}

/// Returns `true` if the variable with the current time occurs. A string with the same text counts,
/// too: the validator is then parsed for each write, with the same result.
fn reads_current_time(source: Document<'_>) -> bool {
    let name = b"$$NOW";
    source
        .as_bytes()
        .windows(name.len())
        .any(|part| part == name)
}
