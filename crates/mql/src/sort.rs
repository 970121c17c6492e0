//! Sort specifications, and the bytes that put documents in order.
//!
//! [`Sort::key`] gives bytes whose plain order is the order of the documents. Of an array an
//! ascending field takes the least element and a descending one the greatest, but an `_id` that is
//! the only path of the sort is compared whole. A missing field is null, an empty array is below
//! null. Several fields through one array are taken from the same element of it, as an index over
//! them would have it.
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
    /// Its only path is `_id`: an array there is compared whole.
    is_of_whole_ids: bool,
    natural: Option<Natural>,
    /// How strings are compared; None: by their bytes.
    collation: Option<Arc<Collation>>,
}

/// One part of a specification.
#[derive(Clone, Debug, PartialEq)]
pub enum SortField {
    Path {
        path: Path,
        descending: bool,
    },
    /// `{$meta: "textScore"}`: the greatest first.
    TextScore {
        name: String,
    },
    /// `{$meta: "randVal"}`: each document has a number of its own, another one each time.
    Random {
        name: String,
    },
}

impl SortField {
    /// Whether it orders by values of the document, as an index may have them.
    fn is_path(&self) -> bool {
        matches!(self, SortField::Path { .. })
    }
}

/// `{$natural: 1}` and `{$natural: -1}`: the order in which the records stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Natural {
    Forward,
    Backward,
}

/// Fields of one specification.
const FIELDS_MAX: usize = 32;

impl Sort {
    /// Parses `{a: 1, b: -1, s: {$meta: "textScore"}}`. The empty specification leaves the order
    /// alone. Errors: 15974 and 15975 for a wrong direction, 17312 and 31138 for a wrong `$meta`,
    /// 13103 for more than 32 fields, 2 for `$natural` beside others, and those of paths.
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
            is_of_whole_ids: is_of_whole_ids(&fields),
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
            is_of_whole_ids: false,
            natural: Some(natural),
            collation: None,
        })
    }

    /// The same with strings compared by a collation.
    pub fn with_collation(self, collation: Option<Arc<Collation>>) -> Sort {
        Sort { collation, ..self }
    }

    pub fn collation(&self) -> Option<&Collation> {
        self.collation.as_deref()
    }

    /// The parts, the most significant first.
    pub fn pattern(&self) -> &[SortField] {
        &self.fields
    }

    pub fn natural(&self) -> Option<Natural> {
        self.natural
    }

    /// Whether it asks for no order at all.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.natural.is_none()
    }

    pub fn needs_text_score(&self) -> bool {
        self.fields
            .iter()
            .any(|field| matches!(field, SortField::TextScore { .. }))
    }

    /// Whether it orders by anything else than values of the documents.
    pub fn needs_metadata(&self) -> bool {
        !self.fields.iter().all(SortField::is_path)
    }

    /// Appends the document's key. Errors: 2 for a document with two arrays that the fields go
    /// through side by side, 16746 for a number that is a place in an array and a name in its
    /// documents, 40218 where the text score is asked for and unknown.
    pub fn key(&self, document: Document<'_>, meta: &Meta, out: &mut Vec<u8>) -> Result<(), Error> {
        self.key_by(document, meta, self.collation(), out)
    }

    /// The same with strings compared by another collation than the sort's own.
    pub(crate) fn key_by(
        &self,
        document: Document<'_>,
        meta: &Meta,
        collation: Option<&Collation>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let start = out.len();
        let alone = |path: &Path| match self.is_of_whole_ids {
            true => Some(whole_id(document)),
            false => extract::without_arrays(path, document),
        };
        if self.append(meta, collation, out, alone)? {
            return Ok(());
        }
        out.truncate(start);
        let mut values = extract::values(&self.fields, document, collation)?.into_iter();
        if self.append(meta, collation, out, |_| values.next())? {
            return Ok(());
        }
        Err(too_few_values().into())
    }

    /// Appends the key with the values that `value` gives; false as soon as it gives none.
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

    /// The values that the key is made of, in the order of the pattern: what `{$meta: "sortKey"}`
    /// shows.
    pub fn values(&self, document: Document<'_>, meta: &Meta) -> Result<Vec<Value>, Error> {
        let paths = match self.is_of_whole_ids {
            true => vec![whole_id(document)],
            false => extract::values(&self.fields, document, self.collation())?,
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

    /// The specification, as explain prints it.
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

/// Whether `_id` is the only path. MongoDB takes the keys of such a sort as those of the index on `_id`,
/// which has one entry for each document (`BtreeKeyGenerator`).
fn is_of_whole_ids(fields: &[SortField]) -> bool {
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
