//! Parses the synonym mappings of a definition
//! (<https://www.mongodb.com/docs/search/indexes/define-synonyms/>).

use windrow_document::{Document, ValueRef};
use windrow_mql::Error;

use super::super::mapping::SynonymMapping;
use super::analyzers::Analyzers;
use super::{analyzer_at, joined, malformed};

/// Parses the part `synonyms` of a definition.
pub(super) fn synonyms(
    definition: Document<'_>,
    analyzers: &Analyzers,
) -> Result<Vec<SynonymMapping>, Error> {
    let list = match definition.get("synonyms") {
        None => return Ok(Vec::new()),
        Some(ValueRef::Array(list)) => list,
        Some(_) => return Err(malformed("synonyms", "must be an array")),
    };
    let mut mappings: Vec<SynonymMapping> = Vec::new();
    for (number, element) in list.iter().enumerate() {
        let path = format!("synonyms[{number}]");
        let Some(element) = element.as_document() else {
            return Err(malformed(&path, "must be a document"));
        };
        let mapping = mapping(element, &path, analyzers)?;
        if mappings.iter().any(|other| other.name == mapping.name) {
            return Err(malformed(&path, "has the name of another synonym mapping"));
        }
        mappings.push(mapping);
    }
    Ok(mappings)
}

fn mapping(
    document: Document<'_>,
    path: &str,
    analyzers: &Analyzers,
) -> Result<SynonymMapping, Error> {
    known_options(document, path, &["name", "analyzer", "source"])?;
    let analyzer = analyzer_at(document, "analyzer", path, analyzers)?;
    let analyzer = analyzer.ok_or_else(|| malformed(&joined(path, "analyzer"), "is required"))?;
    let at = joined(path, "source");
    let Some(source) = document.get("source").and_then(|it| it.as_document()) else {
        return Err(malformed(&at, "must be {collection: <string>}"));
    };
    known_options(source, &at, &["collection"])?;
    Ok(SynonymMapping {
        name: required_string(document, "name", path)?,
        analyzer,
        collection: required_string(source, "collection", &at)?,
    })
}

fn known_options(document: Document<'_>, path: &str, known: &[&str]) -> Result<(), Error> {
    match document.iter().find(|(name, _)| !known.contains(name)) {
        None => Ok(()),
        Some((name, _)) => Err(malformed(&joined(path, name), "is not an option")),
    }
}

fn required_string(document: Document<'_>, option: &str, path: &str) -> Result<String, Error> {
    let found = document.get(option).and_then(ValueRef::as_str);
    let found = found.filter(|found| !found.is_empty());
    let missing = || malformed(&joined(path, option), "must be a string that is not empty");
    found.map(str::to_owned).ok_or_else(missing)
}
