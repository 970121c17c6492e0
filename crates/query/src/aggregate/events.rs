//! The stages after `$changeStream`. Each processes one event at a time, because the stream has no
//! end.

use windrow_document::{Document, DocumentBuf, ValueRef};
use windrow_mql::filter::Environment;

use super::parse::{check_scores, is_known, parse_stage};
use super::stage::{Stage, StageKind, not_first, text_is_late};
use super::transform::row_context;
use crate::Error;
use crate::row::Row;

/// The stages that are allowed after `$changeStream`.
const ALLOWED: [&str; 8] = [
    "$addFields",
    "$match",
    "$project",
    "$redact",
    "$replaceRoot",
    "$replaceWith",
    "$set",
    "$unset",
];
const CHANGE_STREAM: &str = "$changeStream";
const ILLEGAL_OPERATION: i32 = 20;

/// A pipeline for the events of a change stream.
#[derive(Clone, Debug)]
pub struct EventPipeline {
    stages: Vec<Stage>,
    environment: Environment,
}

impl EventPipeline {
    /// Parses the stages after the first one. Fails with 20 for stages that are not allowed, and as
    /// [`Pipeline::parse`](super::Pipeline::parse) does.
    pub fn parse<'s>(
        stages: impl Iterator<Item = ValueRef<'s>>,
        environment: &Environment,
    ) -> Result<EventPipeline, Error> {
        let mut parsed = Vec::new();
        for stage in stages {
            let Some(document) = stage.as_document() else {
                let message = "Each element of the 'pipeline' array must be an object";
                return Err(Error::new(14, message));
            };
            check_allowed(document)?;
            let found = parse_stage(document, environment)?;
            if found.iter().any(Stage::has_text) {
                return Err(text_is_late());
            }
            parsed.extend(found);
        }
        check_scores(&parsed)?;
        Ok(EventPipeline {
            stages: parsed,
            environment: environment.clone(),
        })
    }

    /// Applies the pipeline to an event. Returns `None` if a stage drops it.
    ///
    /// ```
    /// use windrow_document::{array, doc};
    /// use windrow_mql::filter::Environment;
    /// use windrow_query::EventPipeline;
    /// let stages = array![{ "$match": { "n": 1 } }];
    /// let pipeline = EventPipeline::parse(stages.as_array().iter(), &Environment::default())?;
    /// assert_eq!(pipeline.apply(doc! { "n": 2 })?, None);
    /// # Ok::<(), windrow_query::Error>(())
    /// ```
    pub fn apply(&self, event: DocumentBuf) -> Result<Option<DocumentBuf>, Error> {
        let mut row = Row::new(event);
        for stage in &self.stages {
            let context = row_context(&row, &self.environment);
            let document = match &stage.kind {
                StageKind::Match(filter) if filter.matches(row.document())? => continue,
                StageKind::Reshape(reshape) => reshape.apply(row.document(), &context)?,
                StageKind::ReplaceRoot(replace) => replace.apply(row.document(), &context)?,
                StageKind::Redact(redact) => match redact.apply(row.document(), &context)? {
                    Some(document) => document,
                    None => return Ok(None),
                },
                _ => return Ok(None),
            };
            row = row.with(document);
        }
        Ok(Some(row.content.into_buf()))
    }
}

/// Checks that the stage is allowed. Unknown stages, and stages with several fields, fail in the
/// parser.
fn check_allowed(stage: Document<'_>) -> Result<(), Error> {
    match stage.first().filter(|_| stage.count() == 1) {
        Some((CHANGE_STREAM, _)) => Err(not_first(CHANGE_STREAM)),
        Some((name, _)) if is_known(name) && !ALLOWED.contains(&name) => Err(Error::new(
            ILLEGAL_OPERATION,
            format!("{name} is not permitted in a $changeStream pipeline"),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{ArrayBuf, array, doc};

    fn parse(stages: ArrayBuf) -> Result<EventPipeline, i32> {
        let stages = stages.as_array();
        let parsed = EventPipeline::parse(stages.iter(), &Environment::default());
        parsed.map_err(|error| error.code().unwrap_or(0))
    }

    #[test]
    fn events_pass_one_by_one() {
        let check = |stages: ArrayBuf, expected: Option<DocumentBuf>| {
            let event = doc! { "_id": 1, "operationType": "insert", "n": 2 };
            assert_eq!(parse(stages).unwrap().apply(event).unwrap(), expected);
        };
        check(
            array![{ "$match": { "n": 2 } }, { "$project": { "n": 1 } }],
            Some(doc! { "_id": 1, "n": 2 }),
        );
        check(array![{ "$match": { "n": 3 } }], None);
        check(array![{ "$redact": "$$PRUNE" }], None);
        check(
            array![{ "$set": { "x": "$n" } }, { "$unset": ["n", "operationType"] }],
            Some(doc! { "_id": 1, "x": 2 }),
        );
        check(
            array![{ "$replaceWith": { "_id": "$_id" } }],
            Some(doc! { "_id": 1 }),
        );
    }

    #[test]
    fn stages_that_need_all_rows_are_rejected() {
        let check = |stages: ArrayBuf, code: i32| assert_eq!(parse(stages).err(), Some(code));
        check(array![{ "$group": { "_id": 1 } }], 20);
        check(array![{ "$limit": 1 }], 20);
        check(array![{ "$collStats": {} }], 20);
        check(array![{ "$out": "x" }], 20);
        check(array![{ "$changeStream": {} }], 40602);
        check(array![{ "$nonsense": 1 }], 40324);
        check(array![{ "$match": {}, "$project": {} }], 40323);
        check(array![{ "$match": { "$text": { "$search": "x" } } }], 17313);
        check(array![5], 14);
    }
}
