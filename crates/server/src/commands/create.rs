//! `create`: creates a collection or a view.

pub mod clustered;
pub mod view;

use std::sync::Arc;

use windrow_access::Action;
use windrow_collection::{Namespace, View};
use windrow_document::{Array, Collation, Document, DocumentBuf, Type, Value, ValueRef, doc};
use windrow_index::{check_options_of_ids, check_version};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::pipeline::{self, PipelineScope};
use crate::access::{AccessRequest, Needs, Requirement};
use crate::arguments::Arguments;
use crate::audit::Creation;
use crate::collation;
use crate::command::{AcceptedArguments, Command, InTransactions, Routing};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::{namespace, queryable_encryption, stable_api, validators};

pub const CREATE: Command = Command {
    name: "create",
    help: "creates a collection or a view",
    routing: Routing::Databases,
    needs: Needs::Computed(requirement),
    write_concern: true,
    in_api_version_1: true,
    outside_api_version_1: stable_api::unsupported_in_create,
    arguments: AcceptedArguments::Only(&[
        "autoIndexId",
        "capped",
        "changeStreamPreAndPostImages",
        "clusteredIndex",
        "collation",
        "encryptedFields",
        "expireAfterSeconds",
        "flags",
        "idIndex",
        "indexOptionDefaults",
        "max",
        "pipeline",
        "size",
        "storageEngine",
        "temp",
        "timeseries",
        "validationAction",
        "validationLevel",
        "validator",
        "viewOn",
    ]),
    in_transactions: InTransactions::AllowedIfLocal,
    run,
    ..Command::EMPTY
};

/// Returns the requirement of creating a collection or view.
fn requirement(request: &AccessRequest<'_>) -> Requirement {
    let create = request.on_collection(&[Action::createCollection]);
    if request.body.contains("viewOn") {
        let stages = request.body.get("pipeline").and_then(ValueRef::as_array);
        let source = request.string("viewOn");
        return create.and(view_requirement(request, source, stages));
    }
    if request.flag("capped") {
        return create.and(request.on_collection(&[Action::convertToCapped]));
    }
    create.or(request.on_collection(&[Action::insert]))
}

/// Returns the requirement of the source and the pipeline of a view. A client that can read the
/// view must be able to read its source, because readers of the view only need access to the view.
/// Clients that cannot read the view, such as mongorestore with the role restore, do not gain
/// access to documents.
pub fn view_requirement(
    request: &AccessRequest<'_>,
    source: Option<&str>,
    stages: Option<Array<'_>>,
) -> Requirement {
    let scope = PipelineScope {
        database: request.database,
        collection: source,
        bypasses_validation: false,
    };
    let reads_view = request.on_collection(&[Action::find]);
    pipeline::requirement(scope, stages.unwrap_or(Array::EMPTY))
        .or(Requirement::Not(Box::new(reads_view)))
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let database = request.database();
    let name = namespace::collection_name(database, request.body(), ErrorCode::BadValue)?;
    let namespace = namespace::new(database, name);
    context.operation.set_namespace(&namespace.to_string());
    match CreateRequest::parse(&namespace, &Arguments::new(request))? {
        CreateRequest::View(view) => view::create(context, &namespace, &view),
        CreateRequest::Collection(request) => create_collection(context, &namespace, &request),
    }
}

/// A parsed `create`.
enum CreateRequest {
    View(View),
    Collection(CollectionRequest),
}

/// A collection to create.
struct CollectionRequest {
    /// The options as they are stored.
    options: DocumentBuf,
    /// `true` if the deprecated `autoIndexId` is set.
    has_auto_index_id: bool,
}

impl CreateRequest {
    fn parse(
        namespace: &Namespace,
        arguments: &Arguments<'_>,
    ) -> Result<CreateRequest, CommandError> {
        if let Some(view) = view::parse(arguments)? {
            return Ok(CreateRequest::View(view));
        }
        check_not_supported(arguments)?;
        let clustered = clustered::options(arguments)?;
        let cap = cap(arguments)?;
        let collation = read_collation(arguments)?;
        check_id_index(arguments, collation.as_ref())?;
        let others = options(namespace, arguments, collation.as_ref())?;
        let mut options = DocumentBuf::new();
        if let Some(cap) = cap {
            options.push("capped", true);
            options.push("size", Value::whole(cap.bytes as i64));
            if cap.documents > 0 {
                options.push("max", cap.documents as i32);
            }
        }
        for (name, value) in others.iter().chain(clustered.iter()) {
            options.push(name, value);
        }
        Ok(CreateRequest::Collection(CollectionRequest {
            options,
            has_auto_index_id: arguments.get("autoIndexId").is_some(),
        }))
    }
}

fn create_collection(
    context: &Context<'_>,
    namespace: &Namespace,
    request: &CollectionRequest,
) -> Result<Reply, CommandError> {
    namespace::check_creation(namespace)?;
    let engine = &context.state.services.engine;
    let options = &request.options;
    let existing = engine.collection(namespace);
    let creation = Creation::begin(context.trail(), engine, namespace);
    let created = match context.transaction() {
        // A collection with the same options needs no change.
        None if existing.is_some_and(|known| same_options(&known.options(), options)) => Ok(()),
        None => engine.create(namespace, options.as_document()).map(drop),
        Some(transaction) => transaction
            .create(namespace, options.as_document())
            .map(drop),
    };
    created.or_command_error()?;
    if let Some(creation) = creation {
        creation.record();
    }
    let mut reply = DocumentBuf::new();
    if request.has_auto_index_id {
        let note = "the autoIndexId option is deprecated and will be removed in a future release";
        reply.push("note", note);
    }
    Ok(Reply::ok(reply))
}

/// Returns `true` if the options are equal, in any order.
fn same_options(one: &DocumentBuf, other: &DocumentBuf) -> bool {
    let in_other = |(name, value)| other.get(name) == Some(value);
    one.iter().count() == other.iter().count() && one.iter().all(in_other)
}

/// The values of `validationLevel` and `validationAction`.
pub const LEVELS: &[&str] = &["off", "strict", "moderate"];
pub const ACTIONS: &[&str] = &["error", "warn"];

/// Returns the options that `listCollections` returns.
fn options(
    namespace: &Namespace,
    arguments: &Arguments<'_>,
    collation: Option<&Arc<Collation>>,
) -> Result<DocumentBuf, CommandError> {
    let mut options = DocumentBuf::new();
    if let Some(validator) = arguments.document("validator")? {
        validators::check(namespace, validator)?;
        options.push("validator", validator);
    }
    for (name, known) in [("validationLevel", LEVELS), ("validationAction", ACTIONS)] {
        if let Some(value) = arguments.one_of(name, known)? {
            options.push(name, value);
        }
    }
    if let Some(fields) = queryable_encryption::check_creation(namespace, arguments)? {
        options.push("encryptedFields", fields);
    }
    validators::check_encryption(options.as_document())?;
    queryable_encryption::check_validation(options.as_document())?;
    if let Some(images) = pre_and_post_images(&arguments.document(IMAGES)?)? {
        options.push(IMAGES, images);
    }
    if arguments.flag("temp")? {
        options.push("temp", true);
    }
    if let Some(engine) = arguments.document("storageEngine")? {
        let given = doc! { "storageEngine": (engine.to_buf()) };
        windrow_collection::compression_from_options(given.as_document())
            .map_err(|what| CommandError::new(ErrorCode::InvalidOptions, what))?;
        if !engine.is_empty() {
            options.push("storageEngine", engine);
        }
    }
    if let Some(collation) = collation {
        options.push("collation", collation.specification());
    }
    Ok(options)
}

/// The name of the option by which change streams contain old versions of documents.
pub const IMAGES: &str = "changeStreamPreAndPostImages";

/// Parses the option. Returns `{enabled}` to store, or `None` if it is off.
pub fn pre_and_post_images(
    given: &Option<Document<'_>>,
) -> Result<Option<DocumentBuf>, CommandError> {
    let Some(given) = given else {
        return Ok(None);
    };
    let arguments = Arguments::within(IMAGES, *given);
    arguments.only(&["enabled"])?;
    let enabled = arguments.bool("enabled")?;
    let enabled = enabled.ok_or_else(|| arguments.missing("enabled"))?;
    Ok(enabled.then(|| doc! { "enabled": true }))
}

/// The limits of a capped collection.
struct Cap {
    bytes: u64,
    /// 0 or less for no limit.
    documents: i64,
}

/// Returns the limits of the collection. `None` if it is not capped.
fn cap(arguments: &Arguments<'_>) -> Result<Option<Cap>, CommandError> {
    let capped = arguments.flag("capped")?;
    let size = arguments.whole_number("size")?;
    let max = arguments.whole_number("max")?;
    if !capped && (size.is_some() || max.is_some()) {
        let message = "the 'size' and 'max' fields are for capped collections only";
        return Err(CommandError::new(ErrorCode::InvalidOptions, message));
    }
    if capped && size.is_none() {
        let message = "the 'size' field is required when 'capped' is true";
        return Err(CommandError::new(ErrorCode::InvalidOptions, message));
    }
    if size.is_some_and(|size| size < 0) {
        return Err(bad_value("the 'size' field must be at least 0".to_owned()));
    }
    if max.is_some_and(|max| max > i64::from(i32::MAX)) {
        return Err(bad_value(
            "max in a capped collection has to be < 2^31".to_owned(),
        ));
    }
    if size.is_some_and(|size| size > CAP_BYTES_MAX) {
        return Err(bad_value(format!(
            "the 'size' field must be at most {CAP_BYTES_MAX}"
        )));
    }
    let size = size.filter(|_| capped).map(i64::unsigned_abs);
    Ok(size.map(|size| Cap {
        bytes: rounded(size),
        documents: max.unwrap_or(0),
    }))
}

/// Maximum size of a capped collection in bytes.
pub const CAP_BYTES_MAX: i64 = 1 << 50;

/// Rounds the size of a capped collection: at least 4,096 bytes, and a multiple of 256.
pub fn rounded(bytes: u64) -> u64 {
    bytes.max(4_096).next_multiple_of(256)
}

/// Checks `idIndex`. Every collection has the standard index on `_id`, and no other is allowed.
fn check_id_index(
    arguments: &Arguments<'_>,
    collation: Option<&Arc<Collation>>,
) -> Result<(), CommandError> {
    if arguments.switch("autoIndexId")? == Some(false) {
        let message = "The autoIndexId option must not be false";
        return Err(CommandError::new(ErrorCode(50_001), message));
    }
    let Some(index) = arguments.document("idIndex")? else {
        return Ok(());
    };
    let fields = Arguments::within("create.idIndex", index);
    let key = fields.document("key")?;
    let key = key.ok_or_else(|| {
        let message = "The 'key' field is a required property of an index specification";
        CommandError::new(ErrorCode::FailedToParse, message)
    })?;
    let is_usual = key.count() == 1 && key.get("_id").and_then(ValueRef::as_f64) == Some(1.0);
    if !is_usual {
        return Err(bad_value(format!(
            "The field 'key' for an _id index must be {{_id: 1}}, but got {key}"
        )));
    }
    check_options_of_ids(index).or_command_error()?;
    check_name_and_version(&fields)?;
    let Some(given) = index.get("collation") else {
        return Ok(());
    };
    check_version(index).or_command_error()?;
    let own = given
        .as_document()
        .map(|given| collation::parse_or_default(Some(given), None));
    if own.transpose()?.as_ref().map(Option::as_ref) == Some(collation) {
        Ok(())
    } else {
        Err(bad_value(
            "'idIndex' must have the same collation as the collection".to_owned(),
        ))
    }
}

/// Checks the name and the version of the index. A name is required, but ignored. Versions are 1
/// and 2.
fn check_name_and_version(index: &Arguments<'_>) -> Result<(), CommandError> {
    match index.get("name") {
        Some(ValueRef::String("")) => {
            let message = "The name of an index cannot be empty";
            return Err(CommandError::new(ErrorCode::CannotCreateIndex, message));
        }
        Some(ValueRef::String(_)) => {}
        Some(other) => {
            return Err(index.wrong_type("name", other.type_of(), &[Type::String]));
        }
        None => {
            let message = "The 'name' field is a required property of an index specification";
            return Err(CommandError::new(ErrorCode::FailedToParse, message));
        }
    }
    index.whole_number("v")?;
    match index.present("v") {
        Some(version) if !matches!(version.as_whole(), Some(1 | 2)) => {
            let message = format!("Invalid index specification: unknown version {version}");
            Err(CommandError::new(ErrorCode::CannotCreateIndex, message))
        }
        _ => Ok(()),
    }
}

fn check_not_supported(arguments: &Arguments<'_>) -> Result<(), CommandError> {
    if present(arguments, "timeseries") {
        let message = "the option 'timeseries' of create is not supported";
        return Err(CommandError::new(ErrorCode::NotImplemented, message));
    }
    let given = arguments.document("indexOptionDefaults")?;
    if let Some((option, _)) = given.and_then(|given| given.first()) {
        let message = format!("indexOptionDefaults has an unknown option: '{option}'");
        return Err(CommandError::new(ErrorCode::InvalidOptions, message));
    }
    Ok(())
}

/// Returns the collation of the collection. `None` compares bytes, also for the locale "simple".
fn read_collation(arguments: &Arguments<'_>) -> Result<Option<Arc<Collation>>, CommandError> {
    let Some(given) = arguments.document("collation")? else {
        return Ok(None);
    };
    let fields = Arguments::within("create.collation", given);
    match fields.string("locale")? {
        Some(_) => collation::parse_or_default(Some(given), None),
        None => Err(bad_value(
            "the field 'collation.locale' is a required string".to_owned(),
        )),
    }
}

fn present(arguments: &Arguments<'_>, name: &str) -> bool {
    arguments.present(name).is_some()
}

fn bad_value(message: String) -> CommandError {
    CommandError::new(ErrorCode::BadValue, message)
}
