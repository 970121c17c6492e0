//! The metrics of a database in an object store.

use windrow_collection::{ShareCounts, Statistics, StoreCache, StoreRequests, StoreStatistics};

use super::exposition::{Kind, Page};
use crate::replica_set::{MemberLag, member_lags};
use crate::state::State;

/// Adds the metrics of the object store, if the database is in one.
pub fn add(page: &mut Page, state: &State, statistics: &Statistics) {
    let Some(store) = &statistics.store else {
        return;
    };
    requests(page, &store.requests);
    cache(page, &store.cache);
    log(page, statistics, store);
    members(page, state);
    shares(page, &statistics.shares);
}

fn requests(page: &mut Page, requests: &StoreRequests) {
    let help = "Requests to the object store, by what they do.";
    page.family("windrow_store_requests_total", Kind::Counter, help);
    for (kind, count) in request_kinds(requests) {
        page.sample(&[("kind", kind)], count);
    }
    let help = "Requests to the object store that failed.";
    let name = "windrow_store_requests_failed_total";
    page.value(name, Kind::Counter, help, requests.failed);
    let help = "Bytes of objects that were written to and read from the object store.";
    page.family("windrow_store_bytes_total", Kind::Counter, help);
    page.sample(&[("direction", "out")], requests.bytes_written);
    page.sample(&[("direction", "in")], requests.bytes_read);
}

/// Returns the numbers of requests to the object store, by what they do.
pub fn request_kinds(requests: &StoreRequests) -> [(&'static str, u64); 4] {
    [
        ("write", requests.writes),
        ("read", requests.reads),
        ("list", requests.lists),
        ("delete", requests.deletes),
    ]
}

fn cache(page: &mut Page, cache: &StoreCache) {
    let help = "The size of runs and parts of runs on the local disk.";
    page.value("windrow_store_cache_bytes", Kind::Gauge, help, cache.bytes);
    let help = "The largest size of runs and parts of runs on the local disk.";
    let name = "windrow_store_cache_limit_bytes";
    page.value(name, Kind::Gauge, help, cache.bytes_max);
    let help = "Reads of runs that are not on the local disk as a whole, by whether the part was.";
    page.family("windrow_store_cache_reads_total", Kind::Counter, help);
    page.sample(&[("result", "hit")], cache.hits);
    page.sample(&[("result", "miss")], cache.misses);
}

fn log(page: &mut Page, statistics: &Statistics, store: &StoreStatistics) {
    let help = "Whether this server is the primary.";
    let is_primary = u8::from(store.uploaded.is_some());
    page.value("windrow_store_primary", Kind::Gauge, help, is_primary);
    if let Some(uploaded) = store.uploaded {
        let help = "Records of the log that are not in the object store yet.";
        let waiting = statistics.written.0.saturating_sub(uploaded.0);
        let name = "windrow_store_upload_waiting_records";
        page.value(name, Kind::Gauge, help, waiting);
    }
    if let Some(delay) = store.delay {
        let help = "How old the newest record was when this follower applied it.";
        let name = "windrow_store_follow_delay_seconds";
        page.value(name, Kind::Gauge, help, delay.as_secs_f64());
    }
}

fn members(page: &mut Page, state: &State) {
    let help = "How far a server was behind this one when it announced itself last.";
    page.family("windrow_store_member_lag_seconds", Kind::Gauge, help);
    for MemberLag { address, seconds } in member_lags(&state.services.engine) {
        page.sample(&[("member", &address)], seconds);
    }
}

fn shares(page: &mut Page, shares: &ShareCounts) {
    let help = "Followers that offer to build shares of indexes.";
    let name = "windrow_index_build_builders";
    page.value(name, Kind::Gauge, help, shares.builders);
    let help = "Shares of index builds, by what became of them.";
    page.family("windrow_index_build_shares_total", Kind::Counter, help);
    page.sample(&[("outcome", "given")], shares.given);
    page.sample(&[("outcome", "adopted")], shares.adopted);
    page.sample(&[("outcome", "taken_back")], shares.taken_back);
    page.sample(&[("outcome", "built")], shares.built);
}
