//! The page with the folder configuration. Only the operating system user of the server can read
//! and change it, because it determines which files are read and which programs run.

use hyper::StatusCode;
use maud::{Markup, html};

use super::frame::{FRAME, PATH as OVERVIEW_PATH};
use crate::error::PageError;
use crate::request::Request;
use crate::response::Response;
use crate::shell::{Frame, form_token, page};
use crate::texts::folders as texts;

/// The path of the page.
pub const PATH: &str = "/folders/configuration";

/// Shows the link to the page.
pub fn link(request: &Request) -> Markup {
    html! {
        @if request.site().services.folders.is_some() {
            p .section-link { a href=(PATH) { (texts::CONFIGURATION) } }
        }
    }
}

/// Shows the configuration.
///
/// # Errors
/// Fails if the browser belongs to another user, or if the file cannot be read.
pub fn show(request: &Request) -> Result<Response, PageError> {
    let services = request.owner_services()?;
    let text = (services.read_config)().map_err(PageError::bad_request)?;
    Ok(config_page(request, &text, &html! {}))
}

/// Checks a configuration, and saves it if it is valid.
///
/// # Errors
/// Fails if the browser belongs to another user.
pub fn save(request: &Request) -> Result<Response, PageError> {
    let services = request.owner_services()?;
    let text = request.form().text("text").replace("\r\n", "\n");
    let is_saved = request.form().get("save").is_some();
    let checked = (services.check_config)(&text).and_then(|warnings| {
        if is_saved {
            (services.write_config)(&text)?;
        }
        Ok(warnings)
    });
    let (status, note) = match checked {
        Ok(warnings) => (
            StatusCode::OK,
            html! {
                p .notice .good role="status" { (if is_saved { texts::SAVED } else { texts::VALID }) }
                @for warning in warnings { p .notice .warning { (warning) } }
            },
        ),
        Err(error) => (
            StatusCode::UNPROCESSABLE_ENTITY,
            html! {
                div .notice .error role="alert" { pre { (error) } }
            },
        ),
    };
    Ok(config_page(request, &text, &note).with_status(status))
}

fn config_page(request: &Request, text: &str, note: &Markup) -> Response {
    let services = request.site().services.folders.as_ref();
    let path = services.and_then(|services| services.config_path.as_deref());
    let content = html! {
        p .back { a href=(OVERVIEW_PATH) { "← " (texts::TITLE) } }
        h1 { (texts::CONFIGURATION) }
        p .muted { (texts::CONFIGURATION_LEAD) @if let Some(path) = path { " " code { (path) } } }
        (note)
        form .stack method="post" action=(PATH) {
            (form_token(request))
            label .visually-hidden for="text" { (texts::EDIT) }
            textarea #text name="text" rows="24" spellcheck="false" placeholder=(texts::EXAMPLE) readonly[!request.can_write()] { (text) }
            @if request.can_write() {
                p .row {
                    button .primary type="submit" name="save" value="1" { (texts::SAVE) }
                    button type="submit" { (texts::CHECK) }
                }
            }
        }
    };
    let frame = Frame {
        title: texts::CONFIGURATION,
        ..FRAME
    };
    page(request, frame, &content)
}
