//! Spans as requests of the OpenTelemetry protocol, in its JSON encoding
//! (<https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>): ids are hexadecimal,
//! 64-bit numbers are strings.

use windrow_document::{DocumentBuf, Value, doc};

use super::{Span, SpanValue};
use crate::machine;

/// The kind of spans of a server.
const KIND_SERVER: i32 = 2;
/// The status of failed spans.
const STATUS_ERROR: i32 = 2;

/// Returns the request with these spans.
pub fn request(spans: &[Span]) -> DocumentBuf {
    let text = |text: &str| SpanValue::Text(text.to_owned());
    let resource = [
        ("service.name", text("windrow")),
        ("service.version", text(env!("CARGO_PKG_VERSION"))),
        ("host.name", text(&machine::hostname())),
        (
            "process.pid",
            SpanValue::Number(i64::from(std::process::id())),
        ),
    ];
    let resource: Vec<Value> = resource.iter().map(attribute).collect();
    let spans: Vec<Value> = spans
        .iter()
        .map(|span| span_document(span).into())
        .collect();
    let scope = doc! { "scope": { "name": "windrow" }, "spans": spans };
    let of_resource = doc! {
        "resource": { "attributes": resource }, "scopeSpans": (vec![Value::from(scope)]),
    };
    doc! { "resourceSpans": (vec![Value::from(of_resource)]) }
}

fn span_document(span: &Span) -> DocumentBuf {
    let mut document = doc! {
        "traceId": (format!("{:032x}", span.trace_id)), "spanId": (format!("{:016x}", span.span_id)),
    };
    if let Some(parent) = span.parent_id {
        document.push("parentSpanId", format!("{parent:016x}"));
    }
    let attributes: Vec<Value> = span.attributes.iter().map(attribute).collect();
    let rest = doc! {
        "name": (span.name.as_str()), "kind": KIND_SERVER,
        "startTimeUnixNano": (span.started_nanos.to_string()),
        "endTimeUnixNano": (span.ended_nanos.to_string()), "attributes": attributes,
    };
    rest.iter()
        .for_each(|(name, value)| document.push(name, value));
    if span.is_failed {
        document.push("status", doc! { "code": STATUS_ERROR });
    }
    document
}

fn attribute((key, value): &(&'static str, SpanValue)) -> Value {
    let value = match value {
        SpanValue::Text(text) => doc! { "stringValue": (text.as_str()) },
        SpanValue::Number(number) => doc! { "intValue": (number.to_string()) },
    };
    doc! { "key": (*key), "value": value }.into()
}
