//! Search indexes: what they map, the keys of their entries, and the entries of a document
//! (<https://www.mongodb.com/docs/search/indexes/define-field-mappings/>).
//!
//! - [`SearchDefinition`]: the mappings and analyzers of a search index, with
//!   [`SearchDefinition::field`], which tells how a path is indexed.
//! - [`append_term_key`] and others: the keys.
//!
//! The specification of a search index as an index of a collection:
//!
//! ```text
//! {v: 2, key: {_search: "search"}, name: "$search." + name + "." + version,
//!  searchIndex: {id: ObjectId, name: string, version: int, createdAt: date, analysis: int,
//!                definition: {…}}}
//! ```
//!
//! `analysis` is the [version of the analyzers](windrow_text::ANALYSIS_VERSION) that made the
//! entries. Clients see the document `searchIndex` only. Names of other indexes cannot begin with
//! `$search.`, so a search index and another index may have one name. An update builds an index
//! with the next version, then removes the old one.

mod entries;
mod geo;
mod key_numbers;
mod keys;
mod mapping;
mod parse;
mod path_entries;
mod values;

use windrow_document::{Document, DocumentBuf, ObjectId};
use windrow_mql::Error;
use windrow_text::ANALYSIS_VERSION;

use entries::LANGUAGE_FIELD;
pub(crate) use entries::SearchScratch;
pub use entries::{is_uuid, language_of};
pub use keys::{
    EXISTS, POINT, SHAPE, TERM, TERM_BYTES_MAX, VALUE, VALUE_STRING_BYTES_MAX, append_cell_key,
    append_exists_key, append_prefix, append_term_key, append_value_key, autocomplete_path,
    multi_path, path_of, prefix,
};
pub use mapping::{
    DocumentMapping, FieldMapping, GeoMapping, IndexOptions, MultiMapping, Normalizer,
    NumberMapping, StoredSource, StringMapping, SynonymMapping,
};
pub use path_entries::VALUE_GAP;

/// The beginning of the names that search indexes have among the indexes of a collection.
pub const NAME_PREFIX: &str = "$search.";

/// The option of a specification that makes it one of a search index.
pub(crate) const OPTION: &str = "searchIndex";

/// The parsed form of a search index.
#[derive(Clone, Debug)]
pub struct SearchDefinition {
    /// The name that clients use.
    pub name: String,
    /// The id that the server gave to the index.
    pub id: ObjectId,
    /// The number of the definition: 0 for the first, one more after each update.
    pub version: i32,
    /// The time of the definition, in milliseconds since 1970.
    pub created_at: i64,
    /// The version of the analyzers that make the entries. 0 for indexes that were built before
    /// there were versions.
    pub analysis: i32,
    /// The mappings of the fields of documents.
    pub mappings: DocumentMapping,
    /// The synonym mappings.
    pub synonyms: Vec<SynonymMapping>,
    /// The fields that a search can return alone, if it can.
    pub stored_source: Option<StoredSource>,
    /// The definition as the client gave it.
    pub source: DocumentBuf,
}

impl SearchDefinition {
    /// Parses the definition that a client gave.
    ///
    /// Fails with code 9 or 2 if it is not valid, and with code 238 if it asks for what is not
    /// supported.
    pub fn parse(
        name: &str,
        id: ObjectId,
        version: i32,
        created_at: i64,
        definition: Document<'_>,
    ) -> Result<SearchDefinition, Error> {
        parse::check_name(name)?;
        let parsed = parse::parse(definition)?;
        Ok(SearchDefinition {
            name: name.to_owned(),
            id,
            version,
            created_at,
            analysis: ANALYSIS_VERSION,
            mappings: parsed.mappings,
            synonyms: parsed.synonyms,
            stored_source: parsed.stored_source,
            source: definition.to_buf(),
        })
    }

    /// Returns `true` if the entries were made by analyzers of another version. The index must be
    /// built again: the tokens of a query may not be those of the entries.
    pub fn is_outdated(&self) -> bool {
        self.analysis != ANALYSIS_VERSION
    }

    /// Returns the same definition for a build by the analyzers that are in force, as the next
    /// version of the index.
    pub fn renewed(&self) -> SearchDefinition {
        SearchDefinition {
            version: self.version.saturating_add(1),
            analysis: ANALYSIS_VERSION,
            ..self.clone()
        }
    }

    /// Returns `true` if the entries of a document may depend on this field. Its language decides
    /// its stems, whether a mapping names the field or not.
    pub(crate) fn reads(&self, name: &str) -> bool {
        name == LANGUAGE_FIELD || self.mappings.reads(name)
    }

    /// Returns how a path is indexed, or `None` if it is not.
    ///
    /// ```
    /// use windrow_document::{ObjectId, doc};
    /// use windrow_index::search::SearchDefinition;
    /// use windrow_text::SearchAnalyzer;
    ///
    /// let source = doc! { "mappings": { "dynamic": true }, "analyzer": "lucene.english" };
    /// let id = ObjectId([0; 12]);
    /// let search = SearchDefinition::parse("default", id, 0, 0, source.as_document()).unwrap();
    /// let field = search.field("title.en").unwrap();
    /// let english = SearchAnalyzer::parse("lucene.english").unwrap();
    /// assert_eq!(field.string.as_ref().unwrap().analyzer, english);
    /// ```
    pub fn field(&self, path: &str) -> Option<&FieldMapping> {
        self.mappings.field(path)
    }
}
