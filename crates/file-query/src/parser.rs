//! Parses the tokens of a query into a tree.

use std::ops::Bound;

use crate::context::QueryContext;
use crate::date;
use crate::error::QueryError;
use crate::field::{Field, TextField, TokenField};
use crate::lexer::{Lexer, Token};
use crate::query::{Query, SizeRange, TextMatch, TextMatchKind};
use crate::size;

/// The maximum nesting depth of parentheses.
const DEPTH_MAX: usize = 50;

impl Query {
    /// Parses a query. The context resolves dates, media types and synonyms.
    ///
    /// ```
    /// use windrow_file_query::{Query, QueryContext, QueryError};
    ///
    /// let error = Query::parse("\"annual report", &QueryContext::default()).unwrap_err();
    /// assert_eq!(error, QueryError::OpenQuote(1));
    /// ```
    ///
    /// # Errors
    /// Fails if the syntax is invalid, or if the query matches nothing in particular.
    pub fn parse(text: &str, context: &QueryContext) -> Result<Query, QueryError> {
        let mut lexer = Lexer::new(text);
        let next = lexer.next()?;
        let mut parser = Parser {
            lexer,
            next,
            context,
        };
        let query = parser.parse_group(Scope::default())?;
        if let Some(Token::Close(at)) = parser.next {
            return Err(QueryError::ClosedParenthesis(at));
        }
        let query = query.ok_or_else(|| match text.trim() {
            "" => QueryError::Empty,
            text => QueryError::NoWords(text.to_owned()),
        })?;
        if query.is_negative() {
            return Err(QueryError::OnlyNegations);
        }
        Ok(query)
    }
}

struct Parser<'q> {
    lexer: Lexer<'q>,
    next: Option<Token<'q>>,
    context: &'q QueryContext,
}

/// The scope of a clause inside parentheses after a field.
#[derive(Debug, Clone, Copy, Default)]
struct Scope {
    depth: usize,
    field: Option<TextField>,
}

impl<'q> Parser<'q> {
    /// Returns and consumes the next token.
    fn take(&mut self) -> Result<Option<Token<'q>>, QueryError> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.next, next))
    }

    /// Parses clauses up to the end or a closing parenthesis. Returns `None` if no clause has
    /// words.
    fn parse_group(&mut self, scope: Scope) -> Result<Option<Query>, QueryError> {
        let mut parts = Vec::new();
        while !matches!(self.next, None | Some(Token::Close(_))) {
            if self.next == Some(Token::And) {
                self.take()?;
                self.expect_clause("AND")?;
                continue;
            }
            parts.extend(self.parse_alternatives(scope)?);
        }
        Ok(join(parts, Query::All))
    }

    fn parse_alternatives(&mut self, scope: Scope) -> Result<Option<Query>, QueryError> {
        let mut parts: Vec<Query> = self.parse_clause(scope)?.into_iter().collect();
        while self.next == Some(Token::Or) {
            self.take()?;
            self.expect_clause("OR")?;
            parts.extend(self.parse_clause(scope)?);
        }
        Ok(join(parts, Query::Any))
    }

    fn expect_clause(&self, before: &str) -> Result<(), QueryError> {
        match self.next {
            None | Some(Token::Close(_) | Token::And | Token::Or) => {
                Err(QueryError::MissingClause(before.to_owned()))
            }
            _ => Ok(()),
        }
    }

    fn parse_clause(&mut self, scope: Scope) -> Result<Option<Query>, QueryError> {
        let mut is_negated = false;
        while self.next == Some(Token::Not) {
            self.take()?;
            self.expect_clause("NOT")?;
            is_negated = !is_negated;
        }
        let query = self.parse_positive_clause(scope)?;
        Ok(match (query, is_negated) {
            (Some(Query::Not(query)), true) => Some(*query),
            (Some(query), true) => Some(Query::Not(Box::new(query))),
            (query, _) => query,
        })
    }

    fn parse_positive_clause(&mut self, scope: Scope) -> Result<Option<Query>, QueryError> {
        if let Some(Token::Field { field, operator }) = self.next {
            return self.parse_field(scope, field, operator);
        }
        Ok(match self.take()? {
            Some(Token::Open(at)) => self.parse_parenthesis(scope, at)?,
            Some(Token::Phrase { text, nearness }) => phrase(scope.field, text, nearness),
            Some(Token::Word(word)) => self.word_query(scope.field, word),
            Some(Token::Or) => return Err(QueryError::MissingClause("OR".to_owned())),
            Some(Token::Close(_) | Token::Not | Token::And | Token::Field { .. }) | None => None,
        })
    }

    fn parse_parenthesis(&mut self, scope: Scope, at: usize) -> Result<Option<Query>, QueryError> {
        let depth = scope.depth + 1;
        if depth > DEPTH_MAX {
            return Err(QueryError::TooDeep);
        }
        let query = self.parse_group(Scope { depth, ..scope })?;
        match self.take()? {
            Some(Token::Close(_)) => Ok(query),
            _ => Err(QueryError::OpenParenthesis(at)),
        }
    }

    /// Parses a field whose name is the next token.
    fn parse_field(
        &mut self,
        scope: Scope,
        field: Field,
        operator: &'static str,
    ) -> Result<Option<Query>, QueryError> {
        let missing = || QueryError::MissingClause(format!("{}{operator}", field.name()));
        let value = self.lexer.value();
        self.next = self.lexer.next()?;
        let texts: Vec<&str> = match value {
            Some("") => return Err(missing()),
            Some(value) => value.split(',').filter(|it| !it.is_empty()).collect(),
            None => match (self.take()?, field) {
                (Some(Token::Open(at)), Field::Text(field)) => {
                    let scope = Scope {
                        field: Some(field),
                        ..scope
                    };
                    return self.parse_parenthesis(scope, at);
                }
                (Some(Token::Phrase { text, nearness }), Field::Text(field)) => {
                    return Ok(phrase(Some(field), text, nearness));
                }
                (Some(Token::Phrase { text, .. }), _) => vec![text],
                _ => return Err(missing()),
            },
        };
        let mut parts = Vec::new();
        for text in texts {
            parts.extend(self.parse_field_value(field, operator, text)?);
        }
        Ok(join(parts, Query::Any))
    }

    fn parse_field_value(
        &self,
        field: Field,
        operator: &'static str,
        value: &str,
    ) -> Result<Option<Query>, QueryError> {
        let is_comparison = !matches!(operator, ":" | "=");
        let bad = |expected| QueryError::BadValue {
            field: field.name(),
            value: if is_comparison {
                format!("{operator}{value}")
            } else {
                value.to_owned()
            },
            expected,
        };
        Ok(match field {
            Field::Date => {
                let range = if is_comparison {
                    date::parse_comparison(operator, value, &self.context.times)
                } else {
                    date::parse_range(value, &self.context.times)
                };
                let expected =
                    "2024, 2024-03, 2024-03-09, today, P7D, or two of them as 2023..2024";
                Some(Query::Date(range.ok_or_else(|| bad(expected))?))
            }
            Field::Size => {
                let range = if is_comparison {
                    compare_size(operator, value)
                } else {
                    size::parse_range(value)
                };
                let expected = "a number of bytes with k, M, G or T, or two of them as 1M..5M";
                Some(Query::Size(range.ok_or_else(|| bad(expected))?))
            }
            Field::Text(_) | Field::Token(_) | Field::MimeType if is_comparison => {
                return Err(bad("a value behind a colon"));
            }
            Field::Text(field) => self.word_query(Some(field), value),
            Field::Token(field) => Some(token(field, value)),
            Field::MimeType => Some(self.mime_type(value)?),
        })
    }

    /// Returns the query of a media type: the extensions and kinds of its documents.
    fn mime_type(&self, value: &str) -> Result<Query, QueryError> {
        let pattern = value.to_lowercase();
        let properties = self.context.mime_types.find_properties(&pattern);
        let tokens = properties.map(|(field, value)| token(field, value));
        join(tokens.collect(), Query::Any)
            .ok_or_else(|| QueryError::UnknownMimeType(value.to_owned()))
    }

    /// Returns the query of a word and its synonyms.
    fn word_query(&self, field: Option<TextField>, word: &str) -> Option<Query> {
        let mut query = word_query(field, word)?;
        if let Query::Text(text) = &mut query {
            let has_forms = matches!(
                text.kind,
                TextMatchKind::AnyForm | TextMatchKind::Phrase { .. }
            );
            if has_forms {
                let synonyms = self.context.synonyms.find(&text.text);
                text.synonyms.splice(0..0, synonyms);
            }
        }
        Some(query)
    }
}

fn compare_size(operator: &str, value: &str) -> Option<SizeRange> {
    let bytes = size::parse_bytes(value)?;
    let (lower, upper) = match operator {
        "<" => (Bound::Unbounded, Bound::Excluded(bytes)),
        "<=" => (Bound::Unbounded, Bound::Included(bytes)),
        ">" => (Bound::Excluded(bytes), Bound::Unbounded),
        ">=" => (Bound::Included(bytes), Bound::Unbounded),
        _ => return None,
    };
    Some(SizeRange { lower, upper })
}

/// Combines several parts. Returns a single part unchanged.
fn join(mut parts: Vec<Query>, combine: fn(Vec<Query>) -> Query) -> Option<Query> {
    match parts.len() {
        0 | 1 => parts.pop(),
        _ => Some(combine(parts)),
    }
}

fn token(field: TokenField, value: &str) -> Query {
    let value = match field {
        TokenField::Folder if value.len() > 1 => value.trim_end_matches('/').to_owned(),
        TokenField::Folder => value.to_owned(),
        TokenField::Extension => value.trim_start_matches('.').to_lowercase(),
        _ => value.to_lowercase(),
    };
    Query::Token { field, value }
}

fn has_letters(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

/// Returns `false` if a word may have several tokens: because it contains punctuation, or because
/// its script is written without spaces.
pub(crate) fn is_one_token(word: &str) -> bool {
    let is_plain = |it: char| it.is_alphanumeric() && it < '\u{0e00}';
    word.chars().all(is_plain)
}

/// Splits a name such as `hashMap` into its words, separated by spaces.
fn words_of_name(name: &str) -> Option<String> {
    let (mut words, mut is_small) = (String::new(), false);
    for character in name.chars() {
        if is_small && character.is_uppercase() {
            words.push(' ');
        }
        is_small = character.is_lowercase();
        words.push(character);
    }
    (words.len() > name.len()).then_some(words)
}

/// Returns the query of a quoted text. A single quoted word matches only its exact form.
fn phrase(field: Option<TextField>, text: &str, nearness: Option<u32>) -> Option<Query> {
    let kind = match nearness {
        None if is_one_token(text.trim()) => TextMatchKind::ThisForm,
        _ => TextMatchKind::Phrase {
            slop: nearness.unwrap_or(0),
        },
    };
    has_letters(text).then(|| text_query(field, text.trim(), kind))
}

fn text_query(field: Option<TextField>, text: &str, kind: TextMatchKind) -> Query {
    Query::Text(TextMatch::new(field, text, kind))
}

/// Returns the query of a word. Returns `None` for punctuation.
fn word_query(field: Option<TextField>, word: &str) -> Option<Query> {
    if !has_letters(word) {
        return None;
    }
    if let Some(similar) = word.strip_prefix('~') {
        let parts = similar.split(|it: char| it.is_ascii_punctuation());
        let parts = parts.filter(|part| has_letters(part));
        let parts = parts.map(|part| text_query(field, part, TextMatchKind::Similar));
        return join(parts.collect(), Query::All);
    }
    if word.contains(['*', '?']) && !is_url(word) {
        return pattern_query(field, word);
    }
    let kind = match word {
        _ if !is_one_token(word) => TextMatchKind::Phrase { slop: 0 },
        _ if word.starts_with(char::is_uppercase) => TextMatchKind::ThisForm,
        _ => TextMatchKind::AnyForm,
    };
    let mut query = TextMatch::new(field, word, kind);
    if matches!(kind, TextMatchKind::ThisForm | TextMatchKind::AnyForm) {
        query.synonyms.extend(words_of_name(word));
    }
    Some(Query::Text(query))
}

/// Returns `true` for a URL, in which `?` is not a wildcard.
fn is_url(word: &str) -> bool {
    word.contains("://") || word.starts_with("www.")
}

/// Returns the query of a pattern. Words in texts contain no punctuation such as `-`, so the parts
/// between are searched. The pattern may also be a file name such as `report-*.pdf`.
fn pattern_query(field: Option<TextField>, pattern: &str) -> Option<Query> {
    let parts = pattern.split(is_between_words);
    let parts = parts.filter(|part| has_letters(part));
    let parts = parts.filter_map(|part| {
        if part.contains(['*', '?']) {
            Some(text_query(field, part, TextMatchKind::Pattern))
        } else {
            word_query(field, part)
        }
    });
    let text = join(parts.collect(), Query::All)?;
    let is_one_word = pattern
        .chars()
        .all(|it| it.is_alphanumeric() || matches!(it, '*' | '?'));
    Some(match field {
        None if !is_one_word => Query::Any(vec![token(TokenField::FileName, pattern), text]),
        _ => text,
    })
}

/// Returns `true` for punctuation that separates words, by the word boundaries of
/// <https://www.unicode.org/reports/tr29/>. The index contains whole words and their parts.
fn is_between_words(character: char) -> bool {
    character.is_ascii_punctuation() && !matches!(character, '*' | '?' | '.' | '_' | '\'' | ':')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::date::{DateRange, TimeContext};
    use crate::mime_type::{MimeType, MimeTypes};
    use crate::synonyms::Synonyms;

    fn parsed(query: &str) -> Result<Query, QueryError> {
        let context = QueryContext {
            times: TimeContext::utc(0),
            mime_types: MimeTypes::new([
                MimeType::new("text/plain").with_kind("text"),
                MimeType::new("image/png").with_extensions(&["png"]),
                MimeType::new("image/jpeg").with_extensions(&["jpg", "jpeg"]),
            ]),
            synonyms: Synonyms::parse("car, automobile, motor vehicle").unwrap(),
        };
        Query::parse(query, &context)
    }

    fn text(field: Option<TextField>, text: &str, kind: TextMatchKind) -> Query {
        text_query(field, text, kind)
    }

    fn word(word: &str) -> Query {
        text(None, word, TextMatchKind::AnyForm)
    }

    fn words(all: &[&str]) -> Vec<Query> {
        all.iter().map(|it| word(it)).collect()
    }

    fn not(query: Query) -> Query {
        Query::Not(Box::new(query))
    }

    fn value(field: TokenField, value: &str) -> Query {
        let value = value.to_owned();
        Query::Token { field, value }
    }

    #[test]
    fn clauses_are_joined() {
        let any = |all: &[&str]| Query::Any(words(all));
        let cases = [
            ("a", word("a")),
            ("a b", Query::All(words(&["a", "b"]))),
            ("a AND b", Query::All(words(&["a", "b"]))),
            ("a b OR c", Query::All(vec![word("a"), any(&["b", "c"])])),
            (
                "(a b) OR c",
                Query::Any(vec![Query::All(words(&["a", "b"])), word("c")]),
            ),
            ("a -b", Query::All(vec![word("a"), not(word("b"))])),
            ("a NOT -b", Query::All(words(&["a", "b"]))),
            (
                "a -(b OR c)",
                Query::All(vec![word("a"), not(any(&["b", "c"]))]),
            ),
            ("a & (+) \"--\"", word("a")),
        ];
        for (query, expected) in cases {
            assert_eq!(parsed(query), Ok(expected), "{query:?}");
        }
    }

    #[test]
    fn words_have_kinds() {
        use TextMatchKind::{Pattern, Phrase, Similar, ThisForm};
        let title = Some(TextField::Title);
        let cases = [
            ("Bread", text(None, "Bread", ThisForm)),
            ("~bred", text(None, "bred", Similar)),
            ("br?a*", text(None, "br?a*", Pattern)),
            ("free-range", text(None, "free-range", Phrase { slop: 0 })),
            ("hash_map", text(None, "hash_map", Phrase { slop: 0 })),
            ("\"hashMap\"", text(None, "hashMap", ThisForm)),
            ("\"a b\"", text(None, "a b", Phrase { slop: 0 })),
            ("\"a b\"p", text(None, "a b", Phrase { slop: 10 })),
            ("title:\"a b\"p3", text(title, "a b", Phrase { slop: 3 })),
            ("title:a*", text(title, "a*", Pattern)),
            ("title:a_b*", text(title, "a_b*", Pattern)),
            (
                "title:a-b*",
                Query::All(vec![
                    text(title, "a", TextMatchKind::AnyForm),
                    text(title, "b*", Pattern),
                ]),
            ),
            (
                "A-*.pdf",
                Query::Any(vec![
                    value(TokenField::FileName, "a-*.pdf"),
                    Query::All(vec![
                        text(None, "A", ThisForm),
                        text(None, "*.pdf", Pattern),
                    ]),
                ]),
            ),
            (
                "~free-rang",
                Query::All(vec![
                    text(None, "free", Similar),
                    text(None, "rang", Similar),
                ]),
            ),
            (
                "http://a.org/b?c=1",
                text(None, "http://a.org/b?c=1", Phrase { slop: 0 }),
            ),
            ("title:(A)", text(title, "A", ThisForm)),
            ("\"bread\"", text(None, "bread", ThisForm)),
            ("title:\" bread \"", text(title, "bread", ThisForm)),
            (
                "\"free-range\"",
                text(None, "free-range", Phrase { slop: 0 }),
            ),
        ];
        for (query, expected) in cases {
            assert_eq!(parsed(query), Ok(expected), "{query:?}");
        }
    }

    #[test]
    fn fields_have_values() {
        use TokenField::{Extension, FileName, Folder, Kind};
        let day = 86_400_000;
        let date = |from_ms, to_ms| Query::Date(DateRange { from_ms, to_ms });
        let size = |lower, upper| Query::Size(SizeRange { lower, upper });
        let cases = [
            ("ext:.PDF", value(Extension, "pdf")),
            (
                "ext:a,b",
                Query::Any(vec![value(Extension, "a"), value(Extension, "b")]),
            ),
            ("kind:Mail", value(Kind, "mail")),
            ("filename:\"My File\"", value(FileName, "my file")),
            ("dir:/Home/", value(Folder, "/Home")),
            ("dir:/", value(Folder, "/")),
            ("date:1970-01-02", date(Some(day), Some(2 * day))),
            ("date<1970-01-02", date(None, Some(day))),
            ("mime:text/plain", value(Kind, "text")),
            (
                "mime:Image/*",
                Query::Any(vec![
                    value(Extension, "png"),
                    value(Extension, "jpg"),
                    value(Extension, "jpeg"),
                ]),
            ),
            ("size>1k", size(Bound::Excluded(1_024), Bound::Unbounded)),
        ];
        for (query, expected) in cases {
            assert_eq!(parsed(query), Ok(expected), "{query:?}");
        }
    }

    #[test]
    fn words_have_synonyms() {
        let synonyms_of = |query: &str| match parsed(query) {
            Ok(Query::Text(text)) => text.synonyms,
            other => panic!("{other:?}"),
        };
        assert_eq!(synonyms_of("car"), ["automobile", "motor vehicle"]);
        assert_eq!(synonyms_of("title:automobile"), ["car", "motor vehicle"]);
        assert_eq!(synonyms_of("hashMapOf"), ["hash Map Of"]);
        for query in [
            "Car",
            "~car",
            "car*",
            "\"car\"",
            "bus",
            "HTTP",
            "\"hashMap\"",
        ] {
            assert!(synonyms_of(query).is_empty(), "{query}");
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let missing = |before: &str| QueryError::MissingClause(before.to_owned());
        let cases = [
            ("", QueryError::Empty),
            (" & ", QueryError::NoWords("&".to_owned())),
            ("\"-\" *", QueryError::NoWords("\"-\" *".to_owned())),
            (
                "mime:audio/*",
                QueryError::UnknownMimeType("audio/*".to_owned()),
            ),
            ("-a", QueryError::OnlyNegations),
            ("a OR -b", QueryError::OnlyNegations),
            ("-a -b", QueryError::OnlyNegations),
            ("a (b", QueryError::OpenParenthesis(3)),
            ("a) b", QueryError::ClosedParenthesis(2)),
            ("a OR", missing("OR")),
            ("OR a", missing("OR")),
            ("a NOT", missing("NOT")),
            ("a AND OR b", missing("AND")),
            ("a title: b", missing("title:")),
            (&"(".repeat(51), QueryError::TooDeep),
        ];
        for (query, expected) in cases {
            assert_eq!(parsed(query), Err(expected), "{query:?}");
        }
        for query in [
            "date:soon",
            "size:big",
            "size>1..2",
            "title>a",
            "date<P1D",
            "ext<=a",
        ] {
            let error = parsed(query).unwrap_err();
            assert!(
                matches!(error, QueryError::BadValue { .. }),
                "{query:?}: {error}"
            );
        }
    }
}
