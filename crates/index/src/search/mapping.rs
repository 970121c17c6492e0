//! How the fields of documents are indexed.

use std::collections::BTreeMap;
use std::sync::Arc;

use windrow_text::{GramOptions, SearchAnalyzer};

/// The byte between a path and the name of a `multi` analyzer.
pub(super) const MULTI: char = '\u{1}';

/// How the fields of a document or subdocument are indexed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DocumentMapping {
    /// How fields are indexed that `fields` does not name, and those of their subdocuments. `None`
    /// if they are not indexed.
    pub dynamic: Option<Arc<FieldMapping>>,
    /// The named fields. A name with a dot means a field with that name, as MongoDB's static
    /// mappings have no dot notation.
    pub fields: BTreeMap<String, FieldMapping>,
}

/// The fields that a search can return alone: the option `storedSource`. `_id` is always among
/// them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredSource {
    /// All fields.
    All,
    /// The fields at these paths.
    Include(Vec<String>),
    /// All but the fields at these paths.
    Exclude(Vec<String>),
}

/// A synonym mapping of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct SynonymMapping {
    /// The name that queries use.
    pub name: String,
    /// The analyzer of the fields that it can be used with, which also makes terms of the synonyms.
    pub analyzer: SearchAnalyzer,
    /// The name of the collection with the synonyms, in the database of the index.
    pub collection: String,
}

/// How one field is indexed: each type that is set takes the values that it can.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldMapping {
    /// Strings as text.
    pub string: Option<StringMapping>,
    /// Strings by the beginnings of their words: the type `autocomplete`.
    pub autocomplete: Option<GramOptions>,
    /// Strings as one value.
    pub token: Option<Normalizer>,
    /// Strings as one value, for facets only.
    pub string_facet: bool,
    /// Numbers.
    pub number: Option<NumberMapping>,
    /// Numbers, for facets only.
    pub number_facet: Option<NumberMapping>,
    /// Dates.
    pub date: bool,
    /// Dates, for facets only.
    pub date_facet: bool,
    /// Booleans.
    pub boolean: bool,
    /// ObjectIds.
    pub object_id: bool,
    /// UUIDs.
    pub uuid: bool,
    /// GeoJSON objects.
    pub geo: Option<GeoMapping>,
    /// Subdocuments and arrays of them.
    pub document: Option<DocumentMapping>,
}

/// Which GeoJSON objects are indexed: the option `indexShapes` of the type `geo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeoMapping {
    /// Points.
    Points,
    /// Points, for all operators, and other shapes, for `geoShape`.
    PointsAndShapes,
}

/// The analysis of a string field.
#[derive(Clone, Debug, PartialEq)]
pub struct StringMapping {
    /// The analyzer of the documents.
    pub analyzer: SearchAnalyzer,
    /// The analyzer of queries.
    pub search_analyzer: SearchAnalyzer,
    /// What the entries have beside the terms.
    pub index_options: IndexOptions,
    /// `true` if scores depend on the length of the field.
    pub norms: bool,
    /// Longer strings are not indexed, in characters.
    pub ignore_above: Option<usize>,
    /// Other analyses of the same strings, with paths of their own.
    pub multi: Vec<MultiMapping>,
}

/// Another analysis of a string field.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiMapping {
    /// The name that queries use: `{value: "path", multi: "name"}`.
    pub name: String,
    /// The analysis. It has no `multi`.
    pub string: StringMapping,
}

/// What the entries of a string field have beside the terms: the option `indexOptions`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexOptions {
    /// Nothing: each term counts once.
    Docs,
    /// Frequencies.
    Freqs,
    /// Frequencies and positions. The options `positions` and `offsets`: highlights analyze the
    /// text again, so both store the same.
    #[default]
    Positions,
}

/// The option `normalizer` of the type `token`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Normalizer {
    /// The string as it is.
    #[default]
    None,
    /// In lower case.
    Lowercase,
}

/// The options of the types `number` and `numberFacet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberMapping {
    /// The option `indexIntegers`.
    pub integers: bool,
    /// The option `indexDoubles`.
    pub doubles: bool,
}

impl Default for NumberMapping {
    fn default() -> NumberMapping {
        NumberMapping {
            integers: true,
            doubles: true,
        }
    }
}

impl StringMapping {
    /// Returns the mapping with default options.
    pub fn new(analyzer: SearchAnalyzer, search_analyzer: SearchAnalyzer) -> StringMapping {
        StringMapping {
            analyzer,
            search_analyzer,
            index_options: IndexOptions::default(),
            norms: true,
            ignore_above: None,
            multi: Vec::new(),
        }
    }

    /// Returns the analysis with this name.
    pub fn multi(&self, name: &str) -> Option<&StringMapping> {
        let found = self.multi.iter().find(|one| one.name == name);
        found.map(|one| &one.string)
    }
}

impl FieldMapping {
    /// Returns the types that `dynamic: true` indexes.
    pub fn with_all_types(string: StringMapping) -> FieldMapping {
        FieldMapping {
            string: Some(string),
            number: Some(NumberMapping::default()),
            date: true,
            boolean: true,
            object_id: true,
            uuid: true,
            ..FieldMapping::default()
        }
    }

    /// Returns `true` if the field's strings are indexed as texts: by their words or by grams.
    pub(super) fn is_text(&self) -> bool {
        self.string.is_some() || self.autocomplete.is_some()
    }

    /// Returns the form in which the field's strings are values, if they are. If a field is a
    /// `token` and a `stringFacet`, the normalizer of the token counts for both.
    pub fn string_values(&self) -> Option<Normalizer> {
        self.token
            .or_else(|| self.string_facet.then_some(Normalizer::None))
    }

    /// Returns `true` if an integer, or another number, is a value of the field.
    pub(super) fn takes_number(&self, is_integer: bool) -> bool {
        let takes = |one: NumberMapping| {
            if is_integer {
                one.integers
            } else {
                one.doubles
            }
        };
        self.number.is_some_and(takes) || self.number_facet.is_some_and(takes)
    }
}

impl DocumentMapping {
    /// Returns how a field of the document is indexed.
    pub(super) fn named(&self, name: &str) -> Option<&FieldMapping> {
        let named = self.fields.get(name);
        named
            .or(self.dynamic.as_deref())
            .filter(|_| is_indexable(name))
    }

    /// Returns how the subdocuments of a field are indexed that `fields` does not name.
    pub(super) fn below(&self) -> DocumentMapping {
        DocumentMapping {
            dynamic: self.dynamic.clone(),
            fields: BTreeMap::new(),
        }
    }

    /// Returns how a path is indexed. If the names of fields have dots, several fields may have the
    /// path: the first one that the mappings name counts, otherwise `dynamic`.
    pub fn field(&self, path: &str) -> Option<&FieldMapping> {
        match self.named_field(path) {
            NamedField::Mapped(field) => Some(field),
            NamedField::Excluded => None,
            NamedField::Unnamed => {
                let is_indexable = path.split('.').all(is_indexable);
                self.dynamic.as_deref().filter(|_| is_indexable)
            }
        }
    }

    /// Looks up a path in the fields that the mappings name.
    fn named_field(&self, path: &str) -> NamedField<'_> {
        if let Some(field) = self.fields.get(path) {
            return NamedField::Mapped(field);
        }
        let mut found = NamedField::Unnamed;
        for (dot, _) in path.match_indices('.') {
            let (name, rest) = path.split_at(dot);
            let Some(field) = self.fields.get(name) else {
                continue;
            };
            let rest = rest.get(1..).unwrap_or_default();
            let inner = field.document.as_ref().and_then(|inner| inner.field(rest));
            if let Some(inner) = inner {
                return NamedField::Mapped(inner);
            }
            found = NamedField::Excluded;
        }
        found
    }

    /// Returns `true` if the entries of a document may depend on its top-level field `name`.
    pub(crate) fn reads(&self, name: &str) -> bool {
        self.named(name).is_some()
    }
}

/// The field that the mappings name for a path.
enum NamedField<'m> {
    /// No mapping names a field at the beginning of the path.
    Unnamed,
    /// A mapping names a field at the beginning of the path, and excludes the path.
    Excluded,
    /// How the path is indexed.
    Mapped(&'m FieldMapping),
}

/// Returns `true` if documents' fields of this name are indexed: MongoDB excludes names with a
/// dollar sign in front. A name with the byte between a path and a `multi` analyzer would be
/// confused with one.
fn is_indexable(name: &str) -> bool {
    !name.starts_with('$') && !name.contains(MULTI)
}
