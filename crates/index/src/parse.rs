//! From MongoDB's index specification to a definition, and the normal form that `listIndexes` shows.

use windrow_document::path::Path;
use windrow_document::{Document, DocumentBuf, Value, ValueRef, doc};
use windrow_mql::Error;
use windrow_mql::filter::Filter;
use windrow_text::{Language, TextVersion};

use crate::definition::{Definition, KeyField, KeyKind, TextDefinition, TextField};

const CANNOT_CREATE: i32 = 67;
const INVALID_OPTION: i32 = 197;

/// Options that are known; those which are not honoured yet are refused by name.
const OPTIONS: &[&str] = &[
    "background",
    "default_language",
    "dropDups",
    "hidden",
    "key",
    "language_override",
    "name",
    "ns",
    "partialFilterExpression",
    "sparse",
    "textIndexVersion",
    "unique",
    "v",
    "weights",
];
const UNSUPPORTED: &[&str] = &[
    "2dsphereIndexVersion",
    "bits",
    "bucketSize",
    "coarsestIndexedLevel",
    "collation",
    "expireAfterSeconds",
    "finestIndexedLevel",
    "max",
    "min",
    "prepareUnique",
    "storageEngine",
    "wildcardProjection",
];

fn cannot(message: String) -> Error {
    Error::new(CANNOT_CREATE, message)
}

impl Definition {
    /// Parses a specification: `{key: …, name: …, options…}`.
    pub fn parse(specification: Document<'_>) -> Result<Definition, Error> {
        check_options(specification)?;
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
            Some(text_of(key, specification)?)
        } else {
            None
        };
        let specification = normal_form(specification, key, &name, text.as_ref());
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

fn check_options(specification: Document<'_>) -> Result<(), Error> {
    for (name, _) in specification {
        if UNSUPPORTED.contains(&name) {
            return Err(cannot(format!(
                "the index option '{name}' is not supported"
            )));
        }
        if !OPTIONS.contains(&name) {
            return Err(Error::new(
                INVALID_OPTION,
                format!("The field '{name}' is not valid for an index specification"),
            ));
        }
    }
    Ok(())
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

fn flag_of(specification: Document<'_>, name: &str) -> Result<bool, Error> {
    match specification.get(name) {
        None => Ok(false),
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
        Some(ValueRef::Document(filter)) => Filter::parse(filter).map(Some),
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
    if name.split('.').any(|part| part.starts_with('$')) {
        return Err(cannot(format!(
            "Index key contains an illegal field name '{name}'"
        )));
    }
    Ok(())
}

fn text_of(key: Document<'_>, specification: Document<'_>) -> Result<TextDefinition, Error> {
    let version = match specification.get("textIndexVersion") {
        None => TextVersion::V3,
        Some(value) => {
            let number = value.as_whole().and_then(TextVersion::from_number);
            number.ok_or_else(|| cannot("bad textIndexVersion".to_owned()))?
        }
    };
    let string = |name, usual: &str| match specification.get(name) {
        None => Ok(usual.to_owned()),
        Some(ValueRef::String(text)) if !text.is_empty() => Ok(text.to_owned()),
        Some(_) => Err(cannot(format!("{name} must be a non-empty string"))),
    };
    let language = string("default_language", "english")?;
    let default_language = Language::parse(&language, version)
        .map_err(|_| cannot("default_language is not valid".to_owned()))?;
    let language_override = string("language_override", "language")?;
    if language_override.starts_with('$') {
        return Err(cannot("language_override is not valid".to_owned()));
    }
    let mut weights: Vec<(String, f64)> = Vec::new();
    let is_text = |name: &str, value| name != "_fts" && value == ValueRef::String("text");
    for (name, _) in key.iter().filter(|(name, value)| is_text(name, *value)) {
        weights.push((name.to_owned(), 1.0));
    }
    add_weights(specification, &mut weights)?;
    let wildcard = weights
        .iter()
        .find(|(name, _)| name == "$**")
        .map(|(_, weight)| *weight);
    let mut fields: Vec<TextField> = Vec::new();
    for (name, weight) in weights.iter().filter(|(name, _)| name != "$**") {
        check_path(name)?;
        fields.push(TextField {
            path: Path::parse(name),
            weight: *weight,
        });
    }
    Ok(TextDefinition {
        fields,
        wildcard_weight: wildcard,
        default_language,
        language_override,
        version,
    })
}

fn add_weights(specification: Document<'_>, weights: &mut Vec<(String, f64)>) -> Result<(), Error> {
    let given = match specification.get("weights") {
        None => return Ok(()),
        Some(ValueRef::Document(given)) => given.to_buf(),
        Some(ValueRef::String(name)) => doc! { name: 1 },
        Some(_) => {
            return Err(cannot(
                "text index option 'weights' must be an object".to_owned(),
            ));
        }
    };
    for (name, value) in given.iter() {
        let weight = value
            .as_f64()
            .filter(|weight| (1.0..100_000.0).contains(weight));
        let Some(weight) = weight else {
            return Err(cannot(
                "text index weight must be in the exclusive interval (0,100000)".to_owned(),
            ));
        };
        let weight = weight.trunc();
        match weights.iter_mut().find(|(known, _)| known == name) {
            Some(known) => known.1 = weight,
            None => weights.push((name.to_owned(), weight)),
        }
    }
    Ok(())
}

/// The key as it is stored: text fields as `_fts` and `_ftsx`.
fn stored_key(key: Document<'_>, is_text: bool) -> DocumentBuf {
    let mut stored = DocumentBuf::new();
    let mut seen_text = false;
    for (name, value) in key {
        if is_text && value == ValueRef::String("text") {
            if !seen_text {
                stored.push("_fts", "text");
                stored.push("_ftsx", 1);
            }
            seen_text = true;
        } else {
            stored.push(name, value);
        }
    }
    stored
}

fn normal_form(
    specification: Document<'_>,
    key: Document<'_>,
    name: &str,
    text: Option<&TextDefinition>,
) -> DocumentBuf {
    let already_stored = key.contains("_fts");
    let stored = stored_key(key, text.is_some() && !already_stored);
    let mut normal = doc! { "v": 2, "key": stored, "name": name };
    for (option, value) in specification {
        let kept = matches!(
            option,
            "unique" | "sparse" | "partialFilterExpression" | "background"
        ) || option == "hidden" && value.is_truthy();
        let wanted = !matches!(option, "unique" | "sparse") || value.is_truthy();
        if kept && wanted {
            let flag = matches!(option, "unique" | "sparse" | "hidden" | "background");
            let value = if flag {
                Value::Bool(value.is_truthy())
            } else {
                value.to_value()
            };
            normal.push(option, value);
        }
    }
    if let Some(text) = text {
        normal.push("weights", weights_document(text));
        let language = specification
            .get("default_language")
            .and_then(ValueRef::as_str);
        normal.push("default_language", language.unwrap_or("english"));
        normal.push("language_override", text.language_override.as_str());
        normal.push("textIndexVersion", text.version.number());
    }
    normal
}

/// Weights by field name in order, as MongoDB stores them.
fn weights_document(text: &TextDefinition) -> DocumentBuf {
    let mut weights: Vec<(String, i32)> = text
        .fields
        .iter()
        .map(|field| (field.path.to_string(), field.weight as i32))
        .collect();
    weights.extend(
        text.wildcard_weight
            .map(|weight| ("$**".to_owned(), weight as i32)),
    );
    weights.sort();
    let mut document = DocumentBuf::new();
    weights
        .into_iter()
        .for_each(|(name, weight)| document.push(&name, weight));
    document
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
            Ok(doc! { "v": 2, "key": { "a": 1, "b": (-1) }, "name": "x", "unique": true }),
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
