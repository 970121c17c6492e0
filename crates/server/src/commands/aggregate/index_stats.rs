//! `$indexStats`: how often each index has been used.

use std::time::SystemTime;

use windrow_collection::{Index, Namespace};
use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use windrow_wire::CommandError;

use super::given::Describe;
use crate::clock;
use crate::context::Context;
use crate::errors::refuse;

/// One document an index. Error 28803 for options.
pub fn describe<'c>(
    context: &'c Context<'_>,
    namespace: &'c Namespace,
    wanted: ValueRef<'_>,
) -> Result<Describe<'c>, CommandError> {
    if !wanted.as_document().is_some_and(Document::is_empty) {
        return refuse(
            28_803,
            "The $indexStats stage specification must be an empty object",
        );
    }
    Ok(Box::new(|| {
        let collection = context.state.services.engine.collection(namespace);
        let indexes = collection.map(|collection| collection.indexes());
        let indexes = indexes.iter().flatten();
        let indexes = indexes.filter(|index| !index.definition.clustered);
        Ok(indexes.map(|index| of_index(context, index)).collect())
    }))
}

fn of_index(context: &Context<'_>, index: &Index) -> DocumentBuf {
    let since = SystemTime::now().checked_sub(index.counting_since().elapsed());
    let since = clock::date(since.unwrap_or(SystemTime::UNIX_EPOCH));
    let definition = &index.definition;
    let mut stats = doc! {
        "name": (&definition.name), "key": (definition.key_pattern()),
        "host": (&context.state.host),
        "accesses": { "ops": (index.uses() as i64), "since": since },
        "spec": (definition.specification.clone()),
    };
    if !index.is_ready() {
        stats.push("building", true);
    }
    stats
}
