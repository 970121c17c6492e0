//! Databases, collections and documents.

mod csv;
mod documents;
mod edit;
mod find_form;
mod import;
mod insert;
mod list;
mod schema;
mod schema_sample;
mod transfer;

use crate::collection_frame::PATH;
use crate::route::{Route, Section};
use crate::texts::collections as texts;

/// Collections.
pub const SECTION: Section = Section {
    name: texts::NAME,
    path: PATH,
    routes: &[
        Route::get(PATH, list::show),
        Route::post("/collections/create", list::create),
        Route::post("/collections/{database}/drop", list::drop_database),
        Route::get("/collections/{database}/{collection}", documents::show),
        Route::post(
            "/collections/{database}/{collection}/drop",
            list::drop_collection,
        ),
        Route::get(
            "/collections/{database}/{collection}/insert",
            edit::insert_form,
        ),
        Route::post("/collections/{database}/{collection}/insert", edit::insert)
            .with_body(EDIT_BYTES_MAX),
        Route::get("/collections/{database}/{collection}/document", edit::show),
        Route::post("/collections/{database}/{collection}/document", edit::save)
            .with_body(EDIT_BYTES_MAX),
        Route::post("/collections/{database}/{collection}/delete", edit::delete),
        Route::get("/collections/{database}/{collection}/schema", schema::show),
        Route::get(
            "/collections/{database}/{collection}/transfer",
            transfer::show,
        ),
        Route::get(
            "/collections/{database}/{collection}/export",
            transfer::export,
        ),
        Route::post(
            "/collections/{database}/{collection}/import",
            import::import_text,
        )
        .with_body(EDIT_BYTES_MAX),
        Route::receive(
            "/collections/{database}/{collection}/import/file",
            import::import_file,
        ),
        Route::get(
            "/collections/{database}/{collection}/import/progress",
            import::show_progress,
        ),
        Route::post(
            "/collections/{database}/{collection}/import/cancel",
            import::cancel,
        ),
    ],
};

/// The maximum size of an edit form: a document in URL encoding, with its previous version.
const EDIT_BYTES_MAX: usize = 16 << 20;
