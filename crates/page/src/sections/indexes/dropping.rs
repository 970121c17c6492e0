//! Shared parts of dropping indexes and search indexes.

use maud::{Markup, html};
use windrow_document::DocumentBuf;

use crate::error::PageError;
use crate::namespace::Namespace;
use crate::request::Request;
use crate::response::Response;
use crate::shell::form_token;
use crate::texts::indexes as texts;

/// The form that drops an index.
pub struct DropForm<'n> {
    /// The address to which the form is sent.
    pub address: String,
    /// The name of the index.
    pub name: &'n str,
    /// The question that asks for confirmation.
    pub question: String,
    /// The accessible name of the button, which includes the name of the index.
    pub label: String,
}

impl DropForm<'_> {
    /// Returns the form.
    pub fn markup(&self, request: &Request) -> Markup {
        html! {
            form method="post" action=(self.address) data-confirm=(self.question) {
                (form_token(request))
                input type="hidden" name="name" value=(self.name);
                button .danger type="submit" aria-label=(self.label) { (texts::DROP) }
            }
        }
    }
}

/// Runs the command that drops an index, and redirects to the list of indexes.
///
/// # Errors
/// Fails if the database fails.
pub fn run_drop(
    request: &Request,
    namespace: &Namespace,
    command: DocumentBuf,
) -> Result<Response, PageError> {
    request.database()?.run(command)?;
    let address = namespace.page_address("indexes");
    Ok(Response::redirect(&format!("{address}?done=dropped")))
}
