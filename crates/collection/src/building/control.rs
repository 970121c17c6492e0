//! The callbacks by which the caller observes a build, and its interrupt.

use std::sync::Arc;

use windrow_interrupt::Interrupt;

use crate::index::Index;

/// The callbacks by which the caller observes a build, and its interrupt.
pub struct BuildControl<'b> {
    /// Stops the build. All threads of the build check it.
    pub interrupt: &'b (dyn Interrupt + Sync),
    /// Called at the end of each phase.
    pub on_phase: &'b (dyn Fn(&BuildPhase) + Sync),
}

/// A completed phase of a build.
#[derive(Clone, Debug)]
pub enum BuildPhase {
    /// The indexes are registered.
    Registered {
        /// Those that the build creates.
        indexes: Vec<Arc<Index>>,
    },
    /// All documents are read and the sections are written.
    Scanned {
        /// The number of documents.
        documents: u64,
        /// The number of keys.
        keys: u64,
        /// The duration of the phase.
        seconds: f64,
    },
    /// Unique indexes are checked.
    Checked {
        /// The duration of the phase.
        seconds: f64,
    },
    /// The indexes are ready.
    Ready {
        /// The duration of the whole build.
        seconds: f64,
    },
}
