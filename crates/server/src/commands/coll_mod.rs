//! `collMod`: changes what a collection was created with, and how an index is used.

mod of_cap;
mod of_index;
mod of_view;

use windrow_collection::{Collection, Error as CollectionError, Namespace};
use windrow_document::{Document, DocumentBuf, Value, ValueRef};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use super::create::{self, clustered};
use crate::arguments::Arguments;
use crate::command::{Accepted, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::generic::is_generic;
use crate::{namespace, validators};

pub const COLL_MOD: Command = Command {
    name: "collMod",
    help: "changes options of a collection or of an index",
    write_concern: true,
    in_api_version_1: true,
    // They are checked here: the code is another than that of other commands.
    arguments: Accepted::Any,
    run,
    ..Command::EMPTY
};

/// Checks the value of the option of this name.
type Read = fn(&Namespace, &str, ValueRef<'_>) -> Result<Value, CommandError>;

/// The options of a collection, and what each may be.
const OPTIONS: &[(&str, Read)] = &[
    ("validator", validator),
    ("validationLevel", level),
    ("validationAction", action),
    (create::IMAGES, images),
    (EXPIRES, seconds),
];

/// How long the documents of a clustered collection live; "off": for ever.
const EXPIRES: &str = "expireAfterSeconds";

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let namespace = namespace::named(request)?;
    context.operation.set_namespace(&namespace.to_string());
    let engine = &context.state.services.engine;
    let view = match engine.collection(&namespace) {
        Some(_) => None,
        None => engine.view(&namespace).or_command_error()?,
    };
    if let Some(view) = view {
        return of_view::change(request, context, &namespace, view);
    }
    let collection = engine.collection(&namespace).ok_or_else(|| {
        let message = format!("ns does not exist: {namespace}");
        CommandError::new(ErrorCode::NamespaceNotFound, message)
    })?;
    let _exclusion = context.exclude(&collection)?;
    let wanted = Wanted::parse(request, &namespace)?;
    if wanted.names(EXPIRES) && !collection.is_clustered() {
        return Err(clustered::expiry_elsewhere());
    }
    let mut reply = DocumentBuf::new();
    // Everything is checked before anything is changed.
    let index = wanted
        .index
        .map(|index| of_index::Wanted::parse(index, wanted.dry_run, &collection));
    let index = index.transpose()?;
    if wanted.dry_run && (index.is_none() || !wanted.options.is_empty()) {
        let message = "dryRun mode is for the conversion of an index to unique, alone";
        return Err(CommandError::new(ErrorCode::InvalidOptions, message));
    }
    wanted.cap.check(&collection)?;
    if let Some(index) = index {
        index.apply(&collection, context.operation, &mut reply)?;
    }
    wanted.apply(&collection)?;
    wanted.cap.apply(&collection)?;
    Ok(Reply::ok(reply))
}

/// What is to change.
struct Wanted<'a> {
    index: Option<Document<'a>>,
    options: Vec<(&'static str, Value)>,
    cap: of_cap::Wanted,
    dry_run: bool,
}

impl<'a> Wanted<'a> {
    fn parse(request: &'a Request, namespace: &Namespace) -> Result<Wanted<'a>, CommandError> {
        let (mut index, mut options) = (None, Vec::new());
        let (mut cap, mut dry_run) = (of_cap::Wanted::default(), false);
        for (name, value) in request.body().iter().skip(1) {
            if name == "index" {
                index = Some(of_index::document(value)?);
                continue;
            }
            if name == "dryRun" {
                dry_run = Arguments::new(request).flag("dryRun")?;
                continue;
            }
            if cap.read(name, value)? {
                continue;
            }
            match OPTIONS.iter().find(|(known, _)| *known == name) {
                Some((known, read)) => options.push((*known, read(namespace, name, value)?)),
                None if is_generic(name) => {}
                None => return Err(unknown(name)),
            }
        }
        Ok(Wanted {
            index,
            options,
            cap,
            dry_run,
        })
    }

    /// Whether an option of that name is to change.
    fn names(&self, name: &str) -> bool {
        self.options.iter().any(|(one, _)| *one == name)
    }

    fn apply(&self, collection: &Collection) -> Result<(), CommandError> {
        if self.options.is_empty() {
            return Ok(());
        }
        let changed = collection.change_options(|old| {
            let kept = old.iter().filter(|(name, _)| !self.names(name));
            let mut new: DocumentBuf = kept.collect();
            let values = self.options.iter();
            for (name, value) in values.filter(|(_, value)| *value != Value::Null) {
                new.push(name, value.clone());
            }
            Ok::<_, CollectionError>(new)
        });
        changed.or_command_error()
    }
}

/// Those of other kinds of collections are known, and refused as such.
fn unknown(name: &str) -> CommandError {
    let message = match name {
        "viewOn" | "pipeline" => format!("option only supported on a view: {name}"),
        _ => format!("unknown option to collMod: {name}"),
    };
    CommandError::new(ErrorCode::InvalidOptions, message)
}

fn text<'v>(name: &str, value: ValueRef<'v>, known: &[&str]) -> Result<&'v str, CommandError> {
    match value {
        ValueRef::String(text) if known.contains(&text) => Ok(text),
        ValueRef::String(text) => {
            let message = format!("invalid {name} specified: '{text}'");
            Err(CommandError::new(ErrorCode::BadValue, message))
        }
        other => Err(CommandError::new(
            ErrorCode(13_111),
            format!(
                "wrong type for field ({name}) {} != string",
                other.type_of().name()
            ),
        )),
    }
}

fn level(_: &Namespace, name: &str, value: ValueRef<'_>) -> Result<Value, CommandError> {
    text(name, value, super::create::LEVELS).map(Value::from)
}

fn action(_: &Namespace, name: &str, value: ValueRef<'_>) -> Result<Value, CommandError> {
    text(name, value, super::create::ACTIONS).map(Value::from)
}

/// Null where the option is to go.
fn seconds(_: &Namespace, name: &str, value: ValueRef<'_>) -> Result<Value, CommandError> {
    let mut given = DocumentBuf::new();
    given.push(name, value);
    let arguments = Arguments::within("collMod", given.as_document());
    match value {
        ValueRef::String("off") => Ok(Value::Null),
        ValueRef::String(other) => {
            let message = format!("invalid expireAfterSeconds: '{other}', it can be \"off\"");
            Err(CommandError::new(ErrorCode::InvalidOptions, message))
        }
        _ => Ok(clustered::seconds(&arguments)?.map_or(Value::Null, Value::Int64)),
    }
}

/// Null where the option is to go.
fn images(_: &Namespace, name: &str, value: ValueRef<'_>) -> Result<Value, CommandError> {
    let given = value
        .as_document()
        .ok_or_else(|| not_an_object(name, value))?;
    let kept = create::pre_and_post_images(&Some(given))?;
    Ok(kept.map_or(Value::Null, Value::from))
}

fn validator(
    namespace: &Namespace,
    name: &str,
    value: ValueRef<'_>,
) -> Result<Value, CommandError> {
    let validator = value
        .as_document()
        .ok_or_else(|| not_an_object(name, value))?;
    validators::check(namespace, validator)?;
    Ok(value.to_value())
}

/// What MongoDB says of a field that has to be a document.
fn not_an_object(name: &str, value: ValueRef<'_>) -> CommandError {
    let found = value.type_of().name();
    let message = format!("invalid parameter: expected an object ({name}), not {found}");
    CommandError::new(ErrorCode(10_065), message)
}
