//! The document that an upsert inserts if no document matches.

use windrow_document::{Document, DocumentBuf, DocumentBuilder, ValueRef};

use super::modifier::Execution;
use super::path::Name;
use super::tree::{Fields, Leaf, WhenApplied};
use super::{apply, document_checks, set};
use crate::Error;
use crate::filter::{EqualityScope, Filter, Node};
use crate::memory::depth;

/// Checks the filter of an upsert. Fails with 224 if it contains `$expr`, which MongoDB refuses
/// even if documents match.
pub fn check_filter(filter: &Filter) -> Result<(), Error> {
    fn has_expression(node: &Node) -> bool {
        matches!(node, Node::Expr(_)) || node.children().iter().any(has_expression)
    }
    if has_expression(filter.root()) {
        let message = "$expr is not allowed in the query predicate for an upsert";
        return Err(Error::new(224, message));
    }
    Ok(())
}

/// Returns the document with these equality conditions of the filter.
///
/// # Errors
///
/// - 54: two paths overlap.
/// - 111: the scope is `OnlyId`, and the filter has a condition on a field within `_id`.
pub(super) fn base(
    filter: &Filter,
    scope: EqualityScope,
    execution: &Execution<'_>,
) -> Result<DocumentBuf, Error> {
    let mut tree = Fields::default();
    for (path, value) in filter.equality_fields(scope)? {
        let names: Vec<Name> = path
            .components()
            .iter()
            .map(|part| Name::new(part.name()))
            .collect();
        let text = path.to_string();
        let leaf = Leaf {
            modifier: set::parse_set(&text, value)?,
            path: text.into(),
            when: WhenApplied::Always,
            depth: Some(depth(value)),
        };
        tree.insert(&names, leaf, &|_| None)
            .map_err(|error| Error::new(54, error.message))?;
    }
    let empty = Execution {
        root: Document::EMPTY,
        ..*execution
    };
    let document = apply::apply(&tree, &empty)?.unwrap_or_default();
    finish(document)
}

/// Returns the document with `_id` first. Fails if it cannot be stored.
pub(super) fn finish(document: DocumentBuf) -> Result<DocumentBuf, Error> {
    let document = id_first(document);
    if let Some(id) = document.get("_id") {
        document_checks::check_id(id)?;
    }
    document_checks::check_depth(depth(ValueRef::Document(document.as_document())))?;
    document_checks::check_size(document.as_document())?;
    Ok(document)
}

fn id_first(document: DocumentBuf) -> DocumentBuf {
    let is_first = document.iter().next().is_none_or(|(name, _)| name == "_id");
    let id = document.get("_id");
    match id {
        Some(id) if !is_first => {
            let mut builder = DocumentBuilder::new();
            builder.append("_id", id);
            for (name, value) in document.iter().filter(|(name, _)| *name != "_id") {
                builder.append(name, value);
            }
            builder.finish()
        }
        _ => document,
    }
}
