//! An operation in the `ops` of a bulk write.

use windrow_document::{Document, DocumentBuf, ValueRef};
use windrow_wire::{CommandError, ErrorCode};

use crate::arguments::{Arguments, whole};
use crate::commands::{delete, update};

/// An operation with checked types.
#[derive(Debug, PartialEq)]
pub struct BulkOperation {
    /// The index of its namespace.
    pub namespace: usize,
    pub action: BulkAction,
}

/// The action, with the statement in the form of the command for one collection.
#[derive(Debug, PartialEq)]
pub enum BulkAction {
    Insert(DocumentBuf),
    Update(DocumentBuf),
    Delete(DocumentBuf),
}

/// A field of an operation, and its name in a statement.
type Fields = &'static [(&'static str, &'static str)];

const UPDATE: Fields = &[
    ("filter", "q"),
    ("updateMods", "u"),
    ("constants", "c"),
    ("multi", "multi"),
    ("upsert", "upsert"),
    ("arrayFilters", "arrayFilters"),
    ("collation", "collation"),
    ("hint", "hint"),
    ("sort", "sort"),
];

const DELETE: Fields = &[
    ("filter", "q"),
    ("collation", "collation"),
    ("hint", "hint"),
];

impl BulkOperation {
    /// Parses an operation.
    ///
    /// # Errors
    ///
    /// - 9: an unknown operation.
    /// - 40415: an unknown field.
    /// - 40414: a missing field.
    /// - 14: a wrong type.
    /// - 2: the namespace does not exist.
    pub fn parse(
        operation: Document<'_>,
        namespaces: usize,
    ) -> Result<BulkOperation, CommandError> {
        let (name, number) = operation.first().unwrap_or(("", ValueRef::Null));
        let action = match name {
            "insert" => BulkAction::Insert(parse_insert(operation)?),
            "update" => BulkAction::Update(parse_update(operation)?),
            "delete" => BulkAction::Delete(parse_delete(operation)?),
            other => {
                let message = format!("Unrecognized bulkWrite operation type: '{other}'");
                return Err(CommandError::new(ErrorCode::FailedToParse, message));
            }
        };
        let found = Arguments::within("bulkWrite.ops", operation).whole_number(name)?;
        let place = found.and_then(|number| usize::try_from(number).ok());
        match place.filter(|place| *place < namespaces && whole(number).is_some()) {
            Some(namespace) => Ok(BulkOperation { namespace, action }),
            None => Err(CommandError::new(
                ErrorCode::BadValue,
                format!("BulkWrite ops entry {operation} has an invalid nsInfo index."),
            )),
        }
    }
}

fn parse_insert(operation: Document<'_>) -> Result<DocumentBuf, CommandError> {
    let fields = Arguments::within("bulkWrite.insert", operation);
    fields.only(&["insert", "document"])?;
    let document = fields.document("document")?;
    let document = document.ok_or_else(|| fields.missing("document"))?;
    Ok(document.to_buf())
}

fn parse_update(operation: Document<'_>) -> Result<DocumentBuf, CommandError> {
    let statement = renamed("update", operation, UPDATE, &["filter", "updateMods"])?;
    update::UpdateStatement::parse(statement.as_document())?;
    Ok(statement)
}

fn parse_delete(operation: Document<'_>) -> Result<DocumentBuf, CommandError> {
    let fields = Arguments::within("bulkWrite.delete", operation);
    let many = fields.bool("multi")?.unwrap_or(false);
    let rest = operation.iter().filter(|(name, _)| *name != "multi");
    let rest: DocumentBuf = rest.collect();
    let mut statement = renamed("delete", rest.as_document(), DELETE, &["filter"])?;
    statement.push("limit", i32::from(!many));
    delete::DeleteStatement::parse(statement.as_document())?;
    Ok(statement)
}

/// Returns the operation as a statement.
fn renamed(
    name: &str,
    operation: Document<'_>,
    names: Fields,
    required: &[&str],
) -> Result<DocumentBuf, CommandError> {
    let place = format!("bulkWrite.{name}");
    let known: Vec<&str> = names.iter().map(|(name, _)| *name).chain([name]).collect();
    let fields = Arguments::within(&place, operation);
    fields.only(&known)?;
    if let Some(missing) = required.iter().find(|name| fields.get(name).is_none()) {
        return Err(fields.missing(missing));
    }
    let mut statement = DocumentBuf::new();
    for (given, name) in names {
        if let Some(value) = fields.get(given) {
            statement.push(name, value);
        }
    }
    Ok(statement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;

    #[test]
    fn operations_are_checked() {
        let check = |operation: DocumentBuf, expected: Result<BulkAction, i32>| {
            let found = BulkOperation::parse(operation.as_document(), 2);
            let found = found.map(|operation| operation.action);
            let found = found.map_err(|error| error.code.number());
            assert_eq!(found, expected, "{operation}");
        };
        check(
            doc! { "insert": 1, "document": { "a": 1 } },
            Ok(BulkAction::Insert(doc! { "a": 1 })),
        );
        check(
            doc! { "update": 0, "filter": {}, "updateMods": { "$set": { "a": 1 } }, "multi": true },
            Ok(BulkAction::Update(
                doc! { "q": {}, "u": { "$set": { "a": 1 } }, "multi": true },
            )),
        );
        check(
            doc! { "delete": 0, "filter": {} },
            Ok(BulkAction::Delete(doc! { "q": {}, "limit": 1 })),
        );
        check(
            doc! { "delete": 0, "filter": {}, "multi": true },
            Ok(BulkAction::Delete(doc! { "q": {}, "limit": 0 })),
        );
        check(doc! { "insert": 2, "document": {} }, Err(2));
        check(doc! { "insert": (-1), "document": {} }, Err(2));
        check(doc! { "insert": "x", "document": {} }, Err(14));
        check(doc! { "insert": 0 }, Err(40414));
        check(doc! { "insert": 0, "document": 1 }, Err(14));
        check(doc! { "insert": 0, "document": {}, "x": 1 }, Err(40415));
        check(doc! { "update": 0, "filter": {} }, Err(40414));
        check(doc! { "delete": 0, "filter": {}, "limit": 1 }, Err(40415));
        check(doc! { "replace": 0 }, Err(9));
        check(doc! {}, Err(9));
    }
}
