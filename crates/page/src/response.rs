//! Responses of handlers.

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

/// A response.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers, without those that all responses have.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The content.
    pub content: Content,
}

/// The content of a response.
pub enum Content {
    /// Complete bytes.
    Whole(Bytes),
    /// A function that writes the content while it is sent. It runs on a thread that may block, and
    /// fails when the client disconnects.
    Written {
        /// The function.
        write: ContentWriter,
        /// The content is compressed if the client accepts gzip.
        is_compressible: bool,
    },
}

/// Writes the content of a response.
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
/// `Cache-Control` of pages. They contain data that only the user may see.
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

    /// An HTML page or fragment.
    pub fn html(markup: Markup) -> Response {
        Response::new(HTML, Content::Whole(markup.into_string().into()))
    }

    /// A JSON value.
    pub fn json(value: &serde_json::Value) -> Response {
        Response::new(JSON, Content::Whole(value.to_string().into()))
    }

    /// Plain text.
    pub fn text(text: impl Into<String>) -> Response {
        Response::new(TEXT, Content::Whole(text.into().into()))
    }

    /// Bytes with a content type.
    pub fn bytes(content_type: &'static str, bytes: impl Into<Bytes>) -> Response {
        Response::new(content_type, Content::Whole(bytes.into()))
    }

    /// A content that is written while it is sent.
    pub fn from_writer(
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

    /// An HTML page that is written while it is sent.
    pub fn from_html_writer(
        write: impl FnOnce(&mut BodyWriter) -> io::Result<()> + Send + 'static,
    ) -> Response {
        let content = Content::Written {
            write: Box::new(write),
            is_compressible: true,
        };
        Response::new(HTML, content)
    }

    /// Redirects the browser to another page of this site, with GET (303).
    pub fn redirect(address: &str) -> Response {
        let mut response = Response::text("").with_status(StatusCode::SEE_OTHER);
        // Cannot fail: addresses are percent-encoded.
        if let Ok(address) = HeaderValue::from_str(address) {
            response.headers.push((LOCATION, address));
        }
        response
    }

    /// Returns the response with another status.
    pub fn with_status(mut self, status: StatusCode) -> Response {
        self.status = status;
        self
    }

    /// Returns the response with a header, which replaces those of the same name. An invalid value
    /// is ignored.
    pub fn with_header(mut self, name: HeaderName, value: &str) -> Response {
        if name != SET_COOKIE {
            self.headers.retain(|(known, _)| *known != name);
        }
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    /// Returns the response with an entity tag, for caching.
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
/// Never fails: it writes to memory.
pub fn compress(bytes: &[u8], level: Compression) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 3), level);
    encoder.write_all(bytes)?;
    encoder.finish()
}
