//! Parses the definitions of search indexes
//! (<https://www.mongodb.com/docs/search/indexes/index-definitions/>).
//!
//! Errors name the path within the definition. Code 9: the definition is malformed. Code 2: a value
//! is unknown. Code 238: Windrow does not support the value.

mod analyzers;
mod field_types;
mod stored_source;
mod synonyms;

use std::collections::BTreeMap;
use std::sync::Arc;

use windrow_document::{Document, ValueRef};
use windrow_mql::Error;
use windrow_text::SearchAnalyzer;

use analyzers::Analyzers;

use super::mapping::{DocumentMapping, FieldMapping, StoredSource, StringMapping, SynonymMapping};

/// MongoDB's `NotImplemented`.
const NOT_IMPLEMENTED: i32 = 238;
/// The maximum length of a name in bytes.
const NAME_BYTES_MAX: usize = 256;
/// Levels of `document` in a definition. The parser calls itself for each.
const DEPTH_MAX: usize = 100;

/// The parts of a definition.
const PARTS: &[&str] = &[
    "analyzer",
    "analyzers",
    "mappings",
    "numPartitions",
    "searchAnalyzer",
    "sort",
    "storedSource",
    "synonyms",
    "typeSets",
];

fn malformed(path: &str, what: &str) -> Error {
    Error::failed_to_parse(format!("\"{path}\" {what}"))
}

fn unsupported(path: &str, what: &str) -> Error {
    Error::new(
        NOT_IMPLEMENTED,
        format!("\"{path}\" {what} is not supported"),
    )
}

/// Fails if an index cannot have this name.
pub(super) fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() {
        return Err(Error::bad_value(
            "the name of a search index cannot be empty",
        ));
    }
    if name.contains('\0') {
        return Err(Error::bad_value(
            "the name of a search index cannot contain NUL bytes",
        ));
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(Error::bad_value(format!(
            "the name of a search index has {} bytes, the limit is {NAME_BYTES_MAX}",
            name.len()
        )));
    }
    Ok(())
}

/// The parts of a definition that all fields share.
struct Parser {
    /// The custom analyzers.
    analyzers: Analyzers,
    /// The analyzers of fields that name none.
    analyzer: SearchAnalyzer,
    search_analyzer: SearchAnalyzer,
    type_sets: BTreeMap<String, Arc<FieldMapping>>,
}

/// The parsed parts of a definition.
pub(super) struct ParsedDefinition {
    pub mappings: DocumentMapping,
    pub synonyms: Vec<SynonymMapping>,
    pub stored_source: Option<StoredSource>,
}

/// Parses a definition.
pub(super) fn parse(definition: Document<'_>) -> Result<ParsedDefinition, Error> {
    check_parts(definition)?;
    let analyzers = analyzers::analyzers(definition)?;
    let analyzer = analyzer_at(definition, "analyzer", "", &analyzers)?;
    let analyzer = analyzer.unwrap_or(SearchAnalyzer::Standard);
    let search_analyzer = analyzer_at(definition, "searchAnalyzer", "", &analyzers)?;
    let synonyms = synonyms::synonyms(definition, &analyzers)?;
    let mut parser = Parser {
        analyzers,
        search_analyzer: search_analyzer.unwrap_or_else(|| analyzer.clone()),
        analyzer,
        type_sets: BTreeMap::new(),
    };
    parser.type_sets = parser.type_sets(definition)?;
    match definition.get("mappings") {
        Some(ValueRef::Document(mappings)) => Ok(ParsedDefinition {
            mappings: parser.document(mappings, "mappings", 0)?,
            synonyms,
            stored_source: stored_source::stored_source(definition)?,
        }),
        Some(_) => Err(malformed("mappings", "must be a document")),
        None => Err(malformed("mappings", "is required")),
    }
}

/// Fails if the definition has parts that are unknown or not supported. Those that are empty or
/// have their default change nothing.
fn check_parts(definition: Document<'_>) -> Result<(), Error> {
    for (name, value) in definition {
        let is_empty = value.as_array().is_some_and(|list| list.is_empty());
        match name {
            "sort" if !is_empty => {
                return Err(unsupported(name, "of a search index"));
            }
            "numPartitions" if value.as_whole() != Some(1) => {
                return Err(unsupported(name, "other than 1"));
            }
            name if !PARTS.contains(&name) => {
                return Err(malformed(
                    name,
                    "is not a part of a search index definition",
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Parses the name of an analyzer.
fn analyzer_at(
    document: Document<'_>,
    option: &str,
    path: &str,
    custom: &Analyzers,
) -> Result<Option<SearchAnalyzer>, Error> {
    let path = joined(path, option);
    match document.get(option) {
        None => Ok(None),
        Some(ValueRef::String(name)) => match SearchAnalyzer::parse(name) {
            Some(analyzer) => Ok(Some(analyzer)),
            None if custom.contains_key(name) => Ok(custom.get(name).cloned()),
            None if name.starts_with("lucene.") => {
                Err(unsupported(&path, &format!("analyzer \"{name}\"")))
            }
            None => Err(Error::bad_value(format!(
                "\"{path}\" unknown analyzer \"{name}\""
            ))),
        },
        Some(_) => Err(malformed(&path, "must be a string")),
    }
}

/// Appends a name to a path within the definition.
fn joined(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

impl Parser {
    /// Parses `mappings` or a field of type `document`, of which `type` is the only other option.
    fn document(
        &self,
        mapping: Document<'_>,
        path: &str,
        depth: usize,
    ) -> Result<DocumentMapping, Error> {
        if depth > DEPTH_MAX {
            let what = format!("is nested in more than {DEPTH_MAX} documents");
            return Err(malformed(path, &what));
        }
        let mut parsed = DocumentMapping::default();
        for (option, value) in mapping {
            let at = joined(path, option);
            match (option, value) {
                ("type", _) if depth > 0 => {}
                ("dynamic", value) => parsed.dynamic = self.dynamic(value, &at)?,
                ("fields", ValueRef::Document(fields)) => {
                    for (name, field) in fields {
                        let at = joined(&at, name);
                        let field = field_types::field(self, field, &at, depth)?;
                        parsed.fields.insert(name.to_owned(), field);
                    }
                }
                ("fields", _) => return Err(malformed(&at, "must be a document")),
                ("storedSource", _) => return Err(unsupported(&at, "of a field")),
                _ => return Err(malformed(&at, "is not an option of a document mapping")),
            }
        }
        Ok(parsed)
    }

    fn dynamic(&self, value: ValueRef<'_>, path: &str) -> Result<Option<Arc<FieldMapping>>, Error> {
        match value {
            ValueRef::Bool(false) => Ok(None),
            ValueRef::Bool(true) => {
                let string =
                    StringMapping::new(self.analyzer.clone(), self.search_analyzer.clone());
                Ok(Some(Arc::new(FieldMapping::with_all_types(string))))
            }
            ValueRef::Document(options) => {
                let name = options.get("typeSet").and_then(ValueRef::as_str);
                let name = name.filter(|_| options.count() == 1);
                let name = name.ok_or_else(|| malformed(path, "must be {typeSet: <name>}"))?;
                let known = self.type_sets.get(name).cloned();
                let unknown = || malformed(path, &format!("has an unknown type set \"{name}\""));
                known.ok_or_else(unknown).map(Some)
            }
            _ => Err(malformed(path, "must be a boolean or a document")),
        }
    }

    fn type_sets(
        &self,
        definition: Document<'_>,
    ) -> Result<BTreeMap<String, Arc<FieldMapping>>, Error> {
        let mut sets = BTreeMap::new();
        let all = match definition.get("typeSets") {
            None => return Ok(sets),
            Some(ValueRef::Array(all)) => all,
            Some(_) => return Err(malformed("typeSets", "must be an array")),
        };
        for (number, set) in all.iter().enumerate() {
            let path = format!("typeSets[{number}]");
            let Some(set) = set.as_document() else {
                return Err(malformed(&path, "must be a document"));
            };
            let name = set.get("name").and_then(ValueRef::as_str);
            let types = set.get("types").filter(|types| types.as_array().is_some());
            let (Some(name), Some(types), 2) = (name, types, set.count()) else {
                return Err(malformed(&path, "must be {name: <string>, types: <array>}"));
            };
            let field = field_types::types(self, types, &joined(&path, "types"))?;
            if sets.insert(name.to_owned(), Arc::new(field)).is_some() {
                return Err(malformed(&path, "has the name of another type set"));
            }
        }
        Ok(sets)
    }
}
