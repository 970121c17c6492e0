//! Sort specifications and sort keys.
//!
//! [`Sort::key`] returns bytes whose order is the order of the documents. For an array, an
//! ascending field uses the least element and a descending field the greatest. An `_id` that is the
//! only path of the sort is compared as a whole. A missing field is null. An empty array is less
//! than null. If several fields lead through the same array, they use the same element of it, as an
//! index does.
//!
//! ```
//! use windrow_document::doc;
//! use windrow_mql::{Meta, sort::Sort};
//! let sort = Sort::parse(doc! { "a": -1 }.as_document()).unwrap();
//! let key = |document: windrow_document::DocumentBuf| {
//!     let mut bytes = Vec::new();
//!     sort.key(document.as_document(), &Meta::default(), &mut bytes).unwrap();
//!     bytes
//! };
//! assert!(key(doc! { "a": [1, 9] }) < key(doc! { "a": 5 }));
//! ```

pub(crate) mod direction;
mod extract;

use std::sync::Arc;

use windrow_document::path::Path;
use windrow_document::{Collation, Document, DocumentBuf, Value, ValueRef, doc, key};
use windrow_invariant::Bug;

use crate::projection::path::parse_path;
use crate::{Error, Meta, random};

/// A parsed sort specification.
#[derive(Clone, Debug, PartialEq)]
pub struct Sort {
    fields: Vec<SortField>,
    /// `true` if `_id` is the only path. An array there is compared as a whole.
    compares_whole_ids: bool,
    natural: Option<Natural>,
    /// The collation of string comparisons. `None` compares bytes.
    collation: Option<Arc<Collation>>,
}

/// A field of a sort specification.
#[derive(Clone, Debug, PartialEq)]
pub enum SortField {
    /// The value at a path.
    Path {
        /// The path in the document.
        path: Path,
        /// `true` for descending order.
        descending: bool,
    },
    /// `{$meta: "textScore"}`: the text score, descending.
    TextScore {
        /// The field name in the specification.
        name: String,
    },
    /// `{$meta: "randVal"}`: a random number for each document, new in each evaluation.
    Random {
        /// The field name in the specification.
        name: String,
    },
}

impl SortField {
    /// Returns `true` for a value of the document, which an index can contain.
    fn is_path(&self) -> bool {
        matches!(self, SortField::Path { .. })
    }
}

/// `{$natural: 1}` and `{$natural: -1}`: the order of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Natural {
    /// Ascending record ids.
    Forward,
    /// Descending record ids.
    Backward,
}

/// Maximum number of fields.
const FIELDS_MAX: usize = 32;

impl Sort {
    /// Parses a specification such as `{a: 1, b: -1, s: {$meta: "textScore"}}`. The empty
    /// specification does not sort.
    ///
    /// # Errors
    ///
    /// - 15974, 15975: invalid direction.
    /// - 17312, 31138: invalid `$meta`.
    /// - 13103: more than 32 fields.
    /// - 2: `$natural` with other fields.
    /// - Errors of paths.
    pub fn parse(document: Document<'_>) -> Result<Sort, Error> {
        if let Some(direction) = document.get("$natural") {
            return Sort::natural_only(document, direction);
        }
        let fields = document
            .iter()
            .map(|(name, value)| parse_field(name, value));
        let fields = fields.collect::<Result<Vec<SortField>, Error>>()?;
        if fields.len() > FIELDS_MAX {
            return Err(Error::new(
                13103,
                format!("too many compound keys: {document}"),
            ));
        }
        Ok(Sort {
            compares_whole_ids: compares_whole_ids(&fields),
            fields,
            natural: None,
            collation: None,
        })
    }

    fn natural_only(document: Document<'_>, direction: ValueRef<'_>) -> Result<Sort, Error> {
        if document.count() > 1 {
            let message = format!("Cannot include '$natural' in compound sort: {document}");
            return Err(Error::bad_value(message));
        }
        let backward = direction.as_f64().is_some_and(|direction| direction < 0.0);
        let natural = if backward {
            Natural::Backward
        } else {
            Natural::Forward
        };
        Ok(Sort {
            fields: Vec::new(),
            compares_whole_ids: false,
            natural: Some(natural),
            collation: None,
        })
    }

    /// Returns the same sort with a collation. `None` compares bytes.
    pub fn with_collation(self, collation: Option<Arc<Collation>>) -> Sort {
        Sort { collation, ..self }
    }

    /// Returns the collation of string comparisons. `None` compares bytes.
    pub fn collation(&self) -> Option<&Collation> {
        self.collation.as_deref()
    }

    /// Returns the fields, the most significant first.
    pub fn pattern(&self) -> &[SortField] {
        &self.fields
    }

    /// Returns the direction of `$natural`, if the specification has it.
    pub fn natural(&self) -> Option<Natural> {
        self.natural
    }

    /// Returns `true` if the specification does not sort.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.natural.is_none()
    }

    /// Returns `true` if the sort reads the text score.
    pub fn needs_text_score(&self) -> bool {
        self.fields
            .iter()
            .any(|field| matches!(field, SortField::TextScore { .. }))
    }

    /// Returns `true` if the sort reads other things than values of the document.
    pub fn needs_metadata(&self) -> bool {
        !self.fields.iter().all(SortField::is_path)
    }

    /// Appends the sort key of a document to `out`.
    ///
    /// # Errors
    ///
    /// - 2: the fields lead through two different arrays.
    /// - 16746: a number in a path is both an array index and a field name in the array's
    ///   documents.
    /// - 40218: the text score is needed and unknown.
    pub fn key(&self, document: Document<'_>, meta: &Meta, out: &mut Vec<u8>) -> Result<(), Error> {
        self.key_with_collation(document, meta, self.collation(), out)
    }

    /// As [`Sort::key`], with `collation` instead of the sort's own.
    pub(crate) fn key_with_collation(
        &self,
        document: Document<'_>,
        meta: &Meta,
        collation: Option<&Collation>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let start = out.len();
        let single_value = |path: &Path| {
            if self.compares_whole_ids {
                Some(whole_id(document))
            } else {
                extract::without_arrays(path, document)
            }
        };
        if self.append(meta, collation, out, single_value)? {
            return Ok(());
        }
        out.truncate(start);
        let mut values = extract::values(&self.fields, document, collation)?.into_iter();
        if self.append(meta, collation, out, |_| values.next())? {
            return Ok(());
        }
        Err(too_few_values().into())
    }

    /// Appends the key of the values that `value` returns. Returns `false` if it returns `None`.
    fn append<'d>(
        &self,
        meta: &Meta,
        collation: Option<&Collation>,
        out: &mut Vec<u8>,
        mut value: impl FnMut(&Path) -> Option<ValueRef<'d>>,
    ) -> Result<bool, Error> {
        for field in &self.fields {
            match field {
                SortField::Path { path, descending } => match value(path) {
                    Some(value) => {
                        key::append_with_collation(out, value, *descending, collation);
                    }
                    None => return Ok(false),
                },
                SortField::TextScore { .. } => {
                    let score = meta.text_score.ok_or_else(score_unknown)?;
                    key::append_with_direction(out, ValueRef::Double(score), true);
                }
                SortField::Random { .. } => {
                    key::append_with_direction(out, ValueRef::Double(random::fraction()), true);
                }
            }
        }
        Ok(true)
    }

    /// Returns the values of the sort key, in the order of the fields, for `{$meta: "sortKey"}`.
    /// Fails as [`Sort::key`] does.
    pub fn values(&self, document: Document<'_>, meta: &Meta) -> Result<Vec<Value>, Error> {
        let paths = if self.compares_whole_ids {
            vec![whole_id(document)]
        } else {
            extract::values(&self.fields, document, self.collation())?
        };
        let mut paths = paths.into_iter();
        let value = |field: &SortField| match field {
            SortField::Path { .. } => {
                let value = paths.next().ok_or_else(too_few_values)?;
                Ok(value.to_value())
            }
            SortField::TextScore { .. } => {
                meta.text_score.map(Value::Double).ok_or_else(score_unknown)
            }
            SortField::Random { .. } => Ok(Value::Double(random::fraction())),
        };
        self.fields.iter().map(value).collect()
    }

    /// Returns the specification, for explain.
    pub fn to_document(&self) -> DocumentBuf {
        let mut document = DocumentBuf::new();
        match self.natural {
            Some(Natural::Forward) => document.push("$natural", 1),
            Some(Natural::Backward) => document.push("$natural", -1),
            None => {}
        }
        for field in &self.fields {
            match field {
                SortField::Path { path, descending } => {
                    document.push(&path.to_string(), if *descending { -1 } else { 1 });
                }
                SortField::TextScore { name } => document.push(name, doc! { "$meta": "textScore" }),
                SortField::Random { name } => document.push(name, doc! { "$meta": "randVal" }),
            }
        }
        document
    }
}

/// Returns `true` if `_id` is the only path. MongoDB uses the keys of the `_id` index for such a
/// sort, which has one entry per document (`BtreeKeyGenerator`).
fn compares_whole_ids(fields: &[SortField]) -> bool {
    let mut paths = fields.iter().filter_map(|field| match field {
        SortField::Path { path, .. } => Some(path.components()),
        _ => None,
    });
    let first = paths.next();
    matches!(first, Some([only]) if only.name() == "_id") && paths.next().is_none()
}

fn whole_id(document: Document<'_>) -> ValueRef<'_> {
    document.get("_id").unwrap_or(ValueRef::Null)
}

fn too_few_values() -> Bug {
    Bug::new("a document has fewer values than its sort has paths")
}

fn score_unknown() -> Error {
    Error::new(
        40218,
        "query requires text score metadata, but it is not available",
    )
}

fn parse_field(name: &str, value: ValueRef<'_>) -> Result<SortField, Error> {
    if let ValueRef::Document(meta) = value {
        return parse_meta(name, meta);
    }
    let path = parse_path(name)?;
    if !value.is_number() {
        let message = format!(
            "$sort key ordering must be specified using a number or {{$meta: 'textScore'}}, \
             not {value}"
        );
        return Err(Error::new(15974, message));
    }
    let direction = value.as_f64().map(f64::trunc);
    if direction == Some(1.0) || direction == Some(-1.0) {
        return Ok(SortField::Path {
            path,
            descending: direction == Some(-1.0),
        });
    }
    Err(Error::new(
        15975,
        "$sort key ordering must be 1 (for ascending) or -1 (for descending)",
    ))
}

fn parse_meta(name: &str, meta: Document<'_>) -> Result<SortField, Error> {
    let Some(("$meta", kind)) = meta.first() else {
        return Err(Error::new(
            17312,
            "$meta is the only expression supported by $sort right now",
        ));
    };
    if meta.count() > 1 {
        return Err(Error::failed_to_parse(
            "Cannot have additional keys in a $meta sort specification",
        ));
    }
    match kind {
        ValueRef::String("textScore") => Ok(SortField::TextScore {
            name: name.to_owned(),
        }),
        ValueRef::String("randVal") => Ok(SortField::Random {
            name: name.to_owned(),
        }),
        other => Err(Error::new(
            31138,
            format!("Illegal $meta sort: $meta: {other}"),
        )),
    }
}
