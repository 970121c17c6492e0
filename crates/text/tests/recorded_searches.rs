//! Compares searches with recorded answers of a MongoDB server. The documents must be the same, and
//! the scores must be equal to the last bit.

use std::collections::BTreeMap;

use windrow_text::{DocumentTerms, Language, Matcher, Query, Sensitivity, TextVersion};

/// A string value of an indexed field, and the `_id` of its document.
struct Value {
    id: String,
    weight: f64,
    language: String,
    text: String,
}

/// Replaces the escapes of `recorded.txt`.
fn unescape(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.push(match characters.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('0') => '\0',
                other => other.unwrap(),
            }),
            _ => plain.push(character),
        }
    }
    plain
}

fn value(fields: &[&str]) -> Value {
    let [id, weight, language, text] = fields else {
        panic!("malformed value {fields:?}")
    };
    Value {
        id: id.to_string(),
        weight: weight.parse().unwrap(),
        language: language.to_string(),
        text: unescape(text),
    }
}

/// Returns the scores of the matching documents by `_id`, computed without an index.
fn search(values: &[Value], query: &Query) -> BTreeMap<String, f64> {
    let language = |value: &Value| Language::parse(&value.language, query.version()).unwrap();
    let mut ids: Vec<&str> = values.iter().map(|value| value.id.as_str()).collect();
    ids.dedup();
    let mut found = BTreeMap::new();
    let mut matcher = Matcher::new(query);
    let mut terms = DocumentTerms::new(query.version());
    for id in ids {
        let values = || values.iter().filter(|value| value.id == id);
        terms.clear();
        values().for_each(|value| terms.add(&value.text, value.weight, language(value)));
        let scores: BTreeMap<&str, f64> = terms.iter().collect();
        let hits: Vec<f64> = query
            .terms()
            .iter()
            .filter_map(|term| scores.get(term.as_str()).copied())
            .collect();
        let is_match = !hits.is_empty()
            && matcher.matches(values().map(|value| (value.text.as_str(), language(value))));
        if is_match {
            found.insert(id.to_string(), hits.iter().sum::<f64>());
        }
    }
    found
}

fn check(values: &[Value], case: &[&str]) -> Result<(), String> {
    let [name, version, language, flags, text, hits @ ..] = case else {
        panic!("malformed case {case:?}")
    };
    let version = TextVersion::from_number(version.parse().unwrap()).unwrap();
    let language = Language::parse(language, version).unwrap();
    let sensitivity = Sensitivity {
        case: flags.contains('c'),
        diacritics: flags.contains('d'),
    };
    let query = Query::parse(&unescape(text), language, sensitivity, version);
    let expected: BTreeMap<String, f64> = hits
        .iter()
        .map(|hit| hit.rsplit_once('=').unwrap())
        .map(|(id, score)| (id.to_string(), score.parse().unwrap()))
        .collect();
    let found = search(values, &query);
    if found == expected {
        return Ok(());
    }
    Err(format!(
        "{name}: {text:?}\n  expected {expected:?}\n  found    {found:?}"
    ))
}

#[test]
fn searches_return_the_recorded_documents_and_scores() {
    let mut values = Vec::new();
    let mut failures = Vec::new();
    let mut cases_count = 0;
    for line in include_str!("recorded.txt").lines() {
        let (kind, rest) = line.split_once('\t').unwrap_or((line, ""));
        let fields: Vec<&str> = rest.split('\t').collect();
        match kind {
            "=" => values.clear(),
            "+" => values.push(value(&fields)),
            "?" => {
                cases_count += 1;
                failures.extend(check(&values, &fields).err());
            }
            _ => assert!(kind.starts_with('#'), "malformed line {line:?}"),
        }
    }
    assert!(cases_count > 1000, "only {cases_count} cases read");
    assert!(
        failures.is_empty(),
        "{} of {cases_count} failed\n{}",
        failures.len(),
        failures.join("\n")
    );
}
