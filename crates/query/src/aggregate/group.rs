//! `$group`: accumulators by key. Also what `$bucket` and `$sortByCount` become.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use windrow_document::{Document, DocumentBuf, DocumentBuilder, Value, ValueRef, doc, key};
use windrow_mql::accumulator::{Accumulator, AccumulatorState};
use windrow_mql::expression::{Computed, Context, Dependencies, Expression};
use windrow_mql::filter::Environment;
use windrow_mql::sort::Sort;

use super::bucket::Boundaries;
use super::group_key::GroupKey;
use super::group_spill::{Bin, SpilledGroups};
use super::stage::{self, Kind};
use super::transform::context;
use crate::Error;
use crate::operators::{BoxOperator, Counters, Memory, Operator, Sorter, over_memory};
use crate::row::{Interrupt, Row};

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
    /// Whether what it holds grows with what it is fed.
    grows: bool,
}

/// What rows are put together by.
#[derive(Clone, Debug)]
pub enum GroupId {
    Expression(Expression),
    /// The fields of a document. A single field that is missing counts as null.
    Fields(Vec<(String, Expression)>),
    Bucket(Boundaries),
}

/// Parses `{_id: expression, field: {accumulator: …}, …}`. Errors: 15947 for what is no document, 15955
/// without an `_id`, and those of accumulators.
pub(super) fn parse(operand: ValueRef<'_>, environment: &Environment) -> Result<Vec<Kind>, Error> {
    let Some(document) = operand.as_document() else {
        return Err(Error::new(
            15947,
            "a group's fields must be specified in an object",
        ));
    };
    let (mut id, mut fields) = (None, Vec::new());
    for (name, value) in document {
        match name {
            "_id" if id.is_some() => {
                return Err(Error::new(
                    15948,
                    "a group's _id may only be specified once",
                ));
            }
            "_id" => id = Some(parse_id(value, environment)?),
            _ => fields.push(field(name, value, environment)?),
        }
    }
    let Some(id) = id else {
        return Err(Error::new(
            15955,
            "a group specification must include an _id",
        ));
    };
    Ok(vec![Kind::Group(Group { id, fields })])
}

fn parse_id(value: ValueRef<'_>, environment: &Environment) -> Result<GroupId, Error> {
    let whole = stage::expression(value, environment)?;
    match value.as_document() {
        Some(document) if !stage::is_expression(value) && !document.is_empty() => {
            let field = |(name, value): (&str, ValueRef<'_>)| {
                check_field(value)?;
                Ok((name.to_owned(), stage::expression(value, environment)?))
            };
            Ok(GroupId::Fields(
                document.iter().map(field).collect::<Result<_, Error>>()?,
            ))
        }
        _ => Ok(GroupId::Expression(whole)),
    }
}

/// Error 17390 for what would include a field in a projection.
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
    let accumulator = Accumulator::parse(name, value, &stage::scope(environment))?;
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

/// `{count: {$sum: 1}}`.
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

/// Parses `$sortByCount`: a group with a count, then a sort by it.
pub(super) fn parse_sort_by_count(
    operand: ValueRef<'_>,
    environment: &Environment,
) -> Result<Vec<Kind>, Error> {
    let wrong = |code| {
        let message =
            "the sortByCount field must be specified as a $-prefixed path or an expression";
        Err(Error::new(code, message))
    };
    match operand {
        ValueRef::String(text) if !text.starts_with('$') => return wrong(40148),
        ValueRef::Document(_) if !stage::is_expression(operand) => return wrong(40147),
        ValueRef::String(_) | ValueRef::Document(_) => {}
        _ => return wrong(40149),
    }
    let id = GroupId::Expression(stage::expression(operand, environment)?);
    let group = Group {
        id,
        fields: vec![count_field(environment)?],
    };
    let order = Sort::parse(doc! { "count": -1 }.as_document())?;
    Ok(vec![Kind::Group(group), Kind::Sort(order, None)])
}

impl Group {
    pub fn dependencies(&self) -> Dependencies {
        let mut found = match &self.id {
            GroupId::Expression(id) => id.paths(),
            GroupId::Fields(fields) => {
                let mut found = Dependencies::default();
                fields
                    .iter()
                    .for_each(|(_, field)| found.extend(field.paths()));
                found
            }
            GroupId::Bucket(boundaries) => boundaries.group_by.paths(),
        };
        self.fields
            .iter()
            .for_each(|field| found.extend(field.accumulator.dependencies()));
        found
    }

    /// Appends the key of the row's group. The group's `_id`, where the key is made of it.
    fn append_key<'a>(
        &'a self,
        context: &Context<'a>,
        key: &mut Vec<u8>,
    ) -> Result<Option<Computed<'a>>, Error> {
        let id = match &self.id {
            GroupId::Expression(id) => id.evaluate(context)?,
            GroupId::Bucket(boundaries) => boundaries.place(context)?,
            GroupId::Fields(fields) => {
                for (_, field) in fields {
                    let value = field.evaluate(context)?;
                    match value.as_ref().or(only_field(fields)) {
                        Some(value) => key::append_collated(key, value, false, context.collation),
                        None => key.push(MISSING),
                    }
                }
                return Ok(None);
            }
        };
        key::append_collated(key, id.or_null(), false, context.collation);
        Ok(Some(id))
    }

    /// The `_id` of a new group.
    fn id_value(&self, id: Option<Computed<'_>>, context: &Context<'_>) -> Result<Value, Error> {
        match (id, &self.id) {
            (None, GroupId::Fields(fields)) => document_of(fields, context),
            (id, _) => Ok(id.and_then(Computed::into_value).unwrap_or(Value::Null)),
        }
    }

    /// Gives the row to the states of its group; by how many bytes they grew.
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

    /// A new group for the row's values.
    pub(super) fn begin(
        &self,
        context: &Context<'_>,
        environment: &Environment,
    ) -> Result<Bin, Error> {
        let id = self.append_key(context, &mut Vec::new())?;
        let id = self.id_value(id, context)?;
        let states = self.start(environment, &id)?;
        Ok((id, states))
    }

    /// The group's document: one state for each field is taken.
    fn print(&self, id: &Value, states: &mut dyn Iterator<Item = AccumulatorState>) -> DocumentBuf {
        let mut builder = DocumentBuilder::new();
        builder.append("_id", id.as_ref());
        for (field, state) in self.fields.iter().zip(states) {
            builder.append(&field.name, state.finish().as_ref());
        }
        builder.finish()
    }

    /// The states of a new group.
    fn start(&self, environment: &Environment, id: &Value) -> Result<Vec<AccumulatorState>, Error> {
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

/// Stands in a key for a missing value. No value's key bytes begin so.
const MISSING: u8 = 0;

/// The groups so far. The states of one stand beside each other, and those of all in one piece.
#[derive(Default)]
struct Bins {
    ids: Vec<Value>,
    states: Vec<AccumulatorState>,
}

/// Takes all rows before it gives the first. The groups that are known when memory is full stay; rows
/// from then on are put in the order of their groups on the disk, and taken in group by group at the end.
pub(super) struct GroupOperator {
    group: Group,
    environment: Environment,
    input: BoxOperator,
    /// The number of the group of a key.
    places: HashMap<GroupKey, usize, RandomState>,
    bins: Bins,
    /// The rows that come after memory is full.
    late: Option<Sorter>,
    done: Option<Done>,
    bytes: usize,
    memory: Memory,
    key: Vec<u8>,
    counters: Counters,
}

/// The groups that are left to give.
enum Done {
    Memory(
        std::vec::IntoIter<Value>,
        std::vec::IntoIter<AccumulatorState>,
    ),
    Spilled(Box<SpilledGroups>),
}

impl GroupOperator {
    pub fn new(
        group: Group,
        environment: Environment,
        memory: Memory,
        input: BoxOperator,
    ) -> GroupOperator {
        GroupOperator {
            group,
            environment,
            input,
            places: HashMap::default(),
            bins: Bins::default(),
            late: None,
            done: None,
            bytes: 0,
            memory,
            key: Vec::new(),
            counters: Counters::default(),
        }
    }

    fn take_all(&mut self, interrupt: &dyn Interrupt) -> Result<Done, Error> {
        while let Some(row) = self.input.next(interrupt)? {
            match &mut self.late {
                None => self.add(&row)?,
                Some(sorter) => {
                    let (group, environment) = (&self.group, &self.environment);
                    sorter.add_with(row, |row, key| {
                        group.append_key(&context(row, environment), key).map(drop)
                    })?;
                }
            }
        }
        let places = std::mem::take(&mut self.places);
        let Bins { ids, states } = std::mem::take(&mut self.bins);
        let Some(late) = self.late.take() else {
            return Ok(Done::Memory(ids.into_iter(), states.into_iter()));
        };
        let mut states = states.into_iter();
        let count = self.group.fields.len();
        let bins = ids
            .into_iter()
            .map(|id| (id, states.by_ref().take(count).collect()));
        let mut bins: Vec<Option<Bin>> = bins.map(Some).collect();
        let known = places
            .into_iter()
            .filter_map(|(key, number)| Some((key, bins.get_mut(number)?.take()?)));
        let spilled = SpilledGroups::new(known.collect(), late)?;
        Ok(Done::Spilled(Box::new(spilled)))
    }

    fn add(&mut self, row: &Row) -> Result<(), Error> {
        let context = context(row, &self.environment);
        self.key.clear();
        let id = self.group.append_key(&context, &mut self.key)?;
        let number = match self.places.get(self.key.as_slice()) {
            Some(number) => *number,
            None => {
                let id = self.group.id_value(id, &context)?;
                let states = self.group.start(&self.environment, &id)?;
                self.bytes += 2 * self.key.len() + size_of::<Value>() + 64;
                self.bytes += states.iter().map(AccumulatorState::bytes).sum::<usize>();
                self.bins.states.extend(states);
                self.bins.ids.push(id);
                let number = self.bins.ids.len() - 1;
                self.places.insert(GroupKey::new(&self.key), number);
                number
            }
        };
        let count = self.group.fields.len();
        let states = self
            .bins
            .states
            .get_mut(number * count..(number + 1) * count);
        self.bytes += self.group.feed(states.unwrap_or_default(), &context)?;
        match self.bytes > self.memory.bytes_max {
            true if self.memory.may_spill => self.late = Some(Sorter::new(None, self.memory)),
            true => return Err(over_memory("$group")),
            false => {}
        }
        Ok(())
    }

    /// The document of the next group.
    fn print_next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<DocumentBuf>, Error> {
        match &mut self.done {
            None => Ok(None),
            Some(Done::Memory(ids, states)) => {
                let id = ids.next();
                Ok(id.map(|id| self.group.print(&id, states)))
            }
            Some(Done::Spilled(spilled)) => {
                let bin = spilled.next(&self.group, &self.environment, interrupt)?;
                Ok(bin.map(|(id, states)| self.group.print(&id, &mut states.into_iter())))
            }
        }
    }
}

/// What a missing value counts as: null where it is the only one.
fn only_field(fields: &[(String, Expression)]) -> Option<ValueRef<'static>> {
    (fields.len() == 1).then_some(ValueRef::Null)
}

fn document_of(fields: &[(String, Expression)], context: &Context<'_>) -> Result<Value, Error> {
    let mut builder = DocumentBuilder::new();
    for (name, field) in fields {
        if let Some(value) = field.evaluate(context)?.as_ref().or(only_field(fields)) {
            builder.append(name, value);
        }
    }
    Ok(Value::Document(builder.finish()))
}

impl Operator for GroupOperator {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if self.done.is_none() {
            self.done = Some(self.take_all(interrupt)?);
        }
        let row = self.print_next(interrupt)?.map(Row::of);
        if let Some(row) = &row {
            super::check_size(row.document())?;
        }
        self.counters.note(&row);
        Ok(row)
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn inputs(&self) -> Vec<&dyn Operator> {
        vec![&*self.input]
    }
}
