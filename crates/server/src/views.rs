//! Views: how reading commands read them, and the rules for their definitions.
//!
//! A `find`, `count` or `distinct` on a view is executed as an `aggregate`, as in MongoDB.
//! Arguments that a pipeline does not support are refused by name.

use std::collections::HashSet;
use std::sync::Arc;

use windrow_collection::{Collection, Engine, Namespace, View};
use windrow_document::{ArrayBuf, Collation, Document, DocumentBuf, Value, ValueRef};
use windrow_query::{Aggregate, Pipeline, Source, view};
use windrow_wire::{CommandError, ErrorCode};

use crate::collation;
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::queries::{self, Defaults};

/// Arguments of `find` that a pipeline does not support.
const NOT_IN_PIPELINES: &[&str] = &[
    "allowPartialResults",
    "awaitData",
    "max",
    "min",
    "noCursorTimeout",
    "ntoreturn",
    "oplogReplay",
    "readOnce",
    "returnKey",
    "showRecordId",
    "tailable",
];

/// Fails if a `find` has an argument that a pipeline does not support.
pub fn check_find(command: Document<'_>) -> Result<(), CommandError> {
    let is_given = |name: &&&str| match command.get(name) {
        Some(ValueRef::Document(document)) => !document.is_empty(),
        Some(value) => value.is_truthy(),
        None => false,
    };
    let Some(name) = NOT_IN_PIPELINES.iter().find(is_given) else {
        return Ok(());
    };
    let message = format!("Option {name} not supported in aggregation, which a view needs");
    Err(CommandError::new(
        ErrorCode::InvalidPipelineOperator,
        message,
    ))
}

/// A query of a view. Each argument becomes a stage of a pipeline, unless it is empty or 0.
#[derive(Clone, Copy, Default)]
pub struct ViewQuery<'a> {
    pub filter: Option<Document<'a>>,
    pub sort: Option<Document<'a>>,
    pub skip: i64,
    pub limit: i64,
    pub projection: Option<Document<'a>>,
    pub hint: Option<ValueRef<'a>>,
    /// The variables of `let`.
    pub variables: Option<Document<'a>>,
    /// The collation of the command. It must be that of the view.
    pub collation: Option<Document<'a>>,
}

impl ViewQuery<'_> {
    fn stages(&self) -> ArrayBuf {
        let document = |value: Option<Document<'_>>| {
            let value = value.filter(|document| !document.is_empty())?;
            Some(Value::from(value.to_buf()))
        };
        let number = |value: i64| (value != 0).then_some(Value::Int64(value));
        let stages = [
            ("$match", document(self.filter)),
            ("$sort", document(self.sort)),
            ("$skip", number(self.skip)),
            ("$limit", number(self.limit)),
            ("$project", document(self.projection)),
        ];
        let stages = stages.into_iter().filter_map(|(name, operand)| {
            let mut stage = DocumentBuf::new();
            stage.push(name, operand?);
            Some(Value::Document(stage))
        });
        stages.collect()
    }
}

/// Returns the pipeline of a query of a view.
pub fn aggregate(
    context: &Context<'_>,
    query: ViewQuery<'_>,
    view: &dyn Source,
) -> Result<Aggregate, CommandError> {
    let collation = collation(query.collation, view)?;
    let defaults = Defaults::for_command(context, collation);
    let environment = defaults.environment(query.variables, None)?;
    let hint = queries::hint(query.hint)?;
    let stages = query.stages();
    Ok(Aggregate {
        pipeline: Pipeline::parse(stages.as_array(), &environment).or_command_error()?,
        hint,
        allow_disk_use: true,
    })
}

/// Returns the collation of a view. Another one is refused.
pub fn collation(
    given: Option<Document<'_>>,
    view: &dyn Source,
) -> Result<Option<Arc<Collation>>, CommandError> {
    let own = view.collation();
    if collation::parse_or_default(given, own.clone())? == own {
        Ok(own)
    } else {
        Err(CommandError::new(
            ErrorCode::OptionNotSupportedOnView,
            "Cannot override a view's default collation",
        ))
    }
}

/// Fails if the namespace is that of a view and the command only supports collections.
pub fn refuse_view(context: &Context<'_>, namespace: &Namespace) -> Result<(), CommandError> {
    let engine = &context.state.services.engine;
    if engine.collection(namespace).is_some()
        || engine.view(namespace).or_command_error()?.is_none()
    {
        return Ok(());
    }
    let error = windrow_collection::Error::IsView(namespace.to_string());
    Err(error).or_command_error()
}

/// Returns the collection with this name, for a command that does not support views. Fails with
/// NamespaceNotFound and the message `missing` if there is none.
pub fn collection(
    context: &Context<'_>,
    namespace: &Namespace,
    missing: impl FnOnce() -> String,
) -> Result<Arc<Collection>, CommandError> {
    refuse_view(context, namespace)?;
    let found = context.state.services.engine.collection(namespace);
    found.ok_or_else(|| CommandError::new(ErrorCode::NamespaceNotFound, missing()))
}

/// Checks the definition of a view. Fails for a stage that writes or is unknown, for a cycle of
/// views, for too many nested views, and for views with different collations.
pub fn check(engine: &Engine, namespace: &Namespace, view: &View) -> Result<(), CommandError> {
    if view.on.contains('$') {
        let message = format!("invalid name for 'viewOn': {}", view.on);
        return Err(CommandError::new(ErrorCode::InvalidNamespace, message));
    }
    check_stages(view)?;
    let mut walk = NestingCheck {
        engine,
        own: namespace,
        seen: HashSet::new(),
    };
    let depth = walk.below(view, 1)? + height_above(engine, namespace, view)?;
    if depth > view::DEPTH_MAX {
        return Err(view::too_deep()).or_command_error();
    }
    Ok(())
}

/// Returns the number of views that read this one, directly or through others: they can be created
/// before it. Fails if they have another collation.
fn height_above(
    engine: &Engine,
    namespace: &Namespace,
    view: &View,
) -> Result<usize, CommandError> {
    let mut others = Vec::new();
    for (name, view) in engine.views(&namespace.database).or_command_error()? {
        if name == namespace.collection {
            continue;
        }
        // A view that cannot be parsed any more is skipped.
        if let Ok(below) = names_below(&view) {
            others.push((below, name, view));
        }
    }
    let mut level = vec![namespace.collection.clone()];
    for height in 0..view::DEPTH_MAX {
        let reads = |(below, ..): &&(Vec<String>, String, View)| {
            below.iter().any(|name| level.contains(name))
        };
        let above: Vec<_> = others.iter().filter(reads).collect();
        if above.is_empty() {
            return Ok(height);
        }
        if let Some((_, name, _)) = above
            .iter()
            .find(|(.., other)| other.collation != view.collation)
        {
            let message = format!("View {name} has a collation other than {namespace}");
            let code = ErrorCode::OptionNotSupportedOnView;
            return Err(CommandError::new(code, message));
        }
        level = above.iter().map(|(_, name, _)| name.clone()).collect();
    }
    Ok(view::DEPTH_MAX)
}

/// Stages that write, or that do not process documents.
const NOT_IN_VIEWS: &[(&str, ErrorCode)] = &[
    ("$changeStream", ErrorCode::OptionNotSupportedOnView),
    ("$currentOp", ErrorCode::InvalidNamespace),
    ("$listLocalSessions", ErrorCode::InvalidNamespace),
    ("$merge", ErrorCode::OptionNotSupportedOnView),
    ("$out", ErrorCode::OptionNotSupportedOnView),
];

fn check_stages(view: &View) -> Result<(), CommandError> {
    let stages = view.pipeline.iter();
    let names = stages.filter_map(|stage| stage.as_document()?.first());
    for (name, _) in names {
        if let Some((_, code)) = NOT_IN_VIEWS.iter().find(|(stage, _)| *stage == name) {
            let message =
                format!("The aggregation stage {name} cannot be used in a view definition");
            return Err(CommandError::new(*code, message));
        }
    }
    names_below(view).map(drop)
}

/// Returns the names of the collections and views that a view reads.
fn names_below(view: &View) -> Result<Vec<String>, CommandError> {
    let defaults = Defaults::new(view.collation.clone());
    let environment = defaults.environment(None, None)?;
    let pipeline = Pipeline::parse(view.pipeline.as_array(), &environment).or_command_error()?;
    let mut names = pipeline.other_collections();
    names.push(view.on.clone());
    Ok(names)
}

/// A walk through the views that a view would read.
struct NestingCheck<'w> {
    engine: &'w Engine,
    own: &'w Namespace,
    seen: HashSet<String>,
}

impl NestingCheck<'_> {
    /// Returns the nesting depth of views, including this one.
    fn below(&mut self, view: &View, depth: usize) -> Result<usize, CommandError> {
        let mut deepest = depth;
        if depth > view::DEPTH_MAX {
            return Ok(depth);
        }
        for name in names_below(view)? {
            if name == self.own.collection {
                let message = format!("View cycle detected at {}", self.own);
                return Err(CommandError::new(ErrorCode::GraphContainsCycle, message));
            }
            let namespace = Namespace {
                database: self.own.database.clone(),
                collection: name,
            };
            if self.engine.collection(&namespace).is_some() {
                continue;
            }
            let Some(below) = self.engine.view(&namespace).or_command_error()? else {
                continue;
            };
            if below.collation != view.collation {
                let message = format!("View {} has a collation other than {namespace}", self.own);
                return Err(CommandError::new(
                    ErrorCode::OptionNotSupportedOnView,
                    message,
                ));
            }
            // The views below a name are walked once for each depth.
            if self.seen.insert(format!("{depth} {namespace}")) {
                deepest = deepest.max(self.below(&below, depth + 1)?);
            }
        }
        Ok(deepest)
    }
}
