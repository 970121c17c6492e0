//! Suggestions for searches with few results: similarly spelled words of the index, and the parts
//! of the query that match nothing.

use windrow_document::{ArrayBuf, Document, Value, ValueRef, array, doc};
use windrow_file_query::{INDEX_NAME, Query, TextMatch, TextMatchKind};

use crate::request::ParsedQuery;
use crate::source::DocumentSource;

/// Words that occur in at most this many documents may be misspelled.
const DOCUMENTS_RARE: i64 = 2;
/// A word that occurs in some documents is replaced only by one that is this many times as
/// frequent.
const TIMES_AS_FREQUENT: i64 = 20;
/// Shorter words are not compared, because too many others are similar.
const LETTERS_MIN: usize = 3;
/// Words of at least this length may differ by two edits.
const LETTERS_FOR_TWO_EDITS: usize = 6;
/// The maximum number of words of a query that are compared.
const WORDS_MAX: usize = 20;

/// Returns the query with similar words instead of those that no or few documents contain. Returns
/// `None` if there are no such words.
pub fn suggest_query<S: DocumentSource>(
    source: &mut S,
    parsed: &ParsedQuery,
) -> Result<Option<String>, S::Error> {
    let words = suggestable_words(&parsed.query);
    if words.is_empty() {
        return Ok(None);
    }
    let reply = source.first(&suggest_pipeline(&words))?;
    let reply = reply.as_ref().map(|reply| reply.as_document());
    let replies = reply.and_then(|reply| reply.get("suggest")?.as_array());
    let mut suggested = parsed.text.clone();
    let mut is_changed = false;
    for (word, reply) in words
        .iter()
        .zip(replies.into_iter().flat_map(|all| all.iter()))
    {
        let Some(reply) = reply.as_document() else {
            continue;
        };
        let Some(similar) = best_suggestion(&word.text, reply) else {
            continue;
        };
        // Other forms of the word, and other fields, also match documents.
        let query = Query::Text((*word).clone());
        let documents = source.count(&query.to_operator())?;
        if documents <= DOCUMENTS_RARE && is_better(&similar, documents) {
            suggested = replace_word(&suggested, &word.text, &similar.term);
            is_changed = true;
        }
    }
    Ok(is_changed.then_some(suggested))
}

/// Returns the distinct words of a query that may be misspelled.
fn suggestable_words(query: &Query) -> Vec<&TextMatch> {
    let mut words: Vec<&TextMatch> = Vec::new();
    for leaf in query.leaves() {
        let Query::Text(text) = leaf else {
            continue;
        };
        let is_word = matches!(text.kind, TextMatchKind::AnyForm | TextMatchKind::ThisForm)
            && text.text.chars().count() >= LETTERS_MIN;
        let is_known = words.iter().any(|known| known.text == text.text);
        if is_word && !is_known && words.len() < WORDS_MAX {
            words.push(text);
        }
    }
    words
}

fn suggest_pipeline(words: &[&TextMatch]) -> ArrayBuf {
    let words: ArrayBuf = words
        .iter()
        .map(|word| Value::from(word.text.as_str()))
        .collect();
    let suggest = doc! { "query": (words), "path": "text", "numSuggestions": 5 };
    array![{ "$searchMeta": { "index": INDEX_NAME, "suggest": (suggest) } }]
}

/// A similar word of the index.
#[derive(Debug, PartialEq)]
struct SimilarWord {
    term: String,
    edits: i64,
    documents: i64,
}

/// Returns the best replacement of a word: the one with the fewest edits, and among these the most
/// frequent one.
fn best_suggestion(word: &str, reply: Document<'_>) -> Option<SimilarWord> {
    let documents = reply.get("documents").and_then(ValueRef::as_whole);
    if documents.unwrap_or(0) > DOCUMENTS_RARE {
        return None;
    }
    let edits_max = match word.chars().count() {
        0..LETTERS_FOR_TWO_EDITS => 1,
        _ => 2,
    };
    let suggestions = reply.get("suggestions")?.as_array()?.iter();
    let mut words = suggestions.filter_map(|one| {
        let one = one.as_document()?;
        Some(SimilarWord {
            term: one.get("term")?.as_str()?.to_owned(),
            edits: one.get("edits")?.as_whole()?,
            documents: one.get("documents")?.as_whole()?,
        })
    });
    words.find(|similar| similar.edits <= edits_max)
}

/// Returns `true` if a word is frequent enough to replace one that occurs in some documents.
fn is_better(similar: &SimilarWord, documents: i64) -> bool {
    documents == 0 || (similar.edits == 1 && similar.documents >= documents * TIMES_AS_FREQUENT)
}

/// Replaces all whole-word occurrences of a word.
fn replace_word(query: &str, word: &str, by: &str) -> String {
    let (mut replaced, mut rest) = (String::new(), query);
    while let Some(at) = rest.find(word).filter(|_| !word.is_empty()) {
        let (before, found) = rest.split_at(at);
        let behind = found.get(word.len()..).unwrap_or_default();
        replaced.push_str(before);
        let joins = |it: Option<char>| it.is_some_and(char::is_alphanumeric);
        let is_part = joins(replaced.chars().next_back()) || joins(behind.chars().next());
        replaced.push_str(if is_part { word } else { by });
        rest = behind;
    }
    replaced.push_str(rest);
    replaced
}

/// Returns a sentence about why nothing was found.
pub fn explain_nothing<S: DocumentSource>(
    source: &mut S,
    query: &Query,
) -> Result<String, S::Error> {
    let mut missing = Vec::new();
    let leaves = query.leaves();
    for leaf in leaves.iter().take(WORDS_MAX) {
        if source.count(&leaf.to_operator())? == 0 {
            missing.push(leaf.to_string());
        }
    }
    if !missing.is_empty() {
        return Ok(format!("no document has {}", missing.join(", or ")));
    }
    let is_exclusion = |part: &Query| matches!(part, Query::Not(_));
    if let Query::All(parts) = query
        && parts.iter().any(is_exclusion)
    {
        let wanted = parts.iter().filter(|part| !is_exclusion(part));
        let wanted = Query::All(wanted.cloned().collect());
        let count = source.count(&wanted.to_operator())?;
        if count > 0 {
            return Ok(format!(
                "the query excludes all {count} documents that match the rest of it"
            ));
        }
    }
    Ok("documents have each part of the query, but none has all of them".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_file_query::QueryContext;

    #[test]
    fn words_are_replaced_as_a_whole() {
        let cases = [
            ("cofee -cofees title:cofee", "coffee -cofees title:coffee"),
            ("\"cofee\" (cofee)", "\"coffee\" (coffee)"),
            ("ecofee cofee", "ecofee coffee"),
        ];
        for (query, expected) in cases {
            assert_eq!(replace_word(query, "cofee", "coffee"), expected);
        }
    }

    #[test]
    fn single_words_may_be_misspelled() {
        let query = "cofee OR from:Ada \"a phrase\" wild* ~like no -not ext:txt cofee free-range";
        let query = Query::parse(query, &QueryContext::default()).unwrap();
        let words = suggestable_words(&query);
        let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(words, ["cofee", "Ada"]);
    }

    #[test]
    fn the_closest_word_is_suggested() {
        let reply = |documents: i64, edits: i64| {
            let one = doc! { "term": "coffee", "edits": (edits), "documents": 90 };
            doc! { "documents": (documents), "suggestions": [(one)] }
        };
        let found = |word: &str, documents, edits| {
            best_suggestion(word, reply(documents, edits).as_document()).map(|one| one.term)
        };
        let coffee = Some("coffee".to_owned());
        assert_eq!(found("cofee", 0, 1), coffee);
        assert_eq!(found("cofee", 3, 1), None);
        assert_eq!(found("cofee", 0, 2), None);
        assert_eq!(found("cofeee", 0, 2), coffee);
        let similar = |edits| SimilarWord {
            term: String::new(),
            edits,
            documents: 90,
        };
        assert!(is_better(&similar(2), 0) && is_better(&similar(1), 2));
        assert!(!is_better(&similar(2), 1) && !is_better(&similar(1), 5));
    }
}
