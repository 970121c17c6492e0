//! The tree of an expression and its evaluation. An operator evaluates those arguments that it
//! needs.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use windrow_document::path::Component;
use windrow_document::{Document, Value, ValueRef};

use super::array_sort_order::ArraySortOrder;
use super::context::{Context, Scope, VariableSource, Variables};
use super::date::date_constants::DateConstants;
use super::dependencies::Dependencies;
use super::expr_value::ExprValue;
use super::field_path::VariablePath;
use crate::Error;
use crate::field_lineage::FieldLineage;
use crate::filter::regex::Regex;
use crate::interrupt::{count_bytes, count_work};
use crate::memory::{
    CachedConstant, LimitedArrayBuilder, LimitedDocumentBuilder, check_limit, check_live,
    check_value, heap_bytes,
};

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression(pub(super) ExpressionNode);

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ExpressionNode {
    /// An optional argument that is absent. Evaluates to missing.
    Absent,
    Constant(Value),
    /// A computed constant that is larger than its expression. It counts against the budget of
    /// cached constants.
    CachedConstant(CachedConstant),
    Path(VariablePath),
    Document(Box<[(Box<str>, Expression)]>),
    Array(Box<[Expression]>),
    Call(Box<Call>),
}

pub(crate) static ABSENT: Expression = Expression(ExpressionNode::Absent);

impl Expression {
    /// Returns an expression with a constant value.
    pub fn from_constant(value: Value) -> Expression {
        Expression(ExpressionNode::Constant(value))
    }

    pub(super) fn call(call: Call) -> Expression {
        Expression(ExpressionNode::Call(Box::new(call))).fold_constants()
    }

    /// Replaces the expression by a constant if all of its parts are constant and no collation can
    /// change the result. An expression that fails is left as it is:
    /// [`Expression::check_constants`] reports its error.
    pub(super) fn fold_constants(self) -> Expression {
        if !self.can_fold_constants() {
            return self;
        }
        let known = Variables::new();
        let computed = self.evaluate_constant(&known).map(ExprValue::into_value);
        let Ok(Some(value)) = computed else {
            return self;
        };
        match &self.0 {
            ExpressionNode::Call(call) if call.compares_strings(&known) => self,
            _ if self.is_smaller_than(&value) => CachedConstant::new(value)
                .map_or(self, |cached| {
                    Expression(ExpressionNode::CachedConstant(cached))
                }),
            _ => Expression::from_constant(value),
        }
    }

    /// Fails with the error of the first part that fails for constant operands.
    pub(super) fn check_constants(&self) -> Result<(), Error> {
        match &self.0 {
            ExpressionNode::Document(fields) => fields
                .iter()
                .try_for_each(|(_, field)| field.check_constants())?,
            ExpressionNode::Array(elements) => {
                elements.iter().try_for_each(Expression::check_constants)?
            }
            ExpressionNode::Call(call) => call
                .arguments
                .iter()
                .try_for_each(Expression::check_constants)?,
            ExpressionNode::Absent
            | ExpressionNode::Constant(_)
            | ExpressionNode::CachedConstant(_)
            | ExpressionNode::Path(_) => {}
        }
        if self.can_fold_constants() {
            self.evaluate_constant(&Variables::new()).map(drop)
        } else {
            Ok(())
        }
    }

    fn can_fold_constants(&self) -> bool {
        match &self.0 {
            ExpressionNode::Document(fields) => {
                fields.iter().all(|(_, field)| field.is_constant_node())
            }
            ExpressionNode::Array(elements) => elements.iter().all(Expression::is_constant_node),
            ExpressionNode::Call(call) => call.can_fold_constants(),
            ExpressionNode::Absent
            | ExpressionNode::Constant(_)
            | ExpressionNode::CachedConstant(_)
            | ExpressionNode::Path(_) => false,
        }
    }

    /// Returns `true` if the value is larger than the expression (`$range`), or if it contains such
    /// a value. Only the cache may then hold the value.
    fn is_smaller_than(&self, value: &Value) -> bool {
        match &self.0 {
            ExpressionNode::Document(fields) => fields.iter().any(|(_, field)| field.is_cached()),
            ExpressionNode::Array(elements) => elements.iter().any(Expression::is_cached),
            ExpressionNode::Call(call) => call.is_smaller_than(value),
            ExpressionNode::Absent
            | ExpressionNode::Constant(_)
            | ExpressionNode::CachedConstant(_)
            | ExpressionNode::Path(_) => false,
        }
    }

    fn is_cached(&self) -> bool {
        matches!(self.0, ExpressionNode::CachedConstant(_))
    }

    /// Returns `true` if the value does not depend on the document.
    fn is_constant_node(&self) -> bool {
        matches!(
            self.0,
            ExpressionNode::Absent
                | ExpressionNode::Constant(_)
                | ExpressionNode::CachedConstant(_)
        )
    }

    pub(crate) fn is_absent(&self) -> bool {
        matches!(self.0, ExpressionNode::Absent)
    }

    /// Returns the value of a constant expression, if it is stored in the tree or in the cache.
    pub fn constant(&self) -> Option<&Value> {
        match &self.0 {
            ExpressionNode::Constant(value) => Some(value),
            ExpressionNode::CachedConstant(cached) => Some(cached.value()),
            _ => None,
        }
    }

    /// Returns the value of a constant that is not larger than its expression.
    pub(super) fn inline_constant(&self) -> Option<ValueRef<'_>> {
        match &self.0 {
            ExpressionNode::Constant(value) => Some(value.as_ref()),
            _ => None,
        }
    }

    /// Returns the value of a constant expression, even if the cache has no space for it. Variables
    /// that a command's `let` defines in `scope` are constants. Fails with 146 if the value is
    /// computed and large, because the caller holds it outside of the budget of cached constants.
    pub fn to_constant(&self, scope: &Scope) -> Result<Option<Value>, Error> {
        const BYTES_MAX: usize = 1 << 10;
        if let ExpressionNode::Constant(value) = &self.0 {
            return Ok(Some(value.clone()));
        }
        let known = scope.variables();
        if !self.is_constant_with(known) {
            return Ok(None);
        }
        let value = self.evaluate_constant(known)?;
        let bytes = value.as_ref().map_or(0, heap_bytes);
        check_limit("a computed constant", bytes, BYTES_MAX)?;
        Ok(value.into_value())
    }

    /// Returns `true` if the expression always has the same value, whatever the collation.
    pub(crate) fn is_constant(&self) -> bool {
        self.is_constant_with(&Variables::new())
    }

    /// As [`Expression::is_constant`], with variables that are constants.
    fn is_constant_with(&self, known: &Variables) -> bool {
        let is_constant = |one: &Expression| one.is_constant_with(known);
        match &self.0 {
            ExpressionNode::Absent
            | ExpressionNode::Constant(_)
            | ExpressionNode::CachedConstant(_) => true,
            ExpressionNode::Path(path) => match &path.source {
                VariableSource::Outer(name) => known.is_constant(name),
                _ => false,
            },
            ExpressionNode::Document(fields) => fields.iter().all(|(_, field)| is_constant(field)),
            ExpressionNode::Array(elements) => elements.iter().all(is_constant),
            ExpressionNode::Call(call) => {
                call.operator.is_pure
                    && call.arguments.iter().all(is_constant)
                    && !call.compares_strings(known)
            }
        }
    }

    fn evaluate_constant<'a>(&'a self, known: &'a Variables) -> Result<ExprValue<'a>, Error> {
        self.evaluate(&Context::new(Document::EMPTY).with_variables(known))
            .map_err(Error::into_constant_error)
    }

    /// Returns the dotted path if the expression is only a path in the document, such as `"$a.b"`.
    pub fn field_path(&self) -> Option<String> {
        match &self.0 {
            ExpressionNode::Path(path) => path.dotted(),
            _ => None,
        }
    }

    /// Returns the lineage of `rest` within the expression's value, or `None` if it is unknown.
    pub fn lineage(&self, rest: &[Component]) -> Option<FieldLineage> {
        match &self.0 {
            ExpressionNode::Path(path) => path.lineage(rest),
            ExpressionNode::Document(fields) => {
                let (first, rest) = rest.split_first()?;
                let mut fields = fields.iter();
                let (_, field) = fields.find(|(name, _)| **name == *first.name())?;
                field.lineage(rest)
            }
            _ => None,
        }
    }

    /// Evaluates the expression on a document.
    ///
    /// # Errors
    ///
    /// Fails with MongoDB's error number of the operator that fails, with 146 if values are too
    /// large, and with the error of the interrupt.
    ///
    /// ```
    /// use windrow_document::{ValueRef, doc};
    /// use windrow_mql::expression::{Context, Expression, Scope};
    /// let source = doc! { "$divide": ["$total", "$count"] };
    /// let mean = Expression::parse(ValueRef::Document(source.as_document()), &Scope::new())?;
    /// let item = doc! { "total": 6, "count": 4 };
    /// let context = Context::new(item.as_document());
    /// assert_eq!(mean.evaluate(&context)?.to_value(), Some(1.5.into()));
    /// let item = doc! { "total": 6, "count": 0 };
    /// let context = Context::new(item.as_document());
    /// assert_eq!(mean.evaluate(&context).map(drop).map_err(|error| error.code), Err(16608));
    /// # Ok::<(), windrow_mql::Error>(())
    /// ```
    pub fn evaluate<'a>(&'a self, context: &Context<'a>) -> Result<ExprValue<'a>, Error> {
        match &self.0 {
            ExpressionNode::Absent => Ok(ExprValue::Missing),
            ExpressionNode::Constant(value) => Ok(ExprValue::Borrowed(value.as_ref())),
            ExpressionNode::CachedConstant(cached) => {
                Ok(ExprValue::Borrowed(cached.value().as_ref()))
            }
            ExpressionNode::Path(path) => {
                let found = path.evaluate(context);
                if let ExprValue::Owned(_) = found {
                    check_live("a path")?;
                }
                Ok(found)
            }
            ExpressionNode::Call(call) => call.evaluate(context),
            ExpressionNode::Document(fields) => evaluate_document(fields, context),
            ExpressionNode::Array(elements) => evaluate_array(elements, context),
        }
    }

    /// Returns the operator name and the arguments, if the expression is a call.
    pub(crate) fn as_call(&self) -> Option<(&'static str, &[Expression])> {
        match &self.0 {
            ExpressionNode::Call(call) => Some((call.operator.name, &call.arguments)),
            _ => None,
        }
    }

    /// Returns the start of the path, if the expression is a path.
    pub(super) fn path_source(&self) -> Option<&VariableSource> {
        match &self.0 {
            ExpressionNode::Path(path) => Some(&path.source),
            _ => None,
        }
    }

    /// Returns `true` if the expression is the local variable of this frame, without a path in it.
    pub(super) fn is_local(&self, frame: u32) -> bool {
        match &self.0 {
            ExpressionNode::Path(path) => {
                path.source == VariableSource::Local(frame) && path.names.is_empty()
            }
            _ => false,
        }
    }

    /// Returns `true` if the expression contains the local variable of this frame.
    pub(super) fn reads_local(&self, frame: u32) -> bool {
        match &self.0 {
            ExpressionNode::Absent
            | ExpressionNode::Constant(_)
            | ExpressionNode::CachedConstant(_) => false,
            ExpressionNode::Path(path) => path.source == VariableSource::Local(frame),
            ExpressionNode::Call(call) => call.arguments.iter().any(|one| one.reads_local(frame)),
            ExpressionNode::Document(fields) => {
                fields.iter().any(|(_, one)| one.reads_local(frame))
            }
            ExpressionNode::Array(elements) => elements.iter().any(|one| one.reads_local(frame)),
        }
    }

    /// Returns `true` if the value depends on variables only, not on the document.
    pub(crate) fn is_independent_of_document(&self) -> bool {
        let read = Dependencies {
            variables: BTreeSet::new(),
            ..self.dependencies()
        };
        read == Dependencies::default()
    }

    /// Returns the fields, metadata and variables that the expression reads.
    pub fn dependencies(&self) -> Dependencies {
        let mut dependencies = Dependencies::default();
        self.add_dependencies(&mut dependencies);
        dependencies
    }

    /// Adds the fields, metadata and variables that the expression reads.
    pub fn add_dependencies(&self, dependencies: &mut Dependencies) {
        match &self.0 {
            ExpressionNode::Absent
            | ExpressionNode::Constant(_)
            | ExpressionNode::CachedConstant(_) => {}
            ExpressionNode::Path(path) => dependencies.add_path(path),
            ExpressionNode::Call(call) => call.add_dependencies(dependencies),
            ExpressionNode::Document(fields) => {
                fields
                    .iter()
                    .for_each(|(_, field)| field.add_dependencies(dependencies));
            }
            ExpressionNode::Array(elements) => {
                elements
                    .iter()
                    .for_each(|element| element.add_dependencies(dependencies));
            }
        }
    }
}

/// Evaluates an object. Fields with missing values are left out.
fn evaluate_document<'a>(
    fields: &'a [(Box<str>, Expression)],
    context: &Context<'a>,
) -> Result<ExprValue<'a>, Error> {
    let mut builder = LimitedDocumentBuilder::new("an object");
    for (name, field) in fields {
        if let Some(value) = field.evaluate(context)?.as_ref() {
            builder.append(name, value)?;
        }
    }
    Ok(builder.finish().into())
}

/// Evaluates an array. Missing values become null.
fn evaluate_array<'a>(
    elements: &'a [Expression],
    context: &Context<'a>,
) -> Result<ExprValue<'a>, Error> {
    let mut builder = LimitedArrayBuilder::new("an array");
    for element in elements {
        builder.push(element.evaluate(context)?.or_null())?;
    }
    Ok(builder.finish().into())
}

/// Checks the length of a computed string. Fails with 16493 from 16 MiB on, the maximum size of a
/// document.
pub(super) fn check_length(bytes: usize) -> Result<(), Error> {
    const BYTES_MAX: usize = 16 << 20;
    if bytes < BYTES_MAX {
        return Ok(());
    }
    let message = "Tried to create string longer than 16MB";
    Err(Error::new(16493, message))
}

/// The result of an evaluation.
pub(crate) type EvalResult<'a> = Result<ExprValue<'a>, Error>;

pub(crate) type Evaluate = for<'a> fn(&'a Call, &Context<'a>) -> EvalResult<'a>;
pub(crate) type Prepare = fn(&mut Call) -> Result<(), Error>;

/// The implementation of an operator.
pub(crate) struct Operator {
    pub name: &'static str,
    pub evaluate: Evaluate,
    /// Precomputes the parts of a call that depend on constant arguments only.
    pub prepare: Option<Prepare>,
    /// `true` if the same arguments always give the same value.
    pub is_pure: bool,
    /// `true` if it compares strings with the collation, which is not known while parsing.
    pub compares: bool,
}

/// A call of an operator. Named arguments are in the order of the operator's table. Absent ones are
/// included.
#[derive(Clone)]
pub(crate) struct Call {
    pub operator: &'static Operator,
    pub arguments: Box<[Expression]>,
    pub prepared: PreparedArguments,
}

/// The precomputed part of a call.
#[derive(Clone, Debug, Default)]
pub(crate) enum PreparedArguments {
    #[default]
    Nothing,
    /// The frames of the variables that the operator defines.
    Frames(Box<[u32]>),
    /// The frames of a `$reduce` that only appends to an array.
    AppendingFrames(Box<[u32]>),
    /// The sort order of `$sortArray`.
    ArraySortOrder(ArraySortOrder),
    /// The number of inputs of `$zip`, and whether the longest counts.
    Zip { count: usize, longest: bool },
    /// The compiled regular expression. `None` if the pattern is null.
    Regex(Option<Regex>),
    /// The time zone and the format of a date operator.
    Date(Box<DateConstants>),
    /// The sorted distinct elements of the constant list of `$in`.
    Sorted(Arc<[Value]>),
    /// The points of `$percentile`.
    Points { points: Vec<f64>, is_median: bool },
}

impl Call {
    pub fn new(operator: &'static Operator, arguments: Vec<Expression>) -> Call {
        Call {
            operator,
            arguments: arguments.into(),
            prepared: PreparedArguments::Nothing,
        }
    }

    pub fn with_frames(self, frames: Vec<u32>) -> Call {
        Call {
            prepared: PreparedArguments::Frames(frames.into()),
            ..self
        }
    }

    pub fn can_fold_constants(&self) -> bool {
        self.operator.is_pure && self.arguments.iter().all(Expression::is_constant_node)
    }

    /// Returns `true` if a collation may change the result for these constant arguments.
    fn compares_strings(&self, known: &Variables) -> bool {
        let has_strings = |argument: &Expression| match argument.evaluate_constant(known) {
            Ok(value) => value.as_ref().is_some_and(has_strings),
            Err(_) => false,
        };
        self.operator.compares && self.arguments.iter().any(has_strings)
    }

    pub fn evaluate<'a>(&'a self, context: &Context<'a>) -> EvalResult<'a> {
        count_work(1)?;
        let result = (self.operator.evaluate)(self, context)?;
        if let ExprValue::Owned(owned) = &result {
            let value = owned.as_ref();
            match value {
                ValueRef::String(text) => check_length(text.len())?,
                value => check_value(self.operator.name, heap_bytes(value))?,
            }
            check_live(self.operator.name)?;
        }
        Ok(result)
    }

    /// Returns `true` if the value is larger than the call. Cached constants do not count as part
    /// of the call.
    fn is_smaller_than(&self, value: &Value) -> bool {
        const BYTES_MAX: usize = 128;
        let bytes = |argument: &Expression| match &argument.0 {
            ExpressionNode::Constant(value) => heap_bytes(value.as_ref()),
            _ => 0,
        };
        let bytes: usize = self.arguments.iter().map(bytes).sum();
        heap_bytes(value.as_ref()) > bytes.max(BYTES_MAX)
    }

    /// Returns the argument at an index. It is absent if there are fewer arguments.
    pub fn argument(&self, index: usize) -> &Expression {
        self.arguments.get(index).unwrap_or(&ABSENT)
    }

    /// Returns the value of the argument at an index.
    pub fn value<'a>(
        &'a self,
        index: usize,
        context: &Context<'a>,
    ) -> Result<ExprValue<'a>, Error> {
        let value = self.argument(index).evaluate(context)?;
        if let Some(value) = value.as_ref() {
            count_bytes(heap_bytes(value))?;
        }
        Ok(value)
    }

    /// Returns the number of the frame of the operator's variable at an index.
    ///
    /// # Panics
    /// Panics if the operator does not bind that many variables.
    pub fn frame(&self, index: usize) -> u32 {
        let frame = match &self.prepared {
            PreparedArguments::Frames(frames) | PreparedArguments::AppendingFrames(frames) => {
                frames.get(index)
            }
            _ => None,
        };
        match frame {
            Some(frame) => *frame,
            None => unreachable!("{} has no frame {index}", self.operator.name),
        }
    }

    pub fn add_dependencies(&self, dependencies: &mut Dependencies) {
        self.arguments
            .iter()
            .for_each(|argument| argument.add_dependencies(dependencies));
        match self.operator.name {
            "$meta" => {
                let name = self.arguments.first().and_then(Expression::constant);
                match name.and_then(|name| name.as_ref().as_str()) {
                    Some(name) => dependencies.add_meta(name),
                    None => unreachable!("$meta has no name"),
                }
            }
            "$rand" => dependencies.random = true,
            _ => {}
        }
    }
}

pub(super) fn has_strings(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::String(_) | ValueRef::Symbol(_) => true,
        ValueRef::Document(document) => document.iter().any(|(_, value)| has_strings(value)),
        ValueRef::Array(array) => array.iter().any(has_strings),
        _ => false,
    }
}

impl PartialEq for Call {
    /// The precomputed part follows from the arguments.
    fn eq(&self, other: &Call) -> bool {
        self.operator.name == other.operator.name && self.arguments == other.arguments
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.operator.name)?;
        formatter.debug_list().entries(&self.arguments).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::Scope;

    /// A computed constant that does not fit in the cache remains a call, and so does an expression
    /// that contains it.
    #[test]
    fn constants_that_are_not_cached_are_still_constant() {
        let parse = |value: Value| Expression::parse(value.as_ref(), &Scope::new()).unwrap();
        let array = |one: Expression| Expression(ExpressionNode::Array(Box::new([one])));
        let text = |bytes: usize| Value::from("x".repeat(bytes));
        let scope = Scope::new();
        let is_constant = |one: Expression| one.to_constant(&scope).map(|value| value.is_some());

        assert_eq!(is_constant(array(parse(text(9)))), Ok(true));
        assert_eq!(is_constant(array(parse(Value::from("$a")))), Ok(false));
        let random = windrow_document::doc! { "$rand": {} };
        assert_eq!(is_constant(array(parse(random.into()))), Ok(false));
        let long = is_constant(array(parse(text(1 << 10)))).unwrap_err();
        assert_eq!(long.code, 146);
        assert_eq!(is_constant(parse(text(1 << 10))), Ok(true));
    }
}
