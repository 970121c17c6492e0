//! What the drops of indexes and of search indexes share.

use maud::{Markup, html};
use windrow_document::DocumentBuf;

use crate::error::PageError;
use crate::namespace::Namespace;
use crate::request::Request;
use crate::response::Response;
use crate::shell::form_token;
use crate::texts::indexes as texts;

/// The button that drops an index.
pub struct DropForm<'n> {
    /// The address that the form is sent to.
    pub address: String,
    /// The name of the index.
    pub name: &'n str,
    /// The question before the drop.
    pub question: String,
    /// The button for people who do not see which row it is in.
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

/// Runs the command that drops an index, and leads back to the indexes.
///
/// # Errors
/// Fails if the database does.
pub fn run_drop(
    request: &Request,
    namespace: &Namespace,
    command: DocumentBuf,
) -> Result<Response, PageError> {
    request.database()?.run(command)?;
    let address = namespace.page_address("indexes");
    Ok(Response::redirect(&format!("{address}?done=dropped")))
}
