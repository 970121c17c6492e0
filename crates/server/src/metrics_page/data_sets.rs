//! The metrics of the data sets of a server.

use std::sync::Arc;

use windrow_collection::Statistics;

use super::exposition::{Kind, Page};
use super::store::request_kinds;
use crate::state::State;

/// A data set that is open.
struct OpenSet {
    name: String,
    statistics: Statistics,
}

/// Adds the metrics of the data sets, if there are several.
pub fn add(page: &mut Page, state: &State) {
    let Some(router) = &state.router else {
        return;
    };
    let sets = router
        .members()
        .into_iter()
        .filter_map(|member: Arc<State>| {
            Some(OpenSet {
                name: member.data_set.as_ref()?.name().to_owned(),
                statistics: member.services.engine.statistics(),
            })
        });
    let sets: Vec<OpenSet> = sets.collect();
    let help = "Whether this server is the primary of a data set.";
    page.family("windrow_data_set_primary", Kind::Gauge, help);
    for OpenSet { name, statistics } in &sets {
        let store = statistics.store.as_ref();
        let is_primary = store.is_some_and(|store| store.uploaded.is_some());
        page.sample(&[("set", name)], u8::from(is_primary));
    }
    let help = "Records of the log of a data set that are not in the object store yet.";
    page.family("windrow_data_set_upload_waiting_records", Kind::Gauge, help);
    for OpenSet { name, statistics } in &sets {
        let uploaded = statistics.store.as_ref().and_then(|store| store.uploaded);
        if let Some(uploaded) = uploaded {
            let waiting = statistics.written.0.saturating_sub(uploaded.0);
            page.sample(&[("set", name)], waiting);
        }
    }
    let help = "How old the newest record of a data set was when this follower applied it.";
    page.family("windrow_data_set_follow_delay_seconds", Kind::Gauge, help);
    for OpenSet { name, statistics } in &sets {
        if let Some(delay) = statistics.store.as_ref().and_then(|store| store.delay) {
            page.sample(&[("set", name)], delay.as_secs_f64());
        }
    }
    requests(page, &sets);
}

fn requests(page: &mut Page, sets: &[OpenSet]) {
    let help = "Requests to the object store for a data set, by what they do.";
    page.family("windrow_data_set_requests_total", Kind::Counter, help);
    for OpenSet { name, statistics } in sets {
        let Some(store) = &statistics.store else {
            continue;
        };
        for (kind, count) in request_kinds(&store.requests) {
            page.sample(&[("set", name), ("kind", kind)], count);
        }
    }
}
