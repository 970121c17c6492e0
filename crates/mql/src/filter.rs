//! Filters: conditions that select documents.
//!
//! [`Filter::parse`] parses a query document into a tree of [`Node`]s in normal form: nested
//! `$and`s are one `$and`, implied operators are explicit (`{a: 1}` is an equality), `$ne` is a
//! negated equality, a `$in` of one value is an equality, and the children of `$and` are in
//! MongoDB's canonical order. The planner reads the tree. [`Filter::matches`] applies it to BSON
//! bytes.
//!
//! ```
//! use windrow_document::doc;
//! use windrow_mql::filter::Filter;
//! let filter = Filter::parse(doc! { "n": { "$gt": 2 } }.as_document()).unwrap();
//! assert!(filter.matches(doc! { "n": [1, 3] }.as_document()).unwrap());
//! ```
//!
//! Reading order: [`node`], `parse` (the tables of operators), `matching`, `walk` (paths through
//! arrays), [`regex`], `regex_list`, `schema`, [`validation_report`], `print`, `filter_pushdown`.

mod bits;
mod compare;
mod expr;
mod filter_pushdown;
mod matching;
pub mod node;
mod parse;
mod print;
pub mod regex;
mod regex_list;
mod schema;
mod type_set;
pub mod validation_report;
mod walk;

use std::fmt;
use std::sync::Arc;

use windrow_document::path::Path;
use windrow_document::{Collation, Document, DocumentBuf, ValueRef};
use windrow_geo::Near;

pub use bits::{BitTest, Bits};
pub use compare::Comparison;
pub use expr::{Environment, ExprCondition, FieldComparison};
pub use filter_pushdown::{FilterPushdown, LineageOf, may_fail};
pub use node::{Node, TextQuery};
pub use regex::Regex;
pub use schema::Schema;
pub use type_set::TypeSet;

use crate::expression::Dependencies;
use crate::{Error, NearestPoint, interrupt};
use matching::{Subject, Trace};

/// A parsed filter. Cloning shares the tree.
#[derive(Clone, PartialEq)]
pub struct Filter {
    root: Arc<Node>,
    /// The tree with its conditions in their written order.
    as_written: Arc<Node>,
    collation: Option<Arc<Collation>>,
}

/// A document that matches a filter, as the positional `$` of updates and projections needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionalMatch {
    /// The index of the array element that matched. `None` if no array was entered.
    pub element: Option<usize>,
}

impl Filter {
    /// Parses a query document. Fails with MongoDB's error numbers, mostly 2 BadValue.
    ///
    /// ```
    /// use windrow_document::doc;
    /// use windrow_mql::filter::Filter;
    /// let query = doc! { "tags": "red", "qty": { "$gte": 10 } };
    /// let filter = Filter::parse(query.as_document())?;
    /// assert!(filter.matches(doc! { "tags": ["blue", "red"], "qty": 12 }.as_document())?);
    /// assert!(Filter::parse(doc! { "qty": { "$unknown": 1 } }.as_document()).is_err());
    /// # Ok::<(), windrow_mql::Error>(())
    /// ```
    pub fn parse(document: Document<'_>) -> Result<Filter, Error> {
        Filter::parse_with(document, &Environment::default())
    }

    /// As [`Filter::parse`], with the variables that `$expr` may read, such as a command's `let`,
    /// and with a collation.
    pub fn parse_with(document: Document<'_>, environment: &Environment) -> Result<Filter, Error> {
        Ok(Filter {
            collation: environment.collation.clone(),
            ..Filter::new(parse::document(document, environment)?)
        })
    }

    /// Parses the operators of one field, such as `{$gt: 1, $lt: 5}`, for
    /// [`Filter::matches_value`].
    pub fn parse_operators(operators: Document<'_>) -> Result<Filter, Error> {
        let environment = Environment::default();
        Ok(Filter::new(parse::operators(
            &Path::parse(""),
            operators,
            &environment,
        )?))
    }

    fn new(root: Node) -> Filter {
        Filter {
            as_written: Arc::new(root.clone()),
            root: Arc::new(root.sorted()),
            collation: None,
        }
    }

    /// Returns the filter `{}`, which matches every document.
    pub fn all() -> Filter {
        Filter::new(Node::AlwaysTrue)
    }

    /// Returns `true` if the document matches. `$text` and `$near` count as true, because the query
    /// engine evaluates them. Fails if an expression in the filter fails or if the evaluation is
    /// interrupted.
    pub fn matches(&self, document: Document<'_>) -> Result<bool, Error> {
        self.matches_with_collation(document, self.collation())
    }

    /// As [`Filter::matches`], with `collation` instead of the filter's own.
    pub(crate) fn matches_with_collation(
        &self,
        document: Document<'_>,
        collation: Option<&Collation>,
    ) -> Result<bool, Error> {
        let subject = Subject::Document(document);
        matching::matches(&self.root, subject, &mut Trace::disabled(collation))
            .map_err(|error| *error)
    }

    /// Returns `true` if a value matches. The value is that of the first component of every path in
    /// the filter: "" for [`Filter::parse_operators`], the identifier for an array filter.
    pub fn matches_value(&self, value: ValueRef<'_>) -> Result<bool, Error> {
        self.matches_value_with_collation(value, self.collation())
    }

    /// As [`Filter::matches_value`], with `collation` instead of the filter's own.
    pub(crate) fn matches_value_with_collation(
        &self,
        value: ValueRef<'_>,
        collation: Option<&Collation>,
    ) -> Result<bool, Error> {
        let subject = Subject::Named(Some(value));
        matching::matches(&self.root, subject, &mut Trace::disabled(collation))
            .map_err(|error| *error)
    }

    /// Returns the match for the positional `$` of an update, or `None` if the document does not
    /// match. If several conditions enter arrays, the last one in canonical order counts.
    pub fn matching_position(
        &self,
        document: Document<'_>,
    ) -> Result<Option<PositionalMatch>, Error> {
        position(&self.root, document, self.collation())
    }

    /// As [`Filter::matching_position`], for the positional `$` of a projection: if several
    /// conditions enter arrays, the last one in written order counts.
    pub(crate) fn projected_position(
        &self,
        document: Document<'_>,
    ) -> Result<Option<PositionalMatch>, Error> {
        position(&self.as_written, document, self.collation())
    }

    /// Returns the collation of string comparisons. `None` compares bytes.
    pub fn collation(&self) -> Option<&Collation> {
        self.collation.as_deref()
    }

    /// As [`Filter::collation`], shared.
    pub fn collation_shared(&self) -> Option<&Arc<Collation>> {
        self.collation.as_ref()
    }

    /// Returns the root of the tree.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Returns a filter with those conditions of a conjunction that `is_selected` selects, or
    /// `None` if it selects none.
    pub fn select_conditions(
        conjunction: &Node,
        collation: Option<&Arc<Collation>>,
        is_selected: impl Fn(&Node) -> bool,
    ) -> Option<Filter> {
        let conditions = conjunction.conditions().iter();
        let selected: Vec<Node> = conditions.filter(|one| is_selected(one)).cloned().collect();
        (!selected.is_empty()).then(|| {
            let root = Arc::new(Node::and(selected));
            Filter {
                as_written: root.clone(),
                root,
                collation: collation.cloned(),
            }
        })
    }

    /// Returns the fields that the filter reads.
    pub fn dependencies(&self) -> Dependencies {
        let mut dependencies = Dependencies::default();
        self.root.add_dependencies(&mut dependencies);
        dependencies
    }

    /// Returns the part of the filter that can run before a stage instead of after it. `document`
    /// is the query document of the filter. `lineage` returns the lineage of its paths in the
    /// stage. Fails if a condition that is evaluated on a sample value fails.
    pub fn pushdown(
        &self,
        document: Document<'_>,
        lineage: LineageOf<'_>,
    ) -> Result<FilterPushdown, Error> {
        filter_pushdown::pushdown(self, document, lineage)
    }

    /// Returns the `$text` of the filter. There is at most one, anywhere outside `$elemMatch`.
    pub fn text(&self) -> Option<&TextQuery> {
        self.root.text()
    }

    /// Returns the conjunction of this filter and a `$near` on a path. Fails with 2 if the filter
    /// has a `$text` or a `$near`.
    pub fn and_near(&self, path: Path, near: Near) -> Result<Filter, Error> {
        let near = Node::Near {
            path,
            near: Arc::new(near),
        };
        let all = |root: &Node| Node::and(vec![root.clone(), near.clone()]);
        parse::check_near(&all(&self.root))?;
        Ok(Filter {
            as_written: Arc::new(all(&self.as_written)),
            root: Arc::new(all(&self.root).sorted()),
            collation: self.collation.clone(),
        })
    }

    /// Returns the `$near` or `$nearSphere` of the filter, with its path.
    pub fn near(&self) -> Option<(&Path, &Arc<Near>)> {
        self.root.near()
    }

    /// Fails with 5626500 if the filter contains `$near`, which sorts documents. For contexts that
    /// only select documents.
    pub fn without_near(self) -> Result<Filter, Error> {
        match self.near() {
            None => Ok(self),
            Some(_) => Err(Error::new(
                5_626_500,
                "$geoNear, $near, and $nearSphere are not allowed in this context, as these \
                 operators require sorting geospatial data. If you do not need sort, consider \
                 using $geoWithin instead.",
            )),
        }
    }

    /// Fails with 2 if the filter contains `$jsonSchema`, which MongoDB refuses in projections and
    /// in update conditions on array elements.
    pub fn without_schema(self) -> Result<Filter, Error> {
        if self.root.has_schema() {
            let message = "$jsonSchema is not allowed in this context";
            return Err(Error::bad_value(message));
        }
        Ok(self)
    }

    /// Returns `true` if a `$jsonSchema` requires encrypted values.
    pub fn has_encryption(&self) -> bool {
        self.root.has_encryption()
    }

    /// Returns the paths and values of the equality conditions, which an upsert copies into the new
    /// document.
    ///
    /// # Errors
    ///
    /// - 54 NotSingleValueField: two paths overlap.
    /// - 111 NotExactValueField: with [`EqualityScope::OnlyId`], the filter has a condition on a
    ///   field within `_id`.
    pub fn equality_fields(
        &self,
        scope: EqualityScope,
    ) -> Result<Vec<(&Path, ValueRef<'_>)>, Error> {
        let mut fields = Vec::new();
        collect_equalities(&self.root, scope, &mut fields)?;
        Ok(fields)
    }

    /// Returns the filter in normal form, which explain prints as `parsedQuery`.
    pub fn to_document(&self) -> DocumentBuf {
        print::document(&self.root)
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_document().fmt(formatter)
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Filter({self})")
    }
}

/// The equality conditions that an upsert copies into the new document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EqualityScope {
    /// Those on all fields, for an update with operators or with a pipeline.
    AllFields,
    /// The one on `_id`, for a replacement. Other conditions are not checked.
    OnlyId,
}

/// Returns the value at the path that is nearest to a point, or `None` if there is no geometry at
/// the path that can be measured.
///
/// ```
/// use windrow_document::doc;
/// use windrow_mql::filter::{Filter, nearest};
/// let query = doc! { "at": { "$near": [0, 0] } };
/// let filter = Filter::parse(query.as_document()).unwrap();
/// let (path, near) = filter.near().expect("the filter has $near");
/// let document = doc! { "at": [3, 4] };
/// let found = nearest(path, near, document.as_document()).unwrap();
/// assert_eq!(found.unwrap().distance, 5.0);
/// ```
pub fn nearest(
    path: &Path,
    near: &Near,
    document: Document<'_>,
) -> Result<Option<NearestPoint>, Error> {
    let mut found: Option<NearestPoint> = None;
    let mut visit = |value: Option<ValueRef<'_>>, _: Option<usize>| {
        let Some(value) = value else {
            return Ok(false);
        };
        let distance = near.distance_with(value, &interrupt::count);
        if let Some(distance) = distance.map_err(Error::from)?
            && found.as_ref().is_none_or(|known| distance < known.distance)
        {
            let point = value.to_value();
            found = Some(NearestPoint { distance, point });
        }
        Ok(false)
    };
    walk::any(
        document,
        path.components(),
        walk::ArrayAtEnd::Elements,
        &mut visit,
    )
    .map_err(|error| *error)?;
    Ok(found)
}

fn position(
    root: &Node,
    document: Document<'_>,
    collation: Option<&Collation>,
) -> Result<Option<PositionalMatch>, Error> {
    let mut trace = Trace::enabled(collation);
    let matched = matching::matches(root, Subject::Document(document), &mut trace);
    Ok(matched.map_err(|error| *error)?.then(|| PositionalMatch {
        element: trace.position(),
    }))
}

fn collect_equalities<'f>(
    node: &'f Node,
    scope: EqualityScope,
    fields: &mut Vec<(&'f Path, ValueRef<'f>)>,
) -> Result<(), Error> {
    match node {
        Node::And(children) => children
            .iter()
            .try_for_each(|child| collect_equalities(child, scope, fields)),
        // A `$or` whose branches are all equal is the same as one branch.
        Node::Or(children) => match children.split_first() {
            Some((first, rest)) if rest.iter().all(|other| other == first) => {
                collect_equalities(first, scope, fields)
            }
            _ => Ok(()),
        },
        Node::Compare {
            path,
            operator: Comparison::Eq,
            value,
        } if scope == EqualityScope::AllFields || is_of_id(path) => {
            if scope == EqualityScope::OnlyId && path.components().len() > 1 {
                return Err(Error::new(
                    111,
                    format!(
                        "field at '_id' must be exactly specified, field at sub-path '{path}' found"
                    ),
                ));
            }
            if let Some((other, _)) = fields.iter().find(|(other, _)| other.overlaps(path)) {
                return Err(Error::new(
                    54,
                    format!(
                        "cannot infer query fields to set, both paths '{other}' and '{path}' are matched"
                    ),
                ));
            }
            fields.push((path, value.as_ref()));
            Ok(())
        }
        _ => Ok(()),
    }
}

fn is_of_id(path: &Path) -> bool {
    path.components()
        .first()
        .is_some_and(|first| first.name() == "_id")
}
