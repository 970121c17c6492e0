//! `$merge`: merges each document into the matching document of the target, or inserts it.

use windrow_collection::Change;
use windrow_document::path::Path;
use windrow_document::{Document, DocumentBuf, ValueRef};
use windrow_mql::filter::{Environment, Filter};
use windrow_mql::update::{Update, UpdateContext, difference, field_order};
use windrow_query::Find;
use windrow_query::aggregate::output::{Merge, WhenMatched, WhenNotMatched};
use windrow_wire::CommandError;

use super::output_target::OutputTarget;
use crate::audit::Creation;
use crate::changes::{self, FoundOutcome};
use crate::errors::{OrCommandError, refuse};
use crate::insert_preparation;
use crate::operations::Operation;

/// Merges the documents of a pipeline into the target.
pub struct MergeWriter {
    merge: Merge,
    environment: Environment,
    context: UpdateContext<'static>,
}

/// A document, and the query for the matching document.
pub struct PreparedMerge {
    document: DocumentBuf,
    find: Find,
}

impl PreparedMerge {
    /// Returns the size of the document.
    pub fn bytes(&self) -> usize {
        self.document.as_bytes().len()
    }
}

impl MergeWriter {
    /// Fails with 51183 if no unique index guarantees that the fields identify one document.
    pub fn new(
        target: &OutputTarget,
        merge: &Merge,
        environment: &Environment,
    ) -> Result<MergeWriter, CommandError> {
        let merging = MergeWriter {
            merge: merge.clone(),
            environment: environment.clone(),
            context: changes::update_context(environment.now),
        };
        if merging.is_unique(target) {
            Ok(merging)
        } else {
            refuse(
                51_183,
                "Cannot find index to verify that join fields will be unique".to_owned(),
            )
        }
    }

    fn is_unique(&self, target: &OutputTarget) -> bool {
        let mut keys = self.merge.keys();
        let of_id = keys == ["_id"];
        let Some(collection) = target.engine.collection(&target.namespace) else {
            return of_id;
        };
        // An index with another collation than the pipeline does not count.
        let collation = &self.environment.collation;
        if of_id {
            return collection.collation() == *collation;
        }
        keys.sort_unstable();
        collection.indexes().iter().any(|index| {
            let definition = &index.definition;
            let pattern = definition.key_pattern();
            let mut names: Vec<&str> = pattern.iter().map(|(name, _)| name).collect();
            names.sort_unstable();
            let is_whole = definition.partial.is_none() && index.is_ready();
            let is_alike = definition.collation == *collation;
            let is_plain = pattern.iter().all(|(_, order)| order.is_number());
            definition.unique && is_whole && is_alike && is_plain && names == keys
        })
    }

    /// Prepares a document for the merge.
    pub fn prepare(
        &self,
        target: &OutputTarget,
        document: Document<'_>,
    ) -> Result<PreparedMerge, CommandError> {
        let document = if self.merge.keys().contains(&"_id") {
            target.prepare(document)?
        } else {
            document.to_buf()
        };
        let find = Find {
            limit: Some(1),
            ..Find::new(self.filter(document.as_document())?)
        };
        Ok(PreparedMerge { document, find })
    }

    /// Merges a document into the target.
    pub fn merge(
        &self,
        target: &OutputTarget,
        prepared: &PreparedMerge,
        operation: &Operation,
    ) -> Result<(), CommandError> {
        let PreparedMerge { document, find } = prepared;
        let document = document.as_document();
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.change(target, find, document, operation)? {
                Some(FoundOutcome::Changed) => return Ok(()),
                Some(FoundOutcome::Overtaken) => continue,
                None => {}
            }
            match self.insert(target, document, operation) {
                // Another writer has inserted the document in between.
                Err(error)
                    if changes::may_repeat_upsert(&error)
                        && !matches!(self.merge.matched, WhenMatched::Fail)
                        && attempts < changes::UPSERT_ATTEMPTS => {}
                inserted => return inserted,
            }
        }
    }

    /// Returns the query for the matching document. Fails with 51132 or 51185 if the fields cannot
    /// identify one.
    fn filter(&self, document: Document<'_>) -> Result<Filter, CommandError> {
        let mut conditions = DocumentBuf::new();
        for path in self.merge.keys() {
            let mut condition = DocumentBuf::new();
            condition.push("$eq", key(document, path)?);
            conditions.push(path, condition);
        }
        Filter::parse_with(conditions.as_document(), &self.environment).or_command_error()
    }

    fn change(
        &self,
        target: &OutputTarget,
        find: &Find,
        document: Document<'_>,
        operation: &Operation,
    ) -> Result<Option<FoundOutcome>, CommandError> {
        if matches!(self.merge.matched, WhenMatched::Fail) {
            return Ok(None);
        }
        let Some(collection) = target.engine.collection(&target.namespace) else {
            return Ok(None);
        };
        let mut decide = |newest: Document<'_>| self.decide(document, newest, &find.filter);
        changes::change_found(operation, &collection, find, target.validation, &mut decide)
    }

    /// Returns the change of the target's document.
    fn decide(
        &self,
        document: Document<'_>,
        newest: Document<'_>,
        filter: &Filter,
    ) -> Result<Change, CommandError> {
        let mut variables = None;
        let update = match &self.merge.matched {
            WhenMatched::KeepExisting | WhenMatched::Fail => return Ok(Change::Keep),
            WhenMatched::Replace => Update::replacement(document),
            WhenMatched::Merge => Update::replacement(merged(newest, document).as_document()),
            WhenMatched::Update(update) => {
                let values = self.merge.variables(document, &self.environment);
                variables = Some(values.or_command_error()?);
                update.clone()
            }
        };
        let context = UpdateContext {
            filter: Some(filter),
            variables: variables.as_deref(),
            ..self.context
        };
        let applied = update.apply(newest, &context).or_command_error()?;
        let Some(changed) = applied.document else {
            return Ok(Change::Keep);
        };
        insert_preparation::check_depth(changed.as_document())?;
        let description = match self.merge.matched {
            WhenMatched::Merge => Some(difference(newest, changed.as_document())),
            _ => applied.description,
        };
        Ok(Change::described(changed, description))
    }

    fn insert(
        &self,
        target: &OutputTarget,
        document: Document<'_>,
        operation: &Operation,
    ) -> Result<(), CommandError> {
        match self.merge.not_matched {
            WhenNotMatched::Discard => Ok(()),
            WhenNotMatched::Fail => refuse(
                13_113,
                "$merge could not find a matching document in the target collection for at least \
                 one document in the source collection"
                    .to_owned(),
            ),
            WhenNotMatched::Insert => {
                let engine = &target.engine;
                let prepared = target.prepare(self.inserted(document)?.as_document())?;
                let creation = Creation::begin(target.trail.clone(), engine, &target.namespace);
                let collection = engine
                    .collection_or_create(&target.namespace)
                    .or_command_error()?;
                if let Some(creation) = creation {
                    creation.record();
                }
                target.insert(&collection, prepared.into_bytes(), operation)
            }
        }
    }
}

impl MergeWriter {
    /// Returns the document to insert. In modes that set fields, the fields follow in ascending
    /// order of their names after those that identify the document.
    fn inserted(&self, document: Document<'_>) -> Result<DocumentBuf, CommandError> {
        match &self.merge.matched {
            WhenMatched::Merge | WhenMatched::KeepExisting => {}
            WhenMatched::Replace | WhenMatched::Fail | WhenMatched::Update(_) => {
                return Ok(document.to_buf());
            }
        }
        let mut named = DocumentBuf::new();
        let keys = self.merge.keys();
        for path in keys.into_iter().filter(|path| !path.contains('.')) {
            named.push(path, key(document, path)?);
        }
        Ok(merged(named.as_document(), document))
    }
}

/// Returns the value of a field that identifies a document.
fn key<'a>(document: Document<'a>, path: &str) -> Result<ValueRef<'a>, CommandError> {
    let mut value = Some(ValueRef::Document(document));
    for name in Path::parse(path).components() {
        // Arrays are not entered.
        let inner = value.and_then(ValueRef::as_document);
        value = inner.and_then(|inner| inner.get(name.name()));
    }
    match value {
        Some(ValueRef::Array(_)) => refuse(
            51_185,
            format!("$merge write error: 'on' field '{path}' cannot be an array"),
        ),
        None | Some(ValueRef::Null | ValueRef::Undefined) => refuse(
            51_132,
            format!("$merge write error: 'on' field '{path}' cannot be missing, null or undefined"),
        ),
        Some(value) => Ok(value),
    }
}

/// Returns the old document with the fields of the new one, as by `$set`: existing fields keep
/// their positions, new ones follow by name.
fn merged(old: Document<'_>, new: Document<'_>) -> DocumentBuf {
    let mut merged = DocumentBuf::new();
    for (name, value) in old {
        merged.push(name, new.get(name).unwrap_or(value));
    }
    let mut added: Vec<(&str, ValueRef<'_>)> = new.iter().collect();
    added.retain(|(name, _)| !old.contains(name));
    added.sort_by(|(one, _), (other, _)| field_order(one.as_bytes(), other.as_bytes()));
    for (name, value) in added {
        merged.push(name, value);
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;

    #[test]
    fn documents_are_merged_field_by_field() {
        let check = |old: DocumentBuf, new: DocumentBuf, expected: DocumentBuf| {
            assert_eq!(merged(old.as_document(), new.as_document()), expected);
        };
        check(
            doc! { "_id": 1, "a": 1, "b": 2 },
            doc! { "c": 3, "a": 9 },
            doc! { "_id": 1, "a": 9, "b": 2, "c": 3 },
        );
        check(doc! { "_id": 1 }, doc! {}, doc! { "_id": 1 });
    }

    #[test]
    fn fields_that_name_a_document_have_a_value() {
        let document = doc! { "a": { "b": 1 }, "c": [1], "n": null };
        let check = |path: &str, expected: Result<i64, i32>| {
            let found = key(document.as_document(), path);
            let found = found.map(|value| value.as_whole().unwrap());
            assert_eq!(
                found.map_err(|error| error.code.number()),
                expected,
                "{path}"
            );
        };
        check("a.b", Ok(1));
        check("a.x", Err(51_132));
        check("n", Err(51_132));
        check("c", Err(51_185));
        check("c.0", Err(51_132));
    }
}
