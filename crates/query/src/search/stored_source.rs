//! The option `returnStoredSource`: documents with the fields that an index stores
//! (<https://www.mongodb.com/docs/search/performance/query-performance/#return-stored-source-option>).
//!
//! Windrow stores no field twice: it reads the document and leaves out the other fields.

use windrow_document::{DocumentBuf, Value};
use windrow_index::search::{SearchDefinition, StoredSource};
use windrow_mql::filter::Filter;
use windrow_mql::projection::Projection;

use super::options::bad;
use crate::Error;

/// Returns the projection to the fields that the index stores, or `None` if these are all. Fails if
/// it stores none.
pub fn projection(definition: &SearchDefinition) -> Result<Option<Projection>, Error> {
    let Some(stored) = &definition.stored_source else {
        return Err(bad(
            "\"returnStoredSource\" needs \"storedSource\" in the definition of the index"
                .to_owned(),
        ));
    };
    let mut fields = DocumentBuf::new();
    match stored {
        StoredSource::All => return Ok(None),
        StoredSource::Include(paths) => {
            fields.push("_id", Value::Int32(1));
            for path in paths {
                fields.push(path, Value::Int32(1));
            }
        }
        StoredSource::Exclude(paths) => {
            for path in paths {
                fields.push(path, Value::Int32(0));
            }
        }
    }
    let projection = Projection::parse(fields.as_document(), &Filter::all())?;
    Ok(Some(projection))
}
