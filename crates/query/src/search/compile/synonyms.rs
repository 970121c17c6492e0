//! The option `synonyms` of the operators `text` and `phrase`, and phrases in which several words
//! may stand at a position.

use windrow_index::search::{TERM, prefix};
use windrow_search::{PhraseQuery, PhraseWord, Query};

use super::super::options::{SearchPath, bad};
use super::super::synonyms::{Alternatives, TermSequence, check_analyzer, mapping_of};
use super::{Compiler, TextField, all_or_any, one_of, words};
use crate::Error;

/// The largest number of phrases into which a phrase with synonyms is expanded.
const PHRASES_MAX: usize = 1_000;

/// Compiles a text with its synonyms for a field.
type CompileText<'c> = dyn Fn(&TextField<'_>, &[Alternatives]) -> Result<Query, Error> + 'c;

impl Compiler<'_> {
    /// Compiles `text` with synonyms.
    pub(super) fn text_with_synonyms(
        &self,
        texts: &[String],
        paths: &[SearchPath],
        synonyms: &str,
        needs_all: bool,
    ) -> Result<Query, Error> {
        self.with_synonyms(texts, paths, synonyms, &|field, alternatives| {
            let prefix = &prefix(&field.path, TERM);
            let clauses = alternatives.iter().map(|one| {
                let choices = one.choices.iter().map(|terms| sequence(prefix, terms));
                one_of(choices.collect())
            });
            Ok(all_or_any(clauses.collect(), needs_all))
        })
    }

    /// Compiles `phrase` with synonyms: to the phrases with each of them.
    pub(super) fn phrase_with_synonyms(
        &self,
        texts: &[String],
        paths: &[SearchPath],
        synonyms: &str,
        slop: u32,
    ) -> Result<Query, Error> {
        self.with_synonyms(texts, paths, synonyms, &|field, alternatives| {
            if alternatives.len() > 1 {
                field.check_positions()?;
            }
            one_of_phrases(field, alternatives, slop)
        })
    }

    /// Compiles each text for each field by `compile`.
    fn with_synonyms(
        &self,
        texts: &[String],
        paths: &[SearchPath],
        synonyms: &str,
        compile: &CompileText<'_>,
    ) -> Result<Query, Error> {
        let mapping = mapping_of(self.definition, synonyms)?;
        let map = self.facts.synonyms(mapping)?;
        let mut all = Vec::new();
        for field in self.text_fields(paths)? {
            check_analyzer(mapping, &field.path, &field.mapping.analyzer)?;
            for text in texts {
                let alternatives = map.expand(&words(text, field.mapping));
                let mut sequences = alternatives.iter().flat_map(|one| &one.choices);
                if sequences.any(|terms| terms.len() > 1) {
                    field.check_positions()?;
                }
                all.push(compile(&field, &alternatives)?);
            }
        }
        Ok(one_of(all))
    }
}

/// Returns a query for a phrase.
pub(super) fn phrase_query(
    field: &TextField<'_>,
    words: Vec<PhraseWord>,
    slop: u32,
) -> Result<Query, Error> {
    let at_positions = words.chunk_by(|one, other| field.are_alternatives(one, other));
    let at_positions: Vec<&[PhraseWord]> = at_positions.collect();
    if at_positions.len() == words.len() {
        let field = prefix(&field.path, TERM);
        return Ok(Query::Phrase(PhraseQuery { field, words, slop }));
    }
    let alternatives = at_positions.into_iter().filter_map(|words| {
        let position = words.first()?.position;
        Some(Alternatives {
            start: position,
            end: position + 1,
            choices: words.iter().map(|word| vec![word.term.clone()]).collect(),
        })
    });
    one_of_phrases(field, &alternatives.collect::<Vec<_>>(), slop)
}

fn one_of_phrases(
    field: &TextField<'_>,
    alternatives: &[Alternatives],
    slop: u32,
) -> Result<Query, Error> {
    let prefix = prefix(&field.path, TERM);
    let phrases = phrases(alternatives)?.into_iter().map(|words| {
        Query::Phrase(PhraseQuery {
            field: prefix.clone(),
            words,
            slop,
        })
    });
    Ok(one_of(phrases.collect()))
}

/// Returns a query for terms next to each other.
fn sequence(field: &str, terms: &TermSequence) -> Query {
    let field = field.to_owned();
    if let [term] = terms.as_slice() {
        let term = term.clone();
        return Query::Term { field, term };
    }
    let words = terms.iter().zip(0..);
    let words = words.map(|(term, position)| PhraseWord {
        term: term.clone(),
        position,
    });
    Query::Phrase(PhraseQuery {
        field,
        words: words.collect(),
        slop: 0,
    })
}

/// Returns the words of all phrases that the alternatives allow.
fn phrases(alternatives: &[Alternatives]) -> Result<Vec<Vec<PhraseWord>>, Error> {
    let mut phrases = vec![PartialPhrase::default()];
    let mut end = 0;
    for one in alternatives {
        // Stop words before it.
        let gap = one.start.saturating_sub(end);
        end = one.end;
        if phrases.len().saturating_mul(one.choices.len()) > PHRASES_MAX {
            return Err(bad(format!(
                "a phrase with its synonyms, or with several tokens at a position, is more than \
                 {PHRASES_MAX} phrases"
            )));
        }
        let longer = phrases
            .iter()
            .flat_map(|phrase| one.choices.iter().map(|terms| phrase.with(gap, terms)));
        phrases = longer.collect();
    }
    Ok(phrases.into_iter().map(|phrase| phrase.words).collect())
}

/// The beginning of a phrase.
#[derive(Clone, Default)]
struct PartialPhrase {
    words: Vec<PhraseWord>,
    /// The position of the next word.
    next: u32,
}

impl PartialPhrase {
    /// Returns the phrase with more terms, after a gap of `gap` positions.
    fn with(&self, gap: u32, terms: &TermSequence) -> PartialPhrase {
        let mut longer = self.clone();
        longer.next += gap;
        for term in terms {
            longer.words.push(PhraseWord {
                term: term.clone(),
                position: longer.next,
            });
            longer.next += 1;
        }
        longer
    }
}
