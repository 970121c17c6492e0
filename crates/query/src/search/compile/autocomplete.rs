//! Compiles `autocomplete`: a query for a field's grams that are equal to what was typed. Documents
//! whose words are equal to it have higher scores, if the field is also indexed as a string.

use windrow_index::search::{TERM, autocomplete_path, prefix};
use windrow_search::{BooleanQuery, Query};
use windrow_text::GramOptions;

use super::{Compiler, one_of, word_query};
use crate::Error;
use crate::search::operator::Fuzzy;
use crate::search::options::{SearchPath, bad};

impl Compiler<'_> {
    pub(super) fn autocomplete(
        &self,
        typed: &[String],
        path: &str,
        fuzzy: Option<Fuzzy>,
        is_sequential: bool,
    ) -> Result<Query, Error> {
        let options = self.definition.field(path);
        let Some(options) = options.and_then(|field| field.autocomplete.as_ref()) else {
            let message =
                format!("the field {path:?} is not indexed with the type \"autocomplete\"");
            return Err(bad(message));
        };
        if fuzzy.is_some_and(|fuzzy| fuzzy.prefix > options.max) {
            let message = format!(
                "\"fuzzy.prefixLength\" must not be above maxGrams of the field, {}",
                options.max
            );
            return Err(bad(message));
        }
        let field = prefix(&autocomplete_path(path), TERM);
        let grams = grams_of(options, typed, is_sequential).into_iter();
        let grams = grams.map(|gram| word_query(&field, gram.into_bytes(), fuzzy));
        let paths = [SearchPath::Field(path.to_owned())];
        let exact = if is_sequential {
            self.exact_phrases(typed, &paths)?
        } else {
            self.text(typed, &paths, None, false)?
        };
        Ok(Query::Boolean(BooleanQuery {
            must: vec![one_of(grams.collect())],
            should: if exact == Query::Nothing {
                Vec::new()
            } else {
                vec![exact]
            },
            ..BooleanQuery::default()
        }))
    }

    /// Returns the phrases of the texts, if the index has positions.
    fn exact_phrases(&self, texts: &[String], paths: &[SearchPath]) -> Result<Query, Error> {
        let fields = self.text_fields(paths)?;
        let has_positions = fields.iter().all(|field| field.has_positions());
        if has_positions {
            self.phrase(texts, paths, 0)
        } else {
            self.text(texts, paths, None, true)
        }
    }
}

/// Returns the grams to search for: those of the texts as a whole, and of each word unless the
/// words are sought together.
fn grams_of(options: &GramOptions, typed: &[String], is_sequential: bool) -> Vec<String> {
    let mut grams: Vec<String> = Vec::new();
    for text in typed {
        grams.push(options.query_term(text));
        if !is_sequential {
            options.analyzer.tokenizer().tokens(text, &mut |token| {
                grams.push(options.query_term(token.term));
            });
        }
    }
    grams.retain(|gram| !gram.is_empty());
    grams.sort_unstable();
    grams.dedup();
    grams
}
