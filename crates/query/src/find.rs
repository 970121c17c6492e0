//! What `find` asks for.

use windrow_document::path::Path;
use windrow_document::{Collation, Document, DocumentBuf, ValueRef};
use windrow_mql::filter::Filter;
use windrow_mql::projection::Projection;
use windrow_mql::sort::{Natural, Sort};

use crate::Error;
use crate::shape::Shape;
use crate::source::{Direction, Source};

/// The parts of a `find`, parsed.
#[derive(Clone, Debug)]
pub struct Find {
    pub filter: Filter,
    pub projection: Option<Projection>,
    /// None, or one that [`Sort::is_empty`]: any order.
    pub sort: Option<Sort>,
    pub skip: u64,
    /// None: no limit. Zero rows are asked for with `Some(0)`.
    pub limit: Option<u64>,
    pub hint: Option<Hint>,
    /// The first and, without it, the last key of the hinted index.
    pub min: Option<DocumentBuf>,
    pub max: Option<DocumentBuf>,
    pub return_key: bool,
    /// The caller wants to know by which key of an index each document was found. A projection says so
    /// itself.
    pub tells_index_keys: bool,
    pub show_record_id: bool,
    pub allow_disk_use: bool,
    /// The paths that the caller reads of each document; None: all of it. A projection says so itself.
    pub needs: Option<Vec<Path>>,
    /// Of the rows that have the same value there the caller needs but one.
    pub one_of: Option<OneOf>,
    /// The caller wants the values there, each at least once, and nothing else.
    pub distinct: Option<Path>,
}

/// Which row of those with the same value is enough. More of them may come.
#[derive(Clone, Debug)]
pub struct OneOf {
    /// Without places in arrays.
    pub path: Path,
    pub which: Which,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Any,
    /// In the order of the rows.
    First,
    Last,
}

/// Which index to use.
#[derive(Clone, Debug, PartialEq)]
pub enum Hint {
    Natural(Direction),
    Name(String),
    /// As `Name`, hidden or not: of the server's own work, no client can say it.
    Own(String),
    Key(DocumentBuf),
}

impl Hint {
    /// Parses the `hint` of a command. None: an empty one, which says nothing. Errors: 9 for what is
    /// neither string nor document, 2 for `$natural` beside other fields.
    pub fn parse(value: ValueRef<'_>) -> Result<Option<Hint>, Error> {
        match value {
            ValueRef::String(name) => Ok(Some(Hint::Name(name.to_owned()))),
            ValueRef::Document(key) if key.is_empty() => Ok(None),
            ValueRef::Document(key) => match key.get("$natural") {
                Some(_) if key.count() > 1 => Err(Error::new(
                    2,
                    format!("$natural hint cannot have other fields: {key}"),
                )),
                Some(order) if order.as_f64().is_some_and(|order| order < 0.0) => {
                    Ok(Some(Hint::Natural(Direction::Backward)))
                }
                Some(_) => Ok(Some(Hint::Natural(Direction::Forward))),
                None => Ok(Some(Hint::Key(key.to_buf()))),
            },
            other => Err(Error::new(
                9,
                format!("hint must be a string or an object: {other}"),
            )),
        }
    }
}

impl Find {
    /// All documents that match, in any order.
    pub fn of(filter: Filter) -> Find {
        Find {
            filter,
            projection: None,
            sort: None,
            skip: 0,
            limit: None,
            hint: None,
            min: None,
            max: None,
            return_key: false,
            tells_index_keys: false,
            show_record_id: false,
            allow_disk_use: false,
            needs: None,
            one_of: None,
            distinct: None,
        }
    }

    /// What it asks for, without the values.
    pub fn shape(&self) -> Shape {
        let filter = self.filter.to_document();
        let sort = self.order().map(Sort::to_document).unwrap_or_default();
        // What later steps need is shown as by a projection: an index may hold all of it. A count, which
        // needs nothing, is of the same shape as its query.
        let needs: Option<DocumentBuf> = self.needs.as_ref().map(|paths| {
            let shown = |path: &Path| (path.to_string(), ValueRef::Int32(1));
            paths.iter().map(shown).collect()
        });
        let needs = needs.as_ref().map(DocumentBuf::as_document);
        let projection = self.projection.as_ref().map(Projection::source).or(needs);
        let collation = self.filter.collation().map(Collation::specification);
        Shape::of(
            filter.as_document(),
            sort.as_document(),
            projection.unwrap_or(Document::EMPTY),
            collation,
        )
    }

    /// The sort, where it orders anything but the natural order.
    pub(crate) fn order(&self) -> Option<&Sort> {
        self.sort.as_ref().filter(|sort| !sort.pattern().is_empty())
    }

    /// Whether the projection shows what the rows are ordered by.
    pub(crate) fn shows_sort_keys(&self) -> bool {
        let projection = self.projection.as_ref();
        projection.is_some_and(|projection| projection.dependencies().sort_key)
    }

    /// Whether the keys of the index that is read are told.
    pub(crate) fn shows_index_keys(&self) -> bool {
        let projection = self.projection.as_ref();
        self.tells_index_keys
            || projection.is_some_and(|projection| projection.dependencies().index_key)
    }

    /// Whether the rows must have the keys by which they were found.
    pub(crate) fn shows_keys(&self) -> bool {
        self.return_key || self.shows_index_keys()
    }

    /// The sort, where the projection shows its keys.
    pub(crate) fn sort_of_keys(&self) -> Option<&Sort> {
        self.order().filter(|_| self.shows_sort_keys())
    }

    /// What `returnKey` leaves of the projection: the fields that show the keys of the order.
    pub(crate) fn shown_sort_keys(&self) -> Option<Box<(Projection, Sort)>> {
        let (projection, sort) = (self.projection.as_ref()?, self.sort_of_keys()?);
        let mut shown = DocumentBuf::new();
        collect_sort_keys("", projection.source(), &mut shown);
        let shown = Projection::parse(shown.as_document(), &self.filter).ok()?;
        Some(Box::new((shown, sort.clone())))
    }

    /// The direction in which a collection scan is asked for, by hint or sort.
    pub(crate) fn natural(&self) -> Option<Direction> {
        match (&self.hint, self.natural_sort()) {
            (_, Some(direction)) => Some(direction),
            (Some(Hint::Natural(direction)), None) => Some(*direction),
            _ => None,
        }
    }

    /// The direction of a natural sort.
    pub(crate) fn natural_sort(&self) -> Option<Direction> {
        self.sort.as_ref()?.natural().map(|natural| match natural {
            Natural::Forward => Direction::Forward,
            Natural::Backward => Direction::Backward,
        })
    }

    /// The position of the snapshot whose documents its rows are, as they were stored. None where they are
    /// made of parts of documents or of keys, or the source is no snapshot.
    pub fn stored_at(&self, source: &dyn Source) -> Option<u64> {
        let are_whole = self.projection.is_none() && self.needs.is_none() && !self.return_key;
        source.position().filter(|_| are_whole)
    }

    /// The paths that the result is made of; None: whole documents.
    pub(crate) fn needed_paths(&self) -> Option<Vec<Path>> {
        match &self.projection {
            Some(projection) if !projection.is_identity() => projection.needed_paths(),
            _ => self.needs.clone(),
        }
    }
}

fn collect_sort_keys(prefix: &str, projection: Document<'_>, into: &mut DocumentBuf) {
    for (name, value) in projection {
        let Some(inner) = value.as_document() else {
            continue;
        };
        let path = format!("{prefix}{name}");
        match inner.first() {
            Some(("$meta", ValueRef::String("sortKey"))) => into.push(&path, inner),
            Some((operator, _)) if operator.starts_with('$') => {}
            _ => collect_sort_keys(&format!("{path}."), inner, into),
        }
    }
}
