//! The tree of an expression, and its evaluation: an operator evaluates its arguments as it needs
//! them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use windrow_document::path::Component;
use windrow_document::{Document, Value, ValueRef};

use super::array_order::Order;
use super::computed::Computed;
use super::context::{Context, Scope, Source, Variables};
use super::date::constants::Constants;
use super::dependencies::Dependencies;
use super::field_path::FieldPath;
use crate::Error;
use crate::field_lineage::FieldLineage;
use crate::filter::regex::Regex;
use crate::interrupt::{count_bytes, count_work};
use crate::memory::{Fields, Kept, List, check_live, check_value, heap_bytes, within};

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression(pub(super) Node);

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// An optional argument that was not given. Evaluates to missing.
    Absent,
    Constant(Value),
    /// A constant that is longer than what it was made of.
    Kept(Kept),
    Path(FieldPath),
    Document(Box<[(Box<str>, Expression)]>),
    Array(Box<[Expression]>),
    Call(Box<Call>),
}

pub(crate) static ABSENT: Expression = Expression(Node::Absent);

impl Expression {
    /// An expression that gives this value, whatever the document.
    pub fn constant_of(value: Value) -> Expression {
        Expression(Node::Constant(value))
    }

    pub(super) fn call(call: Call) -> Expression {
        Expression(Node::Call(Box::new(call))).folded()
    }

    /// The constant that it is where all of its parts are constant, whatever the collation. What fails
    /// stays as it is: [`Expression::check_constants`] tells of it.
    pub(super) fn folded(self) -> Expression {
        if !self.is_foldable() {
            return self;
        }
        let known = Variables::new();
        let computed = self.evaluate_constant(&known).map(Computed::into_value);
        let Ok(Some(value)) = computed else {
            return self;
        };
        match &self.0 {
            Node::Call(call) if call.compares_strings(&known) => self,
            _ if self.is_short_for(&value) => {
                Kept::new(value).map_or(self, |kept| Expression(Node::Kept(kept)))
            }
            _ => Expression::constant_of(value),
        }
    }

    /// The error of the first part that fails of constants alone, whatever the document.
    pub(super) fn check_constants(&self) -> Result<(), Error> {
        match &self.0 {
            Node::Document(fields) => fields
                .iter()
                .try_for_each(|(_, field)| field.check_constants())?,
            Node::Array(elements) => elements.iter().try_for_each(Expression::check_constants)?,
            Node::Call(call) => call
                .arguments
                .iter()
                .try_for_each(Expression::check_constants)?,
            Node::Absent | Node::Constant(_) | Node::Kept(_) | Node::Path(_) => {}
        }
        match self.is_foldable() {
            true => self.evaluate_constant(&Variables::new()).map(drop),
            false => Ok(()),
        }
    }

    fn is_foldable(&self) -> bool {
        match &self.0 {
            Node::Document(fields) => fields.iter().all(|(_, field)| field.is_fixed()),
            Node::Array(elements) => elements.iter().all(Expression::is_fixed),
            Node::Call(call) => call.is_foldable(),
            Node::Absent | Node::Constant(_) | Node::Kept(_) | Node::Path(_) => false,
        }
    }

    /// Whether the value that it gives is longer than itself (`$range`), or made of one that is:
    /// then only [`Kept`] may hold it.
    fn is_short_for(&self, value: &Value) -> bool {
        match &self.0 {
            Node::Document(fields) => fields.iter().any(|(_, field)| field.is_kept()),
            Node::Array(elements) => elements.iter().any(Expression::is_kept),
            Node::Call(call) => call.is_short_for(value),
            Node::Absent | Node::Constant(_) | Node::Kept(_) | Node::Path(_) => false,
        }
    }

    fn is_kept(&self) -> bool {
        matches!(self.0, Node::Kept(_))
    }

    /// Whether no document changes what it gives.
    fn is_fixed(&self) -> bool {
        matches!(self.0, Node::Absent | Node::Constant(_) | Node::Kept(_))
    }

    pub(crate) fn is_absent(&self) -> bool {
        matches!(self.0, Node::Absent)
    }

    /// The value where it is a constant and there was room to keep it.
    pub fn constant(&self) -> Option<&Value> {
        match &self.0 {
            Node::Constant(value) => Some(value),
            Node::Kept(kept) => Some(kept.value()),
            _ => None,
        }
    }

    /// The value where it is a constant that is no longer than what it was made of.
    pub(super) fn given(&self) -> Option<ValueRef<'_>> {
        match &self.0 {
            Node::Constant(value) => Some(value.as_ref()),
            _ => None,
        }
    }

    /// The value where it is a constant, whether or not there was room to keep it; what a command's `let`
    /// defines, in the scope that it was parsed in, counts as one. 146 where it is longer than what it was
    /// made of, and long: who asks holds it beyond [`Kept`].
    pub fn to_constant(&self, scope: &Scope) -> Result<Option<Value>, Error> {
        const BYTES_MAX: usize = 1 << 10;
        if let Node::Constant(value) = &self.0 {
            return Ok(Some(value.clone()));
        }
        let known = scope.variables();
        if !self.is_constant_with(known) {
            return Ok(None);
        }
        let value = self.evaluate_constant(known)?;
        let bytes = value.as_ref().map_or(0, heap_bytes);
        within("a computed constant", bytes, BYTES_MAX)?;
        Ok(value.into_value())
    }

    /// Whether its operators always give the same of its constants, whatever the collation.
    pub(crate) fn is_constant(&self) -> bool {
        self.is_constant_with(&Variables::new())
    }

    /// The same where some variables stand for constants.
    fn is_constant_with(&self, known: &Variables) -> bool {
        let is_constant = |one: &Expression| one.is_constant_with(known);
        match &self.0 {
            Node::Absent | Node::Constant(_) | Node::Kept(_) => true,
            Node::Path(path) => match &path.source {
                Source::Outer(name) => known.is_constant(name),
                _ => false,
            },
            Node::Document(fields) => fields.iter().all(|(_, field)| is_constant(field)),
            Node::Array(elements) => elements.iter().all(is_constant),
            Node::Call(call) => {
                call.operator.is_pure
                    && call.arguments.iter().all(is_constant)
                    && !call.compares_strings(known)
            }
        }
    }

    fn evaluate_constant<'a>(&'a self, known: &'a Variables) -> Result<Computed<'a>, Error> {
        self.evaluate(&Context::new(Document::EMPTY).with_variables(known))
            .map_err(Error::of_constants)
    }

    /// The dotted path where the expression is nothing but a path in the document: `"$a.b"`.
    pub fn field_path(&self) -> Option<String> {
        match &self.0 {
            Node::Path(path) => path.dotted(),
            _ => None,
        }
    }

    /// The lineage of `rest` within the expression's value. Returns `None` if it is unknown.
    pub fn lineage(&self, rest: &[Component]) -> Option<FieldLineage> {
        match &self.0 {
            Node::Path(path) => path.lineage(rest),
            Node::Document(fields) => {
                let (first, rest) = rest.split_first()?;
                let mut fields = fields.iter();
                let (_, field) = fields.find(|(name, _)| **name == *first.name())?;
                field.lineage(rest)
            }
            _ => None,
        }
    }

    /// The value for one document.
    pub fn evaluate<'a>(&'a self, context: &Context<'a>) -> Result<Computed<'a>, Error> {
        match &self.0 {
            Node::Absent => Ok(Computed::Missing),
            Node::Constant(value) => Ok(Computed::Borrowed(value.as_ref())),
            Node::Kept(kept) => Ok(Computed::Borrowed(kept.value().as_ref())),
            Node::Path(path) => {
                let found = path.evaluate(context);
                if let Computed::Owned(_) = found {
                    check_live("a path")?;
                }
                Ok(found)
            }
            Node::Call(call) => call.evaluate(context),
            Node::Document(fields) => evaluate_document(fields, context),
            Node::Array(elements) => evaluate_array(elements, context),
        }
    }

    /// The name of the operator that it is, and its arguments.
    pub(crate) fn as_call(&self) -> Option<(&'static str, &[Expression])> {
        match &self.0 {
            Node::Call(call) => Some((call.operator.name, &call.arguments)),
            _ => None,
        }
    }

    /// What it is a path from.
    pub(super) fn path_source(&self) -> Option<&Source> {
        match &self.0 {
            Node::Path(path) => Some(&path.source),
            _ => None,
        }
    }

    /// Whether it is the local variable of this frame, and nothing of it.
    pub(super) fn is_local(&self, frame: u32) -> bool {
        match &self.0 {
            Node::Path(path) => path.source == Source::Local(frame) && path.names.is_empty(),
            _ => false,
        }
    }

    /// Whether the local variable of this frame stands in it anywhere.
    pub(super) fn uses_local(&self, frame: u32) -> bool {
        match &self.0 {
            Node::Absent | Node::Constant(_) | Node::Kept(_) => false,
            Node::Path(path) => path.source == Source::Local(frame),
            Node::Call(call) => call.arguments.iter().any(|one| one.uses_local(frame)),
            Node::Document(fields) => fields.iter().any(|(_, one)| one.uses_local(frame)),
            Node::Array(elements) => elements.iter().any(|one| one.uses_local(frame)),
        }
    }

    /// Whether no document changes what it gives, once its variables are known.
    pub(crate) fn reads_nothing(&self) -> bool {
        let read = Dependencies {
            variables: BTreeSet::new(),
            ..self.paths()
        };
        read == Dependencies::default()
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
            Node::Absent | Node::Constant(_) | Node::Kept(_) => {}
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
    let mut builder = Fields::new("an object");
    for (name, field) in fields {
        if let Some(value) = field.evaluate(context)?.as_ref() {
            builder.append(name, value)?;
        }
    }
    Ok(builder.finish().into())
}

/// Missing values stand as null.
fn evaluate_array<'a>(
    elements: &'a [Expression],
    context: &Context<'a>,
) -> Result<Computed<'a>, Error> {
    let mut builder = List::new("an array");
    for element in elements {
        builder.push(element.evaluate(context)?.or_null())?;
    }
    Ok(builder.finish().into())
}

/// Strings of expressions are shorter than the largest document, 16 MiB. 16493 for a longer one.
pub(super) fn check_length(bytes: usize) -> Result<(), Error> {
    const BYTES_MAX: usize = 16 << 20;
    if bytes < BYTES_MAX {
        return Ok(());
    }
    let message = "Tried to create string longer than 16MB";
    Err(Error::new(16493, message))
}

/// What evaluating gives.
pub(crate) type Answer<'a> = Result<Computed<'a>, Error>;

pub(crate) type Evaluate = for<'a> fn(&'a Call, &Context<'a>) -> Answer<'a>;
pub(crate) type Prepare = fn(&mut Call) -> Result<(), Error>;

/// What an operator does.
pub(crate) struct Operator {
    pub name: &'static str,
    pub evaluate: Evaluate,
    /// Computes once what constant arguments fix.
    pub prepare: Option<Prepare>,
    /// The same arguments always give the same value.
    pub is_pure: bool,
    /// It compares values, strings as the collation says, which is not known while parsing.
    pub compares: bool,
}

/// An operator applied to arguments. Arguments by name stand in the order of the operator's table,
/// with absent ones in their places.
#[derive(Clone)]
pub(crate) struct Call {
    pub operator: &'static Operator,
    pub arguments: Box<[Expression]>,
    pub prepared: Prepared,
}

/// What was computed once from constant arguments.
#[derive(Clone, Debug, Default)]
pub(crate) enum Prepared {
    #[default]
    Nothing,
    /// The frames of the variables that the operator defines.
    Frames(Box<[u32]>),
    /// The same of a `$reduce` that does nothing but append to an array.
    Appending(Box<[u32]>),
    /// What `$sortArray` sorts by.
    Order(Order),
    /// The number of inputs of `$zip`, and whether the longest counts.
    Zip { count: usize, longest: bool },
    /// The regular expression; None where it is null.
    Regex(Option<Regex>),
    /// Time zone and format of an operator on dates.
    Date(Box<Constants>),
    /// The elements of the constant list of `$in`, in order, of which no two are equal.
    Sorted(Arc<[Value]>),
    /// The points of `$percentile`.
    Points { points: Vec<f64>, is_median: bool },
}

impl Call {
    pub fn new(operator: &'static Operator, arguments: Vec<Expression>) -> Call {
        Call {
            operator,
            arguments: arguments.into(),
            prepared: Prepared::Nothing,
        }
    }

    pub fn with_frames(self, frames: Vec<u32>) -> Call {
        Call {
            prepared: Prepared::Frames(frames.into()),
            ..self
        }
    }

    pub fn is_foldable(&self) -> bool {
        self.operator.is_pure && self.arguments.iter().all(Expression::is_fixed)
    }

    /// Whether a collation may change what it gives of its arguments, all of them constants.
    fn compares_strings(&self, known: &Variables) -> bool {
        let has_strings = |argument: &Expression| match argument.evaluate_constant(known) {
            Ok(value) => value.as_ref().is_some_and(has_strings),
            Err(_) => false,
        };
        self.operator.compares && self.arguments.iter().any(has_strings)
    }

    pub fn evaluate<'a>(&'a self, context: &Context<'a>) -> Answer<'a> {
        count_work(1)?;
        let answer = (self.operator.evaluate)(self, context)?;
        if let Computed::Owned(made) = &answer {
            let value = made.as_ref();
            match value {
                ValueRef::String(text) => check_length(text.len())?,
                value => check_value(self.operator.name, heap_bytes(value))?,
            }
            check_live(self.operator.name)?;
        }
        Ok(answer)
    }

    /// Whether the value that it gives is longer than itself. What is kept is no part of its length.
    fn is_short_for(&self, value: &Value) -> bool {
        const BYTES_MAX: usize = 128;
        let bytes = |argument: &Expression| match &argument.0 {
            Node::Constant(value) => heap_bytes(value.as_ref()),
            _ => 0,
        };
        let bytes: usize = self.arguments.iter().map(bytes).sum();
        heap_bytes(value.as_ref()) > bytes.max(BYTES_MAX)
    }

    /// The expression in a place; the absent one past the end.
    pub fn argument(&self, place: usize) -> &Expression {
        self.arguments.get(place).unwrap_or(&ABSENT)
    }

    /// The value of the argument in a place.
    pub fn value<'a>(&'a self, place: usize, context: &Context<'a>) -> Result<Computed<'a>, Error> {
        let value = self.argument(place).evaluate(context)?;
        if let Some(value) = value.as_ref() {
            count_bytes(heap_bytes(value))?;
        }
        Ok(value)
    }

    /// The number of a frame.
    ///
    /// # Panics
    /// Panics if the operator does not bind that many variables.
    pub fn frame(&self, place: usize) -> u32 {
        let frame = match &self.prepared {
            Prepared::Frames(frames) | Prepared::Appending(frames) => frames.get(place),
            _ => None,
        };
        match frame {
            Some(frame) => *frame,
            None => unreachable!("{} has no frame {place}", self.operator.name),
        }
    }

    pub fn collect(&self, dependencies: &mut Dependencies) {
        self.arguments
            .iter()
            .for_each(|argument| argument.collect(dependencies));
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
    /// What is prepared follows from the rest.
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

    /// A call that could not be kept remains one, and what is around it too.
    #[test]
    fn a_constant_is_one_whether_or_not_there_is_room_to_keep_it() {
        let parse = |value: Value| Expression::parse(value.as_ref(), &Scope::new()).unwrap();
        let array = |one: Expression| Expression(Node::Array(Box::new([one])));
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
