//! An operation in the `ops` of a bulk write.

use windrow_document::{Document, ValueRef};
use windrow_wire::{CommandError, ErrorCode};

use crate::arguments::{Arguments, whole};
use crate::commands::delete::DeleteStatement;
use crate::commands::update::UpdateStatement;

/// A parsed operation.
pub struct BulkOperation<'a> {
    /// The index of its namespace.
    pub namespace: usize,
    pub action: BulkAction<'a>,
}

/// The action of an operation.
pub enum BulkAction<'a> {
    Insert(Document<'a>),
    Update(UpdateStatement<'a>),
    Delete(DeleteStatement<'a>),
}

impl<'a> BulkOperation<'a> {
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
        operation: Document<'a>,
        namespaces: usize,
    ) -> Result<BulkOperation<'a>, CommandError> {
        let (name, number) = operation.first().unwrap_or(("", ValueRef::Null));
        let action = match name {
            "insert" => BulkAction::Insert(parse_insert(operation)?),
            "update" => BulkAction::Update(UpdateStatement::parse_bulk_write(operation)?),
            "delete" => BulkAction::Delete(DeleteStatement::parse_bulk_write(operation)?),
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

fn parse_insert(operation: Document<'_>) -> Result<Document<'_>, CommandError> {
    let fields = Arguments::within("bulkWrite.insert", operation);
    fields.only(&["insert", "document"])?;
    let document = fields.document("document")?;
    document.ok_or_else(|| fields.missing("document"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::Defaults;
    use windrow_document::{DocumentBuf, doc};

    #[test]
    fn operations_are_checked() {
        let check = |operation: DocumentBuf, expected: Result<&str, i32>| {
            let found = BulkOperation::parse(operation.as_document(), 2);
            let found = found.map(|operation| match operation.action {
                BulkAction::Insert(document) => format!("insert {document}"),
                BulkAction::Update(statement) => format!("update {}", describe(&statement)),
                BulkAction::Delete(statement) => {
                    let find = statement.find(None, Defaults::new(None)).unwrap();
                    format!(
                        "delete {}, limit {:?}",
                        find.filter.to_document(),
                        find.limit
                    )
                }
            });
            let found = found.map_err(|error| error.code.number());
            assert_eq!(found, expected.map(str::to_owned), "{operation}");
        };
        check(
            doc! { "insert": 1, "document": { "a": 1 } },
            Ok(r#"insert {"a":1}"#),
        );
        check(
            doc! { "update": 0, "filter": {}, "updateMods": { "$set": { "a": 1 } }, "multi": true },
            Ok("update {}, limit None"),
        );
        check(
            doc! { "update": 0, "filter": { "b": 2 }, "updateMods": [], "upsert": true },
            Ok(r#"update {"b":{"$eq":2}}, limit Some(1), upsert"#),
        );
        check(
            doc! { "delete": 0, "filter": {} },
            Ok("delete {}, limit Some(1)"),
        );
        check(
            doc! { "delete": 0, "filter": {}, "multi": true },
            Ok("delete {}, limit None"),
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

    fn describe(statement: &UpdateStatement<'_>) -> String {
        let prepared = statement.prepare(None, Defaults::new(None)).unwrap();
        let upsert = if statement.upserts() { ", upsert" } else { "" };
        let find = prepared.find;
        format!(
            "{}, limit {:?}{upsert}",
            find.filter.to_document(),
            find.limit
        )
    }
}
