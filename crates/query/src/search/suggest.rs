//! The collector `suggest` of `$searchMeta`, which MongoDB does not have: terms of the index with a
//! similar spelling, for "did you mean".
//!
//! ```text
//! { $searchMeta: { suggest: { query: ["cofee"], path: "text" } } }
//! { count: { lowerBound: 24000 },
//!   suggest: [{ query: "cofee", documents: 1,
//!               suggestions: [{ term: "coffee", edits: 1, documents: 90 }] }] }
//! ```

use windrow_document::{ArrayBuf, DocumentBuf, Value, ValueRef, doc};
use windrow_index::search::{StringMapping, TERM, prefix};
use windrow_interrupt::Interrupt;
use windrow_invariant::Bug;
use windrow_search::{CompileError, Postings, Source as _, SuggestOptions, suggest};

use super::OpenSearch;
use super::compile::words;
use super::options::{Options, bad, optional_number};
use super::source::IndexSource;
use crate::Error;
use crate::text::term_lists::TermLists;

/// A parsed `suggest`.
#[derive(Clone, Debug, PartialEq)]
pub struct SuggestRequest {
    words: Vec<String>,
    /// `true` if `query` is one string, which the analyzer splits.
    is_text: bool,
    path: String,
    options: SuggestOptions,
}

/// The largest number of words, because each is compared with many terms.
const WORDS_MAX: usize = 100;
const SUGGESTIONS_MAX: f64 = 100.0;
const EDITS_MAX: f64 = 2.0;

fn check_count(words: usize) -> Result<(), Error> {
    if words > WORDS_MAX {
        let message = format!("\"suggest.query\" must have at most {WORDS_MAX} words, not {words}");
        return Err(bad(message));
    }
    Ok(())
}

impl SuggestRequest {
    /// Parses the operand of `suggest`. Fails with 2 and a description of the error.
    pub fn parse(operand: ValueRef<'_>) -> Result<SuggestRequest, Error> {
        let options = Options::new("suggest", operand)?;
        options.check(&[
            "query",
            "path",
            "maxEdits",
            "prefixLength",
            "numSuggestions",
        ])?;
        let number = |name: &str, otherwise: f64, min: f64, max: f64| {
            let number = optional_number(&options, name)?.unwrap_or(otherwise);
            if (min..=max).contains(&number) && number.fract() == 0.0 {
                Ok(number)
            } else {
                Err(bad(format!(
                    "\"suggest.{name}\" must be a whole number from {min} to {max}"
                )))
            }
        };
        let words = options.strings("query")?;
        check_count(words.len())?;
        let path = options.string("path")?;
        let path = path.ok_or_else(|| bad("\"suggest.path\" is required".to_owned()))?;
        Ok(SuggestRequest {
            words,
            is_text: matches!(options.get("query"), Some(ValueRef::String(_))),
            path: path.to_owned(),
            options: SuggestOptions {
                count: number("numSuggestions", 5.0, 1.0, SUGGESTIONS_MAX)? as usize,
                edits: number("maxEdits", EDITS_MAX, 1.0, EDITS_MAX)? as u8,
                prefix: number("prefixLength", 1.0, 0.0, f64::from(i32::MAX))? as usize,
            },
        })
    }

    /// Returns the suggestions for each word, in order: those of the text, or of the list. A word
    /// of the list that the analyzer splits has none.
    pub fn suggestions(
        &self,
        search: &OpenSearch,
        interrupt: &dyn Interrupt,
    ) -> Result<ArrayBuf, Error> {
        let field = search.definition.field(&self.path);
        let Some(mapping) = field.and_then(|field| field.string.as_ref()) else {
            return Err(bad(format!(
                "Cannot suggest terms of field \"{}\" because it was not indexed as a \"string\" field.",
                self.path
            )));
        };
        let mut all: Vec<String> = Vec::new();
        match self.words.as_slice() {
            [text] if self.is_text && words(text, mapping).len() > 1 => {
                let terms = words(text, mapping).into_iter();
                all.extend(terms.map(|word| String::from_utf8_lossy(&word.term).into_owned()));
            }
            words => all.extend_from_slice(words),
        }
        check_count(all.len())?;
        all.iter()
            .map(|word| {
                let shown = self.suggestions_of(word, mapping, search, interrupt)?;
                Ok(Value::from(shown))
            })
            .collect()
    }

    fn suggestions_of(
        &self,
        word: &str,
        mapping: &StringMapping,
        search: &OpenSearch,
        interrupt: &dyn Interrupt,
    ) -> Result<DocumentBuf, Error> {
        let mut shown = doc! { "query": (word) };
        let terms = words(word, mapping);
        let ([only], field) = (terms.as_slice(), prefix(&self.path, TERM)) else {
            shown.push("suggestions", ArrayBuf::new());
            return Ok(shown);
        };
        let lists = TermLists::default();
        let source = IndexSource::new(&*search.source, search.number, &lists, interrupt);
        let own = source.postings(&field, &only.term)?;
        let documents = own.map_or(0, |mut list| list.count_at_most());
        let term = String::from_utf8_lossy(&only.term);
        let open = || source.terms(&field).map_err(CompileError::Source);
        let found = match suggest(&term, self.options, open, interrupt) {
            Ok(found) => Ok(found),
            Err(CompileError::Source(error)) => return Err(error),
            Err(CompileError::Interrupted(interrupted)) => Err(interrupted),
            Err(other) => return Err(Bug::new(format!("a suggestion failed: {other}")).into()),
        };
        let found = lists.result(found)?.into_iter();
        let suggestions: ArrayBuf = found
            .map(|one| {
                Value::from(doc! {
                    "term": (String::from_utf8_lossy(&one.term).into_owned()),
                    "edits": (i32::from(one.edits)),
                    "documents": (one.records as i64),
                })
            })
            .collect();
        shown.push("documents", documents as i64);
        shown.push("suggestions", suggestions);
        Ok(shown)
    }
}
