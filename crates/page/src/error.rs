//! Why a request has no answer.

use std::fmt;

use hyper::StatusCode;
use windrow_client::ClientError;

/// Why a request has no answer: a status of HTTP, and a sentence for the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageError {
    /// The status.
    pub status: StatusCode,
    /// The sentence.
    pub message: String,
}

/// MongoDB's numbers of errors, and the statuses that say the same.
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

    /// The request is wrong.
    pub fn bad_request(message: impl Into<String>) -> PageError {
        PageError::new(StatusCode::BAD_REQUEST, message)
    }

    /// There is no such thing.
    pub fn not_found(message: impl Into<String>) -> PageError {
        PageError::new(StatusCode::NOT_FOUND, message)
    }

    /// The person may not do this.
    pub fn forbidden(message: impl Into<String>) -> PageError {
        PageError::new(StatusCode::FORBIDDEN, message)
    }

    /// The machine cannot do this now.
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
