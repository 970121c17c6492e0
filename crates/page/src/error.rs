//! Errors of requests.

use std::fmt;
use std::io;

use hyper::StatusCode;
use windrow_client::ClientError;

/// The reason why a request failed: an HTTP status and a message for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageError {
    /// The status.
    pub status: StatusCode,
    /// The message: a sentence.
    pub message: String,
}

/// MongoDB error codes, and the equivalent HTTP statuses. Other codes map to 400.
const STATUSES: [(i32, StatusCode); 6] = [
    (13, StatusCode::FORBIDDEN),
    (18, StatusCode::UNAUTHORIZED),
    (50, StatusCode::GATEWAY_TIMEOUT),
    (26, StatusCode::NOT_FOUND),
    (11_600, StatusCode::SERVICE_UNAVAILABLE),
    (91, StatusCode::SERVICE_UNAVAILABLE),
];

impl PageError {
    /// Creates an error.
    pub fn new(status: StatusCode, message: impl Into<String>) -> PageError {
        PageError {
            status,
            message: message.into(),
        }
    }

    /// Status 400: the request is invalid.
    pub fn bad_request(message: impl Into<String>) -> PageError {
        PageError::new(StatusCode::BAD_REQUEST, message)
    }

    /// Status 404: the resource does not exist.
    pub fn not_found(message: impl Into<String>) -> PageError {
        PageError::new(StatusCode::NOT_FOUND, message)
    }

    /// Status 403: the user lacks the right.
    pub fn forbidden(message: impl Into<String>) -> PageError {
        PageError::new(StatusCode::FORBIDDEN, message)
    }

    /// Status 503: a resource of the machine or the server is not available.
    pub fn unavailable(error: &dyn fmt::Display) -> PageError {
        PageError::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
    }
}

impl fmt::Display for PageError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for PageError {}

/// The error of a body that could not be written.
impl From<io::Error> for PageError {
    fn from(error: io::Error) -> PageError {
        error
            .downcast::<PageError>()
            .unwrap_or_else(|error| PageError::unavailable(&error))
    }
}

impl From<ClientError> for PageError {
    fn from(error: ClientError) -> PageError {
        match error {
            ClientError::Connection { reason, .. } => PageError::unavailable(&reason),
            ClientError::Command { code, message } => {
                let known = STATUSES.iter().find(|(known, _)| *known == code);
                let status = known.map_or(StatusCode::BAD_REQUEST, |(_, status)| *status);
                PageError::new(status, message)
            }
        }
    }
}
