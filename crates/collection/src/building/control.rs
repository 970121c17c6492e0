//! How the caller follows a build and can stop it.

use std::sync::Arc;

use crate::index::Index;

/// See the module.
pub struct BuildControl<'b> {
    /// Asked now and then: an answer stops the build with that reason.
    pub should_stop: &'b (dyn Fn() -> Option<String> + Sync),
    /// Called when a phase ends.
    pub on_phase: &'b (dyn Fn(&BuildPhase) + Sync),
}

/// A phase of a build that has ended.
#[derive(Clone, Debug)]
pub enum BuildPhase {
    Registered {
        indexes: Vec<Arc<Index>>,
    },
    Scanned {
        documents: u64,
        keys: u64,
        seconds: f64,
    },
    Checked {
        seconds: f64,
    },
    Ready {
        seconds: f64,
    },
}
