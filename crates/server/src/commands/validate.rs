//! `validate`: checks every index against its collection, and rebuilds inconsistent ones.

use std::collections::HashMap;

use windrow_access::Action;
use windrow_collection::{
    Checks, Collection, CollectionUuid, DocumentFindings, IndexReport, Interrupt, Validation,
    WrongEntry,
};
use windrow_document::{DocumentBuf, Value, ValueRef, doc, key};
use windrow_index::{Definition, KeyKind};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::command::{AcceptedArguments, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::{namespace, views};

pub const VALIDATE: Command = Command {
    name: "validate",
    help: "compares a collection with its indexes; full: true reads every block, repair: true \
           rebuilds inconsistent indexes",
    needs: Needs::OnCollection(&[Action::validate]),
    // `scandata` is an argument of versions before 5.0 that some drivers still send.
    arguments: AcceptedArguments::Only(&[
        "background",
        "checkBSONConformance",
        "fixMultikey",
        "full",
        "metadata",
        "repair",
        "scandata",
    ]),
    run,
    ends_with_client: true,
    ..Command::EMPTY
};

/// The parsed arguments.
struct ValidateRequest {
    checks: Checks,
    repair: Repair,
    /// Checks the definitions of indexes only.
    metadata: bool,
}

/// The kind of repair of inconsistent indexes. The names are those in the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    None,
    FixErrors,
    /// Index entries record which paths have arrays, so this also rebuilds the index.
    AdjustMultikey,
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let namespace = namespace::from_request(request)?;
    context.operation.set_namespace(&namespace.to_string());
    let request = parse(request)?;
    let missing = || format!("Collection '{namespace}' does not exist to validate.");
    let collection = views::collection(context, &namespace, missing)?;
    let found = find_inconsistencies(&collection, &request, context.operation)?;
    let mut described = ValidationReport::new(&collection, &found);
    let wrong: Vec<String> = wrong_indexes(&found).map(|it| it.name.clone()).collect();
    if request.repair != Repair::None && !wrong.is_empty() {
        let engine = &context.state.services.engine;
        engine
            .rebuild(&collection, &wrong, context.operation)
            .or_command_error()?;
        described = ValidationReport::new(
            &collection,
            &find_inconsistencies(&collection, &request, context.operation)?,
        )
        .with_repairs(&found);
    }
    if request.repair != Repair::None {
        described.warn_of_duplicates();
    }
    let counts = !request.metadata;
    let reply = described.reply(&namespace.to_string(), request.repair, counts);
    Ok(Reply::ok(reply))
}

/// Returns the indexes that a rebuild makes consistent.
fn wrong_indexes(found: &Validation) -> impl Iterator<Item = &IndexReport> {
    found.reports().filter(|index| !index.errors.is_empty())
}

fn parse(request: &Request) -> Result<ValidateRequest, CommandError> {
    let flag = |name: &str| request.get(name).is_some_and(ValueRef::is_truthy);
    let request = ValidateRequest {
        checks: Checks {
            full: flag("full"),
            conformance: flag("checkBSONConformance"),
        },
        repair: if flag("repair") {
            Repair::FixErrors
        } else if flag("fixMultikey") {
            Repair::AdjustMultikey
        } else {
            Repair::None
        },
        metadata: flag("metadata"),
    };
    let background = flag("background");
    let repairs = request.repair != Repair::None;
    let refuse = |together: &str| {
        let message = format!("Running the validate command with {together} is not supported");
        Err(CommandError::new(ErrorCode::InvalidOptions, message))
    };
    let ValidateRequest { checks, .. } = request;
    match request {
        _ if background && repairs => refuse("{ background: true } and { repair: true }"),
        _ if background && checks.full => refuse("{ background: true } and { full: true }"),
        _ if background && checks.conformance => {
            refuse("{ background: true } and { checkBSONConformance: true }")
        }
        ValidateRequest { metadata: true, .. }
            if background || repairs || checks.full || checks.conformance =>
        {
            refuse("{ metadata: true } and any other options")
        }
        _ if repairs && checks.conformance => {
            refuse("{ checkBSONConformance: true } and { repair: true }")
        }
        request => Ok(request),
    }
}

fn find_inconsistencies(
    collection: &Collection,
    request: &ValidateRequest,
    interrupt: &dyn Interrupt,
) -> Result<Validation, CommandError> {
    if !request.metadata {
        let found = collection.validate_with(request.checks, interrupt);
        return found.or_command_error();
    }
    // Definitions are parsed when a data folder is opened, which fails if one is invalid.
    let mut indexes = collection.all_indexes();
    if collection.is_clustered() {
        indexes.remove(0);
    }
    let report = |name: &str| IndexReport {
        name: name.to_owned(),
        ..IndexReport::default()
    };
    Ok(Validation {
        documents: collection.count(),
        indexes: indexes
            .iter()
            .map(|it| report(&it.definition.name))
            .collect(),
        ..Validation::default()
    })
}

/// The content of the reply.
struct ValidationReport {
    collection_uuid: CollectionUuid,
    validation: Validation,
    /// The specifications of the indexes by name.
    specifications: HashMap<String, DocumentBuf>,
    warnings: Vec<String>,
    /// The inconsistencies that were repaired.
    repaired: Option<RepairCounts>,
    missing: Vec<Value>,
    extra: Vec<Value>,
}

#[derive(Clone, Copy)]
struct RepairCounts {
    inserted: u64,
    removed: u64,
}

impl ValidationReport {
    fn new(collection: &Collection, validation: &Validation) -> ValidationReport {
        let definitions = collection.all_indexes();
        let definition = |name: &str| {
            let found = definitions.iter().find(|it| it.definition.name == name);
            found.map(|it| it.definition.clone())
        };
        let (mut missing, mut extra) = (Vec::new(), Vec::new());
        for index in validation.reports() {
            let definition = definition(&index.name);
            let describe = |entry: &WrongEntry| entry_document(index, definition.as_deref(), entry);
            missing.extend(index.missing.first.iter().map(describe));
            extra.extend(index.extra.first.iter().map(describe));
        }
        let noted = |what: &str, noted: &DocumentFindings| {
            let first = noted.first.as_ref()?;
            let count = noted.count;
            Some(format!(
                "Detected one or more documents in this collection not {what}: {count}, of which the first is \
                 {first}"
            ))
        };
        let refused = noted(
            "compliant with the collection's schema",
            &validation.refused,
        );
        let not_conforming = noted(
            "conformant to BSON specifications",
            &validation.not_conforming,
        );
        let warnings = refused.into_iter().chain(not_conforming).collect();
        ValidationReport {
            collection_uuid: collection.uuid(),
            validation: validation.clone(),
            specifications: definitions
                .iter()
                .map(|it| &it.definition)
                .map(|it| (it.name.clone(), it.specification.clone()))
                .collect(),
            warnings,
            repaired: None,
            missing,
            extra,
        }
    }

    /// Returns the same description after a repair: the errors that were found before are warnings.
    fn with_repairs(mut self, before: &Validation) -> ValidationReport {
        let sum = |of: fn(&IndexReport) -> u64| before.reports().map(of).sum::<u64>();
        let repaired = RepairCounts {
            inserted: sum(|index| index.missing.count),
            removed: sum(|index| index.extra.count),
        };
        for index in wrong_indexes(before) {
            self.warnings.extend(index.errors.iter().cloned());
            let name = &index.name;
            self.warnings
                .push(format!("Rebuilt the index '{name}' from the documents"));
        }
        self.repaired = Some(repaired);
        self
    }

    /// Reports documents with the same unique key. A repair cannot decide which of them is wrong.
    fn warn_of_duplicates(&mut self) {
        let sharing = self.validation.reports();
        let names = sharing.filter(|index| index.duplicates.is_some());
        let warnings = names.map(|index| {
            format!(
                "Documents with duplicate keys of the unique index '{}' are not repaired: delete or change \
                 all but one of each key",
                index.name
            )
        });
        self.warnings.extend(warnings);
    }

    /// Returns the reply. `counts` is `true` if documents were counted.
    fn reply(self, namespace: &str, repair: Repair, counts: bool) -> DocumentBuf {
        let validation = &self.validation;
        let (mut keys, mut details) = (DocumentBuf::new(), DocumentBuf::new());
        for index in &validation.indexes {
            keys.push(&index.name, Value::whole(index.keys as i64));
            details.push(
                &index.name,
                detail(index, self.specifications.get(&index.name)),
            );
        }
        let of_indexes = validation.reports().flat_map(IndexReport::all_errors);
        let errors: Vec<String> = validation
            .errors
            .iter()
            .chain(of_indexes)
            .cloned()
            .collect();
        let corrupt: Vec<i64> = validation.corrupt.iter().map(|id| id.0 as i64).collect();
        let uuid = self.collection_uuid.to_value();
        let mut reply = doc! { "ns": namespace, "uuid": uuid };
        if counts {
            reply.push(
                "nInvalidDocuments",
                Value::whole(validation.corrupt.len() as i64),
            );
            reply.push(
                "nNonCompliantDocuments",
                Value::whole((validation.refused.count + validation.not_conforming.count) as i64),
            );
            reply.push("nrecords", Value::whole(validation.documents as i64));
        }
        let rest = doc! {
            "nIndexes": (validation.indexes.len() as i32),
            "keysPerIndex": keys,
            "indexDetails": details,
            "valid": (validation.is_valid()),
            "repairMode": (format!("{repair:?}")),
            "repaired": (self.repaired.is_some()),
            "warnings": (self.warnings),
            "errors": errors,
            "extraIndexEntries": (self.extra),
            "missingIndexEntries": (self.missing),
            "corruptRecords": corrupt,
        };
        rest.iter()
            .for_each(|(name, value)| reply.push(name, value));
        if let Some(RepairCounts { inserted, removed }) = self.repaired {
            reply.push("numRemovedCorruptRecords", 0i64);
            reply.push("numRemovedExtraIndexEntries", removed as i64);
            reply.push("numInsertedMissingIndexEntries", inserted as i64);
        }
        reply
    }
}

fn detail(index: &IndexReport, specification: Option<&DocumentBuf>) -> DocumentBuf {
    let mut detail = doc! { "valid": (index.is_valid()) };
    if !index.is_valid() {
        let errors: Vec<String> = index.all_errors().cloned().collect();
        detail.push("errors", errors);
    }
    if let Some(specification) = specification {
        detail.push("spec", specification.clone());
    }
    detail
}

fn entry_document(
    index: &IndexReport,
    definition: Option<&Definition>,
    entry: &WrongEntry,
) -> Value {
    let mut document = doc! {
        "indexName": (index.name.as_str()), "recordId": (entry.record.0 as i64),
    };
    if let Some(id) = &entry.id {
        document.push("idKey", doc! { "_id": (id.clone()) });
    }
    let values = definition.and_then(|definition| key_document(definition, entry));
    match values {
        Some(values) => document.push("indexKey", values),
        None => document.push(
            "indexKey",
            Value::Binary {
                subtype: 0,
                bytes: entry.key.clone(),
            },
        ),
    }
    document.into()
}

/// Returns the values of a key. `None` if they cannot be restored from the key.
fn key_document(definition: &Definition, entry: &WrongEntry) -> Option<DocumentBuf> {
    let is_plain = !definition.is_text() && definition.wildcard.is_none();
    if !is_plain || definition.collation.is_some() {
        return None;
    }
    let mut reader = key::KeyReader::new(&entry.key, &entry.payload);
    let mut values = DocumentBuf::new();
    for field in &definition.fields {
        let value = reader.value(field.kind == KeyKind::Descending)?;
        values.push(&field.path.to_string(), value);
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repair must not report documents with the same unique key as repaired.
    #[test]
    fn duplicate_keys_stay_errors() {
        let index = IndexReport {
            name: "a_1".to_owned(),
            duplicates: Some("duplicate".to_owned()),
            ..IndexReport::default()
        };
        let validation = Validation {
            indexes: vec![index],
            ..Validation::default()
        };
        assert_eq!(wrong_indexes(&validation).count(), 0);
        let mut described = ValidationReport {
            collection_uuid: CollectionUuid::default(),
            validation,
            specifications: HashMap::new(),
            warnings: Vec::new(),
            repaired: None,
            missing: Vec::new(),
            extra: Vec::new(),
        };
        described.warn_of_duplicates();
        let warning = described.warnings.concat();
        assert!(warning.contains("'a_1' are not repaired"), "{warning}");
        let reply = described.reply("d.c", Repair::FixErrors, true);
        let expected = doc! {
            "indexDetails": { "a_1": { "valid": false, "errors": ["duplicate"] } },
            "valid": false,
            "repaired": false,
            "errors": ["duplicate"],
        };
        for (name, value) in expected.iter() {
            assert_eq!(reply.get(name), Some(value), "{reply}");
        }
    }
}
