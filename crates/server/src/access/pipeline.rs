//! The privileges that the stages of a pipeline need.

use windrow_access::{Action, Resource};
use windrow_document::{Array, ValueRef};
use windrow_query::Pipeline;
use windrow_query::aggregate::output::OutputActions;

use super::requirement::Requirement;

/// The namespace that a pipeline reads.
#[derive(Clone, Copy)]
pub struct PipelineScope<'a> {
    pub database: &'a str,
    /// `None` for a pipeline without a collection.
    pub collection: Option<&'a str>,
    /// `true` if the command bypasses validators.
    pub bypasses_validation: bool,
}

/// The privileges that a stage needs.
enum StageNeeds {
    /// Nothing: it only reads its input.
    Nothing,
    /// Actions on the collection, in place of reading its documents.
    InPlaceOfFind(&'static [Action]),
    /// A requirement that depends on its operand.
    Computed(fn(PipelineScope<'_>, ValueRef<'_>) -> Requirement),
    /// As [`Computed`](Self::Computed), for a stage that does not read the collection.
    ComputedInPlaceOfFind(fn(PipelineScope<'_>, ValueRef<'_>) -> Requirement),
}

/// Returns the stages, sorted by name. A stage that is missing here is refused.
fn find(name: &str) -> Option<StageNeeds> {
    use StageNeeds::{Computed, ComputedInPlaceOfFind, InPlaceOfFind, Nothing};
    Some(match name {
        "$addFields" | "$bucket" | "$bucketAuto" => Nothing,
        "$changeStream" => ComputedInPlaceOfFind(change_stream),
        "$changeStreamSplitLargeEvent" => Nothing,
        "$collStats" => InPlaceOfFind(&[Action::collStats]),
        "$count" => Nothing,
        "$currentOp" => ComputedInPlaceOfFind(current_operations),
        "$densify" => Nothing,
        "$documents" => InPlaceOfFind(&[]),
        "$facet" => Computed(facet),
        "$fill" | "$geoNear" => Nothing,
        "$graphLookup" | "$lookup" => Computed(lookup),
        "$group" => Nothing,
        "$indexStats" => InPlaceOfFind(&[Action::indexStats]),
        "$limit" => Nothing,
        "$listClusterCatalog" => ComputedInPlaceOfFind(cluster_catalog),
        "$listLocalSessions" => ComputedInPlaceOfFind(sessions),
        "$listSampledQueries" => {
            ComputedInPlaceOfFind(|_, _| Requirement::on_server(&[Action::listSampledQueries]))
        }
        "$listSearchIndexes" => InPlaceOfFind(&[Action::listSearchIndexes]),
        "$listSessions" => ComputedInPlaceOfFind(sessions),
        "$match" => Nothing,
        "$merge" => Computed(merge),
        "$out" => Computed(out),
        "$planCacheStats" => InPlaceOfFind(&[Action::planCacheRead]),
        "$project" => Nothing,
        "$querySettings" => {
            ComputedInPlaceOfFind(|_, _| Requirement::on_server(&[Action::querySettings]))
        }
        "$queryStats" => {
            ComputedInPlaceOfFind(|_, _| Requirement::on_server(&[Action::queryStatsRead]))
        }
        "$rankFusion" | "$scoreFusion" => Computed(fusion),
        "$redact" | "$replaceRoot" | "$replaceWith" | "$sample" | "$score" => Nothing,
        "$search" | "$searchMeta" | "$set" | "$setWindowFields" | "$skip" | "$sort" => Nothing,
        "$sortByCount" => Nothing,
        "$unionWith" => Computed(union),
        "$unset" | "$unwind" | "$vectorSearch" => Nothing,
        _ => return None,
    })
}

/// Returns the requirement of a pipeline and of the pipelines within it.
pub fn requirement(scope: PipelineScope<'_>, stages: Array<'_>) -> Requirement {
    let mut needed = Requirement::Nothing;
    let mut reads = true;
    for (number, stage) in stages.iter().enumerate() {
        for (name, operand) in stage.as_document().into_iter().flatten() {
            let one = match find(name) {
                Some(StageNeeds::Nothing) => Requirement::Nothing,
                Some(StageNeeds::Computed(compute)) => compute(scope, operand),
                Some(StageNeeds::InPlaceOfFind(actions)) => {
                    reads &= number > 0;
                    on_source(scope, actions)
                }
                Some(StageNeeds::ComputedInPlaceOfFind(compute)) => {
                    reads &= number > 0;
                    compute(scope, operand)
                }
                // The pipeline will be refused because there is no such stage.
                None if !Pipeline::has_stage(name) => Requirement::Nothing,
                None => Requirement::on_server(&[Action::internal]),
            };
            needed = needed.and(one);
        }
    }
    if reads && scope.collection.is_some() {
        needed = on_source(scope, &[Action::find]).and(needed);
    }
    needed
}

/// Actions on the namespace that the pipeline reads.
fn on_source(scope: PipelineScope<'_>, actions: &[Action]) -> Requirement {
    let resource = match scope.collection {
        Some(collection) => Resource::namespace(scope.database, collection),
        None => Resource::database(scope.database),
    };
    Requirement::on(&resource, actions)
}

fn fields<'a>(operand: ValueRef<'a>, name: &'a str) -> impl Iterator<Item = ValueRef<'a>> {
    // Each field with the name counts, whichever of them the stage reads.
    let document = operand.as_document().into_iter().flatten();
    document
        .filter(move |(field, _)| *field == name)
        .map(|(_, value)| value)
}

fn flag(operand: ValueRef<'_>, name: &str) -> bool {
    fields(operand, name).any(ValueRef::is_truthy)
}

fn change_stream(scope: PipelineScope<'_>, operand: ValueRef<'_>) -> Requirement {
    let actions = [Action::changeStream, Action::find];
    if flag(operand, "allChangesForCluster") {
        return Requirement::on(&Resource::AnyNormal, &actions);
    }
    on_source(scope, &actions)
}

fn current_operations(_: PipelineScope<'_>, operand: ValueRef<'_>) -> Requirement {
    if flag(operand, "allUsers") {
        return Requirement::on_server(&[Action::inprog]);
    }
    Requirement::Nothing
}

fn sessions(_: PipelineScope<'_>, operand: ValueRef<'_>) -> Requirement {
    let names_users = fields(operand, "users").next().is_some();
    if flag(operand, "allUsers") || names_users {
        return Requirement::on_server(&[Action::listSessions]);
    }
    Requirement::Nothing
}

fn cluster_catalog(scope: PipelineScope<'_>, _: ValueRef<'_>) -> Requirement {
    if scope.database == "admin" {
        return Requirement::on_server(&[Action::listClusterCatalog]);
    }
    Requirement::on(
        &Resource::database(scope.database),
        &[Action::listCollections],
    )
}

/// Returns the requirements of nested pipelines.
fn nested<'a>(
    scope: PipelineScope<'_>,
    pipelines: impl Iterator<Item = ValueRef<'a>>,
) -> Requirement {
    let arrays = pipelines.filter_map(ValueRef::as_array);
    arrays.fold(Requirement::Nothing, |needed, stages| {
        needed.and(requirement(scope, stages))
    })
}

fn facet(scope: PipelineScope<'_>, operand: ValueRef<'_>) -> Requirement {
    let within = PipelineScope {
        collection: None,
        ..scope
    };
    let pipelines = operand.as_document().into_iter().flatten();
    nested(within, pipelines.map(|(_, stages)| stages))
}

fn fusion(scope: PipelineScope<'_>, operand: ValueRef<'_>) -> Requirement {
    let inputs = fields(operand, "input");
    let groups = inputs.flat_map(|input| fields_of(input, "pipelines"));
    let pipelines = groups.filter_map(ValueRef::as_document).flatten();
    nested(scope, pipelines.map(|(_, stages)| stages))
}

fn fields_of<'a>(value: ValueRef<'a>, name: &'static str) -> Vec<ValueRef<'a>> {
    fields(value, name).collect()
}

/// Returns a namespace in an operand: a name, or `{db, coll}`. `None` if it is neither.
fn named<'a>(scope: PipelineScope<'a>, value: ValueRef<'a>) -> Option<(&'a str, &'a str)> {
    match value {
        ValueRef::String(name) => Some((scope.database, name)),
        ValueRef::Document(pair) => {
            let part = |name: &str| pair.get(name).and_then(ValueRef::as_str);
            Some((part("db").unwrap_or(scope.database), part("coll")?))
        }
        _ => None,
    }
}

/// Returns the requirement of reading other collections, and of the pipelines on them.
fn reading<'a>(
    scope: PipelineScope<'a>,
    sources: impl Iterator<Item = ValueRef<'a>>,
    pipelines: &[ValueRef<'a>],
) -> Requirement {
    let mut needed = Requirement::Nothing;
    let mut names: Vec<_> = sources.map(|source| named(scope, source)).collect();
    if names.is_empty() {
        names.push(None);
    }
    for name in names {
        let within = PipelineScope {
            database: name.map_or(scope.database, |(database, _)| database),
            collection: name.map(|(_, collection)| collection),
            ..scope
        };
        needed = needed.and(nested(within, pipelines.iter().copied()));
        if pipelines.is_empty() {
            needed = needed.and(requirement(within, Array::EMPTY));
        }
    }
    needed
}

fn lookup(scope: PipelineScope<'_>, operand: ValueRef<'_>) -> Requirement {
    reading(
        scope,
        fields(operand, "from"),
        &fields_of(operand, "pipeline"),
    )
}

fn union(scope: PipelineScope<'_>, operand: ValueRef<'_>) -> Requirement {
    match operand {
        ValueRef::String(_) => reading(scope, std::iter::once(operand), &[]),
        _ => reading(
            scope,
            fields(operand, "coll"),
            &fields_of(operand, "pipeline"),
        ),
    }
}

fn out(scope: PipelineScope<'_>, operand: ValueRef<'_>) -> Requirement {
    writing(scope, "$out", operand)
}

fn merge(scope: PipelineScope<'_>, operand: ValueRef<'_>) -> Requirement {
    writing(scope, "$merge", operand)
}

/// Actions on the target of a stage that writes. The parser of the stage finds both, so the check
/// and the stage cannot read its fields differently. A stage that it refuses needs an action that
/// no user may take.
fn writing(scope: PipelineScope<'_>, name: &str, operand: ValueRef<'_>) -> Requirement {
    let Ok(output) = OutputActions::parse(name, operand) else {
        return Requirement::on_server(&[Action::internal]);
    };
    let actions = [
        (output.inserts, Action::insert),
        (output.updates, Action::update),
        (output.removes, Action::remove),
        (scope.bypasses_validation, Action::bypassDocumentValidation),
    ];
    let actions = actions.iter().filter(|(is_needed, _)| *is_needed);
    let actions: Vec<Action> = actions.map(|(_, action)| *action).collect();
    let database = output.target.database.as_deref().unwrap_or(scope.database);
    Requirement::on_namespace(database, &output.target.collection, &actions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{ArrayBuf, array};

    fn check(stages: ArrayBuf, expected: &[(&str, Action)]) {
        let scope = PipelineScope {
            database: "d",
            collection: Some("c"),
            bypasses_validation: false,
        };
        let mut found = Vec::new();
        flatten(&requirement(scope, stages.as_array()), &mut found);
        let expected = expected.iter().map(|(name, action)| {
            let resource = match name.split_once('.') {
                Some((database, collection)) => Resource::namespace(database, collection),
                None => Resource::Cluster,
            };
            (resource, *action)
        });
        assert_eq!(found, expected.collect::<Vec<_>>(), "{stages:?}");
    }

    fn flatten(requirement: &Requirement, into: &mut Vec<(Resource, Action)>) {
        match requirement {
            Requirement::Action(resource, action) => into.push((resource.clone(), *action)),
            Requirement::All(all) => all.iter().for_each(|one| flatten(one, into)),
            _ => {}
        }
    }

    #[test]
    fn stages_state_what_they_need() {
        const FIND: (&str, Action) = ("d.c", Action::find);
        check(array![], &[FIND]);
        check(array![{ "$match": {} }], &[FIND]);
        check(array![{ "$collStats": {} }], &[("d.c", Action::collStats)]);
        check(
            array![{ "$indexStats": {} }, { "$match": {} }],
            &[("d.c", Action::indexStats)],
        );
        check(
            array![{ "$lookup": { "from": "e" } }],
            &[FIND, ("d.e", Action::find)],
        );
        let from = array![{ "$lookup": { "from": { "db": "x", "coll": "e" } } }];
        check(from, &[FIND, ("x.e", Action::find)]);
        let within = array![{ "$lookup": { "from": "e", "pipeline": [{ "$unionWith": "f" }] } }];
        check(
            within,
            &[FIND, ("d.e", Action::find), ("d.f", Action::find)],
        );
        let twice = array![{ "$graphLookup": { "from": "e", "from": "f" } }];
        check(twice, &[FIND, ("d.e", Action::find), ("d.f", Action::find)]);
        let facet = array![{ "$facet": { "a": [{ "$unionWith": { "coll": "e" } }] } }];
        check(facet, &[FIND, ("d.e", Action::find)]);
        let out = array![{ "$out": "o" }];
        check(
            out,
            &[FIND, ("d.o", Action::insert), ("d.o", Action::remove)],
        );
        let merge = array![{ "$merge": { "into": "o", "whenMatched": "fail" } }];
        check(merge, &[FIND, ("d.o", Action::insert)]);
        let discard = array![{ "$merge": { "into": "o", "whenNotMatched": "discard" } }];
        check(discard, &[FIND, ("d.o", Action::update)]);
        let pipeline =
            array![{ "$merge": { "into": "o", "whenMatched": [{ "$set": { "x": "$$v" } }] } }];
        check(
            pipeline,
            &[FIND, ("d.o", Action::insert), ("d.o", Action::update)],
        );
        // Stages that the parser refuses are refused for all users.
        for refused in [
            array![{ "$merge": { "into": "o", "into": "p" } }],
            array![{ "$merge": { "into": { "coll": "o", "coll": "p" } } }],
            array![{ "$merge": { "whenMatched": "fail" } }],
            array![{ "$out": { "db": "x", "coll": "o", "coll": "p" } }],
            array![{ "$out": 1 }],
        ] {
            check(refused, &[FIND, ("", Action::internal)]);
        }
        check(array![{ "$currentOp": {} }], &[]);
        check(
            array![{ "$currentOp": { "allUsers": true } }],
            &[("", Action::inprog)],
        );
        check(
            array![{ "$listSessions": { "users": [] } }],
            &[("", Action::listSessions)],
        );
        check(array![{ "$documents": [] }], &[]);
        check(array![{ "$nothing": {} }], &[FIND]);
        let stream = array![{ "$changeStream": {} }];
        check(stream, &[("d.c", Action::changeStream), FIND]);
        let fusion =
            array![{ "$rankFusion": { "input": { "pipelines": { "a": [{ "$limit": 1 }] } } } }];
        check(fusion, &[FIND, FIND]);
    }
}
