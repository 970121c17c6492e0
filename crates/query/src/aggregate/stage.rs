//! The table of stages, and what each is parsed to.

use windrow_document::path::Path;
use windrow_document::{Array, Document, DocumentBuf, ValueRef, doc};
use windrow_mql::expression::{Dependencies, Expression, Scope};
use windrow_mql::filter::{Environment, Filter};
use windrow_mql::reshape::{Redact, ReplaceRoot, Reshape};
use windrow_mql::sort::{Sort, SortField};

use super::Setting;
use super::bucket::{self};
use super::bucket_auto::{self, BucketAuto};
use super::densify::{self, Densify};
use super::documents;
use super::facet::{self, Facet};
use super::fill;
use super::graph_lookup::{self, GraphLookup};
use super::group::{self, Group};
use super::lookup::{self, Lookup};
use super::sample;
use super::transform;
use super::union::{self, UnionWith};
use super::unwind::{self, Unwind};
use super::window_fields::{self, WindowFields, WindowFieldsOperator};
use crate::Error;
use crate::operators::{BoxOperator, Limit, Memory, Skip, SortOperator};

/// NotImplemented.
const NOT_IMPLEMENTED: i32 = 238;

/// A stage with the document that it was parsed from, for explain.
#[derive(Clone, Debug)]
pub struct Stage {
    pub source: DocumentBuf,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub enum Kind {
    BucketAuto(BucketAuto),
    Count(String),
    Densify(Densify),
    Documents(Expression),
    Facet(Facet),
    GraphLookup(GraphLookup),
    Group(Group),
    Limit(u64),
    Lookup(Box<Lookup>),
    Match(Filter),
    Redact(Redact),
    ReplaceRoot(ReplaceRoot),
    Reshape(Reshape),
    Sample(u64),
    Skip(u64),
    /// With a limit: that of a stage behind it.
    Sort(Sort, Option<u64>),
    UnionWith(UnionWith),
    Unwind(Unwind),
    WindowFields(WindowFields),
}

/// What a stage's operand becomes: mostly one stage, of `$bucket` and `$sortByCount` two.
type Parse = fn(ValueRef<'_>, &Environment) -> Result<Vec<Kind>, Error>;

/// The stage of a name, by the alphabet.
fn find(name: &str) -> Option<Parse> {
    Some(match name {
        "$addFields" | "$set" => add_fields,
        "$bucket" => bucket::parse,
        "$bucketAuto" => bucket_auto::parse,
        "$count" => transform::parse_count,
        "$densify" => densify::parse,
        "$documents" => documents::parse,
        "$facet" => facet::parse,
        "$fill" => fill::parse,
        "$graphLookup" => graph_lookup::parse,
        "$group" => group::parse,
        "$limit" => limit,
        "$lookup" => lookup::parse,
        "$match" => parse_match,
        "$project" => project,
        "$redact" => redact,
        "$replaceRoot" => replace_root,
        "$replaceWith" => replace_with,
        "$sample" => sample::parse,
        "$setWindowFields" => window_fields::parse,
        "$skip" => skip,
        "$sort" => sort,
        "$sortByCount" => group::parse_sort_by_count,
        "$unionWith" => union::parse,
        "$unset" => unset,
        "$unwind" => unwind::parse,
        _ => return None,
    })
}

/// Stages that MongoDB has and Windrow has not.
const NOT_SUPPORTED: [&str; 16] = [
    "$changeStream",
    "$changeStreamSplitLargeEvent",
    "$collStats",
    "$currentOp",
    "$geoNear",
    "$indexStats",
    "$listLocalSessions",
    "$listSampledQueries",
    "$listSearchIndexes",
    "$listSessions",
    "$planCacheStats",
    "$queryStats",
    "$querySettings",
    "$search",
    "$searchMeta",
    "$vectorSearch",
];

/// Stages that bring rows rather than taking them.
const FIRST: [&str; 9] = [
    "$changeStream",
    "$collStats",
    "$currentOp",
    "$documents",
    "$geoNear",
    "$indexStats",
    "$listLocalSessions",
    "$listSessions",
    "$planCacheStats",
];

/// Error 40602 for a stage that brings rows behind another one.
fn check_place(number: usize, stage: Document<'_>) -> Result<(), Error> {
    match stage.first() {
        Some((name, _)) if number > 0 && FIRST.contains(&name) => Err(Error::new(
            40602,
            format!("{name} is only valid as the first stage in a pipeline"),
        )),
        _ => Ok(()),
    }
}

/// Stages of one pipeline.
const STAGES_MAX: usize = 1000;

/// Parses the stages of a pipeline, and checks where they stand. Error 7749501 for more than 1,000.
pub fn parse_all(stages: Array<'_>, environment: &Environment) -> Result<Vec<Stage>, Error> {
    if stages.iter().count() > STAGES_MAX {
        let message = format!("Pipeline length must be no longer than {STAGES_MAX} stages");
        return Err(Error::new(7749501, message));
    }
    let named = stages
        .iter()
        .filter_map(|stage| stage.as_document()?.first());
    for (_, operand) in named.filter(|(name, _)| *name == "$facet") {
        facet::check_shape(operand)?;
    }
    let mut parsed = Vec::new();
    for (number, stage) in stages.iter().enumerate() {
        let Some(document) = stage.as_document() else {
            let message = "Each element of the 'pipeline' array must be an object";
            return Err(Error::new(14, message));
        };
        check_place(number, document)?;
        let one = parse(document, environment)?;
        if number > 0 && one.iter().any(|stage| stage.has_text()) {
            return Err(text_is_late());
        }
        parsed.extend(one);
    }
    Ok(parsed)
}

fn parse(document: Document<'_>, environment: &Environment) -> Result<Vec<Stage>, Error> {
    let Some((name, operand)) = document.first().filter(|_| document.count() == 1) else {
        return Err(Error::new(
            40323,
            "A pipeline stage specification object must contain exactly one field.",
        ));
    };
    let Some(parse) = find(name) else {
        if NOT_SUPPORTED.contains(&name) {
            return Err(Error::new(
                NOT_IMPLEMENTED,
                format!("{name} is not supported yet"),
            ));
        }
        return Err(Error::new(
            40324,
            format!("Unrecognized pipeline stage name: '{name}'"),
        ));
    };
    let kinds = parse(operand, environment)?;
    let single = kinds.len() == 1;
    let stage = |kind: Kind| Stage {
        source: if single {
            document.to_buf()
        } else {
            kind.print(name, operand)
        },
        kind,
    };
    Ok(kinds.into_iter().map(stage).collect())
}

/// Whether stages may stand behind others: `$text` only as the first of all. Error 17313.
pub fn check_joint(before: &[Stage], behind: &[Stage]) -> Result<(), Error> {
    match behind.iter().any(Stage::has_text) && !before.is_empty() {
        true => Err(text_is_late()),
        false => Ok(()),
    }
}

fn text_is_late() -> Error {
    let message = "$match with $text is only allowed as the first pipeline stage";
    Error::new(17313, message)
}

/// A text score is there only behind a `$match` with `$text`, and not for filters.
pub fn check_scores(stages: &[Stage]) -> Result<(), Error> {
    let is_known = stages.first().is_some_and(Stage::has_text);
    let asks = |stage: &Stage| {
        let read = stage.kind.dependencies();
        read.text_score || read.needs_origin()
    };
    let in_filter = |stage: &Stage| matches!(stage.kind, Kind::Match(_)) && asks(stage);
    if stages.iter().any(in_filter) || (!is_known && stages.iter().any(asks)) {
        let message = "query requires text score metadata, but it is not available";
        return Err(Error::new(40218, message));
    }
    Ok(())
}

impl Stage {
    pub fn new(source: DocumentBuf, kind: Kind) -> Stage {
        Stage { source, kind }
    }

    pub fn has_text(&self) -> bool {
        matches!(&self.kind, Kind::Match(filter) if filter.text().is_some())
    }

    pub fn collect_collections(&self, names: &mut Vec<String>) {
        match &self.kind {
            Kind::Lookup(lookup) => lookup.collect_collections(names),
            Kind::UnionWith(union) => union.collect_collections(names),
            Kind::GraphLookup(lookup) => names.push(lookup.from.clone()),
            Kind::Facet(facet) => facet.collect_collections(names),
            _ => {}
        }
    }
}

impl Kind {
    /// What the stage reads of its input. `whole` where that is not known.
    pub fn dependencies(&self) -> Dependencies {
        let mut found = Dependencies::default();
        match self {
            Kind::Match(filter) => found.extend(filter.dependencies()),
            Kind::Sort(sort, _) => found.extend(sort_dependencies(sort)),
            Kind::WindowFields(fields) => found.extend(fields.dependencies()),
            Kind::Group(group) => found.extend(group.dependencies()),
            Kind::BucketAuto(bucket) => found.extend(bucket.dependencies()),
            Kind::Reshape(reshape) => found.extend(reshape.dependencies()),
            Kind::ReplaceRoot(replace) => found.extend(replace.dependencies()),
            Kind::Redact(redact) => found.extend(redact.dependencies()),
            Kind::Unwind(unwind) => found.add(&unwind.path.to_string()),
            Kind::Lookup(lookup) => found.extend(lookup.dependencies()),
            Kind::Count(_) | Kind::Limit(_) | Kind::Skip(_) | Kind::Sample(_) => {}
            Kind::UnionWith(_) => {}
            Kind::Facet(facet) => found.extend(facet.dependencies()),
            Kind::Documents(_) => {}
            Kind::Densify(_) | Kind::GraphLookup(_) => found.whole = true,
        }
        found
    }

    /// Whether nothing of the input reaches the output but by what the stage reads.
    pub fn ends_dependencies(&self) -> bool {
        match self {
            Kind::Reshape(reshape) => !reshape.keeps_rest(),
            Kind::Group(_) | Kind::Count(_) | Kind::BucketAuto(_) => true,
            Kind::ReplaceRoot(_) | Kind::Facet(_) | Kind::Documents(_) => true,
            _ => false,
        }
    }

    /// Whether a filter on this path finds the same before and behind the stage.
    pub fn leaves(&self, path: &Path) -> bool {
        match self {
            Kind::Reshape(reshape) => reshape.leaves(&path.to_string()),
            Kind::Unwind(unwind) => unwind.leaves(path),
            Kind::Lookup(lookup) => lookup.leaves(path),
            Kind::GraphLookup(lookup) => lookup.leaves(path),
            _ => false,
        }
    }

    /// Whether every row gives one row, in the same order and whatever the others are.
    pub fn keeps_rows(&self) -> bool {
        match self {
            Kind::Reshape(_) | Kind::ReplaceRoot(_) | Kind::GraphLookup(_) => true,
            Kind::Lookup(lookup) => lookup.keeps_count(),
            _ => false,
        }
    }

    /// The document of a stage that is part of another.
    fn print(&self, name: &str, operand: ValueRef<'_>) -> DocumentBuf {
        let mut printed = DocumentBuf::new();
        match self {
            Kind::Sort(sort, _) => printed.push("$sort", sort.to_document()),
            _ => printed.push(name, operand.to_value()),
        }
        printed
    }
}

/// What a sort reads.
pub(super) fn sort_dependencies(sort: &Sort) -> Dependencies {
    let mut found = Dependencies::default();
    for field in sort.pattern() {
        match field {
            SortField::Path { path, .. } => found.add(&path.to_string()),
            SortField::TextScore { .. } => found.text_score = true,
        }
    }
    found
}

/// Puts the stages' operators on top of each other.
pub(crate) fn chain(
    stages: &[Stage],
    input: BoxOperator,
    setting: &Setting,
) -> Result<BoxOperator, Error> {
    stages
        .iter()
        .try_fold(input, |input, stage| open(&stage.kind, input, setting))
}

fn open(kind: &Kind, input: BoxOperator, setting: &Setting) -> Result<BoxOperator, Error> {
    let environment = &setting.environment;
    Ok(match kind {
        Kind::BucketAuto(bucket) => Box::new(bucket_auto::BucketAutoOperator::new(
            bucket.clone(),
            environment.clone(),
            setting.allow_disk_use,
            input,
        )?),
        Kind::Count(name) => Box::new(transform::Count::new(name.clone(), input)),
        Kind::Densify(densify) => Box::new(densify::DensifyOperator::new(
            densify.clone(),
            setting.allow_disk_use,
            input,
        )),
        Kind::Documents(expression) => Box::new(documents::rows(expression, environment)?),
        Kind::Facet(facet) => Box::new(facet::FacetOperator::new(
            facet.clone(),
            setting.clone(),
            input,
        )),
        Kind::GraphLookup(lookup) => Box::new(graph_lookup::GraphLookupOperator::new(
            lookup.clone(),
            setting.clone(),
            input,
        )?),
        Kind::Group(group) => Box::new(group::GroupOperator::new(
            group.clone(),
            environment.clone(),
            Memory::of(setting.allow_disk_use),
            input,
        )),
        Kind::Limit(amount) => Box::new(Limit::new(*amount, input)),
        Kind::Lookup(lookup) => Box::new(lookup::LookupOperator::new(
            (**lookup).clone(),
            setting.clone(),
            input,
        )?),
        Kind::Match(filter) => Box::new(transform::Match::new(filter.clone(), input)),
        Kind::Redact(redact) => Box::new(transform::RedactRows::new(
            redact.clone(),
            environment.clone(),
            input,
        )),
        Kind::ReplaceRoot(replace) => Box::new(transform::ReplaceRows::new(
            replace.clone(),
            environment.clone(),
            input,
        )),
        Kind::Reshape(reshape) => Box::new(transform::ReshapeRows::new(
            reshape.clone(),
            environment.clone(),
            input,
        )),
        Kind::Sample(size) => Box::new(sample::Sample::new(*size, setting.allow_disk_use, input)),
        Kind::Skip(amount) => Box::new(Skip::new(*amount, input)),
        Kind::Sort(sort, limit) => Box::new(SortOperator::new(
            sort.clone(),
            *limit,
            setting.allow_disk_use,
            input,
        )),
        Kind::UnionWith(union) => {
            Box::new(union::Union::new(union.clone(), setting.clone(), input))
        }
        Kind::Unwind(unwind) => Box::new(unwind::UnwindOperator::new(unwind.clone(), input)),
        Kind::WindowFields(fields) => Box::new(WindowFieldsOperator::new(
            fields.clone(),
            environment.clone(),
            setting.allow_disk_use,
            input,
        )),
    })
}

pub(super) fn scope(environment: &Environment) -> Scope {
    Scope::with_variables(&environment.variables)
}

fn add_fields(operand: ValueRef<'_>, environment: &Environment) -> Result<Vec<Kind>, Error> {
    let reshape = Reshape::parse_add_fields(operand, &scope(environment))?;
    Ok(vec![Kind::Reshape(reshape)])
}

fn project(operand: ValueRef<'_>, environment: &Environment) -> Result<Vec<Kind>, Error> {
    let reshape = Reshape::parse_project(operand, &scope(environment))?;
    Ok(vec![Kind::Reshape(reshape)])
}

fn unset(operand: ValueRef<'_>, _: &Environment) -> Result<Vec<Kind>, Error> {
    Ok(vec![Kind::Reshape(Reshape::parse_unset(operand)?)])
}

fn replace_root(operand: ValueRef<'_>, environment: &Environment) -> Result<Vec<Kind>, Error> {
    let replace = ReplaceRoot::parse_replace_root(operand, &scope(environment))?;
    Ok(vec![Kind::ReplaceRoot(replace)])
}

fn replace_with(operand: ValueRef<'_>, environment: &Environment) -> Result<Vec<Kind>, Error> {
    let replace = ReplaceRoot::parse_replace_with(operand, &scope(environment))?;
    Ok(vec![Kind::ReplaceRoot(replace)])
}

fn redact(operand: ValueRef<'_>, environment: &Environment) -> Result<Vec<Kind>, Error> {
    Ok(vec![Kind::Redact(Redact::parse(
        operand,
        &environment.variables,
    )?)])
}

fn parse_match(operand: ValueRef<'_>, environment: &Environment) -> Result<Vec<Kind>, Error> {
    let Some(document) = operand.as_document() else {
        return Err(Error::new(
            15959,
            "the match filter must be an expression in an object",
        ));
    };
    Ok(vec![Kind::Match(Filter::parse_with(
        document,
        environment,
    )?)])
}

fn sort(operand: ValueRef<'_>, environment: &Environment) -> Result<Vec<Kind>, Error> {
    let Some(document) = operand.as_document() else {
        return Err(Error::new(
            15973,
            "the $sort key specification must be an object",
        ));
    };
    if document.is_empty() {
        return Err(Error::new(
            15976,
            "$sort stage must have at least one sort key",
        ));
    }
    let sort = Sort::parse(document)?.with_collation(environment.collation.clone());
    if sort.pattern().is_empty() {
        return Err(Error::new(
            15973,
            "$natural sort cannot be set in a pipeline",
        ));
    }
    Ok(vec![Kind::Sort(sort, None)])
}

fn limit(operand: ValueRef<'_>, _: &Environment) -> Result<Vec<Kind>, Error> {
    if !operand.is_number() {
        return Err(Error::new(15957, "the limit must be specified as a number"));
    }
    match whole(operand) {
        amount if amount > 0 => Ok(vec![Kind::Limit(amount as u64)]),
        _ => Err(Error::new(15958, "the limit must be positive")),
    }
}

fn skip(operand: ValueRef<'_>, _: &Environment) -> Result<Vec<Kind>, Error> {
    if !operand.is_number() {
        return Err(Error::new(15972, "Argument to $skip must be a number"));
    }
    match whole(operand) {
        amount if amount >= 0 => Ok(vec![Kind::Skip(amount as u64)]),
        _ => Err(Error::new(15956, "Argument to $skip cannot be negative")),
    }
}

/// A number cut to whole; NaN is 0.
pub(super) fn whole(number: ValueRef<'_>) -> i64 {
    match number.as_whole() {
        Some(whole) => whole,
        None => number.as_f64().unwrap_or_default() as i64,
    }
}

/// Refuses a path that a stage cannot write to. The codes are those of every path: 40352, 40353, 15998,
/// 16410.
pub(super) fn check_path(text: &str) -> Result<Path, Error> {
    let mut specification = doc! {};
    specification.push(text, 1);
    match text {
        "$natural" => Err(Error::new(
            16410,
            "FieldPath field names may not start with '$'",
        )),
        _ => {
            Sort::parse(specification.as_document())?;
            Ok(Path::parse(text))
        }
    }
}

/// An expression where only one that begins with a dollar sign may stand.
pub(super) fn is_expression(operand: ValueRef<'_>) -> bool {
    match operand {
        ValueRef::String(text) => text.starts_with('$'),
        ValueRef::Document(document) => document
            .first()
            .is_some_and(|(name, _)| name.starts_with('$')),
        _ => false,
    }
}

pub(super) fn expression(
    operand: ValueRef<'_>,
    environment: &Environment,
) -> Result<Expression, Error> {
    Ok(Expression::parse(operand, &scope(environment))?)
}
