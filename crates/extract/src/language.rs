//! Detects the natural language of a document, and checks the declared one.

use std::sync::OnceLock;

use whatlang::{Detector, Info, Lang};

/// The languages in Latin and Cyrillic script that are detected: those with stemmers in Windrow.
/// Additional languages would make the detection slower and less reliable. Languages with their own
/// script are detected by the script.
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

/// Languages with their own script.
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

/// The maximum number of characters that are examined. More would hardly improve the detection.
const SAMPLE_CHARACTERS: usize = 600;

/// A declared language is overridden if a full sample is in another language with at least this
/// confidence. Many pages declare the language of the program that generated them.
const CONFIDENCE_MIN: f64 = 0.9;

/// The possible languages of the documents of a folder.
///
/// ```
/// use windrow_extract::Languages;
///
/// assert!(Languages::new(&["en", "de"]).is_ok());
/// assert_eq!(Languages::new(&["xx"]).unwrap_err(), "xx");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Languages {
    /// Two-letter codes.
    codes: Vec<String>,
    /// The detector, restricted to these languages. `None` if there is only one language, or any.
    detector: Option<Detector>,
}

impl Languages {
    /// Creates a set of languages by their codes. If empty, any language is possible.
    ///
    /// # Errors
    /// Fails with the first unknown code, see [`Languages::known`].
    pub fn new<T: AsRef<str>>(codes: &[T]) -> Result<Languages, String> {
        let find = |code: &T| {
            let mut known = LANGUAGES.iter().chain(&SCRIPTS);
            let found = known.find(|(_, known)| *known == code.as_ref());
            found.ok_or_else(|| code.as_ref().to_owned())
        };
        let found: Vec<_> = codes.iter().map(find).collect::<Result<_, _>>()?;
        let languages: Vec<Lang> = found.iter().map(|(language, _)| *language).collect();
        Ok(Languages {
            codes: found.iter().map(|(_, code)| (*code).to_owned()).collect(),
            detector: (found.len() > 1).then(|| Detector::with_allowlist(languages)),
        })
    }

    /// Returns the codes of the languages that can be detected.
    pub fn known() -> impl Iterator<Item = &'static str> {
        LANGUAGES.iter().chain(&SCRIPTS).map(|(_, code)| *code)
    }

    fn contain(&self, code: &str) -> bool {
        self.codes.is_empty() || self.codes.iter().any(|own| own == code)
    }

    fn detect(&self, text: &str) -> Option<(&'static str, Info)> {
        detect(
            self.detector.as_ref().unwrap_or_else(|| any_language()),
            text,
        )
    }
}

/// Returns the two-letter code of the language of a text, which is one of `languages`. `declared`
/// is the lower-case code that the document declares. Without it, returns `None` if the text is too
/// short. If there is only one language, it is returned for every text.
pub(crate) fn detect_language(
    declared: Option<String>,
    text: &str,
    languages: &Languages,
) -> Option<String> {
    if let [only] = languages.codes.as_slice() {
        return (!text.trim().is_empty()).then(|| only.clone());
    }
    let declared = declared.filter(|code| languages.contain(code));
    let sample = sample(text);
    let Some((code, info)) = languages.detect(sample) else {
        return declared;
    };
    let is_full = sample.chars().nth(SAMPLE_CHARACTERS - 1).is_some();
    let is_sure = is_full && info.confidence() >= CONFIDENCE_MIN;
    match declared {
        Some(declared) if !is_sure => Some(declared),
        _ => Some(code.to_owned()),
    }
}

/// Returns a sample of a text. The first quarter of a long text is skipped, because it often
/// contains titles, licences and tables of contents.
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

fn any_language() -> &'static Detector {
    static DETECTOR: OnceLock<Detector> = OnceLock::new();
    DETECTOR.get_or_init(|| {
        Detector::with_allowlist(LANGUAGES.iter().map(|(language, _)| *language).collect())
    })
}

fn detect(detector: &Detector, text: &str) -> Option<(&'static str, Info)> {
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
        check_among(&[], declared, text, expected);
    }

    fn check_among(codes: &[&str], declared: Option<&str>, text: &str, expected: Option<&str>) {
        let languages = Languages::new(codes).unwrap();
        let found = detect_language(declared.map(str::to_owned), text, &languages);
        assert_eq!(
            found.as_deref(),
            expected,
            "{codes:?} {declared:?} {text:?}"
        );
    }

    #[test]
    fn given_languages_are_the_only_ones() {
        let dutch = "De snelle bruine vos springt over de luie hond en loopt weg. ";
        check(None, &dutch.repeat(20), Some("nl"));
        check_among(&["de", "en"], None, &GERMAN.repeat(20), Some("de"));
        check_among(&["en"], None, "zephyrfish", Some("en"));
        check_among(&["en"], Some("de"), &GERMAN.repeat(20), Some("en"));
        check_among(&["en"], None, " ", None);
        check_among(&["en", "fr"], Some("de"), "zephyrfish", None);
        check_among(&["en", "fr"], Some("fr"), "zephyrfish", Some("fr"));
        for text in [dutch.repeat(20), dutch.to_owned()] {
            let languages = Languages::new(&["de", "en"]).unwrap();
            let found = detect_language(Some("nl".into()), &text, &languages);
            assert!(found.is_none_or(|code| code == "de" || code == "en"));
        }
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
