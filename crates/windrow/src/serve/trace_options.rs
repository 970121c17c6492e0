//! The options of traces.

use windrow_web::CollectorAddress;

/// The destination of traces, and the selection of traced commands.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceOptions {
    pub endpoint: Option<CollectorAddress>,
    pub sample_rate: f64,
}
