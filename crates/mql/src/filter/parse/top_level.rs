//! `$alwaysTrue`, `$alwaysFalse`, `$expr`, `$jsonSchema`, `$sampleRate`, `$text`, `$where`.

use windrow_document::{Document, ValueRef, doc};

use super::ConditionContext;
use crate::Error;
use crate::filter::expr::ExprCondition;
use crate::filter::node::{Node, TextQuery};
use crate::filter::schema::Schema;

pub(super) fn always(name: &str, operand: ValueRef<'_>, node: Node) -> Result<Node, Error> {
    if operand.as_whole() == Some(1) {
        Ok(node)
    } else {
        let message = format!("{name} must be an integer value of 1 but was: {operand}");
        Err(Error::failed_to_parse(message))
    }
}

/// Refuses `$where`. Windrow has no JavaScript engine. The message is that of a MongoDB server
/// whose JavaScript engine is disabled.
pub(super) fn unavailable_where(_: ValueRef<'_>, _: ConditionContext<'_>) -> Result<Node, Error> {
    Err(Error::bad_value("no globalScriptEngine in $where parsing"))
}

/// Parses `$jsonSchema`. Within `$elemMatch` the schema applies to an element that is a document.
pub(super) fn json_schema(operand: ValueRef<'_>, _: ConditionContext<'_>) -> Result<Node, Error> {
    Schema::parse(operand).map(Node::Schema)
}

fn not_in_element(name: &str, context: ConditionContext<'_>) -> Result<(), Error> {
    if context.is_in_element {
        let message = format!("{name} can only be applied to the top-level document");
        return Err(Error::bad_value(message));
    }
    Ok(())
}

pub(super) fn expr(operand: ValueRef<'_>, context: ConditionContext<'_>) -> Result<Node, Error> {
    not_in_element("$expr", context)?;
    let condition = ExprCondition::parse(operand, context.environment)?;
    Ok(match condition.expression.constant() {
        Some(value) if value.as_ref().is_truthy() => Node::AlwaysTrue,
        Some(_) => Node::AlwaysFalse,
        None => Node::Expr(condition),
    })
}

/// `{$sampleRate: 0.1}`: every document matches with this probability.
pub(super) fn sample_rate(
    operand: ValueRef<'_>,
    context: ConditionContext<'_>,
) -> Result<Node, Error> {
    match operand.as_f64() {
        Some(0.0) => Ok(Node::AlwaysFalse),
        Some(1.0) => Ok(Node::AlwaysTrue),
        Some(rate) if rate > 0.0 && rate < 1.0 => {
            let condition = doc! { "$lt": [{ "$rand": {} }, rate] };
            expr(ValueRef::Document(condition.as_document()), context)
        }
        Some(rate) => Err(Error::bad_value(format!(
            "numeric argument to $sampleRate must be in [0, 1], but is {rate}"
        ))),
        None => Err(Error::bad_value(
            "argument to $sampleRate must be a numeric type",
        )),
    }
}

pub(super) fn text(operand: ValueRef<'_>, context: ConditionContext<'_>) -> Result<Node, Error> {
    not_in_element("$text", context)?;
    let ValueRef::Document(options) = operand else {
        return Err(Error::bad_value("$text expects an object"));
    };
    let query = text_query(options)?;
    let known = [
        "$search",
        "$language",
        "$caseSensitive",
        "$diacriticSensitive",
    ];
    if options.iter().any(|(name, _)| !known.contains(&name)) {
        return Err(Error::bad_value("extra fields in $text"));
    }
    Ok(Node::Text(query))
}

fn text_query(options: Document<'_>) -> Result<TextQuery, Error> {
    let search = text_option(options, "$search")?
        .ok_or_else(|| Error::new(4, "Missing expected field \"$search\""))?;
    Ok(TextQuery {
        search,
        language: text_option(options, "$language")?,
        case_sensitive: flag_option(options, "$caseSensitive")?,
        diacritic_sensitive: flag_option(options, "$diacriticSensitive")?,
    })
}

fn text_option(options: Document<'_>, name: &str) -> Result<Option<String>, Error> {
    match options.get(name) {
        None => Ok(None),
        Some(ValueRef::String(text)) => Ok(Some(text.to_owned())),
        Some(other) => Err(wrong_type(name, "string", other)),
    }
}

fn flag_option(options: Document<'_>, name: &str) -> Result<bool, Error> {
    match options.get(name) {
        None => Ok(false),
        Some(ValueRef::Bool(flag)) => Ok(flag),
        Some(other) => Err(wrong_type(name, "bool", other)),
    }
}

fn wrong_type(name: &str, expected: &str, value: ValueRef<'_>) -> Error {
    Error::type_mismatch(format!(
        "\"{name}\" had the wrong type. Expected {expected}, found {}",
        value.type_of().name()
    ))
}
