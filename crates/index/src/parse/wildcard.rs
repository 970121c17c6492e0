//! The paths that a wildcard index covers: its key and the option `wildcardProjection`.

use windrow_document::{Document, ValueRef};
use windrow_mql::Error;

use super::CANNOT_CREATE;
use super::key::{ALL_FIELDS, wildcard_name};
use crate::definition::KeyField;
use crate::paths::{PathRelation, Wildcard};
use crate::wildcard::is_of_wildcard;

const FAILED_TO_PARSE: i32 = 9;
const EMPTY_PART: i32 = 15998;
const COLLISION_BELOW: i32 = 31249;
const COLLISION_ABOVE: i32 = 31250;
const INCLUSION_IN_EXCLUSION: i32 = 31253;
const EXCLUSION_IN_INCLUSION: i32 = 31254;
const POSITIONAL: i32 = 31324;
const EMPTY_DOCUMENT: i32 = 51270;
const COMPUTED: i32 = 51271;
const INVALID_PIPELINE_OPERATOR: i32 = 168;
// The error codes of compound wildcard indexes.
const COLLISION: i32 = 7_246_200;
const WITHIN: i32 = 7_246_204;
const TAKEN_IN: i32 = 7_246_208;
const NOT_LEFT_OUT_BEFORE: i32 = 7_246_209;
const NOT_LEFT_OUT: i32 = 7_246_210;
const MIXED: i32 = 7_246_211;

/// Operators that only the projections of `find` support.
const OF_FIND: &[&str] = &["$elemMatch", "$slice", "$meta"];

/// Returns the paths that a wildcard index covers. Fails with MongoDB's code if the projection is
/// not valid.
pub(super) fn definition(
    key: Document<'_>,
    specification: Document<'_>,
) -> Result<Wildcard, Error> {
    let name = wildcard_name(key).unwrap_or(ALL_FIELDS);
    let projection = specification.get("wildcardProjection");
    match (name.strip_suffix(".$**"), projection) {
        (None, None) => Ok(Wildcard::Without(vec!["_id".to_owned()])),
        (Some(within), None) => Ok(Wildcard::Only(vec![within.to_owned()])),
        (None, Some(ValueRef::Document(projection))) => projected(projection),
        (Some(_), Some(ValueRef::Document(_))) => Err(Error::failed_to_parse(
            "The field 'wildcardProjection' is only allowed when the key is all fields, {\"$**\": 1}",
        )),
        (_, Some(other)) => Err(Error::type_mismatch(format!(
            "The field 'wildcardProjection' must be a non-empty object, but got {}",
            other.type_of().name()
        ))),
    }
}

/// Fails if the wildcard covers another field of a compound index: a key would contain its value
/// twice.
pub(super) fn check_beside(
    wildcard: &Wildcard,
    fields: &[KeyField],
    projection: Option<ValueRef<'_>>,
) -> Result<(), Error> {
    let beside = fields.iter().filter(|field| !is_of_wildcard(field));
    let mut beside: Vec<String> = beside.map(|field| field.path.to_string()).collect();
    beside.sort();
    let refuse = |code, path: &str| {
        Err(Error::new(
            code,
            format!(
                "the field '{path}' of a compound wildcard index is one that its wildcard stands \
                 for: leave it out by the 'wildcardProjection'"
            ),
        ))
    };
    if let Some(ValueRef::Document(projection)) = projection
        && let Wildcard::Without(_) = wildcard
    {
        return check_left_out(projection, &beside, refuse);
    }
    if let (Wildcard::Without(_), Some(path)) = (wildcard, beside.first()) {
        return refuse(CANNOT_CREATE, path);
    }
    let code = match projection {
        Some(_) => TAKEN_IN,
        None => WITHIN,
    };
    match beside
        .iter()
        .find(|path| wildcard.relation(path) != PathRelation::Outside)
    {
        Some(path) => refuse(code, path),
        None => Ok(()),
    }
}

/// Fails if a field in `beside` is not excluded by the projection. Both lists are compared in
/// sorted order. The code is 7246210 if no excluded path sorts after the field, and 7246209
/// otherwise.
fn check_left_out(
    projection: Document<'_>,
    beside: &[String],
    refuse: impl Fn(i32, &str) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut paths = Paths::default();
    paths.collect("", projection)?;
    let left_out = paths.0.iter().filter(|(_, taken)| !taken);
    let mut left_out: Vec<&str> = left_out.map(|(path, _)| path.as_str()).collect();
    left_out.sort_unstable();
    let mut left_out = left_out.into_iter().peekable();
    for path in beside {
        while left_out
            .next_if(|one| *one < path.as_str() && !is_within(path, one))
            .is_some()
        {}
        match left_out.peek() {
            Some(one) if is_within(path, one) => {}
            Some(_) => return refuse(NOT_LEFT_OUT_BEFORE, path),
            None => return refuse(NOT_LEFT_OUT, path),
        }
    }
    Ok(())
}

/// Returns the error with the code that MongoDB uses for the projection of a compound index.
pub(super) fn compound_error(error: Error) -> Error {
    let code = match error.code {
        COLLISION_BELOW | COLLISION_ABOVE => COLLISION,
        INCLUSION_IN_EXCLUSION | EXCLUSION_IN_INCLUSION => MIXED,
        other => other,
    };
    Error::new(code, error.message)
}

/// Returns the error for a `wildcardProjection` in an index that is not a wildcard index.
pub(super) fn projection_not_allowed() -> Error {
    Error::bad_value(
        "The field 'wildcardProjection' is only allowed in an 'indexes' element with a key of \
         {\"$**\": 1}",
    )
}

/// The paths of a projection. The flag is `true` if the path is included.
#[derive(Default)]
struct Paths(Vec<(String, bool)>);

/// Returns the paths that a projection covers. The `_id` is excluded unless the projection includes
/// it.
fn projected(projection: Document<'_>) -> Result<Wildcard, Error> {
    if projection.is_empty() {
        let message = "The 'wildcardProjection' field can't be an empty object";
        return Err(Error::new(FAILED_TO_PARSE, message));
    }
    let mut paths = Paths::default();
    paths.collect("", projection)?;
    let of_id = paths.0.iter().find(|(path, _)| path == "_id");
    let with_id = of_id.is_some_and(|(_, taken)| *taken);
    let others = paths.0.iter().filter(|(path, _)| path != "_id");
    let takes_in = others.clone().next().map_or(with_id, |(_, taken)| *taken);
    if let Some((path, taken)) = others.clone().find(|(_, taken)| *taken != takes_in) {
        let (code, what, kind) = if *taken {
            (INCLUSION_IN_EXCLUSION, "inclusion", "exclusion")
        } else {
            (EXCLUSION_IN_INCLUSION, "exclusion", "inclusion")
        };
        let message = format!("Cannot do {what} on field {path} in {kind} projection");
        return Err(Error::new(code, message));
    }
    let mut list: Vec<String> = others.map(|(path, _)| path.clone()).collect();
    if with_id == takes_in {
        list.push("_id".to_owned());
    }
    Ok(if takes_in {
        Wildcard::Only(list)
    } else {
        Wildcard::Without(list)
    })
}

impl Paths {
    /// Adds the paths of a projection, which may be nested. `prefix` is the path of the projection.
    fn collect(&mut self, prefix: &str, projection: Document<'_>) -> Result<(), Error> {
        for (name, value) in projection {
            let path = match prefix {
                "" => name.to_owned(),
                prefix => format!("{prefix}.{name}"),
            };
            match value {
                ValueRef::Document(inner) if inner.is_empty() => {
                    let message = "An empty sub-projection is not a valid value";
                    return Err(Error::new(EMPTY_DOCUMENT, message));
                }
                ValueRef::Document(inner) => match inner.first() {
                    Some((operator, _)) if OF_FIND.contains(&operator) => {
                        let message = format!("Unrecognized expression '{operator}'");
                        return Err(Error::new(INVALID_PIPELINE_OPERATOR, message));
                    }
                    Some((operator, _)) if operator.starts_with('$') => return Err(computed()),
                    _ => self.collect(&path, inner)?,
                },
                value if value.is_number() || value.as_bool().is_some() => {
                    self.add(path, value.is_truthy())?;
                }
                _ => return Err(computed()),
            }
        }
        Ok(())
    }

    /// Adds a path. Fails if it is not valid or collides with another path of the projection.
    fn add(&mut self, path: String, taken: bool) -> Result<(), Error> {
        if path.split('.').any(str::is_empty) {
            let message = "FieldPath must not have an empty part";
            return Err(Error::new(EMPTY_PART, message));
        }
        if path.split('.').any(|part| part == "$") {
            let message = "Cannot use positional projection in a wildcardProjection";
            return Err(Error::new(POSITIONAL, message));
        }
        for (other, _) in &self.0 {
            let code = match (is_within(&path, other), is_within(other, &path)) {
                (true, _) => COLLISION_BELOW,
                (_, true) => COLLISION_ABOVE,
                _ => continue,
            };
            return Err(Error::new(code, format!("Path collision at {path}")));
        }
        self.0.push((path, taken));
        Ok(())
    }
}

/// Returns `true` if `one` equals `of` or is below it.
fn is_within(one: &str, of: &str) -> bool {
    one.strip_prefix(of)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn computed() -> Error {
    Error::new(
        COMPUTED,
        "Bad projection specification, cannot use computed fields in a wildcardProjection",
    )
}

#[cfg(test)]
mod tests {
    use windrow_document::{DocumentBuf, doc};

    use crate::parse::tests::check;

    fn compound(key: DocumentBuf, projection: Option<DocumentBuf>, code: Option<i32>) {
        let mut specification = doc! { "v": 2, "key": key, "name": "w" };
        if let Some(projection) = projection {
            specification.push("wildcardProjection", projection);
        }
        check(specification.clone(), code.map_or(Ok(specification), Err));
    }

    #[test]
    fn a_wildcard_must_not_cover_the_other_fields() {
        compound(doc! { "x": 1, "a.$**": 1, "y.z": (-1) }, None, None);
        compound(doc! { "a.b": 1, "a.$**": 1 }, None, Some(7_246_204));
        compound(doc! { "a": 1, "a.b.$**": 1 }, None, Some(7_246_204));
        let with_x = || doc! { "$**": 1, "x": 1 };
        let with_id = || doc! { "$**": 1, "_id": 1, "x": 1 };
        let of_projection = [
            (with_x(), doc! { "x": 0 }, None),
            (with_x(), doc! { "a": 1 }, None),
            (with_x(), doc! { "_id": 1 }, None),
            (doc! { "x.y": 1, "$**": 1 }, doc! { "x": 0 }, None),
            (
                doc! { "_id": 1, "$**": 1, "x.y": 1 },
                doc! { "_id": 0, "x": 0 },
                None,
            ),
            (with_id(), doc! { "_id": 0, "a": 1 }, None),
            (with_x(), doc! { "a.b": 1, "a.b.c": 1 }, Some(7_246_200)),
            (with_x(), doc! { "x": 1 }, Some(7_246_208)),
            (with_x(), doc! { "x.y": 1, "a": 1 }, Some(7_246_208)),
            (with_x(), doc! { "x.y": 0 }, Some(7_246_209)),
            (with_x(), doc! { "y": 0 }, Some(7_246_209)),
            (with_id(), doc! { "x": 0 }, Some(7_246_209)),
            (with_x(), doc! { "a": 0 }, Some(7_246_210)),
            (with_x(), doc! { "_id": 0 }, Some(7_246_210)),
            (with_x(), doc! { "a": 0, "b": 1 }, Some(7_246_211)),
            (doc! { "x": 1, "a.$**": 1 }, doc! { "b": 0 }, Some(9)),
        ];
        for (key, projection, code) in of_projection {
            compound(key, Some(projection), code);
        }
    }

    #[test]
    fn invalid_wildcard_specifications_fail_with_mongodbs_codes() {
        let of = |key: DocumentBuf| check(doc! { "key": key, "name": "w" }, Err(67));
        of(doc! { "$**": 0 });
        of(doc! { "$**": "hashed" });
        // The wildcard must not cover the other field.
        of(doc! { "$**": 1, "a": 1 });
        of(doc! { "_id": 1, "$**": 1 });
        of(doc! { "x": 1, "a.$**": 1, "b.$**": 1 });
        of(doc! { "x": "hashed", "a.$**": 1 });
        of(doc! { "x": "2dsphere", "a.$**": 1 });
        of(doc! { "x": "foo", "a.$**": 1 });
        of(doc! { "x": 0, "a.$**": 1 });
        compound(doc! { "x": 1, "a.$**": (-1) }, None, None);
        compound(doc! { "$**": (-1) }, None, None);
        check(
            doc! { "key": { "x": 1, "a.$**": 1 }, "name": "w", "unique": true },
            Err(67),
        );
        check(
            doc! { "key": { "x": 1, "a.$**": 1 }, "name": "w", "expireAfterSeconds": 5 },
            Err(67),
        );
        of(doc! { "$**.a": 1 });
        of(doc! { "a.$**.b": 1 });
        let with = |option: &str, value: windrow_document::Value, expected| {
            let mut specification = doc! { "key": { "$**": 1 }, "name": "w" };
            specification.push(option, value);
            check(specification, Err(expected));
        };
        with("unique", true.into(), 67);
        with("sparse", true.into(), 67);
        with("v", 1.into(), 67);
        with("expireAfterSeconds", 5.into(), 67);
        let projected = |projection: DocumentBuf, expected| {
            with("wildcardProjection", projection.into(), expected);
        };
        projected(doc! {}, 9);
        projected(doc! { "a": {} }, 51270);
        projected(doc! { "a": { "$add": [1, 2] } }, 51271);
        projected(doc! { "a": "x" }, 51271);
        projected(doc! { "a": { "$elemMatch": { "b": 1 } } }, 168);
        projected(doc! { "a.$": 1 }, 31324);
        projected(doc! { "a..b": 1 }, 15998);
        projected(doc! { "a": 1, "a.b": 1 }, 31249);
        projected(doc! { "a.b": 1, "a": 1 }, 31250);
        projected(doc! { "a": 1, "b": 0 }, 31254);
        projected(doc! { "a": 0, "b": 1 }, 31253);
        check(
            doc! { "key": { "a": 1 }, "name": "w", "wildcardProjection": { "b": 1 } },
            Err(2),
        );
        check(
            doc! { "key": { "a.$**": 1 }, "name": "w", "wildcardProjection": { "b": 1 } },
            Err(9),
        );
    }
}
