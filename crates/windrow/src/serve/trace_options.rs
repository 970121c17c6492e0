//! The options of traces.

use windrow_web::CollectorAddress;

/// Where traces go, and which commands are traced.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceOptions {
    pub endpoint: Option<CollectorAddress>,
    pub sample_rate: f64,
}
