//! Shared parts of the pages about folders: the frame, and the forms that start and stop a run.

use maud::{Markup, html};

use crate::request::Request;
use crate::shell::{Frame, form_token};
use crate::texts::folders as texts;

/// The path of the overview.
pub const PATH: &str = "/folders";
/// The path of the form that starts a run.
pub const RUN_PATH: &str = "/folders/run";
/// The path of the form that stops a run.
pub const STOP_PATH: &str = "/folders/stop";
/// The frame of the pages about folders.
pub const FRAME: Frame<'static> = Frame {
    title: texts::TITLE,
    section: PATH,
    scripts: &["folders.js"],
    styles: &["folders.css"],
};

/// A form that starts a run.
#[derive(Clone, Copy, Debug)]
pub struct RunForm {
    /// The run also retries unchanged files that failed before.
    pub retries: bool,
    /// The label of the button.
    pub label: &'static str,
    /// The form is hidden until a script shows it at the end of the active run.
    pub is_hidden: bool,
}

/// Shows the form that starts a run. Empty if the user may not start one.
pub fn run_form(request: &Request, form: RunForm) -> Markup {
    let can_run = request.can_write() && request.is_owner();
    html! {
        @if can_run && request.site().services.folders.is_some() {
            form .start-run method="post" action=(RUN_PATH) hidden[form.is_hidden] {
                (form_token(request))
                @if form.retries { input type="hidden" name="retries" value="1"; }
                button type="submit" { (form.label) }
            }
        }
    }
}

/// Shows the button that stops a run. A script reveals it while a run is active.
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
