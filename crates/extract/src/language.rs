//! The natural language of a document: what it declares, checked against its words.

use std::sync::OnceLock;

use whatlang::{Detector, Info, Lang};

/// The languages of the Latin and Cyrillic scripts that are told apart: those with stemmers in
/// Windrow. Each further one makes the detection slower and less sure. A language with a script of
/// its own is detected by the script.
const LANGUAGES: [(Lang, &str); 15] = [
    (Lang::Dan, "da"),
    (Lang::Deu, "de"),
    (Lang::Eng, "en"),
    (Lang::Fin, "fi"),
    (Lang::Fra, "fr"),
    (Lang::Hun, "hu"),
    (Lang::Ita, "it"),
    (Lang::Nld, "nl"),
    (Lang::Nob, "nb"),
    (Lang::Por, "pt"),
    (Lang::Ron, "ro"),
    (Lang::Rus, "ru"),
    (Lang::Spa, "es"),
    (Lang::Swe, "sv"),
    (Lang::Tur, "tr"),
];

/// Languages with a script of their own.
const SCRIPTS: [(Lang, &str); 10] = [
    (Lang::Ben, "bn"),
    (Lang::Cmn, "zh"),
    (Lang::Ell, "el"),
    (Lang::Hye, "hy"),
    (Lang::Jpn, "ja"),
    (Lang::Kat, "ka"),
    (Lang::Kor, "ko"),
    (Lang::Tam, "ta"),
    (Lang::Tel, "te"),
    (Lang::Tha, "th"),
];

/// So many characters are examined. More make the detection hardly surer.
const SAMPLE_CHARACTERS: usize = 600;

/// A declared language is replaced if a full sample is of another one with at least this confidence:
/// many pages declare the language of the program that wrote them.
const CONFIDENCE_MIN: f64 = 0.9;

/// Returns the two-letter code of a text's language. `declared` is the lower-case code that the
/// document states. Without one, returns `None` if the text is too short to tell.
pub(crate) fn language_of(declared: Option<String>, text: &str) -> Option<String> {
    let sample = sample(text);
    let Some((code, info)) = detect(sample) else {
        return declared;
    };
    let is_full = sample.chars().nth(SAMPLE_CHARACTERS - 1).is_some();
    let is_sure = is_full && info.confidence() >= CONFIDENCE_MIN;
    match declared {
        Some(declared) if !is_sure => Some(declared),
        _ => Some(code.to_owned()),
    }
}

/// Returns a part of a text. The first quarter of a long text is left out: titles, licences and tables
/// of contents are there.
fn sample(text: &str) -> &str {
    let skipped = match text.len() / 4 {
        quarter if quarter < SAMPLE_CHARACTERS => 0,
        quarter => text.ceil_char_boundary(quarter),
    };
    let rest = text.get(skipped..).unwrap_or_default();
    let end = rest.char_indices().nth(SAMPLE_CHARACTERS);
    rest.get(..end.map_or(rest.len(), |(at, _)| at))
        .unwrap_or_default()
}

fn detect(text: &str) -> Option<(&'static str, Info)> {
    static DETECTOR: OnceLock<Detector> = OnceLock::new();
    let detector = DETECTOR.get_or_init(|| {
        Detector::with_allowlist(LANGUAGES.iter().map(|(language, _)| *language).collect())
    });
    let info = detector.detect(text).filter(Info::is_reliable)?;
    let mut known = LANGUAGES.iter().chain(&SCRIPTS);
    let (_, code) = known.find(|(language, _)| *language == info.lang())?;
    Some((code, info))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GERMAN: &str = "Der schnelle braune Fuchs springt über den faulen Hund und läuft davon. ";
    const FRENCH: &str = "La ville est belle et les rues sont calmes pendant toute la nuit. ";

    fn check(declared: Option<&str>, text: &str, expected: Option<&str>) {
        let found = language_of(declared.map(str::to_owned), text);
        assert_eq!(found.as_deref(), expected, "{declared:?} {text:?}");
    }

    #[test]
    fn languages_are_detected() {
        check(None, GERMAN, Some("de"));
        check(None, FRENCH, Some("fr"));
        check(None, "東京都の天気は晴れです", Some("ja"));
        for unknown in ["", "zephyrfish", "1 2 3", "\0\u{ffff}"] {
            check(None, unknown, None);
        }
    }

    #[test]
    fn a_declared_language_counts_unless_a_long_text_is_of_another() {
        check(Some("nl"), GERMAN, Some("nl"));
        check(Some("xx"), "", Some("xx"));
        check(Some("en"), &GERMAN.repeat(20), Some("de"));
        check(Some("fr"), &FRENCH.repeat(20), Some("fr"));
    }

    #[test]
    fn the_beginning_of_a_long_text_does_not_decide() {
        let text = format!("{}{}", FRENCH.repeat(20), GERMAN.repeat(100));
        check(None, &text, Some("de"));
    }
}
