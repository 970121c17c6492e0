//! `dataSize`: the bytes of a collection's documents, of all or of a range of an index.

use std::time::Instant;

use windrow_collection::Namespace;
use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use windrow_mql::filter::Filter;
use windrow_query::{Find, Hint};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use super::coll_stats::size;
use crate::arguments::Arguments;
use crate::command::{Accepted, Command};
use crate::context::Context;
use crate::queries::{self, Running};
use crate::{namespace, views};

/// Arguments are not checked, as in MongoDB.
pub const DATA_SIZE: Command = Command {
    name: "dataSize",
    aliases: &["datasize"],
    help: "gives the bytes of documents, of a collection or of a range of an index",
    arguments: Accepted::Any,
    run,
    ..Command::EMPTY
};

/// What is counted, and where counting stops.
struct Wanted {
    find: Option<Find>,
    bytes_max: u64,
    documents_max: u64,
}

#[derive(Default)]
struct Counted {
    bytes: u64,
    documents: u64,
    stopped: bool,
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let started = Instant::now();
    let arguments = Arguments::new(request);
    let namespace = named(&arguments)?;
    context.operation.set_namespace(&namespace.to_string());
    let wanted = Wanted::parse(&arguments)?;
    views::refuse(context, &namespace)?;
    let estimate = arguments.flag("estimate")?;
    let engine = &context.state.services.engine;
    let counted = match (engine.collection(&namespace), &wanted.find) {
        (None, _) => Counted::default(),
        (Some(collection), None) if wanted.is_all() => Counted {
            bytes: collection.bytes(),
            documents: collection.count(),
            stopped: false,
        },
        (Some(_), find) => {
            let all = Find::of(Filter::all());
            wanted.count(find.as_ref().unwrap_or(&all), &namespace, context)?
        }
    };
    let mut reply = doc! { "estimate": (estimate && wanted.is_all()) };
    reply.push("size", size(counted.bytes));
    reply.push("numObjects", size(counted.documents));
    if counted.stopped {
        reply.push("maxReached", true);
    }
    reply.push("millis", started.elapsed().as_millis() as i32);
    Ok(Reply::ok(reply))
}

fn named(arguments: &Arguments<'_>) -> Result<Namespace, CommandError> {
    let Some(ValueRef::String(text)) = arguments.get("dataSize").or(arguments.get("datasize"))
    else {
        let message = "dataSize takes a collection by its full name";
        return Err(CommandError::new(ErrorCode::BadValue, message));
    };
    let (database, collection) = text.split_once('.').ok_or_else(|| {
        let message = format!("Invalid namespace specified '{text}'");
        CommandError::new(ErrorCode::InvalidNamespace, message)
    })?;
    namespace::check_database(database)?;
    namespace::check_collection(database, collection)?;
    Ok(Namespace {
        database: database.to_owned(),
        collection: collection.to_owned(),
    })
}

impl Wanted {
    fn parse(arguments: &Arguments<'_>) -> Result<Wanted, CommandError> {
        let bound = |name: &str| {
            let filled = arguments.document(name)?.filter(|bound| !bound.is_empty());
            Ok::<_, CommandError>(filled)
        };
        let most = |name: &str| Ok::<_, CommandError>(arguments.count(name)?.unwrap_or(u64::MAX));
        let find = match (bound("min")?, bound("max")?) {
            (None, None) => None,
            (Some(min), Some(max)) => Some(range(bound("keyPattern")?, min, max)),
            _ => {
                let message = "only one of min or max specified";
                return Err(CommandError::new(ErrorCode::BadValue, message));
            }
        };
        Ok(Wanted {
            find,
            bytes_max: most("maxSize")?,
            documents_max: most("maxObjects")?,
        })
    }

    fn is_all(&self) -> bool {
        self.find.is_none() && self.bytes_max == u64::MAX && self.documents_max == u64::MAX
    }

    fn count(
        &self,
        find: &Find,
        namespace: &Namespace,
        context: &Context<'_>,
    ) -> Result<Counted, CommandError> {
        let source = queries::source(context, namespace)?;
        let mut running = Running::start(find, &source, context.operation)?;
        let mut counted = Counted::default();
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

/// The documents between two keys of an index. Without a pattern it is the one of the bounds' fields.
fn range(pattern: Option<Document<'_>>, min: Document<'_>, max: Document<'_>) -> Find {
    let ascending = || min.iter().map(|(name, _)| (name, ValueRef::Int32(1)));
    let pattern: DocumentBuf = match pattern {
        Some(pattern) => pattern.to_buf(),
        None => ascending().collect(),
    };
    Find {
        hint: Some(Hint::Key(pattern)),
        min: Some(min.to_buf()),
        max: Some(max.to_buf()),
        ..Find::of(Filter::all())
    }
}
