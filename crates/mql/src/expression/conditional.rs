//! `$cond`, `$ifNull`, `$switch`. Only the chosen branch is evaluated.

use windrow_document::{Document, ValueRef};
use windrow_invariant::Bug;

use super::parse::{NamedArguments, Parser, finish};
use super::tree::{ABSENT, Call, Operator};
use super::{Context, ExprValue, Expression};
use crate::Error;

static COND: NamedArguments = NamedArguments {
    not_document: 16020,
    unknown: 17083,
    names: &[
        ("if", Some(17080)),
        ("then", Some(17081)),
        ("else", Some(17082)),
    ],
};

pub(crate) fn parse_cond(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    parser: &Parser,
) -> Result<Expression, Error> {
    let arguments = match operand {
        ValueRef::Document(_) => COND
            .values(operator.name, operand)?
            .into_iter()
            .flatten()
            .map(|value| parser.parse(value))
            .collect::<Result<Vec<_>, _>>()?,
        operand => parser.list(operator.name, operand, 3..=3, 16020)?,
    };
    finish(Call::new(operator, arguments))
}

pub(crate) fn cond<'a>(call: &'a Call, context: &Context<'a>) -> Result<ExprValue<'a>, Error> {
    let chosen = if call.value(0, context)?.is_truthy() {
        1
    } else {
        2
    };
    call.value(chosen, context)
}

/// Parses `$ifNull`: at least two arguments. The last one is the result if all others are null.
pub(crate) fn parse_if_null(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    parser: &Parser,
) -> Result<Expression, Error> {
    let arguments = parser.list(operator.name, operand, 0..=usize::MAX, 0)?;
    if arguments.len() < 2 {
        // 16020 is the error code of MongoDB before 5.0, where `$ifNull` had exactly two arguments.
        let found = arguments.len();
        let message = format!("$ifNull needs at least two arguments, had: {found}");
        return Err(Error::new(16020, message));
    }
    finish(Call::new(operator, arguments))
}

pub(crate) fn if_null<'a>(call: &'a Call, context: &Context<'a>) -> Result<ExprValue<'a>, Error> {
    let Some((last, others)) = call.arguments.split_last() else {
        return Err(Bug::new("$ifNull has no arguments").into());
    };
    for argument in others {
        let value = argument.evaluate(context)?;
        if !value.is_nullish() {
            return Ok(value);
        }
    }
    last.evaluate(context)
}

/// Parses `$switch`. Arguments: case, then, case, then, …, and the default, which may be absent.
pub(crate) fn parse_switch(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    parser: &Parser,
) -> Result<Expression, Error> {
    let Some(document) = operand.as_document() else {
        let message = "$switch requires an object as an argument, found: ";
        return Err(Error::new(
            40060,
            format!("{message}{}", operand.type_of().name()),
        ));
    };
    let mut arguments = Vec::new();
    let mut default = ABSENT.clone();
    for (name, value) in document {
        match name {
            "branches" => parse_branches(value, parser, &mut arguments)?,
            "default" => default = parser.parse(value)?,
            _ => {
                return Err(Error::new(
                    40067,
                    format!("$switch found an unknown argument: {name}"),
                ));
            }
        }
    }
    if arguments.is_empty() {
        return Err(Error::new(40068, "$switch requires at least one branch."));
    }
    arguments.push(default);
    finish(Call::new(operator, arguments))
}

fn parse_branches(
    value: ValueRef<'_>,
    parser: &Parser,
    arguments: &mut Vec<Expression>,
) -> Result<(), Error> {
    let Some(branches) = value.as_array() else {
        let message = "$switch expected an array for 'branches', found: ";
        return Err(Error::new(
            40061,
            format!("{message}{}", value.type_of().name()),
        ));
    };
    for branch in branches {
        let Some(branch) = branch.as_document() else {
            let message = "$switch expected each branch to be an object, found: ";
            return Err(Error::new(
                40062,
                format!("{message}{}", branch.type_of().name()),
            ));
        };
        arguments.extend(parse_branch(branch, parser)?);
    }
    Ok(())
}

fn parse_branch(branch: Document<'_>, parser: &Parser) -> Result<[Expression; 2], Error> {
    let (mut case, mut then) = (None, None);
    for (name, value) in branch {
        match name {
            "case" => case = Some(parser.parse(value)?),
            "then" => then = Some(parser.parse(value)?),
            _ => {
                let message = format!("$switch found an unknown argument to a branch: {name}");
                return Err(Error::new(40063, message));
            }
        }
    }
    let case = case.ok_or(Error::new(
        40064,
        "$switch requires each branch have a 'case' expression",
    ))?;
    let then = then.ok_or(Error::new(
        40065,
        "$switch requires each branch have a 'then' expression.",
    ))?;
    Ok([case, then])
}

pub(crate) fn switch<'a>(call: &'a Call, context: &Context<'a>) -> Result<ExprValue<'a>, Error> {
    let (branches, default) = call.arguments.as_chunks::<2>();
    for [case, then] in branches {
        if case.evaluate(context)?.is_truthy() {
            return then.evaluate(context);
        }
    }
    match default.first() {
        Some(default) if !default.is_absent() => default.evaluate(context),
        _ => Err(Error::new(
            40066,
            "$switch could not find a matching branch for an input, and no default was specified.",
        )),
    }
}
