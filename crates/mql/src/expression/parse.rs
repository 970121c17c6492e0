//! Parses expressions, for any table of operators.

use windrow_document::{Array, Document, Value, ValueRef};

use super::context::Scope;
use super::field_path::{VariablePath, check_name};
use super::tree::{ABSENT, Call, Expression, ExpressionNode, Operator, check_length};
use crate::Error;

/// An operator and the form of its operand.
pub(crate) struct Syntax {
    pub operator: Operator,
    pub form: OperandForm,
}

pub(crate) type Parse = fn(&'static Operator, ValueRef<'_>, &Parser) -> Result<Expression, Error>;

/// The form of the operand of an operator.
pub(crate) enum OperandForm {
    /// An array with this many arguments. A single argument may be written without the array. Fails
    /// with 16020 for another number.
    Exactly(usize),
    /// An array with a number of arguments in this range. Fails with 28667 for another number.
    Between(usize, usize),
    Any,
    NamedArguments(&'static NamedArguments),
    /// The operator reads its operand itself.
    Special(Parse),
}

/// The named arguments of an operator, as in `{input: …, chars: …}`.
pub(crate) struct NamedArguments {
    /// The error code if the operand is not a document.
    pub not_document: i32,
    /// The error code of an unknown name.
    pub unknown: i32,
    /// The names, and the error code of a required name that is missing.
    pub names: &'static [(&'static str, Option<i32>)],
}

/// Looks up an operator by its name, which includes the dollar sign.
pub(crate) type Find = fn(&str) -> Option<&'static Syntax>;

/// Parses expressions within a scope.
#[derive(Clone)]
pub(crate) struct Parser {
    find: Find,
    scope: Scope,
}

impl Parser {
    pub fn new(find: Find, scope: &Scope) -> Parser {
        Parser {
            find,
            scope: scope.clone(),
        }
    }

    /// Returns a parser for the inner scope with one more variable, and the number of its frame.
    pub fn define(&self, name: &str) -> (Parser, u32) {
        let (scope, frame) = self.scope.define(name);
        let find = self.find;
        (Parser { find, scope }, frame)
    }

    /// Parses a value as an expression.
    pub fn parse(&self, value: ValueRef<'_>) -> Result<Expression, Error> {
        match value {
            ValueRef::String(text) if text.starts_with('$') => Ok(Expression(
                ExpressionNode::Path(VariablePath::parse(text, &self.scope)?),
            )),
            ValueRef::Document(document) => self.document(document),
            ValueRef::Array(array) => self.array(array),
            constant => {
                constant
                    .as_str()
                    .map_or(Ok(()), |text| check_length(text.len()))?;
                Ok(Expression::from_constant(constant.to_value()))
            }
        }
    }

    /// Returns the value of an expression that must be constant, or `None` if it is not constant.
    pub fn constant(&self, value: ValueRef<'_>) -> Result<Option<Value>, Error> {
        self.parse(value)?.to_constant(&self.scope)
    }

    fn document(&self, document: Document<'_>) -> Result<Expression, Error> {
        match document.first() {
            Some((name, operand)) if name.starts_with('$') => {
                if document.count() != 1 {
                    let message = "an expression specification must contain exactly one field, the name of the expression.";
                    return Err(Error::new(15983, format!("{message} Found {document}")));
                }
                self.call(name, operand)
            }
            _ => self.fields(document),
        }
    }

    /// Parses a document whose fields are expressions. The names must not contain dots or start
    /// with a dollar sign.
    fn fields(&self, document: Document<'_>) -> Result<Expression, Error> {
        let mut fields: Vec<(Box<str>, Expression)> = Vec::new();
        for (name, value) in document {
            check_name(name)?;
            if name.contains('.') {
                let message = format!("FieldPath field names may not contain '.' in '{name}'");
                return Err(Error::new(16412, message));
            }
            if fields.iter().any(|(known, _)| **known == *name) {
                let message =
                    format!("duplicate field name specified in object literal: {document}");
                return Err(Error::new(16406, message));
            }
            fields.push((name.into(), self.parse(value)?));
        }
        let node = Expression(ExpressionNode::Document(fields.into()));
        Ok(node.fold_constants())
    }

    fn array(&self, array: Array<'_>) -> Result<Expression, Error> {
        let elements: Result<Vec<_>, _> = array.iter().map(|value| self.parse(value)).collect();
        Ok(Expression(ExpressionNode::Array(elements?.into())).fold_constants())
    }

    /// Parses `{name: operand}`. Fails with 168 InvalidPipelineOperator for an unknown name.
    fn call(&self, name: &str, operand: ValueRef<'_>) -> Result<Expression, Error> {
        let Some(Syntax { operator, form }) = (self.find)(name) else {
            if name == "$function" {
                return Err(Error::no_scripts(name));
            }
            return Err(Error::new(168, format!("Unrecognized expression '{name}'")));
        };
        let arguments = match *form {
            OperandForm::Exactly(count) => {
                self.list(operator.name, operand, count..=count, 16020)?
            }
            OperandForm::Between(least, most) => {
                self.list(operator.name, operand, least..=most, 28667)?
            }
            OperandForm::Any => self.list(operator.name, operand, 0..=usize::MAX, 0)?,
            OperandForm::NamedArguments(named) => named.parse(operator.name, operand, self)?,
            OperandForm::Special(parse) => return parse(operator, operand, self),
        };
        finish(Call::new(operator, arguments))
    }

    /// Parses a list of arguments. A single argument may be written without an array.
    pub fn list(
        &self,
        name: &str,
        operand: ValueRef<'_>,
        counts: std::ops::RangeInclusive<usize>,
        code: i32,
    ) -> Result<Vec<Expression>, Error> {
        let arguments: Vec<Expression> = match operand {
            ValueRef::Array(array) => array
                .iter()
                .map(|value| self.parse(value))
                .collect::<Result<_, _>>()?,
            single => vec![self.parse(single)?],
        };
        if counts.contains(&arguments.len()) {
            return Ok(arguments);
        }
        let (least, most) = counts.into_inner();
        let expected = if least == most {
            least.to_string()
        } else {
            format!("{least} to {most}")
        };
        let found = arguments.len();
        let message =
            format!("Expression {name} takes {expected} arguments. {found} were passed in.");
        Err(Error::new(code, message))
    }
}

/// Prepares a call and folds it if it is constant.
pub(crate) fn finish(mut call: Call) -> Result<Expression, Error> {
    if let Some(prepare) = call.operator.prepare {
        prepare(&mut call)?;
    }
    Ok(Expression::call(call))
}

impl NamedArguments {
    /// Parses the arguments, in the order of the table.
    pub fn parse(
        &self,
        operator: &str,
        operand: ValueRef<'_>,
        parser: &Parser,
    ) -> Result<Vec<Expression>, Error> {
        let values = self.values(operator, operand)?;
        let parse = |value: Option<ValueRef<'_>>| match value {
            Some(value) => parser.parse(value),
            None => Ok(ABSENT.clone()),
        };
        values.into_iter().map(parse).collect()
    }

    /// Returns the unparsed arguments, in the order of the table.
    pub fn values<'v>(
        &self,
        operator: &str,
        operand: ValueRef<'v>,
    ) -> Result<Vec<Option<ValueRef<'v>>>, Error> {
        let document = self.document(operator, operand)?;
        let mut values = vec![None; self.names.len()];
        for (name, value) in document {
            let index = self.names.iter().position(|(known, _)| *known == name);
            match index.and_then(|index| values.get_mut(index)) {
                Some(slot) => *slot = Some(value),
                None => {
                    let message = format!("Unrecognized argument to {operator}: {name}");
                    return Err(Error::new(self.unknown, message));
                }
            }
        }
        for ((name, required), value) in self.names.iter().zip(&values) {
            if let (Some(code), None) = (required, value) {
                let message = format!("Missing '{name}' parameter to {operator}");
                return Err(Error::new(*code, message));
            }
        }
        Ok(values)
    }

    fn document<'v>(&self, operator: &str, operand: ValueRef<'v>) -> Result<Document<'v>, Error> {
        operand.as_document().ok_or_else(|| {
            let found = operand.type_of().name();
            let message =
                format!("{operator} only supports an object as its argument, found {found}");
            Error::new(self.not_document, message)
        })
    }
}
