//! `$group`: accumulators by key. Also what `$sortByCount` becomes.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use windrow_document::{DocumentBuf, Value, ValueRef, doc};
use windrow_mql::accumulator::AccumulatorState;
use windrow_mql::expression::Dependencies;
use windrow_mql::filter::Environment;
use windrow_mql::sort::Sort;

use super::group::{Bin, Group, GroupId, count_field, field, parse_id};
use super::group_key::GroupKey;
use super::group_spill::SpilledGroups;
use super::operand;
use super::rows::check_size;
use super::stage::{Kind, Setting, Transformation};
use super::transform::context;
use crate::Error;
use crate::operators::{BoxOperator, Counters, Memory, Operator, Sorter, over_memory};
use crate::row::{Interrupt, Row};

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
    Ok(vec![Kind::of(Group { id, fields })])
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
        ValueRef::Document(_) if !operand::is_expression(operand) => return wrong(40147),
        ValueRef::String(_) | ValueRef::Document(_) => {}
        _ => return wrong(40149),
    }
    let id = GroupId::Expression(operand::expression(operand, environment)?);
    let group = Group {
        id,
        fields: vec![count_field(environment)?],
    };
    let order = Sort::parse(doc! { "count": -1 }.as_document())?;
    Ok(vec![Kind::of(group), Kind::Sort(order, None)])
}

impl Transformation for Group {
    fn open(&self, input: BoxOperator, setting: &Setting) -> Result<BoxOperator, Error> {
        Ok(Box::new(GroupOperator::new(
            self.clone(),
            setting.environment.clone(),
            Memory::of(setting.allow_disk_use),
            input,
        )))
    }

    fn dependencies(&self) -> Dependencies {
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

    fn ends_dependencies(&self) -> bool {
        true
    }
}

/// The groups so far. The states of one stand beside each other, and those of all in one piece.
#[derive(Default)]
struct Bins {
    ids: Vec<Value>,
    states: Vec<AccumulatorState>,
}

/// Takes all rows before it gives the first. The groups that are known when memory is full stay; rows
/// from then on are put in the order of their groups on the disk, and taken in group by group at the end.
struct GroupOperator {
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

impl Operator for GroupOperator {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if self.done.is_none() {
            self.done = Some(self.take_all(interrupt)?);
        }
        let row = self.print_next(interrupt)?.map(Row::of);
        if let Some(row) = &row {
            check_size(row.document())?;
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
