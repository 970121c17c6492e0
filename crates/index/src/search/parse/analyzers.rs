//! Parses custom analyzers (<https://www.mongodb.com/docs/search/analyzers/custom/>).

use std::collections::{BTreeMap, HashSet};

use windrow_document::{Document, ValueRef};
use windrow_mql::Error;
use windrow_text::{
    AnalyzerRules, CharacterFilter, CustomAnalyzer, GramLengths, Language, NormalForm, Original,
    PartRules, Pattern, SearchAnalyzer, SplitRule, TOKEN_UNITS_MAX, TextVersion, TokenFilter,
};

use super::field_types::{choice, flag, whole};
use super::{joined, malformed, unsupported};

/// Prefixes that the name of a custom analyzer cannot have.
const RESERVED_PREFIXES: [&str; 4] = ["lucene.", "builtin.", "mongodb.", "windrow."];
/// The greatest length of grams, in characters, and the greatest number of words of a shingle.
const GRAM_LENGTH_MAX: usize = 255;
const SHINGLE_WORDS_MAX: usize = 255;
/// The greatest number of analyzers, and of filters of one.
const ANALYZERS_MAX: usize = 1_000;
const FILTERS_MAX: usize = 100;

/// Filters of MongoDB Search that are refused by name.
const NOT_SUPPORTED: [&str; 7] = [
    "daitchMokotoffSoundex",
    "englishMinimalStemming",
    "kStemming",
    "keywordRepeat",
    "porterStemming",
    "spanishPluralStemming",
    "stempel",
];

/// The custom analyzers of a definition, by name.
pub(super) type Analyzers = BTreeMap<String, SearchAnalyzer>;

/// Parses the part `analyzers` of a definition.
pub(super) fn analyzers(definition: Document<'_>) -> Result<Analyzers, Error> {
    let mut analyzers = Analyzers::new();
    for (path, document) in documents(definition, "", "analyzers", ANALYZERS_MAX)? {
        let rules = analyzer(document, &path)?;
        let name = rules.name.clone();
        let analyzer = SearchAnalyzer::Custom(CustomAnalyzer::new(rules));
        if analyzers.insert(name, analyzer).is_some() {
            return Err(malformed(&path, "has the name of another analyzer"));
        }
    }
    Ok(analyzers)
}

fn analyzer(document: Document<'_>, path: &str) -> Result<AnalyzerRules, Error> {
    const OPTIONS: [&str; 4] = ["name", "charFilters", "tokenizer", "tokenFilters"];
    if let Some((unknown, _)) = document.iter().find(|(name, _)| !OPTIONS.contains(name)) {
        let at = joined(path, unknown);
        return Err(malformed(&at, "is not an option of an analyzer"));
    }
    let mut options = Options::new(document, path);
    let name = options.required_string("name")?;
    if name.is_empty()
        || RESERVED_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
    {
        let what = format!(
            "cannot be empty or begin with {}",
            RESERVED_PREFIXES.join(", ")
        );
        return Err(malformed(&joined(path, "name"), &what));
    }
    let Some(tokenizer) = document.get("tokenizer") else {
        return Err(malformed(&joined(path, "tokenizer"), "is required"));
    };
    let at = joined(path, "tokenizer");
    let tokenizer = tokenizer.as_document();
    let tokenizer = tokenizer.ok_or_else(|| malformed(&at, "must be a document"))?;
    let split = Options::parse(tokenizer, &at, split_rule)?;
    let mut character_filters = Vec::new();
    for (path, filter) in documents(document, path, "charFilters", FILTERS_MAX)? {
        character_filters.push(Options::parse(filter, &path, character_filter)?);
    }
    let mut token_filters = Vec::new();
    for (path, filter) in documents(document, path, "tokenFilters", FILTERS_MAX)? {
        token_filters.extend(Options::parse(filter, &path, token_filter)?);
    }
    Ok(AnalyzerRules {
        name: name.to_owned(),
        character_filters,
        split,
        token_filters,
    })
}

/// Returns the documents of an optional array, each with its path.
fn documents<'d>(
    document: Document<'d>,
    path: &str,
    option: &str,
    most: usize,
) -> Result<Vec<(String, Document<'d>)>, Error> {
    let path = joined(path, option);
    let list = match document.get(option) {
        None => return Ok(Vec::new()),
        Some(ValueRef::Array(list)) => list,
        Some(_) => return Err(malformed(&path, "must be an array")),
    };
    let mut documents = Vec::new();
    for (number, element) in list.iter().enumerate() {
        let path = format!("{path}[{number}]");
        let Some(element) = element.as_document() else {
            return Err(malformed(&path, "must be a document"));
        };
        documents.push((path, element));
    }
    if documents.len() > most {
        return Err(malformed(&path, &format!("has more than {most} elements")));
    }
    Ok(documents)
}

/// The options of a filter or tokenizer. Those that nothing asked for are errors.
struct Options<'d> {
    document: Document<'d>,
    path: String,
    known: Vec<&'static str>,
}

impl<'d> Options<'d> {
    fn new(document: Document<'d>, path: &str) -> Options<'d> {
        Options {
            document,
            path: path.to_owned(),
            known: vec!["type"],
        }
    }

    /// Parses a document by the type that it names.
    fn parse<T>(
        document: Document<'d>,
        path: &str,
        parse: impl FnOnce(&str, &mut Options<'d>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut options = Options::new(document, path);
        let name = options.required_string("type")?;
        let parsed = parse(name, &mut options)?;
        for (name, _) in document {
            if !options.known.contains(&name) {
                let at = joined(path, name);
                return Err(malformed(&at, "is not an option of the type"));
            }
        }
        Ok(parsed)
    }

    fn get(&mut self, option: &'static str) -> Option<ValueRef<'d>> {
        self.known.push(option);
        self.document.get(option)
    }

    fn at(&self, option: &str) -> String {
        joined(&self.path, option)
    }

    fn required(&mut self, option: &'static str) -> Result<ValueRef<'d>, Error> {
        let found = self.get(option);
        found.ok_or_else(|| malformed(&self.at(option), "is required"))
    }

    fn required_string(&mut self, option: &'static str) -> Result<&'d str, Error> {
        let found = self.required(option)?.as_str();
        found.ok_or_else(|| malformed(&self.at(option), "must be a string"))
    }

    fn number(&mut self, option: &'static str, default: usize) -> Result<usize, Error> {
        let at = self.at(option);
        let found = self.get(option);
        found.map_or(Ok(default), |value| whole(value, &at))
    }

    fn flag(&mut self, option: &'static str, default: bool) -> Result<bool, Error> {
        let at = self.at(option);
        self.get(option)
            .map_or(Ok(default), |value| flag(value, &at))
    }

    fn choice<T: Copy>(
        &mut self,
        option: &'static str,
        default: T,
        all: &[(&str, T)],
    ) -> Result<T, Error> {
        let at = self.at(option);
        let found = self.get(option);
        found.map_or(Ok(default), |value| choice(value, &at, all))
    }

    fn strings(&mut self, option: &'static str) -> Result<Vec<String>, Error> {
        let at = self.at(option);
        let Some(value) = self.get(option) else {
            return Ok(Vec::new());
        };
        let strings = value.as_array().and_then(|list| {
            let strings = list.iter().map(|one| one.as_str().map(str::to_owned));
            strings.collect::<Option<Vec<String>>>()
        });
        strings.ok_or_else(|| malformed(&at, "must be an array of strings"))
    }

    fn document(&mut self, option: &'static str) -> Result<Option<Document<'d>>, Error> {
        let at = self.at(option);
        let Some(value) = self.get(option) else {
            return Ok(None);
        };
        let document = value.as_document();
        document
            .map(Some)
            .ok_or_else(|| malformed(&at, "must be a document"))
    }

    fn pattern(&mut self) -> Result<Pattern, Error> {
        let pattern = self.required_string("pattern")?;
        Pattern::new(pattern).map_err(|error| {
            Error::bad_value(format!(
                "\"{}\" is not a pattern: {error}",
                self.at("pattern")
            ))
        })
    }

    /// Parses a range, of which the least number cannot be above the greatest.
    fn range(
        &mut self,
        least: &'static str,
        greatest: &'static str,
        limit: usize,
    ) -> Result<GramLengths, Error> {
        let (least_at, greatest_at) = (self.at(least), self.at(greatest));
        let min = whole(self.required(least)?, &least_at)?;
        let max = whole(self.required(greatest)?, &greatest_at)?;
        if min > max {
            return Err(malformed(&least_at, &format!("is above {greatest}")));
        }
        if max > limit {
            return Err(malformed(&greatest_at, &format!("must be {limit} at most")));
        }
        Ok(GramLengths { min, max })
    }

    fn gram_lengths(&mut self) -> Result<GramLengths, Error> {
        self.range("minGram", "maxGram", GRAM_LENGTH_MAX)
    }

    fn units_max(&mut self) -> Result<usize, Error> {
        let units = self.number("maxTokenLength", TOKEN_UNITS_MAX)?;
        if units == 0 {
            return Err(malformed(&self.at("maxTokenLength"), "must be positive"));
        }
        if units > TOKEN_UNITS_MAX {
            let what = format!("above {TOKEN_UNITS_MAX}");
            return Err(unsupported(&self.at("maxTokenLength"), &what));
        }
        Ok(units)
    }
}

fn unknown(kind: &str, name: &str, path: &str) -> Error {
    Error::bad_value(format!("\"{path}\" unknown {kind} \"{name}\""))
}

fn split_rule(name: &str, options: &mut Options<'_>) -> Result<SplitRule, Error> {
    Ok(match name {
        "standard" => SplitRule::Standard {
            units_max: options.units_max()?,
        },
        "uaxUrlEmail" => SplitRule::UrlsAndEmails {
            units_max: options.units_max()?,
        },
        "whitespace" => SplitRule::Whitespace {
            units_max: options.units_max()?,
        },
        "keyword" => SplitRule::Keyword,
        "nGram" => SplitRule::Grams(options.gram_lengths()?),
        "edgeGram" => SplitRule::EdgeGrams(options.gram_lengths()?),
        "regexSplit" => SplitRule::Between(options.pattern()?),
        "regexCaptureGroup" => {
            let pattern = options.pattern()?;
            let at = options.at("group");
            let group = whole(options.required("group")?, &at)?;
            if group >= pattern.groups() {
                return Err(malformed(
                    &at,
                    "is not the number of a group of the pattern",
                ));
            }
            SplitRule::Captures { pattern, group }
        }
        _ => return Err(unknown("tokenizer", name, &options.path)),
    })
}

fn character_filter(name: &str, options: &mut Options<'_>) -> Result<CharacterFilter, Error> {
    Ok(match name {
        "htmlStrip" => CharacterFilter::StripHtml {
            ignored_tags: options.strings("ignoredTags")?,
        },
        "icuNormalize" => CharacterFilter::Normalize,
        "persian" => CharacterFilter::Persian,
        "mapping" => {
            let at = options.at("mappings");
            let mappings = options.document("mappings")?;
            let mappings = mappings.filter(|mappings| !mappings.is_empty());
            let Some(mappings) = mappings else {
                return Err(malformed(&at, "must be a document with mappings"));
            };
            let mut pairs = Vec::new();
            for (from, to) in mappings {
                let Some(to) = to.as_str().filter(|_| !from.is_empty()) else {
                    return Err(malformed(
                        &at,
                        "must map strings that are not empty to strings",
                    ));
                };
                pairs.push((from.to_owned(), to.to_owned()));
            }
            CharacterFilter::map(pairs)
                .map_err(|error| malformed(&at, &format!("cannot be used: {error}")))?
        }
        _ => return Err(unknown("character filter", name, &options.path)),
    })
}

/// Returns `None` for a filter that changes no token of an index.
fn token_filter(name: &str, options: &mut Options<'_>) -> Result<Option<TokenFilter>, Error> {
    Ok(Some(match name {
        "asciiFolding" => TokenFilter::FoldToAscii(original(options, "originalTokens")?),
        "icuFolding" => TokenFilter::Fold,
        "icuNormalizer" => TokenFilter::Normalize(options.choice(
            "normalizationForm",
            NormalForm::Nfc,
            &[
                ("nfc", NormalForm::Nfc),
                ("nfd", NormalForm::Nfd),
                ("nfkc", NormalForm::Nfkc),
                ("nfkd", NormalForm::Nfkd),
            ],
        )?),
        "lowercase" => TokenFilter::Lowercase,
        "trim" => TokenFilter::Trim,
        "reverse" => TokenFilter::Reverse,
        "englishPossessive" => TokenFilter::WithoutPossessive,
        "removeDuplicates" => TokenFilter::WithoutDuplicates,
        // Positions of an index are flat.
        "flattenGraph" => return Ok(None),
        "length" => length(options)?,
        "stopword" => {
            let tokens = options.strings("tokens")?;
            if tokens.is_empty() {
                return Err(malformed(&options.at("tokens"), "must have tokens"));
            }
            TokenFilter::stop_words(tokens, options.flag("ignoreCase", true)?)
        }
        "regex" => {
            let matches = [("all", false), ("first", true)];
            let at = options.at("matches");
            TokenFilter::Replace {
                pattern: options.pattern()?,
                replacement: replacement(options.required_string("replacement")?),
                is_first_only: choice(options.required("matches")?, &at, &matches)?,
            }
        }
        "nGram" => TokenFilter::Grams {
            lengths: options.gram_lengths()?,
            original: original(options, "termNotInBounds")?,
        },
        "edgeGram" => TokenFilter::EdgeGrams {
            lengths: options.gram_lengths()?,
            original: original(options, "termNotInBounds")?,
        },
        "shingle" => {
            let words = options.range("minShingleSize", "maxShingleSize", SHINGLE_WORDS_MAX)?;
            if words.min < 2 {
                return Err(malformed(
                    &options.at("minShingleSize"),
                    "must be 2 at least",
                ));
            }
            TokenFilter::Shingles {
                min: words.min,
                max: words.max,
            }
        }
        "snowballStemming" => TokenFilter::Stem(stemmer(options)?),
        "wordDelimiterGraph" => TokenFilter::Parts(part_rules(options)?),
        name if NOT_SUPPORTED.contains(&name) => {
            return Err(unsupported(
                &options.path,
                &format!("token filter \"{name}\""),
            ));
        }
        _ => return Err(unknown("token filter", name, &options.path)),
    }))
}

fn original(options: &mut Options<'_>, option: &'static str) -> Result<Original, Error> {
    let all = [("omit", Original::Omit), ("include", Original::Include)];
    options.choice(option, Original::Omit, &all)
}

fn length(options: &mut Options<'_>) -> Result<TokenFilter, Error> {
    let min = options.number("min", 0)?;
    let max = options.number("max", 255)?;
    if min > max {
        return Err(malformed(&options.at("min"), "is above max"));
    }
    Ok(TokenFilter::Length { min, max })
}

/// Returns a replacement of Java's syntax in that of the crate `regex`: references to groups such
/// as `$1` end with the digit, and a backslash makes the next character plain.
fn replacement(java: &str) -> String {
    let mut converted = String::with_capacity(java.len());
    let mut characters = java.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('$') => converted.push_str("$$"),
                Some(plain) => converted.push(plain),
                None => converted.push('\\'),
            },
            '$' => match characters.next_if(char::is_ascii_digit) {
                Some(digit) => {
                    converted.push_str("${");
                    converted.push(digit);
                    converted.push('}');
                }
                None => converted.push_str("$$"),
            },
            other => converted.push(other),
        }
    }
    converted
}

fn stemmer(options: &mut Options<'_>) -> Result<Language, Error> {
    let name = options.required_string("stemmerName")?;
    let language = Language::parse(name, TextVersion::V3).ok();
    // Codes such as `en` and the language `none` are names of `$text` only.
    let language = language.filter(|it| *it != Language::NONE && it.name() == name);
    let what = format!("\"{name}\"");
    language.ok_or_else(|| unsupported(&options.at("stemmerName"), &what))
}

fn part_rules(options: &mut Options<'_>) -> Result<PartRules, Error> {
    let mut rules = PartRules::default();
    let at = options.at("delimiterOptions");
    if let Some(document) = options.document("delimiterOptions")? {
        let targets = [
            ("generateWordParts", &mut rules.has_words),
            ("generateNumberParts", &mut rules.has_numbers),
            ("concatenateWords", &mut rules.joins_words),
            ("concatenateNumbers", &mut rules.joins_numbers),
            ("concatenateAll", &mut rules.joins_all),
            ("preserveOriginal", &mut rules.keeps_original),
            ("splitOnCaseChange", &mut rules.splits_cases),
            ("splitOnNumerics", &mut rules.splits_numbers),
            ("stemEnglishPossessive", &mut rules.removes_possessive),
        ];
        let mut targets: BTreeMap<&str, &mut bool> = targets.into_iter().collect();
        for (name, value) in document {
            let at = joined(&at, name);
            let value = flag(value, &at)?;
            match targets.get_mut(name) {
                Some(target) => **target = value,
                // Only the filter `keywordRepeat` makes keywords.
                None if name == "ignoreKeywords" => {}
                None => return Err(malformed(&at, "is not an option of the type")),
            }
        }
    }
    let at = options.at("protectedWords");
    if let Some(document) = options.document("protectedWords")? {
        let mut protected = Options::new(document, &at);
        let words = protected.strings("words")?;
        rules.ignores_case = protected.flag("ignoreCase", true)?;
        let form = |word: String| {
            if rules.ignores_case {
                word.to_lowercase()
            } else {
                word
            }
        };
        rules.protected = words.into_iter().map(form).collect::<HashSet<String>>();
    }
    Ok(rules)
}
