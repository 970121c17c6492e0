//! Pages about indexed folders: contents, runs, failures and configuration.
//!
//! - `counts`: queries of what is stored; `run`: runs and their stages
//! - `frame`: shared parts of the pages; `overview`, `failures`, `configuration`: the pages

mod configuration;
mod counts;
mod failures;
mod frame;
mod overview;
mod run;

use crate::route::{EventStream, Route, Section};
use crate::texts::folders as texts;

/// The folders.
pub const SECTION: Section = Section {
    name: texts::NAME,
    path: frame::PATH,
    routes: &[
        Route::get(frame::PATH, overview::show),
        Route::live(
            overview::LIVE_PATH,
            EventStream {
                interval: overview::INTERVAL,
                start: overview::start_polling,
            },
        ),
        Route::post(frame::RUN_PATH, overview::start_run),
        Route::post(frame::STOP_PATH, overview::stop_run),
        Route::get(failures::PATH, failures::show),
        Route::get(configuration::PATH, configuration::show),
        Route::post(configuration::PATH, configuration::save),
    ],
};
