//! The parsed request of a `find`.

use windrow_document::path::Path;
use windrow_document::{Collation, Document, DocumentBuf, ValueRef};
use windrow_mql::filter::Filter;
use windrow_mql::projection::Projection;
use windrow_mql::sort::{Natural, Sort};

use crate::Error;
use crate::plan::ShownSortKeys;
use crate::shape::Shape;
use crate::source::{Direction, Position, Source};

/// The parsed request of a `find`.
#[derive(Clone, Debug)]
pub struct Find {
    /// The filter.
    pub filter: Filter,
    /// The projection. `None`: whole documents.
    pub projection: Option<Projection>,
    /// The sort. `None` or an empty sort ([`Sort::is_empty`]): any order.
    pub sort: Option<Sort>,
    /// The number of documents to skip.
    pub skip: u64,
    /// The largest number of documents. `None`: no limit. `Some(0)`: no documents.
    pub limit: Option<u64>,
    /// The index to use.
    pub hint: Option<Hint>,
    /// The lower bound of the keys of the hinted index, inclusive.
    pub min: Option<DocumentBuf>,
    /// The upper bound of the keys of the hinted index, exclusive.
    pub max: Option<DocumentBuf>,
    /// Return the index keys in place of the documents.
    pub return_key: bool,
    /// The caller needs the index key by which each document was found. A projection with `{$meta:
    /// "indexKey"}` has the same effect.
    pub needs_index_keys: bool,
    /// Add the record ids to the documents.
    pub show_record_id: bool,
    /// A sort may use files if it exceeds its memory limit.
    pub allow_disk_use: bool,
    /// The paths that the caller reads in each document. `None`: all of them. A projection takes
    /// precedence.
    pub needs: Option<Vec<Path>>,
    /// The caller needs only one of the rows with the same value at a path.
    pub distinct_rows: Option<DistinctRows>,
    /// The caller needs only the values at this path, each at least once.
    pub distinct: Option<Path>,
}

/// Which one of the rows with the same value at a path is needed. The result may contain more of
/// them.
#[derive(Clone, Debug)]
pub struct DistinctRows {
    /// The path, without array positions.
    pub path: Path,
    /// Which row.
    pub which: RowChoice,
}

/// Which one of several rows with the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowChoice {
    /// Any of them.
    Any,
    /// The first one in the order of the rows.
    First,
    /// The last one in the order of the rows.
    Last,
}

/// The index that a query has to use.
#[derive(Clone, Debug, PartialEq)]
pub enum Hint {
    /// No index: a collection scan in this direction.
    Natural(Direction),
    /// The index with this name.
    Name(String),
    /// The index with this name, even if it is hidden. For internal queries only; clients cannot
    /// send it.
    Own(String),
    /// The index with this key pattern.
    Key(DocumentBuf),
}

impl Hint {
    /// Parses the `hint` of a command. An empty hint gives `None`. Fails with 9 if the value is
    /// neither a string nor a document, with 2 if `$natural` has other fields beside it.
    ///
    /// ```
    /// use windrow_document::ValueRef;
    /// use windrow_query::Hint;
    /// let hint = Hint::parse(ValueRef::String("a_1"))?;
    /// assert_eq!(hint, Some(Hint::Name("a_1".to_owned())));
    /// assert!(Hint::parse(ValueRef::Int32(1)).is_err());
    /// # Ok::<(), windrow_query::Error>(())
    /// ```
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
    /// A query for all documents that match the filter, in any order.
    pub fn new(filter: Filter) -> Find {
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
            needs_index_keys: false,
            show_record_id: false,
            allow_disk_use: false,
            needs: None,
            distinct_rows: None,
            distinct: None,
        }
    }

    /// Returns the query without its constants.
    pub fn shape(&self) -> Shape {
        let filter = self.filter.to_document();
        let sort = self.order().map(Sort::to_document).unwrap_or_default();
        // The needed paths of later stages count as a projection, because an index may cover them.
        // A count needs no paths and has the same shape as its query.
        let needs: Option<DocumentBuf> = self.needs.as_ref().map(|paths| {
            let shown = |path: &Path| (path.to_string(), ValueRef::Int32(1));
            paths.iter().map(shown).collect()
        });
        let needs = needs.as_ref().map(DocumentBuf::as_document);
        let projection = self.projection.as_ref().map(Projection::source).or(needs);
        let collation = self.filter.collation().map(Collation::specification);
        Shape::new(
            filter.as_document(),
            sort.as_document(),
            projection.unwrap_or(Document::EMPTY),
            collation,
        )
    }

    /// Returns the sort, unless it is empty or the natural order.
    pub(crate) fn order(&self) -> Option<&Sort> {
        self.sort.as_ref().filter(|sort| !sort.pattern().is_empty())
    }

    /// Returns `true` if the projection shows the sort key.
    pub(crate) fn shows_sort_keys(&self) -> bool {
        let projection = self.projection.as_ref();
        projection.is_some_and(|projection| projection.dependencies().sort_key)
    }

    /// Returns `true` if the rows must carry the index keys for the caller or the projection.
    pub(crate) fn shows_index_keys(&self) -> bool {
        let projection = self.projection.as_ref();
        self.needs_index_keys
            || projection.is_some_and(|projection| projection.dependencies().index_key)
    }

    /// Returns `true` if the rows must carry the index keys by which they were found.
    pub(crate) fn shows_keys(&self) -> bool {
        self.return_key || self.shows_index_keys()
    }

    /// Returns the sort if the projection shows its key.
    pub(crate) fn sort_of_keys(&self) -> Option<&Sort> {
        self.order().filter(|_| self.shows_sort_keys())
    }

    /// Returns the part of the projection that applies to `returnKey`: the fields that show the
    /// sort key. `None` if it shows none.
    pub(crate) fn shown_sort_keys(&self) -> Option<Box<ShownSortKeys>> {
        let (projection, sort) = (self.projection.as_ref()?, self.sort_of_keys()?);
        let mut shown = DocumentBuf::new();
        collect_sort_keys("", projection.source(), &mut shown);
        let shown = Projection::parse(shown.as_document(), &self.filter).ok()?;
        Some(Box::new(ShownSortKeys {
            projection: shown,
            sort: sort.clone(),
        }))
    }

    /// Returns the direction of the collection scan that the hint or the sort asks for.
    pub(crate) fn natural(&self) -> Option<Direction> {
        match (&self.hint, self.natural_sort()) {
            (_, Some(direction)) => Some(direction),
            (Some(Hint::Natural(direction)), None) => Some(*direction),
            _ => None,
        }
    }

    /// Returns the direction of a natural sort.
    pub(crate) fn natural_sort(&self) -> Option<Direction> {
        self.sort.as_ref()?.natural().map(|natural| match natural {
            Natural::Forward => Direction::Forward,
            Natural::Backward => Direction::Backward,
        })
    }

    /// Returns the log position of the snapshot if the rows are whole documents as they were
    /// stored. Returns `None` if the rows are computed from parts of documents or from keys, or the
    /// source has no position.
    pub fn stored_at(&self, source: &dyn Source) -> Option<Position> {
        let are_whole = self.projection.is_none() && self.needs.is_none() && !self.return_key;
        source.position().filter(|_| are_whole)
    }

    /// Returns the paths from which the result is computed. `None`: whole documents.
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
