//! Replays recorded conversations with MongoDB on documents in memory: `insert`, then `aggregate`
//! with stages on single documents, and `$group`, `$sort`, `$unwind`, `$limit`, `$skip`.

#[path = "recorded/areas.rs"]
mod areas;
mod json;
mod recorded;

use std::collections::BTreeMap;

use areas::Outcome;
use recorded::Step;
use windrow_document::{Array, Document, DocumentBuf, DocumentBuilder, Value, ValueRef, key};
use windrow_mql::accumulator::{Accumulator, AccumulatorState};
use windrow_mql::expression::{Context, Expression, Scope, Variables};
use windrow_mql::filter::Filter;
use windrow_mql::reshape::{Redact, ReplaceRoot, Reshape};
use windrow_mql::sort::Sort;
use windrow_mql::{Error, Meta};

/// The number of cases of each area that must agree.
const FLOORS: [(&str, usize); 4] = [
    ("expressions", 1112),
    ("numbers", 8),
    ("stages", 299),
    ("random_pipeline", 295),
];

/// The current time of the recordings: later than 2020.
const NOW: i64 = 1_700_000_000_000;

#[test]
fn pipelines_answer_as_recorded() {
    areas::check(&FLOORS, run_case);
}

fn run_case(case: Document<'_>) -> Outcome {
    let mut collection: Vec<DocumentBuf> = Vec::new();
    let mut compared = false;
    for step in recorded::steps(case) {
        let run = step.run;
        match run.first().expect("a command").0 {
            "insert" => areas::insert(&mut collection, run),
            "create" | "createIndexes" => {}
            "aggregate" if run.iter().all(|(name, _)| is_plain(name)) => {
                compare(&collection, &step)?;
                compared = true;
            }
            _ => return Err(None),
        }
    }
    if compared { Ok(()) } else { Err(None) }
}

fn is_plain(name: &str) -> bool {
    matches!(name, "aggregate" | "pipeline" | "cursor" | "allowDiskUse")
}

fn compare(collection: &[DocumentBuf], step: &Step<'_>) -> Outcome {
    let pipeline = step.run.get("pipeline").and_then(ValueRef::as_array);
    let pipeline = pipeline.ok_or(None)?;
    let answer = match aggregate(collection, pipeline) {
        Err(None) => return Err(None),
        Err(Some(error)) => Err(error),
        Ok(found) => Ok(found),
    };
    let different = |what: String| Some(format!("{pipeline}\n    {what}"));
    let Some(mut found) = areas::found(answer, step.reply).map_err(different)? else {
        return Ok(());
    };
    found
        .iter_mut()
        .for_each(|document| *document = plain_nan(document.as_document()));
    let expected = areas::first_batch(step.reply).ok_or(None)?;
    let expected = expected.map(plain_nan).collect();
    areas::same(found, expected, step.is_unordered).map_err(different)
}

/// Replaces all NaNs by the same NaN, because the recordings do not distinguish them.
fn plain_nan(document: Document<'_>) -> DocumentBuf {
    let plain = |value: ValueRef<'_>| match value {
        ValueRef::Double(number) if number.is_nan() => Value::Double(f64::NAN),
        ValueRef::Document(inner) => Value::Document(plain_nan(inner)),
        ValueRef::Array(inner) => {
            let inner = plain_nan(inner.as_document());
            Value::Array(windrow_document::ArrayBuf::from_document(inner))
        }
        other => other.to_value(),
    };
    let mut output = DocumentBuilder::new();
    document
        .iter()
        .for_each(|(name, value)| output.append(name, plain(value).as_ref()));
    output.finish()
}

type Documents = Vec<DocumentBuf>;

/// Fails with `None` if this crate does not implement a stage.
fn aggregate(collection: &[DocumentBuf], pipeline: Array<'_>) -> Result<Documents, Option<Error>> {
    let stages: Result<Vec<Stage>, Option<Error>> = pipeline.iter().map(parse_stage).collect();
    let mut documents = collection.to_vec();
    for stage in stages? {
        documents = stage.run(documents)?;
    }
    Ok(documents)
}

enum Stage {
    Group(Expression, Vec<(String, Accumulator)>),
    Limit(usize),
    Match(Filter),
    Redact(Redact),
    Replace(ReplaceRoot),
    Reshape(Reshape),
    Skip(usize),
    Sort(Sort),
    Unwind(String),
}

fn parse_stage(stage: ValueRef<'_>) -> Result<Stage, Option<Error>> {
    let document = stage.as_document().ok_or(None)?;
    let (name, operand) = document.first().ok_or(None)?;
    if document.count() != 1 {
        return Err(None);
    }
    let scope = Scope::new();
    Ok(match name {
        "$addFields" | "$set" => Stage::Reshape(Reshape::parse_add_fields(operand, &scope)?),
        "$group" => parse_group(operand, &scope)?,
        "$limit" => Stage::Limit(count(operand).filter(|count| *count > 0).ok_or(None)?),
        "$match" => Stage::Match(Filter::parse(operand.as_document().ok_or(None)?)?),
        "$project" => Stage::Reshape(Reshape::parse_project(operand, &scope)?),
        "$redact" => Stage::Redact(Redact::parse(operand, &Variables::new())?),
        "$replaceRoot" => Stage::Replace(ReplaceRoot::parse_replace_root(operand, &scope)?),
        "$replaceWith" => Stage::Replace(ReplaceRoot::parse_replace_with(operand, &scope)?),
        "$skip" => Stage::Skip(count(operand).ok_or(None)?),
        "$sort" => Stage::Sort(
            operand
                .as_document()
                .filter(|document| !document.is_empty())
                .ok_or(None)
                .and_then(|document| Sort::parse(document).map_err(|_| None))?,
        ),
        "$unset" => Stage::Reshape(Reshape::parse_unset(operand)?),
        "$unwind" => {
            let path = operand
                .as_str()
                .and_then(|path| path.strip_prefix('$'))
                .ok_or(None)?;
            if path.contains('.') || path.is_empty() {
                return Err(None);
            }
            Stage::Unwind(path.to_owned())
        }
        _ => return Err(None),
    })
}

fn count(operand: ValueRef<'_>) -> Option<usize> {
    operand
        .as_whole()
        .and_then(|count| usize::try_from(count).ok())
}

fn parse_group(operand: ValueRef<'_>, scope: &Scope) -> Result<Stage, Option<Error>> {
    let document = operand.as_document().ok_or(None)?;
    let id = document.get("_id").ok_or(None)?;
    if id
        .as_document()
        .is_some_and(|id| id.first().is_some_and(|(name, _)| !name.starts_with('$')))
    {
        // The query engine handles such keys, with missing and constant parts.
        Expression::parse(id, scope)?;
        return Err(None);
    }
    let fields = document.iter().filter(|(name, _)| *name != "_id");
    let accumulators: Result<Vec<_>, Error> = fields
        .map(|(name, value)| Ok((name.to_owned(), Accumulator::parse(name, value, scope)?)))
        .collect();
    Ok(Stage::Group(Expression::parse(id, scope)?, accumulators?))
}

fn context(document: &DocumentBuf) -> Context<'_> {
    Context::new(document.as_document()).with_now(NOW)
}

impl Stage {
    fn run(&self, documents: Documents) -> Result<Documents, Error> {
        Ok(match self {
            Stage::Group(id, accumulators) => group(id, accumulators, documents)?,
            Stage::Limit(count) => documents.into_iter().take(*count).collect(),
            Stage::Skip(count) => documents.into_iter().skip(*count).collect(),
            Stage::Match(filter) => {
                let mut kept = Vec::new();
                for document in documents {
                    if filter.matches(document.as_document())? {
                        kept.push(document);
                    }
                }
                kept
            }
            Stage::Sort(sort) => {
                let mut keyed = Vec::new();
                for document in documents {
                    let mut key = Vec::new();
                    sort.key(document.as_document(), &Meta::default(), &mut key)?;
                    keyed.push((key, document));
                }
                keyed.sort_by(|one, other| one.0.cmp(&other.0));
                keyed.into_iter().map(|(_, document)| document).collect()
            }
            Stage::Unwind(path) => documents.iter().flat_map(|one| unwind(one, path)).collect(),
            each => {
                let mut output = Vec::new();
                for document in &documents {
                    output.extend(each.run_one(document)?);
                }
                output
            }
        })
    }

    fn run_one(&self, document: &DocumentBuf) -> Result<Option<DocumentBuf>, Error> {
        let (view, context) = (document.as_document(), context(document));
        match self {
            Stage::Redact(redact) => redact.apply(view, &context),
            Stage::Replace(replace) => replace.apply(view, &context).map(Some),
            Stage::Reshape(reshape) => reshape.apply(view, &context).map(Some),
            _ => Ok(Some(document.clone())),
        }
    }
}

fn unwind(document: &DocumentBuf, path: &str) -> Documents {
    let with = |value: ValueRef<'_>| {
        let fields = document
            .iter()
            .map(|(name, old)| (name, if name == path { value } else { old }));
        fields.collect::<DocumentBuf>()
    };
    match document.get(path) {
        None => Vec::new(),
        Some(ValueRef::Array(array)) => array.iter().map(with).collect(),
        Some(value) if value.is_nullish() => Vec::new(),
        Some(_) => vec![document.clone()],
    }
}

fn group(
    id: &Expression,
    accumulators: &[(String, Accumulator)],
    documents: Documents,
) -> Result<Documents, Error> {
    let mut places: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    let mut groups: Vec<(Value, Vec<AccumulatorState>)> = Vec::new();
    for document in &documents {
        let context = context(document);
        let value = id.evaluate(&context)?;
        let mut bytes = Vec::new();
        key::append(&mut bytes, value.or_null());
        let place = *places.entry(bytes).or_insert(groups.len());
        if place == groups.len() {
            let states: Result<Vec<_>, Error> = accumulators
                .iter()
                .map(|(_, accumulator)| accumulator.start(&context))
                .collect();
            groups.push((value.or_null().to_value(), states?));
        }
        for ((_, accumulator), state) in accumulators.iter().zip(&mut groups[place].1) {
            accumulator.add(state, &context)?;
        }
    }
    let finish = |(id, states): (Value, Vec<AccumulatorState>)| {
        let mut document = DocumentBuilder::new();
        document.append("_id", id.as_ref());
        for ((name, _), state) in accumulators.iter().zip(states) {
            document.append(name, state.finish().as_ref());
        }
        document.finish()
    };
    Ok(groups.into_iter().map(finish).collect())
}
