//! Compiles query strings as Lucene's `QueryParserBase` does.

use windrow_index::search::{TERM, prefix};
use windrow_search::{BooleanQuery, FuzzyQuery, PhraseWord, Query};

use super::synonyms::phrase_query;
use super::{Compiler, TextField, words};
use crate::Error;
use crate::search::query_string::{Clause, Expression, FieldKind, Modifier};

/// Whether a clause is required, optional or prohibited.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Occurrence {
    Must,
    Should,
    MustNot,
}

impl Compiler<'_> {
    pub(super) fn query_string(&self, expression: &Expression) -> Result<Query, Error> {
        Ok(self.expression(expression)?.unwrap_or(Query::Nothing))
    }

    /// Returns `None` if the expression has no terms after the analysis.
    fn expression(&self, expression: &Expression) -> Result<Option<Query>, Error> {
        Ok(match expression {
            Expression::Clauses(clauses) => self.clauses(clauses)?,
            Expression::All => Some(Query::All),
            Expression::Boost(inner, boost) => {
                self.expression(inner)?.map(|inner| inner.boost(*boost))
            }
            Expression::Field { path, kind } => {
                let field = self.definition.field(path);
                match field.and_then(|field| field.string.as_ref()) {
                    Some(mapping) => {
                        let path = path.to_string();
                        field_query(&TextField { path, mapping }, kind)?
                    }
                    None => Some(Query::Nothing),
                }
            }
        })
    }

    fn clauses(&self, clauses: &[Clause]) -> Result<Option<Query>, Error> {
        let mut found: Vec<(Occurrence, Query)> = Vec::new();
        for clause in clauses {
            // The clause before an `AND` is required, even if the clause after it has no terms.
            if let (true, Some(before)) = (clause.follows_and, found.last_mut())
                && before.0 == Occurrence::Should
            {
                before.0 = Occurrence::Must;
            }
            let occurrence = match clause.modifier {
                Modifier::Prohibited => Occurrence::MustNot,
                Modifier::Required => Occurrence::Must,
                Modifier::None if clause.follows_and => Occurrence::Must,
                Modifier::None => Occurrence::Should,
            };
            if let Some(query) = self.expression(&clause.expression)? {
                found.push((occurrence, query));
            }
        }
        Ok(boolean(found))
    }
}

/// Combines clauses. Returns `None` if there are none.
fn boolean(mut clauses: Vec<(Occurrence, Query)>) -> Option<Query> {
    if let [(Occurrence::Must | Occurrence::Should, _)] = clauses.as_slice() {
        return clauses.pop().map(|(_, query)| query);
    }
    let is_prohibited = |clause: &(Occurrence, Query)| clause.0 == Occurrence::MustNot;
    if clauses.iter().all(is_prohibited) {
        // As in Lucene, prohibited clauses alone match nothing.
        return (!clauses.is_empty()).then_some(Query::Nothing);
    }
    let mut boolean = BooleanQuery::default();
    for (occurrence, query) in clauses {
        let side = match occurrence {
            Occurrence::Must => &mut boolean.must,
            Occurrence::Should => &mut boolean.should,
            Occurrence::MustNot => &mut boolean.must_not,
        };
        side.push(query);
    }
    Some(Query::Boolean(boolean))
}

/// Returns a query for any of the words. `None` if there are none.
fn word_query(field: &str, words: Vec<PhraseWord>) -> Option<Query> {
    let term = |word: PhraseWord| Query::Term {
        field: field.to_owned(),
        term: word.term,
    };
    let mut terms: Vec<Query> = words.into_iter().map(term).collect();
    match terms.len() {
        0 | 1 => terms.pop(),
        _ => Some(Query::any(terms)),
    }
}

fn field_query(text_field: &TextField<'_>, kind: &FieldKind) -> Result<Option<Query>, Error> {
    let mapping = text_field.mapping;
    let field = prefix(&text_field.path, TERM);
    let normalized = |text: &str| {
        let mut normalized = String::new();
        mapping.search_analyzer.normalize(text, &mut normalized);
        normalized
    };
    Ok(Some(match kind {
        FieldKind::Word(text) => return Ok(word_query(&field, words(text, mapping))),
        FieldKind::Phrase { text, slop } => {
            let words = words(text, mapping);
            match words.as_slice() {
                [] => return Ok(None),
                [word] => Query::Term {
                    field,
                    term: word.term.clone(),
                },
                _ => {
                    text_field.check_positions()?;
                    phrase_query(text_field, words, *slop)?
                }
            }
        }
        FieldKind::Prefix(text) => Query::Prefix {
            field,
            prefix: normalized(text).into_bytes(),
        },
        FieldKind::Wildcard(pattern) => Query::Wildcard {
            field,
            pattern: normalized(pattern),
        },
        FieldKind::Regex(pattern) => Query::Regex {
            field,
            pattern: normalized(pattern),
        },
        FieldKind::Fuzzy { word, edits } => Query::Fuzzy(FuzzyQuery {
            field,
            word: normalized(word),
            edits: *edits,
            prefix: 0,
            expansions: FUZZY_EXPANSIONS,
        }),
        FieldKind::Range { lower, upper } => {
            let term = |end: &String| normalized(end).into_bytes();
            Query::Range {
                field,
                lower: lower.as_ref().map(term),
                upper: upper.as_ref().map(term),
            }
        }
    }))
}

/// The largest number of similar words, as in Lucene.
const FUZZY_EXPANSIONS: usize = 50;

#[cfg(test)]
mod tests {
    use windrow_document::{DocumentBuf, ObjectId, doc};
    use windrow_index::search::{SearchDefinition, SynonymMapping};

    use std::sync::Arc;

    use super::*;
    use crate::search::compile::{IndexFacts, compile};
    use crate::search::operator::{OperatorKind, Score, SearchOperator};
    use crate::search::query_printer::readable;
    use crate::search::query_string::parse;
    use crate::search::synonyms::SynonymMap;

    fn definition() -> Arc<SearchDefinition> {
        let field = |analyzer: &str| doc! { "type": "string", "analyzer": analyzer };
        let fields = doc! { "k": field("lucene.keyword"), "e": field("lucene.english") };
        let definition: DocumentBuf = doc! { "mappings": { "dynamic": true, "fields": fields } };
        let id = ObjectId::parse("0123456789abcdef01234567").unwrap();
        let parsed = SearchDefinition::parse("default", id, 0, 0, definition.as_document());
        Arc::new(parsed.unwrap())
    }

    /// Query strings do not need facts about the index.
    struct NoFacts;

    impl IndexFacts for NoFacts {
        fn paths(&self) -> Result<Vec<String>, crate::Error> {
            Ok(Vec::new())
        }

        fn records(&self) -> u64 {
            0
        }

        fn records_with(&self, _: &str, _: &[u8]) -> Result<u64, crate::Error> {
            Ok(0)
        }

        fn synonyms(&self, _: &SynonymMapping) -> Result<Arc<SynonymMap>, crate::Error> {
            Ok(Arc::default())
        }
    }

    fn compiled(query: &str) -> Result<Query, String> {
        let operator = SearchOperator {
            kind: OperatorKind::QueryString(parse(query, "d")?),
            score: Score::AsIs,
        };
        let compiled = compile(&operator, &definition(), &NoFacts);
        Ok(readable(&compiled.unwrap().query))
    }

    fn check(query: &str, expected: &str) {
        let found = compiled(query).map(|query| query.to_string());
        assert_eq!(found, Ok(expected.to_owned()), "{query}");
    }

    /// The expected trees are those of Lucene's classic query parser.
    #[test]
    fn operators_make_clauses_required_or_prohibited() {
        check("Foobar", r#"d:"foobar""#);
        check("a b", r#"(d:"a" d:"b")"#);
        check("a OR b", r#"(d:"a" d:"b")"#);
        check("a || b", r#"(d:"a" d:"b")"#);
        check("a AND b", r#"(+d:"a" +d:"b")"#);
        check("a && b", r#"(+d:"a" +d:"b")"#);
        check("a AND b OR c", r#"(+d:"a" +d:"b" d:"c")"#);
        check("a OR b AND c", r#"(+d:"b" +d:"c" d:"a")"#);
        check("a b AND c", r#"(+d:"b" +d:"c" d:"a")"#);
        check("(a OR b) AND c", r#"(+(d:"a" d:"b") +d:"c")"#);
        check("a AND (b OR c)", r#"(+d:"a" +(d:"b" d:"c"))"#);
        check("a NOT b", r#"(d:"a" -d:"b")"#);
        check("a AND NOT b", r#"(+d:"a" -d:"b")"#);
        check("a OR NOT b", r#"(d:"a" -d:"b")"#);
        check("a !b", r#"(d:"a" -d:"b")"#);
        check("NOT b AND c", r#"(+d:"c" -d:"b")"#);
        check("+a -b c", r#"(+d:"a" d:"c" -d:"b")"#);
        check("+a", r#"d:"a""#);
        check("-a", "nothing");
        check("a AND (-b)", r#"(+d:"a" +nothing)"#);
        check("a AND and", r#"(+d:"a" +d:"and")"#);
        check("((a))", r#"d:"a""#);
        check("a(b)c", r#"(d:"a" d:"b" d:"c")"#);
    }

    #[test]
    fn words_have_fields() {
        check("title:a b", r#"(title:"a" d:"b")"#);
        check(
            "by.name : (a OR other:b) c",
            r#"((by.name:"a" other:"b") d:"c")"#,
        );
        check(
            "title:(+a -(b c))",
            r#"(+title:"a" -(title:"b" title:"c"))"#,
        );
        check(r#"a\:b:c"#, r#"a:b:"c""#);
        check("k:Foobar", r#"k:"Foobar""#);
        check("e:running", r#"e:"run""#);
        check("*:*", "*:*");
        check("*:* -a", r#"(*:* -d:"a")"#);
        check("*:foo", r#"*:"foo""#);
    }

    #[test]
    fn words_may_have_no_terms_or_several() {
        check("wi-fi", r#"(d:"wi" d:"fi")"#);
        check("a AND wi-fi", r#"(+d:"a" +(d:"wi" d:"fi"))"#);
        check("a - b", r#"(d:"a" d:"b")"#);
        check("- - ", "nothing");
        check("e:the AND e:run", r#"e:"run""#);
        check("e:run OR e:the AND e:fox", r#"(+e:"run" +e:"fox")"#);
        check("e:(the of)", "nothing");
        check("e:\"the of\" a", r#"d:"a""#);
    }

    #[test]
    fn terms_have_many_forms() {
        check(r#""New York""#, r#"d:"new york""#);
        check(r#""New York"~2^3"#, r#"d:"new york"~2^3"#);
        check(r#""New York"^3.5~2"#, r#"d:"new york"~2^3.5"#);
        check(r#""a \"b\" \\""#, r#"d:"a b""#);
        check(r#""one""#, r#"d:"one""#);
        check("PRE*", r#"d:"pre"*"#);
        check("k:PRE*", r#"k:"PRE"*"#);
        check("WILD*card", "d:wildcard(wild*card)");
        check("t?st*", "d:wildcard(t?st*)");
        check(r"a\*b", r#"(d:"a" d:"b")"#);
        check(r"k:a\*b", r#"k:"a*b""#);
        check(r"k:a\*b*c", r"k:wildcard(a\*b*c)");
        check(r"k:a\*b*", r#"k:"a*b"*"#);
        check("/REG?LAR*exp/", "d:/reg?lar*exp/");
        check(r"k:/a\/B/", r"k:/a\/B/");
        check("roam~", r#"d:"roam"~2"#);
        check("roam~1", r#"d:"roam"~1"#);
        check("roam~9", r#"d:"roam"~2"#);
        check("roam~0.8", r#"d:"roam"~0"#);
        check("roamed~0.8", r#"d:"roamed"~1"#);
        check("k:TEST~^2", r#"k:"TEST"~2^2"#);
        check("a^2 (b c)^0.5", r#"(d:"a"^2 (d:"b" d:"c")^0.5)"#);
        check(r"\u0041\+\u00e4", r#"(d:"a" d:"ä")"#);
        check(r"k:\AND", r#"k:"AND""#);
        check("k:a&&b", r#"k:"a&&b""#);
        check("k:a+b-c", r#"k:"a+b-c""#);
    }

    #[test]
    fn ranges_have_ends() {
        check("[APPLE TO ZEBRA]", r#"d:["apple" TO "zebra"]"#);
        check("k:{APPLE TO ZEBRA}", r#"k:{"APPLE" TO "ZEBRA"}"#);
        check("{a TO b]^2", r#"d:{"a" TO "b"]^2"#);
        check("[a TO b}", r#"d:["a" TO "b"}"#);
        check("[* TO *]", "d:[* TO *]");
        check("{* TO b}", r#"d:[* TO "b"}"#);
        check("{a TO *}", r#"d:{"a" TO *]"#);
        check("[6/1/2005 TO 6/4/2005]", r#"d:["6/1/2005" TO "6/4/2005"]"#);
        check(r#"["a b" TO "c]"]"#, r#"d:["a b" TO "c]"]"#);
        check("[TO TO TO]", r#"d:["to" TO "to"]"#);
    }

    #[test]
    fn errors_have_positions() {
        let check = |query: &str, position: usize, message: &str| {
            let error = compiled(query).unwrap_err();
            let expected = format!("not valid at character {position}: {message}");
            assert!(error.ends_with(&expected), "{query}: {error}");
        };
        check("a AND", 6, "a term is expected, not the end");
        check("AND a", 1, r#"a term is expected, not "AND""#);
        check("ä (b", 5, r#"")" is expected, not the end"#);
        check("a)", 2, r#"an operator or a term is expected, not ")""#);
        check("()", 2, r#"a term is expected, not ")""#);
        check("a:b:c", 4, r#"a term is expected, not ":""#);
        check("\"a", 1, "the quotation mark is not closed");
        check("a /b", 3, "the slash is not closed");
        check("a\\", 2, "the backslash is not followed by a character");
        check("a^b", 3, "a number must follow \"^\"");
        check("a b]", 4, "the bracket does not close a range");
        check("[a b]", 4, r#""TO" is expected, not "b""#);
        check("[a TO", 6, "an end of the range is expected, not the end");
        check(
            "a *b",
            3,
            "\"*\" and \"?\" must not be the first character of a term",
        );
        check(
            "title:*",
            7,
            "\"*\" and \"?\" must not be the first character of a term",
        );
        check(
            "a~1.5",
            2,
            "the number of edits must be a whole number, or less than 1",
        );
        check("a~-1", 2, "the number of edits must not be negative");
        check(
            r"\u00",
            1,
            "\"\\u\" must be followed by four hexadecimal digits of a character",
        );
        check(
            "$meta:a",
            1,
            "the field \"$meta\" must not begin with \"$\"",
        );
        check(" \t", 3, "a term is expected, not the end");
        let deep = "(".repeat(1_000_000);
        check(&deep, 101, "parentheses are nested more than 100 deep");
        let many = "a ".repeat(20_000);
        check(&many, 32_769, "there are more than 16384 clauses");
    }

    /// Each query gives a tree or an error. The time is linear for queries of repeated tokens.
    #[test]
    fn random_queries_do_not_panic() {
        let parts = [
            "a", "B", "the", "AND", "OR", "NOT", "&&", "||", "!", "+", "-", "(", ")", ":", "^",
            "2", ".5", "~", "\"", "/", "\\", "[", "]", "{", "}", "TO", "*", "?", " ", "\t", "ä",
            "水", "\u{3000}", "\\u", "0041", "e:", "k:", "*:*", "\0", "\u{1}", "$",
        ];
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        let mut valid = 0;
        for _ in 0..20_000 {
            let length = 1 + random(14);
            let query: String = (0..length).map(|_| parts[random(parts.len())]).collect();
            valid += usize::from(compiled(&query).is_ok());
        }
        assert!(valid > 500, "{valid}");
        for part in parts {
            let _ = compiled(&part.repeat(100_000));
        }
    }
}
