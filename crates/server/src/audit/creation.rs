//! The events of a collection or view that is created.

use windrow_collection::{Engine, Namespace, View};
use windrow_document::{DocumentBuf, doc};

use super::AuditTrail;

/// The creation of a collection or view.
pub struct Creation {
    trail: AuditTrail,
    namespace: Namespace,
    creates_database: bool,
}

impl Creation {
    /// Begins to audit the creation of a collection or view. Returns `None` if there is no audit
    /// log, or if there is a collection with this name. Must be called before the collection can be
    /// created.
    pub fn begin(
        trail: Option<AuditTrail>,
        engine: &Engine,
        namespace: &Namespace,
    ) -> Option<Creation> {
        let trail = trail?;
        if engine.collection(namespace).is_some() {
            return None;
        }
        Some(Creation {
            trail,
            namespace: namespace.clone(),
            creates_database: engine.collections(&namespace.database).is_empty(),
        })
    }

    /// Records that the collection was created.
    pub fn record(self) {
        let param = doc! { "ns": (self.namespace.to_string()) };
        self.finish(param);
    }

    /// Records that the view was created.
    pub fn record_view(self, view: &View) {
        let param = view_param(&self.namespace, view);
        self.finish(param);
    }

    fn finish(self, param: DocumentBuf) {
        if self.creates_database {
            let database = doc! { "ns": (self.namespace.database.as_str()) };
            self.trail.record("createDatabase", database);
        }
        self.trail.record("createCollection", param);
    }
}

/// Returns the details of the creation or the removal of a view.
pub fn view_param(namespace: &Namespace, view: &View) -> DocumentBuf {
    let source = format!("{}.{}", namespace.database, view.on);
    doc! { "ns": (namespace.to_string()), "viewOn": source, "pipeline": (view.pipeline.clone()) }
}
