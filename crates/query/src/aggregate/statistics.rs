//! `$collStats`, `$indexStats`, `$listSearchIndexes`, `$planCacheStats`: statistics of a collection
//! as rows.

use windrow_document::{Document, ValueRef};

use super::operand;
use super::rows::Rows;
use super::stage::{PipelineContext, Stage, StageKind};
use crate::Error;
use crate::operators::BoxOperator;
use crate::row::Row;
use crate::source::Source;
use crate::source::{NamespaceParts, split_namespace};
use crate::statistics::{CollectionStatistics, SearchIndexName, Statistics, checked_scale};

const NO_OPTIONS: i32 = 28_803;
const NO_DOCUMENT: i32 = 40_166;
const NOT_EMPTY: i32 = 31_170;
const FAILED_TO_PARSE: i32 = 9;
const INVALID_OPTIONS: i32 = 72;
const NO_BOOL: i32 = 13_111;
const ALL_HOSTS_OF_ONE: i32 = 4_503_200;

/// Returns the statistics of the first stage, and the stages after it.
pub(super) fn first(stages: &[Stage]) -> Option<(&Statistics, &[Stage])> {
    match stages.split_first()? {
        (
            Stage {
                kind: StageKind::Statistics(statistics),
                ..
            },
            rest,
        ) => Some((statistics, rest)),
        _ => None,
    }
}

/// Returns the rows for a collection or view.
pub(super) fn rows(
    statistics: &Statistics,
    source: &dyn Source,
    context: &PipelineContext,
) -> Result<BoxOperator, Error> {
    let namespace = source.namespace();
    let NamespaceParts {
        database,
        collection,
    } = split_namespace(&namespace)?;
    let documents = context
        .collections
        .statistics(database, collection, statistics)?;
    let rows = documents.into_iter().map(Row::new).collect();
    Ok(Box::new(Rows::new(rows)))
}

/// Parses `$indexStats`. Fails with 28803 if there are options.
pub fn parse_index_statistics(operand: ValueRef<'_>) -> Result<Statistics, Error> {
    if operand.as_document().is_some_and(Document::is_empty) {
        Ok(Statistics::Indexes)
    } else {
        let message = "The $indexStats stage specification must be an empty object";
        Err(Error::new(NO_OPTIONS, message))
    }
}

/// Parses `$listSearchIndexes`. Fails with 9 if the operand is not a document, with 14 or 40415 for
/// invalid options, with 72 if there are both a name and an id.
pub fn parse_search_indexes(operand: ValueRef<'_>) -> Result<Statistics, Error> {
    let name = "$listSearchIndexes";
    let Some(options) = operand.as_document() else {
        let message = format!("The {name} stage specification must be an object");
        return Err(Error::new(FAILED_TO_PARSE, message));
    };
    let fields = operand::fields(name, options, ["id", "name"])?;
    let string = |field: &str, value: Option<ValueRef<'_>>| match value {
        None => Ok(None),
        Some(ValueRef::String(text)) => Ok(Some(text.to_owned())),
        Some(other) => Err(operand::wrong_type(format_args!("{name}.{field}"), other)),
    };
    let [id, index_name] = fields;
    match (string("id", id)?, string("name", index_name)?) {
        (Some(_), Some(_)) => Err(Error::new(
            INVALID_OPTIONS,
            format!("Cannot set both 'name' and 'id' for {name}."),
        )),
        (Some(id), None) => Ok(Statistics::SearchIndexes(Some(SearchIndexName::Id(id)))),
        (None, Some(name)) => Ok(Statistics::SearchIndexes(Some(SearchIndexName::Name(name)))),
        (None, None) => Ok(Statistics::SearchIndexes(None)),
    }
}

/// Parses `$planCacheStats`. Fails with 9, 13111 or 4503200 for invalid options.
pub fn parse_plan_statistics(operand: ValueRef<'_>) -> Result<Statistics, Error> {
    let refuse = |code, message: &str| Err(Error::new(code, message));
    let Some(options) = operand.as_document() else {
        return refuse(FAILED_TO_PARSE, "$planCacheStats value must be an object");
    };
    match (options.count(), options.first()) {
        (0, _) | (1, Some(("allHosts", ValueRef::Bool(false)))) => Ok(Statistics::Plans),
        (1, Some(("allHosts", ValueRef::Bool(true)))) => refuse(
            ALL_HOSTS_OF_ONE,
            "$planCacheStats stage supports allHosts parameter only for sharded clusters",
        ),
        (1, Some(("allHosts", _))) => {
            refuse(NO_BOOL, "allHosts of $planCacheStats must be true or false")
        }
        _ => refuse(
            FAILED_TO_PARSE,
            "allHosts is the only option of $planCacheStats",
        ),
    }
}

/// Parses `$collStats`. An option that is null counts as missing. Fails with 40166 if the operand
/// is not a document, with 2, 14 or 40415 for invalid options, with 31170 if an option that takes
/// an empty document has fields.
pub fn parse_collection_statistics(operand: ValueRef<'_>) -> Result<Statistics, Error> {
    let Some(options) = operand.as_document() else {
        return Err(Error::new(
            NO_DOCUMENT,
            "$collStats must take a nested object",
        ));
    };
    let names = ["latencyStats", "storageStats", "count", "queryExecStats"];
    let fields = operand::fields("$collStats", options, names)?;
    let fields = fields.map(|value| value.filter(|value| !value.is_nullish()));
    let [latencies, storage, count, scans] = fields;
    Ok(Statistics::Collection(CollectionStatistics {
        latencies: latencies.map(histograms).transpose()?,
        storage: storage.map(scale).transpose()?,
        count: count
            .map(|value| check_empty("count", value))
            .transpose()?
            .is_some(),
        scans: scans
            .map(|value| check_empty("queryExecStats", value))
            .transpose()?
            .is_some(),
    }))
}

fn object<'v>(name: &str, value: ValueRef<'v>) -> Result<Document<'v>, Error> {
    let wrong = || operand::wrong_type(format_args!("$collStats.{name}"), value);
    value.as_document().ok_or_else(wrong)
}

fn check_empty(name: &str, value: ValueRef<'_>) -> Result<(), Error> {
    if object(name, value)?.is_empty() {
        Ok(())
    } else {
        Err(Error::new(
            NOT_EMPTY,
            format!("$collStats.{name} must be an empty object"),
        ))
    }
}

fn histograms(value: ValueRef<'_>) -> Result<bool, Error> {
    let path = "$collStats.latencyStats";
    let [histograms] = operand::fields(path, object("latencyStats", value)?, ["histograms"])?;
    match histograms {
        None => Ok(false),
        Some(ValueRef::Bool(is_set)) => Ok(is_set),
        Some(other) => Err(operand::wrong_type(
            format_args!("{path}.histograms"),
            other,
        )),
    }
}

/// Parses the divisor of sizes.
fn scale(value: ValueRef<'_>) -> Result<u64, Error> {
    let scale = object("storageStats", value)?.get("scale");
    match scale.filter(|it| !it.is_nullish()) {
        None => Ok(1),
        Some(other) if !other.is_number() => {
            Err(operand::wrong_type("$collStats.storageStats.scale", other))
        }
        Some(number) => checked_scale(operand::nearest(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{Value, doc};

    type Parse = fn(ValueRef<'_>) -> Result<Statistics, Error>;

    /// `expected`: the code of the error.
    fn check(parse: Parse, operand: Value, expected: Option<i32>) {
        let found = parse(operand.as_ref()).err().and_then(|error| error.code());
        assert_eq!(found, expected, "{operand}");
    }

    #[test]
    fn options_of_plan_cache_statistics_are_checked() {
        let check = |operand, expected| check(parse_plan_statistics, operand, expected);
        check(doc! {}.into(), None);
        check(doc! { "allHosts": false }.into(), None);
        check(doc! { "allHosts": true }.into(), Some(ALL_HOSTS_OF_ONE));
        check(doc! { "allHosts": 1 }.into(), Some(NO_BOOL));
        check(doc! { "allhosts": true }.into(), Some(9));
        check(doc! { "allHosts": false, "x": 1 }.into(), Some(9));
        check(Value::Null, Some(9));
    }

    #[test]
    fn options_of_index_statistics_are_refused() {
        let check = |operand, expected| check(parse_index_statistics, operand, expected);
        check(doc! {}.into(), None);
        check(doc! { "x": 1 }.into(), Some(28_803));
    }

    #[test]
    fn options_of_search_indexes_are_checked() {
        let check = |operand, expected| check(parse_search_indexes, operand, expected);
        check(doc! {}.into(), None);
        check(doc! { "name": "x" }.into(), None);
        check(doc! { "id": 1 }.into(), Some(14));
        check(doc! { "x": 1 }.into(), Some(40_415));
        check(1.into(), Some(9));
        let both = doc! { "id": "x", "name": "x" };
        check(both.into(), Some(72));
    }

    #[test]
    fn options_of_collection_statistics_are_checked() {
        let check = |operand, expected| check(parse_collection_statistics, operand, expected);
        check(Value::Null, Some(40_166));
        check(doc! { "Count": {} }.into(), Some(40_415));
        check(doc! { "count": 1 }.into(), Some(14));
        check(doc! { "count": { "x": 1 } }.into(), Some(31_170));
        check(doc! { "queryExecStats": { "x": 1 } }.into(), Some(31_170));
        check(doc! { "latencyStats": true }.into(), Some(14));
        check(doc! { "latencyStats": { "x": 1 } }.into(), Some(40_415));
        check(
            doc! { "latencyStats": { "histograms": null } }.into(),
            Some(14),
        );
        check(doc! { "storageStats": [] }.into(), Some(14));
        check(doc! { "storageStats": { "scale": 0 } }.into(), Some(2));
        check(doc! { "storageStats": { "scale": "x" } }.into(), Some(14));
    }

    #[test]
    fn options_are_parsed() {
        let check = |operand: Value, expected| {
            assert_eq!(
                parse_collection_statistics(operand.as_ref()).unwrap(),
                Statistics::Collection(expected)
            );
        };
        let all = CollectionStatistics {
            latencies: Some(true),
            storage: Some(1024),
            count: true,
            scans: true,
        };
        let operand = doc! {
            "latencyStats": { "histograms": true }, "storageStats": { "scale": 1024, "x": 1 },
            "count": {}, "queryExecStats": {},
        };
        check(operand.into(), all);
        let nothing = doc! { "count": null, "storageStats": null };
        check(nothing.into(), CollectionStatistics::default());
    }
}
