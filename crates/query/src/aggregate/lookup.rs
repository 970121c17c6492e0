//! `$lookup`: documents of another collection, found for each row.
//!
//! By equality the other collection is asked through its index, or where it has none, read once into a
//! table by value. With a pipeline, that runs for each row; only once where it does not depend on it.

mod join;
mod parse;

use std::sync::Arc;

use windrow_document::path::Path;
use windrow_document::{Array, ArrayBuf, ArrayBuilder, Value, ValueRef};
use windrow_mql::expression::{Dependencies, Expression, Variables};
use windrow_mql::filter::Environment;

use super::documents;
use super::place::with_value;
use super::rows::{ARRAY_BYTES_MAX, Rows, collect};
use super::stage::{Pipeline, Setting, Transformation};
use super::transform::context;
use super::unwind::Unwind;
use crate::Error;
use crate::operators::{BoxOperator, Counters, Operator, SORT_BYTES_MAX, told};
use crate::row::{Content, Interrupt, Pace, Row};
use crate::source::Source;
use join::Join;

pub(super) use parse::parse;

/// A parsed `$lookup`.
#[derive(Clone, Debug)]
pub struct Lookup {
    from: String,
    into: Path,
    equality: Option<Equality>,
    variables: Vec<(String, Expression)>,
    pipeline: Option<SubPipeline>,
    /// The `$unwind` of its field that stood behind it.
    unwind: Option<Unwind>,
}

/// The field of one's own that must equal a field of the other.
#[derive(Clone, Debug)]
pub struct Equality {
    pub local: Path,
    pub foreign: Path,
}

/// A pipeline that is parsed again for each row, with the row's values.
#[derive(Clone, Debug)]
struct SubPipeline {
    stages: Value,
    /// Parsed, where it says the same for every row.
    fixed: Option<Pipeline>,
}

impl Transformation for Lookup {
    fn open(&self, input: BoxOperator, setting: &Setting) -> Result<BoxOperator, Error> {
        let operator = LookupOperator::new(self.clone(), setting.clone(), input)?;
        Ok(Box::new(operator))
    }

    fn dependencies(&self) -> Dependencies {
        let mut found = Dependencies::default();
        found.extend(
            self.equality
                .iter()
                .fold(Dependencies::default(), |mut all, one| {
                    all.add(&one.local.to_string());
                    all
                }),
        );
        self.variables
            .iter()
            .for_each(|(_, value)| found.extend(value.paths()));
        found
    }

    fn leaves(&self, path: &Path) -> bool {
        let by_unwind = self
            .unwind
            .as_ref()
            .is_none_or(|unwind| unwind.leaves(path));
        by_unwind && !self.into.overlaps(path)
    }

    fn leaves_some(&self) -> bool {
        true
    }

    fn keeps_rows(&self) -> bool {
        self.unwind.is_none()
    }

    /// Where it is of its own field: then no array is made.
    fn with_unwind(&self, unwind: &Unwind) -> Option<Arc<dyn Transformation>> {
        let is_own = self.unwind.is_none() && unwind.path == self.into;
        is_own.then(|| {
            let unwind = Some(unwind.clone());
            Arc::new(Lookup {
                unwind,
                ..self.clone()
            }) as Arc<dyn Transformation>
        })
    }

    fn collect_collections(&self, names: &mut Vec<String>) {
        names.push(self.from.clone());
        if let Some(pipeline) = self.pipeline.as_ref().and_then(|one| one.fixed.as_ref()) {
            names.extend(pipeline.other_collections());
        }
    }
}

pub(super) struct LookupOperator {
    lookup: Lookup,
    setting: Setting,
    source: Arc<dyn Source>,
    join: Option<Join>,
    /// What a pipeline gives that is the same for every row.
    cached: Option<Vec<Content>>,
    /// A row whose documents are given one by one.
    current: Option<Unwinding>,
    input: BoxOperator,
    counters: Counters,
    pace: Pace,
}

/// A row, and the documents found for it that are still to come.
struct Unwinding {
    row: Row,
    place: usize,
    rest: std::vec::IntoIter<Content>,
}

impl LookupOperator {
    pub fn new(
        lookup: Lookup,
        setting: Setting,
        input: BoxOperator,
    ) -> Result<LookupOperator, Error> {
        let source = setting.source(&lookup.from)?;
        let join = lookup
            .equality
            .clone()
            .map(|equality| Join::new(equality, source.clone()));
        Ok(LookupOperator {
            lookup,
            setting,
            source,
            join,
            cached: None,
            current: None,
            input,
            counters: Counters::default(),
            pace: Pace::default(),
        })
    }

    fn found(&mut self, row: &Row, interrupt: &dyn Interrupt) -> Result<Vec<Content>, Error> {
        // Each row has a cursor of its own, which may be too short to ask.
        interrupt.check()?;
        let among = self.among_brought(row);
        let joined = match &mut self.join {
            Some(join) if among.is_none() => {
                Some(join.matching(row.document(), &self.setting, interrupt)?)
            }
            _ => None,
        };
        let Some(sub) = &self.lookup.pipeline else {
            return Ok(joined.unwrap_or_default());
        };
        if let (Some(pipeline), None, None) = (&sub.fixed, &joined, &among) {
            if let Some(cached) = &self.cached {
                return Ok(cached.clone());
            }
            let chain = pipeline.over_source(&self.source, None, &self.setting)?;
            let found = collect(chain, interrupt, self.bytes_max())?;
            self.cached = Some(found.clone());
            return Ok(found);
        }
        let environment = self.environment(row)?;
        let stages = sub.stages.as_ref().as_array().unwrap_or(Array::EMPTY);
        let stages = among.as_ref().map_or(stages, ArrayBuf::as_array);
        let pipeline = (self.setting.parse)(stages, &environment)?;
        let setting = Setting {
            environment,
            ..self.setting.clone()
        };
        let chain = match joined {
            Some(found) => {
                let rows = found.into_iter().map(Row::of).collect();
                pipeline.over_rows(Box::new(Rows::new(rows)), &setting)?
            }
            None => pipeline.over_source(&self.source, None, &setting)?,
        };
        collect(chain, interrupt, self.bytes_max())
    }

    /// The pipeline for a row whose field must equal one of documents that the pipeline brings.
    fn among_brought(&self, row: &Row) -> Option<ArrayBuf> {
        let stages = self.lookup.pipeline.as_ref()?.stages.as_ref().as_array()?;
        let join = self.join.as_ref().filter(|_| documents::begins(stages))?;
        Some(join.among(stages, row.document()))
    }

    /// How much may be found for a row: what fits in an array, or where none is made, in memory.
    fn bytes_max(&self) -> usize {
        match self.lookup.unwind {
            None => ARRAY_BYTES_MAX,
            Some(_) => SORT_BYTES_MAX,
        }
    }

    /// The next row of a lookup that is unwound; None where the next input is to be read.
    fn next_unwound(&mut self, unwind: &Unwind) -> Option<Row> {
        let current = self.current.as_mut()?;
        let content = current.rest.next()?;
        let value = ValueRef::Document(content.as_document());
        let made = unwind.element(&current.row, value, current.place);
        current.place += 1;
        Some(current.row.clone().with(made))
    }

    fn next_of_unwound(
        &mut self,
        unwind: &Unwind,
        interrupt: &dyn Interrupt,
    ) -> Result<Option<Row>, Error> {
        loop {
            self.pace.step(interrupt)?;
            if let Some(row) = self.next_unwound(unwind) {
                self.counters.returned += 1;
                return Ok(Some(row));
            }
            let Some(row) = self.input.next(interrupt)? else {
                return Ok(None);
            };
            let found = self.found(&row, interrupt)?;
            if found.is_empty() {
                let bare = with_value(row.document(), &self.lookup.into, None);
                if let Some(row) = unwind.of_nothing(row.with(bare)) {
                    self.counters.returned += 1;
                    return Ok(Some(row));
                }
                continue;
            }
            self.current = Some(Unwinding {
                row,
                place: 0,
                rest: found.into_iter(),
            });
        }
    }

    /// The variables of `let` with the row's values.
    fn environment(&self, row: &Row) -> Result<Environment, Error> {
        let outer = &self.setting.environment;
        let mut variables: Variables = (*outer.variables).clone();
        for (name, value) in &self.lookup.variables {
            let value = value.evaluate(&context(row, outer))?;
            variables.set(name, value.to_value());
        }
        Ok(Environment {
            variables: Arc::new(variables),
            ..outer.clone()
        })
    }
}

impl Operator for LookupOperator {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if let Some(unwind) = self.lookup.unwind.clone() {
            return self.next_of_unwound(&unwind, interrupt);
        }
        let Some(row) = self.input.next(interrupt)? else {
            return Ok(None);
        };
        let mut list = ArrayBuilder::new();
        for content in self.found(&row, interrupt)? {
            list.push(ValueRef::Document(content.as_document()));
            if list.len() > ARRAY_BYTES_MAX {
                return Err(Error::new(
                    4568,
                    "Total size of documents in the lookup exceeds 100 MB",
                ));
            }
        }
        let list = list.finish();
        let value = ValueRef::Array(list.as_array());
        let made = with_value(row.document(), &self.lookup.into, Some(value));
        self.counters.returned += 1;
        Ok(Some(row.with(made)))
    }

    told!(counters, input);
}
