//! Messages of JSON-RPC 2.0: <https://www.jsonrpc.org/specification>.

use serde_json::{Map, Value, json};

/// A message of a client.
#[derive(Debug)]
pub enum Message {
    Request(Request),
    /// A notification, which has no reply.
    Notification,
    /// A response. It is ignored, because the server sends no requests.
    Response,
}

/// A request.
#[derive(Debug)]
pub struct Request {
    /// A number or a string.
    pub id: Value,
    pub method: String,
    pub parameters: Map<String, Value>,
}

/// The error of a request.
#[derive(Debug)]
pub struct RequestError {
    code: i32,
    message: String,
}

const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;
const METHOD_NOT_FOUND: i32 = -32_601;
const INVALID_PARAMETERS: i32 = -32_602;
const INTERNAL_ERROR: i32 = -32_603;
/// An error code of the Model Context Protocol.
const RESOURCE_NOT_FOUND: i32 = -32_002;

impl Message {
    /// Parses a message.
    pub fn parse(message: Value) -> Result<Message, RequestError> {
        let Value::Object(mut message) = message else {
            return Err(RequestError::invalid("a message must be an object"));
        };
        if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(RequestError::invalid("\"jsonrpc\" must be \"2.0\""));
        }
        if !message.contains_key("method")
            && (message.contains_key("result") || message.contains_key("error"))
        {
            return Ok(Message::Response);
        }
        let Some(Value::String(method)) = message.remove("method") else {
            return Err(RequestError::invalid("\"method\" must be a string"));
        };
        let id = match message.remove("id") {
            None => return Ok(Message::Notification),
            Some(id @ (Value::String(_) | Value::Number(_))) => id,
            Some(_) => return Err(RequestError::invalid("\"id\" must be a string or a number")),
        };
        let parameters = match message.remove("params") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(parameters)) => parameters,
            Some(_) => return Err(RequestError::invalid("\"params\" must be an object")),
        };
        Ok(Message::Request(Request {
            id,
            method,
            parameters,
        }))
    }
}

impl RequestError {
    /// The message is not JSON.
    pub fn parse(message: impl Into<String>) -> RequestError {
        RequestError::new(PARSE_ERROR, message)
    }

    /// The message is not a request.
    pub fn invalid(message: impl Into<String>) -> RequestError {
        RequestError::new(INVALID_REQUEST, message)
    }

    /// The method does not exist.
    pub fn unknown_method(method: &str) -> RequestError {
        RequestError::new(METHOD_NOT_FOUND, format!("there is no method {method:?}"))
    }

    /// The parameters are invalid.
    pub fn parameters(message: impl Into<String>) -> RequestError {
        RequestError::new(INVALID_PARAMETERS, message)
    }

    /// The resource does not exist.
    pub fn no_resource(message: impl Into<String>) -> RequestError {
        RequestError::new(RESOURCE_NOT_FOUND, message)
    }

    /// The data folder cannot be read.
    pub fn internal(message: impl Into<String>) -> RequestError {
        RequestError::new(INTERNAL_ERROR, message)
    }

    fn new(code: i32, message: impl Into<String>) -> RequestError {
        RequestError {
            code,
            message: message.into(),
        }
    }
}

/// Returns the response with a result.
pub fn result_reply(id: Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Returns the response with an error. The id of an unreadable request is null.
pub fn error_reply(id: Value, error: &RequestError) -> Value {
    let error = json!({ "code": error.code, "message": error.message });
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}
