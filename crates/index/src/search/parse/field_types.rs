//! Parses the types of fields
//! (<https://www.mongodb.com/docs/search/indexes/define-field-mappings/#fts-field-types>).

use windrow_document::{Document, ValueRef};
use windrow_mql::Error;
use windrow_text::{GramKind, GramOptions};

use super::super::mapping::{
    FieldMapping, GeoMapping, IndexOptions, MULTI, MultiMapping, Normalizer, NumberMapping,
    StringMapping,
};
use super::{Parser, analyzer_at, joined, malformed, unsupported};

/// Types of MongoDB Search that are refused by name.
const NOT_SUPPORTED: &[&str] = &["embeddedDocuments", "knnVector", "vector"];

/// Types that a type set cannot have.
const NOT_IN_TYPE_SETS: &[&str] = &["dateFacet", "document", "numberFacet", "stringFacet"];

/// Parses a field: one type, or a list of them.
pub(super) fn field(
    parser: &Parser,
    value: ValueRef<'_>,
    path: &str,
    depth: usize,
) -> Result<FieldMapping, Error> {
    let mut field = FieldMapping::default();
    each_type(value, path, &mut |options, name, path| {
        add_type(parser, &mut field, options, name, path, depth)
    })?;
    Ok(field)
}

/// Parses the types of a type set.
pub(super) fn types(
    parser: &Parser,
    value: ValueRef<'_>,
    path: &str,
) -> Result<FieldMapping, Error> {
    let mut field = FieldMapping::default();
    each_type(value, path, &mut |options, name, path| {
        if NOT_IN_TYPE_SETS.contains(&name) {
            return Err(malformed(path, &format!("cannot have the type \"{name}\"")));
        }
        add_type(parser, &mut field, options, name, path, 0)
    })?;
    Ok(field)
}

/// Receives the options of a type, its name and its path.
type VisitType<'v> = dyn FnMut(Document<'_>, &str, &str) -> Result<(), Error> + 'v;

/// Visits the types of a field. Fails if one is there twice.
fn each_type(value: ValueRef<'_>, path: &str, visit: &mut VisitType<'_>) -> Result<(), Error> {
    let one = |value: ValueRef<'_>, path: &str, visit: &mut VisitType<'_>| match value {
        ValueRef::Document(options) => match options.get("type") {
            Some(ValueRef::String(name)) => {
                visit(options, name, path)?;
                Ok(name.to_owned())
            }
            Some(_) => Err(malformed(&joined(path, "type"), "must be a string")),
            None => Err(malformed(&joined(path, "type"), "is required")),
        },
        _ => Err(malformed(path, "must be a document")),
    };
    let ValueRef::Array(list) = value else {
        return one(value, path, visit).map(drop);
    };
    if list.is_empty() {
        return Err(malformed(path, "cannot be empty"));
    }
    let mut seen: Vec<String> = Vec::new();
    for (number, value) in list.iter().enumerate() {
        let name = one(value, &format!("{path}[{number}]"), visit)?;
        if seen.contains(&name) {
            return Err(malformed(path, &format!("has the type \"{name}\" twice")));
        }
        seen.push(name);
    }
    Ok(())
}

fn add_type(
    parser: &Parser,
    field: &mut FieldMapping,
    options: Document<'_>,
    name: &str,
    path: &str,
    depth: usize,
) -> Result<(), Error> {
    match name {
        "string" => field.string = Some(string(parser, options, path, true)?),
        "autocomplete" => field.autocomplete = Some(autocomplete(parser, options, path)?),
        "number" => field.number = Some(number(options, path)?),
        "numberFacet" => field.number_facet = Some(number(options, path)?),
        "token" => field.token = Some(normalizer(options, path)?),
        "document" => field.document = Some(parser.document(options, path, depth + 1)?),
        "stringFacet" => field.string_facet = without_options(options, path)?,
        "dateFacet" => field.date_facet = without_options(options, path)?,
        "date" => field.date = without_options(options, path)?,
        "boolean" => field.boolean = without_options(options, path)?,
        "objectId" => field.object_id = without_options(options, path)?,
        "uuid" => field.uuid = without_options(options, path)?,
        "geo" => field.geo = Some(geo(options, path)?),
        name if NOT_SUPPORTED.contains(&name) => {
            return Err(unsupported(path, &format!("type \"{name}\"")));
        }
        name => {
            return Err(Error::bad_value(format!(
                "\"{path}\" unknown type \"{name}\""
            )));
        }
    }
    Ok(())
}

/// Fails if the type has options.
fn without_options(options: Document<'_>, path: &str) -> Result<bool, Error> {
    each_option(options, path, |_, _, _| Ok(false)).map(|()| true)
}

/// Calls `take` with each option but `type`, its value and its path. Fails if it returns `false`:
/// it does not know the option.
fn each_option(
    options: Document<'_>,
    path: &str,
    mut take: impl FnMut(&str, ValueRef<'_>, &str) -> Result<bool, Error>,
) -> Result<(), Error> {
    for (option, value) in options {
        let at = joined(path, option);
        if option != "type" && !take(option, value, &at)? {
            return Err(malformed(&at, "is not an option of the type"));
        }
    }
    Ok(())
}

fn string(
    parser: &Parser,
    options: Document<'_>,
    path: &str,
    is_outer: bool,
) -> Result<StringMapping, Error> {
    let analyzer = analyzer_at(options, "analyzer", path, &parser.analyzers)?;
    let search = analyzer_at(options, "searchAnalyzer", path, &parser.analyzers)?;
    // An analyzer of the field counts for queries, too, before that of the index does.
    let search = search.or_else(|| analyzer.clone());
    let search = search.unwrap_or_else(|| parser.search_analyzer.clone());
    let analyzer = analyzer.unwrap_or_else(|| parser.analyzer.clone());
    let mut string = StringMapping::new(analyzer, search);
    each_option(options, path, |option, value, at| {
        match option {
            "analyzer" | "searchAnalyzer" => {}
            "indexOptions" => string.index_options = index_options(value, at)?,
            "norms" => string.norms = choice(value, at, &[("include", true), ("omit", false)])?,
            "store" => drop(flag(value, at)?),
            "ignoreAbove" => string.ignore_above = Some(characters(value, at)?),
            "similarity" => check_similarity(value, at)?,
            "multi" if is_outer => string.multi = multi(parser, value, at)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(string)
}

fn multi(parser: &Parser, value: ValueRef<'_>, path: &str) -> Result<Vec<MultiMapping>, Error> {
    let Some(all) = value.as_document() else {
        return Err(malformed(path, "must be a document"));
    };
    let mut multi = Vec::new();
    for (name, options) in all {
        let at = joined(path, name);
        let Some(options) = options.as_document() else {
            return Err(malformed(&at, "must be a document"));
        };
        if name.is_empty() || name.contains(MULTI) {
            let what = "is not a name: it is empty or has the character U+0001";
            return Err(malformed(&at, what));
        }
        if options.get("type") != Some(ValueRef::String("string")) {
            return Err(malformed(&joined(&at, "type"), "must be \"string\""));
        }
        multi.push(MultiMapping {
            name: name.to_owned(),
            string: string(parser, options, &at, false)?,
        });
    }
    Ok(multi)
}

/// The default lengths of grams, and the greatest one.
const GRAMS: (usize, usize) = (2, 15);
const GRAM_LENGTH_MAX: usize = 255;

fn autocomplete(parser: &Parser, options: Document<'_>, path: &str) -> Result<GramOptions, Error> {
    let kinds = [
        ("edgeGram", GramKind::Edge),
        ("rightEdgeGram", GramKind::RightEdge),
        ("nGram", GramKind::Any),
    ];
    let analyzer = analyzer_at(options, "analyzer", path, &parser.analyzers)?;
    let mut grams = GramOptions {
        analyzer: analyzer.unwrap_or_else(|| parser.analyzer.clone()),
        kind: GramKind::Edge,
        min: GRAMS.0,
        max: GRAMS.1,
        fold_diacritics: true,
    };
    each_option(options, path, |option, value, at| {
        match option {
            "analyzer" => {}
            "tokenization" => grams.kind = choice(value, at, &kinds)?,
            "minGrams" => grams.min = characters(value, at)?,
            "maxGrams" => grams.max = characters(value, at)?,
            "foldDiacritics" => grams.fold_diacritics = flag(value, at)?,
            "similarity" => check_similarity(value, at)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    if grams.min > grams.max {
        let what = format!("has minGrams {} above maxGrams {}", grams.min, grams.max);
        return Err(malformed(path, &what));
    }
    if grams.max > GRAM_LENGTH_MAX {
        let what = format!("must be {GRAM_LENGTH_MAX} at most");
        return Err(malformed(&joined(path, "maxGrams"), &what));
    }
    Ok(grams)
}

fn index_options(value: ValueRef<'_>, path: &str) -> Result<IndexOptions, Error> {
    let all = [
        ("docs", IndexOptions::Docs),
        ("freqs", IndexOptions::Freqs),
        ("positions", IndexOptions::Positions),
        ("offsets", IndexOptions::Positions),
    ];
    choice(value, path, &all)
}

fn check_similarity(value: ValueRef<'_>, path: &str) -> Result<(), Error> {
    let kind = value.as_document().and_then(|it| it.get("type"));
    match kind.and_then(ValueRef::as_str) {
        Some("bm25") => Ok(()),
        Some(kind) => Err(unsupported(path, &format!("\"{kind}\""))),
        None => Err(malformed(path, "must be {type: <string>}")),
    }
}

fn number(options: Document<'_>, path: &str) -> Result<NumberMapping, Error> {
    let mut number = NumberMapping::default();
    each_option(options, path, |option, value, at| {
        match option {
            // Values are indexed exactly, whichever is chosen.
            "representation" => choice(value, at, &[("int64", ()), ("double", ())])?,
            "indexIntegers" => number.integers = flag(value, at)?,
            "indexDoubles" => number.doubles = flag(value, at)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    if !number.integers && !number.doubles {
        let what = "must have indexIntegers or indexDoubles";
        return Err(malformed(path, what));
    }
    Ok(number)
}

fn geo(options: Document<'_>, path: &str) -> Result<GeoMapping, Error> {
    let mut geo = GeoMapping::Points;
    each_option(options, path, |option, value, at| {
        if option == "indexShapes" && flag(value, at)? {
            geo = GeoMapping::PointsAndShapes;
        }
        Ok(option == "indexShapes")
    })?;
    Ok(geo)
}

fn normalizer(options: Document<'_>, path: &str) -> Result<Normalizer, Error> {
    let all = [
        ("none", Normalizer::None),
        ("lowercase", Normalizer::Lowercase),
    ];
    let mut normalizer = Normalizer::None;
    each_option(options, path, |option, value, at| {
        if option == "normalizer" {
            normalizer = choice(value, at, &all)?;
        }
        Ok(option == "normalizer")
    })?;
    Ok(normalizer)
}

pub(super) fn flag(value: ValueRef<'_>, path: &str) -> Result<bool, Error> {
    value
        .as_bool()
        .ok_or_else(|| malformed(path, "must be a boolean"))
}

fn characters(value: ValueRef<'_>, path: &str) -> Result<usize, Error> {
    let count = whole(value, path)?;
    if count == 0 {
        return Err(malformed(path, "must be positive"));
    }
    Ok(count)
}

pub(super) fn whole(value: ValueRef<'_>, path: &str) -> Result<usize, Error> {
    let number = value.as_whole();
    let number = number.and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| malformed(path, "must be a whole number that is not negative"))
}

/// Returns what the string stands for.
pub(super) fn choice<T: Copy>(
    value: ValueRef<'_>,
    path: &str,
    all: &[(&str, T)],
) -> Result<T, Error> {
    let name = value.as_str();
    let name = name.ok_or_else(|| malformed(path, "must be a string"))?;
    let found = all.iter().find(|(known, _)| *known == name);
    found.map(|(_, chosen)| *chosen).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        Error::bad_value(format!("\"{path}\" must be one of {}", names.join(", ")))
    })
}
