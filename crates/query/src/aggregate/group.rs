//! Groups: the key of a group and the state of its fields, for `$group` and stages that are built
//! on it.

use windrow_document::path::Component;
use windrow_document::{Document, DocumentBuf, DocumentBuilder, Value, ValueRef, doc, key};
use windrow_mql::FieldLineage;
use windrow_mql::accumulator::{Accumulator, AccumulatorState};
use windrow_mql::expression::{Context, ExprValue, Expression};
use windrow_mql::filter::Environment;
use windrow_mql::memory::{check_document, check_growth};

use super::boundaries::Boundaries;
use super::operand;
use crate::Error;

/// A group of rows.
pub(super) struct GroupState {
    /// The `_id` of the group.
    pub id: Value,
    /// The state of each field of the group.
    pub fields: Vec<AccumulatorState>,
}

/// A parsed `$group`.
#[derive(Clone, Debug)]
pub struct Group {
    pub id: GroupId,
    pub fields: Vec<GroupField>,
}

/// A field of the groups.
#[derive(Clone, Debug)]
pub struct GroupField {
    pub name: String,
    pub accumulator: Accumulator,
    /// `true` if the size of the state grows with its input.
    grows: bool,
}

/// The expression by which rows are grouped.
#[derive(Clone, Debug)]
pub enum GroupId {
    Expression(Expression),
    /// The fields of a document. If there is only one field, a missing value counts as null.
    Fields(Vec<(String, Expression)>),
    Bucket(Boundaries),
}

pub(super) fn parse_id(value: ValueRef<'_>, environment: &Environment) -> Result<GroupId, Error> {
    let whole = operand::expression(value, environment)?;
    match value.as_document() {
        Some(document) if !operand::is_expression(value) && !document.is_empty() => {
            let field = |(name, value): (&str, ValueRef<'_>)| {
                check_field(value)?;
                Ok((name.to_owned(), operand::expression(value, environment)?))
            };
            Ok(GroupId::Fields(
                document.iter().map(field).collect::<Result<_, Error>>()?,
            ))
        }
        _ => Ok(GroupId::Expression(whole)),
    }
}

/// Fails with 17390 for values that would include a field in a projection.
fn check_field(value: ValueRef<'_>) -> Result<(), Error> {
    match value {
        ValueRef::Bool(_) => {}
        value if value.is_number() => {}
        _ => return Ok(()),
    }
    Err(Error::new(
        17390,
        "$group does not support inclusion-style expressions",
    ))
}

pub(super) fn field(
    name: &str,
    value: ValueRef<'_>,
    environment: &Environment,
) -> Result<GroupField, Error> {
    let accumulator = Accumulator::parse(name, value, &operand::scope(environment))?;
    let operator = value
        .as_document()
        .and_then(Document::first)
        .map(|(operator, _)| operator);
    let fixed = ["$sum", "$avg", "$count", "$stdDevPop", "$stdDevSamp"];
    let grows = !operator.is_some_and(|operator| fixed.contains(&operator));
    Ok(GroupField {
        name: name.to_owned(),
        accumulator,
        grows,
    })
}

/// The field `{count: {$sum: 1}}`.
pub(super) fn count_field(environment: &Environment) -> Result<GroupField, Error> {
    let sum = doc! { "$sum": 1 };
    field("count", ValueRef::Document(sum.as_document()), environment)
}

/// Parses the fields of `output`.
pub(super) fn output_fields(
    output: Document<'_>,
    environment: &Environment,
) -> Result<Vec<GroupField>, Error> {
    output
        .iter()
        .map(|(name, value)| field(name, value, environment))
        .collect()
}

impl GroupId {
    /// Returns the lineage of the path `rest` within `_id`, in the rows of the groups.
    pub(super) fn lineage(&self, rest: &[Component]) -> Option<FieldLineage> {
        let (expression, rest, counts_as_null) = match self {
            GroupId::Expression(id) => (id, rest, true),
            GroupId::Fields(fields) => {
                let (first, rest) = rest.split_first()?;
                let mut named = fields.iter();
                let (_, field) = named.find(|(name, _)| name == first.name())?;
                (field, rest, only_field(fields).is_some())
            }
            GroupId::Bucket(_) => return None,
        };
        let mut lineage = expression.lineage(rest)?;
        lineage.difference.is_null_for_missing = counts_as_null && rest.is_empty();
        Some(lineage)
    }
}

impl Group {
    /// Appends the key of the row's group. Returns the `_id` of the group if the key is computed
    /// from it.
    pub(super) fn append_key<'a>(
        &'a self,
        context: &Context<'a>,
        key: &mut Vec<u8>,
    ) -> Result<Option<ExprValue<'a>>, Error> {
        let id = match &self.id {
            GroupId::Expression(id) => id.evaluate(context)?,
            GroupId::Bucket(boundaries) => boundaries.bucket_of(context)?,
            GroupId::Fields(fields) => {
                for (_, field) in fields {
                    let value = field.evaluate(context)?;
                    match value.as_ref().or(only_field(fields)) {
                        Some(value) => {
                            key::append_with_collation(key, value, false, context.collation)
                        }
                        None => key.push(MISSING),
                    }
                }
                return Ok(None);
            }
        };
        key::append_with_collation(key, id.or_null(), false, context.collation);
        Ok(Some(id))
    }

    /// Returns the `_id` of the only group, if the `_id` is a constant.
    pub(super) fn only_id(&self) -> Option<Value> {
        match &self.id {
            GroupId::Expression(id) => id.constant().cloned(),
            _ => None,
        }
    }

    /// Returns the states of a group with this many rows, if they depend on nothing else.
    pub(super) fn for_document_count(&self, rows: u64) -> Option<Vec<AccumulatorState>> {
        let fields = self.fields.iter();
        fields
            .map(|field| field.accumulator.for_document_count(rows))
            .collect()
    }

    /// Returns the `_id` of a new group.
    pub(super) fn id_value(
        &self,
        id: Option<ExprValue<'_>>,
        context: &Context<'_>,
    ) -> Result<Value, Error> {
        match (id, &self.id) {
            (None, GroupId::Fields(fields)) => document_of(fields, context),
            (id, _) => Ok(id.and_then(ExprValue::into_value).unwrap_or(Value::Null)),
        }
    }

    /// Adds the row to the states of its group. Returns by how many bytes they grew.
    pub(super) fn feed(
        &self,
        states: &mut [AccumulatorState],
        context: &Context<'_>,
    ) -> Result<usize, Error> {
        let mut grown = 0;
        for (field, state) in self.fields.iter().zip(states) {
            if field.grows {
                let before = state.bytes();
                field.accumulator.add(state, context)?;
                grown += state.bytes().saturating_sub(before);
            } else {
                field.accumulator.add(state, context)?;
            }
        }
        Ok(grown)
    }

    /// Returns a new group for the values of the row.
    pub(super) fn begin(
        &self,
        context: &Context<'_>,
        environment: &Environment,
    ) -> Result<GroupState, Error> {
        let id = self.append_key(context, &mut Vec::new())?;
        let id = self.id_value(id, context)?;
        let fields = self.start(environment, &id)?;
        Ok(GroupState { id, fields })
    }

    /// Returns the document of the group, and takes one state for each field. Fails with 13548 if
    /// the document becomes too large.
    pub(super) fn print(
        &self,
        id: &Value,
        states: &mut dyn Iterator<Item = AccumulatorState>,
    ) -> Result<DocumentBuf, Error> {
        let mut builder = DocumentBuilder::new();
        builder.append("_id", id.as_ref());
        for (field, state) in self.fields.iter().zip(states) {
            check_document(builder.len() + state.document_bytes())?;
            builder.append(&field.name, state.finish().as_ref());
        }
        Ok(builder.finish())
    }

    /// Returns the states of a new group.
    pub(super) fn start(
        &self,
        environment: &Environment,
        id: &Value,
    ) -> Result<Vec<AccumulatorState>, Error> {
        let document = id.as_ref().as_document().unwrap_or(Document::EMPTY);
        let context = Context::new(document)
            .with_variables(&environment.variables)
            .with_now(environment.now)
            .with_collation(environment.collation.as_deref());
        let states = self
            .fields
            .iter()
            .map(|field| field.accumulator.start(&context));
        Ok(states.collect::<Result<_, _>>()?)
    }
}

/// Represents a missing value in a key. The key bytes of values never begin with it.
const MISSING: u8 = 0;

/// Returns null if there is only one field. A missing value of this field counts as null.
fn only_field(fields: &[(String, Expression)]) -> Option<ValueRef<'static>> {
    (fields.len() == 1).then_some(ValueRef::Null)
}

fn document_of(fields: &[(String, Expression)], context: &Context<'_>) -> Result<Value, Error> {
    let mut builder = DocumentBuilder::new();
    for (name, field) in fields {
        if let Some(value) = field.evaluate(context)?.as_ref().or(only_field(fields)) {
            check_growth(builder.len(), name, value)?;
            builder.append(name, value);
        }
    }
    Ok(Value::Document(builder.finish()))
}
