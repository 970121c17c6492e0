//! Moves filters as far to the start of a pipeline as possible, condition by condition. An index
//! can only be used for conditions in the query at the start.

use windrow_document::{ArrayBuf, Document, DocumentBuf, Value, ValueRef};
use windrow_mql::filter::{Environment, Filter, FilterPushdown, may_fail};

use super::stage::{Stage, StageKind};
use crate::Error;

/// A condition that moves towards the start.
#[derive(Clone)]
struct MovingCondition {
    document: DocumentBuf,
    filter: Filter,
    /// The number of stages before the condition.
    position: usize,
    /// `true` if the condition also remains at its original position. Here it accepts at least the
    /// same documents.
    is_repeated: bool,
}

impl MovingCondition {
    /// Returns what part of the condition can run before the stage.
    fn over(&self, stage: &Stage) -> Result<FilterPushdown, Error> {
        Ok(match &stage.kind {
            // A sort does not change documents.
            StageKind::Sort { .. } => FilterPushdown::Same,
            kind if kind.has_lineage() => {
                let document = self.document.as_document();
                self.filter.pushdown(document, &|path| kind.lineage(path))?
            }
            _ => FilterPushdown::Nothing,
        })
    }
}

/// The largest number of bytes of conditions that are rewritten for stages that rename fields.
/// Moving a long list past hundreds of such stages would take longer than an index saves.
const REWRITTEN_BYTES_MAX: usize = 16 << 20;

/// The state for rewriting conditions.
struct Rewriting<'e> {
    environment: &'e Environment,
    bytes: usize,
}

impl Rewriting<'_> {
    /// Replaces a condition by one with other paths. Returns `false` if too many bytes have been
    /// rewritten.
    fn rewrite(
        &mut self,
        condition: &mut MovingCondition,
        document: DocumentBuf,
    ) -> Result<bool, Error> {
        if self.bytes > REWRITTEN_BYTES_MAX {
            return Ok(false);
        }
        self.bytes += document.as_bytes().len();
        condition.filter = Filter::parse_with(document.as_document(), self.environment)?;
        condition.document = document;
        Ok(true)
    }
}

/// Adds a filter to the stages, as early as possible. Joins it with the filter before it.
pub fn push_filter(
    stages: &mut Vec<Stage>,
    stage: Stage,
    environment: &Environment,
) -> Result<(), Error> {
    let (filter, is_passed) = match (&stage.kind, stages.last()) {
        (StageKind::Match(filter), Some(before)) => (filter, before.kind.has_lineage()),
        _ => return insert(stages, stages.len(), stage, environment),
    };
    let document = stage.source.get("$match").and_then(ValueRef::as_document);
    let Some(document) = document.filter(|_| is_passed) else {
        return insert(stages, stages.len(), stage, environment);
    };
    let mut moved: Vec<MovingCondition> = Vec::new();
    let mut rewriting = Rewriting {
        environment,
        bytes: 0,
    };
    for condition in conditions(document, filter, stages.len(), environment)? {
        // A condition that can fail stays after those that exclude documents from it.
        let guards = moved.iter().filter(|other| !other.is_repeated);
        let floor = if may_fail(condition.document.as_document()) {
            guards.map(|guard| guard.position).max().unwrap_or(0)
        } else {
            0
        };
        advance(condition, floor, stages, &mut rewriting, &mut moved)?;
    }
    if moved
        .iter()
        .all(|condition| condition.position == stages.len())
    {
        return insert(stages, stages.len(), stage, environment);
    }
    // From the end, so that earlier positions do not change.
    for position in (0..=stages.len()).rev() {
        let here = moved
            .iter()
            .filter(|condition| condition.position == position);
        let mut inserted: Vec<&MovingCondition> = here.collect();
        if inserted.iter().any(|condition| condition.is_repeated) {
            let known = known(stages, position);
            inserted.retain(|one| !one.is_repeated || !known.contains(&one.document));
        }
        if let Some(stage) = join_conditions(&inserted, environment)? {
            insert(stages, position, stage, environment)?;
        }
    }
    Ok(())
}

/// Splits a filter into conditions, because some can move further than others.
fn conditions(
    document: Document<'_>,
    filter: &Filter,
    position: usize,
    environment: &Environment,
) -> Result<Vec<MovingCondition>, Error> {
    let mut documents = Vec::new();
    split_conditions(document, &mut documents);
    let is_one = documents.len() == 1;
    let condition = |document: DocumentBuf| {
        let filter = if is_one {
            filter.clone()
        } else {
            Filter::parse_with(document.as_document(), environment)?
        };
        Ok(MovingCondition {
            document,
            filter,
            position,
            is_repeated: false,
        })
    };
    documents.into_iter().map(condition).collect()
}

fn split_conditions(document: Document<'_>, conditions: &mut Vec<DocumentBuf>) {
    for (name, value) in document {
        match value {
            ValueRef::Array(list) if name == "$and" => {
                let documents = list.iter().filter_map(ValueRef::as_document);
                documents.for_each(|one| split_conditions(one, conditions));
            }
            value => {
                let mut condition = DocumentBuf::new();
                condition.push(name, value.to_value());
                conditions.push(condition);
            }
        }
    }
}

/// Moves a condition before one stage after the other, as long as it accepts the same documents
/// there. If it accepts more, it also stays at its position, and moves on only to make an index
/// usable. It does not move before the stage `floor`.
fn advance(
    mut condition: MovingCondition,
    floor: usize,
    stages: &[Stage],
    rewriting: &mut Rewriting<'_>,
    moved: &mut Vec<MovingCondition>,
) -> Result<(), Error> {
    while condition.position > floor
        && let Some(stage) = condition
            .position
            .checked_sub(1)
            .and_then(|it| stages.get(it))
    {
        let (document, is_part) = match condition.over(stage)? {
            FilterPushdown::Nothing => break,
            FilterPushdown::Same => {
                condition.position -= 1;
                continue;
            }
            FilterPushdown::Whole(document) => (document, false),
            FilterPushdown::Part(document) => (document, true),
        };
        let behind = (is_part && !condition.is_repeated).then(|| condition.clone());
        if !rewriting.rewrite(&mut condition, document)? {
            break;
        }
        condition.is_repeated |= is_part;
        moved.extend(behind);
        condition.position -= 1;
    }
    let is_in_front = match condition.position {
        0 => true,
        1 => stages
            .first()
            .is_some_and(|first| matches!(first.kind, StageKind::Match(_))),
        _ => false,
    };
    if is_in_front || !condition.is_repeated {
        moved.push(condition);
    }
    Ok(())
}

/// Returns the conditions of the filter before a position.
fn known(stages: &[Stage], position: usize) -> Vec<DocumentBuf> {
    let mut known = Vec::new();
    let before = position.checked_sub(1).and_then(|it| stages.get(it));
    let filter = before.and_then(|stage| stage.source.get("$match")?.as_document());
    if let Some(filter) = filter {
        split_conditions(filter, &mut known);
    }
    known
}

/// Joins several conditions to one filter.
fn join_conditions(
    conditions: &[&MovingCondition],
    environment: &Environment,
) -> Result<Option<Stage>, Error> {
    let (document, filter) = match conditions {
        [] => return Ok(None),
        [one] => (one.document.clone(), one.filter.clone()),
        several => {
            let list = several
                .iter()
                .map(|one| Value::Document(one.document.clone()));
            let document = all_of(list.collect());
            let filter = Filter::parse_with(document.as_document(), environment)?;
            (document, filter)
        }
    };
    let mut source = DocumentBuf::new();
    source.push("$match", document);
    Ok(Some(Stage::new(source, StageKind::Match(filter))))
}

fn all_of(list: ArrayBuf) -> DocumentBuf {
    let mut document = DocumentBuf::new();
    document.push("$and", Value::Array(list));
    document
}

/// Returns the conjuncts of a filter, so that filters that are joined repeatedly stay one flat
/// list.
fn conjuncts(filter: Document<'_>) -> Vec<Value> {
    match (filter.first(), filter.count()) {
        (Some(("$and", ValueRef::Array(list))), 1) => list.iter().map(ValueRef::to_value).collect(),
        _ => vec![filter.to_buf().into()],
    }
}

/// Inserts a filter at a position, or joins it with the filter before.
fn insert(
    stages: &mut Vec<Stage>,
    position: usize,
    stage: Stage,
    environment: &Environment,
) -> Result<(), Error> {
    let before = position
        .checked_sub(1)
        .and_then(|before| stages.get_mut(before));
    match before {
        Some(Stage {
            source,
            kind: kind @ StageKind::Match(_),
        }) => {
            let both = [&*source, &stage.source]
                .into_iter()
                .filter_map(|one| one.get("$match").and_then(ValueRef::as_document))
                .flat_map(conjuncts);
            let joined = all_of(both.collect());
            *kind = StageKind::Match(Filter::parse_with(joined.as_document(), environment)?);
            *source = DocumentBuf::new();
            source.push("$match", joined);
        }
        _ => stages.insert(position, stage),
    }
    Ok(())
}
