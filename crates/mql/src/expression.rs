//! Aggregation expressions: parsed once into a tree, evaluated on documents as BSON bytes.
//!
//! ```
//! use windrow_document::{doc, Value, ValueRef};
//! use windrow_mql::expression::{Context, Expression, Scope};
//! let source = doc! { "$add": ["$price", 1] };
//! let sum = Expression::parse(ValueRef::Document(source.as_document()), &Scope::new()).unwrap();
//! let item = doc! { "price": 2.5 };
//! let context = Context::new(item.as_document());
//! assert_eq!(sum.evaluate(&context).unwrap().to_value(), Some(Value::Double(3.5)));
//! ```
//! What is constant is computed while parsing, so its errors come then. `operator` has the table of
//! all operators; one module beside it is one family of them.

pub(crate) mod accumulated;
pub(crate) mod arithmetic;
mod array;
mod array_object;
mod array_scope;
mod array_sort;
mod bits;
mod boolean;
mod call;
mod comparison;
mod computed;
mod conditional;
mod context;
mod convert;
pub(crate) mod date;
mod dependencies;
mod field_path;
mod meta;
pub(crate) mod number;
mod object;
mod operator;
pub(crate) mod percentile;
mod real;
mod regex;
mod rounding;
mod set;
pub(crate) mod statistics;
mod string;
pub(crate) mod summation;
mod variable;
mod zip;

pub(crate) use array_sort::parse_count;
pub use computed::Computed;
pub use context::{Context, Scope, Variables};
pub use dependencies::Dependencies;
pub(crate) use field_path::check_name;
pub use field_path::check_variable_for_writing;
pub(crate) use operator::is_operator;

use call::Call;
use field_path::FieldPath;
use windrow_document::{Array, ArrayBuilder, Document, DocumentBuilder, Value, ValueRef};

use crate::Error;

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression(Node);

#[derive(Clone, Debug, PartialEq)]
enum Node {
    /// An optional argument that was not given. Evaluates to missing.
    Absent,
    Constant(Value),
    Path(FieldPath),
    Document(Box<[(Box<str>, Expression)]>),
    Array(Box<[Expression]>),
    Call(Box<Call>),
}

static ABSENT: Expression = Expression(Node::Absent);

impl Expression {
    /// Parses a value where an expression may stand. Errors carry MongoDB's codes: 168 for an
    /// operator that is not known, 16020 for a wrong number of arguments, and the operators' own.
    pub fn parse(value: ValueRef<'_>, scope: &Scope) -> Result<Expression, Error> {
        match value {
            ValueRef::String(text) if text.starts_with('$') => {
                Ok(Expression(Node::Path(FieldPath::parse(text, scope)?)))
            }
            ValueRef::Document(document) => Expression::parse_document(document, scope),
            ValueRef::Array(array) => Expression::parse_array(array, scope),
            constant => Ok(Expression::constant_of(constant.to_value())),
        }
    }

    /// An expression that gives this value, whatever the document.
    pub fn constant_of(value: Value) -> Expression {
        Expression(Node::Constant(value))
    }

    fn parse_document(document: Document<'_>, scope: &Scope) -> Result<Expression, Error> {
        match document.first() {
            Some((name, operand)) if name.starts_with('$') => {
                if document.count() != 1 {
                    let message = "an expression specification must contain exactly one field, the name of the expression.";
                    return Err(Error::new(15983, format!("{message} Found {document}")));
                }
                operator::parse(name, operand, scope)
            }
            _ => Expression::parse_fields(document, scope),
        }
    }

    /// A document whose fields are expressions. Its names must be plain.
    fn parse_fields(document: Document<'_>, scope: &Scope) -> Result<Expression, Error> {
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
            fields.push((name.into(), Expression::parse(value, scope)?));
        }
        let node = Expression(Node::Document(fields.into()));
        node.folded()
    }

    fn parse_array(array: Array<'_>, scope: &Scope) -> Result<Expression, Error> {
        let elements: Result<Vec<_>, _> = array
            .iter()
            .map(|value| Expression::parse(value, scope))
            .collect();
        Expression(Node::Array(elements?.into())).folded()
    }

    fn call(call: Call) -> Result<Expression, Error> {
        Expression(Node::Call(Box::new(call))).folded()
    }

    /// The constant that it is where all of its parts are constant.
    fn folded(self) -> Result<Expression, Error> {
        let foldable = match &self.0 {
            Node::Document(fields) => fields.iter().all(|(_, field)| field.is_fixed()),
            Node::Array(elements) => elements.iter().all(Expression::is_fixed),
            Node::Call(call) => call.is_foldable(),
            Node::Absent | Node::Constant(_) | Node::Path(_) => false,
        };
        if !foldable {
            return Ok(self);
        }
        let value = self.evaluate(&Context::new(Document::EMPTY))?.into_value();
        Ok(value.map_or(self, Expression::constant_of))
    }

    /// Whether no document changes what it gives.
    fn is_fixed(&self) -> bool {
        matches!(self.0, Node::Absent | Node::Constant(_))
    }

    pub(crate) fn is_absent(&self) -> bool {
        matches!(self.0, Node::Absent)
    }

    /// The value where it is a constant.
    pub fn constant(&self) -> Option<&Value> {
        match &self.0 {
            Node::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// The dotted path where the expression is nothing but a path in the document: `"$a.b"`.
    pub fn field_path(&self) -> Option<String> {
        match &self.0 {
            Node::Path(path) => path.dotted(),
            _ => None,
        }
    }

    /// The value for one document.
    pub fn evaluate<'a>(&'a self, context: &Context<'a>) -> Result<Computed<'a>, Error> {
        match &self.0 {
            Node::Absent => Ok(Computed::Missing),
            Node::Constant(value) => Ok(Computed::Borrowed(value.as_ref())),
            Node::Path(path) => Ok(path.evaluate(context)),
            Node::Call(call) => call.evaluate(context),
            Node::Document(fields) => evaluate_document(fields, context),
            Node::Array(elements) => evaluate_array(elements, context),
        }
    }

    /// What it reads.
    pub fn paths(&self) -> Dependencies {
        let mut dependencies = Dependencies::default();
        self.collect(&mut dependencies);
        dependencies
    }

    /// Adds what it reads.
    pub fn collect(&self, dependencies: &mut Dependencies) {
        match &self.0 {
            Node::Absent | Node::Constant(_) => {}
            Node::Path(path) => dependencies.add_path(path),
            Node::Call(call) => call.collect(dependencies),
            Node::Document(fields) => {
                fields
                    .iter()
                    .for_each(|(_, field)| field.collect(dependencies));
            }
            Node::Array(elements) => {
                elements
                    .iter()
                    .for_each(|element| element.collect(dependencies));
            }
        }
    }
}

/// Missing values leave their field out.
fn evaluate_document<'a>(
    fields: &'a [(Box<str>, Expression)],
    context: &Context<'a>,
) -> Result<Computed<'a>, Error> {
    let mut builder = DocumentBuilder::new();
    for (name, field) in fields {
        if let Some(value) = field.evaluate(context)?.as_ref() {
            builder.append(name, value);
        }
    }
    Ok(builder.finish().into())
}

/// Missing values stand as null.
fn evaluate_array<'a>(
    elements: &'a [Expression],
    context: &Context<'a>,
) -> Result<Computed<'a>, Error> {
    let mut builder = ArrayBuilder::new();
    for element in elements {
        builder.push(element.evaluate(context)?.or_null());
    }
    Ok(builder.finish().into())
}
