//! Filters: what a document must be like to be found.
//!
//! [`Filter::parse`] turns a query document into a tree of [`Node`]s in normal form: `$and` within
//! `$and` is one, implied operators are written out (`{a: 1}` is an equality), `$ne` is a negated
//! equality, a `$in` of one value is an equality, and the children of `$and` stand in MongoDB's
//! canonical order. The planner reads the tree; [`Filter::matches`] applies it to BSON bytes.
//!
//! ```
//! use windrow_document::doc;
//! use windrow_mql::filter::Filter;
//! let filter = Filter::parse(doc! { "n": { "$gt": 2 } }.as_document()).unwrap();
//! assert!(filter.matches(doc! { "n": [1, 3] }.as_document()).unwrap());
//! ```
//!
//! Reading order: [`node`], `parse` (the tables of operators), `matching`, `walk` (paths through
//! arrays), [`regex`], `regex_list`, `schema`, [`failure`], `print`, `filter_pushdown`.

mod bits;
mod compare;
mod expr;
pub mod failure;
mod filter_pushdown;
mod matching;
pub mod node;
mod parse;
mod print;
pub mod regex;
mod regex_list;
mod schema;
mod type_set;
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
use crate::{Error, Nearest, interrupt};
use matching::{Subject, Trace};

/// A parsed filter. Cloning shares the tree.
#[derive(Clone, PartialEq)]
pub struct Filter {
    root: Arc<Node>,
    /// The tree with its conditions in the order in which they were written.
    as_written: Arc<Node>,
    collation: Option<Arc<Collation>>,
}

impl Filter {
    /// Parses a query document. Errors carry MongoDB's codes, mostly 2 BadValue.
    pub fn parse(document: Document<'_>) -> Result<Filter, Error> {
        Filter::parse_with(document, &Environment::default())
    }

    /// As [`Filter::parse`], with what `$expr` may refer to: a command's `let`, and `$$NOW`.
    pub fn parse_with(document: Document<'_>, environment: &Environment) -> Result<Filter, Error> {
        Ok(Filter {
            collation: environment.collation.clone(),
            ..Filter::new(parse::document(document, environment)?)
        })
    }

    /// Parses the operators of one field (`{$gt: 1, $lt: 5}`), for [`Filter::matches_value`].
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

    /// The filter that matches everything: `{}`.
    pub fn all() -> Filter {
        Filter::new(Node::AlwaysTrue)
    }

    /// Whether the document matches. `$text` and `$near` count as true: the query engine answers them.
    pub fn matches(&self, document: Document<'_>) -> Result<bool, Error> {
        self.matches_by(document, self.collation())
    }

    /// The same with strings compared by another collation than the filter's own.
    pub(crate) fn matches_by(
        &self,
        document: Document<'_>,
        collation: Option<&Collation>,
    ) -> Result<bool, Error> {
        let subject = Subject::Document(document);
        matching::matches(&self.root, subject, &mut Trace::off(collation)).map_err(|error| *error)
    }

    /// Whether a value matches, taken as the value of the one name with which every path of the
    /// filter begins: "" for [`Filter::parse_operators`], the identifier for an array filter.
    pub fn matches_value(&self, value: ValueRef<'_>) -> Result<bool, Error> {
        self.matches_value_by(value, self.collation())
    }

    /// The same with strings compared by another collation than the filter's own.
    pub(crate) fn matches_value_by(
        &self,
        value: ValueRef<'_>,
        collation: Option<&Collation>,
    ) -> Result<bool, Error> {
        let subject = Subject::Named(Some(value));
        matching::matches(&self.root, subject, &mut Trace::off(collation)).map_err(|error| *error)
    }

    /// Where the document matches: the place in an array that the positional `$` of an update
    /// stands for, if an array was entered. Of several conditions the last in canonical order
    /// decides. Outer None: no match.
    pub fn matching_position(
        &self,
        document: Document<'_>,
    ) -> Result<Option<Option<usize>>, Error> {
        position(&self.root, document, self.collation())
    }

    /// As [`Filter::matching_position`], for the positional `$` of a projection: of several
    /// conditions the last as written decides.
    pub(crate) fn projected_position(
        &self,
        document: Document<'_>,
    ) -> Result<Option<Option<usize>>, Error> {
        position(&self.as_written, document, self.collation())
    }

    /// How strings are compared; None: by their bytes.
    pub fn collation(&self) -> Option<&Collation> {
        self.collation.as_deref()
    }

    pub fn collation_shared(&self) -> Option<&Arc<Collation>> {
        self.collation.as_ref()
    }

    /// The tree.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// The filter of those conditions of a conjunction that are wanted; None where there are none.
    pub fn part(
        conjunction: &Node,
        collation: Option<&Arc<Collation>>,
        is_wanted: impl Fn(&Node) -> bool,
    ) -> Option<Filter> {
        let conditions = conjunction.conditions().iter();
        let wanted: Vec<Node> = conditions.filter(|one| is_wanted(one)).cloned().collect();
        (!wanted.is_empty()).then(|| {
            let root = Arc::new(Node::and(wanted));
            Filter {
                as_written: root.clone(),
                root,
                collation: collation.cloned(),
            }
        })
    }

    /// What of a document the filter reads.
    pub fn dependencies(&self) -> Dependencies {
        let mut dependencies = Dependencies::default();
        self.root.add_dependencies(&mut dependencies);
        dependencies
    }

    /// Which part of the filter can run before a stage instead of after it. `document` is what the
    /// filter was parsed from, `lineage` returns the lineage of its paths in the stage. Fails if a
    /// condition that is tried on a value fails.
    pub fn pushdown(
        &self,
        document: Document<'_>,
        lineage: LineageOf<'_>,
    ) -> Result<FilterPushdown, Error> {
        filter_pushdown::pushdown(self, document, lineage)
    }

    /// The `$text` in the filter: at most one, anywhere outside `$elemMatch`.
    pub fn text(&self) -> Option<&TextQuery> {
        self.root.text()
    }

    /// The same, and near a point. Error 2 where it has a `$text`.
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

    /// The `$near` or `$nearSphere` in the filter, with the path that it stands on.
    pub fn near(&self) -> Option<(&Path, &Arc<Near>)> {
        self.root.near()
    }

    /// Fails with 5626500 if the filter contains `$near`, which sorts documents: for contexts that
    /// only select them.
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

    /// Fails with 2 if the filter contains `$jsonSchema`, which MongoDB refuses in projections and in
    /// the conditions of updates on elements.
    pub fn without_schema(self) -> Result<Filter, Error> {
        if self.root.has_schema() {
            let message = "$jsonSchema is not allowed in this context";
            return Err(Error::bad_value(message));
        }
        Ok(self)
    }

    /// The paths with the values that they must equal, which an upsert takes over into the new
    /// document; where `only_id`, `_id` alone, and what is asked of other fields does not matter.
    /// Error 54 NotSingleValueField where two of them overlap, 111 NotExactValueField where only
    /// `_id` is wanted and the filter has a part of it.
    pub fn equality_fields(&self, only_id: bool) -> Result<Vec<(&Path, ValueRef<'_>)>, Error> {
        let mut fields = Vec::new();
        collect_equalities(&self.root, only_id, &mut fields)?;
        Ok(fields)
    }

    /// The filter in normal form, as explain prints it under `parsedQuery`.
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

/// What at the path is nearest; None where nothing there is a place that can be measured.
pub fn nearest(path: &Path, near: &Near, document: Document<'_>) -> Result<Option<Nearest>, Error> {
    let mut found: Option<Nearest> = None;
    let mut visit = |value: Option<ValueRef<'_>>, _: Option<usize>| {
        let Some(value) = value else {
            return Ok(false);
        };
        let distance = near.distance_while(value, &interrupt::proceed);
        if let Some(distance) = distance.map_err(Error::from)?
            && found.as_ref().is_none_or(|known| distance < known.distance)
        {
            let point = value.to_value();
            found = Some(Nearest { distance, point });
        }
        Ok(false)
    };
    walk::any(document, path.components(), true, &mut visit).map_err(|error| *error)?;
    Ok(found)
}

fn position(
    root: &Node,
    document: Document<'_>,
    collation: Option<&Collation>,
) -> Result<Option<Option<usize>>, Error> {
    let mut trace = Trace::on(collation);
    let matched = matching::matches(root, Subject::Document(document), &mut trace);
    Ok(matched.map_err(|error| *error)?.then(|| trace.position()))
}

fn collect_equalities<'f>(
    node: &'f Node,
    only_id: bool,
    fields: &mut Vec<(&'f Path, ValueRef<'f>)>,
) -> Result<(), Error> {
    match node {
        Node::And(children) => children
            .iter()
            .try_for_each(|child| collect_equalities(child, only_id, fields)),
        // Said several times over, it is as if it were said once.
        Node::Or(children) => match children.split_first() {
            Some((first, rest)) if rest.iter().all(|other| other == first) => {
                collect_equalities(first, only_id, fields)
            }
            _ => Ok(()),
        },
        Node::Compare {
            path,
            operator: Comparison::Eq,
            value,
        } if !only_id || is_of_id(path) => {
            if only_id && path.components().len() > 1 {
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
