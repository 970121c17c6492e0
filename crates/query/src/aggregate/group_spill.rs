//! Groups that exceed the memory limit: the groups that were known when the memory was full, and
//! the later rows, sorted by group.

use std::collections::HashMap;
use std::collections::hash_map::IntoValues;

use foldhash::fast::RandomState;
use windrow_interrupt::Interrupt;
use windrow_mql::filter::Environment;

use super::group::{Group, GroupState};
use super::group_key::GroupKey;
use super::transform::row_context;
use crate::Error;
use crate::operators::{KeyedRow, SortedRows, Sorter};
use crate::row::Pace;

pub(super) struct SpilledGroups {
    known: HashMap<GroupKey, GroupState, RandomState>,
    late: SortedRows,
    /// The first row of the next group.
    first: Option<KeyedRow>,
    /// At the end: the groups without late rows.
    rest: Option<IntoValues<GroupKey, GroupState>>,
    pace: Pace,
}

impl SpilledGroups {
    pub fn new(
        known: HashMap<GroupKey, GroupState, RandomState>,
        late: Sorter,
    ) -> Result<SpilledGroups, Error> {
        let mut late = late.finish()?;
        Ok(SpilledGroups {
            known,
            first: late.next()?,
            late,
            rest: None,
            pace: Pace::default(),
        })
    }

    /// Returns the next group, or `None` at the end.
    pub fn next(
        &mut self,
        group: &Group,
        environment: &Environment,
        interrupt: &dyn Interrupt,
    ) -> Result<Option<GroupState>, Error> {
        let Some(first) = self.first.take() else {
            let known = &mut self.known;
            let rest = self
                .rest
                .get_or_insert_with(|| std::mem::take(known).into_values());
            return Ok(rest.next());
        };
        let mut state = match self.known.remove(&*first.key) {
            Some(state) => state,
            None => group.begin(&row_context(&first.row, environment), environment)?,
        };
        group.feed(&mut state.fields, &row_context(&first.row, environment))?;
        while let Some(next) = self.late.next()? {
            self.pace.step(interrupt)?;
            if next.key != first.key {
                self.first = Some(next);
                break;
            }
            group.feed(&mut state.fields, &row_context(&next.row, environment))?;
        }
        Ok(Some(state))
    }
}
