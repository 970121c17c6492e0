//! `collMod`: changes the options of a collection, or of an index.

mod cap;
mod ddl_event;
mod index;
mod view;

use windrow_access::Action;
use windrow_collection::{DocumentChange, Modification, Namespace};
use windrow_document::{Document, DocumentBuf, Value, ValueRef};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use self::index::IndexChangeError;
use super::create::{self, clustered};
use crate::access::{AccessRequest, Needs, Requirement};
use crate::arguments::Arguments;
use crate::collection_uuid::{COLLECTION_UUID, Target};
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;
use crate::errors::{OrCommandError, refuse};
use crate::{namespace, queryable_encryption, stable_api, validators};

pub const COLL_MOD: Command = Command {
    name: "collMod",
    help: "changes options of a collection, an index or a view",
    routing: Routing::Databases,
    needs: Needs::Computed(requirement),
    write_concern: true,
    in_api_version_1: true,
    outside_api_version_1: stable_api::unsupported_in_coll_mod,
    arguments: AcceptedArguments::Only(&[
        "cappedMax",
        "cappedSize",
        create::IMAGES,
        COLLECTION_UUID,
        "dryRun",
        EXPIRES,
        "index",
        "pipeline",
        "timeseries",
        "validationAction",
        "validationLevel",
        "validator",
        "viewOn",
    ]),
    run,
    ..Command::EMPTY
};

/// Returns the requirement of the change. A user that changes a view must be able to read all that
/// the view will read. Parts of the view without an argument stay as they are.
fn requirement(request: &AccessRequest<'_>) -> Requirement {
    let change = request.on_collection(&[Action::collMod]);
    let is_changed = ["viewOn", "pipeline"]
        .iter()
        .any(|name| request.body.contains(name));
    let Some(name) = request
        .first()
        .and_then(ValueRef::as_str)
        .filter(|_| is_changed)
    else {
        return change;
    };
    let namespace = namespace::new(request.database, name);
    // Without a view, or if it cannot be read, the command will be refused.
    let known = request
        .state
        .services
        .engine
        .view(&namespace)
        .ok()
        .flatten();
    let stages = request.body.get("pipeline").and_then(ValueRef::as_array);
    let stages = stages.or(known.as_ref().map(|view| view.pipeline.as_array()));
    let on = request
        .string("viewOn")
        .or(known.as_ref().map(|view| view.on.as_str()));
    change.and(create::view_requirement(request, on, stages))
}

/// Parses the option with this name. Returns null to remove it, and `None` if it is absent.
type Read = fn(&Namespace, &str, &Arguments<'_>) -> Result<Option<Value>, CommandError>;

/// The options of a collection and their parsers.
const OPTIONS: &[(&str, Read)] = &[
    ("validator", validator),
    ("validationLevel", level),
    ("validationAction", action),
    (create::IMAGES, images),
    (EXPIRES, seconds),
];

/// The lifetime of documents in a clustered collection. "off" removes the limit.
const EXPIRES: &str = "expireAfterSeconds";

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let namespace = namespace::from_request(request)?;
    context.operation.set_namespace(&namespace.to_string());
    let target = Target::from_arguments(namespace.clone(), &Arguments::new(request))?;
    let Some(collection) = target.collection(context)? else {
        let engine = &context.state.services.engine;
        return match engine.view(&namespace).or_command_error()? {
            Some(view) => view::change(request, context, &namespace, view),
            None => refuse(
                ErrorCode::NamespaceNotFound,
                format!("ns does not exist: {namespace}"),
            ),
        };
    };
    let _ddl_guard = context.exclude(&collection)?;
    let changes = CollModRequest::parse(request, &namespace)?;
    if changes.names(EXPIRES) && !collection.is_clustered() {
        return Err(clustered::unsupported_expiry());
    }
    let mut reply = DocumentBuf::new();
    // Everything is checked before anything is changed.
    let index = changes
        .index
        .map(|index| index::IndexChange::parse(index, changes.dry_run, &collection));
    let index = index.transpose()?;
    if changes.dry_run && (index.is_none() || !changes.options.is_empty()) {
        let message = "dryRun is only supported for the conversion of an index to unique, without other changes";
        return Err(CommandError::new(ErrorCode::InvalidOptions, message));
    }
    changes.cap.check(&collection)?;
    let new_options = changes.changed(collection.options().as_document());
    validators::check_encryption(new_options.as_document())?;
    queryable_encryption::check_validation(new_options.as_document())?;
    if let Some(index) = &index {
        index.prepare(&collection, context.operation, &mut reply)?;
    }
    if !changes.dry_run {
        let has_options = !changes.options.is_empty() || changes.cap.is_any();
        let change = |old: Document<'_>| Ok(changes.changed(old));
        collection.modify(Modification {
            options: has_options.then(|| Box::new(change) as DocumentChange<'_, IndexChangeError>),
            index: index.as_ref().map(index::IndexChange::change),
            event: Some(ddl_event::describe(
                &collection,
                &changes.arguments,
                index.as_ref(),
            )),
        })?;
    }
    Ok(Reply::ok(reply))
}

/// A parsed `collMod`: the requested changes.
struct CollModRequest<'a> {
    arguments: Arguments<'a>,
    index: Option<Document<'a>>,
    options: Vec<(&'static str, Value)>,
    cap: cap::CapChange,
    dry_run: bool,
}

impl<'a> CollModRequest<'a> {
    fn parse(
        request: &'a Request,
        namespace: &Namespace,
    ) -> Result<CollModRequest<'a>, CommandError> {
        let arguments = Arguments::new(request);
        let mut options = Vec::new();
        for (name, read) in OPTIONS {
            let value = read(namespace, name, &arguments)?;
            options.extend(value.map(|value| (*name, value)));
        }
        let parsed = CollModRequest {
            arguments,
            index: arguments.document("index")?,
            options,
            cap: cap::CapChange::parse(&arguments)?,
            dry_run: arguments.flag("dryRun")?,
        };
        refuse_of_others(&arguments)?;
        Ok(parsed)
    }

    /// Returns `true` if an option with this name is changed.
    fn names(&self, name: &str) -> bool {
        self.options.iter().any(|(one, _)| *one == name)
    }

    /// Returns the options after the change.
    fn changed(&self, old: Document<'_>) -> DocumentBuf {
        let others = old.iter().filter(|(name, _)| !self.names(name));
        let mut new: DocumentBuf = others.collect();
        let values = self.options.iter();
        for (name, value) in values.filter(|(_, value)| *value != Value::Null) {
            new.push(name, value.clone());
        }
        if self.cap.is_any() {
            self.cap.changed(new.as_document())
        } else {
            new
        }
    }
}

/// Refuses options of other kinds of collections.
fn refuse_of_others(arguments: &Arguments<'_>) -> Result<(), CommandError> {
    let refused = |message: &str| Err(CommandError::new(ErrorCode::InvalidOptions, message));
    let pipeline = create::view::pipeline(arguments)?;
    if arguments.string("viewOn")?.is_some() || pipeline.is_some() {
        return refused("'viewOn' and 'pipeline' are for views only");
    }
    match arguments.document("timeseries")? {
        Some(_) => refused("'timeseries' is for time-series collections only"),
        None => Ok(()),
    }
}

fn level(_: &Namespace, name: &str, given: &Arguments<'_>) -> Result<Option<Value>, CommandError> {
    Ok(given.one_of(name, create::LEVELS)?.map(Value::from))
}

fn action(_: &Namespace, name: &str, given: &Arguments<'_>) -> Result<Option<Value>, CommandError> {
    Ok(given.one_of(name, create::ACTIONS)?.map(Value::from))
}

fn seconds(
    _: &Namespace,
    name: &str,
    given: &Arguments<'_>,
) -> Result<Option<Value>, CommandError> {
    match given.get(name) {
        Some(ValueRef::String("off")) => Ok(Some(Value::Null)),
        Some(ValueRef::String(other)) => {
            let message =
                format!("invalid expireAfterSeconds: '{other}'; a string must be \"off\"");
            Err(CommandError::new(ErrorCode::InvalidOptions, message))
        }
        _ => Ok(clustered::seconds(given)?.map(Value::Int64)),
    }
}

fn images(_: &Namespace, name: &str, given: &Arguments<'_>) -> Result<Option<Value>, CommandError> {
    let Some(images) = given.document(name)? else {
        return Ok(None);
    };
    let images = create::pre_and_post_images(&Some(images))?;
    Ok(Some(images.map_or(Value::Null, Value::from)))
}

fn validator(
    namespace: &Namespace,
    name: &str,
    given: &Arguments<'_>,
) -> Result<Option<Value>, CommandError> {
    let Some(validator) = given.document(name)? else {
        return Ok(None);
    };
    validators::check(namespace, validator)?;
    Ok(Some(Value::from(validator.to_buf())))
}
