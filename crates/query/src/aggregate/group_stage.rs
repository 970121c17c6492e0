//! `$group`: accumulators by key. `$sortByCount` is built on it.

use windrow_document::path::Path;
use windrow_document::{DocumentBuf, Value, ValueRef, doc};
use windrow_interrupt::Interrupt;
use windrow_invariant::Bug;
use windrow_mql::FieldLineage;
use windrow_mql::accumulator::{Accumulator, AccumulatorState};
use windrow_mql::expression::Dependencies;
use windrow_mql::filter::Environment;
use windrow_mql::sort::Sort;

use super::group::{Group, GroupId, count_field, field, parse_id};
use super::group_spill::SpilledGroups;
use super::group_table::{GroupTable, merge_tables};
use super::operand;
use super::stage::{PipelineContext, StageKind, Transformation};
use crate::Error;
use crate::find::{DistinctRows, RowChoice};
use crate::operators::{
    BoxOperator, Counters, MemoryLimit, Operator, count_rows, counted, fold_alone, fold_parts,
    is_over_memory, threads,
};
use crate::row::Row;

/// Parses `{_id: expression, field: {accumulator: …}, …}`. Fails with 15947 if the operand is not a
/// document, with 15955 without an `_id`, and as accumulators do.
pub(super) fn parse(
    operand: ValueRef<'_>,
    environment: &Environment,
) -> Result<Vec<StageKind>, Error> {
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
    Ok(vec![StageKind::from_transformation(Group { id, fields })])
}

/// Parses `$sortByCount`: a group with a count, then a sort by the count.
pub(super) fn parse_sort_by_count(
    operand: ValueRef<'_>,
    environment: &Environment,
) -> Result<Vec<StageKind>, Error> {
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
    Ok(vec![
        StageKind::from_transformation(group),
        StageKind::sort(order),
    ])
}

impl Transformation for Group {
    fn open(&self, input: BoxOperator, context: &PipelineContext) -> Result<BoxOperator, Error> {
        Ok(Box::new(GroupOperator::new(
            self.clone(),
            context.environment.clone(),
            MemoryLimit::new(context.allow_disk_use),
            input,
        )))
    }

    fn dependencies(&self) -> Dependencies {
        let mut found = match &self.id {
            GroupId::Expression(id) => id.dependencies(),
            GroupId::Fields(fields) => {
                let mut found = Dependencies::default();
                fields
                    .iter()
                    .for_each(|(_, field)| found.extend(field.dependencies()));
                found
            }
            GroupId::Bucket(boundaries) => boundaries.group_by.dependencies(),
        };
        self.fields
            .iter()
            .for_each(|field| found.extend(field.accumulator.dependencies()));
        found
    }

    fn ends_dependencies(&self) -> bool {
        true
    }

    fn lineage(&self, path: &Path) -> Option<FieldLineage> {
        let (first, rest) = path.components().split_first()?;
        let mut lineage = self.id.lineage(rest).filter(|_| first.name() == "_id")?;
        // The value of one row represents all rows of the group.
        lineage.difference.is_equal_only = true;
        Some(lineage)
    }

    fn has_lineage(&self) -> bool {
        true
    }

    fn needed_rows(&self) -> Option<DistinctRows> {
        let GroupId::Expression(id) = &self.id else {
            return None;
        };
        let path = Path::parse(&id.field_path()?);
        let mut accumulators = self.fields.iter().map(|field| &field.accumulator);
        let which = if self.fields.is_empty() {
            RowChoice::Any
        } else if accumulators.clone().all(Accumulator::is_first) {
            RowChoice::First
        } else if accumulators.all(Accumulator::is_last) {
            RowChoice::Last
        } else {
            return None;
        };
        // A number is a field name in an expression, but can be an array position in an index.
        let is_plain = path.components().iter().all(|part| part.index().is_none());
        is_plain.then_some(DistinctRows { path, which })
    }
}

/// More rows than can be counted in a lifetime.
const ROWS_MAX: u64 = 1 << 50;

/// Reads all rows before it returns the first group.
struct GroupOperator {
    group: Group,
    environment: Environment,
    input: BoxOperator,
    result: Option<GroupOutput>,
    memory: MemoryLimit,
    counters: Counters,
}

/// The groups that remain to be returned.
enum GroupOutput {
    /// All groups are in memory. Each `_id` has as many states as the groups have fields.
    InMemory {
        ids: std::vec::IntoIter<Value>,
        states: std::vec::IntoIter<AccumulatorState>,
    },
    Spilled(Box<SpilledGroups>),
}

impl GroupOperator {
    pub fn new(
        group: Group,
        environment: Environment,
        memory: MemoryLimit,
        input: BoxOperator,
    ) -> GroupOperator {
        GroupOperator {
            group,
            environment,
            input,
            result: None,
            memory,
            counters: Counters::default(),
        }
    }

    /// Computes the only group of all rows if its fields depend only on the number of rows.
    fn take_count(&mut self, interrupt: &dyn Interrupt) -> Result<Option<GroupOutput>, Error> {
        let Some(id) = self.group.only_id() else {
            return Ok(None);
        };
        if self.group.for_document_count(ROWS_MAX).is_none() {
            return Ok(None);
        }
        let count = count_rows(&mut self.input, interrupt)?;
        let ids = Vec::from_iter((count > 0).then_some(id));
        let states = self.group.for_document_count(count.min(ROWS_MAX));
        let states = states.ok_or_else(|| {
            Bug::new(format!(
                "the states of a group are known for {ROWS_MAX} rows, but not for {count}"
            ))
        })?;
        Ok(Some(GroupOutput::InMemory {
            ids: ids.into_iter(),
            states: states.into_iter(),
        }))
    }

    fn take_all(&mut self, interrupt: &dyn Interrupt) -> Result<GroupOutput, Error> {
        let (group, environment, memory) = (&self.group, &self.environment, self.memory);
        let begin =
            |_| GroupTable::new(group, environment, memory.in_memory().shared_by(threads()));
        let join = |tables| merge_tables(tables, memory.in_memory());
        // If the groups exceed the memory of one thread, or of all threads together, the rows are
        // processed again by one thread, with all of the memory and with files.
        let table = match fold_parts(&mut self.input, interrupt, &begin, join) {
            Ok(Some(Some(table))) => table,
            Err(error) if !is_over_memory(&error) => return Err(error),
            Ok(_) | Err(_) => {
                let table = GroupTable::new(group, environment, memory);
                fold_alone(&mut self.input, interrupt, table)?
            }
        };
        let (known, late) = table.into_parts();
        Ok(match late {
            None => GroupOutput::InMemory {
                ids: known.ids.into_iter(),
                states: known.states.into_iter(),
            },
            Some(late) => {
                let known = known.into_groups_by_key(group.fields.len());
                GroupOutput::Spilled(Box::new(SpilledGroups::new(known, late)?))
            }
        })
    }

    /// Returns the document of the next group.
    fn print_next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<DocumentBuf>, Error> {
        match &mut self.result {
            None => Ok(None),
            Some(GroupOutput::InMemory { ids, states }) => {
                let id = ids.next();
                id.map(|id| self.group.print(&id, states)).transpose()
            }
            Some(GroupOutput::Spilled(spilled)) => {
                let next = spilled.next(&self.group, &self.environment, interrupt)?;
                next.map(|state| self.group.print(&state.id, &mut state.fields.into_iter()))
                    .transpose()
            }
        }
    }
}

impl Operator for GroupOperator {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if self.result.is_none() {
            let output = match self.take_count(interrupt)? {
                Some(output) => output,
                None => self.take_all(interrupt)?,
            };
            self.result = Some(output);
        }
        let row = self.print_next(interrupt)?.map(Row::new);
        self.counters.record(&row);
        Ok(row)
    }

    counted!(counters, input);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::rows::Rows;
    use super::*;
    use crate::Uninterrupted;
    use crate::operators::Part;

    const PARTS: i32 = 16;
    const ROWS_PER_PART: i32 = 50;

    /// Rows that can be produced in parts. Each part is slow enough for another thread to start.
    struct Cut {
        rows: Rows,
        counters: Counters,
    }

    fn rows(first: i32, count: i32) -> Rows {
        let row = |n| Row::new(doc! { "u": n });
        Rows::new((first..first + count).map(row).collect())
    }

    impl Operator for Cut {
        fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
            if self.counters.at_end {
                Ok(None)
            } else {
                self.rows.next(interrupt)
            }
        }

        counted!(counters);

        fn parts(&self) -> Result<Vec<Part>, Error> {
            let part = |number| {
                Box::new(move || {
                    std::thread::sleep(Duration::from_millis(1));
                    Ok(Box::new(rows(number * ROWS_PER_PART, ROWS_PER_PART)) as BoxOperator)
                }) as Part
            };
            Ok((0..PARTS).map(part).collect())
        }

        fn absorb(&mut self, counts: &[Counters]) {
            self.counters.absorb(counts);
        }
    }

    /// Returns the number of groups. Each row is a group.
    fn count(memory: MemoryLimit) -> Result<usize, Error> {
        let environment = Environment::default();
        let group = Group {
            id: parse_id(ValueRef::String("$u"), &environment)?,
            fields: vec![count_field(&environment)?],
        };
        let input = Cut {
            rows: rows(0, PARTS * ROWS_PER_PART),
            counters: Counters::default(),
        };
        let mut groups = GroupOperator::new(group, environment, memory, Box::new(input));
        let mut found = std::collections::HashSet::new();
        while let Some(row) = groups.next(&Uninterrupted)? {
            let id = row.document().get("_id").and_then(ValueRef::as_whole);
            assert!(id.is_some_and(|id| found.insert(id)));
        }
        Ok(found.len())
    }

    /// Tables that fit in the memory of each thread can exceed the limit when they are merged.
    #[test]
    fn every_group_is_returned_with_any_memory_limit() {
        let all = (PARTS * ROWS_PER_PART) as usize;
        for bytes_max in (1..40).map(|step| step * 5_000) {
            let on_the_disk = MemoryLimit {
                bytes_max,
                may_spill: true,
            };
            assert_eq!(count(on_the_disk).unwrap(), all, "{bytes_max} bytes");
            match count(on_the_disk.in_memory()) {
                Ok(found) => assert_eq!(found, all, "{bytes_max} bytes"),
                Err(error) => assert_eq!(error.code(), Some(292), "{bytes_max} bytes"),
            }
        }
    }
}
