//! Which paths a wildcard index has: its key, and its `wildcardProjection`.

use windrow_document::{Document, ValueRef};
use windrow_mql::Error;

use super::cannot;
use super::key::{ALL_FIELDS, wildcard_name};
use crate::definition::KeyField;
use crate::paths::{Place, Wildcard};
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

/// What only `find` may have in a projection.
const OF_FIND: &[&str] = &["$elemMatch", "$slice", "$meta"];

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
        (None, Some(other)) => Err(Error::type_mismatch(format!(
            "The field 'wildcardProjection' must be a non-empty object, but got {}",
            other.type_of().name()
        ))),
        (Some(_), Some(_)) => Err(not_here()),
    }
}

/// The fields beside the wildcard lie outside of what it stands for: a value would be there twice.
pub(super) fn check_beside(wildcard: &Wildcard, fields: &[KeyField]) -> Result<(), Error> {
    for field in fields.iter().filter(|field| !is_of_wildcard(field)) {
        let path = field.path.to_string();
        if wildcard.place(&path) != Place::Outside {
            return Err(cannot(format!(
                "the field '{path}' of a compound wildcard index is one that its wildcard stands \
                 for: leave it out by the 'wildcardProjection'"
            )));
        }
    }
    Ok(())
}

/// The error for a `wildcardProjection` where there is nothing to project.
pub(super) fn not_here() -> Error {
    Error::bad_value(
        "The field 'wildcardProjection' is only allowed in an 'indexes' element with a key of \
         {\"$**\": 1}",
    )
}

/// The paths of a projection, and whether each is taken in.
#[derive(Default)]
struct Paths(Vec<(String, bool)>);

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
        let (code, what, kind) = match taken {
            true => (INCLUSION_IN_EXCLUSION, "inclusion", "exclusion"),
            false => (EXCLUSION_IN_INCLUSION, "exclusion", "inclusion"),
        };
        let message = format!("Cannot do {what} on field {path} in {kind} projection");
        return Err(Error::new(code, message));
    }
    let mut list: Vec<String> = others.map(|(path, _)| path.clone()).collect();
    if with_id == takes_in {
        list.push("_id".to_owned());
    }
    Ok(match takes_in {
        true => Wildcard::Only(list),
        false => Wildcard::Without(list),
    })
}

impl Paths {
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
            let within = |one: &str, of: &str| {
                one.strip_prefix(of)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            let code = match (within(&path, other), within(other, &path)) {
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

fn computed() -> Error {
    Error::new(
        COMPUTED,
        "Bad projection specification, cannot use computed fields in a wildcardProjection",
    )
}
