//! `$collStats`: what is known of one collection, in one document.

use std::time::SystemTime;

use windrow_collection::{Collection, Namespace};
use windrow_document::{DocumentBuf, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode};

use super::given::Describe;
use super::options::{self, object};
use crate::arguments::Arguments;
use crate::clock;
use crate::commands::coll_stats;
use crate::context::Context;
use crate::errors::refuse;
use crate::latency;
use crate::views;

/// What is asked for.
#[derive(Debug, Default, PartialEq)]
struct Wanted {
    /// Whether with histograms.
    latencies: Option<bool>,
    /// By what sizes are divided.
    storage: Option<u64>,
    count: bool,
    scans: bool,
}

impl Wanted {
    /// All is checked before anything is looked at. An option that is null is not given. Errors: 40166
    /// for what is no document, 14 and 40415 for wrong options, 31170 for options within those that
    /// take none.
    fn parse(wanted: ValueRef<'_>) -> Result<Wanted, CommandError> {
        let Some(options) = wanted.as_document() else {
            return refuse(40166, "$collStats must take a nested object");
        };
        let known = ["latencyStats", "storageStats", "count", "queryExecStats"];
        Arguments::within("$collStats", options).only(&known)?;
        let mut wanted = Wanted::default();
        for (name, value) in options.iter().filter(|(_, value)| !value.is_nullish()) {
            let path = format!("$collStats.{name}");
            match name {
                "latencyStats" => wanted.latencies = Some(histograms(&path, value)?),
                "storageStats" => {
                    let options = Arguments::within(&path, object(&path, value)?);
                    wanted.storage = Some(coll_stats::scale(&options)?);
                }
                _ => {
                    check_empty(&path, value)?;
                    wanted.count |= name == "count";
                    wanted.scans |= name == "queryExecStats";
                }
            }
        }
        Ok(wanted)
    }

    fn needs_collection(&self) -> bool {
        self.storage.is_some() || self.count || self.scans
    }
}

fn histograms(path: &str, value: ValueRef<'_>) -> Result<bool, CommandError> {
    let options = options::parse(path, value, &["histograms"])?;
    Ok(options.given_bool("histograms")?.unwrap_or(false))
}

fn check_empty(path: &str, value: ValueRef<'_>) -> Result<(), CommandError> {
    match object(path, value)?.is_empty() {
        true => Ok(()),
        false => refuse(31_170, format!("{path} takes an empty object")),
    }
}

/// Errors besides those of the options: 166 of views, and when it runs 26 and 40481 where there is no
/// collection.
pub fn describe<'c>(
    context: &'c Context<'_>,
    namespace: &'c Namespace,
    wanted: ValueRef<'_>,
) -> Result<Describe<'c>, CommandError> {
    let wanted = Wanted::parse(wanted)?;
    if wanted.needs_collection() {
        views::refuse(context, namespace)?;
    }
    Ok(Box::new(move || {
        Ok(vec![collect(context, namespace, &wanted)?])
    }))
}

fn collect(
    context: &Context<'_>,
    namespace: &Namespace,
    wanted: &Wanted,
) -> Result<DocumentBuf, CommandError> {
    let mut stats = doc! {
        "ns": (namespace.to_string()), "host": (&context.state.host),
        "localTime": (clock::date(SystemTime::now())),
    };
    if let Some(histograms) = wanted.latencies {
        let latencies = context.state.usage.latencies(&namespace.to_string());
        stats.push("latencyStats", latency::describe(&latencies, histograms));
    }
    if wanted.needs_collection() {
        match context.state.services.engine.collection(namespace) {
            Some(collection) => add(wanted, &collection, &mut stats),
            None => return missing(wanted, namespace),
        }
    }
    Ok(stats)
}

fn add(wanted: &Wanted, collection: &Collection, stats: &mut DocumentBuf) {
    if let Some(scale) = wanted.storage {
        stats.push("storageStats", coll_stats::describe(collection, scale));
    }
    if wanted.count {
        stats.push("count", coll_stats::size(collection.count()));
    }
    if wanted.scans {
        let scans = collection.scans();
        let counted = doc! {
            "total": (scans.all() as i64), "nonTailable": (scans.not_tailable() as i64),
        };
        stats.push("queryExecStats", doc! { "collectionScans": counted });
    }
}

fn missing<T>(wanted: &Wanted, namespace: &Namespace) -> Result<T, CommandError> {
    let (code, what) = match wanted {
        Wanted {
            storage: Some(_), ..
        } => (ErrorCode::NamespaceNotFound.number(), "storageStats"),
        Wanted { count: true, .. } => (40481, "count"),
        _ => (ErrorCode::NamespaceNotFound.number(), "queryExecStats"),
    };
    refuse(
        code,
        format!("Unable to retrieve {what}: {namespace} does not exist"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::Value;

    #[test]
    fn options_are_checked_as_mongodb_does() {
        let check = |wanted: Value, expected: Result<Wanted, i32>| {
            let found = Wanted::parse(wanted.as_ref()).map_err(|error| error.code.number());
            assert_eq!(found, expected, "{wanted}");
        };
        let all = Wanted {
            latencies: Some(true),
            storage: Some(1024),
            count: true,
            scans: true,
        };
        check(
            doc! {
                "latencyStats": { "histograms": true }, "storageStats": { "scale": 1024, "x": 1 },
                "count": {}, "queryExecStats": {},
            }
            .into(),
            Ok(all),
        );
        check(
            doc! { "count": null, "storageStats": null }.into(),
            Ok(Wanted::default()),
        );
        check(Value::Null, Err(40166));
        check(doc! { "Count": {} }.into(), Err(40415));
        check(doc! { "count": 1 }.into(), Err(14));
        check(doc! { "count": { "x": 1 } }.into(), Err(31_170));
        check(doc! { "queryExecStats": { "x": 1 } }.into(), Err(31_170));
        check(doc! { "latencyStats": true }.into(), Err(14));
        check(doc! { "latencyStats": { "x": 1 } }.into(), Err(40415));
        check(
            doc! { "latencyStats": { "histograms": null } }.into(),
            Err(14),
        );
        check(doc! { "storageStats": [] }.into(), Err(14));
    }
}
