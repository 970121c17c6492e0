//! `validateDBMetadata`: lists the collections and views that use features outside of a version of
//! MongoDB's stable API.

use windrow_access::{Action, Resource};
use windrow_collection::{Engine, Namespace};
use windrow_document::{Document, DocumentBuf, Value, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::{AccessRequest, Needs, Requirement};
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command, Join, Routing};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::{namespace, stable_api};

pub const VALIDATE_DB_METADATA: Command = Command {
    name: "validateDBMetadata",
    help: "lists collections and views that are not in a version of the API",
    routing: Routing::Each(Join::Elements("apiVersionErrors")),
    needs: Needs::Computed(requirement),
    arguments: AcceptedArguments::Only(&["apiParameters", "collection", "db"]),
    run,
    ..Command::EMPTY
};

/// Returns the requirement. Without a database, the command reads all of them.
fn requirement(request: &AccessRequest<'_>) -> Requirement {
    let resource = match request.string("db") {
        Some(database) => Resource::database(database),
        None => Resource::AnyNormal,
    };
    Requirement::on(&resource, &[Action::validate])
}

/// Maximum bytes of errors in a reply. A longer list is marked as truncated.
const ERROR_BYTES_MAX: usize = 15 << 20;

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let arguments = Arguments::new(request);
    let request = MetadataRequest::parse(&arguments)?;
    let engine = &context.state.services.engine;
    let (mut errors, mut bytes, mut has_more) = (Vec::new(), 0, false);
    for database in request.databases(engine) {
        context.check()?;
        for error in request.errors(engine, &database)? {
            bytes += error.as_document().as_bytes().len();
            if bytes <= ERROR_BYTES_MAX {
                errors.push(Value::from(error))
            } else {
                has_more = true
            }
        }
    }
    let mut reply = doc! { "apiVersionErrors": errors };
    if has_more {
        reply.push("hasMoreErrors", true);
    }
    Ok(Reply::ok(reply))
}

/// The parsed arguments.
struct MetadataRequest<'a> {
    is_checked: bool,
    database: Option<&'a str>,
    collection: Option<&'a str>,
}

impl<'a> MetadataRequest<'a> {
    fn parse(arguments: &Arguments<'a>) -> Result<MetadataRequest<'a>, CommandError> {
        let parameters = arguments.document("apiParameters")?;
        let parameters = parameters.ok_or_else(|| arguments.missing("apiParameters"))?;
        let is_checked = is_checked(parameters)?;
        let database = arguments.string("db")?;
        let collection = arguments.string("collection")?;
        database.map_or(Ok(()), namespace::check_database)?;
        let within = database.unwrap_or_default();
        collection.map_or(Ok(()), |name| namespace::check_collection(within, name))?;
        Ok(MetadataRequest {
            is_checked,
            database,
            collection,
        })
    }

    fn databases(&self, engine: &Engine) -> Vec<String> {
        match self.database {
            _ if !self.is_checked => Vec::new(),
            Some(name) => vec![name.to_owned()],
            None => engine.databases(),
        }
    }

    fn names(&self, name: &str) -> bool {
        self.collection.is_none_or(|selected| selected == name)
    }

    fn errors(&self, engine: &Engine, database: &str) -> Result<Vec<DocumentBuf>, CommandError> {
        let mut errors = Vec::new();
        for collection in engine.collections(database) {
            let namespace = collection.namespace();
            if !self.names(&namespace.collection) {
                continue;
            }
            let indexes = collection.indexes();
            let definitions = indexes.iter().map(|index| &index.definition);
            let outside = definitions.filter(|one| stable_api::excludes_index(&one.specification));
            errors.extend(outside.map(|one| {
                let name = &one.name;
                let message =
                    format!("The index with name {name} is not allowed in API version 1.");
                error(&namespace, message)
            }));
        }
        for (name, view) in engine.views(database).or_command_error()? {
            let namespace = Namespace {
                database: database.to_owned(),
                collection: name,
            };
            let message = stable_api::unsupported_in_pipeline(view.pipeline.as_array());
            let message = message.filter(|_| self.names(&namespace.collection));
            errors.extend(message.map(|message| error(&namespace, message)));
        }
        Ok(errors)
    }
}

/// Returns `true` if the parameters request a check. Version 1 is the only one, and only `strict`
/// excludes features.
fn is_checked(parameters: Document<'_>) -> Result<bool, CommandError> {
    let parameters = Arguments::within("validateDBMetadata.apiParameters", parameters);
    parameters.only(&["deprecationErrors", "strict", "version"])?;
    let version = parameters.string("version")?;
    let version = version.ok_or_else(|| parameters.missing("version"))?;
    let strict = parameters.non_null_bool("strict")?;
    parameters.non_null_bool("deprecationErrors")?;
    Ok(version == "1" && strict == Some(true))
}

fn error(namespace: &Namespace, message: String) -> DocumentBuf {
    let code = ErrorCode::APIStrictError;
    doc! {
        "ns": (namespace.to_string()), "code": (code.number()),
        "codeName": (code.name().as_ref()), "errmsg": message,
    }
}
