//! The frame of the pages of a collection: its name and its tabs.

use maud::{Markup, html};

use crate::namespace::Namespace;
use crate::request::Request;
use crate::response::Response;
use crate::shell::{Frame, page};
use crate::texts::collections as texts;

/// The address of the list of all collections.
pub const PATH: &str = "/collections";

/// The tabs of a collection: names and addresses.
const PARTS: [(&str, &str); 6] = [
    (texts::DOCUMENTS, ""),
    (texts::SCHEMA, "schema"),
    (texts::INDEXES, "indexes"),
    (texts::PIPELINE, "pipeline"),
    (texts::EXPLAIN, "explain"),
    (texts::TRANSFER, "transfer"),
];

/// Returns a page of a collection.
pub fn collection_page(
    request: &Request,
    namespace: &Namespace,
    part: &str,
    scripts: &'static [&'static str],
    content: &Markup,
) -> Response {
    let title = namespace.to_string();
    let frame = Frame {
        title: &title,
        section: PATH,
        scripts,
        styles: &["data.css"],
    };
    let content = html! {
        nav .crumbs aria-label=(texts::PATH) {
            a href=(PATH) { (texts::NAME) }
            span aria-hidden="true" { "/" }
            bdi { (namespace.database) }
        }
        h1 { bdi { (namespace.collection) } }
        nav .tabs aria-label=(texts::PARTS) {
            @for (name, address) in PARTS {
                a href=(namespace.page_address(address)) aria-current=[(address == part).then_some("page")] { (name) }
            }
        }
        (content)
    };
    page(request, frame, &content)
}

/// A message about the result of an action or about an error.
pub fn notice(class: &str, message: &str) -> Markup {
    let role = if class == "error" { "alert" } else { "status" };
    html! { p class=(format!("notice {class}")) role=(role) { (message) } }
}

/// An input field for a document.
pub fn document_field(name: &str, title: &str, example: &str, value: &str) -> Markup {
    html! {
        div .field .grow {
            label for=(name) { (title) }
            input .code #(name) name=(name) value=(value) placeholder=(example)
                spellcheck="false" autocapitalize="off" autocomplete="off";
        }
    }
}
