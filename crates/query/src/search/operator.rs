//! Parses the operators of `$search`.
//!
//! Source: <https://www.mongodb.com/docs/atlas/atlas-search/operators-and-collectors/>.

mod score;
mod shapes;
mod values;

use windrow_document::{Array, Document, Value, ValueRef};
use windrow_geo::{SearchArea, SearchOrigin, ShapeQuery};

use super::options::{Options, SearchPath, bad, optional_number};
use super::query_string;
use crate::Error;
use score::score;
pub use score::{FieldValue, Score};

/// An operator with its score.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchOperator {
    /// The condition.
    pub kind: OperatorKind,
    /// The modification of its score.
    pub score: Score,
}

/// The condition of an operator.
#[derive(Clone, Debug, PartialEq)]
pub enum OperatorKind {
    /// All records, for a collector without an operator.
    All,
    /// Any or all words of some texts.
    Text {
        texts: Vec<String>,
        paths: Vec<SearchPath>,
        fuzzy: Option<Fuzzy>,
        /// The name of a synonym mapping.
        synonyms: Option<String>,
        needs_all: bool,
    },
    /// Words next to each other.
    Phrase {
        texts: Vec<String>,
        paths: Vec<SearchPath>,
        slop: u32,
        /// The name of a synonym mapping.
        synonyms: Option<String>,
    },
    /// Complete terms that match a pattern with `*` and `?`.
    Wildcard {
        patterns: Vec<String>,
        paths: Vec<SearchPath>,
        takes_analyzed: bool,
    },
    /// Complete terms that match a regular expression.
    Regex {
        patterns: Vec<String>,
        paths: Vec<SearchPath>,
        takes_analyzed: bool,
    },
    /// Numbers, dates or strings between two values.
    Range {
        paths: Vec<SearchPath>,
        lower: Option<RangeEnd>,
        upper: Option<RangeEnd>,
    },
    /// Any of some values.
    In {
        paths: Vec<SearchPath>,
        values: Vec<Value>,
    },
    /// Numbers, dates or points, with scores by their distance from an origin.
    Near {
        paths: Vec<SearchPath>,
        origin: NearOrigin,
        /// The distance at which the score is a half, for dates in milliseconds, for points in
        /// meters.
        pivot: f64,
    },
    /// Points in an area.
    GeoWithin {
        paths: Vec<SearchPath>,
        area: SearchArea,
    },
    /// Shapes with a relation to another one.
    GeoShape {
        paths: Vec<SearchPath>,
        query: ShapeQuery,
    },
    /// Words that begin, or have a part, as what was typed.
    Autocomplete {
        typed: Vec<String>,
        path: String,
        fuzzy: Option<Fuzzy>,
        /// The words of a text that was typed are sought together only.
        is_sequential: bool,
    },
    /// Any value of a path.
    Exists { path: String },
    /// Texts that are similar to these texts.
    MoreLikeThis { texts: Vec<TextAtPath> },
    /// A query in Lucene's syntax.
    QueryString(query_string::Expression),
    /// A combination of operators.
    Compound(Compound),
}

/// A combination of operators.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compound {
    pub must: Vec<SearchOperator>,
    pub must_not: Vec<SearchOperator>,
    pub should: Vec<SearchOperator>,
    pub filter: Vec<SearchOperator>,
    pub minimum_should_match: usize,
}

/// The origin of `near`.
#[derive(Clone, Debug, PartialEq)]
pub enum NearOrigin {
    /// A number or a date.
    Value(Value),
    /// A point on the earth.
    Point(SearchOrigin),
}

/// A string of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct TextAtPath {
    pub path: String,
    pub text: String,
}

/// An end of a range.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeEnd {
    pub value: Value,
    pub is_included: bool,
}

/// The options of fuzzy search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fuzzy {
    pub edits: u8,
    pub prefix: usize,
    pub expansions: usize,
}

/// The names of all operators of MongoDB Search, including those that are not supported yet.
pub const OPERATORS: [&str; 22] = [
    "autocomplete",
    "compound",
    "embeddedDocument",
    "equals",
    "exists",
    "geoShape",
    "geoWithin",
    "hasAncestor",
    "hasRoot",
    "in",
    "knnBeta",
    "moreLikeThis",
    "near",
    "phrase",
    "queryString",
    "range",
    "regex",
    "search",
    "span",
    "text",
    "vectorSearch",
    "wildcard",
];

/// The largest depth of nested operators.
const DEPTH_MAX: usize = 100;

impl SearchOperator {
    /// The operator that matches all records.
    pub const ALL: SearchOperator = SearchOperator {
        kind: OperatorKind::All,
        score: Score::AsIs,
    };

    /// Parses the operand of the operator with this name. Returns `None` if there is no such
    /// operator.
    pub fn parse(name: &str, operand: ValueRef<'_>) -> Option<Result<SearchOperator, Error>> {
        SearchOperator::parse_at(name, operand, 0)
    }

    fn parse_at(
        name: &str,
        operand: ValueRef<'_>,
        depth: usize,
    ) -> Option<Result<SearchOperator, Error>> {
        let parse = match name {
            "text" => text,
            "phrase" => phrase,
            "wildcard" => wildcard,
            "regex" => regex,
            "autocomplete" => autocomplete,
            "range" => values::range,
            "equals" => values::equals,
            "in" => values::within,
            "near" => values::near,
            "geoWithin" => shapes::geo_within,
            "geoShape" => shapes::geo_shape,
            "exists" => exists,
            "moreLikeThis" => more_like_this,
            "queryString" => query_string,
            "compound" => {
                return Some(Options::new("compound", operand).and_then(|it| compound(it, depth)));
            }
            name if OPERATORS.contains(&name) => {
                return Some(Err(bad(format!(
                    "the operator '{name}' of $search is not supported"
                ))));
            }
            _ => return None,
        };
        let options = match Options::new(name, operand) {
            Ok(options) => options,
            Err(error) => return Some(Err(error)),
        };
        Some(parse(&options).and_then(|kind| {
            Ok(SearchOperator {
                kind,
                score: score(&options)?,
            })
        }))
    }
}

fn text(options: &Options<'_>) -> Result<OperatorKind, Error> {
    options.check(&[
        "query",
        "path",
        "fuzzy",
        "matchCriteria",
        "synonyms",
        "score",
    ])?;
    let fuzzy = fuzzy(options)?;
    let synonyms = options.string("synonyms")?.map(str::to_owned);
    if fuzzy.is_some() && synonyms.is_some() {
        return Err(bad(
            "\"text.fuzzy\" and \"text.synonyms\" cannot be used together".to_owned(),
        ));
    }
    Ok(OperatorKind::Text {
        texts: options.strings("query")?,
        paths: options.paths()?,
        fuzzy,
        synonyms,
        needs_all: match options.string("matchCriteria")? {
            None | Some("any") => false,
            Some("all") => true,
            Some(other) => {
                let message =
                    format!("\"text.matchCriteria\" must be \"any\" or \"all\", not {other:?}");
                return Err(bad(message));
            }
        },
    })
}

/// The largest edit distance, as in Lucene's `FuzzyQuery`.
const EDITS_MAX: f64 = 2.0;
const EXPANSIONS: f64 = 50.0;
const EXPANSIONS_MAX: f64 = 1000.0;

fn fuzzy(options: &Options<'_>) -> Result<Option<Fuzzy>, Error> {
    let Some(given) = options.get("fuzzy") else {
        return Ok(None);
    };
    let given = Options::new("fuzzy", given)?;
    given.check(&["maxEdits", "prefixLength", "maxExpansions"])?;
    let number = |name: &str, otherwise: f64, min: f64, max: f64| {
        let number = optional_number(&given, name)?.unwrap_or(otherwise);
        if (min..=max).contains(&number) && number.fract() == 0.0 {
            Ok(number)
        } else {
            Err(bad(format!(
                "\"fuzzy.{name}\" must be a whole number from {min} to {max}"
            )))
        }
    };
    Ok(Some(Fuzzy {
        edits: number("maxEdits", EDITS_MAX, 1.0, EDITS_MAX)? as u8,
        prefix: number("prefixLength", 0.0, 0.0, f64::from(i32::MAX))? as usize,
        expansions: number("maxExpansions", EXPANSIONS, 1.0, EXPANSIONS_MAX)? as usize,
    }))
}

fn autocomplete(options: &Options<'_>) -> Result<OperatorKind, Error> {
    options.check(&["query", "path", "tokenOrder", "fuzzy", "score"])?;
    let path = options.string("path")?;
    let path = path.ok_or_else(|| bad("\"autocomplete.path\" is required".to_owned()))?;
    Ok(OperatorKind::Autocomplete {
        typed: options.strings("query")?,
        path: path.to_owned(),
        fuzzy: fuzzy(options)?,
        is_sequential: match options.string("tokenOrder")? {
            None | Some("any") => false,
            Some("sequential") => true,
            Some(other) => {
                let message = format!(
                    "\"autocomplete.tokenOrder\" must be \"any\" or \"sequential\", not {other:?}"
                );
                return Err(bad(message));
            }
        },
    })
}

fn phrase(options: &Options<'_>) -> Result<OperatorKind, Error> {
    options.check(&["query", "path", "slop", "synonyms", "score"])?;
    let slop = optional_number(options, "slop")?.unwrap_or(0.0);
    if slop.fract() != 0.0 || !(0.0..=f64::from(i32::MAX)).contains(&slop) {
        return Err(bad(
            "\"phrase.slop\" must be a whole number that is not negative".to_owned(),
        ));
    }
    Ok(OperatorKind::Phrase {
        texts: options.strings("query")?,
        paths: options.paths()?,
        slop: slop as u32,
        synonyms: options.string("synonyms")?.map(str::to_owned),
    })
}

const PATTERN_OPTIONS: &[&str] = &["query", "path", "allowAnalyzedField", "score"];

fn wildcard(options: &Options<'_>) -> Result<OperatorKind, Error> {
    options.check(PATTERN_OPTIONS)?;
    Ok(OperatorKind::Wildcard {
        patterns: options.strings("query")?,
        paths: options.paths()?,
        takes_analyzed: options.flag("allowAnalyzedField")?,
    })
}

fn regex(options: &Options<'_>) -> Result<OperatorKind, Error> {
    options.check(PATTERN_OPTIONS)?;
    Ok(OperatorKind::Regex {
        patterns: options.strings("query")?,
        paths: options.paths()?,
        takes_analyzed: options.flag("allowAnalyzedField")?,
    })
}

fn exists(options: &Options<'_>) -> Result<OperatorKind, Error> {
    options.check(&["path", "score"])?;
    match options.string("path")? {
        Some(path) => Ok(OperatorKind::Exists {
            path: path.to_owned(),
        }),
        None => Err(bad("\"exists.path\" is required".to_owned())),
    }
}

fn more_like_this(options: &Options<'_>) -> Result<OperatorKind, Error> {
    options.check(&["like", "score"])?;
    let mut texts = Vec::new();
    let mut documents = 0;
    let mut add = |value: ValueRef<'_>| match value {
        ValueRef::Document(document) => {
            documents += 1;
            collect_texts("", ValueRef::Document(document), &mut texts);
            Ok(())
        }
        _ => {
            let message = "\"moreLikeThis.like\" must be a document or an array of documents";
            Err(bad(message.to_owned()))
        }
    };
    match options.required("like")? {
        ValueRef::Array(all) => all.iter().try_for_each(&mut add)?,
        one => add(one)?,
    }
    if documents == 0 {
        return Err(bad("\"moreLikeThis.like\" must not be empty".to_owned()));
    }
    Ok(OperatorKind::MoreLikeThis { texts })
}

/// Collects the strings of a value with their paths.
fn collect_texts(path: &str, value: ValueRef<'_>, into: &mut Vec<TextAtPath>) {
    match value {
        ValueRef::String(text) => into.push(TextAtPath {
            path: path.to_owned(),
            text: text.to_owned(),
        }),
        ValueRef::Array(all) => {
            for one in all {
                collect_texts(path, one, into);
            }
        }
        ValueRef::Document(document) => {
            for (name, value) in document {
                let path = match path {
                    "" => name.to_owned(),
                    path => format!("{path}.{name}"),
                };
                collect_texts(&path, value, into);
            }
        }
        _ => {}
    }
}

fn query_string(options: &Options<'_>) -> Result<OperatorKind, Error> {
    options.check(&["defaultPath", "query", "score"])?;
    let required = |name: &str| match options.string(name)? {
        Some("") => Err(bad(format!("\"queryString.{name}\" must not be empty"))),
        Some(text) => Ok(text),
        None => Err(bad(format!("\"queryString.{name}\" is required"))),
    };
    let (default_path, query) = (required("defaultPath")?, required("query")?);
    let expression = query_string::parse(query, default_path).map_err(bad)?;
    Ok(OperatorKind::QueryString(expression))
}

fn compound(options: Options<'_>, depth: usize) -> Result<SearchOperator, Error> {
    if depth >= DEPTH_MAX {
        return Err(bad(format!(
            "operators of $search are nested more than {DEPTH_MAX} deep"
        )));
    }
    options.check(&[
        "must",
        "mustNot",
        "should",
        "filter",
        "minimumShouldMatch",
        "score",
    ])?;
    let clauses = |name: &str| -> Result<Vec<SearchOperator>, Error> {
        match options.get(name) {
            None => Ok(Vec::new()),
            Some(ValueRef::Document(one)) => Ok(vec![clause(name, one, depth)?]),
            Some(ValueRef::Array(all)) => clauses_of(name, all, depth),
            Some(_) => Err(bad(format!(
                "\"compound.{name}\" must be an operator or an array of operators"
            ))),
        }
    };
    let minimum = optional_number(&options, "minimumShouldMatch")?.unwrap_or(0.0);
    let made = Compound {
        must: clauses("must")?,
        must_not: clauses("mustNot")?,
        should: clauses("should")?,
        filter: clauses("filter")?,
        minimum_should_match: minimum as usize,
    };
    let count = made.must.len() + made.must_not.len() + made.should.len() + made.filter.len();
    if count == 0 {
        let message = "\"compound\" needs \"must\", \"mustNot\", \"should\" or \"filter\"";
        return Err(bad(message.to_owned()));
    }
    if minimum.fract() != 0.0 || minimum < 0.0 || made.minimum_should_match > made.should.len() {
        let message = "\"compound.minimumShouldMatch\" must be a whole number, and not more than there \
                       are clauses of \"should\"";
        return Err(bad(message.to_owned()));
    }
    Ok(SearchOperator {
        kind: OperatorKind::Compound(made),
        score: score(&options)?,
    })
}

fn clauses_of(name: &str, all: Array<'_>, depth: usize) -> Result<Vec<SearchOperator>, Error> {
    let clause = |one: ValueRef<'_>| match one {
        ValueRef::Document(one) => clause(name, one, depth),
        _ => Err(bad(format!(
            "\"compound.{name}\" must consist of operators"
        ))),
    };
    all.iter().map(clause).collect()
}

fn clause(name: &str, one: Document<'_>, depth: usize) -> Result<SearchOperator, Error> {
    let mut fields = one.iter();
    let (Some((operator, operand)), None) = (fields.next(), fields.next()) else {
        return Err(bad(format!(
            "each clause of \"compound.{name}\" must be one operator"
        )));
    };
    let parsed = SearchOperator::parse_at(operator, operand, depth + 1);
    parsed.unwrap_or_else(|| Err(bad(format!("Unrecognized operator \"{operator}\""))))
}
