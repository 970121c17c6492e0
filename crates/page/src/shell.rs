//! The frame of all pages: head, navigation and content.

use std::io::Write as _;

use hyper::StatusCode;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::assets::asset_address;
use crate::error::PageError;
use crate::request::Request;
use crate::response::Response;
use crate::texts;

/// The properties of a page besides its content.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frame<'f> {
    /// The title of the browser window.
    pub title: &'f str,
    /// The path of the section in the navigation.
    pub section: &'static str,
    /// Further scripts, by the names of the assets.
    pub scripts: &'static [&'static str],
    /// Further style sheets, by the names of the assets.
    pub styles: &'static [&'static str],
}

/// Returns a page.
pub fn page(request: &Request, frame: Frame<'_>, content: &Markup) -> Response {
    Response::html(frame_markup(request, frame, content))
}

/// Marks the position in the content of [`page_in_parts`] at which the deferred part is written.
pub const REST: PreEscaped<&str> = PreEscaped("<!--rest-->");

/// Returns a page whose content contains [`REST`] once. The part before it is sent at once, so that
/// the browser can render it and load its assets; the rest follows when it is ready.
pub fn page_in_parts(
    request: &Request,
    frame: Frame<'_>,
    content: &Markup,
    rest: impl FnOnce() -> Markup + Send + 'static,
) -> Response {
    let whole = frame_markup(request, frame, content).into_string();
    Response::from_html_writer(move |writer| {
        // Cannot occur in texts, because their `<` is escaped.
        let (before, behind) = whole.split_once(REST.0).unwrap_or((&whole, ""));
        writer.write_all(before.as_bytes())?;
        writer.flush()?;
        writer.write_all(rest().into_string().as_bytes())?;
        writer.write_all(behind.as_bytes())
    })
}

fn frame_markup(request: &Request, frame: Frame<'_>, content: &Markup) -> Markup {
    let styles = ["page.css"].iter().chain(frame.styles);
    let scripts = ["page.js"].iter().chain(frame.scripts);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="form-token" content=(request.form_token());
                title {
                    @if !frame.title.is_empty() { (frame.title) " · " }
                    (texts::frame::PRODUCT)
                }
                link rel="icon" href=(asset_address("icon.svg")) type="image/svg+xml";
                @for style in styles { link rel="stylesheet" href=(asset_address(style)); }
                @for script in scripts { script type="module" src=(asset_address(script)) {} }
            }
            body {
                a .skip href="#content" { (texts::frame::SKIP) }
                (header(request, frame.section))
                p #offline .notice .offline role="status" hidden { (texts::frame::OFFLINE) }
                main #content tabindex="-1" { (content) }
            }
        }
    }
}

fn header(request: &Request, section: &str) -> Markup {
    let site = request.site();
    html! {
        header .top {
            a .brand href="/" {
                img src=(asset_address("icon.svg")) alt="" width="22" height="22";
                span { (texts::frame::PRODUCT) }
            }
            @if request.session().is_some() {
                nav aria-label=(texts::frame::NAVIGATION) {
                    @for entry in &site.navigation {
                        a href=(entry.path) aria-current=[(entry.path == section).then_some("page")] {
                            (entry.name)
                        }
                    }
                }
            }
            div .top-end {
                @if site.is_read_only { span .badge { (texts::frame::READ_ONLY) } }
                @if let Some(user) = request.user() {
                    form method="post" action="/logout" {
                        (form_token(request))
                        span .user { (user) }
                        button .quiet type="submit" { (texts::frame::LOG_OUT) }
                    }
                }
            }
        }
    }
}

/// Returns the hidden token field, which every POST form needs.
pub fn form_token(request: &Request) -> Markup {
    html! { input type="hidden" name="token" value=(request.form_token()); }
}

/// Returns the response for an error: a page, a fragment of a page, or JSON.
pub fn error_page(request: &Request, error: &PageError) -> Response {
    let PageError { status, message } = error;
    let response = if request.wants_json() {
        error_json(error)
    } else if request.wants_part() {
        Response::html(html! { p .notice .error role="alert" { (message) } })
    } else {
        let title = texts::error::title(status.as_u16());
        let frame = Frame {
            title,
            ..Frame::default()
        };
        let content = html! {
            div .narrow {
                h1 { (title) }
                p .notice .error role="alert" { (message) }
                @if *status != StatusCode::SERVICE_UNAVAILABLE {
                    p { a href="/" { (texts::frame::BACK) } }
                }
            }
        };
        page(request, frame, &content)
    };
    response.with_status(*status)
}

/// Returns an error as JSON.
pub fn error_json(error: &PageError) -> Response {
    let value = serde_json::json!({
        "error": { "status": error.status.as_u16(), "message": error.message },
    });
    Response::json(&value).with_status(error.status)
}
