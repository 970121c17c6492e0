//! The state of the server: graphs, running and slow operations, log.

mod graphs;
mod log;
mod log_line;
mod operations;
mod profile;
mod slow;

use maud::{Markup, html};

use crate::request::Request;
use crate::response::Response;
use crate::route::{Route, Section};
use crate::shell::{Frame, page};
use crate::texts::state as texts;

/// The section of the state.
pub const SECTION: Section = Section {
    name: texts::NAME,
    path: PATH,
    routes: &[
        Route::get(PATH, graphs::show),
        Route::get("/state/series", graphs::series),
        Route::live("/state/live", graphs::LIVE),
        Route::get(OPERATIONS, operations::show),
        Route::live("/state/operations/live", operations::LIVE),
        Route::post("/state/operations/kill", operations::kill),
        Route::get(SLOW, slow::show),
        Route::post("/state/slow/profile", profile::set),
        Route::get(LOG, log::show),
        Route::live("/state/log/live", log::LIVE),
    ],
};

const PATH: &str = "/state";
const OPERATIONS: &str = "/state/operations";
const SLOW: &str = "/state/slow";
const LOG: &str = "/state/log";

/// The tabs, in their order.
const TABS: [(&str, &str); 4] = [
    (texts::GRAPHS, PATH),
    (texts::OPERATIONS, OPERATIONS),
    (texts::SLOW, SLOW),
    (texts::LOG, LOG),
];

/// Returns a page of the section: its tabs and the content.
fn part_page(
    request: &Request,
    path: &str,
    scripts: &'static [&'static str],
    content: &Markup,
) -> Response {
    let title = TABS.iter().find(|(_, known)| *known == path);
    let frame = Frame {
        title: title.map_or(texts::TITLE, |(name, _)| name),
        section: PATH,
        scripts,
        styles: &["data.css", "state.css", "uplot.css"],
    };
    let content = html! {
        h1 { (texts::TITLE) }
        nav .tabs aria-label=(texts::TABS) {
            @for (name, address) in TABS {
                a href=(address) aria-current=[(address == path).then_some("page")] { (name) }
            }
        }
        (content)
    };
    page(request, frame, &content)
}
