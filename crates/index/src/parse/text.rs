//! The options of text indexes: fields, weights, languages and version.

use windrow_document::path::Path;
use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use windrow_mql::Error;
use windrow_text::{Language, TextVersion};

use super::cannot;
use super::key::check_path;
use crate::definition::{TextDefinition, TextField};

/// Returns the options of a text index. Fails with code 67 if an option is not valid.
pub(crate) fn definition(
    key: Document<'_>,
    specification: Document<'_>,
) -> Result<TextDefinition, Error> {
    let version = match specification.get("textIndexVersion") {
        None => TextVersion::V3,
        Some(value) => {
            // MongoDB ignores the fraction.
            let number = value.as_f64().map(|number| number.trunc() as i64);
            number
                .and_then(TextVersion::from_number)
                .ok_or_else(|| cannot("bad textIndexVersion".to_owned()))?
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
    if language_override.starts_with('$') || language_override.contains('.') {
        return Err(cannot("language_override is not valid".to_owned()));
    }
    check_stored_form(key, specification)?;
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
        positions: positions(specification, version)?,
    })
}

/// Returns whether the index stores positions: version 3 does unless `positions` is false.
fn positions(specification: Document<'_>, version: TextVersion) -> Result<bool, Error> {
    match specification.get("positions") {
        None => Ok(version == TextVersion::V3),
        Some(ValueRef::Bool(positions)) => Ok(positions),
        Some(_) => Err(cannot("positions must be a boolean".to_owned())),
    }
}

/// Fails with code 14 if a language option of an index without text is not a string. Such an index
/// ignores the languages, and it ignores the weights without a check.
pub(super) fn check_languages(specification: Document<'_>) -> Result<(), Error> {
    for name in ["default_language", "language_override"] {
        if let Some(other) = specification.get(name).filter(|it| it.as_str().is_none()) {
            let found = other.type_of().name();
            return Err(Error::type_mismatch(format!(
                "The field '{name}' must be a string, but got {found}"
            )));
        }
    }
    Ok(())
}

/// Checks a key in stored form, `{_fts: "text", _ftsx: 1}`, whose fields are named by the weights.
/// Fails with code 67 if the weights are missing or the key has other text fields.
fn check_stored_form(key: Document<'_>, specification: Document<'_>) -> Result<(), Error> {
    let names: Vec<&str> = key.iter().map(|(name, _)| name).collect();
    let Some(place) = names.iter().position(|name| *name == "_fts") else {
        return Ok(());
    };
    let is_text = |(name, value): &(&str, _)| *name != "_fts" && *value == ValueRef::String("text");
    let weights = specification.get("weights").and_then(ValueRef::as_document);
    if names.get(place + 1) != Some(&"_ftsx")
        || key.iter().any(|field| is_text(&field))
        || weights.is_none_or(Document::is_empty)
    {
        return Err(cannot(
            "the key {_fts: \"text\", _ftsx: 1} needs its weights, and no other text field"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Applies the option `weights` to the fields, and adds the fields that only it names. Fails with
/// code 67 if a weight is not from 1 to 99,999.
fn add_weights(specification: Document<'_>, weights: &mut Vec<(String, f64)>) -> Result<(), Error> {
    let given = match specification.get("weights") {
        None => return Ok(()),
        Some(ValueRef::Document(given)) => given.to_buf(),
        Some(ValueRef::String("$**")) => doc! { "$**": 1 },
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

/// Returns the key in stored form: `_fts` and `_ftsx` instead of the text fields.
pub(crate) fn stored_key(key: Document<'_>, is_text: bool) -> DocumentBuf {
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

/// Returns the weights sorted by field name, as MongoDB stores them.
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

/// Returns the options in stored form, including the defaults.
pub(crate) fn options(specification: Document<'_>, text: &TextDefinition) -> DocumentBuf {
    let language = specification
        .get("default_language")
        .and_then(ValueRef::as_str);
    doc! {
        "weights": (weights_document(text)),
        "default_language": (language.unwrap_or("english")),
        "language_override": (text.language_override.as_str()),
    }
}
