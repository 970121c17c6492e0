//! Synonyms: the documents of the collections that synonym mappings of an index name
//! (<https://www.mongodb.com/docs/search/synonyms/>).
//!
//! A search reads the collection of a mapping that it uses, so that a change counts for the next
//! search. Words and synonyms are compared as the analyzer of the mapping makes terms of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use windrow_document::{Document, ValueRef};
use windrow_index::search::{SearchDefinition, SynonymMapping};
use windrow_interrupt::Interrupt;
use windrow_search::PhraseWord;
use windrow_text::{SearchAnalyzer, SearchTokenizer};

use super::options::bad;
use crate::Error;
use crate::row::Row;
use crate::source::{Collections, Direction};

/// A word, or several that stand next to each other, as terms.
pub type TermSequence = Vec<Vec<u8>>;

/// The synonyms of one mapping.
#[derive(Debug, Default)]
pub struct SynonymMap {
    /// What each sequence of terms is replaced by.
    replacements: BTreeMap<TermSequence, BTreeSet<TermSequence>>,
    /// The length of the longest sequence.
    terms_max: usize,
}

/// A word of a query, or several, with what may stand there instead.
#[derive(Debug, PartialEq)]
pub struct Alternatives {
    /// The position of the first word, and that behind the last one.
    pub start: u32,
    pub end: u32,
    /// At least one sequence of terms.
    pub choices: Vec<TermSequence>,
}

/// Reads the synonyms of the mappings of an index, each once.
pub struct SynonymReader {
    collections: Arc<dyn Collections>,
    database: String,
    known: Mutex<BTreeMap<String, Arc<SynonymMap>>>,
}

impl SynonymReader {
    /// Creates a reader of the collections of a database.
    pub fn new(collections: Arc<dyn Collections>, database: String) -> SynonymReader {
        SynonymReader {
            collections,
            database,
            known: Mutex::default(),
        }
    }

    /// Returns the synonyms of a mapping. Fails if a document of its collection is malformed.
    pub fn read(
        &self,
        mapping: &SynonymMapping,
        interrupt: &dyn Interrupt,
    ) -> Result<Arc<SynonymMap>, Error> {
        if let Some(known) = self.known.lock().get(&mapping.name) {
            return Ok(known.clone());
        }
        let source = self
            .collections
            .source(&self.database, &mapping.collection)?;
        let mut records = source.records(Direction::Forward)?;
        let mut map = SynonymMap::default();
        let mut tokenizer = mapping.analyzer.tokenizer();
        while records.next()? {
            interrupt.check()?;
            let row = Row::from_record(records.id(), records.document_bytes());
            let document = row.document();
            map.add(document, &mut tokenizer).map_err(|what| {
                let id = document.get("_id").unwrap_or(ValueRef::Null);
                bad(format!(
                    "the synonym mapping {:?} has a malformed document with _id {id:?}: {what}",
                    mapping.name
                ))
            })?;
        }
        let map = Arc::new(map);
        self.known.lock().insert(mapping.name.clone(), map.clone());
        Ok(map)
    }
}

/// Returns the mapping with this name. Fails if there is none.
pub fn mapping_of<'d>(
    definition: &'d SearchDefinition,
    name: &str,
) -> Result<&'d SynonymMapping, Error> {
    let found = definition.synonyms.iter().find(|one| one.name == name);
    found.ok_or_else(|| bad(format!("the index has no synonym mapping {name:?}")))
}

/// Fails if a field has another analyzer than the mapping: its terms would be others.
pub fn check_analyzer(
    mapping: &SynonymMapping,
    path: &str,
    analyzer: &SearchAnalyzer,
) -> Result<(), Error> {
    if *analyzer == mapping.analyzer {
        return Ok(());
    }
    Err(bad(format!(
        "the field {path:?} has the analyzer \"{}\", and the synonym mapping {:?} has \"{}\": they must \
         be the same",
        analyzer.name(),
        mapping.name,
        mapping.analyzer.name()
    )))
}

impl SynonymMap {
    /// Adds a document. Fails with what is wrong with it.
    fn add(
        &mut self,
        document: Document<'_>,
        tokenizer: &mut SearchTokenizer,
    ) -> Result<(), String> {
        let mut terms = |field: &str| -> Result<Vec<TermSequence>, String> {
            let list = document.get(field).and_then(|value| value.as_array());
            let list = list.filter(|list| !list.is_empty());
            let wrong = || format!("\"{field}\" must be an array of strings that is not empty");
            let strings = list
                .ok_or_else(wrong)?
                .iter()
                .map(|one| one.as_str().ok_or_else(wrong));
            let sequences = strings.map(|text| text.map(|text| terms_of(text, tokenizer)));
            // A text of stop words has no terms.
            Ok(sequences
                .collect::<Result<Vec<TermSequence>, String>>()?
                .into_iter()
                .filter(|one| !one.is_empty())
                .collect())
        };
        let kind = document.get("mappingType").and_then(ValueRef::as_str);
        let synonyms = terms("synonyms")?;
        match kind {
            Some("equivalent") => {
                for one in &synonyms {
                    self.replace(one, &synonyms);
                }
            }
            Some("explicit") => {
                for one in &terms("input")? {
                    self.replace(one, &synonyms);
                }
            }
            _ => return Err("\"mappingType\" must be \"equivalent\" or \"explicit\"".to_owned()),
        }
        Ok(())
    }

    fn replace(&mut self, terms: &TermSequence, synonyms: &[TermSequence]) {
        self.terms_max = self.terms_max.max(terms.len());
        let replacements = self.replacements.entry(terms.clone()).or_default();
        replacements.extend(synonyms.iter().cloned());
    }

    /// Returns what may stand for the words of a query. The longest sequence that has synonyms
    /// counts.
    pub fn expand(&self, words: &[PhraseWord]) -> Vec<Alternatives> {
        let (mut expanded, mut at) = (Vec::new(), 0);
        while let Some(first) = words.get(at) {
            let longest = self.terms_max.min(words.len() - at);
            let found = (1..=longest).rev().find_map(|length| {
                let terms = words
                    .get(at..at + length)?
                    .iter()
                    .map(|word| word.term.clone());
                Some((
                    length,
                    self.replacements.get(&terms.collect::<TermSequence>())?,
                ))
            });
            let (length, choices) = match found {
                Some((length, choices)) => (length, choices.iter().cloned().collect()),
                None => (1, vec![vec![first.term.clone()]]),
            };
            let last = words.get(at + length - 1).unwrap_or(first);
            expanded.push(Alternatives {
                start: first.position,
                end: last.position + 1,
                choices,
            });
            at += length;
        }
        expanded
    }
}

fn terms_of(text: &str, tokenizer: &mut SearchTokenizer) -> TermSequence {
    let mut terms = TermSequence::new();
    tokenizer.tokens(text, &mut |token| {
        terms.push(token.term.as_bytes().to_vec())
    });
    terms
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{DocumentBuf, array, doc};

    fn map(documents: &[DocumentBuf]) -> Result<SynonymMap, String> {
        let analyzer = SearchAnalyzer::parse("lucene.english").unwrap();
        let (mut map, mut tokenizer) = (SynonymMap::default(), analyzer.tokenizer());
        for document in documents {
            map.add(document.as_document(), &mut tokenizer)?;
        }
        Ok(map)
    }

    fn words(text: &str) -> Vec<PhraseWord> {
        let words = text.split(' ').zip(0..);
        let word = |(word, position): (&str, u32)| PhraseWord {
            term: word.as_bytes().to_vec(),
            position,
        };
        words.map(word).collect()
    }

    fn shown(map: &SynonymMap, text: &str) -> Vec<Vec<String>> {
        let show = |terms: &TermSequence| String::from_utf8(terms.join(&b' ')).unwrap();
        let expanded = map.expand(&words(text)).into_iter();
        expanded
            .map(|it| it.choices.iter().map(show).collect())
            .collect()
    }

    #[test]
    fn the_longest_sequence_counts() {
        let map = map(&[
            doc! { "mappingType": "equivalent", "synonyms": ["cars", "vehicle"] },
            doc! { "mappingType": "equivalent", "synonyms": ["car park", "garage"] },
            doc! { "mappingType": "explicit", "input": ["beer"], "synonyms": ["brew", "pint of ale"] },
        ])
        .unwrap();
        assert_eq!(shown(&map, "car"), [["car", "vehicl"]]);
        assert_eq!(shown(&map, "car park"), [["car park", "garag"]]);
        assert_eq!(
            shown(&map, "beer car x"),
            [vec!["brew", "pint ale"], vec!["car", "vehicl"], vec!["x"]]
        );
        assert_eq!(shown(&map, "brew"), [["brew"]]);
        let expanded = map.expand(&words("x car park y"));
        let ranges: Vec<(u32, u32)> = expanded.iter().map(|it| (it.start, it.end)).collect();
        assert_eq!(ranges, [(0, 1), (1, 3), (3, 4)]);
    }

    #[test]
    fn malformed_documents_are_refused() {
        for document in [
            doc! { "synonyms": ["a"] },
            doc! { "mappingType": "similar", "synonyms": ["a"] },
            doc! { "mappingType": "equivalent" },
            doc! { "mappingType": "equivalent", "synonyms": (array![]) },
            doc! { "mappingType": "equivalent", "synonyms": ["a", 1] },
            doc! { "mappingType": "explicit", "synonyms": ["a"] },
        ] {
            assert!(
                map(std::slice::from_ref(&document)).is_err(),
                "{document:?}"
            );
        }
    }
}
