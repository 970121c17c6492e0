//! Parses the operand of `$rankFusion`.

use windrow_document::{Array, Document, ValueRef};
use windrow_mql::filter::Environment;

use super::{FusionInput, RankFusion};
use crate::Error;
use crate::aggregate::facet::check_name;
use crate::aggregate::operand;
use crate::aggregate::stage::{ParsePipeline, StageKind};

pub(crate) const NAME: &str = "$rankFusion";
/// A similar stage, which is not supported.
pub(crate) const SCORE_FUSION: &str = "$scoreFusion";

const BAD_VALUE: i32 = 2;
const FAILED_TO_PARSE: i32 = 9;
const WEIGHT_TYPE: i32 = 13_118;
const NO_RANK: i32 = 9_191_100;
const NO_SELECTION: i32 = 9_191_103;
const WEIGHT_NEGATIVE: i32 = 9_460_300;
const WEIGHTS_TOO_MANY: i32 = 9_460_301;
const EMPTY_PIPELINE: i32 = 9_834_300;
const WEIGHT_OF_NONE: i32 = 9_967_500;
pub(crate) const NOT_FIRST: i32 = 10_170_100;
const NESTED: i32 = 10_473_002;

/// The stages that select documents and do not change them.
const SELECTING: [&str; 6] = ["$limit", "$match", "$sample", "$search", "$skip", "$sort"];

/// The functions that parse input pipelines.
#[derive(Clone, Copy)]
pub(crate) struct PipelineParser {
    /// Checks stages independently of their source.
    pub check_forms: fn(Array<'_>) -> Result<(), Error>,
    /// Parses a pipeline.
    pub parse: ParsePipeline,
}

/// Parses `{input: {pipelines: {name: [stages], …}}, combination: {weights: {name: number, …}},
/// scoreDetails}`. A field that is null counts as missing. Fails with 9 if the operand is not a
/// document, with 14, 40414 or 40415 for invalid fields, with 2 without pipelines, and as pipelines
/// and weights do.
pub(crate) fn parse(
    operand: ValueRef<'_>,
    environment: &Environment,
    pipelines: PipelineParser,
) -> Result<Vec<StageKind>, Error> {
    let Some(document) = operand.as_document() else {
        let message = format!("{NAME} must take a nested object");
        return Err(Error::new(FAILED_TO_PARSE, message));
    };
    let fields = FusionFields::new(NAME, document, &["input", "combination", "scoreDetails"])?;
    let input = fields.required("input")?;
    let named =
        FusionFields::new("$rankFusion.input", input, &["pipelines"])?.required("pipelines")?;
    let mut inputs = Vec::new();
    for (name, stages) in named {
        inputs.push(parse_input(name, stages, environment, pipelines)?);
    }
    if inputs.is_empty() {
        let message = format!("{NAME} needs at least one pipeline");
        return Err(Error::new(BAD_VALUE, message));
    }
    if fields.present("combination").is_some() {
        let combination = fields.required("combination")?;
        let combination = FusionFields::new("$rankFusion.combination", combination, &["weights"])?;
        let weights = combination.required("weights")?;
        set_weights(&mut inputs, weights)?;
    }
    let with_details = match fields.present("scoreDetails") {
        None => false,
        Some(ValueRef::Bool(flag)) => flag,
        Some(other) => {
            return Err(operand::wrong_type(
                format_args!("{NAME}.scoreDetails"),
                other,
            ));
        }
    };
    Ok(vec![StageKind::from_transformation(RankFusion {
        inputs,
        with_details,
    })])
}

/// The fields of a document, with its path for errors.
struct FusionFields<'a> {
    path: &'static str,
    document: Document<'a>,
}

impl<'a> FusionFields<'a> {
    /// Checks the names of the fields. Fails with 40415 for unknown ones.
    fn new(
        path: &'static str,
        document: Document<'a>,
        known: &[&str],
    ) -> Result<FusionFields<'a>, Error> {
        match document.iter().find(|(name, _)| !known.contains(name)) {
            None => Ok(FusionFields { path, document }),
            Some((name, _)) => Err(operand::unknown_field(format_args!("{path}.{name}"))),
        }
    }

    fn present(&self, name: &str) -> Option<ValueRef<'a>> {
        self.document.get(name).filter(|value| !value.is_nullish())
    }

    /// Returns a required document. Fails with 14 or 40414.
    fn required(&self, name: &str) -> Result<Document<'a>, Error> {
        let field = format!("{}.{name}", self.path);
        match self.present(name) {
            Some(ValueRef::Document(document)) => Ok(document),
            Some(other) => Err(operand::wrong_type(field, other)),
            None => Err(operand::missing_field(field)),
        }
    }
}

/// Parses an input pipeline. Fails as [`check_name`] does, with 14 if the value is not a pipeline,
/// and as [`check_stages`] and the stages do.
fn parse_input(
    name: &str,
    stages: ValueRef<'_>,
    environment: &Environment,
    parser: PipelineParser,
) -> Result<FusionInput, Error> {
    check_name(name)?;
    let path = "$rankFusion.input.pipelines";
    let stages = stages
        .as_array()
        .ok_or_else(|| operand::wrong_type(format_args!("{path}.{name}"), stages))?;
    (parser.check_forms)(stages)?;
    check_stages(name, stages)?;
    Ok(FusionInput {
        name: name.to_owned(),
        weight: 1.0,
        pipeline: (parser.parse)(stages, environment)?,
    })
}

/// Checks that the pipeline only selects and ranks documents. Fails with 9834300 if it is empty,
/// with 10473002 or 10170100 for a nested fusion stage, with 9191103 for a stage that changes
/// documents, with 9191100 without a sort.
fn check_stages(input: &str, stages: Array<'_>) -> Result<(), Error> {
    let refuse = |code, what: &str| {
        let message = format!("{NAME} input pipeline '{input}' {what}");
        Err(Error::new(code, message))
    };
    let names = stages
        .iter()
        .filter_map(|stage| stage.as_document()?.first())
        .map(|(name, _)| name);
    let names: Vec<&str> = names.collect();
    if stages.is_empty() {
        return refuse(EMPTY_PIPELINE, "must not be empty");
    }
    if let Some(position) = names
        .iter()
        .position(|name| [NAME, SCORE_FUSION].contains(name))
    {
        return match position {
            0 => refuse(NESTED, "must not begin with a fusion stage"),
            _ => refuse(
                NOT_FIRST,
                "has a stage that may only be the first of a pipeline",
            ),
        };
    }
    if names.iter().any(|name| !SELECTING.contains(name)) {
        return refuse(NO_SELECTION, "must only select and rank documents");
    }
    // A search ranks by its scores or its own sort.
    if names.contains(&"$sort") || names.first() == Some(&"$search") {
        Ok(())
    } else {
        refuse(NO_RANK, "must rank its documents by a $search or a $sort")
    }
}

/// Sets the weights. Fails with 9460301 for more weights than pipelines, with 9967500 for an
/// unknown pipeline, with 13118 if a weight is not a number, with 9460300 if it is negative.
fn set_weights(inputs: &mut [FusionInput], weights: Document<'_>) -> Result<(), Error> {
    if weights.count() > inputs.len() {
        let message = format!("{NAME} has more weights than pipelines");
        return Err(Error::new(WEIGHTS_TOO_MANY, message));
    }
    for (name, value) in weights {
        let Some(input) = inputs.iter_mut().find(|input| input.name == name) else {
            let message = format!("{NAME} has a weight for '{name}', which is not a pipeline");
            return Err(Error::new(WEIGHT_OF_NONE, message));
        };
        let weight = value.as_f64().filter(|_| value.is_number());
        let Some(weight) = weight else {
            let message = format!("the weight of '{name}' must be a number");
            return Err(Error::new(WEIGHT_TYPE, message));
        };
        if weight.is_nan() || weight < 0.0 {
            let message = format!("the weight of '{name}' must not be negative, and is {weight}");
            return Err(Error::new(WEIGHT_NEGATIVE, message));
        }
        input.weight = weight;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::Pipeline;
    use windrow_document::{DocumentBuf, Value, array, doc};

    fn fails(operand: Value, expected: Option<i32>) {
        let found = parse(
            operand.as_ref(),
            &Environment::default(),
            PipelineParser {
                check_forms: Pipeline::check_forms,
                parse: Pipeline::parse,
            },
        );
        let code = found.err().and_then(|error| error.code());
        assert_eq!(code, expected, "{operand}");
    }

    #[test]
    fn fields_are_checked_as_mongodb_does() {
        let pipelines = || doc! { "p": [{ "$sort": { "a": 1 } }] };
        let check = |operand: DocumentBuf, expected| fails(operand.into(), expected);
        let with = |name: &str, value: Value, expected| {
            let mut operand = doc! { "input": { "pipelines": (pipelines()) } };
            operand.push(name, value);
            check(operand, expected);
        };
        fails(Value::Null, Some(9));
        check(doc! {}, Some(40414));
        check(doc! { "input": null }, Some(40414));
        check(doc! { "input": 1 }, Some(14));
        check(doc! { "input": {} }, Some(40414));
        check(doc! { "input": { "pipelines": [] } }, Some(14));
        check(doc! { "input": { "pipelines": {} } }, Some(2));
        with("combination", Value::Null, None);
        with("combination", 1.into(), Some(14));
        with("combination", doc! {}.into(), Some(40414));
        with("scoreDetails", Value::Null, None);
        with("scoreDetails", 1.into(), Some(14));
        with("x", 1.into(), Some(40415));
        let weights = |weights: DocumentBuf, expected| {
            with("combination", doc! { "weights": weights }.into(), expected);
        };
        weights(doc! {}, None);
        weights(doc! { "p": 2.5 }, None);
        weights(doc! { "q": 1 }, Some(WEIGHT_OF_NONE));
        weights(doc! { "p": 1, "q": 1 }, Some(WEIGHTS_TOO_MANY));
        weights(doc! { "p": "x" }, Some(WEIGHT_TYPE));
        weights(doc! { "p": (-1) }, Some(WEIGHT_NEGATIVE));
        weights(doc! { "p": (f64::NAN) }, Some(WEIGHT_NEGATIVE));
    }

    #[test]
    fn input_pipelines_choose_and_rank() {
        let check = |name: &str, stages: Value, expected| {
            let mut pipelines = DocumentBuf::new();
            pipelines.push(name, stages);
            fails(
                doc! { "input": { "pipelines": pipelines } }.into(),
                expected,
            );
        };
        let sort = || doc! { "$sort": { "a": 1 } };
        let nested = || doc! { "$rankFusion": { "input": { "pipelines": { "q": [(sort())] } } } };
        check(
            "p",
            array![{ "$match": {} }, (sort()), { "$skip": 1 }, { "$sample": { "size": 1 } }].into(),
            None,
        );
        check("", array![(sort())].into(), Some(15998));
        check("$p", array![(sort())].into(), Some(16410));
        check("a.b", array![(sort())].into(), Some(16412));
        check("p", Value::Null, Some(14));
        check("p", array![1].into(), Some(14));
        check("p", array![].into(), Some(EMPTY_PIPELINE));
        check("p", array![{ "$limit": 1 }].into(), Some(NO_RANK));
        check(
            "p",
            array![(sort()), { "$unset": "a" }].into(),
            Some(NO_SELECTION),
        );
        check(
            "p",
            array![(sort()), { "$out": "a" }].into(),
            Some(NO_SELECTION),
        );
        check("p", array![(nested())].into(), Some(NESTED));
        check("p", array![(sort()), (nested())].into(), Some(NOT_FIRST));
        check("p", array![(sort()), {}].into(), Some(40323));
        check("p", array![(sort()), { "x": 1 }].into(), Some(40324));
        check("p", array![{ "$sort": {} }].into(), Some(15976));
    }
}
