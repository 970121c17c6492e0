//! The positional `$`: reduces an array to the element that the filter matched.

use windrow_document::path::{Component, Path};
use windrow_document::{Document, DocumentBuf, DocumentBuilder, ValueRef};

use crate::Error;
use crate::filter::Filter;

#[derive(Clone, Debug)]
pub(super) struct Positional {
    pub(super) path: Path,
    pub(super) filter: Filter,
}

impl Positional {
    /// Reduces the first array on the path in `projected` to the matched element.
    pub(super) fn apply(
        &self,
        input: Document<'_>,
        projected: DocumentBuf,
    ) -> Result<DocumentBuf, Error> {
        let components = self.path.components();
        if !leads_to_array(projected.as_document(), components) {
            return Ok(projected);
        }
        let index = self
            .filter
            .projected_position(input)?
            .and_then(|found| found.element)
            .ok_or_else(|| {
                Error::new(
                    51246,
                    "Executor error during find command :: caused by :: positional operator '.$' \
                 couldn't find a matching element in the array",
                )
            })?;
        let mut builder = DocumentBuilder::new();
        reduce_array(projected.as_document(), components, index, &mut builder)?;
        Ok(builder.finish())
    }
}

fn leads_to_array(document: Document<'_>, path: &[Component]) -> bool {
    let Some((first, rest)) = path.split_first() else {
        return false;
    };
    match document.get(first.name()) {
        Some(ValueRef::Array(_)) => true,
        Some(ValueRef::Document(inner)) => leads_to_array(inner, rest),
        _ => false,
    }
}

fn reduce_array(
    document: Document<'_>,
    path: &[Component],
    index: usize,
    builder: &mut DocumentBuilder,
) -> Result<(), Error> {
    let (name, rest) = match path.split_first() {
        Some((first, rest)) => (first.name(), rest),
        None => ("", path),
    };
    for (field, value) in document {
        match value {
            ValueRef::Array(array) if field == name => {
                let element = array.get(index).ok_or_else(|| {
                    Error::new(
                        51247,
                        "Executor error during find command :: caused by :: positional operator \
                         '.$' element mismatch",
                    )
                })?;
                builder.begin_array(field);
                builder.append("0", element);
                builder.end();
            }
            ValueRef::Document(inner) if field == name => {
                builder.begin_document(field);
                reduce_array(inner, rest, index, builder)?;
                builder.end();
            }
            other => builder.append(field, other),
        }
    }
    Ok(())
}
