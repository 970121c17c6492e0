//! `$out` and `$merge`: write the documents to a collection.
//!
//! They are parsed here. The caller runs them, because this crate does not write.

mod actions;

use std::sync::Arc;

use windrow_document::{Array, ArrayBuf, Document, DocumentBuf, ValueRef, doc};
use windrow_mql::expression::{Context, Expression, Variables, check_variable_definition};
use windrow_mql::filter::Environment;
use windrow_mql::update::Update;

use super::operand;
use crate::Error;

pub use actions::OutputActions;

/// The last stage of a pipeline, if it writes.
#[derive(Clone, Debug)]
pub struct Output {
    /// The stage as the client wrote it.
    source: DocumentBuf,
    /// The collection that is written to.
    pub target: Target,
    /// `$out` or `$merge`.
    pub kind: OutputKind,
}

/// The collection that is written to.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The database. `None`: that of the pipeline.
    pub database: Option<String>,
    /// The name of the collection.
    pub collection: String,
}

/// How the documents are written.
#[derive(Clone, Debug)]
pub enum OutputKind {
    /// `$out`: the documents replace the content of the collection.
    Out,
    /// `$merge`: the documents are merged with those of the collection.
    Merge(Merge),
}

/// How `$merge` combines the documents with those of the collection.
#[derive(Clone, Debug)]
pub struct Merge {
    /// The paths that identify a document. `None`: `_id`.
    pub on: Option<Vec<String>>,
    /// The action if the collection has a document with the same key.
    pub matched: WhenMatched,
    /// The action if the collection has no document with the same key.
    pub not_matched: WhenNotMatched,
    /// The variables of an updating pipeline.
    variables: Vec<(String, Expression)>,
}

/// The action if the collection has a document with the same key.
#[derive(Clone, Debug)]
pub enum WhenMatched {
    /// Replaces the document.
    Replace,
    /// Keeps the existing document.
    KeepExisting,
    /// Sets the fields of the new document in the existing one.
    Merge,
    /// Fails.
    Fail,
    /// Applies a pipeline to the existing document.
    Update(Update),
}

/// The action if the collection has no document with the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenNotMatched {
    /// Inserts the document.
    Insert,
    /// Drops the document.
    Discard,
    /// Fails.
    Fail,
}

/// Returns `true` if a stage with this name writes.
pub(super) fn writes(name: &str) -> bool {
    matches!(name, "$out" | "$merge")
}

/// Fails with `code` if a nested pipeline contains a stage that writes or does not end.
pub(super) fn refuse_within(stages: Array<'_>, code: i32, outer: &str) -> Result<(), Error> {
    let names = stages
        .iter()
        .filter_map(ValueRef::as_document)
        .filter_map(|stage| stage.first());
    for (name, _) in names {
        if writes(name) || name == "$changeStream" {
            return Err(Error::new(
                code,
                format!("{name} is not allowed within a {outer}'s sub-pipeline"),
            ));
        }
    }
    Ok(())
}

/// Parses a stage that writes.
pub(super) fn parse(
    name: &str,
    operand: ValueRef<'_>,
    environment: &Environment,
) -> Result<Output, Error> {
    let (target, kind) = match name {
        "$out" => (parse_out(operand)?, OutputKind::Out),
        _ => parse_merge(operand, environment)?,
    };
    let mut source = DocumentBuf::new();
    source.push(name, operand.to_value());
    Ok(Output {
        source,
        target,
        kind,
    })
}

/// Parses a name, or `{db, coll}`. Fails with 16990 for other types, with 238 for a time-series
/// collection, and as [`parse_place`] does.
fn parse_out(operand: ValueRef<'_>) -> Result<Target, Error> {
    match operand {
        ValueRef::String(name) => Target::new(None, name),
        ValueRef::Document(document) => {
            let is_series =
                |(name, value): (&str, ValueRef<'_>)| name == "timeseries" && !value.is_nullish();
            if document.iter().any(is_series) {
                let message = "$out to a time-series collection is not supported yet";
                return Err(Error::new(238, message));
            }
            parse_place(document)
        }
        other => Err(Error::new(
            16990,
            format!(
                "$out only supports a string or object argument, but found {}",
                other.type_of().name()
            ),
        )),
    }
}

/// Parses `{db, coll}`. Null counts as missing. Fails with 14 if a name is not a string, with 40413
/// for duplicate, 40414 for missing and 40415 for unknown fields.
fn parse_place(document: Document<'_>) -> Result<Target, Error> {
    let (mut database, mut collection) = (None, None);
    for (name, value) in document {
        let slot = match name {
            "db" => &mut database,
            "coll" => &mut collection,
            "timeseries" => continue,
            _ => return Err(operand::unknown_field(format_args!("$out.{name}"))),
        };
        match value {
            ValueRef::Null | ValueRef::Undefined => {}
            ValueRef::String(_) if slot.is_some() => {
                return Err(operand::duplicate_field(format_args!("$out.{name}")));
            }
            ValueRef::String(text) => *slot = Some(text),
            other => return Err(operand::wrong_type(format_args!("$out.{name}"), other)),
        }
    }
    match (database, collection) {
        (Some(database), Some(collection)) => Target::new(Some(database), collection),
        (None, _) => Err(operand::missing_field("$out.db")),
        (_, None) => Err(operand::missing_field("$out.coll")),
    }
}

impl Target {
    /// Checks the names. Fails with 73 for invalid ones.
    fn new(database: Option<&str>, collection: &str) -> Result<Target, Error> {
        let names = [database.unwrap_or("-"), collection];
        if names
            .iter()
            .any(|name| name.is_empty() || name.contains('\0'))
        {
            return Err(Error::new(
                73,
                format!("Invalid target namespace, '{collection}'"),
            ));
        }
        Ok(Target {
            database: database.map(str::to_owned),
            collection: collection.to_owned(),
        })
    }
}

/// The fields of a `$merge` before validation.
#[derive(Default)]
struct MergeFields<'a> {
    into: Option<Target>,
    on: Option<Vec<String>>,
    matched: Option<WhenMatchedOperand<'a>>,
    not_matched: Option<WhenNotMatched>,
    variables: Option<Document<'a>>,
}

/// The operand of `whenMatched`.
enum WhenMatchedOperand<'a> {
    Mode(&'a str),
    Pipeline(Array<'a>),
}

/// Parses a name, or `{into, on, let, whenMatched, whenNotMatched}`. Fails with 14 for values of
/// the wrong type, with 40413 for duplicate fields, with 40414 without `into`, with 40415 for
/// unknown fields, with 51181 for actions that cannot be combined, with 51199 for `let` without a
/// pipeline, and with 51273 for another definition of `new`.
fn parse_merge(
    operand: ValueRef<'_>,
    environment: &Environment,
) -> Result<(Target, OutputKind), Error> {
    let (target, fields) = MergeFields::from_operand(operand)?;
    let variables = match fields.variables {
        Some(variables) if !matches!(fields.matched, Some(WhenMatchedOperand::Pipeline(_))) => {
            let message = format!(
                "Cannot use 'let' variables with 'whenMatched' other than a pipeline: {variables}"
            );
            return Err(Error::new(51199, message));
        }
        variables => parse_variables(variables, environment)?,
    };
    let matched = parse_matched(fields.matched, &variables, environment)?;
    let not_matched = fields.not_matched.unwrap_or(WhenNotMatched::Insert);
    let inserts_only = matches!(matched, WhenMatched::KeepExisting | WhenMatched::Fail);
    if inserts_only && not_matched != WhenNotMatched::Insert {
        let message = "this combination of 'whenMatched' and 'whenNotMatched' modes is not \
                       supported in $merge";
        return Err(Error::new(51181, message));
    }
    let merge = Merge {
        on: fields.on,
        matched,
        not_matched,
        variables,
    };
    Ok((target, OutputKind::Merge(merge)))
}

impl<'a> MergeFields<'a> {
    /// Returns the target and the other fields. Fails as [`parse_merge`] does, if that needs no
    /// variables.
    fn from_operand(operand: ValueRef<'a>) -> Result<(Target, MergeFields<'a>), Error> {
        let mut fields = match operand {
            ValueRef::String(name) => MergeFields {
                into: Some(Target::new(None, name)?),
                ..MergeFields::default()
            },
            ValueRef::Document(document) => MergeFields::parse(document)?,
            other => return Err(operand::wrong_type("$merge", other)),
        };
        let target = fields.into.take();
        let target = target.ok_or_else(|| operand::missing_field("$merge.into"))?;
        Ok((target, fields))
    }

    fn parse(document: Document<'a>) -> Result<MergeFields<'a>, Error> {
        let (mut fields, mut seen) = (MergeFields::default(), Vec::new());
        for (name, value) in document {
            check_new(&mut seen, name, "$merge")?;
            match (name, value) {
                ("into", ValueRef::String(name)) => fields.into = Some(Target::new(None, name)?),
                ("into", ValueRef::Document(into)) => fields.into = Some(parse_into(into)?),
                ("into", _) => {
                    let message = "'into' of $merge must be a string or an object";
                    return Err(Error::new(51178, message));
                }
                ("on", value) => fields.on = Some(parse_on(value)?),
                ("whenMatched", ValueRef::String(mode)) => {
                    fields.matched = Some(WhenMatchedOperand::Mode(mode));
                }
                ("whenMatched", ValueRef::Array(stages)) => {
                    fields.matched = Some(WhenMatchedOperand::Pipeline(stages));
                }
                ("whenMatched", _) => {
                    let message = "'whenMatched' of $merge must be a string or an array";
                    return Err(Error::new(51191, message));
                }
                ("whenNotMatched", ValueRef::String(name)) => {
                    fields.not_matched = Some(parse_not_matched(name)?);
                }
                ("whenNotMatched" | "let", ValueRef::Null | ValueRef::Undefined) => {}
                ("let", ValueRef::Document(variables)) => fields.variables = Some(variables),
                ("whenNotMatched" | "let", value) => {
                    return Err(operand::wrong_type(format_args!("$merge.{name}"), value));
                }
                _ => return Err(operand::unknown_field(format_args!("$merge.{name}"))),
            }
        }
        Ok(fields)
    }
}

/// Fails with 40413 if a field with this name was seen.
fn check_new<'a>(seen: &mut Vec<&'a str>, name: &'a str, within: &str) -> Result<(), Error> {
    if seen.contains(&name) {
        return Err(operand::duplicate_field(format_args!("{within}.{name}")));
    }
    seen.push(name);
    Ok(())
}

fn parse_into(into: Document<'_>) -> Result<Target, Error> {
    let (mut database, mut collection, mut seen) = (None, "", Vec::new());
    for (name, value) in into {
        check_new(&mut seen, name, "$merge.into")?;
        match (name, value) {
            // The database of the pipeline.
            ("db", ValueRef::String("") | ValueRef::Null | ValueRef::Undefined) => {}
            ("db", ValueRef::String(name)) => database = Some(name),
            ("coll", ValueRef::String(name)) => collection = name,
            ("db" | "coll", value) => {
                return Err(operand::wrong_type(
                    format_args!("$merge.into.{name}"),
                    value,
                ));
            }
            _ => return Err(operand::unknown_field(format_args!("$merge.into.{name}"))),
        }
    }
    Target::new(database, collection)
}

/// Parses `on`. Fails with 51186 if it is neither a string nor an array, with 51187 if the array is
/// empty, with 51134 if an element is not a string, with 31465 for a duplicate path.
fn parse_on(value: ValueRef<'_>) -> Result<Vec<String>, Error> {
    let array = match value {
        ValueRef::String(path) => {
            operand::check_path(path)?;
            return Ok(vec![path.to_owned()]);
        }
        ValueRef::Array(array) if array.is_empty() => {
            let message = "If explicitly specifying $merge 'on', must include at least one field";
            return Err(Error::new(51187, message));
        }
        ValueRef::Array(array) => array,
        _ => {
            let message = "$merge 'on' field must be either a string or an array of strings";
            return Err(Error::new(51186, message));
        }
    };
    let mut paths: Vec<String> = Vec::new();
    for element in array {
        let Some(path) = element.as_str() else {
            let message = "$merge 'on' array elements must be strings";
            return Err(Error::new(51134, message));
        };
        operand::check_path(path)?;
        if paths.iter().any(|known| known == path) {
            let message = format!("Found a duplicate field '{path}' in $merge 'on'");
            return Err(Error::new(31465, message));
        }
        paths.push(path.to_owned());
    }
    Ok(paths)
}

fn unknown_mode(field: &str, name: &str) -> Error {
    Error::new(
        2,
        format!("Enumeration value '{name}' for field '$merge.{field}' is not a valid value."),
    )
}

fn parse_not_matched(name: &str) -> Result<WhenNotMatched, Error> {
    match name {
        "insert" => Ok(WhenNotMatched::Insert),
        "discard" => Ok(WhenNotMatched::Discard),
        "fail" => Ok(WhenNotMatched::Fail),
        _ => Err(unknown_mode("whenNotMatched", name)),
    }
}

fn parse_matched(
    given: Option<WhenMatchedOperand<'_>>,
    variables: &[(String, Expression)],
    environment: &Environment,
) -> Result<WhenMatched, Error> {
    match given {
        None => Ok(WhenMatched::Merge),
        Some(WhenMatchedOperand::Pipeline(stages)) => {
            let mut known = (*environment.variables).clone();
            variables.iter().for_each(|(name, _)| known.set(name, None));
            let update = Update::parse_with(ValueRef::Array(stages), &[], &known)?;
            Ok(WhenMatched::Update(update))
        }
        Some(WhenMatchedOperand::Mode(mode)) => match mode {
            "replace" => Ok(WhenMatched::Replace),
            "keepExisting" => Ok(WhenMatched::KeepExisting),
            "merge" => Ok(WhenMatched::Merge),
            "fail" => Ok(WhenMatched::Fail),
            other => Err(unknown_mode("whenMatched", other)),
        },
    }
}

/// The variable that is always defined: the document of the pipeline.
const NEW: &str = "new";

fn parse_variables(
    definitions: Option<Document<'_>>,
    environment: &Environment,
) -> Result<Vec<(String, Expression)>, Error> {
    let mut variables = Vec::new();
    for (name, value) in definitions.unwrap_or(Document::EMPTY) {
        check_variable_definition(name)?;
        match name {
            NEW if value == ValueRef::String("$$ROOT") => {}
            NEW => {
                let message = "'let' may not define a value for the reserved 'new' variable other \
                               than '$$ROOT'";
                return Err(Error::new(51273, message));
            }
            _ => variables.push((name.to_owned(), operand::expression(value, environment)?)),
        }
    }
    let root = operand::expression(ValueRef::String("$$ROOT"), environment)?;
    variables.push((NEW.to_owned(), root));
    Ok(variables)
}

impl Output {
    /// Returns the stage as explain shows it, with all defaults. `database` is that of the
    /// pipeline.
    pub(super) fn to_document(&self, database: &str) -> DocumentBuf {
        let database = self.target.database.as_deref().unwrap_or(database);
        let collection = self.target.collection.as_str();
        let OutputKind::Merge(merge) = &self.kind else {
            return doc! { "$out": { "coll": collection, "db": database } };
        };
        let mut shown = doc! { "into": { "db": database, "coll": collection } };
        match merge.keys().as_slice() {
            [path] => shown.push("on", *path),
            paths => {
                let paths = paths.iter().map(|path| ValueRef::String(path));
                shown.push("on", paths.collect::<ArrayBuf>());
            }
        }
        let written = self.source.get("$merge").and_then(ValueRef::as_document);
        let field = |name| {
            written
                .and_then(|it| it.get(name))
                .filter(|it| !it.is_nullish())
        };
        let matched = field("whenMatched").unwrap_or(ValueRef::String("merge"));
        if matched.as_array().is_some() {
            let variables = field("let").and_then(ValueRef::as_document);
            let variables = variables.into_iter().flatten();
            let mut variables: DocumentBuf = variables.filter(|(name, _)| *name != NEW).collect();
            variables.push(NEW, "$$ROOT");
            shown.push("let", variables);
        }
        shown.push("whenMatched", matched.to_value());
        let not_matched = field("whenNotMatched").unwrap_or(ValueRef::String("insert"));
        shown.push("whenNotMatched", not_matched.to_value());
        doc! { "$merge": shown }
    }
}

impl Merge {
    /// Computes the variables of the updating pipeline for one document. Fails if an expression
    /// fails.
    pub fn variables(
        &self,
        document: Document<'_>,
        environment: &Environment,
    ) -> Result<Arc<Variables>, Error> {
        let context = Context::new(document)
            .with_variables(&environment.variables)
            .with_now(environment.now)
            .with_collation(environment.collation.as_deref());
        let mut variables = (*environment.variables).clone();
        for (name, expression) in &self.variables {
            variables.set_computed(name, expression.evaluate(&context)?.into_value())?;
        }
        Ok(Arc::new(variables))
    }

    /// The paths that identify a document.
    pub fn keys(&self) -> Vec<&str> {
        match &self.on {
            Some(paths) => paths.iter().map(String::as_str).collect(),
            None => vec!["_id"],
        }
    }
}

/// Splits off the last stage if it writes.
pub(super) fn split(
    stages: Array<'_>,
    environment: &Environment,
) -> Result<(ArrayBuf, Option<Output>), Error> {
    let count = stages.iter().count();
    let (mut others, mut output) = (Vec::new(), None);
    for (number, stage) in stages.iter().enumerate() {
        match stage.as_document().and_then(Document::first) {
            Some((name, _)) if writes(name) && number + 1 < count => {}
            Some((name, operand)) if writes(name) => {
                output = Some(parse(name, operand, environment)?);
            }
            _ => others.push(stage.to_value()),
        }
    }
    Ok((others.into_iter().collect(), output))
}

/// Fails with 40601 if a stage that writes is not the last one.
pub(super) fn check_last(stages: Array<'_>) -> Result<(), Error> {
    let count = stages.iter().count();
    let names = stages
        .iter()
        .take(count.saturating_sub(1))
        .filter_map(|stage| stage.as_document()?.first());
    match names.map(|(name, _)| name).find(|name| writes(name)) {
        None => Ok(()),
        Some(name) => {
            let message = format!("{name} can only be the final stage in the pipeline");
            Err(Error::new(40601, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::Value;

    #[test]
    fn invalid_operands_are_rejected() {
        let check = |name: &str, operand: Value, expected: Option<i32>| {
            let parsed = parse(name, operand.as_ref(), &Environment::default());
            let code = parsed.err().and_then(|error| error.code());
            assert_eq!(code, expected, "{name} {operand}");
        };
        check("$out", "t".into(), None);
        check("$out", doc! { "db": "d", "coll": "t" }.into(), None);
        check("$out", "".into(), Some(73));
        check("$out", 1.into(), Some(16990));
        let out = |operand: DocumentBuf, expected| check("$out", operand.into(), expected);
        out(doc! { "db": "d" }, Some(40414));
        out(doc! { "db": null, "coll": "t" }, Some(40414));
        out(doc! { "db": "d", "coll": 1 }, Some(14));
        out(doc! { "db": "d", "coll": "t", "x": 1 }, Some(40415));
        out(doc! { "db": "d", "coll": "t", "timeseries": null }, None);
        out(doc! { "db": "d", "coll": "t", "timeseries": {} }, Some(238));
        let merge = |operand: DocumentBuf, expected| check("$merge", operand.into(), expected);
        check("$merge", "t".into(), None);
        check("$merge", Value::Null, Some(14));
        merge(doc! {}, Some(40414));
        merge(doc! { "into": { "db": "", "coll": "t" } }, None);
        merge(doc! { "into": { "db": null, "coll": "t" } }, None);
        merge(
            doc! { "into": "t", "let": null, "whenNotMatched": null },
            None,
        );
        merge(doc! { "into": {} }, Some(73));
        merge(doc! { "into": 1 }, Some(51178));
        merge(doc! { "into": "t", "x": 1 }, Some(40415));
        merge(doc! { "into": "t", "on": 1 }, Some(51186));
        merge(doc! { "into": "t", "on": [] }, Some(51187));
        merge(doc! { "into": "t", "on": [1] }, Some(51134));
        merge(doc! { "into": "t", "on": ["a", "a"] }, Some(31465));
        merge(doc! { "into": "t", "whenMatched": 1 }, Some(51191));
        merge(doc! { "into": "t", "whenMatched": "x" }, Some(2));
        merge(doc! { "into": "t", "whenNotMatched": "x" }, Some(2));
        merge(doc! { "into": "t", "whenNotMatched": [] }, Some(14));
        merge(
            doc! { "into": "t", "whenMatched": "fail", "whenNotMatched": "fail" },
            Some(51181),
        );
        merge(doc! { "into": "t", "let": { "x": 1 } }, Some(51199));
        let with_pipeline = |variables: DocumentBuf, expected| {
            merge(
                doc! { "into": "t", "whenMatched": [], "let": variables },
                expected,
            );
        };
        with_pipeline(doc! { "new": "$$ROOT" }, None);
        with_pipeline(doc! { "new": "$a" }, Some(51273));
        with_pipeline(doc! { "X": 1 }, Some(16867));
        merge(
            doc! { "into": "t", "whenMatched": [{ "$match": {} }] },
            Some(72),
        );
    }
}
