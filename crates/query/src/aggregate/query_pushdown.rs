//! Orders the stages of a pipeline, and splits off the query at the start.

use windrow_document::path::Path;
use windrow_document::{DocumentBuf, ValueRef};
use windrow_mql::filter::{Environment, Filter};

use super::filter_pushdown;
use super::origin;
use super::stage::{PipelineContext, RowsNeeded, Stage, StageKind};
use crate::Error;
use crate::find::{DistinctRows, Find, Hint, RowChoice};
use crate::source::Source;

/// Reorders the stages so that they run faster: filters move towards the start, condition by
/// condition; limits move before stages that map each row to one row; an `$unwind` becomes part of
/// the `$lookup` before it. Adjacent filters become one, and a sort learns the limit after it.
pub fn reorder(stages: Vec<Stage>, environment: &Environment) -> Result<Vec<Stage>, Error> {
    let mut done: Vec<Stage> = Vec::with_capacity(stages.len());
    for stage in stages {
        match &stage.kind {
            StageKind::Match(_) => filter_pushdown::push_filter(&mut done, stage, environment)?,
            StageKind::Limit(_) | StageKind::Skip(_) => {
                let one_by_one = |before: &&Stage| before.kind.keeps_rows();
                let behind = done.iter().rev().take_while(one_by_one).count();
                done.insert(done.len() - behind, stage);
            }
            StageKind::Unwind(unwind) => {
                let before = done.last_mut().and_then(|before| match &before.kind {
                    StageKind::Other(other) => Some((other.with_unwind(unwind)?, before)),
                    _ => None,
                });
                match before {
                    Some((both, before)) => {
                        before.source = with_unwinding(&before.source, &stage.source);
                        before.kind = StageKind::Other(both);
                    }
                    None => done.push(stage),
                }
            }
            _ => done.push(stage),
        }
    }
    limit_sorts(&mut done);
    limit_first(&mut done);
    prune_unwinds(&mut done);
    Ok(done)
}

/// Tells each `$unwind` which paths later stages read, because it copies its rows once for each
/// element.
fn prune_unwinds(stages: &mut [Stage]) {
    for position in 0..stages.len() {
        let read = stages.get(position..).and_then(needs);
        if let Some(StageKind::Unwind(unwind)) =
            stages.get_mut(position).map(|stage| &mut stage.kind)
        {
            unwind.keep_only(read);
        }
    }
}

/// The stage as explain shows it: a `$lookup` with its `$unwind`.
fn with_unwinding(lookup: &DocumentBuf, unwind: &DocumentBuf) -> DocumentBuf {
    let operand = lookup.get("$lookup").and_then(ValueRef::as_document);
    let mut shown: DocumentBuf = operand
        .into_iter()
        .flat_map(|fields| fields.iter())
        .collect();
    let options = unwind.get("$unwind").and_then(ValueRef::as_document);
    let mut unwinding = DocumentBuf::new();
    for name in ["preserveNullAndEmptyArrays", "includeArrayIndex"] {
        match options.and_then(|options| options.get(name)) {
            Some(option) => unwinding.push(name, option.to_value()),
            None if name == "preserveNullAndEmptyArrays" => unwinding.push(name, false),
            None => {}
        }
    }
    shown.push("unwinding", unwinding);
    let mut stage = DocumentBuf::new();
    stage.push("$lookup", shown);
    stage
}

/// Tells the first stage which rows are needed, if it can make use of that.
fn limit_first(stages: &mut [Stage]) {
    let Some((first, rest)) = stages.split_first_mut() else {
        return;
    };
    let StageKind::Other(other) = &first.kind else {
        return;
    };
    let mut needed = RowsNeeded::default();
    let mut is_reshaped = false;
    for stage in rest {
        match &stage.kind {
            StageKind::Skip(amount) => {
                needed.skip = needed.skip.saturating_add(*amount);
                // A stage before the `$skip` reads the rows that it drops.
                if !is_reshaped {
                    needed.unread = needed.skip;
                }
            }
            StageKind::Limit(amount) => {
                needed.limit = Some(needed.skip.saturating_add(*amount));
                break;
            }
            StageKind::Reshape(_) => is_reshaped = true,
            _ => break,
        }
    }
    if needed != RowsNeeded::default()
        && let Some(limited) = other.with_rows_needed(&needed)
    {
        first.kind = StageKind::Other(limited);
    }
}

/// Tells sorts how many rows are needed.
fn limit_sorts(stages: &mut [Stage]) {
    for position in 0..stages.len() {
        let Some((first, rest)) = stages
            .get_mut(position..)
            .and_then(<[Stage]>::split_first_mut)
        else {
            continue;
        };
        if let StageKind::Sort { limit, .. } = &mut first.kind {
            let mut skipped = 0u64;
            for stage in rest {
                match &stage.kind {
                    StageKind::Skip(amount) => skipped = skipped.saturating_add(*amount),
                    StageKind::Limit(amount) => {
                        *limit = Some(skipped.saturating_add(*amount));
                        break;
                    }
                    StageKind::Reshape(_) => {}
                    _ => break,
                }
            }
        }
    }
}

/// Splits the stages into the query at the start and the stages after it. A `$geoNear` becomes a
/// query, and also stays as a stage that adds fields to each row. Fails as
/// [`GeoNear::filter`](super::geo_near::GeoNear::filter) does.
pub fn split<'s>(
    stages: &'s [Stage],
    source: &dyn Source,
    hint: Option<Hint>,
    context: &PipelineContext,
) -> Result<(Find, &'s [Stage]), Error> {
    let mut find = Find {
        hint,
        allow_disk_use: context.allow_disk_use,
        ..Find::new(Filter::all())
    };
    let mut rest = stages;
    if let Some(StageKind::GeoNear(near)) = stages.first().map(|first| &first.kind) {
        find.filter = near.filter(source)?;
        return Ok((find, stages));
    }
    if let Some((
        Stage {
            kind: StageKind::Match(filter),
            ..
        },
        behind,
    )) = rest.split_first()
    {
        (find.filter, rest) = (filter.clone(), behind);
    }
    if let Some((
        Stage {
            kind: StageKind::Sort { sort, .. },
            ..
        },
        behind,
    )) = rest.split_first()
    {
        (find.sort, rest) = (Some(sort.clone()), behind);
    }
    while let Some((stage, behind)) = rest.split_first() {
        match stage.kind {
            StageKind::Skip(amount) => {
                find.skip = find.skip.saturating_add(amount);
                find.limit = find.limit.map(|limit| limit.saturating_sub(amount));
            }
            StageKind::Limit(amount) => {
                find.limit = Some(find.limit.map_or(amount, |limit| limit.min(amount)));
            }
            _ => break,
        }
        rest = behind;
    }
    find.needs_index_keys = origin::dependencies(rest).index_key;
    // Rows made of index keys do not contain the key by which they were found.
    find.needs = needs(rest).filter(|_| !find.needs_index_keys);
    // A collation makes values equal that an index distinguishes.
    let is_binary = context.environment.collation.is_none();
    find.distinct_rows = distinct_rows(&find, rest).filter(|_| is_binary && !find.needs_index_keys);
    Ok((find, rest))
}

/// Returns which rows the first stage needs, if it does not need all of them and the query returns
/// all rows that match.
fn distinct_rows(find: &Find, rest: &[Stage]) -> Option<DistinctRows> {
    let Some(StageKind::Other(first)) = rest.first().map(|stage| &stage.kind) else {
        return None;
    };
    let comes_whole = find.skip == 0 && find.limit.is_none();
    let distinct_rows = first.needed_rows().filter(|_| comes_whole)?;
    (distinct_rows.which == RowChoice::Any || find.order().is_some()).then_some(distinct_rows)
}

/// Returns the paths that the stages read. `None`: whole documents.
fn needs(stages: &[Stage]) -> Option<Vec<Path>> {
    let mut paths = std::collections::BTreeSet::new();
    for stage in stages {
        let read = stage.kind.dependencies();
        if read.whole {
            return None;
        }
        paths.extend(read.paths);
        if stage.kind.ends_dependencies() {
            return Some(paths.iter().map(|path| Path::parse(path)).collect());
        }
    }
    None
}
