//! `$out`: fills a new collection, which then replaces the target in one step, with the options and
//! indexes of the target.

use std::sync::Arc;

use windrow_collection::{Collection, Namespace, Renaming};
use windrow_document::{Document, DocumentBuf, doc};
use windrow_wire::{CommandError, ErrorCode};

use super::output_target::OutputTarget;
use crate::audit::Creation;
use crate::errors::OrCommandError;
use crate::index_builds::{self, Build};
use crate::operations::Operation;
use crate::random;

/// The name prefix of collections that are being filled.
const PREFIX: &str = "tmp.agg_out.";

/// The option of collections that are dropped at the next start.
const TEMPORARY: &str = "temp";

/// Documents are inserted in batches of this many bytes.
const CHUNK_BYTES: usize = 4 << 20;

/// A collection that is being filled. It is dropped unless it replaces the target.
pub struct OutCollection<'t> {
    target: &'t OutputTarget,
    collection: Arc<Collection>,
    waiting: Vec<u8>,
    is_done: bool,
}

impl<'t> OutCollection<'t> {
    /// Creates the collection. Fails with 17152 if the target is capped.
    pub fn begin(
        target: &'t OutputTarget,
        operation: &Operation,
    ) -> Result<OutCollection<'t>, CommandError> {
        let existing = target.engine.collection(&target.namespace);
        let options = match &existing {
            Some(existing) => existing.options(),
            None => DocumentBuf::new(),
        };
        if options.get("capped").is_some() {
            let message = format!(
                "namespace '{}' is capped so it can't be used for $out",
                target.namespace
            );
            return Err(CommandError::new(ErrorCode(17_152), message));
        }
        let mut options = options;
        options.push(TEMPORARY, true);
        let temporary = Namespace {
            database: target.namespace.database.clone(),
            collection: format!("{PREFIX}{:016x}", random::bits()),
        };
        let collection = target.engine.create(&temporary, options.as_document());
        let replacing = OutCollection {
            target,
            collection: collection.or_command_error()?,
            waiting: Vec::new(),
            is_done: false,
        };
        if let Some(existing) = existing {
            replacing.build_indexes(&existing, operation)?;
        }
        Ok(replacing)
    }

    fn build_indexes(&self, like: &Collection, operation: &Operation) -> Result<(), CommandError> {
        let indexes = like.all_indexes();
        let definitions = indexes.iter().map(|index| &*index.definition);
        let definitions: Vec<_> = definitions
            .filter(|definition| !definition.is_of_ids())
            .cloned()
            .collect();
        if definitions.is_empty() {
            return Ok(());
        }
        let build = Build {
            engine: self.target.engine.clone(),
            collection: self.collection.clone(),
            definitions,
            log: self.target.log.clone(),
            context: "$out".to_owned(),
        };
        index_builds::run(build, operation).map(drop)
    }

    /// Adds a document.
    pub fn add(
        &mut self,
        document: Document<'_>,
        operation: &Operation,
    ) -> Result<(), CommandError> {
        let document = self.target.prepare(document)?;
        self.waiting.extend_from_slice(document.as_bytes());
        if self.waiting.len() < CHUNK_BYTES {
            return Ok(());
        }
        self.insert_waiting(operation)
    }

    fn insert_waiting(&mut self, operation: &Operation) -> Result<(), CommandError> {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return Ok(());
        }
        self.target.insert(&self.collection, waiting, operation)
    }

    /// Replaces the target by the new collection.
    pub fn finish(mut self, operation: &Operation) -> Result<(), CommandError> {
        self.insert_waiting(operation)?;
        let (engine, temporary) = (&self.target.engine, self.collection.namespace());
        let replaced = engine.collection(&self.target.namespace);
        let exclusion = replaced.as_ref().map(|it| it.exclude(operation));
        let _ddl_guard = exclusion.transpose().or_command_error()?;
        let trail = self.target.trail.clone();
        let creation = Creation::begin(trail, engine, &self.target.namespace);
        engine
            .rename(
                &temporary,
                &self.target.namespace,
                &Renaming {
                    drop_target: true,
                    ..Renaming::default()
                },
            )
            .or_command_error()?;
        self.is_done = true;
        if let Some(creation) = creation {
            creation.record();
        } else if let Some(trail) = &self.target.trail {
            let target = self.target.namespace.to_string();
            trail.record("dropCollection", doc! { "ns": (target.as_str()) });
            trail.record(
                "renameCollection",
                doc! { "old": (temporary.to_string()), "new": target },
            );
        }
        Ok(())
    }
}

impl Drop for OutCollection<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            // A collection that cannot be dropped now is dropped at the next start.
            drop(
                self.target
                    .engine
                    .drop_collection(&self.collection.namespace()),
            );
        }
    }
}
