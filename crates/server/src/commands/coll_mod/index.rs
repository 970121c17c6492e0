//! `collMod: {index}`: hides an index, shows it again, changes the lifetime of its documents, or
//! makes it unique in two steps: `prepareUnique` refuses new duplicates, `unique` follows when
//! there are none.

use windrow_collection::{Collection, Error as CollectionError, IndexModification};
use windrow_document::{ArrayBuf, Document, DocumentBuf, Value, ValueRef, doc, order};
use windrow_wire::{CommandError, ErrorCode};

use crate::arguments::{Arguments, whole};
use crate::errors::{IntoCommandError, OrCommandError};
use crate::operations::Operation;

const FIELDS: &[&str] = &[
    "name",
    "keyPattern",
    "expireAfterSeconds",
    "hidden",
    "prepareUnique",
    "unique",
];

/// The requested change of an index.
pub struct IndexChange {
    name: String,
    specification: DocumentBuf,
    expires: Option<ExpirySeconds>,
    hidden: Option<bool>,
    prepare_unique: Option<bool>,
    /// `true` if it is to become unique.
    unique: bool,
    /// `true` if it is only checked whether the index could become unique.
    dry_run: bool,
}

/// The lifetime of documents: as it is stored, and as in the reply.
struct ExpirySeconds {
    seconds: i64,
    answered: Value,
}

impl IndexChange {
    pub fn parse(
        index: Document<'_>,
        dry_run: bool,
        collection: &Collection,
    ) -> Result<IndexChange, CommandError> {
        let given = Arguments::within("collMod.index", index);
        given.only(FIELDS)?;
        let expires = given.whole_number("expireAfterSeconds")?.map(seconds);
        let expires = expires.transpose()?;
        let answered = given.present("expireAfterSeconds").map(ValueRef::to_value);
        // A number within the limits is returned as it was sent.
        let is_kept = answered
            .as_ref()
            .and_then(|answered| whole(answered.as_ref()))
            == expires;
        let expires = expires.map(|seconds| ExpirySeconds {
            seconds,
            answered: answered
                .filter(|answered| is_kept && !is_nan(answered))
                .unwrap_or(Value::Int64(seconds)),
        });
        let hidden = given.switch("hidden")?;
        let prepare_unique = given.switch("prepareUnique")?;
        let unique = given.switch("unique")?;
        let (given_name, key) = (given.string("name")?, given.document("keyPattern")?);
        if expires.is_none() && [hidden, prepare_unique, unique].iter().all(Option::is_none) {
            let message = "no expireAfterSeconds, hidden, unique, or prepareUnique field";
            return Err(invalid(message.to_owned()));
        }
        if unique == Some(false) {
            let message = "unique can only be true: an index cannot be made non-unique";
            return Err(CommandError::new(ErrorCode::BadValue, message));
        }
        let (name, specification) = find(given_name, key, collection)?;
        let is_unique = specification.get("unique").is_some_and(ValueRef::is_truthy);
        let change = IndexChange {
            name,
            specification,
            expires,
            hidden,
            // A unique index needs no preparation.
            prepare_unique: prepare_unique.filter(|_| !is_unique),
            unique: unique == Some(true),
            dry_run,
        };
        change.check()?;
        Ok(change)
    }

    /// Fails if the index does not support the change.
    fn check(&self) -> Result<(), CommandError> {
        if self.specification.get("clustered").is_some() {
            let message = "cannot change the clustered index of a collection";
            return Err(CommandError::new(ErrorCode(6_011_800), message));
        }
        let is_of_ids = self.name == "_id_";
        if self.hidden.is_some() && is_of_ids {
            let message = "can't hide _id index";
            return Err(CommandError::new(ErrorCode::BadValue, message));
        }
        if self.expires.is_some() && is_of_ids {
            let message = "the _id field does not support TTL indexes";
            return Err(invalid(message.to_owned()));
        }
        let key = self
            .specification
            .get("key")
            .and_then(ValueRef::as_document);
        if self.expires.is_some() && key.is_some_and(|key| key.count() > 1) {
            let message = "compound indexes do not support expireAfterSeconds";
            return Err(invalid(message.to_owned()));
        }
        if is_of_ids && (self.prepare_unique.is_some() || self.unique) {
            let message = "the _id index is already unique";
            return Err(invalid(message.to_owned()));
        }
        let is_prepared_anew = self
            .prepare_unique
            .is_some_and(|new| new != self.is("prepareUnique"));
        if is_prepared_anew && self.others() > 1 {
            let message = "prepareUnique cannot be changed together with other options of an index";
            return Err(invalid(message.to_owned()));
        }
        if self.dry_run && (!self.unique || self.others() > 0) {
            let message = "dryRun is only supported for the conversion of an index to unique, without other changes";
            return Err(invalid(message.to_owned()));
        }
        if self.unique && !self.dry_run && !self.is("unique") && !self.is_prepared() {
            let message = "Cannot make index unique with 'prepareUnique=false'. Run collMod to set it \
                           first.";
            return Err(invalid(message.to_owned()));
        }
        Ok(())
    }

    /// The number of changes besides that to unique.
    fn others(&self) -> usize {
        usize::from(self.expires.is_some())
            + usize::from(self.hidden.is_some())
            + usize::from(self.prepare_unique.is_some())
    }

    /// Returns `true` if the index has a flag.
    fn is(&self, flag: &str) -> bool {
        let value = self.specification.get(flag);
        value.is_some_and(ValueRef::is_truthy)
    }

    fn is_prepared(&self) -> bool {
        self.is("prepareUnique") && self.prepare_unique != Some(false)
    }

    /// Checks that the documents allow the change. Returns the old and new values for the reply.
    pub fn prepare(
        &self,
        collection: &Collection,
        operation: &Operation,
        reply: &mut DocumentBuf,
    ) -> Result<(), CommandError> {
        if self.unique && !self.is("unique") {
            self.check_duplicate_keys(collection, operation)?;
        }
        if !self.dry_run {
            self.add_to_reply(reply);
        }
        Ok(())
    }

    /// The name of the index, and the change of its specification.
    pub fn change(&self) -> IndexModification<'_, IndexChangeError> {
        let change = |old: Document<'_>| {
            // Without `prepareUnique`, duplicates may have been inserted since the check.
            let is_prepared = old.get("prepareUnique").is_some_and(ValueRef::is_truthy);
            if self.unique && !self.is("unique") && !is_prepared {
                Err(IndexChangeError::Refused(cannot_convert(ArrayBuf::new())))
            } else {
                Ok(self.changed(old))
            }
        };
        IndexModification {
            name: &self.name,
            change: Box::new(change),
        }
    }

    /// The change in change streams. It does not contain values that stay the same.
    pub fn described(&self) -> DocumentBuf {
        let mut described = doc! { "name": self.name.as_str() };
        if let Some(expires) = &self.expires {
            described.push("expireAfterSeconds", expires.seconds);
        }
        for (name, new) in self.new_flags() {
            described.push(name, new);
        }
        if self.unique && !self.is("unique") {
            described.push("unique", true);
        }
        described
    }

    /// The old values of the changed options.
    pub fn before(&self) -> DocumentBuf {
        let mut before = DocumentBuf::new();
        let expired = self.specification.get("expireAfterSeconds");
        if let Some(old) = expired.filter(|_| self.expires.is_some()) {
            before.push("expireAfterSeconds", old);
        }
        for (name, _) in self.new_flags() {
            before.push(name, self.is(name));
        }
        before
    }

    /// The changed flags and their new values.
    fn new_flags(&self) -> impl Iterator<Item = (&'static str, bool)> + '_ {
        let flags = [
            ("hidden", self.hidden),
            ("prepareUnique", self.prepare_unique),
        ];
        let given = flags
            .into_iter()
            .filter_map(|(name, new)| Some((name, new?)));
        given.filter(|(name, new)| *new != self.is(name))
    }

    fn check_duplicate_keys(
        &self,
        collection: &Collection,
        operation: &Operation,
    ) -> Result<(), CommandError> {
        let found = collection
            .duplicate_keys(&self.name, operation)
            .or_command_error()?;
        if found.is_empty() {
            return Ok(());
        }
        let violation = |ids: Vec<Value>| {
            let ids: ArrayBuf = ids.into_iter().collect();
            Value::from(doc! { "ids": ids })
        };
        Err(cannot_convert(found.into_iter().map(violation).collect()))
    }

    fn add_to_reply(&self, reply: &mut DocumentBuf) {
        if let Some(expires) = &self.expires {
            if let Some(old) = self.specification.get("expireAfterSeconds") {
                reply.push("expireAfterSeconds_old", old);
            }
            reply.push("expireAfterSeconds_new", expires.answered.clone());
        }
        for (name, new) in self.new_flags() {
            reply.push(&format!("{name}_old"), self.is(name));
            reply.push(&format!("{name}_new"), new);
        }
        if self.unique && !self.is("unique") {
            reply.push("unique_new", true);
        }
    }

    fn changed(&self, old: Document<'_>) -> DocumentBuf {
        let is_changed = |name: &str| match name {
            "hidden" => self.hidden.is_some(),
            "expireAfterSeconds" => self.expires.is_some(),
            "prepareUnique" => self.unique || self.prepare_unique.is_some(),
            "unique" => self.unique,
            _ => false,
        };
        let mut new: DocumentBuf = old.iter().filter(|(name, _)| !is_changed(name)).collect();
        if let Some(seconds) = self.expires.as_ref().map(|expires| expires.seconds) {
            let old = self.specification.get("expireAfterSeconds");
            match old.filter(|old| old.as_whole() == Some(seconds)) {
                Some(old) => new.push("expireAfterSeconds", old),
                None => new.push("expireAfterSeconds", seconds),
            }
        }
        let prepared = self.prepare_unique == Some(true) && !self.unique;
        let flags = [
            ("hidden", self.hidden == Some(true)),
            ("prepareUnique", prepared),
            ("unique", self.unique),
        ];
        for (name, _) in flags.iter().filter(|(_, is)| *is) {
            new.push(name, true);
        }
        new
    }
}

/// The reason why a change was not made.
pub enum IndexChangeError {
    Refused(CommandError),
    Failed(CollectionError),
}

impl From<CollectionError> for IndexChangeError {
    fn from(error: CollectionError) -> IndexChangeError {
        IndexChangeError::Failed(error)
    }
}

impl From<IndexChangeError> for CommandError {
    fn from(stopped: IndexChangeError) -> CommandError {
        match stopped {
            IndexChangeError::Refused(error) => error,
            IndexChangeError::Failed(error) => error.into_command_error(),
        }
    }
}

fn cannot_convert(violations: ArrayBuf) -> CommandError {
    let message = "Cannot convert the index to unique. Please resolve conflicting documents before \
                   running collMod again.";
    CommandError::new(ErrorCode::CannotConvertIndexToUnique, message).with("violations", violations)
}

/// The index with the given name or key.
fn find(
    name: Option<&str>,
    key: Option<Document<'_>>,
    collection: &Collection,
) -> Result<(String, DocumentBuf), CommandError> {
    let all = collection.indexes();
    let definitions = all.iter().map(|one| &one.definition);
    let found: Vec<_> = match (name, key) {
        (Some(name), None) => definitions.filter(|one| one.name == name).collect(),
        (None, Some(key)) => definitions
            .filter(|one| order::compare_documents(one.key_pattern(), key).is_eq())
            .collect(),
        (Some(_), Some(_)) => {
            let message = "Cannot specify both key pattern and name.";
            return Err(invalid(message.to_owned()));
        }
        (None, None) => {
            let message = "Must specify either index name or key pattern.";
            return Err(invalid(message.to_owned()));
        }
    };
    match found.as_slice() {
        [] => Err(CommandError::new(
            ErrorCode::IndexNotFound,
            format!("cannot find index for ns {}", collection.namespace()),
        )),
        [one] => Ok((one.name.clone(), one.specification.clone())),
        [one, other, ..] => Err(CommandError::new(
            ErrorCode::AmbiguousIndexKeyPattern,
            format!(
                "index keyPattern matches '{}' and '{}', must use index name",
                one.name, other.name
            ),
        )),
    }
}

fn is_nan(value: &Value) -> bool {
    value.as_ref().as_f64().is_some_and(f64::is_nan)
}

/// Limits the number to 2³¹-1. Fails if it is negative.
fn seconds(number: i64) -> Result<i64, CommandError> {
    if number >= 0 {
        Ok(number.min(i64::from(i32::MAX)))
    } else {
        Err(invalid(
            "expireAfterSeconds field must be a number that is not negative".to_owned(),
        ))
    }
}

fn invalid(message: String) -> CommandError {
    CommandError::new(ErrorCode::InvalidOptions, message)
}
