//! Routes: which function answers a request.

use std::fmt;
use std::time::Duration;

use hyper::Method;
use percent_encoding::percent_decode_str;

use crate::body::BodyReader;
use crate::error::PageError;
use crate::request::Request;
use crate::response::Response;

/// A route: requests with its method and its path are answered by its function.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// POST, or GET with HEAD.
    pub is_post: bool,
    /// The path. A part `{name}` stands for any one part, which [`Request::parameter`] returns.
    pub path: &'static str,
    /// True if it needs no login.
    pub is_open: bool,
    /// Whether it may change something. A read-only page refuses it then.
    pub writes: bool,
    /// So many bytes can be sent.
    pub body_bytes_max: usize,
    /// What answers.
    pub answer: Answer,
}

/// What answers a request. Functions run on threads that may block.
#[derive(Clone, Copy)]
pub enum Answer {
    /// One answer.
    Once(fn(&Request) -> Result<Response, PageError>),
    /// One answer, of a function that reads what was sent while it is received.
    Received(fn(&Request, BodyReader) -> Result<Response, PageError>),
    /// A stream of events, see [`Live`].
    Live(Live),
}

/// A stream of server-sent events. All people with the same rights who look at the same address share
/// one function: it runs once in each interval, however many they are.
#[derive(Clone, Copy)]
pub struct Live {
    /// How often it looks.
    pub interval: Duration,
    /// Starts to look.
    pub start: fn(&Request) -> Result<Look, PageError>,
}

/// Returns what is there now: a text, mostly HTML that takes the place of an element.
pub type Look = Box<dyn FnMut(&Request) -> Result<String, PageError> + Send>;

impl fmt::Debug for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Answer::Once(_) => "once",
            Answer::Received(_) => "received",
            Answer::Live(_) => "live",
        })
    }
}

/// A part of the page with an entry in the navigation.
pub struct Section {
    /// The name in the navigation.
    pub name: &'static str,
    /// The address of its first page.
    pub path: &'static str,
    /// Its pages.
    pub routes: &'static [Route],
}

/// So many bytes of a form are read.
const FORM_BYTES_MAX: usize = 1 << 20;

impl Route {
    /// A page that is read.
    pub const fn get(
        path: &'static str,
        answer: fn(&Request) -> Result<Response, PageError>,
    ) -> Route {
        Route::new(path, Answer::Once(answer))
    }

    /// A form that changes something. It has to send the token of its session.
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

    /// Something that a script sends, without a limit of its size. It has the token in a header.
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

    /// A stream of events.
    pub const fn live(path: &'static str, live: Live) -> Route {
        Route::new(path, Answer::Live(live))
    }

    /// A route that changes nothing, for people who have logged in.
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

    /// The route, for everybody.
    pub const fn open(self) -> Route {
        Route {
            is_open: true,
            ..self
        }
    }

    /// The route, of a form that changes nothing.
    pub const fn reading(self) -> Route {
        Route {
            writes: false,
            ..self
        }
    }

    /// The route, with another limit of what can be sent.
    pub const fn with_body(self, body_bytes_max: usize) -> Route {
        Route {
            body_bytes_max,
            ..self
        }
    }

    /// Returns the parameters of a path, if it is that of the route.
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

    /// Returns `true` if it answers this method.
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
