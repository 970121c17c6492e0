//! The target `text`: search strings, matching, and terms of documents.

use windrow_text::{
    DocumentTerms, HighlightOptions, Language, Matcher, Query, Sensitivity, TextVersion, highlight,
};

const VERSIONS: [TextVersion; 3] = [TextVersion::V1, TextVersion::V2, TextVersion::V3];

/// The input is two bytes of options, a search string up to the first zero byte, and a text.
pub fn run(bytes: &[u8]) {
    let (options, rest) = bytes.split_at(bytes.len().min(2));
    let option = |number: usize| usize::from(options.get(number).copied().unwrap_or(0));
    let version = VERSIONS[option(0) % VERSIONS.len()];
    let sensitivity = Sensitivity {
        case: option(0) & 64 != 0,
        diacritics: option(0) & 128 != 0,
    };
    let languages: Vec<Language> = Language::all().collect();
    let language = languages[option(1) % languages.len()];
    let rest = String::from_utf8_lossy(rest);
    let (search, text) = rest.split_once('\0').unwrap_or((&rest, &rest));
    let query = Query::parse(search, language, sensitivity, version);
    let mut matcher = Matcher::new(&query);
    let _ = matcher.matches([(text, language)]);
    assert!(query.terms().is_sorted(), "{:?}", query.terms());
    let mut terms = DocumentTerms::new(version);
    terms.add(text, 1.0, language);
    for (term, score) in terms.iter() {
        assert!(score.is_finite() && score > 0.0, "{term}: {score}");
    }
    let _ = highlight(text, language, &query, HighlightOptions::default());
}
