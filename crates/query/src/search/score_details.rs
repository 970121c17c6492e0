//! The option `scoreDetails` of `$search`: explains the scores of the returned documents.
//!
//! Source: MongoDB's manual, "Return the Score Details". The descriptions are those of Lucene.

use windrow_document::{ArrayBuf, DocumentBuf, Value, doc};
use windrow_index::search::path_of;
use windrow_interrupt::Interrupt;
use windrow_invariant::Bug;
use windrow_search::{Explainer, Explanation, Hit, Query};

use super::query_printer::readable_with;
use super::source::IndexSource;
use crate::Error;
use crate::text::term_lists::TermLists;

/// Returns an explanation as `{$meta: "searchScoreDetails"}` shows it: `{value, description,
/// details}`.
pub fn to_document(explanation: &Explanation) -> DocumentBuf {
    let details = explanation.details.iter();
    let details: ArrayBuf = details.map(|one| Value::from(to_document(one))).collect();
    doc! {
        "value": (explanation.value),
        "description": (explanation.description.as_str()),
        "details": details,
    }
}

/// Returns the explanations of the scores of records, in the order of the records.
pub fn explain_hits(
    hits: &[Hit],
    explainer: &mut Explainer<'_, IndexSource<'_>>,
    lists: &TermLists,
    interrupt: &dyn Interrupt,
) -> Result<Vec<DocumentBuf>, Error> {
    // Lists can only be read forward.
    let mut in_order: Vec<(usize, &Hit)> = hits.iter().enumerate().collect();
    in_order.sort_by_key(|(_, hit)| hit.id);
    let mut found = vec![DocumentBuf::new(); hits.len()];
    for (at, hit) in in_order {
        interrupt.check()?;
        let explanation = explainer.explanation(hit.id);
        lists.check()?;
        let Some(mut explanation) = explanation else {
            let message = format!("record {} has a score that cannot be explained", hit.id);
            return Err(Bug::new(message).into());
        };
        explanation.value = hit.score;
        if let Some(slot) = found.get_mut(at) {
            *slot = to_document(&explanation);
        }
    }
    Ok(found)
}

/// Describes a query as MongoDB Search does: paths are preceded by the type of the field.
pub fn describe(query: &Query) -> String {
    match query {
        Query::Term { field, term } => {
            format!("{}:{}", lucene_field(field), String::from_utf8_lossy(term))
        }
        query => readable_with(query, &lucene_field).to_string(),
    }
}

fn lucene_field(field: &str) -> String {
    match path_of(field).split_once('\u{1}') {
        Some((path, multi)) => format!("$multi/{multi}/{path}"),
        None => format!("$type:string/{}", path_of(field)),
    }
}

/// The number of terms and other parts of queries whose explanations are computed together.
const PARTS_MAX: usize = 8_192;
/// The largest number of documents whose explanations are computed together.
const DOCUMENTS_MAX: usize = 128;

/// Returns the number of documents whose explanations are computed together. It is smaller for a
/// large query, because its explanations are large.
pub fn documents_together(query: &Query) -> usize {
    (PARTS_MAX / parts(query).max(1)).clamp(1, DOCUMENTS_MAX)
}

fn parts(query: &Query) -> usize {
    match query {
        Query::Boolean(boolean) => {
            let clauses = [&boolean.must, &boolean.should, &boolean.filter];
            clauses.into_iter().flatten().map(parts).sum()
        }
        Query::Boost { query, .. } => parts(query),
        Query::Phrase(phrase) => phrase.words.len(),
        Query::Fuzzy(fuzzy) => fuzzy.expansions,
        _ => 1,
    }
}
