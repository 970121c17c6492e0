//! `$cond`, `$ifNull`, `$switch`: only the branch that is chosen is evaluated.

use windrow_document::{Document, ValueRef};

use super::call::Call;
use super::operator::{Named, Operator, finish, list};
use super::{Computed, Context, Expression, Scope};
use crate::Error;

static COND: Named = Named {
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
    scope: &Scope,
) -> Result<Expression, Error> {
    let arguments = match operand {
        ValueRef::Document(_) => COND
            .values(operator.name, operand)?
            .into_iter()
            .flatten()
            .map(|value| Expression::parse(value, scope))
            .collect::<Result<Vec<_>, _>>()?,
        operand => list(operator.name, operand, scope, 3..=3, 16020)?,
    };
    finish(Call::new(operator, arguments))
}

pub(crate) fn cond<'a>(call: &'a Call, context: &Context<'a>) -> Result<Computed<'a>, Error> {
    let chosen = if call.value(0, context)?.is_truthy() {
        1
    } else {
        2
    };
    call.value(chosen, context)
}

/// Two arguments at least, the last being what is given where all before it are null.
pub(crate) fn parse_if_null(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    scope: &Scope,
) -> Result<Expression, Error> {
    // Before MongoDB 5.0 it took exactly two; 16020 is the code of that time.
    finish(Call::new(
        operator,
        list(operator.name, operand, scope, 2..=usize::MAX, 16020)?,
    ))
}

pub(crate) fn if_null<'a>(call: &'a Call, context: &Context<'a>) -> Result<Computed<'a>, Error> {
    let Some((last, others)) = call.arguments.split_last() else {
        return Ok(Computed::Missing);
    };
    for argument in others {
        let value = argument.evaluate(context)?;
        if !value.is_nullish() {
            return Ok(value);
        }
    }
    last.evaluate(context)
}

/// Arguments: case, then, case, then, …, and the default, which may be absent.
pub(crate) fn parse_switch(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    scope: &Scope,
) -> Result<Expression, Error> {
    let Some(document) = operand.as_document() else {
        let message = "$switch requires an object as an argument, found: ";
        return Err(Error::new(
            40060,
            format!("{message}{}", operand.type_of().name()),
        ));
    };
    let mut arguments = Vec::new();
    let mut default = super::ABSENT.clone();
    for (name, value) in document {
        match name {
            "branches" => parse_branches(value, scope, &mut arguments)?,
            "default" => default = Expression::parse(value, scope)?,
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
    scope: &Scope,
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
        arguments.extend(parse_branch(branch, scope)?);
    }
    Ok(())
}

fn parse_branch(branch: Document<'_>, scope: &Scope) -> Result<[Expression; 2], Error> {
    let (mut case, mut then) = (None, None);
    for (name, value) in branch {
        match name {
            "case" => case = Some(Expression::parse(value, scope)?),
            "then" => then = Some(Expression::parse(value, scope)?),
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

pub(crate) fn switch<'a>(call: &'a Call, context: &Context<'a>) -> Result<Computed<'a>, Error> {
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
