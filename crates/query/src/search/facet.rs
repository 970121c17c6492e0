//! The collector `facet` of `$search` and `$searchMeta`: counts the matching records for each value
//! of a field, or for ranges of values.
//!
//! Source: <https://www.mongodb.com/docs/atlas/atlas-search/facet/>.

mod counts;

use std::cmp::Ordering;

use windrow_document::{ArrayBuf, DocumentBuf, Value, ValueRef, doc};
use windrow_index::search::{FieldMapping, SearchDefinition};

use super::operator::SearchOperator;
use super::options::{Options, bad, optional_number};
use crate::Error;
pub use counts::{FacetCounter, MatchedRecords};

/// A parsed `facet`.
#[derive(Clone, Debug, PartialEq)]
pub struct Collector {
    /// The records that match. All records if there is no operator.
    pub operator: SearchOperator,
    /// The facets to count.
    pub facets: Vec<SearchFacet>,
}

/// A facet.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchFacet {
    /// The name of the facet in the result.
    pub name: String,
    /// The path of the field.
    pub path: String,
    /// The groups of the facet.
    pub groups: FacetGroups,
}

/// How a facet groups records.
#[derive(Clone, Debug, PartialEq)]
pub enum FacetGroups {
    /// By string. The most frequent strings are returned.
    Strings { count_max: usize },
    /// By ranges of numbers or dates.
    Ranges(FacetRanges),
}

/// Ranges of numbers or dates.
#[derive(Clone, Debug, PartialEq)]
pub struct FacetRanges {
    /// The type of the values.
    pub kind: RangeKind,
    /// At least two boundaries in increasing order. Each is the inclusive start of a range and the
    /// exclusive end of the previous one.
    pub boundaries: Vec<Value>,
    /// The name of the group of all other records.
    pub default: Option<String>,
}

/// The type of the values of ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeKind {
    /// Numbers.
    Number,
    /// Dates.
    Date,
}

/// A group of a facet.
#[derive(Clone, Debug, PartialEq)]
pub struct FacetBucket {
    /// The string, or the start of the range.
    pub id: Value,
    /// The number of records.
    pub count: u64,
}

const BUCKETS: f64 = 10.0;
const BUCKETS_MAX: f64 = 1000.0;
const BOUNDARIES_MIN: usize = 2;
const BOUNDARIES_MAX: usize = 1000;

impl Collector {
    /// Parses the operand of `facet`.
    pub fn parse(operand: ValueRef<'_>) -> Result<Collector, Error> {
        let options = Options::new("facet", operand)?;
        options.check(&["operator", "facets"])?;
        let facets = options.required("facets")?;
        let ValueRef::Document(facets) = facets else {
            return Err(bad("\"facet.facets\" must be a document".to_owned()));
        };
        let facets: Result<Vec<SearchFacet>, Error> = facets
            .into_iter()
            .map(|(name, facet)| SearchFacet::parse(name, facet))
            .collect();
        let facets = facets?;
        if facets.is_empty() {
            return Err(bad("\"facet.facets\" must not be empty".to_owned()));
        }
        let operator = match options.get("operator") {
            None => SearchOperator::ALL,
            Some(operator) => only_operator(operator)?,
        };
        Ok(Collector { operator, facets })
    }
}

fn only_operator(operand: ValueRef<'_>) -> Result<SearchOperator, Error> {
    let wrong = || bad("\"facet.operator\" must be a document with one operator".to_owned());
    let ValueRef::Document(document) = operand else {
        return Err(wrong());
    };
    let mut fields = document.iter();
    let (Some((name, value)), None) = (fields.next(), fields.next()) else {
        return Err(wrong());
    };
    let unknown = || Err(bad(format!("Unrecognized field \"facet.operator.{name}\"")));
    SearchOperator::parse(name, value).unwrap_or_else(unknown)
}

impl SearchFacet {
    fn parse(name: &str, operand: ValueRef<'_>) -> Result<SearchFacet, Error> {
        let field = format!("facets.{name}");
        let options = Options::new(&field, operand)?;
        let kind = options.required("type")?.as_str().unwrap_or_default();
        let groups = match kind {
            "string" => {
                options.check(&["type", "path", "numBuckets"])?;
                FacetGroups::Strings {
                    count_max: count_max(&options)?,
                }
            }
            "number" => FacetGroups::Ranges(FacetRanges::parse(&options, RangeKind::Number)?),
            "date" => FacetGroups::Ranges(FacetRanges::parse(&options, RangeKind::Date)?),
            _ => {
                let message = format!("\"{field}.type\" must be one of [string, number, date]");
                return Err(bad(message));
            }
        };
        let path = options.string("path")?;
        let path = path.ok_or_else(|| bad(format!("\"{field}.path\" is required")))?;
        Ok(SearchFacet {
            name: name.to_owned(),
            path: path.to_owned(),
            groups,
        })
    }

    /// Returns the index mapping of the field. Fails if the field is not indexed for the facet's
    /// type.
    pub fn mapping<'d>(&self, definition: &'d SearchDefinition) -> Result<&'d FieldMapping, Error> {
        let (type_name, has_values): (_, fn(&FieldMapping) -> bool) = match &self.groups {
            FacetGroups::Strings { .. } => ("token", |field| field.string_values().is_some()),
            FacetGroups::Ranges(ranges) => match ranges.kind {
                RangeKind::Number => ("number", |field| {
                    field.number.is_some() || field.number_facet.is_some()
                }),
                RangeKind::Date => ("date", |field| field.date || field.date_facet),
            },
        };
        let mapping = definition.field(&self.path);
        mapping.filter(|field| has_values(field)).ok_or_else(|| {
            bad(format!(
                "Cannot facet on field \"{}\" because it was not indexed as a \"{type_name}\" field.",
                self.path
            ))
        })
    }
}

fn count_max(options: &Options<'_>) -> Result<usize, Error> {
    let number = optional_number(options, "numBuckets")?.unwrap_or(BUCKETS);
    if (1.0..=BUCKETS_MAX).contains(&number) && number.fract() == 0.0 {
        Ok(number as usize)
    } else {
        Err(bad(format!(
            "\"numBuckets\" must be a whole number from 1 to {BUCKETS_MAX}"
        )))
    }
}

impl FacetRanges {
    fn parse(options: &Options<'_>, kind: RangeKind) -> Result<FacetRanges, Error> {
        options.check(&["type", "path", "boundaries", "default"])?;
        let default = options.string("default")?.map(str::to_owned);
        if default.as_ref().is_some_and(String::is_empty) {
            return Err(bad("\"default\" must not be empty".to_owned()));
        }
        let ValueRef::Array(boundaries) = options.required("boundaries")? else {
            return Err(bad("\"boundaries\" must be an array".to_owned()));
        };
        let boundaries: Vec<Value> = boundaries.iter().map(ValueRef::to_value).collect();
        let (names, is_right): (_, fn(&Value) -> bool) = match kind {
            RangeKind::Number => ("numbers", |value| {
                value.as_ref().is_number()
                    && !matches!(value, Value::Decimal128(_))
                    && !value.as_ref().as_f64().is_some_and(f64::is_nan)
            }),
            RangeKind::Date => ("dates", |value| matches!(value, Value::DateTime(_))),
        };
        let count = boundaries.len();
        if !(BOUNDARIES_MIN..=BOUNDARIES_MAX).contains(&count) {
            return Err(bad(format!(
                "\"boundaries\" must have from {BOUNDARIES_MIN} to {BOUNDARIES_MAX} values, not {count}"
            )));
        }
        let is_before =
            |one: &Value, next: &Value| one.as_ref().compare(next.as_ref()) == Ordering::Less;
        if !boundaries.iter().all(is_right) || !boundaries.is_sorted_by(is_before) {
            let message = format!("\"boundaries\" must be distinct {names} in ascending order");
            return Err(bad(message));
        }
        Ok(FacetRanges {
            kind,
            boundaries,
            default,
        })
    }
}

/// Returns the field `facet` of the metadata of a search.
pub fn to_document(facets: &[SearchFacet], counted: Vec<Vec<FacetBucket>>) -> DocumentBuf {
    let mut shown = DocumentBuf::new();
    for (facet, buckets) in facets.iter().zip(counted) {
        let buckets = buckets.into_iter();
        let buckets: ArrayBuf = buckets
            .map(|bucket| Value::from(doc! { "_id": bucket.id, "count": bucket.count as i64 }))
            .collect();
        shown.push(&facet.name, doc! { "buckets": buckets });
    }
    shown
}
