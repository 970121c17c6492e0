//! Parses the option `score` of operators.
//!
//! Source: <https://www.mongodb.com/docs/search/customize-score/>.

use windrow_document::ValueRef;
use windrow_search::{Gauss, ScoreFunction};

use crate::Error;
use crate::search::options::{Options, bad, optional_number};

/// The modification of a score.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Score {
    #[default]
    AsIs,
    /// The score is multiplied.
    Boost(f32),
    /// The score is replaced.
    Constant(f32),
    /// The score is the result of a function.
    Function(ScoreFunction<FieldValue>),
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldValue {
    pub path: String,
    /// The value of documents without the field.
    pub undefined: f64,
}

/// Scores stay finite below it.
const SCORE_MAX: f64 = 1e30;

/// The largest depth of nested functions.
const DEPTH_MAX: usize = 100;

/// The result of `gauss` at the distance `scale`, if it is not given.
const DECAY: f64 = 0.5;

/// Parses the option `score`.
pub(super) fn score(options: &Options<'_>) -> Result<Score, Error> {
    let Some(given) = options.get("score") else {
        return Ok(Score::AsIs);
    };
    let given = Options::new("score", given)?;
    given.refuse("embedded")?;
    given.check(&["boost", "constant", "function"])?;
    let parsed = [
        given.get("boost").map(boost),
        given.get("constant").map(constant),
        given
            .get("function")
            .map(|it| Ok(Score::Function(function(it, 0)?))),
    ];
    let mut parsed = parsed.into_iter().flatten();
    match (parsed.next(), parsed.next()) {
        (None, _) => Ok(Score::AsIs),
        (Some(one), None) => one,
        (Some(_), Some(_)) => Err(bad(
            "\"score\" must have one of \"boost\", \"constant\" and \"function\"".to_owned(),
        )),
    }
}

/// Parses `{value: <number>}` or `{path: <field>, undefined: <number>}`.
fn boost(value: ValueRef<'_>) -> Result<Score, Error> {
    let options = Options::new("boost", value)?;
    options.check(&["value", "path", "undefined"])?;
    if options.get("path").is_none() {
        return factor(&options, "score.boost.value").map(Score::Boost);
    }
    if options.get("value").is_some() {
        let message = "\"score.boost\" must have either \"value\" or \"path\"";
        return Err(bad(message.to_owned()));
    }
    let field = ScoreFunction::Value(field_value("boost.path", value, "path")?);
    let factors = vec![ScoreFunction::Relevance, field];
    Ok(Score::Function(ScoreFunction::Multiply(factors)))
}

fn constant(value: ValueRef<'_>) -> Result<Score, Error> {
    let options = Options::new("constant", value)?;
    options.check(&["value"])?;
    factor(&options, "score.constant.value").map(Score::Constant)
}

fn factor(options: &Options<'_>, name: &str) -> Result<f32, Error> {
    match optional_number(options, "value")? {
        Some(number) if (0.0..=SCORE_MAX).contains(&number) => Ok(number as f32),
        _ => Err(bad(format!(
            "\"{name}\" must be a number from 0 to {SCORE_MAX:e}"
        ))),
    }
}

/// Parses a function: a document with one field.
fn function(value: ValueRef<'_>, depth: usize) -> Result<ScoreFunction<FieldValue>, Error> {
    if depth >= DEPTH_MAX {
        return Err(bad(format!(
            "functions of \"score\" are nested more than {DEPTH_MAX} deep"
        )));
    }
    let one = value.as_document().and_then(|document| {
        let mut fields = document.iter();
        fields.next().filter(|_| fields.next().is_none())
    });
    let Some((name, operand)) = one else {
        let message = "\"score.function\" must be a document with one function";
        return Err(bad(message.to_owned()));
    };
    let inner = |value: ValueRef<'_>| function(value, depth + 1);
    match name {
        "score" if operand == ValueRef::String("relevance") => Ok(ScoreFunction::Relevance),
        "score" => Err(bad("\"function.score\" must be \"relevance\"".to_owned())),
        "constant" => finite(operand, "function.constant").map(ScoreFunction::Constant),
        "path" => field_of(operand, "function.path").map(ScoreFunction::Value),
        "gauss" => gauss(operand),
        "log" => Ok(ScoreFunction::Log(Box::new(inner(operand)?))),
        "log1p" => Ok(ScoreFunction::Log1p(Box::new(inner(operand)?))),
        "add" => operands(operand, name, inner).map(ScoreFunction::Add),
        "multiply" => operands(operand, name, inner).map(ScoreFunction::Multiply),
        other => Err(bad(format!("Unrecognized function of \"score\" {other:?}"))),
    }
}

fn operands(
    value: ValueRef<'_>,
    name: &str,
    parse: impl Fn(ValueRef<'_>) -> Result<ScoreFunction<FieldValue>, Error>,
) -> Result<Vec<ScoreFunction<FieldValue>>, Error> {
    let all = value.as_array().filter(|all| all.iter().count() > 1);
    match all {
        Some(all) => all.iter().map(parse).collect(),
        None => Err(bad(format!(
            "\"function.{name}\" must be an array of at least two functions"
        ))),
    }
}

fn gauss(value: ValueRef<'_>) -> Result<ScoreFunction<FieldValue>, Error> {
    let options = Options::new("gauss", value)?;
    options.check(&["path", "origin", "scale", "offset", "decay"])?;
    let number = |name: &str| finite(options.required(name)?, &format!("gauss.{name}"));
    let or = |name: &str, otherwise: f64| match options.get(name) {
        None => Ok(otherwise),
        Some(_) => number(name),
    };
    let (offset, decay, scale) = (or("offset", 0.0)?, or("decay", DECAY)?, number("scale")?);
    if offset < 0.0 || scale <= 0.0 || decay <= 0.0 || decay >= 1.0 {
        let message = "\"gauss\" needs an \"offset\" that is not negative, a \"scale\" above 0, and a \
                       \"decay\" between 0 and 1";
        return Err(bad(message.to_owned()));
    }
    let field = field_of(options.required("path")?, "gauss.path")?;
    let gauss = Gauss::new(number("origin")?, offset, scale, decay);
    Ok(ScoreFunction::Gauss(field, gauss))
}

/// Parses a path, or `{value: <path>, undefined: <number>}`.
fn field_of(value: ValueRef<'_>, name: &str) -> Result<FieldValue, Error> {
    match value {
        ValueRef::String(path) => Ok(FieldValue {
            path: path.to_owned(),
            undefined: 0.0,
        }),
        value => field_value(name, value, "value"),
    }
}

/// Parses a document that has a path in the field `path_name`, and perhaps `undefined`.
fn field_value(name: &str, value: ValueRef<'_>, path_name: &str) -> Result<FieldValue, Error> {
    let options = Options::new(name, value)?;
    options.check(&[path_name, "undefined"])?;
    let path = options.string(path_name)?;
    let path = path.ok_or_else(|| bad(format!("\"{name}.{path_name}\" is required")))?;
    Ok(FieldValue {
        path: path.to_owned(),
        undefined: match options.get("undefined") {
            None => 0.0,
            Some(number) => finite(number, &format!("{name}.undefined"))?,
        },
    })
}

fn finite(value: ValueRef<'_>, name: &str) -> Result<f64, Error> {
    let number = value.as_f64().filter(|number| number.is_finite());
    number.ok_or_else(|| bad(format!("\"{name}\" must be a finite number")))
}
