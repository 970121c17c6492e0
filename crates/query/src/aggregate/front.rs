//! The front of a pipeline: what becomes a query, and in which order stages are best run.

use windrow_document::DocumentBuf;
use windrow_document::path::Path;
use windrow_document::{ArrayBuf, Value, ValueRef};
use windrow_mql::filter::{Environment, Filter};

use super::stage::{Kind, Stage};
use crate::Error;
use crate::find::Find;

/// The same pipeline with filters as early as they can be: before sorts, and before stages that do not
/// change what they read. Filters that meet become one; a limit behind a sort is known to it.
pub fn ordered(stages: Vec<Stage>, environment: &Environment) -> Result<Vec<Stage>, Error> {
    let mut done: Vec<Stage> = Vec::with_capacity(stages.len());
    for stage in stages {
        match stage.kind {
            Kind::Match(_) => {
                let place = place_of_match(&done, &stage);
                insert_match(&mut done, place, stage, environment)?;
            }
            _ => done.push(stage),
        }
    }
    limit_sorts(&mut done);
    Ok(done)
}

fn place_of_match(done: &[Stage], stage: &Stage) -> usize {
    let read = stage.kind.dependencies();
    let mut place = done.len();
    while let Some(before) = place.checked_sub(1).and_then(|before| done.get(before)) {
        let passes = match &before.kind {
            Kind::Sort(..) => true,
            Kind::Reshape(reshape) if reshape.keeps_rest() && !read.whole && !read.random => {
                let changed = reshape.changed_paths();
                !read.paths.iter().any(|path| {
                    changed
                        .iter()
                        .any(|one| Path::parse(one).overlaps(&Path::parse(path)))
                })
            }
            _ => false,
        };
        if !passes {
            break;
        }
        place -= 1;
    }
    place
}

/// Puts the filter in, or joins it to one that stands before.
fn insert_match(
    done: &mut Vec<Stage>,
    place: usize,
    stage: Stage,
    environment: &Environment,
) -> Result<(), Error> {
    let before = place.checked_sub(1).and_then(|before| done.get_mut(before));
    match before {
        Some(Stage {
            source,
            kind: kind @ Kind::Match(_),
        }) => {
            let both: ArrayBuf = [&*source, &stage.source]
                .into_iter()
                .filter_map(|one| one.get("$match").map(ValueRef::to_value))
                .collect();
            let mut joined = DocumentBuf::new();
            joined.push("$and", Value::Array(both));
            *kind = Kind::Match(Filter::parse_with(joined.as_document(), environment)?);
            *source = DocumentBuf::new();
            source.push("$match", joined);
        }
        _ => done.insert(place, stage),
    }
    Ok(())
}

/// Tells sorts how many rows will be asked of them.
fn limit_sorts(stages: &mut [Stage]) {
    for place in 0..stages.len() {
        let Some((first, rest)) = stages.get_mut(place..).and_then(<[Stage]>::split_first_mut)
        else {
            continue;
        };
        if let Kind::Sort(_, limit) = &mut first.kind {
            let mut skipped = 0u64;
            for stage in rest {
                match &stage.kind {
                    Kind::Skip(amount) => skipped = skipped.saturating_add(*amount),
                    Kind::Limit(amount) => {
                        *limit = Some(skipped.saturating_add(*amount));
                        break;
                    }
                    Kind::Reshape(_) => {}
                    _ => break,
                }
            }
        }
    }
}

/// The query at the front, and the stages behind it.
pub fn split(stages: &[Stage]) -> (Find, &[Stage]) {
    let mut find = Find::of(Filter::all());
    let mut rest = stages;
    if let Some((
        Stage {
            kind: Kind::Match(filter),
            ..
        },
        behind,
    )) = rest.split_first()
    {
        (find.filter, rest) = (filter.clone(), behind);
    }
    if let Some((
        Stage {
            kind: Kind::Sort(sort, _),
            ..
        },
        behind,
    )) = rest.split_first()
    {
        (find.sort, rest) = (Some(sort.clone()), behind);
    }
    while let Some((stage, behind)) = rest.split_first() {
        match stage.kind {
            Kind::Skip(amount) => {
                find.skip = find.skip.saturating_add(amount);
                find.limit = find.limit.map(|limit| limit.saturating_sub(amount));
            }
            Kind::Limit(amount) => {
                find.limit = Some(find.limit.map_or(amount, |limit| limit.min(amount)));
            }
            _ => break,
        }
        rest = behind;
    }
    find.needs = needs(rest);
    (find, rest)
}

/// The paths that the stages read of what they are given; None: all of it.
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
