//! The search of indexed files.
//!
//! - `address`: the parameters of a search; `prepared_search`, `source`: runs it
//! - `results`; `facets` with `facet_value`, `folder_tree` and `histogram`: the results page
//! - `document`, `preview` with `marked_text`, `syntax` and `formatted`: a single document
//! - `file`: downloads; `completion`: completions of queries

mod address;
mod completion;
mod document;
mod facet_value;
mod facets;
mod file;
mod folder_tree;
mod formatted;
mod histogram;
mod marked_text;
mod prepared_search;
mod preview;
mod results;
mod source;
mod syntax;

use hyper::StatusCode;
use maud::{Markup, html};

use crate::assets::asset_address;
use crate::error::PageError;
use crate::request::Request;
use crate::response::Response;
use crate::route::{Route, Section};
use crate::shell::{Frame, REST, page, page_in_parts};
use crate::show::{grouped, sentence, visible};
use crate::texts::search as texts;
pub use address::SearchAddress;
use address::{DOCUMENT_PATH, FACETS_PATH, ORDERS, PATH, RESULTS_PATH};
use completion::{COMPLETION_PATH, complete};
pub use document::StoredDocument;
pub use prepared_search::{QueryInput, Search};
pub use source::{DATABASE, IndexedFiles};

use facets::{Facets, show_facets};
use file::{FILE_PATH, send_file};
use preview::Preview;
use results::show_results;
use source::DOCUMENTS;

/// The section of the search.
pub const SECTION: Section = Section {
    name: texts::NAME,
    path: PATH,
    routes: &[
        Route::get(PATH, show),
        Route::get(RESULTS_PATH, results_part),
        Route::get(FACETS_PATH, facets_part),
        Route::get(DOCUMENT_PATH, show_document),
        Route::get(FILE_PATH, send_file),
        Route::get(COMPLETION_PATH, complete),
    ],
};

const FRAME: Frame<'static> = Frame {
    title: texts::TITLE,
    section: PATH,
    scripts: &["search.js"],
    styles: &["search.css"],
};

/// Returns `true` if files are indexed and the user may read them.
///
/// # Errors
/// Fails if the database fails.
pub fn has_files(request: &Request) -> Result<bool, PageError> {
    match request.database()?.has_collection(DATABASE, DOCUMENTS) {
        Err(error) if error.status == StatusCode::FORBIDDEN => Ok(false),
        found => found,
    }
}

/// Shows the results page. The search field is sent first, the results follow.
///
/// # Errors
/// Fails if the database fails. An invalid query is reported next to its field.
pub fn show(request: &Request) -> Result<Response, PageError> {
    let address = SearchAddress::new(request.query());
    if !has_files(request)? {
        return Ok(page(request, FRAME, &no_files()));
    }
    let title = match address.query() {
        "" => texts::TITLE,
        query => query,
    };
    let content = html! {
        h1 .visually-hidden { (texts::TITLE) }
        div .search data-search=(PATH) { (form(&address)) (REST) }
    };
    let again = request.clone();
    let rest = move || {
        let address = SearchAddress::new(again.query());
        found_part(&again, &address)
    };
    Ok(page_in_parts(
        request,
        Frame { title, ..FRAME },
        &content,
        rest,
    ))
}

/// Shows the results, or the error of the query.
fn found_part(request: &Request, address: &SearchAddress) -> Markup {
    let searched = request.database().and_then(|database| {
        let mut files = IndexedFiles::new(database);
        search(request, &mut files, address)
    });
    let (results, facets, problem) = match searched {
        Ok((results, facets)) => (results, facets, None),
        Err(error) => (html! {}, html! {}, Some(sentence(&error.message))),
    };
    html! {
        p #query-problem .query-problem role="alert" hidden[problem.is_none()] { (problem.unwrap_or_default()) }
        div .columns {
            details .facets-frame open {
                summary { (texts::FACETS) }
                aside #facets aria-label=(texts::FACETS) { (facets) }
            }
            section #results aria-label=(texts::RESULTS) { (results) }
            // The assets of previews are loaded after the results are shown.
            link rel="stylesheet" href=(asset_address("document.css"));
            aside #preview .preview aria-label=(texts::PREVIEW) hidden {
                button #preview-close .quiet type="button" aria-label=(texts::CLOSE) { "×" }
                div #preview-content {}
            }
        }
    }
}

fn search(
    request: &Request,
    files: &mut IndexedFiles,
    address: &SearchAddress,
) -> Result<(Markup, Markup), PageError> {
    let search = Search::prepare(request, files, address, QueryInput::Complete)?;
    let results = search.run(files, address)?;
    let facets = Facets::count(files, &search)?;
    let shown = show_results(&search, &results, Some(facets.total), address);
    Ok((shown, show_facets(&facets, address)))
}

/// Shows the search field. Its form keeps the other parameters of the address.
fn form(address: &SearchAddress) -> Markup {
    html! {
        form .query-form action=(PATH) method="get" role="search" {
            div .query-field {
                label .visually-hidden for="q" { (texts::FIELD) }
                input #q type="search" name="q" value=(address.query()) placeholder=(texts::PLACEHOLDER)
                    autocomplete="off" autocapitalize="none" spellcheck="false" enterkeyhint="search"
                    aria-describedby="query-problem" autofocus[address.query().is_empty()];
                ul #completions .completions role="listbox" aria-label=(texts::COMPLETIONS) hidden {}
            }
            div .query-options {
                label .visually-hidden for="sort" { (texts::ORDER) }
                select #sort name="sort" {
                    @for (name, shown) in ORDERS {
                        option value=(name) selected[address.order_name() == name] { (shown) }
                    }
                }
                @for (name, value) in address.hidden_parts() {
                    input type="hidden" name=(name) value=(value);
                }
                button .primary type="submit" { (texts::SUBMIT) }
                (help())
            }
        }
    }
}

/// Shows the help on the query language and on keyboard shortcuts.
fn help() -> Markup {
    html! {
        details .help {
            summary .button {
                span .long { (texts::HELP) }
                span .short aria-hidden="true" { (texts::HELP_SHORT) }
            }
            div .help-content {
                section {
                    h2 { (texts::LANGUAGE_OF_QUERIES) }
                    dl { @for (query, meaning) in texts::QUERY_HELP { div { dt { code { (query) } } dd { (meaning) } } } }
                }
                section {
                    h2 { (texts::KEYS) }
                    dl { @for (key, meaning) in texts::KEY_HELP { div { dt { kbd { (key) } } dd { (meaning) } } } }
                }
            }
        }
    }
}

fn no_files() -> Markup {
    html! {
        div .empty {
            h1 { (texts::NO_FILES) }
            p { (texts::HOW_TO_INDEX) }
            p { code { "windrow index ~/Documents --data DIR" } }
        }
    }
}

/// Returns the results alone, for a script that updates them while the user types.
fn results_part(request: &Request) -> Result<Response, PageError> {
    let address = SearchAddress::new(request.query());
    let mut files = IndexedFiles::new(request.database()?);
    let input = QueryInput::from_request(request);
    let search = match Search::prepare(request, &mut files, &address, input) {
        Ok(search) => search,
        // A query may be invalid while it is typed, so the status is 200.
        Err(error) if error.status.is_client_error() => {
            return Ok(Response::html(
                html! { p data-problem=(sentence(&error.message)) {} },
            ));
        }
        Err(error) => return Err(error),
    };
    let results = search.run(&mut files, &address)?;
    let shown = show_results(&search, &results, None, &address);
    Ok(Response::html(shown))
}

/// Returns the facets alone, with the total number of results.
fn facets_part(request: &Request) -> Result<Response, PageError> {
    let address = SearchAddress::new(request.query());
    let mut files = IndexedFiles::new(request.database()?);
    let input = QueryInput::from_request(request);
    let search = Search::prepare(request, &mut files, &address, input)?;
    let facets = Facets::count(&mut files, &search)?;
    let total = texts::documents(facets.total, &grouped(facets.total));
    Ok(Response::html(html! {
        div data-total=(total) hidden {}
        (show_facets(&facets, &address))
    }))
}

/// Shows a document: as a page, or as a fragment for the preview.
fn show_document(request: &Request) -> Result<Response, PageError> {
    let address = SearchAddress::new(request.query());
    let mut files = IndexedFiles::new(request.database()?);
    let document = StoredDocument::read(&mut files, request.query().text("id"))?;
    let document = document.ok_or_else(|| PageError::not_found(texts::NOT_INDEXED))?;
    let preview = Preview {
        request,
        document: &document,
        address: &address,
        is_plain: request.query().get("plain").is_some(),
    };
    let content = preview.show(&mut files)?;
    if request.wants_part() {
        return Ok(Response::html(content));
    }
    let title = visible(document.shown_name());
    let frame = Frame {
        title: &title,
        scripts: &["document.js"],
        styles: &["document.css"],
        ..FRAME
    };
    let back = address.at(PATH);
    Ok(page(
        request,
        frame,
        &html! {
            p { a href=(back) { "← " (texts::BACK) } }
            h1 .visually-hidden { (title) }
            div .panel { (content) }
        },
    ))
}
