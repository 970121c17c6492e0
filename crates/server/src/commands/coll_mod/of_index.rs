//! `collMod: {index}`: hides an index, shows it again, or changes when its documents expire.

use windrow_collection::{Collection, Error as CollectionError};
use windrow_document::{Document, DocumentBuf, Value, ValueRef, order};
use windrow_wire::{CommandError, ErrorCode};

use super::not_an_object;
use crate::arguments::truncated;
use crate::errors::OrCommandError;

const FIELDS: &[&str] = &["name", "keyPattern", "expireAfterSeconds", "hidden"];

/// A change of one index.
pub struct Wanted {
    name: String,
    specification: DocumentBuf,
    expires: Option<Value>,
    hidden: Option<bool>,
}

/// The argument `index`.
pub fn document(value: ValueRef<'_>) -> Result<Document<'_>, CommandError> {
    value
        .as_document()
        .ok_or_else(|| not_an_object("index", value))
}

impl Wanted {
    pub fn parse(index: Document<'_>, collection: &Collection) -> Result<Wanted, CommandError> {
        let mut names = index.iter().map(|(name, _)| name);
        if let Some(other) = names.find(|name| !FIELDS.contains(name)) {
            return Err(invalid(format!("unknown option of collMod.index: {other}")));
        }
        let expires = index.get("expireAfterSeconds").map(seconds).transpose()?;
        let hidden = index.get("hidden").map(switch).transpose()?;
        if expires.is_none() && hidden.is_none() {
            let message = "no expireAfterSeconds or hidden field";
            return Err(invalid(message.to_owned()));
        }
        let (name, specification) = find(index, collection)?;
        if specification.get("clustered").is_some() {
            let message = "cannot change the index that a clustered collection is";
            return Err(CommandError::new(ErrorCode(6_011_800), message));
        }
        let is_of_ids = name == "_id_";
        if hidden.is_some() && is_of_ids {
            return Err(CommandError::new(
                ErrorCode::BadValue,
                "can't hide _id index",
            ));
        }
        let lives_on = specification.get("expireAfterSeconds").is_none();
        if expires.is_some() && lives_on {
            let message = "no expireAfterSeconds field to update";
            return Err(invalid(message.to_owned()));
        }
        Ok(Wanted {
            name,
            specification,
            expires,
            hidden,
        })
    }

    /// Changes the index; the reply says what was and what is.
    pub fn apply(
        &self,
        collection: &Collection,
        reply: &mut DocumentBuf,
    ) -> Result<(), CommandError> {
        if let Some(expires) = &self.expires {
            let old = self.specification.get("expireAfterSeconds");
            reply.push("expireAfterSeconds_old", old.unwrap_or(ValueRef::Null));
            reply.push("expireAfterSeconds_new", expires.clone());
        }
        if let Some(hidden) = self.hidden {
            let old = self
                .specification
                .get("hidden")
                .is_some_and(ValueRef::is_truthy);
            reply.push("hidden_old", old);
            reply.push("hidden_new", hidden);
        }
        let changed = collection.change_index(&self.name, |old| {
            Ok::<_, CollectionError>(self.changed(old))
        });
        changed.or_command_error()
    }

    fn changed(&self, old: Document<'_>) -> DocumentBuf {
        let is_changed = |name: &str| match name {
            "hidden" => self.hidden.is_some(),
            "expireAfterSeconds" => self.expires.is_some(),
            _ => false,
        };
        let mut new: DocumentBuf = old.iter().filter(|(name, _)| !is_changed(name)).collect();
        if let Some(expires) = &self.expires {
            let whole = truncated(expires.as_ref()).unwrap_or_default();
            let old = self.specification.get("expireAfterSeconds");
            match old.and_then(ValueRef::as_whole) == Some(whole) {
                true => new.push("expireAfterSeconds", old.unwrap_or(ValueRef::Null)),
                false => new.push("expireAfterSeconds", whole),
            }
        }
        if self.hidden == Some(true) {
            new.push("hidden", true);
        }
        new
    }
}

/// The index that is meant, by its name or its key.
fn find(
    index: Document<'_>,
    collection: &Collection,
) -> Result<(String, DocumentBuf), CommandError> {
    let all = collection.indexes();
    let definitions = all.iter().map(|one| &one.definition);
    let found: Vec<_> = match (index.get("name"), index.get("keyPattern")) {
        (Some(ValueRef::String(name)), None) => {
            definitions.filter(|one| one.name == name).collect()
        }
        (None, Some(ValueRef::Document(key))) => definitions
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
        _ => {
            let message = "the name of an index is a string, its key pattern a document";
            return Err(invalid(message.to_owned()));
        }
    };
    match found.as_slice() {
        [] => Err(CommandError::new(
            ErrorCode::IndexNotFound,
            format!(
                "cannot find index {index} for ns {}",
                collection.namespace()
            ),
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

fn seconds(value: ValueRef<'_>) -> Result<Value, CommandError> {
    match truncated(value) {
        Some(seconds) if seconds >= 0 => Ok(value.to_value()),
        _ => Err(invalid(
            "expireAfterSeconds field must be a number that is not negative".to_owned(),
        )),
    }
}

fn switch(value: ValueRef<'_>) -> Result<bool, CommandError> {
    let refused = || invalid("hidden field must be a boolean".to_owned());
    value.as_bool().ok_or_else(refused)
}

fn invalid(message: String) -> CommandError {
    CommandError::new(ErrorCode::InvalidOptions, message)
}
