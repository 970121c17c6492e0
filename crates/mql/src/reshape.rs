//! The stages `$project`, `$addFields` (`$set`) and `$unset`: a tree of fields, applied to a
//! document in one pass over its bytes.
//!
//! ```
//! use windrow_document::{ValueRef, doc};
//! use windrow_mql::expression::{Context, Scope};
//! use windrow_mql::reshape::Reshape;
//! let specification = doc! { "a.b": 1, "double": { "$multiply": ["$n", 2] } };
//! let specification = ValueRef::Document(specification.as_document());
//! let project = Reshape::parse_project(specification, &Scope::new()).unwrap();
//! let input = doc! { "_id": 1, "a": [{ "b": 1, "c": 2 }, 3], "n": 4 };
//! let output = project.apply(input.as_document(), &Context::new(input.as_document())).unwrap();
//! assert_eq!(output, doc! { "_id": 1, "a": [{ "b": 1 }], "double": 8 });
//! ```
//! Related stages: [`ReplaceRoot`], which replaces the document by the value of an expression, and
//! [`Redact`].

mod apply;
mod parse;
mod redact;
mod removed_fields;
mod replace;

pub use redact::Redact;
pub use removed_fields::RemovedFields;
pub use replace::ReplaceRoot;

use windrow_document::path::Path;
use windrow_document::{Document, DocumentBuf, ValueRef};

use crate::Error;
use crate::expression::{Context, Dependencies, Expression, Scope};
use crate::field_lineage::{FieldLineage, ValueDifference, is_plain};
use crate::name_index::NameIndex;

/// A parsed `$project`, `$addFields` or `$unset`.
#[derive(Clone, Debug, PartialEq)]
pub struct Reshape {
    root: ReshapeNode,
    /// `true` if the stage records the positions of removed fields.
    records_removed_fields: bool,
}

/// The result of a [`Reshape`].
#[derive(Clone, Debug, PartialEq)]
pub struct ReshapeOutput {
    /// The new document.
    pub document: DocumentBuf,
    /// The positions of removed fields. Empty unless the stage records them.
    pub removed_fields: RemovedFields,
}

/// The changes of one document, at the root or nested.
#[derive(Clone, Debug, PartialEq)]
struct ReshapeNode {
    unnamed_fields: UnnamedFields,
    fields: Vec<(Box<str>, ReshapeField)>,
    names: NameIndex,
    /// `true` if a field below is computed. The document is then created if it is missing.
    computes: bool,
}

/// What happens to fields that are not named.
#[derive(Clone, Copy, Debug, PartialEq)]
enum UnnamedFields {
    Drop,
    Keep,
}

#[derive(Clone, Debug, PartialEq)]
enum ReshapeField {
    Included,
    Excluded,
    Computed(Expression),
    Nested(ReshapeNode),
}

impl From<DocumentBuf> for ReshapeOutput {
    fn from(document: DocumentBuf) -> ReshapeOutput {
        ReshapeOutput {
            document,
            removed_fields: RemovedFields::default(),
        }
    }
}

impl Reshape {
    fn new(root: ReshapeNode) -> Reshape {
        Reshape {
            root,
            records_removed_fields: false,
        }
    }

    /// Parses `$project`: an inclusion, which can compute fields, or an exclusion.
    ///
    /// # Errors
    ///
    /// - 15969: the operand is not a document.
    /// - 31253, 31254, 31310: inclusions and exclusions are mixed.
    /// - 31249, 31250: paths collide.
    /// - Errors of expressions.
    pub fn parse_project(specification: ValueRef<'_>, scope: &Scope) -> Result<Reshape, Error> {
        parse::project(specification, scope)
    }

    /// Parses `$addFields` or `$set`. Fails with 40272 if the operand is not a document, with 40176
    /// if paths collide, and with errors of expressions.
    pub fn parse_add_fields(specification: ValueRef<'_>, scope: &Scope) -> Result<Reshape, Error> {
        parse::add_fields(specification, scope)
    }

    /// Parses `$unset`: a path or an array of paths. Fails with 31002, 31119 or 31120 for other
    /// operands.
    pub fn parse_unset(specification: ValueRef<'_>) -> Result<Reshape, Error> {
        parse::unset(specification)
    }

    /// Applies the stage. `document` is the `$$ROOT` of expressions. Fails with errors of
    /// expressions, and with 13548 if the document becomes too large.
    pub fn apply<'a>(
        &'a self,
        document: Document<'a>,
        context: &Context<'a>,
    ) -> Result<DocumentBuf, Error> {
        let reshaped = self.apply_after(document, &RemovedFields::default(), context)?;
        Ok(reshaped.document)
    }

    /// As [`Reshape::apply`], for a document from which earlier stages removed fields. A field that
    /// is set again returns to its former position.
    pub fn apply_after<'a>(
        &'a self,
        document: Document<'a>,
        removed_fields: &RemovedFields,
        context: &Context<'a>,
    ) -> Result<ReshapeOutput, Error> {
        let context = context.with_root(document);
        apply::document(
            &self.root,
            document,
            removed_fields,
            self.records_removed_fields,
            &context,
        )
    }

    /// Returns the same stage, with or without recording the positions of removed fields.
    pub fn recording_removed_fields(self, records_removed_fields: bool) -> Reshape {
        Reshape {
            records_removed_fields,
            ..self
        }
    }

    /// Returns `true` if fields that are not named are kept, as by `$addFields`, `$unset` and an
    /// excluding `$project`.
    pub fn keeps_unnamed_fields(&self) -> bool {
        self.root.unnamed_fields == UnnamedFields::Keep
    }

    /// Returns the fields that the stage names and reads. Fields that are only kept are not
    /// included: see [`Reshape::keeps_unnamed_fields`].
    pub fn dependencies(&self) -> Dependencies {
        let mut dependencies = Dependencies::default();
        self.root.collect("", &mut dependencies);
        dependencies
    }

    /// Returns the lineage of a path, or `None` if it does not come from one path of the input.
    pub fn lineage(&self, path: &Path) -> Option<FieldLineage> {
        let mut node = &self.root;
        let mut rest = path.components();
        let mut is_nested = false;
        let mut difference = ValueDifference::default();
        while let Some((first, below)) = rest.split_first() {
            // A number is an array index, and elements may be dropped. An empty name may stand for
            // all elements.
            if is_nested && !is_plain(first) {
                return None;
            }
            match node.find(first.name().as_bytes()) {
                None if node.unnamed_fields == UnnamedFields::Drop => return None,
                None | Some((_, ReshapeField::Included)) => break,
                Some((_, ReshapeField::Excluded)) => return None,
                Some((_, ReshapeField::Computed(expression))) => {
                    let mut lineage = expression.lineage(below)?;
                    lineage.difference.may_lose_values |= is_nested;
                    lineage.difference.differs_in_expressions |= is_nested;
                    return Some(lineage);
                }
                Some((_, ReshapeField::Nested(nested))) => (node, rest) = (nested, below),
            }
            is_nested = true;
            difference.may_be_missing |= node.computes;
        }
        // A path that ends at a changed document has another value.
        let path = path.clone();
        (!rest.is_empty()).then_some(FieldLineage { path, difference })
    }

    /// Returns the paths whose values change: computed, excluded and replaced fields. An inclusion
    /// also removes all fields that are not named.
    pub fn changed_paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.root.changed("", &mut paths);
        paths
    }
}

/// Returns `true` if one of the later stages sets a field that one of the earlier stages removes.
/// The last of the earlier stages must then record the positions of removed fields.
pub fn sets_removed_field<'r>(
    before: impl IntoIterator<Item = &'r Reshape>,
    later: impl IntoIterator<Item = &'r Reshape>,
) -> bool {
    let paths = |stage: &Reshape| stage.changed_paths();
    let removed: Vec<String> = before.into_iter().flat_map(paths).collect();
    let mut set = later.into_iter().flat_map(paths);
    set.any(|set| removed.iter().any(|removed| overlap(&set, removed)))
}

/// Returns `true` if the paths are equal or one is a prefix of the other.
fn overlap(one: &str, other: &str) -> bool {
    let mut parts = one.split('.').zip(other.split('.'));
    parts.all(|(one, other)| one == other)
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() {
        name.to_owned()
    } else {
        format!("{prefix}.{name}")
    }
}

impl ReshapeField {
    /// Returns `true` if a value is created in a document that has none.
    fn computes(&self) -> bool {
        match self {
            ReshapeField::Computed(_) => true,
            ReshapeField::Nested(node) => node.computes,
            ReshapeField::Included | ReshapeField::Excluded => false,
        }
    }
}

impl ReshapeNode {
    fn new(unnamed_fields: UnnamedFields) -> ReshapeNode {
        ReshapeNode {
            unnamed_fields,
            fields: Vec::new(),
            names: NameIndex::default(),
            computes: false,
        }
    }

    fn find(&self, name: &[u8]) -> Option<(usize, &ReshapeField)> {
        let index = self.names.find(&self.fields, name)?;
        self.fields.get(index).map(|(_, field)| (index, field))
    }

    fn collect(&self, prefix: &str, dependencies: &mut Dependencies) {
        for (name, field) in &self.fields {
            match field {
                ReshapeField::Included => dependencies.add(&join(prefix, name)),
                ReshapeField::Excluded => {}
                ReshapeField::Computed(expression) => {
                    expression.add_dependencies(dependencies);
                    // The shape of the values on the path matters too.
                    if !prefix.is_empty() {
                        dependencies.add(prefix);
                    }
                }
                ReshapeField::Nested(node) => node.collect(&join(prefix, name), dependencies),
            }
        }
    }

    fn changed(&self, prefix: &str, paths: &mut Vec<String>) {
        for (name, field) in &self.fields {
            match field {
                ReshapeField::Included => {}
                ReshapeField::Excluded | ReshapeField::Computed(_) => {
                    paths.push(join(prefix, name))
                }
                ReshapeField::Nested(node) => node.changed(&join(prefix, name), paths),
            }
        }
    }
}
