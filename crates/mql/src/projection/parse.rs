//! Parses projection documents into trees.

use windrow_document::path::Path;
use windrow_document::{Document, DocumentBuf, ValueRef};

use super::ProjectionMode;
use super::path::parse_path;
use super::positional::Positional;
use super::slice::Slice;
use super::tree::{Computation, Entry, Tree};
use crate::Error;
use crate::expression::{DBREF_FIELDS, Expression, Scope};
use crate::filter::{Environment, Filter};

pub(super) struct ParsedProjection {
    pub(super) mode: ProjectionMode,
    pub(super) root: Tree,
    pub(super) positional: Option<Positional>,
}

pub(super) fn parse(
    document: Document<'_>,
    filter: &Filter,
    environment: &Environment,
) -> Result<ParsedProjection, Error> {
    let mut parser = ProjectionParser {
        filter,
        environment,
        scope: Scope::with_variables(&environment.variables),
        root: Tree::default(),
        mode: None,
        id: None,
        positional: None,
        has_elem_match: false,
        has_slice: false,
    };
    for (name, value) in document {
        parser.top_field(name, value)?;
    }
    parser.finish()
}

struct ProjectionParser<'p> {
    filter: &'p Filter,
    environment: &'p Environment,
    scope: Scope,
    root: Tree,
    /// The mode. The first field that is included, excluded or computed decides it.
    mode: Option<ProjectionMode>,
    /// `true` if `_id` is included, `false` if it is excluded, `None` if it is not named.
    id: Option<bool>,
    positional: Option<Positional>,
    has_elem_match: bool,
    has_slice: bool,
}

impl ProjectionParser<'_> {
    fn finish(mut self) -> Result<ParsedProjection, Error> {
        let mode = self.mode.unwrap_or_else(|| {
            let keeps_id = self.id == Some(true);
            let only_elem_match = self.has_elem_match && !self.has_slice;
            if keeps_id || only_elem_match {
                ProjectionMode::Inclusion
            } else {
                ProjectionMode::Exclusion
            }
        });
        match (mode, self.id) {
            (ProjectionMode::Inclusion, None | Some(true)) => {
                self.root.insert_first("_id", Entry::Include)
            }
            (ProjectionMode::Exclusion, Some(false)) => {
                self.root.insert_first("_id", Entry::Exclude)
            }
            _ => {}
        }
        Ok(ParsedProjection {
            mode,
            root: self.root,
            positional: self.positional,
        })
    }

    /// Parses a field of the specification itself, whose name may end with `.$`.
    fn top_field(&mut self, text: &str, value: ValueRef<'_>) -> Result<(), Error> {
        match positional_path(text)? {
            Some(path) => self.positional(&path, value),
            None => self.field(text, value),
        }
    }

    fn field(&mut self, text: &str, value: ValueRef<'_>) -> Result<(), Error> {
        let path = parse_path(text)?;
        match value {
            flag if flag.is_number() || matches!(flag, ValueRef::Bool(_)) => {
                if flag.is_truthy() {
                    self.include(&path)
                } else {
                    self.exclude(&path)
                }
            }
            ValueRef::Document(inner) => self.document(&path, inner),
            other => self.expression(&path, other),
        }
    }

    /// Adds `{a: 1}`.
    fn include(&mut self, path: &Path) -> Result<(), Error> {
        if is_id(path) {
            self.id = Some(true);
            if self.root.find(b"_id").is_none() {
                return self.root.insert(path, Entry::Include);
            }
            return Ok(());
        }
        match *self.mode.get_or_insert(ProjectionMode::Inclusion) {
            ProjectionMode::Inclusion => self.root.insert(path, Entry::Include),
            ProjectionMode::Exclusion => Err(Error::new(
                31253,
                format!("Cannot do inclusion on field {path} in exclusion projection"),
            )),
        }
    }

    /// Adds `{a: 0}`.
    fn exclude(&mut self, path: &Path) -> Result<(), Error> {
        if is_id(path) {
            self.id = Some(false);
            return Ok(());
        }
        match *self.mode.get_or_insert(ProjectionMode::Exclusion) {
            ProjectionMode::Exclusion => self.root.insert(path, Entry::Exclude),
            ProjectionMode::Inclusion => Err(Error::new(
                31254,
                format!("Cannot do exclusion on field {path} in inclusion projection"),
            )),
        }
    }

    fn document(&mut self, path: &Path, inner: Document<'_>) -> Result<(), Error> {
        let Some((name, operand)) = inner.first() else {
            return Err(Error::new(
                51270,
                format!(
                    "An empty sub-projection is not a valid value. Found empty object at path \
                     {path}"
                ),
            ));
        };
        if inner.count() == 1 && name.starts_with('$') && !DBREF_FIELDS.contains(&name) {
            return self.operator(path, name, operand, inner);
        }
        for (name, value) in inner {
            if name.starts_with('$') || name.is_empty() {
                parse_path(name)?;
            }
            self.field(&format!("{path}.{name}"), value)?;
        }
        Ok(())
    }

    fn operator(
        &mut self,
        path: &Path,
        name: &str,
        operand: ValueRef<'_>,
        whole: Document<'_>,
    ) -> Result<(), Error> {
        match name {
            "$slice" => match Slice::parse(operand) {
                Some(slice) => {
                    self.has_slice = true;
                    self.root.insert(path, Entry::Slice(slice))
                }
                None => self.expression(path, ValueRef::Document(whole)),
            },
            "$elemMatch" => self.elem_match(path, operand, whole),
            "$meta" => {
                refuse_unknown_meta(operand)?;
                let expression = Expression::parse(ValueRef::Document(whole), &self.scope)?;
                let computation = Computation::Expression(expression);
                self.root.insert(path, Entry::Computed(computation))
            }
            _ => self.expression(path, ValueRef::Document(whole)),
        }
    }

    fn elem_match(
        &mut self,
        path: &Path,
        operand: ValueRef<'_>,
        whole: Document<'_>,
    ) -> Result<(), Error> {
        if path.components().len() > 1 {
            let message = format!("Cannot use $elemMatch projection on a nested field: {path}");
            return Err(Error::new(31275, message));
        }
        if operand.as_document().is_none() {
            return Err(Error::new(
                31274,
                "elemMatch: Invalid argument, object required",
            ));
        }
        if self.positional.is_some() {
            return Err(positional_beside_elem_match());
        }
        self.has_elem_match = true;
        let mut condition = DocumentBuf::new();
        condition.push(&path.to_string(), whole);
        let filter = Filter::parse_with(condition.as_document(), self.environment)?;
        let filter = filter.without_near()?.without_schema()?;
        self.root
            .insert(path, Entry::Computed(Computation::ElemMatch(filter)))
    }

    fn expression(&mut self, path: &Path, value: ValueRef<'_>) -> Result<(), Error> {
        if *self.mode.get_or_insert(ProjectionMode::Inclusion) == ProjectionMode::Exclusion {
            let (code, what) = match value {
                ValueRef::Document(_) => (31252, "expression other than $meta"),
                _ => (31310, "an expression"),
            };
            return Err(Error::new(
                code,
                format!("Cannot use {what} in exclusion projection, {path}: {value}"),
            ));
        }
        let expression = Expression::parse(value, &self.scope)
            .map_err(|error| self.unknown_expression(error, value))?;
        self.root
            .insert(path, Entry::Computed(Computation::Expression(expression)))
    }

    /// Replaces the error of an unknown operator by 31325 if the operator is the only one of its
    /// field.
    fn unknown_expression(&self, error: Error, value: ValueRef<'_>) -> Error {
        let name = value
            .as_document()
            .and_then(Document::first)
            .map(|(name, _)| name);
        let (Some(name), 168) = (name, error.code) else {
            return error;
        };
        let mut without_operand = DocumentBuf::new();
        without_operand.push(name, DocumentBuf::new());
        let without_operand = ValueRef::Document(without_operand.as_document()).to_value();
        match Expression::parse(without_operand.as_ref(), &self.scope) {
            Err(again) if again.code == 168 => Error::new(31325, error.message),
            _ => error,
        }
    }

    fn positional(&mut self, path: &Path, value: ValueRef<'_>) -> Result<(), Error> {
        let is_flag = value.is_number() || matches!(value, ValueRef::Bool(_));
        if !is_flag {
            let (code, what) = match value {
                ValueRef::Document(_) => (31271, "an expression or sub object"),
                _ => (31308, "a literal"),
            };
            return Err(Error::new(
                code,
                format!("positional projection cannot be used with {what}"),
            ));
        }
        if !value.is_truthy() {
            let message = "positional projection cannot be used with exclusion";
            return Err(Error::new(31395, message));
        }
        if self.positional.is_some() {
            return Err(Error::new(
                31276,
                "Cannot specify more than one positional projection per query.",
            ));
        }
        if self.has_elem_match {
            return Err(positional_beside_elem_match());
        }
        self.include(path)?;
        self.positional = Some(Positional {
            path: path.clone(),
            filter: self.filter.clone(),
        });
        Ok(())
    }
}

fn is_id(path: &Path) -> bool {
    path.components().len() == 1 && path.to_string() == "_id"
}

/// Refuses names of `$meta` that no query supports.
fn refuse_unknown_meta(operand: ValueRef<'_>) -> Result<(), Error> {
    match operand.as_str() {
        Some(name @ ("searchScore" | "searchHighlights" | "searchSequenceToken")) => {
            let message = format!("query requires {name} metadata, but it is not available");
            Err(Error::new(40218, message))
        }
        Some("randVal") => Err(Error::new(17308, "Unsupported argument to $meta: randVal")),
        _ => Ok(()),
    }
}

fn positional_beside_elem_match() -> Error {
    Error::new(31255, "Cannot specify positional operator and $elemMatch.")
}

/// Returns the path before a final `.$`.
///
/// # Errors
///
/// - 31394: `$` is in the middle of the path.
/// - 5392900: there is no path before it.
fn positional_path(text: &str) -> Result<Option<Path>, Error> {
    if let Some(front) = text.strip_suffix(".$") {
        if front.is_empty() {
            let message = "Expected a path before the positional operator '$'";
            return Err(Error::new(5_392_900, message));
        }
        return parse_path(front).map(Some);
    }
    if text.contains(".$.") {
        let message =
            "As of 4.4, it's illegal to specify positional operator in the middle of a path.";
        return Err(Error::new(31394, message));
    }
    Ok(None)
}
