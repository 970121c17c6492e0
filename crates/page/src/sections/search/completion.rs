//! Completions of a query: fields, saved searches and indexed words.

use serde_json::{Value, json};
use windrow_file_query::Field;
use windrow_file_search::SavedSearches;

use crate::error::PageError;
use crate::request::Request;
use crate::response::Response;
use crate::texts::search as texts;

/// The path of completions.
pub const COMPLETION_PATH: &str = "/search/complete";
/// The maximum number of completions.
const COUNT_MAX: usize = 8;
/// The field whose values are completed from a fixed list.
const KINDS: &str = "kind";

/// Returns the completions of the last word of a query, as JSON.
///
/// # Errors
/// Fails if the saved searches cannot be read.
pub fn complete(request: &Request) -> Result<Response, PageError> {
    let saved = SavedSearches::open(&request.site().services.data_folder)?;
    let names: Vec<&str> = saved.iter().map(|(name, _)| name).collect();
    let offers = completions(request.query().text("q"), &names);
    let all: Vec<Value> = offers
        .iter()
        .map(
            |offer| json!({ "query": offer.query, "shown": offer.shown, "meaning": offer.meaning }),
        )
        .collect();
    Ok(Response::json(&Value::from(all)))
}

/// A completed query.
#[derive(Debug, PartialEq, Eq)]
struct Completion {
    query: String,
    shown: String,
    meaning: String,
}

fn completions(query: &str, saved: &[&str]) -> Vec<Completion> {
    let start = query.rfind([' ', '(']).map_or(0, |at| at + 1);
    let (before, word) = query.split_at(start);
    let (sign, word) = match word.strip_prefix('-') {
        Some(word) => ("-", word),
        None => ("", word),
    };
    if word.is_empty() || before.matches('"').count() % 2 == 1 {
        return Vec::new();
    }
    let offer = |shown: String, meaning: &str| Completion {
        query: format!("{before}{sign}{shown}"),
        shown,
        meaning: meaning.to_owned(),
    };
    if let Some(name) = word.strip_prefix('@') {
        let found = saved.iter().filter(|known| known.starts_with(name));
        return found
            .take(COUNT_MAX)
            .map(|known| offer(format!("@{known}"), ""))
            .collect();
    }
    if let Some((field, value)) = word.split_once(':') {
        if field != KINDS {
            return Vec::new();
        }
        let kinds = texts::kinds().filter(|(kind, _)| kind.starts_with(value) && *kind != value);
        return kinds
            .take(COUNT_MAX)
            .map(|(kind, shown)| offer(format!("{field}:{kind}"), shown))
            .collect();
    }
    let fields = Field::names().filter(|name| name.starts_with(word));
    fields
        .take(COUNT_MAX)
        .map(|name| offer(format!("{name}:"), texts::field(name)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, expected: &[&str]) {
        let found: Vec<String> = completions(query, &["mine", "more"])
            .into_iter()
            .map(|it| it.query)
            .collect();
        assert_eq!(found, expected, "{query}");
    }

    #[test]
    fn the_last_word_is_completed() {
        check("cake auth", &["cake author:"]);
        check("-ti", &["-title:"]);
        check("a (fil", &["a (filename:"]);
        check("@m", &["@mine", "@more"]);
        check("kind:ma", &["kind:markdown", "kind:mail", "kind:manual"]);
        check("\"title", &[]);
        check("cake ", &[]);
        check("ext:p", &[]);
    }
}
