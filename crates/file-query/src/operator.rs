//! Translates queries to operators of MongoDB's stage `$search`.
//! Source: <https://www.mongodb.com/docs/atlas/atlas-search/operators-and-collectors/>.

use std::ops::Bound;

use windrow_document::{ArrayBuf, DocumentBuf, Value, doc};

use crate::date::DateRange;
use crate::field::{TextField, TokenField};
use crate::index::{STEMS_ANALYZER, WHOLE_ANALYZER};
use crate::parser::is_one_token;
use crate::query::{Query, SizeRange, TextMatch, TextMatchKind};

/// The boost of titles. A word in a title is more significant than one in the text.
const TITLE_BOOST: f64 = 5.0;
/// The boost of file names. They are short, so each of their words scores high. Files without text
/// are found only by their names, and must not come before all texts.
const NAME_BOOST: f64 = 0.5;

impl Query {
    /// Returns the operator of the query for the stage `$search` on `files.documents`.
    pub fn to_operator(&self) -> DocumentBuf {
        match self {
            Query::All(parts) => all(parts),
            Query::Any(parts) => any(parts.iter().map(Query::to_operator)),
            Query::Not(part) => doc! { "compound": { "mustNot": [(part.to_operator())] } },
            Query::Text(text) => text.to_operator(),
            Query::Token { field, value } => token_operator(*field, value),
            Query::Date(range) => date_operator(*range),
            Query::Size(range) => size_operator(range),
        }
    }

    /// Returns an operator that requires at least `count` of the words that the query requires, and
    /// everything else. Returns `None` if the query has no more than `count` words.
    pub fn to_relaxed_operator(&self, count: usize) -> Option<DocumentBuf> {
        let Query::All(parts) = self else {
            return None;
        };
        let is_word = |part: &&Query| matches!(part, Query::Text(text) if text.field.is_none());
        let (words, others): (Vec<&Query>, Vec<&Query>) = parts.iter().partition(is_word);
        if count == 0 || count >= words.len() {
            return None;
        }
        let should: ArrayBuf = words
            .into_iter()
            .map(|it| Value::from(it.to_operator()))
            .collect();
        let mut compound = clauses(others);
        compound.push("should", should);
        compound.push("minimumShouldMatch", count as i64);
        Some(doc! { "compound": (compound) })
    }
}

fn all(parts: &[Query]) -> DocumentBuf {
    let compound = clauses(parts.iter().collect());
    doc! { "compound": (compound) }
}

/// Returns the clauses of a compound operator that matches all parts. Only parts that express
/// relevance contribute to the score.
fn clauses(parts: Vec<&Query>) -> DocumentBuf {
    let (mut must, mut filter, mut must_not) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        match part {
            Query::Not(part) => must_not.push(Value::from(part.to_operator())),
            Query::Token { .. } | Query::Date(_) | Query::Size(_) => {
                filter.push(Value::from(part.to_operator()));
            }
            Query::All(_) | Query::Any(_) | Query::Text(_) => {
                must.push(Value::from(part.to_operator()));
            }
        }
    }
    let mut compound = DocumentBuf::new();
    for (name, operators) in [("must", must), ("filter", filter), ("mustNot", must_not)] {
        if !operators.is_empty() {
            compound.push(name, operators.into_iter().collect::<ArrayBuf>());
        }
    }
    compound
}

fn any(operators: impl Iterator<Item = DocumentBuf>) -> DocumentBuf {
    let should: ArrayBuf = operators.map(Value::from).collect();
    doc! { "compound": { "should": (should), "minimumShouldMatch": 1 } }
}

/// The fields that a text is compared with.
#[derive(Clone, Copy)]
struct Paths {
    /// Fields that also have an index of stems.
    stemmed: &'static [&'static str],
    /// Fields without an index of stems.
    plain: &'static [&'static str],
}

impl Paths {
    const TITLES: Paths = Paths::stemmed(&["title", "subject"]);
    const OTHERS: Paths = Paths {
        stemmed: &["text"],
        plain: &["keywords", "author", "from", "to", "cc"],
    };
    const NAMES: Paths = Paths::plain(&["filename"]);

    const fn stemmed(paths: &'static [&'static str]) -> Paths {
        Paths {
            stemmed: paths,
            plain: &[],
        }
    }

    const fn plain(paths: &'static [&'static str]) -> Paths {
        Paths {
            stemmed: &[],
            plain: paths,
        }
    }

    fn from_field(field: TextField) -> Paths {
        match field {
            TextField::Title => Paths::stemmed(&["title"]),
            TextField::Subject => Paths::stemmed(&["subject"]),
            TextField::Author => Paths::plain(&["author", "from"]),
            TextField::From => Paths::plain(&["from"]),
            TextField::To => Paths::plain(&["to", "cc", "bcc"]),
            TextField::Album => Paths::plain(&["album"]),
            TextField::List => Paths::plain(&["list_id"]),
            TextField::Keyword => Paths::plain(&["keywords"]),
            TextField::Path => Paths::plain(&["path"]),
        }
    }

    /// Returns the paths for a kind of match. The index of stems has no positions, so only words in
    /// any form use it.
    fn for_kind(self, kind: TextMatchKind) -> ArrayBuf {
        let mut paths: Vec<Value> = self.stemmed.iter().map(|path| (*path).into()).collect();
        if kind == TextMatchKind::AnyForm {
            let stems = |path: &&str| doc! { "value": (*path), "multi": STEMS_ANALYZER }.into();
            paths.extend(self.stemmed.iter().map(stems));
        }
        paths.extend(self.plain.iter().map(|path| Value::from(*path)));
        paths.into_iter().collect()
    }
}

impl TextMatch {
    fn to_operator(&self) -> DocumentBuf {
        match self.field {
            Some(field) => self.to_operator_on(Paths::from_field(field)),
            None => {
                let titles = boosted(self.to_operator_on(Paths::TITLES), TITLE_BOOST);
                let names = boosted(self.to_operator_on(Paths::NAMES), NAME_BOOST);
                any([titles, self.to_operator_on(Paths::OTHERS), names].into_iter())
            }
        }
    }

    /// Returns the operator of the text or one of its synonyms.
    fn to_operator_on(&self, paths: Paths) -> DocumentBuf {
        let operator = |text: &str, kind: TextMatchKind| {
            TextMatch::build_operator(text, kind, paths.for_kind(kind))
        };
        let own = operator(&self.text, self.kind);
        if self.synonyms.is_empty() {
            return own;
        }
        let others = self.synonyms.iter().map(|synonym| {
            let kind = if is_one_token(synonym) {
                TextMatchKind::AnyForm
            } else {
                TextMatchKind::Phrase { slop: 0 }
            };
            operator(synonym, kind)
        });
        any(std::iter::once(own).chain(others))
    }

    fn build_operator(query: &str, kind: TextMatchKind, path: ArrayBuf) -> DocumentBuf {
        match kind {
            TextMatchKind::AnyForm | TextMatchKind::ThisForm => {
                doc! { "text": { "query": (query), "path": (path) } }
            }
            TextMatchKind::Similar => {
                // Short words may have one error, long ones two.
                let edits = if query.chars().count() < 6 { 1 } else { 2 };
                doc! { "text": {
                    "query": (query), "path": (path),
                    "fuzzy": { "maxEdits": (edits), "prefixLength": 1 }
                } }
            }
            TextMatchKind::Pattern => doc! { "wildcard": {
                "query": (query), "path": (path), "allowAnalyzedField": true
            } },
            TextMatchKind::Phrase { slop } => {
                doc! { "phrase": { "query": (query), "path": (path), "slop": (i64::from(slop)) } }
            }
        }
    }
}

/// Multiplies the score of an operator.
fn boosted(operator: DocumentBuf, factor: f64) -> DocumentBuf {
    let score = doc! { "boost": { "value": (factor) } };
    doc! { "compound": { "must": [(operator)], "score": (score) } }
}

fn token_operator(field: TokenField, value: &str) -> DocumentBuf {
    if field == TokenField::FileName
        && let Some(extension) = extension_of_pattern(value)
    {
        return token_operator(TokenField::Extension, extension);
    }
    let path: Value = match field {
        TokenField::FileName => doc! { "value": "filename", "multi": WHOLE_ANALYZER }.into(),
        TokenField::Extension => "ext".into(),
        TokenField::Kind => "kind".into(),
        TokenField::Language => "language".into(),
        TokenField::Folder => "folders".into(),
    };
    // A path without a leading slash matches at any depth.
    let pattern = match field {
        TokenField::Folder if !value.starts_with('/') => format!("*/{value}"),
        _ => value.to_owned(),
    };
    if pattern.contains(['*', '?']) {
        return doc! { "wildcard": {
            "query": (pattern), "path": (path), "allowAnalyzedField": true
        } };
    }
    match field {
        TokenField::FileName => doc! { "text": { "query": (pattern), "path": (path) } },
        // Unlike other operators, `equals` does not add highlights in texts.
        TokenField::Extension | TokenField::Kind | TokenField::Language | TokenField::Folder => {
            doc! { "equals": { "path": (path), "value": (pattern) } }
        }
    }
}

/// Returns the extension of a pattern such as `*.pdf`. With very many files, the pattern itself
/// would match more terms than a search allows.
fn extension_of_pattern(pattern: &str) -> Option<&str> {
    let extension = pattern.strip_prefix("*.")?;
    let is_plain = !extension.is_empty() && !extension.contains(['*', '?', '.']);
    is_plain.then_some(extension)
}

/// Mails and many documents have their own date. For others, the modification time of the file is
/// used.
fn date_operator(range: DateRange) -> DocumentBuf {
    let within = |path: &str| {
        let mut operator = doc! { "path": (path) };
        let ends = [("gte", range.from_ms), ("lt", range.to_ms)];
        for (name, ms) in ends {
            if let Some(ms) = ms {
                operator.push(name, Value::DateTime(ms));
            }
        }
        doc! { "range": (operator) }
    };
    let changed = doc! { "compound": {
        "filter": [(within("modified"))], "mustNot": [{ "exists": { "path": "date" } }]
    } };
    any([within("date"), changed].into_iter())
}

fn size_operator(range: &SizeRange) -> DocumentBuf {
    let mut operator = doc! { "path": "size" };
    let bytes = |size: u64| i64::try_from(size).unwrap_or(i64::MAX);
    match range.lower {
        Bound::Included(size) => operator.push("gte", bytes(size)),
        Bound::Excluded(size) => operator.push("gt", bytes(size)),
        Bound::Unbounded => {}
    }
    match range.upper {
        Bound::Included(size) => operator.push("lte", bytes(size)),
        Bound::Excluded(size) => operator.push("lt", bytes(size)),
        Bound::Unbounded => {}
    }
    doc! { "range": (operator) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::QueryContext;
    use crate::date::TimeContext;
    use crate::synonyms::Synonyms;

    fn context() -> QueryContext {
        QueryContext {
            times: TimeContext::utc(0),
            synonyms: Synonyms::parse("car, automobile, motor vehicle").unwrap(),
            ..QueryContext::default()
        }
    }

    fn operator(query: &str) -> String {
        let query = Query::parse(query, &context()).unwrap();
        query.to_operator().to_string()
    }

    #[test]
    fn a_word_is_sought_in_titles_and_texts() {
        let stems = |path: &str| format!(r#"{{"value":"{path}","multi":"stems"}}"#);
        let titles = format!(
            r#""title","subject",{},{}"#,
            stems("title"),
            stems("subject")
        );
        let texts = format!(
            r#""text",{},"keywords","author","from","to","cc""#,
            stems("text")
        );
        let text = |paths: &str| format!(r#"{{"text":{{"query":"bread","path":[{paths}]}}}}"#);
        let boosted = |paths: &str, factor: &str| {
            let text = text(paths);
            format!(
                r#"{{"compound":{{"must":[{text}],"score":{{"boost":{{"value":{factor}}}}}}}}}"#
            )
        };
        let expected = format!(
            r#"{{"compound":{{"should":[{},{},{}],"minimumShouldMatch":1}}}}"#,
            boosted(&titles, "5.0"),
            text(&texts),
            boosted(r#""filename""#, "0.5")
        );
        assert_eq!(operator("bread"), expected);
    }

    #[test]
    fn fields_are_filters() {
        let author = r#"{"text":{"query":"Ada","path":["author","from"]}}"#;
        let cases = [
            ("author:Ada", author.to_owned()),
            (
                "author:Ada ext:pdf -size>1k",
                format!(
                    r#"{{"compound":{{"must":[{author}],"filter":[{{"equals":{{"path":"ext","value":"pdf"}}}}],"mustNot":[{{"range":{{"path":"size","gt":1024}}}}]}}}}"#
                ),
            ),
            (
                "dir:src",
                r#"{"wildcard":{"query":"*/src","path":"folders","allowAnalyzedField":true}}"#
                    .to_owned(),
            ),
            ("filename:*.RS", r#"{"equals":{"path":"ext","value":"rs"}}"#.to_owned()),
            (
                "filename:a*.rs",
                r#"{"wildcard":{"query":"a*.rs","path":{"value":"filename","multi":"whole"},"allowAnalyzedField":true}}"#
                    .to_owned(),
            ),
            ("dir:/src", r#"{"equals":{"path":"folders","value":"/src"}}"#.to_owned()),
            (
                "from:~ada",
                r#"{"text":{"query":"ada","path":["from"],"fuzzy":{"maxEdits":1,"prefixLength":1}}}"#
                    .to_owned(),
            ),
            (
                "to:\"a b\"p2",
                r#"{"phrase":{"query":"a b","path":["to","cc","bcc"],"slop":2}}"#.to_owned(),
            ),
        ];
        for (query, expected) in cases {
            assert_eq!(operator(query), expected, "{query}");
        }
    }

    #[test]
    fn synonyms_are_alternatives() {
        let expected = r#"{"compound":{"should":[{"text":{"query":"car","path":["keywords"]}},{"text":{"query":"automobile","path":["keywords"]}},{"phrase":{"query":"motor vehicle","path":["keywords"],"slop":0}}],"minimumShouldMatch":1}}"#;
        assert_eq!(operator("tag:car"), expected);
        // The stems have no positions.
        let phrase = r#"{"phrase":{"query":"motor vehicle","path":["title"],"slop":0}}"#;
        let titles = operator("title:car");
        assert!(titles.contains(phrase), "{titles}");
    }

    #[test]
    fn fewer_words_are_asked_for() {
        let query = Query::parse("a b c -d from:e", &context()).unwrap();
        assert_eq!(query.to_relaxed_operator(3), None);
        let relaxed = query.to_relaxed_operator(2).unwrap().to_string();
        let sender = r#"{"compound":{"must":[{"text":{"query":"e","path":["from"]}}],"mustNot""#;
        assert!(relaxed.starts_with(sender), "{relaxed}");
        assert!(
            relaxed.ends_with(r#""minimumShouldMatch":2}}"#),
            "{relaxed}"
        );
        let one = Query::parse("bread", &context()).unwrap();
        assert_eq!(one.to_relaxed_operator(1), None);
    }
}
