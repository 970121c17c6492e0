//! Resources: the texts of indexed files. There are too many to list them; `search` finds them.

use std::path::Path;

use serde_json::{Value, json};

use super::json_rpc::{Request, RequestError};
use crate::search::{Searcher, read_stored_text};

const SCHEME: &str = "file://";

/// Returns the resource templates.
pub fn templates() -> Vec<Value> {
    vec![json!({
        "uriTemplate": "file://{+path}",
        "name": "indexed file",
        "description": "the text of an indexed document; its path begins with a slash",
        "mimeType": "text/plain",
    })]
}

/// Reads a resource.
pub fn read(data_folder: &Path, request: &Request) -> Result<Value, RequestError> {
    let uri = request.parameters.get("uri").and_then(Value::as_str);
    let uri = uri.ok_or_else(|| RequestError::parameters("\"uri\" is missing"))?;
    let path = uri.strip_prefix(SCHEME).and_then(decode_percent);
    let path = path.filter(|path| path.starts_with('/')).ok_or_else(|| {
        RequestError::parameters(format!("{uri:?} is no resource; write file:///PATH"))
    })?;
    let mut searcher = Searcher::open(data_folder)
        .map_err(|failure| RequestError::internal(failure.to_string()))?;
    let document = read_stored_text(&mut searcher, Path::new(&path))
        .map_err(|failure| RequestError::no_resource(failure.to_string()))?;
    let contents = json!({ "uri": uri, "mimeType": "text/plain", "text": document.text });
    Ok(json!({ "contents": [contents] }))
}

/// Decodes percent escapes. Returns `None` if the result is not UTF-8.
fn decode_percent(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        bytes.push(u8::from_str_radix(behind.get(..2)?, 16).ok()?);
        rest = behind.get(2..)?;
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_signs_are_decoded() {
        let cases = [
            ("/a%20b/%c3%A4", Some("/a b/ä")),
            ("/a", Some("/a")),
            ("/%ff", None),
            ("/%2", None),
            ("/%zz", None),
        ];
        for (text, expected) in cases {
            assert_eq!(decode_percent(text).as_deref(), expected, "{text}");
        }
    }
}
