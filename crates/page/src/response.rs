//! Answers of handlers.

use std::fmt;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, LOCATION, SET_COOKIE,
};
use maud::Markup;

use crate::body::BodyWriter;

/// An answer.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers, without those that all answers have.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The content.
    pub content: Content,
}

/// The content of an answer.
pub enum Content {
    /// All of it.
    Whole(Bytes),
    /// A function that writes it. It runs on a thread of its own, and ends when the client has gone.
    Written {
        /// The function.
        write: ContentWriter,
        /// It is worth compressing.
        is_compressible: bool,
    },
}

/// Writes the content of an answer.
pub type ContentWriter = Box<dyn FnOnce(&mut BodyWriter) -> io::Result<()> + Send>;

impl fmt::Debug for Content {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Content::Whole(bytes) => write!(formatter, "{} bytes", bytes.len()),
            Content::Written { .. } => formatter.write_str("written"),
        }
    }
}

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
/// Pages have what their person may see, which no cache may keep.
const FRESH: &str = "no-store";

impl Response {
    fn new(content_type: &'static str, content: Content) -> Response {
        Response {
            status: StatusCode::OK,
            headers: vec![
                (CONTENT_TYPE, HeaderValue::from_static(content_type)),
                (CACHE_CONTROL, HeaderValue::from_static(FRESH)),
            ],
            content,
        }
    }

    /// A page, or a part of one.
    pub fn html(markup: Markup) -> Response {
        Response::new(HTML, Content::Whole(markup.into_string().into()))
    }

    /// A value for programs.
    pub fn json(value: &serde_json::Value) -> Response {
        Response::new(JSON, Content::Whole(value.to_string().into()))
    }

    /// A text.
    pub fn text(text: impl Into<String>) -> Response {
        Response::new(TEXT, Content::Whole(text.into().into()))
    }

    /// Bytes of a type.
    pub fn bytes(content_type: &'static str, bytes: impl Into<Bytes>) -> Response {
        Response::new(content_type, Content::Whole(bytes.into()))
    }

    /// A content that is written while it is sent.
    pub fn written(
        content_type: &'static str,
        write: impl FnOnce(&mut BodyWriter) -> io::Result<()> + Send + 'static,
    ) -> Response {
        let write = Box::new(write);
        let is_compressible = false;
        Response::new(
            content_type,
            Content::Written {
                write,
                is_compressible,
            },
        )
    }

    /// A page that is written while it is sent.
    pub fn written_html(
        write: impl FnOnce(&mut BodyWriter) -> io::Result<()> + Send + 'static,
    ) -> Response {
        let content = Content::Written {
            write: Box::new(write),
            is_compressible: true,
        };
        Response::new(HTML, content)
    }

    /// Sends the browser to another page of ours, with GET.
    pub fn redirect(address: &str) -> Response {
        let mut response = Response::text("").with_status(StatusCode::SEE_OTHER);
        // Addresses are encoded, so they are valid headers.
        if let Ok(address) = HeaderValue::from_str(address) {
            response.headers.push((LOCATION, address));
        }
        response
    }

    /// The answer with this status.
    pub fn with_status(mut self, status: StatusCode) -> Response {
        self.status = status;
        self
    }

    /// The answer with a header in place of others of the name. A value with line breaks is left out.
    pub fn with_header(mut self, name: HeaderName, value: &str) -> Response {
        if name != SET_COOKIE {
            self.headers.retain(|(known, _)| *known != name);
        }
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    /// The answer, to be kept by browsers, which ask with the tag if there is a newer one.
    pub fn with_tag(self, tag: &str, cache_control: &str) -> Response {
        self.with_header(ETAG, tag)
            .with_header(CACHE_CONTROL, cache_control)
    }

    /// Returns the first value of a header.
    #[cfg(test)]
    pub fn header(&self, name: &HeaderName) -> Option<&HeaderValue> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }
}

/// Compresses bytes by gzip.
///
/// # Errors
/// Writing to memory does not fail.
pub fn compress(bytes: &[u8], level: Compression) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 3), level);
    encoder.write_all(bytes)?;
    encoder.finish()
}
