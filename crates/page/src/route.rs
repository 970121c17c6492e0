//! Routes: the table entries that map methods and paths to handlers.

use std::fmt;
use std::time::Duration;

use hyper::Method;
use percent_encoding::percent_decode_str;

use crate::body::BodyReader;
use crate::error::PageError;
use crate::request::Request;
use crate::response::Response;

/// A route: the handler for a method and a path.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// The method is POST; otherwise GET or HEAD.
    pub is_post: bool,
    /// The path. A segment `{name}` matches any one segment, which [`Request::parameter`] returns.
    pub path: &'static str,
    /// The route needs no login.
    pub is_open: bool,
    /// The handler may write. A read-only page refuses the request.
    pub writes: bool,
    /// The maximum number of bytes of the request body.
    pub body_bytes_max: usize,
    /// The handler.
    pub answer: Answer,
}

/// A handler. Functions run on threads that may block.
#[derive(Clone, Copy)]
pub enum Answer {
    /// Returns a complete response.
    Once(fn(&Request) -> Result<Response, PageError>),
    /// Returns a response, and reads the request body while it is received.
    Received(fn(&Request, BodyReader) -> Result<Response, PageError>),
    /// Serves server-sent events, see [`EventStream`].
    Events(EventStream),
}

/// A stream of server-sent events. All browsers with the same session and the same address share
/// one polling function, which runs once in each interval.
#[derive(Clone, Copy)]
pub struct EventStream {
    /// The polling interval.
    pub interval: Duration,
    /// Creates the polling function of a new stream.
    pub start: fn(&Request) -> Result<PollFunction, PageError>,
}

/// A polling function. Returns the text of the next event, mostly HTML that replaces an element.
pub type PollFunction = Box<dyn FnMut(&Request) -> Result<String, PageError> + Send>;

impl fmt::Debug for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Answer::Once(_) => "once",
            Answer::Received(_) => "received",
            Answer::Events(_) => "live",
        })
    }
}

/// A part of the page with an entry in the navigation.
pub struct Section {
    /// The name in the navigation.
    pub name: &'static str,
    /// The address of its first page.
    pub path: &'static str,
    /// The routes of its pages.
    pub routes: &'static [Route],
}

/// The default maximum number of bytes of a form.
const FORM_BYTES_MAX: usize = 1 << 20;

impl Route {
    /// A GET route.
    pub const fn get(
        path: &'static str,
        answer: fn(&Request) -> Result<Response, PageError>,
    ) -> Route {
        Route::new(path, Answer::Once(answer))
    }

    /// A POST route that writes. The form must contain the token of its session.
    pub const fn post(
        path: &'static str,
        answer: fn(&Request) -> Result<Response, PageError>,
    ) -> Route {
        Route {
            is_post: true,
            writes: true,
            body_bytes_max: FORM_BYTES_MAX,
            ..Route::get(path, answer)
        }
    }

    /// A POST route for uploads from a script, without a size limit. The token is in a header.
    pub const fn receive(
        path: &'static str,
        answer: fn(&Request, BodyReader) -> Result<Response, PageError>,
    ) -> Route {
        Route {
            is_post: true,
            writes: true,
            ..Route::new(path, Answer::Received(answer))
        }
    }

    /// A route of server-sent events.
    pub const fn live(path: &'static str, live: EventStream) -> Route {
        Route::new(path, Answer::Events(live))
    }

    /// A read-only route that needs a login.
    const fn new(path: &'static str, answer: Answer) -> Route {
        Route {
            is_post: false,
            path,
            is_open: false,
            writes: false,
            body_bytes_max: 0,
            answer,
        }
    }

    /// Returns the route without the need of a login.
    pub const fn open(self) -> Route {
        Route {
            is_open: true,
            ..self
        }
    }

    /// Returns the route marked as one that does not write.
    pub const fn reading(self) -> Route {
        Route {
            writes: false,
            ..self
        }
    }

    /// Returns the route with another limit of the request body.
    pub const fn with_body(self, body_bytes_max: usize) -> Route {
        Route {
            body_bytes_max,
            ..self
        }
    }

    /// Returns the path parameters. `None` if the path does not match.
    pub fn parameters(&self, path: &str) -> Option<Vec<(&'static str, String)>> {
        let (mut own, mut sent) = (self.path.split('/'), path.split('/'));
        let mut parameters = Vec::new();
        loop {
            match (own.next(), sent.next()) {
                (None, None) => return Some(parameters),
                (Some(own), Some(sent)) => match parameter_name(own) {
                    Some(name) if !sent.is_empty() => {
                        let value = percent_decode_str(sent).decode_utf8().ok()?;
                        parameters.push((name, value.into_owned()));
                    }
                    None if own == sent => {}
                    _ => return None,
                },
                _ => return None,
            }
        }
    }

    /// Returns `true` if the route accepts this method.
    pub fn accepts(&self, method: &Method) -> bool {
        if self.is_post {
            method == Method::POST
        } else {
            method == Method::GET || method == Method::HEAD
        }
    }
}

fn parameter_name(part: &'static str) -> Option<&'static str> {
    part.strip_prefix('{')?.strip_suffix('}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_parameters() {
        let answer: fn(&Request) -> Result<Response, PageError> = |_| Ok(Response::text(""));
        type Pairs = &'static [(&'static str, &'static str)];
        let cases: [(&str, &str, Option<Pairs>); 7] = [
            ("/", "/", Some(&[])),
            ("/a/b", "/a/b", Some(&[])),
            ("/a/b", "/a/b/", None),
            ("/a/{x}", "/a/b%2Fc%C3%A4", Some(&[("x", "b/cä")])),
            ("/a/{x}", "/a/", None),
            ("/a/{x}/{y}", "/a/1/2", Some(&[("x", "1"), ("y", "2")])),
            ("/a/{x}", "/a/%ff", None),
        ];
        for (own, sent, expected) in cases {
            let found = Route::get(own, answer).parameters(sent);
            let expected = expected.map(|pairs| {
                let pairs = pairs
                    .iter()
                    .map(|(name, value)| (*name, (*value).to_owned()));
                pairs.collect::<Vec<_>>()
            });
            assert_eq!(found, expected, "{own} {sent}");
        }
    }
}
