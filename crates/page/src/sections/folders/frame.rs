//! What the pages about folders share: their frame, and the form that starts a run.

use maud::{Markup, html};

use crate::request::Request;
use crate::shell::{Frame, form_token};
use crate::texts::folders as texts;

/// The path of the page.
pub const PATH: &str = "/folders";
/// The path of a form that starts a run.
pub const RUN_PATH: &str = "/folders/run";
/// The path of a form that ends a run.
pub const STOP_PATH: &str = "/folders/stop";
/// The frame of the pages about folders.
pub const FRAME: Frame<'static> = Frame {
    title: texts::TITLE,
    section: PATH,
    scripts: &["folders.js"],
    styles: &["folders.css"],
};

/// A form that starts a run, if the person can.
pub fn run_form(request: &Request, retries: bool, label: &str, is_running: bool) -> Markup {
    let can_run = request.can_write() && request.is_owner();
    html! {
        @if can_run && request.site().services.folders.is_some() {
            form .start-run method="post" action=(RUN_PATH) hidden[is_running] {
                (form_token(request))
                @if retries { input type="hidden" name="retries" value="1"; }
                button type="submit" { (label) }
            }
        }
    }
}

/// The button that ends the run that a person has started. A script shows it while a run goes on.
pub fn stop_form(request: &Request, is_running: bool) -> Markup {
    let can_run = request.can_write() && request.is_owner();
    html! {
        @if can_run && request.site().services.folders.is_some() {
            form #stop-run method="post" action=(STOP_PATH) hidden[!is_running] {
                (form_token(request))
                button type="submit" { (texts::STOP) }
            }
        }
    }
}
