//! From MongoDB's index specification to a definition, and the normal form that `listIndexes` shows.

mod text;

use windrow_document::path::Path;
use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use windrow_mql::Error;
use windrow_mql::filter::Filter;

use crate::definition::{Definition, KeyField, KeyKind, TextDefinition};
use crate::partial;

const CANNOT_CREATE: i32 = 67;
const INVALID_OPTION: i32 = 197;
const INVALID_OPTIONS: i32 = 72;

/// Options that are known; those which are not honoured yet are refused by name. Those of geospatial
/// indexes mean nothing to others, and are kept as they came.
const OPTIONS: &[&str] = &[
    "background",
    "bits",
    "bucketSize",
    "coarsestIndexedLevel",
    "collation",
    "default_language",
    "dropDups",
    "finestIndexedLevel",
    "hidden",
    "key",
    "language_override",
    "max",
    "min",
    "name",
    "ns",
    "partialFilterExpression",
    "sparse",
    "storageEngine",
    "textIndexVersion",
    "unique",
    "v",
    "weights",
];
const UNSUPPORTED: &[&str] = &[
    "2dsphereIndexVersion",
    "expireAfterSeconds",
    "prepareUnique",
    "wildcardProjection",
];

/// The options that an index on `_id` may have.
const ID_OPTIONS: &[&str] = &["collation", "key", "name", "ns", "v"];

/// The name of the index on `_id`, whatever a client calls it.
const ID_NAME: &str = "_id_";

const KEY_FIELDS_MAX: usize = 32;
const TOO_MANY_FIELDS: i32 = 13103;

fn cannot(message: String) -> Error {
    Error::new(CANNOT_CREATE, message)
}

impl Definition {
    /// Parses a specification: `{key: …, name: …, options…}`.
    pub fn parse(specification: Document<'_>) -> Result<Definition, Error> {
        check_known(specification)?;
        let key = match specification.get("key") {
            Some(ValueRef::Document(key)) => key,
            Some(other) => {
                let name = other.type_of().name();
                return Err(Error::type_mismatch(format!(
                    "The field 'key' must be an object, but got {name}"
                )));
            }
            None => {
                return Err(Error::failed_to_parse(
                    "The 'key' field is a required property",
                ));
            }
        };
        let name = name_of(specification)?;
        let version = version_of(specification)?;
        if is_key_of_ids(key) {
            check_of_ids(specification, key)?;
            return Ok(Definition::of_ids());
        }
        if name == ID_NAME {
            return Err(Error::bad_value(format!(
                "The index name '_id_' is reserved for the _id index, which must have key pattern \
                 {{_id: 1}}, found {key}"
            )));
        }
        check_supported(specification)?;
        check_collation(specification)?;
        check_storage_engine(specification)?;
        let is_text = key
            .iter()
            .any(|(_, value)| value == ValueRef::String("text"));
        let fields = key_fields(key)?;
        let flag = |name| flag_of(specification, name);
        let partial = partial_of(specification)?;
        let (unique, sparse, hidden) = (flag("unique")?, flag("sparse")?, flag("hidden")?);
        if sparse && partial.is_some() {
            return Err(cannot(
                "cannot mix \"partialFilterExpression\" and \"sparse\" options".to_owned(),
            ));
        }
        if unique && is_text {
            return Err(cannot(
                "Index type 'text' does not support the unique option".to_owned(),
            ));
        }
        let text = if is_text {
            Some(text::definition(key, specification)?)
        } else {
            None
        };
        let specification = normal_form(specification, version, key, &name, text.as_ref());
        Ok(Definition {
            name,
            fields,
            unique,
            sparse,
            hidden,
            partial,
            text,
            specification,
        })
    }
}

fn check_known(specification: Document<'_>) -> Result<(), Error> {
    let is_known = |name| OPTIONS.contains(&name) || UNSUPPORTED.contains(&name);
    let mut names = specification.iter().map(|(name, _)| name);
    match names.find(|name| !is_known(name)) {
        None => Ok(()),
        Some(name) => Err(Error::new(
            INVALID_OPTION,
            format!("The field '{name}' is not valid for an index specification"),
        )),
    }
}

fn check_supported(specification: Document<'_>) -> Result<(), Error> {
    let mut names = specification.iter().map(|(name, _)| name);
    match names.find(|name| UNSUPPORTED.contains(name)) {
        None => Ok(()),
        Some(name) => Err(cannot(format!(
            "the index option '{name}' is not supported"
        ))),
    }
}

fn name_of(specification: Document<'_>) -> Result<String, Error> {
    match specification.get("name") {
        Some(ValueRef::String("")) => Err(cannot("index name cannot be empty".to_owned())),
        Some(ValueRef::String(name)) => Ok(name.to_owned()),
        Some(other) => Err(Error::type_mismatch(format!(
            "The field 'name' must be a string, but got {}",
            other.type_of().name()
        ))),
        None => Err(Error::failed_to_parse(
            "The 'name' field is a required property",
        )),
    }
}

/// 1 or 2. Both are built alike; the number is shown again.
fn version_of(specification: Document<'_>) -> Result<i32, Error> {
    let Some(value) = specification.get("v") else {
        return Ok(2);
    };
    if !value.is_number() {
        return Err(Error::type_mismatch(format!(
            "The field 'v' must be a number, but got {}",
            value.type_of().name()
        )));
    }
    match value.as_whole() {
        Some(1) => Ok(1),
        Some(2) => Ok(2),
        Some(other) => Err(cannot(format!(
            "Invalid index specification; cannot create an index with v={other}"
        ))),
        None => Err(Error::bad_value(
            "Index version must be representable as a 32-bit integer".to_owned(),
        )),
    }
}

/// Strings are compared by their bytes, which is what the locale "simple" says.
fn check_collation(specification: Document<'_>) -> Result<(), Error> {
    let collation = match specification.get("collation") {
        None => return Ok(()),
        Some(ValueRef::Document(collation)) => collation,
        Some(other) => {
            return Err(Error::type_mismatch(format!(
                "The field 'collation' must be an object, but got {}",
                other.type_of().name()
            )));
        }
    };
    match collation.get("locale") {
        Some(ValueRef::String("simple")) => Ok(()),
        Some(ValueRef::String(_)) => Err(cannot(
            "the index option 'collation' is not supported".to_owned(),
        )),
        Some(other) => Err(Error::type_mismatch(format!(
            "The field 'collation.locale' must be a string, but got {}",
            other.type_of().name()
        ))),
        None => Err(Error::bad_value(
            "The field 'collation' must have a locale".to_owned(),
        )),
    }
}

fn check_storage_engine(specification: Document<'_>) -> Result<(), Error> {
    match specification.get("storageEngine") {
        None => Ok(()),
        Some(ValueRef::Document(options)) => match options.first() {
            None => Ok(()),
            Some((engine, _)) => Err(Error::new(
                INVALID_OPTIONS,
                format!("storageEngine has options of an engine that is not there: '{engine}'"),
            )),
        },
        Some(_) => Err(cannot(
            "\"storageEngine\" options must be a document".to_owned(),
        )),
    }
}

/// Whether a key is `_id` alone, up or down.
fn is_key_of_ids(key: Document<'_>) -> bool {
    let direction = key.get("_id").and_then(ValueRef::as_f64);
    key.count() == 1 && direction.is_some_and(|direction| direction.abs() == 1.0)
}

fn check_of_ids(specification: Document<'_>, key: Document<'_>) -> Result<(), Error> {
    if key.get("_id").and_then(ValueRef::as_f64) != Some(1.0) {
        return Err(Error::bad_value(format!(
            "The field 'key' for an _id index must be {{_id: 1}}, but got {key}"
        )));
    }
    let mut names = specification.iter().map(|(name, _)| name);
    match names.find(|name| !ID_OPTIONS.contains(name)) {
        None => Ok(()),
        Some(name) => Err(Error::new(
            INVALID_OPTION,
            format!("The field '{name}' is not valid for an _id index specification"),
        )),
    }?;
    check_collation(specification).map_err(|_| {
        Error::bad_value("The _id index must have the same collation as the collection")
    })
}

fn flag_of(specification: Document<'_>, name: &str) -> Result<bool, Error> {
    match specification.get(name) {
        None => Ok(false),
        Some(ValueRef::Null) if name != "hidden" => Ok(false),
        Some(ValueRef::Bool(flag)) => Ok(flag),
        Some(value) if value.is_number() && name != "hidden" => Ok(value.is_truthy()),
        Some(other) => Err(Error::type_mismatch(format!(
            "The field '{name}' must be a boolean, but got {}",
            other.type_of().name()
        ))),
    }
}

fn partial_of(specification: Document<'_>) -> Result<Option<Filter>, Error> {
    match specification.get("partialFilterExpression") {
        None => Ok(None),
        Some(ValueRef::Document(filter)) => partial::parse(filter).map(Some),
        Some(other) => Err(Error::type_mismatch(format!(
            "The field 'partialFilterExpression' must be an object, but got {}",
            other.type_of().name()
        ))),
    }
}

/// The parts of the key; the text fields, which stand next to each other, as one.
fn key_fields(key: Document<'_>) -> Result<Vec<KeyField>, Error> {
    if key.is_empty() {
        return Err(cannot("Index keys cannot be empty.".to_owned()));
    }
    if key.count() > KEY_FIELDS_MAX {
        return Err(Error::new(
            TOO_MANY_FIELDS,
            format!("Number of fields in compound index can't exceed {KEY_FIELDS_MAX}"),
        ));
    }
    let mut fields: Vec<KeyField> = Vec::new();
    let already_stored = key.contains("_fts");
    for (name, value) in key
        .iter()
        .filter(|(name, _)| !(already_stored && *name == "_ftsx"))
    {
        let kind = kind_of(name, value)?;
        if kind != KeyKind::Text {
            check_path(name)?;
        }
        let has_text = fields.iter().any(|field| field.kind == KeyKind::Text);
        if kind == KeyKind::Text && has_text {
            if fields.last().is_some_and(|last| last.kind != KeyKind::Text) {
                return Err(cannot(
                    "'text' fields in index must all be adjacent".to_owned(),
                ));
            }
            continue;
        }
        let path = if kind == KeyKind::Text { "_fts" } else { name };
        fields.push(KeyField {
            path: Path::parse(path),
            kind,
        });
    }
    Ok(fields)
}

fn kind_of(name: &str, value: ValueRef<'_>) -> Result<KeyKind, Error> {
    match value {
        ValueRef::String("text") => Ok(KeyKind::Text),
        ValueRef::String(kind @ ("2d" | "2dsphere" | "geoHaystack" | "hashed")) => {
            Err(cannot(format!("the index type '{kind}' is not supported")))
        }
        ValueRef::String(kind) => Err(cannot(format!("Unknown index plugin '{kind}'"))),
        _ if name == "$**" || name.ends_with(".$**") => {
            Err(cannot("wildcard indexes are not supported".to_owned()))
        }
        value if value.is_number() => match value.as_f64() {
            Some(number) if number > 0.0 => Ok(KeyKind::Ascending),
            Some(number) if number < 0.0 => Ok(KeyKind::Descending),
            _ => Err(cannot(
                "Values in the index key pattern cannot be 0.".to_owned(),
            )),
        },
        other => Err(cannot(format!(
            "Values in v:2 index key pattern cannot be of type {}",
            other.type_of().name()
        ))),
    }
}

fn check_path(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.split('.').any(str::is_empty) {
        return Err(cannot(
            "Index keys cannot contain an empty field.".to_owned(),
        ));
    }
    // The parts of a DBRef are fields like others, below a field.
    let is_reference = |part: &str| matches!(part, "$ref" | "$id" | "$db");
    let mut parts = name.split('.').enumerate();
    if parts.any(|(depth, part)| part.starts_with('$') && (depth == 0 || !is_reference(part))) {
        return Err(cannot(format!(
            "Index key contains an illegal field name '{name}'"
        )));
    }
    Ok(())
}

/// In MongoDB's order: version, unique, key, name, then the options as they came.
fn normal_form(
    specification: Document<'_>,
    version: i32,
    key: Document<'_>,
    name: &str,
    text: Option<&TextDefinition>,
) -> DocumentBuf {
    let already_stored = key.contains("_fts");
    let stored = text::stored_key(key, text.is_some() && !already_stored);
    let version_of_text = text.map(|text| text.version.number());
    let is_set = |option| specification.get(option).is_some_and(ValueRef::is_truthy);
    let mut normal = doc! { "v": version };
    if is_set("unique") {
        normal.push("unique", true);
    }
    normal.push("key", stored);
    normal.push("name", name);
    let text = text.map(|text| text::options(specification, text));
    for (option, value) in specification {
        match text.as_ref().and_then(|text| text.get(option)) {
            Some(text) => normal.push(option, text),
            None if is_kept(option, value, text.is_some()) => normal.push(option, value),
            None => {}
        }
    }
    // What was not said stands at the end; the version always does.
    for (option, value) in text.iter().flat_map(DocumentBuf::iter) {
        if normal.get(option).is_none() {
            normal.push(option, value);
        }
    }
    if let Some(version) = version_of_text {
        normal.push("textIndexVersion", version);
    }
    normal
}

/// Whether an option is stored as it came.
fn is_kept(option: &str, value: ValueRef<'_>, is_text: bool) -> bool {
    match option {
        "collation" | "dropDups" | "key" | "name" | "ns" | "unique" | "v" => false,
        "hidden" => value.is_truthy(),
        "textIndexVersion" => !is_text,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(specification: DocumentBuf, expected: Result<DocumentBuf, i32>) {
        let parsed = Definition::parse(specification.as_document());
        let found = parsed
            .map(|it| it.specification)
            .map_err(|error| error.code);
        assert_eq!(found, expected, "{specification}");
    }

    #[test]
    fn specifications_have_a_normal_form() {
        check(
            doc! { "key": { "a": 1, "b": (-1) }, "name": "x", "unique": 1, "sparse": false },
            Ok(doc! {
                "v": 2, "unique": true, "key": { "a": 1, "b": (-1) }, "name": "x", "sparse": false,
            }),
        );
        check(
            doc! { "key": { "a": 1 }, "name": "x", "v": 1, "hidden": false, "dropDups": true, "max": 5 },
            Ok(doc! { "v": 1, "key": { "a": 1 }, "name": "x", "max": 5 }),
        );
        check(
            doc! { "key": { "_id": 1.0 }, "name": "x" },
            Ok(doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" }),
        );
        let normal = doc! {
            "v": 2, "key": { "p": 1, "_fts": "text", "_ftsx": 1 }, "name": "t",
            "weights": { "a": 5, "b": 1 }, "default_language": "english",
            "language_override": "language", "textIndexVersion": 3,
        };
        check(
            doc! { "key": { "p": 1, "b": "text", "a": "text" }, "name": "t", "weights": { "a": 5 } },
            Ok(normal.clone()),
        );
        check(normal.clone(), Ok(normal));
    }

    #[test]
    fn wrong_specifications_are_refused_with_their_code() {
        check(doc! { "name": "x" }, Err(9));
        check(doc! { "key": { "a": 1 } }, Err(9));
        check(doc! { "key": 5, "name": "x" }, Err(14));
        check(doc! { "key": { "a": 0 }, "name": "x" }, Err(67));
        check(doc! { "key": { "a": "foo" }, "name": "x" }, Err(67));
        check(doc! { "key": { "a..b": 1 }, "name": "x" }, Err(67));
        check(doc! { "key": { "a": "hashed" }, "name": "x" }, Err(67));
        check(doc! { "key": { "a": 1 }, "name": "x", "foo": 1 }, Err(197));
        check(
            doc! { "key": { "a": 1 }, "name": "x", "expireAfterSeconds": 1 },
            Err(67),
        );
        check(doc! { "key": { "a": 1 }, "name": "_id_" }, Err(2));
        check(doc! { "key": { "_id": (-1) }, "name": "x" }, Err(2));
        check(
            doc! { "key": { "_id": 1 }, "name": "x", "unique": true },
            Err(197),
        );
        check(doc! { "key": { "a": 1 }, "name": "x", "v": 3 }, Err(67));
        check(doc! { "key": { "a": 1 }, "name": "x", "v": 1.5 }, Err(2));
        check(doc! { "key": { "a": 1 }, "name": "x", "v": "2" }, Err(14));
        check(doc! { "key": { "a.$x": 1 }, "name": "x" }, Err(67));
        check(
            doc! { "key": { "a": 1 }, "name": "x", "hidden": 1 },
            Err(14),
        );
        check(
            doc! { "key": { "a": 1 }, "name": "x", "collation": { "locale": "en" } },
            Err(67),
        );
        check(
            doc! { "key": { "a": "text", "b": 1, "c": "text" }, "name": "x" },
            Err(67),
        );
        check(
            doc! { "key": { "a": "text" }, "name": "x", "weights": { "a": 0 } },
            Err(67),
        );
    }
}
