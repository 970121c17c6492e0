//! The sections of the page, and the table of all routes.

mod api;
mod collections;
mod folders;
mod home;
mod indexes;
mod queries;
mod search;
mod state;

use crate::login;
use crate::route::{Route, Section};
use crate::site::NavigationEntry;

/// The sections, in the order of the navigation.
const SECTIONS: &[&Section] = &[
    &search::SECTION,
    &folders::SECTION,
    &home::SECTION,
    &collections::SECTION,
    &indexes::SECTION,
    &queries::SECTION,
    &state::SECTION,
];

/// Returns the entries of the navigation.
pub fn navigation() -> Vec<NavigationEntry> {
    let entries = SECTIONS.iter().map(|section| NavigationEntry {
        name: section.name,
        path: section.path,
    });
    entries.collect()
}

/// Returns all routes.
pub fn routes() -> impl Iterator<Item = &'static Route> {
    let sections = SECTIONS.iter().flat_map(|section| section.routes);
    sections.chain(login::ROUTES).chain(api::ROUTES)
}
