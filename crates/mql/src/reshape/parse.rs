//! Parses the specifications of stages into trees.

use windrow_document::{Document, ValueRef};
use windrow_invariant::Bug;

use super::{Reshape, ReshapeField, ReshapeNode, UnnamedFields};
use crate::Error;
use crate::expression::{DBREF_FIELDS, Expression, Scope, check_name, is_operator};

/// Splits a dotted name and checks its components.
fn split(path: &str) -> Result<Vec<&str>, Error> {
    if path.is_empty() {
        return Err(Error::new(
            40352,
            "FieldPath cannot be constructed with empty string",
        ));
    }
    if path.ends_with('.') {
        return Err(Error::new(40353, "FieldPath must not end with a '.'."));
    }
    let names: Vec<&str> = path.split('.').collect();
    names.iter().try_for_each(|name| check_name(name))?;
    Ok(names)
}

/// The error codes of colliding paths, which differ between stages.
#[derive(Clone, Copy)]
struct Collision {
    /// The path exists, or is a prefix of an existing path.
    same: i32,
    /// A prefix of the path exists as a field.
    below: i32,
}

const PROJECT: Collision = Collision {
    same: 31250,
    below: 31249,
};
const ADD_FIELDS: Collision = Collision {
    same: 40176,
    below: 40176,
};

impl ReshapeNode {
    fn push(&mut self, name: &str, field: ReshapeField) {
        self.fields.push((name.into(), field));
        self.names.record_last(&self.fields);
    }

    /// Adds a field at a path. Creates the nodes on the path.
    fn insert(
        &mut self,
        names: &[&str],
        field: ReshapeField,
        codes: Collision,
    ) -> Result<(), Error> {
        let Some((name, below)) = names.split_first() else {
            return Err(Bug::new("a path has no names").into());
        };
        self.computes |= matches!(field, ReshapeField::Computed(_));
        let index = self.names.find(&self.fields, name.as_bytes());
        let slot = index.and_then(|index| self.fields.get_mut(index));
        match (slot, below.is_empty()) {
            (Some((_, ReshapeField::Nested(node))), false) => node.insert(below, field, codes),
            (Some(_), true) => Err(Error::new(codes.same, format!("Path collision at {name}"))),
            (Some(_), false) => {
                let rest = below.join(".");
                let message = format!("Path collision at {name} remaining portion {rest}");
                Err(Error::new(codes.below, message))
            }
            (None, true) => {
                self.push(name, field);
                Ok(())
            }
            (None, false) => {
                let mut node = ReshapeNode::new(self.unnamed_fields);
                node.insert(below, field, codes)?;
                self.push(name, ReshapeField::Nested(node));
                Ok(())
            }
        }
    }
}

/// A field of a `$project`, before it is known if the stage includes or excludes.
enum ProjectedField {
    Flag(bool),
    /// `{$meta: …}`, which is allowed in both.
    Meta(Expression),
    Computed(Expression),
}

type ProjectedFields = Vec<(String, ProjectedField)>;

pub(super) fn project(specification: ValueRef<'_>, scope: &Scope) -> Result<Reshape, Error> {
    let Some(document) = specification.as_document() else {
        return Err(Error::new(
            15969,
            "$project specification must be an object",
        ));
    };
    if document.is_empty() {
        let message = "Invalid $project :: caused by :: projection specification must have at least one field";
        return Err(Error::new(51272, message));
    }
    let mut found = Vec::new();
    find_projected("", document, scope, &mut found)?;
    let unnamed_fields = check_kinds(&found)?;
    let mut root = ReshapeNode::new(unnamed_fields);
    let mut names_id = false;
    for (path, projected) in found {
        names_id |= path == "_id" || path.starts_with("_id.");
        let field = match projected {
            ProjectedField::Flag(true) => ReshapeField::Included,
            ProjectedField::Flag(false) => ReshapeField::Excluded,
            ProjectedField::Meta(expression) | ProjectedField::Computed(expression) => {
                ReshapeField::Computed(expression)
            }
        };
        root.insert(&split(&path)?, field, PROJECT)?;
    }
    if unnamed_fields == UnnamedFields::Drop && !names_id {
        root.insert(&["_id"], ReshapeField::Included, PROJECT)?;
    }
    // Excluding an unknown field or including a kept field needs no entry.
    root.fields.retain(|(_, field)| match field {
        ReshapeField::Included => unnamed_fields == UnnamedFields::Drop,
        ReshapeField::Excluded => unnamed_fields == UnnamedFields::Keep,
        _ => true,
    });
    root.names.rebuild(&root.fields);
    Ok(Reshape::new(root))
}

fn find_projected(
    prefix: &str,
    document: Document<'_>,
    scope: &Scope,
    found: &mut ProjectedFields,
) -> Result<(), Error> {
    for (name, value) in document {
        check_positional(name)?;
        split(name)?;
        let path = super::join(prefix, name);
        match value {
            ValueRef::Bool(flag) => found.push((path, ProjectedField::Flag(flag))),
            number if number.is_number() => {
                found.push((path, ProjectedField::Flag(number.is_truthy())));
            }
            ValueRef::Document(inner) if inner.is_empty() => {
                let message =
                    "An empty sub-projection is not a valid value. Found empty object at path";
                return Err(Error::new(51270, message));
            }
            ValueRef::Document(inner) if !is_single_operator(inner)? => {
                find_projected(&path, inner, scope, found)?;
            }
            value => {
                let expression = Expression::parse(value, scope)?;
                found.push((
                    path,
                    if is_meta(value) {
                        ProjectedField::Meta(expression)
                    } else {
                        ProjectedField::Computed(expression)
                    },
                ));
            }
        }
    }
    Ok(())
}

fn is_meta(value: ValueRef<'_>) -> bool {
    let operator = value.as_document().and_then(Document::first);
    operator.is_some_and(|(name, _)| name == "$meta")
}

fn check_positional(name: &str) -> Result<(), Error> {
    if name.ends_with(".$") {
        let message = "Invalid $project :: caused by :: As of 4.4, it's illegal to specify positional operator in the middle of a path.Positional projection may only be used at the end, for example: a.b.$. If the query previously used a form like a.b.$.d, remove the parts following the '$' and the results will be equivalent.";
        return Err(Error::new(31324, message));
    }
    Ok(())
}

/// Returns `true` for a document `{$operator: …}`. Fails with 31325 if the operator is unknown.
fn is_single_operator(document: Document<'_>) -> Result<bool, Error> {
    let Some((name, _)) = document.first() else {
        return Ok(false);
    };
    // The fields of a DBRef have names that start with `$`.
    let is_field = !name.starts_with('$') || DBREF_FIELDS.contains(&name);
    if is_field || document.count() != 1 {
        return Ok(false);
    }
    // `$elemMatch` is an operator of find's projections. As an expression it is unknown (168).
    // `$function` has an error of its own.
    if is_operator(name) || matches!(name, "$elemMatch" | "$function") {
        return Ok(true);
    }
    let message = format!("Invalid $project :: caused by :: Unknown expression {name}");
    Err(Error::new(31325, message))
}

/// Determines if the stage includes or excludes. The first field other than `_id` and `$meta`
/// decides, and all others must agree. A stage with `$meta` only includes.
fn check_kinds(found: &ProjectedFields) -> Result<UnnamedFields, Error> {
    let mut kind: Option<UnnamedFields> = None;
    for (path, projected) in found {
        let implied = match projected {
            ProjectedField::Flag(_) if path == "_id" => continue,
            ProjectedField::Meta(_) => continue,
            ProjectedField::Flag(false) => UnnamedFields::Keep,
            ProjectedField::Flag(true) | ProjectedField::Computed(_) => UnnamedFields::Drop,
        };
        let first = *kind.get_or_insert(implied);
        if first == implied {
            continue;
        }
        let (code, message) = match projected {
            ProjectedField::Flag(false) => (
                31254,
                "Cannot do exclusion on field in inclusion projection",
            ),
            ProjectedField::Flag(true) => (
                31253,
                "Cannot do inclusion on field in exclusion projection",
            ),
            ProjectedField::Meta(_) | ProjectedField::Computed(_) => {
                (31310, "Cannot use an expression in an exclusion projection")
            }
        };
        return Err(Error::new(
            code,
            format!("Invalid $project :: caused by :: {message}: {path}"),
        ));
    }
    let excludes =
        |(_, projected): &(_, ProjectedField)| matches!(projected, ProjectedField::Flag(false));
    let otherwise = || {
        if found.iter().all(excludes) {
            UnnamedFields::Keep
        } else {
            UnnamedFields::Drop
        }
    };
    Ok(kind.unwrap_or_else(otherwise))
}

pub(super) fn add_fields(specification: ValueRef<'_>, scope: &Scope) -> Result<Reshape, Error> {
    let Some(document) = specification.as_document() else {
        let found = specification.type_of().name();
        let message = format!("$addFields specification stage must be an object, got {found}");
        return Err(Error::new(40272, message));
    };
    let mut root = ReshapeNode::new(UnnamedFields::Keep);
    add_below(&mut root, &[], document, scope)?;
    Ok(Reshape::new(root))
}

fn add_below(
    root: &mut ReshapeNode,
    parents: &[&str],
    document: Document<'_>,
    scope: &Scope,
) -> Result<(), Error> {
    for (name, value) in document {
        let mut path = parents.to_vec();
        path.extend(split(name)?);
        match value {
            ValueRef::Document(inner) if inner.is_empty() => {
                let message = format!(
                    "an empty object is not a valid value. Found empty object at path {name}"
                );
                return Err(Error::new(40180, message));
            }
            ValueRef::Document(inner) if !is_only_operator(inner)? => {
                if let Some((dotted, _)) = inner.iter().find(|(name, _)| name.contains('.')) {
                    let message =
                        format!("cannot use dotted field name '{dotted}' in a sub object");
                    return Err(Error::new(40183, message));
                }
                add_below(root, &path, inner, scope)?;
            }
            value => {
                let field = ReshapeField::Computed(Expression::parse(value, scope)?);
                root.insert(&path, field, ADD_FIELDS)?;
            }
        }
    }
    Ok(())
}

/// Returns `true` if the document is an operator with its operand. Fails with 40181 if there are
/// other fields.
fn is_only_operator(document: Document<'_>) -> Result<bool, Error> {
    let has_operator = document.iter().any(|(name, _)| name.starts_with('$'));
    if has_operator && document.count() != 1 {
        let message = format!(
            "an expression specification must contain exactly one field, the name of the expression. Found {document}"
        );
        return Err(Error::new(40181, message));
    }
    Ok(has_operator)
}

pub(super) fn unset(specification: ValueRef<'_>) -> Result<Reshape, Error> {
    let paths: Vec<ValueRef<'_>> = match specification {
        ValueRef::String(_) => vec![specification],
        ValueRef::Array(array) => array.iter().collect(),
        _ => {
            let message = "$unset specification must be a string or an array";
            return Err(Error::new(31002, message));
        }
    };
    if paths.is_empty() {
        let message = "$unset specification must be a string or an array with at least one field";
        return Err(Error::new(31119, message));
    }
    let mut root = ReshapeNode::new(UnnamedFields::Keep);
    for path in paths {
        let Some(path) = path.as_str() else {
            let message =
                "$unset specification must be a string or an array containing only string values";
            return Err(Error::new(31120, message));
        };
        root.insert(&split(path)?, ReshapeField::Excluded, PROJECT)?;
    }
    Ok(Reshape::new(root))
}
