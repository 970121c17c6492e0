//! A hash table of groups.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use windrow_document::Value;
use windrow_invariant::Bug;
use windrow_mql::accumulator::AccumulatorState;
use windrow_mql::expression::Context;
use windrow_mql::filter::Environment;

use super::group::{Group, GroupState};
use super::group_key::GroupKey;
use super::transform::row_context;
use crate::Error;
use crate::operators::{MemoryLimit, RowConsumer, Sorter, over_memory};
use crate::row::Row;

/// A table of groups. When the memory is full, the known groups stay in memory. If files are
/// allowed, later rows are sorted by group in files.
pub(super) struct GroupTable<'g> {
    group: &'g Group,
    environment: &'g Environment,
    known: Groups,
    /// The number of the only group, if the `_id` is a constant.
    only: Option<usize>,
    /// The rows that came after the memory was full.
    late: Option<Sorter>,
    bytes: usize,
    memory: MemoryLimit,
    key: Vec<u8>,
}

/// Groups in the order of their first rows. All states are in one vector, those of a group side by
/// side.
#[derive(Default)]
pub(super) struct Groups {
    /// The numbers of the groups by their keys.
    numbers: HashMap<GroupKey, usize, RandomState>,
    pub ids: Vec<Value>,
    pub states: Vec<AccumulatorState>,
}

impl Groups {
    /// Returns the groups by their keys. `count` is the number of states of each group.
    pub fn into_groups_by_key(self, count: usize) -> HashMap<GroupKey, GroupState, RandomState> {
        let mut states = self.states.into_iter();
        let groups = self.ids.into_iter().map(|id| GroupState {
            id,
            fields: states.by_ref().take(count).collect(),
        });
        let mut groups: Vec<Option<GroupState>> = groups.map(Some).collect();
        let known = self.numbers.into_iter();
        known
            .filter_map(|(key, number)| Some((key, groups.get_mut(number)?.take()?)))
            .collect()
    }

    /// Adds a group. Returns its number.
    fn push(
        &mut self,
        key: GroupKey,
        id: Value,
        states: impl IntoIterator<Item = AccumulatorState>,
    ) -> usize {
        let number = self.ids.len();
        self.ids.push(id);
        self.states.extend(states);
        self.numbers.insert(key, number);
        number
    }
}

impl<'g> GroupTable<'g> {
    pub fn new(
        group: &'g Group,
        environment: &'g Environment,
        memory: MemoryLimit,
    ) -> GroupTable<'g> {
        GroupTable {
            group,
            environment,
            known: Groups::default(),
            only: None,
            late: None,
            bytes: 0,
            memory,
            key: Vec::new(),
        }
    }

    /// Returns the groups and the late rows.
    pub fn into_parts(self) -> (Groups, Option<Sorter>) {
        (self.known, self.late)
    }

    fn add(&mut self, row: &Row) -> Result<(), Error> {
        let context = row_context(row, self.environment);
        let number = match self.only {
            Some(only) => only,
            None => self.number_of(&context)?,
        };
        let count = self.group.fields.len();
        let states = &mut self.known.states;
        let known = states.len();
        let states = states.get_mut(number * count..(number + 1) * count);
        let states = states.ok_or_else(|| {
            Bug::new(format!(
                "group {number} does not have its {count} states among {known}"
            ))
        })?;
        self.bytes += self.group.feed(states, &context)?;
        self.check_memory()
    }

    /// Returns the number of a row's group. Creates the group if it is new.
    fn number_of(&mut self, context: &Context<'_>) -> Result<usize, Error> {
        self.key.clear();
        let id = self.group.append_key(context, &mut self.key)?;
        if let Some(number) = self.known.numbers.get(self.key.as_slice()) {
            return Ok(*number);
        }
        let id = self.group.id_value(id, context)?;
        let states = self.group.start(self.environment, &id)?;
        self.bytes += group_bytes(self.key.len());
        self.bytes += states.iter().map(AccumulatorState::bytes).sum::<usize>();
        let number = self.known.push(GroupKey::new(&self.key), id, states);
        if self.group.only_id().is_some() {
            self.only = Some(number);
        }
        Ok(number)
    }

    fn check_memory(&mut self) -> Result<(), Error> {
        if self.bytes <= self.memory.bytes_max {
            return Ok(());
        }
        if !self.memory.may_spill {
            return Err(over_memory("$group"));
        }
        self.late = Some(Sorter::new(None, self.memory));
        Ok(())
    }

    /// Adds the groups of another table, whose rows come after those of this one. Neither table may
    /// have late rows.
    pub fn merge(&mut self, other: GroupTable<'_>) -> Result<(), Error> {
        let count = self.group.fields.len();
        let collation = self.environment.collation.as_deref();
        let mut numbered: Vec<(GroupKey, usize)> = other.known.numbers.into_iter().collect();
        numbered.sort_unstable_by_key(|(_, number)| *number);
        let mut theirs = other.known.states.into_iter();
        for ((key, _), id) in numbered.into_iter().zip(other.known.ids) {
            let theirs = theirs.by_ref().take(count);
            match self.known.numbers.get(key.as_bytes()) {
                None => {
                    let states: Vec<AccumulatorState> = theirs.collect();
                    self.bytes += group_bytes(key.as_bytes().len());
                    self.bytes += states.iter().map(AccumulatorState::bytes).sum::<usize>();
                    self.known.push(key, id, states);
                }
                Some(number) => {
                    let own = self.known.states.iter_mut().skip(number * count);
                    for (own, theirs) in own.zip(theirs) {
                        let before = own.bytes();
                        own.merge(theirs, collation)?;
                        self.bytes += own.bytes().saturating_sub(before);
                    }
                }
            }
            self.check_memory()?;
        }
        Ok(())
    }
}

/// The memory of a group without its states. The key is stored twice.
fn group_bytes(key: usize) -> usize {
    2 * key + size_of::<Value>() + 64
}

impl RowConsumer for GroupTable<'_> {
    fn take(&mut self, row: Row) -> Result<(), Error> {
        let (group, environment) = (self.group, self.environment);
        match &mut self.late {
            None => self.add(&row),
            Some(sorter) => sorter.add_with(row, |row, key| {
                group
                    .append_key(&row_context(row, environment), key)
                    .map(drop)
            }),
        }
    }
}

/// Merges tables, which are in the order of their rows, into one with a larger memory limit.
pub(super) fn merge_tables(
    tables: Vec<GroupTable<'_>>,
    memory: MemoryLimit,
) -> Result<Option<GroupTable<'_>>, Error> {
    let mut tables = tables.into_iter();
    let Some(mut first) = tables.next() else {
        return Ok(None);
    };
    first.memory = memory;
    tables.try_for_each(|table| first.merge(table))?;
    Ok(Some(first))
}
