//! `dataSize`: the bytes of all documents of a collection, or of a range of an index.

use std::time::Instant;

use windrow_access::Action;
use windrow_collection::{Collection, Namespace};
use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use windrow_index::{Definition, KeyField, KeyKind};
use windrow_mql::filter::Filter;
use windrow_query::{Find, Hint};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::{AccessRequest, Needs, Requirement};
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command};
use crate::context::Context;
use crate::queries::{self, RunningQuery};
use crate::{namespace, views};

pub const DATA_SIZE: Command = Command {
    name: "dataSize",
    aliases: &["datasize"],
    help: "returns the size of the documents of a collection or of a range of an index",
    needs: Needs::Computed(requirement),
    arguments: AcceptedArguments::Only(&[
        "estimate",
        "keyPattern",
        "max",
        "maxObjects",
        "maxSize",
        "min",
    ]),
    run,
    ends_with_client: true,
    ..Command::EMPTY
};

/// Returns the requirement on the collection, which the command names with its database.
fn requirement(request: &AccessRequest<'_>) -> Requirement {
    let name = request.first().and_then(ValueRef::as_str);
    match name.and_then(|name| name.split_once('.')) {
        Some((database, collection)) => {
            Requirement::on_namespace(database, collection, &[Action::find])
        }
        None => request.on_database(&[Action::find]),
    }
}

/// The range to count, and the limits at which counting stops.
struct DataSizeRequest<'a> {
    range: Option<KeyRange<'a>>,
    bytes_max: u64,
    documents_max: u64,
}

#[derive(Default)]
struct SizeCount {
    bytes: u64,
    documents: u64,
    stopped: bool,
}

/// The documents between two keys, without the second, of an index whose keys start with the
/// pattern.
struct KeyRange<'a> {
    pattern: DocumentBuf,
    min: Document<'a>,
    max: Document<'a>,
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let started = Instant::now();
    let arguments = Arguments::new(request);
    let namespace = named(request.command(), &arguments)?;
    context.operation.set_namespace(&namespace.to_string());
    let parsed = DataSizeRequest::parse(&arguments)?;
    let estimate = arguments.flag("estimate")?;
    views::refuse_view(context, &namespace)?;
    let engine = &context.state.services.engine;
    let counted = match engine.collection(&namespace) {
        None => SizeCount::default(),
        Some(collection) if parsed.is_all() => SizeCount {
            bytes: collection.bytes(),
            documents: collection.count(),
            stopped: false,
        },
        Some(collection) => parsed.count(&collection, &namespace, context)?,
    };
    let mut reply = doc! { "estimate": (estimate && parsed.is_all()) };
    reply.push("size", counted.bytes as i64);
    reply.push("numObjects", counted.documents as i64);
    if counted.stopped {
        reply.push("maxReached", true);
    }
    reply.push("millis", started.elapsed().as_millis() as i64);
    Ok(Reply::ok(reply))
}

/// Returns the collection, which must be a full namespace.
fn named(command: &str, arguments: &Arguments<'_>) -> Result<Namespace, CommandError> {
    let text = arguments
        .string(command)?
        .ok_or_else(|| arguments.missing(command))?;
    let (database, collection) = text.split_once('.').ok_or_else(|| {
        let message = format!("Invalid namespace specified '{text}'");
        CommandError::new(ErrorCode::InvalidNamespace, message)
    })?;
    namespace::check_database(database)?;
    namespace::check_collection(database, collection)?;
    Ok(namespace::new(database, collection))
}

impl<'a> DataSizeRequest<'a> {
    fn parse(arguments: &Arguments<'a>) -> Result<DataSizeRequest<'a>, CommandError> {
        let filled = |name: &str| {
            let filled = arguments.document(name)?.filter(|bound| !bound.is_empty());
            Ok::<_, CommandError>(filled)
        };
        let most = |name: &str| Ok::<_, CommandError>(arguments.count(name)?.unwrap_or(u64::MAX));
        let pattern = filled("keyPattern")?;
        let range = match (filled("min")?, filled("max")?) {
            (None, None) => None,
            (Some(min), Some(max)) => Some(KeyRange::new(pattern, min, max)),
            _ => {
                let message = "only one of min or max specified";
                return Err(CommandError::new(ErrorCode::BadValue, message));
            }
        };
        Ok(DataSizeRequest {
            range,
            bytes_max: most("maxSize")?,
            documents_max: most("maxObjects")?,
        })
    }

    fn is_all(&self) -> bool {
        self.range.is_none() && self.bytes_max == u64::MAX && self.documents_max == u64::MAX
    }

    fn count(
        &self,
        collection: &Collection,
        namespace: &Namespace,
        context: &Context<'_>,
    ) -> Result<SizeCount, CommandError> {
        let find = match &self.range {
            None => Find::new(Filter::all()),
            Some(range) => range.find(collection)?,
        };
        let source = queries::source(context, namespace)?;
        let mut counted = SizeCount::default();
        let mut running = match RunningQuery::start(&find, &source, context.operation) {
            Err(error) if error.code == NOT_IN_ORDER => return Ok(counted),
            running => running?,
        };
        while let Some(row) = running.next(context.operation)? {
            counted.bytes += row.document().as_bytes().len() as u64;
            counted.documents += 1;
            counted.stopped =
                counted.bytes > self.bytes_max || counted.documents > self.documents_max;
            if counted.stopped {
                break;
            }
        }
        Ok(counted)
    }
}

/// MongoDB's error code for bounds with an empty range.
const NOT_IN_ORDER: ErrorCode = ErrorCode(51_175);

impl<'a> KeyRange<'a> {
    /// Creates a range. The default pattern is that of the fields in the bounds.
    fn new(pattern: Option<Document<'a>>, min: Document<'a>, max: Document<'a>) -> KeyRange<'a> {
        let ascending = || min.iter().map(|(name, _)| (name, ValueRef::Int32(1)));
        let pattern: DocumentBuf = match pattern {
            Some(pattern) => pattern.to_buf(),
            None => ascending().collect(),
        };
        KeyRange { pattern, min, max }
    }

    /// Returns the query for the range, on the first index that contains all documents in the order
    /// of the pattern.
    fn find(&self, collection: &Collection) -> Result<Find, CommandError> {
        let indexes = collection.indexes();
        let mut definitions = indexes.iter().map(|index| &*index.definition);
        let Some(definition) = definitions.find(|one| self.is_of(one)) else {
            let message = "couldn't find valid index containing key pattern";
            return Err(CommandError::new(ErrorCode::OperationFailed, message));
        };
        Ok(Find {
            hint: Some(Hint::Name(definition.name.clone())),
            min: Some(extended(self.min, definition)),
            max: Some(extended(self.max, definition)),
            ..Find::new(Filter::all())
        })
    }

    fn is_of(&self, definition: &Definition) -> bool {
        let has_all =
            !definition.sparse && definition.partial.is_none() && definition.collation.is_none();
        let pattern = self.pattern.as_document();
        let key: DocumentBuf =
            (definition.key_pattern().iter().take(pattern.iter().count())).collect();
        has_all && ValueRef::Document(key.as_document()).equals(ValueRef::Document(pattern))
    }
}

/// Extends a bound of the first fields of an index to all fields, before every key with this
/// prefix.
fn extended(bound: Document<'_>, definition: &Definition) -> DocumentBuf {
    let key = definition.key_pattern();
    let rest = definition.fields.iter().zip(key.iter());
    let rest = rest.skip(bound.iter().count());
    let least = |(field, (name, _)): (&KeyField, (_, _))| match field.kind {
        KeyKind::Descending => (name, ValueRef::MaxKey),
        _ => (name, ValueRef::MinKey),
    };
    bound.iter().chain(rest.map(least)).collect()
}
