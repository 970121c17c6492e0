//! The shape of a find, distinct or aggregate command: the command with its constants replaced by
//! their types. `queryShapeHash` is its SHA-256. Commands that differ in constants only have the
//! same shape.

use windrow_document::{Array, ArrayBuf, Document, DocumentBuf, Value, ValueRef, doc};

/// Arguments besides the filter or pipeline that are part of the shape with their values.
const UNCHANGED: &[&str] = &[
    "allowDiskUse",
    "awaitData",
    "collation",
    "hint",
    "key",
    "projection",
    "returnKey",
    "showRecordId",
    "sort",
    "tailable",
];

/// Stages and fields whose numbers are part of the shape.
const WITH_NUMBERS: &[&str] = &["$project", "$sort", "projection", "sort", "sortBy"];

/// Returns the hash of a command's shape as 64 hexadecimal digits. `None` for commands without a
/// shape. `namespace` is that of the collection or view.
pub fn hash(command: Document<'_>, namespace: &str) -> Option<String> {
    let (name, _) = command.first()?;
    if !["find", "distinct", "aggregate"].contains(&name) {
        return None;
    }
    let shape = command_shape(command, name, namespace);
    let digest = hmac_sha256::Hash::hash(shape.as_bytes());
    Some(digest.iter().map(|byte| format!("{byte:02X}")).collect())
}

fn command_shape(command: Document<'_>, name: &str, namespace: &str) -> DocumentBuf {
    let mut shape = doc! { "cmdNs": namespace, "command": name };
    for (name, value) in command.iter().skip(1) {
        let part = match (name, value) {
            ("filter" | "query", ValueRef::Document(given)) if given.is_empty() => continue,
            ("filter" | "query", ValueRef::Document(given)) => filter(given).into(),
            ("pipeline", ValueRef::Array(stages)) => pipeline(stages).into(),
            ("let", value) => expression(value),
            ("limit" | "skip" | "min" | "max", value) => specification(value),
            (name, value) if WITH_NUMBERS.contains(&name) => with_meaning(value),
            (name, value) if UNCHANGED.contains(&name) => value.to_value(),
            _ => continue,
        };
        shape.push(name, part);
    }
    shape
}

/// Returns a filter as the list of its conditions, so that equivalent combinations have the same
/// shape.
fn filter(given: Document<'_>) -> DocumentBuf {
    let mut conditions = Vec::new();
    collect(given, &mut conditions);
    match <[DocumentBuf; 1]>::try_from(conditions) {
        Ok([one]) => one,
        Err(several) => doc! { "$and": several },
    }
}

/// Returns a document with one field.
fn single(name: &str, value: impl Into<Value>) -> DocumentBuf {
    let mut document = DocumentBuf::new();
    document.push(name, value);
    document
}

fn collect(filter: Document<'_>, conditions: &mut Vec<DocumentBuf>) {
    for (name, value) in filter {
        match (name, value) {
            ("$comment", _) => {}
            ("$and", ValueRef::Array(filters)) => filters
                .iter()
                .filter_map(ValueRef::as_document)
                .for_each(|filter| collect(filter, conditions)),
            ("$or" | "$nor", ValueRef::Array(filters)) => {
                let filters = filters.iter().filter_map(ValueRef::as_document);
                let filters: Vec<DocumentBuf> = filters.map(self::filter).collect();
                conditions.push(single(name, filters));
            }
            ("$expr", _) => conditions.push(single(name, expression(value))),
            ("$jsonSchema", _) => conditions.push(single(name, specification(value))),
            _ if name.starts_with('$') => conditions.push(single(name, constant(value))),
            (path, ValueRef::Document(inner)) if is_expression(inner) => {
                let operators = operators(inner).into_iter();
                conditions.extend(operators.map(|operator| single(path, operator)));
            }
            (path, ValueRef::Regex { .. }) => {
                let pattern = constant(ValueRef::String(""));
                conditions.push(single(path, single("$regex", pattern)));
            }
            (path, value) => conditions.push(single(path, single("$eq", constant(value)))),
        }
    }
}

/// Returns the conditions of the operators on a path, each separately.
fn operators(document: Document<'_>) -> Vec<DocumentBuf> {
    let of_one = |(name, value): (&str, ValueRef<'_>)| match (name, value) {
        // It is part of the pattern next to it.
        ("$options", _) => Vec::new(),
        ("$all", ValueRef::Array(values)) => values.iter().flat_map(element).collect(),
        ("$not", ValueRef::Document(inner)) => vec![single(name, operators(inner))],
        ("$elemMatch", ValueRef::Document(inner)) if is_of_operators(inner) => {
            vec![single(name, operators(inner))]
        }
        ("$elemMatch", ValueRef::Document(inner)) => vec![single(name, filter(inner))],
        ("$exists", _) => vec![single(name, value.is_truthy())],
        ("$type", ValueRef::Array(_)) => vec![single(name, value.to_value())],
        ("$type", _) => vec![single(name, vec![value.to_value()])],
        _ => vec![single(name, constant(value))],
    };
    document.iter().flat_map(of_one).collect()
}

/// Returns the conditions of an element of `$all`.
fn element(value: ValueRef<'_>) -> Vec<DocumentBuf> {
    match value {
        ValueRef::Document(inner) if is_expression(inner) => operators(inner),
        other => vec![single("$eq", constant(other))],
    }
}

/// Returns `true` if the operators apply to the elements themselves instead of their fields.
fn is_of_operators(document: Document<'_>) -> bool {
    let of_filters = ["$and", "$or", "$nor", "$expr"];
    let first = document.first().map(|(name, _)| name);
    first.is_some_and(|name| name.starts_with('$') && !of_filters.contains(&name))
}

fn pipeline(stages: Array<'_>) -> ArrayBuf {
    let stage = |stage: ValueRef<'_>| match stage {
        ValueRef::Document(stage) => Value::from(each(stage, stage_shape)),
        other => constant(other),
    };
    stages.iter().map(stage).collect()
}

fn stage_shape(name: &str, value: ValueRef<'_>) -> Value {
    match (name, value) {
        ("$match", ValueRef::Document(given)) => filter(given).into(),
        ("$facet", ValueRef::Document(facets)) => each(facets, |_, facet| match facet {
            ValueRef::Array(stages) => pipeline(stages).into(),
            other => constant(other),
        })
        .into(),
        (name, value) if WITH_NUMBERS.contains(&name) => with_meaning(value),
        _ => specification(value),
    }
}

/// Returns the operand of a stage: names are kept, numbers are replaced by their type, expressions
/// are converted.
fn specification(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::String(_) => value.to_value(),
        ValueRef::Array(values) => values
            .iter()
            .map(specification)
            .collect::<ArrayBuf>()
            .into(),
        ValueRef::Document(inner) if is_expression(inner) => expression(value),
        ValueRef::Document(inner) => each(inner, |name, value| match (name, value) {
            ("pipeline", ValueRef::Array(stages)) => pipeline(stages).into(),
            (name, value) if WITH_NUMBERS.contains(&name) => with_meaning(value),
            _ => specification(value),
        })
        .into(),
        other => constant(other),
    }
}

/// Returns a projection or a sort: flags and directions are kept, computed values are expressions.
fn with_meaning(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Document(inner) if is_expression(inner) => expression(value),
        ValueRef::Document(inner) => each(inner, |_, value| with_meaning(value)).into(),
        other => other.to_value(),
    }
}

fn is_expression(document: Document<'_>) -> bool {
    document
        .first()
        .is_some_and(|(name, _)| name.starts_with('$'))
}

/// Returns an expression: paths and variables are kept, other strings are constants.
fn expression(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::String(text) if text.starts_with('$') => value.to_value(),
        ValueRef::Array(values) => values.iter().map(expression).collect::<ArrayBuf>().into(),
        ValueRef::Document(inner) => each(inner, |name, value| match name {
            "$literal" => constant(value),
            _ => expression(value),
        })
        .into(),
        other => constant(other),
    }
}

/// Returns the placeholder of a constant in MongoDB's form: its type and, for an array whose
/// elements have one type, that type.
fn constant(value: ValueRef<'_>) -> Value {
    let ValueRef::Array(values) = value else {
        return format!("?{}", type_name(value)).into();
    };
    let mut types = values.iter().map(type_name);
    let Some(first) = types.next() else {
        return "[]".into();
    };
    if types.all(|one| one == first) {
        format!("?array<?{first}>").into()
    } else {
        "?array<>".into()
    }
}

/// Returns the name of a type. All number types have one name.
fn type_name(value: ValueRef<'_>) -> &'static str {
    if value.is_number() {
        "number"
    } else {
        value.type_of().name()
    }
}

fn each(document: Document<'_>, shape: impl Fn(&str, ValueRef<'_>) -> Value) -> DocumentBuf {
    let mut shapes = DocumentBuf::new();
    for (name, value) in document {
        shapes.push(name, shape(name, value));
    }
    shapes
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::array;

    fn check(one: DocumentBuf, other: DocumentBuf, same: bool) {
        let hash = |command: &DocumentBuf| hash(command.as_document(), "d.c").unwrap();
        assert_eq!(hash(&one) == hash(&other), same, "{one} {other}");
        assert_eq!(hash(&one).len(), 64);
    }

    #[test]
    fn shapes_ignore_constants_and_keep_the_order() {
        let find = |one: DocumentBuf, other: DocumentBuf, same: bool| {
            let command = |filter| doc! { "find": "c", "filter": filter };
            check(command(one), command(other), same);
        };
        find(doc! { "a": 1 }, doc! { "a": { "$eq": 2.5 } }, true);
        find(doc! { "a": 1 }, doc! { "a": "x" }, false);
        find(
            doc! { "a": 1, "b": 2 },
            doc! { "$and": [{ "a": 7 }, { "b": 8 }] },
            true,
        );
        find(
            doc! { "a": { "$gt": 1, "$lt": 2 } },
            doc! { "$and": [{ "a": { "$gt": 1 } }, { "a": { "$lt": 2 } }] },
            true,
        );
        find(
            doc! { "a": { "$all": [1] } },
            doc! { "a": { "$all": [1, 2] } },
            false,
        );
        find(
            doc! { "a": { "$exists": true } },
            doc! { "a": { "$exists": false } },
            false,
        );
        find(
            doc! { "a": { "$type": "int" } },
            doc! { "a": { "$type": ["int"] } },
            true,
        );
        let each = |one: DocumentBuf| doc! { "a": { "$elemMatch": one } };
        find(each(doc! { "$gt": 1 }), each(doc! { "$gt": 2 }), true);
        find(each(doc! { "$gt": 1 }), each(doc! { "$lt": 1 }), false);
        find(each(doc! { "x": 1 }), each(doc! { "y": 1 }), false);
        find(doc! { "a": 1, "b": 2 }, doc! { "b": 1, "a": 2 }, false);
        find(
            doc! { "a": { "$in": [1, 2] } },
            doc! { "a": { "$in": [3] } },
            true,
        );
        find(
            doc! { "a": { "$in": [1, 2] } },
            doc! { "a": { "$nin": [1, 2] } },
            false,
        );
        find(
            doc! { "a": { "$type": "int" } },
            doc! { "a": { "$type": "string" } },
            false,
        );
        find(
            doc! { "$or": [{ "a": 1 }] },
            doc! { "$or": [{ "a": 7 }] },
            true,
        );
        find(
            doc! { "$or": [{ "a": 1 }] },
            doc! { "$or": [{ "b": 1 }] },
            false,
        );
        let over = |operator: &str, constant: i32| doc! { "$expr": { operator: ["$a", constant] } };
        find(over("$gt", 1), over("$gt", 2), true);
        find(over("$gt", 1), over("$lt", 1), false);
        let required = |name: &str| doc! { "$jsonSchema": { "required": [name] } };
        find(required("a"), required("b"), false);
    }

    /// An empty array had the placeholder `?array<?>`, which MongoDB does not have.
    #[test]
    fn constants_have_the_placeholders_of_mongodb() {
        for (value, expected) in [
            (Value::Int32(1), "?number"),
            (array![].into(), "[]"),
            (array![1, 2.5].into(), "?array<?number>"),
            (array![1, "a"].into(), "?array<>"),
            (array![[1]].into(), "?array<?array>"),
        ] {
            assert_eq!(constant(value.as_ref()), expected.into());
        }
    }

    #[test]
    fn other_arguments_are_part_of_the_shape() {
        let find = |name: &str, value: DocumentBuf| doc! { "find": "c", "filter": {}, name: value };
        let differ = |name: &str, one: DocumentBuf, other: DocumentBuf| {
            check(find(name, one), find(name, other), false);
        };
        differ("sort", doc! { "a": 1 }, doc! { "a": (-1) });
        differ(
            "projection",
            doc! { "a": 1, "b": 1 },
            doc! { "b": 1, "a": 1 },
        );
        differ("projection", doc! { "a": 1 }, doc! { "a": 0 });
        differ(
            "collation",
            doc! { "locale": "en" },
            doc! { "locale": "fr" },
        );
        let added = |number: i32| doc! { "x": { "$add": ["$a", number] } };
        check(
            find("projection", added(1)),
            find("projection", added(2)),
            true,
        );
        check(
            doc! { "find": "c", "limit": 1, "batchSize": 5 },
            doc! { "find": "c", "limit": 2, "comment": "x" },
            true,
        );
        check(
            doc! { "distinct": "c", "key": "a" },
            doc! { "distinct": "c", "key": "b" },
            false,
        );
        assert_eq!(hash(doc! { "count": "c" }.as_document(), "d.c"), None);
    }

    #[test]
    fn every_stage_is_part_of_a_shape() {
        let run = |one: DocumentBuf, other: DocumentBuf, same: bool| {
            let command = |stage: DocumentBuf| {
                doc! { "aggregate": "c", "pipeline": (array![{ "$match": { "a": 1 } }, stage]) }
            };
            check(command(one), command(other), same);
        };
        run(doc! { "$limit": 1 }, doc! { "$limit": 2 }, true);
        run(doc! { "$limit": 1 }, doc! { "$skip": 1 }, false);
        run(doc! { "$count": "a" }, doc! { "$count": "b" }, false);
        run(
            doc! { "$sort": { "a": 1 } },
            doc! { "$sort": { "a": (-1) } },
            false,
        );
        run(
            doc! { "$set": { "x": { "$concat": ["$a", "y"] } } },
            doc! { "$set": { "x": { "$concat": ["$a", "z"] } } },
            true,
        );
        run(
            doc! { "$facet": { "x": [{ "$match": { "b": 1 } }] } },
            doc! { "$facet": { "x": [{ "$match": { "b": { "$eq": 2 } } }] } },
            true,
        );
        run(
            doc! { "$unionWith": { "coll": "d", "pipeline": [{ "$skip": 1 }] } },
            doc! { "$unionWith": { "coll": "e", "pipeline": [{ "$skip": 1 }] } },
            false,
        );
    }
}
