//! `$lookup`: documents of another collection, found for each row.
//!
//! By equality the other collection is asked through its index, or where it has none, read once into a
//! table by value. With a pipeline, that runs for each row; only once where it does not depend on it.

mod join;
mod parse;

use std::sync::Arc;

use windrow_document::path::Path;
use windrow_document::{Array, ArrayBuilder, Value, ValueRef};
use windrow_mql::expression::{Dependencies, Expression, Variables};
use windrow_mql::filter::Environment;

use super::place::with_value;
use super::transform::context;
use super::{DOCUMENT_BYTES_MAX, Pipeline, Rows, Setting, collect};
use crate::Error;
use crate::operators::{BoxOperator, Counters, Operator};
use crate::row::{Content, Interrupt, Row};
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

impl Lookup {
    pub fn collect_collections(&self, names: &mut Vec<String>) {
        names.push(self.from.clone());
        if let Some(pipeline) = self.pipeline.as_ref().and_then(|one| one.fixed.as_ref()) {
            names.extend(pipeline.other_collections());
        }
    }

    pub fn dependencies(&self) -> Dependencies {
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
}

pub(super) struct LookupOperator {
    lookup: Lookup,
    setting: Setting,
    source: Arc<dyn Source>,
    join: Option<Join>,
    /// What a pipeline gives that is the same for every row.
    cached: Option<Vec<Content>>,
    input: BoxOperator,
    counters: Counters,
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
            input,
            counters: Counters::default(),
        })
    }

    fn found(&mut self, row: &Row, interrupt: &dyn Interrupt) -> Result<Vec<Content>, Error> {
        let joined = match &mut self.join {
            Some(join) => Some(join.matching(row.document(), &self.setting, interrupt)?),
            None => None,
        };
        let Some(sub) = &self.lookup.pipeline else {
            return Ok(joined.unwrap_or_default());
        };
        if let (Some(pipeline), None) = (&sub.fixed, &joined) {
            if let Some(cached) = &self.cached {
                return Ok(cached.clone());
            }
            let chain = pipeline.over_source(&self.source, None, &self.setting)?;
            let found = collect(chain, interrupt, DOCUMENT_BYTES_MAX)?;
            self.cached = Some(found.clone());
            return Ok(found);
        }
        let environment = self.environment(row)?;
        let stages = sub.stages.as_ref().as_array().unwrap_or(Array::EMPTY);
        let pipeline = Pipeline::parse(stages, &environment)?;
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
        collect(chain, interrupt, DOCUMENT_BYTES_MAX)
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
        let Some(row) = self.input.next(interrupt)? else {
            return Ok(None);
        };
        let mut list = ArrayBuilder::new();
        for content in self.found(&row, interrupt)? {
            list.push(ValueRef::Document(content.as_document()));
            if list.len() > DOCUMENT_BYTES_MAX {
                return Err(Error::new(
                    4568,
                    "Total size of documents in the lookup exceeds 16 MB",
                ));
            }
        }
        let list = list.finish();
        let value = ValueRef::Array(list.as_array());
        let made = with_value(row.document(), &self.lookup.into, Some(value));
        self.counters.returned += 1;
        Ok(Some(row.with(made)))
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn inputs(&self) -> Vec<&dyn Operator> {
        vec![&*self.input]
    }
}
