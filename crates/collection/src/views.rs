//! Views: named pipelines over other collections.
//!
//! As in MongoDB, they are documents in their database's collection `system.views`, so the log and
//! the catalog need no special case. This module does not interpret the pipeline.

use std::sync::Arc;

use bytes::Bytes;
use windrow_document::{Array, ArrayBuf, Collation, Document, DocumentBuf, Value, ValueRef};
use windrow_fold::RecordId;

use crate::catalog::namespace::Namespace;
use crate::cluster_snapshot::ClusterSnapshot;
use crate::engine::Engine;
use crate::error::Error;
use crate::read::Reader;
use crate::rules::collation_of;
use crate::write::{Change, InsertOrder};

/// A view.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The collection or view that it reads, in the same database.
    pub on: String,
    /// The pipeline.
    pub pipeline: ArrayBuf,
    /// Its collation, which all views on it must share. `None`: strings are compared by bytes.
    pub collation: Option<Arc<Collation>>,
}

impl View {
    fn read(document: Document<'_>) -> View {
        let on = document.get("viewOn").and_then(ValueRef::as_str);
        let pipeline = document.get("pipeline").and_then(ValueRef::as_array);
        View {
            on: on.unwrap_or_default().to_owned(),
            pipeline: pipeline.unwrap_or(Array::EMPTY).to_buf(),
            collation: collation_of(document).unwrap_or_default(),
        }
    }

    /// Returns `{viewOn, pipeline, collation}`, as `listCollections` shows it.
    pub fn options(&self) -> DocumentBuf {
        let mut options = DocumentBuf::new();
        options.push("viewOn", self.on.as_str());
        options.push("pipeline", Value::Array(self.pipeline.clone()));
        if let Some(collation) = &self.collation {
            options.push("collation", collation.specification());
        }
        options
    }

    fn document(&self, namespace: &Namespace) -> DocumentBuf {
        let mut document = DocumentBuf::new();
        document.push("_id", namespace.to_string());
        for (name, value) in self.options().iter() {
            document.push(name, value);
        }
        document
    }
}

/// Returns the view with this name in a snapshot of `system.views`.
fn view_in(reader: &Reader, namespace: &Namespace) -> Result<Option<View>, Error> {
    let name = namespace.to_string();
    let found = reader.find(ValueRef::String(&name))?;
    Ok(found.map(|(_, bytes)| View::read(Document::from_validated(&bytes))))
}

impl ClusterSnapshot {
    /// Returns the view that had this name at the time of the snapshot.
    pub fn view(&self, namespace: &Namespace) -> Result<Option<View>, Error> {
        let views = self.collection(&Namespace::views_of(&namespace.database))?;
        views.map_or(Ok(None), |it| view_in(&self.reader(&it)?, namespace))
    }
}

impl Engine {
    /// Returns the view with this name.
    pub fn view(&self, namespace: &Namespace) -> Result<Option<View>, Error> {
        let views = self.collection(&Namespace::views_of(&namespace.database));
        views.map_or(Ok(None), |it| view_in(&it.reader()?, namespace))
    }

    /// Returns the views of a database with their names.
    pub fn views(&self, database: &str) -> Result<Vec<(String, View)>, Error> {
        let Some(views) = self.collection(&Namespace::views_of(database)) else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        let mut cursor = views.reader()?.records(windrow_fold::Direction::Forward);
        while cursor.next()? {
            let document = Document::from_validated(cursor.document());
            let id = document.get("_id").and_then(ValueRef::as_str);
            if let Some((_, name)) = id.and_then(|id| id.split_once('.')) {
                found.push((name.to_owned(), View::read(document)));
            }
        }
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(found)
    }

    /// Creates a view. Its name must be free.
    pub fn create_view(&self, namespace: &Namespace, view: &View) -> Result<(), Error> {
        let _naming = self.collections.naming.lock();
        if self.collection(namespace).is_some() || self.view(namespace)?.is_some() {
            return Err(Error::NamespaceExists(namespace.to_string()));
        }
        let views = Namespace::views_of(&namespace.database);
        let views = match self.collection(&views) {
            Some(views) => views,
            None => self.create_named(&views, DocumentBuf::new())?,
        };
        let document = view.document(namespace);
        let bytes = Bytes::copy_from_slice(document.as_bytes());
        let inserted = views.insert(bytes, InsertOrder::Ordered)?;
        inserted.check_all_inserted()
    }

    /// Changes what a view shows.
    pub fn change_view(&self, namespace: &Namespace, view: &View) -> Result<(), Error> {
        let document = view.document(namespace);
        if self.replace_view(namespace, &Change::Replace(document))? {
            Ok(())
        } else {
            Err(Error::NamespaceNotFound(namespace.to_string()))
        }
    }

    /// Drops a view. Returns `false` if there is none.
    pub fn drop_view(&self, namespace: &Namespace) -> Result<bool, Error> {
        self.replace_view(namespace, &Change::Delete)
    }

    fn replace_view(&self, namespace: &Namespace, change: &Change) -> Result<bool, Error> {
        let _naming = self.collections.naming.lock();
        let Some(views) = self.collection(&Namespace::views_of(&namespace.database)) else {
            return Ok(false);
        };
        let name = namespace.to_string();
        let found: Option<RecordId> = views.reader()?.find_id(ValueRef::String(&name))?;
        let Some(id) = found else {
            return Ok(false);
        };
        let mut batch = views.batch();
        batch.change(id, |_| Ok::<Change, Error>(change.clone()))?;
        batch.commit()?;
        Ok(true)
    }
}
