//! What the pages about folders share: their frame, and the form that starts a run.

use maud::{Markup, html};

use crate::request::Request;
use crate::shell::{Frame, form_token};
use crate::texts::folders as texts;

/// The path of the page.
pub const PATH: &str = "/folders";
/// The path of a form that starts a run.
pub const RUN_PATH: &str = "/folders/run";
/// The frame of the pages about folders.
pub const FRAME: Frame<'static> = Frame {
    title: texts::TITLE,
    section: PATH,
    scripts: &[],
    styles: &["folders.css"],
};

/// A form that starts a run, if the person can.
pub fn run_form(request: &Request, retries: bool, label: &str) -> Markup {
    let can_run = request.can_write() && request.is_owner();
    html! {
        @if can_run && request.site().services.folders.is_some() {
            form method="post" action=(RUN_PATH) {
                (form_token(request))
                @if retries { input type="hidden" name="retries" value="1"; }
                button type="submit" { (label) }
            }
        }
    }
}
