//! Login and logout.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::StatusCode;
use hyper::header::SET_COOKIE;
use maud::html;
use tokio::sync::SemaphorePermit;
use zeroize::Zeroizing;

use crate::connection::Connection;
use crate::error::PageError;
use crate::login_delay::LoginAttempt;
use crate::request::Request;
use crate::response::Response;
use crate::route::Route;
use crate::services::ConnectionEnds;
use crate::services::Credentials;
use crate::session::Session;
use crate::shell::{Frame, page};
use crate::site::{Logins, Site, ended_session_cookie, session_cookie, session_token};
use crate::texts;

/// The routes of login and logout.
pub const ROUTES: &[Route] = &[
    Route::get("/login", show).open(),
    Route::post("/login", log_in)
        .open()
        .reading()
        .with_body(16 << 10),
    Route::post("/logout", log_out).reading(),
];

/// The path of the login page.
pub const PATH: &str = "/login";
/// The default authentication database.
const DATABASE: &str = "admin";
/// The maximum time that a login waits for its turn, and the polling interval.
const WAIT_MAX: Duration = Duration::from_secs(2);
const WAIT_STEP: Duration = Duration::from_millis(20);

fn show(request: &Request) -> Result<Response, PageError> {
    if request.session().is_some() {
        return Ok(Response::redirect(next_address(
            request.query().text("next"),
        )));
    }
    Ok(login_page(request, request.query().text("next"), None))
}

fn login_page(request: &Request, next: &str, problem: Option<&str>) -> Response {
    let content = html! {
        div .narrow .login {
            h1 { (texts::login::TITLE) }
            p .lead { (texts::login::LEAD) }
            @if request.ends().is_readable() { p .notice .warning { (texts::login::NOT_ENCRYPTED) } }
            @if let Some(problem) = problem { p .notice .error role="alert" { (problem) } }
            form .stack method="post" action=(PATH) {
                input type="hidden" name="next" value=(next);
                label for="user" { (texts::login::USER) }
                input #user name="user" autocomplete="username" required autofocus
                    autocapitalize="none" spellcheck="false";
                label for="password" { (texts::login::PASSWORD) }
                input #password name="password" type="password" autocomplete="current-password" required;
                label for="database" { (texts::login::DATABASE) }
                input #database name="database" value=(DATABASE) required autocapitalize="none"
                    spellcheck="false";
                button .primary type="submit" { (texts::login::SUBMIT) }
            }
        }
    };
    let frame = Frame {
        title: texts::login::TITLE,
        ..Frame::default()
    };
    page(request, frame, &content)
}

fn log_in(request: &Request) -> Result<Response, PageError> {
    let form = request.form();
    let next = form.text("next");
    let fail = |status: StatusCode, problem: &str| {
        Ok(login_page(request, next, Some(problem)).with_status(status))
    };
    let credentials = Credentials {
        user: form.text("user").to_owned(),
        database: form.text("database").to_owned(),
        password: Zeroizing::new(form.text("password").to_owned()),
    };
    match begin_session(request.site(), request.ends(), credentials) {
        Ok(session) => {
            let begun = request.site().sessions.begin(Arc::new(session));
            let token = begun.map_err(|error| PageError::unavailable(&error))?;
            let response = Response::redirect(next_address(next));
            Ok(response.with_header(SET_COOKIE, &session_cookie(&token, request.ends())))
        }
        Err(error) if error.status == StatusCode::UNAUTHORIZED => {
            fail(error.status, texts::login::FAILED)
        }
        Err(error) if error.status == StatusCode::TOO_MANY_REQUESTS => {
            fail(error.status, &error.message)
        }
        Err(error) => Err(error),
    }
}

/// Authenticates with the database. Returns a session that owns the connection.
///
/// # Errors
/// Fails with 401 if the credentials are wrong, and with 429 after too many failed logins.
pub fn begin_session(
    site: &Site,
    ends: ConnectionEnds,
    credentials: Credentials,
) -> Result<Session, PageError> {
    let attempt = LoginAttempt::new(ends.browser.ip(), &credentials.database, &credentials.user);
    let left = site.login_delay.left(&attempt);
    if !left.is_zero() {
        let message = texts::login::wait(left.as_secs() + 1);
        return Err(PageError::new(StatusCode::TOO_MANY_REQUESTS, message));
    }
    let _turn =
        take_turn(&site.logins).ok_or_else(|| PageError::unavailable(&texts::login::BUSY))?;
    match Connection::open(&site.services, Some(&credentials), ends) {
        Ok(connection) => {
            site.login_delay.record_success(&attempt);
            let session = Session::new(Some(credentials));
            let session = session.map_err(|error| PageError::unavailable(&error))?;
            session.connections.put(connection);
            Ok(session)
        }
        Err(error) => {
            let error = PageError::from(error);
            if error.status == StatusCode::UNAUTHORIZED {
                site.login_delay.record_failure(&attempt);
            }
            Err(error)
        }
    }
}

/// Waits for a turn. Returns `None` if too many logins wait or if the wait takes too long. The
/// server delays its reply to a wrong password, and delayed logins must not occupy all threads of
/// the page.
fn take_turn(logins: &Logins) -> Option<[SemaphorePermit<'_>; 2]> {
    let waiting = logins.waiting.try_acquire().ok()?;
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        if let Ok(turn) = logins.running.try_acquire() {
            return Some([waiting, turn]);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(WAIT_STEP);
    }
}

fn log_out(request: &Request) -> Result<Response, PageError> {
    if let Some(token) = session_token(request.headers()) {
        request.site().sessions.end(token);
    }
    let cookie = ended_session_cookie(request.ends());
    Ok(Response::redirect(PATH).with_header(SET_COOKIE, &cookie))
}

/// Returns the address to open after a login. Only addresses of this page are accepted, because an
/// attacker can craft the link that leads to the login.
fn next_address(next: &str) -> &str {
    let is_own = next.starts_with('/') && !next.starts_with("//") && !next.contains('\\');
    let is_plain = next.bytes().all(|byte| byte.is_ascii_graphic());
    if is_own && is_plain { next } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_lead_to_own_pages() {
        let cases = [
            ("/search?q=a", "/search?q=a"),
            ("", "/"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("https://evil.example", "/"),
            ("/a\r\nb", "/"),
        ];
        for (next, expected) in cases {
            assert_eq!(next_address(next), expected, "{next}");
        }
    }
}
