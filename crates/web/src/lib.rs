//! HTTP for operators of a server: the page of metrics that Prometheus reads, and traces for a
//! collector of OpenTelemetry.
//!
//! Not here: what the metrics and the traces are. The caller passes a function that returns the
//! page, and the content of requests.
//!
//! - [`MetricsServer`] listens on an address of its own, on a thread of its own.
//! - [`Collector`] sends traces.
//! - [`host`] checks which host a request names.
//!
//! ```
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//! use windrow_web::{MetricsOptions, MetricsServer};
//!
//! let options = MetricsOptions { listen: "127.0.0.1:0".parse().unwrap(), token: None };
//! let server = MetricsServer::start(options, || "up 1\n".to_owned())?;
//! let mut stream = TcpStream::connect(server.address())?;
//! stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
//! let mut answer = String::new();
//! stream.read_to_string(&mut answer)?;
//! assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("up 1\n"));
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

mod collector;
pub mod host;
mod metrics;

pub use collector::{Collector, CollectorAddress, CollectorError};
pub use metrics::{MetricsOptions, MetricsServer};
